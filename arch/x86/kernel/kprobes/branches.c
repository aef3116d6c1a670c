// SPDX-License-Identifier: GPL-2.0
/*
 * Index of branch targets: bytes that a jump must not displace, unless they are the
 * first that it displaces
 *
 * The core kernel's text and each module's has an index, a struct branch_map. No bit is ever
 * cleared. A byte that may be a target counts as one.
 *
 * Targets are: what scan.c finds in functions, starts of symbols, targets of jump labels
 * and of exception fixups, and words of data that may be addresses in the text, but for those
 * of probes and on the first task's stack.
 */
#include <linux/align.h>
#include <linux/cleanup.h>
#include <linux/err.h>
#include <linux/errno.h>
#include <linux/extable.h>
#include <linux/ftrace.h>
#include <linux/jump_label.h>
#include <linux/kallsyms.h>
#include <linux/kprobes.h>
#include <linux/kprobes_tables.h>
#include <linux/memory.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/static_call.h>
#include <linux/uaccess.h>

#include <asm/nospec-branch.h>
#include <asm/sections.h>
#include <asm/text-patching.h>

#include <kunit/visibility.h>

#include "opcode.h"
#include "scan.h"
#include "text.h"

extern struct exception_table_entry __start___ex_table[], __stop___ex_table[];

/* Branch targets in the text of the core kernel or a module. kprobe_mutex guards all fields. */
struct text_index {
	struct branch_map map;	/* those found so far */
	unsigned long next;	/* start of the symbol at which scanning the code continues */
	/*
	 * A bit for each byte of a module's text, set if a symbol starts there, until the code is
	 * scanned: kallsyms would walk all symbols for each look-up. NULL for the core kernel.
	 */
	unsigned long *starts;
};

static unsigned long text_index_end(const struct text_index *index)
{
	return index->map.start + index->map.size;
}

/* The branch targets of a text, or NULL if not all of them are known. */
static const struct branch_map *branch_map_at(unsigned long addr)
{
	const struct kprobe_text *text = kprobe_known_text(addr);
	const struct text_index *index = text ? text->arch : NULL;

	return index && index->next == text_index_end(index) ? &index->map : NULL;
}

static void text_index_free(struct text_index *index)
{
	if (!index)
		return;
	kvfree(index->starts);
	kvfree(index->map.bits);
	kfree(index);
}

DEFINE_FREE(text_index_free, struct text_index *, text_index_free(_T))

/* Without memory there are breakpoints, which work, and another try later. */
#define LEARN_GFP	(GFP_KERNEL | __GFP_NOWARN)

static unsigned long *text_bitmap_alloc(unsigned long size)
{
	return kvcalloc(BITS_TO_LONGS(size), sizeof(long), LEARN_GFP);
}

static void text_index_add_fixups(const struct text_index *index, const struct kprobe_text *text)
{
	const struct exception_table_entry *e, *stop;

	e = text->mod ? text->fixups : __start___ex_table;
	stop = text->mod ? text->fixups_stop : __stop___ex_table;
	for (; e < stop; e++)
		branch_map_add(&index->map, (unsigned long)&e->fixup + e->fixup);
}

/* The size of a jump label, a jump or a NOP of the same size. */
static size_t jump_label_size(unsigned long addr)
{
	u8 opcode = 0;

	kprobe_read_text(&opcode, addr, sizeof(opcode));
	return opcode == JMP8_INSN_OPCODE || opcode == PREFIX_OPSIZE ?
		JMP8_INSN_SIZE : JMP32_INSN_SIZE;
}

static void text_index_add_entry(void *data, enum text_table table, unsigned long addr,
				 unsigned long target)
{
	const struct text_index *index = data;

	if (table == TEXT_JUMP_LABEL) {
		/* Once it is a NOP, execution continues after it. */
		branch_map_add_range(&index->map, addr, jump_label_size(addr) + 1);
		branch_map_add(&index->map, target);
	} else if (table == TEXT_STATIC_CALL) {
		/* As a tail call, it may be a Jcc, one byte longer. */
		branch_map_add_range(&index->map, addr, CALL_INSN_SIZE + 1);
	}
}

/*
 * Since its registration, a struct kprobe's @hlist is empty, and @list is empty or agrees with
 * its neighbour.
 */
static bool is_probe(const struct kprobe *p, const void *start)
{
	struct list_head *next, *back;

	if ((void *)p < start || READ_ONCE_NOCHECK(p->hlist.next) ||
	    READ_ONCE_NOCHECK(p->hlist.pprev))
		return false;
	next = READ_ONCE_NOCHECK(p->list.next);
	return next && !get_kernel_nofault(back, &next->prev) && back == &p->list;
}

