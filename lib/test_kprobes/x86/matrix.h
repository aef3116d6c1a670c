/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The matrix: all that a handler may do, and all that probed code could see of a
 * probe, on each path that a hit can take, alone or inside another probe's handler,
 * with one probe and with three at the address, with and without a return probe.
 *
 * What comes of a probed function is compared with what comes of its twin, which is
 * the same code without a probe, run right before in the same context; where a handler
 * changes registers or the path, that is done to the twin by its caller.
 *
 * A cell of the matrix is run, or there is an entry in exclusions[] that tells why it
 * cannot be. One that is neither fails the test.
 */
#ifndef _TEST_KPROBES_X86_MATRIX_H
#define _TEST_KPROBES_X86_MATRIX_H

#include <linux/interrupt.h>
#include <linux/irq_work.h>
#include <linux/kprobes_hit.h>

#include "../return_probes.h"
#include "matrix_code.h"
#include "snippets.h"

/**
 * struct hit_path - A way of hits
 * @desc:	For people.
 * @kind:	Of the functions that are probed.
 * @post:	Whether the probes have post handlers.
 * @state:	That of the sites.
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

/* The hit of this probe is a breakpoint. */
#define BREAKPOINT_PATHS								\
	(BIT(PATH_BOOST) | BIT(PATH_BOOST_POST) | BIT(PATH_EMULATE) |			\
	 BIT(PATH_EMULATE_POST) | BIT(PATH_STEP) | BIT(PATH_STEP_POST) |		\
	 BIT(PATH_OPTIMIZING) | BIT(PATH_OPTIMIZING_POST) |				\
	 BIT(PATH_OPTIMIZING_EMULATE))
#define FTRACE_PATHS	(BIT(PATH_FTRACE) | BIT(PATH_FTRACE_POST))
#define POST_PATHS									\
	(BIT(PATH_FTRACE_POST) | BIT(PATH_BOOST_POST) | BIT(PATH_EMULATE_POST) |	\
	 BIT(PATH_STEP_POST) | BIT(PATH_OPTIMIZING_POST) | BIT(PATH_JUMP_POST))
#define JUMP_PATHS									\
	(BIT(PATH_OPTIMIZING) | BIT(PATH_OPTIMIZING_POST) |				\
	 BIT(PATH_OPTIMIZING_EMULATE) | BIT(PATH_JUMP) | BIT(PATH_JUMP_POST) |		\
	 BIT(PATH_JUMP_EMULATE))

enum matrix_context { IN_TASK, IN_SOFTIRQ, IN_HARDIRQ, IN_NMI };

/* In what handler. */
enum matrix_handler { PRE_HANDLER, POST_HANDLER, RETURN_HANDLER };

/**
 * struct nest - Where a cell is run
 * @desc:	For people.
 * @context:	In what context.
 * @handler:	It has interrupted this handler of another probe,
 * @kind:	of this kind.
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

/* Where a handler lets execution go on. */
enum matrix_way {
	WAY_ON,			/* as it would */
	WAY_AGAIN,		/* at the probed instruction */
	WAY_SECOND,		/* at the next instruction, or that after it, */
	WAY_THIRD,		/* which a jump displaces, too; */
	WAY_BEYOND,		/* at one that it does not; */
	WAY_OTHER,		/* in another function; */
	WAY_RETURN,		/* where the function returns to */
};

/**
 * struct row - What a handler does, or probed code looks at
 * @desc:	For people.
 * @shape:	Of the function.
 * @after:	It is the post handler.
 * @way:	Where it lets execution go on.
 * @regs:	It changes all registers but sp.
 * @flags:	It changes these flags.
 * @push:	It pushes the address of kprobes_test_landing() so many times,
 * @lower:	or only lowers sp.
 * @stray:	It sets ip, but does not say so; and sp, in the handler of a return probe.
 * @returning:	The handler is that of the return probe.
 * @trap:	It has the next instruction end in a trap.
 * @act:	It does this.
 */
