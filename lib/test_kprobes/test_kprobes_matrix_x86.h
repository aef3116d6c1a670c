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
#ifndef _TEST_KPROBES_MATRIX_X86_H
#define _TEST_KPROBES_MATRIX_X86_H

#include <linux/interrupt.h>
#include <linux/irq_work.h>
#include <linux/kprobes_hit.h>
#include <linux/percpu.h>
#include <linux/preempt.h>

#include <asm/apic.h>
#include "asm/nmi.h"	/* <linux/nmi.h> does not always include it */

#include "test_kprobes_matrix_code_x86.h"

/* ---------------------------------------------------------------------- paths */

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

static const struct hit_path paths[PATHS] = {
	[PATH_FTRACE] = { "ftrace", KIND_FTRACE, false, SITE_ARMED },
	[PATH_FTRACE_POST] = { "ftrace, post", KIND_FTRACE, true, SITE_ARMED },
	[PATH_BOOST] = { "boosted", KIND_BOOST, false, SITE_ARMED },
	[PATH_BOOST_POST] = { "boosted, post", KIND_BOOST, true, SITE_ARMED },
	[PATH_EMULATE] = { "emulated", KIND_EMULATE, false, SITE_ARMED },
	[PATH_EMULATE_POST] = { "emulated, post", KIND_EMULATE, true, SITE_ARMED },
	[PATH_STEP] = { "stepped", KIND_STEP, false, SITE_ARMED },
	[PATH_STEP_POST] = { "stepped, post", KIND_STEP, true, SITE_ARMED },
	[PATH_OPTIMIZING] = { "optimising", KIND_JUMP, false, SITE_OPTIMIZING },
	[PATH_OPTIMIZING_POST] = { "optimising, post", KIND_JUMP, true, SITE_OPTIMIZING },
	[PATH_OPTIMIZING_EMULATE] = {
		"optimising emulated", KIND_JUMP_EMULATE, false, SITE_OPTIMIZING
	},
	[PATH_JUMP] = { "jump", KIND_JUMP, false, SITE_JUMP },
	[PATH_JUMP_POST] = { "jump, post", KIND_JUMP, true, SITE_JUMP },
	[PATH_JUMP_EMULATE] = { "jump emulated", KIND_JUMP_EMULATE, false, SITE_JUMP },
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

/* --------------------------------------------------------------------- nesting */

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

static const struct nest nests[NESTS] = {
	[NEST_ALONE] = { "alone", IN_TASK },
	[NEST_SOFTIRQ_IN_FTRACE] = { "softirq in ftrace", IN_SOFTIRQ, PRE_HANDLER, KIND_FTRACE },
	[NEST_SOFTIRQ_IN_JUMP] = { "softirq in jump", IN_SOFTIRQ, PRE_HANDLER, KIND_JUMP },
	[NEST_SOFTIRQ_IN_JUMP_POST] = {
		"softirq in jump, post", IN_SOFTIRQ, POST_HANDLER, KIND_JUMP
	},
	[NEST_SOFTIRQ_IN_BREAKPOINT] = {
		"softirq in breakpoint", IN_SOFTIRQ, PRE_HANDLER, KIND_BOOST
	},
	[NEST_HARDIRQ_IN_FTRACE] = { "hardirq in ftrace", IN_HARDIRQ, PRE_HANDLER, KIND_FTRACE },
	[NEST_HARDIRQ_IN_FTRACE_POST] = { "hardirq in ftrace, post", IN_HARDIRQ, POST_HANDLER,
				     KIND_FTRACE },
	[NEST_HARDIRQ_IN_JUMP] = { "hardirq in jump", IN_HARDIRQ, PRE_HANDLER, KIND_JUMP },
	[NEST_HARDIRQ_IN_BREAKPOINT] = {
		"hardirq in breakpoint", IN_HARDIRQ, PRE_HANDLER, KIND_BOOST
	},
	[NEST_NMI_IN_FTRACE] = { "NMI in ftrace", IN_NMI, PRE_HANDLER, KIND_FTRACE },
	[NEST_NMI_IN_JUMP] = { "NMI in jump", IN_NMI, PRE_HANDLER, KIND_JUMP },
	[NEST_NMI_IN_BREAKPOINT] = { "NMI in breakpoint", IN_NMI, PRE_HANDLER, KIND_BOOST },
	[NEST_NMI_IN_BREAKPOINT_POST] = {
		"NMI in breakpoint, post", IN_NMI, POST_HANDLER, KIND_BOOST
	},
	[NEST_NMI_IN_RETURN] = { "NMI in return", IN_NMI, RETURN_HANDLER, KIND_EMULATE },
};

#define SOFTIRQ_NESTS									\
	(BIT(NEST_SOFTIRQ_IN_FTRACE) | BIT(NEST_SOFTIRQ_IN_JUMP) |			\
	 BIT(NEST_SOFTIRQ_IN_JUMP_POST) | BIT(NEST_SOFTIRQ_IN_BREAKPOINT))
#define HARDIRQ_NESTS									\
	(BIT(NEST_HARDIRQ_IN_FTRACE) | BIT(NEST_HARDIRQ_IN_FTRACE_POST) |		\
	 BIT(NEST_HARDIRQ_IN_JUMP) | BIT(NEST_HARDIRQ_IN_BREAKPOINT))
#define NMI_NESTS									\
	(BIT(NEST_NMI_IN_FTRACE) | BIT(NEST_NMI_IN_JUMP) |				\
	 BIT(NEST_NMI_IN_BREAKPOINT) | BIT(NEST_NMI_IN_BREAKPOINT_POST) |		\
	 BIT(NEST_NMI_IN_RETURN))
#define NESTS_IN_FTRACE									\
	(BIT(NEST_SOFTIRQ_IN_FTRACE) | BIT(NEST_HARDIRQ_IN_FTRACE) |			\
	 BIT(NEST_HARDIRQ_IN_FTRACE_POST) | BIT(NEST_NMI_IN_FTRACE))
#define NESTS_IN_JUMP									\
	(BIT(NEST_SOFTIRQ_IN_JUMP) | BIT(NEST_SOFTIRQ_IN_JUMP_POST) |			\
	 BIT(NEST_HARDIRQ_IN_JUMP) | BIT(NEST_NMI_IN_JUMP))

/* ------------------------------------------------------------------------ rows */

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

static void recover_from_fault(void);
static void hit_the_same_probes(void);
static void take_long(void);
static void register_in_vain(void);
static void enable_in_vain(void);
static void disable_in_vain(void);

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

static const struct row rows[ROWS] = {
	[ROW_NOTHING] = { "nothing" },
	[ROW_SECOND] = { "go to the second", .way = WAY_SECOND },
	[ROW_THIRD] = { "go to the third", .way = WAY_THIRD },
	[ROW_BEYOND] = { "go beyond", .way = WAY_BEYOND },
	[ROW_OTHER] = { "go to another function", .way = WAY_OTHER },
	[ROW_AGAIN] = { "go to the same", .way = WAY_AGAIN },
	[ROW_RETURN_AT_ONCE] = { "return", .way = WAY_RETURN },
	[ROW_REGISTERS] = { "registers", .regs = true },
	[ROW_FLAGS] = { "flags", .flags = CHANGED_STATUS },
	[ROW_INTERRUPTS] = { "interrupt flag", .flags = X86_EFLAGS_IF },
	[ROW_PUSH] = { "push", .push = 1 },
	[ROW_PUSH_SIX] = { "push six words", .push = 6 },
	[ROW_PUSH_FIVE] = { "push five words, then a call", SHAPE_LOOK_FIRST, .push = 5 },
	[ROW_PUSH_AND_GO] = { "push and go to another function", .push = 1, .way = WAY_OTHER },
	[ROW_LOWER_SP] = { "lower sp", .lower = true },
	[ROW_SECOND_COPY] = { "go to the copy of the second", .way = WAY_SECOND, .trap = true },
	[ROW_THIRD_COPY] = { "go to the copy of the third", .way = WAY_THIRD, .trap = true },
	[ROW_FAULT] = { "fault", .act = recover_from_fault },
	[ROW_SELF] = { "hit the same probes", .act = hit_the_same_probes },
	[ROW_LONG] = { "take long", .act = take_long },
	[ROW_STRAY_IP] = { "set ip for nothing", .stray = true },
	[ROW_RETURN_REGISTERS] = {
		"return: registers, flags", .returning = true, .regs = true,
		.flags = CHANGED_STATUS, .stray = true
	},
	[ROW_REGISTER] = { "register", .act = register_in_vain },
	[ROW_UNREGISTER] = { "unregister" },
	[ROW_ENABLE] = { "enable", .act = enable_in_vain },
	[ROW_DISABLE] = { "disable", .act = disable_in_vain },

	[ROW_POST_SECOND] = { "post: go to the second", .after = true, .way = WAY_SECOND },
	[ROW_POST_THIRD] = { "post: go to the third", .after = true, .way = WAY_THIRD },
	[ROW_POST_BEYOND] = { "post: go beyond", .after = true, .way = WAY_BEYOND },
	[ROW_POST_OTHER] = { "post: go to another function", .after = true, .way = WAY_OTHER },
	[ROW_POST_REGISTERS] = { "post: registers", .after = true, .regs = true },
	[ROW_POST_FLAGS] = { "post: flags", .after = true, .flags = CHANGED_STATUS },
	[ROW_POST_INTERRUPTS] = { "post: interrupt flag", .after = true, .flags = X86_EFLAGS_IF },
	[ROW_POST_THIRD_CHANGED] = { "post: registers, flags, go to the third", .after = true,
				 .way = WAY_THIRD, .regs = true, .flags = CHANGED_STATUS },
	[ROW_POST_SECOND_COPY] = { "post: go to the copy of the second", .after = true,
			       .way = WAY_SECOND, .trap = true },
	[ROW_POST_THIRD_COPY] = { "post: go to the copy of the third", .after = true,
			      .way = WAY_THIRD, .trap = true },
	[ROW_POST_FAULT] = { "post: fault", .after = true, .act = recover_from_fault },
	[ROW_POST_SELF] = { "post: hit the same probes", .after = true,
			    .act = hit_the_same_probes },
	[ROW_POST_LONG] = { "post: take long", .after = true, .act = take_long },

	[ROW_LOOK] = { "see around from a call", SHAPE_LOOK },
	[ROW_LOOK_FIRST] = { "see around from a probed call", SHAPE_LOOK_FIRST },
	[ROW_COUNT] = { "see preempt_count", SHAPE_COUNT },
	[ROW_COUNT_SECOND] = { "see preempt_count, second", SHAPE_COUNT_SECOND },
	[ROW_RAISE] = { "raise preempt_count", SHAPE_RAISE },
	[ROW_LOWER] = { "lower preempt_count", SHAPE_LOWER },
	[ROW_CPU] = { "see the CPU", SHAPE_CPU },
	[ROW_XADD] = { "xadd per CPU", SHAPE_XADD },
	[ROW_CMPXCHG] = { "cmpxchg16b per CPU", SHAPE_CMPXCHG },
	[ROW_BELOW_SP] = { "see below sp" },
};

#define POST_ROWS									\
	(BIT_ULL(ROW_POST_SECOND) | BIT_ULL(ROW_POST_THIRD) |				\
	 BIT_ULL(ROW_POST_BEYOND) | BIT_ULL(ROW_POST_OTHER) |				\
	 BIT_ULL(ROW_POST_REGISTERS) | BIT_ULL(ROW_POST_FLAGS) |			\
	 BIT_ULL(ROW_POST_INTERRUPTS) | BIT_ULL(ROW_POST_THIRD_CHANGED) |		\
	 BIT_ULL(ROW_POST_SECOND_COPY) | BIT_ULL(ROW_POST_THIRD_COPY) |			\
	 BIT_ULL(ROW_POST_FAULT) | BIT_ULL(ROW_POST_SELF) | BIT_ULL(ROW_POST_LONG))
#define COPY_ROWS									\
	(BIT_ULL(ROW_SECOND_COPY) | BIT_ULL(ROW_THIRD_COPY) |				\
	 BIT_ULL(ROW_POST_SECOND_COPY) | BIT_ULL(ROW_POST_THIRD_COPY))
#define CALL_ROWS	(BIT_ULL(ROW_LOOK_FIRST) | BIT_ULL(ROW_PUSH_FIVE))
#define STACK_ROWS									\
	(BIT_ULL(ROW_RETURN_AT_ONCE) | BIT_ULL(ROW_PUSH) | BIT_ULL(ROW_PUSH_SIX) |	\
	 BIT_ULL(ROW_PUSH_FIVE) | BIT_ULL(ROW_PUSH_AND_GO))

/* Whether there is a return probe besides the others, and when it was registered. */
enum matrix_returns { NO_RETURN, RETURN_LAST, RETURN_FIRST, RETURNS };

static const char * const returns_desc[RETURNS] = {
	"", ", return probe last", ", return probe first"
};

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

static struct setup nth_setup(unsigned int n)
{
	return (struct setup){
		.path = n / 2 / RETURNS,
		.returns = n / 2 % RETURNS,
		.count = n % 2 ? MATRIX_PROBES : 1,
	};
}

/* ------------------------------------------------------------------ exclusions */

#define ALL	(~0ULL)
#define ANY	(~0U)

/*
 * struct exclusion - Cells that are not run
 * @rows:	A bit for each row,
 * @paths:	path,
 * @nests:	nesting,
 * @returns:	enum matrix_returns: these cells.
 * @holds:	Whether that is so in this kernel, on this machine.
 * @why:	Why.
 */
static struct exclusion {
	u64 rows;
	u32 paths;
	u32 nests;
	u32 returns;
	bool holds;
	const char *why;
} exclusions[] = {
	{ BIT_ULL(ROW_UNREGISTER), ANY, ANY, ANY, true,
	  "refused with a warning, of which there is one: see handler_cannot_unregister()" },
	{ BIT_ULL(ROW_BELOW_SP), ANY, ANY, ANY, true,
	  "nothing is promised: an interrupt overwrites what is there, too" },
	{ POST_ROWS, ~(u32)POST_PATHS, ANY, ANY, true,
	  "a post handler makes it another path" },
	{ STACK_ROWS, FTRACE_PATHS, ANY, ANY, true,
	  "ftrace restores sp" },
	{ BIT_ULL(ROW_LOWER_SP), ~(u32)FTRACE_PATHS, ANY, ANY, true,
	  "sp is heeded there: see what is pushed" },
	{ COPY_ROWS, ~(u32)JUMP_PATHS, ANY, ANY, true,
	  "only the probed instruction is displaced" },
	{ BIT_ULL(ROW_RETURN_REGISTERS), ANY, ANY, BIT(NO_RETURN), true,
	  "there is no return probe" },
	{ BIT_ULL(ROW_LONG) | BIT_ULL(ROW_POST_LONG), BREAKPOINT_PATHS, ANY, ANY, true,
	  "interrupts are off in a breakpoint's handlers" },
	{ BIT_ULL(ROW_LONG) | BIT_ULL(ROW_POST_LONG), ANY, HARDIRQ_NESTS | NMI_NESTS, ANY, true,
	  "interrupts are off there" },
	{ BIT_ULL(ROW_INTERRUPTS) | BIT_ULL(ROW_POST_INTERRUPTS), ANY,
	  HARDIRQ_NESTS | NMI_NESTS, ANY, true,
	  "interrupts must stay off there" },
	{ CALL_ROWS, BIT(PATH_BOOST) | BIT(PATH_BOOST_POST), ANY, ANY, true,
	  "a call is emulated" },
	{ CALL_ROWS, BIT(PATH_STEP) | BIT(PATH_STEP_POST), ANY, ANY, true,
	  "a call has no exception table entry" },
	{ CALL_ROWS, BIT(PATH_OPTIMIZING) | BIT(PATH_JUMP), ANY, ANY, true,
	  "a call is emulated: that is another path" },
	{ CALL_ROWS, BIT(PATH_OPTIMIZING_POST) | BIT(PATH_JUMP_POST), ANY, ANY, true,
	  "a site with post handlers at a call has no jump" },
	{ ALL, FTRACE_PATHS, ANY, ANY,
	  !IS_ENABLED(CONFIG_KPROBES_ON_FTRACE) || !IS_ENABLED(CONFIG_FTRACE_MCOUNT_USE_CC),
	  "no probes through ftrace, or no ftrace sites in assembler" },
	{ ALL, ANY, NESTS_IN_FTRACE, ANY,
	  !IS_ENABLED(CONFIG_KPROBES_ON_FTRACE) || !IS_ENABLED(CONFIG_FTRACE_MCOUNT_USE_CC),
	  "no probes through ftrace, or no ftrace sites in assembler" },
	{ ALL, JUMP_PATHS, ANY, ANY, !IS_ENABLED(CONFIG_OPTPROBES),
	  "no jumps" },
	{ ALL, ANY, NESTS_IN_JUMP, ANY, !IS_ENABLED(CONFIG_OPTPROBES),
	  "no jumps" },
	{ ALL, ANY, ANY, ~(u32)BIT(NO_RETURN), !IS_ENABLED(CONFIG_KRETPROBES),
	  "no return probes" },
	{ ALL, ANY, BIT(NEST_NMI_IN_RETURN), ANY, !IS_ENABLED(CONFIG_KRETPROBES),
	  "no return probes" },
	{ ALL, ANY, BIT(NEST_SOFTIRQ_IN_BREAKPOINT) | BIT(NEST_HARDIRQ_IN_BREAKPOINT), ANY, true,
	  "interrupts are off in a breakpoint's handlers" },
	{ ALL, ANY, SOFTIRQ_NESTS, ANY, IS_ENABLED(CONFIG_PREEMPT_RT),
	  "softirqs are threads" },
	{ BIT_ULL(ROW_FAULT) | BIT_ULL(ROW_POST_FAULT), ANY, ANY, ANY,
	  IS_ENABLED(CONFIG_TRACE_IRQFLAGS) && !IS_ENABLED(CONFIG_TRACE_IRQFLAGS_NMI),
	  "lockdep thinks that interrupts are on in a breakpoint's handler" },
#define NO_CMPXCHG16B	(ARRAY_SIZE(exclusions) - 2)
	{ BIT_ULL(ROW_CMPXCHG), ANY, ANY, ANY, false,
	  "the CPU does not have this instruction" },
#define NO_NMI		(ARRAY_SIZE(exclusions) - 1)
	{ ALL, ANY, NMI_NESTS, ANY, false,
	  "this CPU cannot send itself an NMI" },
};

static const char *why_excluded(const struct setup *setup, unsigned int row, unsigned int nest)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(exclusions); i++) {
		const struct exclusion *e = &exclusions[i];

		if (e->holds && (e->rows & BIT_ULL(row)) && (e->paths & BIT(setup->path)) &&
		    (e->nests & BIT(nest)) && (e->returns & BIT(setup->returns)))
			return e->why;
	}
	return NULL;
}

