// SPDX-License-Identifier: GPL-2.0
/*
 * Probes on a function's ftrace site, which are hit through a call that ftrace
 * patches in and not through a breakpoint
 *
 * There are two ftrace_ops. A probe that changes the path must not share a function
 * with another user that does. By convention, a probe that may change the path has a
 * post handler, and its site is armed with the ftrace_ops that has IPMODIFY.
 *
 * The ftrace_ops whose calls are hits of a site does not change while the site is
 * armed: during a change both ops or neither would handle a hit. If a probe with a
 * post handler joins, the other ops claims the function too, and its calls are ignored.
 */
#include "internal.h"

#include <linux/cache.h>
#include <linux/err.h>
#include <linux/ftrace.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include <asm/sections.h>

/*
 * For architectures whose kprobe_ftrace_handler() does not check the ftrace_ops. Without a
 * site at @ip, csky looks for one before it.
 */
static void __kprobes kprobe_ftrace_check_ops(unsigned long ip, unsigned long parent_ip,
					      struct ftrace_ops *ops,
					      struct ftrace_regs *fregs)
{
	struct kprobe *kp;

	guard(preempt_notrace)();
	kp = get_kprobe((void *)ip);
	if (!kp || READ_ONCE(site_of(kp)->ops) == ops)
		kprobe_ftrace_handler(ip, parent_ip, ops, fregs);
}

static struct ftrace_ops kprobe_ftrace_ops __read_mostly = {
	.func	= kprobe_ftrace_knows_ops ? kprobe_ftrace_handler : kprobe_ftrace_check_ops,
	.flags	= FTRACE_OPS_FL_SAVE_REGS,
};

static struct ftrace_ops kprobe_ipmodify_ops __read_mostly = {
	.func	= kprobe_ftrace_knows_ops ? kprobe_ftrace_handler : kprobe_ftrace_check_ops,
	.flags	= FTRACE_OPS_FL_SAVE_REGS | FTRACE_OPS_FL_IPMODIFY,
};

/* Set when ftrace has shut down: it no longer changes its calls. */
bool kprobe_ftrace_disabled __read_mostly;

/* kprobe_ftrace_kill() - Stop updating ftrace after it has shut down. Any context. */
void kprobe_ftrace_kill(void)
{
	/* Pairs with each READ_ONCE() in this file. Nothing is ordered. */
	WRITE_ONCE(kprobe_ftrace_disabled, true);
}

/* The ops that the site is armed with, or will be. */
static struct ftrace_ops *site_ops(const struct kprobe_site *site)
{
	return site->ops ?: site->has_post ? &kprobe_ipmodify_ops : &kprobe_ftrace_ops;
}

/* Is the address in the filter of @ops? */
static bool site_has_ops(const struct kprobe_site *site, const struct ftrace_ops *ops)
{
	return ops == site->ops || (site->claimed && ops == &kprobe_ipmodify_ops);
}

/* Must it be there while the site is armed? */
static bool site_wants_ops(const struct kprobe_site *site, const struct ftrace_ops *ops)
{
	return ops == site_ops(site) || (site->has_post && ops == &kprobe_ipmodify_ops);
}

static bool site_joins_ops(const struct kprobe_site *site, const struct ftrace_ops *ops)
{
	return kprobe_ftrace(&site->kp) && site_wants_ops(site, ops) && !site_has_ops(site, ops);
}

static bool site_leaves_ops(const struct kprobe_site *site, const struct ftrace_ops *ops)
{
	return site_has_ops(site, ops) && !site_wants_ops(site, ops);
}

/* Addresses for one filter update */
struct site_ips {
	unsigned int count;
	unsigned long ip[];
};

/* Returns NULL if none is wanted, or ERR_PTR(-ENOMEM): to disarm waits for memory, as @gfp says. */
static struct site_ips *
kprobe_ftrace_collect_ips(struct list_head *batch, const struct ftrace_ops *ops, gfp_t gfp,
			  bool (*wanted)(const struct kprobe_site *site,
					 const struct ftrace_ops *ops))
{
	struct kprobe_site *site;
	unsigned int count = 0;
	struct site_ips *set;

	list_for_each_entry(site, batch, batch)
		count += wanted(site, ops);
	if (!count)
		return NULL;
	set = kvmalloc(struct_size(set, ip, count), gfp | __GFP_NOWARN);
	if (!set)
		return ERR_PTR(-ENOMEM);
	set->count = 0;
	list_for_each_entry(site, batch, batch)
		if (wanted(site, ops))
			set->ip[set->count++] = site_addr(site);
	return set;
}

/*
 * In the filter of each ops while it is registered, as an empty filter matches all
 * functions. Never called.
 */
static noinline void __used kprobe_ftrace_anchor(void)
{
	barrier();
}

NOKPROBE_SYMBOL(kprobe_ftrace_anchor);

/* The number of addresses of each ops, without the anchor. kprobe_mutex. */
static unsigned int plain_count, ipmodify_count;

static unsigned int *ops_count(const struct ftrace_ops *ops)
{
	return ops == &kprobe_ftrace_ops ? &plain_count : &ipmodify_count;
}

static bool is_registered(const struct ftrace_ops *ops)
{
	return ops->flags & FTRACE_OPS_FL_ENABLED;
}

/*
 * How long @kprobe_ftrace_ops stays registered without addresses. To register it takes
 * milliseconds, and tools attach and detach one probe after the other. @kprobe_ipmodify_ops does
 * not: BPF trampolines make way for it when it is registered with their functions in
 * its filter, see prepare_direct_functions_for_ipmodify(), and not when its filter changes.
 */
