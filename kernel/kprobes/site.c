// SPDX-License-Identifier: GPL-2.0
/*
 * Registry of probed addresses, with two indexes over the sites
 *
 * The hash serves hits: an open-addressed table of pointers, replaced as a whole when a
 * third is filled. Its lookup calls no function that could be probed. The ordered index, an
 * rbtree, serves all other users: it lists the sites of a module or all sites in address
 * order.
 */
#include "internal.h"

#include <linux/bits.h>
#include <linux/cache.h>
#include <linux/export.h>
#include <linux/init.h>
#include <linux/log2.h>
#include <linux/minmax.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <linux/workqueue.h>

#include <kunit/visibility.h>

/* A kilobyte. */
#define TABLE_MIN_SIZE		64

/*
 * The least number of slots for a site. Fewer than one site in four is in its second slot
 * then, which costs a hit of it four more instructions, and one in fifty is farther away.
 */
#define TABLE_SLOTS_PER_SITE	3

/* For empty slots, and for slots of erased sites. No text is at their addresses. */
struct kprobe kprobe_no_site = {
	.addr = (kprobe_opcode_t *)&kprobe_no_site,
};

static struct kprobe tombstone = {
	.addr = (kprobe_opcode_t *)&tombstone,
};

/* The hash is read long before the first site: alternatives are tested with an int3. */
static struct kprobe_table empty_table = {
	.shift = BITS_PER_LONG - 1,
	.mask = 1,
	.slot = {
		RCU_INITIALIZER(&kprobe_no_site),
		RCU_INITIALIZER(&kprobe_no_site),
		RCU_INITIALIZER(&kprobe_no_site),
	},
};

struct kprobe_table __rcu *kprobe_sites = RCU_INITIALIZER(&empty_table);

static struct rb_root site_tree = RB_ROOT;

/* Of whole sites, and of those that end after @kp. */
static struct kmem_cache *site_cache __ro_after_init, *ftrace_site_cache __ro_after_init;

/* kprobe_sites_init() - Prepare for the first site */
void __init kprobe_sites_init(void)
{
	site_cache = KMEM_CACHE(kprobe_site, SLAB_PANIC);
	ftrace_site_cache = kmem_cache_create("kprobe_ftrace_site",
					      offsetofend(struct kprobe_site, kp),
					      __alignof__(struct kprobe_site), SLAB_PANIC, NULL);
}

/*
 * get_kprobe() - The struct kprobe of the site at @addr, any address; or NULL
 *
 * Any context, also noinstr. Preemption is off, or kprobe_mutex is held.
 */
noinstr struct kprobe *get_kprobe(void *addr)
{
	return kprobe_find(addr);
}
EXPORT_SYMBOL_IF_KUNIT(get_kprobe);

static struct kprobe_table *table_locked(void)
{
	return rcu_dereference_protected(kprobe_sites, lockdep_is_held(&kprobe_mutex));
}

static struct kprobe *table_entry(const struct kprobe_table *table, unsigned int i)
{
	return rcu_dereference_protected(table->slot[i], lockdep_is_held(&kprobe_mutex));
}

static void table_set(struct kprobe_table *table, unsigned int i, struct kprobe *entry)
{
	rcu_assign_pointer(table->slot[i], entry);
	if (!i)
		rcu_assign_pointer(table->slot[table->mask + 1], entry);
}

static bool is_site_entry(const struct kprobe *entry)
{
	return entry != &kprobe_no_site && entry != &tombstone;
}

/*
 * Sites that are in their first slot make room: they move to the next one. It is written before
 * the slot that the site leaves. Who looks for the site reads the slots in the same order, with
 * a barrier between, and does not miss it.
 */
static void site_table_insert(struct kprobe_table *table, struct kprobe *kp)
{
	unsigned int first = kprobe_hash(table, kp->addr), i = first, before;
	struct kprobe *entry;

	while (is_site_entry(table_entry(table, i)))
		i = (i + 1) & table->mask;
	if (table_entry(table, i) == &kprobe_no_site)
		table->filled++;
	table->live++;
	for (; i != first; i = before) {
		before = (i - 1) & table->mask;
		entry = table_entry(table, before);
		if (kprobe_hash(table, entry->addr) != before)
			break;
		table_set(table, i, entry);
	}
	table_set(table, i, kp);
}

