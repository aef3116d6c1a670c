/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Kernel probes: call a handler when the kernel executes an instruction.
 *
 * See Documentation/trace/kprobes.rst.
 */
#ifndef _LINUX_KPROBES_H
#define _LINUX_KPROBES_H

#include <linux/bug.h>
#include <linux/compiler.h>
#include <linux/ftrace.h>
#include <linux/linkage.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/objpool.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/rethook.h>
#include <linux/smp.h>
#include <linux/spinlock.h>

#include <asm/kprobes.h>

struct kprobe;
struct kretprobe;
struct kretprobe_instance;
struct module;
struct pt_regs;

#ifndef CONFIG_KPROBES
typedef int kprobe_opcode_t;

/* An architecture without probes says nothing of them. */
struct arch_specific_insn {
	int dummy;
};
#endif

/**
 * typedef kprobe_pre_handler_t - Called before the probed instruction runs
 * @p: The probe.
 * @regs: The registers.
 *
 * Preemption is off, interrupts may be. Returning 0 lets the instruction run;
 * anything else says that the handler has changed where execution goes on:
 * then neither the instruction nor a post handler is run.
 */
typedef int (*kprobe_pre_handler_t)(struct kprobe *p, struct pt_regs *regs);

/**
 * typedef kprobe_post_handler_t - Called after the probed instruction has run
 * @p: The probe.
 * @regs: The registers.
 * @flags: 0 at present.
 *
 * In the same context as the pre handler.
 */
typedef void (*kprobe_post_handler_t)(struct kprobe *p, struct pt_regs *regs,
				      unsigned long flags);

typedef int (*kretprobe_handler_t)(struct kretprobe_instance *ri, struct pt_regs *regs);

/**
 * struct kprobe - A probe, owned by the caller
 * @hlist:	Not linked; asked together with @list whether it is registered.
 * @list:	Linked while the probe is registered, and only then.
 * @nmissed:	How often the probe was hit and its handlers were not called.
 * @addr:	The probed address. May be given instead of @symbol_name, and is
 *		set by registration.
 * @symbol_name: The probed function, or NULL.
 * @offset:	Bytes from @symbol_name or @addr to the probed instruction.
 * @pre_handler: Called before the instruction, or NULL.
 * @post_handler: Called after it, or NULL.
 * @opcode:	The first unit of the displaced instruction.
 * @ainsn:	The architecture's copy of it; in a site only.
 * @flags:	KPROBE_FLAG_*. A caller may set KPROBE_FLAG_DISABLED and
 *		KPROBE_FLAG_REENTRANT before registration, no other one.
 *
 * A caller clears the whole struct, fills in where and what, and leaves it
 * alone from registration to the end of unregistration.
 */
struct kprobe {
	struct hlist_node hlist;
	struct list_head list;
	unsigned long nmissed;
	kprobe_opcode_t *addr;
	const char *symbol_name;
	unsigned int offset;
	kprobe_pre_handler_t pre_handler;
	kprobe_post_handler_t post_handler;
	kprobe_opcode_t opcode;
	struct arch_specific_insn ainsn;
	u32 flags;
};

#define KPROBE_FLAG_GONE		BIT(0)	/* the probed text is no more */
#define KPROBE_FLAG_DISABLED		BIT(1)	/* handlers are not called */
#define KPROBE_FLAG_OPTIMIZED		BIT(2)	/* a jump is in place */
#define KPROBE_FLAG_FTRACE		BIT(3)	/* hit through ftrace */
#define KPROBE_FLAG_ON_FUNC_ENTRY	BIT(4)	/* at a function's entry */
#define KPROBE_FLAG_REENTRANT		BIT(5)	/*
						 * handlers may run in an
						 * interrupt or NMI that landed
						 * in another handler
						 */

/* What a CPU is doing for a probe: values of kprobe_ctlblk::kprobe_status. */
#define KPROBE_HIT_ACTIVE	BIT(0)	/* a handler runs */
#define KPROBE_HIT_SS		BIT(1)	/* the copy of the instruction runs */
#define KPROBE_REENTER		BIT(2)	/* the same for a hit inside a hit */
#define KPROBE_HIT_SSDONE	BIT(3)	/* the copy has run */

/* kprobe_gone - Is the probed text no more, so that the probe cannot be enabled? */
static __always_inline bool kprobe_gone(const struct kprobe *p)
{
	return p->flags & KPROBE_FLAG_GONE;
}

/* kprobe_disabled - Are the handlers not called? A gone probe is disabled, too. */
static __always_inline bool kprobe_disabled(const struct kprobe *p)
{
	return p->flags & (KPROBE_FLAG_GONE | KPROBE_FLAG_DISABLED);
}

