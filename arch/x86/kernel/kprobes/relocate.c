// SPDX-License-Identifier: GPL-2.0
/*
 * Relocation: copies of instructions that do the same at another address
 */

#include <linux/errno.h>
#include <linux/export.h>
#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/string.h>
#include <linux/unaligned.h>

#include <asm/text-patching.h>

#include <kunit/visibility.h>

#include "insn.h"
#include "opcode.h"

/*
 * kprobe_relocate_insn() - Copy an instruction so that it does the same at another address
 *
 * The instruction, decoded from bytes that may themselves be a copy, is executed at @from, and the
 * copy in @buf, which must not overlap them, will be at @to. The copy of an indirect call pushes
 * the address after the copy: the caller must let execution continue correctly there.
 *
 * Returns the length of the copy in bytes; or with @buf unchanged, -EILSEQ if the instruction
 * depends on its address other than by a rip-relative operand; -ERANGE if that operand is too far
 * from @to.
 */
int kprobe_relocate_insn(u8 *buf, struct insn *insn, unsigned long from, unsigned long to)
{
	long disp = insn->displacement.value + from - to;
	bool relative = is_rip_relative(insn);

	/* Relative to EIP, an operand counts modulo 4 GiB. */
	if (is_relative_class(kprobe_insn_class(insn)) || insn->emulate_prefix_size ||
	    (relative && insn->addr_bytes != 8))
		return -EILSEQ;
	if (relative && disp != (s32)disp)
		return -ERANGE;

	memcpy(buf, insn->kaddr, insn->length);
	if (relative)
		put_unaligned_le32(disp, buf + insn_offset_displacement(insn));
	return insn->length;
}
EXPORT_SYMBOL_IF_KUNIT(kprobe_relocate_insn);

#define JCC32_INSN_SIZE		6

/* call 1f; 1: movq $imm32, (%rsp) - without the REX prefix outside of 64-bit mode */
#define PUSH_SIZE		(CALL_INSN_SIZE + 8)

/*
 * An indirect call grows most, by the push. At most four bytes precede the last
 * instruction, and of what can be there only a short Jcc, two bytes long, grows.
 */
static_assert(PUSH_SIZE + MAX_INSN_SIZE == DISPLACED_INSN_COPY_MAX);
static_assert((JMP32_INSN_SIZE - 1) / 2 * JCC32_INSN_SIZE + DISPLACED_INSN_COPY_MAX ==
	      DISPLACED_COPY_MAX);

/*
 * True if the operand depends on the stack pointer, which a push moves. An operand
 * below the stack needs no care: an interrupt would overwrite it, too.
 */
static bool is_sp_relative(const struct insn *insn)
{
	return insn_rm_is_sp(insn) ||
	       (insn->sib.nbytes && X86_SIB_BASE(insn->sib.bytes[0]) == 4 &&
		!X86_REX_B(insn->rex_prefix.bytes[0]));	/* R12 */
}

/*
 * No task may sleep and no CPU may idle in a detour. An ENDBR must stay: with IBT, an
 * indirect branch must find it at its target.
 */
static bool can_be_displaced(const struct insn *insn)
{
	enum insn_run run;

	switch (kprobe_insn_class(insn)) {
	case INSN_LOOP:
	case INSN_JCXZ:
	case INSN_WAIT:
	case INSN_TIMED_WAIT:
	case INSN_ENDBR:
		return false;
	case INSN_CALL_INDIRECT:
		if (is_sp_relative(insn))
			return false;
		fallthrough;
	default:
		run = kprobe_analyse_insn(insn);
		return run != INSN_RUN_NEVER && run != INSN_RUN_STEP;
	}
}

/*
 * kprobe_displaced_needs_place() - True if moving an instruction would undo a mitigation
 *
 * @its: Indirect branches are only allowed in the upper half of a cache line; others were replaced
 * by jumps to thunks, see MITIGATION_ITS. @lfence: An LFENCE precedes each indirect branch and must
 * stay there.
 */
bool kprobe_displaced_needs_place(const struct insn *insn, bool its, bool lfence)
{
	switch (kprobe_insn_class(insn)) {
	case INSN_RET:
		return its;
	case INSN_JMP_INDIRECT:
	case INSN_CALL_INDIRECT:
		return its || lfence;
	default:
		return lfence && insn_opcode(insn) == OPCODE_GROUP15 &&
		       insn->modrm.bytes[0] == MODRM_LFENCE && !mandatory_prefix(insn);
	}
}
EXPORT_SYMBOL_IF_KUNIT(kprobe_displaced_needs_place);

