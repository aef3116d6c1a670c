// SPDX-License-Identifier: GPL-2.0
/* Handlers let execution continue at an instruction that a jump displaces. */
#include <linux/ptrace.h>
#include <linux/string.h>

#include "../optimize.h"
#include "../return_probes.h"
#include "functions.h"
#include "jump_code.h"
#include "jump_snippets.h"

/*
 * Return @arg with the lowest five bits, of which each instruction adds another one. A
 * jump at the first of these displaces the next two.
 */
u64 kprobes_test_bits(u64 arg);

KPT_ASM_FUNCTION(kprobes_test_bits,
		 TAKE_ARG
		 "add $1, %al\n"
		 "add $2, %al\n"
		 "add $4, %al\n"
		 "add $8, %al\n"
		 "add $16, %al\n"
		 RETURN);

/* Offset of the instruction that adds bit @n. */
#define BIT_OFFSET(n)	(ENDBR_SIZE + TAKE_ARG_SIZE + 2 * (n))
#define BITS		5

static unsigned long bits_address(unsigned int n)
{
	return kpt_address(kprobes_test_bits) + BIT_OFFSET(n);
}

/* Return what the instructions add from bit @n on. */
static u64 bits_from(unsigned int n)
{
	return BIT(BITS) - BIT(n);
}

/* Continue at the instruction of bit @p->data. */
static int go_to_bit(struct test_probe *p, struct pt_regs *regs)
{
	regs->ip = bits_address(p->data);
	return 1;
}

static void post_go_to_bit(struct kprobe *kp, struct pt_regs *regs, unsigned long flags)
{
	struct test_probe *p = container_of(kp, struct test_probe, kp);

	kpt_post_handler(kp, regs, flags);
	if (current == kpt_tester)
		regs->ip = bits_address(p->data);
}

static struct kprobe *bit_probe(char name, unsigned int n)
{
	struct kprobe *kp = kpt_probe(name, NULL);

	kp->addr = (kprobe_opcode_t *)bits_address(n);
	return kp;
}

static void expect_bits(struct kunit *test, u64 expected, const char *events, const char *how)
{
	kpt_clear_journal();
	KUNIT_EXPECT_EQ_MSG(test, kpt_call_untyped(kprobes_test_bits, 0), expected, "%s", how);
	KUNIT_EXPECT_STREQ_MSG(test, kpt_journal, events, "%s", how);
}

static void expect_all_targets(struct kunit *test, const char *events, const char *how)
{
	/* Not 0, the probed instruction itself: the probe would be hit again and again. */
	for (unsigned int n = 1; n < BITS; n++) {
		kpt_test_probe('a')->data = n;
		expect_bits(test, bits_from(n), events, how);
	}
}

/* A usual way to skip an instruction, which needs only a change of ip at a breakpoint. */
static void handler_continues_at_displaced_insn(struct kunit *test)
{
	struct kprobe *a = bit_probe('a', 0), *b = bit_probe('b', 0);

	kpt_test_probe('a')->act = go_to_bit;
	ASSERT_REGISTERED(test, b);
	ASSERT_REGISTERED(test, a);
	expect_all_targets(test, "a", "breakpoint, of two");
	ASSERT_OPTIMIZED(test, a);
	expect_all_targets(test, "a", "jump, of two");
	unregister_kprobe(b);
	expect_all_targets(test, "a", "breakpoint");
	ASSERT_OPTIMIZED(test, a);
	expect_all_targets(test, "a", "jump");
	kpt_test_probe('a')->act = NULL;
	expect_bits(test, bits_from(0), "a", "jump");
}

static void post_handler_continues_at_displaced_insn(struct kunit *test)
{
	struct kprobe *a = bit_probe('a', 0);

	a->post_handler = post_go_to_bit;
	ASSERT_REGISTERED(test, a);
	for (int optimized = 0; optimized < 2; optimized++) {
		for (unsigned int n = 1; n < BITS; n++) {
			kpt_test_probe('a')->data = n;
			expect_bits(test, 1 + bits_from(n), "aA",
				    optimized ? "jump" : "breakpoint");
		}
		if (!optimized)
			ASSERT_OPTIMIZED(test, a);
	}
}

