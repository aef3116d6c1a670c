// SPDX-License-Identifier: GPL-2.0
/*
 * Emulation: instructions whose effect is applied to the registers of the breakpoint
 *
 * A copy of a branch would go to another target, and copies of CLI, STI or PUSHF must
 * not run while kprobes keeps interrupts off. emulate_insn() applies their effect to
 * the saved registers, from a description made when the probe is registered.
 */

#include <linux/export.h>
#include <linux/kernel.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/ptrace.h>
#include <linux/uaccess.h>

#include <asm/text-patching.h>
#include <asm/vsyscall.h>

#include <kunit/visibility.h>

#include "emulate.h"
#include "opcode.h"

/*
 * Operations of emulate_insn(). An operand size prefix makes those from EMUL_JCC to
 * EMUL_POPF another instruction, which loads 16 bits of ip or moves the stack by two
 * bytes.
 */
enum emul_op {
	EMUL_NONE,		/* there is no emulation */
	EMUL_NOP,		/* NOP, ENDBR; HLT, MWAIT: no time passes */
	EMUL_JCC,		/* if @cond, jump by @disp */
	EMUL_JMP,		/* jump by @disp */
	EMUL_CALL,		/* call by @disp */
	EMUL_RET,		/* return, drop @drop bytes more */
	EMUL_JMP_REG,		/* jump to the content of @base */
	EMUL_CALL_REG,		/* call the content of @base */
	EMUL_JMP_MEM,		/* jump to the content of memory */
	EMUL_CALL_MEM,		/* call the content of memory */
	EMUL_LOOP,		/* count down; if not zero and @cond, jump */
	EMUL_LOOP32,		/* as EMUL_LOOP, in 64-bit mode, counting in ECX */
	EMUL_JCXZ,		/* if the count is zero, jump */
	EMUL_JCXZ32,		/* as EMUL_JCXZ, in 64-bit mode, checking ECX */
	EMUL_PUSHF,
	EMUL_POPF,
	EMUL_CLI,
	EMUL_STI,
	EMUL_TPAUSE,		/* TPAUSE, UMWAIT: no time passes, flags are set */
};

#define EMUL_NO_REG	0xff

/* Condition codes. COND_ALWAYS is not the CPU's: LOOP has no condition but the count. */
#define COND_E		0x4
#define COND_NE		0x5
#define COND_ALWAYS	0x10

/* Flags that POPF loads at CPL 0: not VM, VIF, VIP, nor RF, which it clears. */
#define POPF_FLAGS	(X86_EFLAGS_CF | X86_EFLAGS_PF | X86_EFLAGS_AF |	\
			 X86_EFLAGS_ZF | X86_EFLAGS_SF | X86_EFLAGS_TF |	\
			 X86_EFLAGS_IF | X86_EFLAGS_DF | X86_EFLAGS_OF |	\
			 X86_EFLAGS_IOPL | X86_EFLAGS_NT | X86_EFLAGS_AC |	\
			 X86_EFLAGS_ID)

#define STATUS_FLAGS	(X86_EFLAGS_CF | X86_EFLAGS_PF | X86_EFLAGS_AF |	\
			 X86_EFLAGS_ZF | X86_EFLAGS_SF | X86_EFLAGS_OF)

/* Start of the kernel's half of the address space. */
#ifdef CONFIG_X86_64
#define KERNEL_HALF	(~0UL << __VIRTUAL_MASK_SHIFT)
#else
#define KERNEL_HALF	TASK_SIZE_MAX
#endif

/* Offsets of the registers, by their numbers in instructions. */
static const u8 emul_reg_offsets[] = {
	offsetof(struct pt_regs, ax),
	offsetof(struct pt_regs, cx),
	offsetof(struct pt_regs, dx),
	offsetof(struct pt_regs, bx),
	offsetof(struct pt_regs, sp),
	offsetof(struct pt_regs, bp),
	offsetof(struct pt_regs, si),
	offsetof(struct pt_regs, di),
#ifdef CONFIG_X86_64
	offsetof(struct pt_regs, r8),
	offsetof(struct pt_regs, r9),
	offsetof(struct pt_regs, r10),
	offsetof(struct pt_regs, r11),
	offsetof(struct pt_regs, r12),
	offsetof(struct pt_regs, r13),
	offsetof(struct pt_regs, r14),
	offsetof(struct pt_regs, r15),
#else
	[8 ... 15] = EMUL_NO_REG,	/* on i386 only tests decode them */
#endif
};

