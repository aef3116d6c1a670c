// SPDX-License-Identifier: GPL-2.0
/* Probes at the instructions that a jump displaces come and go. */
#include "../../../kernel/kprobes/internal.h"

#include <linux/cache.h>
#include <linux/cleanup.h>
#include <linux/delay.h>
#include <linux/kconfig.h>
#include <linux/kprobes_tables.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/string.h>

#include <asm/asm.h>
#include <asm/text-patching.h>

#include "../optimize.h"
#include "../return_probes.h"
#include "frames.h"
#include "functions.h"
#include "jump_code.h"
#include "jump_snippets.h"

/* Number of instructions that a jump at the first one displaces. */
#define DISPLACED_INSNS	3

/* Number of instructions with room for a jump: after them the function ends too soon. */
#define JUMP_INSNS	4

/* Where a function of the kernel may have a jump. The ftrace site gets none. */
#define AFTER_FTRACE_SITE \
	(ENDBR_SIZE + (IS_ENABLED(CONFIG_DYNAMIC_FTRACE) ? CALL_INSN_SIZE : 0))

static void neighbour_comes_and_goes(struct kunit *test)
{
	struct kprobe *a = kpt_frame_probe('a', 0), *b;

	ASSERT_REGISTERED(test, a);
	for (unsigned int insn = 1; insn < FRAME_INSNS; insn++) {
		bool inside = insn < DISPLACED_INSNS;

		ASSERT_OPTIMIZED(test, a);
		b = kpt_frame_probe('b', insn);
		ASSERT_REGISTERED(test, b);
		KUNIT_EXPECT_EQ(test, kprobe_optimized(a), !inside);
		EXPECT_CALL(test, &kpt_frame_place, "ab");
		KUNIT_EXPECT_TRUE(test, kpt_becomes_optimized(b) || insn >= JUMP_INSNS);
		KUNIT_EXPECT_EQ(test, kprobe_optimized(a), !inside);
		EXPECT_CALL(test, &kpt_frame_place, "ab");

		KUNIT_EXPECT_EQ(test, disable_kprobe(b), 0);
		EXPECT_CALL(test, &kpt_frame_place, "a");
		ASSERT_OPTIMIZED(test, a);
		EXPECT_CALL(test, &kpt_frame_place, "a");

		/* The text of a disabled probe is displaced, and stays so. */
		unregister_kprobe(b);
		KUNIT_EXPECT_TRUE(test, kprobe_optimized(a));
		EXPECT_CALL(test, &kpt_frame_place, "a");
		b = kpt_frame_probe('b', insn);
		b->flags = KPROBE_FLAG_DISABLED;
		ASSERT_REGISTERED(test, b);
		KUNIT_EXPECT_TRUE(test, kprobe_optimized(a));
		EXPECT_CALL(test, &kpt_frame_place, "a");
		KUNIT_EXPECT_EQ(test, enable_kprobe(b), 0);
		KUNIT_EXPECT_EQ(test, kprobe_optimized(a), !inside);
		EXPECT_CALL(test, &kpt_frame_place, "ab");

		unregister_kprobe(b);
		EXPECT_CALL(test, &kpt_frame_place, "a");
	}
	ASSERT_OPTIMIZED(test, a);
	EXPECT_CALL(test, &kpt_frame_place, "a");
}

static void probe_in_front_of_an_optimized_one(struct kunit *test)
{
	struct kprobe *a, *b = kpt_frame_probe('b', 2);

	ASSERT_REGISTERED(test, b);
	for (unsigned int insn = 0; insn < 2; insn++) {
		ASSERT_OPTIMIZED(test, b);
		a = kpt_frame_probe('a', insn);
		ASSERT_REGISTERED(test, a);
		EXPECT_CALL(test, &kpt_frame_place, "ab");
		wait_for_kprobe_optimizer();
		KUNIT_EXPECT_FALSE(test, kprobe_optimized(a));
		KUNIT_EXPECT_TRUE(test, kprobe_optimized(b));
		EXPECT_CALL(test, &kpt_frame_place, "ab");
		unregister_kprobe(b);
		ASSERT_OPTIMIZED(test, a);
		EXPECT_CALL(test, &kpt_frame_place, "a");
		b->addr = NULL;
		ASSERT_REGISTERED(test, b);
		KUNIT_EXPECT_FALSE(test, kprobe_optimized(a));
		EXPECT_CALL(test, &kpt_frame_place, "ab");
		unregister_kprobe(a);
	}
}