/* ------------------------------------------------------------------------ cells */

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
static struct cell {
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
} cell;

/* Which a handler is to act in, as they are on the stack of other tasks as well. */
static bool cell_runs;

static void find_fault(const char *what, unsigned int which, unsigned long got,
		       unsigned long want)
{
	if (cell.bad)
		return;
	cell.bad = what;
	cell.which = which;
	cell.got = got;
	cell.want = want;
}

static void compare_words(const char *what, const void *got, const void *want, size_t size)
{
	const unsigned long *g = got, *w = want;

	for (size_t i = 0; i < size / sizeof(*g); i++)
		if (g[i] != w[i])
			find_fault(what, i, g[i], w[i]);
}

static const struct matrix_code *code_of(enum matrix_kind kind, enum matrix_shape shape)
{
	return &kprobes_test_matrix[kind][shape];
}

static const struct matrix_code *cell_code(void)
{
	return code_of(paths[cell.setup->path].kind, cell.row->shape);
}

/* Where the function that is called in the cell returns to. */
static unsigned long return_address(void)
{
	const struct snippet *ret = find_snippet("ret");

	return ret->code + ret->target;
}

static unsigned long way_address(unsigned long code)
{
	const struct matrix_code *c = cell_code();

	switch (cell.row->way) {
	case WAY_OTHER:
		return find_snippet("call")->code + find_snippet("call")->target;
	case WAY_SECOND:
		return code + c->at[1];
	case WAY_THIRD:
		return code + c->at[2];
	case WAY_BEYOND:
		return code + c->at[3];
	default:
		return code + c->at[0];
	}
}

