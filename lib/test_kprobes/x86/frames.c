// SPDX-License-Identifier: GPL-2.0
/* Stack traces from handlers, and probes at all instructions of a function. */
#include <linux/ftrace.h>
#include <linux/irqflags.h>
#include <linux/sched.h>
#include <linux/time.h>

#include <asm/asm.h>
#include <asm/unwind.h>

#include "frames.h"
#include "functions.h"

/* A register that functions preserve, and where the instructions of kprobes_test_frame() are. */
#ifdef CONFIG_X86_64
#define SAVED_REG	"r12"
const unsigned int kpt_frame_offsets[FRAME_INSNS] = { 0, 1, 3, 7, 9, 10 };
#else
#define SAVED_REG	"esi"
const unsigned int kpt_frame_offsets[FRAME_INSNS] = { 0, 1, 2, 5, 6, 7 };
#endif

KPT_ASM_FUNCTION(kprobes_test_frame,
		 "push %" _ASM_BX "\n"
		 "push %" SAVED_REG "\n"
		 "lea 1(%" _ASM_ARG1 "), %" _ASM_AX "\n"
		 "pop %" SAVED_REG "\n"
		 "pop %" _ASM_BX "\n"
		 RETURN);

const struct place kpt_frame_place = {
	"kprobes_test_frame", kprobes_test_frame, kprobes_test_frame, ARG + 1
};

/* Prepare probe @name at instruction @insn of kprobes_test_frame(), with a pre handler. */
struct kprobe *kpt_frame_probe(char name, unsigned int insn)
{
	struct kprobe *kp = kpt_probe(name, "kprobes_test_frame");

	kp->addr = NULL;
	kp->offset = ENDBR_SIZE + kpt_frame_offsets[insn];
	kp->post_handler = NULL;
	return kp;
}

/* Prepare such a probe with a post handler, too. */
struct kprobe *kpt_post_frame_probe(char name, unsigned int insn)
{
	struct kprobe *kp = kpt_frame_probe(name, insn);

	kp->post_handler = kpt_post_handler;
	return kp;
}

