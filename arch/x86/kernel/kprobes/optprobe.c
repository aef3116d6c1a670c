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
#include <linux/stddef.h>
#include <linux/string.h>
#include <linux/unaligned.h>

#include <kunit/visibility.h>

#include "detour.h"
#include "hit.h"
#include "insn.h"
#include "opcode.h"
#include "relay.h"
#include "relocate.h"
#include "scan.h"
#include "text.h"

/* Both copies of the first instruction, which is no branch, if there is a second body. */
static_assert(DETOUR_HEAD + DETOUR_POST_HEAD + DISPLACED_COPY_MAX + MAX_INSN_SIZE +
	      2 * JMP32_INSN_SIZE <= MAX_OPTINSN_SIZE);

/* detour.S relies on it. */
static_assert(!offsetof(struct kprobe_ctlblk, regs));

/* The test of the copies goes from symbol to symbol. */
EXPORT_SYMBOL_IF_KUNIT(kallsyms_lookup_size_offset);

/* It must know where there are fixups. */
EXPORT_SYMBOL_IF_KUNIT(search_exception_tables);

/* ------------------------------------------------------------------- hits */

/* The copy of the first displaced instruction that no post handlers follow. */
static __always_inline kprobe_opcode_t *detour_first_copy(const struct arch_optimized_insn *op)
{
	return op->insn + op->first;
}

/**
 * kprobe_detour_call() - Call the pre handlers of a site
 * @kp: The site.
 * @regs: The registers.
 *
 * The body cannot do it: the compiler knows what an indirect call needs. A post handler that was
 * set after registration needs another detour.
 *
 * Context: That of the probed code, with preemption off. kprobe_running() is the site.
 * Return: Non-zero if a handler has changed the path.
 */
__noendbr int __kprobes kprobe_detour_call(struct kprobe *kp, struct pt_regs *regs)
{
	struct kprobe *called = kprobe_called(kp, false);

	/* @kp is not used any more, which saves an instruction. Values may be old ones. */
	if (unlikely(data_race(called->post_handler)) &&
	    !data_race(site_of(kprobe_running())->has_post)) /* an old one */
		return kprobe_pre_handlers(kprobe_running(), regs);
	return kprobe_call_pre_handler(called, regs);
}

/* kprobe_detour_call_post() - Call the post handlers, see kprobe_detour_call() */
__noendbr void __kprobes kprobe_detour_call_post(struct kprobe *kp, struct pt_regs *regs)
{
	kprobe_call_post_handlers(kp, regs, false);
}

/**
 * kprobe_detour_slow() - Call the pre handlers in a hit that is inside of another one
 * @kp: The site.
 * @regs: The registers.
 *
 * See kprobe_handle_other_int3().
 *
 * Context: That of the probed code, with preemption off.
 * Return: Non-zero if execution continues at @regs->ip: a handler has changed the path, or no
 *	handler may run now, and the detour would call post handlers.
 */
int __kprobes kprobe_detour_slow(struct kprobe *kp, struct pt_regs *regs)
{
	int changed;

	if (!kprobe_hit_from_above()) {
		kprobes_inc_nmissed_count(kp);
		changed = detour_has_post(detour_of(kp));
		if (changed) {
			detour_clear_mark(regs);
			regs->ip = (unsigned long)detour_first_copy(detour_of(kp));
		}
		return changed;
	}
	kprobe_begin_hit(kp, regs, true);
	changed = kprobe_call_pre_handlers(kp, regs, true);
	if (changed)
		detour_clear_mark(regs);
	kprobe_end_hit(true);
	return changed;
}

/**
 * kprobe_detour_post_slow() - Call the post handlers in a hit that is inside of another one
 * @kp: The site.
 * @regs: The registers.
 *
 * Whether the hit is missed has been decided in kprobe_detour_slow(): the instruction may have
 * lowered the context level since.
 *
 * Context: That of the probed code, with preemption off.
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

/**
 * kprobe_detoured_ip() - Map an address set by a handler to where execution continues
 * @ip: The address.
 *
 * If a jump displaces the instruction at @ip, or is about to, execution must continue
 * at the copy: the grace period before the jump may be over already.
 *
 * Context: Any, also noinstr. Preemption is off.
 * Return: The address of the copy if a jump displaces the instruction at @ip, else @ip.
 */
