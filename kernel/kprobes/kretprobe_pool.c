// SPDX-License-Identifier: GPL-2.0
/*
 * Pools of return probes: an instance for each call in flight
 *
 * Instances are allocated in chunks, in process context, and handed out in any context.
 * On the fast path an instance is taken from and returned to a CPU's cache, see
 * <linux/kretprobes_hit.h>. This file has the slow path, from and to the chunks, and the work
 * in process context: a pool is queued for it when it is to grow, and when it is to go.
 *
 * A pool without a fixed size adds a chunk as large as all earlier ones when three
 * quarters of its instances are taken, those in the caches of CPUs included. If there is
 * no memory for it, that is tried again later.
 *
 * Unregistration: kretprobe_pool_drop() cuts off new users. A grace period waits for
 * users that saw the return probe. Then only calls in flight have instances, and the last
 * one that returns queues the pool once more. It is freed a grace period later, as other
 * tasks may still walk over an instance that has left its task's list.
 */
#include "internal.h"

#include <linux/align.h>
#include <linux/atomic.h>
#include <linux/cpumask.h>
#include <linux/irq_work.h>
#include <linux/kretprobes_hit.h>
#include <linux/llist.h>
#include <linux/minmax.h>
#include <linux/overflow.h>
#include <linux/percpu.h>
#include <linux/preempt.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

/*
 * The most instances of a pool without a fixed size, if they take less than 2 GB: no workload has
 * more calls in flight.
 */
#define MAX_INSTANCES	1000000

/* How long pools that got no memory wait, in jiffies, unless another one is queued. */
#define RETRY_DELAY	HZ

/* A call that is missed is better than a task that the OOM killer kills. */
#define POOL_GFP	(GFP_KERNEL | __GFP_NORETRY | __GFP_NOWARN)

/* Instances that were allocated together */
struct kretprobe_chunk {
	struct kretprobe_chunk *next;	/* the previous chunk of the pool */
	/*
	 * The instances that are free and not in a cache: a stack. The lower half is the offset of
	 * the top one in the chunk, or 0. An instance has the offset of the next one in its @fp.
	 * The upper half is changed by each operation: so one that was interrupted, in whatever
	 * context, does not take a top that has come back for the one that it saw.
	 */
	atomic64_t free;
	u64 instances[];
};

struct kretprobe kretprobe_none;

static LLIST_HEAD(kretprobe_queued_pools);
static LLIST_HEAD(kretprobe_dropped_pools);	/* without a return probe */

static void kretprobe_pool_work(struct work_struct *work);
static DECLARE_DELAYED_WORK(kretprobe_work, kretprobe_pool_work);

static void kretprobe_start_work(struct irq_work *work)
{
	mod_delayed_work(system_dfl_wq, &kretprobe_work, 0);
}

static struct irq_work kretprobe_irq_work = IRQ_WORK_INIT_HARD(kretprobe_start_work);

/* kretprobe_pools_look() - Let the work look at the pools that are queued. Any context. */
void __kprobes kretprobe_pools_look(void)
{
	kprobe_queue_irq_work(&kretprobe_irq_work);
}

/* Let the work look at a pool. Any context. */
static void __kprobes kretprobe_pool_queue(struct kretprobe_pool *pool)
{
	if (xchg(&pool->queued, 1))
		return;
	llist_add(&pool->node, &kretprobe_queued_pools);
	kretprobe_pools_look();
}

/* What @free of a chunk becomes when the instance at @offset is the new top. */
static __always_inline s64 kretprobe_chunk_top(s64 free, unsigned long offset)
{
	return ((free >> 32) + 1) << 32 | offset;
}

static __always_inline struct kretprobe_instance *
kretprobe_chunk_pop(struct kretprobe_chunk *chunk)
{
	s64 old = atomic64_read(&chunk->free), new;
	struct kretprobe_instance *ri;

	do {
		if (!(u32)old)
			return NULL;
		ri = (void *)chunk + (u32)old;
		new = kretprobe_chunk_top(old, (unsigned long)READ_ONCE(ri->fp));
	} while (!atomic64_try_cmpxchg(&chunk->free, &old, new));
	return ri;
}

