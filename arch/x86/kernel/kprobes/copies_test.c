// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit test of the copies of each instruction of the kernel and of its modules
 *
 * Instructions get what probes of them need: slots, an emulation, detours. No text is patched
 * but the padding where relays are. What the copies must be is stated a second time here, from
 * the bytes of the instruction. Shared with the code under test are the decoder, for lengths
 * and operands, and the layout of data.
 *
 * With the parameter share=64 one of 64 symbols is tested, and another one with each seed.
 */
#include "../../../../kernel/kprobes/internal.h"

#include <linux/bitfield.h>
#include <linux/bits.h>
#include <linux/cpufeature.h>
#include <linux/err.h>
#include <linux/extable.h>
#include <linux/hash.h>
#include <linux/jhash.h>
#include <linux/kallsyms.h>
#include <linux/kprobes_tables.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/pgtable.h>
#include <linux/ptrace.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/unaligned.h>

#include <asm/extable.h>
#include <asm/extable_fixup_types.h>

#include <kunit/resource.h>
#include <kunit/test-bug.h>
#include <kunit/test.h>

#include "detour.h"
#include "insn.h"

static unsigned int share = IS_ENABLED(CONFIG_KASAN) || IS_ENABLED(CONFIG_KCSAN) ? 512 : 64;
module_param(share, uint, 0444);
MODULE_PARM_DESC(share, "Test one of so many symbols");

static unsigned int seed;
module_param(seed, uint, 0444);
MODULE_PARM_DESC(seed, "Which of them");

#define JUMP	0xe9
#define CALL	0xe8
#define FILLER	0xcc
#define WORD	sizeof(long)

/* ------------------------------------------------------- what an instruction is */

enum kind { COPIED, COPIED_PLAIN, SKIPPED, EMULATED, REFUSED };

#define OPSIZE		BIT(0)
#define ADDRSIZE	BIT(1)
#define LOCKED		BIT(2)
#define REPNE		BIT(3)
#define REP		BIT(4)
#define SEGMENT		BIT(5)	/* with a base */
#define OTHER		BIT(6)

#define OP(op)		.first = (op)
#define OPS(from, to)	.first = (from), .last = (to)
#define MODRM(from, to)	.low = (from), .high = (to)

/*
 * The instructions that are not only copied: those with the opcodes from @first to @last, or
 * with @first only, 0x0fxx in the second map. If they are not 0: with ModRM.reg in the set @reg;
 * with ModRM from @low to @high; with one of the prefixes @with. The first row that matches
 * applies. COPIED_PLAIN: the stub must not call post handlers. @stays: no jump displaces it.
 */
static const struct form {
	const char *name;
	enum kind kind;
	u16 first, last;
	u8 reg, low, high, with;
	bool stays;
} forms[] = {
	/* Where they are is what they mean. */
	{ "int", REFUSED, OPS(0xcc, 0xce) }, { "int1", REFUSED, OP(0xf1) },
	{ "ud2", REFUSED, OP(0x0f0b) }, { "ud1", REFUSED, OP(0x0fb9) },
	{ "ud0", REFUSED, OP(0x0fff) },
	/* They enter or leave the kernel, a virtual machine, an enclave or a segment. */
	{ "far-call", REFUSED, OP(0x9a) }, { "far-jmp", REFUSED, OP(0xea) },
	{ "far-call-jmp", REFUSED, OP(0xff), .reg = BIT(3) | BIT(5) },
	{ "far-ret", REFUSED, OPS(0xca, 0xcb) }, { "iret", REFUSED, OP(0xcf) },
	{ "syscall", REFUSED, OP(0x0f05) }, { "sysret", REFUSED, OP(0x0f07) },
	{ "sysenter-sysexit", REFUSED, OPS(0x0f34, 0x0f35) }, { "rsm", REFUSED, OP(0x0faa) },
	{ "vmlaunch-vmresume-vmxoff", REFUSED, OP(0x0f01), MODRM(0xc2, 0xc4) },
	{ "tdcall-seamcall-encls", REFUSED, OP(0x0f01), MODRM(0xcc, 0xcf) },
	{ "vmrun", REFUSED, OP(0x0f01), MODRM(0xd8, 0xd8) },
	{ "vmload", REFUSED, OP(0x0f01), MODRM(0xda, 0xda) },
	{ "stgi-clgi-skinit", REFUSED, OP(0x0f01), MODRM(0xdc, 0xde) },
	/* A branch that hardware takes later. */
	{ "xbegin", REFUSED, OP(0xc7), MODRM(0xf8, 0xf8) },
	/* Exceptions need the base of GS, and the stack. */
	{ "swapgs", REFUSED, OP(0x0f01), MODRM(0xf8, 0xf8) },
	{ "wrgsbase", REFUSED, OP(0x0fae), MODRM(0xd8, 0xdf), .with = REP },
	{ "pop-gs", REFUSED, OP(0x0fa9) }, { "lss", REFUSED, OP(0x0fb2) },
	{ "lgs", REFUSED, OP(0x0fb5) }, { "pop-ss", REFUSED, OP(0x17) },
	{ "mov-to-ss-gs", REFUSED, OP(0x8e), .reg = BIT(1) | BIT(2) | BIT(5) | BIT(6) | BIT(7) },

	{ "mov-to-segment", COPIED_PLAIN, OP(0x8e) }, { "pop-fs", COPIED_PLAIN, OP(0x0fa1) },
	{ "lfs", COPIED_PLAIN, OP(0x0fb4) },
#ifdef CONFIG_X86_32
	{ "pop-es", COPIED_PLAIN, OP(0x07) }, { "pop-ds", COPIED_PLAIN, OP(0x1f) },
	{ "les-lds", COPIED_PLAIN, OPS(0xc4, 0xc5) },
#endif
	{ "lldt-ltr", COPIED_PLAIN, OP(0x0f00), .reg = BIT(2) | BIT(3) },
	{ "lgdt-lidt", COPIED_PLAIN, OP(0x0f01), .reg = BIT(2) | BIT(3), MODRM(1, 0xbf) },
	{ "lmsw", COPIED_PLAIN, OP(0x0f01), .reg = BIT(6) },
	{ "xsetbv", COPIED_PLAIN, OP(0x0f01), MODRM(0xd1, 0xd1) },
	{ "clts", COPIED_PLAIN, OP(0x0f06) }, { "mov-to-cr-dr", COPIED_PLAIN, OPS(0x0f22, 0x0f23) },
	{ "wrmsr", COPIED_PLAIN, OP(0x0f30) },
	{ "wrfsbase", COPIED_PLAIN, OP(0x0fae), MODRM(0xd0, 0xd7), .with = REP },

	{ "pause", COPIED, OP(0x90), .with = REP }, { "nop", SKIPPED, OP(0x90) },
	{ "long-nop", SKIPPED, OP(0x0f1f) },
	{ "endbr", SKIPPED, OP(0x0f1e), MODRM(0xfa, 0xfb), .with = REP, .stays = true },
	{ "hlt", SKIPPED, OP(0xf4), .stays = true },
	{ "mwait", SKIPPED, OP(0x0f01), MODRM(0xc9, 0xc9), .stays = true },
	{ "mwaitx", SKIPPED, OP(0x0f01), MODRM(0xfb, 0xfb), .stays = true },
	{ "tpause-umwait", EMULATED, OP(0x0fae), MODRM(0xf0, 0xf7), .with = OPSIZE | REPNE,
	  .stays = true },

	{ "short-jcc", EMULATED, OPS(0x70, 0x7f) }, { "jcc", EMULATED, OPS(0x0f80, 0x0f8f) },
	{ "short-jmp", EMULATED, OP(0xeb) }, { "jmp", EMULATED, OP(JUMP) },
	{ "call", EMULATED, OP(CALL) }, { "ret", EMULATED, OPS(0xc2, 0xc3) },
	{ "indirect-call", EMULATED, OP(0xff), .reg = BIT(2) },
	{ "indirect-jmp", EMULATED, OP(0xff), .reg = BIT(4) },
	{ "loop-jcxz", EMULATED, OPS(0xe0, 0xe3), .stays = true },
	{ "pushf", EMULATED, OP(0x9c) }, { "popf", EMULATED, OP(0x9d) },
	{ "cli", EMULATED, OP(0xfa) }, { "sti", EMULATED, OP(0xfb) },
	{ "other", COPIED, OPS(0, 0xffff) },
};

