// SPDX-License-Identifier: GPL-2.0
/* What handlers of the matrix do, and what must come of it. */
#include <linux/delay.h>
#include <linux/kdebug.h>
#include <linux/uaccess.h>

#include <asm/debugreg.h>

#include "matrix.h"

void matrix_recover_from_fault(void)
{
	unsigned long value;

	if (copy_from_kernel_nofault(&value, BAD_ADDRESS, sizeof(value)) != -EFAULT)
		kpt_note('!');
}

/* What it runs into is skipped, and does what it does without a probe. */
void matrix_hit_the_same_probes(void)
{
	struct cpu_state got, want;

	matrix_give(&got, irqs_disabled() ? 0 : X86_EFLAGS_IF);
	want = got;
	matrix_enter_code(&want, matrix_cell_code()->twin);
	matrix_enter_code(&got, matrix_cell_code()->code);
	matrix_cell.selves++;
	matrix_compare_words("registers after a skipped hit", &got, &want, sizeof(got));
}

/* The CPU traps after the first instruction that it runs where the handler has sent it. */
static int on_matrix_trap(struct notifier_block *nb, unsigned long event, void *data)
{
	struct die_args *args = data;
	unsigned long *dr6 = (unsigned long *)args->err;

	if (event != DIE_DEBUG || !matrix_cell_runs || current != kpt_tester || !(*dr6 & DR_STEP))
		return NOTIFY_DONE;
	*dr6 &= ~DR_STEP;
	matrix_cell.trapped_at = args->regs->ip;
	args->regs->flags &= ~X86_EFLAGS_TF;
	return NOTIFY_STOP;
}

struct notifier_block matrix_trap_notifier = { .notifier_call = on_matrix_trap };

struct hrtimer matrix_long_timer;
static bool long_enough;

enum hrtimer_restart matrix_end_long(struct hrtimer *timer)
{
	WRITE_ONCE(long_enough, true);
	return HRTIMER_NORESTART;
}

/* Interrupts come meanwhile. */
void matrix_take_long(void)
{
	if (irqs_disabled()) {
		if (matrix_cell.input)
			kpt_note('!');
		return;
	}
	WRITE_ONCE(long_enough, false);
	hrtimer_start(&matrix_long_timer, ns_to_ktime(2 * NSEC_PER_MSEC), HRTIMER_MODE_REL_PINNED_HARD);
	for (unsigned int i = 0; !READ_ONCE(long_enough) && i < 1000 * 1000; i++)
		udelay(1);
	if (!READ_ONCE(long_enough))
		kpt_note('!');
}

/* These functions sleep. They tell who calls before they do so. */

static void expect_deadlock(int err)
{
	if (err != -EDEADLK)
		kpt_note('!');
}

void matrix_register_in_vain(void)
{
	static struct kprobe kp = { .symbol_name = "kprobes_test_target" };

	expect_deadlock(register_kprobe(&kp));
}

void matrix_enable_in_vain(void)
{
	expect_deadlock(enable_kprobe(&matrix_probes[matrix_cell.row->shape][0].kp));
}

void matrix_disable_in_vain(void)
{
	expect_deadlock(disable_kprobe(&matrix_probes[matrix_cell.row->shape][0].kp));
}

/* The probes, the newest first. */
static void expect_order(char *s)
{
	if (matrix_cell.setup->returns == RETURN_LAST)
		*s++ = 'r';
	for (unsigned int i = matrix_cell.setup->count; i--; )
		*s++ = 'a' + i;
	if (matrix_cell.setup->returns == RETURN_FIRST)
		*s++ = 'r';
	*s = '\0';
}