static_assert(sizeof(struct pt_regs) <= EMUL_NO_REG);

static u8 emul_reg_offset(u8 num, bool extended)
{
	return emul_reg_offsets[extended ? num + 8 : num];
}

/* True without an address size prefix, 0x67. */
static bool has_native_address(const struct insn *insn)
{
	return insn->addr_bytes == (insn->x86_64 ? 8 : 4);
}

static enum emul_op emul_indirect_op(u8 modrm)
{
	bool mem = X86_MODRM_MOD(modrm) != 3;

	switch (X86_MODRM_REG(modrm)) {
	case GROUP5_CALL:
		return mem ? EMUL_CALL_MEM : EMUL_CALL_REG;
	case GROUP5_JMP:
		return mem ? EMUL_JMP_MEM : EMUL_JMP_REG;
	default:
		return EMUL_NONE;
	}
}

static enum emul_op emul_one_byte_op(const struct insn *insn)
{
	switch (insn_opcode(insn)) {
	case OPCODE_JCC8(0) ... OPCODE_JCC8(0xf):
		return EMUL_JCC;
	case OPCODE_NOP: /* without the prefixes that make it XCHG or PAUSE */
		return X86_REX_B(insn->rex_prefix.bytes[0]) ||
		       has_prefix(insn, PREFIX_REP) ? EMUL_NONE : EMUL_NOP;
	case OPCODE_PUSHF:
		return EMUL_PUSHF;
	case OPCODE_POPF:
		return EMUL_POPF;
	case OPCODE_RET_IMM:
	case RET_INSN_OPCODE:
		return EMUL_RET;
	case OPCODE_LOOPNE ... OPCODE_LOOP:
		return has_native_address(insn) ? EMUL_LOOP : EMUL_LOOP32;
	case OPCODE_JCXZ:
		return has_native_address(insn) ? EMUL_JCXZ : EMUL_JCXZ32;
	case CALL_INSN_OPCODE:
		return EMUL_CALL;
	case JMP32_INSN_OPCODE:
	case JMP8_INSN_OPCODE:
		return EMUL_JMP;
	case OPCODE_HLT:
		return EMUL_NOP;
	case OPCODE_CLI:
		return EMUL_CLI;
	case OPCODE_STI:
		return EMUL_STI;
	case OPCODE_GROUP5:
		return emul_indirect_op(insn->modrm.bytes[0]);
	default:
		return EMUL_NONE;
	}
}

static enum emul_op emul_two_byte_op(const struct insn *insn)
{
	u8 prefix = mandatory_prefix(insn);
	u8 modrm = insn->modrm.bytes[0];

	switch (insn_opcode(insn)) {
	case OPCODE_GROUP7: /* MWAIT, MWAITX */
		return !prefix && (modrm == 0xc9 || modrm == 0xfb) ?
			EMUL_NOP : EMUL_NONE;
	case OPCODE_ENDBR:
		return prefix == PREFIX_REP && (modrm == MODRM_ENDBR64 || modrm == MODRM_ENDBR32) ?
			EMUL_NOP : EMUL_NONE;
	case OPCODE_NOPL:
		return EMUL_NOP;
	case OPCODE_JCC32(0) ... OPCODE_JCC32(0xf):
		return EMUL_JCC;
	case OPCODE_GROUP15: /* TPAUSE, UMWAIT */
		return (prefix == PREFIX_OPSIZE || prefix == PREFIX_REPNE) &&
		       modrm >= 0xf0 && modrm <= 0xf7 ? EMUL_TPAUSE : EMUL_NONE;
	default:
		return EMUL_NONE;
	}
}

static enum emul_op emul_insn_op(const struct insn *insn)
{
	/* REX2 may select a register that struct pt_regs does not have. */
	if (insn->rex_prefix.nbytes == 2 || has_prefix(insn, PREFIX_LOCK))
		return EMUL_NONE;

	return insn_opcode(insn) < 0x100 ? emul_one_byte_op(insn) :
					   emul_two_byte_op(insn);
}

static u8 emul_loop_cond(const struct insn *insn)
{
	static const u8 conds[] = { COND_NE, COND_E, COND_ALWAYS };

	return conds[insn->opcode.bytes[0] - OPCODE_LOOPNE];
}

