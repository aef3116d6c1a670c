// SPDX-License-Identifier: GPL-2.0
/* What handlers of the matrix do besides changing registers and the path. */
#include <linux/hrtimer.h>
#include <linux/irqflags.h>
#include <linux/kdebug.h>
#include <linux/notifier.h>
#include <linux/percpu.h>
#include <linux/uaccess.h>

#include <asm/processor-flags.h>

#include "matrix_cell.h"
#include "operands.h"
#include "single_step.h"

void matrix_recover_from_fault(void)
{
	unsigned long value;

	if (copy_from_kernel_nofault(&value, BAD_ADDRESS, sizeof(value)) != -EFAULT)
		kpt_note('!');
}

/* These hits call no handlers, and the function does what it does without a probe. */
void matrix_hit_same_probes(void)
{
	struct cpu_state got, want;

	matrix_set_state(&got, irqs_disabled() ? 0 : X86_EFLAGS_IF);
	want = got;
	kpt_run_code(&want, matrix_cell_code()->twin);
	kpt_run_code(&got, matrix_cell_code()->code);
	matrix_cell.selves++;
	matrix_compare_words("registers after a skipped hit", &got, &want, sizeof(got));
}

/*
 * The CPU traps after the first instruction to which the handler has sent it; or before it, if
 * RETURN_BY_RET has sent it there.
 */
static int on_matrix_trap(struct notifier_block *nb, unsigned long event, void *data)
{
	struct die_args *args = data;

	if (!matrix_is_running() || !kpt_take_step(event, args))
		return NOTIFY_DONE;
	matrix_cell.trapped_at = args->regs->ip;
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

/* Let interrupts come in the meantime. On a busy host a timer may be seconds late. */
void matrix_take_long(void)
{
	if (irqs_disabled()) {
		if (matrix_cell.input)
			kpt_note('!');
		return;
	}
	WRITE_ONCE(long_enough, false);
	hrtimer_start(&long_timer, ms_to_ktime(2), HRTIMER_MODE_REL_PINNED_HARD);
	if (!kpt_spin_until(&long_enough, MSEC_PER_SEC))
		kpt_note('!');
}

/* Functions that sleep notice, before they do so, that a handler calls them. */
static void expect_deadlock(int err)
{
	if (err != -EDEADLK)
		kpt_note('!');
}

void matrix_fail_to_register(void)
{
	static struct kprobe kp = { .symbol_name = "kprobes_test_target" };

	expect_deadlock(register_kprobe(&kp));
}

void matrix_fail_to_enable(void)
{
	expect_deadlock(enable_kprobe(&matrix_probes[matrix_cell.row->shape][0].kp));
}

void matrix_fail_to_disable(void)
{
	expect_deadlock(disable_kprobe(&matrix_probes[matrix_cell.row->shape][0].kp));
}

int matrix_init_actions(void)
{
	int cpu;

	for_each_possible_cpu(cpu)
		per_cpu(kprobes_test_cpu, cpu) = cpu;
	hrtimer_setup(&long_timer, end_long, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	return register_die_notifier(&matrix_trap_notifier);
}

void matrix_end_actions(void)
{
	unregister_die_notifier(&matrix_trap_notifier);
	hrtimer_cancel(&long_timer);
}
