// SPDX-License-Identifier: GPL-2.0
/*
 * Stack traces are right at each instruction: of a trampoline, a detour and the handlers
 * that these call. A trap after each instruction takes them.
 */
#include <linux/cpufeature.h>
#include <linux/irqflags.h>
#include <linux/kdebug.h>
#include <linux/jiffies.h>
#include <linux/notifier.h>
#include <linux/string.h>

#include <asm/debugreg.h>
#include <asm/processor-flags.h>
#include <asm/text-patching.h>

#include "../optimize.h"
#include "../return_probes.h"
#include "frames.h"
#include "jump_traces.h"
#include "snippets.h"

/* Call a function, with a trap after each instruction until it has returned. */
u64 kprobes_test_step(u64 arg, u64 (*function)(u64 arg));

asm(".pushsection .text\n"
    ".balign 16\n"
    ".globl kprobes_test_step\n"
    ".type kprobes_test_step, @function\n"
    "kprobes_test_step:\n"
    ASM_ENDBR
    "	push %rbx\n"
    "	pushfq\n"
    "	btsl $" __stringify(X86_EFLAGS_TF_BIT) ", (%rsp)\n"
    "	popfq\n"
    ANNOTATE_RETPOLINE_SAFE
    "	call *%rsi\n"
    "	pushfq\n"
    "	btrl $" __stringify(X86_EFLAGS_TF_BIT) ", (%rsp)\n"
    "	popfq\n"
    "	pop %rbx\n"
    ASM_RET
    ".size kprobes_test_step, . - kprobes_test_step\n"
    ".popsection\n");
STACK_FRAME_NON_STANDARD_FP(kprobes_test_step);

/**
 * struct steps - What the traps of kprobes_test_step() have found
 * @place:	Of the function's return address.
 * @trampoline:	What stood there when it was replaced.
 * @expected:	The trace of the first trap: nothing is replaced yet.
 * @frames:	How many entries it has.
 * @count:	How many traps there were.
 * @in_trampoline: One was in front of the trampoline's first instruction.
 * @bad:	How many had a trace that was wrong.
 * @bad_ip:	Where the first of these was.
 */
static struct steps {
	unsigned long *place;
	unsigned long trampoline;
	unsigned long expected[TRACE_LENGTH];
	unsigned int frames;
	unsigned int count;
	bool in_trampoline;
	unsigned int bad;
	unsigned long bad_ip;
} steps;

#define MAX_STEPS	100000

static unsigned int count_frames(const unsigned long *trace)
{
	unsigned int n = 0;

	while (trace[n])
		n++;
	return n;
}

/* Does a trace end in @caller, or begin there if that is 0, and its callers? */
static bool is_good_trace(const unsigned long *trace, unsigned long caller)
{
	const unsigned long *callers = steps.expected + 1;
	unsigned int above = count_frames(trace) - (steps.frames - 1);

	if ((int)above < !!caller || memcmp(trace + above, callers,
					    (steps.frames - 1) * sizeof(*trace)))
		return false;
	return caller ? trace[above - 1] == caller : !above;
}

static void check_step(struct pt_regs *regs)
{
	static unsigned long from_regs[TRACE_LENGTH], from_here[TRACE_LENGTH];
	unsigned long caller = steps.expected[0];
	bool returned;

	if (!steps.count++) {
		kpt_save_trace(steps.expected, regs);
		steps.frames = count_frames(steps.expected);
		steps.place = (unsigned long *)regs->sp;
		return;
	}
	if (regs->sp == (unsigned long)steps.place && *steps.place != caller)
		steps.trampoline = *steps.place;
	if (regs->ip == steps.trampoline)
		steps.in_trampoline = true;

	/* The trampoline is taken for the caller, and that is not above itself. */
	returned = regs->ip - caller < 16;
	kpt_save_trace(from_regs, regs);
	kpt_save_trace(from_here, NULL);
	if (is_good_trace(from_regs, returned || regs->ip == steps.trampoline ? 0 : caller) &&
	    is_good_trace(from_here, returned ? regs->ip : caller))
		return;
	if (!steps.bad++)
		steps.bad_ip = regs->ip;
}

static int on_trap(struct notifier_block *nb, unsigned long event, void *data)
{
	struct die_args *args = data;
	unsigned long *dr6 = (unsigned long *)args->err;

	if (event != DIE_DEBUG || current != kpt_tester || !(*dr6 & DR_STEP))
		return NOTIFY_DONE;
	*dr6 &= ~DR_STEP;
	check_step(args->regs);
	if (steps.count == MAX_STEPS)
		args->regs->flags &= ~X86_EFLAGS_TF;
	return NOTIFY_STOP;
}

static struct notifier_block trap_notifier = { .notifier_call = on_trap };

static const struct place stepped[] = {
	{ "kprobes_test_frame", kprobes_test_frame, kprobes_test_frame,
	  ARG * NSEC_PER_SEC + 1 },
	{ "nsecs_to_jiffies64", nsecs_to_jiffies64, nsecs_to_jiffies64, ARG * HZ },
};

KUNIT_ARRAY_PARAM_DESC(stepped, stepped, symbol);

