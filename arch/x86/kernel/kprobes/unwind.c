// SPDX-License-Identifier: GPL-2.0
/*
 * Stack traces from slots: the ORC unwinder finds no data for them, and others need none
 */
#include <linux/cleanup.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/preempt.h>
#include <linux/ptrace.h>
#include <linux/uaccess.h>

#include <asm/insn.h>
#include <asm/sections.h>
#include <asm/text-patching.h>

#include "detour.h"
#include "hit.h"
#include "opcode.h"

/*
 * The site of the hit on this CPU whose pre handlers see @regs, or whose copy has run if that is
 * NULL: its post handlers have not been called yet. NULL if there is none: what runs may be no
 * site, and then the registers are those of an earlier hit.
 */
static const struct kprobe *site_of_hit(const struct pt_regs *regs)
{
	const struct kprobe_ctlblk *kcb = get_kprobe_ctlblk();
	const struct kprobe *running = kprobe_running();

	if (!running)
		return NULL;
	/*
	 * The outer hits first: their registers are those of the running one as it begins, and
	 * as it ends. So if both have run copies, both stubs are taken for that of the outer one.
	 */
	for (unsigned int i = 0; i < kcb->depth; i++)
		if (kcb->outer[i].regs == regs && kprobe_is_site(kcb->outer[i].kp))
			return kcb->outer[i].kp;
	return kcb->regs == regs && kprobe_is_site(running) ? running : NULL;
}

/* The number of words pushed before @offset of @code, which begins with saving registers */
static unsigned int words_pushed(const u8 *code, unsigned int offset)
{
	unsigned int count = 0;
	struct insn insn;

	for (unsigned int pos = 0; pos < offset; pos += insn.length) {
		if (insn_decode(&insn, code + pos, MAX_INSN_SIZE, INSN_MODE_KERN))
			break;
		switch (insn_opcode(&insn)) {
		case OPCODE_PUSH(0) ... OPCODE_PUSH(7):
		case OPCODE_PUSH_IMM32:
		case OPCODE_PUSH_IMM8:
		case OPCODE_PUSHF:
		case OPCODE_GROUP5:	/* of which there is only PUSH */
			count++;
			break;
		case OPCODE_LEA:
			count -= insn.displacement.value / (int)sizeof(long);
			break;
		}
	}
	return count;
}

/*
 * The stub for post handlers, too, has no unwind data until it has pushed all registers, and
 * its address stands for the ip that it does not know.
 */
static bool kprobe_post_stub_unwind(unsigned long *ip, unsigned long *sp)
{
	unsigned long offset = *ip - (unsigned long)kprobe_post_stub;
	const struct kprobe *kp;

	if (offset >= kprobe_post_stub_framed - kprobe_post_stub)
		return false;
	kp = site_of_hit(NULL);
	if (!kp)
		return false;
	*ip = (unsigned long)kp->addr + kp->ainsn.size;
	*sp += words_pushed(kprobe_post_stub, offset) * sizeof(long);
	return true;
}

/*
 * Where a body has the registers of the probed code, set @ip and @sp to those in the detour that
 * has called it, or that it returns to. The unwinder finds the same by the return address, but
 * forgets the registers.
 */
static bool body_unwind(const struct detour_body *body, unsigned long *ip, unsigned long *sp)
{
	unsigned long offset = *ip - (unsigned long)body->code, target;
	unsigned int words = 0;

	if (offset < body->framed)
		words = words_pushed(body->code, offset);
	else if (offset < body->left || offset > body->ret)
		return false;
	else if (offset < body->ret)
		words = offsetof(struct pt_regs, cs) / sizeof(long);
	if (copy_from_kernel_nofault(&target, (unsigned long *)*sp + words, sizeof(target)))
		return false;
	*ip = offset < body->framed ? target - CALL_INSN_SIZE : target;
	*sp += (words + 1) * sizeof(long);
	return true;
}

/*
 * kprobe_unwind_ip() - Find the address whose unwind data describes the stack
 *
 * @regs contain @ip, or are NULL. At the start and the end of a detour, and at the start of the
 * stub for post handlers, @sp is set to that of the probed code.
 *
 * Slots have no unwind data; those of the probed instruction apply, also at a relay. Pre
 * handlers see @regs->ip after the breakpoint, perhaps at the next instruction already,
 * while the stack is as before the probed one. Registers saved by a detour have that @ip
 * for as long as they exist, unless a handler has changed the path.
 */
unsigned long kprobe_unwind_ip(unsigned long ip, const struct pt_regs *regs,
			       unsigned long *sp)
{
	const struct kprobe *kp;
	unsigned long hit;

	guard(preempt_notrace)();
	if (regs) {
		if (kprobe_post_stub_unwind(&ip, sp))
			return ip;
		/* The stack may be that of a task that runs now. */
		hit = READ_ONCE_NOCHECK(regs->ip) - INT3_INSN_SIZE;
		kp = site_of_hit(regs);
		if (!kp && READ_ONCE_NOCHECK(regs->csx) >> 16 == DETOUR_MARK)
			kp = get_kprobe((void *)hit);
		if (kp && hit == (unsigned long)kp->addr)
			return hit;
		/* It may also be any word of a stack that changes. */
		kp = is_kernel_text(ip) || is_module_text_address(ip) ? kprobe_relay_owner(ip) :
									NULL;
		if (kp)
			return (unsigned long)kp->addr;
	}
	if (IS_ENABLED(CONFIG_OPTPROBES) && !body_unwind(&kprobe_detour_body, &ip, sp))
		body_unwind(&kprobe_detour_post_body, &ip, sp);
	if (is_kernel_text(ip) || kprobe_detour_unwind(&ip, sp))
		return ip;
	return kprobe_original_ip(ip);
}
