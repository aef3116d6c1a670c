/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Stack traces from detours
 */
#ifndef _X86_KPROBES_UNWIND_H
#define _X86_KPROBES_UNWIND_H

#include <linux/types.h>

#ifdef CONFIG_OPTPROBES
bool kprobe_detour_unwind(unsigned long *ip, unsigned long *sp);
#else
static inline bool kprobe_detour_unwind(unsigned long *ip, unsigned long *sp)
{
	return false;
}
#endif

#endif /* _X86_KPROBES_UNWIND_H */
