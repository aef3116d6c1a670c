// SPDX-License-Identifier: GPL-2.0
/* Stack traces show real callers, and not the trampoline. */
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/kprobes.h>
#include <linux/sched.h>
#include <linux/stacktrace.h>

#include <kunit/resource.h>

#include "hosts.h"
#include "interrupt.h"
#include "return_nesting.h"
#include "return_probes.h"
#include "sleepers.h"
#include "traces.h"

static void traces_show_real_callers(struct kunit *test)
{
	const struct host *host = test->param_value;

	kprobes_test_walk(host, kpt_trace_inside, &kpt_unprobed_trace);
	for (char name = 'r'; name <= 't'; name++)
		ASSERT_RETURN_PROBED(test, kpt_tracing_probe(name, host->symbol));
	KUNIT_EXPECT_EQ(test, kprobes_test_walk(host, kpt_trace_inside, &kpt_probed_trace),
			VISITED);
	kpt_expect_same_trace(test, &kpt_probed_trace, "inside");
	for (char name = 'r'; name <= 't'; name++)
		kpt_expect_real_callers(test, name);
}

static void traces_show_real_callers_on_a_changed_path(struct kunit *test)
{
	kprobes_test_walk(HOST, kpt_trace_inside, &kpt_unprobed_trace);
	kpt_test_probe('a')->act = kpt_act_go_to_host;
	ASSERT_REGISTERED(test, kpt_probe('a', TRACED_HOST->symbol));
	ASSERT_RETURN_PROBED(test, kpt_tracing_probe('r', TRACED_HOST->symbol));
	ASSERT_RETURN_PROBED(test, kpt_tracing_probe('s', HOST->symbol));
	KUNIT_EXPECT_EQ(test, kprobes_test_walk(TRACED_HOST, kpt_trace_inside, &kpt_probed_trace),
			VISITED);
	KUNIT_EXPECT_STREQ(test, kpt_journal, "rasSR");
	kpt_expect_same_trace(test, &kpt_probed_trace, "inside");
	kpt_expect_real_callers(test, 'r');
	kpt_expect_real_callers(test, 's');
}

static enum hrtimer_restart interrupt_and_trace(struct hrtimer *timer)
{
	kpt_trace_stack(&kpt_probed_trace);
	return kpt_interrupt(timer);
}

static void traces_of_interrupts_show_real_callers(struct kunit *test)
{
	const struct host *host = test->param_value;

	kpt_prepare_interrupt(interrupt_and_trace);
	kprobes_test_walk(host, kpt_trace_inside, &kpt_unprobed_trace);
	ASSERT_RETURN_PROBED(test, kpt_return_probe('r', host->symbol));
	ASSERT_RETURN_PROBED(test, kpt_return_probe('s', host->symbol));
	KUNIT_EXPECT_EQ(test, kprobes_test_walk(host, kpt_be_interrupted_inside, NULL), VISITED);
	kpt_expect_interrupt(test);
	kpt_expect_callers(test, &kpt_probed_trace, "in an interrupt");

	kpt_test_kretprobe('r')->on_return = kpt_return_wait_for_interrupt;
	kpt_probed_trace.length = 0;
	KUNIT_EXPECT_EQ(test, kprobes_test_walk(host, kpt_do_nothing_inside, NULL), VISITED);
	if (kpt_test_kretprobe('r')->data)
		SKIP_REST(test, "return handlers run with interrupts off");
	kpt_expect_interrupt(test);
	kpt_expect_callers(test, &kpt_probed_trace, "in an interrupt of a handler");
}

#ifdef CONFIG_SMP
static bool is_on_cpu(struct task_struct *task)
{
	return READ_ONCE(task->on_cpu);
}
#else
static bool is_on_cpu(struct task_struct *task)
{
	return task == current;
}
#endif

/* A task that is preempted before it sleeps has this state too, but not this trace. */
static bool is_asleep(struct task_struct *task)
{
	return READ_ONCE(task->__state) == TASK_UNINTERRUPTIBLE && !READ_ONCE(task->on_rq) &&
	       !is_on_cpu(task);
}

