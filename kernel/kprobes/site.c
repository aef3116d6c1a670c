// SPDX-License-Identifier: GPL-2.0
/*
 * The registry of probed addresses.
 *
 * Two indexes over the sites. The hash serves hits: an open-addressed table of
 * pointers, replaced as a whole when it is full. Its lookup calls nothing, so
 * that nothing it needs can be probed. The ordered index (an rbtree) serves
 * everybody else: all sites of a module, listing in the order of addresses.
 */
#include "internal.h"

#include <linux/init.h>
#include <linux/kprobes_hit.h>
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/workqueue.h>

/*
 * Two sites that collide cost a hit of one of them a few instructions more. Up to a
 * table of half a megabyte there is so much room that this happens to one in a hundred.
 */
#define TABLE_MIN_SIZE		8192
#define TABLE_ROOMY_SIZE	65536

/* In empty slots, and in those of erased sites. There is no text at their addresses. */
struct kprobe kprobe_nobody = {
	.addr = (kprobe_opcode_t *)&kprobe_nobody,
};

static struct kprobe tombstone = {
	.addr = (kprobe_opcode_t *)&tombstone,
};

/* Looked at long before the first site: alternatives are tested with an int3. */
static struct kprobe_table empty_table = {
	.shift = BITS_PER_LONG - 1,
	.mask = 1,
	.slot = { RCU_INITIALIZER(&kprobe_nobody), RCU_INITIALIZER(&kprobe_nobody) },
};

struct kprobe_table __rcu *kprobe_table = RCU_INITIALIZER(&empty_table);

static struct rb_root site_tree = RB_ROOT;

static struct kmem_cache *site_cache __ro_after_init;

/* sites_init - Prepare for the first site. */
void __init sites_init(void)
{
	site_cache = KMEM_CACHE(kprobe_site, SLAB_PANIC);
}

/**
 * get_kprobe - Find the site at an address
 * @addr: Any address.
 *
 * Context: Any, also noinstr. Preemption is off, or kprobe_mutex is held.
 * Return: The site's struct kprobe, or NULL.
 */
noinstr struct kprobe *get_kprobe(void *addr)
{
	return kprobe_find(addr);
}

/**
 * kprobe_find_further - Find the site at an address, but not in the first slot
 * @table: The hash.
 * @i: The first slot.
 * @addr: The address.
 *
 * Context: As get_kprobe().
 * Return: As get_kprobe().
 */
noinstr struct kprobe *kprobe_find_further(const struct kprobe_table *table, unsigned long i,
					   const void *addr)
{
	struct kprobe *kp;

	for (;;) {
		kp = rcu_dereference_raw(table->slot[i]);
		if (kp == &kprobe_nobody)
			return NULL;
		if (kp->addr == addr)
			return kp;
		i = (i + 1) & table->mask;
	}
}

static struct kprobe_table *table_locked(void)
{
	return rcu_dereference_protected(kprobe_table, lockdep_is_held(&kprobe_mutex));
}

static struct kprobe *table_entry(const struct kprobe_table *table, unsigned int i)
{
	return rcu_dereference_protected(table->slot[i], lockdep_is_held(&kprobe_mutex));
}

static bool is_site(const struct kprobe *entry)
{
	return entry != &kprobe_nobody && entry != &tombstone;
}

static void table_insert(struct kprobe_table *table, struct kprobe *kp)
{
	unsigned int i = kprobe_hash(table, kp->addr);

	while (is_site(table_entry(table, i)))
		i = (i + 1) & table->mask;
	if (table_entry(table, i) == &kprobe_nobody)
		table->filled++;
	table->live++;
	rcu_assign_pointer(table->slot[i], kp);
}

static void table_erase(struct kprobe_table *table, const struct kprobe *kp)
{
	unsigned int i = kprobe_hash(table, kp->addr);

	while (table_entry(table, i) != kp)
		i = (i + 1) & table->mask;
	table->live--;
	rcu_assign_pointer(table->slot[i], &tombstone);
}

static unsigned long table_size(unsigned long sites)
{
	unsigned long size = max(4 * sites, min(64 * sites, TABLE_ROOMY_SIZE));

	return max(roundup_pow_of_two(size), TABLE_MIN_SIZE);
}