static void each_insn_is_probed(struct kunit *test)
{
	struct kprobe *all[FRAME_INSNS];
	unsigned int i;

	for (i = 0; i < FRAME_INSNS; i++)
		all[i] = kpt_post_frame_probe('a' + i, i);
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

/*
 * Some instructions are boosted, one is emulated; ENDBR is skipped. The next one is probed, too:
 * there is no jump. At first no site has a copy that ends with post handlers.
 */
static void handlers_change_at_each_insn(struct kunit *test)
{
	struct kprobe *a, *b;

	for (unsigned int i = 0; i < 2 * (FRAME_INSNS + 1); i++) {
		unsigned int insn = i % (FRAME_INSNS + 1);

		a = kpt_post_frame_probe('a', insn % FRAME_INSNS);
		b = kpt_frame_probe('b', (insn + 1) % FRAME_INSNS);
		b->pre_handler = NULL;
		if (insn == FRAME_INSNS)
			a->offset = 0;
		if (i <= FRAME_INSNS)
			a->post_handler = NULL;
		ASSERT_REGISTERED(test, b);
		ASSERT_REGISTERED(test, a);
		kpt_expect_handlers_change(test, &kpt_frame_place, a);
		unregister_kprobe(a);
		unregister_kprobe(b);
		if (i <= FRAME_INSNS)
			kpt_wait_until_site_is_freed(test, a);
	}
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

/* Walk the stack, from here or from @regs; save return addresses, and a 0. */
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

/* Expect that @trace has @functions, up to a NULL, each called by the next one. */
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

	/* A walk from registers begins with the caller of their function. */
	kpt_expect_trace(test, kpt_trace_from_regs, functions + 1, "registers", insn);
	kpt_expect_trace(test, post_trace_from_regs, functions_after + 1, "registers after", insn);
	KUNIT_EXPECT_TRUE(test, kpt_is_in(kpt_trace_from_regs[0], functions[1]));
	KUNIT_EXPECT_TRUE(test, kpt_is_in(post_trace_from_regs[0], functions_after[1]));
}

static void stack_is_walked_from_each_insn(struct kunit *test)
{
	static const char * const functions[] = {
		"kprobes_test_frame", FRAMELESS_CALL_BY("kprobes_test_middle")
		"kprobes_test_outer", "stack_is_walked_from_each_insn", "kunit_try_run_case", NULL
	};
	static const char * const functions_returned_to[] = {
		"kprobes_test_middle", "kprobes_test_outer", "stack_is_walked_from_each_insn",
		"kunit_try_run_case", NULL
	};
	struct kprobe *a;

	if (!STACK_IS_WALKED)
		kunit_skip(test, "needs the ORC unwinder, or frame pointers");
	for (unsigned int insn = 0; insn < FRAME_INSNS; insn++) {
		bool returns = insn == FRAME_INSNS - 1;

		a = kpt_frame_probe('a', insn);
		a->post_handler = trace_post;
		kpt_test_probe('a')->act = kpt_act_trace;
		ASSERT_REGISTERED(test, a);
		KUNIT_EXPECT_EQ(test, kprobes_test_outer(ARG), ARG + 3);
		unregister_kprobe(a);
		expect_traces(test, functions, returns ? functions_returned_to : functions, insn);
	}
}

static void stack_is_walked_from_a_traced_function(struct kunit *test)
{
	static const char * const functions[] = {
		"mktime64", FRAMELESS_CALL_BY("kprobes_test_traced_outer")
		"stack_is_walked_from_a_traced_function", "kunit_try_run_case", NULL
	};
	struct kprobe *a = kpt_post_probe('a', "mktime64");

	if (!STACK_IS_WALKED)
		kunit_skip(test, "needs the ORC unwinder, or frame pointers");
	a->post_handler = trace_post;
	kpt_test_probe('a')->act = kpt_act_trace;
	ASSERT_REGISTERED(test, a);
	KUNIT_EXPECT_EQ(test, kprobes_test_traced_outer(ARG), TRACED->result + 1);
	expect_traces(test, functions, functions, 0);
}

static bool lockdep_in_handler;

static void see_lockdep(struct kprobe *kp, struct pt_regs *regs, unsigned long flags)
{
	lockdep_in_handler = lockdep_hardirqs_enabled();
}

/* What lockdep knows of interrupts is as before a hit, also where it is not told of them. */
static void lockdep_is_as_before(struct kunit *test)
{
	bool enabled = false;

	for (unsigned int insn = 0; insn < FRAME_INSNS; insn++) {
		struct kprobe *a = kpt_frame_probe('a', insn);

		a->post_handler = see_lockdep;
		ASSERT_REGISTERED(test, a);
		raw_local_irq_disable();
		kprobes_test_frame(ARG);
		enabled = lockdep_hardirqs_enabled();
		raw_local_irq_enable();
		KUNIT_EXPECT_EQ(test, enabled, IS_ENABLED(CONFIG_TRACE_IRQFLAGS));
		KUNIT_EXPECT_FALSE(test, lockdep_in_handler);

		/* An interrupt in between tells lockdep of its end. */
		for (int i = 0; i < 3; i++) {
			local_irq_disable();
			raw_local_irq_enable();
			kprobes_test_frame(ARG);
			raw_local_irq_disable();
			enabled = lockdep_hardirqs_enabled();
			lockdep_hardirqs_off(CALLER_ADDR0);
			local_irq_enable();
			if (!enabled)
				break;
		}
		KUNIT_EXPECT_FALSE(test, enabled);
		unregister_kprobe(a);
	}
}

static struct kunit_case kprobes_x86_frames_cases[] = {
	KUNIT_CASE(each_insn_is_probed),
	KUNIT_CASE(handlers_change_at_each_insn),
	KUNIT_CASE(stack_is_walked_from_each_insn),
	KUNIT_CASE(stack_is_walked_from_a_traced_function),
	KUNIT_CASE(lockdep_is_as_before),
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
