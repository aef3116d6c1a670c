/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Jumps in padding, through which jumps of two bytes reach their detours
 */
#ifndef _X86_KPROBES_RELAY_H
#define _X86_KPROBES_RELAY_H

#include <linux/types.h>

struct kprobe;
struct module;

#ifdef CONFIG_OPTPROBES
unsigned long kprobe_relay_find_place(unsigned long site, bool *padded);
int kprobe_relay_make(unsigned long addr, struct kprobe *owner, const void *detour);
void kprobe_relay_free(unsigned long addr);
void kprobe_relays_restore_text(u8 *code, unsigned long addr, unsigned int len);
bool kprobe_relays_overlap(unsigned long addr, unsigned int size);
#else
static inline void kprobe_relays_restore_text(u8 *code, unsigned long addr, unsigned int len)
{
}

static inline bool kprobe_relays_overlap(unsigned long addr, unsigned int size)
{
	return false;
}
#endif

#ifdef CONFIG_MODULES
void kprobe_relays_forget(const struct module *mod);
#else
static inline void kprobe_relays_forget(const struct module *mod)
{
}
#endif

#endif /* _X86_KPROBES_RELAY_H */