struct row {
	const char *desc;
	enum matrix_shape shape;
	bool after;
	enum matrix_way way;
	bool regs;
	unsigned long flags;
	unsigned int push;
	bool lower;
	bool stray;
	bool returning;
	bool trap;
	void (*act)(void);
};


#define CHANGED_STATUS							\
	(X86_EFLAGS_CF | X86_EFLAGS_PF | X86_EFLAGS_AF | X86_EFLAGS_ZF | X86_EFLAGS_SF |	\
	 X86_EFLAGS_OF | X86_EFLAGS_DF)

enum {
	ROW_NOTHING, ROW_SECOND, ROW_THIRD, ROW_BEYOND, ROW_OTHER, ROW_AGAIN,
	ROW_RETURN_AT_ONCE, ROW_REGISTERS, ROW_FLAGS, ROW_INTERRUPTS, ROW_PUSH,
	ROW_PUSH_SIX, ROW_PUSH_FIVE, ROW_PUSH_AND_GO, ROW_LOWER_SP, ROW_SECOND_COPY,
	ROW_THIRD_COPY, ROW_FAULT, ROW_SELF, ROW_LONG, ROW_STRAY_IP, ROW_RETURN_REGISTERS,
	ROW_REGISTER, ROW_UNREGISTER,
	ROW_ENABLE, ROW_DISABLE, ROW_POST_SECOND, ROW_POST_THIRD, ROW_POST_BEYOND,
	ROW_POST_OTHER, ROW_POST_REGISTERS, ROW_POST_FLAGS, ROW_POST_INTERRUPTS,
	ROW_POST_THIRD_CHANGED, ROW_POST_SECOND_COPY, ROW_POST_THIRD_COPY, ROW_POST_FAULT,
	ROW_POST_SELF, ROW_POST_LONG, ROW_LOOK, ROW_LOOK_FIRST, ROW_COUNT,
	ROW_COUNT_SECOND, ROW_RAISE, ROW_LOWER, ROW_CPU, ROW_XADD, ROW_CMPXCHG,
	ROW_BELOW_SP, ROWS
};

/* Whether there is a return probe besides the others, and when it was registered. */
enum matrix_returns { NO_RETURN, RETURN_LAST, RETURN_FIRST, RETURNS };

/**
 * struct setup - The probes that a test case registers
 * @path:	Their path.
 * @returns:	The return probe.
 * @count:	How many there are at each address.
 */
struct setup {
	unsigned int path;
	enum matrix_returns returns;
	unsigned int count;
};

#define MATRIX_PROBES	3
#define SETUPS		(PATHS * RETURNS * 2)

#define SEEN_WORDS	3

/*
 * struct sight - What probed code has seen when it looked around
 * @trace:	The stack trace. What is in the function is relative to its start, here
 *		and below.
 * @words:	The stack: from the function's call on.
 * @count:	preempt_count(),
 * @cpu:	the CPU,
 * @irqs_off:	whether interrupts are off
 * @traced_on:	and whether lockdep thinks that they are not,
 * @watching:	whether RCU is watching.
 */
struct sight {
	unsigned long trace[TRACE_LENGTH];
	unsigned long words[SEEN_WORDS];
	unsigned long count;
	unsigned long cpu;
	unsigned long irqs_off;
	unsigned long traced_on;
	unsigned long watching;
};

/* struct result - What has come of a function: the registers, variables, what it saw */
struct result {
	struct cpu_state left;
	u64 number;
	u64 pair[2];
	struct sight sight;
};

