// SPDX-License-Identifier: GPL-2.0
/* Stack traces from handlers that a detour calls. */
#include <linux/hrtimer.h>

#include <asm/irq_regs.h>

#include "../interrupt.h"
#include "../optimize.h"
#include "../return_probes.h"
#include "jump_snippets.h"
#include "jump_traces.h"

/* A function that calls another one, by an instruction that jumps displace. */
u64 kprobes_test_calling(u64 arg);

asm(".pushsection .text\n"
    ".balign 16\n"
    ".globl kprobes_test_calling\n"
    ".type kprobes_test_calling, @function\n"
    "kprobes_test_calling:\n"
    ASM_ENDBR
    "	push %rbx\n"
    "	lea 1(%rdi), %rbx\n"
    "	push %rbx\n"
    "	lea -1(%rbx), %rdi\n"
    "	call kprobes_test_frame\n"
    "	pop %rdi\n"
    "	sub %rdi, %rbx\n"
    "	add %rbx, %rax\n"
    "	pop %rbx\n"
    RETURN
    "	int3\n"
    ".size kprobes_test_calling, . - kprobes_test_calling\n"
    ".popsection\n");

static noinline __noclone u64 kprobes_test_calling_middle(u64 arg)
{
	return kprobes_test_calling(arg) + 1;
}

static const char * const frame_callers[] = {
	"kprobes_test_frame", "kprobes_test_middle", NULL
};

static const char * const calling_callers[] = {
	"kprobes_test_calling", "kprobes_test_calling_middle", NULL
};

#define FRAME(where)							\
	{ "kprobes_test_frame", where,					\
	  kprobes_test_frame, kprobes_test_middle, frame_callers }
#define CALLING(where)							\
	{ "kprobes_test_calling", where,				\
	  kprobes_test_calling, kprobes_test_calling_middle, calling_callers }

static const struct traced_insn traced_insns[] = {
	FRAME(0), FRAME(1), FRAME(3), FRAME(7),
	CALLING(0), CALLING(1), CALLING(5), CALLING(6), CALLING(10), CALLING(15),
};

static void traced_insn_desc(const struct traced_insn *insn, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%s+%u", insn->symbol, insn->offset);
}

KUNIT_ARRAY_PARAM(traced_insn, traced_insns, traced_insn_desc);

const void *kpt_traced_insn_gen_params(const void *prev, char *desc)
{
	return traced_insn_gen_params(prev, desc);
}

struct kprobe *kpt_traced_insn_probe(struct kunit *test)
{
	const struct traced_insn *insn = test->param_value;
	struct kprobe *a = kpt_probe('a', insn->symbol);

	if (!IS_ENABLED(CONFIG_UNWINDER_ORC))
		kunit_skip(test, "needs the ORC unwinder");
	a->offset = ENDBR_SIZE + insn->offset;
	ASSERT_REGISTERED(test, a);
	ASSERT_OPTIMIZED(test, a);
	return a;
}

static void callers_are_in_traces_of_optimized(struct kunit *test)
{
	const struct traced_insn *insn = test->param_value;

	kpt_traced_insn_probe(test);
	kpt_test_probe('a')->act = kpt_act_trace;
	for (int shared = 0; shared < 2; shared++) {
		kpt_trace_from_here[0] = 0;
		kpt_trace_from_regs[0] = 0;
		KUNIT_EXPECT_EQ(test, insn->caller(ARG), ARG + 2);
		kpt_expect_trace(test, kpt_trace_from_here, insn->callers, "pre handler", insn->offset);
		kpt_expect_trace(test, kpt_trace_from_regs, insn->callers + 1, "registers", insn->offset);
		KUNIT_EXPECT_TRUE(test, kpt_is_in(kpt_trace_from_regs[0], insn->callers[1]));
		if (!shared) {
			struct kprobe *b = kpt_probe('b', insn->symbol);

			b->offset = ENDBR_SIZE + insn->offset;
			ASSERT_REGISTERED(test, b);
			wait_for_kprobe_optimizer();
		}
	}
}

static enum hrtimer_restart interrupt_and_walk(struct hrtimer *timer)
{
	kpt_save_trace(kpt_trace_from_here, NULL);
	kpt_save_trace(kpt_trace_from_regs, get_irq_regs());
	return kpt_interrupt(timer);
}

static void callers_are_in_traces_of_interrupts_of_optimized(struct kunit *test)
{
	const struct traced_insn *insn = test->param_value;

	kpt_prepare_interrupt(interrupt_and_walk);
	kpt_traced_insn_probe(test);
	kpt_test_probe('a')->act = kpt_act_wait_for_interrupt;
	KUNIT_EXPECT_EQ(test, insn->caller(ARG), ARG + 2);
	kpt_expect_interrupt(test);
	kpt_expect_trace(test, kpt_trace_from_here, insn->callers, "interrupt", insn->offset);
	kpt_expect_trace(test, kpt_trace_from_regs, insn->callers, "interrupt's registers", insn->offset);
}

static struct kunit_case optprobes_x86_traces_cases[] = {
	KUNIT_CASE_PARAM(callers_are_in_traces_of_optimized, kpt_traced_insn_gen_params),
	KUNIT_CASE_PARAM(callers_are_in_traces_of_interrupts_of_optimized, kpt_traced_insn_gen_params),
	{ }
};

static struct kunit_suite optprobes_x86_traces_suite = {
	.name = "optprobes-x86-traces",
	.suite_init = kpt_start_jump_suite,
	.init = kpt_start_return_test,
	.exit = kpt_end_return_test,
	.test_cases = optprobes_x86_traces_cases,
};

kunit_test_suite(optprobes_x86_traces_suite);
