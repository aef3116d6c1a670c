// SPDX-License-Identifier: GPL-2.0
/*
 * Optimised probes: jumps in place of breakpoints, and the detours that they reach
 *
 * A detour is a copy of the template in detour.S, which calls the handlers,
 * followed by copies of the displaced instructions and a jump back to the text after
 * them. Where a jump of five bytes is not possible, one of two bytes may be, see relay.c. A
 * detour stays valid when the probes of its site or their handlers change, except that post
 * handlers need a detour with a second half. The direct call of a handler is a short cut.
 *
 * A small detour takes a tenth of the memory: in place of the copy it has a call of one that
 * all small detours share. A hit costs some more instructions. Where there are many sites,
 * most are hit seldom; one that is hit often gets a large detour, as do the first sites.
 */
#include <linux/cpu.h>
#include <linux/cpufeature.h>
#include <linux/errno.h>
#include <linux/export.h>
#include <linux/extable.h>
#include <linux/jiffies.h>
#include <linux/kallsyms.h>
#include <linux/kprobes.h>
#include <linux/memory.h>
#include <linux/minmax.h>
#include <linux/moduleparam.h>
#include <linux/preempt.h>
#include <linux/ptrace.h>
#include <linux/rcupdate.h>
#include <linux/string.h>
#include <linux/unaligned.h>

#include <kunit/visibility.h>

#include "branches.h"
#include "detour.h"
#include "hit.h"
#include "relay.h"
#include "relocate.h"
#include "text.h"

#undef MODULE_PARAM_PREFIX
#define MODULE_PARAM_PREFIX	"kprobes."

static_assert(DETOUR_TEMPLATE_SIZE + DISPLACED_COPY_MAX + JMP32_INSN_SIZE <= MAX_OPTINSN_SIZE);
static_assert(DETOUR_POST_TEMPLATE_SIZE + MAX_INSN_SIZE + JMP32_INSN_SIZE <=
	      MAX_POST_OPTINSN_SIZE);

static const struct detour_template *const first_half = &kprobe_detour_template;
EXPORT_SYMBOL_IF_KUNIT(kprobe_detour_template);

static const struct detour_template *const second_half = &kprobe_detour_post_template;
EXPORT_SYMBOL_IF_KUNIT(kprobe_detour_post_template);

/* The test of the copies goes from symbol to symbol. */
EXPORT_SYMBOL_IF_KUNIT(kallsyms_lookup_size_offset);

/* It must know where there are fixups. */
EXPORT_SYMBOL_IF_KUNIT(search_exception_tables);

/* ------------------------------------------------------------------- hits */

/**
 * kprobe_detour_slow() - Call the pre handlers for a detour that cannot
 * @kp: The site.
 * @regs: The registers.
 *
 * Detours call this if a hit of the site calls another handler than the one that the detour
 * was made for, or if another hit is under way, see kprobe_handle_other_int3().
 *
 * Context: That of the probed code, with preemption off.
 * Return: DETOUR_HANDLED, DETOUR_CHANGED or DETOUR_SKIPPED.
 */
int __kprobes kprobe_detour_slow(struct kprobe *kp, struct pt_regs *regs)
{
	bool nested = kprobe_running();
	int changed;

	if (nested && !kprobe_hit_from_above()) {
		kprobes_inc_nmissed_count(kp);
		return DETOUR_SKIPPED;
	}
	kprobe_begin_hit(kp, regs, nested);
	changed = kprobe_call_pre_handlers(kp, regs, nested);
	if (changed)
		detour_clear_mark(regs);
	kprobe_end_hit(nested);
	return changed ? DETOUR_CHANGED : DETOUR_HANDLED;
}

/**
 * kprobe_detour_post_slow() - Call the post handlers for a detour that cannot
 * @kp: The site.
 * @regs: The registers.
 *
 * Second halves call this in the cases in which detours call kprobe_detour_slow(). Whether
 * the hit is missed has been decided there: the instruction may have lowered the context
 * level since.
 *
 * Context: That of the probed code, with preemption off.
 */
void __kprobes kprobe_detour_post_slow(struct kprobe *kp, struct pt_regs *regs)
{
	bool nested = kprobe_running();

	kprobe_begin_hit(kp, POST_HANDLERS_REGS, nested);
	kprobe_run_post_handlers(kp, regs);
	kprobe_end_hit(nested);
}

