// SPDX-License-Identifier: GPL-2.0
/*
 * Breakpoint hits: from the exception to the handlers and back
 *
 * irqentry_nmi_enter() and irqentry_nmi_exit() call tracers, lockdep and tracepoints, whose
 * callbacks may be probed. So a hit is under way before the one and until after the other,
 * and a hit that is skipped calls neither.
 *
 * enum insn_run says how the displaced instruction is run. The hit outlasts the
 * breakpoint exception only if a copy runs up to a second trap or has post handlers. Such a
 * copy runs with interrupts off, so that only an NMI or a fault can interrupt it.
 */
#include <linux/array_size.h>
#include <linux/context_tracking.h>
#include <linux/entry-common.h>
#include <linux/instrumentation.h>
#include <linux/kprobes.h>
#include <linux/panic.h>
#include <linux/percpu.h>
#include <linux/ptrace.h>

#include <asm/text-patching.h>

#include "detour.h"
#include "hit.h"
#include "insn.h"

DEFINE_PER_CPU(struct kprobe *, current_kprobe);
DEFINE_PER_CPU(struct kprobe_ctlblk, kprobe_ctlblk);

/* Save the hit that this CPU handles. There is room for as many as can nest. */
noinstr void kprobe_save_hit(void)
{
	struct kprobe_ctlblk *kcb = get_kprobe_ctlblk();
	struct kprobe_outer_hit *outer = &kcb->outer[kcb->depth];

	if (kcb->depth == ARRAY_SIZE(kcb->outer)) {
		instrumentation_begin();
		dump_kprobe(kprobe_running());
		panic("kprobes: a probe is hit in its own hit without end\n");
		instrumentation_end();
	}
	outer->kp = kprobe_running();
	outer->regs = kcb->regs;
	outer->status = kcb->kprobe_status;
	outer->saved_flags = kcb->saved_flags;
	outer->context = raw_cpu_read(kprobe_context);
	barrier();	/* an NMI keeps a complete entry and overwrites any other */
	kcb->depth++;
	kcb->kprobe_status = KPROBE_HIT_ACTIVE;
}

noinstr void kprobe_restore_hit(void)
{
	struct kprobe_ctlblk *kcb = get_kprobe_ctlblk();
	struct kprobe_outer_hit *outer = &kcb->outer[kcb->depth - 1];

	kcb->regs = outer->regs;
	kcb->kprobe_status = outer->status;
	kcb->saved_flags = outer->saved_flags;
	raw_cpu_write(kprobe_context, outer->context);
	raw_cpu_write(current_kprobe, outer->kp);
	barrier();
	kcb->depth--;
}

/* rcu_is_watching_curr_cpu() in two instructions. TINY_RCU is always watching. */
#ifdef CONFIG_CONTEXT_TRACKING_IDLE
static __always_inline bool kprobe_rcu_is_watching(void)
{
	return raw_cpu_read(context_tracking.state.counter) & CT_RCU_WATCHING;
}
#else
static __always_inline bool kprobe_rcu_is_watching(void)
{
	return true;
}
#endif

/*
 * Tell the kernel of the exception. What that calls has the context level of the handlers
 * already, so that a hit there is none from above.
 */
static __always_inline irqentry_state_t kprobe_enter_exception(struct pt_regs *regs)
{
	unsigned int count = raw_cpu_read(__preempt_count) + HARDIRQ_OFFSET;

	/* A count of one bit is a flag, and set in an NMI. */
	count = NMI_MASK & ~NMI_OFFSET ? count + NMI_OFFSET : count | NMI_OFFSET;
	raw_cpu_write(kprobe_context, count);
	return irqentry_nmi_enter(regs);
}

static __always_inline void kprobe_leave_exception(struct pt_regs *regs, irqentry_state_t state)
{
	/* Then it is empty: keep it in no register. */
	if (!IS_ENABLED(CONFIG_TRACE_IRQFLAGS))
		state = (irqentry_state_t){ };
	irqentry_nmi_exit(regs, state);
}

static __always_inline unsigned long kprobe_next_insn(const struct kprobe *kp)
{
	return (unsigned long)kp->addr + kp->ainsn.size;
}

