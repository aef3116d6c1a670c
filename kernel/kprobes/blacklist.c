// SPDX-License-Identifier: GPL-2.0
/*
 * Where nobody may probe: what a hit itself runs, and what runs where a
 * breakpoint cannot be handled.
 */
#include "internal.h"

#include <linux/init.h>
#include <linux/kallsyms.h>
#include <linux/maple_tree.h>
#include <linux/module.h>
#include <linux/string.h>

#include <asm/sections.h>

/*
 * Ranges of addresses, a symbol each. What is asked for by two ways is stored
 * once. Read under RCU, written under kprobe_mutex.
 */
static struct maple_tree blacklist =
	MTREE_INIT(blacklist, MT_FLAGS_ALLOC_RANGE | MT_FLAGS_USE_RCU);

/**
 * kprobe_add_ksym_blacklist - Keep probes away from a function
 * @entry: An address of the function.
 *
 * Context: Process context. May sleep.
 * Return: The number of bytes from @entry to the function's end, 0 for it has
 *	no known end; -ENOENT if no symbol covers @entry; -ENOMEM.
 */
int kprobe_add_ksym_blacklist(unsigned long entry)
{
	unsigned long size = 0, offset = 0;
	int err;

	if (!kernel_text_address(entry) ||
	    !kallsyms_lookup_size_offset(entry, &size, &offset))
		return -ENOENT;
	if (!size)
		return 0;
	entry -= offset;
	err = mtree_insert_range(&blacklist, entry, entry + size - 1, xa_mk_value(1), GFP_KERNEL);
	if (err && err != -EEXIST)
		return err;
	return size - offset;
}

/**
 * kprobe_add_area_blacklist - Keep probes away from all functions of an area
 * @start: Its first address.
 * @end: The address behind its last.
 *
 * Context: Process context. May sleep.
 * Return: 0, or as kprobe_add_ksym_blacklist().
 */
int kprobe_add_area_blacklist(unsigned long start, unsigned long end)
{
	int left;

	for (unsigned long entry = start; entry < end; entry += left) {
		left = kprobe_add_ksym_blacklist(entry);
		if (left < 0)
			return left;
		if (!left)
			left = 1;
	}
	return 0;
}

/**
 * arch_within_kprobe_blacklist - Ask the architecture for ranges of its own
 * @addr: The address.
 *
 * Context: Any.
 * Return: Whether no probe may be at @addr.
 */
bool __weak arch_within_kprobe_blacklist(unsigned long addr)
{
	return addr >= (unsigned long)__kprobes_text_start &&
	       addr < (unsigned long)__kprobes_text_end;
}

/**
 * arch_populate_kprobe_blacklist - Add what the architecture knows of
 *
 * Context: Process context, once, when booting.
 * Return: 0, or an error of kprobe_add_area_blacklist().
 */
int __weak __init arch_populate_kprobe_blacklist(void)
{
	return 0;
}

static bool is_listed(unsigned long addr)
{
	return arch_within_kprobe_blacklist(addr) || mtree_load(&blacklist, addr);
}

/* The compiler may have split a part off a function, as "name.cold". */
static bool is_part_of_listed(unsigned long addr)
{
	char name[KSYM_NAME_LEN], *dot;

	if (lookup_symbol_name(addr, name))
		return false;
	dot = strchr(name, '.');
	if (!dot)
		return false;
	*dot = '\0';
	addr = (unsigned long)kprobe_lookup_name(name, 0);
	return addr && is_listed(addr);
}

/**
 * within_kprobe_blacklist - Ask whether no probe may be at an address
 * @addr: The address.
 *
 * Context: Any.
 * Return: Whether it is in a function that must not be probed.
 */
bool within_kprobe_blacklist(unsigned long addr)
{
	return is_listed(addr) || is_part_of_listed(addr);
}

static void add_functions(const unsigned long *function, const unsigned long *end)
{
	void *entry;

	/* One that has been compiled away, or freed since, is no loss. */
	for (; function < end; function++) {
		entry = dereference_symbol_descriptor((void *)*function);
		kprobe_add_ksym_blacklist((unsigned long)entry);
	}
}

static void add_section(const void *start, unsigned long size)
{
	if (size)
		kprobe_add_area_blacklist((unsigned long)start, (unsigned long)start + size);
}

/* blacklist_add_module - Add what a module says of itself. */
void blacklist_add_module(const struct module *mod)
{
	lockdep_assert_held(&kprobe_mutex);
	add_functions(mod->kprobe_blacklist, mod->kprobe_blacklist + mod->num_kprobe_blacklist);
	add_section(mod->kprobes_text_start, mod->kprobes_text_size);
	add_section(mod->noinstr_text_start, mod->noinstr_text_size);
}

static void remove_range(const struct module_memory *mem)
{
	MA_STATE(mas, &blacklist, (unsigned long)mem->base, 0);
	unsigned long last = (unsigned long)mem->base + mem->size - 1;
	void *entry;

	mas_lock(&mas);
	mas_for_each(&mas, entry, last)
		mas_erase(&mas);
	mas_unlock(&mas);
}

/* blacklist_remove_module - Forget everything in a module's text. */
void blacklist_remove_module(const struct module *mod)
{
	lockdep_assert_held(&kprobe_mutex);
	for_class_mod_mem_type(type, text)
		if (mod->mem[type].size)
			remove_range(&mod->mem[type]);
}

/**
 * blacklist_next - Go through the blacklist
 * @addr: Where to start.
 * @end: Set to the address behind the range that was found.
 *
 * Return: The start of the first range that ends above @addr, or 0.
 */
unsigned long blacklist_next(unsigned long addr, unsigned long *end)
{
	MA_STATE(mas, &blacklist, addr, addr);
	void *entry;

	guard(rcu)();
	entry = mas_find(&mas, ULONG_MAX);
	if (!entry)
		return 0;
	*end = mas.last + 1;
	return mas.index;
}

/* Between them are the addresses that NOKPROBE_SYMBOL() collects. */
extern unsigned long __start_kprobe_blacklist[], __stop_kprobe_blacklist[];

/* blacklist_init - Add what the kernel says of itself. */
void __init blacklist_init(void)
{
	add_functions(__start_kprobe_blacklist, __stop_kprobe_blacklist);
	add_section(__kprobes_text_start, __kprobes_text_end - __kprobes_text_start);
	add_section(__noinstr_text_start, __noinstr_text_end - __noinstr_text_start);
	if (arch_populate_kprobe_blacklist())
		pr_err("the blacklist is incomplete: do not probe what a probe runs\n");
}
