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

#define __ARCH_WANT_KPROBES_INSN_SLOT

/* In bytes: the longest instruction, a jump after it, and padding that aligns the next slot. */
#define KPROBE_SLOT_SIZE	24

/* A stack has the trampoline's address, or the return address of the call that is first in it. */
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
	data_race(kprobe_ftrace(p)) ? kprobe_ftrace_entry_sp(__regs) : __regs->sp; \
})

#define kprobe_hit_is_nested()	unlikely(raw_cpu_read(kprobe_ctlblk.depth))

/* kprobe_ftrace_handler() ignores calls for another ftrace_ops than the site's. */
#define kprobe_ftrace_knows_ops		1

/* An instruction in the form that kprobe_emulate_insn() takes */
struct insn_emulation {
	u8	op;		/* the operation, an enum insn_class */
	u8	size;		/* length of the instruction in bytes */
	u8	cond;		/* the condition code of a conditional branch */
	u8	scale : 2;	/* shift of the index register */
	bool	memory : 1;	/* the target of an indirect branch is in memory, at that address */
	bool	narrow : 1;	/* only 32 bits of the register count, in 64-bit mode */
	u8	base;		/* offset in struct pt_regs of the base or target register */
	u8	index;		/* of the index register; both may be EMUL_NO_REG */
	u16	drop;		/* the number of bytes of arguments that a return drops */
	s32	disp;		/* displacement of the branch or of the memory operand */
};

/* A displaced instruction */
struct arch_specific_insn {
	/*
	 * Where a hit continues: in @insn, in a detour, or in the text. NULL if the instruction
	 * must be stepped or emulated.
	 */
	kprobe_opcode_t *boost;
	/* Where execution continues after the instruction: in the text, or in a detour. */
	kprobe_opcode_t *next;
	/* Its slot: the copy, then a jump or a trap. NULL if it is only emulated. */
	kprobe_opcode_t *insn;
	/* A second slot, whose jump is to the stub that calls post handlers; or NULL. */
	kprobe_opcode_t *post_insn;
	u8 size;		/* length of the instruction in bytes */
	u8 run;			/* how it runs without post handlers, an enum insn_run */
	struct insn_emulation emul;
};

/* Progress of the hit that a CPU handles */
struct kprobe_ctlblk {
	/*
	 * The registers that the pre handlers of the current hit see. NULL while the copy of the
	 * instruction runs; POST_HANDLERS_REGS from where ip is the one that handlers see.
	 */
	struct pt_regs *regs;
	unsigned long kprobe_status;	/* KPROBE_REENTER while a copy runs for a skipped hit */
	unsigned long saved_flags;	/* the interrupt flag to restore after the copy has run */
	/* preempt_count() of the running fault handler and KPROBE_CONTEXT_SET, or 0 */
	unsigned int fault_context;
	unsigned int depth;		/* the number of entries in @outer */
	/*
	 * The hits that the current one has interrupted, outermost first. One hit and one that
	 * is skipped for each of task, softirq, interrupt, #DB, NMI and #MC: a hit nests only in
	 * what has interrupted the other. Its instruction may lower the context level before post
	 * handlers are called, but ends no interrupt.
	 */
	struct kprobe_outer_hit {
		struct kprobe *kp;
		struct pt_regs *regs;
		unsigned long status;
		unsigned long saved_flags;
		unsigned int context;
	} outer[12];
};

/* The bytes that a jump displaces at most: all but its last one, and a whole instruction there. */
#define MAX_OPTIMIZED_LENGTH	(JMP32_INSN_SIZE - 1 + MAX_INSN_SIZE)

/* Sizes in bytes of detours: the largest one, and those of slots for them. */
#define MAX_OPTINSN_SIZE	104
#define KPROBE_OPTINSN_SIZES	{ 32, 40, 48, 64, MAX_OPTINSN_SIZE }

/* A detour. The offsets are those of copies in it, in bytes. */
struct arch_optimized_insn {
	kprobe_opcode_t *insn;	/* the detour, or NULL */
	u8 size;		/* the number of bytes of displaced instructions */
	/* From the end of a jump of two bytes to its relay, see relay.c; 0 if it has five. */
	s8 relay;
	bool unpadded;		/* no padding for a relay is in reach; valid without a detour */
	/*
	 * The first instruction that no post handlers follow. All of the detour's other code
	 * precedes it if it calls post handlers.
	 */
	u8 first;
	u8 rest;		/* the second one, or the jump back; 0 if it is not reached */
	/* Each byte but the first that the jump overwrites; 0 if nothing reached starts there. */
	u8 copies[JMP32_INSN_SIZE - 1];
	u8 pushed;		/* from here on a copied call has pushed its return address; or 0 */
	u8 end;			/* the end of the copies: a jump back, or nothing is reached */
	/* The displaced bytes, and the padding that the relay replaces, if there is room for it. */
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
	if (IS_ENABLED(CONFIG_X86_32))
		return regs->sp;
	return (unsigned long)((long *)(regs + 1) + (IS_ENABLED(CONFIG_FRAME_POINTER) ? 7 : 2));
}

/* The same at a function's entry. ftrace_caller saves neither flags nor cs. */
static __always_inline unsigned long kprobe_ftrace_entry_sp(const struct pt_regs *regs)
{
	unsigned long sp = kprobe_ftrace_sp(regs);

	if (unlikely(!regs->cs)) {
		sp -= sizeof(long);
		barrier();	/* a branch costs less than none */
	}
	return sp;
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