/**
 * kprobe_detour_call() - Call the pre handlers of a site for the shared body
 * @called: The probe whose handler is to be called.
 * @regs: The registers.
 *
 * Context: That of the probed code, with preemption off. kprobe_running() is the site.
 * Return: Non-zero if a handler has changed the path.
 */
int __kprobes kprobe_detour_call(struct kprobe *called, struct pt_regs *regs)
{
	return kprobe_call_pre_handler(called, regs);
}

/* A site that is hit so often in so many quarters of a second deserves a large detour. */
#define HOT_HITS	1000
#define HOT_PERIOD	8

/* The time in quarters of a second, which overflows, but is never 0. */
static __always_inline u16 detour_time(void)
{
	u16 quarters = (u32)jiffies / (HZ / 4);

	return quarters ?: 1;
}

static __always_inline void detour_begin_counting(struct arch_optimized_insn *op, u16 now)
{
	WRITE_ONCE(op->since, now);
	WRITE_ONCE(op->hits_left, HOT_HITS);
}

/**
 * kprobe_detour_counted() - Look at the time when a small detour has counted its hits
 * @kp: The site.
 *
 * If CPUs count at the same time, both may call this, and the site gets a large detour
 * although it is not hit often.
 *
 * Context: That of the probed code, with preemption off. kprobe_running() is the site.
 */
void __kprobes kprobe_detour_counted(struct kprobe *kp)
{
	struct arch_optimized_insn *op = &container_of(kp, struct optimized_kprobe, kp)->optinsn;
	u16 since = READ_ONCE(op->since), now = detour_time();

	if (since && (u16)(now - since) > HOT_PERIOD) {
		detour_begin_counting(op, now);
	} else {
		WRITE_ONCE(op->since, 0);
		optimizer_renew_detours();
	}
}

/* The copy of the first displaced instruction. */
static __always_inline kprobe_opcode_t *detour_first_copy(const struct arch_optimized_insn *op)
{
	return op->insn + detour_head_size(op);
}

/*
 * Do hits of the breakpoint at @kp run in the detour? Then @op is complete and stays so until
 * a grace period of RCU-tasks after arch_use_detour() has changed @boost. Else it may be in the
 * making: @insn is any value, but no detour that @boost has been set to, whatever @small is.
 */
