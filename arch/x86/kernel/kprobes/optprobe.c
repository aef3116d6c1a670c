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
#include <linux/cpufeature.h>
#include <linux/extable.h>
#include <linux/kallsyms.h>
#include <linux/kgdb.h>
#include <linux/kprobes.h>
#include <linux/memory.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/unaligned.h>

#include "common.h"
#include "detour.h"

static_assert(offsetof(struct pcpu_hot, preempt_count) == PCPU_HOT_PREEMPT_COUNT);
static_assert(offsetof(struct kprobe_ctlblk, regs) == KPROBE_CTLBLK_REGS);

/**
 * struct detour_template - What a detour, or its second half, is a copy of
 * @code:	The template.
 * @size:	Size of the slot that it is copied to.
 * @end:	Its size.
 * @branches:	The offsets of displacements to what is not copied, up to a 0.
 * @entry:	Where registers begin to be pushed.
 * @framed:	Where those that an exception pushes have been.
 * @restored:	Where those that it pops are left in the stack.
 * @ip:		The operand that is what handlers see as the instruction pointer,
 * @site:	the site,
 * @direct:	where in it the number of the probe is that is called directly,
 * @number:	that number,
 * @probe:	that probe,
 * @handler:	and, in a call, its handler.
 */
struct detour_template {
	const u8 *code;
	unsigned int size;
	const u32 *end;
	const u32 *branches;
	const u32 *entry;
	const u32 *framed;
	const u32 *restored;
	const u32 *ip;
	const u32 *site;
	const u32 *direct;
	const u32 *number;
	const u32 *probe;
	const u32 *handler;
};

#define TEMPLATE(name, slot_size) {		\
	.code		= name,			\
	.size		= slot_size,		\
	.branches	= name##_branches,	\
	.end		= &name##_end,		\
	.entry		= &name##_entry,	\
	.framed		= &name##_framed,	\
	.restored	= &name##_restored,	\
	.ip		= &name##_ip,		\
	.site		= &name##_site,		\
	.direct		= &name##_direct,	\
	.number		= &name##_number,	\
	.probe		= &name##_probe,	\
	.handler	= &name##_handler,	\
}

static const struct detour_template first_half = TEMPLATE(kprobe_detour, MAX_OPTINSN_SIZE);
static const struct detour_template second_half =
	TEMPLATE(kprobe_detour_post, MAX_POST_OPTINSN_SIZE);

/* ------------------------------------------------------------------- hits */

/**
 * kprobe_detour_slow - Call the pre handlers for a detour that cannot
 * @kp: The site.
 * @regs: The registers.
 *
 * Because there are several probes, or other ones than it was made for; or
 * because this CPU works for a probe already, see kprobe_handle_nested_int3() of int3.c.
 *
 * Context: That of the probed code, with preemption off.
 * Return: DETOUR_*.
 */
notrace int __kprobes kprobe_detour_slow(struct kprobe *kp, struct pt_regs *regs)
{
	int changed;

	if (!kprobe_running()) {
		kprobe_enter_hit(kp, regs);
		changed = kprobe_call_pre_handlers(kp, regs);
		kprobe_leave_outermost_hit();
	} else if (kprobe_hit_from_above(0)) {
		kprobe_enter_nested_hit(kp, regs);
		changed = kprobe_pre_handlers_nested(kp, regs);
		kprobe_resume_outer_hit();
	} else {
		kprobes_inc_nmissed_count(kp);
		return DETOUR_SKIPPED;
	}
	return changed ? DETOUR_CHANGED : DETOUR_HANDLED;
}

/**
 * kprobe_detour_post_slow - The same for post handlers, after pre handlers were called
 * @kp: The site.
 * @regs: The registers.
 *
 * Context: That of the probed code, with preemption off.
 */
notrace void __kprobes kprobe_detour_post_slow(struct kprobe *kp, struct pt_regs *regs)
{
	if (!kprobe_running()) {
		kprobe_enter_hit(kp, regs);
		kprobe_run_post_handlers(kp, regs);
		kprobe_leave_outermost_hit();
	} else if (kprobe_hit_from_above(0)) {
		kprobe_enter_nested_hit(kp, regs);
		kprobe_run_post_handlers(kp, regs);
		kprobe_resume_outer_hit();
	} else {
		/* The instruction has left the context level of the pre handlers. */
		kprobes_inc_nmissed_count(kp);
	}
}

