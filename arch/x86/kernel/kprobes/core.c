// SPDX-License-Identifier: GPL-2.0
/*
 * Breakpoint probes on x86: hits, running the displaced instruction, faults in
 * it; and what the manager asks of an architecture.
 *
 * How a displaced instruction is run is said at enum insn_run. Only two kinds
 * of copies keep the CPU busy with the probe after the breakpoint: those that
 * are stepped, and those with a post handler to be called behind them. Both run
 * with interrupts off, so nothing but an NMI or a fault comes between.
 */
#define pr_fmt(fmt)	"kprobes: " fmt

#include <linux/bitfield.h>
#include <linux/context_tracking.h>
#include <linux/cpufeature.h>
#include <linux/execmem.h>
#include <linux/extable.h>
#include <linux/kallsyms.h>
#include <linux/kgdb.h>
#include <linux/kprobes.h>
#include <linux/memory.h>
#include <linux/mm.h>
#include <linux/perf_event.h>
#include <linux/ptrace.h>
#include <linux/set_memory.h>
#include <linux/uaccess.h>
#include <linux/unaligned.h>
#include <linux/vmalloc.h>

#include <asm/alternative.h>
#include <asm/extable_fixup_types.h>
#include <asm/ibt.h>
#include <asm/sections.h>

#include "common.h"
#include "detour.h"

DEFINE_PER_CPU(struct kprobe *, current_kprobe);
DEFINE_PER_CPU(struct kprobe_ctlblk, kprobe_ctlblk);

/* ------------------------------------------------------------------ hits */

/* What a breakpoint exception adds to preempt_count(). */
#define BREAKPOINT_CONTEXT	(NMI_OFFSET + HARDIRQ_OFFSET)

/* Put the present hit aside. There is room for as many as can nest. */
noinstr void enter_nested_hit(struct kprobe *kp, struct pt_regs *regs)
{
	struct kprobe_ctlblk *kcb = get_kprobe_ctlblk();
	struct kprobe_outer_hit *outer = &kcb->outer[kcb->depth];

	if (kcb->depth == ARRAY_SIZE(kcb->outer)) {
		instrumentation_begin();
		dump_kprobe(kp);
		panic("kprobes: a probe is hit in its own hit without end\n");
		instrumentation_end();
	}
	outer->kp = kprobe_running();
	outer->regs = kcb->regs;
	outer->status = kcb->kprobe_status;
	outer->saved_flags = kcb->saved_flags;
	outer->context = raw_cpu_read(kprobe_context);
	barrier();	/* an NMI leaves a complete entry alone, and fills any other */
	kcb->depth++;
	kcb->kprobe_status = KPROBE_HIT_ACTIVE;
	enter_hit(kp, regs);
}

noinstr void resume_outer_hit(void)
{
	struct kprobe_ctlblk *kcb = get_kprobe_ctlblk();
	struct kprobe_outer_hit *outer = &kcb->outer[kcb->depth - 1];

	kcb->regs = outer->regs;
	kcb->kprobe_status = outer->status;
	kcb->saved_flags = outer->saved_flags;
	raw_cpu_write(kprobe_context, outer->context);
	raw_cpu_write(current_kprobe, outer->kp);
	barrier();
	kcb->depth--;
}

/* Return from the breakpoint to a copy that kprobe_copy_done() is called behind. */
static __always_inline void start_copy(kprobe_opcode_t *copy, struct pt_regs *regs)
{
	struct kprobe_ctlblk *kcb = get_kprobe_ctlblk();

	kcb->regs = NULL;
	kcb->saved_flags = regs->flags & X86_EFLAGS_IF;
	raw_cpu_write(kprobe_context, preempt_count() - BREAKPOINT_CONTEXT);
	regs->flags &= ~X86_EFLAGS_IF;
	regs->ip = (unsigned long)copy;
}

/* Emulate; or run a copy, in which the same fails with a fault of its own. */
static __always_inline bool emulate(struct kprobe *kp, struct pt_regs *regs)
{
	regs->ip = (unsigned long)kp->addr;
	if (likely(emulate_insn(&kp->ainsn.emul, regs)))
		return true;
	regs->ip = (unsigned long)kp->ainsn.insn;
	return false;
}

