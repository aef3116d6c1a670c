/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Stack traces from detours
 */
#ifndef _X86_KPROBES_UNWIND_H
#define _X86_KPROBES_UNWIND_H

#include <linux/types.h>

#ifdef CONFIG_OPTPROBES
void kprobe_body_unwind(unsigned long *ip, unsigned long *sp);
bool kprobe_detour_unwind(unsigned long *ip, unsigned long *sp);
unsigned int kprobe_words_pushed(const u8 *code, unsigned int offset);
#else
static inline void kprobe_body_unwind(unsigned long *ip, unsigned long *sp) { }

static inline bool kprobe_detour_unwind(unsigned long *ip, unsigned long *sp)
{
	return false;
}

static inline unsigned int kprobe_words_pushed(const u8 *code, unsigned int offset)
{
	return 0;
}
#endif

#endif /* _X86_KPROBES_UNWIND_H */