/* What a branch does */
enum way { NO_BRANCH, JCC, LOOP, JMP, CALLS, RET, JMP_TO, CALL_TO };

/* An instruction at @addr, with @bytes, as in @form. */
struct look {
	unsigned long addr;
	const u8 *bytes;
	struct insn insn;
	unsigned int len;
	unsigned int prefixes;
	u8 rex, modrm;
	u16 op;
	const struct form *form;
	enum kind kind;
	enum way way;
};

static unsigned int prefix_bit(u8 byte)
{
	static const u8 bytes[] = "\x66\x67\xf0\xf2\xf3\x64\x65\x26\x2e\x36\x3e";
	static const u8 bits[] = { OPSIZE, ADDRSIZE, LOCKED, REPNE, REP, SEGMENT, SEGMENT,
				   OTHER, OTHER, OTHER, OTHER };
	const u8 *found = memchr(bytes, byte, sizeof(bits));

	return found ? bits[found - bytes] : 0;
}

static bool in_memory(const struct look *l)
{
	return l->insn.modrm.nbytes && l->modrm < 0xc0;
}

static bool is_relative(const struct look *l)
{
	return IS_ENABLED(CONFIG_X86_64) && l->insn.modrm.nbytes && (l->modrm & 0xc7) == 5;
}

static enum way way_of(const struct look *l)
{
	switch (l->op) {
	case 0x70 ... 0x7f:
	case 0x0f80 ... 0x0f8f:
		return JCC;
	case 0xe0 ... 0xe3:
		return LOOP;
	case 0xe9:
	case 0xeb:
		return JMP;
	case 0xe8:
		return CALLS;
	case 0xc2 ... 0xc3:
		return RET;
	case 0xff:
		return l->modrm & 0x20 ? JMP_TO : CALL_TO;
	default:
		return NO_BRANCH;
	}
}

static enum kind kind_of(const struct look *l)
{
	/* Relative to EIP */
	if (is_relative(l) && l->prefixes & ADDRSIZE)
		return REFUSED;
	if (l->form->kind != EMULATED)
		return l->form->kind;
	/* An operand of 16 bits, where it makes a difference */
	if (l->prefixes & OPSIZE && (l->way || (l->op & ~1) == 0x9c))
		return REFUSED;
	/* A target at an address that has a base, or 32 bits */
	if (l->way >= JMP_TO && in_memory(l) && l->prefixes & (SEGMENT | ADDRSIZE))
		return REFUSED;
	return l->prefixes & LOCKED ? REFUSED : EMULATED;
}

static bool has_form(const struct look *l, const struct form *f)
{
	return l->op >= f->first && l->op <= max(f->first, f->last) &&
	       (!f->reg || f->reg & BIT(l->modrm >> 3 & 7)) &&
	       (!f->low || (l->modrm >= f->low && l->modrm <= f->high)) &&
	       (!f->with || f->with & l->prefixes);
}

/* Look at an instruction of at most @max bytes. Returns 0, or what the decoder says. */
static int look_at(struct look *l, unsigned long addr, const u8 *bytes, size_t max)
{
	const u8 *b = bytes;
	int err;

	*l = (struct look){ .addr = addr, .bytes = bytes, .form = forms };
	err = insn_decode(&l->insn, bytes, max, INSN_MODE_KERN);
	if (err)
		return err;
	l->len = l->insn.length;
	l->modrm = l->insn.modrm.bytes[0];
	for (; prefix_bit(*b); b++)
		l->prefixes |= prefix_bit(*b);
	if (IS_ENABLED(CONFIG_X86_64) && (*b & 0xf0) == 0x40)
		l->rex = *b++;
	l->op = *b == 0x0f ? 0x0f00 | b[1] : *b;
	/* VEX, EVEX; XCHG with R8 */
	if (l->insn.vex_prefix.nbytes || (l->op == 0x90 && l->rex & 1))
		l->op = 0xffff;
	while (!has_form(l, l->form))
		l->form++;
	l->way = l->form->kind == EMULATED ? way_of(l) : NO_BRANCH;
	l->kind = kind_of(l);
	return 0;
}

