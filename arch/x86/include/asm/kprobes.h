/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _ASM_X86_KPROBES_H
#define _ASM_X86_KPROBES_H

#include <asm-generic/kprobes.h>

#ifdef CONFIG_KPROBES

#include <linux/cache.h>
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
 * Size of a slot in bytes: the longest instruction, a jump after it, and padding
 * that keeps slots aligned to eight bytes.
 */
#define KPROBE_SLOT_SIZE	24

/*
 * A stack has the trampoline's address, or the return address of the trampoline's
 * first instruction, which is a call.
 */
#define KRETPROBE_TRAMPOLINE_SPAN	5

/* RET with an operand of 16 bits pops arguments. */
#define KRETPROBE_MAX_POPPED	0xffff

/*
 * Location of the return address at a function's entry. At an ftrace site another
 * probe's handler may have changed @sp, which has no effect there on x86-64.
 */
#define kretprobe_return_place(p, regs)	((kprobe_opcode_t **)kprobe_entry_sp(p, regs))
#define kprobe_entry_sp(p, entry_regs)	({					\
	const struct pt_regs *__regs = (entry_regs);				\
	/* Other flags change while the probe is registered. */			\
	data_race(kprobe_ftrace(p)) ? kprobe_ftrace_sp(__regs) : __regs->sp;	\
})

#define kprobe_hit_is_nested()	unlikely(raw_cpu_read(kprobe_ctlblk.depth))

/* kprobe_ftrace_handler() ignores calls for another ftrace_ops than the site's. */
#define kprobe_ftrace_knows_ops		1

/**
 * struct insn_emulation - Instruction in the form that kprobe_emulate_insn() takes
 * @op:		The operation, an enum insn_class.
 * @size:	Length of the instruction in bytes.
 * @cond:	The condition code of a conditional branch.
 * @scale:	Shift of the index register.
 * @memory:	The target of an indirect branch is in memory, at that address.
 * @narrow:	Only 32 bits of the register count, in 64-bit mode.
 * @base:	Offset in struct pt_regs of the base or target register, or
 *		EMUL_NO_REG.
 * @index:	Offset in struct pt_regs of the index register, or EMUL_NO_REG.
 * @drop:	The number of bytes of arguments that a return drops.
 * @disp:	Displacement of the branch or of the memory operand.
 */
struct insn_emulation {
	u8	op;
	u8	size;
	u8	cond;
	u8	scale : 2;
	bool	memory : 1;
	bool	narrow : 1;
	u8	base;
	u8	index;
	u16	drop;
	s32	disp;
};

/**
 * struct arch_specific_insn - Displaced instruction
 * @boost:	The address at which a hit continues if it needs no other trap and no
 *		emulation: in @insn, in a detour, or in the text. NULL if it does.
 * @next:	The address at which execution continues after the instruction: in the
 *		text, or in a detour.
 * @insn:	Its slot: the copy, then a jump to the next instruction or a trap. NULL
 *		if the instruction is only emulated.
 * @post_insn:	A second slot for use with post handlers: the copy, then a jump to the
 *		stub that calls them, or a trap. NULL if there is none.
 * @size:	Length of the instruction in bytes.
 * @run:	How it runs without post handlers, an enum insn_run.
 * @emul:	How it is emulated.
 */
struct arch_specific_insn {
	kprobe_opcode_t *boost;
	kprobe_opcode_t *next;
	kprobe_opcode_t *insn;
	kprobe_opcode_t *post_insn;
	u8 size;
	u8 run;
	struct insn_emulation emul;
};

/**
 * struct kprobe_ctlblk - Progress of the hit that a CPU handles
 * @regs:		The registers that the pre handlers of the current hit see. NULL
 *			while the copy of the instruction runs, POST_HANDLERS_REGS from
 *			the end of the instruction on.
 * @kprobe_status:	KPROBE_REENTER while the copy runs for a hit that was skipped.
 * @saved_flags:	The interrupt flag to restore after the copy has run with
 *			interrupts off.
 * @depth:		The number of outer hits in @outer.
 * @outer:		The hits that the current one has interrupted, outermost first.
 *			One hit and one that is skipped for each of task, softirq,
 *			interrupt and NMI: a hit nests only in what has interrupted the
 *			other. Its instruction may lower the context level before post
 *			handlers are called, but ends no interrupt.
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
 * Maximum number of bytes that a jump displaces: all but the last byte of the jump, and
 * a whole instruction there.
 */
