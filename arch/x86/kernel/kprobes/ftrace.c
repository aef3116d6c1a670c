// SPDX-License-Identifier: GPL-2.0
/*
 * Probes on a function's ftrace site: the instruction is a call of ftrace's, and
 * to the probed function a nop.
 */
#include <linux/ftrace.h>
#include <linux/kprobes.h>
#include <linux/preempt.h>
#include <linux/ptrace.h>

#include "common.h"

/* Returns whether @kp is to be told of this hit, and how. */
static __always_inline bool begin_hit(struct kprobe *kp, struct pt_regs *regs,
				      struct kprobe_ctlblk *kcb, bool *nested)
{
	*nested = kprobe_running();
	if (likely(!*nested)) {
		enter_hit(kp, regs, kcb);
		return true;
	}
	if (kprobe_context_now() <= raw_cpu_read(kprobe_context))
		return false;
	enter_nested_hit(kp, regs, kcb);
	return true;
}

static __always_inline void hit(struct kprobe *kp, struct pt_regs *regs, unsigned long ip)
{
	struct kprobe_ctlblk *kcb = get_kprobe_ctlblk();
	unsigned long return_ip = regs->ip;
	bool nested;
	int changed;

	if (unlikely(!begin_hit(kp, regs, kcb, &nested))) {
		kprobes_inc_nmissed_count(kp);
		return;
	}
	/* As behind a breakpoint, whichever way the probe is armed. */
	regs->ip = ip + INT3_INSN_SIZE;
	changed = unlikely(nested) ? kprobe_pre_handlers_nested(kp, regs)
				   : kprobe_pre_handlers(kp, regs);
	if (likely(!changed)) {
		if (unlikely(kp->post_handler)) {
			regs->ip = ip + MCOUNT_INSN_SIZE;
			kcb->kprobe_status = KPROBE_HIT_SSDONE;
			kprobe_post_handlers(kp, regs, 0);
		}
		regs->ip = return_ip;
	}
	leave_hit(kcb);
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
	kp = get_kprobe((void *)ip);
	if (likely(kp && kprobe_armed_by(kp, ops)))
		hit(kp, regs, ip);
	preempt_enable_notrace();
}

int arch_prepare_kprobe_ftrace(struct kprobe *p)
{
	p->opcode = *p->addr;
	return 0;
}
