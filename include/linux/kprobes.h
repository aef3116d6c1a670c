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
struct kretprobe_chunk;
struct kretprobe_instance;
struct kretprobe_pool;
struct module;
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
 * Called in the same context as the pre handler.
 */
typedef void (*kprobe_post_handler_t)(struct kprobe *p, struct pt_regs *regs,
				      unsigned long flags);

typedef int (*kretprobe_handler_t)(struct kretprobe_instance *ri, struct pt_regs *regs);

/**
 * struct kprobe - Probe, owned by the caller
 * @hlist:	Never linked. Users test it together with @list for registration.
 * @list:	Linked while the probe is registered, and only then.
 * @nmissed:	The number of hits at which its handlers were not called.
 * @addr:	The probed address. May be given instead of @symbol_name, and is
 *		set by registration.
 * @symbol_name: The probed function, or NULL.
 * @offset:	Offset of the probed instruction from @symbol_name or @addr in bytes.
 * @pre_handler: Called before the instruction, or NULL.
 * @post_handler: Called after the instruction, or NULL.
 * @opcode:	The first unit of the displaced instruction.
 * @ainsn:	The architecture's copy of the instruction, in a site only.
 * @flags:	KPROBE_FLAG_*. A caller may set only KPROBE_FLAG_DISABLED and
 *		KPROBE_FLAG_REENTRANT before registration.
 * @number:	The number of the registration, which is never reused.
 *
 * A caller clears the whole struct, sets the address and the handlers, and leaves
 * it alone from registration to the end of unregistration.
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
	u32 number;
};

#define KPROBE_FLAG_GONE		BIT(0)	/* the probed text is gone */
#define KPROBE_FLAG_DISABLED		BIT(1)	/* handlers are not called */
#define KPROBE_FLAG_OPTIMIZED		BIT(2)	/* a jump is in place */
#define KPROBE_FLAG_FTRACE		BIT(3)	/* hit through ftrace */
#define KPROBE_FLAG_ON_FUNC_ENTRY	BIT(4)	/* at a function's entry */
#define KPROBE_FLAG_REENTRANT		BIT(5)	/*
						 * handlers may run in an
						 * interrupt or NMI that
						 * interrupted a handler
						 */

/* Progress of a hit on a CPU: values of kprobe_ctlblk::kprobe_status. */
#define KPROBE_HIT_ACTIVE	BIT(0)	/* a handler runs */
#define KPROBE_HIT_SS		BIT(1)	/* the copy of the instruction runs */
#define KPROBE_REENTER		BIT(2)	/* the copy runs for a hit inside a hit */
#define KPROBE_HIT_SSDONE	BIT(3)	/* the copy has run */

/* kprobe_gone() - True if the probed text is gone: the probe cannot be enabled */
static __always_inline bool kprobe_gone(const struct kprobe *p)
{
	return p->flags & KPROBE_FLAG_GONE;
}

/* kprobe_disabled() - True if the handlers are not called, also if the text is gone */
static __always_inline bool kprobe_disabled(const struct kprobe *p)
{
	return p->flags & (KPROBE_FLAG_GONE | KPROBE_FLAG_DISABLED);
}

/* kprobe_optimized() - True if a jump is in place of the breakpoint */
static __always_inline bool kprobe_optimized(const struct kprobe *p)
{
	return p->flags & KPROBE_FLAG_OPTIMIZED;
}

/* kprobe_ftrace() - True if the probe is hit through ftrace */
static __always_inline bool kprobe_ftrace(const struct kprobe *p)
{
	return p->flags & KPROBE_FLAG_FTRACE;
}

/**
 * struct kretprobe - Return probe, owned by the caller
 * @kp:		The probe at the function's entry. The caller must not set its
 *		handlers.
 * @handler:	Called when the function returns.
 * @entry_handler: Called at its entry; non-zero: the call is not followed.
 * @maxactive:	The maximum number of calls in flight. If it is 0 or less, there
 *		is no limit, but calls are missed if their number grows faster
 *		than instances can be allocated.
 * @nmissed:	The number of calls that were missed for lack of an instance.
 * @data_size:	Size in bytes of the private data of each call in flight, at most
 *		KRETPROBE_MAX_DATA_SIZE.
 * @rh:		The instances, with CONFIG_KRETPROBE_ON_RETHOOK.
 * @pool:	The instances.
 */
struct kretprobe {
	struct kprobe kp;
	kretprobe_handler_t handler;
	kretprobe_handler_t entry_handler;
	int maxactive;
	int nmissed;
	size_t data_size;
#ifdef CONFIG_KRETPROBE_ON_RETHOOK
	struct rethook *rh;
#else
	struct kretprobe_pool *pool;
#endif
};

#define KRETPROBE_MAX_DATA_SIZE	4096