static void site_table_erase(struct kprobe_table *table, const struct kprobe *kp)
{
	unsigned int i = kprobe_hash(table, kp->addr);

	while (table_entry(table, i) != kp)
		i = (i + 1) & table->mask;
	table->live--;
	table_set(table, i, &tombstone);
}

static unsigned long table_size(unsigned long sites)
{
	return max(roundup_pow_of_two(TABLE_SLOTS_PER_SITE * sites), TABLE_MIN_SIZE);
}

static void sites_reap_work(struct work_struct *work);
static DECLARE_WORK(site_reaper, sites_reap_work);

/*
 * Sites that are in no index, and tables that have been replaced. A hit that has searched the
 * hash before may still compare the address of a site, and an unwinder may have found it by its
 * slots. kprobe_mutex.
 */
static LIST_HEAD(unlinked_sites);
static LIST_HEAD(unlinked_tables);

static int site_table_resize(unsigned int sites)
{
	struct kprobe_table *old = table_locked(), *new;
	unsigned long size = table_size(sites);
	size_t bytes = struct_size(new, slot, size + 1);
	gfp_t gfp = GFP_KERNEL | __GFP_NOWARN;

	/* A little more than a power of two, of which kmalloc() would make the next one. */
	new = size > TABLE_MIN_SIZE ? __vmalloc(bytes, gfp) : kmalloc(bytes, gfp);
	if (!new)
		return -ENOMEM;
	new->shift = BITS_PER_LONG - ilog2(size);
	new->mask = size - 1;
	new->filled = 0;
	new->live = 0;
	INIT_LIST_HEAD(&new->retired);
	for (unsigned long i = 0; i <= size; i++)
		RCU_INIT_POINTER(new->slot[i], &kprobe_no_site);
	for (unsigned int i = 0; i <= old->mask; i++)
		if (is_site_entry(table_entry(old, i)))
			site_table_insert(new, table_entry(old, i));
	rcu_assign_pointer(kprobe_sites, new);
	if (old != &empty_table) {
		list_add(&old->retired, &unlinked_tables);
		queue_work(system_dfl_wq, &site_reaper);
	}
	return 0;
}

/* kprobe_site_reserve() - Make room in the hash for @count more sites; returns 0, or -ENOMEM */
int kprobe_site_reserve(unsigned int count)
{
	struct kprobe_table *table = table_locked();

	if (TABLE_SLOTS_PER_SITE * (table->filled + count) <= table->mask)
		return 0;
	return site_table_resize(table->live + count);
}

/* Shrink the table after most sites have gone. It may stay if memory is short. */
static void site_table_shrink(void)
{
	struct kprobe_table *table = table_locked();

	if (table->mask >= 4 * table_size(table->live + 1))
		site_table_resize(table->live + 1);
}

/* At one address there may be any number of sites that are gone. */
static bool site_precedes(struct rb_node *a, const struct rb_node *b)
{
	return site_addr(rb_entry(a, struct kprobe_site, node)) <
	       site_addr(rb_entry(b, struct kprobe_site, node));
}

/* All sites from an address on match: the first one of them is searched. */
static int site_is_below(const void *addr, const struct rb_node *node)
{
	return site_addr(rb_entry(node, struct kprobe_site, node)) < *(const unsigned long *)addr;
}

/* kprobe_site_first_from() - The site with the lowest address from @addr on, or NULL */
struct kprobe_site *kprobe_site_first_from(unsigned long addr)
{
	lockdep_assert_held(&kprobe_mutex);
	return rb_entry_safe(rb_find_first(&addr, &site_tree, site_is_below),
			     struct kprobe_site, node);
}

/* kprobe_site_next() - The site after @site in address order, or NULL */
struct kprobe_site *kprobe_site_next(struct kprobe_site *site)
{
	lockdep_assert_held(&kprobe_mutex);
	return rb_entry_safe(rb_next(&site->node), struct kprobe_site, node);
}

