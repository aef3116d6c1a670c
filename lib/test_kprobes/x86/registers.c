// SPDX-License-Identifier: GPL-2.0
/* Handlers see and change the registers before and after the instruction. */
#include <asm/processor-flags.h>
#include <asm/segment.h>
#include <asm/text-patching.h>

#include "registers.h"

/* The registers that a handler has seen, and the word at the top of the stack. */
struct pt_regs kpt_seen;
static unsigned long seen_stack;

void kpt_see(const struct pt_regs *regs)
{
	kpt_seen = *regs;
	seen_stack = *(unsigned long *)regs->sp;
}

/* Set dx and cx to @p->data, and di to a good address. */
int kpt_act_see_and_change(struct test_probe *p, struct pt_regs *regs)
{
	kpt_see(regs);
	regs->dx = p->data;
	regs->cx = p->data;
	regs->di = (unsigned long)&kpt_state.memory[3];
	return 0;
}

static void post_change(struct kprobe *kp, struct pt_regs *regs, unsigned long flags)
{
	kpt_post_handler(kp, regs, flags);
	regs->r12 = regs->ax;
	regs->flags |= X86_EFLAGS_CF;
}

/* Expect that the handler has seen the registers that were @given. */
void kpt_expect_seen(struct kunit *test, const struct cpu_state *given)
{
	KUNIT_EXPECT_EQ(test, kpt_seen.ax, given->ax);
	KUNIT_EXPECT_EQ(test, kpt_seen.bx, given->bx);
	KUNIT_EXPECT_EQ(test, kpt_seen.cx, given->cx);
	KUNIT_EXPECT_EQ(test, kpt_seen.dx, given->dx);
	KUNIT_EXPECT_EQ(test, kpt_seen.si, given->si);
	KUNIT_EXPECT_EQ(test, kpt_seen.di, given->di);
	KUNIT_EXPECT_EQ(test, kpt_seen.bp, given->bp);
	KUNIT_EXPECT_EQ(test, kpt_seen.r8, given->r8);
	KUNIT_EXPECT_EQ(test, kpt_seen.r9, given->r9);
	KUNIT_EXPECT_EQ(test, kpt_seen.r10, given->r10);
	KUNIT_EXPECT_EQ(test, kpt_seen.r11, given->r11);
	KUNIT_EXPECT_EQ(test, kpt_seen.r12, given->r12);
	KUNIT_EXPECT_EQ(test, kpt_seen.r13, given->r13);
	KUNIT_EXPECT_EQ(test, kpt_seen.r14, given->r14);
	KUNIT_EXPECT_EQ(test, kpt_seen.r15, given->r15);
	KUNIT_EXPECT_EQ(test, kpt_seen.flags & ~X86_EFLAGS_RF, given->flags);
}

/* Expect the other registers that the handler has seen, and @stack at the top of the stack. */
void kpt_expect_seen_frame(struct kunit *test, unsigned long ip, unsigned long stack)
{
	KUNIT_EXPECT_EQ(test, kpt_seen.ip, ip);
	KUNIT_EXPECT_EQ(test, kpt_seen.cs, __KERNEL_CS);
	KUNIT_EXPECT_EQ(test, kpt_seen.ss, __KERNEL_DS);
	KUNIT_EXPECT_EQ(test, kpt_seen.orig_ax, -1UL);
	KUNIT_EXPECT_EQ(test, seen_stack, stack);
}

/* Run @snippet with a bad di, and a probe whose handlers change it and other registers. */
static void run_changed(struct kunit *test, const struct snippet *snippet, bool post,
			unsigned int input, unsigned long value)
{
	struct kprobe *a = kpt_snippet_probe('a', snippet, post);
	struct cpu_state given;

	kpt_test_probe('a')->act = kpt_act_see_and_change;
	kpt_test_probe('a')->data = value;
	a->post_handler = post ? post_change : NULL;
	ASSERT_REGISTERED(test, a);
	kpt_set_input(input);
	kpt_state.di = (unsigned long)BAD_ADDRESS;
	given = kpt_state;
	kpt_run_snippet(snippet);
	kpt_expect_seen(test, &given);
	unregister_kprobe(a);
}

/* An instruction that is run as a copy, one that is emulated, and one that is stepped. */
static void handlers_see_and_change_registers(struct kunit *test)
{
	for (unsigned int i = 0; i < 4; i++) {
		bool post = i / 2;

		run_changed(test, kpt_find_snippet("add"), post, i, 1000);
		KUNIT_EXPECT_EQ(test, kpt_state.ax, INPUT_WORD(0) + 1000);
		KUNIT_EXPECT_EQ(test, kpt_state.r12, post ? kpt_state.ax : INPUT_WORD(11));
		KUNIT_EXPECT_EQ(test, kpt_state.flags & X86_EFLAGS_CF, post);

		run_changed(test, kpt_find_snippet("jrcxz"), post, i, 0);
		KUNIT_EXPECT_EQ(test, kpt_state.r14, 2);
		run_changed(test, kpt_find_snippet("jrcxz"), post, i, 1);
		KUNIT_EXPECT_EQ(test, kpt_state.r14, 1);
		KUNIT_EXPECT_EQ(test, kpt_state.flags & X86_EFLAGS_CF, post);

		run_changed(test, kpt_find_snippet("fault_load"), post, i, 0);
		KUNIT_EXPECT_EQ(test, kpt_state.ax, kpt_state.memory[3]);
		KUNIT_EXPECT_EQ(test, kpt_state.r12, post ? kpt_state.ax : INPUT_WORD(11));
		KUNIT_EXPECT_EQ(test, kpt_state.flags & X86_EFLAGS_CF, post);
	}
}

static void ip_is_after_the_breakpoint(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = kpt_post_probe('a', place->symbol);

	a->post_handler = kpt_record_post;
	kpt_test_probe('a')->act = kpt_act_record;
	ASSERT_REGISTERED(test, a);
	EXPECT_CALL(test, place, "aA");
	KUNIT_EXPECT_EQ(test, kpt_pre_ip, (unsigned long)a->addr + 1);
	if (kprobe_ftrace(a))
		KUNIT_EXPECT_EQ(test, kpt_post_ip, (unsigned long)a->addr + CALL_INSN_SIZE);
	else
		KUNIT_EXPECT_GT(test, kpt_post_ip, (unsigned long)a->addr);
}

static struct kunit_case kprobes_x86_registers_cases[] = {
	KUNIT_CASE(handlers_see_and_change_registers),
	KUNIT_CASE_PARAM(ip_is_after_the_breakpoint, kpt_place_gen_params),
	{ }
};

static struct kunit_suite kprobes_x86_registers_suite = {
	.name = "kprobes-x86-registers",
	.suite_init = kpt_start_suite,
	.init = kpt_start_test,
	.exit = kpt_end_test,
	.test_cases = kprobes_x86_registers_cases,
};

kunit_test_suite(kprobes_x86_registers_suite);
