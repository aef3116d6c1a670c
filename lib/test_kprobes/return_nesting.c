// SPDX-License-Identifier: GPL-2.0
/* Calls and returns while a handler runs: of the handler itself, or of an interrupt. */
#include <linux/irqflags.h>
#include <linux/preempt.h>

#include "actions.h"
#include "hosts.h"
#include "interrupt.h"
#include "return_nesting.h"
#include "return_probes.h"

static void call_in_handler(struct test_kretprobe *p, struct kretprobe_instance *ri,
			    struct pt_regs *regs)
{
	if (kpt_call(TARGET) != TARGET->result)
		kpt_note('!');
}

/* A call that a handler makes is missed at the function's entry, and counted there. */
static void return_handler_calls_a_probed_function(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kretprobe *r = kpt_return_probe('r', place->symbol);
	struct kretprobe *s = kpt_return_probe('s', TARGET->symbol);
	struct kprobe *a = kpt_post_probe('a', TARGET->symbol);
	bool same = place->call == TARGET->call;

	s->kp.flags = KPROBE_FLAG_REENTRANT;
	kpt_test_kretprobe('r')->on_return = call_in_handler;
	ASSERT_RETURN_PROBED(test, r);
	ASSERT_RETURN_PROBED(test, s);
	ASSERT_REGISTERED(test, a);
	EXPECT_CALL(test, place, same ? "asrARS" : "rR");
	KUNIT_EXPECT_EQ(test, r->kp.nmissed, same);
	KUNIT_EXPECT_EQ(test, s->kp.nmissed, 1);
	KUNIT_EXPECT_EQ(test, a->nmissed, 1);
	KUNIT_EXPECT_EQ(test, r->nmissed, 0);
	KUNIT_EXPECT_EQ(test, s->nmissed, 0);

	kpt_test_kretprobe('r')->on_return = NULL;
	EXPECT_CALL(test, place, same ? "asrARS" : "rR");
	EXPECT_CALL(test, TARGET, same ? "asrARS" : "asAS");
	KUNIT_EXPECT_EQ(test, s->kp.nmissed, 1);
}

/*
 * Write '-' to the journal for each change that a handler is refused, eight in all: see
 * kpt_try_to_change_probes(). 's' is not registered, 't' is enabled and 'u' disabled.
 */
static void try_to_change_return_probes(void)
{
	struct kretprobe *s = &kpt_test_kretprobe('s')->rp;
	int errors[] = {
		register_kretprobe(s), register_kretprobes(&s, 1),
		disable_kretprobe(&kpt_test_kretprobe('t')->rp),
		enable_kretprobe(&kpt_test_kretprobe('u')->rp),
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(errors); i++)
		kpt_note(errors[i] == -EDEADLK ? '-' : '!');
	kpt_try_to_change_probes();
}

static int change_probes_at_entry(struct test_kretprobe *p, struct kretprobe_instance *ri,
				  struct pt_regs *regs)
{
	try_to_change_return_probes();
	return 0;
}

static void change_probes_at_return(struct test_kretprobe *p, struct kretprobe_instance *ri,
				    struct pt_regs *regs)
{
	try_to_change_return_probes();
}

static void return_handler_cannot_change_probes(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kretprobe *s = kpt_return_probe('s', OTHER_TARGET->symbol);
	struct kretprobe *t = kpt_return_probe('t', OTHER_TARGET->symbol);
	struct kretprobe *u = kpt_return_probe('u', OTHER_TARGET->symbol);
	struct kprobe *d = kpt_probe('d', OTHER_TARGET->symbol);

	kpt_test_kretprobe('r')->on_entry = change_probes_at_entry;
	kpt_test_kretprobe('r')->on_return = change_probes_at_return;
	u->kp.flags = KPROBE_FLAG_DISABLED;
	d->flags = KPROBE_FLAG_DISABLED;
	ASSERT_RETURN_PROBED(test, kpt_return_probe('r', place->symbol));
	ASSERT_RETURN_PROBED(test, t);
	ASSERT_RETURN_PROBED(test, u);
	ASSERT_REGISTERED(test, kpt_probe('c', OTHER_TARGET->symbol));
	ASSERT_REGISTERED(test, d);
	kpt_probe('b', OTHER_TARGET->symbol);

	EXPECT_CALL(test, place, "r--------R--------");
	KUNIT_EXPECT_FALSE(test, kpt_is_linked(&s->kp));
	EXPECT_CALL(test, OTHER_TARGET, "ctT");

	ASSERT_RETURN_PROBED(test, s);
	KUNIT_EXPECT_EQ(test, disable_kretprobe(t), 0);
	KUNIT_EXPECT_EQ(test, enable_kretprobe(u), 0);
	EXPECT_CALL(test, OTHER_TARGET, "scuUS");
}

