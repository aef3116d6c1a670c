// SPDX-License-Identifier: GPL-2.0
/*
 * Executable memory for copied instructions and detours: slots, many to a page. The
 * owner of an address is looked up in any context, for instance by the unwinder.
 */
#include "internal.h"

#include <linux/array_size.h>
#include <linux/bitmap.h>
#include <linux/build_bug.h>
#include <linux/execmem.h>
#include <linux/init.h>
#include <linux/kallsyms.h>
#include <linux/perf_event.h>
#include <linux/slab.h>
#include <linux/string.h>

#define SLOT_BYTES		(KPROBE_SLOT_SIZE * sizeof(kprobe_opcode_t))
#define MAX_SLOTS_PER_PAGE	(PAGE_SIZE / SLOT_BYTES)

/* Slots of one size */
struct slot_cache {
	const char *name;		/* of a page in /proc/kallsyms */
	unsigned int slot_bytes;
	struct list_head open_pages;	/* pages with a free slot; kprobe_mutex */
	void *(*alloc)(void);		/* a page */
	void (*free)(void *page);
};

/* A page of slots */
struct slot_page {
	void *code;
	struct slot_cache *cache;
	struct list_head link;		/* in @cache->open_pages if a slot is free; kprobe_mutex */
	/*
	 * Defers freeing until no reader uses it but one on a CPU that RCU does not watch yet:
	 * nothing keeps the nodes of the tree for such a reader, either.
	 */
	struct rcu_head rcu;
	unsigned int slots;
	DECLARE_BITMAP(used, MAX_SLOTS_PER_PAGE);	/* kprobe_mutex */
	struct kprobe *owner[] __counted_by(slots);	/* kprobe_mutex; read under RCU */
};

void *__weak alloc_insn_page(void)
{
	return execmem_alloc(EXECMEM_KPROBES, PAGE_SIZE);
}

/* All pages, by address. Read under RCU. */
static struct maple_tree slot_pages = MTREE_INIT(slot_pages, MT_FLAGS_USE_RCU);

static struct slot_cache insn_slots = {
	.name = "kprobe_insn_page",
	.slot_bytes = SLOT_BYTES,
	.open_pages = LIST_HEAD_INIT(insn_slots.open_pages),
	.alloc = alloc_insn_page,
	.free = execmem_free,
};

static unsigned long slot_page_start(const struct slot_page *page)
{
	return (unsigned long)page->code;
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
	if (mtree_insert_range(&slot_pages, slot_page_start(page),
			       slot_page_start(page) + PAGE_SIZE - 1, page, GFP_KERNEL)) {
		cache->free(page->code);
		return NULL;
	}
	list_add(&page->link, &cache->open_pages);
	perf_event_ksymbol(PERF_RECORD_KSYMBOL_TYPE_OOL, slot_page_start(page), PAGE_SIZE, false,
			   cache->name);
	return no_free_ptr(page);
}

