// SPDX-License-Identifier: GPL-2.0
/*
 * Optimised probes: jumps in place of breakpoints, and the detours that they reach
 *
 * A detour calls a body in detour.S, which all detours share and which calls the handlers.
 * After the call are copies of the displaced instructions and a jump back to the text after
 * them. Where a jump of five bytes is not possible, one of two bytes may be, see relay.c. A
 * detour stays valid when the probes of its site or their handlers change, except that post
 * handlers need a detour that calls a second body, after a copy of the first instruction.
 */
#include <linux/cpu.h>
#include <linux/cpufeature.h>
#include <linux/errno.h>
#include <linux/export.h>
#include <linux/extable.h>
#include <linux/kallsyms.h>
#include <linux/kprobes.h>
#include <linux/memory.h>
#include <linux/minmax.h>
#include <linux/ptrace.h>
#include <linux/rcupdate.h>
#include <linux/sizes.h>
#include <linux/stddef.h>
#include <linux/string.h>

#include <kunit/visibility.h>

#include <asm/alternative.h>

#include "detour.h"
#include "hit.h"
#include "insn.h"
#include "scan.h"
#include "text.h"

/* detour.S relies on it. */
static_assert(!offsetof(struct kprobe_ctlblk, regs));

/* The test of the copies goes from symbol to symbol. */
EXPORT_SYMBOL_IF_KUNIT(kallsyms_lookup_size_offset);

/* It must know where there are fixups. */
EXPORT_SYMBOL_IF_KUNIT(search_exception_tables);

/* ------------------------------------------------------------------- hits */

/*
 * kprobe_detour_call() - Call the pre handlers; returns non-zero if one has changed the path
 *
 * The body cannot do it: the compiler knows what an indirect call needs. A post handler that was
 * set after registration needs another detour. kprobe_running() is the site. The context of this
 * function and of the next ones is that of the probed code, with preemption off.
 */
__noendbr int __kprobes kprobe_detour_call(struct kprobe *kp, struct pt_regs *regs)
{
	struct kprobe *called = kprobe_called(kp, false);

	/* kprobe_running() is @kp, which then needs no register. Values may be stale. */
	if (unlikely(data_race(called->post_handler)) &&
	    !data_race(site_of(kprobe_running())->has_post)) /* stale */
		return kprobe_pre_handlers(kprobe_running(), regs);
	return kprobe_call_pre_handler(called, regs);
}

/* kprobe_detour_call_post() - Call the post handlers, see kprobe_detour_call() */
__noendbr void __kprobes kprobe_detour_call_post(struct kprobe *kp, struct pt_regs *regs)
{
	kprobe_call_post_handler(kprobe_called(kp, false), regs);
}

/*
 * kprobe_detour_slow() - Call the pre handlers in a hit that is inside of another one
 *
 * See kprobe_handle_other_int3(). Returns non-zero if execution continues at @regs->ip: a handler
 * has changed the path, or no handler may run now, and the detour would call post handlers.
 */
int __kprobes kprobe_detour_slow(struct kprobe *kp, struct pt_regs *regs)
{
	const struct arch_optimized_insn *op = detour_of(kp);
	bool from_above = kprobe_hit_from_above();
	int changed;

	if (from_above) {
		kprobe_begin_hit(kp, regs, true);
		changed = kprobe_call_pre_handler(kprobe_called(kp, true), regs);
	} else {
		kprobe_count_skipped(kp);
		changed = detour_has_post(op);
		if (changed)
			regs->ip = (unsigned long)(op->insn + op->first);
	}
	barrier();	/* with the mark, an NMI takes ip for one after a breakpoint */
	if (changed)
		((u16 *)&regs->cs)[1] = 0;	/* DETOUR_MARK: ip is where execution continues */
	if (from_above)
		kprobe_end_hit(true);
	return changed;
}

/*
 * kprobe_detour_post_slow() - Call the post handlers in a hit that is inside of another one
 *
 * Whether the hit is missed has been decided in kprobe_detour_slow(): the instruction may have
 * lowered the context level since.
 */
void __kprobes kprobe_detour_post_slow(struct kprobe *kp, struct pt_regs *regs)
{
	kprobe_begin_hit(kp, POST_HANDLERS_REGS, true);
	kprobe_run_post_handlers(kp, regs);
	kprobe_end_hit(true);
}

/*
 * Do hits of the breakpoint at @kp run in the detour? Then @op is complete and stays so until
 * a grace period of RCU-tasks after arch_use_detour() has changed @boost. Else it may be in the
 * making: @insn is NULL or any value, but no detour that @boost has been set to, whatever @first
 * is; and @boost is NULL if the instruction is stepped or emulated.
 */
