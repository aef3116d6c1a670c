/* SPDX-License-Identifier: GPL-2.0 */
/* Instructions and registers of the matrix on i386. */
#ifndef _TEST_KPROBES_X86_MATRIX_32_H
#define _TEST_KPROBES_X86_MATRIX_32_H

#include <asm/processor-flags.h>

#include "operands.h"
#include "snippets.h"

/* Increment register a, b, c or d in two bytes, so that a jump displaces three of them. */
#define INC(letter)	"inc %" letter "l"
#define INC_OTHERS	"inc %cl\n inc %ch"

/* Exchange a pair of per-CPU variables, if dx and ax have its value. */
#define EXCHANGE_PAIR	"cmpxchg8b " PAIR_HERE
#define LOAD_PAIR	"mov " PAIR_HERE ", %esi"
#define PAIR_FEATURE	X86_FEATURE_CX8

/* The register that kprobes_test_landing() increments. */
#define LANDING_OPERAND	"%ebp"

/* The flags and the registers that functions in C may clobber. */
#define PUSH_CLOBBERED							\
	"pushfl\n"							\
	"push %eax\n"							\
	"push %ecx\n"							\
	"push %edx\n"
#define POP_CLOBBERED							\
	"pop %edx\n"							\
	"pop %ecx\n"							\
	"pop %eax\n"							\
	"popfl\n"
#define CLOBBERED_SIZE	"16"

/* The flags that ftrace changes: it neither shows them to handlers nor restores them. */
#define FTRACE_LOST_FLAGS						\
	(X86_EFLAGS_CF | X86_EFLAGS_PF | X86_EFLAGS_AF | X86_EFLAGS_ZF | X86_EFLAGS_SF |	\
	 X86_EFLAGS_OF)

static inline void matrix_clear_ftrace_lost(struct cpu_state *state)
{
	state->flags &= ~FTRACE_LOST_FLAGS;
}

#endif /* _TEST_KPROBES_X86_MATRIX_32_H */