#define CODE_SIZE	128

static unsigned long relative(unsigned long address)
{
	return address - cell.code < CODE_SIZE ? address - cell.code : address;
}

/* Called by kprobes_test_look(), with the stack pointer at its return address. */
void kprobes_test_look_around(const unsigned long *sp);

noinline void kprobes_test_look_around(const unsigned long *sp)
{
	struct sight *sight = &cell.result[cell.code == cell_code()->code].sight;

	for (unsigned int i = 0; i < SEEN_WORDS; i++)
		sight->words[i] = relative(sp[i]);
	if (cell.setup->returns || cell.row->push)
		sight->words[1] = 0;	/* not the caller, but what takes its place */
	if (cell.row->push)
		sight->words[2] = 0;
	sight->count = preempt_count();
	sight->cpu = raw_smp_processor_id();
	sight->irqs_off = irqs_disabled();
	sight->watching = rcu_is_watching();
#ifdef CONFIG_PROVE_LOCKING
	sight->traced_on = raw_cpu_read(hardirqs_enabled);
#endif
	if (!IS_ENABLED(CONFIG_UNWINDER_ORC) || cell.row->push)
		return;
	save_trace(sight->trace, NULL);
	for (unsigned int i = 0; i < TRACE_LENGTH && sight->trace[i]; i++)
		sight->trace[i] = relative(sight->trace[i]);
}

