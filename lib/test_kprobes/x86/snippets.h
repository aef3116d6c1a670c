/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Snippets: functions with one instruction to probe.
 *
 * A snippet has its arguments in all registers. What its instruction leaves in registers,
 * flags and memory must not depend on whether, and how, the instruction is probed.
 */
#ifndef _TEST_KPROBES_X86_SNIPPETS_H
#define _TEST_KPROBES_X86_SNIPPETS_H

#include <linux/objtool.h>
#include <linux/stringify.h>
#include <linux/types.h>

#include <asm/asm.h>
#include <asm/ibt.h>
#include <asm/nospec-branch.h>

#include <kunit/test.h>

#include "../probes.h"

/* What a snippet starts with, and what it leaves. */
struct cpu_state {
	u64 ax, bx, cx, dx, si, di, bp;
	u64 r8, r9, r10, r11, r12, r13, r14, r15;
	u64 flags;
	u64 memory[8];	/* si points to the middle, di one below */
};

static_assert(offsetof(struct cpu_state, di) == 40);
static_assert(offsetof(struct cpu_state, r8) == 56);
static_assert(offsetof(struct cpu_state, flags) == 120);

/* Run the snippet at @code with a state, and change that to what it leaves. */
void kprobes_test_run(struct cpu_state *kpt_state, unsigned long code);

/**
 * struct snippet - A function with an instruction to probe
 * @code:	The function.
 * @name:	Its name without kprobes_test_.
 * @offset:	Of the instruction in it.
 * @length:	Of the instruction.
 * @target:	Where execution may go on other than after it, from @code; or 0.
 * @reserved:	0.
 */
struct snippet {
	unsigned long code;
	const char *name;
	s32 offset;
	s32 length;
	s32 target;
	s32 reserved;
};

extern const struct snippet kprobes_test_snippets[], kprobes_test_snippets_end[];

#define SNIPPET_TABLE(lines)						\
	".pushsection .rodata.kprobes_test, \"a\"\n" lines ".popsection\n"

/* The labels: 880 the function, 881 the instruction, 882 after that. */
#define __SNIPPET(name, before, insn, after, target)			\
	asm(".irp name, " name "\n"					\
	    ".pushsection .text\n"					\
	    ".balign 16\n"						\
	    ".type kprobes_test_\\name, @function\n"			\
	    "kprobes_test_\\name:\n"					\
	    "880:\n"							\
	    ASM_ENDBR							\
	    before "\n"							\
	    "881:	" insn "\n"					\
	    "882:	" after "\n"					\
	    "	int3\n"							\
	    ".size kprobes_test_\\name, . - 880b\n"			\
	    ".popsection\n"						\
	    ".pushsection .rodata.kprobes_test_names, \"a\"\n"		\
	    "883:	.asciz \"\\name\"\n"				\
	    ".popsection\n"						\
	    SNIPPET_TABLE("	.quad kprobes_test_\\name, 883b\n"	\
			  "	.long 881b - 880b, 882b - 881b\n"	\
			  "	.long " target ", 0\n")			\
	    ".endr\n")

#define RETURN			ANNOTATE_RETPOLINE_SAFE "ret\n"

#define INDIRECT		ANNOTATE_RETPOLINE_SAFE

/* Store the address of kprobes_test_callee() where si points to. */
#define STORE_CALLEE							\
	"lea kprobes_test_callee(%rip), %rax\n"				\
	"mov %rax, (%rsi)\n"						\
	"mov %rax, 8(%rsi)\n"						\
	"mov %rax, 16(%rsi)\n"

#define ENDBR_SIZE	(IS_ENABLED(CONFIG_X86_KERNEL_IBT) ? ENDBR_INSN_SIZE : 0)

#define INPUT_COUNTS	3	/* in cx */
#define INPUT_FLAGS	9
#define INPUTS		(2 * INPUT_COUNTS * INPUT_FLAGS)

const void *kpt_snippet_gen_params(const void *prev, char *desc);
const struct snippet *kpt_find_snippet(const char *name);
unsigned long kpt_insn_address(const struct snippet *snippet);
extern struct cpu_state kpt_state;
extern unsigned long kpt_pre_ip, kpt_post_ip, kpt_post_flags;
void kpt_set_input(unsigned int input);
void kpt_run_snippet(const struct snippet *snippet);
void kpt_expect_state(struct kunit *test, const struct cpu_state *expected, const char *how,
		      unsigned int input);
int kpt_act_record(struct test_probe *p, struct pt_regs *regs);
void kpt_record_post(struct kprobe *kp, struct pt_regs *regs, unsigned long flags);
struct kprobe *kpt_snippet_probe(char name, const struct snippet *snippet, bool post);
void kpt_expect_same(struct kunit *test, const struct snippet *snippet,
		     const struct cpu_state *expected, bool post);
struct cpu_state *kpt_unprobed_states(struct kunit *test, const struct snippet *snippet);
int kpt_act_run_snippet(struct test_probe *p, struct pt_regs *regs);
void kpt_register_skipping(struct kunit *test, struct kprobe *a, const struct snippet *snippet);
void kpt_expect_skipped(struct kunit *test, const struct kprobe *a, const struct kprobe *b,
			const struct cpu_state *expected, const char *calls);

#endif /* _TEST_KPROBES_X86_SNIPPETS_H */
