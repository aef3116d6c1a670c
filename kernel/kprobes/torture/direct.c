// SPDX-License-Identifier: GPL-2.0
/*
 * Direct calls: the entries of traced targets are patched, under the probes there
 *
 * BPF programs are attached like that. A module can change text in no other way, besides
 * static branches and static calls: kt_flip_branches() does that.
 */
#include <linux/bitops.h>
#include <linux/cpumask.h>
#include <linux/errno.h>
#include <linux/ftrace.h>
#include <linux/kernel.h>
#include <linux/linkage.h>
#include <linux/rcupdate.h>
#include <linux/torture.h>

#include <asm/ibt.h>

#include "torture.h"

#define TRAMPOLINES	2

/* The calls of each trampoline. */
unsigned long kt_direct_counts[TRAMPOLINES];

asm("	.pushsection .text, \"ax\"\n"
	"	.irp n, 0, 1\n"
	"	.balign 16\n"		/* the lowest bit of an address is a flag of ftrace */
	"	.type kt_direct_\\n, @function\n"
	"	.globl kt_direct_\\n\n"
	"kt_direct_\\n:\n"
	"	" ASM_ENDBR
	"	lock incq kt_direct_counts + 8 * \\n(%rip)\n"
	"	" ASM_RET "\n"
	"	.size kt_direct_\\n, . - kt_direct_\\n\n"
	"	.endr\n"
	"	.popsection\n");

static const unsigned long trampolines[TRAMPOLINES] = {
	(unsigned long)kt_direct_0, (unsigned long)kt_direct_1,
};

/* A probe may redirect the call: the trampolines return to where it wants. */
static int share_functions(struct ftrace_ops *ops, unsigned long ip, enum ftrace_ops_cmd command)
{
	return 0;
}

static struct ftrace_ops direct_ops = {
	.ops_func = share_functions,
};

static unsigned long calls_of(unsigned long bodies)
{
	unsigned long calls = 0;
	unsigned int i;

	for_each_set_bit(i, &bodies, BODIES)
		calls += kt_calls(&kt_targets[i]);
	return calls;
}

/*
 * Each call of the targets is a call of the trampoline. A call is counted before it is made:
 * a few on each CPU may reach the trampoline later. The thread may be preempted between two
 * readings, so the calls are read before and after the direct ones.
 */
static void expect_direct_calls(unsigned long bodies, unsigned int i, struct rnd_state *rnd)
{
	unsigned long in_flight = 16 * num_possible_cpus();
	unsigned long direct, inner, outer;

	outer = calls_of(bodies);
	smp_mb();	/* each direct call from here on is an outer call, or in flight */
	direct = READ_ONCE(kt_direct_counts[i]);
	smp_mb();	/* no call that is counted below is counted above */
	inner = calls_of(bodies);
	kt_sleep(rnd);
	inner = calls_of(bodies) - inner;
	smp_mb();	/* each call that is counted above is counted below, or in flight */
	direct = READ_ONCE(kt_direct_counts[i]) - direct;
	smp_mb();	/* each direct call that is counted above is counted below */
	outer = calls_of(bodies) - outer;
	KT_EXPECT(direct + in_flight >= inner && direct <= outer + in_flight,
		  "targets %#lx: %lu to %lu calls, %lu direct ones", bodies, inner, outer, direct);
}

/* The trampoline is detached. */
static void expect_no_direct_calls(unsigned int i, struct rnd_state *rnd)
{
	unsigned long direct;

	synchronize_rcu_tasks();	/* tasks on their way to it */
	direct = READ_ONCE(kt_direct_counts[i]);
	kt_sleep(rnd);
	direct = READ_ONCE(kt_direct_counts[i]) - direct;
	KT_EXPECT(!direct, "trampoline %u: %lu calls", i, direct);
}

static int set_filter(unsigned long bodies)
{
	int i, err = 0, reset = 1;

	for_each_set_bit(i, &bodies, BODIES) {
		unsigned long ip = (unsigned long)kt_traced[i];

		err = err ?: ftrace_set_filter_ip(&direct_ops, ip, 0, reset);
		reset = 0;
	}
	return err;
}

/* Let ftrace call a trampoline at the entry of some targets, then another, then none. */
static int call_directly(unsigned long bodies, struct rnd_state *rnd)
{
	int err = set_filter(bodies) ?: register_ftrace_direct(&direct_ops, trampolines[0]);

	if (err)
		return err;
	expect_direct_calls(bodies, 0, rnd);
	err = modify_ftrace_direct(&direct_ops, trampolines[1]);
	expect_direct_calls(bodies, err ? 0 : 1, rnd);
	if (!err)
		expect_no_direct_calls(0, rnd);
	err = unregister_ftrace_direct(&direct_ops, trampolines[err ? 0 : 1], false) ?: err;
	if (!err)
		expect_no_direct_calls(1, rnd);
	return err;
}

unsigned long kt_direct_calls(void)
{
	return READ_ONCE(kt_direct_counts[0]) + READ_ONCE(kt_direct_counts[1]);
}

/* Thread: attach trampolines to targets, and detach them. */
int kt_call_directly(void *index)
{
	struct rnd_state rnd;
	int err = 0;

	kt_seed(&rnd, (unsigned long)index);
	while (!err && !kt_must_stop()) {
		err = call_directly(1 + kt_below(&rnd, BIT(BODIES) - 1), &rnd);
		KT_EXPECT(!err, "%d", err);
		kt_sleep(&rnd);
		stutter_wait("kt_call_directly");
	}
	ftrace_free_filter(&direct_ops);
	torture_kthread_stopping("kt_call_directly");
	return 0;
}
