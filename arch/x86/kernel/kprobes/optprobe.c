// SPDX-License-Identifier: GPL-2.0
/*
 * Jumps in place of breakpoints, and the detours that they lead to.
 *
 * A detour is a copy of the template in trampoline.S, which calls the handlers;
 * behind it copies of the instructions that the jump displaces, and a jump back
 * to what follows them. It does for whatever probes the site has, but for post
 * handlers, which want a detour of their own. What it knows of the probe that it
 * was made for is a short cut.
 */
#include <linux/extable.h>
#include <linux/kallsyms.h>
#include <linux/kgdb.h>
#include <linux/kprobes.h>
#include <linux/memory.h>
#include <linux/preempt.h>
#include <linux/unaligned.h>

#include "common.h"
#include "detour.h"

static_assert(offsetof(struct pcpu_hot, preempt_count) == PCPU_HOT_PREEMPT_COUNT);
static_assert(offsetof(struct kprobe_ctlblk, regs) == KPROBE_CTLBLK_REGS);
static_assert(DISPLACED_COPY_MAX + JMP32_INSN_SIZE < MAX_OPTINSN_SIZE);

/* Where something of the template is in a copy of it. */
#define at(detour, label)	((detour) + kprobe_detour_##label)

#define TEMPLATE_SIZE		kprobe_detour_end

/* ------------------------------------------------------------------- hits */

/**
 * kprobe_detour_slow - Call the pre handlers for a detour that cannot
 * @kp: The site.
 * @regs: The registers.
 *
 * Because there are several probes, or other ones than it was made for; or
 * because this CPU works for a probe already, see hit_in_hit() of core.c.
 *
 * Context: That of the probed code, with preemption off.
 * Return: DETOUR_*.
 */
notrace int __kprobes kprobe_detour_slow(struct kprobe *kp, struct pt_regs *regs)
{
	int changed;

	if (!kprobe_running()) {
		enter_hit(kp, regs);
		changed = kprobe_call_pre_handlers(kp, regs);
		leave_outermost_hit();
	} else if (is_hit_from_above(0)) {
		enter_nested_hit(kp, regs);
		changed = kprobe_pre_handlers_nested(kp, regs);
		resume_outer_hit();
	} else {
		kprobes_inc_nmissed_count(kp);
		return DETOUR_SKIPPED;
	}
	return changed ? DETOUR_CHANGED : DETOUR_HANDLED;
}

/* kprobe_detour_resched - What preempt_enable() does when it is time for it */
notrace void __kprobes kprobe_detour_resched(void)
{
#ifdef CONFIG_PREEMPTION
	__preempt_schedule_notrace();
#endif
}

/* --------------------------------------------------------------- detours */

/* Could an instruction fault, and the fault be fixed up? See heed_fixup(). */
static bool is_fixed_up(unsigned long addr, unsigned int size)
{
	while (size--)
		if (search_exception_tables(addr + size))
			return true;
	return false;
}

static bool has_kgdb_breakpoint(unsigned long addr, unsigned int size)
{
#ifdef CONFIG_KGDB
	while (size--)
		if (kgdb_has_hit_break(addr + size))
			return true;
#endif
	return false;
}

/* Read what a jump at a site displaces. Returns its size, or why there can be no jump. */
static int read_displaced(u8 *code, unsigned long addr)
{
	unsigned long function_size, offset;
	int size, err;

	if (!kallsyms_lookup_size_offset(addr, &function_size, &offset))
		return -ERANGE;
	size = min(function_size - offset, (unsigned long)DISPLACED_MAX);
	read_original_text(code, addr, size);
	size = displaced_size(code, size);
	if (size == -ENODATA)
		return -ERANGE;
	if (size < 0)
		return size;
	if (is_fixed_up(addr, size))
		return -EFAULT;
	if (has_kgdb_breakpoint(addr, size))
		return -EBUSY;
	err = branches_check(addr, size);
	return err ?: size;
}

/* A branch in a copy that leads to where the original one does, or elsewhere. */
static void set_branch(u8 *operand, const void *from, const void *target)
{
	put_unaligned_le32((long)target - (long)(from + DISP32_SIZE), operand);
}