/* After an instruction that did not branch, continue at its successor or its copy. */
static __always_inline void kprobe_resume_after_insn(struct kprobe *kp,
						     struct pt_regs *regs)
{
	if (regs->ip == kprobe_next_insn(kp))
		regs->ip = (unsigned long)READ_ONCE(kp->ainsn.next);
}

/*
 * Emulate the instruction, or else point ip at its copy, which raises the fault. An NMI
 * after it unwinds with the ip after the instruction, unless the hit was @skipped: then
 * the registers that the unwinder knows are those of the hit that was interrupted.
 */
static __always_inline bool kprobe_emulate(struct kprobe *kp, struct pt_regs *regs,
					   bool skipped)
{
	regs->ip = (unsigned long)kp->addr;
	if (!skipped) {
		barrier();	/* the ip above needs no correction */
		raw_cpu_write(kprobe_ctlblk.regs, POST_HANDLERS_REGS);
		barrier();	/* the stack changes after it */
	}
	if (likely(kprobe_emulate_insn(&kp->ainsn.emul, regs)))
		return true;
	regs->ip = (unsigned long)kp->ainsn.insn;
	return false;
}

/*
 * Run the instruction without another trap, for a hit that may have been @skipped. Returns false
 * if it must be stepped.
 */
static __always_inline bool kprobe_run_without_trap(struct kprobe *kp, struct pt_regs *regs,
						    bool skipped)
{
	const kprobe_opcode_t *boost = READ_ONCE(kp->ainsn.boost);

	if (likely(boost)) {
		regs->ip = (unsigned long)boost;
		return true;
	}
	if (unlikely(kp->ainsn.run == INSN_RUN_STEP))
		return false;
	kprobe_emulate(kp, regs, skipped);
	kprobe_resume_after_insn(kp, regs);
	return true;
}

/*
 * Begin the second half of a hit: call the post handlers of the probes whose pre handlers
 * were called, with @regs->ip after the instruction. The instruction may have changed the
 * context level: post handlers hit probes on the level that it has left. Returns true if a
 * handler has changed ip, and so where execution continues.
 */
static __always_inline bool kprobe_post_handlers_divert(struct kprobe *kp,
							struct pt_regs *regs)
{
	unsigned long ip = regs->ip;

	raw_cpu_write(kprobe_context, raw_cpu_read(__preempt_count));
	raw_cpu_write(kprobe_ctlblk.regs, POST_HANDLERS_REGS);
	kprobe_call_post_handler(kprobe_called(kp, kprobe_hit_is_nested()), regs);
	if (likely(regs->ip == ip))
		return false;
	kprobe_detour_redirect(regs);
	return true;
}

/* kprobe_post_handlers_divert(), for other paths of a hit */
noinstr bool kprobe_run_post_handlers(struct kprobe *kp, struct pt_regs *regs)
{
	return kprobe_post_handlers_divert(kp, regs);
}

/*
 * For a post handler that was set after registration there may be no copy yet, or a jump soon. If
 * kprobe_pre_handlers() was called, it has asked the probes: none may have one any more.
 */
static noinstr void kprobe_run_with_post(struct kprobe *kp, struct pt_regs *regs)
{
	struct kprobe_site *site = site_of(kp);

	if (unlikely(READ_ONCE(site->has_post) ? kp->ainsn.run == INSN_RUN_BOOST :
		     kprobe_called(kp, kprobe_hit_is_nested()) != kp))
		kprobe_prepare_post_later(site);
	if (unlikely(kp->ainsn.run == INSN_RUN_BOOST)) {
		kprobe_run_without_trap(kp, regs, false);
		return;
	}
	if (kp->ainsn.run == INSN_RUN_SKIP)
		regs->ip = kprobe_next_insn(kp);
	else if (!kprobe_emulate(kp, regs, false))
		return;
	if (!kprobe_post_handlers_divert(kp, regs))
		kprobe_resume_after_insn(kp, regs);
}

/*
 * Will the hit outlast the exception, in a copy? That stays so, and nobody has to remember it: a
 * copy for post handlers is made once, and not for an instruction that is stepped.
 */
static __always_inline bool kprobe_needs_copy(const struct kprobe *kp)
{
	return READ_ONCE(kp->ainsn.post_insn) || kp->ainsn.run == INSN_RUN_STEP;
}

