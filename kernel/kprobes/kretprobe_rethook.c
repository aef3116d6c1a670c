// SPDX-License-Identifier: GPL-2.0
/*
 * Calls of return-probed functions on architectures that use rethook
 *
 * rethook has the trampoline, the list of each task's calls, and the pool of instances.
 * So this file replaces kretprobe_call.c and kretprobe_pool.c.
 *
 * A pool has a fixed size. A stopped rethook hands out no instance and calls no handler.
 * The instances of calls in flight are released at the return, the last with the rethook.
 */
#include "internal.h"

#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/kretprobes_hit.h>
#include <linux/minmax.h>

/* kretprobe_entered() - Pre handler of a return probe */
int __kprobes kretprobe_entered(struct kprobe *p, struct pt_regs *regs)
{
	struct kretprobe *rp = kretprobe_of(p);
	/* Pairs with kretprobe_pool_drop(). */
	struct rethook *rh = READ_ONCE(rp->rh);
	struct rethook_node *call = rh ? rethook_try_get(rh) : NULL;
	kretprobe_handler_t handler = READ_ONCE(rp->entry_handler);
	struct kretprobe_instance *ri;

	if (unlikely(!call)) {
		if (rh && rcu_access_pointer(rh->handler))
			kretprobe_count_miss(rp);
		return 0;
	}
	ri = container_of(call, struct kretprobe_instance, node);
	ri->rp = rp;
	ri->task = current;
	if (handler && handler(ri, regs))
		rethook_recycle(call);
	else	/* other flags change while the probe is registered */
		rethook_hook(call, regs, data_race(kprobe_ftrace(p)));
	return 0;
}

/*
 * Call the return handler. rethook calls this with preemption off, which keeps the
 * return probe from being freed.
 */
static void __kprobes
kretprobe_rethook_handler(struct rethook_node *call, void *data, unsigned long ret_addr,
			  struct pt_regs *regs)
{
	struct kprobe *outer = kprobe_running();
	struct kretprobe *rp = data;
	kretprobe_handler_t handler = READ_ONCE(rp->handler);

	if (!handler)
		return;
	/* The pre handler of a probed trampoline runs the return handlers: it does not count. */
	if (unlikely(outer && !arch_trampoline_kprobe(outer))) {
		kretprobe_count_miss(rp);
		return;
	}
	/* Only the oldest of several nodes of one call has saved the real address. */
	call->ret_addr = ret_addr;
	if (!outer)
		kprobe_busy_begin();
	raw_cpu_write(current_kprobe, &rp->kp);
	handler(container_of(call, struct kretprobe_instance, node), regs);
	raw_cpu_write(current_kprobe, outer);
	if (!outer)
		kprobe_busy_end();
}

/* kretprobe_pool_create() - As in kretprobe_pool.c; sets @rh instead of @pool and @cache */
int kretprobe_pool_create(struct kretprobe *rp)
{
	int count = rp->maxactive > 0 ? rp->maxactive : max(10U, 2 * num_possible_cpus());
	struct rethook *rh;

	rh = rethook_alloc(rp, kretprobe_rethook_handler,
			   sizeof(struct kretprobe_instance) + rp->data_size, count);
	if (IS_ERR(rh))
		return -ENOMEM;
	rp->rh = rh;
	rp->maxactive = count;
	return 0;
}

/* kretprobe_pool_drop() - As in kretprobe_pool.c, in a context in which call_rcu() is allowed */
void kretprobe_pool_drop(struct kretprobe *rp)
{
	struct rethook *rh = xchg(&rp->rh, NULL);

	if (!rh)
		return;
	rethook_stop(rh);
	rethook_free(rh);
}
