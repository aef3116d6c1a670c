// SPDX-License-Identifier: GPL-2.0
/* The rows, paths and nests of the matrix, and the cells that are not run. */
#include <linux/bits.h>

#include <asm/processor-flags.h>

#include "matrix.h"
#include "matrix_cell.h"

const struct hit_path matrix_paths[PATHS] = {
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

/* The hit is a breakpoint. */
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

const struct nest matrix_nests[NESTS] = {
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

#define CHANGED_STATUS							\
	(X86_EFLAGS_CF | X86_EFLAGS_PF | X86_EFLAGS_AF | X86_EFLAGS_ZF | X86_EFLAGS_SF |	\
	 X86_EFLAGS_OF | X86_EFLAGS_DF)

const struct row matrix_rows[ROWS] = {
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
	[ROW_FAULT] = { "fault", .act = matrix_recover_from_fault },
	[ROW_SELF] = { "hit the same probes", .act = matrix_hit_same_probes },
	[ROW_LONG] = { "take long", .act = matrix_take_long },
	[ROW_STRAY_IP] = { "set ip, return 0", .stray = true },
	[ROW_RETURN_REGISTERS] = {
		"return: registers, flags", .returning = true, .regs = true,
		.flags = CHANGED_STATUS, .stray = true
	},
	[ROW_REGISTER] = { "register", .act = matrix_fail_to_register },
	[ROW_UNREGISTER] = { "unregister" },
	[ROW_ENABLE] = { "enable", .act = matrix_fail_to_enable },
	[ROW_DISABLE] = { "disable", .act = matrix_fail_to_disable },

	[ROW_POST_SECOND] = { "post: go to the second", .after = true, .way = WAY_SECOND },
	[ROW_POST_THIRD] = { "post: go to the third", .after = true, .way = WAY_THIRD },
	[ROW_POST_BEYOND] = { "post: go beyond", .after = true, .way = WAY_BEYOND },
	[ROW_POST_OTHER] = { "post: go to another function", .after = true, .way = WAY_OTHER },
	[ROW_POST_REGISTERS] = { "post: registers", .after = true, .regs = true },
	[ROW_POST_FLAGS] = { "post: flags", .after = true, .flags = CHANGED_STATUS },
	[ROW_POST_INTERRUPTS] = { "post: interrupt flag", .after = true, .flags = X86_EFLAGS_IF },
	[ROW_POST_PUSH_FIVE] = { "post: push five words", .after = true, .push = 5 },
	[ROW_POST_THIRD_CHANGED] = { "post: registers, flags, go to the third", .after = true,
				 .way = WAY_THIRD, .regs = true, .flags = CHANGED_STATUS },
	[ROW_POST_SECOND_COPY] = { "post: go to the copy of the second", .after = true,
			       .way = WAY_SECOND, .trap = true },
	[ROW_POST_THIRD_COPY] = { "post: go to the copy of the third", .after = true,
			      .way = WAY_THIRD, .trap = true },
	[ROW_POST_FAULT] = { "post: fault", .after = true, .act = matrix_recover_from_fault },
	[ROW_POST_SELF] = { "post: hit the same probes", .after = true,
			    .act = matrix_hit_same_probes },
	[ROW_POST_LONG] = { "post: take long", .after = true, .act = matrix_take_long },

	[ROW_LOOK] = { "look around from a call", SHAPE_LOOK },
	[ROW_LOOK_FIRST] = { "look around from a probed call", SHAPE_LOOK_FIRST },
	[ROW_COUNT] = { "see preempt_count", SHAPE_COUNT },
	[ROW_COUNT_SECOND] = { "see preempt_count, second", SHAPE_COUNT_SECOND },
	[ROW_RAISE] = { "raise preempt_count", SHAPE_RAISE },
	[ROW_LOWER] = { "lower preempt_count", SHAPE_LOWER },
	[ROW_CPU] = { "see the CPU", SHAPE_CPU },
	[ROW_XADD] = { "xadd per CPU", SHAPE_XADD },
	[ROW_CMPXCHG] = { "cmpxchg of a pair per CPU", SHAPE_CMPXCHG },
	[ROW_BELOW_SP] = { "see below sp" },
};

#define POST_ROWS									\
	(BIT_ULL(ROW_POST_SECOND) | BIT_ULL(ROW_POST_THIRD) |				\
	 BIT_ULL(ROW_POST_BEYOND) | BIT_ULL(ROW_POST_OTHER) |				\
	 BIT_ULL(ROW_POST_REGISTERS) | BIT_ULL(ROW_POST_FLAGS) |			\
	 BIT_ULL(ROW_POST_INTERRUPTS) | BIT_ULL(ROW_POST_THIRD_CHANGED) |		\
	 BIT_ULL(ROW_POST_SECOND_COPY) | BIT_ULL(ROW_POST_THIRD_COPY) |			\
	 BIT_ULL(ROW_POST_FAULT) | BIT_ULL(ROW_POST_SELF) | BIT_ULL(ROW_POST_LONG) |	\
	 BIT_ULL(ROW_POST_PUSH_FIVE))
#define COPY_ROWS									\
	(BIT_ULL(ROW_SECOND_COPY) | BIT_ULL(ROW_THIRD_COPY) |				\
	 BIT_ULL(ROW_POST_SECOND_COPY) | BIT_ULL(ROW_POST_THIRD_COPY))
#define CALL_ROWS	(BIT_ULL(ROW_LOOK_FIRST) | BIT_ULL(ROW_PUSH_FIVE))
#define STACK_ROWS									\
	(BIT_ULL(ROW_RETURN_AT_ONCE) | BIT_ULL(ROW_PUSH) | BIT_ULL(ROW_PUSH_SIX) |	\
	 BIT_ULL(ROW_PUSH_FIVE) | BIT_ULL(ROW_PUSH_AND_GO) | BIT_ULL(ROW_POST_PUSH_FIVE))

#define FLAG_ROWS									\
	(BIT_ULL(ROW_FLAGS) | BIT_ULL(ROW_INTERRUPTS) | BIT_ULL(ROW_POST_FLAGS) |	\
	 BIT_ULL(ROW_POST_INTERRUPTS))

const char * const matrix_returns_desc[RETURNS] = {
	"", ", return probe last", ", return probe first"
};

/* Return setup @n of SETUPS. */
struct setup matrix_nth_setup(unsigned int n)
{
	return (struct setup){
		.path = n / 2 / RETURNS,
		.at_return = n / 2 % RETURNS,
		.count = n % 2 ? MATRIX_PROBES : 1,
	};
}

#define ALL	(~0ULL)
#define ANY	(~0U)

/**
 * struct exclusion - Cells that are not run
 * @rows:	Mask of their rows.
 * @paths:	Mask of their paths.
 * @nests:	Mask of their nests.
 * @at_return:	Mask of enum matrix_returns.
 * @holds:	Whether they are excluded in this kernel, on this machine.
 * @why:	The reason.
 */
struct exclusion {
	u64 rows;
	u32 paths;
	u32 nests;
	u32 at_return;
	bool holds;
	const char *why;
};

static struct exclusion exclusions[] = {
	{ BIT_ULL(ROW_UNREGISTER), ANY, ANY, ANY, true,
	  "each warns: see handler_drops_probe_elsewhere(), handler_drops_return_probe()" },
	{ BIT_ULL(ROW_BELOW_SP), ANY, ANY, ANY, true,
	  "no promise is made: an interrupt overwrites that, too" },
	{ POST_ROWS, ~(u32)POST_PATHS, ANY, ANY, true,
	  "a post handler makes it another path" },
	{ STACK_ROWS, FTRACE_PATHS, ANY, ANY, IS_ENABLED(CONFIG_X86_64),
	  "ftrace restores sp" },
	{ BIT_ULL(ROW_PUSH_SIX), FTRACE_PATHS, ANY, ANY, IS_ENABLED(CONFIG_X86_32),
	  "ftrace leaves room for five words" },
	{ FLAG_ROWS, FTRACE_PATHS, ANY, ANY, IS_ENABLED(CONFIG_X86_32),
	  "ftrace does not restore flags" },
	{ BIT_ULL(ROW_LOWER_SP), IS_ENABLED(CONFIG_X86_32) ? ANY : ~(u32)FTRACE_PATHS, ANY,
	  ANY, true,
	  "a change of sp takes effect there: see the rows that push" },
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
	{ ALL, ANY, BIT(NEST_SOFTIRQ_IN_BREAKPOINT) | BIT(NEST_HARDIRQ_IN_BREAKPOINT), ANY, true,
	  "interrupts are off in a breakpoint's handlers" },
	{ ALL, ANY, SOFTIRQ_NESTS, ANY, IS_ENABLED(CONFIG_PREEMPT_RT),
	  "softirqs are threads" },
	{ BIT_ULL(ROW_FAULT) | BIT_ULL(ROW_POST_FAULT), ANY, ANY, ANY,
	  IS_ENABLED(CONFIG_TRACE_IRQFLAGS) && !IS_ENABLED(CONFIG_TRACE_IRQFLAGS_NMI),
	  "lockdep thinks that interrupts are on in a breakpoint's handler" },
#define NO_CMPXCHG	(ARRAY_SIZE(exclusions) - 2)
	{ BIT_ULL(ROW_CMPXCHG), ANY, ANY, ANY, false,
	  "the CPU does not have this instruction" },
#define NO_NMI		(ARRAY_SIZE(exclusions) - 1)
	{ ALL, ANY, NMI_NESTS, ANY, false,
	  "this CPU cannot send itself an NMI" },
};

/* Return why the cell of @setup, @row and @nest is not run, or NULL. */
const char *matrix_why_excluded(const struct setup *setup, unsigned int row, unsigned int nest)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(exclusions); i++) {
		const struct exclusion *e = &exclusions[i];

		if (e->holds && (e->rows & BIT_ULL(row)) && (e->paths & BIT(setup->path)) &&
		    (e->nests & BIT(nest)) && (e->at_return & BIT(setup->at_return)))
			return e->why;
	}
	return NULL;
}

/* Exclude the cells that this CPU cannot run. */
void matrix_exclude(bool without_nmi, bool without_cmpxchg)
{
	exclusions[NO_NMI].holds = without_nmi;
	exclusions[NO_CMPXCHG].holds = without_cmpxchg;
}

void matrix_list_exclusions(struct kunit *test)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(exclusions); i++)
		if (exclusions[i].holds)
			kunit_info(test, "excluded: %s", exclusions[i].why);
}
