// SPDX-License-Identifier: GPL-2.0
/*
 * Patch the text at sites in batches: one update of each ftrace_ops and one
 * synchronisation of all CPUs for breakpoints, regardless of the number of sites
 */
#include "internal.h"

#include <linux/cpu.h>
#include <linux/memory.h>
#include <linux/rcupdate.h>

void __weak arch_sync_kprobes(void)
{
}

static bool sites_have_breakpoint(struct list_head *batch)
{
	struct kprobe_site *site;

	list_for_each_entry(site, batch, batch)
		if (!kprobe_ftrace(&site->kp))
			return true;
	return false;
}

static void sites_patch_breakpoints(struct list_head *batch, void (*patch)(struct kprobe *kp))
{
	struct kprobe_site *site;

	if (!sites_have_breakpoint(batch))
		return;
	guard(cpus_read_lock)();
	guard(mutex)(&text_mutex);
	list_for_each_entry(site, batch, batch) {
		if (!kprobe_ftrace(&site->kp))
			patch(&site->kp);
		cond_resched_tasks_rcu_qs();
	}
	arch_sync_kprobes();
}

static void sites_set_state(struct list_head *batch, enum kprobe_site_state state)
{
	struct kprobe_site *site;

	list_for_each_entry(site, batch, batch)
		if (site->state != state)
			site_set_state(site, state);
}

/**
 * arm_sites() - Let hits at sites reach their probes
 * @batch: The sites. Those that are armed already only claim the other ftrace_ops.
 *
 * Context: Process context, kprobe_mutex held.
 * Return: 0, or -ENOMEM or an error of ftrace with nothing changed.
 */
int arm_sites(struct list_head *batch)
{
	int err;

	lockdep_assert_held(&kprobe_mutex);
	if (list_empty(batch))
		return 0;
	err = ftrace_arm_sites(batch);
	if (err)
		return err;
	unoptimize_around(batch);
	sites_patch_breakpoints(batch, arch_arm_kprobe);
	sites_set_state(batch, SITE_ARMED);
	return 0;
}

/**
 * disarm_sites() - Restore the text at sites
 * @batch: The sites. All are armed, and some may have a jump.
 *
 * Context: Process context, kprobe_mutex held.
 */
void disarm_sites(struct list_head *batch)
{
	LIST_HEAD(restored);

	lockdep_assert_held(&kprobe_mutex);
	if (list_empty(batch))
		return;
	disarm_jumps(batch, &restored);
	unoptimize_sites(batch);
	ftrace_disarm_sites(batch);
	sites_patch_breakpoints(batch, arch_disarm_kprobe);
	list_splice_tail(&restored, batch);
	sites_set_state(batch, SITE_DISARMED);
	optimizer_neighbours_left(batch);
}