static __always_inline unsigned long next_insn(const struct kprobe *kp)
{
	return (unsigned long)kp->addr + kp->ainsn.size;
}

/* The instruction has run, or a branch: go on behind it, which may be in a detour. */
static __always_inline void go_on(struct kprobe *kp, struct pt_regs *regs)
{
	if (regs->ip == next_insn(kp))
		regs->ip = (unsigned long)READ_ONCE(kp->ainsn.next);
}

/* Do what the instruction does. Returns false if that takes a copy, which will fault. */
static __always_inline bool run_in_place(struct kprobe *kp, struct pt_regs *regs)
{
	if (kp->ainsn.run != INSN_RUN_SKIP)
		return emulate(kp, regs);
	regs->ip = next_insn(kp);
	return true;
}

/* Run the instruction without a further trap. */
static __always_inline void run_at_once(struct kprobe *kp, struct pt_regs *regs)
{
	if (likely(kp->ainsn.run == INSN_RUN_BOOST)) {
		regs->ip = (unsigned long)READ_ONCE(kp->ainsn.boost);
		return;
	}
	run_in_place(kp, regs);
	go_on(kp, regs);
}

/*
 * Call the post handlers, who find @regs->ip where the instruction has left it.
 * Returns whether one of them has set it, and so where to go on.
 */
static __always_inline bool post_handlers_divert(struct kprobe *kp, struct pt_regs *regs)
{
	unsigned long ip = regs->ip;

	call_post_handlers(kp, regs);
	if (likely(regs->ip == ip))
		return false;
	regs->ip = kprobe_detoured_ip(regs->ip);
	return true;
}

static noinstr void run_with_post(struct kprobe *kp, struct pt_regs *regs)
{
	if (run_in_place(kp, regs) && !post_handlers_divert(kp, regs))
		go_on(kp, regs);
	leave_hit();
}

static __always_inline void finish_hit(struct kprobe *kp, struct pt_regs *regs, bool nested)
{
	if (likely(!site_of(kp)->has_post && kp->ainsn.run != INSN_RUN_STEP)) {
		run_at_once(kp, regs);
		kprobe_hit_end(nested);
	} else if (kp->ainsn.post_insn) {
		start_copy(kp->ainsn.post_insn, regs);
	} else if (kp->ainsn.run == INSN_RUN_STEP) {
		start_copy(kp->ainsn.insn, regs);
	} else {
		run_with_post(kp, regs);
	}
}

/* A hit that nobody must hear of now. */
static noinstr void skip_hit(struct kprobe *kp, struct pt_regs *regs)
{
	kprobes_inc_nmissed_count(kp);
	if (kp->ainsn.run != INSN_RUN_STEP) {
		run_at_once(kp, regs);
		return;
	}
	enter_nested_hit(kp, regs);
	start_copy(kp->ainsn.insn, regs);
	get_kprobe_ctlblk()->kprobe_status = KPROBE_REENTER;
}

static __always_inline void kprobe_handle_hit(struct kprobe *kp, struct pt_regs *regs,
					      bool nested)
{
	if (likely(!call_pre_handlers(kp, regs, nested))) {
		finish_hit(kp, regs, nested);
		return;
	}
	regs->ip = kprobe_detoured_ip(regs->ip);
	kprobe_hit_end(nested);
}

/*
 * Handlers are written for one of them at a time on a CPU. But a hit from above,
 * in an interrupt or NMI that landed in a handler, is one for those probes that
 * have opted in. What the handler itself runs into is not.
 */
static noinstr void int3_nested_hit(struct kprobe *kp, struct pt_regs *regs)
{
	if (is_hit_from_above(BREAKPOINT_CONTEXT))
		kprobe_handle_hit(kp, regs, true);
	else
		skip_hit(kp, regs);
}

/* ------------------------------------------------------- behind the copy */

/*
 * The instruction has run in its copy, with IF clear: make the registers as if it had
 * run in place, and call the post handlers, unless the hit was skipped.
 */