#define IDLE_TIME	HZ

static void unregister_idle_work(struct work_struct *work)
{
	guard(mutex)(&kprobe_mutex);
	if (!plain_count && is_registered(&kprobe_ftrace_ops) && !READ_ONCE(kprobe_ftrace_disabled))
		unregister_ftrace_function(&kprobe_ftrace_ops);
}

static DECLARE_DELAYED_WORK(idle_work, unregister_idle_work);

/*
 * kprobe_ftrace_off() - Say that ftrace no longer calls the handlers of probes
 *
 * Nobody can count the hits that they miss. The locks of ftrace are held.
 */
void kprobe_ftrace_off(void)
{
	/* They are changed under another lock, kprobe_mutex. */
	if (data_race(plain_count || ipmodify_count))
		pr_warn("kernel.ftrace_enabled is 0: probes at functions' entries are not hit until it is 1 again\n");
}

/* Let @ops call the handlers of the sites that are to join it. On failure it does not. */
static int kprobe_ftrace_join(struct list_head *batch, struct ftrace_ops *ops)
{
	struct site_ips *set __free(kvfree) =
		kprobe_ftrace_collect_ips(batch, ops, GFP_KERNEL, site_joins_ops);
	unsigned long anchor =
		(unsigned long)dereference_kernel_function_descriptor(kprobe_ftrace_anchor);
	int err;

	if (IS_ERR_OR_NULL(set))
		return PTR_ERR_OR_ZERO(set);
	err = is_registered(ops) ? 0 : ftrace_set_filter_ip(ops, anchor, 0, 1);
	err = err ?: ftrace_set_filter_ips(ops, set->ip, set->count, 0, 0);
	if (!err && !is_registered(ops))
		err = register_ftrace_function(ops);
	/* It may have shut down meanwhile, before it changed the calls. */
	if (!err && READ_ONCE(kprobe_ftrace_disabled))
		err = -ENODEV;
	if (!err)
		*ops_count(ops) += set->count;
	return err;
}

/*
 * Let @ops no longer call the handlers of the sites that @leaves. Only an ftrace that has shut
 * down refuses that: the filter has the anchor, too.
 */
static void kprobe_ftrace_leave(struct list_head *batch, struct ftrace_ops *ops,
				bool (*leaves)(const struct kprobe_site *site,
					       const struct ftrace_ops *ops))
{
	struct site_ips *set __free(kvfree) =
		kprobe_ftrace_collect_ips(batch, ops, GFP_KERNEL | __GFP_NOFAIL, leaves);
	unsigned int *count = ops_count(ops);
	int err;

	if (!set || READ_ONCE(kprobe_ftrace_disabled))
		return;
	*count -= set->count;
	if (!*count && ops == &kprobe_ipmodify_ops)
		err = unregister_ftrace_function(ops);
	else
		err = ftrace_set_filter_ips(ops, set->ip, set->count, 1, 0);
	WARN_ON_ONCE(err && !READ_ONCE(kprobe_ftrace_disabled));
	if (!*count && ops == &kprobe_ftrace_ops)
		mod_delayed_work(system_percpu_wq, &idle_work, IDLE_TIME);
}

/*
 * kprobe_ftrace_arm_sites() - Make ftrace call the handlers of sites
 *
 * The batch has sites of all kinds, of which some may be armed and need a claim. Returns 0, or
 * -ENOMEM or an error of ftrace with nothing changed.
 */
int kprobe_ftrace_arm_sites(struct list_head *batch)
{
	struct kprobe_site *site;
	int err;

	lockdep_assert_held(&kprobe_mutex);
	err = kprobe_ftrace_join(batch, &kprobe_ftrace_ops);
	if (err)
		return err;
	err = kprobe_ftrace_join(batch, &kprobe_ipmodify_ops);
	if (err) {
		kprobe_ftrace_leave(batch, &kprobe_ftrace_ops, site_joins_ops);
		return err;
	}
	list_for_each_entry(site, batch, batch) {
		if (!kprobe_ftrace(&site->kp))
			continue;
		if (!site->ops)
			WRITE_ONCE(site->ops, site_ops(site));
		else if (site_joins_ops(site, &kprobe_ipmodify_ops))
			site->claimed = true;
	}
	return 0;
}

/*
 * kprobe_ftrace_release_claims() - Release claims of a batch that are no longer needed
 *
 * A site that was armed with IPMODIFY excludes rivals until it is disarmed.
 */
void kprobe_ftrace_release_claims(struct list_head *batch)
{
	struct kprobe_site *site;

	lockdep_assert_held(&kprobe_mutex);
	kprobe_ftrace_leave(batch, &kprobe_ipmodify_ops, site_leaves_ops);
	list_for_each_entry(site, batch, batch)
		if (site_leaves_ops(site, &kprobe_ipmodify_ops))
			site->claimed = false;
}

/* kprobe_ftrace_disarm_sites() - Stop ftrace calling the handlers of the sites of a batch */
void kprobe_ftrace_disarm_sites(struct list_head *batch)
{
	struct kprobe_site *site;

	lockdep_assert_held(&kprobe_mutex);
	kprobe_ftrace_leave(batch, &kprobe_ftrace_ops, site_has_ops);
	kprobe_ftrace_leave(batch, &kprobe_ipmodify_ops, site_has_ops);
	list_for_each_entry(site, batch, batch) {
		WRITE_ONCE(site->ops, NULL);
		site->claimed = false;
	}
}
