// SPDX-License-Identifier: GPL-2.0
/* Instructions that a jump displaces do the same in its detour. */
#include <linux/cpufeature.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/string.h>

#include <asm/insn.h>
#include <asm/text-patching.h>

#include "../interrupt.h"
#include "../optimize.h"
#include "../return_probes.h"
#include "functions.h"
#include "jump_code.h"
#include "jump_snippets.h"

/* The text of a snippet without a probe, from the instruction on. */
static u8 unprobed_insn[TEXT_BYTES];

static const u8 *insn_text(const struct snippet *snippet)
{
	return (const u8 *)kpt_insn_address(snippet);
}

static void keep_text(const struct snippet *snippet)
{
	memcpy(unprobed_insn, insn_text(snippet), TEXT_BYTES);
}

/* Expect that the text after the first @changed bytes is as it was. */
static void expect_text(struct kunit *test, const struct snippet *snippet, unsigned int changed)
{
	KUNIT_EXPECT_MEMEQ(test, insn_text(snippet) + changed, unprobed_insn + changed,
			   TEXT_BYTES - changed);
}

/* However the text is patched: a jump of two bytes does not end the instruction. */
static void expect_no_insn_after_first_byte(struct kunit *test, const struct snippet *snippet)
{
	for (s32 offset = 1; offset < snippet->length; offset++) {
		struct kprobe kp = { .addr = (kprobe_opcode_t *)insn_text(snippet) + offset };

		KUNIT_EXPECT_EQ(test, register_kprobe(&kp), -EILSEQ);
	}
}

static void assert_jump(struct kunit *test, const struct snippet *snippet, const struct kprobe *kp)
{
	if (boot_cpu_has(X86_FEATURE_RETPOLINE_LFENCE) && !strcmp(snippet->name, "call_reg_last"))
		SKIP_REST(test, "LFENCE retpolines keep their places");
	ASSERT_OPTIMIZED(test, kp);
}

/* Without a trap after a return, a CPU may speculate straight on, into any other detour. */
static void expect_trap_after_return(struct kunit *test, const struct kprobe *kp)
{
	const u8 *code = kpt_detour_of(kp);
	struct insn insn;
	u8 opcode;

	do {
		KUNIT_ASSERT_EQ(test, insn_decode_kernel(&insn, code), 0);
		opcode = *code;
		code += insn.length;
	} while (opcode != RET_INSN_OPCODE && opcode != JMP32_INSN_OPCODE &&
		 opcode != INT3_INSN_OPCODE);
	if (opcode == RET_INSN_OPCODE)
		KUNIT_EXPECT_EQ(test, *code, INT3_INSN_OPCODE);
}

static void displaced_insns_do_the_same(struct kunit *test)
{
	const struct snippet *snippet = test->param_value;
	const struct cpu_state *expected = kpt_unprobed_states(test, snippet);
	struct kprobe *a = kpt_snippet_probe('a', snippet, false);
	bool relayed = snippet >= kprobes_test_relayed;

	keep_text(snippet);
	ASSERT_REGISTERED(test, a);
	assert_jump(test, snippet, a);
	KUNIT_EXPECT_EQ(test, *insn_text(snippet),
			relayed ? JMP8_INSN_OPCODE : JMP32_INSN_OPCODE);
	expect_text(test, snippet, relayed ? JMP8_INSN_SIZE : JMP32_INSN_SIZE);
	expect_trap_after_return(test, a);
	kpt_expect_same(test, snippet, expected, false);
	KUNIT_EXPECT_EQ(test, a->nmissed, 0);
	expect_no_insn_after_first_byte(test, snippet);

	unregister_kprobe(a);
	expect_text(test, snippet, 0);
	kpt_expect_unprobed(test, snippet, expected);
}

static void expect_same_with_post(struct kunit *test, const struct snippet *snippet,
				  const struct cpu_state *expected, const char *events)
{
	for (unsigned int i = 0; i < INPUTS; i++) {
		kpt_set_input(i);
		kpt_clear_journal();
		kpt_run_snippet(snippet);
		KUNIT_ASSERT_STREQ(test, kpt_journal, events);
		KUNIT_ASSERT_EQ(test, kpt_pre_ip, kpt_insn_address(snippet) + 1);
		kpt_expect_state(test, &expected[i], "with a post handler", i);
	}
}

