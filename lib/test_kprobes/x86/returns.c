// SPDX-License-Identifier: GPL-2.0
/* What a return through a trampoline leaves as it was. */
#include <linux/ptrace.h>
#include <linux/string.h>

#include <asm/processor-flags.h>
#include <asm/segment.h>

#include "../return_probes.h"
#include "frames.h"
#include "registers.h"

static unsigned long seen_stack;

static void see_return(struct test_kretprobe *p, struct kretprobe_instance *ri,
		       struct pt_regs *regs)
{
	kpt_seen = *regs;
	seen_stack = *(unsigned long *)regs->sp;
}

static struct kretprobe *snippet_return_probe(char name, const struct snippet *snippet)
{
	struct kretprobe *rp = kpt_return_probe(name, NULL);

	rp->kp.addr = (kprobe_opcode_t *)snippet->code;
	return rp;
}

static void expect_seen_return(struct kunit *test, const struct snippet *snippet,
			       const struct cpu_state *left)
{
	const struct snippet *ret = kpt_find_snippet("ret");

	kpt_expect_seen(test, left);
	KUNIT_EXPECT_EQ(test, kpt_seen.ip, ret->code + ret->target);
	KUNIT_EXPECT_EQ(test, seen_stack, snippet->code);	/* what its caller has pushed */
	KUNIT_EXPECT_EQ(test, kpt_seen.orig_ax, -1UL);
	KUNIT_EXPECT_EQ(test, kpt_seen.cs, __KERNEL_CS);
	KUNIT_EXPECT_EQ(test, kpt_seen.ss, __KERNEL_DS);
}

/* All of them, and the flags, but for that of direction: it is clear at every return. */
static void return_leaves_registers(struct kunit *test)
{
	static const char * const names[] = { "add", "cli", "sti", "popf_off" };

	kpt_test_kretprobe('r')->on_return = see_return;
	for (unsigned int n = 0; n < ARRAY_SIZE(names); n++) {
		const struct snippet *snippet = kpt_find_snippet(names[n]);
		const struct cpu_state *expected = kpt_unprobed_states(test, snippet);
		struct kretprobe *r = snippet_return_probe('r', snippet);

		ASSERT_RETURN_PROBED(test, r);
		for (unsigned int i = 0; i < INPUTS; i++) {
			if (expected[i].flags & X86_EFLAGS_DF)
				continue;
			kpt_set_input(i);
			kpt_clear_journal();
			kpt_run_snippet(snippet);
			KUNIT_ASSERT_STREQ(test, kpt_journal, "rR");
			kpt_expect_state(test, &expected[i], "return-probed", i);
			expect_seen_return(test, snippet, &expected[i]);
		}
		unregister_kretprobe(r);
	}
}

static void change_result(struct test_kretprobe *p, struct kretprobe_instance *ri,
			  struct pt_regs *regs)
{
	regs->ax = 1066;
	regs->dx = ~regs->dx;
}

static void return_handler_changes_the_result(struct kunit *test)
{
	const struct snippet *snippet = kpt_find_snippet("nop");
	struct cpu_state *expected = kpt_unprobed_states(test, snippet);

	kpt_test_kretprobe('r')->on_return = change_result;
	ASSERT_RETURN_PROBED(test, snippet_return_probe('r', snippet));
	for (unsigned int i = 0; i < 2; i++) {
		expected[i].ax = 1066;
		expected[i].dx = ~expected[i].dx;
		kpt_set_input(i);
		kpt_run_snippet(snippet);
		kpt_expect_state(test, &expected[i], "return-probed", i);
	}
}

/* A function that ends in a jump to another one. */
u64 kprobes_test_tail(u64 arg);

asm(".pushsection .text\n"
    ".balign 16\n"
    ".globl kprobes_test_tail\n"
    ".type kprobes_test_tail, @function\n"
    "kprobes_test_tail:\n"
    ASM_ENDBR
    "	lea 10(%rdi), %rdi\n"
    "	jmp kprobes_test_frame\n"
    "	int3\n"
    ".size kprobes_test_tail, . - kprobes_test_tail\n"
    ".popsection\n");

/* Its return is that of both. */
static void functions_return_together(struct kunit *test)
{
	static const struct place tail = {
		"kprobes_test_tail", kprobes_test_tail, kprobes_test_tail, ARG + 11
	};
	static const char names[] = "rstu";
	struct kretprobe *r = kpt_return_probe('r', "kprobes_test_tail");
	struct kretprobe *s = kpt_return_probe('s', "kprobes_test_frame");
	struct kretprobe *t = kpt_return_probe('t', "kprobes_test_frame");
	struct kretprobe *u = kpt_return_probe('u', "kprobes_test_tail");

	ASSERT_RETURN_PROBED(test, r);
	EXPECT_CALL(test, &tail, "rR");
	ASSERT_RETURN_PROBED(test, s);
	EXPECT_CALL(test, &tail, "rsSR");
	ASSERT_RETURN_PROBED(test, t);
	ASSERT_RETURN_PROBED(test, u);
	EXPECT_CALL(test, &tail, "urtsSTRU");
	for (unsigned int i = 0; names[i]; i++) {
		KUNIT_EXPECT_EQ(test, kpt_test_kretprobe(names[i])->value, tail.result);
		KUNIT_EXPECT_EQ(test, kpt_test_kretprobe(names[i])->caller,
				kpt_test_kretprobe('r')->caller);
	}
	unregister_kretprobe(r);
	unregister_kretprobe(u);
	EXPECT_CALL(test, &tail, "tsST");
}

/* ENDBR is part of it, and what follows. */
static void entry_is_return_probed(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kretprobe *r = kpt_return_probe('r', place->symbol);

	for (unsigned int offset = 0; offset < TEXT_BYTES; offset++) {
		r->kp.addr = NULL;
		r->kp.offset = offset;
		if (offset && offset != ENDBR_SIZE) {
			EXPECT_RETURN_REFUSED(test, r, -EINVAL);
			continue;
		}
		ASSERT_RETURN_PROBED(test, r);
		EXPECT_CALL(test, place, "rR");
		unregister_kretprobe(r);
	}
}

static struct kunit_case kretprobes_x86_cases[] = {
	KUNIT_CASE(return_leaves_registers),
	KUNIT_CASE(return_handler_changes_the_result),
	KUNIT_CASE(functions_return_together),
	KUNIT_CASE_PARAM(entry_is_return_probed, kpt_place_gen_params),
	{ }
};

static struct kunit_suite kretprobes_x86_suite = {
	.name = "kretprobes-x86",
	.suite_init = kpt_start_return_suite,
	.init = kpt_start_return_test,
	.exit = kpt_end_return_test,
	.test_cases = kretprobes_x86_cases,
};

kunit_test_suite(kretprobes_x86_suite);
