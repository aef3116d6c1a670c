// SPDX-License-Identifier: GPL-2.0
/* Stack traces are right at each instruction of a trampoline, a detour and their handlers. */
#include <linux/cpufeature.h>
#include <linux/irqflags.h>
#include <linux/kdebug.h>
#include <linux/jiffies.h>
#include <linux/notifier.h>
#include <linux/objtool.h>
#include <linux/string.h>
#include <linux/stringify.h>

#include <asm/asm.h>
#include <asm/processor-flags.h>
#include <asm/text-patching.h>

#include "../load.h"
#include "../optimize.h"
#include "../return_probes.h"
#include "frames.h"
#include "functions.h"
#include "jump_snippets.h"
#include "jump_traces.h"
#include "single_step.h"

/* Call @function with a trap after each instruction until it has returned. */
u64 kprobes_test_step(u64 arg, u64 (*function)(u64 arg));

/* The register of the second argument. On i386 the first one takes two. */
#ifdef CONFIG_X86_64
#define STEPPED_FUNCTION	"rsi"
#else
#define STEPPED_FUNCTION	"ecx"
#endif

KPT_ASM_FUNCTION(kprobes_test_step,
		 "push %" _ASM_BX "\n"
		 "pushf\n"
		 "btsl $" __stringify(X86_EFLAGS_TF_BIT) ", (%" _ASM_SP ")\n"
		 "popf\n"
		 ANNOTATE_RETPOLINE_SAFE "\n"
		 "call *%" STEPPED_FUNCTION "\n"
		 "pushf\n"
		 "btrl $" __stringify(X86_EFLAGS_TF_BIT) ", (%" _ASM_SP ")\n"
		 "popf\n"
		 "pop %" _ASM_BX "\n"
		 ASM_RET);
STACK_FRAME_NON_STANDARD_FP(kprobes_test_step);

/**
 * struct steps - What the traps of kprobes_test_step() have found
 * @place:	Where the return address of the stepped function is.
 * @caller:	That return address.
 * @trampoline:	What was put there instead.
 * @expected:	The trace of the first trap: nothing is replaced yet.
 * @frames:	Number of its entries.
 * @count:	Number of traps.
 * @in_trampoline: Whether one of them was at the trampoline's first instruction.
 * @function:	The stepped function.
 * @detour:	Address of the detour that is stepped through, or 0.
 * @in_detour:	Number of traps in it.
 * @in_copies:	Number of those after the first handler was called.
 * @unchecked:	Whether a handler is changing the path: no trace can be right.
 * @bad:	Number of traps with a wrong trace.
 * @bad_ip:	Address of the first of these.
 */
static struct steps {
	unsigned long *place;
	unsigned long caller;
	unsigned long trampoline;
	unsigned long expected[TRACE_LENGTH];
	unsigned int frames;
	unsigned int count;
	bool in_trampoline;
	unsigned long function;
	unsigned long detour;
	unsigned int in_detour;
	unsigned int in_copies;
	bool unchecked;
	unsigned int bad;
	unsigned long bad_ip;
} steps;

#define MAX_STEPS	100000
#define DETOUR_BYTES	512
#define FUNCTION_BYTES	64
#define BELOW_BYTES	256

static unsigned int count_frames(const unsigned long *trace)
{
	unsigned int n = 0;

	while (trace[n])
		n++;
	return n;
}

/* With frame pointers, traces do not show the caller, nor where that would return to. */
#define CALLER_IS_SHOWN		IS_ENABLED(CONFIG_UNWINDER_ORC)

/*
 * Return whether @trace ends with @caller and its callers, or is just the callers if
 * @caller is 0.
 */
static bool is_good_trace(const unsigned long *trace, unsigned long caller)
{
	const unsigned long *callers = steps.expected + CALLER_IS_SHOWN;
	unsigned int frames = steps.frames - CALLER_IS_SHOWN;
	int above = count_frames(trace) - frames;

	if (above < 0 || memcmp(trace + above, callers, frames * sizeof(*trace)))
		return false;
	if (!CALLER_IS_SHOWN)
		return true;
	if (above < !!caller)
		return false;
	return caller ? trace[above - 1] == caller : !above;
}

static bool is_shown(const unsigned long *trace, unsigned long start, unsigned long size)
{
	while (*trace && *trace - start >= size)
		trace++;
	return *trace;
}

/* Live patching looks for the function of a task that was preempted in a detour. */
static bool function_is_shown(const unsigned long *trace, unsigned long ip)
{
	if (!CALLER_IS_SHOWN || ip - steps.detour >= DETOUR_BYTES)
		return true;
	return is_shown(trace, steps.function, FUNCTION_BYTES) &&
	       !is_shown(trace, steps.detour, DETOUR_BYTES);
}

