// SPDX-License-Identifier: GPL-2.0
/* A cell of the matrix: its probed function and the twin are run in the same way. */
#include <linux/irqflags.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/smp.h>

#include <asm/processor-flags.h>

#include "frames.h"
#include "matrix_cell.h"
#include "operands.h"

struct cell matrix_cell;

/* Record what is wrong with the cell, if nothing was wrong before. */
void matrix_blame(const char *what, unsigned int which, unsigned long got, unsigned long want)
{
	if (matrix_cell.bad)
		return;
	matrix_cell.bad = what;
	matrix_cell.which = which;
	matrix_cell.got = got;
	matrix_cell.want = want;
}

void matrix_compare_words(const char *what, const void *got, const void *want, size_t size)
{
	const unsigned long *g = got, *w = want;

	for (size_t i = 0; i < size / sizeof(*g); i++)
		if (g[i] != w[i])
			matrix_blame(what, i, g[i], w[i]);
}

const struct matrix_code *matrix_code_of(enum matrix_kind kind, enum matrix_shape shape)
{
	return &kprobes_test_matrix[kind][shape];
}

const struct matrix_code *matrix_cell_code(void)
{
	return matrix_code_of(matrix_paths[matrix_cell.setup->path].kind, matrix_cell.row->shape);
}

