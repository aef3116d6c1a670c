/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Instructions emulated on the saved registers
 */
#ifndef _X86_KPROBES_EMULATE_H
#define _X86_KPROBES_EMULATE_H

#include <linux/kprobes.h>
#include <linux/types.h>

#include "insn.h"

struct pt_regs;

/* True if kprobe_emulate_insn() may find an unusable address in a register or in memory. */
static inline bool emulation_can_fail(const struct insn_emulation *emul)
{
	return emul->op == INSN_RET || emul->op == INSN_JMP_INDIRECT ||
	       emul->op == INSN_CALL_INDIRECT;
}

int kprobe_prepare_emulation(struct insn_emulation *emul, const struct insn *insn);
bool kprobe_emulate_insn(const struct insn_emulation *emul, struct pt_regs *regs);
bool kprobe_is_emulation_fault(unsigned long ip);

#endif /* _X86_KPROBES_EMULATE_H */
