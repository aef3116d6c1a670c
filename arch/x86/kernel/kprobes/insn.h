/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Analysis of instructions. Its functions are pure: no probe, no side effect.
 */
#ifndef _X86_KPROBES_INSN_H
#define _X86_KPROBES_INSN_H

#include <linux/types.h>

struct insn;

/**
 * enum insn_run - How to run an instruction that a breakpoint displaced
 * @INSN_RUN_NEVER:	The instruction cannot be probed.
 * @INSN_RUN_SKIP:	Skip it: it does nothing.
 * @INSN_RUN_BOOST:	Run its copy, which jumps back without a second trap.
 * @INSN_RUN_STEP:	Run its copy with interrupts off, up to a trap after it.
 * @INSN_RUN_EMULATE:	Call emulate_insn() inside the breakpoint handler.
 */
enum insn_run {
	INSN_RUN_NEVER,
	INSN_RUN_SKIP,
	INSN_RUN_BOOST,
	INSN_RUN_STEP,
	INSN_RUN_EMULATE,
};

/**
 * struct insn_traits - Result of analyse_insn()
 * @run:	How to run the instruction.
 * @run_post:	How to run it for a post handler. A boosted copy then runs with
 *		interrupts off and jumps to the post stub; an instruction that
 *		must not run so is stepped.
 */
struct insn_traits {
	enum insn_run run;
	enum insn_run run_post;
};

struct insn_traits analyse_insn(const struct insn *insn);

size_t cfi_check_size(const u8 *code, size_t len);
bool is_static_call_tramp(const u8 *code, size_t len);

#endif /* _X86_KPROBES_INSN_H */