/* Describe the memory operand of @insn, see volume 2, section 2.1.5 of the SDM. */
static int emul_prepare_operand(struct insn_emulation *emul, const struct insn *insn)
{
	u8 rex = insn->rex_prefix.bytes[0];
	u8 modrm = insn->modrm.bytes[0];
	u8 sib = insn->sib.bytes[0];
	u8 base = X86_MODRM_RM(modrm);

	/* The base of these segments is not 0. */
	if (has_prefix(insn, PREFIX_FS) || has_prefix(insn, PREFIX_GS) ||
	    !has_native_address(insn))
		return -EILSEQ;

	emul->disp = insn->displacement.value;

	if (insn->sib.nbytes) {
		base = X86_SIB_BASE(sib);
		emul->scale = X86_SIB_SCALE(sib);
		if (X86_SIB_INDEX(sib) != 4 || X86_REX_X(rex))
			emul->index = emul_reg_offset(X86_SIB_INDEX(sib), X86_REX_X(rex));
	}

	if (is_rip_relative(insn))
		emul->base = offsetof(struct pt_regs, ip);
	else if (X86_MODRM_MOD(modrm) != 0 || base != 5)
		emul->base = emul_reg_offset(base, X86_REX_B(rex));
	return 0;
}

/**
 * prepare_emulation() - Describe an instruction for emulate_insn()
 * @emul: The description to fill.
 * @insn: The decoded instruction.
 *
 * Context: Any.
 * Return: 0, or -EILSEQ if the instruction cannot be emulated.
 */
int prepare_emulation(struct insn_emulation *emul, const struct insn *insn)
{
	*emul = (struct insn_emulation) {
		.op = emul_insn_op(insn),
		.size = insn->length,
		.base = EMUL_NO_REG,
		.index = EMUL_NO_REG,
		.disp = insn->immediate.value,
	};

	if (has_prefix(insn, PREFIX_OPSIZE) &&
	    emul->op >= EMUL_JCC && emul->op <= EMUL_POPF)
		return -EILSEQ;

	switch (emul->op) {
	case EMUL_NONE:
		return -EILSEQ;
	case EMUL_JCC:
		emul->cond = insn_opcode(insn) & 0xf;
		return 0;
	case EMUL_RET:
		emul->drop = insn->immediate.value;
		return 0;
	case EMUL_JMP_REG:
	case EMUL_CALL_REG:
		emul->base = emul_reg_offset(X86_MODRM_RM(insn->modrm.bytes[0]),
					     X86_REX_B(insn->rex_prefix.bytes[0]));
		return 0;
	case EMUL_JMP_MEM:
	case EMUL_CALL_MEM:
		return emul_prepare_operand(emul, insn);
	case EMUL_LOOP:
		emul->cond = emul_loop_cond(insn);
		return 0;
	case EMUL_LOOP32:
		emul->cond = emul_loop_cond(insn);
		fallthrough;
	case EMUL_JCXZ32: /* counts in CX outside of 64-bit mode */
		return insn->x86_64 ? 0 : -EILSEQ;
	default:
		return 0;
	}
}
EXPORT_SYMBOL_IF_KUNIT(prepare_emulation);

/**
 * emulates_nothing() - Check if emulate_insn() would only advance ip
 * @emul: The description of the instruction.
 *
 * Context: Any.
 * Return: true if the instruction can be skipped.
 */
bool emulates_nothing(const struct insn_emulation *emul)
{
	return emul->op == EMUL_NOP;
}

/**
 * emulates_jump() - Check if emulate_insn() would only set ip to a constant
 * @emul: The description of the instruction.
 *
 * Context: Any.
 * Return: true if it is an unconditional jump by @emul->disp.
 */
bool emulates_jump(const struct insn_emulation *emul)
{
	return emul->op == EMUL_JMP;
}

/**
 * emulation_can_fail() - Check if emulate_insn() can return false
 * @emul: The description of the instruction.
 *
 * Context: Any.
 * Return: true if the instruction loads ip from a register or from memory, where
 *	   emulate_insn() may find an unusable address.
 */
bool emulation_can_fail(const struct insn_emulation *emul)
{
	return emul->op >= EMUL_RET && emul->op <= EMUL_CALL_MEM;
}
EXPORT_SYMBOL_IF_KUNIT(emulation_can_fail);

static __always_inline unsigned long
emul_get_reg(const struct pt_regs *regs, u8 offset)
{
	return *(const unsigned long *)((const void *)regs + offset);
}