#define MAX_OPTIMIZED_LENGTH	(JMP32_INSN_SIZE - 1 + MAX_INSN_SIZE)

/* Sizes in bytes of detours: the largest one, and those of slots for them. */
#define MAX_OPTINSN_SIZE	104
#define KPROBE_OPTINSN_SIZES	{ 32, 40, 48, 64, MAX_OPTINSN_SIZE }

/**
 * struct arch_optimized_insn - Detour
 * @insn:	The detour, or NULL.
 * @size:	The number of bytes of displaced instructions.
 * @relay:	Distance in bytes from the end of a jump of two bytes to its relay, see
 *		relay.c; 0 if the jump has five.
 * @unpadded:	No padding for a relay is in reach. Is valid without a detour, too.
 * @first:	Offset in bytes of a copy of the first instruction that no post handlers follow.
 *		All of the detour's other code precedes it if it calls post handlers.
 * @rest:	Such an offset of the copy of the second instruction, or of the jump back; 0 if
 *		it is not reached.
 * @copies:	Such an offset for each byte but the first that the jump overwrites; 0 if
 *		no instruction starts there, or none that is reached.
 * @pushed:	Offset from which on a copied call has pushed its return address; 0 if there is
 *		none.
 * @end:	Offset of the end of the copies, where there is a jump back or nothing is reached.
 * @code:	The displaced bytes, and after them the padding that the relay replaces: an
 *		instruction so long that there is no room gets none.
 */
struct arch_optimized_insn {
	kprobe_opcode_t *insn;
	u8 size;
	s8 relay;
	bool unpadded;
	u8 first;
	u8 rest;
	u8 copies[JMP32_INSN_SIZE - 1];
	u8 pushed;
	u8 end;
	u8 code[MAX_OPTIMIZED_LENGTH + 1];
};

/* Each jump reaches 128 bytes, and a relay has five. */
#define KPROBE_JUMP_REACH	300

static inline unsigned int kprobe_jump_size(const struct arch_optimized_insn *op)
{
	return op->relay ? JMP8_INSN_SIZE : JMP32_INSN_SIZE;
}

void arch_remove_kprobe(struct kprobe *p);

/*
 * kprobe_ftrace_sp() - The stack pointer at an ftrace site
 *
 * ftrace_regs_caller saves the flags and its return address above the register frame. On
 * i386 it returns by the stack pointer in @regs, which a handler may have changed.
 */
static __always_inline unsigned long kprobe_ftrace_sp(const struct pt_regs *regs)
{
	unsigned long frame = IS_ENABLED(CONFIG_FRAME_POINTER) ? 5 * sizeof(long) : 0;

	if (IS_ENABLED(CONFIG_X86_32))
		return regs->sp;
	return (unsigned long)(regs + 1) + frame + 2 * sizeof(long);
}

int kprobe_int3_handler(struct pt_regs *regs);
int kprobe_fault_handler(struct pt_regs *regs, int trapnr);
bool kprobe_fixup_fault(struct pt_regs *regs, int trapnr);
unsigned long kprobe_original_ip(unsigned long ip);
unsigned long kprobe_unwind_ip(unsigned long ip, const struct pt_regs *regs,
			       unsigned long *sp);

#else /* !CONFIG_KPROBES */

struct pt_regs;

static __always_inline int kprobe_int3_handler(struct pt_regs *regs)
{
	return 0;
}

static inline int kprobe_fault_handler(struct pt_regs *regs, int trapnr)
{
	return 0;
}

static inline bool kprobe_fixup_fault(struct pt_regs *regs, int trapnr)
{
	return false;
}

static inline unsigned long kprobe_original_ip(unsigned long ip)
{
	return ip;
}

static inline unsigned long kprobe_unwind_ip(unsigned long ip, const struct pt_regs *regs,
					     unsigned long *sp)
{
	return ip;
}

#endif /* CONFIG_KPROBES */
#endif /* _ASM_X86_KPROBES_H */
