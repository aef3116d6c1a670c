// SPDX-License-Identifier: GPL-2.0
/* Hits while a handler runs: of the handler itself, or of an interrupt. */
#include <linux/sched.h>

#include "actions.h"
#include "interrupt.h"
#include "probes.h"

/* Probes that a handler hits are not called, but count the hit as missed. */
static void handler_calls_a_probed_function(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = kpt_post_probe('a', place->symbol);
	struct kprobe *b = kpt_post_probe('b', TARGET->symbol);
	struct kprobe *c = kpt_probe('c', TARGET->symbol);
	struct kprobe *d = kpt_probe('d', TARGET->symbol);
	bool same = place->call == TARGET->call;

	kpt_test_probe('a')->act = kpt_act_call_target;
	kpt_test_probe('a')->data = 3;
	b->flags = KPROBE_FLAG_DISABLED;
	d->flags = KPROBE_FLAG_REENTRANT;
	ASSERT_REGISTERED(test, a);
	ASSERT_REGISTERED(test, b);
	ASSERT_REGISTERED(test, c);
	ASSERT_REGISTERED(test, d);

	EXPECT_CALL(test, place, same ? "dcaA" : "aA");
	KUNIT_EXPECT_EQ(test, a->nmissed, same ? 3 : 0);
	KUNIT_EXPECT_EQ(test, b->nmissed, 0);
	KUNIT_EXPECT_EQ(test, c->nmissed, 3);
	KUNIT_EXPECT_EQ(test, d->nmissed, 3);

	kpt_test_probe('a')->act = NULL;
	EXPECT_CALL(test, TARGET, same ? "dcaA" : "dc");
	KUNIT_EXPECT_EQ(test, c->nmissed, 3);
}

#ifdef CONFIG_X86_LOCAL_APIC
static void call_other_target(void)
{
	if (kpt_call(OTHER_TARGET) != OTHER_TARGET->result)
		kpt_note('!');
}

/* The hit has the context level of the handler, so that it is skipped. */
static void handler_in_nmi_calls_a_probed_function(struct kunit *test)
{
	struct kprobe *a = kpt_post_probe('a', OTHER_TARGET->symbol);
	struct kprobe *b = kpt_probe('b', TARGET->symbol);

	if (!kpt_can_send_nmi())
		kunit_skip(test, "not on this machine");
	kpt_test_probe('a')->act = kpt_act_call_target;
	kpt_test_probe('a')->data = 1;
	b->flags = KPROBE_FLAG_REENTRANT;
	ASSERT_REGISTERED(test, a);
	ASSERT_REGISTERED(test, b);
	kpt_clear_journal();
	kpt_call_in_nmi(call_other_target);
	KUNIT_EXPECT_STREQ(test, kpt_journal, "aA");
	KUNIT_EXPECT_EQ(test, b->nmissed, 1);
}
#endif

static int call_traced(struct test_probe *p, struct pt_regs *regs)
{
	if (kpt_call(TRACED) != TRACED->result)
		kpt_note('!');
	return 0;
}

static void handler_calls_a_traced_function(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = kpt_probe('a', place->symbol);
	struct kprobe *b = kpt_post_probe('b', TRACED->symbol);
	bool same = place->call == TRACED->call;

	kpt_test_probe('a')->act = call_traced;
	ASSERT_REGISTERED(test, a);
	ASSERT_REGISTERED(test, b);

	EXPECT_CALL(test, place, same ? "baB" : "a");
	KUNIT_EXPECT_EQ(test, a->nmissed, same ? 1 : 0);
	KUNIT_EXPECT_EQ(test, b->nmissed, 1);
}

static void call_target_after(struct kprobe *kp, struct pt_regs *regs, unsigned long flags)
{
	kpt_post_handler(kp, regs, flags);
	if (current == kpt_tester && kpt_call(TARGET) != TARGET->result)
		kpt_note('!');
}

static void post_handler_calls_a_probed_function(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = kpt_post_probe('a', place->symbol);
	struct kprobe *b = kpt_post_probe('b', TARGET->symbol);
	bool same = place->call == TARGET->call;

	a->post_handler = call_target_after;
	ASSERT_REGISTERED(test, a);
	ASSERT_REGISTERED(test, b);
	EXPECT_CALL(test, place, same ? "baBA" : "aA");
	KUNIT_EXPECT_EQ(test, b->nmissed, 1);
}

/*
 * Of the probes that an interrupt of a handler hits, those that have opted in are called,
 * the others miss the hit.
 */
static void handler_is_interrupted(struct kunit *test)
{
	struct kprobe *a = kpt_post_probe('a', TRACED->symbol);

	kpt_register_for_interrupt(test);
	kpt_test_probe('a')->act = kpt_act_wait_for_interrupt;
	ASSERT_REGISTERED(test, a);
	kpt_expect_interrupted_call(test, TRACED, HITS_NEST ? "acCA" : "aA");
	KUNIT_EXPECT_EQ(test, a->nmissed, 0);
	KUNIT_EXPECT_EQ(test, kpt_test_probe('b')->kp.nmissed, 1);
	KUNIT_EXPECT_EQ(test, kpt_test_probe('c')->kp.nmissed, HITS_NEST ? 0 : 1);
	KUNIT_EXPECT_EQ(test, kpt_test_probe('d')->kp.nmissed, 0);

	/* The interrupt has not changed the state of the outer hit. */
	kpt_test_probe('a')->act = NULL;
	EXPECT_CALL(test, TRACED, "aA");
	EXPECT_CALL(test, TARGET, "cbCB");
}

static struct kunit_case kprobes_nesting_cases[] = {
	KUNIT_CASE_PARAM(handler_calls_a_probed_function, kpt_place_gen_params),
#ifdef CONFIG_X86_LOCAL_APIC
	KUNIT_CASE(handler_in_nmi_calls_a_probed_function),
#endif
	KUNIT_CASE_PARAM(handler_calls_a_traced_function, kpt_place_gen_params),
	KUNIT_CASE_PARAM(post_handler_calls_a_probed_function, kpt_place_gen_params),
	KUNIT_CASE(handler_is_interrupted),
	{ }
};

static struct kunit_suite kprobes_nesting_suite = {
	.name = "kprobes-nesting",
	.suite_init = kpt_start_suite,
	.init = kpt_start_test,
	.exit = kpt_end_test,
	.test_cases = kprobes_nesting_cases,
};

kunit_test_suite(kprobes_nesting_suite);
