// SPDX-License-Identifier: GPL-2.0
/*
 * Probes on a function's ftrace site: the instruction is a call of ftrace's, and
 * to the probed function a nop.
 */
#include <linux/ftrace.h>
#include <linux/preempt.h>
#include <linux/ptrace.h>

#include "common.h"

/* What is left when all handlers have had their say. */
static __always_inline void finish_hit(struct kprobe *kp, struct pt_regs *regs, int changed,
				       unsigned long return_ip)
{
	if (likely(!changed)) {
		if (unlikely(kp->post_handler)) {
			regs->ip = (unsigned long)kp->addr + MCOUNT_INSN_SIZE;
			call_post_handlers(kp, regs);
		}
		regs->ip = return_ip;
	}
	leave_hit();
}

static noinstr void hit_in_hit(struct kprobe *kp, struct pt_regs *regs)
{
	unsigned long return_ip = regs->ip;

	if (!is_hit_from_above(0)) {
		kprobes_inc_nmissed_count(kp);
		return;
	}
	enter_nested_hit(kp, regs);
	regs->ip = (unsigned long)kp->addr + INT3_INSN_SIZE;
	finish_hit(kp, regs, kprobe_pre_handlers_nested(kp, regs), return_ip);
}

static __always_inline void hit(struct kprobe *kp, struct pt_regs *regs)
{
	unsigned long return_ip = regs->ip;

	enter_hit(kp, regs);
	/* As behind a breakpoint, whichever way the probe is armed. */
	regs->ip = (unsigned long)kp->addr + INT3_INSN_SIZE;
	finish_hit(kp, regs, kprobe_call_pre_handlers(kp, regs), return_ip);
}

/**
 * kprobe_ftrace_handler - ftrace calls for a probe
 * @ip: The ftrace site.
 * @parent_ip: Where the probed function was called from.
 * @ops: The ftrace_ops that is called for.
 * @fregs: The registers at the site.
 *
 * Context: Any. It calls nothing that can be traced, so it needs no protection
 *	from being called by what it calls; handlers are protected by
 *	kprobe_running().
 */
noinstr void kprobe_ftrace_handler(unsigned long ip, unsigned long parent_ip,
				   struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	struct pt_regs *regs = arch_ftrace_get_regs(fregs);
	struct kprobe *kp;

	if (unlikely(kprobe_ftrace_disabled || !regs))
		return;
	preempt_disable_notrace();
	kp = kprobe_find((void *)ip);
	if (likely(kp && kprobe_armed_by(kp, ops))) {
		if (unlikely(kprobe_running()))
			hit_in_hit(kp, regs);
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