static __always_inline void complete_copy(struct kprobe *kp, struct pt_regs *regs, bool skipped)
{
	regs->ip = next_insn(kp);
	regs->flags |= raw_cpu_read(kprobe_ctlblk.saved_flags);
	if (skipped || likely(!post_handlers_divert(kp, regs)))
		regs->ip = (unsigned long)READ_ONCE(kp->ainsn.next);
	leave_hit();
}

static noinline noinstr void call_post_unwatched(struct pt_regs *regs)
{
	ct_nmi_enter();
	complete_copy(kprobe_running(), regs, false);
	ct_nmi_exit();
}

/**
 * kprobe_copy_done - The copied instruction has run
 * @regs: The registers after it, with @sp too low and @ip unknown.
 *
 * Called by kprobe_post_stub. To handlers this is to look like the breakpoint
 * in which the pre handlers ran, but for a fraction of its price.
 *
 * Context: That of the probed code, with interrupts off.
 */
noinstr void kprobe_copy_done(struct pt_regs *regs)
{
	bool irqs_on = raw_cpu_read(kprobe_ctlblk.saved_flags);

	__preempt_count_add(PREEMPT_OFFSET);
	if (irqs_on)
		lockdep_hardirqs_off(CALLER_ADDR0);
	regs->sp += HANDLER_STACK_ROOM + sizeof(long);
	if (likely(rcu_is_watching_curr_cpu()))
		complete_copy(kprobe_running(), regs, false);
	else
		call_post_unwatched(regs);
	if (irqs_on) {
		instrumentation_begin();
		lockdep_hardirqs_on_prepare();
		instrumentation_end();
		lockdep_hardirqs_on(CALLER_ADDR0);
	}
	__preempt_count_sub(PREEMPT_OFFSET);
}

/* Is the trap at @addr the one behind the copy that runs? */
static __always_inline bool is_step_trap(const struct kprobe *running, unsigned long addr)
{
	unsigned long copy;

	if (!running || raw_cpu_read(kprobe_ctlblk.regs))
		return false;
	copy = addr - running->ainsn.size;
	return copy == (unsigned long)running->ainsn.insn ||
	       copy == (unsigned long)running->ainsn.post_insn;
}

static noinstr int handle_other_int3(struct kprobe *kp, struct pt_regs *regs)
{
	unsigned long addr = regs->ip - INT3_INSN_SIZE;
	struct kprobe *running = kprobe_running();

	if (kp) {
		int3_nested_hit(kp, regs);
	} else if (is_step_trap(running, addr)) {
		raw_cpu_write(kprobe_context, preempt_count());
		complete_copy(running, regs,
			      raw_cpu_read(kprobe_ctlblk.kprobe_status) == KPROBE_REENTER);
	} else if (*(const u8 *)addr != INT3_INSN_OPCODE) {
		/* The probe has been removed since the CPU came here. */
		regs->ip = addr;
	} else {
		return 0;
	}
	return 1;
}

/**
 * kprobe_int3_handler - A breakpoint has been hit
 * @regs: The registers; @ip is behind the breakpoint.
 *
 * Context: The breakpoint exception.
 * Return: 1 if this is dealt with: execution goes on at @regs->ip. 0 if the
 *	breakpoint is somebody else's.
 */
noinstr int kprobe_int3_handler(struct pt_regs *regs)
{
	struct kprobe *kp;

	if (user_mode(regs))
		return 0;

	kp = kprobe_find((void *)(regs->ip - INT3_INSN_SIZE));
	if (unlikely(!kp || kprobe_running()))
		return handle_other_int3(kp, regs);
	kprobe_handle_hit(kp, regs, false);
	return 1;
}

/* ----------------------------------------------------------------- faults */

/* Where the text is of which @ip runs a copy: the instruction, or the next. */
static unsigned long original_ip(const struct kprobe *owner, unsigned long ip)
{
	const struct arch_specific_insn *ainsn = &owner->ainsn;
	unsigned long copy = (unsigned long)ainsn->insn;

	if (ip - copy >= KPROBE_SLOT_SIZE)
		copy = (unsigned long)ainsn->post_insn;
	return (unsigned long)owner->addr + (ip - copy < ainsn->size ? 0 : ainsn->size);
}

