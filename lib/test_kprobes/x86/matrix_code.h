/* SPDX-License-Identifier: GPL-2.0 */
/* The functions that the matrix probes: each shape of code in each kind, and its twin. */
#ifndef _TEST_KPROBES_X86_MATRIX_CODE_H
#define _TEST_KPROBES_X86_MATRIX_CODE_H

#include <linux/types.h>

#ifdef CONFIG_X86_64
#include "matrix_64.h"
#else
#include "matrix_32.h"
#endif

/**
 * struct matrix_code - A function to probe at its first instruction
 * @code:	Address of the function, or 0 if there is none of this kind and shape.
 * @twin:	Address of the same code, never probed.
 * @first:	Address of only the first instruction of the twin, and a return.
 * @at:		Offsets: of the first instruction, of the second and third that a jump
 *		displaces, and of one that it does not displace.
 */
struct matrix_code {
	unsigned long code;
	unsigned long twin;
	unsigned long first;
	s32 at[4];
};

/* How the first instruction is run if it is probed. */
enum matrix_kind {
	KIND_FTRACE,
	KIND_BOOST,
	KIND_EMULATE,
	KIND_STEP,
	KIND_JUMP,		/* as KIND_BOOST, but a jump fits */
	KIND_JUMP_EMULATE,	/* as KIND_EMULATE, but a jump fits */
	KINDS
};

/* What the function does. */
enum matrix_shape {
	SHAPE_WORK,		/* increments a register in each instruction */
	SHAPE_LOOK,		/* calls kprobes_test_look() in the second instruction */
	SHAPE_LOOK_FIRST,	/* calls it in the first instruction */
	SHAPE_COUNT,		/* reads preempt_count */
	SHAPE_COUNT_SECOND,	/* reads it in the second instruction */
	SHAPE_RAISE,		/* increments preempt_count */
	SHAPE_LOWER,		/* decrements preempt_count */
	SHAPE_CPU,		/* reads the CPU's number */
	SHAPE_XADD,		/* adds to a per-CPU variable, and reads it */
	SHAPE_CMPXCHG,		/* exchanges a pair of per-CPU variables */
	SHAPE_OUTER,		/* as SHAPE_WORK, for probes whose handlers are interrupted */
	SHAPE_OUTER_POST,	/* as SHAPE_OUTER, for post handlers */
	SHAPES
};

extern const struct matrix_code kprobes_test_matrix[KINDS][SHAPES];

/*
 * Another function for handlers to continue at, and to push as a return address. It adds 1
 * to LANDING_OPERAND, and preserves the flags.
 */
void kprobes_test_landing(void);

/*
 * Continue at kpt_inside, which need not be a function's entry. With IBT, a call of that
 * address would have to find ENDBR there; a return need not.
 */
void kprobes_test_go_inside(void);
extern unsigned long kpt_inside;

/* Called by kprobes_test_look(), with a pointer to its return address. */
void kprobes_test_look_around(const unsigned long *sp);

#endif /* _TEST_KPROBES_X86_MATRIX_CODE_H */
