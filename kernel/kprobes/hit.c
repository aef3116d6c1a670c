// SPDX-License-Identifier: GPL-2.0
/*
 * Dispatch of hits: the handlers of several probes
 *
 * The functions that run at a hit take no lock, allocate nothing and call no function
 * that could be probed, except handlers.
 */
#include "internal.h"

#include <linux/preempt.h>

DEFINE_PER_CPU(unsigned int, kprobe_context);

struct kprobe kprobe_busy_probe = {
	.addr = (kprobe_opcode_t *)&kprobe_busy_probe,
};

/* A hit that is @nested in another one is for probes that have opted in. */
static __always_inline bool kprobe_misses(const struct kprobe *p, bool nested)
{
	return nested && !(READ_ONCE(p->flags) & KPROBE_FLAG_REENTRANT);
}

/*
 * kprobe_pre_handlers() - Call the pre handlers of a site's probes
 *
 * A probe without KPROBE_FLAG_REENTRANT misses a hit that has interrupted a handler. Preemption
 * is off, and kprobe_running() is @site. Returns non-zero if a handler has changed the path: then
 * those of the probes after it have not been called.
 */
noinstr int kprobe_pre_handlers(struct kprobe *site, struct pt_regs *regs)
{
	bool nested = kprobe_hit_is_nested(), missed = false, changed = false, post = false;
	struct kprobe *p;

	list_for_each_entry_lockless(p, &site->list, list) {
		if (kprobe_disabled(p))
			continue;
		post |= !!READ_ONCE(p->post_handler);
		if (kprobe_misses(p, nested)) {
			kprobe_count_miss(p);
			missed = true;
		} else if (kprobe_call_pre_handler(p, regs)) {
			changed = true;
			break;
		}
	}
	if (missed)
		kprobe_count_miss(site);
	if (post && !READ_ONCE(site_of(site)->has_post))
		kprobe_prepare_post_later(site_of(site));
	return changed;
}

/*
 * kprobe_post_handlers() - Call the post handlers of the probes that have not missed the hit
 *
 * The instruction may have lowered the context level. @flags are ignored: handlers are passed 0.
 */
noinstr void kprobe_post_handlers(struct kprobe *site, struct pt_regs *regs, unsigned long flags)
{
	bool nested = kprobe_hit_is_nested();
	struct kprobe *p;

	list_for_each_entry_lockless(p, &site->list, list)
		if (!kprobe_disabled(p) && !kprobe_misses(p, nested))
			kprobe_call_post_handler(p, regs);
}

/* kprobes_inc_nmissed_count() - kprobe_count_skipped() for other back ends. Any context. */
noinstr void kprobes_inc_nmissed_count(struct kprobe *p)
{
	kprobe_count_skipped(p);
}

/*
 * kprobe_busy_begin() - Prevent handlers from running on this CPU, unless kprobe_running()
 *
 * For code that must not be interrupted by a probe, or that shares handlers with
 * probes. Until kprobe_busy_end() hits are counted as missed, unless the probe may
 * run in the higher context level in which it is hit. Returns with preemption off.
 */
void __kprobes kprobe_busy_begin(void)
{
	struct kprobe_ctlblk *kcb;

	preempt_disable_notrace();
	kcb = get_kprobe_ctlblk();
	/* Some architectures decide on it what to do with a hit that sees the probe below. */
	kcb->kprobe_status = KPROBE_HIT_ACTIVE;
	barrier();	/* a hit before the claim may leave another status, set again below */
	raw_cpu_write(current_kprobe, &kprobe_busy_probe);
	barrier();	/* a hit from above that sees this puts the rest back as it was */
	raw_cpu_write(kprobe_context, preempt_count());
	kcb->kprobe_status = KPROBE_HIT_ACTIVE;
}

/* kprobe_busy_end() - Let handlers run again on this CPU. Preemption is as before. */
void __kprobes kprobe_busy_end(void)
{
	reset_current_kprobe();
	preempt_enable_notrace();
}

/*
 * kprobe_forget_hit() - End the hit whose handler an oops has killed; the task is to die
 *
 * Else this CPU would handle no hit any more, and pass faults and breakpoints to the
 * handlers of a probe that may have been freed.
 */
void __kprobes kprobe_forget_hit(void)
{
	/* A hit of an interrupt in between would find a status that some back ends die of. */
	guard(irqsave)();
	*get_kprobe_ctlblk() = (struct kprobe_ctlblk){ };
	barrier();	/* a hit before the next line is inside of the one that ends */
	reset_current_kprobe();
}

/* dump_kprobe() - Print the address and the state of a probe or site, before a panic */
void __kprobes dump_kprobe(struct kprobe *kp)
{
	pr_err("probe %pS, flags %#x, missed %lu\n", kp->addr, kp->flags, kp->nmissed);
}
