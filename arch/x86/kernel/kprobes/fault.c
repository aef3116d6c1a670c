// SPDX-License-Identifier: GPL-2.0
/*
 * Faults in slots and stack traces from slots: both must refer to the probed instruction
 */
#include <linux/kprobes.h>
#include <linux/ptrace.h>

#include <asm/sections.h>

#include "detour.h"
#include "hit.h"
#include "insn.h"

/* The address in the text for @ip in a slot: the instruction, or the next one. */
static unsigned long slot_original_ip(const struct kprobe *owner, unsigned long ip)
{
	const struct arch_specific_insn *ainsn = &owner->ainsn;
	unsigned long copy = (unsigned long)ainsn->insn;

	if (ip - copy >= KPROBE_SLOT_SIZE)
		copy = (unsigned long)ainsn->post_insn;
	return (unsigned long)owner->addr + (ip - copy < ainsn->size ? 0 : ainsn->size);
}

/* True if @ip is in a copy that this CPU runs for a hit of @owner. */
static bool is_slot_copy_running(const struct kprobe *owner, unsigned long ip)
{
	if (kprobe_running() != owner || raw_cpu_read(kprobe_ctlblk.regs))
		return false;
	return owner->ainsn.run == INSN_RUN_STEP ||
	       ip - (unsigned long)owner->ainsn.post_insn < KPROBE_SLOT_SIZE;
}

/*
 * A fault in a slot becomes one of the probed instruction, and the hit ends. Once the
 * fault is handled, the instruction may be hit again.
 */
static void __kprobes move_slot_fault_to_text(struct pt_regs *regs)
{
	struct kprobe *owner = kprobe_slot_owner(regs->ip);

	if (likely(!owner))
		return;
	if (is_slot_copy_running(owner, regs->ip)) {
		regs->flags |= raw_cpu_read(kprobe_ctlblk.saved_flags);
		kprobe_leave_hit();
	}
	regs->ip = slot_original_ip(owner, regs->ip);
}

/*
 * A fault of the probed instruction in a detour is reported there if no handler handles
 * it: an instruction after it could not be run in place.
 */
static bool __kprobes is_detour_fault_handled(struct pt_regs *regs, int trapnr)
{
	unsigned long ip = regs->ip, sp = regs->sp;
	struct kprobe *site = kprobe_detour_insn_owner(ip, &regs->sp);

	if (!site)
		return false;
	regs->ip = (unsigned long)site->addr;
	if (kprobe_fault_handlers(site, regs, trapnr))
		return true;
	regs->ip = ip;
	regs->sp = sp;
	return false;
}

static bool __kprobes is_site_fault_handled(struct kprobe *site, struct pt_regs *regs, int trapnr)
{
	return site && kprobe_fault_handlers(site, regs, trapnr);
}

/*
 * Call the fault handlers of the probes at the instruction, then those of the probe whose
 * handler has executed it. While a probe is armed, its instruction cannot fault in the
 * text: a fault there is one that was moved from a slot.
 */
static bool __kprobes is_fault_handled(struct pt_regs *regs, int trapnr)
{
	return is_detour_fault_handled(regs, trapnr) ||
	       is_site_fault_handled(get_kprobe((void *)regs->ip), regs, trapnr) ||
	       is_site_fault_handled(kprobe_running(), regs, trapnr);
}

/**
 * kprobe_fixup_fault() - Report a fault in a slot at the probed instruction
 * @regs: The registers at the fault. If it was in a slot, @ip is set to the
 *	instruction's own address and the interrupt flag to its value there.
 * @trapnr: The number of the exception.
 *
 * Context: Any exception that the kernel has not resolved by itself.
 * Return: true if a fault handler has handled the fault: execution continues at
 *	@regs->ip.
 */
bool __kprobes kprobe_fixup_fault(struct pt_regs *regs, int trapnr)
{
	if (user_mode(regs))
		return false;
	guard(preempt_notrace)();
	move_slot_fault_to_text(regs);
	if (likely(!is_fault_handled(regs, trapnr)))
		return false;
	regs->ip = kprobe_detoured_ip(regs->ip);
	return true;
}

/**
 * kprobe_fault_handler() - Report a page fault during a hit at the probed instruction
 * @regs: The registers at the fault.
 * @trapnr: The number of the exception.
 *
 * A fault in a handler stays the handler's. kprobe_fixup_fault() calls the fault
 * handlers, if the kernel cannot resolve the fault by itself.
 *
 * Context: The exception, with preemption off.
 * Return: 0: the caller handles the fault.
 */
int __kprobes kprobe_fault_handler(struct pt_regs *regs, int trapnr)
{
	move_slot_fault_to_text(regs);
	return 0;
}

/* The site whose pre handlers see @regs on this CPU, or NULL. */
static const struct kprobe *running_site_of_regs(const struct pt_regs *regs)
{
	const struct kprobe_ctlblk *kcb = get_kprobe_ctlblk();
	const struct kprobe *running = kprobe_running();

	if (!regs || !running)
		return NULL;
	if (kcb->regs == regs)
		return running;
	for (unsigned int i = 0; i < kcb->depth; i++)
		if (kcb->outer[i].regs == regs)
			return kcb->outer[i].kp;
	return NULL;
}

/**
 * kprobe_unwind_ip() - Find the address whose unwind data describes the stack
 * @ip: An address that the unwinder has found.
 * @regs: The registers that contain @ip, or NULL.
 * @sp: The stack pointer at @ip. At the start and the end of a detour it is set to
 *	that of the probed code.
 *
 * Slots have no unwind data; those of the probed instruction apply. Pre handlers see
 * @regs->ip after the breakpoint, perhaps at the next instruction already, while the
 * stack is as before the probed one. Registers saved by a detour have that @ip for
 * as long as they exist.
 *
 * Context: Any in which RCU is watching.
 * Return: The address to look up.
 */
unsigned long kprobe_unwind_ip(unsigned long ip, const struct pt_regs *regs,
			       unsigned long *sp)
{
	const struct kprobe *kp;

	guard(preempt_notrace)();
	kp = running_site_of_regs(regs);
	if (kp && regs->ip == (unsigned long)kp->addr + INT3_INSN_SIZE)
		return (unsigned long)kp->addr;
	if (regs && regs->csx >> 16 == DETOUR_MARK && get_kprobe((void *)regs->ip - INT3_INSN_SIZE))
		return regs->ip - INT3_INSN_SIZE;
	if (is_kernel_text(ip) || kprobe_detour_unwind(&ip, sp))
		return ip;
	kp = kprobe_slot_owner(ip);
	return kp ? slot_original_ip(kp, ip) : ip;
}