/* ----------------------------------------------------------- what is done to regs */

static u64 changed_register(unsigned int i)
{
	return 0x0303030303030303 * (i + 1);
}

static unsigned long changed_flags(void)
{
	/* The direction flag is clear at every return. */
	return cell.row->flags & (cell.setup->returns ? ~X86_EFLAGS_DF : ~0UL);
}

static void change_state(struct cpu_state *st)
{
	if (cell.row->regs)
		for (unsigned int i = 0; &st->ax + i < &st->flags; i++)
			(&st->ax)[i] = changed_register(i);
	st->flags ^= changed_flags();
}

static void change_regs(struct pt_regs *regs)
{
	unsigned long *reg[] = {
		&regs->ax, &regs->bx, &regs->cx, &regs->dx, &regs->si, &regs->di, &regs->bp,
		&regs->r8, &regs->r9, &regs->r10, &regs->r11, &regs->r12, &regs->r13, &regs->r14,
		&regs->r15,
	};

	if (cell.row->regs)
		for (unsigned int i = 0; i < ARRAY_SIZE(reg); i++)
			*reg[i] = changed_register(i);
	regs->flags ^= changed_flags();
}

static void change_stack(struct pt_regs *regs)
{
	unsigned long landing = (unsigned long)kprobes_test_landing;

	for (unsigned int i = 0; i < cell.row->push; i++) {
		regs->sp -= sizeof(long);
		*(unsigned long *)regs->sp = landing;
	}
	if (cell.row->lower)
		regs->sp -= 6 * sizeof(long);
}

/* Do what the row says. Returns whether the path has changed. */
static int act_in_handler(struct pt_regs *regs)
{
	cell.acted = true;
	cell.seen = *regs;
	cell.seen_return = *(unsigned long *)regs->sp;
	if (cell.row->act)
		cell.row->act();
	change_regs(regs);
	change_stack(regs);
	if (cell.row->trap)
		regs->flags |= X86_EFLAGS_TF;
	if (cell.row->stray)
		regs->ip = (unsigned long)kprobes_test_landing;
	if (cell.row->way == WAY_ON)
		return 0;
	if (cell.row->way == WAY_RETURN) {
		regs->ip = *(unsigned long *)regs->sp;
		regs->sp += sizeof(long);
	} else {
		regs->ip = way_address(cell.code);
	}
	return 1;
}

/* ----------------------------------------------------------------------- running */

/* All calls come from here, so that stack traces are the same. */
static noinline void enter_code(struct cpu_state *st, unsigned long code)
{
	unsigned long flags;

	if (st->flags & X86_EFLAGS_IF) {
		kprobes_test_run(st, code);
	} else {
		local_irq_save(flags);
		kprobes_test_run(st, code);
		local_irq_restore(flags);
	}
}

/* Do to the twin what the handler does to the probed function. */
static void run_changed_twin(struct cpu_state *st)
{
	const struct matrix_code *c = cell_code();

	if (cell.row->after)
		enter_code(st, c->first);
	if (!cell.row->returning)
		change_state(st);
	if (cell.row->after && cell.row->way == WAY_ON)
		enter_code(st, c->twin + c->at[1]);
	else if (cell.row->way != WAY_RETURN)
		enter_code(st, way_address(c->twin));
	for (unsigned int i = 0; i < cell.row->push; i++)
		enter_code(st, (unsigned long)kprobes_test_landing);

	if (cell.row->returning)
		change_state(st);

	/* Where kprobes_test_callee() was going to return to. */
	if (cell.row->way == WAY_OTHER && cell.row->push)
		st->r13 = (unsigned long)kprobes_test_landing;
}

static void give(struct cpu_state *st, unsigned long interrupt_flag)
{
	u64 *word = &st->ax;

	for (unsigned int i = 0; i < sizeof(*st) / sizeof(*word); i++)
		word[i] = 0x0101010101010101 * (i + 1);
	st->flags = X86_EFLAGS_FIXED | interrupt_flag;
}

/* Those per CPU, which other tests expect to find as they were. */
static void set_variables(void)
{
	raw_cpu_write(kprobes_test_number, 0x4242);
	raw_cpu_write(kprobes_test_pair.word[0], cell.given.ax);
	raw_cpu_write(kprobes_test_pair.word[1], cell.given.dx);
}

static void keep_variables(struct result *result)
{
	result->number = raw_cpu_read(kprobes_test_number);
	result->pair[0] = raw_cpu_read(kprobes_test_pair.word[0]);
	result->pair[1] = raw_cpu_read(kprobes_test_pair.word[1]);
	raw_cpu_write(kprobes_test_number, 7);
	raw_cpu_write(kprobes_test_pair.word[0], 0);
	raw_cpu_write(kprobes_test_pair.word[1], 0);
}

/* The twin first, then the probed function: 0 and 1. */
static noinline void run_one(bool probed)
{
	struct result *result = &cell.result[probed];
	const struct row *row = cell.row;

	result->left = cell.given;
	set_variables();
	cell.code = probed ? cell_code()->code : cell_code()->twin;
	cell.acted = false;
	cell.trapped_at = 0;
	clear_journal();
	if (row->shape == SHAPE_LOWER)
		preempt_disable();	/* that is what is lowered */
	if (probed || (row->shape != SHAPE_WORK && !row->push))
		enter_code(&result->left, cell.code);
	else
		run_changed_twin(&result->left);
	if (row->shape == SHAPE_LOWER)
		preempt_enable();
	keep_variables(result);
	/* As this is free to be clobbered where a function begins, ftrace does not restore it. */
	if (BIT(cell.setup->path) & FTRACE_PATHS)
		result->left.r11 = 0;
	/* It has kept where it was to return to, which was the return trampoline. */
	if (row->way == WAY_OTHER && cell.setup->returns)
		result->left.r13 = 0;
}

