/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Jumps in padding, through which jumps of two bytes reach their detours
 */
#ifndef _X86_KPROBES_RELAY_H
#define _X86_KPROBES_RELAY_H

#include <linux/kprobes.h>
#include <linux/types.h>

#include <asm/text-patching.h>

#ifdef CONFIG_OPTPROBES
static __always_inline struct arch_optimized_insn *detour_of(struct kprobe *kp)
{
	return &container_of(kp, struct optimized_kprobe, kp)->optinsn;
}

/* The address of the relay of the site @kp, which has one. */
static inline unsigned long kprobe_relay_addr(const struct arch_optimized_insn *op,
					      const struct kprobe *kp)
{
	return (unsigned long)kp->addr + JMP8_INSN_SIZE + READ_ONCE(op->relay);
}

/* The padding that the relay replaces. */
static inline u8 *kprobe_relay_padding(struct arch_optimized_insn *op)
{
	return op->code + op->size;
}

unsigned long kprobe_relay_find_place(unsigned long site, bool *padded);
void kprobe_relay_make(struct arch_optimized_insn *op, const struct kprobe *kp);
void kprobe_relay_free(struct arch_optimized_insn *op, const struct kprobe *kp);
struct kprobe *kprobe_relay_owner(unsigned long addr);
bool kprobe_relays_overlap(unsigned long addr, unsigned int size);
#else
static inline struct kprobe *kprobe_relay_owner(unsigned long addr)
{
	return NULL;
}

static inline bool kprobe_relays_overlap(unsigned long addr, unsigned int size)
{
	return false;
}
#endif

#endif /* _X86_KPROBES_RELAY_H */
