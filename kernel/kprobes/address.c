// SPDX-License-Identifier: GPL-2.0
/*
 * From what the caller of a registration gave to an address that may be probed.
 */
#include "internal.h"

#include <linux/kallsyms.h>
#include <linux/memory.h>
#include <linux/module.h>
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

static int resolve(kprobe_opcode_t *addr, const char *symbol, unsigned long offset,
		   struct kprobe_address *where)
{
	unsigned long given, start;
	bool entry;

	if (!addr == !symbol)
		return -EINVAL;
	if (symbol)
		addr = kprobe_lookup_name(symbol, offset);
	if (!addr)
		return -ENOENT;

	given = (unsigned long)addr + offset;
	if (!kallsyms_lookup_size_offset(given, NULL, &offset))
		return -ENOENT;
	start = given - offset;
	where->addr = (unsigned long)arch_adjust_kprobe_addr(start, offset, &entry);
	where->flags = entry ? KPROBE_FLAG_ON_FUNC_ENTRY : 0;
	return 0;
}

/**
 * kprobe_resolve - Find the address that a probe is meant for
 * @p: A probe as its caller gave it.
 * @where: Set to the address, and to KPROBE_FLAG_ON_FUNC_ENTRY or 0.
 *
 * Return: 0; -EINVAL if symbol and address are both given, or neither; -ENOENT
 *	if there is no such symbol or none that covers the address.
 */
int kprobe_resolve(const struct kprobe *p, struct kprobe_address *where)
{
	return resolve(p->addr, p->symbol_name, p->offset, where);
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
	struct kprobe_address where;
	int err;

	err = resolve(addr, sym, offset, &where);
	if (err)
		return err;
	return where.flags & KPROBE_FLAG_ON_FUNC_ENTRY ? 0 : -EINVAL;
}

/*
 * A module that is going hears of it from us, under kprobe_mutex. So while that
 * is held, a module seen here in another state keeps its text.
 */
static int check_module(unsigned long addr)
{
	struct module *mod;

	lockdep_assert_held(&kprobe_mutex);
	guard(preempt)();
	mod = __module_text_address(addr);
	if (!mod)
		return -EINVAL;
	if (mod->state == MODULE_STATE_GOING)
		return -ENOENT;
	if (within_module_init(addr, mod) && mod->state != MODULE_STATE_COMING)
		return -ENOENT;
	return 0;
}

static int check_text(unsigned long addr)
{
	return core_kernel_text(addr) ? 0 : check_module(addr);
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

static int check_boundary(unsigned long addr, struct insn_cursor *cursor)
{
	unsigned long offset;

	if (!kallsyms_lookup_size_offset(addr, NULL, &offset))
		return -ENOENT;
	if (cursor->function != addr - offset || cursor->pos > addr) {
		cursor->function = addr - offset;
		cursor->pos = cursor->function;
	}
	return arch_seek_insn(&cursor->pos, addr);
}

/**
 * kprobe_check_address - Check that an address may be probed
 * @where: The address; KPROBE_FLAG_FTRACE is added to its flags if ftrace owns
 *	the instruction.
 * @cursor: Where the last check of a batch has stopped decoding; zero before
 *	the first. Addresses in ascending order make each function be decoded
 *	once.
 *
 * Context: Process context with kprobe_mutex, jump_label_lock() and text_mutex
 *	held: nobody else's patching is under way.
 * Return: 0, or -EINVAL, -ENOENT or -EILSEQ as register_kprobe() says.
 */
int kprobe_check_address(struct kprobe_address *where, struct insn_cursor *cursor)
{
	int err;

	err = check_text(where->addr);
	if (err)
		return err;
	if (within_kprobe_blacklist(where->addr))
		return -EINVAL;
	/* What ftrace owns is a whole instruction, and nobody else's. */
	if (is_ftrace_site(where->addr)) {
		if (!IS_ENABLED(CONFIG_KPROBES_ON_FTRACE))
			return -EINVAL;
		where->flags |= KPROBE_FLAG_FTRACE;
		return 0;
	}
	if (kprobe_reserved(where->addr) || is_cfi_preamble(where->addr))
		return -EINVAL;
	return check_boundary(where->addr, cursor);
}
