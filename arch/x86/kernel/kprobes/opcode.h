/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Opcode, prefixes and operands of a decoded instruction
 */
#ifndef _X86_KPROBES_OPCODE_H
#define _X86_KPROBES_OPCODE_H

#include <linux/string.h>
#include <linux/types.h>

#include <asm/insn.h>

/*
 * Opcodes as insn_opcode() returns them. Those of direct branches and of INT3 are in
 * <asm/text-patching.h>, tables of all are in insn.c.
 */
#define OPCODE_PUSH(reg)	(0x50 + (reg))
#define OPCODE_POP(reg)		(0x58 + (reg))
#define OPCODE_PUSH_IMM32	0x68
#define OPCODE_PUSH_IMM8	0x6a
#define OPCODE_MOV_R8		0x88	/* to memory or a register */
#define OPCODE_LEA		0x8d
#define OPCODE_NOP		0x90
#define OPCODE_PUSHF		0x9c
#define OPCODE_POPF		0x9d
#define OPCODE_MOV_IMM8		0xc6
#define OPCODE_LEAVE		0xc9
#define OPCODE_LOOPNE		0xe0
#define OPCODE_GROUP5		0xff	/* INC, DEC, CALL, JMP, PUSH */
#define OPCODE_UD2		0x0f0b
#define OPCODE_JCC32(cond)	(0x0f80 + (cond))
#define OPCODE_GROUP15		0x0fae	/* LFENCE, TPAUSE, UMWAIT among others */

/* ModRM.reg of OPCODE_GROUP5 */
#define GROUP5_CALL		2
#define GROUP5_JMP		4
#define GROUP5_PUSH		6

/* ModRM of two instructions with a prefix and an opcode that others share */
#define MODRM_ENDBR64		0xfa
#define MODRM_ENDBR32		0xfb
#define MODRM_LFENCE		0xe8

/* Marks opcodes of VEX and EVEX, which are not in the other opcode maps. */
#define OPCODE_VEX		0xc400

static inline bool is_rex2_insn(const struct insn *insn)
{
	return insn->rex_prefix.nbytes == 2;
}

/* True for APX: its registers have numbers of five bits, and PUSH2, POP2 move two words. */
static inline bool is_apx_insn(const struct insn *insn)
{
	return is_rex2_insn(insn) || (insn->vex_prefix.nbytes == 4 &&
				      X86_EVEX_M(insn->vex_prefix.bytes[1]) == 4);
}

/* 0x0fxx is the two-byte map; 0x0f38 and 0x0f3a stand for all of their maps. */
static inline u16 insn_opcode(const struct insn *insn)
{
	const u8 *opcode = insn->opcode.bytes;

	if (insn->vex_prefix.nbytes)
		return OPCODE_VEX | opcode[0];
	if (is_rex2_insn(insn) && X86_REX2_M(insn->rex_prefix.bytes[1]))
		return 0x0f00 | opcode[0];
	if (insn->opcode.nbytes > 1)
		return 0x0f00 | opcode[1];
	return opcode[0];
}

#define PREFIX_FS		0x64
#define PREFIX_GS		0x65
#define PREFIX_OPSIZE		0x66
#define PREFIX_LOCK		0xf0
#define PREFIX_REPNE		0xf2
#define PREFIX_REP		0xf3

static inline bool has_prefix(const struct insn *insn, u8 prefix)
{
	return memchr(insn->prefixes.bytes, prefix, sizeof(insn->prefixes.bytes));
}

/* The prefix that selects one of several instructions with the same opcode, or 0. */
static inline u8 mandatory_prefix(const struct insn *insn)
{
	return has_prefix(insn, PREFIX_REP) ? PREFIX_REP :
	       has_prefix(insn, PREFIX_REPNE) ? PREFIX_REPNE :
	       has_prefix(insn, PREFIX_OPSIZE) ? PREFIX_OPSIZE : 0;
}

/* insn_rip_relative() without the decoding, for an instruction that is decoded. */
static inline bool is_rip_relative(const struct insn *insn)
{
	return insn->x86_64 && insn->modrm.nbytes &&
	       (insn->modrm.bytes[0] & 0xc7) == 5;
}

/* True if the operand that ModRM.rm selects is the stack pointer itself. */
static inline bool insn_rm_is_sp(const struct insn *insn)
{
	return X86_MODRM_MOD(insn->modrm.bytes[0]) == 3 &&
	       X86_MODRM_RM(insn->modrm.bytes[0]) == 4 &&
	       !X86_REX_B(insn->rex_prefix.bytes[0]);
}

#endif /* _X86_KPROBES_OPCODE_H */