static __always_inline void kretprobe_chunk_push(struct kretprobe_chunk *chunk,
						 struct kretprobe_instance *ri)
{
	s64 old = atomic64_read(&chunk->free), new;

	do {
		/* Another task may walk over the instance: it only compares this. */
		WRITE_ONCE(ri->fp, (void *)(unsigned long)(u32)old);
		new = kretprobe_chunk_top(old, (void *)ri - (void *)chunk);
	} while (!atomic64_try_cmpxchg(&chunk->free, &old, new));
}

static bool kretprobe_pool_add_chunk(struct kretprobe_pool *pool, struct kretprobe *rp,
				     unsigned int count)
{
	size_t bytes = size_add(sizeof(struct kretprobe_chunk), size_mul(count, pool->size));
	struct kretprobe_chunk *chunk = kvzalloc(bytes, POOL_GFP);
	struct kretprobe_instance *ri;

	if (!chunk)
		return false;
	chunk->next = pool->chunks;
	/* Offsets fit into half of @free: kvzalloc() has at most INT_MAX bytes. */
	for (size_t offset = sizeof(*chunk); offset < bytes; offset += pool->size) {
		ri = (void *)chunk + offset;
		ri->chunk = chunk;
		ri->pool = pool;
		ri->rp = rp;
		kretprobe_chunk_push(chunk, ri);
	}
	WRITE_ONCE(pool->total, pool->total + count);
	/* Pairs with the address dependency in kretprobe_take_uncached(). */
	smp_store_release(&pool->chunks, chunk);
	return true;
}

static void kretprobe_pool_free(struct kretprobe_pool *pool)
{
	struct kretprobe_chunk *chunk;

	while ((chunk = pool->chunks)) {
		pool->chunks = chunk->next;
		kvfree(chunk);
	}
	free_percpu(pool->cache);
	kfree(pool);
}

/*
 * kretprobe_pool_create() - Allocate the instances of a return probe
 *
 * Sets @pool and @cache of @rp, and its @maxactive if there is none. Returns 0, or -ENOMEM, also
 * if @maxactive is too large.
 */
int kretprobe_pool_create(struct kretprobe *rp)
{
	unsigned int count = rp->maxactive > 0 ? rp->maxactive : max(10U, 2 * num_possible_cpus());
	bool adaptive = rp->maxactive <= 0 || rp->maxactive == rp->chosen;
	struct kretprobe_pool *pool = kzalloc(sizeof(*pool), GFP_KERNEL);

	if (!pool)
		return -ENOMEM;
	pool->rp = rp;
	pool->size = ALIGN(sizeof(struct kretprobe_instance) + rp->data_size, sizeof(u64));
	pool->max = adaptive ? min(MAX_INSTANCES, INT_MAX / pool->size) : count;
	atomic_set(&pool->taken, 1);
	pool->cache = alloc_percpu(struct kretprobe_instance *);
	if (!pool->cache || !kretprobe_pool_add_chunk(pool, rp, count)) {
		kretprobe_pool_free(pool);
		return -ENOMEM;
	}
	rp->pool = pool;
	rp->cache = pool->cache;
	rp->maxactive = count;
	rp->chosen = adaptive ? count : 0;
	return 0;
}

/*
 * kretprobe_pool_drop() - Leave the instances of a return probe to the calls in flight
 *
 * The probe of @rp has been unlinked, or it has no instances. Handlers that are already running
 * may continue for a grace period. Any context.
 */
void kretprobe_pool_drop(struct kretprobe *rp)
{
	struct kretprobe_pool *pool = xchg(&rp->pool, NULL);

	if (!pool)
		return;
	/* If it is queued, it may be released as soon as @rp is none and this is over. */
	guard(preempt)();
	/* Pairs with kretprobe_if_registered(). */
	WRITE_ONCE(pool->rp, &kretprobe_none);
	kretprobe_pool_queue(pool);
}

