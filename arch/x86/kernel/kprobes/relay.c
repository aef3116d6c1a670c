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
#include <linux/ftrace.h>
#include <linux/kallsyms.h>
#include <linux/kprobes.h>
#include <linux/limits.h>
#include <linux/memory.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/unaligned.h>

#include <asm/text-patching.h>

#include "detour.h"
#include "scan.h"
#include "text.h"

/*
 * kprobe_relay_owner() - The site whose relay is at @addr, or NULL
 *
 * The bytes there are a jump to the detour of a site that has its relay there. Any context in
 * which RCU is watching. While the result is used, preemption is off or kprobe_mutex is held.
 */
struct kprobe *kprobe_relay_owner(unsigned long addr)
{
	u8 jump[JMP32_INSN_SIZE];
	struct kprobe *kp;

	if (copy_from_kernel_nofault(jump, (void *)addr, sizeof(jump)) ||
	    jump[0] != JMP32_INSN_OPCODE)
		return NULL;
	kp = kprobe_optinsn_slot_owner(addr + sizeof(jump) + (s32)get_unaligned_le32(jump + 1));
	return kp && addr == kprobe_relay_addr(detour_of(kp), kp) ? kp : NULL;
}

/* kprobe_relays_overlap() - True if one of some bytes is of a relay; kprobe_mutex is held */
bool kprobe_relays_overlap(unsigned long addr, unsigned int size)
{
	for (unsigned long pos = addr + 1 - JMP32_INSN_SIZE; pos < addr + size; pos++)
		if (kprobe_relay_owner(pos))
			return true;
	return false;
}

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
		if (get_kprobe((void *)pos) || kprobe_relay_owner(pos))
			return false;
	return !kprobe_branches_reach(addr, JMP32_INSN_SIZE, site) &&
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
		if (kprobe_decode_insn(&insn, code, pos))
			return 0;
		if (kprobe_branches_reach(pos, 1, site))
			after_jump = false;
		if (kprobe_insn_is_padding(&insn, &after_jump)) {
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

/*
 * kprobe_relay_find_place() - The address for the relay of a site, or 0 if there is no room
 *
 * Decodes the functions in reach from their start on. Sets @padded to false if no padding is in
 * reach: it makes no sense to try again. kprobe_mutex and text_mutex are held.
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

/*
 * kprobe_relay_make() - Write the relay that leads to the complete detour @op
 *
 * Before a jump leads to the relay, all CPUs must be synchronised. kprobe_mutex and text_mutex
 * are held.
 */
void kprobe_relay_make(struct arch_optimized_insn *op, const struct kprobe *kp)
{
	void *addr = (void *)kprobe_relay_addr(op, kp);
	u8 jump[JMP32_INSN_SIZE];

	memcpy(kprobe_relay_padding(op), addr, JMP32_INSN_SIZE);
	__text_gen_insn(jump, JMP32_INSN_OPCODE, addr, op->insn + DETOUR_ENTRY,
			sizeof(jump));
	kprobe_write_text(addr, jump, sizeof(jump), sizeof(jump));
}

/*
 * kprobe_relay_free() - Restore the padding where a relay is, at which there is no task any more
 *
 * kprobe_mutex is held. Takes text_mutex.
 */
void kprobe_relay_free(struct arch_optimized_insn *op, const struct kprobe *kp)
{
	guard(mutex)(&text_mutex);
	kprobe_write_text((void *)kprobe_relay_addr(op, kp), kprobe_relay_padding(op),
			  JMP32_INSN_SIZE, JMP32_INSN_SIZE);
}