noinstr unsigned long kprobe_detoured_ip(unsigned long ip)
{
	const struct arch_optimized_insn *op;
	struct kprobe *kp;

	for (unsigned int pos = 1; pos < JMP32_INSN_SIZE; pos++) {
		kp = kprobe_find((void *)ip - pos);
		if (!kp || kprobe_ftrace(kp))	/* which has no @optinsn */
			continue;
		op = detour_of(kp);
		if (uses_detour(kp, op) && op->copies[pos - 1])
			return (unsigned long)op->insn + op->copies[pos - 1];
	}
	return ip;
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
	size = min(function_size - offset, (unsigned long)DISPLACED_MAX);
	kprobe_read_text(code, addr, size);
	size = kprobe_displaced_size(code, size, jump_size,
				     cpu_feature_enabled(X86_FEATURE_INDIRECT_THUNK_ITS),
				     cpu_feature_enabled(X86_FEATURE_RETPOLINE_LFENCE));
	if (size == -ENODATA)
		return -ERANGE;
	if (size < 0)
		return size;
	if (has_extable_entry(addr, size))
		return -EFAULT;
	if (kprobe_relays_overlap(addr, size))
		return -EBUSY;
	err = kprobe_branches_check(addr, size);
	return err ?: size;
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
		op->unpadded = !padded;
	}
	if (!place)
		return size;
	/* Not 0: nothing is free right after the jump, where a site is in front. */
	op->relay = place - (addr + JMP8_INSN_SIZE);
	return short_size;
}

/**
 * struct detour_code - Code of a detour in the making
 * @bytes:	The code.
 * @at:		Where it is to run.
 * @len:	Its length so far.
 */
struct detour_code {
	u8 bytes[MAX_OPTINSN_SIZE];
	const kprobe_opcode_t *at;
	unsigned int len;
};

static void detour_add(struct detour_code *code, const void *bytes, unsigned int size)
{
	memcpy(code->bytes + code->len, bytes, size);
	code->len += size;
}

static void detour_add_branch(struct detour_code *code, u8 opcode, const void *target)
{
	__text_gen_insn(code->bytes + code->len, opcode, code->at + code->len, target,
			JMP32_INSN_SIZE);
	code->len += JMP32_INSN_SIZE;
}

/* Push the ip that handlers see. */
static void detour_add_push_ip(struct detour_code *code, const kprobe_opcode_t *ip)
{
	u8 push[1 + DISP32_SIZE] = { OPCODE_PUSH_IMM32 };

	put_unaligned_le32((long)ip, push + 1);
	detour_add(code, push, sizeof(push));
}

/* Push the address of the site, which is where the detour begins. */
static void detour_add_push_site(struct detour_code *code)
{
	u8 push[2 + DISP32_SIZE] = { OPCODE_GROUP5, GROUP5_PUSH << 3 | 5 };
	long disp = (long)code->at;

	if (IS_ENABLED(CONFIG_X86_64))
		disp = -(long)(code->len + sizeof(push));
	put_unaligned_le32(disp, push + 2);
	detour_add(code, push, sizeof(push));
}

/* Call a body. It returns to where flags and the stack pointer are popped. */
static void detour_add_call(struct detour_code *code, void (*body)(void))
{
	static const u8 pop[] = { OPCODE_POPF, OPCODE_POP(4) };

	detour_add_branch(code, CALL_INSN_OPCODE, body);
	detour_add(code, pop, sizeof(pop));
}

/*
 * Copy the displaced instruction @pos bytes after the first one. It is decoded into @insn, which
 * refers to @op.
 */
static int detour_add_copy(struct detour_code *code, const struct arch_optimized_insn *op,
			   const kprobe_opcode_t *addr, unsigned int pos, struct insn *insn)
{
	int copied;

	if (insn_decode(insn, op->code + pos, op->size - pos, INSN_MODE_KERN))
		return -EILSEQ;
	copied = kprobe_relocate_displaced(code->bytes + code->len, insn,
					   (unsigned long)addr + pos,
					   (unsigned long)code->at + code->len);
	if (copied < 0)
		return copied;
	code->len += copied;
	return 0;
}

/*
 * Copy all displaced instructions, and record in @op where each copy is. After that of the first
 * one, post handlers are called if the site @has_post. An INT3 after a final jump keeps CPUs from
 * speculating straight on.
 */
static int detour_add_copies(struct detour_code *code, struct arch_optimized_insn *op,
			     const kprobe_opcode_t *addr, bool has_post)
{
	bool falls_through = true;
	struct insn insn;
	int err;

	op->first = code->len;
	for (unsigned int pos = 0; pos < op->size && falls_through; pos += insn.length) {
		if (pos && pos < JMP32_INSN_SIZE)
			op->copies[pos - 1] = code->len;
		err = detour_add_copy(code, op, addr, pos, &insn);
		if (err)
			return err;
		falls_through = !displaced_is_jump(&insn);
		if (!pos && has_post) {
			if (displaced_is_branch(&insn) || kprobe_insn_class(&insn) == INSN_SYSTEM)
				return -EOPNOTSUPP;
			detour_add_push_ip(code, addr + insn.length);
			detour_add_push_site(code);
			detour_add_call(code, kprobe_detour_post);
		}
		if (!pos && falls_through)
			op->rest = code->len;
	}
	if (falls_through)
		detour_add_branch(code, JMP32_INSN_OPCODE, addr + op->size);
	else
		code->len += JMP32_INSN_SIZE;
	return 0;
}

