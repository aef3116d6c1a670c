// SPDX-License-Identifier: GPL-2.0
/* The test cases of the matrix: matrix.h says what that is. */
#include <linux/cpufeature.h>
#include <linux/jiffies.h>
#include <linux/sched.h>
#include <linux/string.h>

#include "matrix.h"
#include "matrix_cell.h"

/* What became of a cell. */
enum verdict { NEITHER, RUN, EXCLUDED };

static u8 verdicts[SETUPS][ROWS][NESTS];

static unsigned int count_verdicts(const u8 *verdict, size_t n, enum verdict which)
{
	unsigned int count = 0;

	while (n--)
		count += *verdict++ == which;
	return count;
}

#define OPTIMIZING_TRIES	10

static bool sites_become(enum kprobe_site_state state)
{
	unsigned long end = jiffies + 2 * HZ;

	while (!matrix_all_sites_are(state)) {
		if (time_after(jiffies, end))
			return false;
		cpu_relax();
		cond_resched();
	}
	return true;
}

/*
 * An armed site whose detour fits its probes is SITE_OPTIMIZING for one grace period of
 * RCU-tasks. Once all probes are enabled, this ends only when this task sleeps. Before that,
 * while it waits for the optimizer's locks, a site may get its jump: then try again.
 */
static bool become_optimizing(void)
{
	for (unsigned int i = 0; i < OPTIMIZING_TRIES; i++) {
		wait_for_kprobe_optimizer();
		if (!matrix_all_sites_are(SITE_JUMP) || matrix_set_probes_enabled(false) ||
		    matrix_set_probes_enabled(true))
			return false;
		if (sites_become(SITE_OPTIMIZING))
			return true;
	}
	return false;
}

static bool reach_state(const struct hit_path *path)
{
	if (path->state == SITE_OPTIMIZING)
		return become_optimizing();
	wait_for_kprobe_optimizer();
	return matrix_all_sites_are(path->state);
}

/* The first bad cell of each row, and their number. To report them may sleep: that comes last. */
static struct cell bad_cells[ROWS];
static unsigned int bad_counts[ROWS];

static void run_row(unsigned int row, const struct setup *setup, u8 *verdict)
{
	for (unsigned int nest = 0; nest < NESTS; nest++) {
		if (matrix_why_excluded(setup, row, nest)) {
			verdict[nest] = EXCLUDED;
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

static void report_bad_cell(struct kunit *test, const struct cell *c, unsigned int count)
{
	KUNIT_FAIL(test, "%s: %u cells, first %s, interrupts %s: %s %u: %#lx, not %#lx",
		   c->row->desc, count, c->nest->desc, c->input ? "on" : "off", c->bad,
		   c->which, c->got, c->want);
	if (strstr(c->bad, "journal"))
		kunit_info(test, "journal: %.*s, not %.*s",
			   (int)sizeof(c->got), (const char *)&c->got,
			   (int)sizeof(c->want), (const char *)&c->want);
}

static void hit_behaves_the_same_on_each_path(struct kunit *test)
{
	unsigned int n = (uintptr_t)test->param_value - 1;
	const struct setup setup = matrix_nth_setup(n);
	const struct hit_path *path = &matrix_paths[setup.path];
	u8 *verdict = verdicts[n][0];

	kpt_tester = current;
	memset(bad_counts, 0, sizeof(bad_counts));
	KUNIT_ASSERT_TRUE(test, matrix_outer_probes_are_ready());
	KUNIT_ASSERT_EQ(test, matrix_register_probes(&setup), 0);
	KUNIT_ASSERT_TRUE(test, reach_state(path));
	for (unsigned int row = 0; row < ROWS; row++)
		run_row(row, &setup, verdicts[n][row]);
	KUNIT_EXPECT_TRUE(test, matrix_all_sites_are(path->state));
	matrix_unregister_probes();

	for (unsigned int row = 0; row < ROWS; row++)
		if (bad_counts[row])
			report_bad_cell(test, &bad_cells[row], bad_counts[row]);
	kunit_info(test, "%u cells run, %u excluded",
		   count_verdicts(verdict, ROWS * NESTS, RUN),
		   count_verdicts(verdict, ROWS * NESTS, EXCLUDED));
}

/* A parameter is the number of a setup plus 1, so that it is not NULL. */
static const void *setup_gen_params(struct kunit *test, const void *prev, char *desc)
{
	uintptr_t next = (uintptr_t)prev + 1;
	struct setup setup = matrix_nth_setup(next - 1);

	if (next > SETUPS)
		return NULL;
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%s%s, %u", matrix_paths[setup.path].desc,
		 matrix_returns_desc[setup.at_return], setup.count);
	return (const void *)next;
}

static void no_cell_is_missing(struct kunit *test)
{
	const u8 *all = verdicts[0][0];
	const unsigned int n = sizeof(verdicts);
	unsigned int missing = count_verdicts(all, n, NEITHER);

	if (missing == n)
		kunit_skip(test, "no cell has been run");
	for (unsigned int i = 0; i < n; i++) {
		const struct setup setup = matrix_nth_setup(i / NESTS / ROWS);

		if (all[i] == NEITHER)
			KUNIT_FAIL_AND_ABORT(test, "%u cells, the first one: %s%s, %u, %s, %s",
					     missing, matrix_paths[setup.path].desc,
					     matrix_returns_desc[setup.at_return], setup.count,
					     matrix_rows[i / NESTS % ROWS].desc,
					     matrix_nests[i % NESTS].desc);
	}
	kunit_info(test, "%u cells: %u run, %u excluded", n, count_verdicts(all, n, RUN),
		   count_verdicts(all, n, EXCLUDED));
	matrix_list_exclusions(test);
}

static void end_matrix(struct kunit_suite *suite)
{
	matrix_end_nests();
	matrix_end_actions();
}

static int start_matrix(struct kunit_suite *suite)
{
	int err;

	matrix_exclude(!matrix_can_send_nmi(), !boot_cpu_has(PAIR_FEATURE));
	memset(verdicts, 0, sizeof(verdicts));
	err = matrix_init_actions();
	if (!err)
		err = matrix_init_nests();
	if (err)
		end_matrix(suite);
	return err;
}

static void end_matrix_case(struct kunit *test)
{
	matrix_unregister_probes();
}

static struct kunit_case kprobes_x86_matrix_cases[] = {
	KUNIT_CASE_PARAM_ATTR(hit_behaves_the_same_on_each_path, setup_gen_params,
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
