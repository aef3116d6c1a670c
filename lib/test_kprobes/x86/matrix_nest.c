// SPDX-License-Identifier: GPL-2.0
/* The contexts in which a cell of the matrix is run. */
#include <linux/cpufeature.h>
#include <linux/delay.h>
#include <linux/interrupt.h>
#include <linux/irq_work.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <linux/string.h>

#include <asm/apic.h>
#include <asm/irq_vectors.h>
#include <asm/processor-flags.h>
#include "asm/nmi.h"	/* <linux/nmi.h> does not always include it */

#include "matrix_cell.h"

/* Whether handlers of the matrix must act. Other tasks may hit their probes, too. */
static bool is_cell_running;

static struct tasklet_struct matrix_tasklet;
static struct irq_work matrix_irq_work;
static bool nest_pending, nest_done;
static int nest_cpu;

/* Return whether this task runs a cell. */
bool matrix_is_running(void)
{
	return is_cell_running && current == kpt_tester;
}

static void run_nested(void)
{
	matrix_run_inputs();
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
		tasklet_schedule(&matrix_tasklet);
		local_bh_enable();
		break;
	case IN_HARDIRQ:
		irq_work_queue(&matrix_irq_work);
		break;
	case IN_NMI:
		nest_cpu = raw_smp_processor_id();
		WRITE_ONCE(nest_pending, true);
		if (IS_ENABLED(CONFIG_X86_LOCAL_APIC))
			apic->send_IPI(nest_cpu, NMI_VECTOR);
		break;
	default:
		break;
	}
	for (unsigned int i = 0; !READ_ONCE(nest_done) && i < 100 * 1000; i++)
		udelay(1);
}

/* Interrupt @handler of the outer probe, which calls this, if the cell is to run there. */
static void interrupt_handler(enum matrix_handler handler)
{
	if (matrix_is_running() && !nest_done && matrix_cell.nest->handler == handler)
		interrupt_this_cpu(matrix_cell.nest->context);
}

static int outer_pre(struct kprobe *kp, struct pt_regs *regs)
{
	interrupt_handler(PRE_HANDLER);
	return 0;
}

static void outer_post(struct kprobe *kp, struct pt_regs *regs, unsigned long flags)
{
	interrupt_handler(POST_HANDLER);
}

static const struct matrix_code *outer_code(const struct nest *nest)
{
	return matrix_code_of(nest->kind,
			      nest->handler == POST_HANDLER ? SHAPE_OUTER_POST : SHAPE_OUTER);
}

/* One for each nest, though some of them are at the same address. */
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
	interrupt_handler(RETURN_HANDLER);
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
	unregister_kretprobe(&outer_return_probe);
}

/* Return whether the outer probes whose handlers a detour must call have jumps. */
bool matrix_outer_probes_are_ready(void)
{
	wait_for_kprobe_optimizer();
	for (unsigned int nest = 0; nest < NESTS; nest++)
		if (outer_probes[nest].addr && matrix_nests[nest].kind == KIND_JUMP &&
		    !kprobe_optimized(&outer_probes[nest]))
			return false;
	return true;
}

bool matrix_can_send_nmi(void)
{
	return IS_ENABLED(CONFIG_X86_LOCAL_APIC) && boot_cpu_has(X86_FEATURE_APIC) && apic &&
	       apic->send_IPI;
}

int matrix_init_nests(void)
{
	int err;

	tasklet_setup(&matrix_tasklet, run_in_softirq);
	matrix_irq_work = IRQ_WORK_INIT_HARD(run_in_hardirq);
	err = register_nmi_handler(NMI_LOCAL, run_in_nmi, 0, "kprobes_matrix");
	return err ?: register_outer_probes();
}

void matrix_end_nests(void)
{
	unregister_outer_probes();
	unregister_nmi_handler(NMI_LOCAL, "kprobes_matrix");
	tasklet_kill(&matrix_tasklet);
	irq_work_sync(&matrix_irq_work);
}

/* Run the cell in this task, or in an interrupt of a handler. */
void matrix_run_cell(void)
{
	struct cpu_state outer;

	migrate_disable();
	is_cell_running = true;
	nest_done = false;
	if (matrix_cell.nest->context == IN_TASK) {
		matrix_run_inputs();
	} else {
		matrix_set_state(&outer, X86_EFLAGS_IF);
		kpt_run_code(&outer, outer_code(matrix_cell.nest)->code);
		if (!nest_done)
			matrix_blame("no interrupt", 0, 0, 1);
	}
	is_cell_running = false;
	migrate_enable();
}
