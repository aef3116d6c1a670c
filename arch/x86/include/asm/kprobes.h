/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _ASM_X86_KPROBES_H
#define _ASM_X86_KPROBES_H

#include <asm-generic/kprobes.h>

#ifdef CONFIG_KPROBES

#include <linux/percpu.h>
#include <linux/types.h>

#include <asm/insn.h>
#include <asm/ptrace.h>
#include <asm/text-patching.h>

typedef u8 kprobe_opcode_t;

struct kprobe;
struct pt_regs;

#define __ARCH_WANT_KPROBES_INSN_SLOT

/*
 * Size of a slot in bytes: the longest instruction, a jump behind it, and
 * what keeps slots on eight bytes.
 */
#define KPROBE_SLOT_SIZE	24

/*
 * In the stack, the address of the trampoline, or that of what its first
 * instruction, a call, returns to.
 */
#define KRETPROBE_TRAMPOLINE_SPAN	5

#define kretprobe_blacklist_size	1

/*
 * Where a function that is being entered has its return address. At an ftrace site
 * another probe's handler may have changed @sp, which has no effect there.
 */
#define kretprobe_return_place(p, regs)	((kprobe_opcode_t **)kprobe_entry_sp(p, regs))
#define kprobe_entry_sp(p, entry_regs)	({					\
	const struct pt_regs *__regs = (entry_regs);				\
	kprobe_ftrace(p) ? kprobe_ftrace_sp(__regs) : __regs->sp;		\
})

/* kprobe_ftrace_handler() leaves alone what is not the site's ftrace_ops. */
#define kprobe_ftrace_knows_ops		1

/**
 * struct insn_emulation - An instruction as emulate_insn() takes it
 * @op:		What to do, see emulate.c.
 * @size:	Length of the instruction in bytes.
 * @cond:	The condition code of a conditional branch.
 * @scale:	Shift of the index register.
 * @base:	Offset in struct pt_regs of the base or target register, or
 *		EMUL_NO_REG.
 * @index:	Offset in struct pt_regs of the index register, or EMUL_NO_REG.
 * @drop:	How many bytes of arguments a return drops.
 * @disp:	Displacement of the branch or of the memory operand.
 */
struct insn_emulation {
	u8	op;
	u8	size;
	u8	cond;
	u8	scale;
	u8	base;
	u8	index;
	u16	drop;
	s32	disp;
};

/**
 * struct arch_specific_insn - The displaced instruction
 * @boost:	Where a boosted instruction is run: @insn, or in a detour.
 * @next:	Where execution goes on behind the instruction: there, or in a
 *		detour.
 * @insn:	Its slot: the copy, then a jump to the next instruction or a
 *		trap. NULL when it is only emulated.
 * @post_insn:	A second slot for when there are post handlers: the copy, then
 *		a jump to the stub that calls them. NULL when there is none.
 * @size:	Its length in bytes.
 * @run:	How it is run, an enum insn_run.
 * @run_post:	The same for when there are post handlers.
 * @emul:	How it is emulated.
 */
struct arch_specific_insn {
	kprobe_opcode_t *boost;
	kprobe_opcode_t *next;
	kprobe_opcode_t *insn;
	kprobe_opcode_t *post_insn;
	u8 size;
	u8 run;
	u8 run_post;
	struct insn_emulation emul;
};

/**
 * struct kprobe_ctlblk - What a CPU is doing for a probe
 * @regs:		What the pre handlers of the present hit see. NULL while
 *			the copy of the instruction runs, POST_HANDLERS_REGS
 *			while post handlers do.
 * @kprobe_status:	KPROBE_REENTER while the copy runs of a hit that was
 *			skipped.
 * @saved_flags:	The interrupt flag to restore after the copy has run with
 *			interrupts off.
 * @depth:		How many outer hits are kept in @outer.
 * @outer:		The hits that the present one has interrupted, outermost
 *			first. A hit nests only in a higher context level, and
 *			in each level one more may be skipped: two for each of
 *			task, softirq, interrupt and NMI.
 */
struct kprobe_ctlblk {
	struct pt_regs *regs;
	unsigned long kprobe_status;
	unsigned long saved_flags;
	unsigned int depth;
	struct kprobe_outer_hit {
		struct kprobe *kp;
		struct pt_regs *regs;
		unsigned long status;
		unsigned long saved_flags;
		unsigned int context;
	} outer[8];
};

/*
 * The most that a jump displaces: all but the last byte of the jump, and a whole
 * instruction there.
 */
#define MAX_OPTIMIZED_LENGTH	(JMP32_INSN_SIZE - 1 + MAX_INSN_SIZE)

/* Sizes in bytes of a detour and of its second half, see optprobe.c. */
#define MAX_OPTINSN_SIZE	312
#define MAX_POST_OPTINSN_SIZE	360

/**
 * struct arch_optimized_insn - A detour
 * @insn:	The detour, or NULL.
 * @post:	Its second half for when there are post handlers, or NULL.
 * @direct:	The number of the probe whose handler is called directly, or 0.
 * @size:	How many bytes of instructions are displaced.
 * @rest:	Where what follows the first one is copied to, in bytes from the first
 *		one's copy; 0 if nothing follows.
 * @copies:	The same for an instruction at each byte that the jump overwrites, its
 *		first one excepted; 0 where none starts, or none that is reached.
 * @code:	The bytes that are displaced.
 */
struct arch_optimized_insn {
	kprobe_opcode_t *insn;
	kprobe_opcode_t *post;
	u32 direct;
	u8 size;
	u8 rest;
	u8 copies[JMP32_INSN_SIZE - 1];
	u8 code[MAX_OPTIMIZED_LENGTH];
};

void arch_remove_kprobe(struct kprobe *p);

/*
 * kprobe_ftrace_sp - The stack pointer at an ftrace site
 *
 * ftrace_regs_caller saves the flags, and is called, on top of the registers' frame.
 */
static __always_inline unsigned long kprobe_ftrace_sp(const struct pt_regs *regs)
{
	unsigned long frame = IS_ENABLED(CONFIG_FRAME_POINTER) ? 5 * sizeof(long) : 0;

	return (unsigned long)(regs + 1) + frame + 2 * sizeof(long);
}

int kprobe_int3_handler(struct pt_regs *regs);
void kprobe_copy_done(struct pt_regs *regs);
int kprobe_fault_handler(struct pt_regs *regs, int trapnr);
void kprobe_fixup_fault(struct pt_regs *regs);
unsigned long kprobe_unwind_ip(unsigned long ip, const struct pt_regs *regs,
			       unsigned long *sp);

#else /* !CONFIG_KPROBES */

struct pt_regs;

static inline int kprobe_fault_handler(struct pt_regs *regs, int trapnr)
{
	return 0;
}

static inline void kprobe_fixup_fault(struct pt_regs *regs) { }

static inline unsigned long kprobe_unwind_ip(unsigned long ip, const struct pt_regs *regs,
					     unsigned long *sp)
{
	return ip;
}

#endif /* CONFIG_KPROBES */
#endif /* _ASM_X86_KPROBES_H */
