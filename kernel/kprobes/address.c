// SPDX-License-Identifier: GPL-2.0
/*
 * From what the caller of a registration gave to an address that may be probed.
 */
#include "internal.h"

#include <linux/kallsyms.h>
#include <linux/kernel.h>
#include <linux/memory.h>
#include <linux/string.h>

/**
 * kprobe_lookup_name - Find the text of a symbol
 * @name: The symbol, also as "module:symbol".
 * @offset: The offset that will be probed, for architectures that have several
 *	entries to a function.
 *
 * Context: Any.
 * Return: Its address, or NULL.
 */
kprobe_opcode_t *__weak kprobe_lookup_name(const char *name, unsigned int offset)
{
	return (kprobe_opcode_t *)kallsyms_lookup_name(name);
}

/**
 * arch_adjust_kprobe_addr - Where to probe for an offset into a function
 * @addr: The function's address.
 * @offset: Bytes from there.
 * @on_func_entry: Set to whether this is the function's entry.
 *
 * Context: Any.
 * Return: The address to probe.
 */
kprobe_opcode_t *__weak arch_adjust_kprobe_addr(unsigned long addr, unsigned long offset,
						bool *on_func_entry)
{
	*on_func_entry = !offset;
	return (kprobe_opcode_t *)(addr + offset);
}

/* Find the function that @addr is in, without a search if it is that of @last. */
static bool find_function(unsigned long addr, struct kprobe_address *where,
			  const struct kprobe_address *last)
{
	unsigned long offset;

	if (addr - last->function < last->size) {
		*where = *last;
		return true;
	}
	if (!kallsyms_lookup_size_offset(addr, &where->size, &offset))
		return false;
	where->function = addr - offset;
	return true;
}

static int resolve(kprobe_opcode_t *addr, const char *symbol, unsigned long offset,
		   struct kprobe_address *where, struct kprobe_address *last)
{
	unsigned long given;
	bool entry;

	if (!addr == !symbol)
		return -EINVAL;
	if (symbol)
		addr = kprobe_lookup_name(symbol, offset);
	if (!addr)
		return -ENOENT;

	given = (unsigned long)addr + offset;
	if (!find_function(given, where, last))
		return -ENOENT;
	addr = arch_adjust_kprobe_addr(where->function, given - where->function, &entry);
	where->addr = (unsigned long)addr;
	where->flags = entry ? KPROBE_FLAG_ON_FUNC_ENTRY : 0;
	*last = *where;
	return 0;
}

/**
 * kprobe_resolve - Find the address that a probe is meant for
 * @p: A probe as its caller gave it.
 * @where: Set to the address.
 * @last: What the last probe of a batch was resolved to; zero before the first.
 *
 * Return: 0; -EINVAL if symbol and address are both given, or neither; -ENOENT
 *	if there is no such symbol or none that covers the address.
 */
int kprobe_resolve(const struct kprobe *p, struct kprobe_address *where,
		   struct kprobe_address *last)
{
	return resolve(p->addr, p->symbol_name, p->offset, where, last);
}

/**
 * kprobe_on_func_entry - Ask whether an address is a function's entry
 * @addr: The address, or NULL if @sym is given.
 * @sym: The symbol, or NULL if @addr is given.
 * @offset: Bytes from there.
 *
 * Context: Any.
 * Return: 0 if it is; -EINVAL if it is not, or @addr and @sym are both given, or
 *	neither; -ENOENT if there is no such symbol.
 */
int kprobe_on_func_entry(kprobe_opcode_t *addr, const char *sym, unsigned long offset)
{
	struct kprobe_address where, last = { };
	int err;

	err = resolve(addr, sym, offset, &where, &last);
	if (err)
		return err;
	return where.flags & KPROBE_FLAG_ON_FUNC_ENTRY ? 0 : -EINVAL;
}

static int check_text(unsigned long addr)
{
	return core_kernel_text(addr) ? 0 : module_check_text(addr);
}

/* The preamble with the hash of a function's type is data to its callers. */
static bool is_cfi_preamble(unsigned long addr)
{
	char name[KSYM_NAME_LEN];

	return IS_ENABLED(CONFIG_CFI_CLANG) && !lookup_symbol_name(addr, name) &&
	       str_has_prefix(name, "__cfi_");
}

/**
 * arch_seek_insn - Go from instruction to instruction
 * @pos: An instruction's address at or below @addr, moved up.
 * @addr: Where to.
 *
 * For architectures whose instructions differ in length, or some of whose
 * instructions are reserved. Others have arch_prepare_kprobe() check.
 *
 * Context: Process context with text_mutex held.
 * Return: 0 if an instruction starts at @addr, and *@pos is @addr; -EILSEQ if
 *	none does; -EINVAL if it is part of a sequence that must stay as it is.
 */
int __weak arch_seek_insn(unsigned long *pos, unsigned long addr)
{
	*pos = addr;
	return 0;
}

static int check_boundary(const struct kprobe_address *where, struct insn_cursor *cursor)
{
	if (cursor->function != where->function || cursor->pos > where->addr) {
		cursor->function = where->function;
		cursor->pos = where->function;
	}
	return arch_seek_insn(&cursor->pos, where->addr);
}

/**
 * kprobe_check_place - Check that a function may be probed
 * @where: The address; KPROBE_FLAG_FTRACE is added to its flags if ftrace owns
 *	the instruction.
 * @cursor: What is known of the function that was asked for before; zero at first.
 *
 * Context: Process context with kprobe_mutex held.
 * Return: 0, or -EINVAL or -ENOENT as register_kprobe() says.
 */
int kprobe_check_place(struct kprobe_address *where, struct blacklist_cursor *cursor)
{
	int err;

	err = check_text(where->addr);
	if (err)
		return err;
	if (kprobe_is_blacklisted(where, cursor))
		return -EINVAL;
	/* What ftrace owns is a whole instruction, and nobody else's. */
	if (is_ftrace_site(where->addr)) {
		if (!IS_ENABLED(CONFIG_KPROBES_ON_FTRACE))
			return -EINVAL;
		where->flags |= KPROBE_FLAG_FTRACE;
		return 0;
	}
	return is_cfi_preamble(where->addr) ? -EINVAL : 0;
}

/**
 * kprobe_check_insn - Check that an instruction may be probed
 * @where: The address, which kprobe_check_place() has accepted.
 * @cursor: Where the last check of a batch has stopped decoding; zero before
 *	the first. Addresses in ascending order make each function be decoded
 *	once.
 *
 * Context: Process context with kprobe_mutex, jump_label_lock() and text_mutex
 *	held: nobody else's patching is under way.
 * Return: 0, or -EINVAL or -EILSEQ as register_kprobe() says.
 */
int kprobe_check_insn(const struct kprobe_address *where, struct insn_cursor *cursor)
{
	if (where->flags & KPROBE_FLAG_FTRACE)
		return 0;
	return kprobe_reserved(where->addr) ? -EINVAL : check_boundary(where, cursor);
}