/* Start a task that sleeps inside the host, and save its stack trace. */
static struct task_struct *trace_sleeper(struct kunit *test, const struct host *host,
					 struct trace *trace)
{
	struct task_struct *task = kpt_start_task(test, host, kpt_sleep_inside);
	unsigned long end = jiffies + PATIENCE;

	while (!is_asleep(task) && time_before(jiffies, end))
		usleep_range(100, 200);
	KUNIT_ASSERT_TRUE(test, is_asleep(task));
	trace->length = stack_trace_save_tsk(task, trace->entries, TRACE_LENGTH, 0);
	return task;
}

static void expect_reliable_trace(struct kunit *test, struct task_struct *task)
{
	int length;

	/* A module cannot call stack_trace_save_tsk_reliable(), which is not exported. */
	if (!IS_BUILTIN(CONFIG_KPROBES_SANITY_TEST) ||
	    !IS_ENABLED(CONFIG_HAVE_RELIABLE_STACKTRACE))
		return;
	length = stack_trace_save_tsk_reliable(task, kpt_probed_trace.entries, TRACE_LENGTH);
	KUNIT_ASSERT_GT(test, length, 0);
	kpt_probed_trace.length = length;
	kpt_expect_callers(test, &kpt_probed_trace, "reliably");
}

static void traces_of_other_tasks_show_real_callers(struct kunit *test)
{
	const struct host *host = test->param_value;
	struct task_struct *task;

	trace_sleeper(test, host, &kpt_unprobed_trace);
	ASSERT_RETURN_PROBED(test, kpt_return_probe('r', host->symbol));
	ASSERT_RETURN_PROBED(test, kpt_return_probe('s', host->symbol));
	ASSERT_RETURN_PROBED(test, kpt_return_probe('t', "kpt_sleep_inside"));
	task = trace_sleeper(test, host, &kpt_probed_trace);
	kpt_expect_same_trace(test, &kpt_probed_trace, "sleeping");
	expect_reliable_trace(test, task);
}

static struct kretprobe switch_probe;

static void unregister_switch_probe(void *unused)
{
	unregister_kretprobe(&switch_probe);
}

static void return_probe_of_the_switch_is_not_in_traces(struct kunit *test)
{
	struct task_struct *task;

	if (!IS_ENABLED(CONFIG_X86))
		kunit_skip(test, "not in this kernel");
	trace_sleeper(test, HOST, &kpt_unprobed_trace);
	/* Each task that sleeps has an instance. */
	switch_probe = (struct kretprobe){
		.kp.symbol_name = "__switch_to_asm",
		.maxactive = 1024,
	};
	KUNIT_ASSERT_EQ(test, register_kretprobe(&switch_probe), 0);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, unregister_switch_probe, NULL), 0);
	task = trace_sleeper(test, HOST, &kpt_probed_trace);
	kpt_expect_same_trace(test, &kpt_probed_trace, "sleeping");
	expect_reliable_trace(test, task);
	KUNIT_EXPECT_EQ(test, switch_probe.nmissed, 0);
}

static int start_traces_test(struct kunit *test)
{
	if (!CAN_TRACE)
		kunit_skip(test, "stack traces do not show all callers");
	return kpt_start_return_test(test);
}

static struct kunit_case kretprobes_traces_cases[] = {
	KUNIT_CASE_PARAM(traces_show_real_callers, kpt_host_gen_params),
	KUNIT_CASE(traces_show_real_callers_on_a_changed_path),
	KUNIT_CASE_PARAM(traces_of_interrupts_show_real_callers, kpt_host_gen_params),
	KUNIT_CASE_PARAM(traces_of_other_tasks_show_real_callers, kpt_host_gen_params),
	KUNIT_CASE(return_probe_of_the_switch_is_not_in_traces),
	{ }
};

static struct kunit_suite kretprobes_traces_suite = {
	.name = "kretprobes-traces",
	.suite_init = kpt_start_return_suite,
	.init = start_traces_test,
	.exit = kpt_end_return_test,
	.test_cases = kretprobes_traces_cases,
};

kunit_test_suite(kretprobes_traces_suite);
