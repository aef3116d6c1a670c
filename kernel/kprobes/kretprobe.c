// SPDX-License-Identifier: GPL-2.0
/*
 * Return probes: registration, which is that of probes on the functions' entries.
 */
#include "internal.h"

#include <linux/cleanup.h>
#include <linux/err.h>
#include <linux/export.h>
#include <linux/init.h>
#include <linux/slab.h>

#ifndef kretprobe_blacklist_size
#define kretprobe_blacklist_size	1
#endif

/* The blacklist is written in names. Those that are not there need no check. */
static int __init resolve_blacklist(void)
{
	struct kretprobe_blackpoint *black;
	struct kprobe_address where;

	if (!kretprobe_blacklist_size)
		return 0;
	for (black = kretprobe_blacklist; black->name; black++) {
		struct kprobe entry = { .symbol_name = black->name };

		if (!kprobe_resolve(&entry, &where))
			black->addr = (void *)where.addr;
	}
	return 0;
}
core_initcall(resolve_blacklist);

static bool is_blacklisted(unsigned long addr)
{
	const struct kretprobe_blackpoint *black;

	if (!kretprobe_blacklist_size)
		return false;
	for (black = kretprobe_blacklist; black->name; black++)
		if (black->addr == (void *)addr)
			return true;
	return false;
}

static int check_kretprobe(const struct kretprobe *rp)
{
	struct kprobe_address where;
	int err;

	if (rp->data_size > KRETPROBE_MAX_DATA_SIZE)
		return -E2BIG;
	err = kprobe_resolve(&rp->kp, &where);
	if (err)
		return err;
	if (!(where.flags & KPROBE_FLAG_ON_FUNC_ENTRY) || is_blacklisted(where.addr))
		return -EINVAL;
	return 0;
}

/* What unregistration does, for those that are not registered. */
static void undo_kretprobes(struct kretprobe **rps, int num)
{
	for (int i = 0; i < num; i++)
		kretprobe_pool_stop(rps[i]);
	kprobes_wait_for_handlers();
	kretprobe_pools_settle();
	for (int i = 0; i < num; i++)
		kretprobe_pool_put(rps[i]);
}

static int prepare_kretprobes(struct kretprobe **rps, int num)
{
	int err, i;

	for (i = 0; i < num; i++) {
		err = check_kretprobe(rps[i]);
		if (err)
			return err;
	}
	for (i = 0; i < num; i++) {
		err = kretprobe_pool_create(rps[i]);
		if (err) {
			undo_kretprobes(rps, i);
			return err;
		}
		rps[i]->kp.pre_handler = kretprobe_entered;
		rps[i]->kp.post_handler = NULL;
		rps[i]->nmissed = 0;
	}
	return 0;
}

static struct kprobe **kprobes_of(struct kretprobe **rps, int num)
{
	struct kprobe **kps = kvmalloc_array(num, sizeof(*kps), GFP_KERNEL);

	if (kps)
		for (int i = 0; i < num; i++)
			kps[i] = &rps[i]->kp;
	return kps;
}

/**
 * register_kretprobes - Register several return probes, all or none
 * @rps: The return probes, see register_kretprobe().
 * @num: How many, at least 1.
 *
 * Context: Process context. May sleep.
 * Return: As register_kretprobe(), for the first one in trouble; and -EINVAL if
 *	@num is not positive.
 */
int register_kretprobes(struct kretprobe **rps, int num)
{
	struct kprobe **kps __free(kvfree) = NULL;
	int err;

	if (num <= 0)
		return -EINVAL;
	kps = kprobes_of(rps, num);
	if (!kps)
		return -ENOMEM;
	err = kprobes_check_new(kps, num);
	if (err)
		return err;
	err = prepare_kretprobes(rps, num);
	if (err)
		return err;
	err = register_kprobes(kps, num);
	if (err)
		undo_kretprobes(rps, num);
	return err;
}
EXPORT_SYMBOL_GPL(register_kretprobes);

/**
 * register_kretprobe - Register a return probe
 * @rp: The return probe: in @kp @symbol_name or @addr and @offset, and possibly
 *	@flags; @handler, @entry_handler, @maxactive and @data_size are set, the
 *	rest is zero.
 *
 * Calls that are in flight already are not seen when they return.
 *
 * Context: Process context. May sleep. The handlers may run before it returns.
 * Return: 0, or with nothing changed an error of register_kprobe(), or
 *	-EINVAL if the address is not a function's entry, or is that of a
 *	function that must not be return-probed;
 *	-E2BIG if @data_size is over KRETPROBE_MAX_DATA_SIZE.
 */
int register_kretprobe(struct kretprobe *rp)
{
	return register_kretprobes(&rp, 1);
}
EXPORT_SYMBOL_GPL(register_kretprobe);

/**
 * unregister_kretprobes - Unregister several return probes
 * @rps: The return probes. Of one that is not registered, @kp.addr is cleared.
 * @num: How many. Nothing is done if it is not positive.
 *
 * When it returns, no handler of theirs runs or will run, and they are the
 * caller's to free. Calls may be in flight for as long as they like.
 *
 * Context: Process context. Waits for one grace period, an expedited one.
 */
void unregister_kretprobes(struct kretprobe **rps, int num)
{
	/* One by one is slower, but needs no memory. */
	struct kprobe **kps __free(kvfree) = num > 1 ? kprobes_of(rps, num) : NULL;

	scoped_guard(mutex, &kprobe_mutex) {
		for (int i = 0; i < num; i++)
			if (site_of_probe(&rps[i]->kp))
				kretprobe_pool_stop(rps[i]);
	}
	if (kps)
		unregister_kprobes(kps, num);
	else
		for (int i = 0; i < num; i++)
			unregister_kprobe(&rps[i]->kp);
	kretprobe_pools_settle();
	for (int i = 0; i < num; i++)
		if (rps[i]->kp.addr)
			kretprobe_pool_put(rps[i]);
}
EXPORT_SYMBOL_GPL(unregister_kretprobes);

/**
 * unregister_kretprobe - Unregister a return probe
 * @rp: The return probe.
 *
 * Context: As unregister_kretprobes().
 */
void unregister_kretprobe(struct kretprobe *rp)
{
	unregister_kretprobes(&rp, 1);
}
EXPORT_SYMBOL_GPL(unregister_kretprobe);
