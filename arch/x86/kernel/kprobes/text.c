// SPDX-License-Identifier: GPL-2.0
/*
 * The text without probes, and the start of each instruction in it; writing text
 */
#include <linux/errno.h>
#include <linux/ftrace.h>
#include <linux/kprobes.h>
#include <linux/memory.h>
#include <linux/minmax.h>
#include <linux/mm.h>
#include <linux/perf_event.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include <asm/ibt.h>
#include <asm/text-patching.h>

#include "detour.h"
#include "insn.h"
#include "text.h"

/*
 * Functions have less padding inside them. The last symbol of the kernel's text, which
 * ends at a multiple of 2 MiB, may have two million INT3s after it.
 */
#define MAX_PADDING	256

#ifdef CONFIG_OPTPROBES
/* The bytes that the jump of a site or of a relay at @addr has replaced, and their number. */
static const u8 *jump_replaced(struct kprobe *kp, unsigned long addr, unsigned int *size)
{
	if (kp && kprobe_optimized(kp)) {
		*size = kprobe_jump_size(detour_of(kp));
		return detour_of(kp)->code;
	}
	kp = kprobe_relay_owner(addr);
	if (!kp)
		return NULL;
	*size = JMP32_INSN_SIZE;
	return kprobe_relay_padding(detour_of(kp));
}
#else
static const u8 *jump_replaced(struct kprobe *kp, unsigned long addr, unsigned int *size)
{
	return NULL;
}
#endif

/* Restore in @code what is replaced from @pos bytes after @addr on, perhaps before it. */
static void restore_text_at(u8 *code, unsigned int len, int pos, unsigned long addr)
{
	struct kprobe *kp = get_kprobe((void *)addr + pos);
	unsigned int size = INT3_INSN_SIZE;
	const u8 *original;

	/* What ftrace patches is not ours, and a relay is a jump. */
	if (kp ? kprobe_ftrace(kp) : pos >= 0 && code[pos] == INT3_INSN_OPCODE)
		return;
	original = jump_replaced(kp, addr + pos, &size);
	if (!original && kp)
		original = &kp->opcode;
	if (!original)
		return;
	for (unsigned int i = 0; i < size; i++)
		if (pos + i < len)
			code[pos + i] = original[i];
}

static bool may_be_jump(u8 opcode)
{
	return opcode == JMP32_INSN_OPCODE || opcode == JMP8_INSN_OPCODE;
}

/* A jump from an ftrace site, to a trampoline of BPF, comes back as a call does. */
#ifdef CONFIG_DYNAMIC_FTRACE_WITH_JMP
static bool is_ftrace_jump(u8 opcode, unsigned long addr)
{
	return opcode == JMP32_INSN_OPCODE && ftrace_location_range(addr, addr) == addr;
}
#else
static bool is_ftrace_jump(u8 opcode, unsigned long addr)
{
	return false;
}
#endif

static void restore_original_text(u8 *code, unsigned long addr, unsigned int len)
{
	int pos = IS_ENABLED(CONFIG_OPTPROBES) ? 1 - JMP32_INSN_SIZE : 0;

	/* Nothing may be mapped in front of the page. */
	for (; pos < 0; pos++)
		if (offset_in_page(addr) < -pos || may_be_jump(((const u8 *)addr)[pos]))
			restore_text_at(code, len, pos, addr);
	for (; pos < (int)len; pos++) {
		if (code[pos] == INT3_INSN_OPCODE || may_be_jump(code[pos]))
			restore_text_at(code, len, pos, addr);
		if (is_ftrace_jump(code[pos], addr + pos))
			code[pos] = CALL_INSN_OPCODE;
	}
}

/*
 * kprobe_read_text() - Copy the text without probes; kprobe_mutex and text_mutex are held
 *
 * Returns the number of bytes copied: fewer than @len if the mapping ends before, perhaps 0.
 */
unsigned int kprobe_read_text(u8 *buf, unsigned long addr, unsigned int len)
{
	lockdep_assert_held(&text_mutex);
	if (copy_from_kernel_nofault(buf, (void *)addr, len)) {
		len = min_t(unsigned int, len, PAGE_SIZE - offset_in_page(addr));
		if (copy_from_kernel_nofault(buf, (void *)addr, len))
			return 0;
	}
	restore_original_text(buf, addr, len);
	return len;
}