/**
 * struct kretprobe_instance - Call in flight of a return-probed function
 * @node:	The node that rethook links.
 * @llist:	Entry in the task's kretprobe_instances, innermost call first.
 * @fp:		Key of the call: on x86 the address of its return address.
 * @ret_addr:	The address to which the function returns. With several return
 *		probes on one call, all but one instance have the trampoline here
 *		until they are handled.
 * @pool:	The instances of the return probe.
 * @chunk:	The chunk of @pool that the instance belongs to.
 * @data:	The private data of the return probe's handlers.
 */
struct kretprobe_instance {
#ifdef CONFIG_KRETPROBE_ON_RETHOOK
	struct rethook_node node;
#else
	struct llist_node llist;
	void *fp;
	kprobe_opcode_t *ret_addr;
	struct kretprobe_pool *pool;
	struct kretprobe_chunk *chunk;
#endif
	char data[];
};

/**
 * struct kretprobe_pool - Instances of a return probe
 * @rp:		The return probe; NULL once its unregistration has begun.
 * @cache:	For each CPU one free instance or NULL: the fast path.
 * @chunks:	The other instances, the newest and largest chunk first.
 * @taken:	The number of instances that are not in @chunks.
 * @total:	The number of all instances.
 * @adaptive:	True if more are allocated when they run short.
 * @is_short:	True while @short_node is linked.
 * @short_node:	Entry in the list of pools that have run short.
 * @users:	Chunks that have not been freed, plus one for the return probe.
 */
struct kretprobe_pool {
	struct kretprobe *rp;
	struct kretprobe_instance * __percpu *cache;
	struct kretprobe_chunk *chunks;
	atomic_t taken;
	unsigned int total;
	bool adaptive;
	bool is_short;
	struct llist_node short_node;
	refcount_t users;
};

/* Function that must not be return-probed: an entry of kretprobe_blacklist[]. */
struct kretprobe_blackpoint {
	const char *name;
	void *addr;
};

#ifdef CONFIG_KPROBES

DECLARE_PER_CPU(struct kprobe *, current_kprobe);
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

