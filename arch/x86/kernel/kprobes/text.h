/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The text without probes; writing text
 */
#ifndef _X86_KPROBES_TEXT_H
#define _X86_KPROBES_TEXT_H

#include <linux/kgdb.h>
#include <linux/types.h>

#include <asm/insn.h>
#include <asm/text-patching.h>

/* An instruction, and after STI the bytes that is_sti_shadow_needed() decodes. */
#define ORIGINAL_CODE_SIZE	(MAX_INSN_SIZE + 3)

int kprobe_decode_insn(struct insn *insn, u8 *code, unsigned long addr);
unsigned int kprobe_read_text(u8 *buf, unsigned long addr, unsigned int len);
void kprobe_write_text(void *addr, const void *code, unsigned int len, unsigned int old_len);

#endif /* _X86_KPROBES_TEXT_H */
