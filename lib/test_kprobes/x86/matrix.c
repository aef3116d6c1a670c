// SPDX-License-Identifier: GPL-2.0
/* The test cases of the matrix: see matrix.h. */
#include <linux/kdebug.h>
#include <linux/string.h>

#include <asm/apic.h>
#include "asm/nmi.h"	/* <linux/nmi.h> does not always include it */

#include "matrix.h"

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
	} while (kp->pre_handler == matrix_pre || matrix_is_return(shape, kp));
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
	return err ?: matrix_set_returns_enabled(on);
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
			if (matrix_rows[row].shape == shape && !matrix_why_excluded(setup, row, nest))
				return true;
	return false;
}

static int register_matrix_probes(const struct setup *setup)
{
	const struct hit_path *path = &matrix_paths[setup->path];
	struct kprobe *all[SHAPES * MATRIX_PROBES];
	unsigned int n = 0;
	int err = 0;

	memset(matrix_probes, 0, sizeof(matrix_probes));
	for (unsigned int shape = 0; shape < SHAPES; shape++) {
		const struct matrix_code *c = matrix_code_of(path->kind, shape);

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
		err = matrix_register_returns();
	if (n && !err)
		err = register_kprobes(all, n);
	if (setup->returns == RETURN_LAST && !err)
		err = matrix_register_returns();
	return err;
}

static void unregister_matrix_probes(void)
{
	struct kprobe *all[SHAPES * MATRIX_PROBES];

	matrix_unregister_returns();
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
		if (matrix_why_excluded(setup, row, nest)) {
			verdict[nest] = LISTED;
			continue;
		}
		memset(&matrix_cell, 0, sizeof(matrix_cell));
		matrix_cell.setup = setup;
		matrix_cell.row = &matrix_rows[row];
		matrix_cell.nest = &matrix_nests[nest];
		matrix_run_cell();
		if (matrix_cell.runs)
			verdict[nest] = RUN;
		if (matrix_cell.bad && !bad_counts[row]++)
			bad_cells[row] = matrix_cell;
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
	const struct setup setup = matrix_nth_setup(n);
	const struct hit_path *path = &matrix_paths[setup.path];
	u8 *verdict = verdicts[n][0];

	kpt_tester = current;
	memset(bad_counts, 0, sizeof(bad_counts));
	KUNIT_ASSERT_TRUE(test, matrix_outer_probes_are_ready());
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
	struct setup setup = matrix_nth_setup(next - 1);

	if (next > SETUPS)
		return NULL;
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%s%s, %u", matrix_paths[setup.path].desc,
		 matrix_returns_desc[setup.returns], setup.count);
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
		const struct setup setup = matrix_nth_setup(i / NESTS / ROWS);

		if (all[i] == NEITHER)
			KUNIT_FAIL_AND_ABORT(test, "%u cells, the first one: %s%s, %u, %s, %s",
					     missing, matrix_paths[setup.path].desc,
					     matrix_returns_desc[setup.returns], setup.count,
					     matrix_rows[i / NESTS % ROWS].desc, matrix_nests[i % NESTS].desc);
	}
	kunit_info(test, "%u cells: %u run, %u listed", n, count_verdicts(all, n, RUN),
		   count_verdicts(all, n, LISTED));
	matrix_list_exclusions(test);
}

static bool can_send_nmi(void)
{
	return boot_cpu_has(X86_FEATURE_APIC) && apic && apic->send_IPI;
}

static void end_matrix(struct kunit_suite *suite)
{
	matrix_unregister_outer_probes();
	unregister_die_notifier(&matrix_trap_notifier);
	unregister_nmi_handler(NMI_LOCAL, "kprobes_matrix");
	tasklet_kill(&matrix_tasklet);
	irq_work_sync(&matrix_irq_work);
	hrtimer_cancel(&matrix_long_timer);
}

static int start_matrix(struct kunit_suite *suite)
{
	int err;

	tasklet_setup(&matrix_tasklet, matrix_run_in_softirq);
	matrix_irq_work = IRQ_WORK_INIT_HARD(matrix_run_in_hardirq);
	hrtimer_init(&matrix_long_timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	matrix_long_timer.function = matrix_end_long;
	matrix_exclude(!can_send_nmi(), !boot_cpu_has(X86_FEATURE_CX16));
	memset(verdicts, 0, sizeof(verdicts));

	err = register_nmi_handler(NMI_LOCAL, matrix_run_in_nmi, 0, "kprobes_matrix");
	if (!err)
		err = register_die_notifier(&matrix_trap_notifier);
	if (!err)
		err = matrix_register_outer_probes();
	if (err)
		end_matrix(suite);
	return err;
}

static void end_matrix_case(struct kunit *test)
{
	unregister_matrix_probes();
}

static struct kunit_case kprobes_x86_matrix_cases[] = {
	KUNIT_CASE_PARAM_ATTR(what_handlers_do_and_code_sees, setup_gen_params,
			      { .speed = KUNIT_SPEED_SLOW }),
	KUNIT_CASE(no_cell_is_missing),
	{ }
};

static struct kunit_suite kprobes_x86_matrix_suite = {
	.name = "kprobes-x86-matrix",
	.suite_init = start_matrix,
	.suite_exit = end_matrix,
	.exit = end_matrix_case,
	.test_cases = kprobes_x86_matrix_cases,
};

kunit_test_suite(kprobes_x86_matrix_suite);
