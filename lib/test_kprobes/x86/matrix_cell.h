/* SPDX-License-Identifier: GPL-2.0 */
/* A cell of the matrix while it is run, and its probes. */
#ifndef _TEST_KPROBES_X86_MATRIX_CELL_H
#define _TEST_KPROBES_X86_MATRIX_CELL_H

#include <linux/kprobes.h>
#include <linux/ptrace.h>

#include "matrix.h"
#include "snippets.h"

#define SEEN_WORDS	3

/**
 * struct sight - What probed code sees when it looks around
 * @trace:	The stack trace. Here and in @words, addresses in the function are relative to
 *		its start.
 * @words:	The stack, from the return address of the look on.
 * @count:	preempt_count().
 * @cpu:	The CPU.
 * @irqs_off:	Whether interrupts are off.
 * @traced_on:	Whether lockdep thinks that they are on.
 * @watching:	Whether RCU is watching.
 */
struct sight {
	unsigned long trace[TRACE_LENGTH];
	unsigned long words[SEEN_WORDS];
	unsigned long count;
	unsigned long cpu;
	unsigned long irqs_off;
	unsigned long traced_on;
	unsigned long watching;
};

/**
 * struct result - The result of a function
 * @left:	Registers, flags and memory that it leaves.
 * @number:	Per-CPU variable kprobes_test_number.
 * @pair:	Per-CPU variable kprobes_test_pair.
 * @sight:	What it has seen.
 */
struct result {
	struct cpu_state left;
	u64 number;
	unsigned long pair[2];
	struct sight sight;
};

enum { TWIN, PROBED, BOTH };

/**
 * struct cell - A cell of the matrix, while it is run
 * @setup:	Its setup.
 * @row:	Its row.
 * @nest:	Its nest.
 * @input:	Whether interrupts are on in @given.
 * @given:	State to call the functions with.
 * @result:	Results of the twin and of the probed function.
 * @code:	Address of the one that is running.
 * @acted:	Whether the handler has done what the row says.
 * @seen:	Registers that the handler has seen.
 * @seen_return: The word at the top of the stack then.
 * @trapped_at:	Address of the trap that the row wants.
 * @selves:	Number of hits that the handler has caused itself.
 * @runs:	Number of times that the function was run and the handler has acted.
 * @bad:	What is wrong first, or NULL.
 * @which:	Index of the word that is wrong.
 * @got:	What this word is.
 * @want:	What this word must be.
 */
struct cell {
	const struct setup *setup;
	const struct row *row;
	const struct nest *nest;
	unsigned long input;
	struct cpu_state given;
	struct result result[BOTH];
	unsigned long code;
	bool acted;
	struct pt_regs seen;
	unsigned long seen_return;
	unsigned long trapped_at;
	unsigned int selves;
	unsigned int runs;
	const char *bad;
	unsigned int which;
	unsigned long got;
	unsigned long want;
};

/**
 * struct matrix_probe - A probe of the matrix
 * @kp:		The probe.
 * @name:	Its name in the journal.
 */
struct matrix_probe {
	struct kprobe kp;
	char name;
};

extern struct cell matrix_cell;
extern struct matrix_probe matrix_probes[SHAPES][MATRIX_PROBES];

/* matrix_cell.c */
void matrix_blame(const char *what, unsigned int which, unsigned long got, unsigned long want);
void matrix_compare_words(const char *what, const void *got, const void *want, size_t size);
const struct matrix_code *matrix_code_of(enum matrix_kind kind, enum matrix_shape shape);
const struct matrix_code *matrix_cell_code(void);
unsigned long matrix_lost_flags(void);
unsigned long *matrix_register(struct pt_regs *regs, unsigned int i);
int matrix_act(struct pt_regs *regs);
void matrix_set_state(struct cpu_state *state, unsigned long interrupt_flag);
void matrix_run_inputs(void);

/* matrix_check.c */
void matrix_check_result(void);

/* matrix_actions.c */
int matrix_init_actions(void);
void matrix_end_actions(void);
void matrix_recover_from_fault(void);
void matrix_hit_same_probes(void);
void matrix_take_long(void);
void matrix_fail_to_register(void);
void matrix_fail_to_enable(void);
void matrix_fail_to_disable(void);

/* matrix_nest.c */
bool matrix_can_send_nmi(void);
bool matrix_is_running(void);
int matrix_init_nests(void);
void matrix_end_nests(void);
bool matrix_outer_probes_are_ready(void);
void matrix_run_cell(void);

/* matrix_probes.c */
char matrix_acting_probe(void);
int matrix_register_probes(const struct setup *setup);
void matrix_unregister_probes(void);
int matrix_set_probes_enabled(bool on);
bool matrix_all_sites_are(enum kprobe_site_state state);
unsigned int matrix_take_missed(enum matrix_shape shape);

#endif /* _TEST_KPROBES_X86_MATRIX_CELL_H */
