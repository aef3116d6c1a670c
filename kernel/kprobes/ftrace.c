// SPDX-License-Identifier: GPL-2.0
/*
 * Probes on a function's ftrace site: hit through a call that ftrace patches in,
 * not through a breakpoint.
 *
 * Two ftrace_ops share the work. A probe that changes where execution goes on
 * must not meet another user who does; a probe that may is told by its post
 * handler, as ever, and its site is armed with the one that demands this.
 *
 * The ftrace_ops that calls for a site does not change while it is armed: in
 * between, a hit would be handled by both or by neither. If a post handler joins,
 * the other one claims the function as well, and its calls are ignored.
 */
#include "internal.h"

#include <linux/ftrace.h>
#include <linux/slab.h>

/* For architectures that do not ask for which ftrace_ops they are called. */
static notrace void __kprobes call_if_armed(unsigned long ip, unsigned long parent_ip,
					    struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
	struct kprobe *kp;

	guard(preempt_notrace)();
	kp = get_kprobe((void *)ip);
	if (!kp || READ_ONCE(site_of(kp)->ops) == ops)
		kprobe_ftrace_handler(ip, parent_ip, ops, fregs);
}

static struct ftrace_ops plain_ops __read_mostly = {
	.func	= kprobe_ftrace_knows_ops ? kprobe_ftrace_handler : call_if_armed,
	.flags	= FTRACE_OPS_FL_SAVE_REGS,
};

static struct ftrace_ops ipmodify_ops __read_mostly = {
	.func	= kprobe_ftrace_knows_ops ? kprobe_ftrace_handler : call_if_armed,
	.flags	= FTRACE_OPS_FL_SAVE_REGS | FTRACE_OPS_FL_IPMODIFY,
};

/* Set when ftrace has given up: its calls stay as they are. */
bool kprobe_ftrace_disabled __read_mostly;

/**
 * kprobe_ftrace_kill - ftrace gives up
 *
 * Context: Any; also from a panic.
 */
void kprobe_ftrace_kill(void)
{
	kprobe_ftrace_disabled = true;
}

static struct ftrace_ops *wanted_ops(const struct kprobe_site *site)
{
	return site->has_post ? &ipmodify_ops : &plain_ops;
}

static bool needs_claim(const struct kprobe_site *site)
{
	return site->has_post && site->ops == &plain_ops && !site->claimed;
}

/* ftrace_site_needs_rearm - Must an armed site be known to another ops, too? */
bool ftrace_site_needs_rearm(const struct kprobe_site *site)
{
	return kprobe_ftrace(&site->kp) && needs_claim(site);
}

/**
 * struct ip_set - Addresses for one filter update
 * @count: How many.
 * @ip: The addresses.
 */
struct ip_set {
	unsigned int count;
	unsigned long ip[];
};

static bool joins(const struct kprobe_site *site, const struct ftrace_ops *ops)
{
	return kprobe_ftrace(&site->kp) && wanted_ops(site) == ops &&
	       (!site->ops || needs_claim(site));
}

static bool belongs(const struct kprobe_site *site, const struct ftrace_ops *ops)
{
	return kprobe_ftrace(&site->kp) &&
	       (site->ops == ops || (site->claimed && ops == &ipmodify_ops));
}

/* Is there a claim, and no post handler any more? */
static bool has_idle_claim(const struct kprobe_site *site, const struct ftrace_ops *ops)
{
	return site->claimed && !site->has_post;
}

static struct ip_set *collect_ips(struct list_head *batch, const struct ftrace_ops *ops,
				  bool (*wanted)(const struct kprobe_site *site,
						 const struct ftrace_ops *ops))
{
	struct kprobe_site *site;
	unsigned int count = 0;
	struct ip_set *set;

	list_for_each_entry(site, batch, batch)
		count += wanted(site, ops);
	set = kvmalloc(struct_size(set, ip, count), GFP_KERNEL);
	if (!set)
		return NULL;
	set->count = 0;
	list_for_each_entry(site, batch, batch)
		if (wanted(site, ops))
			set->ip[set->count++] = site_addr(site);
	return set;
}

/*
 * How many addresses each ops has. With none it is not registered: an empty
 * filter stands for all functions. kprobe_mutex.
 */
static unsigned int plain_count, ipmodify_count;

static unsigned int *count_of(const struct ftrace_ops *ops)
{
	return ops == &plain_ops ? &plain_count : &ipmodify_count;
}