/* ----------------------------------------------------------------------- probes */

/**
 * struct matrix_probe - A probe of the matrix
 * @kp:		The probe.
 * @name:	In the journal.
 */
struct matrix_probe {
	struct kprobe kp;
	char name;
};

static struct matrix_probe matrix_probes[SHAPES][MATRIX_PROBES];

/* Of three, the one in the middle does what the row says. */
static char acting_probe(void)
{
	return cell.setup->count > 1 ? 'b' : 'a';
}

static bool is_to_act(const struct matrix_probe *p, bool after)
{
	return !cell.acted && cell.row->after == after && !cell.row->returning &&
	       p->name == acting_probe();
}

static int matrix_pre(struct kprobe *kp, struct pt_regs *regs)
{
	struct matrix_probe *p = container_of(kp, struct matrix_probe, kp);

	if (!cell_runs || current != tester)
		return 0;
	note(p->name);
	return is_to_act(p, false) ? act_in_handler(regs) : 0;
}

static void matrix_post(struct kprobe *kp, struct pt_regs *regs, unsigned long flags)
{
	struct matrix_probe *p = container_of(kp, struct matrix_probe, kp);

	if (!cell_runs || current != tester)
		return;
	note(p->name - 'a' + 'A');
	if (is_to_act(p, true))
		act_in_handler(regs);
}

#ifdef CONFIG_KRETPROBES
static struct kretprobe matrix_return_probes[SHAPES];

static int matrix_entry(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	if (cell_runs && current == tester)
		note('r');
	return 0;
}

static int matrix_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	if (!cell_runs || current != tester)
		return 0;
	note('R');
	if (cell.row->returning && !cell.acted) {
		act_in_handler(regs);
		regs->sp -= sizeof(long);
	}
	return 0;
}

static int register_matrix_returns(void)
{
	for (unsigned int shape = 0; shape < SHAPES; shape++) {
		struct kretprobe *rp = &matrix_return_probes[shape];
		int err;

		memset(rp, 0, sizeof(*rp));
		if (!matrix_probes[shape][0].kp.addr)
			continue;
		rp->kp.addr = matrix_probes[shape][0].kp.addr;
		rp->kp.flags = KPROBE_FLAG_REENTRANT;
		rp->entry_handler = matrix_entry;
		rp->handler = matrix_return;
		err = register_kretprobe(rp);
		if (err)
			return err;
	}
	return 0;
}

static void unregister_matrix_returns(void)
{
	struct kretprobe *all[SHAPES];

	for (unsigned int shape = 0; shape < SHAPES; shape++)
		all[shape] = &matrix_return_probes[shape];
	unregister_kretprobes(all, SHAPES);
}

static int set_matrix_returns_enabled(bool on)
{
	int err = 0;

	for (unsigned int shape = 0; shape < SHAPES && !err; shape++) {
		struct kretprobe *rp = &matrix_return_probes[shape];

		if (rp->kp.addr)
			err = on ? enable_kretprobe(rp) : disable_kretprobe(rp);
	}
	return err;
}

static bool is_matrix_return(enum matrix_shape shape, const struct kprobe *kp)
{
	return kp == &matrix_return_probes[shape].kp;
}

static unsigned int take_missed_returns(enum matrix_shape shape)
{
	struct kretprobe *rp = &matrix_return_probes[shape];
	unsigned int missed = rp->nmissed + rp->kp.nmissed;

	rp->nmissed = 0;
	rp->kp.nmissed = 0;
	return missed;
}
#else
static int register_matrix_returns(void)
{
	return 0;
}

static void unregister_matrix_returns(void)
{
}

static int set_matrix_returns_enabled(bool on)
{
	return 0;
}

static bool is_matrix_return(enum matrix_shape shape, const struct kprobe *kp)
{
	return false;
}

static unsigned int take_missed_returns(enum matrix_shape shape)
{
	return 0;
}
#endif

static unsigned int take_missed(enum matrix_shape shape)
{
	unsigned int missed = take_missed_returns(shape);

	for (unsigned int i = 0; i < MATRIX_PROBES; i++) {
		missed += matrix_probes[shape][i].kp.nmissed;
		matrix_probes[shape][i].kp.nmissed = 0;
	}
	return missed;
}

/* --------------------------------------------------------------- what handlers do */

static void recover_from_fault(void)
{
	unsigned long value;

	if (copy_from_kernel_nofault(&value, BAD_ADDRESS, sizeof(value)) != -EFAULT)
		note('!');
}

/* What it runs into is skipped, and does what it does without a probe. */
static void hit_the_same_probes(void)
{
	struct cpu_state got, want;

	give(&got, irqs_disabled() ? 0 : X86_EFLAGS_IF);
	want = got;
	enter_code(&want, cell_code()->twin);
	enter_code(&got, cell_code()->code);
	cell.selves++;
	compare_words("registers after a skipped hit", &got, &want, sizeof(got));
}

/* The CPU traps after the first instruction that it runs where the handler has sent it. */
static int on_matrix_trap(struct notifier_block *nb, unsigned long event, void *data)
{
	struct die_args *args = data;
	unsigned long *dr6 = (unsigned long *)args->err;

	if (event != DIE_DEBUG || !cell_runs || current != tester || !(*dr6 & DR_STEP))
		return NOTIFY_DONE;
	*dr6 &= ~DR_STEP;
	cell.trapped_at = args->regs->ip;
	args->regs->flags &= ~X86_EFLAGS_TF;
	return NOTIFY_STOP;
}

static struct notifier_block matrix_trap_notifier = { .notifier_call = on_matrix_trap };

static struct hrtimer long_timer;
static bool long_enough;

static enum hrtimer_restart end_long(struct hrtimer *timer)
{
	WRITE_ONCE(long_enough, true);
	return HRTIMER_NORESTART;
}

/* Interrupts come meanwhile. */
static void take_long(void)
{
	if (irqs_disabled()) {
		if (cell.input)
			note('!');
		return;
	}
	WRITE_ONCE(long_enough, false);
	hrtimer_start(&long_timer, ns_to_ktime(2 * NSEC_PER_MSEC), HRTIMER_MODE_REL_PINNED_HARD);
	for (unsigned int i = 0; !READ_ONCE(long_enough) && i < 1000 * 1000; i++)
		udelay(1);
	if (!READ_ONCE(long_enough))
		note('!');
}

/* These functions sleep. They tell who calls before they do so. */