/* Return from the breakpoint to a copy that ends in kprobe_copy_done() or a trap. */
static __always_inline void kprobe_start_copy(const struct kprobe *kp, struct pt_regs *regs)
{
	const kprobe_opcode_t *post_insn = READ_ONCE(kp->ainsn.post_insn);

	WRITE_ONCE(regs->ip, (unsigned long)(post_insn ?: kp->ainsn.insn));
	barrier();	/* an NMI finds the site by the registers of the hit, then by the slot */
	raw_cpu_write(kprobe_ctlblk.regs, NULL);
	raw_cpu_write(kprobe_ctlblk.saved_flags, regs->flags & X86_EFLAGS_IF);
	raw_cpu_write(kprobe_context, raw_cpu_read(__preempt_count));
	regs->flags &= ~X86_EFLAGS_IF;
}

static __always_inline void kprobe_handle_hit(struct kprobe *kp, struct pt_regs *regs,
					      bool nested)
{
	irqentry_state_t state;
	bool changed;

	kprobe_begin_hit(kp, regs, nested);
	state = kprobe_enter_exception(regs);
	changed = kprobe_call_pre_handler(kprobe_called(kp, nested), regs);
	if (unlikely(changed)) {
		/* From here on, an NMI unwinds with the ip that the handler has set. */
		raw_cpu_write(kprobe_ctlblk.regs, POST_HANDLERS_REGS);
		kprobe_detour_redirect(regs);
	} else if (unlikely(kprobe_has_post(kp, nested) ||
			    !kprobe_run_without_trap(kp, regs, false))) {
		if (kprobe_needs_copy(kp)) {
			kprobe_leave_exception(regs, state);
			kprobe_start_copy(kp, regs);
			return;
		}
		kprobe_run_with_post(kp, regs);
	}
	kprobe_leave_exception(regs, state);
	kprobe_end_hit(nested);
}

/* Run the instruction without calling handlers, and count the miss. */
static noinstr void kprobe_skip_hit(struct kprobe *kp, struct pt_regs *regs)
{
	regs->ip = (unsigned long)kp->addr;	/* an NMI unwinds from there */
	kprobe_count_skipped(kp);
	if (kprobe_run_without_trap(kp, regs, true))
		return;
	kprobe_save_hit();
	raw_cpu_write(current_kprobe, kp);
	kprobe_start_copy(kp, regs);
	get_kprobe_ctlblk()->kprobe_status = KPROBE_REENTER;
}

/* --------------------------------------------------------- after the copy */

/*
 * The instruction has run in its copy with IF clear. Set the registers as if it had
 * run in place and call the post handlers, unless the hit was @skipped.
 */
static __always_inline void kprobe_complete_copy(struct kprobe *kp, struct pt_regs *regs,
						 bool skipped)
{
	regs->ip = kprobe_next_insn(kp);
	regs->flags |= raw_cpu_read(kprobe_ctlblk.saved_flags);
	if (skipped || likely(!kprobe_post_handlers_divert(kp, regs)))
		regs->ip = (unsigned long)READ_ONCE(kp->ainsn.next);
}

static noinline noinstr void kprobe_complete_copy_unwatched(struct pt_regs *regs)
{
	/* The instruction may have raised the level: a hit in a tracepoint is none from above. */
	raw_cpu_write(kprobe_context, raw_cpu_read(__preempt_count));
	ct_nmi_enter();
	kprobe_complete_copy(kprobe_running(), regs, false);
	ct_nmi_exit();
}

/*
 * kprobe_copy_done() - Call the post handlers after a copied instruction, for kprobe_post_stub
 *
 * The registers are those after it, but for @ip and the interrupt flag. Handlers run with
 * preemption and interrupts off, as in the breakpoint, but in no NMI, which would cost as much.
 */
noinstr void kprobe_copy_done(struct pt_regs *regs)
{
	/* As the exception does: the interrupt flag may be another one for a while. */
	bool irqs_on = lockdep_hardirqs_enabled();

	__preempt_count_add(PREEMPT_OFFSET);
	lockdep_hardirqs_off(CALLER_ADDR0);
	if (likely(kprobe_rcu_is_watching()))
		kprobe_complete_copy(kprobe_running(), regs, false);
	else
		kprobe_complete_copy_unwatched(regs);
	kprobe_end_hit(kprobe_hit_is_nested());
	if (irqs_on) {
		instrumentation_begin();
		lockdep_hardirqs_on_prepare();
		instrumentation_end();
		lockdep_hardirqs_on(CALLER_ADDR0);
	}
	__preempt_count_sub(PREEMPT_OFFSET);
}

