/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The way of a hit from an address to the handlers, for architectures that want
 * it inline. What is here calls nothing but handlers, so that nothing on the way
 * can be probed.
 */
#ifndef _LINUX_KPROBES_HIT_H
#define _LINUX_KPROBES_HIT_H

#include <linux/hash.h>
#include <linux/instrumentation.h>
#include <linux/kprobes.h>
#include <linux/rbtree.h>
#include <linux/rculist.h>
#include <linux/sched.h>

/**
 * enum kprobe_site_state - Life of a site
 * @SITE_NEW:		Prepared; its text has never been touched.
 * @SITE_ARMED:		A breakpoint, or an ftrace call, leads to its probes.
 * @SITE_OPTIMIZING:	A breakpoint does, and what it displaced is run in the
 *			detour: those who are on the way to it another way are
 *			waited for.
 * @SITE_JUMP:		A jump to the detour leads to its probes.
 * @SITE_DISARMED:	All of its probes are disabled, or all probes are off.
 * @SITE_DYING:		The last probe has left. CPUs may be in its slots; a
 *			new probe at the address takes it over.
 * @SITE_GONE:		Its text went away; only its probes' owners still know.
 *
 * See site_set_state() for the way from one to another.
 */
enum kprobe_site_state {
	SITE_NEW,
	SITE_ARMED,
	SITE_OPTIMIZING,
	SITE_JUMP,
	SITE_DISARMED,
	SITE_DYING,
	SITE_GONE,
};

/**
 * struct kprobe_site - A probed address
 * @kp:		What the architecture sees. Its @addr, @opcode and @ainsn are
 *		constant, its @post_handler is set when the first probe comes that
 *		has one, and stays. Its @list is the head of the probes, newest
 *		first: written under kprobe_mutex, read under RCU.
 * @op:		The same for architectures that can put a jump there: their
 *		detour, and its @list is a link in one of the optimiser's lists.
 * @only:	Its one probe, if that is enabled and has a pre handler; or NULL:
 *		then @kp.list is to be walked. Written under kprobe_mutex.
 * @ops:	The ftrace_ops that it is armed with, or NULL. It is the same one as
 *		long as the site is armed, and only what it calls for is a hit.
 *		Written under kprobe_mutex.
 * @direct:	The number of its one probe, if it is in @only; or 0. Written
 *		under kprobe_mutex.
 * @has_post:	Whether a probe has a post handler. Written under kprobe_mutex.
 * @claimed:	Whether the other ftrace_ops has the address to keep rivals away.
 *		kprobe_mutex.
 * @unfit:	Why there is no jump: an error of arch_prepare_optimized_kprobe() or
 *		of optimizer.c, or 0. kprobe_mutex.
 * @state:	An enum kprobe_site_state. Written under kprobe_mutex by
 *		site_set_state().
 * @node:	In the ordered index. kprobe_mutex.
 * @batch:	In the batch that a call works on. kprobe_mutex.
 * @retired:	In a list of those to be freed. kprobe_mutex.
 * @rcu:	For the time after the last look at it.
 *
 * Invariant: every site is in the ordered index from its creation to the end;
 * and in the hash, too, unless it is gone. There is one at the most in the
 * hash for an address.
 */
struct kprobe_site {
	union {
		struct kprobe kp;
#ifdef CONFIG_OPTPROBES
		struct optimized_kprobe op;
#endif
	};
	struct kprobe *only;
	struct ftrace_ops *ops;
	unsigned int direct;
	s16 unfit;
	u8 state;
	bool has_post;
	bool claimed;
	struct rb_node node;
	struct list_head batch;
	union {
		struct list_head retired;
		struct rcu_head rcu;
	};
};

static __always_inline struct kprobe_site *site_of(struct kprobe *kp)
{
	return container_of(kp, struct kprobe_site, kp);
}

/**
 * struct kprobe_table - The sites, by address
 * @shift:	Of the hash value, to the right: it has BITS_PER_LONG - @shift bits.
 * @mask:	Number of slots, less one.
 * @filled:	How many slots are not empty: sites and tombstones. kprobe_mutex.
 * @live:	How many of them are sites. kprobe_mutex.
 * @rcu:	For the time after its replacement.
 * @slot:	A site stands in the first free slot from its hash value on, so
 *		a search ends at an empty one. Hence an erased site leaves a tombstone.
 *		An empty slot points to kprobe_nobody, whose address nothing has: a
 *		search that finds its site at once does not ask for it.
 *
 * Invariant: at most a third of the slots is filled.
 */
struct kprobe_table {
	unsigned int shift;
	unsigned int mask;
	unsigned int filled;
	unsigned int live;
	struct rcu_head rcu;
	struct kprobe __rcu *slot[];
};

extern struct kprobe_table __rcu *kprobe_table;
extern struct kprobe kprobe_nobody;

static __always_inline unsigned long kprobe_hash(const struct kprobe_table *table,
						 const void *addr)
{
	return ((unsigned long)addr * GOLDEN_RATIO_PRIME) >> table->shift;
}

struct kprobe *kprobe_find_further(const struct kprobe_table *table, unsigned long i,
				   const void *addr);

