// SPDX-License-Identifier: GPL-2.0
/*
 * Branch targets of a function, found by decoding it
 *
 * These are: addresses in direct branches and in operands, return addresses of calls,
 * ENDBRs, and all bytes of a function with an indirect jump to unknown targets.
 *
 * Nothing here depends on probes, and nothing is read but the bytes that are passed.
 */
#include <linux/cache.h>
#include <linux/export.h>
#include <linux/string.h>

#include <asm/nops.h>
#include <asm/text-patching.h>

#include <kunit/visibility.h>

#include "insn.h"
#include "opcode.h"
#include "scan.h"

/*
 * The size of the stack frame in bytes is followed from the entry, where it is 0. At what only a
 * branch can reach it is unknown: then it counts what has been pushed since, from here on. So it
 * is positive until a frame is released.
 */
#define FRAME_UNKNOWN		1

static bool insn_reg_is_sp(const struct insn *insn)
{
	return X86_MODRM_REG(insn->modrm.bytes[0]) == 4 &&
	       !X86_REX_R(insn->rex_prefix.bytes[0]);
}

/* The size of the frame after @insn, at which it is @frame. */
static long frame_after_insn(long frame, const struct insn *insn)
{
	u8 reg = X86_MODRM_REG(insn->modrm.bytes[0]);

	if (is_apx_insn(insn))
		return FRAME_UNKNOWN;

	switch (insn_opcode(insn)) {
	case OPCODE_GROUP5:
		if (reg != GROUP5_PUSH)
			return frame;
		fallthrough;
	case OPCODE_PUSH(0) ... OPCODE_PUSH(7):
	case 0x68:		/* PUSH of a constant, of FS, of GS */
	case 0x6a:
	case OPCODE_PUSHF:
	case 0x0fa0:
	case 0x0fa8:
		return frame + sizeof(long);
	case OPCODE_POP(0) ... OPCODE_POP(7):
	case 0x8f:		/* POP to memory, to FS, to GS */
	case OPCODE_POPF:
	case 0x0fa1:
	case 0x0fa9:
		return frame - sizeof(long);
	case OPCODE_LEAVE:	/* releases the frame, whatever its size, and pops */
		return FRAME_UNKNOWN - sizeof(long);
	case 0x81:		/* ADD, SUB, CMP or other arithmetic with a constant */
	case 0x83:
		if (!insn_rm_is_sp(insn) || reg == 7)
			return frame;
		if (reg == 0)
			return frame - insn->immediate.value;
		return reg == 5 ? frame + insn->immediate.value : FRAME_UNKNOWN;
	case 0x01:		/* ADD, SUB, MOV */
	case 0x29:
	case 0x89:
		return insn_rm_is_sp(insn) ? FRAME_UNKNOWN : frame;
	case 0x03:		/* ADD, SUB, MOV, LEA */
	case 0x2b:
	case 0x8b:
	case 0x8d:
		return insn_reg_is_sp(insn) ? FRAME_UNKNOWN : frame;
	case 0x06 ... 0x07:	/* PUSH, POP of segments; PUSHA, POPA */
	case 0x0e:
	case 0x16 ... 0x17:
	case 0x1e ... 0x1f:
	case 0x60 ... 0x61:
	case 0xc8:		/* ENTER */
		return FRAME_UNKNOWN;
	default:
		return frame;
	}
}

#define PREFIX_NOTRACK		0x3e

/*
 * A jump with an index, or to a target without ENDBR, is that of a jump table. One of APX may
 * have an index.
 */
static bool is_table_jump(const struct insn *insn)
{
	return has_prefix(insn, PREFIX_NOTRACK) || is_apx_insn(insn) ||
	       (insn->sib.nbytes && (X86_SIB_INDEX(insn->sib.bytes[0]) != 4 ||
				     X86_REX_X(insn->rex_prefix.bytes[0])));
}

/* True for jmp *table(,%reg,WORD): text_index_learn_data() finds the addresses in the table. */
static bool is_absolute_table_jump(const struct insn *insn)
{
	const u8 sib = insn->sib.bytes[0];

	return kprobe_insn_class(insn) == INSN_JMP_INDIRECT && insn->sib.nbytes &&
	       X86_MODRM_MOD(insn->modrm.bytes[0]) == 0 && X86_SIB_BASE(sib) == 5 &&
	       1 << X86_SIB_SCALE(sib) == sizeof(long) && is_table_jump(insn);
}

/*
 * True if this indirect jump leaves the function for another one, which returns to the
 * caller: the frame is released there, or there was none.
 */
static bool is_tail_call(long frame, const struct insn *insn)
{
	return frame <= 0 && !(insn_opcode(insn) == OPCODE_GROUP5 && is_table_jump(insn));
}

/* True if only a branch from elsewhere can reach the next instruction. */
static bool insn_never_falls_through(char class)
{
	return is_jump_class(class) || class == INSN_JMP_FAR || class == INSN_STOP;
}

/*
 * kprobe_insn_is_padding() - True if an instruction is padding that execution does not reach
 *
 * No branch leads to it. *@after_jump says if the instruction before it is padding, an
 * unconditional jump or a return, and is updated for the next one. After a UD2 execution may
 * continue: WARN() consists of one.
 */
