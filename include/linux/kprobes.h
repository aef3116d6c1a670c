/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Kernel probes: call a handler when the kernel executes an instruction.
 *
 * See Documentation/trace/kprobes.rst.
 */
#ifndef _LINUX_KPROBES_H
#define _LINUX_KPROBES_H

#include <linux/bits.h>
#include <linux/bug.h>
#include <linux/compiler.h>
#include <linux/errno.h>
#include <linux/ftrace.h>
#include <linux/linkage.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/smp.h>
#include <linux/spinlock.h>

#include <asm/kprobes.h>

struct kprobe;
struct pt_regs;

#ifndef CONFIG_KPROBES
typedef int kprobe_opcode_t;

/* Without CONFIG_KPROBES the architecture does not define it. */
struct arch_specific_insn {
	int dummy;
};
#endif

/**
 * typedef kprobe_pre_handler_t - Called before the probed instruction runs
 * @p: The probe.
 * @regs: The registers.
 *
 * Preemption is off, and interrupts may be off. If the handler returns 0, the
 * instruction runs. Any other value means that the handler has changed the path:
 * then neither the instruction nor a post handler runs.
 */
typedef int (*kprobe_pre_handler_t)(struct kprobe *p, struct pt_regs *regs);

/**
 * typedef kprobe_post_handler_t - Called after the probed instruction has run
 * @p: The probe.
 * @regs: The registers.
 * @flags: 0 at present.
 *
 * Preemption is off. in_nmi(), interrupts and the CPU may differ from those of the pre handler.
 */
typedef void (*kprobe_post_handler_t)(struct kprobe *p, struct pt_regs *regs,
				      unsigned long flags);

/**
 * typedef kprobe_fault_handler_t - Called when the instruction or a handler faults
 * @p: The probe.
 * @regs: The registers at the fault. If the instruction faulted, @regs->ip is its
 *	address in the text.
 * @trapnr: The number of the exception, as the architecture counts them.
 *
 * Called in the context of the exception: it must not sleep, and interrupts may be off.
 * Non-zero means that it has handled the fault: execution continues at @regs->ip. If it
 * returns 0, the kernel handles the fault as that of the instruction or of the handler.
 *
 * x86 calls it. A page fault that the kernel resolves, as by reading the page, is not
 * reported.
 */
typedef int (*kprobe_fault_handler_t)(struct kprobe *p, struct pt_regs *regs, int trapnr);

/**
 * typedef kprobe_break_handler_t - Called when a handler executes a breakpoint
 * @p: The probe whose handler runs.
 * @regs: The registers at the breakpoint, with @regs->ip after it.
 *
 * It is not called for breakpoints of probes. If it returns non-zero, execution continues
 * at @regs->ip; if it returns 0, the breakpoint is passed to the rest of the kernel.
 *
 * x86 calls it.
 */
typedef int (*kprobe_break_handler_t)(struct kprobe *p, struct pt_regs *regs);

/**
 * struct kprobe - Probe, owned by the caller
 * @hlist:	Never linked. Users test it together with @list for registration.
 * @list:	Linked while the probe is registered, and only then.
 * @nmissed:	The number of hits at which its handlers were not called.
 * @addr:	The probed address. May be given instead of @symbol_name, and is
 *		set by registration, also by one that fails after it has found the symbol.
 * @symbol_name: The probed function, or NULL.
 * @offset:	Offset of the probed instruction from @symbol_name or @addr in bytes.
 * @opcode:	The first unit of the displaced instruction.
 * @pre_handler: Called before the instruction, or NULL.
 * @post_handler: Called after the instruction, or NULL.
 * @fault_handler: Called when the instruction or a handler faults, or NULL.
 * @break_handler: Called when a handler executes a breakpoint, or NULL.
 * @ainsn:	The architecture's copy of the instruction, in a site. In a registered probe
 *		as it was in the site then, for callers to read.
 * @flags:	KPROBE_FLAG_*. A caller may set only KPROBE_FLAG_DISABLED and
 *		KPROBE_FLAG_REENTRANT before registration.
 *
 * A caller clears the whole struct, and sets the address and the handlers. From registration
 * to the end of unregistration it may change handlers only: each hit calls those that it
 * finds, and none for NULL. The first hits after an address has got its first post handler may
 * miss it.
 */
struct kprobe {
	struct hlist_node hlist;
	struct list_head list;
	unsigned long nmissed;
	kprobe_opcode_t *addr;
	const char *symbol_name;
	unsigned int offset;
	kprobe_opcode_t opcode;
	kprobe_pre_handler_t pre_handler;
	kprobe_post_handler_t post_handler;
	kprobe_fault_handler_t fault_handler;
	kprobe_break_handler_t break_handler;
	struct arch_specific_insn ainsn;
	u32 flags;
};

