// SPDX-License-Identifier: GPL-2.0
/* Unregistering of probes, after which the caller may free them. */
#include <linux/cpumask.h>
#include <linux/delay.h>

#include "linger.h"
#include "probes.h"

static void unregistered_probe_is_ignored(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = kpt_probe('a', place->symbol);
	struct kprobe *b = kpt_probe('b', place->symbol);
	struct kprobe *c = kpt_probe('c', place->symbol);
	struct kprobe *all[] = { a, b, c, b };

	a->addr = (kprobe_opcode_t *)kprobes_test_other_target;
	unregister_kprobe(a);
	KUNIT_EXPECT_NULL(test, a->addr);
	unregister_kprobe(a);
	KUNIT_EXPECT_NULL(test, a->addr);

	/* Also at the address of another probe, and in a batch with registered probes. */
	ASSERT_REGISTERED(test, b);
	a->addr = b->addr;
	unregister_kprobe(a);
	KUNIT_EXPECT_NULL(test, a->addr);
	KUNIT_EXPECT_NOT_NULL(test, b->addr);
	EXPECT_CALL(test, place, "b");
	ASSERT_REGISTERED(test, c);
	unregister_kprobes(all, ARRAY_SIZE(all));
	EXPECT_CALL(test, place, "");
	KUNIT_EXPECT_FALSE(test, kpt_is_linked(b));
	KUNIT_EXPECT_FALSE(test, kpt_is_linked(c));
	KUNIT_EXPECT_NOT_NULL(test, c->addr);
	KUNIT_EXPECT_NULL(test, b->addr);	/* the second time it was not registered */
}

/*
 * An architecture passes what get_kprobe() returned, the head of the list of probes: the
 * probes there are disabled, and stay registered.
 */
static void probes_of_an_unregistered_site_are_disabled(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = kpt_probe('a', place->symbol);
	struct kprobe *b = kpt_post_probe('b', place->symbol);
	struct kprobe *site;

	ASSERT_REGISTERED(test, a);
	ASSERT_REGISTERED(test, b);
	site = list_next_entry(a, list);
	KUNIT_ASSERT_PTR_EQ(test, list_next_entry(site, list), b);
	unregister_kprobe(site);
	EXPECT_CALL(test, place, "");
	KUNIT_EXPECT_TRUE(test, kprobe_disabled(a));
	KUNIT_EXPECT_TRUE(test, kprobe_disabled(b));
	KUNIT_EXPECT_MEMEQ(test, kpt_text(place), kpt_unprobed_text[place - kpt_places],
			   TEXT_BYTES);
	KUNIT_EXPECT_TRUE(test, kpt_is_linked(a));
	KUNIT_EXPECT_EQ(test, enable_kprobe(a), 0);
	EXPECT_CALL(test, place, "a");
	KUNIT_EXPECT_EQ(test, enable_kprobe(b), 0);
	EXPECT_CALL(test, place, "baB");
}

/* An error path may pass the array that was refused for its hole. */
static void hole_in_array_is_passed_over(struct kunit *test)
{
	struct kprobe *a = kpt_probe('a', TARGET->symbol);
	struct kprobe *all[] = { NULL, a, NULL };

	KUNIT_EXPECT_EQ(test, register_kprobes(all, ARRAY_SIZE(all)), -EINVAL);
	unregister_kprobes(all, ARRAY_SIZE(all));
	a->addr = NULL;
	ASSERT_REGISTERED(test, a);
	unregister_kprobes(all, ARRAY_SIZE(all));
	KUNIT_EXPECT_FALSE(test, kpt_is_linked(a));
	EXPECT_CALL(test, TARGET, "");
}

static void probe_is_unregistered_twice(struct kunit *test)
{
	struct kprobe *a = kpt_probe('a', TARGET->symbol), *all[] = { a, a };

	for (int i = 0; i < 2; i++) {
		ASSERT_REGISTERED(test, a);
		KUNIT_EXPECT_NOT_NULL(test, a->addr);
		if (i) {
			unregister_kprobes(all, ARRAY_SIZE(all));
		} else {
			unregister_kprobe(a);
			KUNIT_EXPECT_NOT_NULL(test, a->addr);
			unregister_kprobe(a);
		}
		KUNIT_EXPECT_NULL(test, a->addr);
		KUNIT_EXPECT_FALSE(test, kpt_is_linked(a));
		EXPECT_CALL(test, TARGET, "");
	}
}

static int linger_before(struct kprobe *kp, struct pt_regs *regs)
{
	kpt_linger();
	return 0;
}

static void linger_after(struct kprobe *kp, struct pt_regs *regs, unsigned long flags)
{
	kpt_linger();
}

/* The caller may then free the probe, and the module of the handler may be unloaded. */
static void unregistering_waits_for_handlers(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = kpt_probe('a', place->symbol);

	if (num_online_cpus() < 2)
		kunit_skip(test, "needs two CPUs");
	for (int post = 0; post < 2; post++) {
		for (int optimized = 0; optimized < 2; optimized++) {
			a->addr = NULL;
			a->pre_handler = post ? NULL : linger_before;
			a->post_handler = post ? linger_after : NULL;
			ASSERT_REGISTERED(test, a);
			if (optimized)
				msleep(500);	/* until the optimizer has run */
			kpt_begin_lingering(test, place);
			unregister_kprobe(a);
			kpt_end_lingering(test);
		}
	}
}

static void empty_batch_is_ignored(struct kunit *test)
{
	struct kprobe *a = kpt_probe('a', TARGET->symbol);

	ASSERT_REGISTERED(test, a);
	unregister_kprobes(&a, 0);
	unregister_kprobes(&a, -1);
	unregister_kprobes(NULL, 0);
	EXPECT_CALL(test, TARGET, "a");
}

static struct kunit_case kprobes_unregister_cases[] = {
	KUNIT_CASE_PARAM(unregistered_probe_is_ignored, kpt_place_gen_params),
	KUNIT_CASE_PARAM(probes_of_an_unregistered_site_are_disabled, kpt_place_gen_params),
	KUNIT_CASE_PARAM(unregistering_waits_for_handlers, kpt_place_gen_params),
	KUNIT_CASE(empty_batch_is_ignored),
	KUNIT_CASE(hole_in_array_is_passed_over),
	KUNIT_CASE(probe_is_unregistered_twice),
	{ }
};

static struct kunit_suite kprobes_unregister_suite = {
	.name = "kprobes-unregister",
	.suite_init = kpt_start_suite,
	.init = kpt_start_test,
	.exit = kpt_end_test,
	.test_cases = kprobes_unregister_cases,
};

kunit_test_suite(kprobes_unregister_suite);