static __always_inline bool uses_detour(const struct kprobe *kp,
					const struct arch_optimized_insn *op)
{
	/* Pairs with the smp_store_release() in arch_use_detour(). */
	const kprobe_opcode_t *boost = smp_load_acquire(&kp->ainsn.boost);

	return boost == READ_ONCE(op->insn) + detour_head_size(op);
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
		op = &container_of(kp, struct optimized_kprobe, kp)->optinsn;
		if (uses_detour(kp, op) && op->copies[pos - 1])
			return (unsigned long)detour_first_copy(op) + op->copies[pos - 1];
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

/* True if moving one of the instructions would undo a mitigation of speculation. */
static bool has_guarded_insn(const u8 *code, unsigned int size)
{
	bool lfence = cpu_feature_enabled(X86_FEATURE_RETPOLINE_LFENCE);
	bool its = cpu_feature_enabled(X86_FEATURE_INDIRECT_THUNK_ITS);
	struct insn insn;

	if (!its && !lfence)
		return false;
	for (unsigned int pos = 0; pos < size; pos += insn.length) {
		if (insn_decode(&insn, code + pos, size - pos, INSN_MODE_KERN) ||
		    displaced_needs_place(&insn, its, lfence))
			return true;
		if (displaced_is_jump(&insn))
			break;
	}
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
	read_original_text(code, addr, size);
	size = displaced_size(code, size, jump_size);
	if (size == -ENODATA)
		return -ERANGE;
	if (size < 0)
		return size;
	if (has_extable_entry(addr, size))
		return -EFAULT;
	if (has_guarded_insn(code, size))
		return -EPERM;
	if (kprobe_relays_overlap(addr, size))
		return -EBUSY;
	err = branches_check(addr, size);
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

/* Set the displacement at @offset of a branch in @code, which is to run at @detour. */
static void detour_set_branch(u8 *code, const kprobe_opcode_t *detour, u32 offset,
			      const void *target)
{
	put_unaligned_le32((long)target - (long)(detour + offset + DISP32_SIZE),
			   code + offset);
}

/*
 * Copy a template to @code, which is to run at @detour, and fill in its operands. Its direct
 * call is made as long as hits call @handler, which may be NULL: then it never is.
 */
static void detour_fill_template(u8 *code, const kprobe_opcode_t *detour,
				 const struct detour_template *template,
				 struct kprobe_site *site, const void *ip,
				 const void *handler)
{
	memcpy(code, template->code, template->end);
	for (const u16 *offset = template->branches; *offset; offset++) {
		u8 *operand = code + *offset;

		put_unaligned_le32(get_unaligned_le32(operand) +
				   (template->code - detour), operand);
	}
	put_unaligned_le32((long)ip, code + template->ip);
	put_unaligned((unsigned long)&site->kp, (unsigned long *)(code + template->site));
	put_unaligned((unsigned long)READ_ONCE(site->called),
		      (unsigned long *)(code + template->probe));
	put_unaligned_le32(handler ? (long)handler : -1, code + template->expected);
	detour_set_branch(code, detour, template->handler, handler);
}

static void detour_put_jump(u8 *code, const kprobe_opcode_t *detour, u32 offset,
			    const void *target)
{
	__text_gen_insn(code + offset, JMP32_INSN_OPCODE, detour + offset, target,
			JMP32_INSN_SIZE);
}

/*
 * Copy the displaced instruction @pos bytes after the first one to @code + @len.
 * Returns the length of the copy.
 */
static int detour_copy_insn(u8 *code, unsigned int len, const kprobe_opcode_t *detour,
			    const struct insn *insn, const kprobe_opcode_t *addr,
			    unsigned int pos)
{
	return relocate_displaced(code + len, insn, (unsigned long)addr + pos,
				  (unsigned long)detour + len);
}

/*
 * Copy all displaced instructions and record in @op where each copy is. Returns the
 * offset of the end of the copies; @falls_through is true if execution reaches it.
 */
static int detour_copy_all_insns(u8 *code, struct arch_optimized_insn *op,
				 const kprobe_opcode_t *addr, bool *falls_through)
{
	unsigned int head = detour_head_size(op), len = head, pos = 0;
	struct insn insn;
	int copied;

	*falls_through = true;
	while (pos < op->size && *falls_through) {
		if (insn_decode(&insn, op->code + pos, op->size - pos, INSN_MODE_KERN))
			return -EILSEQ;
		if (pos && pos < JMP32_INSN_SIZE)
			op->copies[pos - 1] = len - head;
		copied = detour_copy_insn(code, len, op->insn, &insn, addr, pos);
		if (copied < 0)
			return copied;
		*falls_through = !displaced_is_jump(&insn);
		len += copied;
		if (!pos && *falls_through)
			op->rest = copied;
		pos += insn.length;
	}
	return len;
}

/* Copy the first displaced instruction only, which must not be a branch. */
static int detour_copy_first_insn(u8 *code, const struct arch_optimized_insn *op,
				  const kprobe_opcode_t *addr)
{
	unsigned int len = second_half->end;
	struct insn insn;
	int copied;

	if (insn_decode(&insn, op->code, op->size, INSN_MODE_KERN))
		return -EILSEQ;
	if (displaced_is_branch(&insn))
		return -EOPNOTSUPP;
	copied = detour_copy_insn(code, len, op->post, &insn, addr, 0);
	return copied < 0 ? copied : len + copied;
}

/* The copy of the second displaced instruction, or the jump back if there is none. */
static kprobe_opcode_t *detour_rest(const struct arch_optimized_insn *op)
{
	return detour_first_copy(op) + op->rest;
}

/* Write what precedes the copies in a small detour. */
static void detour_fill_small_head(u8 *code, const kprobe_opcode_t *detour,
				   struct kprobe_site *site)
{
	put_unaligned((unsigned long)&site->kp, (unsigned long *)code);
	__text_gen_insn(code + SMALL_DETOUR_ENTRY, CALL_INSN_OPCODE, detour + SMALL_DETOUR_ENTRY,
			kprobe_shared_detour, CALL_INSN_SIZE);
}

static void detour_fill_first_half(u8 *code, const struct arch_optimized_insn *op,
				   struct kprobe_site *site)
{
	const void *handler;

	scoped_guard(kprobe_links)
		handler = READ_ONCE(site->called->pre_handler);
	detour_fill_template(code, op->insn, first_half, site, site->kp.addr + INT3_INSN_SIZE,
			     handler);
	if (!op->post)
		return;
	detour_put_jump(code, op->insn, first_half->called, op->post + second_half->run);
	detour_set_branch(code, op->insn, first_half->handled, op->post + second_half->run_nested);
}

/* The size of a detour without its second half, with room for the jump back. */
static unsigned int detour_size(const struct arch_optimized_insn *op)
{
	return detour_head_size(op) + displaced_copies_size(op->code, op->size) + JMP32_INSN_SIZE;
}

/*
 * Write the template, the displaced instructions and a jump to the text after them. An
 * INT3 after a final jump among them keeps CPUs from speculating straight on.
 */
static int detour_make_first_half(struct arch_optimized_insn *op, struct kprobe_site *site)
{
	const kprobe_opcode_t *addr = site->kp.addr;
	u8 code[MAX_OPTINSN_SIZE];
	bool falls_through;
	int len;

	memset(code, INT3_INSN_OPCODE, sizeof(code));
	if (is_small_detour(op))
		detour_fill_small_head(code, op->insn, site);
	else
		detour_fill_first_half(code, op, site);
	len = detour_copy_all_insns(code, op, addr, &falls_through);
	if (len < 0)
		return len;
	if (falls_through)
		detour_put_jump(code, op->insn, len, addr + op->size);
	len += JMP32_INSN_SIZE;
	if (WARN_ON_ONCE(len != detour_size(op)))
		return -EILSEQ;
	kprobe_write_text(op->insn, code, len, 0);
	return 0;
}

/* Write the template, the first displaced instruction and a jump to the template. */
static int detour_make_second_half(struct arch_optimized_insn *op, struct kprobe_site *site)
{
	const kprobe_opcode_t *addr = site->kp.addr, *next = addr + site->kp.ainsn.size;
	u8 code[MAX_POST_OPTINSN_SIZE];
	const void *handler;
	int len;

	memset(code, INT3_INSN_OPCODE, sizeof(code));
	scoped_guard(kprobe_links)
		handler = READ_ONCE(site->called->post_handler);
	detour_fill_template(code, op->post, second_half, site, next, handler);
	put_unaligned_le32((long)next, code + second_half->next);
	len = detour_copy_first_insn(code, op, addr);
	if (len < 0)
		return len;
	detour_put_jump(code, op->post, len, op->post + second_half->entry);
	detour_set_branch(code, op->post, second_half->first, op->post + second_half->end);
	detour_set_branch(code, op->post, second_half->rest, detour_rest(op));
	kprobe_write_text(op->post, code, sizeof(code), 0);
	return 0;
}

unsigned int kprobe_large_detours;
EXPORT_SYMBOL_IF_KUNIT(kprobe_large_detours);

unsigned int kprobe_max_large_detours = 256;
EXPORT_SYMBOL_IF_KUNIT(kprobe_max_large_detours);
module_param_named(large_detours, kprobe_max_large_detours, uint, 0644);

static bool may_be_small(const struct arch_optimized_insn *op, const struct kprobe_site *site)
{
	return IS_ENABLED(CONFIG_X86_64) && !site->has_post && !op->hot &&
	       kprobe_large_detours >= READ_ONCE(kprobe_max_large_detours);
}

static bool is_detour_outgrown(const struct arch_optimized_insn *op)
{
	return is_small_detour(op) && !READ_ONCE(op->since);
}

static void detour_free(struct arch_optimized_insn *op)
{
	if (op->insn) {
		kprobe_large_detours -= !op->small;
		free_optinsn_slot(op->insn, 0);
	}
	if (op->post)
		free_optinsn_slot(op->post, 0);
	memset(op, 0, sizeof(*op));
}

/* Choose what kind of detour it is to be, and allocate it. Returns false without memory. */
static bool detour_allocate(struct arch_optimized_insn *op, struct kprobe_site *site)
{
	op->small = may_be_small(op, site);
	op->insn = get_sized_optinsn_slot_for(&site->kp, detour_size(op));
	if (!op->insn)
		return false;
	if (op->small)
		detour_begin_counting(op, detour_time());
	else
		kprobe_large_detours++;
	if (site->has_post)
		op->post = get_sized_optinsn_slot_for(&site->kp, MAX_POST_OPTINSN_SIZE);
	return op->post || !site->has_post;
}

static int detour_make(struct arch_optimized_insn *op, struct kprobe_site *site)
{
	int err;

	if (!detour_allocate(op, site))
		return -ENOMEM;
	err = detour_make_first_half(op, site);
	if (!err && op->post)
		err = detour_make_second_half(op, site);
	if (!err && op->relay)
		kprobe_relay_make(op, &site->kp);
	return err;
}

int arch_prepare_optimized_kprobe(struct optimized_kprobe *op, struct kprobe *p)
{
	struct arch_optimized_insn made = {
		.hot		= op->optinsn.hot,
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

/* The probe whose handler a large detour calls directly. */
static struct kprobe *detour_probe(const struct arch_optimized_insn *op)
{
	return get_unaligned((struct kprobe **)(op->insn + first_half->probe));
}

bool arch_detour_suits(struct optimized_kprobe *op)
{
	const struct kprobe_site *site = site_of(&op->kp);
	const struct kprobe *called = READ_ONCE(site->called);

	if (site->has_post && !op->optinsn.post)
		return false;
	if (is_small_detour(&op->optinsn))
		return !is_detour_outgrown(&op->optinsn);
	return called == &site->kp || called == detour_probe(&op->optinsn);
}

void arch_use_detour(struct optimized_kprobe *op, bool use)
{
	struct arch_specific_insn *ainsn = &op->kp.ainsn;
	bool use_next;

	use_next = use && op->optinsn.rest;
	/* Pairs with the smp_load_acquire() in uses_detour(): @optinsn is complete then. */
	smp_store_release(&ainsn->boost, use ? detour_first_copy(&op->optinsn) :
					kprobe_boost_ip(&op->kp));
	WRITE_ONCE(ainsn->next, use_next ? detour_rest(&op->optinsn) : op->kp.addr + ainsn->size);
}

void arch_remove_optimized_kprobe(struct optimized_kprobe *op)
{
	bool hot = op->optinsn.hot || is_detour_outgrown(&op->optinsn);

	if (op->optinsn.relay && !kprobe_gone(&op->kp))
		kprobe_relay_free(&op->optinsn, &op->kp);
	detour_free(&op->optinsn);
	op->optinsn.hot = hot;
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
				detour->insn + detour_entry(detour), size);
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
		text_poke_queue(op->kp.addr, jump, size, NULL);
	}
	text_poke_finish();
}

/* Restore what jumps displace. If @stays, the first byte becomes a breakpoint. */
static void kprobe_remove_jumps(struct list_head *oplist, struct list_head *done_list,
				bool stays)
{
	u8 jump[JMP32_INSN_SIZE], code[JMP32_INSN_SIZE];
	struct optimized_kprobe *op, *next;
	unsigned int size;

	lockdep_assert_cpus_held();
	lockdep_assert_held(&text_mutex);
	list_for_each_entry_safe(op, next, oplist, list) {
		size = kprobe_make_jump(jump, op);
		memcpy(code, op->optinsn.code, size);
		if (stays)
			code[0] = INT3_INSN_OPCODE;
		text_poke_queue(op->kp.addr, code, size, jump);
		list_move_tail(&op->list, done_list);
		cond_resched_tasks_rcu_qs();
	}
	text_poke_finish();
}

void arch_unoptimize_kprobes(struct list_head *oplist, struct list_head *done_list)
{
	kprobe_remove_jumps(oplist, done_list, true);
}

void arch_disarm_optimized_kprobes(struct list_head *oplist, struct list_head *done_list)
{
	kprobe_remove_jumps(oplist, done_list, false);
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
	unsigned int pushed = 0;

	if (!kp)
		return NULL;
	detour = &container_of(kp, struct optimized_kprobe, kp)->optinsn;
	if (ip - (unsigned long)detour->post < MAX_POST_OPTINSN_SIZE) {
		if (ip - (unsigned long)detour->post != second_half->end)
			return NULL;
	} else {
		ip -= (unsigned long)detour_first_copy(detour);
		if ((long)ip < 0 || displaced_origin(detour->code, detour->size, ip, &pushed))
			return NULL;
	}
	*sp += pushed;
	return kp;
}

NOKPROBE_SYMBOL(kprobe_detour_insn_owner);