static __always_inline bool uses_detour(const struct kprobe *kp,
					const struct arch_optimized_insn *op)
{
	/* Pairs with the smp_store_release() in arch_use_detour(). */
	const kprobe_opcode_t *boost = smp_load_acquire(&kp->ainsn.boost);

	return boost && boost == READ_ONCE(op->insn) + READ_ONCE(op->first);
}

/*
 * kprobe_detour_redirect() - Let execution continue where a handler has set ip
 *
 * If a jump displaces the instruction at ip, or is about to, execution must continue at the copy:
 * the grace period before the jump may be over already. Any context, also noinstr, with
 * preemption off.
 */
noinstr void kprobe_detour_redirect(struct pt_regs *regs)
{
	const struct arch_optimized_insn *op;
	struct kprobe *kp;

	for (unsigned int pos = 1; pos < JMP32_INSN_SIZE; pos++) {
		kp = kprobe_find((void *)regs->ip - pos);
		if (!kp || kprobe_ftrace(kp))	/* which has no @optinsn */
			continue;
		op = detour_of(kp);
		if (uses_detour(kp, op) && op->copies[pos - 1]) {
			regs->ip = (unsigned long)op->insn + op->copies[pos - 1];
			return;
		}
	}
}

#ifdef CONFIG_PREEMPTION
/* Called by detours that must do what preempt_enable() does when a resched is due. */
void __kprobes kprobe_detour_resched(void)
{
	__preempt_schedule_notrace();
}
#endif

/* --------------------------------------------------------------- detours */

/* True if an instruction has an exception fixup, see kprobe_restrict_for_extable(). */
static bool has_extable_entry(unsigned long addr, unsigned int size)
{
	while (size--)
		if (search_exception_tables(addr + size))
			return true;
	return false;
}

/* True if returns and indirect branches must be in the upper half of a cache line. */
static bool is_its_mitigated(void)
{
	return cpu_wants_rethunk_at((void *)0) && !cpu_wants_rethunk_at((void *)0x20);
}

/*
 * Read the bytes that a jump of @jump_size bytes displaces. Returns their number, or why
 * there is no jump.
 */
static int read_displaced_text(u8 *code, unsigned long addr, unsigned int jump_size)
{
	unsigned long function_size, offset;
	int size, err;

	if (!kallsyms_lookup_size_offset(addr, &function_size, &offset))
		return -ERANGE;
	size = min(function_size - offset, (unsigned long)MAX_OPTIMIZED_LENGTH);
	size = kprobe_read_text(code, addr, size);
	size = kprobe_displaced_size(code, size, jump_size, is_its_mitigated(),
				     cpu_feature_enabled(X86_FEATURE_RETPOLINE_LFENCE));
	if (size < 0)
		return size;
	if (has_extable_entry(addr, size))
		return -EFAULT;
	if (kprobe_relays_overlap(addr, size))
		return -EBUSY;
	err = kprobe_branches_check(addr, size);
	return err ?: size;
}

/* True if a breakpoint of kgdb may have hidden instructions that were decoded for a jump. */
static bool debugger_is_near(unsigned long addr)
{
	return kgdb_has_break_in(addr - SZ_16K, addr + SZ_16K);
}

/*
 * Choose the jump at @addr: one of five bytes, or one of two bytes to a relay, whose distance
 * is stored in @op->relay. Returns the number of bytes that it displaces, which are read
 * into @op->code, or why there is no jump of five bytes.
 */
static int detour_choose_jump(struct arch_optimized_insn *op, unsigned long addr)
{
	unsigned long place = 0;
	int size, short_size;
	bool padded;

	size = read_displaced_text(op->code, addr, JMP32_INSN_SIZE);
	if (size > 0)
		return size;
	short_size = op->unpadded ? -ERANGE : read_displaced_text(op->code, addr, JMP8_INSN_SIZE);
	if (short_size > 0 && short_size + JMP32_INSN_SIZE <= sizeof(op->code)) {
		place = kprobe_relay_find_place(addr, &padded);
		op->unpadded = !padded && !debugger_is_near(addr);
	}
	if (!place)
		return size;
	/* Not 0: nothing is free right after the jump, where a site is in front. */
	op->relay = place - (addr + JMP8_INSN_SIZE);
	return short_size;
}

static void detour_free(struct arch_optimized_insn *op)
{
	free_optinsn_slot(op->insn, 0);
	memset(op, 0, sizeof(*op));
}

