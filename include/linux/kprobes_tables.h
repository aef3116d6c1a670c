/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Texts, and their tables of instructions that other users patch or find by address
 */
#ifndef _LINUX_KPROBES_TABLES_H
#define _LINUX_KPROBES_TABLES_H

#include <linux/types.h>

struct bug_entry;
struct exception_table_entry;
struct jump_entry;
struct module;
struct static_call_site;

/**
 * struct kprobe_text - Text of the kernel or of a module, and what is known of it
 * @start:	Its first address.
 * @end:	The address after its last.
 * @mod:	The module, or NULL for the kernel.
 * @complete:	True for the kernel's, and for that of a module, but for its init text, from
 *		the time on when its tables do not change any more: the other fields are valid.
 * @jumps:	The jump labels of a module, up to @jumps_stop.
 * @jumps_stop:	The end of @jumps.
 * @calls:	Its inlined static calls, up to @calls_stop.
 * @calls_stop:	The end of @calls.
 * @bugs:	Its BUG() and WARN() instructions, up to @bugs_stop.
 * @bugs_stop:	The end of @bugs.
 * @fixups:	Its exception table, up to @fixups_stop.
 * @fixups_stop: The end of @fixups.
 * @reserved:	The offsets of all these instructions from @start, in ascending order; NULL
 *		until kprobe_text_at() has been called.
 * @nr_reserved: Their number.
 * @arch:	What arch_learn_text() has found.
 *
 * That of a module exists from the notification that the module is coming to the one that it is
 * going, and of its init text until that is freed.
 */
struct kprobe_text {
	unsigned long start;
	unsigned long end;
	struct module *mod;
	bool complete;
	const struct jump_entry *jumps, *jumps_stop;
	const struct static_call_site *calls, *calls_stop;
	const struct bug_entry *bugs, *bugs_stop;
	const struct exception_table_entry *fixups, *fixups_stop;
	u32 *reserved;
	unsigned int nr_reserved;
	void *arch;
};

/**
 * enum text_table - Table that lists an instruction
 * @TEXT_JUMP_LABEL:	A jump or a NOP, which a static key turns into one another.
 * @TEXT_STATIC_CALL:	A static call, which is a CALL, a jump, a return or a NOP.
 * @TEXT_BUG:		The trap of a BUG() or WARN().
 */
enum text_table {
	TEXT_JUMP_LABEL,
	TEXT_STATIC_CALL,
	TEXT_BUG,
};

typedef void (*text_visit_fn)(void *data, enum text_table table, unsigned long addr,
			      unsigned long target);

struct kprobe_text *kprobe_text_at(unsigned long addr);
struct kprobe_text *kprobe_known_text(unsigned long addr);
void kprobe_text_walk_tables(const struct kprobe_text *text, text_visit_fn visit, void *data);

#endif /* _LINUX_KPROBES_TABLES_H */
