// SPDX-License-Identifier: GPL-2.0
/* Handlers let execution go on inside of what a jump displaces. */
#include <linux/ptrace.h>
#include <linux/string.h>

#include "../optimize.h"
#include "../return_probes.h"
#include "jump_snippets.h"

/*
 * Each instruction adds another bit. A jump at the first of them displaces the next
 * two. It is called with what it adds to.
 */
u64 kprobes_test_bits(u64 arg);

asm(".pushsection .text\n"
    ".balign 16\n"
    ".globl kprobes_test_bits\n"
    ".type kprobes_test_bits, @function\n"
    "kprobes_test_bits:\n"
    ASM_ENDBR
    "	mov %rdi, %rax\n"
    "	add $1, %al\n"
    "	add $2, %al\n"
    "	add $4, %al\n"
    "	add $8, %al\n"
    "	add $16, %al\n"
    RETURN
    "	int3\n"
    ".size kprobes_test_bits, . - kprobes_test_bits\n"
    ".popsection\n");

/* Where the instruction is that adds bit @n, and what is left when it goes on there. */
#define BIT_OFFSET(n)	(ENDBR_SIZE + 3 + 2 * (n))
#define BITS		5

static unsigned long bits_address(unsigned int n)
{
	unsigned long start = (unsigned long)kprobes_test_bits;

	OPTIMIZER_HIDE_VAR(start);
	return start + BIT_OFFSET(n);
}

/* What is added by the instructions from that of bit @n on. */
static u64 bits_from(unsigned int n)
{
	return BIT(BITS) - BIT(n);
}

/* @data is which bit to go on with. */
static int go_to_bit(struct test_probe *p, struct pt_regs *regs)
{
	regs->ip = bits_address(p->data);
	return 1;
}

static void go_to_bit_after(struct kprobe *kp, struct pt_regs *regs, unsigned long flags)
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
	u64 (*function)(u64 arg) = kprobes_test_bits;

	OPTIMIZER_HIDE_VAR(function);
	kpt_clear_journal();
	KUNIT_EXPECT_EQ_MSG(test, function(0), expected, "%s", how);
	KUNIT_EXPECT_STREQ_MSG(test, kpt_journal, events, "%s", how);
}

static void expect_all_ways_on(struct kunit *test, const char *events, const char *how)
{
	/* Not to itself: there it would be hit again, and so on. */
	for (unsigned int n = 1; n < BITS; n++) {
		kpt_test_probe('a')->data = n;
		expect_bits(test, bits_from(n), events, how);
	}
}

/* An instruction is skipped: usual, and at a breakpoint nothing but a change of ip. */
static void handler_goes_on_in_what_is_displaced(struct kunit *test)
{
	struct kprobe *a = bit_probe('a', 0), *b = bit_probe('b', 0);

	kpt_test_probe('a')->act = go_to_bit;
	ASSERT_REGISTERED(test, b);
	ASSERT_REGISTERED(test, a);
	expect_all_ways_on(test, "a", "breakpoint, of two");
	ASSERT_OPTIMIZED(test, a);
	expect_all_ways_on(test, "a", "jump, of two");
	unregister_kprobe(b);
	expect_all_ways_on(test, "a", "breakpoint");
	ASSERT_OPTIMIZED(test, a);
	expect_all_ways_on(test, "a", "jump");
	kpt_test_probe('a')->act = NULL;
	expect_bits(test, bits_from(0), "a", "jump");
}

static void post_handler_goes_on_in_what_is_displaced(struct kunit *test)
{
	struct kprobe *a = bit_probe('a', 0);

	a->post_handler = go_to_bit_after;
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

/* A function from which a handler goes to the other one. */
u64 kprobes_test_from_elsewhere(u64 arg);

asm(".pushsection .text\n"
    ".balign 16\n"
    ".globl kprobes_test_from_elsewhere\n"
    ".type kprobes_test_from_elsewhere, @function\n"
    "kprobes_test_from_elsewhere:\n"
    ASM_ENDBR
    "	mov %rdi, %rax\n"
    "	add $1, %al\n"
    "	lea (%rax, %rdi), %rax\n"
    RETURN
    "	int3\n"
    ".size kprobes_test_from_elsewhere, . - kprobes_test_from_elsewhere\n"
    ".popsection\n");

static void expect_ways_from_elsewhere(struct kunit *test, bool post, const char *how)
{
	u64 (*function)(u64 arg) = kprobes_test_from_elsewhere;

	OPTIMIZER_HIDE_VAR(function);
	for (unsigned int n = 1; n < BITS; n++) {
		kpt_test_probe('a')->data = n;
		kpt_clear_journal();
		KUNIT_EXPECT_EQ_MSG(test, function(0), post + bits_from(n), "%s", how);
		KUNIT_EXPECT_STREQ_MSG(test, kpt_journal, post ? "aA" : "a", "%s", how);
	}
}

static void other_handler_goes_on_in_what_is_displaced(struct kunit *test)
{
	struct kprobe *a = kpt_probe('a', "kprobes_test_from_elsewhere");
	struct kprobe *b = bit_probe('b', 0);

	ASSERT_REGISTERED(test, b);
	ASSERT_OPTIMIZED(test, b);
	for (int post = 0; post < 2; post++) {
		a->addr = NULL;
		a->offset = ENDBR_SIZE + 3;
		a->post_handler = post ? go_to_bit_after : NULL;
		kpt_test_probe('a')->act = post ? NULL : go_to_bit;
		ASSERT_REGISTERED(test, a);
		expect_ways_from_elsewhere(test, post, "from a breakpoint");
		ASSERT_OPTIMIZED(test, a);
		expect_ways_from_elsewhere(test, post, "from a jump");
		unregister_kprobe(a);
	}
	expect_bits(test, bits_from(0), "b", "jump");
}

static struct kunit_case optprobes_x86_inside_cases[] = {
	KUNIT_CASE(handler_goes_on_in_what_is_displaced),
	KUNIT_CASE(post_handler_goes_on_in_what_is_displaced),
	KUNIT_CASE(other_handler_goes_on_in_what_is_displaced),
	{ }
};

static struct kunit_suite optprobes_x86_inside_suite = {
	.name = "optprobes-x86-inside",
	.suite_init = kpt_start_jump_suite,
	.init = kpt_start_return_test,
	.exit = kpt_end_return_test,
	.test_cases = optprobes_x86_inside_cases,
};

kunit_test_suite(optprobes_x86_inside_suite);