int arch_prepare_optimized_kprobe(struct optimized_kprobe *op, struct kprobe *p)
{
	struct arch_optimized_insn made = {
		.unpadded	= op->optinsn.unpadded,
	};
	int size, err;

	lockdep_assert_held(&text_mutex);
	if (cpu_feature_enabled(X86_FEATURE_XENPV))
		return -EOPNOTSUPP;
	size = detour_choose_jump(&made, (unsigned long)p->addr);
	op->optinsn.unpadded = made.unpadded;
	if (size < 0)
		return debugger_is_near((unsigned long)p->addr) ? -EAGAIN : size;
	made.size = size;
	err = kprobe_detour_make(&made, site_of(p));
	if (err)
		detour_free(&made);
	else
		op->optinsn = made;
	return err;
}
EXPORT_SYMBOL_IF_KUNIT(arch_prepare_optimized_kprobe);

int arch_prepared_optinsn(struct arch_optimized_insn *optinsn)
{
	return !!optinsn->insn;
}

int arch_check_optimized_kprobe(struct optimized_kprobe *op)
{
	unsigned long addr = (unsigned long)op->kp.addr;

	return kgdb_has_break_in(addr, addr + op->optinsn.size) ? -EAGAIN : 0;
}

int arch_within_optimized_kprobe(struct optimized_kprobe *op, kprobe_opcode_t *addr)
{
	return addr - op->kp.addr < op->optinsn.size;
}

bool arch_detour_suits(struct optimized_kprobe *op)
{
	return !site_of(&op->kp)->has_post || detour_has_post(&op->optinsn);
}

void arch_use_detour(struct optimized_kprobe *op, bool use)
{
	struct arch_specific_insn *ainsn = &op->kp.ainsn;
	bool use_next = use && op->optinsn.rest;

	/* Pairs with the smp_load_acquire() in uses_detour(): @optinsn is complete then. */
	smp_store_release(&ainsn->boost, use ? op->optinsn.insn + op->optinsn.first :
					       kprobe_boost_ip(&op->kp));
	WRITE_ONCE(ainsn->next, use_next ? op->optinsn.insn + op->optinsn.rest :
					   op->kp.addr + ainsn->size);
}

void arch_remove_optimized_kprobe(struct optimized_kprobe *op)
{
	if (op->optinsn.relay && !kprobe_gone(&op->kp))
		kprobe_relay_free(&op->optinsn, &op->kp);
	detour_free(&op->optinsn);
}
EXPORT_SYMBOL_IF_KUNIT(arch_remove_optimized_kprobe);

/* ----------------------------------------------------------------- jumps */

/* Write the jump at a site to @jump. Returns its size. */
static unsigned int kprobe_make_jump(u8 *jump, const struct optimized_kprobe *op)
{
	const struct arch_optimized_insn *detour = &op->optinsn;
	unsigned int size = kprobe_jump_size(detour);

	if (detour->relay)
		__text_gen_insn(jump, JMP8_INSN_OPCODE, op->kp.addr,
				(void *)kprobe_relay_addr(detour, &op->kp), size);
	else
		__text_gen_insn(jump, JMP32_INSN_OPCODE, op->kp.addr,
				detour->insn + DETOUR_ENTRY, size);
	return size;
}

/* @oplist is sorted by address, as the queue of text pokes requires. */
void arch_optimize_kprobes(struct list_head *oplist)
{
	struct optimized_kprobe *op, *next;
	u8 jump[JMP32_INSN_SIZE];
	unsigned int size;

	lockdep_assert_held(&text_mutex);
	list_for_each_entry_safe(op, next, oplist, list) {
		list_del_init(&op->list);
		size = kprobe_make_jump(jump, op);
		smp_text_poke_batch_add(op->kp.addr, jump, size, NULL);
	}
	smp_text_poke_batch_finish();
}

void arch_unoptimize_kprobes(struct list_head *oplist, struct list_head *done_list)
{
	u8 jump[JMP32_INSN_SIZE], code[JMP32_INSN_SIZE];
	struct optimized_kprobe *op, *next;
	unsigned int size;

	lockdep_assert_cpus_held();
	lockdep_assert_held(&text_mutex);
	list_for_each_entry_safe(op, next, oplist, list) {
		size = kprobe_make_jump(jump, op);
		memcpy(code, op->optinsn.code, size);
		code[0] = INT3_INSN_OPCODE;
		smp_text_poke_batch_add(op->kp.addr, code, size, jump);
		list_move_tail(&op->list, done_list);
		cond_resched_tasks_rcu_qs();
	}
	smp_text_poke_batch_finish();
}
