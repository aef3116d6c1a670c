// SPDX-License-Identifier: GPL-2.0
/*
 * Return probes that are unregistered where the caller must not wait, and freed at once, with
 * calls in flight: no later hit or return touches them.
 */
#include <linux/preempt.h>

#include "drop.h"
#include "hosts.h"
#include "interrupt.h"
#include "return_probes.h"
#include "sleepers.h"

/* What tells that it is a return probe is the call, and no field, which its owner may change. */
static void drop_and_free(void *data)
{
	struct kretprobe *rp = data;

	guard(preempt)();
	rp->kp.pre_handler = NULL;
	kpt_destroy_return_probe(rp);
}

static void call_outlives_its_dropped_return_probe(struct kunit *test)
{
	const struct host *host = test->param_value;
	struct kretprobe *r = kpt_return_probe('r', host->symbol);

	for (unsigned int i = 0; i < 3; i++) {
		struct kretprobe *older, *newer;

		r->kp.addr = NULL;
		older = kpt_create_return_probe(test, host, 0, drop_and_free);
		ASSERT_RETURN_PROBED(test, r);
		newer = kpt_create_return_probe(test, host, 2, drop_and_free);
		kpt_start_sleepers(test, host, 3);
		atomic_set(&kpt_late_returns, 0);
		kunit_release_action(test, drop_and_free, older);
		EXPECT_VISIT(test, host, kpt_do_nothing_inside, NULL, "rR");
		kunit_release_action(test, drop_and_free, newer);
		if (i == 1)
			unregister_kretprobe(r);
		EXPECT_VISIT(test, host, kpt_do_nothing_inside, NULL, i == 1 ? "" : "rR");
		EXPECT_SLEEPERS_RETURN(test);
		EXPECT_VISIT(test, host, kpt_do_nothing_inside, NULL, i == 1 ? "" : "rR");
		KUNIT_EXPECT_EQ(test, atomic_read(&kpt_late_returns), 0);
		unregister_kretprobe(r);
	}
}

/* The pool is queued for the work that has it grow, and is to go. */
static void adaptive_pool_is_dropped_while_short(struct kunit *test)
{
	struct recursion recursion = { .host = HOST, .depth = 4 * kpt_initial_instances() };

	for (unsigned int i = 0; i < 10; i++) {
		kunit_action_t *destroy = i % 2 ? kpt_destroy_return_probe : drop_and_free;
		struct kretprobe *rp = kpt_create_return_probe(test, HOST, 0, destroy);

		EXPECT_VISIT(test, HOST, kpt_recurse_inside, &recursion, "");
		kunit_release_action(test, destroy, rp);
	}
	kpt_wait_for_host_text();
}

static void dropped_return_probe_is_used_again(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kretprobe *r = kpt_return_probe('r', place->symbol);

	for (unsigned int i = 0; i < 3; i++) {
		r->kp.addr = NULL;
		ASSERT_RETURN_PROBED(test, r);
		EXPECT_CALL(test, place, "rR");
		scoped_guard(preempt) {
			unregister_kretprobe(r);
			unregister_kretprobe(r);
		}
		EXPECT_CALL(test, place, "");
		if (i)
			unregister_kretprobe(r);
	}
	KUNIT_EXPECT_FALSE(test, kpt_is_linked(&r->kp));
	kpt_expect_restored_text(test);
}

static int drop_on_entry(struct test_kretprobe *p, struct kretprobe_instance *ri,
			 struct pt_regs *regs)
{
	unregister_kretprobe(&kpt_test_kretprobe(p->data)->rp);
	return 0;
}

static void drop_on_return(struct test_kretprobe *p, struct kretprobe_instance *ri,
			   struct pt_regs *regs)
{
	unregister_kretprobe(&kpt_test_kretprobe(p->data)->rp);
}