/* The first instruction runs between the handlers, the others after them. */
static void displaced_insns_do_the_same_with_post_handlers(struct kunit *test)
{
	const struct snippet *snippet = test->param_value;
	const struct cpu_state *expected = kpt_unprobed_states(test, snippet);
	struct kprobe *a = kpt_snippet_probe('a', snippet, true);
	struct kprobe *b = kpt_snippet_probe('b', snippet, false);

	ASSERT_REGISTERED(test, a);
	expect_same_with_post(test, snippet, expected, "aA");
	wait_for_kprobe_optimizer();
	expect_same_with_post(test, snippet, expected, "aA");
	/* A trap follows it, which restores what it changes before handlers are called. */
	if (!strcmp(snippet->name, "mov_ds"))
		KUNIT_EXPECT_FALSE(test, kprobe_optimized(a));
	ASSERT_REGISTERED(test, b);
	wait_for_kprobe_optimizer();
	expect_same_with_post(test, snippet, expected, "baA");
}

/* A hit inside a handler enters the detour, too, which then calls no handlers. */
static void skipped_displaced_insns_do_the_same(struct kunit *test)
{
	const struct snippet *snippet = test->param_value;
	struct kprobe *a = kpt_probe('a', TRACED->symbol);
	struct kprobe *b = kpt_snippet_probe('b', snippet, false);
	struct cpu_state *expected = kpt_unprobed_states(test, snippet);

	/* In a handler some leave something else than elsewhere: preempt_count differs. */
	kpt_register_skipping(test, a, snippet);
	for (unsigned int i = 1; i < INPUTS; i += 2) {
		kpt_set_input(i);
		EXPECT_CALL(test, TRACED, "a");
		expected[i] = kpt_state;
	}
	ASSERT_REGISTERED(test, b);
	assert_jump(test, snippet, b);
	kpt_expect_skipped(test, a, b, expected, "a");
}

/* The states between a breakpoint and a jump make no difference either. */
static void insns_do_the_same_while_they_become_optimized(struct kunit *test)
{
	const struct snippet *snippet = test->param_value;
	const struct cpu_state *expected = kpt_unprobed_states(test, snippet);
	struct kprobe *a = kpt_snippet_probe('a', snippet, false);
	unsigned int rounds = 0;

	ASSERT_REGISTERED(test, a);
	do {
		kpt_expect_same(test, snippet, expected, false);
		cond_resched();
		if (rounds++ == 1000)
			wait_for_kprobe_optimizer();
	} while (!kprobe_optimized(a) && rounds < 1002);
	assert_jump(test, snippet, a);
	kpt_expect_same(test, snippet, expected, false);
}

static void unfit_insn_keeps_its_breakpoint(struct kunit *test)
{
	const struct snippet *snippet = test->param_value;
	const struct cpu_state *expected = kpt_unprobed_states(test, snippet);
	struct kprobe *a = kpt_snippet_probe('a', snippet, false);
	struct kprobe *b = kpt_snippet_probe('b', PLAIN_SNIPPET, false);

	keep_text(snippet);
	ASSERT_REGISTERED(test, a);
	ASSERT_REGISTERED(test, b);
	ASSERT_OPTIMIZED(test, b);
	KUNIT_ASSERT_FALSE(test, kprobe_optimized(a));	/* with a jump it must not be run */
	KUNIT_EXPECT_EQ(test, *insn_text(snippet), INT3_INSN_OPCODE);
	expect_text(test, snippet, INT3_INSN_SIZE);

	for (unsigned int i = 0; i < INPUTS; i++) {
		kpt_set_input(i);
		kpt_clear_journal();
		kpt_run_snippet(snippet);
		kpt_expect_state(test, &expected[i], "with a breakpoint", i);
	}
	unregister_kprobe(a);
	expect_text(test, snippet, 0);
}

static void unfit_insn_does_the_same_with_post_handler(struct kunit *test)
{
	const struct snippet *snippet = test->param_value;
	const struct cpu_state *expected = kpt_unprobed_states(test, snippet);
	struct kprobe *a = kpt_snippet_probe('a', snippet, true);
	unsigned int hits = 0;

	ASSERT_REGISTERED(test, a);
	KUNIT_ASSERT_FALSE(test, kpt_becomes_optimized(a));
	for (unsigned int i = 0; i < INPUTS; i++) {
		kpt_set_input(i);
		kpt_clear_journal();
		kpt_run_snippet(snippet);
		kpt_expect_state(test, &expected[i], "with a post handler", i);

		/* With some inputs, some jump over the instruction. */
		if (!*kpt_journal)
			continue;
		KUNIT_ASSERT_STREQ(test, kpt_journal, "aA");
		hits++;
	}
	KUNIT_EXPECT_GT(test, hits, 0);
}

/* Subtract @level from a preemption count, and add it again. */
void kprobes_test_lowering(void *preempt_count, u32 level);

KPT_ASM_FUNCTION(kprobes_test_lowering,
		 "{disp32} subl " ARG2_32 ", (" ARG1 ")\n"
		 "{disp32} addl " ARG2_32 ", (" ARG1 ")\n"
		 RETURN);

