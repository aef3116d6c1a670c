// SPDX-License-Identifier: GPL-2.0
/*
 * Relays: jumps in padding, through which jumps of two bytes reach their detours
 *
 * A jump to a detour has five bytes. Where a branch leads into them, or others patch them,
 * or they are in the next function, the first instruction may still have room for a short
 * jump, of two bytes. That reaches 128 bytes back and 127 bytes ahead: to padding, where a
 * jump to the detour is written, the relay.
 *
 * Padding is NOPs and INT3s after an unconditional jump or a return, to which no branch
 * leads. So nothing leads to a relay but the jump at its site, and it lives as long as the
 * detour does.
 */
#include <linux/cleanup.h>
#include <linux/errno.h>
#include <linux/ftrace.h>
#include <linux/kallsyms.h>
#include <linux/kprobes.h>
#include <linux/limits.h>
#include <linux/memory.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/rbtree.h>
#include <linux/slab.h>
#include <linux/string.h>

#include <asm/text-patching.h>

#include "branches.h"
#include "relay.h"
#include "scan.h"
#include "text.h"

/**
 * struct relay - Jump in padding
 * @node:	In @relays.
 * @addr:	Its address.
 * @owner:	The site to whose detour it leads.
 * @padding:	The bytes that it replaces.
 */
struct relay {
	struct rb_node node;
	unsigned long addr;
	struct kprobe *owner;
	u8 padding[JMP32_INSN_SIZE];
};

/* All relays, by address. They do not overlap. kprobe_mutex. */
static struct rb_root relays = RB_ROOT;

static struct relay *relay_of(struct rb_node *node)
{
	return rb_entry_safe(node, struct relay, node);
}

static bool relay_precedes(struct rb_node *a, const struct rb_node *b)
{
	return relay_of(a)->addr < rb_entry(b, struct relay, node)->addr;
}

/* The first relay that ends after @addr, or NULL. */
static struct relay *relay_first_from(unsigned long addr)
{
	struct rb_node *node = relays.rb_node, *found = NULL;

	while (node) {
		if (relay_of(node)->addr + JMP32_INSN_SIZE > addr) {
			found = node;
			node = node->rb_left;
		} else {
			node = node->rb_right;
		}
	}
	return relay_of(found);
}

/* The first relay in [@start, @end), also if it is only partly in there, or NULL. */
static struct relay *relay_first_in(unsigned long start, unsigned long end)
{
	struct relay *relay = relay_first_from(start);

	return relay && relay->addr < end ? relay : NULL;
}

/* --------------------------------------------------------------------- places */

/* The lowest and the highest address that a jump of two bytes at @site reaches. */
static unsigned long relay_lowest(unsigned long site)
{
	return site + JMP8_INSN_SIZE + S8_MIN;
}

static unsigned long relay_highest(unsigned long site)
{
	return site + JMP8_INSN_SIZE + S8_MAX;
}

/* True if @addr, in padding, has room that nobody else uses. */
static bool relay_place_is_free(unsigned long addr, unsigned long site)
{
	/* The jump of a site may end here. A probe of the padding may be enabled later. */
	for (unsigned long pos = addr + 1 - JMP32_INSN_SIZE; pos < addr + JMP32_INSN_SIZE; pos++)
		if (get_kprobe((void *)pos))
			return false;
	return !kprobe_relays_overlap(addr, JMP32_INSN_SIZE) &&
	       !branches_reach(addr, JMP32_INSN_SIZE, site) &&
	       !ftrace_text_reserved((void *)addr, (void *)(addr + JMP32_INSN_SIZE - 1));
}

/*
 * The last place in padding from @start to @end, or 0. The first bytes stay for jumps of
 * five bytes that end there. Sets @padded if there are places, used or not.
 */
static unsigned long relay_find_in_padding(unsigned long start, unsigned long end,
					   unsigned long site, bool *padded)
{
	unsigned long first = max(start, relay_lowest(site));
	unsigned long place = min(end - JMP32_INSN_SIZE, relay_highest(site));

	*padded |= place >= first;
	for (; place >= first; place--)
		if (relay_place_is_free(place, site))
			return place;
	return 0;
}

/*
 * The number of bytes before a symbol that call depth tracking or FineIBT may use. Some of
 * these preambles are symbols of their own.
 */
static unsigned int relay_skip_preamble(unsigned long symbol)
{
	char name[KSYM_NAME_LEN];

	if (!IS_ENABLED(CONFIG_CALL_PADDING))
		return 0;
	if (!lookup_symbol_name(symbol, name) &&
	    (str_has_prefix(name, "__pfx_") || str_has_prefix(name, "__cfi_")))
		return 0;
	return CONFIG_FUNCTION_PADDING_BYTES;
}

/*
 * Find a place in the symbol from @start to @end. Returns 0 if there is none. An INT3 right
 * after a jump or a return stays: a CPU may run past those without knowing that it does.
 */