static __always_inline bool
emulate_jmp_to(struct pt_regs *regs, unsigned long target)
{
	if (unlikely(target < KERNEL_HALF))
		return false;

	int3_emulate_jmp(regs, target);
	return true;
}

/*
 * Set ip and sp, the former of which tells the unwinder of an NMI what the latter means:
 * nothing is to come between.
 */
static __always_inline void
emulate_move(struct pt_regs *regs, unsigned long ip, unsigned long sp)
{
	barrier();
	regs->ip = ip;
	regs->sp = sp;
	barrier();
}

static __always_inline void
emulate_push(struct pt_regs *regs, unsigned long word, unsigned long ip)
{
	unsigned long *top = (unsigned long *)regs->sp - 1;

	*top = word;
	emulate_move(regs, ip, (unsigned long)top);
}

static __always_inline bool
emulate_call_to(struct pt_regs *regs, unsigned long next, unsigned long target)
{
	if (unlikely(target < KERNEL_HALF))
		return false;

	emulate_push(regs, next, target);
	return true;
}

/* preempt_count() of the running emul_load() and KPROBE_CONTEXT_SET, or 0. */
static DEFINE_PER_CPU(unsigned int, emul_load_context);

/* Load the word at @addr. Returns false if it cannot be read. */
static __always_inline bool emul_load(unsigned long *word, unsigned long addr)
{
	unsigned int outer = raw_cpu_read(emul_load_context);
	bool loaded = false;

	raw_cpu_write(emul_load_context, preempt_count() | KPROBE_CONTEXT_SET);
	barrier();	/* is_fault_of_emulation() reads it in the exception */
	__get_kernel_nofault(word, (unsigned long *)addr, unsigned long, fault);
	loaded = true;
fault:
	barrier();
	raw_cpu_write(emul_load_context, outer);
	return loaded;
}

/**
 * is_fault_of_emulation() - Check if emulate_insn() has caused the current fault
 *
 * Context: The exception.
 * Return: true if so; false if something that interrupted emulate_insn() caused it.
 */
bool __kprobes is_fault_of_emulation(void)
{
	return kprobe_is_in_context(raw_cpu_read(emul_load_context));
}

/*
 * True if a fault of a load at @addr is fixed up: if it is a kernel address, and not in
 * the vsyscall page, whose faults are treated as those of user addresses.
 */
static __always_inline bool emul_can_load(unsigned long addr)
{
	unsigned long last = addr + sizeof(addr) - 1;

	if (unlikely(addr < KERNEL_HALF))
		return false;
	return !IS_ENABLED(CONFIG_X86_64) || ((addr & PAGE_MASK) != VSYSCALL_ADDR &&
					      (last & PAGE_MASK) != VSYSCALL_ADDR);
}

static __always_inline bool
emul_load_target(const struct insn_emulation *emul, const struct pt_regs *regs,
		 unsigned long next, unsigned long *target)
{
	unsigned long addr = emul->disp;

	if (emul->base == offsetof(struct pt_regs, ip))
		addr += next;
	else if (emul->base != EMUL_NO_REG)
		addr += emul_get_reg(regs, emul->base);
	if (emul->index != EMUL_NO_REG)
		addr += emul_get_reg(regs, emul->index) << emul->scale;

	return emul_can_load(addr) && emul_load(target, addr);
}

static __always_inline bool emulate_ret(const struct insn_emulation *emul,
					struct pt_regs *regs)
{
	const unsigned long *top = (unsigned long *)regs->sp;
	unsigned long target = *top;

	if (unlikely(target < KERNEL_HALF))
		return false;

	emulate_move(regs, target, (unsigned long)(top + 1) + emul->drop);
	return true;
}

static __always_inline void emulate_loop(const struct insn_emulation *emul,
					 struct pt_regs *regs, unsigned long count)
{
	regs->cx = count;
	if (!count)
		return;

	if (emul->cond == COND_ALWAYS)
		int3_emulate_jmp(regs, regs->ip + emul->disp);
	else
		int3_emulate_jcc(regs, emul->cond, regs->ip, emul->disp);
}

static __always_inline void emulate_jcxz(const struct insn_emulation *emul,
					 struct pt_regs *regs, unsigned long count)
{
	if (!count)
		int3_emulate_jmp(regs, regs->ip + emul->disp);
}

