/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Texts, and their tables of instructions that other users patch or find by address
 */
#ifndef _LINUX_KPROBES_TABLES_H
#define _LINUX_KPROBES_TABLES_H

#include <linux/types.h>

struct exception_table_entry;
struct module;

/*
 * Text of the kernel or of a module, and what is known of it. That of a module exists from the
 * notification that the module is coming to the one that it is going, and of its init text until
 * that is freed.
 */
struct kprobe_text {
	unsigned long start;
	unsigned long end;
	struct module *mod;	/* NULL for the kernel */
	/*
	 * True for the kernel's, and for that of a module, but for its init text, from the time on
	 * when its tables do not change any more: the fields below are valid.
	 */
	bool complete;
	const struct exception_table_entry *fixups, *fixups_stop;	/* of a module */
	/* Offsets of all that an enum text_table lists, ascending; NULL before kprobe_text_at(). */
	u32 *reserved;
	unsigned int nr_reserved;
	void *arch;		/* what arch_learn_text() has found */
};

/* The table that lists an instruction */
enum text_table {
	TEXT_JUMP_LABEL,	/* a jump or a NOP, which a static key turns into one another */
	TEXT_STATIC_CALL,	/* a static call, which is a CALL, a jump, a return or a NOP */
	TEXT_BUG,		/* the trap of a BUG() or WARN() */
};

typedef void (*text_visit_fn)(void *data, enum text_table table, unsigned long addr,
			      unsigned long target);

struct kprobe_text *kprobe_text_at(unsigned long addr);
struct kprobe_text *kprobe_known_text(unsigned long addr);
void kprobe_text_walk_tables(const struct kprobe_text *text, text_visit_fn visit, void *data);

#endif /* _LINUX_KPROBES_TABLES_H */
