// SPDX-License-Identifier: GPL-2.0
/*
 * Emulation: instructions whose effect is applied to the registers of the breakpoint
 *
 * A copy of a branch would go to another target, and copies of CLI, STI or PUSHF must
 * not run while kprobes keeps interrupts off. kprobe_emulate_insn() applies their effect to
 * the saved registers, from a description made when the probe is registered.
 */
#include <linux/cache.h>
#include <linux/export.h>
#include <linux/init.h>
#include <linux/kallsyms.h>
#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/ptrace.h>
#include <linux/uaccess.h>

#include <asm/text-patching.h>
#include <asm/vsyscall.h>

#include <kunit/visibility.h>

#include "insn.h"
#include "opcode.h"

#define EMUL_NO_REG	0xff

/* Condition codes. COND_ALWAYS is not the CPU's: LOOP has no condition but the count. */
#define COND_E		0x4
#define COND_NE		0x5
#define COND_ALWAYS	0x10

#define STATUS_FLAGS	(X86_EFLAGS_CF | X86_EFLAGS_PF | X86_EFLAGS_AF |	\
			 X86_EFLAGS_ZF | X86_EFLAGS_SF | X86_EFLAGS_OF)

/* Flags that POPF loads at CPL 0: not VM, VIF, VIP, nor RF, which it clears. */
#define POPF_FLAGS	(STATUS_FLAGS | X86_EFLAGS_TF | X86_EFLAGS_IF | X86_EFLAGS_DF |	\
			 X86_EFLAGS_IOPL | X86_EFLAGS_NT | X86_EFLAGS_AC | X86_EFLAGS_ID)

/* Start of the kernel's half of the address space. */
#ifdef CONFIG_X86_64
#define KERNEL_HALF	(~0UL << __VIRTUAL_MASK_SHIFT)
#else
#define KERNEL_HALF	TASK_SIZE_MAX
#endif