/* For on_return. Sets @p->data if interrupts are off. */
void kpt_return_wait_for_interrupt(struct test_kretprobe *p, struct kretprobe_instance *ri,
				   struct pt_regs *regs)
{
	p->data = kpt_wait_unless_irqs_off();
}

static int interrupt_entry_handler(struct test_kretprobe *p, struct kretprobe_instance *ri,
				   struct pt_regs *regs)
{
	kpt_return_wait_for_interrupt(p, ri, regs);
	return 0;
}

/*
 * An interrupt of a handler calls a probed function. Return probes that have opted in see
 * the call return, the others miss its entry.
 */
static void return_handler_is_interrupted(struct kunit *test)
{
	const struct host *host = test->param_value;
	struct kretprobe *r = kpt_return_probe('r', host->symbol);
	struct kretprobe *s = kpt_return_probe('s', TARGET->symbol);
	struct kretprobe *t = kpt_return_probe('t', TARGET->symbol);

	if (!HITS_NEST)
		kunit_skip(test, "no handler interrupts another one");
	kpt_prepare_interrupt(kpt_interrupt);
	s->kp.flags = KPROBE_FLAG_REENTRANT;
	ASSERT_RETURN_PROBED(test, r);
	ASSERT_RETURN_PROBED(test, s);
	ASSERT_RETURN_PROBED(test, t);

	kpt_test_kretprobe('r')->on_return = kpt_return_wait_for_interrupt;
	EXPECT_VISIT(test, host, kpt_do_nothing_inside, NULL, "rRsS");
	kpt_expect_interrupt(test);
	KUNIT_EXPECT_EQ(test, kpt_test_kretprobe('s')->value, (unsigned long)TARGET->result);
	KUNIT_EXPECT_EQ(test, t->kp.nmissed, 1);
	KUNIT_EXPECT_EQ(test, s->kp.nmissed + r->kp.nmissed, 0);

	kpt_test_kretprobe('r')->on_return = NULL;
	kpt_test_kretprobe('r')->on_entry = interrupt_entry_handler;
	kpt_clear_journal();
	KUNIT_EXPECT_EQ(test, kprobes_test_visit(host, kpt_do_nothing_inside, NULL), VISITED);
	if (kpt_test_kretprobe('r')->data) {	/* not in a breakpoint's handler */
		KUNIT_EXPECT_STREQ(test, kpt_journal, "rR");
	} else {
		KUNIT_EXPECT_STREQ(test, kpt_journal, "rsSR");
		KUNIT_EXPECT_EQ(test, t->kp.nmissed, 2);
	}

	kpt_test_kretprobe('r')->on_entry = NULL;
	EXPECT_VISIT(test, host, kpt_do_nothing_inside, NULL, "rR");
	EXPECT_CALL(test, TARGET, "tsST");
	KUNIT_EXPECT_EQ(test, s->nmissed + t->nmissed + r->nmissed, 0);
}

int kpt_be_interrupted_inside(void *unused)
{
	preempt_disable();
	kpt_wait_for_interrupt();
	preempt_enable();
	return VISITED;
}

/* While no handler runs, the interrupt's call is like any other. */
static void probed_function_is_interrupted(struct kunit *test)
{
	const struct host *host = test->param_value;

	kpt_prepare_interrupt(kpt_interrupt);
	ASSERT_RETURN_PROBED(test, kpt_return_probe('r', host->symbol));
	ASSERT_RETURN_PROBED(test, kpt_return_probe('s', TARGET->symbol));
	EXPECT_VISIT(test, host, kpt_be_interrupted_inside, NULL, "rsSR");
	kpt_expect_interrupt(test);
	KUNIT_EXPECT_EQ(test, kpt_test_kretprobe('s')->rp.kp.nmissed, 0);
}

static struct kunit_case kretprobes_nesting_cases[] = {
	KUNIT_CASE_PARAM(return_handler_calls_a_probed_function, kpt_place_gen_params),
	KUNIT_CASE_PARAM(return_handler_cannot_change_probes, kpt_place_gen_params),
	KUNIT_CASE_PARAM(return_handler_is_interrupted, kpt_host_gen_params),
	KUNIT_CASE_PARAM(probed_function_is_interrupted, kpt_host_gen_params),
	{ }
};

static struct kunit_suite kretprobes_nesting_suite = {
	.name = "kretprobes-nesting",
	.suite_init = kpt_start_return_suite,
	.init = kpt_start_return_test,
	.exit = kpt_end_return_test,
	.test_cases = kretprobes_nesting_cases,
};

kunit_test_suite(kretprobes_nesting_suite);