static __always_inline void emulate_pushf(struct pt_regs *regs, unsigned long next)
{
	emulate_push(regs, (regs->flags & ~(X86_EFLAGS_RF | X86_EFLAGS_VM)) | X86_EFLAGS_FIXED,
		     next);
}

static __always_inline void emulate_popf(struct pt_regs *regs, unsigned long next)
{
	const unsigned long *top = (unsigned long *)regs->sp;

	regs->flags &= ~(POPF_FLAGS | X86_EFLAGS_RF);
	regs->flags |= *top & POPF_FLAGS;
	emulate_move(regs, next, (unsigned long)(top + 1));
}

/* What changes neither the stack pointer nor the path, or the path by little. */
static __always_inline void emulate_in_place(const struct insn_emulation *emul,
					     struct pt_regs *regs, unsigned long next)
{
	regs->ip = next;
	switch (emul->op) {
	case EMUL_LOOP:
		emulate_loop(emul, regs, regs->cx - 1);
		break;
	case EMUL_LOOP32:
		emulate_loop(emul, regs, (u32)(regs->cx - 1));
		break;
	case EMUL_JCXZ:
		emulate_jcxz(emul, regs, regs->cx);
		break;
	case EMUL_JCXZ32:
		emulate_jcxz(emul, regs, (u32)regs->cx);
		break;
	case EMUL_CLI:
		regs->flags &= ~X86_EFLAGS_IF;
		break;
	case EMUL_STI:
		regs->flags |= X86_EFLAGS_IF;
		break;
	case EMUL_TPAUSE:
		regs->flags &= ~STATUS_FLAGS;
		break;
	}
}

/*
 * Until the effect is complete, ip stays at the instruction: what is at @next may be of
 * another block, with another stack.
 */
static __always_inline bool emulate_rare_op(const struct insn_emulation *emul,
					    struct pt_regs *regs, unsigned long next)
{
	unsigned long target;

	switch (emul->op) {
	case EMUL_PUSHF:
		emulate_pushf(regs, next);
		return true;
	case EMUL_POPF:
		emulate_popf(regs, next);
		return true;
	case EMUL_RET:
		return emulate_ret(emul, regs);
	case EMUL_JMP_REG:
		return emulate_jmp_to(regs, emul_get_reg(regs, emul->base));
	case EMUL_CALL_REG:
		return emulate_call_to(regs, next, emul_get_reg(regs, emul->base));
	case EMUL_JMP_MEM:
		return emul_load_target(emul, regs, next, &target) &&
		       emulate_jmp_to(regs, target);
	case EMUL_CALL_MEM:
		return emul_load_target(emul, regs, next, &target) &&
		       emulate_call_to(regs, next, target);
	default:
		emulate_in_place(emul, regs, next);
		return true;
	}
}

/*
 * Run @emul. Operands and branches are relative to the next instruction. The common
 * operations come before the switch, which is a search where jump tables are forbidden.
 */
static __always_inline bool emulate_op(const struct insn_emulation *emul,
				       struct pt_regs *regs, unsigned long next)
{
	if (emul->op == EMUL_JCC) {
		regs->ip = next;
		int3_emulate_jcc(regs, emul->cond, next, emul->disp);
		return true;
	}

	if (emul->op == EMUL_CALL) {
		emulate_push(regs, next, next + emul->disp);
		return true;
	}

	if (emul->op == EMUL_JMP) {
		int3_emulate_jmp(regs, next + emul->disp);
		return true;
	}

	return emulate_rare_op(emul, regs, next);
}

/**
 * emulate_insn() - Apply the effect of an instruction without executing it
 * @emul: Its description, from prepare_emulation().
 * @regs: The registers, with @regs->ip at the instruction. On return registers and
 *	  memory are as after the instruction.
 *
 * A branch to a target from a register or from memory fails if that memory cannot be
 * read or the target is no kernel address: the IRET to an address that is not
 * canonical would fault in the entry code. The caller executes a copy instead, which
 * raises the fault that belongs to the instruction.
 *
 * Context: Any with preemption off, including the breakpoint handler: this calls
 *	    nothing out of line. There must be room for a push below @regs->sp.
 * Return: true; false if it failed with nothing changed, which only happens if
 *	   emulation_can_fail().
 */
noinstr bool emulate_insn(const struct insn_emulation *emul, struct pt_regs *regs)
{
	return emulate_op(emul, regs, regs->ip + emul->size);
}
EXPORT_SYMBOL_IF_KUNIT(emulate_insn);
