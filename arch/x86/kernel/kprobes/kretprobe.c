// SPDX-License-Identifier: GPL-2.0
/*
 * Return probes on x86: the stack slot of the return address identifies a call
 */
#include <linux/kprobes.h>
#include <linux/kretprobes_hit.h>
#include <linux/preempt.h>
#include <linux/ptrace.h>

#include "hit.h"

static __always_inline void kretprobe_call_handler(struct kretprobe *rp,
						   kretprobe_handler_t handler,
						   struct kretprobe_instance *ri,
						   struct pt_regs *regs, bool nested)
{
	kprobe_begin_hit(&rp->kp, regs, nested);
	instrumentation_begin();
	handler(ri, regs);
	instrumentation_end();
	kprobe_end_hit(nested);
}

/* Call the handler, unless another one runs that no higher context has interrupted. */
static __always_inline void kretprobe_call_or_miss(struct kretprobe *rp,
						   struct kretprobe_instance *ri,
						   struct pt_regs *regs)
{
	kretprobe_handler_t handler = READ_ONCE(rp->handler);
	bool nested = kprobe_running();

	if (!handler)
		return;
	if (nested && !kprobe_hit_from_above())
		kretprobe_count_miss(rp);
	else
		kretprobe_call_handler(rp, handler, ri, regs, nested);
}

/*
 * Restore the return address on the stack and in the handlers' registers. A stack trace that comes
 * to the place again, by another tracer's trampoline, must find an older instance than @last. The
 * instances stay in the task's list until their handlers have returned, and are recycled if one is
 * killed.
 */
static __always_inline void kretprobe_restore_return(struct pt_regs *regs,
						     kprobe_opcode_t **place,
						     struct kretprobe_instance *last)
{
	*place = last->ret_addr;
	regs->ip = (unsigned long)last->ret_addr;
	/* The trampoline has pushed it after ss. */
	regs->sp += 2 * sizeof(long);
	barrier();
	WRITE_ONCE(last->fp, NULL);
}

/* Handle any return: several instances, unregistered probes, other hits under way. */
static noinstr void kretprobe_handle_return(struct pt_regs *regs, kprobe_opcode_t **place)
{
	struct kretprobe_instance *ri, *next, *last;
	struct kretprobe *rp;
	bool more;

	ri = kretprobe_first(place, &last);
	kretprobe_restore_return(regs, place, last);
	do {
		next = kretprobe_next(ri);
		more = ri != last;
		rp = kretprobe_if_registered(ri);
		WRITE_ONCE(ri->fp, NULL);
		WRITE_ONCE(ri->ret_addr, *place);
		if (rp)
			kretprobe_call_or_miss(rp, ri, regs);
		kretprobe_unlink(ri);
		kretprobe_put(ri, rp);
		ri = next;
	} while (more);
}

/*
 * Handle the return of a single, registered return probe with no other hit under way.
 * Returns false for any other return, with nothing done.
 */
static __always_inline bool kretprobe_handle_usual_return(struct pt_regs *regs,
							  kprobe_opcode_t **place)
{
	struct kretprobe_instance *ri = kretprobe_newest();
	kretprobe_handler_t handler;
	struct kretprobe *rp;

	if (unlikely(!ri || ri->fp != place || kretprobe_shares_ret_addr(ri->ret_addr) ||
		     kprobe_running()))
		return false;
	rp = READ_ONCE(ri->pool->rp);	/* pairs with kretprobe_pool_drop() */
	handler = READ_ONCE(rp->handler);
	if (unlikely(!handler))
		return false;
	kretprobe_restore_return(regs, place, ri);
	kretprobe_call_handler(rp, handler, ri, regs, false);
	kretprobe_unlink(ri);
	kretprobe_put(ri, true);
	return true;
}

/*
 * kretprobe_returned() - Handle the return of a return-probed function, for __kretprobe_trampoline
 *
 * @ip is a place in the trampoline, and @sp too low. The stack slot after the registers gets the
 * original return address.
 */
noinstr void kretprobe_returned(struct pt_regs *regs)
{
	kprobe_opcode_t **place = (kprobe_opcode_t **)(regs + 1);

	preempt_disable_notrace();
	if (unlikely(!kretprobe_handle_usual_return(regs, place)))
		kretprobe_handle_return(regs, place);
	preempt_enable_notrace();
}
