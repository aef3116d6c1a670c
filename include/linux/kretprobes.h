/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Return probes: call a handler when a function returns
 */
#ifndef _LINUX_KRETPROBES_H
#define _LINUX_KRETPROBES_H

#include <linux/kprobes.h>
#include <linux/llist.h>
#include <linux/rethook.h>

struct kretprobe_chunk;
struct kretprobe_instance;
struct task_struct;

typedef int (*kretprobe_handler_t)(struct kretprobe_instance *ri, struct pt_regs *regs);

/**
 * struct kretprobe - Return probe, owned by the caller
 * @kp:		The probe at the function's entry. The caller must not set its
 *		handlers.
 * @handler:	Called when the function returns.
 * @entry_handler: Called at its entry; non-zero: the call is not followed.
 * @maxactive:	The maximum number of calls in flight. If it is 0 or less, instances
 *		are allocated as they are needed, until there are a million or 2 GB of them, and
 *		calls are missed if their number grows faster. Registration then sets it to
 *		the number at first. With CONFIG_KRETPROBE_ON_RETHOOK the number is fixed
 *		then, too.
 * @nmissed:	The number of calls that were missed for lack of an instance, or since
 *		a handler ran when they returned.
 * @data_size:	Size in bytes of the private data of each call in flight, at most
 *		KRETPROBE_MAX_DATA_SIZE.
 * @rh:		The instances, with CONFIG_KRETPROBE_ON_RETHOOK.
 * @pool:	The instances.
 * @cache:	Those that are taken first: @cache of @pool.
 * @chosen:	What @maxactive was set to by registration, or 0. As long as it is the same,
 *		another registration finds that there was none.
 * @old_nmissed: What @nmissed was before registration, to be restored if that fails.
 * @old_maxactive: The same for @maxactive.
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
	struct kretprobe_instance * __percpu *cache;
#endif
	int chosen;
	int old_nmissed;
	int old_maxactive;
};

#define KRETPROBE_MAX_DATA_SIZE	4096

/**
 * struct kretprobe_instance - Call in flight of a return-probed function
 * @node:	The node that rethook links.
 * @llist:	Entry in the task's kretprobe_instances, innermost call first.
 * @fp:		Key of the call: on x86 the address of its return address, and NULL while
 *		the return handler runs.
 * @ret_addr:	The address to which the function returns. With several return
 *		probes on one call, all but one instance have the trampoline here
 *		until they are handled.
 * @pool:	The instances of the return probe.
 * @chunk:	The chunk of @pool that the instance belongs to.
 * @rp:		The return probe. Only its handlers may use it.
 * @task:	The task that has made the call.
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
	struct kretprobe *rp;
	struct task_struct *task;
	char data[];
};

/* Instances of a return probe */
struct kretprobe_pool {
	/*
	 * The return probe; &kretprobe_none once no entry handler of it will run any more, or
	 * once it has been unregistered by atomic code.
	 */
	struct kretprobe *rp;
	struct kretprobe_instance * __percpu *cache;	/* a free instance or NULL: the fast path */
	struct kretprobe_chunk *chunks;		/* the others, the newest and largest chunk first */
	atomic_t taken;		/* those not in @chunks, plus one until release; freed at 0 */
	unsigned int total;	/* the number of all instances */
	unsigned int max;	/* up to this more are allocated when they run short */
	int queued;		/* not 0 while nobody else may link @node; some exchange no byte */
	struct llist_node node;	/* in the list of pools that are to grow, or to be released */
	unsigned int size;	/* of an instance with its private data, in bytes */
};

/* Function that must not be return-probed: an entry of kretprobe_blacklist[]. */
struct kretprobe_blackpoint {
	const char *name;
	void *addr;
};

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

/**
 * get_kretprobe() - Find the return probe of an instance
 * @ri: The instance.
 *
 * Context: A handler of the return probe.
 * Return: The return probe, also if it is being unregistered.
 */
static __always_inline struct kretprobe *get_kretprobe(struct kretprobe_instance *ri)
{
	return ri->rp;
}

#ifdef CONFIG_KRETPROBE_ON_RETHOOK

static __always_inline unsigned long get_kretprobe_retaddr(struct kretprobe_instance *ri)
{
	return ri->node.ret_addr;
}

static __always_inline bool is_kretprobe_trampoline(unsigned long addr)
{
	return is_rethook_trampoline(addr);
}

#else /* !CONFIG_KRETPROBE_ON_RETHOOK */

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

/* The number of bytes of arguments that a return can pop. */
#ifndef KRETPROBE_MAX_POPPED
#define KRETPROBE_MAX_POPPED	0
#endif

/* Bytes after the trampoline's address that also stand for it in a stack. */
#ifndef KRETPROBE_TRAMPOLINE_SPAN
#define KRETPROBE_TRAMPOLINE_SPAN	0
#endif

/* is_kretprobe_trampoline() - True for an address that replaces a return address */
static __always_inline bool is_kretprobe_trampoline(unsigned long addr)
{
	void *trampoline;

	if (!IS_ENABLED(CONFIG_KRETPROBES))
		return false;
	trampoline = dereference_kernel_function_descriptor(__kretprobe_trampoline);
	return addr - (unsigned long)trampoline <= KRETPROBE_TRAMPOLINE_SPAN;
}

#endif /* CONFIG_KRETPROBE_ON_RETHOOK */

/* Queries by other subsystems. rethook has its own, and recycles its nodes when a task exits. */
#if defined(CONFIG_KRETPROBES) && !defined(CONFIG_KRETPROBE_ON_RETHOOK)
unsigned long kretprobe_find_ret_addr(struct task_struct *tsk, void *fp, struct llist_node **cur);
void kprobe_flush_task(struct task_struct *tsk);
#else
static inline unsigned long kretprobe_find_ret_addr(struct task_struct *tsk, void *fp,
						    struct llist_node **cur)
{
	return 0;
}

static inline void kprobe_flush_task(struct task_struct *tsk) { }
#endif

static inline int enable_kretprobe(struct kretprobe *rp)
{
	return enable_kprobe(&rp->kp);
}

static inline int disable_kretprobe(struct kretprobe *rp)
{
	return disable_kprobe(&rp->kp);
}

#endif /* _LINUX_KRETPROBES_H */