/* Do hits at the site run in its detour what is displaced, or going to be? */
static __always_inline bool is_detour_used(const struct kprobe *kp)
{
	return READ_ONCE(kp->ainsn.boost) != kp->ainsn.insn;
}

/**
 * kprobe_detoured_ip - Find where execution goes on that a handler sends to an address
 * @ip: The address.
 *
 * A jump may have overwritten the instruction there, or be about to: then a task
 * that went there now would be in a place that nobody waits for it to leave.
 *
 * Context: Any, also noinstr. Preemption is off.
 * Return: @ip, or if a jump displaces the instruction there, where its copy is.
 */
noinstr unsigned long kprobe_detoured_ip(unsigned long ip)
{
	const struct arch_optimized_insn *op;
	struct kprobe *kp;

	for (unsigned int pos = 1; pos < JMP32_INSN_SIZE; pos++) {
		kp = kprobe_find((void *)ip - pos);
		if (!kp || !is_detour_used(kp))
			continue;
		op = &container_of(kp, struct optimized_kprobe, kp)->optinsn;
		if (op->copies[pos - 1])
			return (unsigned long)op->insn + kprobe_detour_end + op->copies[pos - 1];
	}
	return ip;
}

/* kprobe_detour_redirect - A handler has set @regs->ip: see to it that it can be gone to. */
noinstr void kprobe_detour_redirect(struct pt_regs *regs)
{
	regs->ip = kprobe_detoured_ip(regs->ip);
}

/* kprobe_detour_resched - What preempt_enable() does when it is time for it */
notrace void __kprobes kprobe_detour_resched(void)
{
#ifdef CONFIG_PREEMPTION
	__preempt_schedule_notrace();
#endif
}

/* --------------------------------------------------------------- detours */

/* Could an instruction fault, and the fault be fixed up? See kprobe_restrict_for_extable(). */
static bool has_extable_entry(unsigned long addr, unsigned int size)
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

/* Does an instruction stand where it does so that the CPU does not speculate wrongly? */
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

/* Read what a jump at a site displaces. Returns its size, or why there can be no jump. */
static int read_displaced_text(u8 *code, unsigned long addr)
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
	if (has_extable_entry(addr, size))
		return -EFAULT;
	if (has_guarded_insn(code, size))
		return -EPERM;
	err = branches_check(addr, size);
	return err ?: size;
}

/* Fill in the operand at @offset of a branch in @code, which is going to be at @detour. */
static void detour_set_branch(u8 *code, const kprobe_opcode_t *detour, u32 offset,
			      const void *target)
{
	put_unaligned_le32((long)target - (long)(detour + offset + DISP32_SIZE),
			   code + offset);
}

/* Make @code, which is going to be at @detour, of a template. */
static void detour_fill_template(u8 *code, const kprobe_opcode_t *detour,
				 const struct detour_template *template, struct kprobe_site *site,
				 const void *ip, const void *handler)
{
	memset(code, INT3_INSN_OPCODE, template->size);
	memcpy(code, template->code, *template->end);
	for (const u32 *offset = template->branches; *offset; offset++) {
		u8 *operand = code + *offset;

		put_unaligned_le32(get_unaligned_le32(operand) + (template->code - detour),
				   operand);
	}
	put_unaligned_le32((long)ip, code + *template->ip);
	put_unaligned_le64((unsigned long)&site->kp, code + *template->site);
	put_unaligned_le32(offsetof(struct kprobe_site, direct) - offsetof(struct kprobe_site, kp),
			   code + *template->direct);
	put_unaligned_le32(site->direct ?: -1, code + *template->number);
	put_unaligned_le64((unsigned long)site->only, code + *template->probe);
	detour_set_branch(code, detour, *template->handler, handler);
}