static int table_resize(unsigned int sites)
{
	struct kprobe_table *old = table_locked(), *new;
	unsigned long size = table_size(sites);

	new = kvmalloc(struct_size(new, slot, size), GFP_KERNEL);
	if (!new)
		return -ENOMEM;
	new->shift = BITS_PER_LONG - ilog2(size);
	new->mask = size - 1;
	new->filled = 0;
	new->live = 0;
	for (unsigned long i = 0; i < size; i++)
		RCU_INIT_POINTER(new->slot[i], &kprobe_nobody);
	for (unsigned int i = 0; i <= old->mask; i++)
		if (is_site(table_entry(old, i)))
			table_insert(new, table_entry(old, i));
	rcu_assign_pointer(kprobe_table, new);
	if (old != &empty_table)
		kvfree_rcu(old, rcu);
	return 0;
}

/**
 * site_reserve - Make room in the hash
 * @count: How many sites are going to be created.
 *
 * Context: Process context, kprobe_mutex held.
 * Return: 0, or -ENOMEM.
 */
int site_reserve(unsigned int count)
{
	struct kprobe_table *table = table_locked();
	unsigned long size = table->mask + 1UL, sites = table->live + count;

	/* A third: then there is one step too many in four lookups. */
	if (table->filled + count <= size / 3 && size >= min(32 * sites, TABLE_ROOMY_SIZE))
		return 0;
	return table_resize(sites);
}

/* After a crowd has gone, its table goes, too. It may stay if memory is short. */
static void table_shrink(void)
{
	struct kprobe_table *table = table_locked();

	if (table->mask >= 4 * table_size(table->live + 1))
		table_resize(table->live + 1);
}

static bool site_precedes(struct rb_node *a, const struct rb_node *b)
{
	return site_addr(rb_entry(a, struct kprobe_site, node)) <
	       site_addr(rb_entry(b, struct kprobe_site, node));
}

/* site_first_from - The site with the lowest address from @addr on, or NULL. */
struct kprobe_site *site_first_from(unsigned long addr)
{
	struct kprobe_site *site, *found = NULL;
	struct rb_node *node = site_tree.rb_node;

	lockdep_assert_held(&kprobe_mutex);
	while (node) {
		site = rb_entry(node, struct kprobe_site, node);
		if (site_addr(site) < addr) {
			node = node->rb_right;
		} else {
			found = site;
			node = node->rb_left;
		}
	}
	return found;
}

/* site_next - The site after @site in the order of addresses, or NULL. */
struct kprobe_site *site_next(struct kprobe_site *site)
{
	lockdep_assert_held(&kprobe_mutex);
	return rb_entry_safe(rb_next(&site->node), struct kprobe_site, node);
}

static struct kprobe_site *if_below(struct kprobe_site *site, unsigned long end)
{
	return site && site_addr(site) < end ? site : NULL;
}

/* site_first_in - The site with the lowest address in [@start, @end), or NULL. */
struct kprobe_site *site_first_in(unsigned long start, unsigned long end)
{
	return if_below(site_first_from(start), end);
}

/* site_next_in - The site after @site, if it is below @end, or NULL. */
struct kprobe_site *site_next_in(struct kprobe_site *site, unsigned long end)
{
	return if_below(site_next(site), end);
}

/* site_find - The site at @addr that is not gone, or NULL. */
struct kprobe_site *site_find(unsigned long addr)
{
	struct kprobe *kp;

	lockdep_assert_held(&kprobe_mutex);
	kp = get_kprobe((void *)addr);
	return kp ? site_of(kp) : NULL;
}

/* Is it the own kprobe of a site that is not gone? */
static bool is_found_kprobe(const struct kprobe *kp)
{
	return get_kprobe(kp->addr) == kp;
}

/* Is it that of a site that may be gone, and not in the hash? */
static bool is_site_kprobe(const struct kprobe *kp)
{
	unsigned long addr = (unsigned long)kp->addr;
	struct kprobe_site *site;

	for (site = site_first_in(addr, addr + 1); site; site = site_next_in(site, addr + 1))
		if (&site->kp == kp)
			return true;
	return false;
}

static struct kprobe_site *site_in_list(struct kprobe *p, bool (*is_own)(const struct kprobe *kp))
{
	struct kprobe *kp = p;

