/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Instructions emulated on the saved registers
 */
#ifndef _X86_KPROBES_EMULATE_H
#define _X86_KPROBES_EMULATE_H

#include <linux/kprobes.h>
#include <linux/types.h>

struct insn;
struct pt_regs;

int prepare_emulation(struct insn_emulation *emul, const struct insn *insn);
bool emulates_nothing(const struct insn_emulation *emul);
bool emulates_jump(const struct insn_emulation *emul);
bool emulation_can_fail(const struct insn_emulation *emul);
bool emulate_insn(const struct insn_emulation *emul, struct pt_regs *regs);
bool is_fault_of_emulation(void);

#endif /* _X86_KPROBES_EMULATE_H */
