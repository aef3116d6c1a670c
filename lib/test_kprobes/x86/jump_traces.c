// SPDX-License-Identifier: GPL-2.0
/* Stack traces from handlers that a detour calls, and from interrupts of these. */
#include <linux/hrtimer.h>
#include <linux/string.h>
#include <linux/stringify.h>

#include <asm/irq_regs.h>

#include "../interrupt.h"
#include "../optimize.h"
#include "../return_probes.h"
#include "functions.h"
#include "jump_code.h"
#include "jump_snippets.h"
#include "jump_traces.h"

/* The first LEA is as long on i386: a jump in front of it displaces it, but not the next PUSH. */
KPT_ASM_FUNCTION(kprobes_test_calling,
		 "push " BX "\n"
		 ".rept 1 - " __stringify(REX_SIZE) "\n .byte 0x3e\n .endr\n"
		 "lea 1(" ARG1 "), " BX "\n"
		 "push " BX "\n"
		 "lea -1(" BX "), " ARG1 "\n"
		 "call kprobes_test_frame\n"
		 "pop " CX "\n"
		 "sub " CX ", " BX "\n"
		 "add " BX ", " AX "\n"
		 "pop " BX "\n"
		 RETURN);

KPT_ASM_FUNCTION(kprobes_test_narrow,
		 "push " BX "\n"
		 "lea 1(" ARG1 "), " BX "\n"
		 "1:	mov " BX ", " AX "\n"
		 "cmp %eax, %eax\n"
		 "jne 1b\n"
		 "pop " BX "\n"
		 RETURN
		 ".skip 32, 0xcc\n");

#ifdef CONFIG_UNWINDER_ORC
/* Return @arg + 1. The frame is found from r10, as in functions that align their stack. */
u64 kprobes_test_aligned(u64 arg);

KPT_ASM_FUNCTION(kprobes_test_aligned,
		 "lea 8(%rsp), %r10\n"
		 "and $-16, %rsp\n"
		 "push -8(%r10)\n"
		 "push %rbp\n"
		 "mov %rsp, %rbp\n"
		 "push %r10\n"
		 "sub $8, %rsp\n"
		 "call kprobes_test_frame\n"
		 "add $8, %rsp\n"
		 "pop %r10\n"
		 "pop %rbp\n"
		 "lea -8(%r10), %rsp\n"
		 RETURN);

static noinline __noclone u64 kprobes_test_aligned_middle(u64 arg)
{
	return kprobes_test_aligned(arg) + 1;
}

static const char * const aligned_callers[] = {
	"kprobes_test_aligned", "kprobes_test_aligned_middle", "call_traced_insn", NULL
};

#define ALIGNED(where)							\
	{ "kprobes_test_aligned", where,				\
	  kprobes_test_aligned, kprobes_test_aligned_middle, aligned_callers },
#else
#define ALIGNED(where)
#endif

static noinline __noclone u64 kprobes_test_calling_middle(u64 arg)
{
	return kprobes_test_calling(arg) + 1;
}

static noinline __noclone u64 kprobes_test_narrow_middle(u64 arg)
{
	return kprobes_test_narrow(arg) + 1;
}

static const char * const narrow_callers[] = {
	"kprobes_test_narrow", FRAMELESS_CALL_BY("kprobes_test_narrow_middle")
	"call_traced_insn", NULL
};

static const char * const frame_callers[] = {
	"kprobes_test_frame", FRAMELESS_CALL_BY("kprobes_test_middle") "call_traced_insn", NULL
};

static const char * const calling_callers[] = {
	"kprobes_test_calling", FRAMELESS_CALL_BY("kprobes_test_calling_middle")
	"call_traced_insn", NULL
};

#define FRAME(where)							\
	{ "kprobes_test_frame", where,					\
	  kprobes_test_frame, kprobes_test_middle, frame_callers }
#define CALLING(where)							\
	{ "kprobes_test_calling", where,				\
	  kprobes_test_calling, kprobes_test_calling_middle, calling_callers }
#define NARROW(where)							\
	{ "kprobes_test_narrow", where,					\
	  kprobes_test_narrow, kprobes_test_narrow_middle, narrow_callers }

static const struct traced_insn traced_insns[] = {
	FRAME(0), FRAME(1), FRAME(2 + REX_SIZE), FRAME(5 + 2 * REX_SIZE),
	CALLING(0), CALLING(1), CALLING(5), CALLING(6), CALLING(9 + REX_SIZE),
	CALLING(14 + REX_SIZE),
	NARROW(1),
	ALIGNED(0) ALIGNED(5) ALIGNED(9) ALIGNED(13)
};

static void traced_insn_desc(const struct traced_insn *insn, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%s+%u", insn->symbol, insn->offset);
}

KUNIT_ARRAY_PARAM(traced_insn, traced_insns, traced_insn_desc);

const void *kpt_traced_insn_gen_params(struct kunit *test, const void *prev, char *desc)
{
	return traced_insn_gen_params(test, prev, desc);
}

/* Register probe @name at the instruction that the test case has; wait for the jump. */
struct kprobe *kpt_register_traced_insn(struct kunit *test, char name)
{
	const struct traced_insn *insn = test->param_value;
	struct kprobe *kp = kpt_probe(name, insn->symbol);