#ifdef CONFIG_OPTPROBES
static void site_init_detour(struct kprobe_site *site)
{
	INIT_LIST_HEAD(&site->op.list);
}

static void site_remove_detour(struct kprobe_site *site)
{
	list_del_init(&site->op.list);
	arch_remove_optimized_kprobe(&site->op);
}
#else
static void site_init_detour(struct kprobe_site *site) { }
static void site_remove_detour(struct kprobe_site *site) { }
#endif

static void site_remove_slots(struct kprobe_site *site)
{
	if (kprobe_ftrace(&site->kp))
		return;
	arch_remove_kprobe(&site->kp);
	site_remove_detour(site);
}

static void site_free_later(struct kprobe_site *site)
{
	if (!site)
		return;
	list_add(&site->retired, &unlinked_sites);
	queue_work(system_dfl_wq, &site_reaper);
}

DEFINE_FREE(site, struct kprobe_site *, site_free_later(_T))

/*
 * kprobe_site_create() - Prepare a site at a checked address and add it to the indexes
 *
 * kprobe_mutex and the locks of kprobe_text_lock() are held, and room in the hash has been
 * reserved. @flags are KPROBE_FLAG_FTRACE and KPROBE_FLAG_ON_FUNC_ENTRY, as they apply. Returns the
 * site, in state SITE_DISARMED; -ENOMEM; or an error of the architecture.
 */
struct kprobe_site *kprobe_site_create(unsigned long addr, u32 flags)
{
	bool traced = IS_ENABLED(CONFIG_KPROBES_ON_FTRACE) && flags & KPROBE_FLAG_FTRACE;
	struct kprobe_site *site __free(site) =
		kmem_cache_zalloc(traced ? ftrace_site_cache : site_cache, GFP_KERNEL);
	int err;

	lockdep_assert_held(&kprobe_mutex);
	if (!site)
		return ERR_PTR(-ENOMEM);
	site->kp.addr = (kprobe_opcode_t *)addr;
	site->kp.flags = flags;
	site->kp.pre_handler = kprobe_pre_handlers;
	site->called = &site->kp;
	INIT_LIST_HEAD(&site->kp.list);
	INIT_LIST_HEAD(&site->batch);
	INIT_LIST_HEAD(&site->retired);
	if (!traced)
		site_init_detour(site);

	err = traced ? arch_prepare_kprobe_ftrace(&site->kp) : arch_prepare_kprobe(&site->kp);
	if (err)
		return ERR_PTR(err);

	site_table_insert(table_locked(), &site->kp);
	rb_add(&site->node, &site_tree, site_precedes);
	return no_free_ptr(site);
}

/* From each state. A site is freed when it is dying, or gone and without probes. */
static const u8 site_transitions[] = {
	/* a probe arrives, or is enabled; the last probe leaves, or none has come */
	[SITE_DISARMED]	= BIT(SITE_ARMED) | BIT(SITE_DYING) | BIT(SITE_GONE),
	/* the last enabled probe is disabled or leaves; all probes are disarmed */
	[SITE_ARMED]	= BIT(SITE_DISARMED) | BIT(SITE_GONE) | BIT(SITE_OPTIMIZING),
	/* no task can reach the displaced text other than through the detour */
	[SITE_OPTIMIZING] = BIT(SITE_JUMP) | BIT(SITE_ARMED),
	/* the last enabled probe leaves, a neighbour is armed, the detour is unfit */
	[SITE_JUMP]	= BIT(SITE_ARMED),
	/* a new probe arrives before the site is freed */
	[SITE_DYING]	= BIT(SITE_ARMED) | BIT(SITE_DISARMED) | BIT(SITE_GONE),
	[SITE_GONE]	= 0,
};