/* @rp is its return probe, whose unregistration may have begun: hits that saw it still come. */
static void kretprobe_pool_grow(struct kretprobe_pool *pool, struct kretprobe *rp)
{
	unsigned int count = min(pool->total, pool->max - pool->total);

	if (count && !kretprobe_pool_add_chunk(pool, rp, count)) {
		/* It stays queued, so that no hit starts the work for it. */
		llist_add(&pool->node, &kretprobe_queued_pools);
		queue_delayed_work(system_dfl_wq, &kretprobe_work, RETRY_DELAY);
		return;
	}
	/* Pairs with kretprobe_pool_drop(), which may have found that it is queued. */
	smp_store_mb(pool->queued, 0);
	if (READ_ONCE(pool->rp) == &kretprobe_none)
		kretprobe_pool_queue(pool);
}

/*
 * A grace period has passed since the pool was queued, without its return probe. The first
 * time no hit uses the caches any more, the second time no stack trace is at an instance.
 */
static void kretprobe_pool_release(struct kretprobe_pool *pool)
{
	int cpu, count = 1;

	if (!atomic_read(&pool->taken)) {
		kretprobe_pool_free(pool);
		return;
	}
	for_each_possible_cpu(cpu)
		count += !!*per_cpu_ptr(pool->cache, cpu);
	WRITE_ONCE(pool->queued, 0);
	if (atomic_sub_and_test(count, &pool->taken))
		kretprobe_pool_queue(pool);
}

/* Work of its own: pools that are to grow must not wait for it. */
static void kretprobe_release_pools(struct work_struct *work)
{
	struct llist_node *dropped = llist_del_all(&kretprobe_dropped_pools);
	struct kretprobe_pool *pool, *next;

	kprobes_wait_for_handlers();	/* and for readers of the tasks' lists */
	llist_for_each_entry_safe(pool, next, dropped, node)
		kretprobe_pool_release(pool);
}

static DECLARE_WORK(kretprobe_release_work, kretprobe_release_pools);

static void kretprobe_pool_work(struct work_struct *work)
{
	struct kretprobe_pool *pool, *next;
	struct kretprobe *rp;

	llist_for_each_entry_safe(pool, next, llist_del_all(&kretprobe_queued_pools), node) {
		rp = READ_ONCE(pool->rp);	/* pairs with kretprobe_pool_drop() */
		if (rp != &kretprobe_none)
			kretprobe_pool_grow(pool, rp);
		else if (llist_add(&pool->node, &kretprobe_dropped_pools))
			queue_work(system_dfl_wq, &kretprobe_release_work);
	}
}

/* Empty the caches of other CPUs before a pool misses a call. */
static struct kretprobe_instance * __kprobes
kretprobe_take_from_caches(struct kretprobe_pool *pool)
{
	struct kretprobe_instance **cache, *ri;
	int cpu;

	for_each_possible_cpu(cpu) {
		cache = per_cpu_ptr(pool->cache, cpu);
		/* Every hit that is missed comes here: do not write to an empty cache. */
		ri = READ_ONCE(*cache) ? xchg(cache, NULL) : NULL;
		if (ri)
			return ri;
	}
	return NULL;
}

/* kretprobe_take_uncached() - Take an instance that is not in this CPU's cache, or NULL */
struct kretprobe_instance *kretprobe_take_uncached(struct kretprobe_pool *pool)
{
	struct kretprobe_chunk *chunk = READ_ONCE(pool->chunks);
	struct kretprobe_instance *ri = NULL;
	unsigned int total;

	for (; chunk && !ri; chunk = chunk->next)
		ri = kretprobe_chunk_pop(chunk);
	if (ri)
		atomic_inc(&pool->taken);
	else
		ri = kretprobe_take_from_caches(pool);
	/* The pool may be growing. An old number makes it grow once more, at worst. */
	total = READ_ONCE(pool->total);
	if (total < pool->max && atomic_read(&pool->taken) > total - total / 4)
		kretprobe_pool_queue(pool);
	return ri;
}

/*
 * kretprobe_put_uncached() - Release an instance other than to this CPU's cache
 *
 * kretprobe_pool_queue() calls functions that may be return-probed, which may end here again:
 * but once for a pool, when its return probe has gone.
 */
void kretprobe_put_uncached(struct kretprobe_instance *ri)
{
	struct kretprobe_pool *pool = ri->pool;

	kretprobe_chunk_push(ri->chunk, ri);
	if (atomic_dec_and_test(&pool->taken))
		kretprobe_pool_queue(pool);
}
