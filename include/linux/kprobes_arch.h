/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Kernel probes: the interface between the manager and an architecture's back end
 *
 * Included by <linux/kprobes.h>.
 */
#ifndef _LINUX_KPROBES_ARCH_H
#define _LINUX_KPROBES_ARCH_H

#ifndef _LINUX_KPROBES_H
#error "include <linux/kprobes.h>"
#endif

#include <linux/cleanup.h>

struct jprobe;
struct kprobe_text;

/* Progress of a hit on a CPU: values of kprobe_ctlblk::kprobe_status. */
#define KPROBE_HIT_ACTIVE	BIT(0)	/* a handler runs */
#define KPROBE_HIT_SS		BIT(1)	/* the copy of the instruction runs */
#define KPROBE_REENTER		BIT(2)	/* the copy runs for a hit inside a hit */
#define KPROBE_HIT_SSDONE	BIT(3)	/* the copy has run */

#ifdef CONFIG_KPROBES

DECLARE_PER_CPU(struct kprobe_ctlblk, kprobe_ctlblk);

/* preempt_count() at the start of the running handler, for kprobe_is_above(). */
DECLARE_PER_CPU(unsigned int, kprobe_context);

/*
 * kprobe_is_above() - Check that this context has interrupted what ran at a preempt_count()
 *
 * Context levels compare like contexts: a hit that interrupted a handler has a higher level
 * than the handler, and a hit that the handler caused has the same level. Inside a
 * breakpoint exception, which counts as an NMI, it is the level of the exception.
 */
static __always_inline bool kprobe_is_above(unsigned int count)
{
	const unsigned int level = NMI_MASK | HARDIRQ_MASK | SOFTIRQ_OFFSET;

	return (preempt_count() & level) > (count & level);
}

/* Not 0, and no bit of a context level */
#define KPROBE_CONTEXT_SET	PREEMPT_OFFSET

/*
 * kprobe_is_in_context() - Check that nothing has interrupted what ran at a preempt_count()
 *
 * @count is that and KPROBE_CONTEXT_SET, or 0 if nothing runs there.
 */
static __always_inline bool kprobe_is_in_context(unsigned int count)
{
	return count && !kprobe_is_above(count);
}

/* reset_current_kprobe() - Mark that this CPU no longer handles a hit */
static __always_inline void reset_current_kprobe(void)
{
	raw_cpu_write(current_kprobe, NULL);
}

/* get_kprobe_ctlblk() - This CPU's state of the hit that it handles */
static __always_inline struct kprobe_ctlblk *get_kprobe_ctlblk(void)
{
	return raw_cpu_ptr(&kprobe_ctlblk);
}

/* Called by an architecture's back end */
struct kprobe *get_kprobe(void *addr);
int kprobe_pre_handlers(struct kprobe *site, struct pt_regs *regs);
void kprobe_post_handlers(struct kprobe *site, struct pt_regs *regs, unsigned long flags);
void kprobes_inc_nmissed_count(struct kprobe *p);
unsigned long kprobe_links_lock(void);
void kprobe_links_unlock(unsigned long flags);
kprobe_opcode_t *kprobe_get_insn_slot(struct kprobe *owner);
struct kprobe *kprobe_slot_owner(unsigned long addr);
void dump_kprobe(struct kprobe *kp);
kprobe_opcode_t *get_insn_slot(void);
void free_insn_slot(kprobe_opcode_t *slot, int dirty);
int kprobe_add_ksym_blacklist(unsigned long entry);
int kprobe_add_area_blacklist(unsigned long start, unsigned long end);

/*
 * Provided by an architecture's back end, in the order of a probe's life. What is optional
 * has a weak default. @p is the struct kprobe of a site. A function for which no context is given
 * is called in process context with kprobe_mutex, the hotplug lock and text_mutex held, and may
 * sleep.
 *
 * asm/kprobes.h has the types kprobe_opcode_t and struct arch_specific_insn, and
 * arch_remove_kprobe(), a function or macro: with only kprobe_mutex held, it frees what
 * arch_prepare_kprobe() and arch_prepare_post_handler() have allocated for a site. No task is in
 * its slots any more.
 */

/*
 * arch_init_kprobes() - Prepare the back end; an error that it returns is that of an initcall
 *
 * Called once, during boot, in process context without locks, after the two functions for the
 * blacklist. There is no probe, nor a slot.
 */
int arch_init_kprobes(void);

/*
 * arch_populate_kprobe_blacklist() - Add the architecture's functions to the blacklist (optional)
 *
 * Called once, during boot, in process context without locks. It calls
 * kprobe_add_area_blacklist() for code that cannot have an annotation, and returns 0 or its error.
 */
int arch_populate_kprobe_blacklist(void);

/*
 * arch_within_kprobe_blacklist() - True if @addr is in a range that must not be probed (optional)
 *
 * The default is the section of __kprobes, which another one includes. Any context.
 */
bool arch_within_kprobe_blacklist(unsigned long addr);

/*
 * arch_adjust_kprobe_addr() - The address to probe for an @offset into the function at @addr
 *
 * Sets @on_func_entry to whether that is the function's entry. Optional, for an architecture whose
 * functions begin with an instruction that must stay. Any context.
 */