	if (!STACK_IS_WALKED)
		kunit_skip(test, "needs the ORC unwinder, or frame pointers");
	kp->offset = ENDBR_SIZE + insn->offset;
	ASSERT_REGISTERED(test, kp);
	ASSERT_OPTIMIZED(test, kp);
	return kp;
}

static noinline __noclone u64 call_traced_insn(const struct traced_insn *insn)
{
	return insn->caller(ARG) + 1;
}

static void expect_traces_of_handler(struct kunit *test, const struct traced_insn *insn)
{
	kpt_trace_from_here[0] = 0;
	kpt_trace_from_regs[0] = 0;
	KUNIT_EXPECT_EQ(test, call_traced_insn(insn), ARG + 3);
	kpt_expect_trace(test, kpt_trace_from_here, insn->callers, "pre handler", insn->offset);
	kpt_expect_trace(test, kpt_trace_from_regs, insn->callers + 1, "registers", insn->offset);
	KUNIT_EXPECT_TRUE(test, kpt_is_in(kpt_trace_from_regs[0], insn->callers[1]));
}

static void trace_from_handler_of_optimized_shows_callers(struct kunit *test)
{
	kpt_register_traced_insn(test, 'a');
	kpt_test_probe('a')->act = kpt_act_trace;
	expect_traces_of_handler(test, test->param_value);
	kpt_register_traced_insn(test, 'b');
	expect_traces_of_handler(test, test->param_value);
}

#define SECOND_PUSH	(ENDBR_SIZE + 5)	/* offset in kprobes_test_calling() */

/* Do what the three instructions up to the call's argument do, and continue there. */
void kpt_go_after_second_push(struct pt_regs *regs)
{
	unsigned long *stack = (unsigned long *)regs->sp;

	*--stack = regs->bx;
	regs->bx = regs_get_kernel_argument(regs, 0) + 1;
	*--stack = regs->bx;
	regs->sp = (unsigned long)stack;
	regs->ip = kpt_address(kprobes_test_calling) + SECOND_PUSH + 1;
}

/*
 * Register probe 'a', whose handler @act goes after the second push of kprobes_test_calling(),
 * and probe 'b' at that push, which is not hit. Wait for the jump.
 */
struct kprobe *kpt_register_go_after_second_push(struct kunit *test,
						 int (*act)(struct test_probe *p,
							    struct pt_regs *regs))
{
	struct kprobe *a = kpt_probe('a', "kprobes_test_calling");
	struct kprobe *b = kpt_probe('b', "kprobes_test_calling");

	a->offset = ENDBR_SIZE;
	b->offset = SECOND_PUSH;
	kpt_test_probe('a')->act = act;
	ASSERT_REGISTERED(test, b);
	ASSERT_REGISTERED(test, a);
	ASSERT_OPTIMIZED(test, a);
	return a;
}

static int go_after_second_push_and_trace(struct test_probe *p, struct pt_regs *regs)
{
	kpt_go_after_second_push(regs);
	kpt_act_trace(p, regs);
	return 1;
}

/* The address that the handler sets is not that after a hit, though a probe is before it. */
static void trace_from_handler_that_changes_path_shows_callers(struct kunit *test)
{
	const struct traced_insn insn = CALLING(0);

	if (!STACK_IS_WALKED)
		kunit_skip(test, "needs the ORC unwinder, or frame pointers");
	kpt_register_go_after_second_push(test, go_after_second_push_and_trace);
	expect_traces_of_handler(test, &insn);
}

static enum hrtimer_restart interrupt_and_walk(struct hrtimer *timer)
{
	kpt_save_trace(kpt_trace_from_here, NULL);
	kpt_save_trace(kpt_trace_from_regs, get_irq_regs());
	return kpt_interrupt(timer);
}

static void trace_from_interrupt_of_optimized_shows_callers(struct kunit *test)
{
	const struct traced_insn *insn = test->param_value;

	kpt_prepare_interrupt(interrupt_and_walk);
	kpt_register_traced_insn(test, 'a');
	kpt_test_probe('a')->act = kpt_act_wait_for_interrupt;
	KUNIT_EXPECT_EQ(test, call_traced_insn(insn), ARG + 3);
	kpt_expect_interrupt(test);
	kpt_expect_trace(test, kpt_trace_from_here, insn->callers, "interrupt", insn->offset);
	kpt_expect_trace(test, kpt_trace_from_regs, insn->callers, "interrupt's registers",
			 insn->offset);
}

static struct kunit_case optprobes_x86_traces_cases[] = {
	KUNIT_CASE_PARAM(trace_from_handler_of_optimized_shows_callers,
			 kpt_traced_insn_gen_params),
	KUNIT_CASE_PARAM(trace_from_interrupt_of_optimized_shows_callers,
			 kpt_traced_insn_gen_params),
	KUNIT_CASE(trace_from_handler_that_changes_path_shows_callers),
	{ }
};

static struct kunit_suite optprobes_x86_traces_suite = {
	.name = "optprobes-x86-traces",
	.suite_init = kpt_start_return_suite,
	.init = kpt_start_return_test,
	.exit = kpt_end_return_test,
	.test_cases = optprobes_x86_traces_cases,
};

kunit_test_suite(optprobes_x86_traces_suite);
