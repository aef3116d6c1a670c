// SPDX-License-Identifier: GPL-2.0
/* Indirect calls of probed functions: with IBT, the CPU must find ENDBR there, and only there. */
#include <linux/module.h>
#include <linux/objtool.h>
#include <linux/string.h>

#include <asm/cpufeature.h>

#include "../return_probes.h"
#include "functions.h"
#include "jump_snippets.h"
#include "matrix_code.h"
#include "snippets.h"

/* A probe, one with a post handler, a return probe, a jumper probe: see @events. */
enum probe_user { PROBE, POST_PROBE, RETURN_PROBE, JUMPER_PROBE, USERS };

static const char * const events[USERS] = { "a", "aA", "rR", "j" };

static void note_jump(void)
{
	kpt_note('j');
	jprobe_return();
}

static struct jprobe jumper = { .entry = note_jump };

static int register_user(enum probe_user user, kprobe_opcode_t *addr, struct kprobe **kp)
{
	struct kretprobe *r = kpt_return_probe('r', NULL);

	switch (user) {
	case RETURN_PROBE:
		*kp = &r->kp;
		r->kp.addr = addr;
		return register_kretprobe(r);
	case JUMPER_PROBE:
		*kp = &jumper.kp;
		jumper.kp.addr = addr;
		return register_jprobe(&jumper);
	default:
		*kp = kpt_probe('a', NULL);
		(*kp)->addr = addr;
		(*kp)->post_handler = user == POST_PROBE ? kpt_post_handler : NULL;
		return register_kprobe(*kp);
	}
}

static void unregister_user(enum probe_user user)
{
	switch (user) {
	case RETURN_PROBE:
		unregister_kretprobe(&kpt_test_kretprobe('r')->rp);
		break;
	case JUMPER_PROBE:
		unregister_jprobe(&jumper);
		break;
	default:
		unregister_kprobe(&kpt_test_probe('a')->kp);
	}
}

static bool is_jump_expected(enum matrix_kind kind, enum probe_user user)
{
	return kind == KIND_JUMP || (kind == KIND_JUMP_EMULATE && user != POST_PROBE);
}

static void call_indirectly(enum matrix_kind kind, unsigned long code)
{
	kpt_set_input(0);
	kpt_clear_journal();
	kpt_run_code(&kpt_state, code);
	if (kind == KIND_FTRACE)
		matrix_clear_ftrace_lost(&kpt_state);
}

/*
 * With IBT, the CPU raises an exception if an indirect call finds no ENDBR. Without IBT, at
 * least the bytes must be there.
 */
static void expect_landing(struct kunit *test, enum matrix_kind kind, enum probe_user user,
			   unsigned int offset)
{
	const struct matrix_code *c = &kprobes_test_matrix[kind][SHAPE_WORK];
	struct cpu_state expected;
	struct kprobe *kp;

	call_indirectly(kind, c->twin);
	expected = kpt_state;
	KUNIT_ASSERT_EQ(test, register_user(user, (void *)c->code + offset, &kp), 0);
	wait_for_kprobe_optimizer();
	KUNIT_EXPECT_EQ(test, kprobe_ftrace(kp), kind == KIND_FTRACE);
	KUNIT_EXPECT_EQ(test, kprobe_optimized(kp), is_jump_expected(kind, user));
	KUNIT_EXPECT_MEMEQ(test, (void *)c->code, (void *)c->twin, ENDBR_SIZE);
	call_indirectly(kind, c->code);
	unregister_user(user);
	KUNIT_EXPECT_STREQ(test, kpt_journal, events[user]);
	kpt_expect_state(test, &expected, events[user], offset);
}

static void indirect_call_finds_landing_pad(struct kunit *test)
{
	const struct matrix_code (*codes)[SHAPES] = test->param_value;
	enum matrix_kind kind = codes - kprobes_test_matrix;

	for (enum probe_user user = 0; user < USERS; user++) {
		if (user == JUMPER_PROBE && !IS_ENABLED(CONFIG_JPROBES))
			continue;
		expect_landing(test, kind, user, 0);
		expect_landing(test, kind, user, ENDBR_SIZE);
	}
}

/* With ibt=warn, the kernel only warns of an indirect call that finds no ENDBR. */
static bool ibt_warns;
module_param(ibt_warns, bool, 0444);

