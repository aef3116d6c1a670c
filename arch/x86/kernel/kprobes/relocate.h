/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Copies of instructions
 */
#ifndef _X86_KPROBES_RELOCATE_H
#define _X86_KPROBES_RELOCATE_H

#include <linux/kprobes.h>
#include <linux/types.h>

struct insn;

int kprobe_relocate_insn(u8 *buf, const struct insn *insn, unsigned long from,
			 unsigned long to);

/* A jump displaces at most one byte too few for it and one more instruction. */
#define DISPLACED_MAX		MAX_OPTIMIZED_LENGTH

/* The largest copy of one displaced instruction, and of all of them, in bytes. */
#define DISPLACED_INSN_COPY_MAX	28
#define DISPLACED_COPY_MAX	40

int kprobe_displaced_size(const u8 *code, size_t len, unsigned int jump_size, bool its,
			  bool lfence);
bool kprobe_displaced_needs_place(const struct insn *insn, bool its, bool lfence);
int kprobe_relocate_displaced(u8 *buf, const struct insn *insn, unsigned long from,
			      unsigned long to);

#endif /* _X86_KPROBES_RELOCATE_H */
