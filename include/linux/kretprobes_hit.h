/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Instances of return probes, at a call and at its return
 *
 * These functions call no function that could be probed.
 */
#ifndef _LINUX_KRETPROBES_HIT_H
#define _LINUX_KRETPROBES_HIT_H

#include <linux/atomic.h>
#include <linux/build_bug.h>
#include <linux/instrumentation.h>
#include <linux/kprobes.h>
#include <linux/sched.h>

/* kretprobe_count_miss() - Count a call or a return whose handler is not called */
static __always_inline void kretprobe_count_miss(struct kretprobe *rp)
{
	BUILD_BUG_ON(sizeof(rp->nmissed) != sizeof(atomic_t));
	raw_atomic_inc((atomic_t *)&rp->nmissed);
}

#ifndef CONFIG_KRETPROBE_ON_RETHOOK

/* For a hit, or for kprobe_flush_task(). RCU is watching, and preemption is off. */
__kprobes struct kretprobe_instance *kretprobe_take_uncached(struct kretprobe_pool *pool);
__kprobes void kretprobe_put_uncached(struct kretprobe_instance *ri);
__kprobes struct kretprobe_instance *kretprobe_seek_call(void *fp);

/* In a pool whose return probe is stopped: it has no handler. */
extern struct kretprobe kretprobe_none;

/* kretprobe_if_registered() - The return probe of an instance, or NULL once it is stopped */
static __always_inline struct kretprobe *
kretprobe_if_registered(const struct kretprobe_instance *ri)
{
	/* Pairs with kretprobe_pool_drop(). */
	struct kretprobe *rp = READ_ONCE(ri->pool->rp);

	return rp != &kretprobe_none ? rp : NULL;
}

/* kretprobe_put() - Release an instance; @registered is what kretprobe_if_registered() said */
static __always_inline void kretprobe_put(struct kretprobe_instance *ri, bool registered)
{
	struct kretprobe_instance *none = NULL;

	if (unlikely(!registered || !raw_try_cmpxchg(raw_cpu_ptr(ri->pool->cache), &none, ri))) {
		instrumentation_begin();
		kretprobe_put_uncached(ri);
		instrumentation_end();
	}
}

/* kretprobe_next() - The next older instance of the same task */
static __always_inline struct kretprobe_instance *
kretprobe_next(const struct kretprobe_instance *ri)
{
	return container_of(ri->llist.next, struct kretprobe_instance, llist);
}

/* kretprobe_shares_ret_addr() - True if an older instance has saved what @ret_addr should be */
static __always_inline bool kretprobe_shares_ret_addr(const kprobe_opcode_t *ret_addr)
{
	return ret_addr == dereference_kernel_function_descriptor(__kretprobe_trampoline);
}

/* kretprobe_newest() - The instance at the head of the task's list, or NULL */
static __always_inline struct kretprobe_instance *kretprobe_newest(void)
{
	struct llist_node *node = current->kretprobe_instances.first;

	return container_of_const(node, struct kretprobe_instance, llist);
}

/*
 * kretprobe_first() - The newest instance of the call that is returning
 *
 * @last is set to the call's oldest instance, which has its return address.
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
	for (ri = first; unlikely(kretprobe_shares_ret_addr(ri->ret_addr)); ri = kretprobe_next(ri))
		;
	*last = ri;
	return first;
}

/* kretprobe_unlink() - Remove the instances up to @last from the list of its task, current */
static __always_inline void kretprobe_unlink(struct kretprobe_instance *last)
{
	WRITE_ONCE(last->task->kretprobe_instances.first, last->llist.next);
}

#endif

#endif /* _LINUX_KRETPROBES_HIT_H */