#define KPROBE_FLAG_GONE		BIT(0)	/* the probed text is gone */
#define KPROBE_FLAG_DISABLED		BIT(1)	/* handlers are not called */
#define KPROBE_FLAG_OPTIMIZED		BIT(2)	/* a jump is in place */
#define KPROBE_FLAG_FTRACE		BIT(3)	/* hit through ftrace */
#define KPROBE_FLAG_ON_FUNC_ENTRY	BIT(4)	/* at a function's entry */
#define KPROBE_FLAG_REENTRANT		BIT(5)	/* also hit in interrupts and NMIs of a handler */

/* kprobe_gone() - True if the probed text is gone: the probe cannot be enabled */
static __always_inline bool kprobe_gone(const struct kprobe *p)
{
	return READ_ONCE(p->flags) & KPROBE_FLAG_GONE;
}

/* kprobe_disabled() - True if the handlers are not called, also if the text is gone */
static __always_inline bool kprobe_disabled(const struct kprobe *p)
{
	return READ_ONCE(p->flags) & (KPROBE_FLAG_GONE | KPROBE_FLAG_DISABLED);
}

/* kprobe_optimized() - True if a jump is in place of the breakpoint */
static __always_inline bool kprobe_optimized(const struct kprobe *p)
{
	return READ_ONCE(p->flags) & KPROBE_FLAG_OPTIMIZED;
}

/* kprobe_ftrace() - True if the probe is hit through ftrace */
static __always_inline bool kprobe_ftrace(const struct kprobe *p)
{
	return p->flags & KPROBE_FLAG_FTRACE;
}

#ifdef CONFIG_KPROBES

DECLARE_PER_CPU(struct kprobe *, current_kprobe);

/* kprobe_running() - The site or return probe whose handlers run on this CPU, or NULL */
static __always_inline struct kprobe *kprobe_running(void)
{
	return raw_cpu_read(current_kprobe);
}

/* Registration */
int register_kprobe(struct kprobe *p);
int register_kprobes(struct kprobe **kps, int num);
void unregister_kprobe(struct kprobe *p);
void unregister_kprobes(struct kprobe **kps, int num);
int enable_kprobe(struct kprobe *kp);
int disable_kprobe(struct kprobe *kp);
void kprobes_wait_for_handlers(void);

/* Queries by other subsystems */
bool within_kprobe_blacklist(unsigned long addr);
int kprobe_on_func_entry(kprobe_opcode_t *addr, const char *sym, unsigned long offset);
kprobe_opcode_t *kprobe_lookup_name(const char *name, unsigned int offset);
int kprobe_get_kallsym(unsigned int symnum, unsigned long *value, char *type, char *sym);
bool is_kprobe_insn_slot(unsigned long addr);
void kprobe_busy_begin(void);
void kprobe_busy_end(void);
void kprobe_forget_hit(void);
void kprobe_free_init_mem(void);

/* kprobe_page_fault() - True if the back end of a running probe has handled a page fault */
static __always_inline bool kprobe_page_fault(struct pt_regs *regs, unsigned int trap)
{
	/* With preemption on, the probe that runs may be on another CPU. */
	if (!user_mode(regs) && !preemptible() && kprobe_running())
		return kprobe_fault_handler(regs, trap);
	return false;
}

#else /* !CONFIG_KPROBES */

static inline struct kprobe *kprobe_running(void)
{
	return NULL;
}

static __always_inline bool kprobe_page_fault(struct pt_regs *regs, unsigned int trap)
{
	return false;
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
static inline void kprobes_wait_for_handlers(void) { }
static inline void kprobe_busy_begin(void) { }
static inline void kprobe_busy_end(void) { }
static inline void kprobe_forget_hit(void) { }
static inline void kprobe_free_init_mem(void) { }

#endif /* CONFIG_KPROBES */

#ifdef CONFIG_KPROBES_ON_FTRACE
void kprobe_ftrace_kill(void);
void kprobe_ftrace_off(void);
#else
static inline void kprobe_ftrace_kill(void) { }
static inline void kprobe_ftrace_off(void) { }
#endif

/* True for no address: is_kprobe_insn_slot() is true for detours, too. */
static inline bool is_kprobe_optinsn_slot(unsigned long addr)
{
	return false;
}

#ifdef CONFIG_OPTPROBES
void wait_for_kprobe_optimizer(void);
#else
static inline void wait_for_kprobe_optimizer(void) { }
#endif

/* Users of other kinds of probes, and back ends, include this header for all. */
#include <linux/jprobes.h>
#include <linux/kprobes_arch.h>
#include <linux/kretprobes.h>

#endif /* _LINUX_KPROBES_H */