/* kprobe_optimized - Is a jump in place instead of a breakpoint? */
static __always_inline bool kprobe_optimized(const struct kprobe *p)
{
	return p->flags & KPROBE_FLAG_OPTIMIZED;
}

/* kprobe_ftrace - Is the probe hit through ftrace? */
static __always_inline bool kprobe_ftrace(const struct kprobe *p)
{
	return p->flags & KPROBE_FLAG_FTRACE;
}

/**
 * struct kretprobe - A return probe, owned by the caller
 * @kp:		The probe at the function's entry.
 * @handler:	Called when the function returns.
 * @entry_handler: Called at its entry; non-zero: this call is not of interest.
 * @maxactive:	How many calls may be in flight, 0 for the default.
 * @nmissed:	How many returns were not seen for want of an instance.
 * @data_size:	Bytes of private data of each call in flight.
 */
struct kretprobe {
	struct kprobe kp;
	kretprobe_handler_t handler;
	kretprobe_handler_t entry_handler;
	int maxactive;
	int nmissed;
	size_t data_size;
};

#define KRETPROBE_MAX_DATA_SIZE	4096

/**
 * struct kretprobe_instance - One call in flight of a return-probed function
 * @ret_addr:	Where the function returns to.
 * @data:	The private data of the return probe's handlers.
 */
struct kretprobe_instance {
	kprobe_opcode_t *ret_addr;
	char data[];
};

#ifdef CONFIG_KPROBES

DECLARE_PER_CPU(struct kprobe *, current_kprobe);
DECLARE_PER_CPU(struct kprobe_ctlblk, kprobe_ctlblk);

/* preempt_count() when the handler that runs was called. */
DECLARE_PER_CPU(unsigned int, kprobe_context);

/*
 * kprobe_context_level - The context level in preempt_count(), which grows with it
 *
 * Two hits compare: one that interrupted the handler of the other, from above,
 * has the larger value; one that the handler brought about has the same. Inside
 * a breakpoint exception, which counts as an NMI, it is that of the exception.
 */
static __always_inline unsigned int kprobe_context_level(unsigned int count)
{
	return count & (NMI_MASK | HARDIRQ_MASK | SOFTIRQ_OFFSET);
}

/* kprobe_running - The site this CPU works for, or NULL. Preemption is off. */
static __always_inline struct kprobe *kprobe_running(void)
{
	return raw_cpu_read(current_kprobe);
}

/* reset_current_kprobe - This CPU works for no probe any more. */
static __always_inline void reset_current_kprobe(void)
{
	raw_cpu_write(current_kprobe, NULL);
}

/* get_kprobe_ctlblk - Where this CPU keeps what it does for a probe. */
static __always_inline struct kprobe_ctlblk *get_kprobe_ctlblk(void)
{
	return raw_cpu_ptr(&kprobe_ctlblk);
}

/* The interface for probing. */
int register_kprobe(struct kprobe *p);
int register_kprobes(struct kprobe **kps, int num);
void unregister_kprobe(struct kprobe *p);
void unregister_kprobes(struct kprobe **kps, int num);
int enable_kprobe(struct kprobe *kp);
int disable_kprobe(struct kprobe *kp);

/* What others ask of probes. */
bool within_kprobe_blacklist(unsigned long addr);
int kprobe_on_func_entry(kprobe_opcode_t *addr, const char *sym, unsigned long offset);
kprobe_opcode_t *kprobe_lookup_name(const char *name, unsigned int offset);
int kprobe_get_kallsym(unsigned int symnum, unsigned long *value, char *type, char *sym);
bool is_kprobe_insn_slot(unsigned long addr);
void kprobe_busy_begin(void);
void kprobe_busy_end(void);
void kprobe_free_init_mem(void);

/* What an architecture's back end calls. */
struct kprobe *get_kprobe(void *addr);
int kprobe_pre_handlers(struct kprobe *site, struct pt_regs *regs);
int kprobe_pre_handlers_nested(struct kprobe *site, struct pt_regs *regs);
void kprobe_post_handlers(struct kprobe *site, struct pt_regs *regs, unsigned long flags);
void kprobe_post_handlers_nested(struct kprobe *site, struct pt_regs *regs);
void kprobes_inc_nmissed_count(struct kprobe *p);
kprobe_opcode_t *get_insn_slot_for(struct kprobe *owner);
struct kprobe *kprobe_slot_owner(unsigned long addr);
void dump_kprobe(struct kprobe *kp);
kprobe_opcode_t *get_insn_slot(void);
void free_insn_slot(kprobe_opcode_t *slot, int dirty);
int kprobe_add_ksym_blacklist(unsigned long entry);
int kprobe_add_area_blacklist(unsigned long start, unsigned long end);

