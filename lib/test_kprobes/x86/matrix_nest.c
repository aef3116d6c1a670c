// SPDX-License-Identifier: GPL-2.0
/* The contexts in which a cell of the matrix is run. */
#include <linux/delay.h>

#include <asm/apic.h>
#include "asm/nmi.h"	/* <linux/nmi.h> does not always include it */

#include "matrix.h"

struct tasklet_struct matrix_tasklet;
struct irq_work matrix_irq_work;
static bool nest_pending, nest_done;
static int nest_cpu;

static void run_nested(void)
{
	matrix_run_inputs();
	WRITE_ONCE(nest_done, true);
}

void matrix_run_in_softirq(struct tasklet_struct *tasklet)
{
	run_nested();
}

void matrix_run_in_hardirq(struct irq_work *work)
{
	run_nested();
}

int matrix_run_in_nmi(unsigned int type, struct pt_regs *regs)
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
		tasklet_schedule(&matrix_tasklet);
		local_bh_enable();
		break;
	case IN_HARDIRQ:
		irq_work_queue(&matrix_irq_work);
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
void matrix_be_interrupted_in(enum matrix_handler handler)
{
	if (matrix_cell_runs && current == kpt_tester && !nest_done &&
	    matrix_cell.nest->handler == handler)
		interrupt_this_cpu(matrix_cell.nest->context);
}

static int outer_pre(struct kprobe *kp, struct pt_regs *regs)
{
	matrix_be_interrupted_in(PRE_HANDLER);
	return 0;
}

static void outer_post(struct kprobe *kp, struct pt_regs *regs, unsigned long flags)
{
	matrix_be_interrupted_in(POST_HANDLER);
}

static const struct matrix_code *outer_code(const struct nest *nest)
{
	return matrix_code_of(nest->kind, nest->handler == POST_HANDLER ? SHAPE_OUTER_POST : SHAPE_OUTER);
}

/* One for each nesting, though some are at the same place. */
static struct kprobe outer_probes[NESTS];

static int register_outer_probe(unsigned int nest)
{
	const struct matrix_code *c = outer_code(&matrix_nests[nest]);
	struct kprobe *kp = &outer_probes[nest];

	if (!c->code || matrix_nests[nest].context == IN_TASK ||
	    matrix_nests[nest].handler == RETURN_HANDLER)
		return 0;
	kp->addr = (kprobe_opcode_t *)c->code + c->at[0];
	kp->pre_handler = outer_pre;
	kp->post_handler = matrix_nests[nest].handler == POST_HANDLER ? outer_post : NULL;
	return register_kprobe(kp);
}

static int outer_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	matrix_be_interrupted_in(RETURN_HANDLER);
	return 0;
}

static struct kretprobe outer_return_probe;

static int register_outer_return(void)
{
	const struct matrix_code *c = outer_code(&matrix_nests[NEST_NMI_IN_RETURN]);

	memset(&outer_return_probe, 0, sizeof(outer_return_probe));
	outer_return_probe.kp.addr = (kprobe_opcode_t *)c->code + c->at[0];
	outer_return_probe.handler = outer_return;
	return register_kretprobe(&outer_return_probe);
}

static void unregister_outer_return(void)
{
	unregister_kretprobe(&outer_return_probe);
}

int matrix_register_outer_probes(void)
{
	int err = 0;

	memset(outer_probes, 0, sizeof(outer_probes));
	for (unsigned int nest = 0; nest < NESTS && !err; nest++)
		err = register_outer_probe(nest);
	return err ?: register_outer_return();
}

void matrix_unregister_outer_probes(void)
{
	struct kprobe *all[NESTS];

	for (unsigned int nest = 0; nest < NESTS; nest++)
		all[nest] = &outer_probes[nest];
	unregister_kprobes(all, NESTS);
	unregister_outer_return();
}

/* Those that are to be interrupted in a detour must have jumps. */
bool matrix_outer_probes_are_ready(void)
{
	wait_for_kprobe_optimizer();
	for (unsigned int nest = 0; nest < NESTS; nest++)
		if (outer_probes[nest].addr && matrix_nests[nest].kind == KIND_JUMP &&
		    !kprobe_optimized(&outer_probes[nest]))
			return false;
	return true;
}

void matrix_run_cell(void)
{
	struct cpu_state outer;

	migrate_disable();
	matrix_cell_runs = true;
	nest_done = false;
	if (matrix_cell.nest->context == IN_TASK) {
		matrix_run_inputs();
	} else {
		matrix_give(&outer, X86_EFLAGS_IF);
		matrix_enter_code(&outer, outer_code(matrix_cell.nest)->code);
		if (!nest_done)
			matrix_find_fault("no interrupt", 0, 0, 1);
	}
	matrix_cell_runs = false;
	migrate_enable();
}
