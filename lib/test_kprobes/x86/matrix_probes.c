// SPDX-License-Identifier: GPL-2.0
/* The probes of a cell of the matrix, and their handlers. */
#include "matrix.h"

struct matrix_probe matrix_probes[SHAPES][MATRIX_PROBES];

/* Of three, the one in the middle does what the row says. */
char matrix_acting_probe(void)
{
	return matrix_cell.setup->count > 1 ? 'b' : 'a';
}

static bool is_to_act(const struct matrix_probe *p, bool after)
{
	return !matrix_cell.acted && matrix_cell.row->after == after && !matrix_cell.row->returning &&
	       p->name == matrix_acting_probe();
}

int matrix_pre(struct kprobe *kp, struct pt_regs *regs)
{
	struct matrix_probe *p = container_of(kp, struct matrix_probe, kp);

	if (!matrix_cell_runs || current != kpt_tester)
		return 0;
	kpt_note(p->name);
	return is_to_act(p, false) ? matrix_act(regs) : 0;
}

void matrix_post(struct kprobe *kp, struct pt_regs *regs, unsigned long flags)
{
	struct matrix_probe *p = container_of(kp, struct matrix_probe, kp);

	if (!matrix_cell_runs || current != kpt_tester)
		return;
	kpt_note(p->name - 'a' + 'A');
	if (is_to_act(p, true))
		matrix_act(regs);
}

static struct kretprobe matrix_return_probes[SHAPES];

static int matrix_entry(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	if (matrix_cell_runs && current == kpt_tester)
		kpt_note('r');
	return 0;
}

static int matrix_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	if (!matrix_cell_runs || current != kpt_tester)
		return 0;
	kpt_note('R');
	if (matrix_cell.row->returning && !matrix_cell.acted) {
		matrix_act(regs);
		regs->sp -= sizeof(long);
	}
	return 0;
}

int matrix_register_returns(void)
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

void matrix_unregister_returns(void)
{
	struct kretprobe *all[SHAPES];

	for (unsigned int shape = 0; shape < SHAPES; shape++)
		all[shape] = &matrix_return_probes[shape];
	unregister_kretprobes(all, SHAPES);
}

int matrix_set_returns_enabled(bool on)
{
	int err = 0;

	for (unsigned int shape = 0; shape < SHAPES && !err; shape++) {
		struct kretprobe *rp = &matrix_return_probes[shape];

		if (rp->kp.addr)
			err = on ? enable_kretprobe(rp) : disable_kretprobe(rp);
	}
	return err;
}

bool matrix_is_return(enum matrix_shape shape, const struct kprobe *kp)
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

unsigned int matrix_take_missed(enum matrix_shape shape)
{
	unsigned int missed = take_missed_returns(shape);

	for (unsigned int i = 0; i < MATRIX_PROBES; i++) {
		missed += matrix_probes[shape][i].kp.nmissed;
		matrix_probes[shape][i].kp.nmissed = 0;
	}
	return missed;
}
