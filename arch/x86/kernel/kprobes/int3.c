// SPDX-License-Identifier: GPL-2.0
/*
 * Breakpoint hits: from the exception to the handlers and back
 *
 * enum insn_run says how the displaced instruction is run. A CPU works for the probe
 * after the breakpoint exception has returned only while it runs one of two kinds of
 * copies: those that are single-stepped, and those that post handlers are called
 * after. Both run with interrupts off, so that nothing but an NMI or a fault can
 * interrupt them.
 */
#include <linux/context_tracking.h>
#include <linux/kprobes.h>
#include <linux/ptrace.h>

#include <asm/text-patching.h>

#include "common.h"
#include "detour.h"

DEFINE_PER_CPU(struct kprobe *, current_kprobe);
DEFINE_PER_CPU(struct kprobe_ctlblk, kprobe_ctlblk);

/* What a breakpoint exception adds to preempt_count(). */
#define BREAKPOINT_CONTEXT	(NMI_OFFSET + HARDIRQ_OFFSET)

/* Put the present hit aside. There is room for as many as can nest. */
noinstr void kprobe_enter_nested_hit(struct kprobe *kp, struct pt_regs *regs)
{
	struct kprobe_ctlblk *kcb = get_kprobe_ctlblk();
	struct kprobe_outer_hit *outer = &kcb->outer[kcb->depth];

	if (kcb->depth == ARRAY_SIZE(kcb->outer)) {
		instrumentation_begin();
		dump_kprobe(kp);
		panic("kprobes: a probe is hit in its own hit without end\n");
		instrumentation_end();
	}
	outer->kp = kprobe_running();
	outer->regs = kcb->regs;
	outer->status = kcb->kprobe_status;
	outer->saved_flags = kcb->saved_flags;
	outer->context = raw_cpu_read(kprobe_context);
	barrier();	/* an NMI leaves a complete entry alone, and fills any other */
	kcb->depth++;
	kcb->kprobe_status = KPROBE_HIT_ACTIVE;
	kprobe_enter_hit(kp, regs);
}

noinstr void kprobe_resume_outer_hit(void)
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

/* Return from the breakpoint to a copy that kprobe_copy_done() is called behind. */
static __always_inline void kprobe_start_copy(kprobe_opcode_t *copy, struct pt_regs *regs)
{
	struct kprobe_ctlblk *kcb = get_kprobe_ctlblk();

	kcb->regs = NULL;
	kcb->saved_flags = regs->flags & X86_EFLAGS_IF;
	raw_cpu_write(kprobe_context, preempt_count() - BREAKPOINT_CONTEXT);
	regs->flags &= ~X86_EFLAGS_IF;
	regs->ip = (unsigned long)copy;
}

/* Emulate; or run a copy, in which the same fails with a fault of its own. */
static __always_inline bool kprobe_emulate(struct kprobe *kp, struct pt_regs *regs)
{
	regs->ip = (unsigned long)kp->addr;
	if (likely(emulate_insn(&kp->ainsn.emul, regs)))
		return true;
	regs->ip = (unsigned long)kp->ainsn.insn;
	return false;
}

static __always_inline unsigned long kprobe_next_insn(const struct kprobe *kp)
{
	return (unsigned long)kp->addr + kp->ainsn.size;
}

/* The instruction has run, or a branch: go on behind it, which may be in a detour. */
static __always_inline void kprobe_resume_after_insn(struct kprobe *kp,
						     struct pt_regs *regs)
{
	if (regs->ip == kprobe_next_insn(kp))
		regs->ip = (unsigned long)READ_ONCE(kp->ainsn.next);
}

/* Do what the instruction does. Returns false if that takes a copy, which will fault. */
static __always_inline bool kprobe_run_in_place(struct kprobe *kp, struct pt_regs *regs)
{
	if (kp->ainsn.run != INSN_RUN_SKIP)
		return kprobe_emulate(kp, regs);
	regs->ip = kprobe_next_insn(kp);
	return true;
}

/* Run the instruction without a further trap. */
static __always_inline void kprobe_run_without_trap(struct kprobe *kp,
						    struct pt_regs *regs)
{
	if (likely(kp->ainsn.run == INSN_RUN_BOOST)) {
		regs->ip = (unsigned long)READ_ONCE(kp->ainsn.boost);
		return;
	}
	kprobe_run_in_place(kp, regs);
	kprobe_resume_after_insn(kp, regs);
}

/*
 * Call the post handlers, who find @regs->ip where the instruction has left it.
 * Returns whether one of them has set it, and so where to go on.
 */
static __always_inline bool kprobe_post_handlers_divert(struct kprobe *kp,
							struct pt_regs *regs)
{
	unsigned long ip = regs->ip;

	kprobe_run_post_handlers(kp, regs);
	if (likely(regs->ip == ip))
		return false;
	regs->ip = kprobe_detoured_ip(regs->ip);
	return true;
}

static noinstr void kprobe_run_with_post(struct kprobe *kp, struct pt_regs *regs)
{
	if (kprobe_run_in_place(kp, regs) && !kprobe_post_handlers_divert(kp, regs))
		kprobe_resume_after_insn(kp, regs);
	kprobe_leave_hit();
}