static int keep_third_argument(struct test_probe *p, struct pt_regs *regs)
{
	p->data = regs_get_kernel_argument(regs, 2);
	return 0;
}

/* The kernel has warned that there is no ENDBR at @code, if the CPU looks for it. */
static void expect_warning(struct kunit *test, unsigned long code)
{
	unsigned long expected = cpu_feature_enabled(X86_FEATURE_IBT) ? code : 0;

	KUNIT_EXPECT_EQ(test, kpt_test_probe('b')->data, expected);
	kpt_test_probe('b')->data = 0;
}

static void expect_no_landing(struct kunit *test, unsigned long code)
{
	call_indirectly(KIND_JUMP, code);
	expect_warning(test, code);
}

/* Returns by an indirect jump, with the address in cx. */
void kprobes_test_jumping_back(void);

KPT_ASM_FUNCTION(kprobes_test_jumping_back,
		 "pop %" _ASM_CX "\n"
		 INDIRECT "jmp *%" _ASM_CX);
STACK_FRAME_NON_STANDARD(kprobes_test_jumping_back);

/* Neither in a function, nor in what probes make: that is for hits alone. */
static void indirect_call_finds_no_landing_pad_inside(struct kunit *test)
{
	const struct matrix_code *boost = &kprobes_test_matrix[KIND_BOOST][SHAPE_WORK];
	const struct matrix_code *jump = &kprobes_test_matrix[KIND_JUMP][SHAPE_WORK];
	unsigned long back = kpt_address(kprobes_test_jumping_back);
	/* 'b' is the warning. */
	const char *journal = cpu_feature_enabled(X86_FEATURE_IBT) ? "rbR" : "rR";
	struct kprobe *kp;

	if (cpu_feature_enabled(X86_FEATURE_IBT) && !ibt_warns)
		kunit_skip(test, "a missing ENDBR is a BUG here");
	KUNIT_ASSERT_EQ(test, register_kprobe(kpt_probe('b', "__warn")), 0);
	kpt_test_probe('b')->act = keep_third_argument;
	expect_no_landing(test, boost->twin + ENDBR_SIZE);

	KUNIT_ASSERT_EQ(test, register_user(PROBE, (void *)boost->code + ENDBR_SIZE, &kp), 0);
	expect_no_landing(test, (unsigned long)kp->ainsn.insn);
	unregister_user(PROBE);

	KUNIT_ASSERT_EQ(test, register_user(PROBE, (void *)jump->code + ENDBR_SIZE, &kp), 0);
	wait_for_kprobe_optimizer();
	if (kprobe_optimized(kp))
		expect_no_landing(test, (unsigned long)kpt_detour_of(kp));

	KUNIT_ASSERT_EQ(test, register_user(RETURN_PROBE, (void *)back, &kp), 0);
	call_indirectly(KIND_JUMP, back);
	KUNIT_EXPECT_STREQ(test, kpt_journal, journal);
	expect_warning(test, kpt_state.cx);
}

static const void *kind_gen_params(struct kunit *test, const void *prev, char *desc)
{
	static const char * const descs[KINDS] = {
		"ftrace", "copy", "emulated", "stepped", "jump", "jump, emulated"
	};
	const struct matrix_code (*next)[SHAPES] = prev;

	next = next ? next + 1 : kprobes_test_matrix;
	if (next == &kprobes_test_matrix[KIND_FTRACE] &&
	    (!IS_ENABLED(CONFIG_KPROBES_ON_FTRACE) || !next[0][SHAPE_WORK].code))
		next++;
	if (next == &kprobes_test_matrix[KINDS])
		return NULL;
	strscpy(desc, descs[next - kprobes_test_matrix], KUNIT_PARAM_DESC_SIZE);
	return next;
}

static struct kunit_case kprobes_x86_landing_cases[] = {
	KUNIT_CASE_PARAM(indirect_call_finds_landing_pad, kind_gen_params),
	KUNIT_CASE(indirect_call_finds_no_landing_pad_inside),
	{ }
};

static struct kunit_suite kprobes_x86_landing_suite = {
	.name = "kprobes-x86-landing",
	.suite_init = kpt_start_return_suite,
	.init = kpt_start_return_test,
	.exit = kpt_end_return_test,
	.test_cases = kprobes_x86_landing_cases,
};

kunit_test_suite(kprobes_x86_landing_suite);
