// SPDX-License-Identifier: GPL-2.0
/*
 * Executable memory for copied instructions, and for detours: slots, many to a
 * page. Which page an address belongs to is asked in any context, for instance
 * by the unwinder.
 */
#include "internal.h"

#include <linux/bitmap.h>
#include <linux/execmem.h>
#include <linux/init.h>
#include <linux/maple_tree.h>
#include <linux/mm.h>
#include <linux/perf_event.h>
#include <linux/slab.h>

#define SLOT_BYTES		(KPROBE_SLOT_SIZE * sizeof(kprobe_opcode_t))
#define MAX_SLOTS_PER_PAGE	(PAGE_SIZE / SLOT_BYTES)

/**
 * struct slot_cache - Slots of one size
 * @name:	What a page is called where symbols are shown.
 * @slot_bytes:	The size.
 * @pages:	All pages, by address; perhaps with those of other sizes. Read under RCU.
 * @open_pages:	Those in which a slot is free. kprobe_mutex.
 * @alloc:	Allocates a page.
 * @free:	Frees it.
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
 * struct slot_page - A page of slots
 * @code:	The page.
 * @cache:	Where it belongs.
 * @link:	In the cache's @open_pages if a slot is free. kprobe_mutex.
 * @rcu:	For the time after the last look at it.
 * @slots:	How many slots there are.
 * @used:	A bit a slot. kprobe_mutex.
 * @owner:	Whose slot it is. Written under kprobe_mutex, read under RCU.
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

/**
 * alloc_insn_page - Allocate a page for copied instructions
 *
 * Context: Process context. May sleep.
 * Return: The page, executable, or NULL.
 */
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

static unsigned long page_first(const struct slot_page *page)
{
	return (unsigned long)page->code;
}

static void announce(const struct slot_page *page, bool freed)
{
	perf_event_ksymbol(PERF_RECORD_KSYMBOL_TYPE_OOL, page_first(page), PAGE_SIZE, freed,
			   page->cache->name);
}

static struct slot_page *add_page(struct slot_cache *cache)
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
	if (mtree_insert_range(cache->pages, page_first(page), page_first(page) + PAGE_SIZE - 1,
			       page, GFP_KERNEL)) {
		cache->free(page->code);
		return NULL;
	}
	list_add(&page->link, &cache->open_pages);
	announce(page, false);
	return no_free_ptr(page);
}

static void remove_page(struct slot_page *page)
{
	announce(page, true);
	list_del(&page->link);
	mtree_erase(page->cache->pages, page_first(page));
	page->cache->free(page->code);
	kfree_rcu(page, rcu);
}

static kprobe_opcode_t *get_slot(struct slot_cache *cache, struct kprobe *owner)
{
	struct slot_page *page;
	unsigned int i;

	lockdep_assert_held(&kprobe_mutex);
	page = list_first_entry_or_null(&cache->open_pages, struct slot_page, link) ?:
	       add_page(cache);
	if (!page)
		return NULL;
	i = find_first_zero_bit(page->used, page->slots);
	__set_bit(i, page->used);
	WRITE_ONCE(page->owner[i], owner);
	if (bitmap_full(page->used, page->slots))
		list_del_init(&page->link);
	return page->code + i * cache->slot_bytes;
}

static void free_slot(struct maple_tree *pages, kprobe_opcode_t *slot)
{
	struct slot_page *page = mtree_load(pages, (unsigned long)slot);
	unsigned int i;

	lockdep_assert_held(&kprobe_mutex);
	if (WARN_ON_ONCE(!page))
		return;
	i = ((void *)slot - page->code) / page->cache->slot_bytes;
	WARN_ON_ONCE(!__test_and_clear_bit(i, page->used));
	WRITE_ONCE(page->owner[i], NULL);
	if (list_empty(&page->link))
		list_add(&page->link, &page->cache->open_pages);
	if (bitmap_empty(page->used, page->slots))
		remove_page(page);
}

static struct kprobe *slot_owner(struct maple_tree *pages, unsigned long addr)
{
	struct slot_page *page = mtree_load(pages, addr);
	unsigned long i;

	if (!page)
		return NULL;
	i = (addr - page_first(page)) / page->cache->slot_bytes;
	return i < page->slots ? READ_ONCE(page->owner[i]) : NULL;
}

/**
 * get_insn_slot_for - Allocate a slot
 * @owner: What kprobe_slot_owner() shall say of it.
 *
 * Context: Process context, kprobe_mutex held.
 * Return: The slot, or NULL.
 */
kprobe_opcode_t *get_insn_slot_for(struct kprobe *owner)
{
	return get_slot(&insn_slots, owner);
}

/**
 * get_insn_slot - Allocate a slot of which nobody asks for the owner
 *
 * Context: As get_insn_slot_for().
 * Return: The slot, or NULL.
 */
kprobe_opcode_t *get_insn_slot(void)
{
	return get_insn_slot_for(NULL);
}

/**
 * free_insn_slot - Free a slot
 * @slot: The slot. No task can be in it any more: see site_retire().
 * @dirty: Of no importance.
 *
 * Context: Process context, kprobe_mutex held.
 */
void free_insn_slot(kprobe_opcode_t *slot, int dirty)
{
	free_slot(&insn_pages, slot);
}

