/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Index of branch targets
 */
#ifndef _X86_KPROBES_BRANCHES_H
#define _X86_KPROBES_BRANCHES_H

#include <linux/types.h>

int kprobe_branches_check(unsigned long addr, unsigned int size);
bool kprobe_branches_reach(unsigned long addr, unsigned int size, unsigned long text);

#endif /* _X86_KPROBES_BRANCHES_H */