/* Fill in the template: @code is going to be what is at @detour. */
static void fill_template(u8 *code, const kprobe_opcode_t *detour, struct kprobe_site *site)
{
	const struct kprobe *probe = site->only;
	const u32 *offset;

	memcpy(code, kprobe_detour, TEMPLATE_SIZE);
	for (offset = kprobe_detour_branches; *offset; offset++) {
		u8 *operand = code + *offset;

		put_unaligned_le32(get_unaligned_le32(operand) + (kprobe_detour - detour), operand);
	}
	put_unaligned_le32((long)site->kp.addr + INT3_INSN_SIZE, at(code, ip));
	put_unaligned_le64((unsigned long)&site->kp, at(code, site));
	put_unaligned_le32(offsetof(struct kprobe_site, direct) - offsetof(struct kprobe_site, kp),
			   at(code, direct));
	put_unaligned_le32(site->direct ?: -1, at(code, number));
	put_unaligned_le64((unsigned long)probe, at(code, probe));
	set_branch(at(code, handler), at(detour, handler),
		   probe ? (void *)probe->pre_handler : kprobe_detour_slow);
}

/*
 * Copy the displaced instructions behind the template, and put a jump back there.
 * Sets how long the copy of the first one is. Returns the size of it all.
 */
static int copy_displaced(u8 *code, const kprobe_opcode_t *detour,
			  const struct arch_optimized_insn *op, const void *addr,
			  unsigned int *first)
{
	unsigned int pos = 0, len = TEMPLATE_SIZE;
	struct insn insn;
	int copied;

	*first = 0;
	do {
		if (insn_decode(&insn, op->code + pos, op->size - pos, INSN_MODE_KERN))
			return -EILSEQ;
		copied = relocate_displaced(code + len, &insn, (unsigned long)addr + pos,
					    (unsigned long)detour + len);
		if (copied < 0)
			return copied;
		*first = *first ?: copied;
		pos += insn.length;
		len += copied;
	} while (pos < op->size && !displaced_is_jump(&insn));
	__text_gen_insn(code + len, JMP32_INSN_OPCODE, detour + len, addr + op->size,
			JMP32_INSN_SIZE);
	return len + JMP32_INSN_SIZE;
}

int arch_prepare_optimized_kprobe(struct optimized_kprobe *op, struct kprobe *p)
{
	struct arch_optimized_insn made = { };
	u8 code[MAX_OPTINSN_SIZE];
	unsigned int first;
	int size;

	lockdep_assert_held(&text_mutex);
	if (cpu_feature_enabled(X86_FEATURE_XENPV) || p->post_handler)
		return -EOPNOTSUPP;
	size = read_displaced(made.code, (unsigned long)p->addr);
	if (size < 0)
		return size;
	made.size = size;
	made.direct = site_of(p)->direct;
	made.insn = get_optinsn_slot_for(p);
	if (!made.insn)
		return -ENOMEM;

	memset(code, INT3_INSN_OPCODE, sizeof(code));
	fill_template(code, made.insn, site_of(p));
	size = copy_displaced(code, made.insn, &made, p->addr, &first);
	if (size < 0) {
		free_optinsn_slot(made.insn, 0);
		return size;
	}
	text_poke(made.insn, code, sizeof(code));
	made.plain = made.insn + TEMPLATE_SIZE;
	made.rest = made.plain + first;
	op->optinsn = made;
	return 0;
}

int arch_prepared_optinsn(struct arch_optimized_insn *optinsn)
{
	return !!optinsn->insn;
}

int arch_check_optimized_kprobe(struct optimized_kprobe *op)
{
	return 0;
}

int arch_within_optimized_kprobe(struct optimized_kprobe *op, kprobe_opcode_t *addr)
{
	return addr - op->kp.addr < op->optinsn.size;
}

bool arch_detour_suits(struct optimized_kprobe *op)
{
	u32 direct = site_of(&op->kp)->direct;

	return !op->kp.post_handler && (!direct || direct == op->optinsn.direct);
}

void arch_use_detour(struct optimized_kprobe *op, bool use)
{
	struct arch_specific_insn *ainsn = &op->kp.ainsn;

	WRITE_ONCE(ainsn->boost, use ? op->optinsn.plain : ainsn->insn);
	WRITE_ONCE(ainsn->next, use ? op->optinsn.rest : op->kp.addr + ainsn->size);
}

void arch_remove_optimized_kprobe(struct optimized_kprobe *op)
{
	if (op->optinsn.insn)
		free_optinsn_slot(op->optinsn.insn, 0);
	memset(&op->optinsn, 0, sizeof(op->optinsn));
}