/* Return where the row lets execution continue in @code, the probed function or its twin. */
static unsigned long way_address(unsigned long code)
{
	const struct matrix_code *c = matrix_cell_code();

	switch (matrix_cell.row->way) {
	case WAY_OTHER:
		return (unsigned long)kprobes_test_callee;
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
	return address - matrix_cell.code < CODE_SIZE ? address - matrix_cell.code : address;
}

noinline void kprobes_test_look_around(const unsigned long *sp)
{
	bool probed = matrix_cell.code == matrix_cell_code()->code;
	struct sight *sight = &matrix_cell.result[probed ? PROBED : TWIN].sight;

	for (unsigned int i = 0; i < SEEN_WORDS; i++)
		sight->words[i] = relative(sp[i]);
	if (matrix_cell.setup->at_return || matrix_cell.row->push)
		sight->words[1] = 0;	/* the return address, which is replaced */
	if (matrix_cell.row->push)
		sight->words[2] = 0;
	sight->count = preempt_count();
	sight->cpu = raw_smp_processor_id();
	sight->irqs_off = irqs_disabled();
	sight->watching = rcu_is_watching();
	sight->traced_on = lockdep_hardirqs_enabled();
	if (!IS_ENABLED(CONFIG_UNWINDER_ORC) || matrix_cell.row->push)
		return;
	kpt_save_trace(sight->trace, NULL);
	for (unsigned int i = 0; i < TRACE_LENGTH && sight->trace[i]; i++)
		sight->trace[i] = relative(sight->trace[i]);
}

/* Offsets of registers in struct pt_regs, in the order of struct cpu_state. */
static const size_t register_offsets[] = {
	offsetof(struct pt_regs, ax), offsetof(struct pt_regs, bx), offsetof(struct pt_regs, cx),
	offsetof(struct pt_regs, dx), offsetof(struct pt_regs, si), offsetof(struct pt_regs, di),
	offsetof(struct pt_regs, bp),
#ifdef CONFIG_X86_64
	offsetof(struct pt_regs, r8), offsetof(struct pt_regs, r9), offsetof(struct pt_regs, r10),
	offsetof(struct pt_regs, r11), offsetof(struct pt_regs, r12), offsetof(struct pt_regs, r13),
	offsetof(struct pt_regs, r14), offsetof(struct pt_regs, r15),
#endif
	offsetof(struct pt_regs, flags),
};

static_assert(ARRAY_SIZE(register_offsets) ==
	      offsetof(struct cpu_state, memory) / sizeof(unsigned long));

/* Return register @i of @regs, in the order of struct cpu_state, or NULL after flags. */
unsigned long *matrix_register(struct pt_regs *regs, unsigned int i)
{
	return i < ARRAY_SIZE(register_offsets) ? (void *)regs + register_offsets[i] : NULL;
}

static unsigned long changed_register(unsigned int i)
{
	return ~0UL / 0xff * 3 * (i + 1);
}

static bool is_through_ftrace(void)
{
	return matrix_paths[matrix_cell.setup->path].kind == KIND_FTRACE;
}

/* Return the flags that are undefined in the handlers of the cell, and after its hit. */
unsigned long matrix_lost_flags(void)
{
	return is_through_ftrace() ? FTRACE_LOST_FLAGS : 0;
}

static unsigned long changed_flags(void)
{
	/* ftrace restores all flags or none. */
	if (matrix_lost_flags() && !matrix_cell.row->returning)
		return 0;
	/* The direction flag is clear at every return. */
	return matrix_cell.row->flags & (matrix_cell.setup->at_return ? ~X86_EFLAGS_DF : ~0UL);
}

static void change_state(struct cpu_state *state)
{
	unsigned long *reg = (unsigned long *)state;

	if (matrix_cell.row->regs)
		for (unsigned int i = 0; i < ARRAY_SIZE(register_offsets) - 1; i++)
			reg[i] = changed_register(i);
	state->flags ^= changed_flags();
}

static void change_regs(struct pt_regs *regs)
{
	if (matrix_cell.row->regs)
		for (unsigned int i = 0; i < ARRAY_SIZE(register_offsets) - 1; i++)
			*matrix_register(regs, i) = changed_register(i);
	regs->flags ^= changed_flags();
}

static void change_stack(struct pt_regs *regs)
{
	unsigned long landing = (unsigned long)kprobes_test_landing;

	for (unsigned int i = 0; i < matrix_cell.row->push; i++) {
		regs->sp -= sizeof(long);
		*(unsigned long *)regs->sp = landing;
	}
	if (matrix_cell.row->lower)
		regs->sp -= 6 * sizeof(long);
}

/* Do what the row says. Return whether the path has changed. */
int matrix_act(struct pt_regs *regs)
{
	matrix_cell.acted = true;
	matrix_cell.seen = *regs;
	matrix_cell.seen_return = *(unsigned long *)regs->sp;
	if (matrix_cell.row->act)
		matrix_cell.row->act();
	change_regs(regs);
	change_stack(regs);
	if (matrix_cell.row->trap)
		regs->flags |= X86_EFLAGS_TF;
	if (matrix_cell.row->stray)
		regs->ip = (unsigned long)kprobes_test_landing;
	if (matrix_cell.row->way == WAY_ON)
		return 0;
	if (matrix_cell.row->way == WAY_RETURN) {
		regs->ip = *(unsigned long *)regs->sp;
		regs->sp += sizeof(long);
	} else {
		regs->ip = way_address(matrix_cell.code);
	}
	return 1;
}

static void run_inside(struct cpu_state *state, unsigned long address)
{
	kpt_inside = address;
	kpt_run_code(state, (unsigned long)kprobes_test_go_inside);
}

/* Run the twin in parts, and do between them what the handler does. */
static void run_changed_twin(struct cpu_state *state)
{
	const struct matrix_code *c = matrix_cell_code();

	if (matrix_cell.row->after)
		kpt_run_code(state, c->first);
	if (!matrix_cell.row->returning)
		change_state(state);
	if (matrix_cell.row->after && matrix_cell.row->way == WAY_ON)
		run_inside(state, c->twin + c->at[1]);
	else if (matrix_cell.row->way != WAY_RETURN)
		run_inside(state, way_address(c->twin));
	for (unsigned int i = 0; i < matrix_cell.row->push; i++)
		kpt_run_code(state, (unsigned long)kprobes_test_landing);

	if (matrix_cell.row->returning)
		change_state(state);

	/* kprobes_test_callee() leaves its return address there. */
	if (matrix_cell.row->way == WAY_OTHER && matrix_cell.row->push)
		state->CALLER_REG = (unsigned long)kprobes_test_landing;
}

/* Set the state that functions are called with. */
void matrix_set_state(struct cpu_state *state, unsigned long interrupt_flag)
{
	unsigned long *word = (unsigned long *)state;

	for (unsigned int i = 0; i < sizeof(*state) / sizeof(*word); i++)
		word[i] = INPUT_WORD(i);
	state->flags = X86_EFLAGS_FIXED | interrupt_flag;
}

/* Set the per-CPU variables. keep_variables() restores them for other tests. */
static void set_variables(void)
{
	raw_cpu_write(kprobes_test_number, 0x4242);
	raw_cpu_write(kprobes_test_pair.word[0], matrix_cell.given.ax);
	raw_cpu_write(kprobes_test_pair.word[1], matrix_cell.given.dx);
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

/* Run the twin or the probed function. */
static noinline void run_one(bool probed)
{
	struct result *result = &matrix_cell.result[probed ? PROBED : TWIN];
	const struct row *row = matrix_cell.row;

	result->left = matrix_cell.given;
	set_variables();
	matrix_cell.code = probed ? matrix_cell_code()->code : matrix_cell_code()->twin;
	matrix_cell.acted = false;
	matrix_cell.trapped_at = 0;
	kpt_clear_journal();
	if (row->shape == SHAPE_LOWER)
		preempt_disable();	/* the count that is lowered */
	if (probed || (row->shape != SHAPE_WORK && !row->push))
		kpt_run_code(&result->left, matrix_cell.code);
	else
		run_changed_twin(&result->left);
	if (row->shape == SHAPE_LOWER)
		preempt_enable();
	keep_variables(result);
	if (is_through_ftrace())
		matrix_clear_ftrace_lost(&result->left);
	/* kprobes_test_callee() has left its return address there: the return trampoline. */
	if (row->way == WAY_OTHER && matrix_cell.setup->at_return)
		result->left.CALLER_REG = 0;
}

/* Run and check the cell with interrupts off, and with interrupts on unless they are off here. */
void matrix_run_inputs(void)
{
	unsigned int both = BOTH;

	for (unsigned long input = 0; input < 2; input++) {
		if (input && irqs_disabled())
			break;
		matrix_set_state(&matrix_cell.given, input ? X86_EFLAGS_IF : 0);
		memset(matrix_cell.result, 0, sizeof(matrix_cell.result));
		matrix_cell.input = input;
		matrix_cell.selves = 0;
		OPTIMIZER_HIDE_VAR(both);	/* one call, so that traces are the same */
		for (unsigned int i = 0; i < both; i++)
			run_one(i == PROBED);
		matrix_check_result();
	}
}
