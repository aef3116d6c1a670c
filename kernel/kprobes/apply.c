// SPDX-License-Identifier: GPL-2.0
/*
 * Update the text at sites to match their probes
 *
 * Callers change which probes exist or are enabled first, and then pass the affected
 * sites in one batch to kprobes_apply(). Only arming can fail: the caller then reverts
 * its change and calls kprobes_apply_removal(), which arms nothing.
 *
 * A batch takes one update of each ftrace_ops and one synchronisation of all CPUs for
 * breakpoints, regardless of the number of sites; but for disarming, which takes a few
 * synchronisations for SITES_AT_A_TIME sites.
 */
#include "internal.h"

#include <linux/minmax.h>
#include <linux/sched.h>

#include <asm/sections.h>

#include <kunit/visibility.h>

/* The debugfs knob "enabled". Written under kprobe_mutex; nothing is ordered by it. */
static bool all_enabled = true;

/*
 * Copy into the site what a hit needs to know of the probes. Returns true if there is one to
 * be hit.
 *
 * A back end may read the site's post handler and call it later, so it is never cleared: it
 * does nothing when no probe has a post handler.
 *
 * A hit on another CPU follows @called to a probe that may just have been linked, or asks the
 * site for its post handler: list_add_rcu() does not order that. It sees the rest in any order.
 */
static noinline bool __kprobes site_update(struct kprobe_site *site)
{
	struct kprobe *p, *called = &site->kp;
	bool enabled = false, post = false;

	guard(kprobe_links)();
	list_for_each_entry(p, &site->kp.list, list) {
		enabled |= !kprobe_disabled(p);
		post |= !!READ_ONCE(p->post_handler);
	}
	if (enabled && list_is_singular(&site->kp.list))
		called = list_first_entry(&site->kp.list, struct kprobe, list);
	WRITE_ONCE(site->has_post, post);
	if (post)
		WRITE_ONCE(site->kp.post_handler, kprobe_post_handlers);
	/* Pairs with the address dependency of kprobe_called(). */
	smp_store_release(&site->called, called);
	WRITE_ONCE(site->stale, false);
	/* Calls in flight return to a probed trampoline even if the knob is off. */
	return enabled && site->state != SITE_GONE &&
	       (all_enabled || arch_trampoline_kprobe(&site->kp));
}

void __weak arch_sync_kprobes(void)
{
}

/* Let sites enter a state. Those that are not in it yet, and not ftrace's, have to be patched. */
static void sites_patch_breakpoints(struct list_head *batch, void (*patch)(struct kprobe *kp),
				    enum kprobe_site_state state)
{
	struct kprobe_site *site;
	bool any = false;

	list_for_each_entry(site, batch, batch)
		any |= site->state != state && !kprobe_ftrace(&site->kp);
	/* No locks if ftrace patches all: the caller may hold that of CPU hotplug. */
	if (any) {
		guard(cpus_read_lock)();
		guard(mutex)(&text_mutex);
		list_for_each_entry(site, batch, batch) {
			if (site->state != state && !kprobe_ftrace(&site->kp))
				patch(&site->kp);
			cond_resched_tasks_rcu_qs();
		}
		arch_sync_kprobes();
	}
	list_for_each_entry(site, batch, batch)
		if (site->state != state)
			kprobe_site_set_state(site, state);
}

/*
 * Restore the text at sites. All are armed, and some may have a jump. A few at a time: hits of
 * those that patching itself runs into stay cheap until their turn, and then end; and nobody
 * else who patches text has to wait for all.
 */
static void disarm_sites(struct list_head *batch)
{
	struct kprobe_site *site;
	LIST_HEAD(disarmed);
	LIST_HEAD(some);

	kprobe_ftrace_disarm_sites(batch);
	while (!list_empty(batch)) {
		for (unsigned int n = 0; n < SITES_AT_A_TIME && !list_empty(batch); n++)
			list_move_tail(batch->next, &some);
		kprobe_unoptimize(&some, true);
		sites_patch_breakpoints(&some, arch_disarm_kprobe, SITE_DISARMED);
		list_splice_tail_init(&some, &disarmed);
	}
	list_splice(&disarmed, batch);
	list_for_each_entry(site, batch, batch)
		kprobe_optimizer_retry_near(site);
}

/*
 * kprobes_apply() - Patch the sites of a batch whose text does not match their probes
 *
 * @may_arm is false if probes have only left or been disabled: then no site is armed, also none
 * that kprobes_set_enabled() could not arm. Returns 0, and @batch is empty; or, if @may_arm,
 * -ENOMEM or an error of ftrace: then no further site has been armed, and the caller must restore
 * the probes and call kprobes_apply_removal().
 */
