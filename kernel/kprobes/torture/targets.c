// SPDX-License-Identifier: GPL-2.0
/* Targets: who is in them, who may probe them, and the code that changes in them. */
#include <linux/jump_label.h>
#include <linux/kallsyms.h>
#include <linux/kernel.h>
#include <linux/jiffies.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/static_call.h>
#include <linux/string.h>
#include <linux/torture.h>

#include "torture.h"

struct target kt_targets[TARGETS];

/**
 * kt_call() - Call a target, and compare the result with its twin's
 * @t: The target.
 * @arg: The argument.
 *
 * Context: Any, NMI included.
 * Return: false if the target is closed, and so was not called.
 */
bool kt_call(struct target *t, u64 arg)
{
	u64 (*function)(u64 arg) = t->function;
	bool closed;
	u64 result;

	/* Otherwise kt_close() might never see as many leave as have entered. */
	if (READ_ONCE(t->closed))
		return false;
	this_cpu_inc(t->counts->entered);
	smp_mb();	/* pairs with that of kt_close(): one of the two sees the other */
	closed = READ_ONCE(t->closed);
	if (!closed) {
		this_cpu_inc(t->counts->calls);
		OPTIMIZER_HIDE_VAR(function);
		result = function(arg);
		KT_EXPECT(result == t->twin(arg), "%s(%#llx) is %#llx", t->symbol, arg, result);
	}
	smp_mb();	/* target_is_empty() sees the hits of the calls that have left */
	this_cpu_inc(t->counts->left);
	return !closed;
}

static bool target_is_empty(const struct target *t)
{
	unsigned long entered = 0, left = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		left += READ_ONCE(per_cpu_ptr(t->counts, cpu)->left);
	smp_mb();	/* each call that is counted above is counted below */
	for_each_possible_cpu(cpu)
		entered += READ_ONCE(per_cpu_ptr(t->counts, cpu)->entered);
	return entered == left;
}

/* The number of calls of a target; exact while it is closed. */
unsigned long kt_calls(const struct target *t)
{
	unsigned long calls = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		calls += READ_ONCE(per_cpu_ptr(t->counts, cpu)->calls);
	return calls;
}

/* Close a target that the caller has claimed. Returns the number of calls until then. */
unsigned long kt_close(struct target *t)
{
	unsigned long timeout = jiffies + 30 * HZ;

	WRITE_ONCE(t->closed, true);
	smp_mb();	/* pairs with that of kt_call() */
	while (!target_is_empty(t)) {
		if (time_after(jiffies, timeout)) {
			kt_fail("a call of %s does not end", t->symbol);
			break;
		}
		schedule_timeout_uninterruptible(1);
	}
	return kt_calls(t);
}

void kt_open(struct target *t)
{
	WRITE_ONCE(t->closed, false);
}

/* Claim any of the targets from @first on that nobody else has claimed. */
struct target *kt_claim(struct rnd_state *rnd, unsigned int first)
{
	struct target *t;

	for (;;) {
		t = &kt_targets[first + kt_below(rnd, TARGETS - first)];
		if (mutex_trylock(&t->claim))
			return t;
		schedule_timeout_uninterruptible(1);
	}
}

void kt_release(struct target *t)
{
	mutex_unlock(&t->claim);
}

/* Thread: change the static branches and static calls in targets, under their probes. */
int kt_flip_branches(void *index)
{
	struct rnd_state rnd;

	kt_seed(&rnd, (unsigned long)index);
	while (!kt_must_stop()) {
		if (kt_below(&rnd, 2))
			static_branch_enable(&kt_key);
		else
			static_branch_disable(&kt_key);
		static_call_update(kt_double, kt_below(&rnd, 2) ? kt_double : kt_add_itself);
		atomic_long_inc(&kt_stats.flips);
		kt_sleep(&rnd);
	}
	torture_kthread_stopping("kt_flip_branches");
	return 0;
}

/* The size of a function, or 0. "name+0x0/0x2a [module]" is all that modules learn. */
static unsigned long function_size(const void *function)
{
	char text[KSYM_SYMBOL_LEN], *size;
	unsigned long n;

	sprint_symbol(text, (unsigned long)function);
	size = strstr(text, "+0x0/");
	if (!size)
		return 0;
	size += strlen("+0x0/");
	size[strcspn(size, " ")] = '\0';
	return kstrtoul(size, 16, &n) ? 0 : n;
}

static int target_init(struct target *t, const char *copy, unsigned int i)
{
	t->symbol = kasprintf(GFP_KERNEL, "kprobes_torture_%s_%u", copy, i);
	t->counts = alloc_percpu(struct target_counts);
	if (!t->symbol || !t->counts)
		return -ENOMEM;
	mutex_init(&t->claim);
	t->twin = kt_twins[i];
	t->size = function_size(t->function);
	return t->size ? 0 : -ENOENT;
}

int kt_targets_init(void)
{
	int err = 0;

	for (unsigned int i = 0; i < BODIES && !err; i++) {
		kt_targets[i].function = kt_traced[i];
		kt_targets[FIRST_PLAIN + i].function = kt_plain[i];
		err = target_init(&kt_targets[i], "traced", i) ?:
		      target_init(&kt_targets[FIRST_PLAIN + i], "plain", i);
	}
	return err;
}

void kt_targets_exit(void)
{
	for (unsigned int i = 0; i < TARGETS; i++) {
		kfree(kt_targets[i].symbol);
		free_percpu(kt_targets[i].counts);
	}
}