static void expect_deadlock(int err)
{
	if (err != -EDEADLK)
		note('!');
}

static void register_in_vain(void)
{
	static struct kprobe kp = { .symbol_name = "kprobes_test_target" };

	expect_deadlock(register_kprobe(&kp));
}

static void enable_in_vain(void)
{
	expect_deadlock(enable_kprobe(&matrix_probes[cell.row->shape][0].kp));
}

static void disable_in_vain(void)
{
	expect_deadlock(disable_kprobe(&matrix_probes[cell.row->shape][0].kp));
}

/* ---------------------------------------------------------------------- judging */

/* The probes, the newest first. */
static void expect_order(char *s)
{
	if (cell.setup->returns == RETURN_LAST)
		*s++ = 'r';
	for (unsigned int i = cell.setup->count; i--; )
		*s++ = 'a' + i;
	if (cell.setup->returns == RETURN_FIRST)
		*s++ = 'r';
	*s = '\0';
}

/* The handlers that are to be called: none after a changed path. Twice where it leads back. */
static void expect_journal(char *s)
{
	const struct row *row = cell.row;
	bool again = !row->after && row->way == WAY_AGAIN;
	bool changed = !row->after && row->way != WAY_ON && !again;
	char order[MATRIX_PROBES + 2], *o;
	unsigned int entered = 0;

	expect_order(order);
	for (int round = again ? 0 : 1; round < 2; round++) {
		for (o = order; *o; o++) {
			*s++ = *o;
			entered += *o == 'r';
			if ((changed || !round) && *o == acting_probe())
				break;
		}
	}
	for (o = order; *o; o++)
		if (paths[cell.setup->path].post && !changed && *o != 'r')
			*s++ = *o - 'a' + 'A';
	while (entered--)
		*s++ = 'R';
	*s = '\0';
}

static const unsigned long *seen_gprs(unsigned int i)
{
	const struct pt_regs *regs = &cell.seen;
	const unsigned long *all[] = {
		&regs->ax, &regs->bx, &regs->cx, &regs->dx, &regs->si, &regs->di, &regs->bp,
		&regs->r8, &regs->r9, &regs->r10, &regs->r11, &regs->r12, &regs->r13, &regs->r14,
		&regs->r15, &regs->flags,
	};

	return i < ARRAY_SIZE(all) ? all[i] : NULL;
}

/* The acting handler has seen the registers before, or after, the first instruction. */
static void check_seen(void)
{
	struct cpu_state want = cell.given;
	const struct matrix_code *c = cell_code();
	unsigned long ip = c->code + c->at[0] + INT3_INSN_SIZE;
	const u64 *given = &want.ax;

	if (cell.row->after) {
		enter_code(&want, c->first);
		ip = c->code + c->at[1];
	}
	cell.seen.flags &= ~X86_EFLAGS_RF;
	for (unsigned int i = 0; seen_gprs(i); i++)
		if (*seen_gprs(i) != given[i])
			find_fault("registers seen", i, *seen_gprs(i), given[i]);
	if (cell.seen.ip != ip)
		find_fault("ip seen", 0, cell.seen.ip, ip);
	if (!cell.setup->returns && cell.seen_return != return_address())
		find_fault("stack seen", 0, cell.seen_return, return_address());
}

/* What is displaced must not be run where it was: it may be overwritten at any time. */
static void check_trap(void)
{
	const struct matrix_code *c = cell_code();
	unsigned long displaced = c->code + c->at[0], end = c->code + c->at[3];

	if (!cell.trapped_at || (cell.trapped_at >= displaced && cell.trapped_at <= end))
		find_fault("trap", 0, cell.trapped_at, 0);
}

static void judge(void)
{
	const struct result *want = &cell.result[0], *got = &cell.result[1];
	unsigned int missed = cell.selves * (cell.setup->count + !!cell.setup->returns);
	unsigned int counted = take_missed(cell.row->shape);
	char expected[sizeof(journal)];

	cell.runs += cell.acted;
	if (!cell.acted)
		find_fault("handler not called, journal", 0, *(unsigned long *)journal, 0);
	expect_journal(expected);
	if (strcmp(journal, expected))
		find_fault("journal", 0, *(unsigned long *)journal, *(unsigned long *)expected);
	compare_words("registers and variables", got, want, offsetof(struct result, sight));
	compare_words("what was seen around", &got->sight, &want->sight, sizeof(got->sight));
	if (cell.acted && cell.row->shape == SHAPE_WORK && !cell.row->returning)
		check_seen();
	if (cell.row->trap)
		check_trap();
	if (counted != missed)
		find_fault("missed hits", 0, counted, missed);
}

/* With interrupts off, and on where they are. */
static void run_inputs(void)
{
	unsigned int both = 2;

	for (unsigned long input = 0; input < 2; input++) {
		if (input && irqs_disabled())
			break;
		give(&cell.given, input ? X86_EFLAGS_IF : 0);
		memset(cell.result, 0, sizeof(cell.result));
		cell.input = input;
		cell.selves = 0;
		OPTIMIZER_HIDE_VAR(both);	/* one call in all traces */
		for (unsigned int i = 0; i < both; i++)
			run_one(i);
		judge();
	}
}

/* ---------------------------------------------------------------------- contexts */

static struct tasklet_struct cell_tasklet;
static struct irq_work cell_work;
static bool nest_pending, nest_done;
static int nest_cpu;

static void run_nested(void)
{
	run_inputs();
	WRITE_ONCE(nest_done, true);
}

static void run_in_softirq(struct tasklet_struct *tasklet)
{
	run_nested();
}

static void run_in_hardirq(struct irq_work *work)
{
	run_nested();
}

static int run_in_nmi(unsigned int type, struct pt_regs *regs)
{
	if (!READ_ONCE(nest_pending) || raw_smp_processor_id() != nest_cpu)
		return NMI_DONE;
	WRITE_ONCE(nest_pending, false);
	run_nested();
	return NMI_HANDLED;
}

static void interrupt_this_cpu(enum matrix_context context)
{
	switch (context) {
	case IN_SOFTIRQ:
		local_bh_disable();
		tasklet_schedule(&cell_tasklet);
		local_bh_enable();
		break;
	case IN_HARDIRQ:
		irq_work_queue(&cell_work);
		break;
	case IN_NMI:
		nest_cpu = raw_smp_processor_id();
		WRITE_ONCE(nest_pending, true);
		apic->send_IPI(nest_cpu, NMI_VECTOR);
		break;
	default:
		break;
	}
	for (unsigned int i = 0; !READ_ONCE(nest_done) && i < 100 * 1000; i++)
		udelay(1);
}

/* Called by a handler of a probe. */
static void be_interrupted_in(enum matrix_handler handler)
{
	if (cell_runs && current == tester && cell.nest->handler == handler && !nest_done)
		interrupt_this_cpu(cell.nest->context);
}

