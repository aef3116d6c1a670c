// SPDX-License-Identifier: GPL-2.0
/*
 * Copies of instructions that do elsewhere what the originals do
 */

#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/unaligned.h>

#include <kunit/visibility.h>

#include "common.h"

/* Does it go somewhere relative to where it is? */
static bool is_relative_branch(const struct insn *insn)
{
	switch (insn_opcode(insn)) {
	case 0x70 ... 0x7f:	/* Jcc */
	case 0xe0 ... 0xe3:	/* LOOP, JCXZ */
	case 0xe8 ... 0xe9:	/* CALL, JMP */
	case 0xeb:
	case 0x0f80 ... 0x0f8f:
		return true;
	case 0xc7:		/* XBEGIN among the MOVs */
		return X86_MODRM_REG(insn->modrm.bytes[0]) == 7;
	default:
		return false;
	}
}

static int displacement_offset(const struct insn *insn)
{
	return insn->prefixes.nbytes + insn->rex_prefix.nbytes +
	       insn->vex_prefix.nbytes + insn->opcode.nbytes +
	       insn->modrm.nbytes + insn->sib.nbytes;
}

/* Copy an instruction that refers to memory at a distance from it. */
static int relocate_operand(u8 *buf, const struct insn *insn, long distance)
{
	long disp = insn->displacement.value + distance;

	if (insn->addr_bytes != sizeof(disp))	/* counts modulo 4 GiB */
		return -EILSEQ;
	if (disp != (s32)disp)
		return -ERANGE;

	memcpy(buf, insn->kaddr, insn->length);
	put_unaligned_le32(disp, buf + displacement_offset(insn));
	return insn->length;
}

/**
 * relocate_insn() - Copy an instruction so that it does the same elsewhere
 * @buf: where to write the copy: not into the bytes that @insn was decoded
 *	 from, and untouched on error
 * @insn: the instruction, decoded from bytes that may themselves be a copy
 * @from: the address at which they are executed
 * @to: the address at which the copy will be executed
 *
 * An indirect call is copied as it is, though what it pushes is the address
 * behind the copy: the caller sees to it that execution goes on well there.
 *
 * Context: any
 * Return: the length of the copy in bytes, -EILSEQ if the instruction depends
 *	   on its address in another way than by an operand relative to it, or
 *	   -ERANGE if that operand is too far from @to
 */
int relocate_insn(u8 *buf, const struct insn *insn, unsigned long from,
		  unsigned long to)
{
	if (is_relative_branch(insn) || insn->emulate_prefix_size)
		return -EILSEQ;

	if (is_rip_relative(insn))
		return relocate_operand(buf, insn, from - to);

	memcpy(buf, insn->kaddr, insn->length);
	return insn->length;
}
EXPORT_SYMBOL_IF_KUNIT(relocate_insn);
