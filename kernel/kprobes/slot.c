// SPDX-License-Identifier: GPL-2.0
/*
 * Executable memory for copied instructions: slots of KPROBE_SLOT_SIZE units, many
 * to a page. Which page an address belongs to is asked in any context, for
 * instance by the unwinder.
 */
#include "internal.h"

#include <linux/bitmap.h>
#include <linux/execmem.h>
#include <linux/maple_tree.h>
#include <linux/mm.h>
#include <linux/perf_event.h>
#include <linux/slab.h>

#define SLOT_BYTES	(KPROBE_SLOT_SIZE * sizeof(kprobe_opcode_t))
#define SLOTS_PER_PAGE	(PAGE_SIZE / SLOT_BYTES)
#define SLOT_PAGE_NAME	"kprobe_insn_page"

/**
 * struct slot_page - A page of slots
 * @code:	The page.
 * @link:	In @open_pages if a slot is free. kprobe_mutex.
 * @rcu:	For the time after the last look at it.
 * @used:	A bit a slot. kprobe_mutex.
 * @owner:	Whose slot it is. Written under kprobe_mutex, read under RCU.
 */
struct slot_page {
	kprobe_opcode_t *code;
	struct list_head link;
	struct rcu_head rcu;
	DECLARE_BITMAP(used, SLOTS_PER_PAGE);
	struct kprobe *owner[SLOTS_PER_PAGE];
};

/* All pages, by address. Read under RCU. */
static struct maple_tree slot_pages = MTREE_INIT(slot_pages, MT_FLAGS_USE_RCU);
static LIST_HEAD(open_pages);

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

static unsigned long page_last(const struct slot_page *page)
{
	return (unsigned long)page->code + PAGE_SIZE - 1;
}

static void announce(const struct slot_page *page, bool freed)
{
	perf_event_ksymbol(PERF_RECORD_KSYMBOL_TYPE_OOL, (unsigned long)page->code,
			   PAGE_SIZE, freed, SLOT_PAGE_NAME);
}

static struct slot_page *add_page(void)
{
	struct slot_page *page __free(kfree) = kzalloc(sizeof(*page), GFP_KERNEL);

	if (!page)
		return NULL;
	page->code = alloc_insn_page();
	if (!page->code)
		return NULL;
	if (mtree_insert_range(&slot_pages, (unsigned long)page->code, page_last(page), page,
			       GFP_KERNEL)) {
		execmem_free(page->code);
		return NULL;
	}
	list_add(&page->link, &open_pages);
	announce(page, false);
	return no_free_ptr(page);
}

static void remove_page(struct slot_page *page)
{
	announce(page, true);
	list_del(&page->link);
	mtree_erase(&slot_pages, (unsigned long)page->code);
	execmem_free(page->code);
	kfree_rcu(page, rcu);
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
	struct slot_page *page;
	unsigned int i;

	lockdep_assert_held(&kprobe_mutex);
	page = list_first_entry_or_null(&open_pages, struct slot_page, link) ?: add_page();
	if (!page)
		return NULL;
	i = find_first_zero_bit(page->used, SLOTS_PER_PAGE);
	__set_bit(i, page->used);
	WRITE_ONCE(page->owner[i], owner);
	if (bitmap_full(page->used, SLOTS_PER_PAGE))
		list_del_init(&page->link);
	return page->code + i * KPROBE_SLOT_SIZE;
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
	struct slot_page *page = mtree_load(&slot_pages, (unsigned long)slot);
	unsigned int i;

	lockdep_assert_held(&kprobe_mutex);
	if (WARN_ON_ONCE(!page))
		return;
	i = (slot - page->code) / KPROBE_SLOT_SIZE;
	WARN_ON_ONCE(!__test_and_clear_bit(i, page->used));
	WRITE_ONCE(page->owner[i], NULL);
	if (list_empty(&page->link))
		list_add(&page->link, &open_pages);
	if (bitmap_empty(page->used, SLOTS_PER_PAGE))
		remove_page(page);
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
	return mtree_load(&slot_pages, addr);
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
	struct slot_page *page = mtree_load(&slot_pages, addr);
	unsigned long i;

	if (!page)
		return NULL;
	i = (addr - (unsigned long)page->code) / SLOT_BYTES;
	return i < SLOTS_PER_PAGE ? READ_ONCE(page->owner[i]) : NULL;
}

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
	unsigned long addr = 0;

	guard(rcu)();
	mt_for_each(&slot_pages, page, addr, ULONG_MAX) {
		if (symnum--)
			continue;
		strscpy(sym, SLOT_PAGE_NAME, KSYM_NAME_LEN);
		*type = 't';
		*value = (unsigned long)page->code;
		return 0;
	}
	return -ERANGE;
}