bool kprobe_insn_is_padding(const struct insn *insn, bool *after_jump)
{
	char class = kprobe_insn_class(insn);
	u16 opcode = insn_opcode(insn);

	if (opcode == INT3_INSN_OPCODE || class == INSN_NOP)
		return *after_jump;
	*after_jump = opcode != OPCODE_UD2 && insn_never_falls_through(class);
	return false;
}
EXPORT_SYMBOL_IF_KUNIT(kprobe_insn_is_padding);

/* Add the addresses in operands of an instruction that ends at @end and is no branch. */
static void branch_map_add_operands(const struct branch_map *map, const struct insn *insn,
				    unsigned long end)
{
	if (is_rip_relative(insn))
		branch_map_add(map, end + insn->displacement.value);
	else if (insn->displacement.nbytes == 4)
		branch_map_add(map, (long)insn->displacement.value);

	if (insn->immediate2.nbytes == 4)
		branch_map_add(map, (u64)insn->immediate2.value << 32 |
				(u32)insn->immediate1.value);
	else if (insn->immediate.nbytes == 4)
		branch_map_add(map, (long)insn->immediate.value);
}

/* Add the targets of an instruction. Returns true if some of them are unknown. */
static bool branch_map_add_insn(const struct branch_map *map, long frame,
				const struct insn *insn, char class, unsigned long addr,
				bool (*is_thunk)(unsigned long addr))
{
	unsigned long end = addr + insn->length;
	unsigned long target = end + insn->immediate.value;
	bool indirect = class == INSN_JMP_INDIRECT || class == INSN_JMP_FAR;
	bool call = is_call_class(class) || class == INSN_CALL_FAR;

	if (class == INSN_ENDBR)
		branch_map_add(map, addr);
	if (call)
		branch_map_add(map, end);

	if (is_relative_class(class)) {
		branch_map_add(map, target);
		indirect = !call && is_thunk(target);
	} else {
		branch_map_add_operands(map, insn, end);
	}
	return indirect && !is_absolute_table_jump(insn) && !is_tail_call(frame, insn);
}

/*
 * A jump to a thunk that was patched into an indirect jump has become shorter. INT3 and
 * a NOP of one or two bytes fill the rest.
 */
static size_t thunk_filler_size(const struct insn *insn, const u8 *code, size_t len)
{
	static const u8 nop1[] = { INT3_INSN_OPCODE, BYTES_NOP1 };
	static const u8 nop2[] = { INT3_INSN_OPCODE, BYTES_NOP2 };

	if (insn_opcode(insn) != OPCODE_GROUP5 || X86_MODRM_MOD(insn->modrm.bytes[0]) != 3)
		return 0;
	if (len >= sizeof(nop1) && !memcmp(code, nop1, sizeof(nop1)))
		return sizeof(nop1);
	if (len >= sizeof(nop2) && !memcmp(code, nop2, sizeof(nop2)))
		return sizeof(nop2);
	return 0;
}

/*
 * kprobe_scan_branches() - Add the branch targets of a function to a map
 *
 * @code is a copy of the function's bytes, from its symbol to the next one, which are executed at
 * @addr. @is_thunk() is true if a jump to an address is a jump to a register's content.
 *
 * All of the function is added if it has an indirect jump that may not be a tail call, or a
 * byte at which no instruction starts. After such a byte decoding continues at the next one,
 * to find targets in other functions.
 */
void kprobe_scan_branches(const struct branch_map *map, const u8 *code, size_t len,
			  unsigned long addr, bool (*is_thunk)(unsigned long addr))
{
	bool opaque = kprobe_is_static_call_tramp(code, len), after_jump = false;
	struct insn insn;
	size_t pos, data;
	long frame = 0;
	char class;

	branch_map_add(map, addr);
	/* Up to the padding at the end. */
	for (pos = 0; pos < len && memchr_inv(code + pos, INT3_INSN_OPCODE, len - pos);
	     pos += insn.length) {
		data = IS_ENABLED(CONFIG_CFI) ? kprobe_cfi_check_size(code + pos, len - pos) : 0;
		if (data) {
			branch_map_add_range(map, addr + pos, data + 1);
			insn.length = data;
			continue;
		}
		/* A breakpoint that may be reached is a debugger's and hides an instruction. */
		if ((code[pos] == INT3_INSN_OPCODE && !after_jump) ||
		    insn_decode(&insn, code + pos, len - pos, INSN_MODE_KERN)) {
			opaque = true;
			insn.length = 1;
			continue;
		}
		class = kprobe_insn_class(&insn);
		opaque |= branch_map_add_insn(map, frame, &insn, class, addr + pos, is_thunk);
		frame = frame_after_insn(frame, &insn);
		after_jump = insn_never_falls_through(class);
		if (!after_jump)
			continue;
		insn.length += thunk_filler_size(&insn, code + pos + insn.length,
						 len - pos - insn.length);
		frame = FRAME_UNKNOWN;
	}
	if (opaque)
		branch_map_add_range(map, addr, len);
}
EXPORT_SYMBOL_IF_KUNIT(kprobe_scan_branches);
