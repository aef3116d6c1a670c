// SPDX-License-Identifier: GPL-2.0
/* What the result of a cell of the matrix must be. */
#include <linux/cache.h>
#include <linux/string.h>

#include <asm/processor-flags.h>
#include <asm/text-patching.h>

#include "matrix_cell.h"

/* Write the probes to @s in the order of their pre handlers, the newest first. */
static void expect_order(char *s)
{
	if (matrix_cell.setup->at_return == RETURN_LAST)
		*s++ = 'r';
	for (unsigned int i = matrix_cell.setup->count; i--; )
		*s++ = 'a' + i;
	if (matrix_cell.setup->at_return == RETURN_FIRST)
		*s++ = 'r';
	*s = '\0';
}

/*
 * Write the handlers that must be called to @s. A handler that changes the path is the last
 * one; if it goes back to the probed instruction, there is a second hit.
 */
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

/* The handler must have seen the registers before, or after, the first instruction. */
static void check_seen(void)
{
	unsigned long seen_return = matrix_cell.seen_return;
	struct cpu_state want = matrix_cell.given;
	const struct matrix_code *c = matrix_cell_code();
	unsigned long ip = c->code + c->at[0] + INT3_INSN_SIZE;
	const unsigned long *given = (const unsigned long *)&want;
	const unsigned long *seen;

	if (matrix_cell.row->after) {
		kpt_run_code(&want, c->first);
		ip = c->code + c->at[1];
	}
	matrix_cell.seen.flags &= ~(X86_EFLAGS_RF | matrix_lost_flags());
	want.flags &= ~matrix_lost_flags();
	for (unsigned int i = 0; (seen = matrix_register(&matrix_cell.seen, i)); i++)
		if (*seen != given[i])
			matrix_blame("registers seen", i, *seen, given[i]);
	if (matrix_cell.seen.ip != ip)
		matrix_blame("ip seen", 0, matrix_cell.seen.ip, ip);
	if (!matrix_cell.setup->at_return && seen_return != kpt_snippet_return_address())
		matrix_blame("stack seen", 0, seen_return, kpt_snippet_return_address());
}

/* Displaced text must not be run, as it may be overwritten at any time. */
static void check_trap(void)
{
	const struct matrix_code *c = matrix_cell_code();
	unsigned long displaced = c->code + c->at[0], end = c->code + c->at[3];

	if (!matrix_cell.trapped_at ||
	    (matrix_cell.trapped_at >= displaced && matrix_cell.trapped_at <= end))
		matrix_blame("trap", 0, matrix_cell.trapped_at, 0);
}

static unsigned long first_word(const char *journal)
{
	return *(const unsigned long *)journal;
}

/* Check the results of the probed function against those of its twin. */
void matrix_check_result(void)
{
	const struct result *want = &matrix_cell.result[TWIN], *got = &matrix_cell.result[PROBED];
	const struct setup *setup = matrix_cell.setup;
	const struct row *row = matrix_cell.row;
	unsigned int missed = matrix_cell.selves * (setup->count + !!setup->at_return);
	unsigned int counted = matrix_take_missed(row->shape);
	char expected[sizeof(kpt_journal)];

	matrix_cell.runs += matrix_cell.acted;
	if (!matrix_cell.acted)
		matrix_blame("handler not called, journal", 0, first_word(kpt_journal), 0);
	expect_journal(expected);
	if (strcmp(kpt_journal, expected))
		matrix_blame("journal", 0, first_word(kpt_journal), first_word(expected));
	matrix_compare_words("registers and variables", got, want, offsetof(struct result, sight));
	matrix_compare_words("what was seen around", &got->sight, &want->sight, sizeof(got->sight));
	if (matrix_cell.acted && row->shape == SHAPE_WORK && !row->returning)
		check_seen();
	if (row->trap)
		check_trap();
	if (counted != missed)
		matrix_blame("missed hits", 0, counted, missed);
}