static unsigned long end_of(const struct look *l)
{
	return l->addr + l->len;
}

static unsigned long target_of(const struct look *l)
{
	const u8 *end = l->bytes + l->len;

	if (l->op == CALL || l->op == JUMP || l->op >= 0x0f80)
		return end_of(l) + (s32)get_unaligned_le32(end - 4);
	return end_of(l) + (s8)end[-1];
}

/* --------------------------------------------------------------- what was found */

static const int jump_errors[] = { 0, -EILSEQ, -ERANGE, -EFAULT, -EBUSY, -EADDRINUSE, -EPERM };

static struct {
	unsigned int forms[ARRAY_SIZE(forms)], jumps[ARRAY_SIZE(jump_errors)];
	unsigned int symbols, places, undecodable, fixups, refused, landing_pads;
	unsigned int emulated, slots, post_slots, detours, post, relays, faults;
} found;

/* The instruction that is being tested */
static const struct look *now;

static bool must(bool holds, const char *what)
{
	if (!holds && found.faults++ < 20)
		kunit_err(kunit_get_current_test(), "%pS (%*ph) without: %s", (void *)now->addr,
			  now->len, now->bytes, what);
	return holds;
}

#define MUST(condition)		must(condition, #condition)

/* What was made for an instruction: slots, and detours without and with post handlers. */
static struct copies {
	struct kprobe_site site, full;
	bool used;
	u32 hash;
} ring[64];

static u32 hash_code(const u8 *code, unsigned int size, u32 hash)
{
	return code ? jhash(code, size, hash) : hash;
}

static u32 hash_copies(const struct copies *c)
{
	const struct arch_specific_insn *ainsn = &c->site.kp.ainsn;
	const struct arch_optimized_insn *op = &c->site.op.optinsn, *full = &c->full.op.optinsn;
	u32 hash = 0;

	hash = hash_code(ainsn->insn, KPROBE_SLOT_SIZE, hash);
	hash = hash_code(ainsn->post_insn, KPROBE_SLOT_SIZE, hash);
	hash = hash_code(op->insn, op->first + op->size, hash);
	return hash_code(full->insn, full->first + c->full.kp.ainsn.size, hash);
}

/* Free copies, which must not have changed since others were made. */
static void free_copies(struct copies *c)
{
	if (!c->used)
		return;
	MUST(hash_copies(c) == c->hash);
	arch_remove_optimized_kprobe(&c->site.op);
	arch_remove_optimized_kprobe(&c->full.op);
	arch_remove_kprobe(&c->site.kp);
	c->used = false;
}

/* ---------------------------------------------------------------------- slots */

/* The target of a jump or a call at @at, or 0 if there is none */
static unsigned long jumps_to(const u8 *at, u8 op)
{
	return at[0] == op ? (unsigned long)at + 5 + (s32)get_unaligned_le32(at + 1) : 0;
}

/* Is it at @place, as %pS prints that? It is printed until it is known. */
static bool is_symbol(unsigned long addr, const char *place, unsigned long *known)
{
	char text[KSYM_SYMBOL_LEN];

	if (!*known) {
		snprintf(text, sizeof(text), "%pS", (void *)addr);
		if (str_has_prefix(text, place))
			*known = addr;
	}
	return addr == *known;
}

static bool is_filled(const u8 *from, const u8 *to)
{
	return !memchr_inv(from, FILLER, to - from);
}

/* Is the same instruction, with the same operand, at @at? */
static bool check_same(const struct look *l, const u8 *at)
{
	unsigned int operand = l->len - l->insn.immediate.nbytes - 4;
	struct look copy;

	if (!MUST(!look_at(&copy, (unsigned long)at, at, MAX_INSN_SIZE) && copy.len == l->len))
		return false;
	if (!is_relative(l))
		return MUST(!memcmp(at, l->bytes, l->len));
	return MUST(!memcmp(at, l->bytes, operand)) &&
	       MUST(!memcmp(at + operand + 4, l->bytes + operand + 4, l->insn.immediate.nbytes)) &&
	       MUST(end_of(&copy) + (s32)get_unaligned_le32(at + operand) ==
		    end_of(l) + (s32)get_unaligned_le32(l->bytes + operand));
}

/* Returns where the slot jumps to after the copy, or 0 if there is a trap. */
static unsigned long check_slot(const u8 *slot)
{
	const u8 *end = slot + now->len;
	unsigned long to = jumps_to(end, JUMP);

	if (!check_same(now, slot))
		return 0;
	MUST(is_filled(end + (to ? 5 : 0), slot + KPROBE_SLOT_SIZE));
	return to;
}

/* ------------------------------------------------------------------ emulation */

#define FLAGS	(X86_EFLAGS_FIXED | X86_EFLAGS_IF)

/* The stack, and operands */
static unsigned long memory[1024];
static unsigned long *const middle = &memory[ARRAY_SIZE(memory) / 2];

static unsigned long *reg_of(struct pt_regs *regs, unsigned int number)
{
	unsigned long *const in_order[] = {
		&regs->ax, &regs->cx, &regs->dx, &regs->bx,
		&regs->sp, &regs->bp, &regs->si, &regs->di,
#ifdef CONFIG_X86_64
		&regs->r8, &regs->r9, &regs->r10, &regs->r11,
		&regs->r12, &regs->r13, &regs->r14, &regs->r15,
#endif
	};

	return in_order[number % ARRAY_SIZE(in_order)];
}

