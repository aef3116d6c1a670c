/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Snippets: functions with one instruction to probe.
 *
 * A snippet takes its arguments in all registers. What its instruction leaves in registers,
 * flags and memory must not depend on whether, and how, the instruction is probed.
 */
#ifndef _TEST_KPROBES_X86_SNIPPETS_H
#define _TEST_KPROBES_X86_SNIPPETS_H

#include <linux/build_bug.h>
#include <linux/stddef.h>
#include <linux/types.h>

#include <asm/asm.h>

#include <kunit/test.h>

#include "../probes.h"
#include "functions.h"

#ifdef CONFIG_X86_64
#include "snippets_64.h"
#else
#include "snippets_32.h"
#endif

/* What register @n of cpu_state holds at first, counted from 0. */
#define INPUT_WORD(n)	(~0UL / 0xff * ((n) + 1))

/* Run the code at @code with @state, and store there what it leaves. */
void kprobes_test_run(struct cpu_state *state, unsigned long code);

/**
 * struct snippet - A function with an instruction to probe
 * @code:	Address of the function.
 * @name:	Name of the snippet: the end of the function's name.
 * @offset:	Offset of the instruction in the function.
 * @length:	Length of the instruction.
 * @target:	Offset at which execution may continue other than after the instruction, or 0.
 * @reserved:	Always 0.
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

#define SNIPPET_TABLE(table, lines)					\
	".pushsection .rodata.kprobes_test_" table ", \"a\"\n" lines ".popsection\n"

/*
 * Define a snippet, and an entry of @table for it. The labels: 880 the function, 881 the
 * instruction, 882 the next one.
 */
#define __SNIPPET(table, prefix, name, before, insn, after, target)	\
	asm(".irp prefix, " prefix "\n"					\
	    ".irp name, " name "\n"					\
	    ".pushsection .text\n"					\
	    ".balign 16\n"						\
	    ".type \\prefix\\name, @function\n"			\
	    "\\prefix\\name:\n"						\
	    "880:\n"							\
	    ASM_ENDBR							\
	    before "\n"							\
	    "881:	" insn "\n"					\
	    "882:	" after "\n"					\
	    "	int3\n"							\
	    ".size \\prefix\\name, . - 880b\n"			\
	    ".popsection\n"						\
	    ".pushsection .rodata.kprobes_test_names, \"a\"\n"		\
	    "883:	.asciz \"\\name\"\n"				\
	    ".popsection\n"						\
	    SNIPPET_TABLE(table,					\
			  _ASM_PTR "\\prefix\\name, 883b\n"		\
			  "	.long 881b - 880b, 882b - 881b\n"	\
			  "	.long " target ", 0\n")			\
	    ".endr\n"							\
	    ".endr\n")

/* The labels at the start and the end of a table. */
#define SNIPPET_TABLE_LABEL(table, label)				\
	asm(".irp label, " label "\n"					\
	    SNIPPET_TABLE(table,					\
			  ".globl kprobes_test_\\label\n"		\
			  "kprobes_test_\\label:\n")			\
	    ".endr\n")

/* Where snippets jump to or call: add 1 to ax, and leave the return address in CALLER_REG. */
void kprobes_test_callee(void);

#define INPUT_COUNTS	3	/* values of cx */
#define INPUT_FLAGS	9	/* values of flags, each with interrupts off and on */
#define INPUTS		(2 * INPUT_COUNTS * INPUT_FLAGS)

extern struct cpu_state kpt_state;
extern unsigned long kpt_pre_ip, kpt_post_ip, kpt_post_flags;

const void *kpt_next_snippet(const void *prev, const struct snippet *table,
			     const struct snippet *end, char *desc);
const void *kpt_snippet_gen_params(struct kunit *test, const void *prev, char *desc);
const struct snippet *kpt_find_snippet(const char *name);
unsigned long kpt_insn_address(const struct snippet *snippet);
unsigned long kpt_snippet_return_address(void);

void kpt_set_input(unsigned int input);
void kpt_run_code(struct cpu_state *state, unsigned long code);
void kpt_run_snippet(const struct snippet *snippet);
void kpt_expect_state(struct kunit *test, const struct cpu_state *expected, const char *how,
		      unsigned int input);
struct cpu_state *kpt_unprobed_states(struct kunit *test, const struct snippet *snippet);
void kpt_expect_unprobed(struct kunit *test, const struct snippet *snippet,
			 const struct cpu_state *expected);

int kpt_act_record(struct test_probe *p, struct pt_regs *regs);
void kpt_record_post(struct kprobe *kp, struct pt_regs *regs, unsigned long flags);
struct kprobe *kpt_snippet_probe(char name, const struct snippet *snippet, bool post);
void kpt_expect_same(struct kunit *test, const struct snippet *snippet,
		     const struct cpu_state *expected, bool post);
int kpt_act_run_snippet(struct test_probe *p, struct pt_regs *regs);
void kpt_register_skipping(struct kunit *test, struct kprobe *a, const struct snippet *snippet);
void kpt_expect_skipped(struct kunit *test, const struct kprobe *a, const struct kprobe *b,
			const struct cpu_state *expected, const char *events);

#endif /* _TEST_KPROBES_X86_SNIPPETS_H */
