// SPDX-License-Identifier: GPL-2.0
/*
 * Probes on a function's ftrace site, whose NOP ftrace turns into a call
 */
#include <linux/ftrace.h>
#include <linux/preempt.h>
#include <linux/ptrace.h>

#include "detour.h"
#include "hit.h"

/* Call the handlers. Returns the address at which execution continues. */
static __always_inline unsigned long kprobe_ftrace_call(struct kprobe *kp, struct kprobe *called,
							struct pt_regs *regs,
							unsigned long return_ip, bool post)
{
	if (unlikely(kprobe_call_pre_handler(called, regs))) {
		kprobe_detour_redirect(regs);
		return regs->ip;
	}
	if (!post)
		return return_ip;
	regs->ip = (unsigned long)kp->addr + MCOUNT_INSN_SIZE;
	return kprobe_run_post_handlers(kp, regs) ? regs->ip : return_ip;
}

/*
 * On x86-64 handlers must not change the stack pointer: ftrace returns by its own, while
 * the function graph tracer and fprobes use the one in @regs.
 */
static __always_inline void kprobe_ftrace_handle_hit(struct kprobe *kp,
						     struct pt_regs *regs, bool nested)
{
	unsigned long return_ip = regs->ip;
	struct kprobe *called;

	/* Handlers find ip as after a breakpoint, however the probe is armed. */
	regs->ip = (unsigned long)kp->addr + INT3_INSN_SIZE;
	kprobe_begin_hit(kp, regs, nested);
	called = kprobe_called(kp, nested);
	if (likely(!called->post_handler))	/* plain, see kprobe_has_post() */
		return_ip = kprobe_ftrace_call(kp, called, regs, return_ip, false);
	else
		return_ip = kprobe_ftrace_call(kp, called, regs, return_ip, true);
	regs->ip = return_ip;
	regs->sp = kprobe_ftrace_sp(regs);
	kprobe_end_hit(nested);
}

/* Handle a hit in another one, which is skipped unless it comes from above. */
static noinstr void kprobe_ftrace_nested_hit(struct kprobe *kp, struct pt_regs *regs)
{
	if (kprobe_hit_from_above())
		kprobe_ftrace_handle_hit(kp, regs, true);
	else
		kprobe_count_skipped(kp);
}

/*
 * It calls nothing that can be traced, so it needs no protection against recursion;
 * kprobe_running() protects handlers.
 */
noinstr void kprobe_ftrace_handler(unsigned long ip, unsigned long parent_ip,
				   struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	/*
	 * arch_ftrace_get_regs() without its check: if a task was preempted in ftrace_caller()
	 * while this ops became the only one, only arguments are there; on i386 nothing is.
	 */
	struct pt_regs *regs = (struct pt_regs *)fregs;
	struct kprobe *kp;

	preempt_disable_notrace();
	kp = kprobe_find((void *)ip);
	if (likely(kp && site_of(kp)->ops == ops)) {
		if (IS_ENABLED(CONFIG_X86_32) && unlikely(!regs))
			kprobe_count_skipped(kp);
		else if (likely(!kprobe_running()))
			kprobe_ftrace_handle_hit(kp, regs, false);
		else
			kprobe_ftrace_nested_hit(kp, regs);
	}
	preempt_enable_notrace();
}

int arch_prepare_kprobe_ftrace(struct kprobe *p)
{
	p->opcode = *p->addr;
	return 0;
}
