/* SPDX-License-Identifier: GPL-2.0 */
/* A function of many instructions, to probe all of them. */
#ifndef _TEST_KPROBES_X86_JUMP_LOAD_H
#define _TEST_KPROBES_X86_JUMP_LOAD_H

#include <linux/kprobes.h>
#include <linux/types.h>

#include <kunit/test.h>

#define MANY	1000

/* MANY instructions of JMP32_INSN_SIZE bytes, which add @arg + 1 each. */
u64 kprobes_test_many(u64 arg);

void kpt_init_many_probes(struct kprobe *kps, unsigned int n);
struct kprobe **kpt_many_probes(struct kunit *test);
void kpt_post_nothing(struct kprobe *kp, struct pt_regs *regs, unsigned long flags);

#endif /* _TEST_KPROBES_X86_JUMP_LOAD_H */
