// SPDX-License-Identifier: GPL-2.0
/* Stack traces show real callers, also beside fprobes that replace return addresses. */
#include <linux/delay.h>
#include <linux/fprobe.h>
#include <linux/kallsyms.h>
#include <linux/sched.h>
#include <linux/stacktrace.h>

#include "interrupt.h"
#include "return_nesting.h"
#include "return_probes.h"

/* By frame pointers, x86 misses the caller at a function's entry. */
#if defined(CONFIG_STACKTRACE) && \
	defined(CONFIG_ARCH_CORRECT_STACKTRACE_ON_KRETPROBE) && \
	!(defined(CONFIG_X86) && !defined(CONFIG_UNWINDER_ORC))
#define CAN_TRACE	1

static void save(struct trace *trace)
{
	trace->length = stack_trace_save(trace->entries, TRACE_LENGTH, 0);
}
#else
#define CAN_TRACE	0

static void save(struct trace *trace)
{
}
#endif

static void need_traces(struct kunit *test)
{
	if (!CAN_TRACE)
		kunit_skip(test, "stack traces do not show all callers");
}

static int save_inside(void *trace)
{
	save(trace);
	return VISITED;
}

static int save_at_entry(struct test_kretprobe *p, struct kretprobe_instance *ri,
			 struct pt_regs *regs)
{
	save(&p->entry_trace);
	return 0;
}

static void save_at_return(struct test_kretprobe *p, struct kretprobe_instance *ri,
			   struct pt_regs *regs)
{
	save(&p->return_trace);
}

/* So that all traces come the same way, regardless of who makes them. */
static noinline __noclone int kprobes_test_walk(const struct host *host,
						int (*inside)(void *data), void *data)
{
	int result = kprobes_test_visit(host, inside, data);

	OPTIMIZER_HIDE_VAR(result);
	return result;
}

/* Where the caller of the host is in a trace. */
static unsigned int seek_visitor(struct kunit *test, const struct trace *trace, const char *what)
{
	unsigned int i = 0;

	while (i < trace->length && !kpt_is_in(trace->entries[i], "kprobes_test_visit"))
		i++;
	if (i < trace->length)
		return i;
	for (i = 0; i < trace->length; i++)
		kunit_info(test, "%pS\n", (void *)trace->entries[i]);
	KUNIT_FAIL_AND_ABORT(test, "%s: nothing of the caller", what);
	return 0;
}

static bool in_same_function(unsigned long a, unsigned long b)
{
	char name[KSYM_SYMBOL_LEN];

	sprint_symbol_no_offset(name, b);
	return kpt_is_in(a, strim(strreplace(name, '[', '\0')));
}

/* Does a trace show the same callers of the host as the one of an unprobed host? */
static void expect_callers(struct kunit *test, const struct trace *trace,
			   const struct trace *unprobed, const char *what)
{
	unsigned int i = seek_visitor(test, trace, what);
	unsigned int j = seek_visitor(test, unprobed, "unprobed");

	KUNIT_EXPECT_EQ_MSG(test, trace->entries[i], unprobed->entries[j], "%s", what);
	KUNIT_EXPECT_EQ_MSG(test, trace->length - i, unprobed->length - j, "%s", what);
	while (++i < trace->length && ++j < unprobed->length)
		KUNIT_EXPECT_TRUE_MSG(test, in_same_function(trace->entries[i],
							     unprobed->entries[j]),
				      "%s: %pS instead of %pS", what,
				      (void *)trace->entries[i], (void *)unprobed->entries[j]);
}

/* And nothing else above them? */
static void expect_same_trace(struct kunit *test, const struct trace *trace,
			      const struct trace *unprobed, const char *what)
{
	unsigned int same = seek_visitor(test, unprobed, "unprobed");

	expect_callers(test, trace, unprobed, what);
	KUNIT_ASSERT_EQ_MSG(test, trace->length, unprobed->length, "%s", what);
	for (unsigned int i = 0; i < same; i++)
		KUNIT_EXPECT_TRUE_MSG(test, in_same_function(trace->entries[i],
							     unprobed->entries[i]),
				      "%s: %pS instead of %pS", what,
				      (void *)trace->entries[i], (void *)unprobed->entries[i]);
}