/* ---------------------------------------------------------- handlers to interrupt */

static int outer_pre(struct kprobe *kp, struct pt_regs *regs)
{
	be_interrupted_in(PRE_HANDLER);
	return 0;
}

static void outer_post(struct kprobe *kp, struct pt_regs *regs, unsigned long flags)
{
	be_interrupted_in(POST_HANDLER);
}

static const struct matrix_code *outer_code(const struct nest *nest)
{
	return code_of(nest->kind, nest->handler == POST_HANDLER ? SHAPE_OUTER_POST : SHAPE_OUTER);
}

/* One for each nesting, though some are at the same place. */
static struct kprobe outer_probes[NESTS];

static int register_outer_probe(unsigned int nest)
{
	const struct matrix_code *c = outer_code(&nests[nest]);
	struct kprobe *kp = &outer_probes[nest];

	if (!c->code || nests[nest].context == IN_TASK || nests[nest].handler == RETURN_HANDLER)
		return 0;
	kp->addr = (kprobe_opcode_t *)c->code + c->at[0];
	kp->pre_handler = outer_pre;
	kp->post_handler = nests[nest].handler == POST_HANDLER ? outer_post : NULL;
	return register_kprobe(kp);
}

#ifdef CONFIG_KRETPROBES
static int outer_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	be_interrupted_in(RETURN_HANDLER);
	return 0;
}

static struct kretprobe outer_return_probe;

static int register_outer_return(void)
{
	const struct matrix_code *c = outer_code(&nests[NEST_NMI_IN_RETURN]);

	memset(&outer_return_probe, 0, sizeof(outer_return_probe));
	outer_return_probe.kp.addr = (kprobe_opcode_t *)c->code + c->at[0];
	outer_return_probe.handler = outer_return;
	return register_kretprobe(&outer_return_probe);
}

static void unregister_outer_return(void)
{
	unregister_kretprobe(&outer_return_probe);
}
#else
static int register_outer_return(void)
{
	return 0;
}

static void unregister_outer_return(void)
{
}
#endif

static int register_outer_probes(void)
{
	int err = 0;

	memset(outer_probes, 0, sizeof(outer_probes));
	for (unsigned int nest = 0; nest < NESTS && !err; nest++)
		err = register_outer_probe(nest);
	return err ?: register_outer_return();
}

static void unregister_outer_probes(void)
{
	struct kprobe *all[NESTS];

	for (unsigned int nest = 0; nest < NESTS; nest++)
		all[nest] = &outer_probes[nest];
	unregister_kprobes(all, NESTS);
	unregister_outer_return();
}

/* Those that are to be interrupted in a detour must have jumps. */
static bool outer_probes_are_ready(void)
{
	wait_for_kprobe_optimizer();
	for (unsigned int nest = 0; nest < NESTS; nest++)
		if (outer_probes[nest].addr && nests[nest].kind == KIND_JUMP &&
		    !kprobe_optimized(&outer_probes[nest]))
			return false;
	return true;
}

static void run_cell(void)
{
	struct cpu_state outer;

	migrate_disable();
	cell_runs = true;
	nest_done = false;
	if (cell.nest->context == IN_TASK) {
		run_inputs();
	} else {
		give(&outer, X86_EFLAGS_IF);
		enter_code(&outer, outer_code(cell.nest)->code);
		if (!nest_done)
			find_fault("no interrupt", 0, 0, 1);
	}
	cell_runs = false;
	migrate_enable();
}

/* -------------------------------------------------------------------- test cases */

enum verdict { NEITHER, RUN, LISTED };

static u8 verdicts[SETUPS][ROWS][NESTS];

static unsigned int count_verdicts(const u8 *verdict, size_t n, enum verdict which)
{
	unsigned int count = 0;

	while (n--)
		count += *verdict++ == which;
	return count;
}

/* A site is the only entry of its list that is no probe. */
static enum kprobe_site_state site_state(enum matrix_shape shape)
{
	struct kprobe *kp = &matrix_probes[shape][0].kp;

	do {
		kp = list_next_entry(kp, list);
	} while (kp->pre_handler == matrix_pre || is_matrix_return(shape, kp));
	return container_of(kp, struct kprobe_site, kp)->state;
}

static bool all_sites_are(enum kprobe_site_state state)
{
	for (unsigned int shape = 0; shape < SHAPES; shape++)
		if (matrix_probes[shape][0].kp.addr && site_state(shape) != state)
			return false;
	return true;
}

static int set_matrix_probes_enabled(bool on)
{
	int err = 0;

	for (unsigned int i = 0; i < SHAPES * MATRIX_PROBES && !err; i++) {
		struct kprobe *kp = &matrix_probes[i / MATRIX_PROBES][i % MATRIX_PROBES].kp;

		if (kp->addr)
			err = on ? enable_kprobe(kp) : disable_kprobe(kp);
	}
	return err ?: set_matrix_returns_enabled(on);
}

/*
 * Sites that have a detour which suits their probes are SITE_OPTIMIZING from when they
 * are armed, or soon after, for one grace period of RCU-tasks. This task runs on, which
 * keeps that from its end.
 */
static bool become_optimizing(void)
{
	unsigned long end;

	wait_for_kprobe_optimizer();
	if (!all_sites_are(SITE_JUMP) || set_matrix_probes_enabled(false) ||
	    set_matrix_probes_enabled(true))
		return false;
	end = jiffies + 5 * HZ;
	while (!all_sites_are(SITE_OPTIMIZING)) {
		if (time_after(jiffies, end))
			return false;
		cpu_relax();
		cond_resched();
	}
	return true;
}

static bool reach_state(const struct hit_path *path)
{
	if (path->state == SITE_OPTIMIZING)
		return become_optimizing();
	wait_for_kprobe_optimizer();
	return all_sites_are(path->state);
}

static bool has_cells(const struct setup *setup, enum matrix_shape shape)
{
	for (unsigned int row = 0; row < ROWS; row++)
		for (unsigned int nest = 0; nest < NESTS; nest++)
			if (rows[row].shape == shape && !why_excluded(setup, row, nest))
				return true;
	return false;
}

static int register_matrix_probes(const struct setup *setup)
{
	const struct hit_path *path = &paths[setup->path];
	struct kprobe *all[SHAPES * MATRIX_PROBES];
	unsigned int n = 0;
	int err = 0;

	memset(matrix_probes, 0, sizeof(matrix_probes));
	for (unsigned int shape = 0; shape < SHAPES; shape++) {
		const struct matrix_code *c = code_of(path->kind, shape);

		if (!has_cells(setup, shape))
			continue;
		for (unsigned int i = 0; i < setup->count; i++) {
			struct matrix_probe *p = &matrix_probes[shape][i];

			p->name = 'a' + i;
			p->kp.addr = (kprobe_opcode_t *)c->code + c->at[0];
			p->kp.pre_handler = matrix_pre;
			p->kp.post_handler = path->post ? matrix_post : NULL;
			p->kp.flags = KPROBE_FLAG_REENTRANT;
			all[n++] = &p->kp;
		}
	}
	if (setup->returns == RETURN_FIRST)
		err = register_matrix_returns();
	if (n && !err)
		err = register_kprobes(all, n);
	if (setup->returns == RETURN_LAST && !err)
		err = register_matrix_returns();
	return err;
}

