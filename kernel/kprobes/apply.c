// SPDX-License-Identifier: GPL-2.0
/*
 * Update the text at sites to match their probes
 *
 * Callers change which probes exist or are enabled first, and then pass the affected
 * sites in one batch to kprobes_apply(). Only arming can fail: the caller then reverts
 * its change and calls kprobes_apply_removal(), which arms nothing.
 */
#include "internal.h"

#include <linux/minmax.h>
#include <linux/printk.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>

#include <kunit/visibility.h>

/*
 * The debugfs knob "enabled". Written under kprobe_mutex; kprobes_enabled() reads it
 * without. Nothing is ordered by it.
 */
static bool all_enabled = true;

static __always_inline bool site_should_be_armed(struct kprobe_site *site)
{
	struct kprobe *p;

	/* Calls in flight return to a probed trampoline even if the knob is off. */
	if (all_enabled || arch_trampoline_kprobe(&site->kp))
		list_for_each_entry(p, &site->kp.list, list)
			if (!kprobe_disabled(p))
				return true;
	return false;
}

static __always_inline bool site_has_post_handler(const struct kprobe_site *site)
{
	struct kprobe *p;

	list_for_each_entry(p, &site->kp.list, list)
		if (p->post_handler)
			return true;
	return false;
}

/*
 * Copy into the site what a hit needs to know of the probes. A back end may read the
 * site's post handler and call it later, so it is never cleared: it does nothing when
 * no probe has a post handler.
 *
 * A hit on another CPU reads @called without a lock and follows it to a probe that may just
 * have been linked. list_add_rcu() does not order that, only what is before it. A hit sees
 * the other fields in any order.
 */
static __always_inline void site_update_handlers(struct kprobe_site *site)
{
	struct kprobe *called = &site->kp;

	if (list_is_singular(&site->kp.list)) {
		called = list_first_entry(&site->kp.list, struct kprobe, list);
		if (kprobe_disabled(called))
			called = &site->kp;
	}
	/* Pairs with the address dependency of kprobe_called(). */
	smp_store_release(&site->called, called);
	WRITE_ONCE(site->has_post, site_has_post_handler(site));
	if (site->has_post)
		WRITE_ONCE(site->kp.post_handler, kprobe_post_handlers);
	site->stale = false;
}

/* Update what hits know of the probes. Returns true if there is one to be hit. */
static bool __kprobes site_update(struct kprobe_site *site)
{
	guard(kprobe_links)();
	site_update_handlers(site);
	return site->state != SITE_GONE && site_should_be_armed(site);
}

static int kprobes_apply_to(struct list_head *batch, bool may_arm)
{
	struct kprobe_site *site, *next;
	LIST_HEAD(to_disarm);
	LIST_HEAD(to_arm);
	int err;

	list_for_each_entry_safe(site, next, batch, batch) {
		bool armed = site_is_armed(site);

		if (site_update(site)) {
			if (may_arm && (!armed || ftrace_site_needs_rearm(site)))
				list_move_tail(&site->batch, &to_arm);
		} else if (armed) {
			list_move_tail(&site->batch, &to_disarm);
		}
	}

	err = arm_sites(&to_arm);
	disarm_sites(&to_disarm);
	unoptimize_unsuitable(batch);
	ftrace_relax_sites(batch);
	list_splice(&to_disarm, batch);
	list_splice(&to_arm, batch);
	if (err)
		return err;

	list_for_each_entry_safe(site, next, batch, batch) {
		list_del_init(&site->batch);
		if (site_is_armed(site))
			optimizer_consider(site);
		else if (list_empty(&site->kp.list))
			site_retire(site);
		else if (site->state == SITE_DYING)
			site_set_state(site, SITE_DISARMED);
	}
	return 0;
}

/**
 * kprobes_apply() - Patch the sites of a batch whose text does not match their probes
 * @batch: Sites, linked by their @batch. Empty on success.
 *
 * Context: Process context, kprobe_mutex held.
 * Return: 0; or -ENOMEM or an error of ftrace: then no further site has been armed, and
 *	the caller must restore the probes and pass @batch to kprobes_apply_removal().
 */
int kprobes_apply(struct list_head *batch)
{
	return kprobes_apply_to(batch, true);
}

/**
 * kprobes_apply_removal() - Patch the sites of a batch after probes have left them
 * @batch: Sites, linked by their @batch. Empty afterwards.
 *
 * It arms no site, also none that kprobes_set_enabled() could not arm.
 *
 * Context: Process context, kprobe_mutex held.
 */
void kprobes_apply_removal(struct list_head *batch)
{
	kprobes_apply_to(batch, false);
}

/* kprobes_enabled() - True if the debugfs knob "enabled" is on */
bool kprobes_enabled(void)
{
	return READ_ONCE(all_enabled);
}

/*
 * Arm or disarm @size sites from @site on, all or none. Returns the number of sites that there
 * were; @site is set to the one after them.
 */
static unsigned int kprobes_apply_some(struct kprobe_site **site, unsigned int size, int *err)
{
	unsigned int n = 0;
	LIST_HEAD(batch);

	for (; *site && n < size; n++, *site = site_next(*site))
		site_add_to_batch(*site, &batch);
	*err = kprobes_apply(&batch);
	sites_leave_batch(&batch);
	return n;
}

/*
 * Arm all sites but those that cannot be armed. A batch with one of them is halved until it
 * has no other site.
 */
static int kprobes_arm_all(void)
{
	struct kprobe_site *site = site_first_from(0), *first;
	unsigned int size = UINT_MAX, n, failed = 0;
	int err, last_err = 0;

	for (first = site; first; first = site) {
		n = kprobes_apply_some(&site, size, &err);
		if (!err) {
			size = n > UINT_MAX / 2 ? UINT_MAX : 2 * n;
		} else if (n > 1) {
			size = n / 2;
			site = first;
		} else {
			pr_warn_ratelimited("%pS is not armed: %pe\n", first->kp.addr,
					    ERR_PTR(err));
			last_err = err;
			failed++;
		}
		cond_resched_tasks_rcu_qs();
	}
	if (failed)
		pr_warn("armed all enabled probes but those at %u addresses\n", failed);
	else
		pr_info("armed all enabled probes\n");
	return last_err;
}

/**
 * kprobes_set_enabled() - Set the debugfs knob "enabled"
 * @on: True to arm all enabled probes, false to disarm all probes.
 *
 * Context: Process context. May sleep.
 * Return: 0; or -ENOMEM or an error of ftrace for some probes, which the log names: all others
 *	have been armed. Another call tries these again, as does one that enables or registers
 *	a probe there.
 */
int kprobes_set_enabled(bool on)
{
	struct kprobe_site *site;
	int err;

	guard(mutex)(&kprobe_mutex);
	if (!on && !all_enabled)
		return 0;
	WRITE_ONCE(all_enabled, on);
	if (on)
		return kprobes_arm_all();
	site = site_first_from(0);
	kprobes_apply_some(&site, UINT_MAX, &err);
	pr_info("disarmed all probes: write 1 to debugfs kprobes/enabled to arm them\n");
	return err;
}
EXPORT_SYMBOL_IF_KUNIT(kprobes_set_enabled);