static struct trace unprobed_trace, trace_inside;

static struct kretprobe *tracing_probe(char name, const char *symbol)
{
	kpt_test_kretprobe(name)->on_entry = save_at_entry;
	kpt_test_kretprobe(name)->on_return = save_at_return;
	return kpt_return_probe(name, symbol);
}

static void expect_real_callers(struct kunit *test, char name)
{
	if (!CAN_TRACE)
		return;
	/* Elsewhere the caller may still be in a register, which is not looked at. */
	if (IS_ENABLED(CONFIG_X86_64))
		expect_callers(test, &kpt_test_kretprobe(name)->entry_trace, &unprobed_trace,
			       "at the entry");
	expect_callers(test, &kpt_test_kretprobe(name)->return_trace, &unprobed_trace,
		       "at the return");
}

static void real_callers_are_in_traces(struct kunit *test)
{
	const struct host *host = test->param_value;

	need_traces(test);
	kprobes_test_walk(host, save_inside, &unprobed_trace);
	for (char name = 'r'; name <= 't'; name++)
		ASSERT_RETURN_PROBED(test, tracing_probe(name, host->symbol));
	KUNIT_EXPECT_EQ(test, kprobes_test_walk(host, save_inside, &trace_inside), VISITED);
	expect_same_trace(test, &trace_inside, &unprobed_trace, "inside");
	for (char name = 'r'; name <= 't'; name++)
		expect_real_callers(test, name);
}

/* Another function returns for the probed one, as after a jump at its end. */
static int go_to_host(struct test_probe *p, struct pt_regs *regs)
{
	instruction_pointer_set(regs, (unsigned long)kprobes_test_host);
	return 1;
}

static void real_callers_are_in_traces_on_a_changed_path(struct kunit *test)
{
	need_traces(test);
	kprobes_test_walk(HOST, save_inside, &unprobed_trace);
	kpt_test_probe('a')->act = go_to_host;
	ASSERT_REGISTERED(test, kpt_probe('a', TRACED_HOST->symbol));
	ASSERT_RETURN_PROBED(test, tracing_probe('r', TRACED_HOST->symbol));
	ASSERT_RETURN_PROBED(test, tracing_probe('s', HOST->symbol));
	KUNIT_EXPECT_EQ(test, kprobes_test_walk(TRACED_HOST, save_inside, &trace_inside), VISITED);
	KUNIT_EXPECT_STREQ(test, kpt_journal, "rasSR");
	expect_same_trace(test, &trace_inside, &unprobed_trace, "inside");
	expect_real_callers(test, 'r');
	expect_real_callers(test, 's');
}

static struct trace trace_in_interrupt;

static enum hrtimer_restart interrupt_and_trace(struct hrtimer *timer)
{
	save(&trace_in_interrupt);
	return kpt_interrupt(timer);
}

static void real_callers_are_in_traces_of_interrupts(struct kunit *test)
{
	const struct host *host = test->param_value;

	need_traces(test);
	kpt_prepare_interrupt(interrupt_and_trace);
	kprobes_test_walk(host, save_inside, &unprobed_trace);
	ASSERT_RETURN_PROBED(test, kpt_return_probe('r', host->symbol));
	ASSERT_RETURN_PROBED(test, kpt_return_probe('s', host->symbol));
	kpt_test_kretprobe('r')->on_return = kpt_interrupt_return_handler;
	KUNIT_EXPECT_EQ(test, kprobes_test_walk(host, kpt_be_interrupted_inside, NULL), VISITED);
	kpt_expect_interrupt(test);
	expect_callers(test, &trace_in_interrupt, &unprobed_trace, "in an interrupt of a handler");
	kpt_test_kretprobe('r')->on_return = NULL;
	KUNIT_EXPECT_EQ(test, kprobes_test_walk(host, kpt_be_interrupted_inside, NULL), VISITED);
	kpt_expect_interrupt(test);
	expect_callers(test, &trace_in_interrupt, &unprobed_trace, "in an interrupt");
}

#if CAN_TRACE
/* On one CPU only the task that asks runs there. */
#ifdef CONFIG_SMP
#define RUNS(task)	READ_ONCE((task)->on_cpu)
#else
#define RUNS(task)	((task) == current)
#endif

