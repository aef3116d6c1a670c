// SPDX-License-Identifier: GPL-2.0
/* Return probes of a test, functions to return-probe, and tasks inside of these. */
#include <linux/err.h>
#include <linux/kallsyms.h>
#include <linux/kthread.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/sched/task.h>
#include <linux/string.h>

#include "return_probes.h"

static struct test_kretprobe return_probes[5];

static int on_entry(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct test_kretprobe *p = container_of(get_kretprobe(ri), struct test_kretprobe, rp);

	atomic_inc(&p->entries);
	if (current != kpt_tester)
		return 0;
	kpt_note('r' + (p - return_probes));
	return p->on_entry ? p->on_entry(p, ri, regs) : 0;
}

static int on_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct test_kretprobe *p = container_of(get_kretprobe(ri), struct test_kretprobe, rp);

	atomic_inc(&p->returns);
	if (current != kpt_tester)
		return 0;
	kpt_note('R' + (p - return_probes));
	p->value = regs_return_value(regs);
	p->caller = get_kretprobe_retaddr(ri);
	if (p->on_return)
		p->on_return(p, ri, regs);
	return 0;
}

struct test_kretprobe *kpt_test_kretprobe(char name)
{
	return &return_probes[name - 'r'];
}

/* Make the return probe called @name one with both handlers. */
struct kretprobe *kpt_return_probe(char name, const char *symbol)
{
	struct kretprobe *rp = &kpt_test_kretprobe(name)->rp;

	rp->kp.symbol_name = symbol;
	rp->entry_handler = on_entry;
	rp->handler = on_return;
	return rp;
}

/*
 * Functions in which a test can do something. They have that called as a
 * notifier, and return what it returns.
 */

noinline __noclone int kprobes_test_host(struct raw_notifier_head *chain,
					 unsigned long up, unsigned long down, void *data)
{
	int result = raw_notifier_call_chain(chain, up, data);

	OPTIMIZER_HIDE_VAR(result);
	return result;
}

const struct host kpt_hosts[HOSTS] = {
	{ "kprobes_test_host", kprobes_test_host },
	{ "raw_notifier_call_chain_robust", raw_notifier_call_chain_robust },
};

KUNIT_ARRAY_PARAM_DESC(host, kpt_hosts, symbol);

const void *kpt_host_gen_params(const void *prev, char *desc)
{
	return host_gen_params(prev, desc);
}

static u8 unprobed_hosts[ARRAY_SIZE(kpt_hosts)][TEXT_BYTES];

static const void *host_text(unsigned int i)
{
	const void *start = dereference_function_descriptor(kpt_hosts[i].call);

	OPTIMIZER_HIDE_VAR(start);	/* see kpt_text() */
	return start;
}

/**
 * struct visit - A call of a host
 * @nb:		What the host calls.
 * @inside:	What is done then.
 */
struct visit {
	struct notifier_block nb;
	int (*inside)(void *data);
};

static int run_inside(struct notifier_block *nb, unsigned long action, void *data)
{
	return container_of(nb, struct visit, nb)->inside(data);
}

/* Do something inside of a host, and return what the host returned. */
noinline __noclone int kprobes_test_visit(const struct host *host,
					  int (*inside)(void *data), void *data)
{
	struct visit visit = { .nb.notifier_call = run_inside, .inside = inside };
	struct raw_notifier_head chain = { .head = RCU_INITIALIZER(&visit.nb) };
	int result = host->call(&chain, 0, 0, data);

	OPTIMIZER_HIDE_VAR(result);
	return result;
}

int kpt_do_nothing_inside(void *unused)
{
	return VISITED;
}

void kpt_expect_visit(struct kunit *test, const struct host *host, int (*inside)(void *data),
		      void *data, const char *events, int line)
{
	kpt_clear_journal();
	KUNIT_EXPECT_EQ_MSG(test, kprobes_test_visit(host, inside, data), VISITED,
			    "at line %d", line);
	KUNIT_EXPECT_STREQ_MSG(test, kpt_journal, events, "at line %d", line);
}

struct sleeper kpt_sleepers[200];
static unsigned int number_of_sleepers;
static DECLARE_COMPLETION(morning);

int kpt_sleep_inside(void *sleeper)
{
	complete(&((struct sleeper *)sleeper)->arrived);
	wait_for_completion_timeout(&morning, PATIENCE);
	return VISITED;
}