/* A function whose probe has a handler that continues in kprobes_test_bits(). */
u64 kprobes_test_from_elsewhere(u64 arg);

KPT_ASM_FUNCTION(kprobes_test_from_elsewhere,
		 TAKE_ARG
		 "add $1, %al\n"
		 "{disp8} lea (" AX "), " AX "\n"
		 RETURN);

static void expect_all_targets_from_elsewhere(struct kunit *test, bool post, const char *how)
{
	for (unsigned int n = 1; n < BITS; n++) {
		kpt_test_probe('a')->data = n;
		kpt_clear_journal();
		KUNIT_EXPECT_EQ_MSG(test, kpt_call_untyped(kprobes_test_from_elsewhere, 0),
				    post + bits_from(n), "%s", how);
		KUNIT_EXPECT_STREQ_MSG(test, kpt_journal, post ? "aA" : "a", "%s", how);
	}
}

static void handler_of_other_function_continues_at_displaced_insn(struct kunit *test)
{
	struct kprobe *a = kpt_probe('a', "kprobes_test_from_elsewhere");
	struct kprobe *b = bit_probe('b', 0);

	ASSERT_REGISTERED(test, b);
	ASSERT_OPTIMIZED(test, b);
	for (int post = 0; post < 2; post++) {
		a->addr = NULL;
		a->offset = ENDBR_SIZE + TAKE_ARG_SIZE;
		a->post_handler = post ? post_go_to_bit : NULL;
		kpt_test_probe('a')->act = post ? NULL : go_to_bit;
		ASSERT_REGISTERED(test, a);
		expect_all_targets_from_elsewhere(test, post, "from a breakpoint");
		ASSERT_OPTIMIZED(test, a);
		expect_all_targets_from_elsewhere(test, post, "from a jump");
		unregister_kprobe(a);
	}
	expect_bits(test, bits_from(0), "b", "jump");
}

/* Its breakpoint's handler continues in kprobes_test_bits(), which returns to the caller. */
u64 kprobes_test_break(u64 arg);

KPT_ASM_FUNCTION(kprobes_test_break, TAKE_ARG "int3\n" RETURN);

static u64 bits_after_break;

static int act_break(struct test_probe *p, struct pt_regs *regs)
{
	bits_after_break = kprobes_test_break(0);
	return 0;
}

static int break_to_bit(struct kprobe *kp, struct pt_regs *regs)
{
	regs->ip = bits_address(container_of(kp, struct test_probe, kp)->data);
	return 1;
}

static void break_handler_continues_at_displaced_insn(struct kunit *test)
{
	struct kprobe *a = kpt_probe('a', "kprobes_test_from_elsewhere");
	struct kprobe *b = bit_probe('b', 0);

	kpt_test_probe('a')->act = act_break;
	a->break_handler = break_to_bit;
	ASSERT_REGISTERED(test, b);
	ASSERT_OPTIMIZED(test, b);
	ASSERT_REGISTERED(test, a);
	for (unsigned int n = 1; n < BITS; n++) {
		kpt_test_probe('a')->data = n;
		bits_after_break = 0;
		kpt_call_untyped(kprobes_test_from_elsewhere, 0);
		KUNIT_EXPECT_EQ(test, bits_after_break, bits_from(n));
	}
}

static struct kunit_case optprobes_x86_inside_cases[] = {
	KUNIT_CASE(handler_continues_at_displaced_insn),
	KUNIT_CASE(post_handler_continues_at_displaced_insn),
	KUNIT_CASE(handler_of_other_function_continues_at_displaced_insn),
	KUNIT_CASE(break_handler_continues_at_displaced_insn),
	{ }
};

static struct kunit_suite optprobes_x86_inside_suite = {
	.name = "optprobes-x86-inside",
	.suite_init = kpt_start_return_suite,
	.init = kpt_start_return_test,
	.exit = kpt_end_return_test,
	.test_cases = optprobes_x86_inside_cases,
};

kunit_test_suite(optprobes_x86_inside_suite);
