// SPDX-License-Identifier: GPL-2.0
/*
 * Where nobody may probe: what a hit itself runs, and what runs where a
 * breakpoint cannot be handled.
 */
#include "internal.h"

#include <linux/init.h>
#include <linux/kallsyms.h>
#include <linux/maple_tree.h>
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

/**
 * kprobe_is_blacklisted - within_kprobe_blacklist() for one address after the other
 * @where: The address.
 * @cursor: What is known of the function that was asked for before; zero at first.
 *
 * Context: As within_kprobe_blacklist().
 * Return: As within_kprobe_blacklist().
 */
bool kprobe_is_blacklisted(const struct kprobe_address *where, struct blacklist_cursor *cursor)
{
	if (cursor->function != where->function) {
		cursor->function = where->function;
		cursor->part_of_listed = is_part_of_listed(where->addr);
	}
	return cursor->part_of_listed || is_listed(where->addr);
}

/**
 * blacklist_add_functions - Add what NOKPROBE_SYMBOL() has collected
 * @function: Addresses of functions.
 * @end: Where they end.
 *
 * Context: Process context. May sleep.
 */
void blacklist_add_functions(const unsigned long *function, const unsigned long *end)
{
	void *entry;

	/* One that has been compiled away, or freed since, is no loss. */
	for (; function < end; function++) {
		entry = dereference_symbol_descriptor((void *)*function);
		kprobe_add_ksym_blacklist((unsigned long)entry);
	}
}

/**
 * blacklist_add_section - Add all functions of a section
 * @start: Where it starts.
 * @size: How many bytes it has; may be 0.
 *
 * Context: Process context. May sleep.
 */
void blacklist_add_section(const void *start, unsigned long size)
{
	if (size)
		kprobe_add_area_blacklist((unsigned long)start, (unsigned long)start + size);
}

/**
 * blacklist_remove - Forget everything in a text
 * @start: Where the text starts.
 * @end: The address after its last; may be @start.
 *
 * Context: Process context, kprobe_mutex held. May sleep.
 */
void blacklist_remove(unsigned long start, unsigned long end)
{
	MA_STATE(mas, &blacklist, start, start);
	void *entry;

	lockdep_assert_held(&kprobe_mutex);
	if (start == end)
		return;
	mas_lock(&mas);
	mas_for_each(&mas, entry, end - 1)
		mas_erase(&mas);
	mas_unlock(&mas);
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
	blacklist_add_functions(__start_kprobe_blacklist, __stop_kprobe_blacklist);
	blacklist_add_section(__kprobes_text_start, __kprobes_text_end - __kprobes_text_start);
	blacklist_add_section(__noinstr_text_start, __noinstr_text_end - __noinstr_text_start);
	if (arch_populate_kprobe_blacklist())
		pr_err("the blacklist is incomplete: do not probe what a probe runs\n");
}