/* Is @ip in a copy which this CPU runs for @owner until kprobe_copy_done()? */
static bool is_copy_running(const struct kprobe *owner, unsigned long ip)
{
	if (kprobe_running() != owner || raw_cpu_read(kprobe_ctlblk.regs))
		return false;
	return owner->ainsn.run == INSN_RUN_STEP ||
	       ip - (unsigned long)owner->ainsn.post_insn < KPROBE_SLOT_SIZE;
}

/**
 * kprobe_fixup_fault - Let a fault in a slot be one of the probed instruction
 * @regs: The registers at the fault. If it was in a slot, @ip is changed to the
 *	instruction's own address and the interrupt flag to what it had there;
 *	the hit is over, and may come again when the fault has been dealt with.
 *
 * Context: Any exception.
 */
void __kprobes kprobe_fixup_fault(struct pt_regs *regs)
{
	struct kprobe *owner;

	if (user_mode(regs))
		return;
	guard(preempt_notrace)();
	owner = kprobe_slot_owner(regs->ip);
	if (likely(!owner))
		return;

	if (is_copy_running(owner, regs->ip)) {
		regs->flags |= raw_cpu_read(kprobe_ctlblk.saved_flags);
		leave_hit();
	}
	regs->ip = original_ip(owner, regs->ip);
}

/**
 * kprobe_fault_handler - A fault while this CPU works for a probe
 * @regs: The registers at the fault.
 * @trapnr: Which fault.
 *
 * A fault in a handler is the handler's own.
 *
 * Context: The exception, with preemption off.
 * Return: 0: the fault is still to be dealt with, see kprobe_fixup_fault().
 */
int __kprobes kprobe_fault_handler(struct pt_regs *regs, int trapnr)
{
	kprobe_fixup_fault(regs);
	return 0;
}

/* The site whose pre handlers see @regs, on this CPU. */
static const struct kprobe *site_of_regs(const struct pt_regs *regs)
{
	const struct kprobe_ctlblk *kcb = get_kprobe_ctlblk();
	const struct kprobe *running = kprobe_running();

	if (!regs || !running)
		return NULL;
	if (kcb->regs == regs)
		return running;
	for (unsigned int i = 0; i < kcb->depth; i++)
		if (kcb->outer[i].regs == regs)
			return kcb->outer[i].kp;
	return NULL;
}

/**
 * kprobe_unwind_ip - Find the text that describes the stack at an address
 * @ip: An address that the unwinder has met.
 * @regs: The registers it comes from, if any.
 * @sp: The stack pointer there. In the beginning and at the end of a detour it is
 *	set to what it is in the probed code.
 *
 * A slot has no description of its own, the probed instruction has. And what
 * pre handlers see as @regs->ip is behind the breakpoint, which may be the next
 * instruction already, while the stack is as before the probed one. That holds
 * for registers saved by a detour as long as they are.
 *
 * Context: Any in which RCU is watching.
 * Return: The address to look up.
 */
unsigned long kprobe_unwind_ip(unsigned long ip, const struct pt_regs *regs,
			       unsigned long *sp)
{
	const struct kprobe *kp;

	guard(preempt_notrace)();
	kp = site_of_regs(regs);
	if (kp && regs->ip == (unsigned long)kp->addr + INT3_INSN_SIZE)
		return (unsigned long)kp->addr;
	if (regs && regs->csx >> 16 == DETOUR_MARK && get_kprobe((void *)regs->ip - INT3_INSN_SIZE))
		return regs->ip - INT3_INSN_SIZE;
	if (is_kernel_text(ip) || unwind_detour(&ip, sp))
		return ip;
	kp = kprobe_slot_owner(ip);
	return kp ? original_ip(kp, ip) : ip;
}

/* ---------------------------------------------------- analysing the text */

/* Room for an instruction and what tells whether it shadows the next one. */
#define CODE_BYTES	(MAX_INSN_SIZE + 3)

/* Put back what a jump or breakpoint of ours, @pos bytes behind the start, displaces. */
static void restore_code(u8 *code, unsigned int len, int pos, unsigned long addr)
{
	const struct kprobe *kp = get_kprobe((void *)addr + pos);
	unsigned int size = 1;
	const u8 *original;

	if (!kp)
		return;
	original = &kp->opcode;
#ifdef CONFIG_OPTPROBES
	if (kprobe_optimized(kp)) {
		original = container_of(kp, struct optimized_kprobe, kp)->optinsn.code;
		size = JMP32_INSN_SIZE;
	}
#endif
	for (unsigned int i = 0; i < size; i++)
		if (pos + i < len)
			code[pos + i] = original[i];
}