/* Offsets of the registers, by their numbers in instructions. */
#define REG(name)	offsetof(struct pt_regs, name)
static const u8 emul_reg_offsets[] = {
	REG(ax), REG(cx), REG(dx), REG(bx), REG(sp), REG(bp), REG(si), REG(di),
#ifdef CONFIG_X86_64
	REG(r8), REG(r9), REG(r10), REG(r11), REG(r12), REG(r13), REG(r14), REG(r15),
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

/* Describe the operand of @insn, see volume 2, section 2.1.5 of the SDM. */
static int emul_prepare_operand(struct insn_emulation *emul, const struct insn *insn)
{
	u8 rex = insn->rex_prefix.bytes[0];
	u8 modrm = insn->modrm.bytes[0];
	u8 sib = insn->sib.bytes[0];
	u8 base = X86_MODRM_RM(modrm);

	if (X86_MODRM_MOD(modrm) == 3) {
		emul->base = emul_reg_offset(base, X86_REX_B(rex));
		return 0;
	}

	/* The base of these segments is not 0. */
	if (has_prefix(insn, PREFIX_FS) || has_prefix(insn, PREFIX_GS) ||
	    !has_native_address(insn))
		return -EILSEQ;

	emul->memory = true;
	emul->disp = insn->displacement.value;

	if (insn->sib.nbytes) {
		base = X86_SIB_BASE(sib);
		emul->scale = X86_SIB_SCALE(sib);
		if (X86_SIB_INDEX(sib) != 4 || X86_REX_X(rex))
			emul->index = emul_reg_offset(X86_SIB_INDEX(sib), X86_REX_X(rex));
	}

	if (is_rip_relative(insn))
		emul->base = REG(ip);
	else if (X86_MODRM_MOD(modrm) != 0 || base != 5)
		emul->base = emul_reg_offset(base, X86_REX_B(rex));
	return 0;
}

/* Describe an instruction that changes the path or the stack pointer. */
static int emul_prepare_branch(struct insn_emulation *emul, const struct insn *insn)
{
	static const u8 loop_conds[] = { COND_NE, COND_E, COND_ALWAYS };

	/* It would load 16 bits of ip, or move the stack by two bytes. */
	if (has_prefix(insn, PREFIX_OPSIZE))
		return -EILSEQ;

	switch (emul->op) {
	case INSN_JCC:
		emul->cond = insn_opcode(insn) & 0xf;
		return 0;
	case INSN_JMP:
	case INSN_CALL:
	case INSN_PUSHF:
	case INSN_POPF:
		return 0;
	case INSN_RET:
		emul->drop = insn->immediate.value;
		return 0;
	case INSN_JMP_INDIRECT:
	case INSN_CALL_INDIRECT:
		return emul_prepare_operand(emul, insn);
	case INSN_LOOP:
		emul->cond = loop_conds[insn->opcode.bytes[0] - OPCODE_LOOPNE];
		fallthrough;
	case INSN_JCXZ:
		emul->narrow = !has_native_address(insn);
		/* Outside of 64-bit mode, it is CX that counts then. */
		return emul->narrow && !insn->x86_64 ? -EILSEQ : 0;
	default:
		return -EILSEQ;
	}
}

/* kprobe_prepare_emulation() - Describe an instruction; -EILSEQ if it cannot be emulated, or 0 */
int kprobe_prepare_emulation(struct insn_emulation *emul, const struct insn *insn)
{
	*emul = (struct insn_emulation) {
		.op = kprobe_insn_class(insn),
		.size = insn->length,
		.base = EMUL_NO_REG,
		.index = EMUL_NO_REG,
		.disp = insn->immediate.value,
	};

	/* REX2 may select a register that struct pt_regs does not have. */
	if (is_rex2_insn(insn) || has_prefix(insn, PREFIX_LOCK))
		return -EILSEQ;

	switch (emul->op) {
	case INSN_NOP:
	case INSN_ENDBR:
	case INSN_WAIT:
	case INSN_TIMED_WAIT:
	case INSN_CLI:
	case INSN_STI:
		return 0;
	default:
		return emul_prepare_branch(emul, insn);
	}
}
EXPORT_SYMBOL_IF_KUNIT(kprobe_prepare_emulation);

static __always_inline unsigned long
emul_get_reg(const struct pt_regs *regs, u8 offset)
{
	return *(const unsigned long *)((const void *)regs + offset);
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

/* Load the word at @addr. Returns false if it cannot be read. */
static __always_inline bool emul_load(unsigned long *word, unsigned long addr)
{
	__get_kernel_nofault(word, (unsigned long *)addr, unsigned long, fault);
	return true;
fault:
	return false;
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

/* Find the target of an indirect branch. Returns false if it cannot be used. */
static __always_inline bool
emul_find_target(const struct insn_emulation *emul, const struct pt_regs *regs,
		 unsigned long next, unsigned long *target)
{
	unsigned long addr = emul->disp;

	if (emul->base == REG(ip))
		addr += next;
	else if (emul->base != EMUL_NO_REG)
		addr += emul_get_reg(regs, emul->base);
	if (emul->index != EMUL_NO_REG)
		addr += emul_get_reg(regs, emul->index) << emul->scale;

	*target = addr;
	if (emul->memory && !(emul_can_load(addr) && emul_load(target, addr)))
		return false;
	return likely(*target >= KERNEL_HALF);
}

static __always_inline unsigned long emul_count(const struct insn_emulation *emul,
						unsigned long count)
{
	return emul->narrow ? (u32)count : count;
}

/* What changes neither the stack pointer nor the path, or the path by little. */
static __always_inline void emulate_in_place(const struct insn_emulation *emul,
					     struct pt_regs *regs, unsigned long next)
{
	regs->ip = next;
	switch (emul->op) {
	case INSN_LOOP:
		regs->cx = emul_count(emul, regs->cx - 1);
		if (!regs->cx)
			break;
		if (emul->cond == COND_ALWAYS)
			int3_emulate_jmp(regs, next + emul->disp);
		else
			int3_emulate_jcc(regs, emul->cond, next, emul->disp);
		break;
	case INSN_JCXZ:
		if (!emul_count(emul, regs->cx))
			int3_emulate_jmp(regs, next + emul->disp);
		break;
	case INSN_CLI:
		regs->flags &= ~X86_EFLAGS_IF;
		break;
	case INSN_STI:
		regs->flags |= X86_EFLAGS_IF;
		break;
	case INSN_TIMED_WAIT:
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
	const unsigned long *top = (unsigned long *)regs->sp;
	unsigned long target;

	switch (emul->op) {
	case INSN_PUSHF:
		emulate_push(regs, (regs->flags & ~(X86_EFLAGS_RF | X86_EFLAGS_VM)) |
				   X86_EFLAGS_FIXED, next);
		return true;
	case INSN_POPF:
		regs->flags &= ~(POPF_FLAGS | X86_EFLAGS_RF);
		regs->flags |= *top & POPF_FLAGS;
		emulate_move(regs, next, (unsigned long)(top + 1));
		return true;
	case INSN_RET:
		target = *top;
		if (unlikely(target < KERNEL_HALF))
			return false;
		emulate_move(regs, target, (unsigned long)(top + 1) + emul->drop);
		return true;
	case INSN_JMP_INDIRECT:
	case INSN_CALL_INDIRECT:
		if (!emul_find_target(emul, regs, next, &target))
			return false;
		if (emul->op == INSN_JMP_INDIRECT)
			int3_emulate_jmp(regs, target);
		else
			emulate_push(regs, next, target);
		return true;
	default:
		emulate_in_place(emul, regs, next);
		return true;
	}
}

/*
 * kprobe_emulate_insn() - Apply the effect of an instruction without executing it
 *
 * @regs->ip is at the instruction. On return registers and memory are as after it. There must be
 * room for a push below @regs->sp. Preemption is off. Nothing out of line is called.
 *
 * Returns false with nothing changed, if emulation_can_fail(), for a branch to a target from a
 * register or from memory if that memory cannot be read or the target is no kernel address: the
 * IRET to an address that is not canonical would fault in the entry code. The caller executes a
 * copy instead, which raises the fault that belongs to the instruction.
 */
noinstr bool kprobe_emulate_insn(const struct insn_emulation *emul, struct pt_regs *regs)
{
	/* Operands and branches are relative to it. */
	unsigned long next = regs->ip + emul->size;

	/* The switch is a search where jump tables are forbidden: these are the common ones. */
	if (emul->op == INSN_JCC) {
		int3_emulate_jcc(regs, emul->cond, next, emul->disp);
		return true;
	}

	if (emul->op == INSN_CALL) {
		emulate_push(regs, next, next + emul->disp);
		return true;
	}

	if (emul->op == INSN_JMP) {
		int3_emulate_jmp(regs, next + emul->disp);
		return true;
	}

	return emulate_rare_op(emul, regs, next);
}
EXPORT_SYMBOL_IF_KUNIT(kprobe_emulate_insn);

/* The size of kprobe_emulate_insn(), which calls nothing. */
static unsigned long emulation_size __ro_after_init;

/* kprobe_is_emulation_fault() - True if @ip, that of a fault, is in kprobe_emulate_insn() */
bool __kprobes kprobe_is_emulation_fault(unsigned long ip)
{
	return ip - (unsigned long)kprobe_emulate_insn < emulation_size;
}

int __init arch_init_kprobes(void)
{
	unsigned long offset;

	kallsyms_lookup_size_offset((unsigned long)kprobe_emulate_insn, &emulation_size, &offset);
	return 0;
}