static bool is_asleep(struct task_struct *task)
{
	return READ_ONCE(task->__state) == TASK_UNINTERRUPTIBLE && !RUNS(task);
}

static void save_sleeper(struct kunit *test, const struct host *host, struct trace *trace)
{
	struct task_struct *task = kpt_send_task(test, host, kpt_sleep_inside);
	unsigned long end = jiffies + PATIENCE;

	while (!is_asleep(task) && time_before(jiffies, end))
		usleep_range(100, 200);
	KUNIT_ASSERT_TRUE(test, is_asleep(task));
	trace->length = stack_trace_save_tsk(task, trace->entries, TRACE_LENGTH, 0);
}

#if defined(CONFIG_HAVE_RELIABLE_STACKTRACE) && !defined(MODULE)
static void expect_reliable_trace(struct kunit *test, struct task_struct *task)
{
	int length = stack_trace_save_tsk_reliable(task, trace_inside.entries, TRACE_LENGTH);

	KUNIT_ASSERT_GT(test, length, 0);
	trace_inside.length = length;
	expect_callers(test, &trace_inside, &unprobed_trace, "reliably");
}
#else
static void expect_reliable_trace(struct kunit *test, struct task_struct *task)
{
}
#endif

static void real_callers_are_in_traces_of_other_tasks(struct kunit *test)
{
	const struct host *host = test->param_value;

	save_sleeper(test, host, &unprobed_trace);
	ASSERT_RETURN_PROBED(test, kpt_return_probe('r', host->symbol));
	ASSERT_RETURN_PROBED(test, kpt_return_probe('s', host->symbol));
	save_sleeper(test, host, &trace_inside);
	expect_same_trace(test, &trace_inside, &unprobed_trace, "sleeping");
	expect_reliable_trace(test, kpt_sleepers[1].task);
}
#else
static void real_callers_are_in_traces_of_other_tasks(struct kunit *test)
{
	need_traces(test);
}
#endif

#ifdef CONFIG_FPROBE
static struct trace fprobe_trace;

static int fprobe_entered(struct fprobe *fp, unsigned long ip, unsigned long caller,
			  struct pt_regs *regs, void *data)
{
	if (current == kpt_tester)
		kpt_note('f');
	return 0;
}

static void fprobe_returned(struct fprobe *fp, unsigned long ip, unsigned long caller,
			    struct pt_regs *regs, void *data)
{
	if (current != kpt_tester)
		return;
	kpt_note(regs_return_value(regs) == VISITED ? 'F' : '!');
	save(&fprobe_trace);
}

/*
 * Not static: of an ftrace_ops in the kernel's own data ftrace keeps the trampoline,
 * and a link in a list, also when it is no longer registered.
 */
static struct fprobe *test_fprobe;

static void remove_fprobe(void *unused)
{
	unregister_fprobe(test_fprobe);
	kfree(test_fprobe);
}

static void add_fprobe(struct kunit *test, const struct host *host)
{
	int err;

	test_fprobe = kzalloc(sizeof(*test_fprobe), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, test_fprobe);
	test_fprobe->entry_handler = fprobe_entered;
	test_fprobe->exit_handler = fprobe_returned;
	err = register_fprobe(test_fprobe, host->symbol, NULL);
	if (err)
		kfree(test_fprobe);
	KUNIT_ASSERT_EQ(test, err, 0);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, remove_fprobe, NULL), 0);
}

/* Which of two is seen depends on the order in which ftrace calls them. */
static void expect_fprobed(struct kunit *test, const char *events, const char *or)
{
	KUNIT_EXPECT_TRUE_MSG(test, !strcmp(kpt_journal, events) || !strcmp(kpt_journal, or),
			      "\"%s\" instead of \"%s\" or \"%s\"", kpt_journal, events, or);
	kpt_clear_journal();
	if (!CAN_TRACE)
		return;
	expect_same_trace(test, &trace_inside, &unprobed_trace, "inside");
	expect_callers(test, &fprobe_trace, &unprobed_trace, "in fprobe");
}

