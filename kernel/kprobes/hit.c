// SPDX-License-Identifier: GPL-2.0
/*
 * Dispatch of hits: the handlers of a site's probes, misses, and waiting for handlers
 *
 * The functions that run at a hit take no lock, allocate nothing and call nothing but
 * handlers that could be probed.
 */
#include "internal.h"

#include <linux/cpu.h>
#include <linux/kprobes_hit.h>
#include <linux/sched.h>

DEFINE_PER_CPU(unsigned int, kprobe_context);

static __always_inline void count_miss(struct kprobe *p)
{
	/* Several CPUs may miss at once, and none may be forgotten. */
	BUILD_BUG_ON(sizeof(p->nmissed) != sizeof(atomic_long_t));
	raw_atomic_long_inc((atomic_long_t *)&p->nmissed);
}

/**
 * kprobe_pre_handlers - Call the pre handlers of a site's probes
 * @site: The site that was hit.
 * @regs: The registers at the hit.
 *
 * Context: Any. Preemption is off, and kprobe_running() is @site.
 * Return: Non-zero if a handler has changed where execution goes on. The probes
 *	behind its one have not been asked.
 */
noinstr int kprobe_pre_handlers(struct kprobe *site, struct pt_regs *regs)
{
	struct kprobe *p;

	list_for_each_entry_lockless(p, &site->list, list)
		if (!kprobe_disabled(p) && kprobe_call_pre_handler(p, regs))
			return 1;
	return 0;
}

/**
 * kprobe_pre_handlers_nested - The same for a hit inside another one
 * @site: The site that was hit.
 * @regs: The registers at the hit.
 *
 * Probes that have not opted in to this with KPROBE_FLAG_REENTRANT miss the hit.
 *
 * Context: As kprobe_pre_handlers(), in a higher context level than the handler
 *	that was interrupted.
 * Return: As kprobe_pre_handlers().
 */
noinstr int kprobe_pre_handlers_nested(struct kprobe *site, struct pt_regs *regs)
{
	struct kprobe *p;

	list_for_each_entry_lockless(p, &site->list, list) {
		if (kprobe_disabled(p))
			continue;
		if (!(p->flags & KPROBE_FLAG_REENTRANT))
			count_miss(p);
		else if (kprobe_call_pre_handler(p, regs))
			return 1;
	}
	return 0;
}

/* Those of the probes that are enabled and have all flags that are in @need. */
static __always_inline void walk_post_handlers(struct kprobe *site, struct pt_regs *regs, u32 need)
{
	struct kprobe *p;

	list_for_each_entry_lockless(p, &site->list, list) {
		if (!p->post_handler || kprobe_disabled(p) || (p->flags & need) != need)
			continue;
		instrumentation_begin();
		p->post_handler(p, regs, 0);
		instrumentation_end();
	}
}

/**
 * kprobe_post_handlers - Call the post handlers of a site's probes
 * @site: The site whose instruction has run.
 * @regs: The registers after the instruction.
 * @flags: Passed on to the handlers; 0 at present.
 *
 * Context: As kprobe_pre_handlers().
 */
noinstr void kprobe_post_handlers(struct kprobe *site, struct pt_regs *regs, unsigned long flags)
{
	walk_post_handlers(site, regs, 0);
}

/**
 * kprobe_post_handlers_nested - The same for a hit inside another one
 * @site: The site whose instruction has run.
 * @regs: The registers after the instruction.
 *
 * A probe that has not opted in has missed the hit already.
 *
 * Context: As kprobe_pre_handlers_nested().
 */
noinstr void kprobe_post_handlers_nested(struct kprobe *site, struct pt_regs *regs)
{
	walk_post_handlers(site, regs, KPROBE_FLAG_REENTRANT);
}

/**
 * kprobes_inc_nmissed_count - Count a hit that was skipped
 * @p: The site that was hit.
 *
 * Context: Any, also noinstr. Preemption is off.
 */
noinstr void kprobes_inc_nmissed_count(struct kprobe *p)
{
	struct kprobe *probe;

	count_miss(p);
	list_for_each_entry_lockless(probe, &p->list, list)
		if (!kprobe_disabled(probe))
			count_miss(probe);
}

static struct kprobe busy_probe = {
	.addr = (kprobe_opcode_t *)&busy_probe,
};

/**
 * kprobe_busy_begin - Keep handlers from running on this CPU
 *
 * For code that must not be interrupted by a probe, and for those who share
 * handlers with probes. Hits are counted as missed until kprobe_busy_end(),
 * unless the probe may run in the higher context level that it is hit in.
 *
 * Context: Any. Returns with preemption off.
 */
notrace void __kprobes kprobe_busy_begin(void)
{
	preempt_disable_notrace();
	raw_cpu_write(kprobe_context, preempt_count());
	get_kprobe_ctlblk()->kprobe_status = KPROBE_HIT_ACTIVE;
	raw_cpu_write(current_kprobe, &busy_probe);
}

/**
 * kprobe_busy_end - End what kprobe_busy_begin() began
 *
 * Context: Any. Preemption is as before kprobe_busy_begin().
 */
notrace void __kprobes kprobe_busy_end(void)
{
	reset_current_kprobe();
	preempt_enable_notrace();
}

/**
 * kprobes_called_by_handler - Ask whether a handler is changing which probes there are
 *
 * It must not: that takes a mutex which the interrupted task may hold, and waits for
 * handlers to end.
 *
 * Context: Any.
 * Return: Whether this CPU runs a handler, or an interrupt in one.
 */
bool kprobes_called_by_handler(void)
{
	guard(preempt_notrace)();
	return kprobe_running();
}

/**
 * kprobes_wait_for_handlers - Wait for those that run
 *
 * An expedited grace period interrupts CPUs that are busy. So has the patching
 * that comes before, and those who attach probes one by one have thousands of them.
 *
 * Context: Process context. When it returns, no handler runs any more of a probe
 *	that has been unlinked before.
 */
void kprobes_wait_for_handlers(void)
{
	synchronize_rcu_expedited();
}

/**
 * kprobes_wait_for_tasks - Wait for those in text that hits no longer lead through
 *
 * Context: Process context, no lock held. When it returns, no task is any more in a
 *	slot, a detour or the original text that it was on its way in before.
 */
void kprobes_wait_for_tasks(void)
{
	synchronize_rcu_tasks();
	cpus_read_lock();	/* CPUs on their way up are not watched */
	cpus_read_unlock();
}

/**
 * dump_kprobe - Print where a probe is
 * @kp: The probe or site.
 *
 * Context: Any, for a last message.
 */
void __kprobes dump_kprobe(struct kprobe *kp)
{
	pr_err("probe %pS (%s+%#x), flags %#x, missed %lu\n", kp->addr,
	       kp->symbol_name ?: "no symbol", kp->offset, kp->flags, kp->nmissed);
}