static void detour_put_jump(u8 *code, const kprobe_opcode_t *detour, u32 offset,
			    const void *target)
{
	__text_gen_insn(code + offset, JMP32_INSN_OPCODE, detour + offset, target,
			JMP32_INSN_SIZE);
}

/*
 * Copy a displaced instruction, which is @pos bytes after the first one, to @code +
 * @len. Returns the length of the copy.
 */
static int detour_copy_insn(u8 *code, unsigned int len, const kprobe_opcode_t *detour,
			    const struct insn *insn, const kprobe_opcode_t *addr, unsigned int pos)
{
	return relocate_displaced(code + len, insn, (unsigned long)addr + pos,
				  (unsigned long)detour + len);
}

/*
 * Copy all displaced instructions, and tell where each is. Returns where the copies
 * end, @falls_through set to whether execution comes there.
 */
static int detour_copy_all_insns(u8 *code, struct arch_optimized_insn *op,
				 const kprobe_opcode_t *addr, bool *falls_through)
{
	unsigned int len = kprobe_detour_end, pos = 0;
	struct insn insn;
	int copied;

	*falls_through = true;
	while (pos < op->size && *falls_through) {
		if (insn_decode(&insn, op->code + pos, op->size - pos, INSN_MODE_KERN))
			return -EILSEQ;
		if (pos && pos < JMP32_INSN_SIZE)
			op->copies[pos - 1] = len - kprobe_detour_end;
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

/* Copy the first one only, which must not be a branch. */
static int detour_copy_first_insn(u8 *code, const struct arch_optimized_insn *op,
				  const kprobe_opcode_t *addr)
{
	unsigned int len = kprobe_detour_post_end;
	struct insn insn;
	int copied;

	if (insn_decode(&insn, op->code, op->size, INSN_MODE_KERN))
		return -EILSEQ;
	if (displaced_is_branch(&insn))
		return -EOPNOTSUPP;
	copied = detour_copy_insn(code, len, op->post, &insn, addr, 0);
	return copied < 0 ? copied : len + copied;
}

/* Where what follows the first displaced instruction is copied to. */
static kprobe_opcode_t *detour_rest(const struct arch_optimized_insn *op)
{
	return op->insn + kprobe_detour_end + op->rest;
}

/*
 * The template, the displaced instructions, a jump to what follows them. A jump among
 * them is followed by the INT3 that keeps CPUs from speculating straight on.
 */
static int detour_make_first_half(struct arch_optimized_insn *op, struct kprobe_site *site)
{
	const void *handler = site->only ? (void *)site->only->pre_handler : kprobe_detour_slow;
	const kprobe_opcode_t *addr = site->kp.addr;
	u8 code[MAX_OPTINSN_SIZE];
	bool falls_through;
	int len;

	detour_fill_template(code, op->insn, &first_half, site, addr + INT3_INSN_SIZE, handler);
	len = detour_copy_all_insns(code, op, addr, &falls_through);
	if (len < 0)
		return len;
	if (falls_through)
		detour_put_jump(code, op->insn, len, addr + op->size);
	if (op->post) {
		detour_put_jump(code, op->insn, kprobe_detour_called,
				op->post + kprobe_detour_post_run);
		detour_set_branch(code, op->insn, kprobe_detour_handled,
				  op->post + kprobe_detour_post_run_nested);
	}
	text_poke(op->insn, code, sizeof(code));
	return 0;
}

/* The template, the first displaced instruction, a jump to the calls of the handlers. */
static int detour_make_second_half(struct arch_optimized_insn *op, struct kprobe_site *site)
{
	bool direct = site->only && site->only->post_handler;
	const void *handler = direct ? (void *)site->only->post_handler : kprobe_detour_post_slow;
	const kprobe_opcode_t *addr = site->kp.addr, *next = addr + site->kp.ainsn.size;
	u8 code[MAX_POST_OPTINSN_SIZE];
	int len;

	detour_fill_template(code, op->post, &second_half, site, next, handler);
	put_unaligned_le32((long)next, code + kprobe_detour_post_next);
	len = detour_copy_first_insn(code, op, addr);
	if (len < 0)
		return len;
	detour_put_jump(code, op->post, len, op->post + kprobe_detour_post_entry);
	detour_set_branch(code, op->post, kprobe_detour_post_first,
			  op->post + kprobe_detour_post_end);
	detour_set_branch(code, op->post, kprobe_detour_post_rest, detour_rest(op));
	text_poke(op->post, code, sizeof(code));
	return 0;
}

static void detour_free(struct arch_optimized_insn *op)
{
	if (op->insn)
		free_optinsn_slot(op->insn, 0);
	if (op->post)
		free_optinsn_slot(op->post, 0);
	memset(op, 0, sizeof(*op));
}

static int detour_make(struct arch_optimized_insn *op, struct kprobe_site *site)
{
	bool post = site->has_post;
	int err;

	op->direct = site->direct;
	op->insn = get_optinsn_slot_for(&site->kp);
	if (post)
		op->post = get_post_optinsn_slot_for(&site->kp);
	if (!op->insn || (post && !op->post))
		return -ENOMEM;
	err = detour_make_first_half(op, site);
	if (!err && post)
		err = detour_make_second_half(op, site);
	return err;
}

static bool is_detour_slot_too_small(void)
{
	return kprobe_detour_end + DISPLACED_COPY_MAX + JMP32_INSN_SIZE > MAX_OPTINSN_SIZE ||
	       kprobe_detour_post_end + MAX_INSN_SIZE + JMP32_INSN_SIZE > MAX_POST_OPTINSN_SIZE;
}

int arch_prepare_optimized_kprobe(struct optimized_kprobe *op, struct kprobe *p)
{
	struct arch_optimized_insn made = { };
	int size, err;

	lockdep_assert_held(&text_mutex);
	if (WARN_ON_ONCE(is_detour_slot_too_small()))
		return -E2BIG;
	if (cpu_feature_enabled(X86_FEATURE_XENPV))
		return -EOPNOTSUPP;
	size = read_displaced_text(made.code, (unsigned long)p->addr);
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
	const struct kprobe_site *site = site_of(&op->kp);

	return (op->optinsn.post || !site->has_post) &&
	       (!site->direct || site->direct == op->optinsn.direct);
}

void arch_use_detour(struct optimized_kprobe *op, bool use)
{
	struct arch_specific_insn *ainsn = &op->kp.ainsn;
	bool use_next;

	use_next = use && op->optinsn.rest;
	WRITE_ONCE(ainsn->boost, use ? op->optinsn.insn + kprobe_detour_end : ainsn->insn);
	WRITE_ONCE(ainsn->next, use_next ? detour_rest(&op->optinsn) : op->kp.addr + ainsn->size);
}

void arch_remove_optimized_kprobe(struct optimized_kprobe *op)
{
	detour_free(&op->optinsn);
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

static void kprobe_make_jump(u8 *jump, const struct optimized_kprobe *op)
{
	__text_gen_insn(jump, JMP32_INSN_OPCODE, op->kp.addr,
			op->optinsn.insn + kprobe_detour_entry, JMP32_INSN_SIZE);
}

/* The sites come in the order of their addresses, as the queue wants them. */
void arch_optimize_kprobes(struct list_head *oplist)
{
	struct optimized_kprobe *op, *next;
	u8 jump[JMP32_INSN_SIZE];

	lockdep_assert_held(&text_mutex);
	list_for_each_entry_safe(op, next, oplist, list) {
		list_del_init(&op->list);
		kprobe_make_jump(jump, op);
		text_poke_queue(op->kp.addr, jump, sizeof(jump), NULL);
	}
	text_poke_finish();
}

/* Restore what jumps displace, with a breakpoint in the first byte if it @stays. */
static void kprobe_remove_jumps(struct list_head *oplist, struct list_head *done_list,
				bool stays)
{
	u8 jump[JMP32_INSN_SIZE], code[JMP32_INSN_SIZE];
	struct optimized_kprobe *op, *next;

	lockdep_assert_held(&text_mutex);
	list_for_each_entry_safe(op, next, oplist, list) {
		kprobe_make_jump(jump, op);
		memcpy(code, op->optinsn.code, sizeof(code));
		if (stays)
			code[0] = INT3_INSN_OPCODE;
		text_poke_queue(op->kp.addr, code, sizeof(code), jump);
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

/* -------------------------------------------------------------- unwinding */

/* How many words of the stack are left to handlers, between its end and their registers. */
#define ROOM_WORDS	(HANDLER_STACK_ROOM / sizeof(long))

/*
 * How many words the instructions up to @offset have pushed, from where none is
 * pushed. The second one makes the room for handlers, of which the first one has
 * used a word.
 */
static unsigned int detour_words_pushed(const struct detour_template *template, u32 offset)
{
	unsigned int count = 0;
	struct insn insn;

	for (u32 pos = *template->entry; pos < offset; pos += insn.length, count++)
		if (insn_decode(&insn, template->code + pos, MAX_INSN_SIZE, INSN_MODE_KERN))
			break;
	return count < 2 ? count : count - 1 + ROOM_WORDS;
}

/* How many are left in the stack at @offset, when all other registers were restored. */
static unsigned int detour_words_left(u32 restored, u32 offset)
{
	switch (offset - restored) {
	case 0:		/* popfq */
		return (sizeof(struct pt_regs) - offsetof(struct pt_regs, flags)) / sizeof(long) +
		       ROOM_WORDS;
	case 1:		/* popq %rsp */
		return (sizeof(struct pt_regs) - offsetof(struct pt_regs, sp)) / sizeof(long) +
		       ROOM_WORDS;
	default:
		return 0;
	}
}

/*
 * A place in a copy of a template. Returns whether registers have been saved there,
 * or how many words of them are in the stack.
 */
static bool is_detour_framed(const struct detour_template *template, u32 offset,
			     unsigned int *words)
{
	*words = 0;
	if (template == &second_half && offset < kprobe_detour_post_entry) {
		*words = detour_words_left(kprobe_detour_post_run_restored, offset);
		return offset < kprobe_detour_post_run_restored;
	}
	if (offset < *template->entry ||
	    (offset >= *template->framed && offset < *template->restored))
		return true;
	*words = offset < *template->framed ? detour_words_pushed(template, offset) :
					      detour_words_left(*template->restored, offset);
	return false;
}

/* Where the text is that the second half runs at @offset: the instruction, or the next. */
static unsigned long detour_post_original_ip(const struct kprobe *kp, u32 offset)
{
	bool before = offset < kprobe_detour_post_entry || offset == kprobe_detour_post_end;

	return (unsigned long)kp->addr + (before ? 0 : kp->ainsn.size);
}

/**
 * kprobe_detour_unwind - Find the text that describes the stack in a detour
 * @ip: An address. If it is in a detour, it is set to one in the template where
 *	registers have been saved, and to that of the probed code elsewhere.
 * @sp: The stack pointer. Then it is set to what it was in the probed code.
 *
 * Context: Any in which RCU is watching. Preemption is off.
 * Return: Whether it is in a detour.
 */
bool kprobe_detour_unwind(unsigned long *ip, unsigned long *sp)
{
	struct kprobe *kp = kprobe_optinsn_slot_owner(*ip);
	const struct detour_template *template = &first_half;
	const struct arch_optimized_insn *detour;
	unsigned int offset, words, pushed;

	if (!kp)
		return false;
	detour = &container_of(kp, struct optimized_kprobe, kp)->optinsn;
	offset = *ip - (unsigned long)detour->insn;
	if (offset >= MAX_OPTINSN_SIZE) {
		template = &second_half;
		offset = *ip - (unsigned long)detour->post;
	}
	if (template == &first_half && offset >= kprobe_detour_end) {
		offset = displaced_origin(detour->code, detour->size,
					  offset - kprobe_detour_end, &pushed);
		*ip = (unsigned long)kp->addr + offset;
		*sp += pushed;
	} else if (offset < *template->end && is_detour_framed(template, offset, &words)) {
		*ip = (unsigned long)template->code + offset;
	} else {
		*ip = template == &first_half ? (unsigned long)kp->addr :
						detour_post_original_ip(kp, offset);
		if (offset < *template->end)
			*sp += words * sizeof(long);
	}
	return true;
}