/* Decode the instruction at @addr, from a copy of @len bytes. */
static int decode_copy(struct insn *insn, const u8 *code, unsigned int len, unsigned long addr)
{
	if (!len || (code[0] == INT3_INSN_OPCODE && kgdb_has_break_in(addr, addr + 1)))
		return -EILSEQ;
	return insn_decode(insn, code, len, INSN_MODE_KERN) ? -EILSEQ : 0;
}

/*
 * kprobe_decode_insn() - Decode an instruction of the text without probes
 *
 * @insn will refer to @code, a buffer of ORIGINAL_CODE_SIZE bytes. kprobe_mutex and text_mutex are
 * held. Returns 0, or -EILSEQ if the text cannot be read, is no instruction, or is a breakpoint of
 * kgdb, which hides an instruction of unknown length.
 */
int kprobe_decode_insn(struct insn *insn, u8 *code, unsigned long addr)
{
	return decode_copy(insn, code, kprobe_read_text(code, addr, ORIGINAL_CODE_SIZE), addr);
}

/* The number of bytes from @insn on that must not be probed, or 0. */
static unsigned int reserved_text_size(const struct insn *insn)
{
	size_t len = insn->end_kaddr - insn->kaddr;

	if (kprobe_is_static_call_tramp(insn->kaddr, len))
		return JMP32_INSN_SIZE;
	return IS_ENABLED(CONFIG_CFI) ? kprobe_cfi_check_size(insn->kaddr, len) : 0;
}

int arch_seek_insn(unsigned long *pos, unsigned long *before, unsigned long addr)
{
	unsigned int reserved, padding = 0, len = 0, offset = 0;
	u8 code[16 * MAX_INSN_SIZE];
	struct insn insn;

	for (; *pos <= addr; offset += *pos - *before) {
		/* Many at a time: reading one by itself costs half as much as decoding it. */
		if (offset + MAX_INSN_SIZE > len) {
			len = min(addr - *pos + MAX_INSN_SIZE, sizeof(code));
			len = kprobe_read_text(code, *pos, len);
			offset = 0;
		}
		if (decode_copy(&insn, code + offset, len - offset, *pos))
			return -EILSEQ;
		padding = code[offset] == INT3_INSN_OPCODE ? padding + 1 : 0;
		if (padding > MAX_PADDING)
			return -EILSEQ;
		reserved = reserved_text_size(&insn);
		if (addr - *pos < reserved)
			return -EINVAL;
		if (*pos == addr)
			return kprobe_relays_overlap(addr, INT3_INSN_SIZE) ? -EBUSY : 0;
		*before = *pos;
		*pos += reserved ?: insn.length;
	}
	return -EILSEQ;
}

kprobe_opcode_t *arch_adjust_kprobe_addr(unsigned long addr, unsigned long offset,
					 bool *on_func_entry)
{
	unsigned long entry = is_endbr((u32 *)addr) ? ENDBR_INSN_SIZE : 0;

	*on_func_entry = !offset || offset == entry;
	return (kprobe_opcode_t *)(addr + (*on_func_entry ? entry : offset));
}

/*
 * kprobe_write_text() - Write text that no CPU executes meanwhile, or one byte, and tell perf
 *
 * @old_len is the length of the old text: @len, at most JMP32_INSN_SIZE; or 0 if this is a new
 * slot. free_insn_slot() tells perf when that is free again.
 *
 * All changes of the text are made here, but for the jumps of sites, which
 * smp_text_poke_batch_finish() writes: a decoder of what CPUs have executed needs each of them.
 */
void kprobe_write_text(void *addr, const void *code, unsigned int len, unsigned int old_len)
{
	u8 old[JMP32_INSN_SIZE];

	lockdep_assert_held(&text_mutex);
	memcpy(old, addr, old_len);
	text_poke(addr, code, len);
	perf_event_text_poke(addr, old, old_len, code, len);
}