static bool condition_holds(u8 condition, unsigned long flags)
{
	bool less = !(flags & X86_EFLAGS_SF) != !(flags & X86_EFLAGS_OF);
	const bool holds[] = {
		flags & X86_EFLAGS_OF, flags & X86_EFLAGS_CF, flags & X86_EFLAGS_ZF,
		flags & (X86_EFLAGS_CF | X86_EFLAGS_ZF), flags & X86_EFLAGS_SF,
		flags & X86_EFLAGS_PF, less, less || flags & X86_EFLAGS_ZF,
	};

	return holds[condition >> 1 & 7] != (condition & 1);
}

/*
 * Set the registers so that the operand is in @memory, if it has any. Returns its address, or 0
 * if that cannot be.
 */
static unsigned long place_operand(struct pt_regs *regs)
{
	u8 rm = now->modrm & 7, sib = now->insn.sib.bytes[0], base, index = 4, scale = sib >> 6;
	unsigned long to = (unsigned long)middle, disp = now->insn.displacement.value;
	bool has_base;

	if (is_relative(now))
		return end_of(now) + disp;
	base = rm;
	if (now->insn.sib.nbytes) {
		base = sib & 7;
		index = (sib >> 3 & 7) | (now->rex & 2) << 2;
	}
	has_base = now->modrm >= 0x40 || base != 5;
	base |= (now->rex & 1) << 3;
	if (!has_base && index == 4)
		return disp;
	if (!has_base) {
		to += (disp - to) & (BIT(scale) - 1);
		*reg_of(regs, index) = (to - disp) >> scale;
		return disp + (*reg_of(regs, index) << scale);
	}
	if (index == 4) {
		*reg_of(regs, base) = to - disp;
		return to;
	}
	*reg_of(regs, index) = 5;
	*reg_of(regs, base) = to - disp - (5 << scale);
	return base == index ? 0 : to;
}

/* Emulate the instruction. @regs become @want, and the word @pushed is on the stack. */
static void check_run(const struct insn_emulation *emul, struct pt_regs regs,
		      const struct pt_regs *want, unsigned long pushed)
{
	MUST(kprobe_emulate_insn(emul, &regs));
	MUST(!memcmp(&regs, want, sizeof(regs)));
	if (pushed && regs.sp == want->sp)
		MUST(*(unsigned long *)regs.sp == pushed);
}

static void check_indirect(const struct insn_emulation *emul, struct pt_regs regs)
{
	unsigned long target = (unsigned long)memory, *operand;
	struct pt_regs want, before;

	if (!in_memory(now)) {
		target = *reg_of(&regs, (now->modrm & 7) | (now->rex & 1) << 3);
	} else {
		operand = (unsigned long *)place_operand(&regs);
		/* A push must not go anywhere else. */
		if (!operand || regs.sp - (unsigned long)memory >= sizeof(memory))
			return;
		if ((unsigned long)operand - (unsigned long)memory < sizeof(memory))
			put_unaligned(target, operand);
		else if (get_kernel_nofault(target, operand))
			target = 0;
	}
	want = regs;
	before = regs;
	if (target < PAGE_OFFSET) {
		MUST(!kprobe_emulate_insn(emul, &regs) && !memcmp(&regs, &before, sizeof(regs)));
		return;
	}
	want.ip = target;
	want.sp -= now->way == CALL_TO ? WORD : 0;
	check_run(emul, regs, &want, now->way == CALL_TO ? end_of(now) : 0);
}

static void check_loop(const struct insn_emulation *emul, struct pt_regs regs)
{
	struct pt_regs want = regs;

	if (now->prefixes & ADDRSIZE)
		return;
	for (int i = 0; i < 6; i++) {
		bool zero = i & 1, jump;

		regs.cx = i / 2;
		regs.flags = FLAGS | (zero ? X86_EFLAGS_ZF : 0);
		want.flags = regs.flags;
		want.cx = regs.cx - (now->op != 0xe3);
		jump = now->op == 0xe3 ? !want.cx : want.cx;
		if (now->op < 0xe2)
			jump &= zero == (now->op & 1);
		want.ip = jump ? target_of(now) : end_of(now);
		check_run(emul, regs, &want, 0);
	}
}

static void check_jcc(const struct insn_emulation *emul, struct pt_regs regs)
{
	struct pt_regs want = regs;

	for (int i = 0; i < 32; i++) {
		want.flags = FLAGS | (i & 1 ? X86_EFLAGS_CF : 0) | (i & 2 ? X86_EFLAGS_PF : 0) |
			     (i & 4 ? X86_EFLAGS_ZF : 0) | (i & 8 ? X86_EFLAGS_SF : 0) |
			     (i & 16 ? X86_EFLAGS_OF : 0);
		regs.flags = want.flags;
		want.ip = condition_holds(now->op, regs.flags) ? target_of(now) : end_of(now);
		check_run(emul, regs, &want, 0);
	}
}

static void check_emulation(const struct insn_emulation *emul)
{
	struct pt_regs regs = { .ip = now->addr, .flags = FLAGS }, want;
	unsigned long pushed = 0;

	found.emulated++;
	for (int i = 0; i < 2 * WORD; i++)
		*reg_of(&regs, i) = (unsigned long)&memory[i];
	regs.sp = (unsigned long)middle;
	*middle = (unsigned long)&memory[100];
	want = regs;
	want.ip = end_of(now);
	switch (now->op) {
	case CALL:
		pushed = end_of(now);
		want.sp -= WORD;
		fallthrough;
	case JUMP:
	case 0xeb:
		want.ip = target_of(now);
		break;
	case 0xc2:
		want.sp += get_unaligned_le16(now->bytes + now->len - 2);
		fallthrough;
	case 0xc3:
		want.ip = *middle;
		want.sp += WORD;
		break;
	case 0x9c:
		pushed = FLAGS;
		want.sp -= WORD;
		break;
	case 0x9d:
		*middle = X86_EFLAGS_FIXED | X86_EFLAGS_CF | X86_EFLAGS_DF;
		want.flags = *middle;
		want.sp += WORD;
		break;
	case 0xfa:
		want.flags &= ~X86_EFLAGS_IF;
		break;
	case 0xfb:
		regs.flags &= ~X86_EFLAGS_IF;
		break;
	case 0x0fae:
		regs.flags |= X86_EFLAGS_ZF | X86_EFLAGS_CF;
		break;
	case 0xff:
		return check_indirect(emul, regs);
	case 0xe0 ... 0xe3:
		return check_loop(emul, regs);
	default:
		return check_jcc(emul, regs);
	}
	check_run(emul, regs, &want, pushed);
}