int kpt_exit_inside(void *sleeper)
{
	complete(&((struct sleeper *)sleeper)->arrived);
	kthread_exit(VISITED);
}

static int be_sleeper(void *sleeper)
{
	struct sleeper *s = sleeper;
	int result = kprobes_test_visit(s->host, s->inside, s);

	OPTIMIZER_HIDE_VAR(result);
	return result;
}

/* Start a task, and wait until it is inside of the host. */
struct task_struct *kpt_send_task(struct kunit *test, const struct host *host,
				  int (*inside)(void *sleeper))
{
	struct sleeper *s = &kpt_sleepers[number_of_sleepers];

	KUNIT_ASSERT_LT(test, number_of_sleepers, ARRAY_SIZE(kpt_sleepers));
	s->host = host;
	s->inside = inside;
	init_completion(&s->arrived);
	s->task = kthread_create(be_sleeper, s, "kprobes_test");
	KUNIT_ASSERT_FALSE(test, IS_ERR(s->task));
	get_task_struct(s->task);
	number_of_sleepers++;
	wake_up_process(s->task);
	KUNIT_ASSERT_TRUE(test, wait_for_completion_timeout(&s->arrived, PATIENCE));
	return s->task;
}

void kpt_put_to_sleep(struct kunit *test, const struct host *host, unsigned int count)
{
	while (count--)
		kpt_send_task(test, host, kpt_sleep_inside);
}

/* Let the visits of all sleepers end. Returns how many did not end well. */
unsigned int kpt_wake_sleepers(void)
{
	unsigned int bad = 0;

	complete_all(&morning);
	while (number_of_sleepers)
		bad += kthread_stop_put(kpt_sleepers[--number_of_sleepers].task) != VISITED;
	reinit_completion(&morning);
	return bad;
}

int kpt_start_return_suite(struct kunit_suite *suite)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(kpt_hosts); i++)
		memcpy(unprobed_hosts[i], host_text(i), TEXT_BYTES);
	return kpt_start_suite(suite);
}

int kpt_start_return_test(struct kunit *test)
{
	memset(return_probes, 0, sizeof(return_probes));
	return kpt_start_test(test);
}

void kpt_end_return_test(struct kunit *test)
{
	struct kretprobe *all[ARRAY_SIZE(return_probes)];
	unsigned int i;

	kpt_wake_sleepers();
	for (i = 0; i < ARRAY_SIZE(return_probes); i++)
		all[i] = &return_probes[i].rp;
	unregister_kretprobes(all, ARRAY_SIZE(all));
	kpt_end_test(test);
	for (i = 0; i < ARRAY_SIZE(kpt_hosts); i++)
		KUNIT_EXPECT_MEMEQ(test, host_text(i), unprobed_hosts[i], TEXT_BYTES);
}

int kpt_descend(void *descent)
{
	struct descent *d = descent;

	if (!d->depth)
		return VISITED;
	d->depth--;
	return kprobes_test_visit(d->host, kpt_descend, d);
}

void kpt_set_stale_return_results(struct kretprobe *rp)
{
	kpt_set_stale_results(&rp->kp);
	rp->nmissed = 1815;
}

void kpt_expect_return_untouched(struct kunit *test, const struct kretprobe *rp,
				 const struct kretprobe *given, int line)
{
	kpt_expect_untouched(test, &rp->kp, &given->kp, line);
	KUNIT_EXPECT_MEMEQ_MSG(test, (const void *)rp + sizeof(rp->kp),
			       (const void *)given + sizeof(rp->kp),
			       sizeof(*rp) - sizeof(rp->kp), "at line %d", line);
	KUNIT_EXPECT_TRUE_MSG(test, rp->handler == given->handler, "at line %d", line);
	KUNIT_EXPECT_TRUE_MSG(test, rp->entry_handler == given->entry_handler, "at line %d",
			      line);
	KUNIT_EXPECT_EQ_MSG(test, rp->maxactive, given->maxactive, "at line %d", line);
	KUNIT_EXPECT_EQ_MSG(test, rp->data_size, given->data_size, "at line %d", line);
}

void kpt_expect_return_refused(struct kunit *test, struct kretprobe *rp, int err, int line)
{
	struct kretprobe given;

	kpt_set_stale_return_results(rp);
	memcpy(&given, rp, sizeof(given));
	KUNIT_EXPECT_EQ_MSG(test, register_kretprobe(rp), err, "at line %d", line);
	kpt_expect_return_untouched(test, rp, &given, line);
}