static void restore_original(u8 *code, unsigned long addr, unsigned int len)
{
	int pos = IS_ENABLED(CONFIG_OPTPROBES) ? 1 - JMP32_INSN_SIZE : 0;

	for (; pos < 0; pos++)
		restore_code(code, len, pos, addr);
	for (; pos < (int)len; pos++)
		if (code[pos] == INT3_INSN_OPCODE || code[pos] == JMP32_INSN_OPCODE)
			restore_code(code, len, pos, addr);
}

/**
 * read_original_text - Copy the text as it is without probes
 * @buf: Where to write it.
 * @addr: Where it is: mapped from there to the end.
 * @len: How many bytes.
 *
 * Context: kprobe_mutex and text_mutex held.
 */
void read_original_text(u8 *buf, unsigned long addr, unsigned int len)
{
	lockdep_assert_held(&text_mutex);
	memcpy(buf, (void *)addr, len);
	restore_original(buf, addr, len);
}

/* The same for CODE_BYTES, or less at the end of a mapping. Returns how many. */
static unsigned int read_code(u8 *code, unsigned long addr)
{
	unsigned int len = CODE_BYTES;

	if (copy_from_kernel_nofault(code, (void *)addr, len)) {
		len = min_t(unsigned int, len, PAGE_SIZE - offset_in_page(addr));
		if (copy_from_kernel_nofault(code, (void *)addr, len))
			return 0;
	}
	restore_original(code, addr, len);
	return len;
}

static int decode(struct insn *insn, u8 *code, unsigned long addr)
{
	unsigned int len = read_code(code, addr);

	if (!len)
		return -EILSEQ;
	return insn_decode(insn, code, len, INSN_MODE_KERN) ? -EILSEQ : 0;
}

/* Is this a breakpoint of kgdb? It hides an instruction of unknown length. */
static bool hides_insn(const u8 *code, unsigned long addr)
{
#ifdef CONFIG_KGDB
	return code[0] == INT3_INSN_OPCODE && kgdb_has_hit_break(addr);
#else
	return false;
#endif
}

/* How many bytes from here on must stay what they are. */
static unsigned int reserved_size(const struct insn *insn)
{
	size_t len = insn->end_kaddr - insn->kaddr;

	if (is_static_call_tramp(insn->kaddr, len))
		return JMP32_INSN_SIZE;
	return IS_ENABLED(CONFIG_CFI_CLANG) ? cfi_check_size(insn->kaddr, len) : 0;
}

int arch_seek_insn(unsigned long *pos, unsigned long addr)
{
	unsigned int reserved;
	u8 code[CODE_BYTES];
	struct insn insn;

	lockdep_assert_held(&text_mutex);
	while (*pos <= addr) {
		if (decode(&insn, code, *pos) || hides_insn(code, *pos))
			return -EILSEQ;
		reserved = reserved_size(&insn);
		if (addr - *pos < reserved)
			return -EINVAL;
		if (*pos == addr)
			return 0;
		*pos += reserved ?: insn.length;
	}
	return -EILSEQ;
}

kprobe_opcode_t *arch_adjust_kprobe_addr(unsigned long addr, unsigned long offset,
					 bool *on_func_entry)
{
	unsigned long entry = 0;
	u32 insn;

	/* It has not been checked yet what is there. */
	if (!get_kernel_nofault(insn, (u32 *)addr) && is_endbr(insn))
		entry = ENDBR_INSN_SIZE;

	*on_func_entry = !offset || offset == entry;
	return (kprobe_opcode_t *)(addr + (*on_func_entry ? entry : offset));
}

/* ------------------------------------------------------------ preparation */

extern char kprobe_post_stub[];

/*
 * An instruction whose faults are fixed up may sleep in its fault, where the
 * grace period that protects slots does not see it. It is stepped, so that the
 * fault leaves the slot first. A fixup that reads the text would misread it.
 */