/* A generic retpoline has, for an instruction or two, a return address too many. */
static void need_traces_at_each_instruction(struct kunit *test)
{
	if (!IS_ENABLED(CONFIG_UNWINDER_ORC))
		kunit_skip(test, "needs the ORC unwinder");
	if (boot_cpu_has(X86_FEATURE_RETPOLINE) && !boot_cpu_has(X86_FEATURE_RETPOLINE_LFENCE))
		kunit_skip(test, "the stack cannot be walked in generic retpolines");
}

static void real_callers_are_in_traces_at_each_instruction(struct kunit *test)
{
	const struct place *place = test->param_value;
	unsigned long flags;
	u64 result;

	need_traces_at_each_instruction(test);
	memset(&steps, 0, sizeof(steps));
	ASSERT_RETURN_PROBED(test, kpt_return_probe('r', place->symbol));
	ASSERT_RETURN_PROBED(test, kpt_return_probe('s', place->symbol));
	KUNIT_ASSERT_EQ(test, register_die_notifier(&trap_notifier), 0);
	local_irq_save(flags);
	result = kprobes_test_step(ARG * NSEC_PER_SEC, place->call);
	local_irq_restore(flags);
	unregister_die_notifier(&trap_notifier);

	KUNIT_EXPECT_EQ(test, result, place->result);
	KUNIT_EXPECT_STREQ(test, kpt_journal, "srRS");
	KUNIT_EXPECT_TRUE(test, steps.in_trampoline);
	KUNIT_EXPECT_LT(test, steps.count, MAX_STEPS);
	KUNIT_EXPECT_GT(test, steps.frames, 3);
	KUNIT_EXPECT_EQ_MSG(test, steps.bad, 0, "of %u, the first one at %pS", steps.count,
			    (void *)steps.bad_ip);
}

/* Where the detour of the probe is, which a test steps through. */
static unsigned long detour;
static unsigned int steps_in_detour, steps_in_copies;

#define DETOUR_BYTES	512

static int on_trap_of_detour(struct notifier_block *nb, unsigned long event, void *data)
{
	struct die_args *args = data;
	unsigned long ip = args->regs->ip;

	if (event == DIE_DEBUG && current == kpt_tester && ip - detour < DETOUR_BYTES) {
		if (kpt_journal[0])
			steps_in_copies++;
		steps_in_detour++;
	}
	return on_trap(nb, event, data);
}

static struct notifier_block detour_trap_notifier = { .notifier_call = on_trap_of_detour };

static unsigned long jump_target(const struct kprobe *a)
{
	s32 offset;

	memcpy(&offset, a->addr + 1, sizeof(offset));
	return (unsigned long)a->addr + JMP32_INSN_SIZE + offset;
}

static void callers_are_in_traces_at_each_instruction_of_optimized(struct kunit *test)
{
	const struct traced_insn *insn = test->param_value;
	struct kprobe *a;
	unsigned long flags;
	u64 result;

	need_traces_at_each_instruction(test);
	a = kpt_traced_insn_probe(test);
	for (int changed = 0; changed < 2; changed++) {
		memset(&steps, 0, sizeof(steps));
		steps_in_detour = 0;
		steps_in_copies = 0;
		detour = jump_target(a);
		kpt_clear_journal();
		KUNIT_ASSERT_EQ(test, register_die_notifier(&detour_trap_notifier), 0);
		local_irq_save(flags);
		result = kprobes_test_step(ARG, insn->function);
		local_irq_restore(flags);
		unregister_die_notifier(&detour_trap_notifier);

		KUNIT_EXPECT_EQ(test, result, ARG + 1);
		KUNIT_EXPECT_STREQ(test, kpt_journal, changed ? "ba" : "a");
		KUNIT_EXPECT_LT(test, steps.count, MAX_STEPS);
		KUNIT_EXPECT_GT(test, steps.frames, 3);
		KUNIT_EXPECT_GT(test, steps_in_detour, 30);
		KUNIT_EXPECT_GT(test, steps_in_copies, 17);
		KUNIT_EXPECT_EQ_MSG(test, steps.bad, 0, "of %u, the first one at %pS, detour+%#lx",
				    steps.count, (void *)steps.bad_ip, steps.bad_ip - detour);
		if (!changed) {
			struct kprobe *b = kpt_probe('b', insn->symbol);

			b->offset = ENDBR_SIZE + insn->offset;
			ASSERT_REGISTERED(test, b);
			ASSERT_OPTIMIZED(test, b);
		}
	}
}

static struct kunit_case kprobes_x86_steps_cases[] = {
	KUNIT_CASE_PARAM(real_callers_are_in_traces_at_each_instruction, stepped_gen_params),
	KUNIT_CASE_PARAM(callers_are_in_traces_at_each_instruction_of_optimized,
			 kpt_traced_insn_gen_params),
	{ }
};

static struct kunit_suite kprobes_x86_steps_suite = {
	.name = "kprobes-x86-steps",
	.suite_init = kpt_start_return_suite,
	.init = kpt_start_return_test,
	.exit = kpt_end_return_test,
	.test_cases = kprobes_x86_steps_cases,
};

kunit_test_suite(kprobes_x86_steps_suite);
