// SPDX-License-Identifier: GPL-2.0
/*
 * Executable memory for copied instructions and detours: slots, many to a page. The
 * owner of an address is looked up in any context, for instance by the unwinder.
 */
#include "internal.h"

#include <linux/array_size.h>
#include <linux/bitmap.h>
#include <linux/execmem.h>
#include <linux/init.h>
#include <linux/kallsyms.h>
#include <linux/limits.h>
#include <linux/mm.h>
#include <linux/perf_event.h>
#include <linux/slab.h>
#include <linux/string.h>

#define SLOT_BYTES		(KPROBE_SLOT_SIZE * sizeof(kprobe_opcode_t))
#define MAX_SLOTS_PER_PAGE	(PAGE_SIZE / SLOT_BYTES)

/**
 * struct slot_cache - Slots of one size
 * @name:	The name of a page in /proc/kallsyms.
 * @slot_bytes:	The size of a slot in bytes.
 * @pages:	All pages, by address, and possibly pages of other sizes. Read under RCU.
 * @open_pages:	The pages with a free slot. kprobe_mutex.
 * @alloc:	Allocates a page.
 * @free:	Frees a page.
 */
struct slot_cache {
	const char *name;
	unsigned int slot_bytes;
	struct maple_tree *pages;
	struct list_head open_pages;
	void *(*alloc)(void);
	void (*free)(void *page);
};

/**
 * struct slot_page - Page of slots
 * @code:	The page.
 * @cache:	The cache that the page belongs to.
 * @link:	Entry in the cache's @open_pages if a slot is free. kprobe_mutex.
 * @rcu:	Defers freeing until no reader uses it.
 * @slots:	The number of slots.
 * @used:	One bit for each slot. kprobe_mutex.
 * @owner:	The owner of each slot. Written under kprobe_mutex, read under RCU.
 */
struct slot_page {
	void *code;
	struct slot_cache *cache;
	struct list_head link;
	struct rcu_head rcu;
	unsigned int slots;
	DECLARE_BITMAP(used, MAX_SLOTS_PER_PAGE);
	struct kprobe *owner[] __counted_by(slots);
};

void *__weak alloc_insn_page(void)
{
	return execmem_alloc(EXECMEM_KPROBES, PAGE_SIZE);
}

static struct maple_tree insn_pages = MTREE_INIT(insn_pages, MT_FLAGS_USE_RCU);

static struct slot_cache insn_slots = {
	.name = "kprobe_insn_page",
	.slot_bytes = SLOT_BYTES,
	.pages = &insn_pages,
	.open_pages = LIST_HEAD_INIT(insn_slots.open_pages),
	.alloc = alloc_insn_page,
	.free = execmem_free,
};

static unsigned long slot_page_start(const struct slot_page *page)
{
	return (unsigned long)page->code;
}

static void slot_page_announce(const struct slot_page *page, bool freed)
{
	perf_event_ksymbol(PERF_RECORD_KSYMBOL_TYPE_OOL, slot_page_start(page), PAGE_SIZE, freed,
			   page->cache->name);
}

static struct slot_page *slot_page_add(struct slot_cache *cache)
{
	unsigned int slots = PAGE_SIZE / cache->slot_bytes;
	struct slot_page *page __free(kfree) = kzalloc(struct_size(page, owner, slots),
						       GFP_KERNEL);

	if (!page)
		return NULL;
	page->cache = cache;
	page->slots = slots;
	page->code = cache->alloc();
	if (!page->code)
		return NULL;
	if (mtree_insert_range(cache->pages, slot_page_start(page),
			       slot_page_start(page) + PAGE_SIZE - 1, page, GFP_KERNEL)) {
		cache->free(page->code);
		return NULL;
	}
	list_add(&page->link, &cache->open_pages);
	slot_page_announce(page, false);
	return no_free_ptr(page);
}

static void slot_page_remove(struct slot_page *page)
{
	slot_page_announce(page, true);
	list_del(&page->link);
	range_tree_clear(page->cache->pages, slot_page_start(page),
			 slot_page_start(page) + PAGE_SIZE);
	page->cache->free(page->code);
	kfree_rcu(page, rcu);
}