/*
 * kprobe_displaced_size() - Compute how many bytes a jump of @jump_size bytes displaces
 *
 * @code is a copy of the text from the address of the jump on, of @len bytes, up to the end of the
 * function. For @its and @lfence see kprobe_displaced_needs_place().
 *
 * A jump displaces whole instructions, at least as long as the jump. One that always
 * jumps or returns is the last: the bytes after it may be anything, but the jump may
 * need the room. The caller must make sure that nothing else branches there.
 *
 * Returns the size, from @jump_size to MAX_OPTIMIZED_LENGTH; -EILSEQ if one of the instructions
 * cannot be displaced; -EPERM if one must stay where it is; -ERANGE if the function ends before.
 */
int kprobe_displaced_size(const u8 *code, size_t len, unsigned int jump_size, bool its, bool lfence)
{
	size_t size = 0;
	struct insn insn;
	char class;
	int err;

	if (len < jump_size)
		return -ERANGE;

	do {
		if (kprobe_cfi_check_size(code + size, len - size))
			return -EILSEQ;
		err = insn_decode(&insn, code + size, len - size, INSN_MODE_KERN);
		if (err)
			return err == -ENODATA && len - size < MAX_INSN_SIZE ? -ERANGE : -EILSEQ;

		if (!can_be_displaced(&insn))
			return -EILSEQ;
		if (kprobe_displaced_needs_place(&insn, its, lfence))
			return -EPERM;

		class = kprobe_insn_class(&insn);
		size += insn.length;
		if (is_jump_class(class))
			return max_t(size_t, size, jump_size);
		if (is_call_class(class) && size < jump_size)
			return -EILSEQ;
	} while (size < jump_size);

	return size;
}
EXPORT_SYMBOL_IF_KUNIT(kprobe_displaced_size);

/*
 * Copy a direct branch as a near Jcc, or else as a near JMP, without its prefixes: those that can
 * be displaced are ignored, are hints, or concern a feature that the kernel does not use (BND).
 */
static int relocate_branch(u8 *buf, const struct insn *insn, unsigned long from,
			   unsigned long to)
{
	bool jcc = kprobe_insn_class(insn) == INSN_JCC;
	int size = jcc ? JCC32_INSN_SIZE : JMP32_INSN_SIZE;
	long disp = from + insn->length + insn->immediate.value - (to + size);

	if (disp != (s32)disp)
		return -ERANGE;

	if (jcc)
		put_unaligned_be16(OPCODE_JCC32(insn_opcode(insn) & 0xf), buf);
	else
		buf[0] = JMP32_INSN_OPCODE;
	put_unaligned_le32(disp, buf + size - DISP32_SIZE);
	return size;
}

static int relocate_jmp_of_call(u8 *buf, struct insn *insn, unsigned long from, unsigned long to)
{
	int len = kprobe_relocate_insn(buf, insn, from, to);

	if (len > 0)
		buf[insn_offset_modrm(insn)] ^= (GROUP5_CALL ^ GROUP5_JMP) << 3;
	return len;
}

/*
 * Push @address by a call, so that the CPU's return stack stays balanced, although
 * the return to @address itself is mispredicted.
 */
static void put_call_push(u8 *buf, const struct insn *insn, unsigned long address)
{
	buf[0] = CALL_INSN_OPCODE;
	put_unaligned_le32(0, buf + 1);
	buf += CALL_INSN_SIZE;
	if (insn->x86_64)
		*buf++ = 0x48;
	buf[0] = 0xc7;
	buf[1] = 0x04;
	buf[2] = 0x24;
	put_unaligned_le32(address, buf + 3);
}

static int relocate_call(u8 *buf, struct insn *insn, unsigned long from, unsigned long to)
{
	long address = from + insn->length;
	unsigned int push = PUSH_SIZE - !insn->x86_64;
	int len;

	if (address != (s32)address)
		return -ERANGE;

	if (kprobe_insn_class(insn) == INSN_CALL)
		len = relocate_branch(buf + push, insn, from, to + push);
	else
		len = relocate_jmp_of_call(buf + push, insn, from, to + push);
	if (len < 0)
		return len;

	put_call_push(buf, insn, address);
	return push + len;
}

/*
 * kprobe_relocate_displaced() - Copy a displaced instruction into a detour
 *
 * kprobe_displaced_size() has accepted it. Unlike kprobe_relocate_insn() this copies branches, too.
 * The copy of a call pushes the address after the original, so the callee does not return to the
 * copy.
 *
 * Returns the length of the copy, which does not depend on the addresses and is at most
 * DISPLACED_INSN_COPY_MAX; -ERANGE if what the instruction refers to is too far from @to.
 */
int kprobe_relocate_displaced(u8 *buf, struct insn *insn, unsigned long from, unsigned long to)
{
	switch (kprobe_insn_class(insn)) {
	case INSN_JCC:
	case INSN_JMP:
		return relocate_branch(buf, insn, from, to);
	case INSN_CALL:
	case INSN_CALL_INDIRECT:
		return relocate_call(buf, insn, from, to);
	default:
		return kprobe_relocate_insn(buf, insn, from, to);
	}
}
EXPORT_SYMBOL_IF_KUNIT(kprobe_relocate_displaced);