/* kprobe_running() - The site whose hit this CPU handles, or NULL. Preemption is off. */
static __always_inline struct kprobe *kprobe_running(void)
{
	return raw_cpu_read(current_kprobe);
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

/* Registration */
int register_kprobe(struct kprobe *p);
int register_kprobes(struct kprobe **kps, int num);
void unregister_kprobe(struct kprobe *p);
void unregister_kprobes(struct kprobe **kps, int num);
int enable_kprobe(struct kprobe *kp);
int disable_kprobe(struct kprobe *kp);

/* Queries by other subsystems */
bool within_kprobe_blacklist(unsigned long addr);
int kprobe_on_func_entry(kprobe_opcode_t *addr, const char *sym, unsigned long offset);
kprobe_opcode_t *kprobe_lookup_name(const char *name, unsigned int offset);
int kprobe_get_kallsym(unsigned int symnum, unsigned long *value, char *type, char *sym);
bool is_kprobe_insn_slot(unsigned long addr);
void kprobe_busy_begin(void);
void kprobe_busy_end(void);
void kprobe_free_init_mem(void);

/* Called by an architecture's back end */
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

/* Provided by an architecture's back end */
int arch_init_kprobes(void);
int arch_prepare_kprobe(struct kprobe *p);
void arch_arm_kprobe(struct kprobe *p);
void arch_disarm_kprobe(struct kprobe *p);
kprobe_opcode_t *arch_adjust_kprobe_addr(unsigned long addr, unsigned long offset,
					 bool *on_func_entry);

/* Provided by an architecture's back end in place of a weak default */
int arch_prepare_post_handler(struct kprobe *p);
int arch_seek_insn(unsigned long *pos, unsigned long addr);
void arch_sync_kprobes(void);
bool arch_within_kprobe_blacklist(unsigned long addr);
int arch_populate_kprobe_blacklist(void);
int arch_trampoline_kprobe(struct kprobe *p);
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
void kprobe_ftrace_kill(void);
extern bool kprobe_ftrace_disabled;

/* 1 if the architecture's kprobe_ftrace_handler() ignores calls for other ftrace_ops. */
#ifndef kprobe_ftrace_knows_ops
#define kprobe_ftrace_knows_ops	0
#endif
#else
static inline void kprobe_ftrace_kill(void) { }
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

void opt_pre_handler(struct kprobe *p, struct pt_regs *regs);
kprobe_opcode_t *get_optinsn_slot_for(struct kprobe *owner);
kprobe_opcode_t *get_optinsn_slot(void);
kprobe_opcode_t *get_post_optinsn_slot_for(struct kprobe *owner);
void free_optinsn_slot(kprobe_opcode_t *slot, int dirty);
struct kprobe *kprobe_optinsn_slot_owner(unsigned long addr);
bool is_kprobe_optinsn_slot(unsigned long addr);
void wait_for_kprobe_optimizer(void);

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

#else /* !CONFIG_OPTPROBES */

static inline bool is_kprobe_optinsn_slot(unsigned long addr)
{
	return false;
}

static inline void wait_for_kprobe_optimizer(void) { }

#endif /* CONFIG_OPTPROBES */

/* Return probes */

#ifdef CONFIG_KRETPROBES

extern struct kretprobe_blackpoint kretprobe_blacklist[];

int register_kretprobe(struct kretprobe *rp);
int register_kretprobes(struct kretprobe **rps, int num);
void unregister_kretprobe(struct kretprobe *rp);
void unregister_kretprobes(struct kretprobe **rps, int num);

#else /* !CONFIG_KRETPROBES */

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

#endif /* CONFIG_KRETPROBES */

#ifdef CONFIG_KRETPROBE_ON_RETHOOK

static __always_inline struct kretprobe *get_kretprobe(struct kretprobe_instance *ri)
{
	return ri->node.rethook->data;
}

static __always_inline unsigned long get_kretprobe_retaddr(struct kretprobe_instance *ri)
{
	return ri->node.ret_addr;
}

/* rethook recognises its trampolines, and recycles its nodes when a task exits. */
static __always_inline bool is_kretprobe_trampoline(unsigned long addr)
{
	return is_rethook_trampoline(addr);
}

static inline void kprobe_flush_task(struct task_struct *tsk) { }

#else /* !CONFIG_KRETPROBE_ON_RETHOOK */

/**
 * get_kretprobe() - Find the return probe of an instance
 * @ri: The instance.
 *
 * Context: A handler of the return probe, or any with preemption off.
 * Return: The return probe, or NULL if it is being unregistered.
 */
static __always_inline struct kretprobe *get_kretprobe(struct kretprobe_instance *ri)
{
	return READ_ONCE(ri->pool->rp);
}

/**
 * get_kretprobe_retaddr() - Find the address to which a return-probed function returns
 * @ri: The instance, in a handler that is called at the return.
 *
 * Return: The address in the caller.
 */
static __always_inline unsigned long get_kretprobe_retaddr(struct kretprobe_instance *ri)
{
	return (unsigned long)ri->ret_addr;
}

#ifdef CONFIG_KRETPROBES

/*
 * Called and provided by an architecture's trampoline. If a call stores the return
 * address in memory, the macro kretprobe_return_place(p, regs), which yields its
 * location at a function's entry, replaces arch_prepare_kretprobe().
 */
unsigned long kretprobe_trampoline_handler(struct pt_regs *regs, void *frame_pointer);
unsigned long __kretprobe_trampoline_handler(struct pt_regs *regs, void *frame_pointer);
void __kretprobe_trampoline(void);
void arch_prepare_kretprobe(struct kretprobe_instance *ri, struct pt_regs *regs);
void arch_kretprobe_fixup_return(struct pt_regs *regs, kprobe_opcode_t *correct_ret_addr);

/* Queries by other subsystems */
unsigned long kretprobe_find_ret_addr(struct task_struct *tsk, void *fp, struct llist_node **cur);
void kprobe_flush_task(struct task_struct *tsk);

/* Bytes after the trampoline's address that also stand for it in a stack. */
#ifndef KRETPROBE_TRAMPOLINE_SPAN
#define KRETPROBE_TRAMPOLINE_SPAN	0
#endif

/* is_kretprobe_trampoline() - True for an address that replaces a return address */
static __always_inline bool is_kretprobe_trampoline(unsigned long addr)
{
	void *trampoline = dereference_kernel_function_descriptor(__kretprobe_trampoline);

	return addr - (unsigned long)trampoline <= KRETPROBE_TRAMPOLINE_SPAN;
}

#else /* !CONFIG_KRETPROBES */

static __always_inline bool is_kretprobe_trampoline(unsigned long addr)
{
	return false;
}

static inline unsigned long kretprobe_find_ret_addr(struct task_struct *tsk, void *fp,
						    struct llist_node **cur)
{
	return 0;
}

static inline void kprobe_flush_task(struct task_struct *tsk) { }

#endif /* CONFIG_KRETPROBES */

#endif /* CONFIG_KRETPROBE_ON_RETHOOK */
static inline int enable_kretprobe(struct kretprobe *rp)
{
	return enable_kprobe(&rp->kp);
}

static inline int disable_kretprobe(struct kretprobe *rp)
{
	return disable_kprobe(&rp->kp);
}

/**
 * kprobe_page_fault() - Pass a page fault to a running probe
 * @regs: The registers at the fault.
 * @trap: The trap number, as the architecture counts them.
 *
 * Context: Any, from the page fault handler.
 * Return: true if the probe's back end has handled the fault.
 */
static __always_inline bool kprobe_page_fault(struct pt_regs *regs, unsigned int trap)
{
#ifdef CONFIG_KPROBES
	/* With preemption on, the probe that runs may be on another CPU. */
	if (!user_mode(regs) && !preemptible() && kprobe_running())
		return kprobe_fault_handler(regs, trap);
#endif
	return false;
}

#endif /* _LINUX_KPROBES_H */
