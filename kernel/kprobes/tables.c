// SPDX-License-Identifier: GPL-2.0
/*
 * Tables of the instructions that other users patch or find by address: jump labels,
 * static calls, and the traps of BUG() and WARN()
 */
#include "internal.h"

#include <linux/bug.h>
#include <linux/export.h>
#include <linux/jump_label.h>
#include <linux/kprobes_tables.h>
#include <linux/static_call.h>

#include <asm/sections.h>

#include <kunit/visibility.h>

typedef void (*text_visit_fn)(void *data, const struct text_entry *entry);

static void visit_in_text(const struct text_tables *tables, const struct text_entry *entry,
			  text_visit_fn visit, void *data)
{
	if (entry->addr - tables->start < tables->size)
		visit(data, entry);
}

#ifdef CONFIG_JUMP_LABEL
static void walk_jump_labels(const struct text_tables *tables, text_visit_fn visit, void *data)
{
	const struct jump_entry *jump;

	for (jump = tables->jumps; jump < tables->jumps_stop; jump++)
		visit_in_text(tables, &(struct text_entry){
			.kind = TEXT_JUMP_LABEL,
			.addr = jump_entry_code(jump),
			.target = jump_entry_target(jump),
		}, visit, data);
}

static void core_jump_labels(struct text_tables *tables)
{
	tables->jumps = __start___jump_table;
	tables->jumps_stop = __stop___jump_table;
}
#else
static void walk_jump_labels(const struct text_tables *tables, text_visit_fn visit, void *data) { }
static void core_jump_labels(struct text_tables *tables) { }
#endif

#ifdef CONFIG_HAVE_STATIC_CALL_INLINE
extern struct static_call_site __start_static_call_sites[], __stop_static_call_sites[];

static void walk_static_calls(const struct text_tables *tables, text_visit_fn visit, void *data)
{
	const struct static_call_site *call;

	for (call = tables->calls; call < tables->calls_stop; call++)
		visit_in_text(tables, &(struct text_entry){
			.kind = TEXT_STATIC_CALL,
			.addr = (unsigned long)&call->addr + call->addr,
		}, visit, data);
}

static void core_static_calls(struct text_tables *tables)
{
	tables->calls = __start_static_call_sites;
	tables->calls_stop = __stop_static_call_sites;
}
#else
static void walk_static_calls(const struct text_tables *tables, text_visit_fn visit, void *data) { }
static void core_static_calls(struct text_tables *tables) { }
#endif

#ifdef CONFIG_GENERIC_BUG
extern struct bug_entry __start___bug_table[], __stop___bug_table[];

#ifdef CONFIG_GENERIC_BUG_RELATIVE_POINTERS
static unsigned long bug_insn_addr(const struct bug_entry *bug)
{
	return (unsigned long)&bug->bug_addr_disp + bug->bug_addr_disp;
}
#else
static unsigned long bug_insn_addr(const struct bug_entry *bug)
{
	return bug->bug_addr;
}
#endif

static void walk_bugs(const struct text_tables *tables, text_visit_fn visit, void *data)
{
	const struct bug_entry *bug;

	for (bug = tables->bugs; bug < tables->bugs_stop; bug++)
		visit_in_text(tables, &(struct text_entry){
			.kind = TEXT_BUG,
			.addr = bug_insn_addr(bug),
		}, visit, data);
}

static void core_bugs(struct text_tables *tables)
{
	tables->bugs = __start___bug_table;
	tables->bugs_stop = __stop___bug_table;
}
#else
static void walk_bugs(const struct text_tables *tables, text_visit_fn visit, void *data) { }
static void core_bugs(struct text_tables *tables) { }
#endif

static bool core_text_tables(struct text_tables *tables)
{
	tables->start = (unsigned long)_stext;
	tables->size = (unsigned long)_etext - tables->start;
	core_jump_labels(tables);
	core_static_calls(tables);
	core_bugs(tables);
	return true;
}

/**
 * text_tables_find() - Find the tables of the text that an address is in
 * @addr: The address.
 * @tables: The result.
 *
 * Context: Process context, kprobe_mutex held.
 * Return: true if the address is in the kernel's text, or in that of a module whose tables
 *	are complete. Init text has no tables.
 */
bool text_tables_find(unsigned long addr, struct text_tables *tables)
{
	lockdep_assert_held(&kprobe_mutex);
	*tables = (struct text_tables){ };
	return __is_kernel_text(addr) ? core_text_tables(tables) :
					module_text_tables(addr, tables);
}
EXPORT_SYMBOL_IF_KUNIT(text_tables_find);

/**
 * text_tables_walk() - Visit all instructions of a text that its tables list
 * @tables: The tables.
 * @visit: Called for each instruction that is in the text. The tables also list those
 *	of init text, which may have been freed.
 * @data: The first argument of @visit.
 *
 * Context: Process context, kprobe_mutex held.
 */
void text_tables_walk(const struct text_tables *tables, text_visit_fn visit, void *data)
{
	walk_jump_labels(tables, visit, data);
	walk_static_calls(tables, visit, data);
	walk_bugs(tables, visit, data);
}
