// SPDX-License-Identifier: GPL-2.0
/*
 * Texts: that of the kernel and those of modules, and the instructions in them that must not
 * be probed since other users patch them or find them by address: jump labels, static calls,
 * and the traps of BUG() and WARN()
 */
#include "internal.h"

#include <linux/bsearch.h>
#include <linux/bug.h>
#include <linux/err.h>
#include <linux/export.h>
#include <linux/kernel.h>
#include <linux/kprobes_tables.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/static_call.h>

#include <asm/sections.h>

#include <kunit/visibility.h>

/* @of_module, which is an expression of @text->mod, or @core for the kernel's text */
#ifdef CONFIG_MODULES
#define TEXT_TABLE(text, of_module, core)	((text)->mod ? (of_module) : (core))
#else
#define TEXT_TABLE(text, of_module, core)	(core)
#endif

static __maybe_unused void visit_in_text(const struct kprobe_text *text, text_visit_fn visit,
					 void *data, enum text_table table, unsigned long addr,
					 unsigned long target)
{
	if (addr >= text->start && addr < text->end)
		visit(data, table, addr, target);
}

#ifdef CONFIG_JUMP_LABEL
static void walk_jump_labels(const struct kprobe_text *text, text_visit_fn visit, void *data)
{
	const struct jump_entry *jump, *stop;

	jump = TEXT_TABLE(text, text->mod->jump_entries, __start___jump_table);
	stop = jump + TEXT_TABLE(text, text->mod->num_jump_entries, __stop___jump_table - jump);
	for (; jump < stop; jump++)
		visit_in_text(text, visit, data, TEXT_JUMP_LABEL, jump_entry_code(jump),
			      jump_entry_target(jump));
}
#else
static void walk_jump_labels(const struct kprobe_text *text, text_visit_fn visit, void *data) { }
#endif

#ifdef CONFIG_HAVE_STATIC_CALL_INLINE
extern struct static_call_site __start_static_call_sites[], __stop_static_call_sites[];

static void walk_static_calls(const struct kprobe_text *text, text_visit_fn visit, void *data)
{
	const struct static_call_site *call, *stop;

	call = TEXT_TABLE(text, text->mod->static_call_sites, __start_static_call_sites);
	stop = call + TEXT_TABLE(text, text->mod->num_static_call_sites,
				 __stop_static_call_sites - call);
	for (; call < stop; call++)
		visit_in_text(text, visit, data, TEXT_STATIC_CALL,
			      (unsigned long)&call->addr + call->addr, 0);
}
#else
static void walk_static_calls(const struct kprobe_text *text, text_visit_fn visit, void *data) { }
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

static void walk_bugs(const struct kprobe_text *text, text_visit_fn visit, void *data)
{
	const struct bug_entry *bug, *stop;

	bug = TEXT_TABLE(text, text->mod->bug_table, __start___bug_table);
	stop = bug + TEXT_TABLE(text, text->mod->num_bugs, __stop___bug_table - bug);
	for (; bug < stop; bug++)
		visit_in_text(text, visit, data, TEXT_BUG, bug_insn_addr(bug), 0);
}
#else
static void walk_bugs(const struct kprobe_text *text, text_visit_fn visit, void *data) { }
#endif

/*
 * kprobe_text_walk_tables() - Visit all instructions of a complete text that its tables list
 *
 * Passes to @visit: @data, the table of the instruction, its address, and the target of a jump
 * label, also while it is a NOP. Instructions of init text, which may have been freed, are left
 * out. kprobe_mutex is held.
 */
void kprobe_text_walk_tables(const struct kprobe_text *text, text_visit_fn visit, void *data)
{
	walk_jump_labels(text, visit, data);
	walk_static_calls(text, visit, data);
	walk_bugs(text, visit, data);
}

/* On the first pass, before there is memory for them, only count. */
static void text_add_reserved(void *data, enum text_table table, unsigned long addr,
			      unsigned long target)
{
	struct kprobe_text *text = data;

	if (text->reserved)
		text->reserved[text->nr_reserved] = addr - text->start;
	text->nr_reserved++;
}

static int reserved_cmp(const void *a, const void *b)
{
	u32 left = *(const u32 *)a, right = *(const u32 *)b;

	return left < right ? -1 : left > right;
}