/* --------------------------------------------------------------- registration */

/* No interrupt may come between STI and a wait, or what leaves the kernel. */
static bool needs_shadow(const struct look *sti, size_t size)
{
	struct look next;

	return look_at(&next, end_of(sti), sti->bytes + sti->len, size - sti->len) ||
	       next.form->kind == REFUSED || (next.form->stays && next.way == NO_BRANCH &&
					      next.op != 0x0f1e);
}

static bool is_landing_pad(const struct look *l)
{
	return l->op == 0x0f1e && l->form->stays;
}

/* What arch_prepare_kprobe() must return. @size bytes can be read. */
static int expected_error(const struct look *l, const struct exception_table_entry *e, size_t size)
{
	if (!l->len)
		return -EILSEQ;
	if (e && (l->kind == EMULATED || l->kind == SKIPPED ||
		  FIELD_GET(EX_DATA_TYPE_MASK, e->data) == EX_TYPE_ZEROPAD))
		return -EOPNOTSUPP;
	if (l->kind == REFUSED || (l->op == 0xfb && needs_shadow(l, size)))
		return -EOPNOTSUPP;
	/* FRED would wait for another ENDBR. */
	if (is_landing_pad(l) && kprobe_has_fred)
		return -EOPNOTSUPP;
	return 0;
}

/* A task that has stored there is not waited for, in whatever slot it is preempted. */
static bool stores_to_rcu_tasks_holdout(const struct look *l)
{
#ifdef CONFIG_TASKS_RCU
	return (l->op == 0x88 || l->op == 0xc6) && in_memory(l) &&
	       l->insn.displacement.value == offsetof(struct task_struct, rcu_tasks_holdout);
#else
	return false;
#endif
}

static void check_registered(struct kprobe *kp, bool may_sleep)
{
	static unsigned long post_stub;
	const struct arch_specific_insn *ainsn = &kp->ainsn;
	bool copied = now->kind == COPIED || now->kind == COPIED_PLAIN;
	bool boosted = copied && !may_sleep && !stores_to_rcu_tasks_holdout(now);
	bool post_boosted = boosted && now->kind == COPIED && !kprobe_has_fred;
	bool has_slot = copied || now->way >= RET;
	unsigned long to = 0;

	if (boosted)
		to = (unsigned long)ainsn->insn;
	else if (now->kind == SKIPPED)
		to = end_of(now);
	else if (now->way == JMP)
		to = target_of(now);
	MUST((unsigned long)ainsn->boost == to);
	MUST(kp->opcode == now->bytes[0] && ainsn->size == now->len);
	MUST((unsigned long)ainsn->next == end_of(now));
	MUST((ainsn->run == INSN_RUN_EMULATE) == (now->kind == EMULATED));
	MUST((ainsn->run == INSN_RUN_STEP) == (copied && !boosted));
	if (now->kind == EMULATED)
		check_emulation(&ainsn->emul);

	found.slots += has_slot;
	if (MUST(!!ainsn->insn == has_slot) && has_slot)
		MUST(check_slot(ainsn->insn) == (copied && !boosted ? 0 : end_of(now)));

	found.post_slots += boosted;
	MUST(!arch_prepare_post_handler(kp));
	if (!MUST(!!ainsn->post_insn == boosted) || !boosted)
		return;
	to = check_slot(ainsn->post_insn);
	MUST(post_boosted ? is_symbol(to, "kprobe_post_stub+0x0/", &post_stub) : !to);
}

/* --------------------------------------------------------------------- detours */

#define REGION_MAX	(JMP32_INSN_SIZE - 1 + MAX_INSN_SIZE)

static int pre_handler(struct kprobe *p, struct pt_regs *regs)
{
	return 0;
}

static void post_handler(struct kprobe *p, struct pt_regs *regs, unsigned long flags)
{
}

/* The only probe of each site */
static struct kprobe probe = { .pre_handler = pre_handler, .post_handler = post_handler };

static bool is_call(const struct look *l)
{
	return l->way == CALLS || l->way == CALL_TO;
}

static bool never_continues(const struct look *l)
{
	return l->way == JMP || l->way == RET || l->way == JMP_TO;
}

/* Is the operand the stack pointer, or on the stack? */
static bool uses_sp(const struct look *l)
{
	u8 base = in_memory(l) && l->insn.sib.nbytes ? l->insn.sib.bytes[0] : l->modrm;

	return (base & 7) == 4 && !(l->rex & 1) && (!in_memory(l) || l->insn.sib.nbytes);
}

/* Must a return be in the upper half of a cache line? */
static bool its_is_mitigated(void)
{
	return boot_cpu_has_bug(X86_BUG_ITS) && boot_cpu_has(X86_FEATURE_RETHUNK) &&
	       !boot_cpu_has(X86_FEATURE_CALL_DEPTH);
}

/*
 * Is an indirect call's target checked there? A mov to r10d, an add to it, je over a ud2; or by
 * paranoid callers of FineIBT a cmp with what precedes the target, lea, and jne into the lea.
 */
static bool is_cfi_check(const u8 *bytes, size_t limit)
{
	static const u8 paranoid[] = "\x41\x3b\x43\xf5\x2e\x4d\x8d\x5b\xf0\x75\xfd";

	if (!IS_ENABLED(CONFIG_CFI))
		return false;
	return (limit >= 14 && !memcmp(bytes, "\x41\xba", 2) && bytes[7] == 0x03 &&
		!memcmp(bytes + 10, "\x74\x02\x0f\x0b", 4)) ||
	       (limit >= 11 && !memcmp(bytes, paranoid, 11));
}

