/* SPDX-License-Identifier: GPL-2.0 */
/* Optimised instructions from whose detours stacks are walked. */
#ifndef _TEST_KPROBES_X86_JUMP_TRACES_H
#define _TEST_KPROBES_X86_JUMP_TRACES_H

#include "frames.h"

/**
 * struct traced_insn - An instruction from whose detour stacks are walked
 * @symbol:	Name of its function.
 * @offset:	Offset of the instruction in the function, after ENDBR.
 * @function:	The function. It returns one more than its argument.
 * @caller:	A function that calls @function, and returns one more than that.
 * @callers:	The names of the functions that a trace shows, innermost first, and a NULL.
 */
struct traced_insn {
	const char *symbol;
	unsigned int offset;
	u64 (*function)(u64 arg);
	u64 (*caller)(u64 arg);
	const char * const *callers;
};

/* Return @arg + 1. A jump at one of the first instructions displaces the call. */
u64 kprobes_test_calling(u64 arg);

/* Return @arg + 1. A jump at the second instruction must not displace the third. */
u64 kprobes_test_narrow(u64 arg);

const void *kpt_traced_insn_gen_params(struct kunit *test, const void *prev, char *desc);
struct kprobe *kpt_register_traced_insn(struct kunit *test, char name);
void kpt_go_after_second_push(struct pt_regs *regs);
struct kprobe *kpt_register_go_after_second_push(struct kunit *test,
						 int (*act)(struct test_probe *p,
							    struct pt_regs *regs));

#endif /* _TEST_KPROBES_X86_JUMP_TRACES_H */