/**
 * is_kprobe_insn_slot - Ask whether an address is in a page of slots
 * @addr: The address.
 *
 * Context: Any in which RCU is watching.
 * Return: Whether it is.
 */
bool is_kprobe_insn_slot(unsigned long addr)
{
	return mtree_load(&insn_pages, addr);
}

/**
 * kprobe_slot_owner - Find out whose slot an address is in
 * @addr: The address.
 *
 * Context: Any in which RCU is watching. Preemption is off, or it is an RCU
 *	reader, for as long as the result is used.
 * Return: The owner, or NULL.
 */
struct kprobe *kprobe_slot_owner(unsigned long addr)
{
	return slot_owner(&insn_pages, addr);
}

#ifdef CONFIG_OPTPROBES

/**
 * alloc_optinsn_page - Allocate a page for detours
 *
 * Context: Process context. May sleep.
 * Return: The page, executable and within reach of a jump, or NULL.
 */
void *__weak alloc_optinsn_page(void)
{
	return alloc_insn_page();
}

/**
 * free_optinsn_page - Free a page for detours
 * @page: The page.
 *
 * Context: Process context. May sleep.
 */
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
 * get_optinsn_slot_for - Allocate a slot for a detour
 * @owner: What kprobe_optinsn_slot_owner() shall say of it.
 *
 * Context: As get_insn_slot_for().
 * Return: The slot, or NULL.
 */
kprobe_opcode_t *get_optinsn_slot_for(struct kprobe *owner)
{
	return get_slot(&optinsn_slots, owner);
}

#ifdef MAX_POST_OPTINSN_SIZE
static struct slot_cache post_optinsn_slots = {
	.name = "kprobe_optinsn_page",
	.slot_bytes = MAX_POST_OPTINSN_SIZE * sizeof(kprobe_opcode_t),
	.pages = &optinsn_pages,
	.open_pages = LIST_HEAD_INIT(post_optinsn_slots.open_pages),
	.alloc = alloc_optinsn_page,
	.free = free_optinsn_page,
};

/**
 * get_post_optinsn_slot_for - Allocate a slot for what a detour does with post handlers
 * @owner: What kprobe_optinsn_slot_owner() is to say of it.
 *
 * For an architecture that needs more room there, MAX_POST_OPTINSN_SIZE units. It is
 * freed by free_optinsn_slot().
 *
 * Context: As get_insn_slot_for().
 * Return: The slot, or NULL.
 */
kprobe_opcode_t *get_post_optinsn_slot_for(struct kprobe *owner)
{
	return get_slot(&post_optinsn_slots, owner);
}
#endif

/**
 * get_optinsn_slot - Allocate a slot for a detour of which nobody asks for the owner
 *
 * Context: As get_insn_slot_for().
 * Return: The slot, or NULL.
 */
kprobe_opcode_t *get_optinsn_slot(void)
{
	return get_optinsn_slot_for(NULL);
}

/**
 * free_optinsn_slot - Free a detour's slot
 * @slot: The slot. No task can be in it any more.
 * @dirty: Of no importance.
 *
 * Context: As free_insn_slot().
 */
void free_optinsn_slot(kprobe_opcode_t *slot, int dirty)
{
	free_slot(&optinsn_pages, slot);
}

/**
 * is_kprobe_optinsn_slot - Ask whether an address is in a page of detours
 * @addr: The address.
 *
 * Context: As is_kprobe_insn_slot().
 * Return: Whether it is.
 */
bool is_kprobe_optinsn_slot(unsigned long addr)
{
	return mtree_load(&optinsn_pages, addr);
}

/**
 * kprobe_optinsn_slot_owner - Find out whose detour an address is in
 * @addr: The address.
 *
 * Context: As kprobe_slot_owner().
 * Return: The owner, or NULL.
 */
struct kprobe *kprobe_optinsn_slot_owner(unsigned long addr)
{
	return slot_owner(&optinsn_pages, addr);
}

#endif /* CONFIG_OPTPROBES */

/* slots_init - Prepare for the first slot. */
void __init slots_init(void)
{
#ifdef CONFIG_OPTPROBES
	/* To some architectures it is a difference of two addresses. */
	optinsn_slots.slot_bytes = MAX_OPTINSN_SIZE * sizeof(kprobe_opcode_t);
#endif
}

static struct maple_tree *const page_trees[] = {
	&insn_pages,
#ifdef CONFIG_OPTPROBES
	&optinsn_pages,
#endif
};

/**
 * kprobe_get_kallsym - Name the pages of slots for /proc/kallsyms
 * @symnum: Which page, from 0.
 * @value: Set to its address.
 * @type: Set to its type.
 * @sym: Set to its name, of at the most KSYM_NAME_LEN bytes.
 *
 * Context: Process context.
 * Return: 0, or -ERANGE if there are not so many.
 */
int kprobe_get_kallsym(unsigned int symnum, unsigned long *value, char *type, char *sym)
{
	struct slot_page *page;
	unsigned long addr;

	guard(rcu)();
	for (unsigned int i = 0; i < ARRAY_SIZE(page_trees); i++) {
		addr = 0;
		mt_for_each(page_trees[i], page, addr, ULONG_MAX) {
			if (symnum--)
				continue;
			strscpy(sym, page->cache->name, KSYM_NAME_LEN);
			*type = 't';
			*value = page_first(page);
			return 0;
		}
	}
	return -ERANGE;
}
