/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Detours, and the relays through which jumps of two bytes reach them
 */
#ifndef _X86_KPROBES_DETOUR_H
#define _X86_KPROBES_DETOUR_H

#include <asm/bitsperlong.h>

/*
 * Bytes below the stack of the probed code for what handlers push by hand, as many
 * as the entry of a breakpoint exception leaves.
 */
#define HANDLER_STACK_ROOM	(6 * BITS_PER_LONG / 8)

/*
 * A detour begins with the address of its site's kprobe. Its entry pushes the ip that handlers
 * see, and calls the body that all detours share. What is between the call and the head's end
 * pops flags and the stack pointer.
 */
#define DETOUR_ENTRY			(BITS_PER_LONG / 8)
#define DETOUR_RETURN			(DETOUR_ENTRY + 10)
#define DETOUR_HEAD			(DETOUR_RETURN + 2)

/* The size of what calls the post handlers, after a copy of the first instruction. */
#define DETOUR_POST_HEAD		(BITS_PER_LONG == 64 ? 18 : 17)

/*
 * In the bits above cs, which the CPU leaves 0 or uses otherwise: ip is that after a
 * breakpoint. regs_get_register() leaves it out.
 */
#define DETOUR_MARK		0x2000

#ifndef __ASSEMBLY__

#include <linux/compiler.h>
#include <linux/kprobes.h>
#include <linux/types.h>

#include <asm/ibt.h>
#include <asm/text-patching.h>

struct kprobe_site;

/* What detours share. The fields are offsets in its code, which is in detour.S. */
struct detour_body {
	const u8 *code;
	u16 framed;	/* from here on the registers are saved */
	/*
	 * From here on cs is the address to return to. All registers are those of the probed code
	 * again, but for one that the unwinder does not need.
	 */
	u16 left;
	u16 ret;	/* the return to the detour */
};

extern const struct detour_body kprobe_detour_body, kprobe_detour_post_body;

#ifdef CONFIG_OPTPROBES
static __always_inline struct arch_optimized_insn *detour_of(struct kprobe *kp)
{
	return &container_of(kp, struct optimized_kprobe, kp)->optinsn;
}

/* Does it call post handlers, too? */
static inline bool detour_has_post(const struct arch_optimized_insn *op)
{
	return op->first > DETOUR_HEAD;
}

void kprobe_detour(void);
void kprobe_detour_post(void);
__noendbr int kprobe_detour_call(struct kprobe *kp, struct pt_regs *regs);
__noendbr void kprobe_detour_call_post(struct kprobe *kp, struct pt_regs *regs);
int kprobe_detour_make(struct arch_optimized_insn *op, struct kprobe_site *site);
unsigned int kprobe_detour_origin(const struct arch_optimized_insn *op, unsigned int offset,
				  unsigned int *pushed);
int kprobe_detour_slow(struct kprobe *kp, struct pt_regs *regs);
void kprobe_detour_post_slow(struct kprobe *kp, struct pt_regs *regs);
void kprobe_detour_resched(void);
void kprobe_detour_redirect(struct pt_regs *regs);
struct kprobe *kprobe_detour_unwind(unsigned long *ip, unsigned long *sp);

/* The address of the relay of the site @kp, which has one. */
static inline unsigned long kprobe_relay_addr(const struct arch_optimized_insn *op,
					      const struct kprobe *kp)
{
	return (unsigned long)kp->addr + JMP8_INSN_SIZE + READ_ONCE(op->relay);
}

/* The padding that the relay replaces. */
static inline u8 *kprobe_relay_padding(struct arch_optimized_insn *op)
{
	return op->code + op->size;
}

unsigned long kprobe_relay_find_place(unsigned long site, bool *padded);
void kprobe_relay_make(struct arch_optimized_insn *op, const struct kprobe *kp);
void kprobe_relay_free(struct arch_optimized_insn *op, const struct kprobe *kp);
struct kprobe *kprobe_relay_owner(unsigned long addr);
bool kprobe_relays_overlap(unsigned long addr, unsigned int size);
#else
static inline void kprobe_detour_redirect(struct pt_regs *regs) { }

static inline struct kprobe *kprobe_detour_unwind(unsigned long *ip, unsigned long *sp)
{
	return NULL;
}

static inline struct kprobe *kprobe_relay_owner(unsigned long addr)
{
	return NULL;
}

static inline bool kprobe_relays_overlap(unsigned long addr, unsigned int size)
{
	return false;
}
#endif

#endif /* !__ASSEMBLY__ */

#endif /* _X86_KPROBES_DETOUR_H */
