/* SPDX-License-Identifier: GPL-2.0 */
/* The registers of snippets on i386. */
#ifndef _TEST_KPROBES_X86_SNIPPETS_32_H
#define _TEST_KPROBES_X86_SNIPPETS_32_H

/* The registers and the memory that a snippet starts with, and what it leaves there. */
struct cpu_state {
	unsigned long ax, bx, cx, dx, si, di, bp;
	unsigned long flags;
	unsigned long memory[8];	/* si points to the middle, di to the word below */
};

static_assert(offsetof(struct cpu_state, di) == 20);
static_assert(offsetof(struct cpu_state, flags) == 28);

/*
 * Registers with a meaning in tests, as members of struct cpu_state and struct pt_regs:
 * what a branch was taken to, the return address that kprobes_test_callee() found, and one
 * that most snippets do not use.
 */
#define MARK_REG	bp
#define CALLER_REG	dx
#define SPARE_REG	bx

#define MARK_OPERAND	"%ebp"

/* A branch that is taken if all of cx is 0. */
#define JCXZ_SNIPPET	"jecxz"

/* Store the address of kprobes_test_callee() at the three words from si on. */
#define STORE_CALLEE							\
	"mov $kprobes_test_callee, %eax\n"				\
	"mov %eax, (%esi)\n"						\
	"mov %eax, 4(%esi)\n"						\
	"mov %eax, 8(%esi)\n"

#endif /* _TEST_KPROBES_X86_SNIPPETS_32_H */
