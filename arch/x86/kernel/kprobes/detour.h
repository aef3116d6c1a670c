/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Templates of detours: what detour.S and the code that copies them share
 */
#ifndef _X86_KPROBES_DETOUR_H
#define _X86_KPROBES_DETOUR_H

#include <asm/bitsperlong.h>

/*
 * Bytes below the stack of the probed code for what handlers push by hand, as many
 * as the entry of a breakpoint exception leaves.
 */
#define HANDLER_STACK_ROOM	(6 * BITS_PER_LONG / 8)

/* Sizes in bytes of the templates, which are padded to them. */
#define DETOUR_TEMPLATE_SIZE		288
#define DETOUR_POST_TEMPLATE_SIZE	360

/*
 * A small detour begins with the address of its site's kprobe, and then its entry, a call of
 * kprobe_shared_detour.
 */
#define SMALL_DETOUR_ENTRY		8
#define SMALL_DETOUR_HEAD		13

/*
 * In the bits above cs, which the CPU leaves 0 or uses otherwise: ip is that after a
 * breakpoint. regs_get_register() leaves it out.
 */
#define DETOUR_MARK		0x2000

/* Results of kprobe_detour_slow() */
#define DETOUR_HANDLED		0	/* the pre handlers were called */
#define DETOUR_CHANGED		1	/* a pre handler changed the path */
#define DETOUR_SKIPPED		2	/* no handler may run now */

#ifndef __ASSEMBLY__

#include <linux/compiler.h>
#include <linux/kconfig.h>
#include <linux/kprobes.h>
#include <linux/types.h>

#include <asm/ptrace.h>

/**
 * struct detour_template - Template of a detour or of its second half
 * @code:	The code of the template, in detour.S.
 * @end:	Size of the template in bytes.
 * @entry:	Offset of the entry, where no register is pushed yet.
 * @framed:	Offset at which the registers of an exception frame are pushed.
 * @restored:	Offset from which on registers are popped: an interrupt overwrites them.
 * @ip:		Offset of the operand with the ip that handlers see.
 * @site:	Offset of the operand with the address of the site's kprobe.
 * @probe:	Offset of the operand with the address of the probe called directly.
 * @expected:	Offset of the operand with the low four bytes of the address of its handler.
 * @handler:	Offset of the displacement of the call of that handler.
 * @called:	Offset at which the direct call has returned. If there is a second half,
 *		a jump to its @run is put there.
 * @handled:	Offset of the displacement of the branch that is taken once
 *		kprobe_detour_slow() has called the handlers. If there is a second
 *		half, its @run_nested is the target.
 * @run:	Offset at which a first half continues after the direct call.
 * @run_nested:	Offset at which it continues after kprobe_detour_slow().
 * @run_restored: Like @restored, before the first displaced instruction.
 * @next:	Offset of the operand with the ip after the first displaced instruction.
 * @first:	Offset of the displacement of the jump to the first displaced instruction.
 * @rest:	Offset of the displacement of the jump to the other ones.
 * @branches:	Offsets of the displacements out of the template, up to a 0.
 *
 * The first half has no @run to @rest, and the second half no @called and no @handled:
 * these are 0. detour.S emits the instances.
 */
struct detour_template {
	const u8 *code;
	u16 end;
	u16 entry;
	u16 framed;
	u16 restored;
	u16 ip;
	u16 site;
	u16 probe;
	u16 expected;
	u16 handler;
	u16 called;
	u16 handled;
	u16 run;
	u16 run_nested;
	u16 run_restored;
	u16 next;
	u16 first;
	u16 rest;
	u16 branches[];
};

extern const struct detour_template kprobe_detour_template, kprobe_detour_post_template;

/**
 * struct detour_body - The body that small detours share
 * @code:	Its code, in detour.S.
 * @framed:	Offset from which on the registers are saved.
 * @restored:	Offset from which on they are those of the probed code again.
 */
struct detour_body {
	const u8 *code;
	u16 framed;
	u16 restored;
};

extern const struct detour_body kprobe_shared_body;

/* A handler has changed the path: ip is where execution continues. */
#ifdef CONFIG_X86_64
static __always_inline void detour_clear_mark(struct pt_regs *regs)
{
	regs->csx = regs->cs;
}
#else
static __always_inline void detour_clear_mark(struct pt_regs *regs)
{
	regs->__csh = 0;
}
#endif

#ifdef CONFIG_OPTPROBES
static __always_inline bool is_small_detour(const struct arch_optimized_insn *op)
{
	return IS_ENABLED(CONFIG_X86_64) && op->small;
}

/* Offset in a detour of the copies of the displaced instructions. */
static __always_inline unsigned int detour_head_size(const struct arch_optimized_insn *op)
{
	return is_small_detour(op) ? SMALL_DETOUR_HEAD : kprobe_detour_template.end;
}

/* Offset in a detour at which a jump enters it. */
static inline unsigned int detour_entry(const struct arch_optimized_insn *op)
{
	return is_small_detour(op) ? SMALL_DETOUR_ENTRY : kprobe_detour_template.entry;
}

void kprobe_shared_detour(void);
int kprobe_detour_call(struct kprobe *called, struct pt_regs *regs);
void kprobe_detour_counted(struct kprobe *kp);
int kprobe_detour_slow(struct kprobe *kp, struct pt_regs *regs);
void kprobe_detour_post_slow(struct kprobe *kp, struct pt_regs *regs);
void kprobe_detour_resched(void);
unsigned long kprobe_detoured_ip(unsigned long ip);
struct kprobe *kprobe_detour_insn_owner(unsigned long ip, unsigned long *sp);
#else
static __always_inline unsigned long kprobe_detoured_ip(unsigned long ip)
{
	return ip;
}

static inline struct kprobe *kprobe_detour_insn_owner(unsigned long ip, unsigned long *sp)
{
	return NULL;
}
#endif

#endif /* !__ASSEMBLY__ */

#endif /* _X86_KPROBES_DETOUR_H */