static int add_ips(struct ftrace_ops *ops, struct ip_set *set)
{
	unsigned int *count = count_of(ops);
	int err;

	if (!set->count)
		return 0;
	err = ftrace_set_filter_ips(ops, set->ip, set->count, 0, !*count);
	if (!err && !*count)
		err = register_ftrace_function(ops);
	if (!err)
		*count += set->count;
	return err;
}

/* What ftrace cannot do is not tried again: hits for what is not a site's ops are ignored. */
static void remove_ips(struct ftrace_ops *ops, unsigned long *ip, unsigned int n)
{
	unsigned int *count = count_of(ops);
	int err;

	if (!n || kprobe_ftrace_disabled)
		return;
	*count -= n;
	err = *count ? ftrace_set_filter_ips(ops, ip, n, 1, 0) : unregister_ftrace_function(ops);
	if (err)
		pr_warn("ftrace goes on calling for %u functions (%pe); that is ignored\n",
			n, ERR_PTR(err));
}

static void remove_set(struct ftrace_ops *ops, struct ip_set *set)
{
	remove_ips(ops, set->ip, set->count);
}

static void take_over(struct list_head *batch)
{
	struct kprobe_site *site;

	list_for_each_entry(site, batch, batch) {
		if (!kprobe_ftrace(&site->kp))
			continue;
		if (site->ops)
			site->claimed = needs_claim(site);
		else
			WRITE_ONCE(site->ops, wanted_ops(site));
	}
}

/**
 * ftrace_arm_sites - Let ftrace call for sites
 * @batch: Sites of all kinds, some of which may be armed, and in need of a claim.
 *
 * Context: Process context, kprobe_mutex held.
 * Return: 0, -ENOMEM or an error of ftrace: then nothing has changed.
 */
int ftrace_arm_sites(struct list_head *batch)
{
	struct ip_set *plain_in __free(kvfree) = collect_ips(batch, &plain_ops, joins);
	struct ip_set *ipmodify_in __free(kvfree) = collect_ips(batch, &ipmodify_ops, joins);
	int err;

	lockdep_assert_held(&kprobe_mutex);
	if (!plain_in || !ipmodify_in)
		return -ENOMEM;

	err = add_ips(&plain_ops, plain_in);
	if (err)
		return err;
	err = add_ips(&ipmodify_ops, ipmodify_in);
	if (err) {
		remove_set(&plain_ops, plain_in);
		return err;
	}
	take_over(batch);
	return 0;
}

/**
 * ftrace_relax_sites - Give up claims that are not needed any more
 * @batch: Sites of all kinds.
 *
 * A site that was armed with a post handler keeps others away until it is disarmed.
 * It does no harm to hits if this cannot be done now.
 *
 * Context: Process context, kprobe_mutex held.
 */
void ftrace_relax_sites(struct list_head *batch)
{
	struct ip_set *set __free(kvfree) = collect_ips(batch, &ipmodify_ops, has_idle_claim);
	struct kprobe_site *site;

	lockdep_assert_held(&kprobe_mutex);
	if (!set)
		return;
	list_for_each_entry(site, batch, batch)
		if (has_idle_claim(site, &ipmodify_ops))
			site->claimed = false;
	remove_set(&ipmodify_ops, set);
}

static void disarm_from(struct list_head *batch, struct ftrace_ops *ops)
{
	struct ip_set *set __free(kvfree) = collect_ips(batch, ops, belongs);
	struct kprobe_site *site;
	unsigned long ip;

	if (set) {
		remove_set(ops, set);
		return;
	}
	list_for_each_entry(site, batch, batch) {
		ip = site_addr(site);
		if (belongs(site, ops))
			remove_ips(ops, &ip, 1);
	}
}

/**
 * ftrace_disarm_sites - Let ftrace no longer call for sites
 * @batch: Sites of all kinds.
 *
 * Context: Process context, kprobe_mutex held.
 */
void ftrace_disarm_sites(struct list_head *batch)
{
	struct kprobe_site *site;

	lockdep_assert_held(&kprobe_mutex);
	disarm_from(batch, &plain_ops);
	disarm_from(batch, &ipmodify_ops);
	list_for_each_entry(site, batch, batch) {
		WRITE_ONCE(site->ops, NULL);
		site->claimed = false;
	}
}