static int restrict_for_extable(struct insn_traits *traits, unsigned long addr)
{
	const struct exception_table_entry *e = search_exception_tables(addr);

	if (!e)
		return 0;
	if (traits->run == INSN_RUN_EMULATE || traits->run == INSN_RUN_SKIP ||
	    FIELD_GET(EX_DATA_TYPE_MASK, e->data) == EX_TYPE_ZEROPAD)
		return -EOPNOTSUPP;
	traits->run = INSN_RUN_STEP;
	traits->run_post = INSN_RUN_STEP;
	return 0;
}

/*
 * Make a slot with a copy of the instruction and behind it a jump, or a trap if
 * there is no @next.
 */
static int fill_slot(struct kprobe *p, const struct insn *insn, const void *next,
		     kprobe_opcode_t **result)
{
	kprobe_opcode_t *slot = get_insn_slot_for(p);
	u8 code[KPROBE_SLOT_SIZE];
	int len;

	BUILD_BUG_ON(MAX_INSN_SIZE + JMP32_INSN_SIZE > KPROBE_SLOT_SIZE);
	if (!slot)
		return -ENOMEM;
	memset(code, INT3_INSN_OPCODE, sizeof(code));
	len = relocate_insn(code, insn, (unsigned long)p->addr, (unsigned long)slot);
	if (len < 0) {
		free_insn_slot(slot, 0);
		return -EOPNOTSUPP;
	}
	if (next)
		__text_gen_insn(code + len, JMP32_INSN_OPCODE, slot + len, next,
				JMP32_INSN_SIZE);
	text_poke(slot, code, sizeof(code));
	*result = slot;
	return 0;
}

/*
 * FRED keeps in the frame of an exception that the CPU waits for an ENDBR, and the
 * return from a breakpoint on one would wait on, after it.
 */
static bool is_landing_pad_of_fred(const struct insn *insn)
{
	return cpu_feature_enabled(X86_FEATURE_FRED) && insn->length == ENDBR_INSN_SIZE &&
	       is_endbr(get_unaligned((u32 *)insn->kaddr));
}

int arch_prepare_kprobe(struct kprobe *p)
{
	u8 code[CODE_BYTES];
	struct insn_traits traits;
	struct insn insn;
	int err;

	lockdep_assert_held(&text_mutex);
	if (decode(&insn, code, (unsigned long)p->addr))
		return -EILSEQ;
	/* Whoever patches it reads the text, and a breakpoint would keep it unpatched. */
	if (alternatives_text_reserved(p->addr, p->addr + 1))
		return -EINVAL;
	traits = analyse_insn(&insn);
	if (traits.run == INSN_RUN_NEVER || is_landing_pad_of_fred(&insn))
		return -EOPNOTSUPP;
	err = restrict_for_extable(&traits, (unsigned long)p->addr);
	if (err)
		return err;

	p->opcode = code[0];
	p->ainsn.size = insn.length;
	p->ainsn.run = traits.run;
	p->ainsn.run_post = traits.run_post;
	p->ainsn.next = p->addr + insn.length;
	if (traits.run == INSN_RUN_SKIP)
		return 0;
	if (traits.run == INSN_RUN_EMULATE) {
		err = prepare_emulation(&p->ainsn.emul, &insn);
		if (err || !emulation_can_fail(&p->ainsn.emul))
			return err;
	}
	err = fill_slot(p, &insn, traits.run == INSN_RUN_STEP ? NULL : p->ainsn.next,
			&p->ainsn.insn);
	p->ainsn.boost = p->ainsn.insn;
	return err;
}

/*
 * The stub ends with an IRET, which is a hypercall on Xen, where a trap costs the
 * same; and which in an NMI lets the next NMI in, what FRED is not prepared for.
 */
static bool is_stub_possible(void)
{
	return !cpu_feature_enabled(X86_FEATURE_XENPV) && !cpu_feature_enabled(X86_FEATURE_FRED);
}

/* What follows the copy for post handlers: a jump to it, or a trap if there is nothing. */
static const void *after_post_copy(const struct kprobe *p)
{
	return p->ainsn.run_post == INSN_RUN_BOOST && is_stub_possible() ? kprobe_post_stub : NULL;
}

