// SPDX-License-Identifier: GPL-2.0
/*
 * Links between sites and their probes
 *
 * A site's list of probes runs through memory of the callers. A caller that must not wait
 * may unregister a probe in any context, also while another one holds kprobe_mutex, and free
 * it at once. So all who follow these links, or read a probe that somebody else has
 * registered, hold a lock meanwhile, except for hits. It is held for moments, with interrupts
 * off, in functions that cannot be probed: a handler may wait for it. Others are called where
 * lists are debugged, by sanitizers, and if the links of a new probe lead to where no memory is.
 *
 * Without kprobe_mutex, only kprobe_unlink() and kprobes_disable_all() change links or
 * probes. They leave to kprobes_clean_up() what else has to follow.
 */
#include "internal.h"

#include <linux/atomic.h>
#include <linux/bug.h>
#include <linux/err.h>
#include <linux/irqflags.h>
#include <linux/processor.h>
#include <linux/rculist.h>
#include <linux/smp.h>
#include <linux/uaccess.h>

#include <kunit/visibility.h>

/* The CPU that holds the lock, plus one; or 0. A spinlock calls functions that can be probed. */
static atomic_t links_holder = ATOMIC_INIT(0);

/* Returns false if the caller has interrupted the holder of the lock, as an NMI may. */
static __always_inline bool kprobe_links_trylock(unsigned long *flags)
{
	int me, holder;

	local_irq_save(*flags);
	me = raw_smp_processor_id() + 1;
	for (;;) {
		holder = 0;
		if (raw_atomic_try_cmpxchg_acquire(&links_holder, &holder, me))
			return true;
		if (holder == me)
			break;
		cpu_relax();
	}
	local_irq_restore(*flags);
	return false;
}

/* kprobe_links_lock() - Keep probes from being unlinked; returns what is to be restored */
unsigned long __kprobes kprobe_links_lock(void)
{
	unsigned long flags = 0;

	WARN_ON_ONCE(!kprobe_links_trylock(&flags));
	return flags;
}
EXPORT_SYMBOL_IF_KUNIT(kprobe_links_lock);

/* kprobe_links_unlock() - Let probes be unlinked again; @flags is from kprobe_links_lock() */
void __kprobes kprobe_links_unlock(unsigned long flags)
{
	raw_atomic_set_release(&links_holder, 0);
	local_irq_restore(flags);
}
EXPORT_SYMBOL_IF_KUNIT(kprobe_links_unlock);

/* Is there memory at @next, in which a pointer leads back to @link? */
static __always_inline bool leads_back(const struct list_head *next, const struct list_head *link)
{
	unsigned long back;

	pagefault_disable();
	__get_kernel_nofault(&back, (const void *)&next->prev, unsigned long, fault);
	pagefault_enable();
	return back == (unsigned long)link;
fault:
	pagefault_enable();
	return false;
}

/*
 * Can a probe be linked, by what its memory says? Before its first registration that is undefined.
 * Not under the lock: this calls a function that can be probed.
 */
static bool can_be_linked(const struct kprobe *p)
{
	const struct list_head *next = READ_ONCE(p->list.next);

	return next && copy_from_kernel_nofault_allowed(&next->prev, sizeof(next->prev));
}

/*
 * The site in whose list a probe is that can be linked, or NULL. The links are valid only if the
 * neighbour agrees. The probe may then be in a list of its owner, in which there is no site.
 */
static __always_inline struct kprobe_site *site_in_list_of(struct kprobe *p)
{
	struct kprobe *kp = p;

	if (!leads_back(p->list.next, &p->list))
		return NULL;
	list_for_each_entry_continue(kp, &p->list, list)
		if (kprobe_is_site(kp))
			return site_of(kp);
	return NULL;
}