	list_for_each_entry_continue(kp, &p->list, list)
		if (is_own(kp))
			return site_of(kp);
	return NULL;
}

/*
 * A probe's links mean nothing before its first registration, so they are believed
 * only if the neighbour agrees.
 */
static bool is_linked(const struct kprobe *p)
{
	struct list_head *next = p->list.next, *back;

	return next && next != &p->list && !get_kernel_nofault(back, &next->prev) &&
	       back == &p->list;
}

/**
 * site_of_probe - Find the site that a probe is registered at
 * @p: The probe. Its @addr may have been changed since it was registered.
 *
 * Context: Process context, kprobe_mutex held.
 * Return: The site, or NULL.
 */
struct kprobe_site *site_of_probe(struct kprobe *p)
{
	lockdep_assert_held(&kprobe_mutex);
	if (!is_linked(p))
		return NULL;
	return site_in_list(p, is_found_kprobe) ?: site_in_list(p, is_site_kprobe);
}

static void site_unlink(struct kprobe_site *site)
{
	if (site->state != SITE_GONE)
		table_erase(table_locked(), &site->kp);
	rb_erase(&site->node, &site_tree);
}

static void site_remove_slots(struct kprobe_site *site)
{
	if (kprobe_ftrace(&site->kp))
		return;
	arch_remove_kprobe(&site->kp);
#ifdef CONFIG_OPTPROBES
	arch_remove_optimized_kprobe(&site->op);
#endif
}

/**
 * site_create - Prepare a site and put it into the indexes
 * @addr: The address; it has been checked.
 * @flags: KPROBE_FLAG_FTRACE, KPROBE_FLAG_ON_FUNC_ENTRY as they apply.
 *
 * Context: Process context, kprobe_mutex held, text_mutex too. Room in the hash
 *	has been reserved.
 * Return: The site, in state SITE_NEW, or an error of the architecture: -ENOMEM,
 *	-EILSEQ for an instruction that cannot be probed, -EINVAL.
 */
struct kprobe_site *site_create(unsigned long addr, u32 flags)
{
	struct kprobe_site *site __free(kfree) = kmem_cache_zalloc(site_cache, GFP_KERNEL);
	int err;

	lockdep_assert_held(&kprobe_mutex);
	if (!site)
		return ERR_PTR(-ENOMEM);
	site->kp.addr = (kprobe_opcode_t *)addr;
	site->kp.flags = flags;
	site->kp.pre_handler = kprobe_pre_handlers;
	INIT_LIST_HEAD(&site->kp.list);
	INIT_LIST_HEAD(&site->batch);
	INIT_LIST_HEAD(&site->retired);
#ifdef CONFIG_OPTPROBES
	INIT_LIST_HEAD(&site->op.list);
#endif

	err = kprobe_ftrace(&site->kp) ? arch_prepare_kprobe_ftrace(&site->kp)
				       : arch_prepare_kprobe(&site->kp);
	if (err)
		return ERR_PTR(err);

	table_insert(table_locked(), &site->kp);
	rb_add(&site->node, &site_tree, site_precedes);
	return no_free_ptr(site);
}

/* site_destroy - Undo site_create(), before the site has ever been armed. */
void site_destroy(struct kprobe_site *site)
{
	WARN_ON_ONCE(site->state != SITE_NEW);
	site_unlink(site);
	site_remove_slots(site);
	kfree_rcu(site, rcu);
}

static const u8 site_ways[] = {
	/* a probe arrives; the new site's probes may all be disabled */
	[SITE_NEW]	= BIT(SITE_ARMED) | BIT(SITE_DISARMED) | BIT(SITE_GONE),
	/* the last enabled probe is disabled or leaves; all are switched off */
	[SITE_ARMED]	= BIT(SITE_DISARMED) | BIT(SITE_GONE) | BIT(SITE_OPTIMIZING),
	/* all ways to the displaced instructions but the detour have been waited for */
	[SITE_OPTIMIZING] = BIT(SITE_JUMP) | BIT(SITE_ARMED),
	/* the last enabled probe leaves, a neighbour comes, the detour does not suit */
	[SITE_JUMP]	= BIT(SITE_ARMED) | BIT(SITE_DISARMED),
	/* enabled again; the last probe leaves */
	[SITE_DISARMED]	= BIT(SITE_ARMED) | BIT(SITE_DYING) | BIT(SITE_GONE),
	/* a new probe arrives before the site is freed */
	[SITE_DYING]	= BIT(SITE_ARMED) | BIT(SITE_DISARMED) | BIT(SITE_GONE),
	[SITE_GONE]	= 0,
};

