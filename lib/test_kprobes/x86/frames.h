/* SPDX-License-Identifier: GPL-2.0 */
/* A function with a stack frame, and stack traces from each of its instructions. */
#ifndef _TEST_KPROBES_X86_FRAMES_H
#define _TEST_KPROBES_X86_FRAMES_H

#include "../probes.h"

#define FRAME_INSNS	6

#define STACK_IS_WALKED							\
	(IS_ENABLED(CONFIG_UNWINDER_ORC) || IS_ENABLED(CONFIG_UNWINDER_FRAME_POINTER))

/*
 * In a list of the functions of a trace: the caller of one that has no frame, or none yet.
 * With frame pointers, a trace goes from there to the caller's caller.
 */
#ifdef CONFIG_UNWINDER_ORC
#define FRAMELESS_CALL_BY(function)	function,
#else
#define FRAMELESS_CALL_BY(function)
#endif

/* Return @arg + 1. It has an instruction at each of kpt_frame_offsets[], from ENDBR on. */
u64 kprobes_test_frame(u64 arg);

/* Return kprobes_test_frame(@arg) + 1. */
u64 kprobes_test_middle(u64 arg);

extern const unsigned int kpt_frame_offsets[FRAME_INSNS];
extern const struct place kpt_frame_place;
extern unsigned long kpt_trace_from_here[TRACE_LENGTH], kpt_trace_from_regs[TRACE_LENGTH];

struct kprobe *kpt_frame_probe(char name, unsigned int insn);
struct kprobe *kpt_post_frame_probe(char name, unsigned int insn);
void kpt_save_trace(unsigned long *trace, struct pt_regs *regs);
int kpt_act_trace(struct test_probe *p, struct pt_regs *regs);
void kpt_expect_trace(struct kunit *test, const unsigned long *trace,
		      const char * const *functions, const char *what, unsigned int insn);

#endif /* _TEST_KPROBES_X86_FRAMES_H */