/* Copy the first displaced instruction once more, for hits after which no handlers are called. */
static int detour_add_first_copy(struct detour_code *code, struct arch_optimized_insn *op,
				 const kprobe_opcode_t *addr)
{
	struct insn insn;
	int err;

	op->first = code->len;
	err = detour_add_copy(code, op, addr, 0, &insn);
	detour_add_branch(code, JMP32_INSN_OPCODE, code->at + op->rest);
	return err;
}

/* Make the code of a detour that is to run at @at. Its length is the same everywhere. */
static int detour_generate(struct detour_code *code, struct arch_optimized_insn *op,
			   const struct kprobe_site *site, const kprobe_opcode_t *at)
{
	const struct kprobe *kp = &site->kp;
	int err;

	*code = (struct detour_code){ .at = at };
	memset(code->bytes, INT3_INSN_OPCODE, sizeof(code->bytes));
	detour_add(code, &kp, sizeof(kp));
	detour_add_push_ip(code, kp->addr + INT3_INSN_SIZE);
	detour_add_call(code, kprobe_detour);
	err = detour_add_copies(code, op, kp->addr, site->has_post);
	if (!err && site->has_post)
		err = detour_add_first_copy(code, op, kp->addr);
	return err;
}

/**
 * detour_copies_offset() - Find where in the sequence of copies an address in a detour is
 * @op: The detour.
 * @offset: The offset of the address in it.
 *
 * Context: Any.
 * Return: The offset for kprobe_displaced_origin(), or -1 if there is no copy.
 */
int __kprobes detour_copies_offset(const struct arch_optimized_insn *op, unsigned int offset)
{
	int size = op->rest - DETOUR_POST_HEAD - DETOUR_HEAD;

	if (offset >= op->first)
		return offset - op->first;
	if (offset >= op->rest)
		return offset - op->rest + size;
	offset -= DETOUR_HEAD;
	return (int)offset < size ? (int)offset : -1;
}

static void detour_free(struct arch_optimized_insn *op)
{
	if (op->insn)
		free_optinsn_slot(op->insn, 0);
	memset(op, 0, sizeof(*op));
}

static int detour_make(struct arch_optimized_insn *op, struct kprobe_site *site)
{
	struct detour_code code;
	int err;

	err = detour_generate(&code, op, site, site->kp.addr);	/* to know its length */
	if (err)
		return err;
	op->insn = kprobe_get_optinsn_slot(&site->kp, code.len);
	if (!op->insn)
		return -ENOMEM;
	err = detour_generate(&code, op, site, op->insn);
	if (err)
		return err;
	kprobe_write_text(op->insn, code.bytes, code.len, 0);
	if (op->relay)
		kprobe_relay_make(op, &site->kp);
	return 0;
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
		return size;
	made.size = size;
	err = detour_make(&made, site_of(p));
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
	return has_kgdb_breakpoint((unsigned long)op->kp.addr, op->optinsn.size) ? -EAGAIN : 0;
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
	smp_store_release(&ainsn->boost, use ? detour_first_copy(&op->optinsn) :
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

/* ----------------------------------------------------------------- faults */

/**
 * kprobe_detour_insn_owner() - Find the site whose probed instruction a detour runs
 * @ip: An address.
 * @sp: The stack pointer. In a copied call it is set to that before the call.
 *
 * Context: Any in which RCU is watching. Preemption is off.
 * Return: The site, or NULL if @ip is not in the copy of a probed instruction.
 */
struct kprobe *kprobe_detour_insn_owner(unsigned long ip, unsigned long *sp)
{
	struct kprobe *kp = kprobe_optinsn_slot_owner(ip);
	const struct arch_optimized_insn *detour;
	unsigned int pushed;
	int offset;

	if (!kp)
		return NULL;
	detour = detour_of(kp);
	offset = detour_copies_offset(detour, ip - (unsigned long)detour->insn);
	if (offset < 0 || kprobe_displaced_origin(detour->code, detour->size, offset, &pushed))
		return NULL;
	*sp += pushed;
	return kp;
}

NOKPROBE_SYMBOL(kprobe_detour_insn_owner);