static kprobe_opcode_t *slot_alloc(struct slot_cache *cache, struct kprobe *owner)
{
	struct slot_page *page;
	unsigned int i;

	lockdep_assert_held(&kprobe_mutex);
	page = list_first_entry_or_null(&cache->open_pages, struct slot_page, link) ?:
	       slot_page_add(cache);
	if (!page)
		return NULL;
	i = find_first_zero_bit(page->used, page->slots);
	__set_bit(i, page->used);
	/* Pairs with the address dependency of the users of slot_owner(). */
	smp_store_release(&page->owner[i], owner);
	if (bitmap_full(page->used, page->slots))
		list_del_init(&page->link);
	return page->code + i * cache->slot_bytes;
}

static void slot_free(struct maple_tree *pages, kprobe_opcode_t *slot)
{
	struct slot_page *page = mtree_load(pages, (unsigned long)slot);
	unsigned int i;

	lockdep_assert_held(&kprobe_mutex);
	if (WARN_ON_ONCE(!page))
		return;
	i = ((void *)slot - page->code) / page->cache->slot_bytes;
	WARN_ON_ONCE(!__test_and_clear_bit(i, page->used));
	/* An architecture that tells perf what it writes to slots leaves this to us. */
	perf_event_text_poke(slot, slot, page->cache->slot_bytes, NULL, 0);
	WRITE_ONCE(page->owner[i], NULL);
	if (list_empty(&page->link))
		list_add(&page->link, &page->cache->open_pages);
	if (bitmap_empty(page->used, page->slots))
		slot_page_remove(page);
}

static struct kprobe *slot_owner(struct maple_tree *pages, unsigned long addr)
{
	struct slot_page *page = mtree_load(pages, addr);
	unsigned long i;

	if (!page)
		return NULL;
	i = (addr - slot_page_start(page)) / page->cache->slot_bytes;
	return i < page->slots ? READ_ONCE(page->owner[i]) : NULL;
}

/**
 * get_insn_slot_for() - Allocate a slot
 * @owner: The owner that kprobe_slot_owner() returns for it.
 *
 * Context: Process context, kprobe_mutex held.
 * Return: The slot, or NULL.
 */
kprobe_opcode_t *get_insn_slot_for(struct kprobe *owner)
{
	return slot_alloc(&insn_slots, owner);
}

/**
 * get_insn_slot() - Allocate a slot without an owner
 *
 * Context: See get_insn_slot_for().
 * Return: The slot, or NULL.
 */
kprobe_opcode_t *get_insn_slot(void)
{
	return get_insn_slot_for(NULL);
}

/**
 * free_insn_slot() - Free a slot
 * @slot: The slot. No task may be in it: see site_retire().
 * @dirty: Ignored.
 *
 * Context: Process context, kprobe_mutex held.
 */
void free_insn_slot(kprobe_opcode_t *slot, int dirty)
{
	slot_free(&insn_pages, slot);
}

/**
 * is_kprobe_insn_slot() - Check for an address in a page of slots
 * @addr: The address.
 *
 * Context: Any in which RCU is watching.
 * Return: true if @addr is in such a page.
 */
bool is_kprobe_insn_slot(unsigned long addr)
{
	return mtree_load(&insn_pages, addr);
}

/**
 * kprobe_slot_owner() - Find the owner of the slot at an address
 * @addr: The address.
 *
 * Context: Any in which RCU is watching. While the result is used, preemption is off
 *	or the caller is an RCU reader.
 * Return: The owner, or NULL.
 */
struct kprobe *kprobe_slot_owner(unsigned long addr)
{
	return slot_owner(&insn_pages, addr);
}

#ifdef CONFIG_OPTPROBES

void *__weak alloc_optinsn_page(void)
{
	return alloc_insn_page();
}

void __weak free_optinsn_page(void *page)
{
	execmem_free(page);
}

static struct maple_tree optinsn_pages = MTREE_INIT(optinsn_pages, MT_FLAGS_USE_RCU);

static struct slot_cache optinsn_slots = {
	.name = "kprobe_optinsn_page",
	.pages = &optinsn_pages,
	.open_pages = LIST_HEAD_INIT(optinsn_slots.open_pages),
	.alloc = alloc_optinsn_page,
	.free = free_optinsn_page,
};

/**
 * get_optinsn_slot_for() - Allocate a slot for a detour
 * @owner: The owner that kprobe_optinsn_slot_owner() returns for it.
 *
 * Context: See get_insn_slot_for().
 * Return: The slot, or NULL.
 */
kprobe_opcode_t *get_optinsn_slot_for(struct kprobe *owner)
{
	return slot_alloc(&optinsn_slots, owner);
}

