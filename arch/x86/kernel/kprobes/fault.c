// SPDX-License-Identifier: GPL-2.0
/*
 * Faults in slots and detours, which must refer to the probed instruction
 */
#include <linux/bits.h>
#include <linux/cleanup.h>
#include <linux/kprobes.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/ptrace.h>

#include "detour.h"
#include "hit.h"
#include "insn.h"

static unsigned long kprobe_slot_original_ip(const struct kprobe *owner, unsigned long ip)
{
	const struct arch_specific_insn *ainsn = &owner->ainsn;
	unsigned long copy = (unsigned long)ainsn->insn;

	if (ip - copy >= KPROBE_SLOT_SIZE)
		copy = (unsigned long)ainsn->post_insn;
	return (unsigned long)owner->addr + (ip - copy < ainsn->size ? 0 : ainsn->size);
}

/*
 * kprobe_original_ip() - Map an address in any slot to the text
 *
 * Returns the address of the displaced instruction if @ip is in its copy, of the next one if it is
 * after the copy in the slot; @ip if it is in no slot. Any context in which RCU is watching.
 */
unsigned long kprobe_original_ip(unsigned long ip)
{
	const struct kprobe *owner;

	guard(preempt_notrace)();
	owner = kprobe_slot_owner(ip);
	return owner ? kprobe_slot_original_ip(owner, ip) : ip;
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
		kprobe_end_hit(kprobe_hit_is_nested());
	}
	regs->ip = kprobe_slot_original_ip(owner, regs->ip);
}

/*
 * Call the fault handlers of @kp, a site or a return probe's, until one handles the fault. They
 * run as a hit does, or as a part of the hit whose handler has faulted.
 */
static bool __kprobes kprobe_call_fault_handlers(struct kprobe *kp, struct pt_regs *regs,
						 int trapnr)
{
	unsigned int outer = raw_cpu_read(kprobe_ctlblk.fault_context);
	bool nested = kprobe_running(), begin = !nested || kprobe_hit_from_above();
	kprobe_fault_handler_t handler;
	struct kprobe *p = NULL;
	bool handled = false;

	/* A fault that a fault handler has caused gets no other one. */
	if (kprobe_is_in_context(outer))
		return false;
	raw_cpu_write(kprobe_ctlblk.fault_context, preempt_count() | KPROBE_CONTEXT_SET);
	if (begin)
		kprobe_begin_hit(kp, POST_HANDLERS_REGS, nested);
	while (!handled && (p = kprobe_next_of_hit(kp, p))) {
		handler = READ_ONCE(p->fault_handler);
		handled = handler && !kprobe_disabled(p) && handler(p, regs, trapnr);
	}
	if (begin)
		kprobe_end_hit(nested);
	raw_cpu_write(kprobe_ctlblk.fault_context, outer);
	return handled;
}

/*
 * A fault of the probed instruction in a detour. If no handler handles it, @regs->ip stays
 * in the detour: KFENCE may resolve it next, and the text has a breakpoint or a jump.
 */
static bool __kprobes is_detour_fault_handled(struct pt_regs *regs, int trapnr)
{
	unsigned long ip = regs->ip, sp = regs->sp;
	struct kprobe *site = kprobe_detour_unwind(&regs->ip, &regs->sp);

	if (site && regs->ip == (unsigned long)site->addr &&
	    kprobe_call_fault_handlers(site, regs, trapnr))
		return true;
	regs->ip = ip;
	regs->sp = sp;
	return false;
}

/*
 * Call the fault handlers of the probes at the instruction, then those of the probe whose
 * handler has executed it, unless that was in an interrupt or NMI. A fault of the
 * emulation only makes the emulation fail: the copy that is executed instead faults on
 * behalf of the instruction.
 */
static bool __kprobes is_fault_handled(struct pt_regs *regs, int trapnr)
{
	struct kprobe *site = get_kprobe((void *)regs->ip), *running = kprobe_running();

	/* While a site is armed, its instruction faults in a slot only, never in the text. */
	if (site && !site_is_armed(site_of(site)))
		site = NULL;
	if (is_detour_fault_handled(regs, trapnr) ||
	    (site && kprobe_call_fault_handlers(site, regs, trapnr)))
		return true;
	return running && running != site && !kprobe_hit_from_above() &&
	       !kprobe_is_emulation_fault(regs->ip) &&
	       kprobe_call_fault_handlers(running, regs, trapnr);
}

/*
 * kprobe_fixup_fault() - Call the fault handlers, if it is a fault of a probe
 *
 * If the fault was in a slot, @regs->ip is set to the instruction's own address and the interrupt
 * flag to its value there. For any exception that the kernel has not resolved by itself. Returns
 * true if a fault handler has handled the fault: execution continues at @regs->ip.
 */
bool __kprobes kprobe_fixup_fault(struct pt_regs *regs, int trapnr)
{
	if (user_mode(regs))
		return false;
	guard(preempt_notrace)();
	move_slot_fault_to_text(regs);
	if (likely(!is_fault_handled(regs, trapnr)))
		return false;
	kprobe_detour_redirect(regs);
	return true;
}

/*
 * kprobe_fault_handler() - Move a fault during a hit from a slot to the instruction; returns 0
 *
 * A fault in a handler stays the handler's. kprobe_fixup_fault() calls the fault
 * handlers, if the kernel cannot resolve the fault by itself.
 */
int __kprobes kprobe_fault_handler(struct pt_regs *regs, int trapnr)
{
	move_slot_fault_to_text(regs);
	return 0;
}
