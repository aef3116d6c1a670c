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

#include <linux/bits.h>
#include <linux/cleanup.h>

struct module;
struct notifier_block;

/* Progress of a hit on a CPU: values of kprobe_ctlblk::kprobe_status. */
#define KPROBE_HIT_ACTIVE	BIT(0)	/* a handler runs */
#define KPROBE_HIT_SS		BIT(1)	/* the copy of the instruction runs */
#define KPROBE_REENTER		BIT(2)	/* the copy runs for a hit inside a hit */
#define KPROBE_HIT_SSDONE	BIT(3)	/* the copy has run */

#ifdef CONFIG_KPROBES

DECLARE_PER_CPU(struct kprobe_ctlblk, kprobe_ctlblk);

/* preempt_count() at the start of the running handler, for kprobe_context_level(). */
DECLARE_PER_CPU(unsigned int, kprobe_context);

/*
 * kprobe_context_level() - Extract the context level from a preempt_count()
 *
 * Levels compare like contexts: a hit that interrupted a handler has a higher level
 * than the handler, and a hit that the handler caused has the same level. Inside a
 * breakpoint exception, which counts as an NMI, it is the level of the exception.
 */
static __always_inline unsigned int kprobe_context_level(unsigned int count)
{
	return count & (NMI_MASK | HARDIRQ_MASK | SOFTIRQ_OFFSET);
}

/* No bit of preempt_count(), which may be 0 */
#define KPROBE_CONTEXT_SET	BIT(30)

/*
 * kprobe_is_in_context() - Check that nothing has interrupted what ran at a preempt_count()
 *
 * @count is that and KPROBE_CONTEXT_SET, or 0 if nothing runs there.
 */
static __always_inline bool kprobe_is_in_context(unsigned int count)
{
	return count && kprobe_context_level(preempt_count()) <= kprobe_context_level(count);
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
int kprobe_pre_handlers_nested(struct kprobe *site, struct pt_regs *regs);
void kprobe_post_handlers(struct kprobe *site, struct pt_regs *regs, unsigned long flags);
void kprobe_post_handlers_nested(struct kprobe *site, struct pt_regs *regs);
int kprobe_fault_handlers(struct kprobe *running, struct pt_regs *regs, int trapnr);
int kprobe_break_handlers(struct kprobe *running, struct pt_regs *regs);
void kprobes_inc_nmissed_count(struct kprobe *p);
unsigned long kprobe_links_lock(void);
void kprobe_links_unlock(unsigned long flags);
kprobe_opcode_t *get_insn_slot_for(struct kprobe *owner);
struct kprobe *kprobe_slot_owner(unsigned long addr);
void dump_kprobe(struct kprobe *kp);
kprobe_opcode_t *get_insn_slot(void);
void free_insn_slot(kprobe_opcode_t *slot, int dirty);
int kprobe_add_ksym_blacklist(unsigned long entry);
int kprobe_add_area_blacklist(unsigned long start, unsigned long end);

/* Provided by an architecture's back end */
int arch_init_kprobes(void);
int arch_prepare_kprobe(struct kprobe *p);
void arch_arm_kprobe(struct kprobe *p);
void arch_disarm_kprobe(struct kprobe *p);
kprobe_opcode_t *arch_adjust_kprobe_addr(unsigned long addr, unsigned long offset,
					 bool *on_func_entry);

/* Provided by an architecture's back end in place of a weak default */
int arch_prepare_post_handler(struct kprobe *p);
int arch_seek_insn(unsigned long *pos, unsigned long *before, unsigned long addr);
void arch_sync_kprobes(void);
bool arch_within_kprobe_blacklist(unsigned long addr);
int arch_populate_kprobe_blacklist(void);
int arch_trampoline_kprobe(struct kprobe *p);
void arch_call_jprobe(struct jprobe *jp, const struct pt_regs *regs);
void *alloc_insn_page(void);
int kprobe_exceptions_notify(struct notifier_block *self, unsigned long val, void *data);

/* While the guard is held, the probes of a site can be read: see links.c. */
DEFINE_LOCK_GUARD_0(kprobe_links, _T->flags = kprobe_links_lock(),
		    kprobe_links_unlock(_T->flags), unsigned long flags)

#else /* !CONFIG_KPROBES */

static inline struct kprobe *get_kprobe(void *addr)
{
	return NULL;
}

static inline void dump_kprobe(struct kprobe *kp) { }

#endif /* CONFIG_KPROBES */

#ifdef CONFIG_KPROBES_ON_FTRACE
void kprobe_ftrace_handler(unsigned long ip, unsigned long parent_ip,
			   struct ftrace_ops *ops, struct ftrace_regs *fregs);
int arch_prepare_kprobe_ftrace(struct kprobe *p);
extern bool kprobe_ftrace_disabled;

/* 1 if the architecture's kprobe_ftrace_handler() ignores calls for other ftrace_ops. */
#ifndef kprobe_ftrace_knows_ops
#define kprobe_ftrace_knows_ops	0
#endif
#endif

/* Jumps in place of breakpoints */

#ifdef CONFIG_OPTPROBES

/**
 * struct optimized_kprobe - Site, for an architecture that can put a jump there
 * @kp:		The site.
 * @list:	Entry in the lists of sites passed to the architecture, and in others.
 * @optinsn:	The architecture's data: its detour, the target of the jump.
 */
struct optimized_kprobe {
	struct kprobe kp;
	struct list_head list;
	struct arch_optimized_insn optinsn;
};

/* No farther apart, in bytes, are two sites whose jumps need the same bytes of padding. */
#ifndef KPROBE_JUMP_REACH
#define KPROBE_JUMP_REACH	0
#endif

void opt_pre_handler(struct kprobe *p, struct pt_regs *regs);
void optimizer_renew_detours(void);
kprobe_opcode_t *get_optinsn_slot_for(struct kprobe *owner);
kprobe_opcode_t *get_optinsn_slot(void);
kprobe_opcode_t *get_sized_optinsn_slot_for(struct kprobe *owner, unsigned int size);
void free_optinsn_slot(kprobe_opcode_t *slot, int dirty);
struct kprobe *kprobe_optinsn_slot_owner(unsigned long addr);

/* Provided by an architecture's back end */
int arch_prepared_optinsn(struct arch_optimized_insn *optinsn);
int arch_check_optimized_kprobe(struct optimized_kprobe *op);
int arch_prepare_optimized_kprobe(struct optimized_kprobe *op, struct kprobe *orig);
void arch_remove_optimized_kprobe(struct optimized_kprobe *op);
void arch_optimize_kprobes(struct list_head *oplist);
void arch_unoptimize_kprobes(struct list_head *oplist, struct list_head *done_list);
void arch_disarm_optimized_kprobes(struct list_head *oplist, struct list_head *done_list);
void arch_unoptimize_kprobe(struct optimized_kprobe *op);
int arch_within_optimized_kprobe(struct optimized_kprobe *op, kprobe_opcode_t *addr);

/* Provided by an architecture's back end in place of a weak default */
int arch_learn_text(unsigned long addr);
void arch_forget_text(const struct module *mod);
bool arch_detour_suits(struct optimized_kprobe *op);
void arch_use_detour(struct optimized_kprobe *op, bool use);
void *alloc_optinsn_page(void);
void free_optinsn_page(void *page);

#endif /* CONFIG_OPTPROBES */

#endif /* _LINUX_KPROBES_ARCH_H */