int arch_learn_text(unsigned long addr)
{
	return branches_learn(addr);
}

void arch_forget_text(const struct module *mod)
{
	branches_forget(mod);
}

/* ----------------------------------------------------------------- jumps */

static void make_jump(u8 *jump, const struct optimized_kprobe *op)
{
	__text_gen_insn(jump, JMP32_INSN_OPCODE, op->kp.addr, at(op->optinsn.insn, entry),
			JMP32_INSN_SIZE);
}

/* The sites come in the order of their addresses, as the queue wants them. */
void arch_optimize_kprobes(struct list_head *oplist)
{
	struct optimized_kprobe *op, *next;
	u8 jump[JMP32_INSN_SIZE];

	lockdep_assert_held(&text_mutex);
	list_for_each_entry_safe(op, next, oplist, list) {
		list_del_init(&op->list);
		make_jump(jump, op);
		text_poke_queue(op->kp.addr, jump, sizeof(jump), NULL);
	}
	text_poke_finish();
}

/* The breakpoint again, and what the rest of the jump has displaced. */
void arch_unoptimize_kprobes(struct list_head *oplist, struct list_head *done_list)
{
	u8 jump[JMP32_INSN_SIZE], code[JMP32_INSN_SIZE];
	struct optimized_kprobe *op, *next;

	lockdep_assert_held(&text_mutex);
	list_for_each_entry_safe(op, next, oplist, list) {
		make_jump(jump, op);
		memcpy(code, op->optinsn.code, sizeof(code));
		code[0] = INT3_INSN_OPCODE;
		text_poke_queue(op->kp.addr, code, sizeof(code), jump);
		list_move_tail(&op->list, done_list);
	}
	text_poke_finish();
}

void arch_unoptimize_kprobe(struct optimized_kprobe *op)
{
	u8 jump[JMP32_INSN_SIZE], code[JMP32_INSN_SIZE];

	make_jump(jump, op);
	memcpy(code, op->optinsn.code, sizeof(code));
	code[0] = INT3_INSN_OPCODE;
	text_poke_bp(op->kp.addr, code, sizeof(code), jump);
}

/* -------------------------------------------------------------- unwinding */

/* How far the stack pointer is below that of the probed code, outside of the frame. */
static unsigned int pushed_at(unsigned int offset)
{
	unsigned int pushed = 0;
	struct insn insn;
	u32 pos;

	if (offset == kprobe_detour_restored)	/* POPF, POP %rsp */
		return sizeof(struct pt_regs) - offsetof(struct pt_regs, flags);
	if (offset > kprobe_detour_restored)
		return sizeof(struct pt_regs) - offsetof(struct pt_regs, sp);

	for (pos = kprobe_detour_entry; pos < offset; pos += insn.length) {
		if (insn_decode(&insn, kprobe_detour + pos, MAX_INSN_SIZE, INSN_MODE_KERN))
			break;
		pushed += sizeof(long);
	}
	return pushed;
}

/**
 * unwind_detour - Find the text that describes the stack in a detour
 * @ip: An address. If it is in a detour, it is set to one in the template where
 *	registers have been saved, and to that of the probed code elsewhere.
 * @sp: The stack pointer. Then it is set to what it was in the probed code.
 *
 * Context: Any in which RCU is watching. Preemption is off.
 * Return: Whether it is in a detour.
 */
bool unwind_detour(unsigned long *ip, unsigned long *sp)
{
	struct kprobe *kp = kprobe_optinsn_slot_owner(*ip);
	const struct arch_optimized_insn *detour;
	unsigned int offset, pushed;

	if (!kp)
		return false;
	detour = &container_of(kp, struct optimized_kprobe, kp)->optinsn;
	offset = *ip - (unsigned long)detour->insn;
	if (offset >= TEMPLATE_SIZE) {
		offset = displaced_origin(detour->code, detour->size, offset - TEMPLATE_SIZE,
					  &pushed);
		*ip = (unsigned long)kp->addr + offset;
		*sp += pushed;
	} else if (offset < kprobe_detour_entry ||
		   (offset >= kprobe_detour_framed && offset < kprobe_detour_restored)) {
		*ip = (unsigned long)kprobe_detour + offset;
	} else {
		*ip = (unsigned long)kp->addr;
		*sp += pushed_at(offset);
	}
	return true;
}
