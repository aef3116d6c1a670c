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
 * @key:	Their offsets from @start in bytes, times two; plus one if others patch them.
 *		In ascending order.
 */
struct reserved_index {
	unsigned long start;
	unsigned int count;
	u32 *key;
};

/* The index of each text that has one, by address. kprobe_mutex. */
static struct maple_tree reserved_indexes = MTREE_INIT(reserved_indexes, 0);

/* On the first pass, before the keys are allocated, only count. */
static void reserved_add(void *data, const struct text_entry *entry)
{
	struct reserved_index *index = data;

	if (index->key)
		index->key[index->count] = (entry->addr - index->start) * 2 +
					   (entry->kind != TEXT_BUG);
	index->count++;
}

static void reserved_add_all(struct reserved_index *index, const struct text_tables *tables)
{
	index->count = 0;
	text_tables_walk(tables, reserved_add, index);
}

static int reserved_key_cmp(const void *a, const void *b)
{
	u32 left = *(const u32 *)a / 2, right = *(const u32 *)b / 2;

	return left < right ? -1 : left > right;
}

static void reserved_index_free(struct reserved_index *index)
{
	if (index)
		kvfree(index->key);
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
	index->key = kvmalloc_array(index->count + 1, sizeof(*index->key),
				    GFP_KERNEL | __GFP_NOWARN);
	if (!index->key)
		return NULL;
	reserved_add_all(index, tables);
	sort(index->key, index->count, sizeof(*index->key), reserved_key_cmp, NULL);
	if (mtree_insert_range(&reserved_indexes, start, last, index, GFP_KERNEL))
		return NULL;
	return no_free_ptr(index);
}

static struct reserved_index *reserved_index_create_at(unsigned long addr)
{
	struct text_tables tables;

	return text_tables_find(addr, &tables) ? reserved_index_create(&tables) : NULL;
}

static struct reserved_index *reserved_index_of(unsigned long addr)
{
	lockdep_assert_held(&kprobe_mutex);
	return mtree_load(&reserved_indexes, addr) ?: reserved_index_create_at(addr);
}

/* The key of the instruction at @addr, or NULL. */
static const u32 *reserved_index_find(const struct reserved_index *index, unsigned long addr)
{
	u32 key = (addr - index->start) * 2;

	return bsearch(&key, index->key, index->count, sizeof(key), reserved_key_cmp);
}

static bool is_patched_without_index(unsigned long addr)
{
	void *text = (void *)addr;

	return jump_label_text_reserved(text, text) || static_call_text_reserved(text, text);
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
	const struct reserved_index *index = reserved_index_of(addr);

	if (index)
		return reserved_index_find(index, addr);
	return is_patched_without_index(addr) || find_bug(addr);
}

/**
 * kprobe_text_is_patched() - Check for an instruction that others patch
 * @addr: The address.
 *
 * The trap of a BUG() is reserved, but not patched.
 *
 * Context: See kprobe_reserved().
 * Return: true if an instruction at @addr is a static branch or a static call.
 */
bool kprobe_text_is_patched(unsigned long addr)
{
	const struct reserved_index *index = reserved_index_of(addr);
	const u32 *key;

	if (!index)
		return is_patched_without_index(addr);
	key = reserved_index_find(index, addr);
	return key && *key % 2;
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
