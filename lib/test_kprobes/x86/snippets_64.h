/* SPDX-License-Identifier: GPL-2.0 */
/* The registers of snippets on x86-64. */
#ifndef _TEST_KPROBES_X86_SNIPPETS_64_H
#define _TEST_KPROBES_X86_SNIPPETS_64_H

/* The registers and the memory that a snippet starts with, and what it leaves there. */
struct cpu_state {
	u64 ax, bx, cx, dx, si, di, bp;
	u64 r8, r9, r10, r11, r12, r13, r14, r15;
	u64 flags;
	u64 memory[8];	/* si points to the middle, di to the word below */
};

static_assert(offsetof(struct cpu_state, di) == 40);
static_assert(offsetof(struct cpu_state, r8) == 56);
static_assert(offsetof(struct cpu_state, flags) == 120);

/*
 * Registers with a meaning in tests, as members of struct cpu_state and struct pt_regs:
 * what a branch was taken to, the return address that kprobes_test_callee() found, and one
 * that most snippets do not use.
 */
#define MARK_REG	r14
#define CALLER_REG	r13
#define SPARE_REG	r12

#define MARK_OPERAND	"%r14d"

/* A branch that is taken if all of cx is 0. */
#define JCXZ_SNIPPET	"jrcxz"

/* Store the address of kprobes_test_callee() at the three words from si on. */
#define STORE_CALLEE							\
	"lea kprobes_test_callee(%rip), %rax\n"				\
	"mov %rax, (%rsi)\n"						\
	"mov %rax, 8(%rsi)\n"						\
	"mov %rax, 16(%rsi)\n"

#endif /* _TEST_KPROBES_X86_SNIPPETS_64_H */
