/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Single instructions: analysis, copies and emulation, which know of no probe
 */
#ifndef _X86_KPROBES_INSN_H
#define _X86_KPROBES_INSN_H

#include <linux/kprobes.h>
#include <linux/types.h>

extern bool kprobe_has_fred;

/* What kprobes must know of an instruction */
enum insn_class {
	INSN_ORDINARY = '.',		/* a copy at another address does the same */
	/*
	 * Ordinary, but post handlers are called in an exception, not by the stub or a detour:
	 * loads a control, debug, segment or model specific register, or the address of a
	 * descriptor table.
	 */
	INSN_SYSTEM = 's',
	INSN_JCC = 'c',
	INSN_JMP = 'j',
	INSN_CALL = 'a',
	INSN_JMP_INDIRECT = 'J',	/* to an address in a register or in memory */
	INSN_CALL_INDIRECT = 'A',
	INSN_RET = 'r',
	INSN_LOOP = 'l',		/* also LOOPE, LOOPNE */
	INSN_JCXZ = 'z',		/* also JECXZ, JRCXZ */
	INSN_PUSHF = 'p',
	INSN_POPF = 'q',
	INSN_CLI = 'x',
	INSN_STI = 'y',
	INSN_NOP = 'n',
	INSN_ENDBR = 'e',		/* ENDBR64, ENDBR32 */
	/*
	 * HLT, MWAIT, MWAITX: a wait, which may end at any time, so it is emulated as a NOP.
	 * A copy would sleep through the wakeup that came with the breakpoint.
	 */
	INSN_WAIT = 'w',
	INSN_TIMED_WAIT = 't',		/* TPAUSE, UMWAIT: sets flags, too */
	INSN_REFUSED = '-',		/* as all that follow, whose values are lower */
	INSN_CALL_FAR = '+',		/* indirect */
	INSN_JMP_FAR = '*',		/* indirect */
	INSN_XBEGIN = '#',		/* may branch */
	INSN_STOP = '!',		/* INT3, UD2, far RET: the next one is not reached */
};

static inline bool is_call_class(char class)
{
	return class == INSN_CALL || class == INSN_CALL_INDIRECT;
}

/* True for jumps and returns: execution never reaches the next instruction from one. */
static inline bool is_jump_class(char class)
{
	return class == INSN_JMP || class == INSN_JMP_INDIRECT || class == INSN_RET;
}

/* True for branches to a target relative to their own address. */
static inline bool is_relative_class(char class)
{
	return class == INSN_JCC || class == INSN_JMP || class == INSN_CALL ||
	       class == INSN_LOOP || class == INSN_JCXZ || class == INSN_XBEGIN;
}

char kprobe_insn_class(const struct insn *insn);

/* How to run an instruction that a breakpoint displaced */
enum insn_run {
	INSN_RUN_NEVER,		/* it cannot be probed */
	INSN_RUN_SKIP,		/* skip it: it does nothing, or waits */
	INSN_RUN_BOOST,		/* run its copy, which jumps back without a second trap */
	INSN_RUN_STEP,		/* run its copy with interrupts off, up to a trap after it */
	INSN_RUN_EMULATE,	/* call kprobe_emulate_insn() inside the breakpoint handler */
};

enum insn_run kprobe_analyse_insn(const struct insn *insn);

size_t kprobe_cfi_check_size(const u8 *code, size_t len);
bool kprobe_is_static_call_tramp(const u8 *code, size_t len);

/* emulate.c */
int kprobe_prepare_emulation(struct insn_emulation *emul, const struct insn *insn);
bool kprobe_emulate_insn(const struct insn_emulation *emul, struct pt_regs *regs);
bool kprobe_is_emulation_fault(unsigned long ip);

/* True if kprobe_emulate_insn() may find an unusable address in a register or in memory. */
static inline bool emulation_can_fail(const struct insn_emulation *emul)
{
	return emul->op == INSN_RET || emul->op == INSN_JMP_INDIRECT ||
	       emul->op == INSN_CALL_INDIRECT;
}

/* relocate.c */

/* The largest copy of one displaced instruction, and of all of them, in bytes. */
#define DISPLACED_INSN_COPY_MAX	28
#define DISPLACED_COPY_MAX	40

int kprobe_relocate_insn(u8 *buf, struct insn *insn, unsigned long from, unsigned long to);
int kprobe_displaced_size(const u8 *code, size_t len, unsigned int jump_size, bool its,
			  bool lfence);
bool kprobe_displaced_needs_place(const struct insn *insn, bool its, bool lfence);
int kprobe_relocate_displaced(u8 *buf, struct insn *insn, unsigned long from, unsigned long to);

#endif /* _X86_KPROBES_INSN_H */
