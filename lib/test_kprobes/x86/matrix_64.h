/* SPDX-License-Identifier: GPL-2.0 */
/* Instructions and registers of the matrix on x86-64. */
#ifndef _TEST_KPROBES_X86_MATRIX_64_H
#define _TEST_KPROBES_X86_MATRIX_64_H

#include "operands.h"
#include "snippets.h"

/* Increment register a, b, c or d in two bytes, so that a jump displaces three of them. */
#define INC(letter)	"inc %e" letter "x"
#define INC_OTHERS	"inc %r8d\n inc %r9d"

/* Exchange a pair of per-CPU variables, if dx and ax have its value. */
#define EXCHANGE_PAIR	"cmpxchg16b " PAIR_HERE
#define LOAD_PAIR	"mov " PAIR_HERE ", %r8"
#define PAIR_FEATURE	X86_FEATURE_CX16

/* The register that kprobes_test_landing() increments. */
#define LANDING_OPERAND	"%r12"

/* The flags and the registers that functions in C may clobber. */
#define PUSH_CLOBBERED							\
	"pushfq\n"							\
	"push %rax\n"							\
	"push %rcx\n"							\
	"push %rdx\n"							\
	"push %rsi\n"							\
	"push %rdi\n"							\
	"push %r8\n"							\
	"push %r9\n"							\
	"push %r10\n"							\
	"push %r11\n"
#define POP_CLOBBERED							\
	"pop %r11\n"							\
	"pop %r10\n"							\
	"pop %r9\n"							\
	"pop %r8\n"							\
	"pop %rdi\n"							\
	"pop %rsi\n"							\
	"pop %rdx\n"							\
	"pop %rcx\n"							\
	"pop %rax\n"							\
	"popfq\n"
#define CLOBBERED_SIZE	"80"

/* The flags that ftrace changes. */
#define FTRACE_LOST_FLAGS	0

/* Functions may clobber r11 at their entry: ftrace does not restore it. */
static inline void matrix_clear_ftrace_lost(struct cpu_state *state)
{
	state->r11 = 0;
}

#endif /* _TEST_KPROBES_X86_MATRIX_64_H */