int kprobes_apply(struct list_head *batch, bool may_arm)
{
	struct kprobe_site *site, *next;
	LIST_HEAD(to_disarm);
	LIST_HEAD(to_arm);
	int err;

	lockdep_assert_held(&kprobe_mutex);
	list_for_each_entry_safe(site, next, batch, batch) {
		bool armed = site_is_armed(site);

		if (site_update(site)) {
			if (may_arm && (!armed || kprobe_ftrace(&site->kp)))
				list_move_tail(&site->batch, &to_arm);
		} else if (armed) {
			list_move_tail(&site->batch, &to_disarm);
		}
	}

	/* Sites that are armed already only claim the other ftrace_ops, if they need it now. */
	err = list_empty(&to_arm) ? 0 : kprobe_ftrace_arm_sites(&to_arm);
	if (!err) {
		kprobe_unoptimize_around(&to_arm);
		sites_patch_breakpoints(&to_arm, arch_arm_kprobe, SITE_ARMED);
	}
	disarm_sites(&to_disarm);
	kprobe_unoptimize(batch, false);
	list_splice(&to_arm, batch);
	kprobe_ftrace_release_claims(batch);
	list_splice(&to_disarm, batch);
	if (err)
		return err;

	list_for_each_entry_safe(site, next, batch, batch) {
		list_del_init(&site->batch);
		if (site_is_armed(site))
			kprobe_optimizer_consider(site);
		else if (list_empty(&site->kp.list))
			kprobe_site_retire(site);
		else if (site->state == SITE_DYING)
			kprobe_site_set_state(site, SITE_DISARMED);
	}
	return 0;
}

/* kprobes_enabled() - True if the debugfs knob "enabled" is on */
bool kprobes_enabled(void)
{
	return READ_ONCE(all_enabled);
}

/*
 * Update all sites but those that cannot be armed: returns how many these are. A batch with
 * one of them is halved until it has no other site.
 */
static unsigned int kprobes_apply_all(int *last_err)
{
	struct kprobe_site *site = kprobe_site_first_from(0), *first;
	unsigned int size = UINT_MAX, n, failed = 0;
	LIST_HEAD(batch);
	int err;

	for (first = site; first; first = site) {
		for (n = 0; site && n < size; n++, site = kprobe_site_next(site))
			site_add_to_batch(site, &batch);
		err = kprobes_apply(&batch, true);
		sites_leave_batch(&batch);
		if (!err) {
			size = 2 * min(n, UINT_MAX / 2);
		} else if (n > 1) {
			size = n / 2;
			site = first;
		} else {
			pr_warn_ratelimited("%pS is not armed: %pe\n", first->kp.addr,
					    ERR_PTR(err));
			*last_err = err;
			failed++;
		}
		cond_resched_tasks_rcu_qs();
	}
	return failed;
}

/*
 * kprobes_set_enabled() - Set the debugfs knob "enabled": arm all enabled probes, or disarm all
 *
 * Takes kprobe_mutex. Returns 0; or -ENOMEM or an error of ftrace for some probes, which the log
 * names: all others have been armed. Another call tries these again, as does one that enables or
 * registers a probe there.
 */
int kprobes_set_enabled(bool on)
{
	unsigned int failed;
	int err = 0;

	guard(mutex)(&kprobe_mutex);
	if (!on && !all_enabled)
		return 0;
	WRITE_ONCE(all_enabled, on);
	failed = kprobes_apply_all(&err);
	if (!on)
		pr_info("disarmed all probes: write 1 to debugfs kprobes/enabled to arm them\n");
	else if (failed)
		pr_warn("armed all enabled probes but those at %u addresses\n", failed);
	else
		pr_info("armed all enabled probes\n");
	return err;
}
EXPORT_SYMBOL_IF_KUNIT(kprobes_set_enabled);

/* kprobes_forget_text() - Disarm the sites from @start to @end, before that text is unmapped */
void kprobes_forget_text(unsigned long start, unsigned long end)
{
	struct kprobe_site *site;
	LIST_HEAD(armed);

	lockdep_assert_held(&kprobe_mutex);
	for_each_site_in(site, start, end)
		if (site_is_armed(site))
			site_add_to_batch(site, &armed);
	disarm_sites(&armed);
	sites_leave_batch(&armed);
	for_each_site_in(site, start, end)
		if (site->state != SITE_GONE)
			kprobe_site_set_gone(site);
	range_tree_clear(&kprobe_blacklist, start, end);
}
EXPORT_SYMBOL_IF_KUNIT(kprobes_forget_text);

/*
 * kprobe_free_init_mem() - Disarm the sites in the kernel's init text before it is freed
 *
 * Called once, when no new probe can be registered there.
 */
void kprobe_free_init_mem(void)
{
	guard(mutex)(&kprobe_mutex);
	kprobes_forget_text((unsigned long)__init_begin, (unsigned long)__init_end);
}
