/* SPDX-License-Identifier: GPL-2.0 */
/* A function of many instructions, all of which are probed. */
#ifndef _TEST_KPROBES_X86_JUMP_LOAD_H
#define _TEST_KPROBES_X86_JUMP_LOAD_H

#include <linux/kprobes.h>

#define MANY	1000

/* That many instructions of as many bytes as a jump has. */
u64 kprobes_test_many(u64 arg);

int kpt_count_one_of_many(struct kprobe *kp, struct pt_regs *regs);
void kpt_do_nothing_after(struct kprobe *kp, struct pt_regs *regs, unsigned long flags);

#endif /* _TEST_KPROBES_X86_JUMP_LOAD_H */