/* How many of @limit bytes a jump of @size bytes displaces, or why it cannot. */
static int displaces(unsigned long addr, const u8 *bytes, size_t limit, unsigned int size)
{
	unsigned int pos = 0;
	struct look l;
	int err;

	if (limit < size)
		return -ERANGE;
	for (; pos < size; pos += l.len) {
		err = look_at(&l, addr + pos, bytes + pos, limit - pos);
		if (err)
			return err == -ENODATA && limit - pos < MAX_INSN_SIZE ? -ERANGE : -EILSEQ;
		if (is_cfi_check(bytes + pos, limit - pos) || l.form->stays ||
		    expected_error(&l, NULL, limit - pos) || stores_to_rcu_tasks_holdout(&l) ||
		    (is_call(&l) && pos + l.len < size) || (l.way == CALL_TO && uses_sp(&l)))
			return -EILSEQ;
		if (l.way == RET && its_is_mitigated())
			return -EPERM;
		if (never_continues(&l))
			return max(pos + l.len, size);
	}
	return pos;
}

/* Check the push of a return address. Returns its length. */
static unsigned int check_push(const struct look *call, const u8 *at)
{
	static const u8 push[] = {
		0xe8, 0, 0, 0, 0,
#ifdef CONFIG_X86_64
		0x48,
#endif
		0xc7, 0x04, 0x24
	};

	MUST(!memcmp(at, push, sizeof(push)));
	MUST((long)(s32)get_unaligned_le32(at + sizeof(push)) == end_of(call));
	return sizeof(push) + 4;
}

/* Check the copy of a displaced instruction. Returns its length. */
static unsigned int check_displaced_insn(const struct look *l, const u8 *at)
{
	unsigned int len = is_call(l) ? check_push(l, at) : 0;
	struct look jump = *l;
	u8 bytes[MAX_INSN_SIZE];

	switch (l->way) {
	case JCC:
		MUST(at[0] == 0x0f && jumps_to(at + 1, 0x80 | (l->op & 0xf)) == target_of(l));
		return 6;
	case JMP:
	case CALLS:
		MUST(jumps_to(at + len, JUMP) == target_of(l));
		return len + 5;
	case CALL_TO:
		/* The JMP has another ModRM.reg. */
		memcpy(bytes, l->bytes, l->len);
		bytes[l->len - l->insn.displacement.nbytes - l->insn.sib.nbytes - 1] ^= 0x30;
		jump.bytes = bytes;
		fallthrough;
	default:
		check_same(&jump, at + len);
		return len + l->len;
	}
}

/* Check the call of a body, and what it returns to. Returns the length. */
static unsigned int check_body_call(const u8 *at, const char *body, unsigned long *known)
{
	MUST(is_symbol(jumps_to(at, CALL), body, known));
	MUST(at[5] == 0x9d && at[6] == 0x5c);	/* POPF; POP of the stack pointer */
	return 7;
}

/* Check the push of an instruction pointer. Returns the length. */
static unsigned int check_push_ip(const u8 *at, unsigned long ip)
{
	MUST(at[0] == 0x68 && (long)(s32)get_unaligned_le32(at + 1) == ip);
	return 5;
}

/* Check the push of the site, which is at the start of the detour. Returns the length. */
static unsigned int check_push_site(const u8 *at, const struct arch_optimized_insn *op)
{
	if (IS_ENABLED(CONFIG_X86_32))
		return check_push_ip(at, *(unsigned long *)op->insn);
	MUST(at[0] == 0xff && at[1] == 0x35);
	MUST(at + 6 + (s32)get_unaligned_le32(at + 2) == op->insn);
	return 6;
}

/* Check what is between the copies of the first two instructions. Returns the length. */
static unsigned int check_post_call(const u8 *at, const struct arch_optimized_insn *op)
{
	unsigned int len = check_push_ip(at, end_of(now));
	static unsigned long known;

	found.post++;
	len += check_push_site(at + len, op);
	return len + check_body_call(at + len, "kprobe_detour_post+0x0/", &known);
}

static void check_displaced(const struct arch_optimized_insn *op, const u8 *bytes,
			    const u8 *start, bool post)
{
	unsigned int pos = 0, pushed, starts = 0;
	const u8 *at = start;
	struct look l;

	do {
		if (!MUST(!look_at(&l, now->addr + pos, bytes + pos, op->size - pos)))
			return;
		MUST(kprobe_detour_origin(op, at - op->insn, &pushed) == pos && !pushed);
		if (is_call(&l))
			MUST(kprobe_detour_origin(op, at - op->insn + 5, &pushed) == pos &&
			     pushed == WORD);
		starts |= BIT(pos);
		if (pos && pos < JMP32_INSN_SIZE)
			MUST(op->copies[pos - 1] == at - op->insn);
		at += check_displaced_insn(&l, at);
		if (!pos && post)
			at += check_post_call(at, op);
		if (!pos)
			MUST(op->rest == (never_continues(&l) ? 0 : at - op->insn));
		pos += l.len;
	} while (pos < op->size && !never_continues(&l));

	for (int i = 1; i < JMP32_INSN_SIZE; i++)
		MUST(starts & BIT(i) || !op->copies[i - 1]);
	MUST(kprobe_detour_origin(op, at - op->insn - 1, &pushed) == pos - l.len);
	MUST(kprobe_detour_origin(op, at - op->insn, &pushed) == op->size && !pushed);
	if (never_continues(&l))
		MUST(is_filled(at, at + 5));
	else
		MUST(jumps_to(at, JUMP) == now->addr + op->size);
	MUST(op->insn + op->first == (post ? at + 5 : start));
}

