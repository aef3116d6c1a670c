// SPDX-License-Identifier: GPL-2.0
/*
 * Patching the text at sites, in batches: one ftrace update and one
 * synchronisation of all CPUs, however many sites there are.
 */
#include "internal.h"

#include <linux/cpu.h>
#include <linux/memory.h>
#include <linux/rcupdate.h>

/**
 * arch_sync_kprobes - Make all CPUs see the text as it has been patched
 *
 * For an architecture whose arch_arm_kprobe() and arch_disarm_kprobe() leave
 * this to the end of a batch.
 *
 * Context: Process context, with the hotplug lock and text_mutex held.
 */
void __weak arch_sync_kprobes(void)
{
}

static void patch_breakpoints(struct list_head *batch, void (*patch)(struct kprobe *kp))
{
	struct kprobe_site *site;

	guard(cpus_read_lock)();
	guard(mutex)(&text_mutex);
	list_for_each_entry(site, batch, batch) {
		if (!kprobe_ftrace(&site->kp))
			patch(&site->kp);
		cond_resched_tasks_rcu_qs();
	}
	arch_sync_kprobes();
}

static void set_states(struct list_head *batch, enum kprobe_site_state state)
{
	struct kprobe_site *site;

	list_for_each_entry(site, batch, batch)
		if (site->state != state)
			site_set_state(site, state);
}

/**
 * arm_sites - Let hits at sites lead to their probes
 * @batch: The sites; those with an ftrace_ops may be armed with another one.
 *
 * Context: Process context, kprobe_mutex held.
 * Return: 0, or an error of ftrace: then nothing has changed.
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
	patch_breakpoints(batch, arch_arm_kprobe);
	set_states(batch, SITE_ARMED);
	return 0;
}

/**
 * disarm_sites - Restore the text at sites
 * @batch: The sites, all of them armed, some perhaps with a jump.
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
	patch_breakpoints(batch, arch_disarm_kprobe);
	list_splice_tail(&restored, batch);
	set_states(batch, SITE_DISARMED);
	optimizer_neighbours_left(batch);
}