/* Each probe blocks the jumps of the probes in front of it. */
static void all_neighbours_are_probed(struct kunit *test)
{
	struct kprobe *all[JUMP_INSNS];

	for (unsigned int i = 0; i < JUMP_INSNS; i++)
		all[i] = kpt_frame_probe('a' + i, i);
	KUNIT_ASSERT_EQ(test, register_kprobes(all, JUMP_INSNS), 0);
	EXPECT_CALL(test, &kpt_frame_place, "abcd");
	ASSERT_OPTIMIZED(test, all[JUMP_INSNS - 1]);
	for (unsigned int i = 0; i < JUMP_INSNS - 1; i++)
		KUNIT_EXPECT_FALSE(test, kprobe_optimized(all[i]));
	EXPECT_CALL(test, &kpt_frame_place, "abcd");
	unregister_kprobes(all + 1, JUMP_INSNS - 1);
	EXPECT_CALL(test, &kpt_frame_place, "a");
	ASSERT_OPTIMIZED(test, all[0]);
	EXPECT_CALL(test, &kpt_frame_place, "a");
}

/* Return @arg + 7: the last byte of a jump is where the second instruction begins. */
u64 kprobes_test_at_four(u64 arg);

#ifdef CONFIG_X86_64
#define ADD_ONE_IN_FOUR_BYTES	"lea 1(%rdi), %rax\n"
#else
#define ADD_ONE_IN_FOUR_BYTES	"ds lea 1(%eax), %eax\n"
#endif

KPT_ASM_FUNCTION(kprobes_test_at_four,
		 ADD_ONE_IN_FOUR_BYTES
		 "add $2, " AX "\n"
		 "lea 4(" AX "), " AX "\n"
		 RETURN);

static void neighbour_is_at_the_last_byte(struct kunit *test)
{
	static const struct place place = {
		"kprobes_test_at_four", kprobes_test_at_four, kprobes_test_at_four, ARG + 7
	};
	const u8 *code = kpt_text(&place) + ENDBR_SIZE;
	struct kprobe *a = kpt_probe('a', NULL), *b = kpt_probe('b', NULL);
	u8 original[TEXT_BYTES];

	memcpy(original, code, TEXT_BYTES);
	a->addr = (kprobe_opcode_t *)code;
	b->addr = (kprobe_opcode_t *)code + 4;
	ASSERT_REGISTERED(test, a);
	for (int i = 0; i < 2; i++) {
		ASSERT_OPTIMIZED(test, a);
		EXPECT_CALL(test, &place, "a");
		ASSERT_REGISTERED(test, b);
		KUNIT_EXPECT_FALSE(test, kprobe_optimized(a));
		KUNIT_EXPECT_EQ(test, b->opcode, original[4]);
		KUNIT_EXPECT_EQ(test, code[0], INT3_INSN_OPCODE);
		KUNIT_EXPECT_MEMEQ(test, code + 1, original + 1, 3);
		EXPECT_CALL(test, &place, "ab");
		KUNIT_EXPECT_FALSE(test, kpt_becomes_optimized(a));
		EXPECT_CALL(test, &place, "ab");
		unregister_kprobe(b);
		EXPECT_CALL(test, &place, "a");
	}
	ASSERT_OPTIMIZED(test, a);
	unregister_kprobe(a);
	KUNIT_EXPECT_MEMEQ(test, code, original, TEXT_BYTES);
}

/* No other test leaves its addresses in data. */
u64 kprobes_test_apart(u64 arg);
KPT_ASM_FUNCTION(kprobes_test_apart,
		 "push %" _ASM_BX "\n"
		 "pop %" _ASM_BX "\n"
		 "lea 1(%" _ASM_ARG1 "), %" _ASM_AX "\n"
		 RETURN);

/* A word of the first task's stack that it does not use. */
#define STACK_WORD	64

/*
 * A struct kprobe is in the data of the test's module. Its address, of an instruction that a
 * jump displaces, is not that of a branch target, and is not when it is unregistered either.
 * Nor is an address on a stack, one of which is in the kernel's data.
 */
static void words_of_probes_and_stacks_are_no_targets(struct kunit *test)
{
	const struct place apart = { "kprobes_test_apart", kprobes_test_apart,
				     kprobes_test_apart, ARG + 1 };
	struct kprobe *a = kpt_probe('a', apart.symbol), *b = kpt_probe('b', apart.symbol);

	a->offset = ENDBR_SIZE;
	b->offset = ENDBR_SIZE + 1;
	b->flags = KPROBE_FLAG_DISABLED;
	ASSERT_REGISTERED(test, b);
	if (IS_BUILTIN(CONFIG_KPROBES_SANITY_TEST))
		init_stack[STACK_WORD] = (unsigned long)b->addr;
	for (unsigned int i = 0; i < 2; i++) {
		scoped_guard(mutex, &kprobe_mutex)
			arch_forget_text(kprobe_text_at((unsigned long)kprobes_test_apart));
		a->addr = NULL;
		ASSERT_REGISTERED(test, a);
		ASSERT_OPTIMIZED(test, a);
		EXPECT_CALL(test, &apart, "a");
		unregister_kprobe(a);
		unregister_kprobe(b);
		synchronize_rcu_tasks();	/* the site and its detour are freed */
		synchronize_rcu_tasks();
	}
	if (IS_BUILTIN(CONFIG_KPROBES_SANITY_TEST))
		init_stack[STACK_WORD] = 0;
}