/* kprobe_find_first - What is in the first slot of an address: its site, another, or nobody */
static __always_inline struct kprobe *kprobe_find_first(const void *addr)
{
	const struct kprobe_table *table = rcu_dereference_raw(kprobe_table);

	return rcu_dereference_raw(table->slot[kprobe_hash(table, addr)]);
}

/* kprobe_find - get_kprobe(), inline */
static __always_inline struct kprobe *kprobe_find(const void *addr)
{
	const struct kprobe_table *table = rcu_dereference_raw(kprobe_table);
	unsigned long i = kprobe_hash(table, addr);
	struct kprobe *kp = rcu_dereference_raw(table->slot[i]);

	if (unlikely(kp->addr != addr))
		return kprobe_find_further(table, i, addr);
	/* It is not NULL, which the compiler is told not to learn from an access. */
	if (!kp)
		__builtin_unreachable();
	return kp;
}

/* kprobe_call_pre_handler - Returns whether it changed where execution goes on */
static __always_inline int kprobe_call_pre_handler(struct kprobe *p, struct pt_regs *regs)
{
	int changed;

	if (unlikely(!p->pre_handler))
		return 0;
	instrumentation_begin();
	changed = p->pre_handler(p, regs);
	instrumentation_end();
	return changed;
}

/* kprobe_call_pre_handlers - kprobe_pre_handlers(), inline for one probe */
static __always_inline int kprobe_call_pre_handlers(struct kprobe *site, struct pt_regs *regs)
{
	struct kprobe *only = READ_ONCE(site_of(site)->only);
	int changed;

	if (unlikely(!only))
		return kprobe_pre_handlers(site, regs);
	instrumentation_begin();
	changed = only->pre_handler(only, regs);
	instrumentation_end();
	return changed;
}

/* kprobe_call_post_handlers - kprobe_post_handlers(), inline for one probe */
static __always_inline void kprobe_call_post_handlers(struct kprobe *site, struct pt_regs *regs)
{
	struct kprobe *only = READ_ONCE(site_of(site)->only);

	if (unlikely(!only)) {
		kprobe_post_handlers(site, regs, 0);
	} else if (only->post_handler) {
		instrumentation_begin();
		only->post_handler(only, regs, 0);
		instrumentation_end();
	}
}

#if defined(CONFIG_KRETPROBES) && !defined(CONFIG_KRETPROBE_ON_RETHOOK)

/* All of these run where a probe has been hit. RCU is watching by then. */
notrace __kprobes struct kretprobe_instance *kretprobe_take_uncached(struct kretprobe_pool *pool);
notrace __kprobes void kretprobe_put_uncached(struct kretprobe_instance *ri);
notrace __kprobes struct kretprobe_instance *kretprobe_seek_call(void *fp);

/* kretprobe_take_cached - Take the free instance of this CPU, or return NULL */
static __always_inline struct kretprobe_instance *
kretprobe_take_cached(struct kretprobe_pool *pool)
{
	return raw_xchg(raw_cpu_ptr(pool->cache), NULL);
}

/* kretprobe_put - Give an instance back; @rp is what get_kretprobe() said of it */
static __always_inline void kretprobe_put(struct kretprobe_instance *ri,
					  const struct kretprobe *rp)
{
	struct kretprobe_instance *none = NULL;

	if (unlikely(!rp || !raw_try_cmpxchg(raw_cpu_ptr(ri->pool->cache), &none, ri))) {
		instrumentation_begin();
		kretprobe_put_uncached(ri);
		instrumentation_end();
	}
}

/* The instance of the call before, or before that, in the same task */
static __always_inline struct kretprobe_instance *
kretprobe_next(const struct kretprobe_instance *ri)
{
	return container_of(ri->llist.next, struct kretprobe_instance, llist);
}

/* Does another instance of the same call know where it returns to? */
static __always_inline bool kretprobe_is_outdone(const struct kretprobe_instance *ri)
{
	return ri->ret_addr == dereference_kernel_function_descriptor(__kretprobe_trampoline);
}

/* kretprobe_newest - The instance at the head of the task's list, or NULL */
static __always_inline struct kretprobe_instance *kretprobe_newest(void)
{
	struct llist_node *node = current->kretprobe_instances.first;

	return container_of_const(node, struct kretprobe_instance, llist);
}

/*
 * kretprobe_first - The newest instance of the call that returns now
 *
 * @last is set to the oldest one, which knows where it returns to.
 */
static __always_inline struct kretprobe_instance *kretprobe_first(void *fp,
								  struct kretprobe_instance **last)
{
	struct kretprobe_instance *first = kretprobe_newest(), *ri;

	if (unlikely(!first || first->fp != fp)) {
		instrumentation_begin();
		first = kretprobe_seek_call(fp);
		instrumentation_end();
	}
	for (ri = first; unlikely(kretprobe_is_outdone(ri)); ri = kretprobe_next(ri))
		;
	*last = ri;
	return first;
}

/*
 * kretprobe_unlink - Take the instances up to @last out of the task's list
 *
 * Until here a stack trace that meets the trampoline finds out by it where the
 * call returns to.
 */
static __always_inline void kretprobe_unlink(struct kretprobe_instance *last)
{
	WRITE_ONCE(current->kretprobe_instances.first, last->llist.next);
}

#endif

#endif /* _LINUX_KPROBES_HIT_H */
