// SPDX-License-Identifier: GPL-2.0
/*
 * Instructions that others patch, or find by their address: jump labels, static
 * calls, and where bugs and warnings trap.
 *
 * Each text that is probed, the kernel's or a module's, has a sorted array of
 * where they are. It is made when it is first asked.
 */
#include "internal.h"

#include <linux/bsearch.h>
#include <linux/bug.h>
#include <linux/jump_label.h>
#include <linux/maple_tree.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/static_call.h>

#include <asm/sections.h>

/**
 * struct reserved_index - The reserved instructions of a text
 * @start:	Where the text starts.
 * @size:	How many bytes it has.
 * @count:	How many of its instructions are reserved.
 * @offset:	Where each starts, in bytes from @start, in ascending order.
 */
struct reserved_index {
	unsigned long start;
	unsigned long size;
	unsigned int count;
	u32 *offset;
};

/* The index of each text that has one, by its addresses. kprobe_mutex. */
static struct maple_tree indexes = MTREE_INIT(indexes, 0);

/* Without room for offsets, only count. */
static void add(struct reserved_index *index, unsigned long addr)
{
	if (addr - index->start >= index->size)
		return;
	if (index->offset)
		index->offset[index->count] = addr - index->start;
	index->count++;
}

#ifdef CONFIG_JUMP_LABEL
static void add_jump_labels(struct reserved_index *index, const struct module *mod)
{
	const struct jump_entry *entry = __start___jump_table, *stop = __stop___jump_table;

	if (mod) {
		entry = mod->jump_entries;
		stop = entry + mod->num_jump_entries;
	}
	for (; entry < stop; entry++)
		add(index, jump_entry_code(entry));
}
#else
static void add_jump_labels(struct reserved_index *index, const struct module *mod) { }
#endif

#ifdef CONFIG_HAVE_STATIC_CALL_INLINE
extern struct static_call_site __start_static_call_sites[], __stop_static_call_sites[];

static void add_static_calls(struct reserved_index *index, const struct module *mod)
{
	const struct static_call_site *site = __start_static_call_sites;
	const struct static_call_site *stop = __stop_static_call_sites;

	if (mod) {
		site = mod->static_call_sites;
		stop = site + mod->num_static_call_sites;
	}
	for (; site < stop; site++)
		add(index, (unsigned long)&site->addr + site->addr);
}
#else
static void add_static_calls(struct reserved_index *index, const struct module *mod) { }
#endif

#ifdef CONFIG_GENERIC_BUG
extern struct bug_entry __start___bug_table[], __stop___bug_table[];

static unsigned long bug_insn(const struct bug_entry *bug)
{
#ifdef CONFIG_GENERIC_BUG_RELATIVE_POINTERS
	return (unsigned long)&bug->bug_addr_disp + bug->bug_addr_disp;
#else
	return bug->bug_addr;
#endif
}

static void add_bugs(struct reserved_index *index, const struct module *mod)
{
	const struct bug_entry *bug = __start___bug_table, *stop = __stop___bug_table;

	if (mod) {
		bug = mod->bug_table;
		stop = bug + mod->num_bugs;
	}
	for (; bug < stop; bug++)
		add(index, bug_insn(bug));
}
#else
static void add_bugs(struct reserved_index *index, const struct module *mod) { }
#endif

static void add_all(struct reserved_index *index, const struct module *mod)
{
	index->count = 0;
	add_jump_labels(index, mod);
	add_static_calls(index, mod);
	add_bugs(index, mod);
}

static int compare_offsets(const void *a, const void *b)
{
	const u32 *left = a, *right = b;

	return *left < *right ? -1 : *left > *right;
}

static void free_index(struct reserved_index *index)
{
	if (index)
		kvfree(index->offset);
	kfree(index);
}

DEFINE_FREE(free_index, struct reserved_index *, free_index(_T))

static struct reserved_index *make_index(unsigned long start, unsigned long size,
					 const struct module *mod)
{
	struct reserved_index *index __free(free_index) = kzalloc(sizeof(*index), GFP_KERNEL);

	if (!index)
		return NULL;
	index->start = start;
	index->size = size;
	add_all(index, mod);
	index->offset = kvmalloc_array(index->count + 1, sizeof(*index->offset), GFP_KERNEL);
	if (!index->offset)
		return NULL;
	add_all(index, mod);
	sort(index->offset, index->count, sizeof(*index->offset), compare_offsets, NULL);
	if (mtree_insert_range(&indexes, start, start + size - 1, index, GFP_KERNEL))
		return NULL;
	return no_free_ptr(index);
}

/*
 * A module's tables are put in order while it is on its way in; and before it has
 * left for good, whatever asks for its text is refused.
 */
static struct reserved_index *make_index_at(unsigned long addr)
{
	unsigned long start = (unsigned long)_stext;
	struct module *mod;

	if (core_kernel_text(addr))
		return addr - start < (unsigned long)_etext - start ?
		       make_index(start, (unsigned long)_etext - start, NULL) : NULL;

	scoped_guard(preempt)
		mod = __module_text_address(addr);
	if (!mod || mod->state != MODULE_STATE_LIVE || !within_module_mem_type(addr, mod, MOD_TEXT))
		return NULL;
	return make_index((unsigned long)mod->mem[MOD_TEXT].base, mod->mem[MOD_TEXT].size, mod);
}

static bool is_in_index(const struct reserved_index *index, unsigned long addr)
{
	u32 offset = addr - index->start;

	return bsearch(&offset, index->offset, index->count, sizeof(offset), compare_offsets);
}

/**
 * kprobe_reserved - Ask whether an instruction is reserved
 * @addr: The address of an instruction, in the text of the kernel or of a module
 *	that is not going.
 *
 * Context: Process context with kprobe_mutex and jump_label_lock() held.
 * Return: Whether it is.
 */
bool kprobe_reserved(unsigned long addr)
{
	const struct reserved_index *index;
	void *text = (void *)addr;

	lockdep_assert_held(&kprobe_mutex);
	index = mtree_load(&indexes, addr) ?: make_index_at(addr);
	if (index)
		return is_in_index(index, addr);
	return jump_label_text_reserved(text, text) ||
	       static_call_text_reserved(text, text) ||
	       find_bug(addr);
}

/* reserved_forget_module - A module goes: forget about its text. */
void reserved_forget_module(const struct module *mod)
{
	lockdep_assert_held(&kprobe_mutex);
	free_index(mtree_erase(&indexes, (unsigned long)mod->mem[MOD_TEXT].base));
}
