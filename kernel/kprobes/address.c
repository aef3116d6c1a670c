// SPDX-License-Identifier: GPL-2.0
/*
 * Resolve and check the address that a caller wants to probe
 */
#include "internal.h"

#include <linux/ftrace.h>
#include <linux/kallsyms.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/string.h>

/*
 * kprobe_lookup_name() - The address of a symbol, "name" or "module:name", or NULL
 *
 * The @offset to be probed is for architectures whose functions have several entry points.
 */
kprobe_opcode_t *__weak kprobe_lookup_name(const char *name, unsigned int offset)
{
	return (kprobe_opcode_t *)kallsyms_lookup_name(name);
}

kprobe_opcode_t *__weak arch_adjust_kprobe_addr(unsigned long addr, unsigned long offset,
						bool *on_func_entry)
{
	*on_func_entry = !offset;
	return (kprobe_opcode_t *)(addr + offset);
}

/*
 * kprobe_resolve() - Find the address that a probe is meant for
 *
 * Returns 0; -EINVAL if symbol and address are both given, or neither; -ENOENT if the symbol does
 * not exist or no symbol covers the address.
 */
int kprobe_resolve(const struct kprobe *p, struct kprobe_address *where)
{
	kprobe_opcode_t *addr = p->addr;
	unsigned long given, size, offset;
	bool entry;

	where->why = NULL;
	if (!addr == !p->symbol_name)
		return kprobe_refuse(where, -EINVAL, addr ? "symbol and address are both given" :
							    "neither symbol nor address is given");
	if (p->symbol_name)
		addr = kprobe_lookup_name(p->symbol_name, p->offset);
	if (!addr)
		return kprobe_refuse(where, -ENOENT, "no such symbol");

	given = (unsigned long)addr + p->offset;
	if (!kallsyms_lookup_size_offset(given, &size, &offset))
		return kprobe_refuse(where, -ENOENT, "no symbol covers the address");
	where->function = given - offset;
	where->addr = (unsigned long)arch_adjust_kprobe_addr(where->function, offset, &entry);
	where->flags = entry ? KPROBE_FLAG_ON_FUNC_ENTRY : 0;
	return 0;
}

/*
 * kprobe_on_func_entry() - Check that an address, @addr or @sym plus @offset, is a function's entry
 *
 * Returns 0 if it is; -EINVAL if it is not, or if @addr and @sym are both given, or neither;
 * -ENOENT if the symbol does not exist. Any context.
 */
int kprobe_on_func_entry(kprobe_opcode_t *addr, const char *sym, unsigned long offset)
{
	const struct kprobe p = { .addr = addr, .symbol_name = sym, .offset = offset };
	struct kprobe_address where;
	int err;

	err = offset == p.offset ? kprobe_resolve(&p, &where) : -EINVAL;
	if (err)
		return err;
	return where.flags & KPROBE_FLAG_ON_FUNC_ENTRY ? 0 : -EINVAL;
}

/* Why no address of a function must be probed, besides the blacklist; or NULL */
static noinline_for_stack const char *function_refusal(unsigned long addr)
{
	char name[KSYM_NAME_LEN];

	if (lookup_symbol_name(addr, name))
		return NULL;
	if (str_has_prefix(name, "__cfi_") || str_has_prefix(name, "__pfx_"))
		return "callers read what precedes a function, or the kernel patches it";
	return kprobe_blacklist_has_parent(name) ? "part of a blacklisted function" : NULL;
}

int __weak arch_seek_insn(unsigned long *pos, unsigned long *before, unsigned long addr)
{
	*pos = addr;
	return 0;
}

/*
 * kprobe_check_place() - Check that a function may be probed; kprobe_mutex is held
 *
 * KPROBE_FLAG_FTRACE is added to the flags of @where if ftrace owns the instruction. Returns 0, or
 * -EINVAL, -EILSEQ or -ENOENT as documented at register_kprobe().
 */
int kprobe_check_place(struct kprobe_address *where, struct kprobe_cursor *cursor)
{
	unsigned long site;
	const char *why;
	int err;

	/* The gate area is text of user space. */
	if (!core_kernel_text(where->addr) || in_gate_area_no_mm(where->addr)) {
		err = IS_ENABLED(CONFIG_MODULES) ? kprobe_module_check_text(where->addr) : -EINVAL;
		if (err)
			return kprobe_refuse(where, err, err == -ENOENT ?
					     "text of a module that cannot be probed now" :
					     "no text of the kernel or of a module");
	}
	if (cursor->function != where->function) {
		cursor->function = where->function;
		cursor->pos = where->function;
		cursor->why = function_refusal(where->addr);
	}
	why = kprobe_blacklisted_by(where->addr) ?: cursor->why;
	if (why)
		return kprobe_refuse(where, -EINVAL, why);
	/* No other user patches an ftrace site. It may have several instructions. */
	site = ftrace_location(where->addr);
	if (site && site < where->addr)
		return kprobe_refuse(where, -EILSEQ, "ftrace patches it with what precedes it");
	if (site == where->addr) {
		if (!IS_ENABLED(CONFIG_KPROBES_ON_FTRACE))
			return kprobe_refuse(where, -EINVAL, "ftrace patches the instruction");
		where->flags |= KPROBE_FLAG_FTRACE;
	}
	return 0;
}

/*
 * kprobe_check_insn() - Check that an instruction, at an accepted place, may be probed
 *
 * With ascending addresses each function of a batch is decoded once. kprobe_mutex and the locks of
 * kprobe_text_lock() are held: no other patching is in progress. Returns 0, or -EINVAL or -EILSEQ
 * as documented at register_kprobe().
 */
int kprobe_check_insn(struct kprobe_address *where, struct kprobe_cursor *cursor)
{
	unsigned long before;
	const char *why;
	int err;

	if (where->flags & KPROBE_FLAG_FTRACE)
		return 0;
	why = kprobe_reserved_for(where->addr);
	if (why)
		return kprobe_refuse(where, -EINVAL, why);
	if (cursor->pos > where->addr)
		cursor->pos = where->function;
	err = arch_seek_insn(&cursor->pos, &before, where->addr);
	if (err == -EINVAL)
		return kprobe_refuse(where, err,
				     "part of code that others read or patch as a whole");
	if (err == -EBUSY)
		return kprobe_refuse(where, -EINVAL, "padding with a jump for another probe");
	return err;
}