kprobe_opcode_t *arch_adjust_kprobe_addr(unsigned long addr, unsigned long offset,
					 bool *on_func_entry);

/*
 * arch_seek_insn() - Decode instructions from *@pos, where one starts, up to @addr, not below it
 *
 * Advances *@pos, and then sets *@before to the address of the instruction, or sequence, before it.
 * Optional, for an architecture with instructions of different lengths or with reserved
 * instructions. The others leave the check to arch_prepare_kprobe().
 *
 * Returns 0 if an instruction starts at @addr, with *@pos set to @addr; -EILSEQ if none does, with
 * *@pos after @addr if the text up to there could be decoded; -EINVAL if it is part of a sequence
 * that must not change; -EBUSY if the jump of another site uses it.
 */
int arch_seek_insn(unsigned long *pos, unsigned long *before, unsigned long addr);

/* alloc_insn_page() - Allocate an executable page for copied instructions, or NULL (optional) */
void *alloc_insn_page(void);

/*
 * arch_prepare_kprobe() - Prepare all that a hit at a site needs, which is in no index yet
 *
 * It reads the instruction at @p->addr into @p->opcode, and chooses how it will be executed: by a
 * copy in the slot that kprobe_get_insn_slot() or get_insn_slot() allocates, or by emulation. The
 * text stays as it is. @p->flags are set.
 *
 * Returns 0; -EILSEQ if there is no instruction that could be decoded; -EINVAL or -EOPNOTSUPP if it
 * cannot be probed; -ENOMEM. After an error arch_remove_kprobe() is not called.
 */
int arch_prepare_kprobe(struct kprobe *p);

/* arch_prepare_kprobe_ftrace() - The same for a site that ftrace calls, if there may be any */
int arch_prepare_kprobe_ftrace(struct kprobe *p);

/*
 * arch_prepare_post_handler() - Prepare what only hits with post handlers need (optional)
 *
 * A probe with a post handler, perhaps not the first, is about to join the site. It is refused
 * with the error that is returned, one of arch_prepare_kprobe().
 */
int arch_prepare_post_handler(struct kprobe *p);

/*
 * arch_trampoline_kprobe() - 1 for the probe or site of a return trampoline, else 0 (optional)
 *
 * For an architecture whose trampoline is a breakpoint. Such a site stays armed while the knob
 * "enabled" is off, as calls in flight return to it. Any context.
 */
int arch_trampoline_kprobe(struct kprobe *p);

/*
 * arch_arm_kprobe() - Write the breakpoint; arch_sync_kprobes() follows a batch of calls
 *
 * Hits on other CPUs can find the site already.
 */
void arch_arm_kprobe(struct kprobe *p);

/*
 * arch_disarm_kprobe() - Restore the text in place of the breakpoint; see arch_arm_kprobe()
 *
 * Hits can still be in progress, and find the site until they end.
 */
void arch_disarm_kprobe(struct kprobe *p);

/*
 * arch_sync_kprobes() - Make patched text visible to all CPUs
 *
 * Optional, for an architecture whose arch_arm_kprobe() and arch_disarm_kprobe() leave the
 * synchronisation to the end of a batch.
 */
void arch_sync_kprobes(void);

/*
 * kprobe_exceptions_notify() - Handle an exception, @val, that is reported to notify_die()
 *
 * Optional, for an architecture whose exceptions do not call the back end. Called in the context of
 * the exception, with a struct die_args as @data. Returns NOTIFY_STOP if the exception was one of a
 * hit, else NOTIFY_DONE.
 */
int kprobe_exceptions_notify(struct notifier_block *self, unsigned long val, void *data);

/*
 * arch_call_jprobe() - Call the handler of a jumper probe, from its pre handler
 *
 * For an architecture that selects HAVE_JPROBES. @regs are those at the entry of the probed
 * function, and stay as they are.
 */
void arch_call_jprobe(struct jprobe *jp, const struct pt_regs *regs);

/* While the guard is held, the probes of a site can be read: see links.c. */
DEFINE_LOCK_GUARD_0(kprobe_links, _T->flags = kprobe_links_lock(),
		    kprobe_links_unlock(_T->flags), unsigned long flags)

#else /* !CONFIG_KPROBES */

static inline struct kprobe *get_kprobe(void *addr)
{
	return NULL;
}

#endif /* CONFIG_KPROBES */

#ifdef CONFIG_KPROBES_ON_FTRACE

/*
 * kprobe_ftrace_handler() - Handle a hit at an ftrace site, at the address @ip
 *
 * An architecture provides it that selects HAVE_KPROBES_ON_FTRACE. Any context: preemption may be
 * enabled, and RCU may not be watching. @ops is the ftrace_ops that has called.
 */
void kprobe_ftrace_handler(unsigned long ip, unsigned long parent_ip,
			   struct ftrace_ops *ops, struct ftrace_regs *fregs);

extern bool kprobe_ftrace_disabled;

