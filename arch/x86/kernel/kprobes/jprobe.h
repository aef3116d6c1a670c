/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Assembly part of jumper probes, in jprobe_call.S
 */
#ifndef _X86_KPROBES_JPROBE_H
#define _X86_KPROBES_JPROBE_H

#include <linux/percpu.h>

struct pt_regs;

DECLARE_PER_CPU(unsigned long, jprobe_frame);

/* Returns when @entry returns or calls jprobe_leave() with the frame of the call. */
void jprobe_call(void *entry, const struct pt_regs *regs, const unsigned long *args,
		 unsigned long words);

void jprobe_leave(unsigned long frame);

#endif /* _X86_KPROBES_JPROBE_H */
