// SPDX-License-Identifier: GPL-2.0
/*
 * Instructions that other users patch or find by address: jump labels, static calls, and
 * the traps of BUG() and WARN()
 *
 * Each probed text, the kernel's or a module's, has a sorted array of their addresses. It
 * is allocated at the first check.
 */
#include "internal.h"

#include <linux/bsearch.h>
#include <linux/bug.h>
#include <linux/jump_label.h>
#include <linux/kernel.h>
#include <linux/maple_tree.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/static_call.h>

#include <asm/sections.h>

/**
 * struct reserved_index - Reserved instructions of a text
 * @start:	Start of the text.
 * @size:	Size of the text in bytes.
 * @count:	The number of reserved instructions.
 * @offset:	Their offsets from @start in bytes, in ascending order.
 */
struct reserved_index {
	unsigned long start;
	unsigned long size;
	unsigned int count;
	u32 *offset;
};

/* The index of each text that has one, by address. kprobe_mutex. */
static struct maple_tree reserved_indexes = MTREE_INIT(reserved_indexes, 0);

/* On the first pass, before the offsets are allocated, only count. */
static void reserved_add(struct reserved_index *index, unsigned long addr)
{
	if (addr - index->start >= index->size)
		return;
	if (index->offset)
		index->offset[index->count] = addr - index->start;
	index->count++;
}

#ifdef CONFIG_JUMP_LABEL
static void add_jump_labels(struct reserved_index *index, const struct text_tables *tables)
{
	const struct jump_entry *entry;

	for (entry = tables->jumps; entry < tables->jumps_stop; entry++)
		reserved_add(index, jump_entry_code(entry));
}

static void core_jump_labels(struct text_tables *tables)
{
	tables->jumps = __start___jump_table;
	tables->jumps_stop = __stop___jump_table;
}
#else
static void add_jump_labels(struct reserved_index *index, const struct text_tables *tables) { }
static void core_jump_labels(struct text_tables *tables) { }
#endif

#ifdef CONFIG_HAVE_STATIC_CALL_INLINE
extern struct static_call_site __start_static_call_sites[], __stop_static_call_sites[];

static void add_static_calls(struct reserved_index *index, const struct text_tables *tables)
{
	const struct static_call_site *site;

	for (site = tables->calls; site < tables->calls_stop; site++)
		reserved_add(index, (unsigned long)&site->addr + site->addr);
}

static void core_static_calls(struct text_tables *tables)
{
	tables->calls = __start_static_call_sites;
	tables->calls_stop = __stop_static_call_sites;
}
#else
static void add_static_calls(struct reserved_index *index, const struct text_tables *tables) { }
static void core_static_calls(struct text_tables *tables) { }
#endif

#ifdef CONFIG_GENERIC_BUG
extern struct bug_entry __start___bug_table[], __stop___bug_table[];

static unsigned long bug_insn_addr(const struct bug_entry *bug)
{
#ifdef CONFIG_GENERIC_BUG_RELATIVE_POINTERS
	return (unsigned long)&bug->bug_addr_disp + bug->bug_addr_disp;
#else
	return bug->bug_addr;
#endif
}

static void add_bugs(struct reserved_index *index, const struct text_tables *tables)
{
	const struct bug_entry *bug;

	for (bug = tables->bugs; bug < tables->bugs_stop; bug++)
		reserved_add(index, bug_insn_addr(bug));
}

static void core_bugs(struct text_tables *tables)
{
	tables->bugs = __start___bug_table;
	tables->bugs_stop = __stop___bug_table;
}
#else
static void add_bugs(struct reserved_index *index, const struct text_tables *tables) { }
static void core_bugs(struct text_tables *tables) { }
#endif

static void reserved_add_all(struct reserved_index *index, const struct text_tables *tables)
{
	index->count = 0;
	add_jump_labels(index, tables);
	add_static_calls(index, tables);
	add_bugs(index, tables);
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
	index->size = tables->size;
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

static bool core_text_tables(unsigned long addr, struct text_tables *tables)
{
	tables->start = (unsigned long)_stext;
	tables->size = (unsigned long)_etext - tables->start;
	core_jump_labels(tables);
	core_static_calls(tables);
	core_bugs(tables);
	return addr - tables->start < tables->size;
}

static struct reserved_index *reserved_index_create_at(unsigned long addr)
{
	struct text_tables tables = { };
	bool found = core_kernel_text(addr) ? core_text_tables(addr, &tables) :
					      module_text_tables(addr, &tables);

	return found ? reserved_index_create(&tables) : NULL;
}

static bool reserved_index_has(const struct reserved_index *index, unsigned long addr)
{
	u32 offset = addr - index->start;

	return bsearch(&offset, index->offset, index->count, sizeof(offset), reserved_offset_cmp);
}

/**
 * kprobe_reserved() - Check an instruction for another user
 * @addr: The address of an instruction, in the text of the kernel or of a module
 *	that is not being unloaded.
 *
 * Context: Process context with kprobe_mutex and jump_label_lock() held.
 * Return: true if the instruction is reserved.
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

/* reserved_forget_text() - Free the index of a text that starts at @start */
void reserved_forget_text(unsigned long start)
{
	lockdep_assert_held(&kprobe_mutex);
	reserved_index_free(mtree_erase(&reserved_indexes, start));
}