#ifdef KPROBE_OPTINSN_SIZES
static const unsigned int optinsn_sizes[] = KPROBE_OPTINSN_SIZES;
static struct slot_cache sized_optinsn_slots[ARRAY_SIZE(optinsn_sizes)];

static void __init sized_optinsn_slots_init(void)
{
	struct slot_cache *cache;

	for (unsigned int i = 0; i < ARRAY_SIZE(optinsn_sizes); i++) {
		cache = &sized_optinsn_slots[i];
		*cache = optinsn_slots;
		cache->slot_bytes = optinsn_sizes[i] * sizeof(kprobe_opcode_t);
		INIT_LIST_HEAD(&cache->open_pages);
	}
}

/**
 * get_sized_optinsn_slot_for() - Allocate a slot for a detour, or for a part of one
 * @owner: The owner that kprobe_optinsn_slot_owner() returns for it.
 * @size: The number of units that it needs, at most the last of KPROBE_OPTINSN_SIZES.
 *
 * For an architecture whose detours differ in size. free_optinsn_slot() frees the slot.
 *
 * Context: See get_insn_slot_for().
 * Return: The slot, or NULL.
 */
kprobe_opcode_t *get_sized_optinsn_slot_for(struct kprobe *owner, unsigned int size)
{
	unsigned int i = 0;

	while (i < ARRAY_SIZE(optinsn_sizes) - 1 && optinsn_sizes[i] < size)
		i++;
	if (WARN_ON_ONCE(optinsn_sizes[i] < size))
		return NULL;
	return slot_alloc(&sized_optinsn_slots[i], owner);
}
#else
static inline void sized_optinsn_slots_init(void) { }
#endif

/**
 * get_optinsn_slot() - Allocate a slot for a detour without an owner
 *
 * Context: See get_insn_slot_for().
 * Return: The slot, or NULL.
 */
kprobe_opcode_t *get_optinsn_slot(void)
{
	return get_optinsn_slot_for(NULL);
}

/**
 * free_optinsn_slot() - Free a detour's slot
 * @slot: The slot. No task may be in it.
 * @dirty: Ignored.
 *
 * Context: See free_insn_slot().
 */
void free_optinsn_slot(kprobe_opcode_t *slot, int dirty)
{
	slot_free(&optinsn_pages, slot);
}

/**
 * is_kprobe_optinsn_slot() - Check for an address in a page of detours
 * @addr: The address.
 *
 * Context: See is_kprobe_insn_slot().
 * Return: true if @addr is in such a page.
 */
bool is_kprobe_optinsn_slot(unsigned long addr)
{
	return mtree_load(&optinsn_pages, addr);
}

/**
 * kprobe_optinsn_slot_owner() - Find the owner of the detour at an address
 * @addr: The address.
 *
 * Context: See kprobe_slot_owner().
 * Return: The owner, or NULL.
 */
struct kprobe *kprobe_optinsn_slot_owner(unsigned long addr)
{
	return slot_owner(&optinsn_pages, addr);
}

/* slots_init() - Prepare for the first slot */
void __init slots_init(void)
{
	/* On some architectures the size is a difference of two addresses. */
	optinsn_slots.slot_bytes = MAX_OPTINSN_SIZE * sizeof(kprobe_opcode_t);
	sized_optinsn_slots_init();
}

#endif /* CONFIG_OPTPROBES */

static struct maple_tree *const slot_page_trees[] = {
	&insn_pages,
#ifdef CONFIG_OPTPROBES
	&optinsn_pages,
#endif
};

/**
 * kprobe_get_kallsym() - Name the pages of slots for /proc/kallsyms
 * @symnum: The index of the page, from 0.
 * @value: Set to its address.
 * @type: Set to its type.
 * @sym: Set to its name, of at most KSYM_NAME_LEN bytes.
 *
 * Context: Process context.
 * Return: 0, or -ERANGE if there are no more pages.
 */
int kprobe_get_kallsym(unsigned int symnum, unsigned long *value, char *type, char *sym)
{
	struct slot_page *page;
	unsigned long addr;

	guard(rcu)();
	for (unsigned int i = 0; i < ARRAY_SIZE(slot_page_trees); i++) {
		addr = 0;
		mt_for_each(slot_page_trees[i], page, addr, ULONG_MAX) {
			if (symnum--)
				continue;
			strscpy(sym, page->cache->name, KSYM_NAME_LEN);
			*type = 't';
			*value = slot_page_start(page);
			return 0;
		}
	}
	return -ERANGE;
}