/* Nothing jumps to what these fields of a struct kprobe say. */
static bool is_address_of_probe(const void *word, const void *start)
{
	return is_probe(word - offsetof(struct kprobe, addr), start) ||
	       is_probe(word - offsetof(struct kprobe, ainsn.boost), start) ||
	       is_probe(word - offsetof(struct kprobe, ainsn.next), start);
}

/* Add all words of some data that are addresses in the text. They may change meanwhile. */
static void text_index_learn_data(const struct text_index *index, const void *start,
				  const void *end)
{
	unsigned long addr;

	for (const unsigned long *word = start; (void *)(word + 1) <= end; word++) {
		addr = READ_ONCE_NOCHECK(*word);
		if (addr - index->map.start < index->map.size && !is_address_of_probe(word, start))
			branch_map_add(&index->map, addr);
		if (IS_ALIGNED((unsigned long)word, PAGE_SIZE))
			cond_resched_tasks_rcu_qs();	/* a probe here is hit a million times */
	}
}

static int text_index_learn_core(const struct text_index *index)
{
	/* Includes data that is read-only after init. */
	text_index_learn_data(index, __start_rodata, __end_rodata);
	/* No jump displaces what is after a call, where return addresses on a stack point to. */
	text_index_learn_data(index, _sdata, init_stack);
	text_index_learn_data(index, init_stack + THREAD_SIZE / sizeof(*init_stack), _edata);
	return 0;
}

#ifdef CONFIG_MODULES
static int text_index_add_symbol(void *data, const char *name, unsigned long addr)
{
	struct text_index *index = data;

	if (addr - index->map.start < index->map.size)
		__set_bit(addr - index->map.start, index->starts);
	return 0;
}

/* Livepatch modules are relocated again when the module that they patch is loaded. */
static int text_index_learn_module(struct text_index *index, struct module *mod)
{
	static const enum mod_mem_type types[] = { MOD_RODATA, MOD_RO_AFTER_INIT, MOD_DATA };
	const struct module_memory *mem;

	if (is_livepatch_module(mod))
		return -EINVAL;
	index->starts = text_bitmap_alloc(index->map.size);
	if (!index->starts)
		return -ENOMEM;
	module_kallsyms_on_each_symbol(mod->name, text_index_add_symbol, index);
	for (int i = 0; i < ARRAY_SIZE(types); i++) {
		mem = &mod->mem[types[i]];
		text_index_learn_data(index, mem->base, mem->base + mem->size);
	}
	return 0;
}
#else
static int text_index_learn_module(struct text_index *index, struct module *mod)
{
	return -EINVAL;
}
#endif

/* Create the index of a text, with the addresses that tables and data contain. */
static int text_index_create(struct kprobe_text *text)
{
	struct text_index *index __free(text_index_free) = kzalloc(sizeof(*index), LEARN_GFP);
	int err;

	if (!index)
		return -ENOMEM;
	index->map.start = text->start;
	index->map.size = text->end - text->start;
	index->next = text->start;
	index->map.bits = text_bitmap_alloc(index->map.size);
	if (!index->map.bits)
		return -ENOMEM;
	err = text->mod ? text_index_learn_module(index, text->mod) : text_index_learn_core(index);
	if (err)
		return err;
	text_index_add_fixups(index, text);
	scoped_guard(mutex, &text_mutex)	/* for jump_label_size() */
		kprobe_text_walk_tables(text, text_index_add_entry, index);
	text->arch = no_free_ptr(index);
	return 0;
}

static bool is_in_array(unsigned long addr, const void *array, size_t size)
{
	return addr - (unsigned long)array < size;
}

/* Thunks are of several kinds, some on pages of their own. No other jump leaves the text. */
static bool is_indirect_thunk(unsigned long addr)
{
	const size_t registers = IS_ENABLED(CONFIG_X86_64) ? 16 : 8;
	const size_t size = registers * RETPOLINE_THUNK_SIZE;

	if (IS_ENABLED(CONFIG_MITIGATION_RETPOLINE) &&
	    is_in_array(addr, __x86_indirect_thunk_array, size))
		return true;
	if (IS_ENABLED(CONFIG_MITIGATION_CALL_DEPTH_TRACKING) &&
	    is_in_array(addr, __x86_indirect_jump_thunk_array, size))
		return true;
	if (IS_ENABLED(CONFIG_MITIGATION_ITS) &&
	    is_in_array(addr, __x86_indirect_its_thunk_array, registers * ITS_THUNK_SIZE))
		return true;
	return !__is_kernel_text(addr) && !is_kernel_inittext(addr) &&
	       !is_module_text_address(addr);
}