/* 1 if the architecture's kprobe_ftrace_handler() ignores calls for other ftrace_ops. */
#ifndef kprobe_ftrace_knows_ops
#define kprobe_ftrace_knows_ops	0
#endif
#endif

/* Jumps in place of breakpoints */

#ifdef CONFIG_OPTPROBES

/* A site, for an architecture that can put a jump there */
struct optimized_kprobe {
	struct kprobe kp;
	struct list_head list;	/* in a list of the optimiser, or of sites for the architecture */
	struct arch_optimized_insn optinsn;	/* its detour, the target of the jump */
};

/* No farther apart, in bytes, are two sites whose jumps need the same bytes. */
#ifndef KPROBE_JUMP_REACH
#define KPROBE_JUMP_REACH	MAX_OPTIMIZED_LENGTH
#endif

void opt_pre_handler(struct kprobe *p, struct pt_regs *regs);
kprobe_opcode_t *get_optinsn_slot(void);
kprobe_opcode_t *kprobe_get_optinsn_slot(struct kprobe *owner, unsigned int size);
struct kprobe *kprobe_optinsn_slot_owner(unsigned long addr);

static inline void free_optinsn_slot(kprobe_opcode_t *slot, int dirty)
{
	free_insn_slot(slot, dirty);
}

/*
 * Provided by an architecture's back end that selects HAVE_OPTPROBES, in the order of a
 * jump's life. What is optional has a weak default. Functions are called in process context with
 * kprobe_mutex held; those for which "text locks" are given also with the hotplug lock and
 * text_mutex.
 */

/*
 * arch_learn_text() - Analyse the text at @addr for arch_prepare_optimized_kprobe()
 *
 * Optional, for an architecture that must know the targets of all jumps. One call must do no more
 * than a part of the work. Returns 1 if it is to be called again, 0 if the analysis is complete, or
 * an error if there can be no jump at @addr.
 */
int arch_learn_text(unsigned long addr);

/*
 * arch_forget_text() - Drop what arch_learn_text() found in a text (optional)
 *
 * The text is that of a module, which goes away; or that of the kernel, which is learned again when
 * that is needed.
 */
void arch_forget_text(struct kprobe_text *text);

/*
 * alloc_optinsn_page() - Allocate a page for detours, or NULL (optional); text locks
 *
 * The page is executable and within reach of a jump.
 */
void *alloc_optinsn_page(void);

/* free_optinsn_page() - Free a page for detours (optional) */
void free_optinsn_page(void *page);

/*
 * arch_prepare_optimized_kprobe() - Make a site's detour; @orig is its struct kprobe; text locks
 *
 * The detour calls the handlers, runs the instructions that the jump will displace, and
 * returns to the text after them. It is a slot of get_optinsn_slot() or one of its kin.
 *
 * Returns 0, or an error: then the site keeps its breakpoint. -ENOMEM and -EAGAIN mean that
 * it is tried again later. Others are shown in debugfs.
 */
int arch_prepare_optimized_kprobe(struct optimized_kprobe *op, struct kprobe *orig);

/* arch_prepared_optinsn() - 1 if a site, whose data is @optinsn, has a detour, else 0 */
int arch_prepared_optinsn(struct arch_optimized_insn *optinsn);

/* arch_detour_suits() - True if a site's detour calls all handlers (optional) */
bool arch_detour_suits(struct optimized_kprobe *op);

/* arch_within_optimized_kprobe() - 1 if the jump to a site's detour displaces @addr, else 0 */
int arch_within_optimized_kprobe(struct optimized_kprobe *op, kprobe_opcode_t *addr);

/*
 * arch_check_optimized_kprobe() - Check that nothing stands in the way of a jump; text locks
 *
 * The site has a detour, and no other site is armed where the jump will be. Returns 0, or an
 * error as arch_prepare_optimized_kprobe() does.
 */
int arch_check_optimized_kprobe(struct optimized_kprobe *op);

/*
 * arch_use_detour() - Let hits of the breakpoint run displaced instructions in the detour
 *
 * If not @use, let them run in the slot again. Optional, for an architecture whose jumps displace
 * more than a breakpoint does.
 */
void arch_use_detour(struct optimized_kprobe *op, bool use);

/*
 * arch_optimize_kprobes() - Write jumps in place of breakpoints; text locks
 *
 * The call empties @oplist, which is in address order, by list_del_init(). No task is in the text
 * that the jumps displace, but for the first byte of each.
 */
void arch_optimize_kprobes(struct list_head *oplist);

/*
 * arch_unoptimize_kprobes() - Write breakpoints in place of jumps; text locks
 *
 * The call moves the sites from @oplist, which is in address order, to @done_list.
 */
void arch_unoptimize_kprobes(struct list_head *oplist, struct list_head *done_list);

/* arch_remove_optimized_kprobe() - Free a site's detour, if any, in which no task is any more */
void arch_remove_optimized_kprobe(struct optimized_kprobe *op);

/* Provided by some back ends, but not called by the manager */
void arch_unoptimize_kprobe(struct optimized_kprobe *op);

#endif /* CONFIG_OPTPROBES */

#endif /* _LINUX_KPROBES_ARCH_H */