static enum hrtimer_restart lower_level(struct hrtimer *timer)
{
	kprobes_test_lowering(raw_cpu_ptr(&__preempt_count), HARDIRQ_OFFSET);
	return kpt_interrupt(timer);
}

/* A hit in the interrupt of a handler is no longer above it when the instruction has run. */
static void insn_lowers_context_level(struct kunit *test)
{
	struct kprobe *a = kpt_probe('a', TARGET->symbol);
	struct kprobe *b = kpt_post_probe('b', "kprobes_test_lowering");
	struct kprobe *c = kpt_probe('c', "kprobes_test_lowering");
	struct kprobe *d = kpt_post_probe('d', "kprobes_test_lowering");

	kpt_prepare_interrupt(lower_level);
	b->offset = ENDBR_SIZE;
	c->offset = ENDBR_SIZE;
	d->offset = ENDBR_SIZE;
	c->flags = KPROBE_FLAG_REENTRANT;
	d->flags = KPROBE_FLAG_REENTRANT;
	kpt_test_probe('a')->act = kpt_act_wait_for_interrupt;
	ASSERT_REGISTERED(test, a);
	ASSERT_REGISTERED(test, b);
	ASSERT_REGISTERED(test, c);
	ASSERT_REGISTERED(test, d);
	ASSERT_OPTIMIZED(test, a);
	ASSERT_OPTIMIZED(test, b);

	/* The function of the timer calls TARGET, too, whose probe has not opted in. */
	kpt_expect_interrupted_call(test, TARGET, "adcD");
	KUNIT_EXPECT_EQ(test, a->nmissed, 1);
	KUNIT_EXPECT_EQ(test, b->nmissed, 1);
	KUNIT_EXPECT_EQ(test, c->nmissed, 0);
	KUNIT_EXPECT_EQ(test, d->nmissed, 0);
}

/* Add @level to a preemption count, and subtract it again. */
void kprobes_test_raising(void *preempt_count, u32 level);

KPT_ASM_FUNCTION(kprobes_test_raising,
		 "{disp32} addl " ARG2_32 ", (" ARG1 ")\n"
		 "{disp32} subl " ARG2_32 ", (" ARG1 ")\n"
		 RETURN);

static void call_target_after(struct kprobe *kp, struct pt_regs *regs, unsigned long flags)
{
	kpt_post_handler(kp, regs, flags);
	if (current == kpt_tester && kpt_call(TARGET) != TARGET->result)
		kpt_note('!');
}

static void expect_own_hit_missed(struct kunit *test)
{
	kpt_clear_journal();
	scoped_guard(irqsave)
		kprobes_test_raising(raw_cpu_ptr(&__preempt_count), HARDIRQ_OFFSET);
	KUNIT_EXPECT_STREQ(test, kpt_journal, "aA");
}

/* What the handler hits is not above it, though it is above where the instruction began. */
static void insn_raises_context_level(struct kunit *test)
{
	struct kprobe *a = kpt_post_probe('a', "kprobes_test_raising");
	struct kprobe *b = kpt_probe('b', TARGET->symbol);

	a->offset = ENDBR_SIZE;
	a->post_handler = call_target_after;
	b->flags = KPROBE_FLAG_REENTRANT;
	ASSERT_REGISTERED(test, a);
	ASSERT_REGISTERED(test, b);
	expect_own_hit_missed(test);
	ASSERT_OPTIMIZED(test, b);
	expect_own_hit_missed(test);
	ASSERT_OPTIMIZED(test, a);
	expect_own_hit_missed(test);
	KUNIT_EXPECT_EQ(test, b->nmissed, 3);
}

static struct kunit_case optprobes_x86_insn_cases[] = {
	KUNIT_CASE_PARAM(displaced_insns_do_the_same, kpt_fit_gen_params),
	KUNIT_CASE_PARAM(displaced_insns_do_the_same_with_post_handlers, kpt_fit_gen_params),
	KUNIT_CASE_PARAM(skipped_displaced_insns_do_the_same, kpt_fit_gen_params),
	KUNIT_CASE_PARAM(insns_do_the_same_while_they_become_optimized, kpt_fit_gen_params),
	KUNIT_CASE_PARAM(unfit_insn_keeps_its_breakpoint, kpt_unfit_gen_params),
	KUNIT_CASE_PARAM(unfit_insn_does_the_same_with_post_handler, kpt_unfit_gen_params),
	KUNIT_CASE(insn_lowers_context_level),
	KUNIT_CASE(insn_raises_context_level),
	{ }
};

static struct kunit_suite optprobes_x86_insn_suite = {
	.name = "optprobes-x86-insn",
	.suite_init = kpt_start_return_suite,
	.init = kpt_start_return_test,
	.exit = kpt_end_return_test,
	.test_cases = optprobes_x86_insn_cases,
};

kunit_test_suite(optprobes_x86_insn_suite);