/* By itself or by the other one, which is older: its entry handler is called later. */
static void handler_drops_return_probe(struct kunit *test)
{
	static const char * const seen[] = { "srR", "sS", "srRS", "srR" };
	const struct place *place = test->param_value;

	for (unsigned int i = 0; i < 4; i++) {
		bool on_return = i & 2, other = i & 1;
		struct kretprobe *r = kpt_return_probe('r', place->symbol);
		struct kretprobe *s = kpt_return_probe('s', place->symbol);
		char dropper = on_return ? 'r' : 's';

		r->kp.addr = NULL;
		s->kp.addr = NULL;
		ASSERT_RETURN_PROBED(test, r);
		ASSERT_RETURN_PROBED(test, s);
		kpt_test_kretprobe(dropper)->on_entry = on_return ? NULL : drop_on_entry;
		kpt_test_kretprobe(dropper)->on_return = on_return ? drop_on_return : NULL;
		kpt_test_kretprobe(dropper)->data = other == (dropper == 's') ? 'r' : 's';
		if (OWN_RETURN_PROBES)
			EXPECT_CALL(test, place, seen[i]);
		else
			KUNIT_EXPECT_EQ(test, kpt_call(place), place->result);
		kpt_test_kretprobe(dropper)->on_entry = NULL;
		kpt_test_kretprobe(dropper)->on_return = NULL;
		EXPECT_CALL(test, place,
			    kpt_test_kretprobe(dropper)->data == 'r' ? "sS" : "rR");
		unregister_kretprobe(r);
		unregister_kretprobe(s);
	}
}

static int drop_meanwhile(struct test_probe *p, struct pt_regs *regs)
{
	p->act = NULL;
	unregister_kretprobe(&kpt_test_kretprobe('r')->rp);
	return 0;
}

/* It has its pool, and is not linked yet: its owner does not know yet that it is registered. */
static void return_probe_cannot_be_dropped_before_it_is_linked(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kretprobe *r = kpt_return_probe('r', place->symbol);
	struct kprobe *a = kpt_probe('a', "list_sort");

	ASSERT_REGISTERED(test, a);
	kpt_test_probe('a')->act = drop_meanwhile;
	kpt_clear_journal();
	ASSERT_RETURN_PROBED(test, r);
	KUNIT_EXPECT_EQ(test, kpt_journal[0], 'a');
	unregister_kprobe(a);
	EXPECT_CALL(test, place, "rR");
	unregister_kretprobe(r);
	EXPECT_CALL(test, place, "");
}

#ifdef CONFIG_X86_LOCAL_APIC
static void drop_first(void)
{
	unregister_kretprobe(&kpt_test_kretprobe('r')->rp);
}

static void return_probe_is_dropped_in_nmi(struct kunit *test)
{
	const struct host *host = test->param_value;
	struct kretprobe *r = kpt_return_probe('r', host->symbol);

	if (!kpt_can_send_nmi())
		kunit_skip(test, "not on this machine");
	for (unsigned int i = 0; i < 2; i++) {
		r->kp.addr = NULL;
		ASSERT_RETURN_PROBED(test, r);
		kpt_start_sleepers(test, host, 2);
		EXPECT_VISIT(test, host, kpt_do_nothing_inside, NULL, "rR");
		kpt_call_in_nmi(drop_first);
		EXPECT_VISIT(test, host, kpt_do_nothing_inside, NULL, "");
		EXPECT_SLEEPERS_RETURN(test);
		unregister_kretprobe(r);
	}
}
#endif

static struct kunit_case kretprobes_drop_cases[] = {
	KUNIT_CASE_PARAM(call_outlives_its_dropped_return_probe, kpt_host_gen_params),
	KUNIT_CASE(adaptive_pool_is_dropped_while_short),
	KUNIT_CASE_PARAM(dropped_return_probe_is_used_again, kpt_place_gen_params),
	KUNIT_CASE_PARAM(handler_drops_return_probe, kpt_place_gen_params),
	KUNIT_CASE_PARAM(return_probe_cannot_be_dropped_before_it_is_linked, kpt_place_gen_params),
#ifdef CONFIG_X86_LOCAL_APIC
	KUNIT_CASE_PARAM(return_probe_is_dropped_in_nmi, kpt_host_gen_params),
#endif
	{ }
};

static struct kunit_suite kretprobes_drop_suite = {
	.name = "kretprobes-drop",
	.suite_init = kpt_start_return_suite,
	.init = kpt_start_return_test,
	.exit = kpt_end_return_test,
	.test_cases = kretprobes_drop_cases,
};

kunit_test_suite(kretprobes_drop_suite);