/* kprobe_site_set_state() - Change a site's state; no other function does */
void kprobe_site_set_state(struct kprobe_site *site, enum kprobe_site_state state)
{
	lockdep_assert_held(&kprobe_mutex);
	WARN_ON_ONCE(!(site_transitions[site->state] & BIT(state)));
	if (site->state == SITE_DYING && state != SITE_GONE) {
		list_del_init(&site->retired);
		/* The misses of the probes that have left. */
		WRITE_ONCE(site->kp.nmissed, 0);
		atomic_set(&site->missed_busy, 0);
	}
	/* Pairs with the READ_ONCE() of a fault at the site, which only wants to know. */
	WRITE_ONCE(site->state, state);
}

/*
 * An architecture without slots restores the text again when a site is removed, which
 * must happen while the text is mapped.
 */
#ifdef __ARCH_WANT_KPROBES_INSN_SLOT
static const bool slots_outlive_text = true;
#else
static const bool slots_outlive_text;
#endif

/*
 * kprobe_site_set_gone() - Mark a disarmed site gone before its text is freed
 *
 * Other text may be loaded at the address later, so the site leaves the hash. It stays
 * in the ordered index while a probe is there. A task may still be preempted in its
 * slots: an async function of the module, or a task that was preempted on return from
 * a handler.
 */
void kprobe_site_set_gone(struct kprobe_site *site)
{
	site_table_erase(table_locked(), &site->kp);
	kprobe_site_set_state(site, SITE_GONE);
	kprobe_site_change_flag(site, KPROBE_FLAG_GONE, true);
	if (!slots_outlive_text)
		site_remove_slots(site);
	kprobe_site_retire(site);
}

/*
 * A site is freed in three steps. First, no hit reaches it any more: its text is
 * restored on all CPUs, and its last probe has left or the text is gone. Second, a
 * grace period of RCU-tasks passes, as a task may have been preempted in the site's
 * slots. Third, unless a new probe has arrived meanwhile, the slots are freed, and the site
 * when no handler runs that may have found it.
 */
static LIST_HEAD(retired_sites);	/* kprobe_mutex */

/* Frees at most SITES_AT_A_TIME sites. Returns true if more are left. */
static bool sites_free_some(struct list_head *batch)
{
	struct kprobe_site *site, *next;
	unsigned int n = 0;

	guard(mutex)(&kprobe_mutex);
	list_for_each_entry_safe(site, next, batch, retired) {
		if (n++ == SITES_AT_A_TIME)
			return true;
		list_del_init(&site->retired);
		if (site->state != SITE_GONE || slots_outlive_text)
			site_remove_slots(site);
		if (!list_empty(&site->kp.list))
			continue;
		if (site->state != SITE_GONE)
			site_table_erase(table_locked(), &site->kp);
		rb_erase(&site->node, &site_tree);
		kprobe_optimizer_retry_near(site);
		list_add(&site->retired, &unlinked_sites);
	}
	site_table_shrink();
	return false;
}

static void sites_reap_work(struct work_struct *work)
{
	struct kprobe_table *table, *next_table;
	struct kprobe_site *site, *next;
	LIST_HEAD(tables);
	LIST_HEAD(batch);

	scoped_guard(mutex, &kprobe_mutex)
		list_splice_init(&retired_sites, &batch);

	kprobes_wait_for_tasks();
	while (sites_free_some(&batch))
		cond_resched_tasks_rcu_qs();

	scoped_guard(mutex, &kprobe_mutex) {
		list_splice_init(&unlinked_sites, &batch);
		list_splice_init(&unlinked_tables, &tables);
	}
	kprobes_wait_for_handlers();
	list_for_each_entry_safe(site, next, &batch, retired)
		kfree(site);
	list_for_each_entry_safe(table, next_table, &tables, retired)
		kvfree(table);
}

/*
 * kprobe_site_retire() - Free a site when no task can be in its slots
 *
 * No hit reaches it: it is disarmed and has no probes, or is gone.
 */
void kprobe_site_retire(struct kprobe_site *site)
{
	if (site->state == SITE_DISARMED)
		kprobe_site_set_state(site, SITE_DYING);
	if (!list_empty(&site->retired))
		return;
	list_add_tail(&site->retired, &retired_sites);
	queue_work(system_dfl_wq, &site_reaper);
}