int arch_prepare_post_handler(struct kprobe *p)
{
	u8 code[CODE_BYTES];
	struct insn insn;

	lockdep_assert_held(&text_mutex);
	if (p->ainsn.run != INSN_RUN_BOOST || p->ainsn.post_insn)
		return 0;
	if (decode(&insn, code, (unsigned long)p->addr))
		return -EILSEQ;
	return fill_slot(p, &insn, after_post_copy(p), &p->ainsn.post_insn);
}

static void free_slot(kprobe_opcode_t **slot)
{
	if (*slot)
		free_insn_slot(*slot, 0);
	*slot = NULL;
}

void arch_remove_kprobe(struct kprobe *p)
{
	free_slot(&p->ainsn.insn);
	free_slot(&p->ainsn.post_insn);
}

static void poke_opcode(struct kprobe *p, u8 old, u8 new)
{
	text_poke(p->addr, &new, INT3_INSN_SIZE);
	perf_event_text_poke(p->addr, &old, INT3_INSN_SIZE, &new, INT3_INSN_SIZE);
}

void arch_arm_kprobe(struct kprobe *p)
{
	poke_opcode(p, p->opcode, INT3_INSN_OPCODE);
}

void arch_disarm_kprobe(struct kprobe *p)
{
	poke_opcode(p, INT3_INSN_OPCODE, p->opcode);
}

void arch_sync_kprobes(void)
{
	text_poke_sync();
}

void *alloc_insn_page(void)
{
	void *page = execmem_alloc(EXECMEM_KPROBES, PAGE_SIZE);

	if (!page)
		return NULL;
	set_vm_flush_reset_perms(page);
	memset(page, INT3_INSN_OPCODE, PAGE_SIZE);
	if (set_memory_rox((unsigned long)page, 1)) {
		execmem_free(page);
		return NULL;
	}
	return page;
}

/* -------------------------------------------------------------- blacklist */

bool arch_within_kprobe_blacklist(unsigned long addr)
{
	return (addr >= (unsigned long)__entry_text_start &&
		addr < (unsigned long)__entry_text_end) ||
	       (addr >= (unsigned long)__kprobes_text_start &&
		addr < (unsigned long)__kprobes_text_end) ||
	       (addr >= (unsigned long)__noinstr_text_start &&
		addr < (unsigned long)__noinstr_text_end);
}

/*
 * What a hit returns through, or comes through with ftrace. The indirect thunks
 * and most return thunks are marked where they are defined.
 */
static const char * const hit_path[] __initconst = {
	"__x86_return_thunk",
	"retbleed_return_thunk",
	"srso_return_thunk",
	"srso_alias_return_thunk",
	"srso_alias_safe_ret",
	"srso_untrain_ret",
	"call_depth_return_thunk",
	"its_return_thunk",
	"retbleed_untrain_ret",
	"srso_alias_untrain_ret",
	"srso_safe_ret",
	"ftrace_stub",
	"return_to_handler",
	"preempt_schedule_notrace",
	"preempt_schedule_notrace_thunk",
	/* every return from an exception on Xen PV */
	"xen_iret",
	"xenpv_restore_regs_and_return_to_usermode",
	/* asked before us whether the breakpoint is theirs; and what they call */
	"kgdb_ll_trap",
	"__kgdb_notify",
	/* called on the way into a breakpoint exception and out of it */
	"trace_hwlat_callback",
	"trace_osnoise_callback",
};

int __init arch_populate_kprobe_blacklist(void)
{
	unsigned long addr;

	for (unsigned int i = 0; i < ARRAY_SIZE(hit_path); i++) {
		addr = kallsyms_lookup_name(hit_path[i]);
		if (addr)
			kprobe_add_ksym_blacklist(addr);
	}
	/* Labels inside make several symbols of ftrace's callers. */
	kprobe_add_area_blacklist(kallsyms_lookup_name("ftrace_caller"),
				  kallsyms_lookup_name("ftrace_stub_direct_tramp"));
	return kprobe_add_area_blacklist((unsigned long)__entry_text_start,
					 (unsigned long)__entry_text_end);
}

int __init arch_init_kprobes(void)
{
	return 0;
}