/* In either order, each finds what the other one has left in the stack. */
static void fprobe_shares_a_function(struct kunit *test)
{
	kprobes_test_walk(TRACED_HOST, save_inside, &unprobed_trace);
	for (int fprobe_first = 0; fprobe_first < 2; fprobe_first++) {
		if (fprobe_first)
			add_fprobe(test, TRACED_HOST);
		for (char name = 'r'; name <= 's'; name++) {
			kpt_test_kretprobe(name)->rp.kp.addr = NULL;
			ASSERT_RETURN_PROBED(test, tracing_probe(name, TRACED_HOST->symbol));
		}
		if (!fprobe_first)
			add_fprobe(test, TRACED_HOST);

		KUNIT_EXPECT_EQ(test, kprobes_test_walk(TRACED_HOST, save_inside, &trace_inside),
				VISITED);
		expect_fprobed(test, "fsrRSF", "srfFRS");
		for (char name = 'r'; name <= 's'; name++)
			expect_real_callers(test, name);

		unregister_kretprobe(&kpt_test_kretprobe('r')->rp);
		unregister_kretprobe(&kpt_test_kretprobe('s')->rp);
		KUNIT_EXPECT_EQ(test, kprobes_test_walk(TRACED_HOST, save_inside, &trace_inside),
				VISITED);
		expect_fprobed(test, "fF", "fF");
		kunit_release_action(test, remove_fprobe, NULL);
	}
}

/* And with one that is between two return probes. */
static void fprobe_is_between_return_probes(struct kunit *test)
{
	kprobes_test_walk(HOST, save_inside, &unprobed_trace);
	kpt_test_probe('a')->act = go_to_host;
	for (int fprobe_first = 0; fprobe_first < 2; fprobe_first++) {
		kpt_test_kretprobe('r')->rp.kp.addr = NULL;
		kpt_test_kretprobe('s')->rp.kp.addr = NULL;
		kpt_test_probe('a')->kp.addr = NULL;
		if (fprobe_first)
			add_fprobe(test, TRACED_HOST);
		ASSERT_REGISTERED(test, kpt_probe('a', TRACED_HOST->symbol));
		ASSERT_RETURN_PROBED(test, tracing_probe('r', TRACED_HOST->symbol));
		ASSERT_RETURN_PROBED(test, tracing_probe('s', HOST->symbol));
		if (!fprobe_first)
			add_fprobe(test, TRACED_HOST);

		KUNIT_EXPECT_EQ(test, kprobes_test_walk(TRACED_HOST, save_inside, &trace_inside),
				VISITED);
		expect_fprobed(test, "frasSRF", "rafsSFR");
		for (char name = 'r'; name <= 's'; name++)
			expect_real_callers(test, name);

		unregister_kretprobe(&kpt_test_kretprobe('r')->rp);
		unregister_kretprobe(&kpt_test_kretprobe('s')->rp);
		unregister_kprobe(&kpt_test_probe('a')->kp);
		kunit_release_action(test, remove_fprobe, NULL);
	}
}
#else
static void fprobe_shares_a_function(struct kunit *test)
{
	kunit_skip(test, "no fprobe");
}

static void fprobe_is_between_return_probes(struct kunit *test)
{
	kunit_skip(test, "no fprobe");
}
#endif

static struct kunit_case kretprobes_traces_cases[] = {
	KUNIT_CASE_PARAM(real_callers_are_in_traces, kpt_host_gen_params),
	KUNIT_CASE(real_callers_are_in_traces_on_a_changed_path),
	KUNIT_CASE_PARAM(real_callers_are_in_traces_of_interrupts, kpt_host_gen_params),
	KUNIT_CASE_PARAM(real_callers_are_in_traces_of_other_tasks, kpt_host_gen_params),
	KUNIT_CASE(fprobe_shares_a_function),
	KUNIT_CASE(fprobe_is_between_return_probes),
	{ }
};

static struct kunit_suite kretprobes_traces_suite = {
	.name = "kretprobes-traces",
	.suite_init = kpt_start_return_suite,
	.init = kpt_start_return_test,
	.exit = kpt_end_return_test,
	.test_cases = kretprobes_traces_cases,
};

kunit_test_suite(kretprobes_traces_suite);
