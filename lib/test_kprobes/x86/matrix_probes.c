// SPDX-License-Identifier: GPL-2.0
/* The probes of the matrix, and their handlers. */
#include <linux/list.h>
#include <linux/sched.h>
#include <linux/string.h>

#include "matrix_cell.h"

struct matrix_probe matrix_probes[SHAPES][MATRIX_PROBES];

/* Return which probe does what the row says: of three the one in the middle. */
char matrix_acting_probe(void)
{
	return matrix_cell.setup->count > 1 ? 'b' : 'a';
}

static bool is_to_act(const struct matrix_probe *p, bool after)
{
	const struct row *row = matrix_cell.row;

	return !matrix_cell.acted && row->after == after && !row->returning &&
	       p->name == matrix_acting_probe();
}

static int matrix_pre(struct kprobe *kp, struct pt_regs *regs)
{
	struct matrix_probe *p = container_of(kp, struct matrix_probe, kp);

	if (!matrix_is_running())
		return 0;
	kpt_note(p->name);
	return is_to_act(p, false) ? matrix_act(regs) : 0;
}

static void matrix_post(struct kprobe *kp, struct pt_regs *regs, unsigned long flags)
{
	struct matrix_probe *p = container_of(kp, struct matrix_probe, kp);

	if (!matrix_is_running())
		return;
	kpt_note(p->name - 'a' + 'A');
	if (is_to_act(p, true))
		matrix_act(regs);
}

static struct kretprobe matrix_return_probes[SHAPES];

static int matrix_entry(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	if (matrix_is_running())
		kpt_note('r');
	return 0;
}

static int matrix_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	if (!matrix_is_running())
		return 0;
	kpt_note('R');
	if (matrix_cell.row->returning && !matrix_cell.acted) {
		matrix_act(regs);
		regs->sp -= sizeof(long);
	}
	return 0;
}

/* Return-probe the functions that have probes, or are going to. */
static int register_returns(void)
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

static void unregister_returns(void)
{
	struct kretprobe *all[SHAPES];

	for (unsigned int shape = 0; shape < SHAPES; shape++)
		all[shape] = &matrix_return_probes[shape];
	unregister_kretprobes(all, SHAPES);
}

static int set_returns_enabled(bool on)
{
	int err = 0;

	for (unsigned int shape = 0; shape < SHAPES && !err; shape++) {
		struct kretprobe *rp = &matrix_return_probes[shape];

		if (rp->kp.addr)
			err = on ? enable_kretprobe(rp) : disable_kretprobe(rp);
	}
	return err;
}

static bool is_return_probe(enum matrix_shape shape, const struct kprobe *kp)
{
	return kp == &matrix_return_probes[shape].kp;
}

/* Return whether @setup has cells that are run with functions of @shape. */
static bool has_cells(const struct setup *setup, enum matrix_shape shape)
{
	for (unsigned int row = 0; row < ROWS; row++) {
		if (matrix_rows[row].shape != shape)
			continue;
		for (unsigned int nest = 0; nest < NESTS; nest++)
			if (!matrix_why_excluded(setup, row, nest))
				return true;
	}
	return false;
}

static struct kprobe *init_probe(const struct hit_path *path, enum matrix_shape shape,
				 unsigned int i)
{
	const struct matrix_code *c = matrix_code_of(path->kind, shape);
	struct matrix_probe *p = &matrix_probes[shape][i];

	p->name = 'a' + i;
	p->kp.addr = (kprobe_opcode_t *)c->code + c->at[0];
	p->kp.pre_handler = matrix_pre;
	p->kp.post_handler = path->post ? matrix_post : NULL;
	p->kp.flags = KPROBE_FLAG_REENTRANT;
	return &p->kp;
}

int matrix_register_probes(const struct setup *setup)
{
	const struct hit_path *path = &matrix_paths[setup->path];
	struct kprobe *all[SHAPES * MATRIX_PROBES];
	unsigned int n = 0;
	int err = 0;

	memset(matrix_probes, 0, sizeof(matrix_probes));
	for (unsigned int shape = 0; shape < SHAPES; shape++) {
		if (!has_cells(setup, shape))
			continue;
		for (unsigned int i = 0; i < setup->count; i++)
			all[n++] = init_probe(path, shape, i);
	}
	if (setup->at_return == RETURN_FIRST)
		err = register_returns();
	if (n && !err)
		err = register_kprobes(all, n);
	if (setup->at_return == RETURN_LAST && !err)
		err = register_returns();
	return err;
}

void matrix_unregister_probes(void)
{
	struct kprobe *all[SHAPES * MATRIX_PROBES];

	unregister_returns();
	for (unsigned int i = 0; i < ARRAY_SIZE(all); i++)
		all[i] = &matrix_probes[i / MATRIX_PROBES][i % MATRIX_PROBES].kp;
	unregister_kprobes(all, ARRAY_SIZE(all));
}

/* The only entry of the list that is not one of the probes is the site. */
static enum kprobe_site_state site_state(enum matrix_shape shape)
{
	struct kprobe *kp = &matrix_probes[shape][0].kp;

	do {
		kp = list_next_entry(kp, list);
	} while (kp->pre_handler == matrix_pre || is_return_probe(shape, kp));
	/* Pairs with the WRITE_ONCE() of kprobe_site_set_state(): the optimizer may be at work. */
	return READ_ONCE(container_of(kp, struct kprobe_site, kp)->state);
}

bool matrix_all_sites_are(enum kprobe_site_state state)
{
	for (unsigned int shape = 0; shape < SHAPES; shape++)
		if (matrix_probes[shape][0].kp.addr && site_state(shape) != state)
			return false;
	return true;
}

int matrix_set_probes_enabled(bool on)
{
	int err = 0;

	for (unsigned int i = 0; i < SHAPES * MATRIX_PROBES && !err; i++) {
		struct kprobe *kp = &matrix_probes[i / MATRIX_PROBES][i % MATRIX_PROBES].kp;

		if (kp->addr)
			err = on ? enable_kprobe(kp) : disable_kprobe(kp);
	}
	return err ?: set_returns_enabled(on);
}

static unsigned int take_missed_returns(enum matrix_shape shape)
{
	struct kretprobe *rp = &matrix_return_probes[shape];
	unsigned int missed = rp->nmissed + rp->kp.nmissed;

	rp->nmissed = 0;
	rp->kp.nmissed = 0;
	return missed;
}

/* Return how many hits were missed at @shape since the last call. */
unsigned int matrix_take_missed(enum matrix_shape shape)
{
	unsigned int missed = take_missed_returns(shape);

	for (unsigned int i = 0; i < MATRIX_PROBES; i++) {
		missed += matrix_probes[shape][i].kp.nmissed;
		matrix_probes[shape][i].kp.nmissed = 0;
	}
	return missed;
}