/*
 * With frame pointers, a trace ends at registers whose ip is the trampoline's symbol. On
 * i386, ENCODE_FRAME_POINTER takes two instructions: it ends between them, too.
 */
static bool can_walk_through(const struct pt_regs *regs)
{
	static const u8 and_ebp[] = { 0x81, 0xe5, 0xff, 0xff, 0xff, 0x7f };

	return CALLER_IS_SHOWN || (regs->ip != steps.trampoline &&
				   memcmp((void *)regs->ip, and_ebp, sizeof(and_ebp)));
}

/* On i386, no walk can begin at a frame pointer that is encoded. */
static bool can_walk_from(const struct pt_regs *regs)
{
	return can_walk_through(regs) && (!IS_ENABLED(CONFIG_X86_32) || regs->bp >= BIT(31));
}

/*
 * Do to the memory below the stack what an interrupt does. On i386 a trap does that, too: the
 * frames of these functions are there.
 */
static void overwrite_below(struct pt_regs *regs, u8 *saved)
{
	u8 *below = (u8 *)regs->sp - BELOW_BYTES;

	if (IS_ENABLED(CONFIG_X86_32))
		return;
	memcpy(saved, below, BELOW_BYTES);
	memset(below, 0xa5, BELOW_BYTES);
}

static void restore_below(struct pt_regs *regs, const u8 *saved)
{
	if (IS_ENABLED(CONFIG_X86_64))
		memcpy((u8 *)regs->sp - BELOW_BYTES, saved, BELOW_BYTES);
}

static unsigned long from_regs[TRACE_LENGTH], from_here[TRACE_LENGTH];

static void check_step(struct pt_regs *regs)
{
	static u8 saved[BELOW_BYTES];
	unsigned long caller = steps.caller;
	bool returned;

	if (!steps.count++) {
		kpt_save_trace(steps.expected, regs);
		steps.frames = count_frames(steps.expected);
		steps.place = (unsigned long *)regs->sp;
		steps.caller = *steps.place;
		return;
	}
	if (regs->sp == (unsigned long)steps.place && *steps.place != caller)
		steps.trampoline = *steps.place;
	if (regs->ip == steps.trampoline)
		steps.in_trampoline = true;
	if (READ_ONCE(steps.unchecked))
		return;

	/* Registers at the trampoline count as the caller's: the trace begins with its callers. */
	returned = regs->ip - caller < 16;
	overwrite_below(regs, saved);
	kpt_save_trace(from_regs, regs);
	kpt_save_trace(from_here, NULL);
	kpt_call(OTHER_TARGET);		/* see trace_from_nested() */
	restore_below(regs, saved);
	if ((!can_walk_from(regs) ||
	     is_good_trace(from_regs, returned || regs->ip == steps.trampoline ? 0 : caller)) &&
	    (!can_walk_through(regs) ||
	     is_good_trace(from_here, returned ? regs->ip : caller)) &&
	    function_is_shown(from_here, regs->ip))
		return;
	if (!steps.bad++)
		steps.bad_ip = regs->ip;
}

static void count_step_in_detour(unsigned long ip)
{
	if (ip - steps.detour >= DETOUR_BYTES)
		return;
	steps.in_detour++;
	if (kpt_journal[0])
		steps.in_copies++;
}

static int on_trap(struct notifier_block *nb, unsigned long event, void *data)
{
	struct die_args *args = data;

	if (!kpt_take_step(event, args))
		return NOTIFY_DONE;
	count_step_in_detour(args->regs->ip);
	check_step(args->regs);
	if (steps.count == MAX_STEPS)
		args->regs->flags &= ~X86_EFLAGS_TF;
	return NOTIFY_STOP;
}

static struct notifier_block trap_notifier = { .notifier_call = on_trap };

static const struct place stepped[] = {
	{ "kprobes_test_frame", kprobes_test_frame, kprobes_test_frame,
	  ARG * (u64)NSEC_PER_SEC + 1 },
	{ "nsecs_to_jiffies64", nsecs_to_jiffies64, nsecs_to_jiffies64, ARG * HZ },
};

KUNIT_ARRAY_PARAM_DESC(stepped, stepped, symbol);

static void skip_unless_stack_is_walked(struct kunit *test)
{
	if (!STACK_IS_WALKED)
		kunit_skip(test, "needs the ORC unwinder, or frame pointers");
	/* They have one return address too many for an instruction or two. */
	if (CALLER_IS_SHOWN && boot_cpu_has(X86_FEATURE_RETPOLINE) &&
	    !boot_cpu_has(X86_FEATURE_RETPOLINE_LFENCE))
		kunit_skip(test, "the stack cannot be walked in generic retpolines");
}