static void check_detour(const struct kprobe_site *site, const u8 *bytes)
{
	static unsigned long known;
	const struct arch_optimized_insn *op = &site->op.optinsn;
	const u8 *at = op->insn;

	found.detours++;
	MUST(!memcmp(op->code, bytes, op->size));
	MUST(*(unsigned long *)at == (unsigned long)&site->kp);
	at += WORD;
	at += check_push_ip(at, now->addr + 1);
	at += check_body_call(at, "kprobe_detour+0x0/", &known);
	check_displaced(op, bytes, at, site->has_post);
	if (!site->has_post)
		return;
	at = op->insn + op->first;
	check_same(now, at);
	MUST(jumps_to(at + now->len, JUMP) == (unsigned long)op->insn + op->rest);
}

/* The text that a jump of two bytes reaches, before and after */
static u8 around[2][S8_MAX - S8_MIN + JMP32_INSN_SIZE];

static bool read_around(u8 *to)
{
	return !copy_from_kernel_nofault(to, (void *)now->addr + JMP8_INSN_SIZE + S8_MIN,
					 sizeof(*around));
}

/* Only padding became a jump to the detour. Frees the detour, which brings it back. */
static void check_relay(struct kprobe_site *site)
{
	struct arch_optimized_insn *op = &site->op.optinsn;
	u8 *before = around[0] + op->relay - S8_MIN, *after = around[1] + op->relay - S8_MIN;

	found.relays++;
	MUST(jumps_to((u8 *)now->addr + JMP8_INSN_SIZE + op->relay, JUMP) ==
	     (unsigned long)op->insn + WORD);
	for (int i = 0; i < 5; i++)
		MUST(strchr("\xcc\x90\x66\x2e\x0f\x1f\x40\x44\x80\x84", before[i]));
	MUST(read_around(around[1]));
	memcpy(after, before, 5);
	MUST(!memcmp(around[0], around[1], sizeof(*around)));
	kprobe_text_unlock();	/* the next one takes text_mutex */
	arch_remove_optimized_kprobe(&site->op);
	kprobe_text_lock();
	MUST(read_around(around[1]) && !memcmp(around[0], around[1], sizeof(*around)));
}

static bool may_fault(unsigned long addr, int size)
{
	while (size-- > 0)
		if (search_exception_tables(addr + size))
			return true;
	return false;
}

/* @size is that of the region, or why there can be none. */
static void check_jump_error(int err, int size)
{
	bool mitigation = cpu_feature_enabled(X86_FEATURE_RETPOLINE_LFENCE) ||
			  its_is_mitigated();
	int i = 0;

	while (i < ARRAY_SIZE(jump_errors) - 1 && jump_errors[i] != err)
		i++;
	found.jumps[i]++;
	if (!err)
		return;
	if (size < 0)
		MUST(err == size);
	else if (may_fault(now->addr, size))
		MUST(err == -EFAULT);
	else
		MUST(err == -EBUSY || err == -EADDRINUSE || (err == -EPERM && mitigation));
}

static void check_detours(struct copies *c, const u8 *bytes, size_t limit)
{
	struct arch_optimized_insn *op = &c->site.op.optinsn;
	int size, err;

	limit = min_t(size_t, limit, REGION_MAX);
	size = displaces(now->addr, bytes, limit, JMP32_INSN_SIZE);
	op->unpadded = !read_around(around[0]);
	err = arch_prepare_optimized_kprobe(&c->site.op, &c->site.kp);
	check_jump_error(err, size);
	if (err)
		return;
	if (op->relay)
		size = displaces(now->addr, bytes, limit, JMP8_INSN_SIZE);
	MUST(op->size == size && !may_fault(now->addr, size));
	check_detour(&c->site, bytes);
	if (op->relay) {
		check_relay(&c->site);
		return;
	}

	c->full.has_post = true;
	err = arch_prepare_optimized_kprobe(&c->full.op, &c->full.kp);
	if (MUST(err == (now->way || now->kind == COPIED_PLAIN ? -EOPNOTSUPP : 0)) && !err)
		check_detour(&c->full, bytes);
}

/* ------------------------------------------------------------------- the kernel */

static void init_site(struct kprobe_site *site, unsigned long addr, u8 size)
{
	*site = (struct kprobe_site){ .called = &probe };
	site->kp.addr = (kprobe_opcode_t *)addr;
	site->kp.ainsn.size = size;
}

/* Test an instruction, which is @limit bytes before the end of its symbol. */
static void check_insn(const struct look *l, size_t size, size_t limit)
{
	const struct exception_table_entry *e = search_exception_tables(l->addr);
	struct copies *c = &ring[found.places++ % ARRAY_SIZE(ring)];
	int err;

	now = l;
	free_copies(c);
	init_site(&c->site, l->addr, 0);
	init_site(&c->full, l->addr, l->len);
	if (l->len)
		found.forms[l->form - forms]++;
	else
		found.undecodable++;
	found.fixups += !!e;
	err = arch_prepare_kprobe(&c->site.kp);
	found.refused += !!err;
	found.landing_pads += err && is_landing_pad(l);
	if (!MUST(err == expected_error(l, e, size)) && !err)
		arch_remove_kprobe(&c->site.kp);
	if (err || expected_error(l, e, size))
		return;
	check_registered(&c->site.kp, e);
	check_detours(c, l->bytes, limit);
	c->hash = hash_copies(c);
	c->used = true;
}

static void check_symbol(unsigned long addr, unsigned long end)
{
	u8 bytes[REGION_MAX + MAX_INSN_SIZE], last = 0;
	const size_t size = MAX_INSN_SIZE + 3;
	static struct look l;

	/* A probe of another test: the text is not what it was. */
	for (unsigned long pos = addr; pos < end; pos++)
		if (get_kprobe((void *)pos))
			return;
	found.symbols++;
	for (; addr < end; addr += l.len ?: 1, last = bytes[0]) {
		if (copy_from_kernel_nofault(bytes, (void *)addr, sizeof(bytes)))
			return;
		/* Of padding, which may be megabytes, the first byte is enough. */
		if (bytes[0] == last && (last == FILLER || last == 0x90)) {
			l.len = 1;
			continue;
		}
		look_at(&l, addr, bytes, size);
		check_insn(&l, size, end - addr);
	}
}

