// SPDX-License-Identifier: GPL-2.0
/*
 * Handlers must not register or change probes: the task that they interrupt may hold
 * kprobe_mutex.
 */
#include <linux/sched.h>
#include <linux/string.h>

#include "actions.h"
#include "probes.h"

static int change_probes_before(struct test_probe *p, struct pt_regs *regs)
{
	kpt_try_to_change_probes();
	return 0;
}

static void change_probes_after(struct kprobe *kp, struct pt_regs *regs, unsigned long flags)
{
	kpt_post_handler(kp, regs, flags);
	if (current == kpt_tester)
		kpt_try_to_change_probes();
}

/* The handler is refused each change, the test then makes all of them. */
static void handler_cannot_change_probes(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = kpt_post_probe('a', place->symbol);
	struct kprobe *b = kpt_probe('b', OTHER_TARGET->symbol);
	struct kprobe *c = kpt_probe('c', OTHER_TARGET->symbol);
	struct kprobe *d = kpt_probe('d', OTHER_TARGET->symbol);
	struct kprobe given;

	kpt_test_probe('a')->act = change_probes_before;
	a->post_handler = change_probes_after;
	d->flags = KPROBE_FLAG_DISABLED;
	ASSERT_REGISTERED(test, a);
	ASSERT_REGISTERED(test, c);
	ASSERT_REGISTERED(test, d);
	kpt_set_stale_results(b);
	memcpy(&given, b, sizeof(given));

	EXPECT_CALL(test, place, "a----A----");
	EXPECT_UNTOUCHED(test, b, &given);
	KUNIT_EXPECT_FALSE(test, kprobe_disabled(c));
	KUNIT_EXPECT_TRUE(test, kprobe_disabled(d));
	EXPECT_CALL(test, OTHER_TARGET, "c");

	ASSERT_REGISTERED(test, b);
	KUNIT_EXPECT_EQ(test, disable_kprobe(c), 0);
	KUNIT_EXPECT_EQ(test, enable_kprobe(d), 0);
	EXPECT_CALL(test, OTHER_TARGET, "bd");
}

static struct kunit_case kprobes_deadlock_cases[] = {
	KUNIT_CASE_PARAM(handler_cannot_change_probes, kpt_place_gen_params),
	{ }
};

static struct kunit_suite kprobes_deadlock_suite = {
	.name = "kprobes-deadlock",
	.suite_init = kpt_start_suite,
	.init = kpt_start_test,
	.exit = kpt_end_test,
	.test_cases = kprobes_deadlock_cases,
};

kunit_test_suite(kprobes_deadlock_suite);