/*
 * While the optimizer analyses the kernel's text, it is to look at two other sites next, or later,
 * if they have come since it began. One is freed, and another one takes its place in memory.
 */
static void site_is_freed_before_the_optimizer_looks(struct kunit *test)
{
	struct kprobe *a = kpt_probe('a', "vfs_rmdir");
	struct kprobe *b = kpt_probe('b', TARGET->symbol);
	struct kprobe *c = kpt_probe('c', OTHER_TARGET->symbol);

	a->offset = AFTER_FTRACE_SITE;
	for (unsigned int i = 0; i < 3; i++) {
		a->addr = NULL;
		b->addr = NULL;
		c->addr = NULL;
		ASSERT_REGISTERED(test, a);
		scoped_guard(mutex, &kprobe_mutex)
			arch_forget_text(kprobe_text_at((unsigned long)a->addr));
		if (i % 2)
			msleep(60);	/* the optimizer has begun */
		ASSERT_REGISTERED(test, b);
		ASSERT_REGISTERED(test, c);
		if (!(i % 2))
			msleep(60);
		unregister_kprobe(b);
		kpt_wait_until_site_is_freed(test, b);
		msleep(20);	/* it leaves the hash a moment before */
		b->addr = NULL;
		ASSERT_REGISTERED(test, b);
		ASSERT_OPTIMIZED(test, b);
		ASSERT_OPTIMIZED(test, c);
		EXPECT_CALL(test, TARGET, "b");
		EXPECT_CALL(test, OTHER_TARGET, "c");
		unregister_kprobe(a);
		unregister_kprobe(b);
		unregister_kprobe(c);
		kpt_wait_until_site_is_freed(test, c);
	}
}

/* Do a step of the analysis of the kernel's text, or use the result. kprobe_mutex is held. */
static void analyse_kernel(const struct kprobe *kp)
{
	const char *no_jump;

	kprobe_try_jump(container_of(get_kprobe(kp->addr), struct kprobe_site, kp), &no_jump);
}

static bool is_analysed(const struct kprobe *kp)
{
	guard(mutex)(&kprobe_mutex);
	return kprobe_text_at((unsigned long)kp->addr)->arch;
}

/*
 * The analysis of the kernel's text is kept for five seconds after its last use, also if all users
 * of the mutex keep the work that forgets it from running for longer.
 */
static void analysis_is_kept_while_it_is_used(struct kunit *test)
{
	struct kprobe *a = kpt_probe('a', "kernel_clone");

	a->offset = AFTER_FTRACE_SITE;
	a->flags = KPROBE_FLAG_DISABLED;
	ASSERT_REGISTERED(test, a);
	wait_for_kprobe_optimizer();
	scoped_guard(mutex, &kprobe_mutex) {
		analyse_kernel(a);
		msleep(6000);
		analyse_kernel(a);
	}
	msleep(100);
	KUNIT_EXPECT_TRUE(test, is_analysed(a));
	msleep(6000);
	KUNIT_EXPECT_FALSE(test, is_analysed(a));
	unregister_kprobe(a);
}

static struct kunit_case optprobes_x86_neighbours_cases[] = {
	KUNIT_CASE_SLOW(neighbour_comes_and_goes),
	KUNIT_CASE_SLOW(probe_in_front_of_an_optimized_one),
	KUNIT_CASE(all_neighbours_are_probed),
	KUNIT_CASE(neighbour_is_at_the_last_byte),
	KUNIT_CASE_SLOW(site_is_freed_before_the_optimizer_looks),
	KUNIT_CASE_SLOW(analysis_is_kept_while_it_is_used),
	/* The others leave addresses in data. */
	KUNIT_CASE(words_of_probes_and_stacks_are_no_targets),
	{ }
};

static struct kunit_suite optprobes_x86_neighbours_suite = {
	.name = "optprobes-x86-neighbours",
	.suite_init = kpt_start_return_suite,
	.init = kpt_start_return_test,
	.exit = kpt_end_return_test,
	.test_cases = optprobes_x86_neighbours_cases,
};

kunit_test_suite(optprobes_x86_neighbours_suite);