/* Step through a call of @function, expect right traces, and return its result. */
static u64 step_through(struct kunit *test, u64 (*function)(u64 arg), u64 arg,
			const u8 *detour)
{
	unsigned long flags, size = 16;
	u64 result;

	/* Only the frame pointer leads to the frame of a function that does this. */
	OPTIMIZER_HIDE_VAR(size);
	barrier_data(__builtin_alloca(size));

	memset(&steps, 0, sizeof(steps));
	steps.function = kpt_address(function);
	steps.detour = (unsigned long)detour;
	kpt_clear_journal();
	KUNIT_ASSERT_EQ(test, register_die_notifier(&trap_notifier), 0);
	local_irq_save(flags);
	result = kprobes_test_step(arg, function);
	local_irq_restore(flags);
	unregister_die_notifier(&trap_notifier);

	KUNIT_EXPECT_LT(test, steps.count, MAX_STEPS);
	KUNIT_EXPECT_GT(test, steps.frames, 3);
	KUNIT_EXPECT_EQ_MSG(test, steps.bad, 0, "of %u, the first one at %pS, detour+%#lx",
			    steps.count, (void *)steps.bad_ip, steps.bad_ip - steps.detour);
	return result;
}

static void trace_at_each_insn_shows_real_callers(struct kunit *test)
{
	const struct place *place = test->param_value;

	skip_unless_stack_is_walked(test);
	ASSERT_RETURN_PROBED(test, kpt_return_probe('r', place->symbol));
	ASSERT_RETURN_PROBED(test, kpt_return_probe('s', place->symbol));
	KUNIT_EXPECT_EQ(test, step_through(test, place->call, ARG * (u64)NSEC_PER_SEC, NULL),
			place->result);
	KUNIT_EXPECT_STREQ(test, kpt_journal, "srRS");
	KUNIT_EXPECT_TRUE(test, steps.in_trampoline);
}

/* Handlers preserve no register but those that C functions do. */
static int overwrite_registers(struct test_probe *p, struct pt_regs *regs)
{
#ifdef CONFIG_X86_64
	asm volatile("xor %%r8d, %%r8d\n xor %%r9d, %%r9d\n xor %%r10d, %%r10d\n"
		     "xor %%r11d, %%r11d" : : : "r8", "r9", "r10", "r11");
#endif
	return 0;
}

static void step_through_detour(struct kunit *test, const struct kprobe *a, const char *events)
{
	const struct traced_insn *insn = test->param_value;

	KUNIT_EXPECT_EQ(test, step_through(test, insn->function, ARG, kpt_detour_of(a)), ARG + 1);
	KUNIT_EXPECT_STREQ(test, kpt_journal, events);
	KUNIT_EXPECT_GT(test, steps.in_detour, 5);	/* the rest is in the body that it calls */
	KUNIT_EXPECT_GT(test, steps.in_copies, 3);
}

/* For one probe, and when there are two. */
static void trace_at_each_insn_of_detour_shows_callers(struct kunit *test)
{
	struct kprobe *a;

	skip_unless_stack_is_walked(test);
	kpt_test_probe('a')->act = overwrite_registers;
	a = kpt_register_traced_insn(test, 'a');
	step_through_detour(test, a, "a");
	kpt_register_traced_insn(test, 'b');
	step_through_detour(test, a, "ba");
}

/* A call is not displaced if it has a post handler. */
static bool is_at_call(const struct traced_insn *insn)
{
	const u8 *code = (const u8 *)insn->function + ENDBR_SIZE + insn->offset;

	return *code == CALL_INSN_OPCODE;
}

/* The detour calls a second body, which calls the post handler. */
static void trace_at_each_insn_of_detour_with_post_handler_shows_callers(struct kunit *test)
{
	const struct traced_insn *insn = test->param_value;

	skip_unless_stack_is_walked(test);
	if (is_at_call(insn))
		return;
	kpt_test_probe('a')->kp.post_handler = kpt_post_handler;
	kpt_test_probe('b')->kp.post_handler = kpt_post_handler;
	kpt_test_probe('a')->act = overwrite_registers;
	kpt_register_traced_insn(test, 'a');
	KUNIT_EXPECT_EQ(test, step_through(test, insn->function, ARG, NULL), ARG + 1);
	KUNIT_EXPECT_STREQ(test, kpt_journal, "aA");
	kpt_register_traced_insn(test, 'b');
	KUNIT_EXPECT_EQ(test, step_through(test, insn->function, ARG, NULL), ARG + 1);
	KUNIT_EXPECT_STREQ(test, kpt_journal, "baBA");
}