/* The optimiser may forget what it has learned of the text whenever it has the mutex. */
static int learn_and_check_symbol(unsigned long addr, unsigned long end)
{
	int more;

	do {
		scoped_guard(mutex, &kprobe_mutex) {
			more = arch_learn_text(addr);
			if (!more) {
				guard(kprobe_text)();
				check_symbol(addr, end);
			}
		}
		cond_resched_tasks_rcu_qs();
	} while (more > 0);
	return more;
}

static void check_text(struct kunit *test, unsigned long addr, unsigned long end)
{
	static unsigned int symbols;
	unsigned long next, size, offset;
	int err;

	for (; addr < end; addr = next) {
		next = addr + 1;
		if (!kallsyms_lookup_size_offset(addr, &size, &offset))
			continue;
		next = addr - offset + size;
		/* The rest of a symbol belongs to the part before. Each second one is padding. */
		if (offset || (hash_32(symbols++, 16) + seed) % share)
			continue;
		err = learn_and_check_symbol(addr, next);
		/* A live patch, or a module that goes */
		if (err == -EINVAL && addr >= MODULES_VADDR)
			return;
		KUNIT_ASSERT_EQ(test, err, 0);
	}
}

/* False also if there is no text */
static bool find_text(unsigned long addr, unsigned long *start, unsigned long *size)
{
	const struct kprobe_text *text;

	guard(mutex)(&kprobe_mutex);
	text = kprobe_text_at(addr);
	if (IS_ERR(text))
		return false;
	*start = text->start;
	*size = text->end - text->start;
	return true;
}

/* The text of the kernel in parts, each of which has its own limit of time, and all modules */
static const char parts[32 + 1];

static unsigned int part_number(const char *part)
{
	return part - parts;
}

static void name_part(const char *part, char *name)
{
	snprintf(name, KUNIT_PARAM_DESC_SIZE, "part %u", part_number(part));
}

KUNIT_ARRAY_PARAM(part, parts, name_part);

static void free_ring(void)
{
	guard(mutex)(&kprobe_mutex);
	for (int i = 0; i < ARRAY_SIZE(ring); i++)
		free_copies(&ring[i]);
}

static void take_fred(void *unused)
{
	kprobe_has_fred = false;
}

static void test_copies(struct kunit *test)
{
	unsigned int part = part_number(test->param_value), faults = found.faults;
	unsigned long addr, start, size;

	/* Half of the parts are probed as with FRED. */
	if (part % 2 && !kprobe_has_fred) {
		kprobe_has_fred = true;
		KUNIT_ASSERT_EQ(test, 0, kunit_add_action_or_reset(test, take_fred, NULL));
	}
	if (part < ARRAY_SIZE(parts) - 1) {
		KUNIT_ASSERT_TRUE(test, find_text((unsigned long)register_kprobe, &start, &size));
		size /= ARRAY_SIZE(parts) - 1;
		addr = start + size * part;
		check_text(test, addr, addr + size);
	} else {
		for (addr = MODULES_VADDR; addr < MODULES_END; addr += PAGE_SIZE) {
			if (!find_text(addr, &start, &size))
				continue;
			check_text(test, start, start + size);
			addr = PAGE_ALIGN(start + size) - PAGE_SIZE;
		}
	}
	free_ring();
	KUNIT_EXPECT_EQ(test, found.faults, faults);
}

/* The numbers agree, and there is much of all. */
static void test_counts(struct kunit *test)
{
	unsigned int sum = found.undecodable;

	for (int i = 0; i < ARRAY_SIZE(forms); sum += found.forms[i++])
		if (found.forms[i])
			kunit_info(test, "%s %u", forms[i].name, found.forms[i]);
	for (int i = 0; i < ARRAY_SIZE(jump_errors); i++)
		kunit_info(test, "jump: %pe %u", ERR_PTR(jump_errors[i]), found.jumps[i]);
	kunit_info(test, "share=%u seed=%u: symbols %u, places %u, undecodable %u, faults %u",
		   share, seed, found.symbols, found.places, found.undecodable, found.faults);
	kunit_info(test, "refused %u, with fixups %u, emulated %u",
		   found.refused, found.fixups, found.emulated);
	kunit_info(test, "slots %u, post slots %u, detours %u, with post %u, relays %u",
		   found.slots, found.post_slots, found.detours, found.post, found.relays);
	KUNIT_EXPECT_EQ(test, found.places, sum);
	KUNIT_EXPECT_GT(test, found.places, 1000);
	KUNIT_EXPECT_GT(test, found.jumps[0], found.places / 2);
	KUNIT_EXPECT_GT(test, found.emulated, found.places / 20);
	KUNIT_EXPECT_GT(test, found.post, found.places / 4);
	KUNIT_EXPECT_GT(test, found.relays, 0);
	if (IS_ENABLED(CONFIG_X86_KERNEL_IBT))
		KUNIT_EXPECT_GT(test, found.landing_pads, 0);
}

static int init_suite(struct kunit_suite *suite)
{
	return share ? 0 : -EINVAL;
}

static void exit_suite(struct kunit_suite *suite)
{
	free_ring();
}

static struct kunit_case kprobes_copies_cases[] = {
	KUNIT_CASE_PARAM_ATTR(test_copies, part_gen_params, { .speed = KUNIT_SPEED_SLOW }),
	KUNIT_CASE(test_counts),
	{}
};

static struct kunit_suite kprobes_copies_suite = {
	.name = "kprobes_x86_copies",
	.suite_init = init_suite,
	.suite_exit = exit_suite,
	.test_cases = kprobes_copies_cases,
};

kunit_test_suite(kprobes_copies_suite);

MODULE_DESCRIPTION("KUnit test of the copies that x86 kprobes make of all instructions");
MODULE_LICENSE("GPL");
MODULE_INFO(import_ns, "EXPORTED_FOR_KUNIT_TESTING");