static void slot_page_remove(struct slot_page *page)
{
	perf_event_ksymbol(PERF_RECORD_KSYMBOL_TYPE_OOL, slot_page_start(page), PAGE_SIZE, true,
			   page->cache->name);
	list_del(&page->link);
	range_tree_clear(&slot_pages, slot_page_start(page), slot_page_start(page) + PAGE_SIZE);
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

/* The owner of the slot of an instruction, or of a detour, at an address, or NULL. */
static struct kprobe *slot_owner(unsigned long addr, bool detour)
{
	const struct slot_page *page = mtree_load(&slot_pages, addr);
	bool is_detour = page && page->cache != &insn_slots;
	unsigned long i;

	if (!page || is_detour != detour)
		return NULL;
	i = (addr - slot_page_start(page)) / page->cache->slot_bytes;
	return i < page->slots ? READ_ONCE(page->owner[i]) : NULL;
}

/*
 * kprobe_get_insn_slot() - Allocate a slot of @owner, see kprobe_slot_owner(); or NULL
 *
 * kprobe_mutex is held. May sleep.
 */
kprobe_opcode_t *kprobe_get_insn_slot(struct kprobe *owner)
{
	return slot_alloc(&insn_slots, owner);
}

/* get_insn_slot() - kprobe_get_insn_slot(), without an owner */
kprobe_opcode_t *get_insn_slot(void)
{
	return kprobe_get_insn_slot(NULL);
}

/*
 * free_insn_slot() - Free a slot, also one of a detour, or NULL; kprobe_mutex is held
 *
 * No task may be in it: see kprobe_site_retire(). @dirty is ignored.
 */
void free_insn_slot(kprobe_opcode_t *slot, int dirty)
{
	struct slot_page *page = mtree_load(&slot_pages, (unsigned long)slot);
	unsigned int i;

	lockdep_assert_held(&kprobe_mutex);
	if (!slot || WARN_ON_ONCE(!page))
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

/* is_kprobe_insn_slot() - True if @addr is in a page of slots or detours; RCU is watching */
bool is_kprobe_insn_slot(unsigned long addr)
{
	return mtree_load(&slot_pages, addr);
}

/*
 * kprobe_slot_owner() - The owner of the slot at @addr, or NULL
 *
 * Any context in which RCU is watching. While the result is used, preemption is off or the caller
 * is an RCU reader.
 */
struct kprobe *kprobe_slot_owner(unsigned long addr)
{
	return slot_owner(addr, false);
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

/* Most architectures have detours of one size. */
#ifndef KPROBE_OPTINSN_SIZES
#define KPROBE_OPTINSN_SIZES	{ MAX_OPTINSN_SIZE }
#endif

/* In ascending order of their sizes; those at the end may be unused. */
static struct slot_cache optinsn_slots[8];

static int __init optinsn_slots_init(void)
{
	/* On some architectures a size is a difference of two addresses. */
	const unsigned int sizes[] = KPROBE_OPTINSN_SIZES;

	BUILD_BUG_ON(ARRAY_SIZE(sizes) > ARRAY_SIZE(optinsn_slots));
	/* More slots than that have no bit in @used. */
	BUILD_BUG_ON(__builtin_constant_p(sizes[0]) && sizes[0] < KPROBE_SLOT_SIZE);
	for (unsigned int i = 0; i < ARRAY_SIZE(sizes); i++) {
		optinsn_slots[i] = (struct slot_cache){
			.name = "kprobe_optinsn_page",
			.slot_bytes = sizes[i] * sizeof(kprobe_opcode_t),
			.open_pages = LIST_HEAD_INIT(optinsn_slots[i].open_pages),
			.alloc = alloc_optinsn_page,
			.free = free_optinsn_page,
		};
	}
	return 0;
}
early_initcall(optinsn_slots_init);

/*
 * kprobe_get_optinsn_slot() - kprobe_get_insn_slot(), for a detour or for a part of one
 *
 * It has @size units, or more. @size is at most the last of KPROBE_OPTINSN_SIZES.
 */
kprobe_opcode_t *kprobe_get_optinsn_slot(struct kprobe *owner, unsigned int size)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(optinsn_slots); i++)
		if (size * sizeof(kprobe_opcode_t) <= optinsn_slots[i].slot_bytes)
			return slot_alloc(&optinsn_slots[i], owner);
	WARN_ON_ONCE(1);
	return NULL;
}

/* get_optinsn_slot() - Allocate a slot of MAX_OPTINSN_SIZE units without an owner */
kprobe_opcode_t *get_optinsn_slot(void)
{
	return kprobe_get_optinsn_slot(NULL, MAX_OPTINSN_SIZE);
}

/* kprobe_optinsn_slot_owner() - kprobe_slot_owner(), for a detour */
struct kprobe *kprobe_optinsn_slot_owner(unsigned long addr)
{
	return slot_owner(addr, true);
}

#endif /* CONFIG_OPTPROBES */

/*
 * kprobe_get_kallsym() - Describe page @symnum of slots, from 0, to /proc/kallsyms
 *
 * @sym has KSYM_NAME_LEN bytes. Returns 0, or -ERANGE if there are no more pages. Any context.
 */
int kprobe_get_kallsym(unsigned int symnum, unsigned long *value, char *type, char *sym)
{
	struct slot_page *page;
	unsigned long addr = 0;

	guard(rcu)();
	mt_for_each(&slot_pages, page, addr, ULONG_MAX) {
		if (symnum--)
			continue;
		strscpy(sym, page->cache->name, KSYM_NAME_LEN);
		*type = 't';
		*value = slot_page_start(page);
		return 0;
	}
	return -ERANGE;
}