/*
 * site_set_state - The one place where a site's state changes:
 *
 *	NEW -> ARMED <-> DISARMED -> DYING -> freed
 *	ARMED -> OPTIMIZING -> JUMP -> ARMED, DISARMED
 *	OPTIMIZING -> ARMED
 *	NEW -> DISARMED
 *	DYING -> ARMED, DISARMED
 *	any -> GONE -> freed, when its last probe has left
 */
void site_set_state(struct kprobe_site *site, enum kprobe_site_state state)
{
	lockdep_assert_held(&kprobe_mutex);
	WARN_ON_ONCE(!(site_ways[site->state] & BIT(state)));
	if (site->state == SITE_DYING && state != SITE_GONE)
		list_del_init(&site->retired);
	site->state = state;
}

/*
 * An architecture without slots restores the text once more when it forgets a
 * site: that must be done while the text is there.
 */
#ifdef __ARCH_WANT_KPROBES_INSN_SLOT
static const bool slots_outlive_text = true;
#else
static const bool slots_outlive_text;
#endif

/**
 * site_lose_text - The text at a site goes away
 * @site: The site, no longer armed.
 *
 * Its address may come to mean something else from here on, so it leaves the
 * hash. It stays in the ordered index as long as somebody has a probe there. A
 * task may still be in its slots: an async function of the module, or one that
 * was preempted on its way back from a handler.
 */
void site_lose_text(struct kprobe_site *site)
{
	struct kprobe *p;

	table_erase(table_locked(), &site->kp);
	site_set_state(site, SITE_GONE);
	site->kp.flags |= KPROBE_FLAG_GONE;
	list_for_each_entry(p, &site->kp.list, list)
		p->flags |= KPROBE_FLAG_GONE;
	if (!slots_outlive_text)
		site_remove_slots(site);
	site_retire(site);
}

/*
 * Freeing, in three steps. First, nothing leads to the site any more: its text
 * is restored, all CPUs know it, and the last probe has left or the text is
 * gone. Second, a grace period of RCU-tasks: a task may have been preempted in
 * the site's slots. That does not watch CPUs on their way up, which are waited
 * for with the hotplug lock. Third, unless a new probe has arrived meanwhile,
 * the slots are freed, and the site when nobody can look at it.
 */
static LIST_HEAD(retired_sites);	/* kprobe_mutex */

static void site_free(struct kprobe_site *site)
{
	if (site->state != SITE_GONE || slots_outlive_text)
		site_remove_slots(site);
	if (!list_empty(&site->kp.list))
		return;
	site_unlink(site);
	kfree_rcu(site, rcu);
}

/* Free a few, so that nobody waits long for kprobe_mutex. Returns whether there are more. */
static bool reap_few(struct list_head *batch)
{
	struct kprobe_site *site, *next;
	unsigned int n = 0;

	guard(mutex)(&kprobe_mutex);
	list_for_each_entry_safe(site, next, batch, retired) {
		if (n++ == SITES_AT_A_TIME)
			return true;
		list_del_init(&site->retired);
		site_free(site);
	}
	table_shrink();
	return false;
}

static void reap_sites(struct work_struct *work)
{
	LIST_HEAD(batch);

	scoped_guard(mutex, &kprobe_mutex)
		list_splice_init(&retired_sites, &batch);

	kprobes_wait_for_tasks();
	while (reap_few(&batch))
		cond_resched_tasks_rcu_qs();
}

static DECLARE_WORK(site_reaper, reap_sites);

/**
 * site_retire - Free a site when nobody can be in its slots
 * @site: A site to which nothing leads any more: dying or gone.
 */
void site_retire(struct kprobe_site *site)
{
	lockdep_assert_held(&kprobe_mutex);
	WARN_ON_ONCE(site->state != SITE_DYING && site->state != SITE_GONE);
	if (list_empty(&site->retired))
		list_add_tail(&site->retired, &retired_sites);
	queue_work(system_unbound_wq, &site_reaper);
}
