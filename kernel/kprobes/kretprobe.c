// SPDX-License-Identifier: GPL-2.0
/*
 * Registration of return probes, on top of the probes on the functions' entries
 */
#include "internal.h"

#include <linux/build_bug.h>
#include <linux/export.h>
#include <linux/kallsyms.h>
#include <linux/lockdep.h>

#ifndef kretprobe_blacklist_size
#define kretprobe_blacklist_size	1
#endif

/* An array of return probes is one of probes. */
static_assert(offsetof(struct kretprobe, kp) == 0);

/* The names of the blacklist are looked up when first needed. Some may not be in this kernel. */
static bool is_kretprobe_blacklisted(unsigned long function)
{
	struct kretprobe_blackpoint *black = kretprobe_blacklist;

	lockdep_assert_held(&kprobe_mutex);
	for (; kretprobe_blacklist_size && black->name; black++) {
		if (!black->addr)
			black->addr = (void *)kallsyms_lookup_name(black->name);
		if (black->addr == (void *)function)
			return true;
	}
	return false;
}

/* kretprobe_check() - Check that a return probe may be at a place */
int kretprobe_check(struct kprobe *p, struct kprobe_address *where)
{
	if (!(where->flags & KPROBE_FLAG_ON_FUNC_ENTRY))
		return kprobe_refuse(where, -EINVAL, "return probes are at functions' entries");
	if (is_kretprobe_blacklisted(where->function))
		return kprobe_refuse(where, -EINVAL, "the function must not be return-probed");
	return 0;
}

static int kretprobe_prepare(struct kprobe *p, struct kprobe_address *where)
{
	struct kretprobe *rp = kretprobe_of(p);
	int err;

	if (rp->data_size > KRETPROBE_MAX_DATA_SIZE)
		return kprobe_refuse(where, -E2BIG, "data_size is too large");
	rp->old_maxactive = rp->maxactive;
	err = kretprobe_check(p, where) ?: kretprobe_pool_create(rp);
	if (err)
		return err;
	p->pre_handler = kretprobe_entered;
	p->post_handler = NULL;
	rp->old_nmissed = rp->nmissed;
	rp->nmissed = 0;
	return 0;
}

/* Let no return handler be called any more, and wait until the last one has returned. */
static void kretprobes_stop(struct kprobe **kps, int num)
{
	bool wait = !kprobes_must_not_wait();

	/* One that an NMI could not unlink, or that is being registered, stays complete. */
	for (int i = 0; i < num; i++)
		if (kps[i] && (wait || kprobe_is_unlinked(kps[i])))
			kretprobe_pool_drop(kretprobe_of(kps[i]));
	if (num > 0 && wait)
		kprobes_wait_for_handlers();
}

static void kretprobes_undo(struct kprobe **kps, int num)
{
	kretprobes_stop(kps, num);
	for (int i = 0; i < num; i++) {
		struct kretprobe *rp = kretprobe_of(kps[i]);

		rp->nmissed = rp->old_nmissed;
		rp->maxactive = rp->old_maxactive;
		if (rp->maxactive <= 0)
			rp->chosen = 0;
	}
}

static const struct kprobe_kind kretprobe_kind = {
	.prepare	= kretprobe_prepare,
	.undo		= kretprobes_undo,
};

/**
 * register_kretprobes() - Register several return probes, all or none
 * @rps: The return probes, see register_kretprobe().
 * @num: The number of return probes, at least 1.
 *
 * Context: Process context. May sleep.
 * Return: See register_kretprobe(), for the first return probe that is refused.
 *	-EINVAL also if @num is not positive, or a pointer in the array is NULL.
 */
int register_kretprobes(struct kretprobe **rps, int num)
{
	return kprobes_register((struct kprobe **)rps, num, &kretprobe_kind);
}
EXPORT_SYMBOL_GPL(register_kretprobes);

/**
 * register_kretprobe() - Register a return probe
 * @rp: The return probe. The caller sets @symbol_name or @addr, @offset and @flags of
 *	@kp; @handler, @entry_handler, @maxactive and @data_size; and clears the rest.
 *
 * No handler is called for calls that are already in flight.
 *
 * Context: Process context. May sleep. The handlers may run before it returns.
 * Return: 0 on success. On failure nothing has changed: an error of
 *	register_kprobe(), or
 *	-EINVAL if the address is not a function's entry, or the function must not be
 *	return-probed;
 *	-E2BIG if @data_size is over KRETPROBE_MAX_DATA_SIZE.
 */
int register_kretprobe(struct kretprobe *rp)
{
	return register_kretprobes(&rp, 1);
}
EXPORT_SYMBOL_GPL(register_kretprobe);

/**
 * unregister_kretprobes() - Unregister several return probes
 * @rps: The return probes. The call clears @kp.addr of one that is not registered.
 * @num: The number of return probes. Nothing is done if it is not positive.
 *
 * After the call no handler of the return probes runs or will run, and the caller may
 * free them. Calls may stay in flight. A call from a handler, or from code that must not
 * sleep, triggers a warning: no later hit or return calls a handler, but one that runs
 * already is not waited for.
 *
 * Context: Process context. Waits for two expedited grace periods. Until the first one
 *	ends an entry handler may run, and its return probe is still complete.
 */
void unregister_kretprobes(struct kretprobe **rps, int num)
{
	struct kprobe **kps = (struct kprobe **)rps;

	unregister_kprobes(kps, num);
	kretprobes_stop(kps, num);
}
EXPORT_SYMBOL_GPL(unregister_kretprobes);

/**
 * unregister_kretprobe() - Unregister a return probe
 * @rp: The return probe.
 *
 * Context: See unregister_kretprobes().
 */
void unregister_kretprobe(struct kretprobe *rp)
{
	unregister_kretprobes(&rp, 1);
}
EXPORT_SYMBOL_GPL(unregister_kretprobe);
