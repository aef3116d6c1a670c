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
#include <linux/jump_label.h>
#include <linux/kernel.h>
#include <linux/kprobes_tables.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/static_call.h>

#include <asm/sections.h>

#include <kunit/visibility.h>

static __maybe_unused void visit_in_text(const struct kprobe_text *text, text_visit_fn visit,
					 void *data, enum text_table table, unsigned long addr,
					 unsigned long target)
{
	if (addr - text->start < text->size)
		visit(data, table, addr, target);
}

#ifdef CONFIG_JUMP_LABEL
static void walk_jump_labels(const struct kprobe_text *text, text_visit_fn visit, void *data)
{
	const struct jump_entry *jump;

	for (jump = text->jumps; jump < text->jumps_stop; jump++)
		visit_in_text(text, visit, data, TEXT_JUMP_LABEL, jump_entry_code(jump),
			      jump_entry_target(jump));
}

static void core_jump_labels(struct kprobe_text *text)
{
	text->jumps = __start___jump_table;
	text->jumps_stop = __stop___jump_table;
}
#else
static void walk_jump_labels(const struct kprobe_text *text, text_visit_fn visit, void *data) { }
static void core_jump_labels(struct kprobe_text *text) { }
#endif

#ifdef CONFIG_HAVE_STATIC_CALL_INLINE
extern struct static_call_site __start_static_call_sites[], __stop_static_call_sites[];

static void walk_static_calls(const struct kprobe_text *text, text_visit_fn visit, void *data)
{
	const struct static_call_site *call;

	for (call = text->calls; call < text->calls_stop; call++)
		visit_in_text(text, visit, data, TEXT_STATIC_CALL,
			      (unsigned long)&call->addr + call->addr, 0);
}

static void core_static_calls(struct kprobe_text *text)
{
	text->calls = __start_static_call_sites;
	text->calls_stop = __stop_static_call_sites;
}
#else
static void walk_static_calls(const struct kprobe_text *text, text_visit_fn visit, void *data) { }
static void core_static_calls(struct kprobe_text *text) { }
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
	const struct bug_entry *bug;

	for (bug = text->bugs; bug < text->bugs_stop; bug++)
		visit_in_text(text, visit, data, TEXT_BUG, bug_insn_addr(bug), 0);
}

static void core_bugs(struct kprobe_text *text)
{
	text->bugs = __start___bug_table;
	text->bugs_stop = __stop___bug_table;
}
#else
static void walk_bugs(const struct kprobe_text *text, text_visit_fn visit, void *data) { }
static void core_bugs(struct kprobe_text *text) { }
#endif

static bool core_text_tables(struct kprobe_text *text)
{
	text->start = (unsigned long)_stext;
	text->size = (unsigned long)_etext - text->start;
	core_jump_labels(text);
	core_static_calls(text);
	core_bugs(text);
	return true;
}

/**
 * kprobe_text_walk_tables() - Visit all instructions of a text that its tables list
 * @text: The text.
 * @visit: Called for each instruction that is in the text, with its table, its address, and the
 *	target of a jump label, also while it is a NOP. The tables also list instructions of
 *	init text, which may have been freed.
 * @data: The first argument of @visit.
 *
 * Context: Process context, kprobe_mutex held.
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

/* All that have been asked for, by address. kprobe_mutex. */
static struct maple_tree texts = MTREE_INIT(texts, 0);

static void text_free(struct kprobe_text *text)
{
	if (text)
		kvfree(text->reserved);
	kfree(text);
}

DEFINE_FREE(text_free, struct kprobe_text *, text_free(_T))

static struct kprobe_text *text_create(unsigned long addr)
{
	struct kprobe_text *text __free(text_free) = kzalloc(sizeof(*text), GFP_KERNEL);

	if (!text)
		return ERR_PTR(-ENOMEM);
	if (!(__is_kernel_text(addr) ? core_text_tables(text) :
				       kprobe_module_text_tables(addr, text)))
		return ERR_PTR(-EINVAL);
	if (text_find_reserved(text) ||
	    mtree_insert_range(&texts, text->start, text->start + text->size - 1, text,
			       GFP_KERNEL))
		return ERR_PTR(-ENOMEM);
	return no_free_ptr(text);
}

/* kprobe_known_text() - The text at @addr, or NULL if nobody has asked kprobe_text_at() yet */
struct kprobe_text *kprobe_known_text(unsigned long addr)
{
	lockdep_assert_held(&kprobe_mutex);
	return mtree_load(&texts, addr);
}

/**
 * kprobe_text_at() - Find the text that an address is in
 * @addr: The address.
 *
 * Context: Process context, kprobe_mutex held. May sleep.
 * Return: The text, which stays until the module is unloaded; -EINVAL if the address is neither
 *	in the kernel's text nor in that of a module whose tables are complete, as init text
 *	is not; -ENOMEM.
 */
struct kprobe_text *kprobe_text_at(unsigned long addr)
{
	return kprobe_known_text(addr) ?: text_create(addr);
}
EXPORT_SYMBOL_IF_KUNIT(kprobe_text_at);

/* kprobe_text_forget() - Forget the text from @start to @end, which goes away, if it is known */
void kprobe_text_forget(unsigned long start, unsigned long end)
{
	struct kprobe_text *text = kprobe_known_text(start);

	if (text)
		arch_forget_text(text);
	range_tree_clear(&texts, start, end);
	text_free(text);
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
	const struct kprobe_text *text = kprobe_text_at(addr);
	void *place = (void *)addr;
	u32 offset;

	if (IS_ERR(text))
		return jump_label_text_reserved(place, place) ||
		       static_call_text_reserved(place, place) || find_bug(addr);
	offset = addr - text->start;
	return bsearch(&offset, text->reserved, text->nr_reserved, sizeof(offset), reserved_cmp);
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
