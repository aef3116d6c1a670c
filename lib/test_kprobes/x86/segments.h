/* SPDX-License-Identifier: GPL-2.0 */
/* Segment registers in struct pt_regs. */
#ifndef _TEST_KPROBES_X86_SEGMENTS_H
#define _TEST_KPROBES_X86_SEGMENTS_H

#include <linux/ptrace.h>

/*
 * Clear what is stored beside the selectors: marks of the entry code, and what was there.
 * On i386 the kernel does not save gs, and an exception's entry uses its place.
 */
#ifdef CONFIG_X86_64
static inline void kpt_keep_selectors(struct pt_regs *regs)
{
	regs->csx = regs->cs;
	regs->ssx = regs->ss;
}
#else
static inline void kpt_keep_selectors(struct pt_regs *regs)
{
	regs->__dsh = 0;
	regs->__esh = 0;
	regs->__fsh = 0;
	regs->gs = 0;
	regs->__gsh = 0;
	regs->__csh = 0;
	regs->__ssh = 0;
}
#endif

#endif /* _TEST_KPROBES_X86_SEGMENTS_H */