static void unregister_matrix_probes(void)
{
	struct kprobe *all[SHAPES * MATRIX_PROBES];

	unregister_matrix_returns();
	for (unsigned int i = 0; i < ARRAY_SIZE(all); i++)
		all[i] = &matrix_probes[i / MATRIX_PROBES][i % MATRIX_PROBES].kp;
	unregister_kprobes(all, ARRAY_SIZE(all));
}

/* The first bad cell of each row, and how many there are. Told at the end: that may sleep. */
static struct cell bad_cells[ROWS];
static unsigned int bad_counts[ROWS];

static void run_row(unsigned int row, const struct setup *setup, u8 *verdict)
{
	for (unsigned int nest = 0; nest < NESTS; nest++) {
		if (why_excluded(setup, row, nest)) {
			verdict[nest] = LISTED;
			continue;
		}
		memset(&cell, 0, sizeof(cell));
		cell.setup = setup;
		cell.row = &rows[row];
		cell.nest = &nests[nest];
		run_cell();
		if (cell.runs)
			verdict[nest] = RUN;
		if (cell.bad && !bad_counts[row]++)
			bad_cells[row] = cell;
	}
}

static void tell_bad_cells(struct kunit *test)
{
	for (unsigned int row = 0; row < ROWS; row++) {
		const struct cell *c = &bad_cells[row];

		if (!bad_counts[row])
			continue;
		KUNIT_FAIL(test,
			   "%s: %u cells, first %s, interrupts %s: %s %u: %#lx, not %#lx (%.8s, %.8s)",
			   c->row->desc, bad_counts[row], c->nest->desc, c->input ? "on" : "off",
			   c->bad, c->which, c->got, c->want, (const char *)&c->got,
			   (const char *)&c->want);
	}
}

static void what_handlers_do_and_code_sees(struct kunit *test)
{
	unsigned int n = (uintptr_t)test->param_value - 1;
	const struct setup setup = nth_setup(n);
	const struct hit_path *path = &paths[setup.path];
	u8 *verdict = verdicts[n][0];

	tester = current;
	memset(bad_counts, 0, sizeof(bad_counts));
	KUNIT_ASSERT_TRUE(test, outer_probes_are_ready());
	KUNIT_ASSERT_EQ(test, register_matrix_probes(&setup), 0);
	KUNIT_ASSERT_TRUE(test, reach_state(path));
	for (unsigned int row = 0; row < ROWS; row++)
		run_row(row, &setup, verdicts[n][row]);
	KUNIT_EXPECT_TRUE(test, all_sites_are(path->state));
	unregister_matrix_probes();

	tell_bad_cells(test);
	kunit_info(test, "%u cells run, %u listed",
		   count_verdicts(verdict, ROWS * NESTS, RUN),
		   count_verdicts(verdict, ROWS * NESTS, LISTED));
}

/* A parameter is the number of a setup, and 1: it must not be NULL. */
static const void *setup_gen_params(const void *prev, char *desc)
{
	uintptr_t next = (uintptr_t)prev + 1;
	struct setup setup = nth_setup(next - 1);

	if (next > SETUPS)
		return NULL;
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%s%s, %u", paths[setup.path].desc,
		 returns_desc[setup.returns], setup.count);
	return (const void *)next;
}

static void no_cell_is_missing(struct kunit *test)
{
	const u8 *all = verdicts[0][0];
	const unsigned int n = sizeof(verdicts);
	unsigned int missing = count_verdicts(all, n, NEITHER);

	if (missing == n)
		kunit_skip(test, "none has been tried");
	for (unsigned int i = 0; i < n; i++) {
		const struct setup setup = nth_setup(i / NESTS / ROWS);

		if (all[i] == NEITHER)
			KUNIT_FAIL_AND_ABORT(test, "%u cells, the first one: %s%s, %u, %s, %s",
					     missing, paths[setup.path].desc,
					     returns_desc[setup.returns], setup.count,
					     rows[i / NESTS % ROWS].desc, nests[i % NESTS].desc);
	}
	kunit_info(test, "%u cells: %u run, %u listed", n, count_verdicts(all, n, RUN),
		   count_verdicts(all, n, LISTED));
	for (unsigned int i = 0; i < ARRAY_SIZE(exclusions); i++)
		if (exclusions[i].holds)
			kunit_info(test, "listed: %s", exclusions[i].why);
}

/* ------------------------------------------------------------------------- suite */

static bool can_send_nmi(void)
{
	return boot_cpu_has(X86_FEATURE_APIC) && apic && apic->send_IPI;
}

static void end_matrix(struct kunit_suite *suite)
{
	unregister_outer_probes();
	unregister_die_notifier(&matrix_trap_notifier);
	unregister_nmi_handler(NMI_LOCAL, "kprobes_matrix");
	tasklet_kill(&cell_tasklet);
	irq_work_sync(&cell_work);
	hrtimer_cancel(&long_timer);
}

static int start_matrix(struct kunit_suite *suite)
{
	int err;

	tasklet_setup(&cell_tasklet, run_in_softirq);
	cell_work = IRQ_WORK_INIT_HARD(run_in_hardirq);
	hrtimer_init(&long_timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	long_timer.function = end_long;
	exclusions[NO_NMI].holds = !can_send_nmi();
	exclusions[NO_CMPXCHG16B].holds = !boot_cpu_has(X86_FEATURE_CX16);
	memset(verdicts, 0, sizeof(verdicts));

	err = register_nmi_handler(NMI_LOCAL, run_in_nmi, 0, "kprobes_matrix");
	if (!err)
		err = register_die_notifier(&matrix_trap_notifier);
	if (!err)
		err = register_outer_probes();
	if (err)
		end_matrix(suite);
	return err;
}

static void end_matrix_case(struct kunit *test)
{
	unregister_matrix_probes();
}

static struct kunit_case kprobes_matrix_cases[] = {
	KUNIT_CASE_PARAM_ATTR(what_handlers_do_and_code_sees, setup_gen_params,
			      { .speed = KUNIT_SPEED_SLOW }),
	KUNIT_CASE(no_cell_is_missing),
	{ }
};

static struct kunit_suite kprobes_matrix_suite = {
	.name = "kprobes-matrix",
	.suite_init = start_matrix,
	.suite_exit = end_matrix,
	.exit = end_matrix_case,
	.test_cases = kprobes_matrix_cases,
};

kunit_test_suite(kprobes_matrix_suite);

#endif /* _TEST_KPROBES_MATRIX_X86_H */
