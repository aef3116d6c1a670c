// SPDX-License-Identifier: GPL-2.0
/*
 * Instructions that must not be probed since other users patch them or find them by
 * address
 *
 * Each probed text, the kernel's or a module's, has a sorted array of the instructions
 * that its tables list. It is allocated at the first check.
 */
#include "internal.h"

#include <linux/bsearch.h>
#include <linux/bug.h>
#include <linux/jump_label.h>
#include <linux/kernel.h>
#include <linux/kprobes_tables.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/static_call.h>

/**
 * struct reserved_index - Reserved instructions of a text
 * @start:	Start of the text.
 * @count:	The number of reserved instructions.
 * @offset:	Their offsets from @start in bytes, in ascending order.
 */
struct reserved_index {
	unsigned long start;
	unsigned int count;
	u32 *offset;
};

/* The index of each text that has one, by address. kprobe_mutex. */
static struct maple_tree reserved_indexes = MTREE_INIT(reserved_indexes, 0);

/* On the first pass, before the offsets are allocated, only count. */
static void reserved_add(void *data, const struct text_entry *entry)
{
	struct reserved_index *index = data;

	if (index->offset)
		index->offset[index->count] = entry->addr - index->start;
	index->count++;
}

static void reserved_add_all(struct reserved_index *index, const struct text_tables *tables)
{
	index->count = 0;
	text_tables_walk(tables, reserved_add, index);
}

static int reserved_offset_cmp(const void *a, const void *b)
{
	const u32 *left = a, *right = b;

	return *left < *right ? -1 : *left > *right;
}

static void reserved_index_free(struct reserved_index *index)
{
	if (index)
		kvfree(index->offset);
	kfree(index);
}

DEFINE_FREE(free_index, struct reserved_index *, reserved_index_free(_T))

static struct reserved_index *reserved_index_create(const struct text_tables *tables)
{
	struct reserved_index *index __free(free_index) = kzalloc(sizeof(*index), GFP_KERNEL);
	unsigned long start = tables->start, last = start + tables->size - 1;

	if (!index)
		return NULL;
	index->start = start;
	reserved_add_all(index, tables);
	index->offset = kvmalloc_array(index->count + 1, sizeof(*index->offset), GFP_KERNEL);
	if (!index->offset)
		return NULL;
	reserved_add_all(index, tables);
	sort(index->offset, index->count, sizeof(*index->offset), reserved_offset_cmp, NULL);
	if (mtree_insert_range(&reserved_indexes, start, last, index, GFP_KERNEL))
		return NULL;
	return no_free_ptr(index);
}

static struct reserved_index *reserved_index_create_at(unsigned long addr)
{
	struct text_tables tables;

	return text_tables_find(addr, &tables) ? reserved_index_create(&tables) : NULL;
}

static bool reserved_index_has(const struct reserved_index *index, unsigned long addr)
{
	u32 offset = addr - index->start;

	return bsearch(&offset, index->offset, index->count, sizeof(offset), reserved_offset_cmp);
}

/**
 * kprobe_reserved() - Check for an instruction with another user
 * @addr: The address, in the text of the kernel or of a module that is not being
 *	unloaded.
 *
 * Context: Process context with kprobe_mutex and jump_label_lock() held.
 * Return: true if an instruction at @addr is reserved.
 */
bool kprobe_reserved(unsigned long addr)
{
	const struct reserved_index *index;
	void *text = (void *)addr;

	lockdep_assert_held(&kprobe_mutex);
	index = mtree_load(&reserved_indexes, addr) ?: reserved_index_create_at(addr);
	if (index)
		return reserved_index_has(index, addr);
	return jump_label_text_reserved(text, text) ||
	       static_call_text_reserved(text, text) ||
	       find_bug(addr);
}

/* kprobe_reserved_for() - The user for whom kprobe_reserved() has found the instruction */
const char *kprobe_reserved_for(unsigned long addr)
{
	void *text = (void *)addr;

	if (jump_label_text_reserved(text, text))
		return "a static branch: its jump label is patched";
	if (static_call_text_reserved(text, text))
		return "a static call: it is patched";
	return "the trap of a BUG() or WARN(), which is found by its address";
}

/* reserved_forget_text() - Free the index of the text from @start to @end, if there is one */
void reserved_forget_text(unsigned long start, unsigned long end)
{
	struct reserved_index *index = mtree_load(&reserved_indexes, start);

	lockdep_assert_held(&kprobe_mutex);
	range_tree_clear(&reserved_indexes, start, end);
	reserved_index_free(index);
}