/* The end of the symbol that starts at @addr, or of the text. */
static unsigned long text_symbol_end(const struct text_index *index, unsigned long addr)
{
	const struct branch_map *map = &index->map;
	unsigned long end = text_index_end(index), size, offset;

	if (index->starts)
		return map->start + find_next_bit(index->starts, map->size,
						  addr - map->start + 1);
	if (!kallsyms_lookup_size_offset(addr, &size, &offset))
		return end;
	return min(end, addr - offset + size);
}

/*
 * The size of a symbol without the INT3s at its end: there may be two million. Some may be of
 * its last instruction, or probes.
 */
static unsigned long text_used_size(unsigned long start, unsigned long end)
{
	while (end > start && *(u8 *)(end - 1) == INT3_INSN_OPCODE)
		end--;
	return end - start;
}

/* Bytes of text read at a time, unless a function is longer. */
#define LEARN_SIZE	SZ_16K

static int text_index_learn_code(struct text_index *index)
{
	u8 *code __free(kvfree) = NULL;
	unsigned long end = text_index_end(index), start = index->next, next, len, read;

	if (start == end)
		return 0;
	next = text_symbol_end(index, start);
	len = min(end - start, max(text_used_size(start, next) + MAX_INSN_SIZE, LEARN_SIZE));
	/* A breakpoint of kgdb may hide a branch, also one that is set meanwhile. */
	if (kgdb_has_break_in(start, start + len))
		return -EAGAIN;
	code = kvmalloc(len, LEARN_GFP);
	if (!code)
		return -ENOMEM;
	scoped_guard(mutex, &text_mutex)
		read = kprobe_read_text(code, start, len);
	if (read != len)
		return -EFAULT;
	if (kgdb_has_break_in(start, start + len))
		return -EAGAIN;

	for (; index->next < end && (next <= start + len || index->next == start);
	     next = text_symbol_end(index, next)) {
		kprobe_scan_branches(&index->map, code + (index->next - start),
				     min(next, start + len) - index->next, index->next,
				     is_indirect_thunk);
		cond_resched();
		index->next = next;
	}
	if (index->next < end)
		return 1;
	kvfree(index->starts);
	index->starts = NULL;
	return 0;
}

/*
 * Do one step in building the index of a text, which takes a few milliseconds at most. A module
 * may be unloaded between two steps. There is no index of livepatches and of init text.
 */
int arch_learn_text(unsigned long addr)
{
	struct kprobe_text *text = kprobe_text_at(addr);

	if (IS_ERR(text))
		return PTR_ERR(text);
	return text->arch ? text_index_learn_code(text->arch) : text_index_create(text) ?: 1;
}
EXPORT_SYMBOL_IF_KUNIT(arch_learn_text);

void arch_forget_text(struct kprobe_text *text)
{
	text_index_free(text->arch);
	text->arch = NULL;
}
EXPORT_SYMBOL_IF_KUNIT(arch_forget_text);

/*
 * kprobe_branches_check() - Check if a jump at @addr may displace @size bytes, more than 1
 *
 * They are instructions of one function. The first byte may be a branch target, the others must
 * not be. kprobe_mutex, jump_label_lock() and text_mutex are held. Returns 0 if it may; -EAGAIN
 * if arch_learn_text() must be called for the text first; -ERANGE if they do not end in the text;
 * -EBUSY if another user of the text patches them; -EADDRINUSE if there may be a branch into them.
 */
int kprobe_branches_check(unsigned long addr, unsigned int size)
{
	void *start = (void *)addr, *last = start + size - 1;
	const struct branch_map *map = branch_map_at(addr);

	if (!map)
		return -EAGAIN;
	if (size > map->start + map->size - addr)
		return -ERANGE;
	if (ftrace_text_reserved(start, last))
		return -EBUSY;

	/* Reserved text has more than one byte, so a bit is set after the first. */
	if (!kprobe_branches_reach(addr + 1, size - 1, addr))
		return 0;
	return jump_label_text_reserved(start, last) || static_call_text_reserved(start, last) ?
	       -EBUSY : -EADDRINUSE;
}

/*
 * kprobe_branches_reach() - Check if a branch may lead to one of the @size bytes from @addr on
 *
 * Returns false if none does, no jump label and no static call patches them, and they are in the
 * text that contains @text, whose index is complete; else true. kprobe_mutex is held.
 */
bool kprobe_branches_reach(unsigned long addr, unsigned int size, unsigned long text)
{
	const struct branch_map *map = branch_map_at(text);
	unsigned long offset;

	if (!map)
		return true;
	offset = addr - map->start;
	return offset >= map->size || size > map->size - offset ||
	       find_next_bit(map->bits, offset + size, offset) < offset + size;
}
