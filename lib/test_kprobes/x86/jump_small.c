// SPDX-License-Identifier: GPL-2.0
/*
 * Where there are many jumps, most have a small detour. It does what others do; a site that
 * is hit often gets a larger one.
 *
 * All suites run with small detours if the kernel is booted with kprobes.large_detours=0.
 */
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/kconfig.h>

#include "../load.h"
#include "../optimize.h"
#include "../return_probes.h"
#include "frames.h"
#include "functions.h"
#include "jump_snippets.h"

/* More than a site is hit before it gets a larger detour, and much less than that. */
#define MANY_HITS	2000
#define FEW_HITS	100

static unsigned int max_large_detours;

static void restore_large_detours(void *unused)
{
	kprobe_max_large_detours = max_large_detours;
}

static int start_small_test(struct kunit *test)
{
	int err = kpt_start_return_test(test);

	if (err)
		return err;
	if (!IS_ENABLED(CONFIG_X86_64))
		kunit_skip(test, "no small detours");
	max_large_detours = kprobe_max_large_detours;
	kprobe_max_large_detours = 0;
	return kunit_add_action_or_reset(test, restore_large_detours, NULL);
}

static void call_target(struct kunit *test, unsigned int times)
{
	while (times--)
		KUNIT_ASSERT_EQ(test, kpt_call(TARGET), TARGET->result);
}

static void probes_come_and_go_at_small_detour(struct kunit *test)
{
	struct kprobe *a = kpt_probe('a', TARGET->symbol), *b = kpt_probe('b', TARGET->symbol);

	ASSERT_REGISTERED(test, a);
	ASSERT_OPTIMIZED(test, a);
	KUNIT_EXPECT_TRUE(test, kpt_has_small_detour(a));
	EXPECT_CALL(test, TARGET, "a");
	ASSERT_REGISTERED(test, b);
	KUNIT_EXPECT_TRUE(test, kprobe_optimized(a));
	EXPECT_CALL(test, TARGET, "ba");
	KUNIT_EXPECT_EQ(test, disable_kprobe(b), 0);
	EXPECT_CALL(test, TARGET, "a");
	unregister_kprobe(a);
	KUNIT_EXPECT_EQ(test, enable_kprobe(b), 0);
	EXPECT_CALL(test, TARGET, "b");
	ASSERT_OPTIMIZED(test, b);
	EXPECT_CALL(test, TARGET, "b");
	KUNIT_EXPECT_TRUE(test, kpt_has_small_detour(b));
}

static void post_handler_needs_larger_detour(struct kunit *test)
{
	struct kprobe *a = kpt_probe('a', TARGET->symbol);
	struct kprobe *b = kpt_post_probe('b', TARGET->symbol);

	ASSERT_REGISTERED(test, a);
	ASSERT_OPTIMIZED(test, a);
	KUNIT_EXPECT_TRUE(test, kpt_has_small_detour(a));
	ASSERT_REGISTERED(test, b);
	EXPECT_CALL(test, TARGET, "baB");
	ASSERT_OPTIMIZED(test, a);
	KUNIT_EXPECT_FALSE(test, kpt_has_small_detour(a));
	EXPECT_CALL(test, TARGET, "baB");
}

static void first_detours_are_larger(struct kunit *test)
{
	struct kprobe *a = kpt_probe('a', TARGET->symbol), *b = kpt_frame_probe('b', 0);

	kprobe_max_large_detours = UINT_MAX;
	ASSERT_REGISTERED(test, a);
	ASSERT_OPTIMIZED(test, a);
	KUNIT_EXPECT_FALSE(test, kpt_has_small_detour(a));
	kprobe_max_large_detours = 0;
	ASSERT_REGISTERED(test, b);
	ASSERT_OPTIMIZED(test, b);
	KUNIT_EXPECT_TRUE(test, kpt_has_small_detour(b));
	EXPECT_CALL(test, TARGET, "a");
	EXPECT_CALL(test, &kpt_frame_place, "b");
}

/* A handler that expects the registers of each hit. */
static int expect_regs(struct kprobe *kp, struct pt_regs *regs)
{
	struct counting_probe *p = container_of(kp, struct counting_probe, kp);

	if (regs->ip == (unsigned long)kp->addr + 1 && regs->ARG1_REG == ARG)
		atomic_inc(&p->hits);
	return 0;
}

/* The last case: a site that the next probe finds keeps its larger detour. */
static void site_hit_often_gets_larger_detour(struct kunit *test)
{
	unsigned long end = jiffies + PATIENCE;
	struct kprobe *a, *b = kpt_frame_probe('b', 0);

	kpt_prepare_counting(test);
	a = kpt_counting_probe(0, kpt_address(TARGET->function));
	a->pre_handler = expect_regs;
	ASSERT_REGISTERED(test, b);
	ASSERT_REGISTERED(test, a);
	ASSERT_OPTIMIZED(test, a);
	call_target(test, FEW_HITS);
	msleep(1000);
	KUNIT_EXPECT_TRUE(test, kpt_has_small_detour(a));
	call_target(test, MANY_HITS);
	while ((!kprobe_optimized(a) || kpt_has_small_detour(a)) && time_before(jiffies, end))
		msleep(20);
	ASSERT_OPTIMIZED(test, a);
	KUNIT_EXPECT_FALSE(test, kpt_has_small_detour(a));
	KUNIT_EXPECT_TRUE(test, kprobe_optimized(b));
	KUNIT_EXPECT_TRUE(test, kpt_has_small_detour(b));
	call_target(test, FEW_HITS);
	KUNIT_EXPECT_EQ(test, atomic_read(&kpt_counting[0].hits), 2 * FEW_HITS + MANY_HITS);
	KUNIT_EXPECT_EQ(test, a->nmissed, 0);
	unregister_kprobe(a);	/* before the text is compared */
}

static struct kunit_case optprobes_x86_small_cases[] = {
	KUNIT_CASE(probes_come_and_go_at_small_detour),
	KUNIT_CASE(post_handler_needs_larger_detour),
	KUNIT_CASE(first_detours_are_larger),
	KUNIT_CASE_SLOW(site_hit_often_gets_larger_detour),
	{ }
};

static struct kunit_suite optprobes_x86_small_suite = {
	.name = "optprobes-x86-small",
	.suite_init = kpt_start_jump_suite,
	.init = start_small_test,
	.exit = kpt_end_return_test,
	.test_cases = optprobes_x86_small_cases,
};

kunit_test_suite(optprobes_x86_small_suite);
