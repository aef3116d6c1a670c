// SPDX-License-Identifier: GPL-2.0
/* Functions that are not exported to modules. */
#include <linux/completion.h>
#include <linux/err.h>
#include <linux/gfp.h>
#include <linux/hrtimer.h>
#include <linux/irqflags.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/llist.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/string.h>

#include "hosts.h"
#include "interrupt.h"
#include "return_nesting.h"
#include "return_probes.h"
#include "sleepers.h"

static int begin_busy_inside(void *unused)
{
	kprobe_busy_begin();
	return VISITED;
}

/* No handler may be called between them, and the return counts as missed. */
static void busy_code_returns(struct kunit *test)
{
	const struct host *host = test->param_value;
	struct kretprobe *r = kpt_return_probe('r', host->symbol);

	ASSERT_RETURN_PROBED(test, r);
	kpt_clear_journal();
	KUNIT_EXPECT_EQ(test, kprobes_test_visit(host, begin_busy_inside, NULL), VISITED);
	kprobe_busy_end();
	KUNIT_EXPECT_STREQ(test, kpt_journal, "r");
	KUNIT_EXPECT_EQ(test, r->nmissed, 1);
	EXPECT_VISIT(test, host, kpt_do_nothing_inside, NULL, "rR");
}

#ifndef CONFIG_KRETPROBE_ON_RETHOOK
/* It is given the instances of a task that exits, and never runs. */
static struct task_struct *dead_task;

static int leave_instances_inside(void *sleeper)
{
	dead_task->kretprobe_instances = current->kretprobe_instances;
	init_llist_head(&current->kretprobe_instances);
	return kpt_exit_inside(sleeper);
}

static enum hrtimer_restart flush_dead_task(struct hrtimer *timer)
{
	kprobe_flush_task(dead_task);
	return kpt_interrupt(timer);
}

static void expect_same_hit_after_interrupt(struct test_kretprobe *p,
					    struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct kprobe *running = kprobe_running();

	kpt_return_wait_for_interrupt(p, ri, regs);
	if (!running || kprobe_running() != running)
		kpt_note('!');
}

/* Tasks are freed in a softirq, which may have interrupted a handler: its hit goes on. */
static void dead_task_is_flushed_in_a_hit(struct kunit *test)
{
	const struct host *host = test->param_value;
	struct kretprobe *r = kpt_return_probe('r', host->symbol);
	struct kretprobe *s = kpt_return_probe('s', host->symbol);

	dead_task = kunit_kzalloc(test, sizeof(*dead_task), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, dead_task);
	r->maxactive = 1;
	ASSERT_RETURN_PROBED(test, r);
	kpt_start_task(test, host, leave_instances_inside);
	EXPECT_SLEEPERS_RETURN(test);
	EXPECT_VISIT(test, host, kpt_do_nothing_inside, NULL, "");
	KUNIT_EXPECT_EQ(test, r->nmissed, 1);

	kpt_prepare_interrupt(flush_dead_task);
	kpt_test_kretprobe('s')->on_return = expect_same_hit_after_interrupt;
	ASSERT_RETURN_PROBED(test, s);
	EXPECT_VISIT(test, host, kpt_do_nothing_inside, NULL, "sS");
	if (kpt_test_kretprobe('s')->data) {
		kprobe_flush_task(dead_task);
		SKIP_REST(test, "return handlers run with interrupts off");
	}
	kpt_expect_interrupt(test);
	unregister_kretprobe(s);
	EXPECT_VISIT(test, host, kpt_do_nothing_inside, NULL, "rR");
}

static DECLARE_COMPLETION(victim_runs);

static int visit_as_victim(void *host)
{
	kpt_tester = current;
	complete(&victim_runs);
	return kprobes_test_visit(host, kpt_do_nothing_inside, NULL);
}

static void die_in_handler(struct test_kretprobe *p, struct kretprobe_instance *ri,
			   struct pt_regs *regs)
{
	p->data = irqs_disabled();
	if (!p->data)
		make_task_dead(SIGKILL);
}

/* Neither its own, nor that of the handler that was to be called next. */
static void killed_handler_loses_no_instance(struct kunit *test)
{
	const struct host *host = test->param_value;
	unsigned long end = jiffies + PATIENCE;
	struct task_struct *task;

	for (char name = 'r'; name <= 's'; name++) {
		kpt_return_probe(name, host->symbol)->maxactive = 1;
		ASSERT_RETURN_PROBED(test, &kpt_test_kretprobe(name)->rp);
	}
	task = kthread_create(visit_as_victim, (void *)host, "kprobes_test");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	kpt_test_kretprobe('r')->on_return = die_in_handler;
	wake_up_process(get_task_struct(task));
	wait_for_completion(&victim_runs);
	kthread_stop_put(task);
	kpt_test_kretprobe('r')->on_return = NULL;
	kpt_tester = current;
	if (kpt_test_kretprobe('r')->data)
		SKIP_REST(test, "return handlers run with interrupts off");

	/* They are recycled after a grace period. */
	do {
		schedule_timeout_uninterruptible(1);
		kpt_clear_journal();
		kprobes_test_visit(host, kpt_do_nothing_inside, NULL);
	} while (strcmp(kpt_journal, "srRS") && time_before(jiffies, end));
	EXPECT_VISIT(test, host, kpt_do_nothing_inside, NULL, "srRS");
}
#endif

static struct kunit_case kretprobes_builtin_cases[] = {
	KUNIT_CASE_PARAM(busy_code_returns, kpt_host_gen_params),
#ifndef CONFIG_KRETPROBE_ON_RETHOOK
	KUNIT_CASE_PARAM(dead_task_is_flushed_in_a_hit, kpt_host_gen_params),
	KUNIT_CASE_PARAM(killed_handler_loses_no_instance, kpt_host_gen_params),
#endif
	{ }
};

static struct kunit_suite kretprobes_builtin_suite = {
	.name = "kretprobes-builtin",
	.suite_init = kpt_start_return_suite,
	.init = kpt_start_return_test,
	.exit = kpt_end_return_test,
	.test_cases = kretprobes_builtin_cases,
};

kunit_test_suite(kretprobes_builtin_suite);