/* What an architecture's back end provides. */
int arch_init_kprobes(void);
int arch_prepare_kprobe(struct kprobe *p);
void arch_arm_kprobe(struct kprobe *p);
void arch_disarm_kprobe(struct kprobe *p);
kprobe_opcode_t *arch_adjust_kprobe_addr(unsigned long addr, unsigned long offset,
					 bool *on_func_entry);

/* And what it may, in place of a default. */
int arch_prepare_post_handler(struct kprobe *p);
int arch_seek_insn(unsigned long *pos, unsigned long addr);
void arch_sync_kprobes(void);
bool arch_within_kprobe_blacklist(unsigned long addr);
int arch_populate_kprobe_blacklist(void);
void *alloc_insn_page(void);
int kprobe_exceptions_notify(struct notifier_block *self, unsigned long val, void *data);

#else /* !CONFIG_KPROBES */

static inline struct kprobe *get_kprobe(void *addr)
{
	return NULL;
}

static inline struct kprobe *kprobe_running(void)
{
	return NULL;
}

static inline int register_kprobe(struct kprobe *p)
{
	return -EOPNOTSUPP;
}

static inline int register_kprobes(struct kprobe **kps, int num)
{
	return -EOPNOTSUPP;
}

static inline int enable_kprobe(struct kprobe *kp)
{
	return -EOPNOTSUPP;
}

static inline int disable_kprobe(struct kprobe *kp)
{
	return -EOPNOTSUPP;
}

static inline bool within_kprobe_blacklist(unsigned long addr)
{
	return true;
}

static inline int kprobe_get_kallsym(unsigned int symnum, unsigned long *value,
				     char *type, char *sym)
{
	return -ERANGE;
}

static inline bool is_kprobe_insn_slot(unsigned long addr)
{
	return false;
}

static inline void unregister_kprobe(struct kprobe *p) { }
static inline void unregister_kprobes(struct kprobe **kps, int num) { }
static inline void dump_kprobe(struct kprobe *kp) { }
static inline void kprobe_busy_begin(void) { }
static inline void kprobe_busy_end(void) { }
static inline void kprobe_free_init_mem(void) { }

#endif /* CONFIG_KPROBES */

#ifdef CONFIG_KPROBES_ON_FTRACE
void kprobe_ftrace_handler(unsigned long ip, unsigned long parent_ip,
			   struct ftrace_ops *ops, struct ftrace_regs *fregs);
int arch_prepare_kprobe_ftrace(struct kprobe *p);
bool kprobe_armed_by(struct kprobe *site, const struct ftrace_ops *ops);
void kprobe_ftrace_kill(void);
extern bool kprobe_ftrace_disabled;
#else
static inline void kprobe_ftrace_kill(void) { }
#endif

/* Jumps in place of breakpoints */

static inline bool is_kprobe_optinsn_slot(unsigned long addr)
{
	return false;
}

static inline void wait_for_kprobe_optimizer(void) { }

/* Return probes */

static inline int register_kretprobe(struct kretprobe *rp)
{
	return -EOPNOTSUPP;
}

static inline int register_kretprobes(struct kretprobe **rps, int num)
{
	return -EOPNOTSUPP;
}

static inline void unregister_kretprobe(struct kretprobe *rp) { }
static inline void unregister_kretprobes(struct kretprobe **rps, int num) { }
static inline void kprobe_flush_task(struct task_struct *tsk) { }

static nokprobe_inline struct kretprobe *get_kretprobe(struct kretprobe_instance *ri)
{
	return NULL;
}

static nokprobe_inline unsigned long get_kretprobe_retaddr(struct kretprobe_instance *ri)
{
	return (unsigned long)ri->ret_addr;
}

static __always_inline bool is_kretprobe_trampoline(unsigned long addr)
{
	return false;
}

static inline int enable_kretprobe(struct kretprobe *rp)
{
	return enable_kprobe(&rp->kp);
}

static inline int disable_kretprobe(struct kretprobe *rp)
{
	return disable_kprobe(&rp->kp);
}

/**
 * kprobe_page_fault - Offer a page fault to a running probe
 * @regs: The registers at the fault.
 * @trap: The trap number, as the architecture counts them.
 *
 * Context: Any, from the page fault handler.
 * Return: true when the probe's back end has dealt with the fault.
 */
static __always_inline bool kprobe_page_fault(struct pt_regs *regs, unsigned int trap)
{
#ifdef CONFIG_KPROBES
	/* Only with preemption off is this the CPU that the probe runs on. */
	if (!user_mode(regs) && !preemptible() && kprobe_running())
		return kprobe_fault_handler(regs, trap);
#endif
	return false;
}

#endif /* _LINUX_KPROBES_H */
