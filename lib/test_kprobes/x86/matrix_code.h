/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The functions that the matrix probes: each shape of code once for each way in which its
 * first instruction is run. A probed function has a twin, the same code without a probe,
 * which tells what comes of it.
 */
#ifndef _TEST_KPROBES_X86_MATRIX_CODE_H
#define _TEST_KPROBES_X86_MATRIX_CODE_H

#include <linux/types.h>

/**
 * struct matrix_code - A function to probe, at its first instruction
 * @code:	The function, or 0: there is none of this kind and shape.
 * @twin:	The same code, never probed.
 * @first:	Only the first instruction of the twin.
 * @at:		Where instructions are in it: the first one, the second and third of those
 *		that a jump displaces, one that it does not.
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
	KIND_JUMP,		/* as KIND_BOOST, and there can be a jump */
	KIND_JUMP_EMULATE,	/* as KIND_EMULATE, and there can be a jump */
	KINDS
};

/* What the function does. */
enum matrix_shape {
	SHAPE_WORK,		/* increments a register in each instruction */
	SHAPE_LOOK,		/* calls kprobes_test_look(), second */
	SHAPE_LOOK_FIRST,	/* the same first */
	SHAPE_COUNT,		/* reads preempt_count */
	SHAPE_COUNT_SECOND,	/* the same second */
	SHAPE_RAISE,		/* increments preempt_count */
	SHAPE_LOWER,		/* decrements preempt_count */
	SHAPE_CPU,		/* reads the CPU's number */
	SHAPE_XADD,		/* adds to a per-CPU variable, and reads it */
	SHAPE_CMPXCHG,		/* exchanges a pair of per-CPU variables */
	SHAPE_OUTER,		/* as SHAPE_WORK, for probes whose handlers are interrupted */
	SHAPE_OUTER_POST,	/* the same for post handlers */
	SHAPES
};

extern const struct matrix_code kprobes_test_matrix[KINDS][SHAPES];

/*
 * Where a handler may go otherwise: kprobes_test_callee(), and what is returned to if
 * it is pushed. It counts in r12 how often, and leaves the flags alone.
 */
void kprobes_test_landing(void);

/* Called by kprobes_test_look(), with the stack pointer at its return address. */
void kprobes_test_look_around(const unsigned long *sp);

#endif /* _TEST_KPROBES_X86_MATRIX_CODE_H */
