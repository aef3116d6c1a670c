// SPDX-License-Identifier: GPL-2.0
/* Handlers that a detour calls see the registers, and change them and the path. */
#include <linux/ptrace.h>

#include <asm/processor-flags.h>

#include "../optimize.h"
#include "../return_probes.h"
#include "jump_snippets.h"
#include "registers.h"

static unsigned long seen_stack;

static int see_and_change_in_detour(struct test_probe *p, struct pt_regs *regs)
{
	seen_stack = *(unsigned long *)regs->sp;
	return kpt_act_see_and_change(p, regs);
}

static void handlers_of_optimized_see_and_change_registers(struct kunit *test)
{
	const struct snippet *snippet = kpt_find_fit("plain"), *ret = kpt_find_snippet("ret");
	struct kprobe *a = kpt_snippet_probe('a', snippet, false);
	struct kprobe *b = kpt_probe('b', NULL);
	struct cpu_state given;

	kpt_test_probe('a')->act = see_and_change_in_detour;
	kpt_test_probe('a')->data = 1000;
	ASSERT_REGISTERED(test, a);
	for (unsigned int shared = 0; shared < 2; shared++) {
		ASSERT_OPTIMIZED(test, a);
		for (unsigned int i = 0; i < INPUTS; i++) {
			kpt_set_input(i);
			given = kpt_state;
			kpt_run_snippet(snippet);
			kpt_expect_seen(test, &given);
			KUNIT_EXPECT_EQ(test, kpt_seen.ip, kpt_insn_address(snippet) + 1);
			KUNIT_EXPECT_EQ(test, kpt_seen.cs, __KERNEL_CS);
			KUNIT_EXPECT_EQ(test, kpt_seen.ss, __KERNEL_DS);
			KUNIT_EXPECT_EQ(test, kpt_seen.orig_ax, -1UL);
			KUNIT_EXPECT_EQ(test, seen_stack, ret->code + ret->target);
			KUNIT_EXPECT_EQ(test, kpt_state.ax, 0x0101010101010101 + 1000 + 1);
			KUNIT_EXPECT_EQ(test, kpt_state.dx, 1000);
			KUNIT_EXPECT_EQ(test, kpt_state.cx, 1000);
			KUNIT_EXPECT_EQ(test, kpt_state.di, (unsigned long)&kpt_state.memory[3]);
			KUNIT_EXPECT_EQ(test, kpt_state.bx, given.bx);
			KUNIT_EXPECT_EQ(test, kpt_state.bp, given.bp);
			KUNIT_EXPECT_EQ(test, kpt_state.r15, given.r15);
			KUNIT_EXPECT_EQ(test, kpt_state.flags & X86_EFLAGS_IF,
					given.flags & X86_EFLAGS_IF);
		}
		b->addr = a->addr;
		if (!shared)
			ASSERT_REGISTERED(test, b);
	}
}

#define CHANGED_FLAGS	(X86_EFLAGS_CF | X86_EFLAGS_ZF | X86_EFLAGS_SF | X86_EFLAGS_OF | \
			 X86_EFLAGS_PF | X86_EFLAGS_AF | X86_EFLAGS_DF)

/* What the handler sees is at a function's entry: return from there. */
static int return_at_once(struct test_probe *p, struct pt_regs *regs)
{
	regs->ip = *(unsigned long *)regs->sp;
	regs->sp += sizeof(long);
	regs->ax = 1066;
	regs->r15 = 1485;
	regs->flags ^= p->data;
	return 1;
}

static void expect_return_at_once(struct kunit *test, const struct snippet *snippet,
				  const char *how)
{
	struct cpu_state expected;

	for (unsigned int i = 0; i < INPUTS; i++) {
		kpt_set_input(i);
		expected = kpt_state;
		expected.ax = 1066;
		expected.r15 = 1485;
		expected.flags ^= kpt_test_probe('a')->data;
		kpt_run_snippet(snippet);
		kpt_expect_state(test, &expected, how, i);
	}
}

static void path_of_optimized_is_changed_with_stack_and_flags(struct kunit *test)
{
	const struct snippet *snippet = kpt_find_fit("plain");
	struct kprobe *a = kpt_snippet_probe('a', snippet, false);
	struct kprobe *b = kpt_snippet_probe('b', snippet, false);

	kpt_test_probe('a')->act = return_at_once;
	for (int flip = 0; flip < 2; flip++) {
		kpt_test_probe('a')->data = flip ? CHANGED_FLAGS | X86_EFLAGS_IF : CHANGED_FLAGS;
		a->addr = (kprobe_opcode_t *)kpt_insn_address(snippet);
		b->addr = a->addr;
		ASSERT_REGISTERED(test, a);
		expect_return_at_once(test, snippet, "with a breakpoint");
		ASSERT_OPTIMIZED(test, a);
		expect_return_at_once(test, snippet, "optimised");
		unregister_kprobe(a);
		ASSERT_REGISTERED(test, b);
		ASSERT_REGISTERED(test, a);
		ASSERT_OPTIMIZED(test, a);
		kpt_clear_journal();
		expect_return_at_once(test, snippet, "optimised, of two");
		KUNIT_EXPECT_NULL(test, strchr(kpt_journal, 'b'));
		unregister_kprobe(a);
		unregister_kprobe(b);
	}
}

static void go_to_callee_after(struct kprobe *kp, struct pt_regs *regs, unsigned long flags)
{
	const struct snippet *kpt_call = kpt_find_snippet("call");

	kpt_post_handler(kp, regs, flags);
	regs->ip = kpt_call->code + kpt_call->target;
	regs->bx = 1848;
}

/* The probed instruction has run, the rest of the function has not: the callee returns for it. */
static void expect_callee_after(struct kunit *test, const char *events, const char *how)
{
	struct cpu_state expected;

	for (unsigned int i = 0; i < INPUTS; i++) {
		kpt_set_input(i);
		expected = kpt_state;
		expected.ax += expected.dx + 1;
		expected.bx = 1848;
		kpt_clear_journal();
		kpt_run_snippet(kpt_find_fit("plain"));
		KUNIT_ASSERT_STREQ(test, kpt_journal, events);
		expected.flags = kpt_state.flags;
		expected.r13 = kpt_state.r13;
		kpt_expect_state(test, &expected, how, i);
	}
}

static void path_of_optimized_is_changed_after(struct kunit *test)
{
	const struct snippet *snippet = kpt_find_fit("plain");
	struct kprobe *a = kpt_snippet_probe('a', snippet, true);
	struct kprobe *b = kpt_snippet_probe('b', snippet, false);

	a->post_handler = go_to_callee_after;
	ASSERT_REGISTERED(test, a);
	expect_callee_after(test, "aA", "with a breakpoint");
	ASSERT_OPTIMIZED(test, a);
	expect_callee_after(test, "aA", "optimised");
	ASSERT_REGISTERED(test, b);
	ASSERT_OPTIMIZED(test, b);
	expect_callee_after(test, "baA", "optimised, of two");
}

static struct kunit_case optprobes_x86_registers_cases[] = {
	KUNIT_CASE(handlers_of_optimized_see_and_change_registers),
	KUNIT_CASE(path_of_optimized_is_changed_with_stack_and_flags),
	KUNIT_CASE(path_of_optimized_is_changed_after),
	{ }
};

static struct kunit_suite optprobes_x86_registers_suite = {
	.name = "optprobes-x86-registers",
	.suite_init = kpt_start_jump_suite,
	.init = kpt_start_return_test,
	.exit = kpt_end_return_test,
	.test_cases = optprobes_x86_registers_cases,
};

kunit_test_suite(optprobes_x86_registers_suite);