/* After the copy, which its slot follows by the stub that calls the post handler. */
static void trace_at_each_insn_after_copy_shows_callers(struct kunit *test)
{
	const struct traced_insn *insn = test->param_value;
	struct kprobe *a = kpt_post_probe('a', insn->symbol);

	skip_unless_stack_is_walked(test);
	a->offset = ENDBR_SIZE + insn->offset;
	kpt_test_probe('a')->act = overwrite_registers;
	ASSERT_REGISTERED(test, a);
	KUNIT_EXPECT_EQ(test, step_through(test, insn->function, ARG, NULL), ARG + 1);
	KUNIT_EXPECT_STREQ(test, kpt_journal, "aA");
	KUNIT_EXPECT_FALSE(test, kprobe_optimized(a));
}

static int step_after_second_push(struct test_probe *p, struct pt_regs *regs)
{
	WRITE_ONCE(steps.unchecked, true);
	kpt_go_after_second_push(regs);
	WRITE_ONCE(steps.unchecked, false);
	return 1;
}

/* From the change on, traces begin at the address that the handler has set. */
static void trace_at_each_insn_after_changed_path_shows_callers(struct kunit *test)
{
	struct kprobe *a, *c = kpt_probe('c', "kprobes_test_calling");

	skip_unless_stack_is_walked(test);
	a = kpt_register_go_after_second_push(test, step_after_second_push);
	KUNIT_EXPECT_EQ(test, step_through(test, kprobes_test_calling, ARG, kpt_detour_of(a)),
			ARG + 1);
	KUNIT_EXPECT_STREQ(test, kpt_journal, "a");

	c->offset = a->offset;
	ASSERT_REGISTERED(test, c);
	ASSERT_OPTIMIZED(test, a);
	KUNIT_EXPECT_EQ(test, step_through(test, kprobes_test_calling, ARG, kpt_detour_of(a)),
			ARG + 1);
	KUNIT_EXPECT_STREQ(test, kpt_journal, "ca");
}

/* A hit in each trap: as in an NMI, which may interrupt any instruction. */
static int trace_from_nested(struct kprobe *kp, struct pt_regs *regs)
{
	atomic_inc(&kpt_counting[0].hits);
	kpt_save_trace(from_here, NULL);
	return 0;
}

static void begin_nested_hits(struct kunit *test)
{
	struct kprobe *nested;

	skip_unless_stack_is_walked(test);
	kpt_prepare_counting(test);
	nested = kpt_counting_probe(0, kpt_address(OTHER_TARGET->function));
	nested->pre_handler = trace_from_nested;
	nested->flags = KPROBE_FLAG_REENTRANT;
	ASSERT_REGISTERED(test, nested);
}

/* They are missed only at the few instructions before an outer hit has stored its context. */
static void expect_nested_hits(struct kunit *test)
{
	unregister_kprobe(&kpt_counting[0].kp);	/* before the text is compared */
	KUNIT_EXPECT_GT(test, atomic_read(&kpt_counting[0].hits), 100);
	KUNIT_EXPECT_LT(test, kpt_counting[0].kp.nmissed, 20);
}

/* Hits at each instruction of a hit, or of a return, leave it as it was. */
static void hit_is_interrupted_at_each_insn(struct kunit *test)
{
	begin_nested_hits(test);
	trace_at_each_insn_after_changed_path_shows_callers(test);
	expect_nested_hits(test);
}

static void return_is_interrupted_at_each_insn(struct kunit *test)
{
	begin_nested_hits(test);
	trace_at_each_insn_shows_real_callers(test);
	expect_nested_hits(test);
}

static struct kunit_case kprobes_x86_steps_cases[] = {
	KUNIT_CASE_PARAM(trace_at_each_insn_shows_real_callers, stepped_gen_params),
	KUNIT_CASE_PARAM(trace_at_each_insn_of_detour_shows_callers,
			 kpt_traced_insn_gen_params),
	KUNIT_CASE_PARAM(trace_at_each_insn_of_detour_with_post_handler_shows_callers,
			 kpt_traced_insn_gen_params),
	KUNIT_CASE_PARAM(trace_at_each_insn_after_copy_shows_callers,
			 kpt_traced_insn_gen_params),
	KUNIT_CASE(trace_at_each_insn_after_changed_path_shows_callers),
	KUNIT_CASE(hit_is_interrupted_at_each_insn),
	KUNIT_CASE_PARAM(return_is_interrupted_at_each_insn, stepped_gen_params),
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
