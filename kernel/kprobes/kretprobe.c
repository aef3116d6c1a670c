// SPDX-License-Identifier: GPL-2.0
/*
 * Return probes: registration, which is that of probes on the functions' entries.
 */
#include "internal.h"

#include <linux/atomic.h>
#include <linux/build_bug.h>
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
	struct kprobe_address where, last = { };

	if (!kretprobe_blacklist_size)
		return 0;
	for (black = kretprobe_blacklist; black->name; black++) {
		struct kprobe entry = { .symbol_name = black->name };

		if (!kprobe_resolve(&entry, &where, &last))
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

static struct kretprobe *kretprobe_of(struct kprobe *p)
{
	return container_of(p, struct kretprobe, kp);
}

static int prepare_kretprobe(struct kprobe *p, const struct kprobe_address *where)
{
	struct kretprobe *rp = kretprobe_of(p);
	int err;

	if (rp->data_size > KRETPROBE_MAX_DATA_SIZE)
		return -E2BIG;
	if (!(where->flags & KPROBE_FLAG_ON_FUNC_ENTRY) || is_blacklisted(where->addr))
		return -EINVAL;
	err = kretprobe_pool_create(rp);
	if (err)
		return err;
	p->pre_handler = kretprobe_entered;
	p->post_handler = NULL;
	return 0;
}

/*
 * Give up the instances of return probes that are disarmed, and whose entry
 * handlers do not run any more: first keep return handlers from being called,
 * then wait for those that are.
 */
static void stop_kretprobes(struct kprobe **kps, int num)
{
	if (num <= 0)
		return;
	for (int i = 0; i < num; i++)
		kretprobe_pool_stop(kretprobe_of(kps[i]));
	kprobes_wait_for_handlers();
	kretprobe_pools_settle();
	for (int i = 0; i < num; i++)
		kretprobe_pool_put(kretprobe_of(kps[i]));
}

static const struct kprobe_kind return_probes = {
	.prepare	= prepare_kretprobe,
	.undo		= stop_kretprobes,
};

static int *missed_before(struct kretprobe **rps, int num)
{
	int *missed = kvmalloc_array(num, sizeof(*missed), GFP_KERNEL);

	if (missed)
		for (int i = 0; i < num; i++)
			missed[i] = READ_ONCE(rps[i]->nmissed);
	return missed;
}

/* Forget what was missed before; some calls may have been missed since. */
static void forget_missed(struct kretprobe **rps, int num, const int *missed)
{
	BUILD_BUG_ON(sizeof(rps[0]->nmissed) != sizeof(atomic_t));
	for (int i = 0; i < num; i++)
		atomic_sub(missed[i], (atomic_t *)&rps[i]->nmissed);
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
	int *missed __free(kvfree) = NULL;
	struct kprobe **kps __free(kvfree) = NULL;
	int err;

	if (num <= 0)
		return -EINVAL;
	if (kprobes_called_by_handler())
		return -EDEADLK;
	kps = kprobes_of(rps, num);
	missed = missed_before(rps, num);
	if (!kps || !missed)
		return -ENOMEM;
	err = kprobes_register(kps, num, &return_probes);
	if (!err)
		forget_missed(rps, num, missed);
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

/* Returns how many were registered: the first ones of @kps then are. */
static int unregister_entries(struct kprobe **kps, int num)
{
	int found = 0;

	unregister_kprobes(kps, num);
	for (int i = 0; i < num; i++)
		if (kps[i]->addr)
			kps[found++] = kps[i];
	return found;
}

/**
 * unregister_kretprobes - Unregister several return probes
 * @rps: The return probes. Of one that is not registered, @kp.addr is cleared.
 * @num: How many. Nothing is done if it is not positive.
 *
 * When it returns, no handler of theirs runs or will run, and they are the
 * caller's to free. Calls may be in flight for as long as they like.
 *
 * Context: Process context. Waits for two grace periods, expedited ones: until the
 *	first ends an entry handler may run, which finds its return probe as ever.
 */
void unregister_kretprobes(struct kretprobe **rps, int num)
{
	struct kprobe **kps __free(kvfree) = NULL;

	if (WARN_ONCE(kprobes_called_by_handler(), "a handler cannot unregister return probes\n"))
		return;
	if (num > 1)
		kps = kprobes_of(rps, num);
	if (kps) {
		stop_kretprobes(kps, unregister_entries(kps, num));
		return;
	}
	/* One by one is slower, but needs no memory. */
	for (int i = 0; i < num; i++) {
		struct kprobe *kp = &rps[i]->kp;

		stop_kretprobes(&kp, unregister_entries(&kp, 1));
	}
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