/**
 * struct cell - A cell of the matrix, while it is run
 * @setup:	Its test case,
 * @row:	row
 * @nest:	and nesting.
 * @input:	The interrupt flag in @given.
 * @given:	What the function is called with.
 * @result:	What came of the twin and of the probed function.
 * @code:	Which of them is running.
 * @acted:	The handler has done what the row says.
 * @seen:	The registers that it saw.
 * @seen_return: And where they said that the function returns to.
 * @trapped_at: Where the trap was that the row wants.
 * @selves:	How many hits it caused itself.
 * @runs:	How often the function was run, and the handler has done that.
 * @bad:	What is wrong, or NULL;
 * @which:	which word of it,
 * @got:	what it was
 * @want:	and should be.
 */
struct cell {
	const struct setup *setup;
	const struct row *row;
	const struct nest *nest;
	unsigned long input;
	struct cpu_state given;
	struct result result[2];
	unsigned long code;
	bool acted;
	struct pt_regs seen;
	unsigned long seen_return;
	unsigned long trapped_at;
	unsigned int selves;
	unsigned int runs;
	const char *bad;
	unsigned int which;
	unsigned long got;
	unsigned long want;
};

/**
 * struct matrix_probe - A probe of the matrix
 * @kp:		The probe.
 * @name:	In the journal.
 */
struct matrix_probe {
	struct kprobe kp;
	char name;
};

extern struct cell matrix_cell;
extern struct matrix_probe matrix_probes[SHAPES][MATRIX_PROBES];
extern bool matrix_cell_runs;

void matrix_find_fault(const char *what, unsigned int which, unsigned long got,
		       unsigned long want);
void matrix_compare_words(const char *what, const void *got, const void *want, size_t size);
const struct matrix_code *matrix_code_of(enum matrix_kind kind, enum matrix_shape shape);
const struct matrix_code *matrix_cell_code(void);
unsigned long matrix_return_address(void);
int matrix_act(struct pt_regs *regs);
void matrix_enter_code(struct cpu_state *st, unsigned long code);
void matrix_give(struct cpu_state *st, unsigned long interrupt_flag);
void matrix_run_one(bool probed);

void matrix_recover_from_fault(void);
void matrix_hit_the_same_probes(void);
extern struct notifier_block matrix_trap_notifier;
extern struct hrtimer matrix_long_timer;
enum hrtimer_restart matrix_end_long(struct hrtimer *timer);
void matrix_take_long(void);
void matrix_register_in_vain(void);
void matrix_enable_in_vain(void);
void matrix_disable_in_vain(void);
void matrix_run_inputs(void);

extern struct tasklet_struct matrix_tasklet;
extern struct irq_work matrix_irq_work;
void matrix_run_in_softirq(struct tasklet_struct *tasklet);
void matrix_run_in_hardirq(struct irq_work *work);
int matrix_run_in_nmi(unsigned int type, struct pt_regs *regs);
void matrix_be_interrupted_in(enum matrix_handler handler);
int matrix_register_outer_probes(void);
void matrix_unregister_outer_probes(void);
bool matrix_outer_probes_are_ready(void);
void matrix_run_cell(void);

char matrix_acting_probe(void);
int matrix_pre(struct kprobe *kp, struct pt_regs *regs);
void matrix_post(struct kprobe *kp, struct pt_regs *regs, unsigned long flags);
int matrix_register_returns(void);
void matrix_unregister_returns(void);
int matrix_set_returns_enabled(bool on);
bool matrix_is_return(enum matrix_shape shape, const struct kprobe *kp);
unsigned int matrix_take_missed(enum matrix_shape shape);

extern const char * const matrix_returns_desc[RETURNS];
extern const struct hit_path matrix_paths[PATHS];
extern const struct nest matrix_nests[NESTS];
extern const struct row matrix_rows[ROWS];

void matrix_exclude(bool without_nmi, bool without_cmpxchg16b);
void matrix_list_exclusions(struct kunit *test);
struct setup matrix_nth_setup(unsigned int n);
const char *matrix_why_excluded(const struct setup *setup, unsigned int row, unsigned int nest);

#endif /* _TEST_KPROBES_X86_MATRIX_H */