static __always_inline void kprobe_finish_hit(struct kprobe *kp, struct pt_regs *regs,
					      bool nested)
{
	if (likely(!site_of(kp)->has_post && kp->ainsn.run != INSN_RUN_STEP)) {
		kprobe_run_without_trap(kp, regs);
		kprobe_end_hit(nested);
	} else if (kp->ainsn.post_insn) {
		kprobe_start_copy(kp->ainsn.post_insn, regs);
	} else if (kp->ainsn.run == INSN_RUN_STEP) {
		kprobe_start_copy(kp->ainsn.insn, regs);
	} else {
		kprobe_run_with_post(kp, regs);
	}
}

/* A hit that nobody must hear of now. */
static noinstr void kprobe_skip_hit(struct kprobe *kp, struct pt_regs *regs)
{
	kprobes_inc_nmissed_count(kp);
	if (kp->ainsn.run != INSN_RUN_STEP) {
		kprobe_run_without_trap(kp, regs);
		return;
	}
	kprobe_enter_nested_hit(kp, regs);
	kprobe_start_copy(kp->ainsn.insn, regs);
	get_kprobe_ctlblk()->kprobe_status = KPROBE_REENTER;
}

static __always_inline void kprobe_handle_hit(struct kprobe *kp, struct pt_regs *regs,
					      bool nested)
{
	if (likely(!kprobe_begin_hit(kp, regs, nested))) {
		kprobe_finish_hit(kp, regs, nested);
		return;
	}
	regs->ip = kprobe_detoured_ip(regs->ip);
	kprobe_end_hit(nested);
}

/*
 * Handlers are written for one of them at a time on a CPU. But a hit from above,
 * in an interrupt or NMI that landed in a handler, is one for those probes that
 * have opted in. What the handler itself runs into is not.
 */
static noinstr void kprobe_handle_nested_int3(struct kprobe *kp, struct pt_regs *regs)
{
	if (kprobe_hit_from_above(BREAKPOINT_CONTEXT))
		kprobe_handle_hit(kp, regs, true);
	else
		kprobe_skip_hit(kp, regs);
}

/* ------------------------------------------------------- behind the copy */

/*
 * The instruction has run in its copy, with IF clear: make the registers as if it had
 * run in place, and call the post handlers, unless the hit was skipped.
 */
static __always_inline void kprobe_complete_copy(struct kprobe *kp, struct pt_regs *regs,
						 bool skipped)
{
	regs->ip = kprobe_next_insn(kp);
	regs->flags |= raw_cpu_read(kprobe_ctlblk.saved_flags);
	if (skipped || likely(!kprobe_post_handlers_divert(kp, regs)))
		regs->ip = (unsigned long)READ_ONCE(kp->ainsn.next);
	kprobe_leave_hit();
}

static noinline noinstr void kprobe_complete_copy_unwatched(struct pt_regs *regs)
{
	ct_nmi_enter();
	kprobe_complete_copy(kprobe_running(), regs, false);
	ct_nmi_exit();
}

/**
 * kprobe_copy_done - The copied instruction has run
 * @regs: The registers after it, with @sp too low and @ip unknown.
 *
 * Called by kprobe_post_stub. To handlers this is to look like the breakpoint
 * in which the pre handlers ran, but for a fraction of its price.
 *
 * Context: That of the probed code, with interrupts off.
 */
noinstr void kprobe_copy_done(struct pt_regs *regs)
{
	bool irqs_on = raw_cpu_read(kprobe_ctlblk.saved_flags);

	__preempt_count_add(PREEMPT_OFFSET);
	if (irqs_on)
		lockdep_hardirqs_off(CALLER_ADDR0);
	regs->sp += HANDLER_STACK_ROOM + sizeof(long);
	if (likely(rcu_is_watching_curr_cpu()))
		kprobe_complete_copy(kprobe_running(), regs, false);
	else
		kprobe_complete_copy_unwatched(regs);
	if (irqs_on) {
		instrumentation_begin();
		lockdep_hardirqs_on_prepare();
		instrumentation_end();
		lockdep_hardirqs_on(CALLER_ADDR0);
	}
	__preempt_count_sub(PREEMPT_OFFSET);
}

/* Is the trap at @addr the one behind the copy that runs? */
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

static noinstr int kprobe_handle_other_int3(struct kprobe *kp, struct pt_regs *regs)
{
	unsigned long addr = regs->ip - INT3_INSN_SIZE;
	struct kprobe *running = kprobe_running();

	if (kp) {
		kprobe_handle_nested_int3(kp, regs);
	} else if (is_kprobe_step_trap(running, addr)) {
		raw_cpu_write(kprobe_context, preempt_count());
		kprobe_complete_copy(running, regs,
				     raw_cpu_read(kprobe_ctlblk.kprobe_status) == KPROBE_REENTER);
	} else if (*(const u8 *)addr != INT3_INSN_OPCODE) {
		/* The probe has been removed since the CPU came here. */
		regs->ip = addr;
	} else {
		return 0;
	}
	return 1;
}

/**
 * kprobe_int3_handler - A breakpoint has been hit
 * @regs: The registers; @ip is behind the breakpoint.
 *
 * Context: The breakpoint exception.
 * Return: 1 if this is dealt with: execution goes on at @regs->ip. 0 if the
 *	breakpoint is somebody else's.
 */
noinstr int kprobe_int3_handler(struct pt_regs *regs)
{
	struct kprobe *kp;

	if (user_mode(regs))
		return 0;

	kp = kprobe_find((void *)(regs->ip - INT3_INSN_SIZE));
	if (unlikely(!kp || kprobe_running()))
		return kprobe_handle_other_int3(kp, regs);
	kprobe_handle_hit(kp, regs, false);
	return 1;
}