static int text_find_reserved(struct kprobe_text *text)
{
	text->nr_reserved = 0;
	kprobe_text_walk_tables(text, text_add_reserved, text);
	text->reserved = kvmalloc_array(text->nr_reserved + 1, sizeof(*text->reserved),
					GFP_KERNEL | __GFP_NOWARN);
	if (!text->reserved)
		return -ENOMEM;
	text->nr_reserved = 0;
	kprobe_text_walk_tables(text, text_add_reserved, text);
	sort(text->reserved, text->nr_reserved, sizeof(*text->reserved), reserved_cmp, NULL);
	return 0;
}

static struct kprobe_text core_text = {
	.start		= (unsigned long)_stext,
	.end		= (unsigned long)_etext,
	.complete	= true,
};

/* The texts of modules, by address. kprobe_mutex. */
static struct maple_tree texts = MTREE_INIT(texts, 0);

/* kprobe_text_add() - Let text of a module, from @start to @end, be known; returns 0, or -ENOMEM */
int kprobe_text_add(struct module *mod, unsigned long start, unsigned long end)
{
	struct kprobe_text *text;
	int err;

	if (start == end)
		return 0;
	text = kzalloc(sizeof(*text), GFP_KERNEL);
	if (!text)
		return -ENOMEM;
	text->start = start;
	text->end = end;
	text->mod = mod;
	err = mtree_insert_range(&texts, start, end - 1, text, GFP_KERNEL);
	if (err)
		kfree(text);
	return err;
}

/* kprobe_text_forget() - Forget the text at @start, which goes away, if it is known */
void kprobe_text_forget(unsigned long start)
{
	struct kprobe_text *text = kprobe_known_text(start);

	if (!text)
		return;
	arch_forget_text(text);
	range_tree_clear(&texts, text->start, text->end);
	kvfree(text->reserved);
	kfree(text);
}

/* kprobe_known_text() - The text at @addr that may be probed, or NULL */
struct kprobe_text *kprobe_known_text(unsigned long addr)
{
	lockdep_assert_held(&kprobe_mutex);
	return __is_kernel_text(addr) ? &core_text : mtree_load(&texts, addr);
}

/*
 * kprobe_text_at() - Find the text at an address, with its reserved instructions; may sleep
 *
 * Returns the text, which stays until the module is unloaded; -EINVAL if the address is neither in
 * the kernel's text nor in that of a module whose tables are complete, as init text is not;
 * -ENOMEM. kprobe_mutex is held.
 */
struct kprobe_text *kprobe_text_at(unsigned long addr)
{
	struct kprobe_text *text = kprobe_known_text(addr);

	if (!text || !text->complete)
		return ERR_PTR(-EINVAL);
	if (!text->reserved && text_find_reserved(text))
		return ERR_PTR(-ENOMEM);
	return text;
}
EXPORT_SYMBOL_IF_KUNIT(kprobe_text_at);

/* What is reserved has at most 8 bytes. An address in it need not be an instruction's. */
static int reserved_has(const void *addr, const void *start)
{
	u32 offset = *(const u32 *)addr - *(const u32 *)start;

	return offset < 8 ? 0 : reserved_cmp(addr, start);
}

/* Most instructions have no other user: ask all tables of them only without an index. */
static bool may_be_reserved(unsigned long addr)
{
	const struct kprobe_text *text = kprobe_text_at(addr);
	u32 offset;

	if (IS_ERR(text))
		return true;
	offset = addr - text->start;
	return bsearch(&offset, text->reserved, text->nr_reserved, sizeof(offset), reserved_has);
}

/*
 * kprobe_reserved_for() - For whom an instruction, of text that stays, is reserved; or NULL
 *
 * kprobe_mutex and jump_label_lock() are held.
 */
const char *kprobe_reserved_for(unsigned long addr)
{
	void *place = (void *)addr;

	if (!may_be_reserved(addr))
		return NULL;
	if (jump_label_text_reserved(place, place))
		return "a static branch: its jump label is patched";
	if (static_call_text_reserved(place, place))
		return "a static call: it is patched";
	if (find_bug(addr))
		return "the trap of a BUG() or WARN(), which is found by its address";
	return NULL;
}
