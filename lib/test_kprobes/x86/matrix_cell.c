// SPDX-License-Identifier: GPL-2.0
/* A cell of the matrix: the probed function and its twin are run and compared. */
#include <linux/preempt.h>
#include <linux/percpu.h>

#include <asm/unwind.h>

#include "frames.h"
#include "matrix.h"
#include "operands.h"

struct cell matrix_cell;

/* Which a handler is to act in, as they are on the stack of other tasks as well. */
bool matrix_cell_runs;

void matrix_find_fault(const char *what, unsigned int which, unsigned long got,
		       unsigned long want)
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
			matrix_find_fault(what, i, g[i], w[i]);
}

const struct matrix_code *matrix_code_of(enum matrix_kind kind, enum matrix_shape shape)
{
	return &kprobes_test_matrix[kind][shape];
}

const struct matrix_code *matrix_cell_code(void)
{
	return matrix_code_of(matrix_paths[matrix_cell.setup->path].kind, matrix_cell.row->shape);
}

/* Where the function that is called in the cell returns to. */
unsigned long matrix_return_address(void)
{
	const struct snippet *ret = kpt_find_snippet("ret");

	return ret->code + ret->target;
}

static unsigned long way_address(unsigned long code)
{
	const struct matrix_code *c = matrix_cell_code();

	switch (matrix_cell.row->way) {
	case WAY_OTHER:
		return kpt_find_snippet("call")->code + kpt_find_snippet("call")->target;
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
	struct sight *sight = &matrix_cell.result[matrix_cell.code == matrix_cell_code()->code].sight;

	for (unsigned int i = 0; i < SEEN_WORDS; i++)
		sight->words[i] = relative(sp[i]);
	if (matrix_cell.setup->returns || matrix_cell.row->push)
		sight->words[1] = 0;	/* not the caller, but what takes its place */
	if (matrix_cell.row->push)
		sight->words[2] = 0;
	sight->count = preempt_count();
	sight->cpu = raw_smp_processor_id();
	sight->irqs_off = irqs_disabled();
	sight->watching = rcu_is_watching();
#ifdef CONFIG_PROVE_LOCKING
	sight->traced_on = raw_cpu_read(hardirqs_enabled);
#endif
	if (!IS_ENABLED(CONFIG_UNWINDER_ORC) || matrix_cell.row->push)
		return;
	kpt_save_trace(sight->trace, NULL);
	for (unsigned int i = 0; i < TRACE_LENGTH && sight->trace[i]; i++)
		sight->trace[i] = relative(sight->trace[i]);
}

static u64 changed_register(unsigned int i)
{
	return 0x0303030303030303 * (i + 1);
}

static unsigned long changed_flags(void)
{
	/* The direction flag is clear at every return. */
	return matrix_cell.row->flags & (matrix_cell.setup->returns ? ~X86_EFLAGS_DF : ~0UL);
}

static void change_state(struct cpu_state *st)
{
	if (matrix_cell.row->regs)
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

	if (matrix_cell.row->regs)
		for (unsigned int i = 0; i < ARRAY_SIZE(reg); i++)
			*reg[i] = changed_register(i);
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

/* Do what the row says. Returns whether the path has changed. */
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

/* All calls come from here, so that stack traces are the same. */
noinline void matrix_enter_code(struct cpu_state *st, unsigned long code)
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
	const struct matrix_code *c = matrix_cell_code();

	if (matrix_cell.row->after)
		matrix_enter_code(st, c->first);
	if (!matrix_cell.row->returning)
		change_state(st);
	if (matrix_cell.row->after && matrix_cell.row->way == WAY_ON)
		matrix_enter_code(st, c->twin + c->at[1]);
	else if (matrix_cell.row->way != WAY_RETURN)
		matrix_enter_code(st, way_address(c->twin));
	for (unsigned int i = 0; i < matrix_cell.row->push; i++)
		matrix_enter_code(st, (unsigned long)kprobes_test_landing);

	if (matrix_cell.row->returning)
		change_state(st);

	/* Where kprobes_test_callee() was going to return to. */
	if (matrix_cell.row->way == WAY_OTHER && matrix_cell.row->push)
		st->r13 = (unsigned long)kprobes_test_landing;
}

void matrix_give(struct cpu_state *st, unsigned long interrupt_flag)
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

/* The twin first, then the probed function: 0 and 1. */
noinline void matrix_run_one(bool probed)
{
	struct result *result = &matrix_cell.result[probed];
	const struct row *row = matrix_cell.row;

	result->left = matrix_cell.given;
	set_variables();
	matrix_cell.code = probed ? matrix_cell_code()->code : matrix_cell_code()->twin;
	matrix_cell.acted = false;
	matrix_cell.trapped_at = 0;
	kpt_clear_journal();
	if (row->shape == SHAPE_LOWER)
		preempt_disable();	/* that is what is lowered */
	if (probed || (row->shape != SHAPE_WORK && !row->push))
		matrix_enter_code(&result->left, matrix_cell.code);
	else
		run_changed_twin(&result->left);
	if (row->shape == SHAPE_LOWER)
		preempt_enable();
	keep_variables(result);
	/* As this is free to be clobbered where a function begins, ftrace does not restore it. */
	if (BIT(matrix_cell.setup->path) & FTRACE_PATHS)
		result->left.r11 = 0;
	/* It has kept where it was to return to, which was the return trampoline. */
	if (row->way == WAY_OTHER && matrix_cell.setup->returns)
		result->left.r13 = 0;
}