static unsigned long relay_find_in_symbol(unsigned long start, unsigned long end,
					  unsigned long site, bool *padded)
{
	unsigned long stop = min(end, relay_highest(site) + JMP32_INSN_SIZE);
	unsigned long padding = 0, place = 0, pos;
	u8 code[ORIGINAL_CODE_SIZE];
	bool after_jump = false;
	struct insn insn;

	for (pos = start; pos < stop; pos += insn.length) {
		if (decode_original_insn(&insn, code, pos) || is_kgdb_breakpoint(code, pos))
			return 0;
		if (branches_reach(pos, 1, site))
			after_jump = false;
		if (insn_is_padding(&insn, &after_jump)) {
			padding = padding ?: pos + (code[0] == INT3_INSN_OPCODE);
			continue;
		}
		if (padding)
			place = relay_find_in_padding(padding, pos, site, padded);
		if (place)
			return place;
		padding = 0;
	}
	if (!padding)
		return 0;
	return relay_find_in_padding(padding, min(pos, end - relay_skip_preamble(end)), site,
				     padded);
}

/**
 * kprobe_relay_find_place() - Find padding for the relay of a site
 * @site: The address of the site.
 * @padded: Set to false if no padding is in reach: it makes no sense to try again.
 *
 * Decodes the functions in reach from their start on.
 *
 * Context: Process; kprobe_mutex and text_mutex are held.
 * Return: The address for the relay, or 0 if no padding in reach has room.
 */
unsigned long kprobe_relay_find_place(unsigned long site, bool *padded)
{
	unsigned long pos = relay_lowest(site), place = 0, size, offset;

	lockdep_assert_held(&text_mutex);
	*padded = false;
	while (!place && pos <= relay_highest(site)) {
		if (!kallsyms_lookup_size_offset(pos, &size, &offset)) {
			pos++;
			continue;
		}
		pos -= offset;
		place = relay_find_in_symbol(pos, pos + size, site, padded);
		pos += size;
	}
	return place;
}

/* -------------------------------------------------------------- making, freeing */

/**
 * kprobe_relay_make() - Write a relay
 * @addr: The result of kprobe_relay_find_place().
 * @owner: The site.
 * @detour: The address at which its detour is entered.
 *
 * Before a jump leads to the relay, all CPUs must be synchronised.
 *
 * Context: Process, may sleep; kprobe_mutex and text_mutex are held.
 * Return: 0, or -ENOMEM.
 */
int kprobe_relay_make(unsigned long addr, struct kprobe *owner, const void *detour)
{
	struct relay *relay = kzalloc(sizeof(*relay), GFP_KERNEL);
	u8 jump[JMP32_INSN_SIZE];

	lockdep_assert_held(&text_mutex);
	if (!relay)
		return -ENOMEM;
	relay->addr = addr;
	relay->owner = owner;
	memcpy(relay->padding, (void *)addr, sizeof(relay->padding));
	__text_gen_insn(jump, JMP32_INSN_OPCODE, (void *)addr, detour, sizeof(jump));
	kprobe_write_text((void *)addr, jump, sizeof(jump), sizeof(jump));
	rb_add(&relay->node, &relays, relay_precedes);
	return 0;
}

static void relay_forget(struct relay *relay)
{
	rb_erase(&relay->node, &relays);
	kfree(relay);
}

/**
 * kprobe_relay_free() - Restore the padding where a relay is
 * @addr: The address of the relay. No task may be there any more.
 *
 * Context: Process, may sleep; kprobe_mutex is held. Takes text_mutex.
 */
void kprobe_relay_free(unsigned long addr)
{
	struct relay *relay = relay_first_in(addr, addr + 1);

	guard(mutex)(&text_mutex);
	kprobe_write_text((void *)addr, relay->padding, JMP32_INSN_SIZE, JMP32_INSN_SIZE);
	relay_forget(relay);
}

#ifdef CONFIG_MODULES
/**
 * kprobe_relays_forget() - Forget the relays in the text of a module that is being unloaded
 * @mod: The module.
 *
 * Context: Process; kprobe_mutex is held. No jump leads to the relays any more.
 */
void kprobe_relays_forget(const struct module *mod)
{
	unsigned long start = (unsigned long)mod->mem[MOD_TEXT].base;
	struct relay *relay;

	while ((relay = relay_first_in(start, start + mod->mem[MOD_TEXT].size))) {
		container_of(relay->owner, struct optimized_kprobe, kp)->optinsn.relay = 0;
		relay_forget(relay);
	}
}
#endif

/* -------------------------------------------------------------------- the text */

/**
 * kprobe_relays_restore_text() - Restore in a copy of the text what relays replace
 * @code: The copy.
 * @addr: The address of the text.
 * @len: Number of bytes.
 *
 * Context: Process; kprobe_mutex is held.
 */
void kprobe_relays_restore_text(u8 *code, unsigned long addr, unsigned int len)
{
	struct relay *relay = relay_first_in(addr, addr + len);

	for (; relay && relay->addr < addr + len; relay = relay_of(rb_next(&relay->node)))
		for (unsigned int i = 0; i < JMP32_INSN_SIZE; i++)
			if (relay->addr + i - addr < len)
				code[relay->addr + i - addr] = relay->padding[i];
}

/**
 * kprobe_relays_overlap() - Check for relays in some bytes of the text
 * @addr: The address of the first byte.
 * @size: The number of bytes.
 *
 * Context: Process; kprobe_mutex is held.
 * Return: true if one of the bytes belongs to a relay.
 */
bool kprobe_relays_overlap(unsigned long addr, unsigned int size)
{
	return relay_first_in(addr, addr + size);
}
