// SPDX-License-Identifier: GPL-2.0
/* Stack traces from handlers; probes at all instructions of a function. */
#include <linux/sched.h>
#include <linux/time.h>

#include <asm/unwind.h>

#include "frames.h"
#include "snippets.h"

asm(".pushsection .text\n"
    ".balign 16\n"
    ".globl kprobes_test_frame\n"
    ".type kprobes_test_frame, @function\n"
    "kprobes_test_frame:\n"
    ASM_ENDBR
    "	push %rbx\n"
    "	push %r12\n"
    "	lea 1(%rdi), %rax\n"
    "	pop %r12\n"
    "	pop %rbx\n"
    ANNOTATE_RETPOLINE_SAFE
    "	ret\n"
    "	int3\n"
    ".size kprobes_test_frame, . - kprobes_test_frame\n"
    ".popsection\n");

const unsigned int kpt_frame_offsets[FRAME_INSNS] = { 0, 1, 3, 7, 9, 10 };

struct kprobe *kpt_frame_probe(char name, unsigned int insn)
{
	struct kprobe *kp = kpt_post_probe(name, "kprobes_test_frame");

	kp->offset = ENDBR_SIZE + kpt_frame_offsets[insn];
	return kp;
}

static void neighbours_are_probed(struct kunit *test)
{
	struct kprobe *all[FRAME_INSNS];
	unsigned int i;

	for (i = 0; i < FRAME_INSNS; i++)
		all[i] = kpt_frame_probe('a' + i, i);
	KUNIT_ASSERT_EQ(test, register_kprobes(all, FRAME_INSNS), 0);
	EXPECT_CALL(test, &kpt_frame_place, "aAbBcCdDeEfF");
	for (i = 0; i < FRAME_INSNS; i += 2)
		unregister_kprobe(all[i]);
	EXPECT_CALL(test, &kpt_frame_place, "bBdDfF");
	for (i = 0; i < FRAME_INSNS; i += 2) {
		all[i]->addr = NULL;
		all[i]->post_handler = NULL;
		ASSERT_REGISTERED(test, all[i]);
	}
	EXPECT_CALL(test, &kpt_frame_place, "abBcdDefF");
}

noinline __noclone u64 kprobes_test_middle(u64 arg)
{
	return kprobes_test_frame(arg) + 1;
}

static noinline __noclone u64 kprobes_test_outer(u64 arg)
{
	return kprobes_test_middle(arg) + 1;
}

static noinline __noclone u64 kprobes_test_traced_outer(u64 arg)
{
	return mktime64(arg, 1, 1, 0, 0, 0) + 1;
}

unsigned long kpt_trace_from_here[TRACE_LENGTH], kpt_trace_from_regs[TRACE_LENGTH];
static unsigned long post_trace_from_here[TRACE_LENGTH], post_trace_from_regs[TRACE_LENGTH];

/* Addresses on the stack, up to a 0. */
void kpt_save_trace(unsigned long *trace, struct pt_regs *regs)
{
	struct unwind_state unwind;
	unsigned int i = 0;

	for (unwind_start(&unwind, current, regs, NULL);
	     !unwind_done(&unwind) && i < TRACE_LENGTH - 1; unwind_next_frame(&unwind))
		trace[i++] = unwind_get_return_address(&unwind);
	trace[i] = 0;
}

int kpt_act_trace(struct test_probe *p, struct pt_regs *regs)
{
	kpt_save_trace(kpt_trace_from_here, NULL);
	kpt_save_trace(kpt_trace_from_regs, regs);
	return 0;
}

static void trace_post(struct kprobe *kp, struct pt_regs *regs, unsigned long flags)
{
	kpt_save_trace(post_trace_from_here, NULL);
	kpt_save_trace(post_trace_from_regs, regs);
}

/* Is each of the functions, up to a NULL, called by the next one? */
void kpt_expect_trace(struct kunit *test, const unsigned long *trace,
		      const char * const *functions, const char *what, unsigned int insn)
{
	unsigned int i = 0;

	while (trace[i] && !kpt_is_in(trace[i], functions[0]))
		i++;
	for (; *functions; i++, functions++) {
		KUNIT_ASSERT_NE_MSG(test, trace[i], 0, "%s: no %s, instruction %u", what,
				    *functions, insn);
				    KUNIT_EXPECT_TRUE_MSG(test, kpt_is_in(trace[i], *functions),
							  "%s: %pS instead of %s, instruction %u", what,
							  (void *)trace[i], *functions, insn);
				    }
}

static void expect_traces(struct kunit *test, const char * const *functions,
			  const char * const *functions_after, unsigned int insn)
{
	kpt_expect_trace(test, kpt_trace_from_here, functions, "pre handler", insn);
	kpt_expect_trace(test, post_trace_from_here, functions_after, "post handler", insn);

	/* From registers it is walked from their caller on. */
	kpt_expect_trace(test, kpt_trace_from_regs, functions + 1, "registers", insn);
	kpt_expect_trace(test, post_trace_from_regs, functions_after + 1, "registers after", insn);
	KUNIT_EXPECT_TRUE(test, kpt_is_in(kpt_trace_from_regs[0], functions[1]));
	KUNIT_EXPECT_TRUE(test, kpt_is_in(post_trace_from_regs[0], functions_after[1]));
}

static void stack_is_walked(struct kunit *test)
{
	static const char * const functions[] = {
		"kprobes_test_frame", "kprobes_test_middle", "kprobes_test_outer",
		"stack_is_walked", "kunit_try_run_case", NULL
	};
	struct kprobe *a;

	if (!IS_ENABLED(CONFIG_UNWINDER_ORC))
		kunit_skip(test, "needs the ORC unwinder");
	for (unsigned int insn = 0; insn < FRAME_INSNS; insn++) {
		bool returns = insn == FRAME_INSNS - 1;

		a = kpt_frame_probe('a', insn);
		a->addr = NULL;
		a->post_handler = trace_post;
		kpt_test_probe('a')->act = kpt_act_trace;
		ASSERT_REGISTERED(test, a);
		KUNIT_EXPECT_EQ(test, kprobes_test_outer(ARG), ARG + 3);
		unregister_kprobe(a);
		expect_traces(test, functions, functions + returns, insn);
	}
}

static void stack_is_walked_from_a_traced_function(struct kunit *test)
{
	static const char * const functions[] = {
		"mktime64", "kprobes_test_traced_outer",
		"stack_is_walked_from_a_traced_function", "kunit_try_run_case", NULL
	};
	struct kprobe *a = kpt_post_probe('a', "mktime64");

	if (!IS_ENABLED(CONFIG_UNWINDER_ORC))
		kunit_skip(test, "needs the ORC unwinder");
	a->post_handler = trace_post;
	kpt_test_probe('a')->act = kpt_act_trace;
	ASSERT_REGISTERED(test, a);
	KUNIT_EXPECT_EQ(test, kprobes_test_traced_outer(ARG), TRACED->result + 1);
	expect_traces(test, functions, functions, 0);
}

static struct kunit_case kprobes_x86_frames_cases[] = {
	KUNIT_CASE(neighbours_are_probed),
	KUNIT_CASE(stack_is_walked),
	KUNIT_CASE(stack_is_walked_from_a_traced_function),
	{ }
};

static struct kunit_suite kprobes_x86_frames_suite = {
	.name = "kprobes-x86-frames",
	.suite_init = kpt_start_suite,
	.init = kpt_start_test,
	.exit = kpt_end_test,
	.test_cases = kprobes_x86_frames_cases,
};

kunit_test_suite(kprobes_x86_frames_suite);
