// SPDX-License-Identifier: GPL-2.0
/*
 * Text that must not be probed: the hit path itself, and code in which a breakpoint
 * cannot be handled
 */
#include "internal.h"

#include <linux/init.h>
#include <linux/kallsyms.h>
#include <linux/kernel.h>
#include <linux/minmax.h>
#include <linux/string.h>

#include <asm/sections.h>

/*
 * Ranges of addresses, one for each symbol, however often it is added. Read under
 * RCU, written under kprobe_mutex.
 */
struct maple_tree kprobe_blacklist =
	MTREE_INIT(kprobe_blacklist, MT_FLAGS_ALLOC_RANGE | MT_FLAGS_USE_RCU);

/*
 * Exclude the function at @entry, or the part of it from @lowest on, from probing. Returns the
 * number of bytes from @entry to the function's end, 0 if its end is not known; -ENOENT if no
 * symbol covers @entry; -ENOMEM.
 */
static int blacklist_add_symbol(unsigned long entry, unsigned long lowest)
{
	unsigned long size = 0, offset = 0, start, end;
	int err;

	if (!kernel_text_address(entry) ||
	    !kallsyms_lookup_size_offset(entry, &size, &offset))
		return -ENOENT;
	if (!size)
		return 0;
	start = max(entry - offset, lowest);
	end = entry - offset + size;
	if (mtree_load(&kprobe_blacklist, start))
		return end - entry;
	/* A larger part replaces a smaller one, which ends at the same address. */
	err = mtree_store_range(&kprobe_blacklist, start, end - 1, xa_mk_value(1), GFP_KERNEL);
	return err ?: end - entry;
}

/* kprobe_add_ksym_blacklist() - Exclude a function, see blacklist_add_symbol(). May sleep. */
int kprobe_add_ksym_blacklist(unsigned long entry)
{
	return blacklist_add_symbol(entry, 0);
}

/*
 * kprobe_add_area_blacklist() - Exclude all functions of an area from probing. May sleep.
 *
 * Returns 0; -ENOENT at an address that is not text; -ENOMEM.
 */
int kprobe_add_area_blacklist(unsigned long start, unsigned long end)
{
	int left;

	for (unsigned long entry = start; entry < end; entry += left) {
		/* Assembly code may have no symbol at its start: it counts for another one. */
		left = blacklist_add_symbol(entry, start);
		if (left < 0 && !(left == -ENOENT && kernel_text_address(entry)))
			return left;
		left = max(left, 1);
	}
	return 0;
}

bool __weak arch_within_kprobe_blacklist(unsigned long addr)
{
	return addr >= (unsigned long)__kprobes_text_start &&
	       addr < (unsigned long)__kprobes_text_end;
}

int __weak __init arch_populate_kprobe_blacklist(void)
{
	return 0;
}

static bool blacklist_contains(unsigned long addr)
{
	return arch_within_kprobe_blacklist(addr) || mtree_load(&kprobe_blacklist, addr);
}

/*
 * kprobe_blacklist_has_parent() - True if the function @name was split off a blacklisted one
 *
 * The compiler names such parts "name.cold". @name is cut at the dot. To search symbols takes long.
 */
bool kprobe_blacklist_has_parent(char *name)
{
	char *dot = strchr(name, '.');
	unsigned long addr;

	if (!dot)
		return false;
	*dot = '\0';
	addr = (unsigned long)kprobe_lookup_name(name, 0);
	return addr && blacklist_contains(addr);
}

/* within_kprobe_blacklist() - True if @addr is in a function that must not be probed */
bool within_kprobe_blacklist(unsigned long addr)
{
	char name[KSYM_NAME_LEN];

	return blacklist_contains(addr) ||
	       (!lookup_symbol_name(addr, name) && kprobe_blacklist_has_parent(name));
}

/*
 * kprobe_blacklisted_by() - Why @addr must not be probed, for people; or NULL
 *
 * The function that the one at @addr was split off is not considered.
 */
const char *kprobe_blacklisted_by(unsigned long addr)
{
	if (!blacklist_contains(addr))
		return NULL;
	if (memory_contains(__noinstr_text_start, __noinstr_text_end, (void *)addr, 1))
		return "blacklisted: noinstr";
	if (memory_contains(__kprobes_text_start, __kprobes_text_end, (void *)addr, 1))
		return "blacklisted: __kprobes";
	if (arch_within_kprobe_blacklist(addr))
		return "blacklisted: entry code of the architecture";
	return "blacklisted: by the architecture, NOKPROBE_SYMBOL() or a module";
}

/* kprobe_blacklist_add_functions() - Add what NOKPROBE_SYMBOL() has collected; 0, or -ENOMEM */
int kprobe_blacklist_add_functions(const unsigned long *function, const unsigned long *end)
{
	void *entry;

	/* A function that was compiled away, or freed since, cannot be probed. */
	for (; function < end; function++) {
		entry = dereference_symbol_descriptor((void *)*function);
		if (kprobe_add_ksym_blacklist((unsigned long)entry) == -ENOMEM)
			return -ENOMEM;
	}
	return 0;
}

/* kprobe_blacklist_add_section() - Add all functions of a section, if any; 0, or -ENOMEM */
int kprobe_blacklist_add_section(const void *start, unsigned long size)
{
	return kprobe_add_area_blacklist((unsigned long)start, (unsigned long)start + size);
}

/* Bounds of the addresses that NOKPROBE_SYMBOL() collects. */
extern unsigned long __start_kprobe_blacklist[], __stop_kprobe_blacklist[];

/* kprobe_blacklist_init() - Add the kernel's own functions that must not be probed */
void __init kprobe_blacklist_init(void)
{
	if (kprobe_blacklist_add_functions(__start_kprobe_blacklist, __stop_kprobe_blacklist) ||
	    kprobe_blacklist_add_section(__kprobes_text_start,
					 __kprobes_text_end - __kprobes_text_start) ||
	    kprobe_blacklist_add_section(__noinstr_text_start,
					 __noinstr_text_end - __noinstr_text_start) ||
	    arch_populate_kprobe_blacklist())
		pr_err("cannot complete the blacklist: do not probe code that handles a hit\n");
}
