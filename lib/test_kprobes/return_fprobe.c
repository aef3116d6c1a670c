// SPDX-License-Identifier: GPL-2.0
/* Return probes and fprobes, which both replace return addresses, share a function. */
#include <linux/fprobe.h>
#include <linux/ftrace.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "hosts.h"
#include "return_probes.h"
#include "traces.h"

static struct trace fprobe_trace;

static int fprobe_entered(struct fprobe *fp, unsigned long ip, unsigned long caller,
			  void *fregs, void *data)
{
	if (current == kpt_tester)
		kpt_note('f');
	return 0;
}

static void fprobe_returned(struct fprobe *fp, unsigned long ip, unsigned long caller,
			    void *fregs, void *data)
{
	struct ftrace_regs *regs = fregs;

	if (current != kpt_tester)
		return;
	kpt_note(ftrace_regs_get_return_value(regs) == VISITED ? 'F' : '!');
	kpt_trace_stack(&fprobe_trace);
}

/*
 * Not static data: after an ftrace_ops in the data of the kernel has been unregistered,
 * ftrace still keeps its trampoline and a link to it.
 */
static struct fprobe *test_fprobe;

static void remove_fprobe(void *unused)
{
	unregister_fprobe(test_fprobe);
	kfree(test_fprobe);
}

static void add_fprobe(struct kunit *test)
{
	int err;

	/* The types of their handlers' registers are not those of all kernels. */
	if (IS_ENABLED(CONFIG_CFI))
		kunit_skip(test, "needs handlers of the right type");
	test_fprobe = kzalloc(sizeof(*test_fprobe), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, test_fprobe);
	test_fprobe->entry_handler = (void *)fprobe_entered;
	test_fprobe->exit_handler = (void *)fprobe_returned;
	err = register_fprobe(test_fprobe, TRACED_HOST->symbol, NULL);
	if (err)
		kfree(test_fprobe);
	KUNIT_ASSERT_EQ(test, err, 0);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, remove_fprobe, NULL), 0);
}

/* The journal depends on the order in which ftrace calls the fprobe and the kprobes. */
static void expect_fprobed(struct kunit *test, const char *events, const char *or)
{
	KUNIT_EXPECT_TRUE_MSG(test, !strcmp(kpt_journal, events) || !strcmp(kpt_journal, or),
			      "\"%s\" instead of \"%s\" or \"%s\"", kpt_journal, events, or);
	kpt_clear_journal();
	if (!CAN_TRACE)
		return;
	kpt_expect_same_trace(test, &kpt_probed_trace, "inside");
	kpt_expect_callers(test, &fprobe_trace, "in fprobe");
}

static void unregister_both(void)
{
	struct kretprobe *both[] = { &kpt_test_kretprobe('r')->rp, &kpt_test_kretprobe('s')->rp };

	unregister_kretprobes(both, 2);
	both[0]->kp.addr = NULL;
	both[1]->kp.addr = NULL;
}

/* In either order, each finds the return address that the other one has left. */
static void fprobe_shares_a_function(struct kunit *test)
{
	kprobes_test_walk(TRACED_HOST, kpt_trace_inside, &kpt_unprobed_trace);
	for (int fprobe_first = 0; fprobe_first < 2; fprobe_first++) {
		if (fprobe_first)
			add_fprobe(test);
		ASSERT_RETURN_PROBED(test, kpt_tracing_probe('r', TRACED_HOST->symbol));
		ASSERT_RETURN_PROBED(test, kpt_tracing_probe('s', TRACED_HOST->symbol));
		if (!fprobe_first)
			add_fprobe(test);

		KUNIT_EXPECT_EQ(test, kprobes_test_walk(TRACED_HOST, kpt_trace_inside,
							&kpt_probed_trace), VISITED);
		expect_fprobed(test, "fsrRSF", "srfFRS");
		kpt_expect_real_callers(test, 'r');
		kpt_expect_real_callers(test, 's');
		unregister_both();
		KUNIT_EXPECT_EQ(test, kprobes_test_walk(TRACED_HOST, kpt_trace_inside,
							&kpt_probed_trace), VISITED);
		expect_fprobed(test, "fF", "fF");
		kunit_release_action(test, remove_fprobe, NULL);
	}
}

/* The probed function and the one that runs in its place have a return probe each. */
static void fprobe_is_between_return_probes(struct kunit *test)
{
	kprobes_test_walk(HOST, kpt_trace_inside, &kpt_unprobed_trace);
	kpt_test_probe('a')->act = kpt_act_go_to_host;
	for (int fprobe_first = 0; fprobe_first < 2; fprobe_first++) {
		kpt_test_probe('a')->kp.addr = NULL;
		if (fprobe_first)
			add_fprobe(test);
		ASSERT_REGISTERED(test, kpt_probe('a', TRACED_HOST->symbol));
		ASSERT_RETURN_PROBED(test, kpt_tracing_probe('r', TRACED_HOST->symbol));
		ASSERT_RETURN_PROBED(test, kpt_tracing_probe('s', HOST->symbol));
		if (!fprobe_first)
			add_fprobe(test);

		KUNIT_EXPECT_EQ(test, kprobes_test_walk(TRACED_HOST, kpt_trace_inside,
							&kpt_probed_trace), VISITED);
		expect_fprobed(test, "frasSRF", "rafsSFR");
		kpt_expect_real_callers(test, 'r');
		kpt_expect_real_callers(test, 's');
		unregister_both();
		unregister_kprobe(&kpt_test_probe('a')->kp);
		kunit_release_action(test, remove_fprobe, NULL);
	}
}

static struct kunit_case kretprobes_fprobe_cases[] = {
	KUNIT_CASE(fprobe_shares_a_function),
	KUNIT_CASE(fprobe_is_between_return_probes),
	{ }
};

static struct kunit_suite kretprobes_fprobe_suite = {
	.name = "kretprobes-fprobe",
	.suite_init = kpt_start_return_suite,
	.init = kpt_start_return_test,
	.exit = kpt_end_return_test,
	.test_cases = kretprobes_fprobe_cases,
};

kunit_test_suite(kretprobes_fprobe_suite);