/* True if the trap at @addr is the one after the running copy. */
static __always_inline bool is_kprobe_step_trap(const struct kprobe *running,
						unsigned long addr)
{
	unsigned long copy;

	if (!running || raw_cpu_read(kprobe_ctlblk.regs))
		return false;
	copy = addr - running->ainsn.size;
	return copy == (unsigned long)running->ainsn.insn ||
	       copy == (unsigned long)running->ainsn.post_insn;
}

static __always_inline void kprobe_handle_step_trap(struct kprobe *running,
						    struct pt_regs *regs)
{
	irqentry_state_t state;

	if (raw_cpu_read(kprobe_ctlblk.kprobe_status) == KPROBE_REENTER) {
		kprobe_complete_copy(running, regs, true);
	} else {
		state = kprobe_enter_exception(regs);
		kprobe_complete_copy(running, regs, false);
		kprobe_leave_exception(regs, state);
	}
	kprobe_end_hit(kprobe_hit_is_nested());
}

/* Call break handlers until one handles the breakpoint that the handler of @running executed. */
static __always_inline bool kprobe_run_break_handlers(struct kprobe *running,
						      struct pt_regs *regs)
{
	unsigned int context = raw_cpu_read(kprobe_context);
	kprobe_break_handler_t handler;
	struct kprobe *p = NULL;
	irqentry_state_t state;
	bool handled = false;

	if (kprobe_hit_from_above())
		return false;
	state = kprobe_enter_exception(regs);
	instrumentation_begin();
	while (!handled && (p = kprobe_next_of_hit(running, p))) {
		handler = READ_ONCE(p->break_handler);
		handled = handler && !kprobe_disabled(p) && handler(p, regs);
	}
	instrumentation_end();
	if (handled)
		kprobe_detour_redirect(regs);
	kprobe_leave_exception(regs, state);
	raw_cpu_write(kprobe_context, context);
	return handled;
}

/*
 * Handlers rely on running one at a time on a CPU. A hit in an interrupt or NMI that
 * interrupted a handler calls the handlers of probes that have opted in. A hit by the
 * handler itself is skipped.
 */
static noinstr int kprobe_handle_other_int3(struct kprobe *kp, struct pt_regs *regs)
{
	unsigned long addr = regs->ip - INT3_INSN_SIZE;
	struct kprobe *running = kprobe_running();

	if (kp && kprobe_hit_from_above()) {
		kprobe_handle_hit(kp, regs, true);
	} else if (kp) {
		kprobe_skip_hit(kp, regs);
	} else if (is_kprobe_step_trap(running, addr)) {
		kprobe_handle_step_trap(running, regs);
	} else if (*(const u8 *)addr != INT3_INSN_OPCODE) {
		/* The probe was removed after this CPU had fetched the breakpoint. */
		regs->ip = addr;
	} else {
		return running && kprobe_run_break_handlers(running, regs);
	}
	return 1;
}

/* Apart, since the handler would need a stack slot. */
static noinline noinstr int kprobe_handle_int3_unwatched(struct pt_regs *regs)
{
	int handled;

	ct_nmi_enter();
	handled = kprobe_int3_handler(regs);
	ct_nmi_exit();
	return handled;
}

/*
 * kprobe_int3_handler() - Handle a breakpoint of the kernel, before anything that may be probed
 *
 * @regs->ip is after the breakpoint. Returns 1 if it was handled: execution continues at @regs->ip;
 * 0 if it is not one of kprobes.
 */
noinstr int kprobe_int3_handler(struct pt_regs *regs)
{
	struct kprobe *kp;

	if (unlikely(!kprobe_rcu_is_watching()))
		return kprobe_handle_int3_unwatched(regs);
	kp = kprobe_find_breakpoint((void *)(regs->ip - INT3_INSN_SIZE));
	if (unlikely(!kp || kprobe_running()))
		return kprobe_handle_other_int3(kp, regs);
	kprobe_handle_hit(kp, regs, false);
	return 1;
}
