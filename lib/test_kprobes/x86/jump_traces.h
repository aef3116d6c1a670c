/* SPDX-License-Identifier: GPL-2.0 */
/* Optimised instructions that stacks are walked from. */
#ifndef _TEST_KPROBES_X86_JUMP_TRACES_H
#define _TEST_KPROBES_X86_JUMP_TRACES_H

#include "frames.h"

/*
 * struct traced_insn - An instruction in whose detour stacks are walked
 * @symbol:	The function,
 * @offset:	and where the instruction is in it, after ENDBR.
 * @function:	The function. It returns one more than its argument.
 * @caller:	Calls it, and returns one more than that.
 * @callers:	Their names.
 */
struct traced_insn {
	const char *symbol;
	unsigned int offset;
	u64 (*function)(u64 arg);
	u64 (*caller)(u64 arg);
	const char * const *callers;
};

const void *kpt_traced_insn_gen_params(const void *prev, char *desc);
struct kprobe *kpt_traced_insn_probe(struct kunit *test);

#endif /* _TEST_KPROBES_X86_JUMP_TRACES_H */
