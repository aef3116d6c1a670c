// SPDX-License-Identifier: GPL-2.0
/*
 * Calls of return-probed functions, where rethook follows them: it has the
 * trampoline, the list of the calls of each task, and the pool of instances. So
 * this stands in the place of call.c and instance.c.
 *
 * A pool is as large as it was made. Unregistration goes the same way as there:
 * a stopped rethook gives no instance away and calls no handler, and those of
 * calls in flight come back to it when the calls return; the last one frees it.
 */
#include "internal.h"

#include <linux/atomic.h>
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/minmax.h>

static __always_inline void count_miss(struct kretprobe *rp)
{
	BUILD_BUG_ON(sizeof(rp->nmissed) != sizeof(atomic_t));
	raw_atomic_inc((atomic_t *)&rp->nmissed);
}

static __always_inline bool is_stopped(const struct kretprobe *rp)
{
	return !rcu_access_pointer(rp->rh->handler);
}

/**
 * kretprobe_entered - A return-probed function is entered: the pre handler
 * @p: The return probe's probe.
 * @regs: The registers at the function's entry.
 *
 * Context: As a pre handler.
 * Return: 0.
 */
notrace int __kprobes kretprobe_entered(struct kprobe *p, struct pt_regs *regs)
{
	struct kretprobe *rp = container_of(p, struct kretprobe, kp);
	struct rethook_node *call = rethook_try_get(rp->rh);
	struct kretprobe_instance *ri;

	if (unlikely(!call)) {
		if (!is_stopped(rp))
			count_miss(rp);
		return 0;
	}
	ri = container_of(call, struct kretprobe_instance, node);
	if (rp->entry_handler && rp->entry_handler(ri, regs))
		rethook_recycle(call);
	else
		rethook_hook(call, regs, kprobe_ftrace(p));
	return 0;
}

/* Is a handler running? Where the trampoline is probed itself, its own pre handler calls us. */
static bool is_busy(struct kprobe *running)
{
	return running && !arch_trampoline_kprobe(running);
}

/*
 * A return-probed function has returned. Called by rethook with preemption off,
 * which keeps the return probe from being freed.
 */
static notrace void __kprobes kretprobe_returned(struct rethook_node *call, void *data,
						 unsigned long ret_addr, struct pt_regs *regs)
{
	struct kprobe *outer = kprobe_running();
	struct kretprobe *rp = data;

	if (!rp->handler)
		return;
	if (unlikely(is_busy(outer))) {
		count_miss(rp);
		return;
	}
	/* Of several nodes of one call only the oldest has found it in its place. */
	call->ret_addr = ret_addr;
	if (!outer)
		kprobe_busy_begin();
	raw_cpu_write(current_kprobe, &rp->kp);
	rp->handler(container_of(call, struct kretprobe_instance, node), regs);
	raw_cpu_write(current_kprobe, outer);
	if (!outer)
		kprobe_busy_end();
}

/**
 * kretprobe_pool_create - Make the instances of a return probe
 * @rp: The return probe. Its @rh is set.
 *
 * Context: Process context. May sleep.
 * Return: 0 or -ENOMEM, also if there cannot be so many.
 */
int kretprobe_pool_create(struct kretprobe *rp)
{
	int count = rp->maxactive > 0 ? rp->maxactive : max(10U, 2 * num_possible_cpus());
	struct rethook *rh;

	rh = rethook_alloc(rp, kretprobe_returned,
			   sizeof(struct kretprobe_instance) + rp->data_size, count);
	if (IS_ERR(rh))
		return -ENOMEM;
	rp->rh = rh;
	return 0;
}

/**
 * kretprobe_pool_stop - Let handlers of a return probe no longer be called
 * @rp: The return probe. Those that are being called may go on for a grace
 *	period.
 *
 * Context: Any.
 */
void kretprobe_pool_stop(struct kretprobe *rp)
{
	if (rp->rh)
		rethook_stop(rp->rh);
}

/* kretprobe_pools_settle - Wait for what stopped pools have left to be done: nothing. */
void kretprobe_pools_settle(void)
{
}

/**
 * kretprobe_pool_put - Give back the instances of a return probe
 * @rp: The return probe. A grace period has passed since it was stopped. Its @rh
 *	is cleared.
 *
 * Those of calls in flight follow when they return.
 *
 * Context: Process context.
 */
void kretprobe_pool_put(struct kretprobe *rp)
{
	if (!rp->rh)
		return;
	rethook_free(rp->rh);
	rp->rh = NULL;
}
