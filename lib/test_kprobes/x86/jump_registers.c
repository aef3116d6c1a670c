// SPDX-License-Identifier: GPL-2.0
/* Handlers that a detour calls see and change the registers and the path. */
#include <linux/ptrace.h>
#include <linux/string.h>

#include <asm/processor-flags.h>

#include "../optimize.h"
#include "../return_probes.h"
#include "jump_snippets.h"
#include "registers.h"

/* Run PLAIN_SNIPPET with each input and kpt_act_see_and_change(), which stores 1000. */
static void expect_seen_and_changed(struct kunit *test)
{
	const struct snippet *snippet = PLAIN_SNIPPET;
	struct cpu_state given;

	for (unsigned int i = 0; i < INPUTS; i++) {
		kpt_set_input(i);
		given = kpt_state;
		kpt_run_snippet(snippet);
		kpt_expect_seen(test, &given);
		kpt_expect_seen_frame(test, kpt_insn_address(snippet) + 1,
				      kpt_snippet_return_address());
		KUNIT_EXPECT_EQ(test, kpt_state.ax, given.ax + 1000 + 1);
		KUNIT_EXPECT_EQ(test, kpt_state.dx, 1000);
		KUNIT_EXPECT_EQ(test, kpt_state.cx, 1000);
		KUNIT_EXPECT_EQ(test, kpt_state.di, (unsigned long)&kpt_state.memory[3]);
		KUNIT_EXPECT_EQ(test, kpt_state.bx, given.bx);
		KUNIT_EXPECT_EQ(test, kpt_state.si, given.si);
		KUNIT_EXPECT_EQ(test, kpt_state.bp, given.bp);
		KUNIT_EXPECT_EQ(test, kpt_state.SPARE_REG, given.SPARE_REG);
		KUNIT_EXPECT_EQ(test, kpt_state.flags & X86_EFLAGS_IF,
				given.flags & X86_EFLAGS_IF);
	}
}

static void handlers_of_optimized_see_and_change_registers(struct kunit *test)
{
	struct kprobe *a = kpt_snippet_probe('a', PLAIN_SNIPPET, false);
	struct kprobe *b = kpt_probe('b', NULL);

	kpt_test_probe('a')->act = kpt_act_see_and_change;
	kpt_test_probe('a')->data = 1000;
	ASSERT_REGISTERED(test, a);
	ASSERT_OPTIMIZED(test, a);
	expect_seen_and_changed(test);
	b->addr = a->addr;
	ASSERT_REGISTERED(test, b);
	ASSERT_OPTIMIZED(test, a);
	expect_seen_and_changed(test);
}

#define CHANGED_FLAGS	(X86_EFLAGS_CF | X86_EFLAGS_ZF | X86_EFLAGS_SF | X86_EFLAGS_OF | \
			 X86_EFLAGS_PF | X86_EFLAGS_AF | X86_EFLAGS_DF)

/* Return from the function, which has pushed nothing yet; change registers and flags. */
static int return_at_once(struct test_probe *p, struct pt_regs *regs)
{
	regs->ip = *(unsigned long *)regs->sp;
	regs->sp += sizeof(long);
	regs->ax = 1066;
	regs->SPARE_REG = 1485;
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
		expected.SPARE_REG = 1485;
		expected.flags ^= kpt_test_probe('a')->data;
		kpt_run_snippet(snippet);
		kpt_expect_state(test, &expected, how, i);
	}
}

static void handler_of_optimized_changes_path_stack_and_flags(struct kunit *test)
{
	const struct snippet *snippet = PLAIN_SNIPPET;
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

static void post_go_to_callee(struct kprobe *kp, struct pt_regs *regs, unsigned long flags)
{
	kpt_post_handler(kp, regs, flags);
	regs->ip = (unsigned long)kprobes_test_callee;
	regs->bx = 1848;
}

/* Expect that the probed instruction has run, and then kprobes_test_callee(). */
static void expect_callee(struct kunit *test, const char *events, const char *how)
{
	struct cpu_state expected;

	for (unsigned int i = 0; i < INPUTS; i++) {
		kpt_set_input(i);
		expected = kpt_state;
		expected.ax += expected.dx + 1;
		expected.bx = 1848;
		kpt_clear_journal();
		kpt_run_snippet(PLAIN_SNIPPET);
		KUNIT_ASSERT_STREQ(test, kpt_journal, events);
		expected.flags = kpt_state.flags;
		expected.CALLER_REG = kpt_state.CALLER_REG;
		kpt_expect_state(test, &expected, how, i);
	}
}

static void post_handler_of_optimized_changes_path(struct kunit *test)
{
	const struct snippet *snippet = PLAIN_SNIPPET;
	struct kprobe *a = kpt_snippet_probe('a', snippet, true);
	struct kprobe *b = kpt_snippet_probe('b', snippet, false);

	a->post_handler = post_go_to_callee;
	ASSERT_REGISTERED(test, a);
	expect_callee(test, "aA", "with a breakpoint");
	ASSERT_OPTIMIZED(test, a);
	expect_callee(test, "aA", "optimised");
	ASSERT_REGISTERED(test, b);
	ASSERT_OPTIMIZED(test, b);
	expect_callee(test, "baA", "optimised, of two");
}

static struct kunit_case optprobes_x86_registers_cases[] = {
	KUNIT_CASE(handlers_of_optimized_see_and_change_registers),
	KUNIT_CASE(handler_of_optimized_changes_path_stack_and_flags),
	KUNIT_CASE(post_handler_of_optimized_changes_path),
	{ }
};

static struct kunit_suite optprobes_x86_registers_suite = {
	.name = "optprobes-x86-registers",
	.suite_init = kpt_start_return_suite,
	.init = kpt_start_return_test,
	.exit = kpt_end_return_test,
	.test_cases = optprobes_x86_registers_cases,
};

kunit_test_suite(optprobes_x86_registers_suite);
