/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Addresses in slots
 */
#ifndef _X86_KPROBES_FAULT_H
#define _X86_KPROBES_FAULT_H

struct kprobe;

unsigned long kprobe_slot_original_ip(const struct kprobe *owner, unsigned long ip);

#endif /* _X86_KPROBES_FAULT_H */
