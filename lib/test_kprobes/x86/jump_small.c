// SPDX-License-Identifier: GPL-2.0
/*
 * Where there are many jumps, most have a small detour. It does what others do; a site that
 * is hit often gets a large one.
 *
 * All suites run with small detours if the kernel is booted with kprobes.large_detours=0.
 */
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/kconfig.h>
#include <linux/rcupdate.h>

#include "../load.h"
#include "../optimize.h"
#include "../return_probes.h"
#include "frames.h"
#include "functions.h"
#include "jump_snippets.h"

/* A site gets a large detour after so many hits in two seconds. */
#define MANY_HITS	1000

static int start_small_test(struct kunit *test)
{
	int err = kpt_start_return_test(test);

	if (err)
		return err;
	if (!IS_ENABLED(CONFIG_X86_64))
		kunit_skip(test, "no small detours");
	return kpt_use_small_detours(test);
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

static void handlers_of_small_detour_change(struct kunit *test)
{
	struct kprobe *a = kpt_probe('a', TARGET->symbol), *b = kpt_probe('b', TARGET->symbol);

	b->pre_handler = NULL;
	ASSERT_REGISTERED(test, a);
	ASSERT_OPTIMIZED(test, a);
	kpt_expect_handlers_change(test, TARGET, a);
	ASSERT_REGISTERED(test, b);
	kpt_expect_handlers_change(test, TARGET, a);
	unregister_kprobe(a);
	EXPECT_CALL(test, TARGET, "");
	KUNIT_EXPECT_TRUE(test, kprobe_optimized(b));
	KUNIT_EXPECT_TRUE(test, kpt_has_small_detour(b));
}

static void post_handler_needs_large_detour(struct kunit *test)
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

static void first_detours_are_large(struct kunit *test)
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

/* Sites that have lost their probes are freed after grace periods: wait until none is. */
static unsigned int count_large_detours(void)
{
	unsigned int number;

	do {
		number = READ_ONCE(kprobe_large_detours);
		synchronize_rcu_tasks();	/* those that are being freed */
		synchronize_rcu_tasks();	/* those that came later */
		msleep(500);
	} while (READ_ONCE(kprobe_large_detours) != number);
	return number;
}

static void freed_detour_leaves_room_for_large_one(struct kunit *test)
{
	struct kprobe *a = kpt_probe('a', TARGET->symbol), *b = kpt_frame_probe('b', 0);
	struct kprobe *c = kpt_probe('c', OTHER_TARGET->symbol);
	unsigned int number = count_large_detours();

	kprobe_max_large_detours = number + 1;
	ASSERT_REGISTERED(test, a);
	ASSERT_OPTIMIZED(test, a);
	KUNIT_EXPECT_FALSE(test, kpt_has_small_detour(a));
	ASSERT_REGISTERED(test, b);
	ASSERT_OPTIMIZED(test, b);
	KUNIT_EXPECT_TRUE(test, kpt_has_small_detour(b));
	unregister_kprobe(a);
	unregister_kprobe(b);
	KUNIT_EXPECT_EQ(test, count_large_detours(), number);
	ASSERT_REGISTERED(test, c);
	ASSERT_OPTIMIZED(test, c);
	KUNIT_EXPECT_FALSE(test, kpt_has_small_detour(c));
}

/* A handler that expects the registers of each hit. */
static int expect_regs(struct kprobe *kp, struct pt_regs *regs)
{
	struct counting_probe *p = container_of(kp, struct counting_probe, kp);

	if (regs->ip == (unsigned long)kp->addr + 1 && regs->ARG1_REG == ARG)
		atomic_inc(&p->hits);
	return 0;
}

/* The last case: a site that the next probe finds keeps its large detour. */
static void site_hit_often_gets_large_detour(struct kunit *test)
{
	struct kprobe *a, *b = kpt_frame_probe('b', 0);

	kpt_prepare_counting(test);
	a = kpt_counting_probe(0, kpt_address(TARGET->function));
	a->pre_handler = expect_regs;
	ASSERT_REGISTERED(test, b);
	ASSERT_REGISTERED(test, a);
	ASSERT_OPTIMIZED(test, a);
	call_target(test, MANY_HITS - 1);
	ASSERT_OPTIMIZED(test, a);
	KUNIT_EXPECT_TRUE(test, kpt_has_small_detour(a));
	msleep(2500);	/* counting begins again */
	call_target(test, 1);
	ASSERT_OPTIMIZED(test, a);
	KUNIT_EXPECT_TRUE(test, kpt_has_small_detour(a));
	call_target(test, MANY_HITS);
	ASSERT_OPTIMIZED(test, a);
	KUNIT_EXPECT_FALSE(test, kpt_has_small_detour(a));
	KUNIT_EXPECT_TRUE(test, kprobe_optimized(b));
	KUNIT_EXPECT_TRUE(test, kpt_has_small_detour(b));
	call_target(test, MANY_HITS);
	KUNIT_EXPECT_EQ(test, atomic_read(&kpt_counting[0].hits), 3 * MANY_HITS);
	KUNIT_EXPECT_EQ(test, a->nmissed, 0);
	unregister_kprobe(a);	/* before the text is compared */
}

static struct kunit_case optprobes_x86_small_cases[] = {
	KUNIT_CASE(probes_come_and_go_at_small_detour),
	KUNIT_CASE(handlers_of_small_detour_change),
	KUNIT_CASE(post_handler_needs_large_detour),
	KUNIT_CASE(first_detours_are_large),
	KUNIT_CASE_SLOW(freed_detour_leaves_room_for_large_one),
	KUNIT_CASE_SLOW(site_hit_often_gets_large_detour),
	{ }
};

static struct kunit_suite optprobes_x86_small_suite = {
	.name = "optprobes-x86-small",
	.suite_init = kpt_start_return_suite,
	.init = start_small_test,
	.exit = kpt_end_return_test,
	.test_cases = optprobes_x86_small_cases,
};

kunit_test_suite(optprobes_x86_small_suite);
