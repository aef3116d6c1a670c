/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The matrix: all that a handler may do, and all that probed code could see of a
 * probe, on each path that a hit can take, alone or inside another probe's handler,
 * with one probe and with three at the address, with and without a return probe.
 *
 * The result of a probed function is compared with that of its twin, the same code without
 * a probe, which runs right before it in the same context. What a handler does to registers
 * and to the path, the caller of the twin does.
 *
 * Each cell of the matrix is run, or an entry of exclusions[] says why it cannot be. A cell
 * that is neither run nor excluded fails the test.
 */
#ifndef _TEST_KPROBES_X86_MATRIX_H
#define _TEST_KPROBES_X86_MATRIX_H

#include <linux/kprobes_site.h>
#include <linux/types.h>

#include <kunit/test.h>

#include "matrix_code.h"

/**
 * struct hit_path - A path of hits
 * @desc:	Description.
 * @kind:	Kind of the functions that are probed.
 * @post:	Whether the probes have post handlers.
 * @state:	State of the sites.
 */
struct hit_path {
	const char *desc;
	enum matrix_kind kind;
	bool post;
	enum kprobe_site_state state;
};

enum {
	PATH_FTRACE, PATH_FTRACE_POST, PATH_BOOST, PATH_BOOST_POST, PATH_EMULATE,
	PATH_EMULATE_POST, PATH_STEP, PATH_STEP_POST, PATH_OPTIMIZING,
	PATH_OPTIMIZING_POST, PATH_OPTIMIZING_EMULATE, PATH_JUMP, PATH_JUMP_POST,
	PATH_JUMP_EMULATE, PATHS
};

enum matrix_context { IN_TASK, IN_SOFTIRQ, IN_HARDIRQ, IN_NMI };

enum matrix_handler { PRE_HANDLER, POST_HANDLER, RETURN_HANDLER };

/**
 * struct nest - Where a cell is run
 * @desc:	Description.
 * @context:	The context.
 * @handler:	Unless that is IN_TASK, which handler of another probe it has interrupted.
 * @kind:	Kind of the function that this other probe is at.
 */
struct nest {
	const char *desc;
	enum matrix_context context;
	enum matrix_handler handler;
	enum matrix_kind kind;
};

enum {
	NEST_ALONE, NEST_SOFTIRQ_IN_FTRACE, NEST_SOFTIRQ_IN_JUMP,
	NEST_SOFTIRQ_IN_JUMP_POST, NEST_SOFTIRQ_IN_BREAKPOINT, NEST_HARDIRQ_IN_FTRACE,
	NEST_HARDIRQ_IN_FTRACE_POST, NEST_HARDIRQ_IN_JUMP, NEST_HARDIRQ_IN_BREAKPOINT,
	NEST_NMI_IN_FTRACE, NEST_NMI_IN_JUMP, NEST_NMI_IN_BREAKPOINT,
	NEST_NMI_IN_BREAKPOINT_POST, NEST_NMI_IN_RETURN, NESTS
};

/* Where a handler lets execution continue. */
enum matrix_way {
	WAY_ON,			/* where it would without the handler */
	WAY_AGAIN,		/* at the probed instruction */
	WAY_SECOND,		/* at the second instruction that a jump displaces */
	WAY_THIRD,		/* at the third one */
	WAY_BEYOND,		/* at one that a jump does not displace */
	WAY_OTHER,		/* in another function */
	WAY_RETURN,		/* at the function's return address */
};

/**
 * struct row - What a handler does, or probed code looks at
 * @desc:	Description.
 * @shape:	Shape of the probed function.
 * @after:	Whether the post handler acts, instead of the pre handler.
 * @returning:	Whether the handler of the return probe acts instead.
 * @way:	Where the handler lets execution continue.
 * @regs:	Whether it changes all registers but sp.
 * @flags:	The flags that it changes.
 * @push:	How often it pushes the address of kprobes_test_landing().
 * @lower:	Whether it lowers sp without storing anything.
 * @stray:	Whether it sets ip but returns 0; and sp, if it is that of the return probe.
 * @trap:	Whether it sets TF: the next instruction ends in a trap.
 * @act:	What else it does, or NULL.
 */
struct row {
	const char *desc;
	enum matrix_shape shape;
	bool after;
	bool returning;
	enum matrix_way way;
	bool regs;
	unsigned long flags;
	unsigned int push;
	bool lower;
	bool stray;
	bool trap;
	void (*act)(void);
};

enum {
	ROW_NOTHING, ROW_SECOND, ROW_THIRD, ROW_BEYOND, ROW_OTHER, ROW_AGAIN,
	ROW_RETURN_AT_ONCE, ROW_REGISTERS, ROW_FLAGS, ROW_INTERRUPTS, ROW_PUSH,
	ROW_PUSH_SIX, ROW_PUSH_FIVE, ROW_PUSH_AND_GO, ROW_LOWER_SP, ROW_SECOND_COPY,
	ROW_THIRD_COPY, ROW_FAULT, ROW_SELF, ROW_LONG, ROW_STRAY_IP, ROW_RETURN_REGISTERS,
	ROW_REGISTER, ROW_UNREGISTER, ROW_ENABLE, ROW_DISABLE, ROW_POST_SECOND,
	ROW_POST_THIRD, ROW_POST_BEYOND, ROW_POST_OTHER, ROW_POST_REGISTERS,
	ROW_POST_FLAGS, ROW_POST_INTERRUPTS, ROW_POST_PUSH_FIVE, ROW_POST_THIRD_CHANGED,
	ROW_POST_SECOND_COPY, ROW_POST_THIRD_COPY, ROW_POST_FAULT, ROW_POST_SELF,
	ROW_POST_LONG, ROW_LOOK, ROW_LOOK_FIRST, ROW_COUNT, ROW_COUNT_SECOND, ROW_RAISE,
	ROW_LOWER, ROW_CPU, ROW_XADD, ROW_CMPXCHG, ROW_BELOW_SP, ROWS
};

/* Whether there is a return probe, and whether it is registered before the others. */
enum matrix_returns { NO_RETURN, RETURN_LAST, RETURN_FIRST, RETURNS };

#define MATRIX_PROBES	3

/**
 * struct setup - The probes that a test case registers
 * @path:	The path of their hits.
 * @at_return:	The return probe.
 * @count:	Number of probes at each address: 1 or MATRIX_PROBES.
 */
struct setup {
	unsigned int path;
	enum matrix_returns at_return;
	unsigned int count;
};

#define SETUPS		(PATHS * RETURNS * 2)

extern const struct hit_path matrix_paths[PATHS];
extern const struct nest matrix_nests[NESTS];
extern const struct row matrix_rows[ROWS];
extern const char * const matrix_returns_desc[RETURNS];

struct setup matrix_nth_setup(unsigned int n);
const char *matrix_why_excluded(const struct setup *setup, unsigned int row, unsigned int nest);
void matrix_exclude(bool without_nmi, bool without_cmpxchg);
void matrix_list_exclusions(struct kunit *test);

#endif /* _TEST_KPROBES_X86_MATRIX_H */
