// SPDX-License-Identifier: GPL-2.0
/*
 * Probes on a function's ftrace site: hit through a call that ftrace patches in,
 * not through a breakpoint.
 *
 * Two ftrace_ops share the work. A probe that changes where execution goes on
 * must not meet another user who does; those who may are told by their post
 * handler, as ever, and their sites are armed with the one that demands this.
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

/* Not an easier one than it has: that comes later, and may fail. */
static struct ftrace_ops *wanted_ops(const struct kprobe_site *site)
{
	return site->has_post ? &ipmodify_ops : site->ops ?: &plain_ops;
}

/* ftrace_site_needs_rearm - Is an armed site in the hands of the wrong ops? */
bool ftrace_site_needs_rearm(const struct kprobe_site *site)
{
	return kprobe_ftrace(&site->kp) && site->ops != wanted_ops(site);
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
	return ftrace_site_needs_rearm(site) && wanted_ops(site) == ops;
}

static bool belongs(const struct kprobe_site *site, const struct ftrace_ops *ops)
{
	return kprobe_ftrace(&site->kp) && site->ops == ops;
}

static bool leaves(const struct kprobe_site *site, const struct ftrace_ops *ops)
{
	return belongs(site, ops) && ftrace_site_needs_rearm(site);
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

	list_for_each_entry(site, batch, batch)
		if (kprobe_ftrace(&site->kp))
			WRITE_ONCE(site->ops, wanted_ops(site));
}

/**
 * ftrace_arm_sites - Let ftrace call for sites
 * @batch: Sites of all kinds, some of which may be armed with another ops.
 *
 * Context: Process context, kprobe_mutex held.
 * Return: 0, -ENOMEM or an error of ftrace: then nothing has changed.
 */
int ftrace_arm_sites(struct list_head *batch)
{
	struct ip_set *plain_in __free(kvfree) = collect_ips(batch, &plain_ops, joins);
	struct ip_set *ipmodify_in __free(kvfree) = collect_ips(batch, &ipmodify_ops, joins);
	struct ip_set *plain_out __free(kvfree) = collect_ips(batch, &plain_ops, leaves);
	int err;

	lockdep_assert_held(&kprobe_mutex);
	if (!plain_in || !ipmodify_in || !plain_out)
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
	remove_set(&plain_ops, plain_out);
	return 0;
}

static bool is_too_strict(const struct kprobe_site *site, const struct ftrace_ops *ops)
{
	return belongs(site, ops) && !site->has_post;
}

/**
 * ftrace_relax_sites - Give up what sites keep others from
 * @batch: Sites of all kinds.
 *
 * Where the last post handler has left, the instruction pointer will not be
 * changed any more. It does no harm to hits if this cannot be done now.
 *
 * Context: Process context, kprobe_mutex held.
 */
void ftrace_relax_sites(struct list_head *batch)
{
	struct ip_set *set __free(kvfree) = collect_ips(batch, &ipmodify_ops, is_too_strict);
	struct kprobe_site *site;

	lockdep_assert_held(&kprobe_mutex);
	if (!set || add_ips(&plain_ops, set))
		return;
	list_for_each_entry(site, batch, batch)
		if (is_too_strict(site, &ipmodify_ops))
			WRITE_ONCE(site->ops, &plain_ops);
	remove_set(&ipmodify_ops, set);
}

static void disarm_from(struct list_head *batch, struct ftrace_ops *ops)
{
	struct ip_set *set __free(kvfree) = collect_ips(batch, ops, belongs);
	struct kprobe_site *site;
	unsigned long ip;

	if (set)
		remove_set(ops, set);
	list_for_each_entry(site, batch, batch) {
		if (!belongs(site, ops))
			continue;
		ip = site_addr(site);
		if (!set)
			remove_ips(ops, &ip, 1);
		WRITE_ONCE(site->ops, NULL);
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
	lockdep_assert_held(&kprobe_mutex);
	disarm_from(batch, &plain_ops);
	disarm_from(batch, &ipmodify_ops);
}