/* The handlers that are to be called: none after a changed path. Twice where it leads back. */
static void expect_journal(char *s)
{
	const struct row *row = matrix_cell.row;
	bool again = !row->after && row->way == WAY_AGAIN;
	bool changed = !row->after && row->way != WAY_ON && !again;
	char order[MATRIX_PROBES + 2], *o;
	unsigned int entered = 0;

	expect_order(order);
	for (int round = again ? 0 : 1; round < 2; round++) {
		for (o = order; *o; o++) {
			*s++ = *o;
			entered += *o == 'r';
			if ((changed || !round) && *o == matrix_acting_probe())
				break;
		}
	}
	for (o = order; *o; o++)
		if (matrix_paths[matrix_cell.setup->path].post && !changed && *o != 'r')
			*s++ = *o - 'a' + 'A';
	while (entered--)
		*s++ = 'R';
	*s = '\0';
}

static const unsigned long *seen_gprs(unsigned int i)
{
	const struct pt_regs *regs = &matrix_cell.seen;
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
	struct cpu_state want = matrix_cell.given;
	const struct matrix_code *c = matrix_cell_code();
	unsigned long ip = c->code + c->at[0] + INT3_INSN_SIZE;
	const u64 *given = &want.ax;

	if (matrix_cell.row->after) {
		matrix_enter_code(&want, c->first);
		ip = c->code + c->at[1];
	}
	matrix_cell.seen.flags &= ~X86_EFLAGS_RF;
	for (unsigned int i = 0; seen_gprs(i); i++)
		if (*seen_gprs(i) != given[i])
			matrix_find_fault("registers seen", i, *seen_gprs(i), given[i]);
	if (matrix_cell.seen.ip != ip)
		matrix_find_fault("ip seen", 0, matrix_cell.seen.ip, ip);
	if (!matrix_cell.setup->returns && matrix_cell.seen_return != matrix_return_address())
		matrix_find_fault("stack seen", 0, matrix_cell.seen_return, matrix_return_address());
}

/* What is displaced must not be run where it was: it may be overwritten at any time. */
static void check_trap(void)
{
	const struct matrix_code *c = matrix_cell_code();
	unsigned long displaced = c->code + c->at[0], end = c->code + c->at[3];

	if (!matrix_cell.trapped_at ||
	    (matrix_cell.trapped_at >= displaced && matrix_cell.trapped_at <= end))
		matrix_find_fault("trap", 0, matrix_cell.trapped_at, 0);
}

static void judge(void)
{
	const struct result *want = &matrix_cell.result[0], *got = &matrix_cell.result[1];
	const struct setup *setup = matrix_cell.setup;
	unsigned int missed = matrix_cell.selves * (setup->count + !!setup->returns);
	unsigned int counted = matrix_take_missed(matrix_cell.row->shape);
	char expected[sizeof(kpt_journal)];

	matrix_cell.runs += matrix_cell.acted;
	if (!matrix_cell.acted)
		matrix_find_fault("handler not called, journal", 0, *(unsigned long *)kpt_journal, 0);
	expect_journal(expected);
	if (strcmp(kpt_journal, expected))
		matrix_find_fault("journal", 0, *(unsigned long *)kpt_journal, *(unsigned long *)expected);
	matrix_compare_words("registers and variables", got, want, offsetof(struct result, sight));
	matrix_compare_words("what was seen around", &got->sight, &want->sight, sizeof(got->sight));
	if (matrix_cell.acted && matrix_cell.row->shape == SHAPE_WORK && !matrix_cell.row->returning)
		check_seen();
	if (matrix_cell.row->trap)
		check_trap();
	if (counted != missed)
		matrix_find_fault("missed hits", 0, counted, missed);
}

/* With interrupts off, and on where they are. */
void matrix_run_inputs(void)
{
	unsigned int both = 2;

	for (unsigned long input = 0; input < 2; input++) {
		if (input && irqs_disabled())
			break;
		matrix_give(&matrix_cell.given, input ? X86_EFLAGS_IF : 0);
		memset(matrix_cell.result, 0, sizeof(matrix_cell.result));
		matrix_cell.input = input;
		matrix_cell.selves = 0;
		OPTIMIZER_HIDE_VAR(both);	/* one call in all traces */
		for (unsigned int i = 0; i < both; i++)
			matrix_run_one(i);
		judge();
	}
}