/* kprobe_site_of_probe() - The site of a probe, whose @addr may have changed since; or NULL */
struct kprobe_site * __kprobes kprobe_site_of_probe(struct kprobe *p)
{
	lockdep_assert_held(&kprobe_mutex);
	if (!can_be_linked(p))
		return NULL;
	guard(kprobe_links)();
	return site_in_list_of(p);
}

/* kprobe_link() - Make @p the first probe of a site; kprobe_mutex is held */
void __kprobes kprobe_link(struct kprobe *p, struct kprobe_site *site)
{
	lockdep_assert_held(&kprobe_mutex);
	guard(kprobe_links)();
	list_add_rcu(&p->list, &site->kp.list);
}

/* Pairs with kprobe_disabled() of a hit that is still under way. The lock is held. */
static __always_inline void kprobe_set_flag(struct kprobe *p, u32 flag, bool set)
{
	WRITE_ONCE(p->flags, set ? p->flags | flag : p->flags & ~flag);
}

/* No hit calls its only probe directly any more. The rest is for kprobes_clean_up(). */
static __always_inline void site_set_stale(struct kprobe_site *site)
{
	WRITE_ONCE(site->called, &site->kp);
	WRITE_ONCE(site->stale, true);
}

/*
 * kprobe_unlink() - Let no later hit call the handlers of a probe. Any context.
 *
 * The caller has to pass the site to kprobes_apply(), or to call kprobes_clean_up(). Returns the
 * site; NULL if @p is not registered; -EBUSY if the caller has interrupted the holder of the lock,
 * which only an NMI is likely to do: nothing has changed.
 */
__kprobes struct kprobe_site *kprobe_unlink(struct kprobe *p)
{
	struct kprobe_site *site;
	unsigned long flags;

	if (!can_be_linked(p))
		return NULL;
	if (!kprobe_links_trylock(&flags))
		return ERR_PTR(-EBUSY);
	site = site_in_list_of(p);
	if (site) {
		list_del_rcu(&p->list);
		/* Handlers may still run, and read their probe with plain accesses. */
		if (p->addr != site->kp.addr)
			WRITE_ONCE(p->addr, site->kp.addr);
		if (kprobe_optimized(p))
			kprobe_set_flag(p, KPROBE_FLAG_OPTIMIZED, false);
		site_set_stale(site);
	}
	kprobe_links_unlock(flags);
	return site;
}

/*
 * kprobes_disable_all() - Let no later hit call the handlers of a site's probes. Any context.
 *
 * The caller has to call kprobes_clean_up(). Returns false if @kp is a probe, and not
 * that of a site: then nothing has changed.
 */
bool __kprobes kprobes_disable_all(struct kprobe *kp)
{
	unsigned long flags;
	struct kprobe *p;

	guard(preempt_notrace)();
	if (!kprobe_is_site(kp))
		return false;
	if (WARN_ON_ONCE(!kprobe_links_trylock(&flags)))
		return true;
	list_for_each_entry(p, &kp->list, list)
		kprobe_set_flag(p, KPROBE_FLAG_DISABLED, true);
	site_set_stale(site_of(kp));
	kprobe_links_unlock(flags);
	return true;
}

/* kprobe_change_flag() - Set or clear a flag of a registered probe; kprobe_mutex is held */
void __kprobes kprobe_change_flag(struct kprobe *p, u32 flag, bool set)
{
	lockdep_assert_held(&kprobe_mutex);
	guard(kprobe_links)();
	kprobe_set_flag(p, flag, set);
}

/* kprobe_site_change_flag() - Set or clear a flag, KPROBE_FLAG_*, of a site and of its probes */
void __kprobes kprobe_site_change_flag(struct kprobe_site *site, u32 flag, bool set)
{
	struct kprobe *p;

	lockdep_assert_held(&kprobe_mutex);
	guard(kprobe_links)();
	kprobe_set_flag(&site->kp, flag, set);
	list_for_each_entry(p, &site->kp.list, list)
		kprobe_set_flag(p, flag, set);
}
