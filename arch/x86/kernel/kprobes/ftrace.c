// SPDX-License-Identifier: GPL-2.0
/*
 * Probes on a function's ftrace site: the instruction is a call of ftrace's, and
 * to the probed function a nop.
 */
#include <linux/ftrace.h>
#include <linux/preempt.h>
#include <linux/ptrace.h>

#include "common.h"

/* As behind a breakpoint, whichever way the probe is armed. */
static __always_inline void show_breakpoint_ip(const struct kprobe *kp, struct pt_regs *regs)
{
	regs->ip = (unsigned long)kp->addr + INT3_INSN_SIZE;
}

static __always_inline void run_post_handlers(struct kprobe *kp, struct pt_regs *regs)
{
	if (!kp->post_handler)
		return;
	regs->ip = (unsigned long)kp->addr + MCOUNT_INSN_SIZE;
	call_post_handlers(kp, regs);
}

static noinstr void hit_in_hit(struct kprobe *kp, struct pt_regs *regs)
{
	unsigned long return_ip = regs->ip;

	if (!is_hit_from_above(0)) {
		kprobes_inc_nmissed_count(kp);
		return;
	}
	enter_nested_hit(kp, regs);
	show_breakpoint_ip(kp, regs);
	if (!kprobe_pre_handlers_nested(kp, regs)) {
		run_post_handlers(kp, regs);
		regs->ip = return_ip;
	}
	leave_hit();
}

static noinstr void hit_with_post(struct kprobe *kp, struct pt_regs *regs)
{
	unsigned long return_ip = regs->ip;

	enter_hit(kp, regs);
	show_breakpoint_ip(kp, regs);
	if (!kprobe_call_pre_handlers(kp, regs)) {
		run_post_handlers(kp, regs);
		regs->ip = return_ip;
	}
	leave_outermost_hit();
}

static __always_inline void hit(struct kprobe *kp, struct pt_regs *regs)
{
	unsigned long return_ip = regs->ip;

	enter_hit(kp, regs);
	show_breakpoint_ip(kp, regs);
	if (likely(!kprobe_call_pre_handlers(kp, regs)))
		regs->ip = return_ip;
	leave_outermost_hit();
}

/**
 * kprobe_ftrace_handler - ftrace calls for a probe
 * @ip: The ftrace site.
 * @parent_ip: Where the probed function was called from.
 * @ops: The ftrace_ops that is called for. It has asked for all registers.
 * @fregs: The registers at the site.
 *
 * Context: Any. It calls nothing that can be traced, so it needs no protection
 *	from being called by what it calls; handlers are protected by
 *	kprobe_running().
 */
noinstr void kprobe_ftrace_handler(unsigned long ip, unsigned long parent_ip,
				   struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	/* arch_ftrace_get_regs(), for one who knows that they are complete. */
	struct pt_regs *regs = (struct pt_regs *)fregs;
	struct kprobe *kp;

	preempt_disable_notrace();
	kp = kprobe_find((void *)ip);
	if (likely(kp && site_of(kp)->ops == ops)) {
		if (unlikely(kprobe_running()))
			hit_in_hit(kp, regs);
		else if (unlikely(kp->post_handler))
			hit_with_post(kp, regs);
		else
			hit(kp, regs);
	}
	preempt_enable_notrace();
}

int arch_prepare_kprobe_ftrace(struct kprobe *p)
{
	p->opcode = *p->addr;
	return 0;
}
