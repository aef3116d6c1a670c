// SPDX-License-Identifier: GPL-2.0
/*
 * Instances of return probes, one for each call in flight
 *
 * Instances are allocated in chunks, in process context, and handed out in any context.
 * On the fast path an instance is taken from and returned to a CPU's cache, see
 * <linux/kprobes_hit.h>. This file has the slow path, from and to the chunks.
 *
 * A pool without a fixed size adds a chunk as large as all earlier ones when three
 * quarters of its instances are taken, those in the caches of CPUs included. If there is
 * no memory for it, that is tried again later.
 *
 * Unregistration: kretprobe_pool_stop() cuts off new users. A grace period waits for
 * users that saw the return probe. kretprobe_pool_put() releases the instances that
 * are not in flight. A call that returns later releases its instance itself, and the
 * last one frees the pool. The memory of instances is freed a grace period after they
 * have left the task's list, as other tasks may walk that list.
 */
#include "internal.h"

#include <linux/align.h>
#include <linux/atomic.h>
#include <linux/cpumask.h>
#include <linux/irq_work.h>
#include <linux/kprobes_hit.h>
#include <linux/llist.h>
#include <linux/minmax.h>
#include <linux/overflow.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include <kunit/visibility.h>

/* The most instances of a pool without a fixed size: no workload has more calls in flight. */
VISIBLE_IF_KUNIT unsigned int kretprobe_max_instances = 1000000;
EXPORT_SYMBOL_IF_KUNIT(kretprobe_max_instances);

/* How long a pool that got no memory waits, in jiffies. It doubles with each failure. */
#define RETRY_DELAY	(HZ / 10U)
#define RETRY_DELAY_MAX	(30U * HZ)

/* A call that is missed is better than a task that the OOM killer kills. */
#define POOL_GFP	(GFP_KERNEL | __GFP_NORETRY | __GFP_NOWARN)

/**
 * struct kretprobe_chunk - Instances that were allocated together
 * @next:	The previous chunk of the pool.
 * @pool:	The pool that the chunk belongs to.
 * @users:	The number of instances that have not been released, plus one until
 *		kretprobe_pool_free() has done with it.
 * @size:	The size of an instance in bytes.
 * @free:	The instances that are free and not in a cache: a stack. The lower half is the
 *		number of the top one, from 1 on, or 0. An instance has the number of the
 *		next one in its @fp. The upper half is changed by each operation: so one that
 *		was interrupted, in whatever context, does not take a top that has come back
 *		for the one that it saw.
 * @instances:	The instances.
 */
struct kretprobe_chunk {
	struct kretprobe_chunk *next;
	struct kretprobe_pool *pool;
	refcount_t users;
	unsigned int size;
	atomic64_t free;
	u64 instances[];
};

/*
 * Work for process context: pools that are to grow, and instances of stopped pools whose
 * calls have returned.
 */
static LLIST_HEAD(kretprobe_short_pools);
static LLIST_HEAD(kretprobe_returned_instances);

/* Pools of return probes that were unregistered where nobody could wait. */
static LLIST_HEAD(kretprobe_dropped_pools);

static DEFINE_PER_CPU(struct kretprobe_instance *, empty_cache);
static struct kretprobe_pool empty_pool = { .cache = &empty_cache };

/* Pools that got no memory. */
static LLIST_HEAD(kretprobe_starved_pools);

static void kretprobe_pool_work(struct work_struct *work);
static DECLARE_WORK(kretprobe_work, kretprobe_pool_work);

static void kretprobe_retry_work(struct work_struct *work);
static DECLARE_DELAYED_WORK(kretprobe_retry, kretprobe_retry_work);

static void kretprobe_schedule_work(struct irq_work *work)
{
	schedule_work(&kretprobe_work);
}

static DEFINE_IRQ_WORK(kretprobe_irq_work, kretprobe_schedule_work);

/*
 * llist_add() without a call, as it calls a function that may be return-probed. Returns
 * true if the list was empty: otherwise the work has already been queued.
 */
static __always_inline bool kretprobe_push_node(struct llist_node *node, struct llist_head *head)
{
	struct llist_node *first = READ_ONCE(head->first);

	do {
		/* kretprobe_find_ret_addr() of another task may be at this instance. */
		WRITE_ONCE(node->next, first);
	} while (!raw_try_cmpxchg(&head->first, &first, node));
	return !first;
}

/* -------------------------------------------- free instances of a chunk */

static __always_inline struct kretprobe_instance *
kretprobe_chunk_instance(struct kretprobe_chunk *chunk, u32 number)
{
	return (void *)chunk->instances + (size_t)(number - 1) * chunk->size;
}

/* What @free of a chunk becomes when @number is the new top. */
static __always_inline s64 kretprobe_chunk_next(s64 free, u32 number)
{
	return ((free >> 32) + 1) << 32 | number;
}

static __always_inline struct kretprobe_instance *
kretprobe_chunk_pop(struct kretprobe_chunk *chunk)
{
	s64 old = atomic64_read(&chunk->free), new;
	struct kretprobe_instance *ri;

	do {
		if (!(u32)old)
			return NULL;
		ri = kretprobe_chunk_instance(chunk, old);
		new = kretprobe_chunk_next(old, (unsigned long)READ_ONCE(ri->fp));
	} while (!atomic64_try_cmpxchg(&chunk->free, &old, new));
	return ri;
}

static __always_inline void kretprobe_chunk_push(struct kretprobe_chunk *chunk,
						 struct kretprobe_instance *ri)
{
	u32 number = (u32)((void *)ri - (void *)chunk->instances) / chunk->size + 1;
	s64 old = atomic64_read(&chunk->free);

	do {
		/* Another task may walk over the instance: it only compares this. */
		WRITE_ONCE(ri->fp, (void *)(unsigned long)(u32)old);
	} while (!atomic64_try_cmpxchg(&chunk->free, &old, kretprobe_chunk_next(old, number)));
}

/* ------------------------------------------------- allocation and release */

static void kretprobe_pool_unref(struct kretprobe_pool *pool)
{
	if (!refcount_dec_and_test(&pool->users))
		return;
	free_percpu(pool->cache);
	kfree(pool);
}

/* Drop @count users. */
static void kretprobe_chunk_drop(struct kretprobe_chunk *chunk, unsigned int count)
{
	if (!refcount_sub_and_test(count, &chunk->users))
		return;
	kretprobe_pool_unref(chunk->pool);
	kvfree(chunk);
}

static int kretprobe_pool_add_chunk(struct kretprobe_pool *pool, unsigned int count)
{
	size_t size = ALIGN(sizeof(struct kretprobe_instance) + pool->data_size, sizeof(u64));
	size_t bytes = size_add(sizeof(struct kretprobe_chunk), size_mul(count, size));
	struct kretprobe_chunk *chunk;
	struct kretprobe_instance *ri;

	/* kretprobe_chunk_push() calculates with 32 bits. */
	chunk = bytes <= INT_MAX ? kvzalloc(bytes, POOL_GFP) : NULL;
	if (!chunk)
		return -ENOMEM;
	chunk->pool = pool;
	chunk->next = pool->chunks;
	chunk->size = size;
	refcount_set(&chunk->users, count + 1);
	for (u32 number = 1; number <= count; number++) {
		ri = kretprobe_chunk_instance(chunk, number);
		ri->chunk = chunk;
		ri->pool = pool;
		/* NULL if the probe is unregistered while its pool grows: then no hit comes. */
		ri->rp = READ_ONCE(pool->rp);
		ri->fp = (void *)(unsigned long)(number + 1);
	}
	ri->fp = NULL;
	atomic64_set(&chunk->free, 1);
	refcount_inc(&pool->users);
	WRITE_ONCE(pool->total, pool->total + count);
	/* Pairs with the address dependency in kretprobe_take_from_chunks(). */
	smp_store_release(&pool->chunks, chunk);
	return 0;
}

static unsigned int kretprobe_wanted_instances(const struct kretprobe *rp)
{
	return rp->maxactive > 0 ? rp->maxactive : max(10U, 2 * num_possible_cpus());
}

/**
 * kretprobe_pool_create() - Allocate the instances of a return probe
 * @rp: The return probe. Its @pool is set; its @maxactive, too, if there is none.
 *
 * Context: Process context. May sleep.
 * Return: 0, or -ENOMEM, also if @maxactive is too large.
 */
int kretprobe_pool_create(struct kretprobe *rp)
{
	struct kretprobe_pool *pool = kzalloc(sizeof(*pool), GFP_KERNEL);
	unsigned int count = kretprobe_wanted_instances(rp);
	int err = -ENOMEM;

	if (!pool)
		return -ENOMEM;
	pool->rp = rp;
	pool->adaptive = rp->maxactive <= 0 || rp->maxactive == rp->chosen;
	pool->data_size = rp->data_size;
	refcount_set(&pool->users, 1);
	pool->cache = alloc_percpu(struct kretprobe_instance *);
	if (pool->cache)
		err = kretprobe_pool_add_chunk(pool, count);
	if (err) {
		kretprobe_pool_unref(pool);
		return -ENOMEM;
	}
	rp->pool = pool;
	rp->maxactive = count;
	rp->chosen = pool->adaptive ? count : 0;
	return 0;
}

/**
 * kretprobe_pool_stop() - Keep the handlers of a return probe from being called
 * @rp: The return probe. Handlers that are already running may continue for a grace
 *	period.
 *
 * Context: Any.
 */
void kretprobe_pool_stop(struct kretprobe *rp)
{
	/* Pairs with kretprobe_if_registered(). The caller waits for a grace period next. */
	if (rp->pool)
		WRITE_ONCE(rp->pool->rp, NULL);
}

/* kretprobe_pools_flush() - Wait for deferred work of stopped pools */
void kretprobe_pools_flush(void)
{
	irq_work_sync(&kretprobe_irq_work);
	flush_work(&kretprobe_work);
	/* If it runs, it may have read @rp before, and wait again: the second run finds NULL. */
	flush_delayed_work(&kretprobe_retry);
	flush_delayed_work(&kretprobe_retry);
}

static void kretprobe_pool_free(struct kretprobe_pool *pool)
{
	struct kretprobe_chunk *chunk, *next;
	unsigned int unused;
	int cpu;

	for_each_possible_cpu(cpu) {
		struct kretprobe_instance *ri = *per_cpu_ptr(pool->cache, cpu);

		if (ri)
			kretprobe_chunk_push(ri->chunk, ri);
	}
	for (chunk = pool->chunks; chunk; chunk = next) {
		next = chunk->next;
		for (unused = 0; kretprobe_chunk_pop(chunk); unused++)
			;
		kretprobe_chunk_drop(chunk, unused + 1);
	}
	kretprobe_pool_unref(pool);
}

/**
 * kretprobe_pool_put() - Release the instances of a return probe
 * @rp: The return probe. Since it was stopped, a grace period has passed and
 *	kretprobe_pools_flush() has been called. Its @pool is cleared.
 *
 * The instances of calls in flight are released when the calls return.
 *
 * Context: Process context. May sleep.
 */
void kretprobe_pool_put(struct kretprobe *rp)
{
	struct kretprobe_pool *pool = rp->pool;

	rp->pool = NULL;
	if (pool && pool != &empty_pool)
		kretprobe_pool_free(pool);
}

/**
 * kretprobe_pool_drop() - Let kretprobe_pools_release() release the instances
 * @rp: The return probe, whose probe has been unlinked. It may be freed at once.
 *
 * Context: Any.
 */
void kretprobe_pool_drop(struct kretprobe *rp)
{
	/* An entry handler that still runs finds no instance. */
	struct kretprobe_pool *pool = xchg(&rp->pool, &empty_pool);

	/* Pairs with kretprobe_if_registered(). */
	WRITE_ONCE(pool->rp, NULL);
	kretprobe_push_node(&pool->dropped_node, &kretprobe_dropped_pools);
	kprobes_clean_up_later();
}

/* ------------------------------------------------------ in process context */

/**
 * kretprobe_pools_release() - Release the instances that kretprobe_pool_drop() has left
 *
 * Context: Process context. May sleep.
 */
void kretprobe_pools_release(void)
{
	struct llist_node *pools = llist_del_all(&kretprobe_dropped_pools);
	struct kretprobe_pool *pool, *next;

	if (!pools)
		return;
	kprobes_wait_for_handlers();
	kretprobe_pools_flush();
	llist_for_each_entry_safe(pool, next, pools, dropped_node)
		kretprobe_pool_free(pool);
}

static void kretprobe_pool_grow(struct kretprobe_pool *pool)
{
	unsigned int max = READ_ONCE(kretprobe_max_instances);
	unsigned int room = max - min(max, pool->total), count = min(pool->total, room);

	/* Pairs with kretprobe_pool_stop(). */
	if (READ_ONCE(pool->rp) && count && kretprobe_pool_add_chunk(pool, count)) {
		pool->retry_delay = clamp(2 * pool->retry_delay, RETRY_DELAY, RETRY_DELAY_MAX);
		llist_add(&pool->short_node, &kretprobe_starved_pools);
		schedule_delayed_work(&kretprobe_retry, pool->retry_delay);
		return;
	}
	pool->retry_delay = 0;
	if (count == room)
		WRITE_ONCE(pool->adaptive, false);
	/*
	 * Pairs with the xchg() in kretprobe_pool_ran_short(): a hit that sees this links
	 * @short_node again, which must not be before the work has read it.
	 */
	smp_store_release(&pool->is_short, false);
}

static void kretprobe_pools_grow(struct llist_head *pools)
{
	struct kretprobe_pool *pool, *next;

	llist_for_each_entry_safe(pool, next, llist_del_all(pools), short_node)
		kretprobe_pool_grow(pool);
}

static void kretprobe_retry_work(struct work_struct *work)
{
	kretprobe_pools_grow(&kretprobe_starved_pools);
}

static void kretprobe_pool_work(struct work_struct *work)
{
	struct llist_node *instances = llist_del_all(&kretprobe_returned_instances);
	struct kretprobe_instance *ri, *next;

	kretprobe_pools_grow(&kretprobe_short_pools);
	if (!instances)
		return;
	kprobes_wait_for_handlers();	/* and for readers of the tasks' lists */
	llist_for_each_entry_safe(ri, next, instances, llist)
		kretprobe_chunk_drop(ri->chunk, 1);
}

/* ------------------------------------------------------------- at a hit */

static void __kprobes kretprobe_pool_ran_short(struct kretprobe_pool *pool)
{
	if (!READ_ONCE(pool->adaptive) || xchg(&pool->is_short, true))
		return;
	if (kretprobe_push_node(&pool->short_node, &kretprobe_short_pools))
		irq_work_queue(&kretprobe_irq_work);
}

static struct kretprobe_instance * __kprobes
kretprobe_take_from_chunks(struct kretprobe_pool *pool)
{
	struct kretprobe_chunk *chunk = READ_ONCE(pool->chunks);
	struct kretprobe_instance *ri = NULL;
	unsigned int total;

	for (; chunk && !ri; chunk = chunk->next)
		ri = kretprobe_chunk_pop(chunk);
	/* The pool may be growing. An old number makes it grow once more, at worst. */
	total = READ_ONCE(pool->total);
	if (ri && atomic_inc_return(&pool->taken) > total - total / 4)
		kretprobe_pool_ran_short(pool);
	return ri;
}

/* Empty the caches of other CPUs before a pool of fixed size misses a call. */
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
	kretprobe_pool_ran_short(pool);
	return NULL;
}

/**
 * kretprobe_take_uncached() - Take an instance that is not in this CPU's cache
 * @pool: The pool to take it from.
 *
 * Context: Any. Preemption is off.
 * Return: The instance, or NULL if all are in use.
 */
struct kretprobe_instance *kretprobe_take_uncached(struct kretprobe_pool *pool)
{
	return kretprobe_take_from_chunks(pool) ?: kretprobe_take_from_caches(pool);
}

static __always_inline void kretprobe_instance_put(struct kretprobe_instance *ri)
{
	struct kretprobe_pool *pool = ri->pool;

	/* Pairs with kretprobe_pool_stop(). */
	if (likely(READ_ONCE(pool->rp))) {
		atomic_dec(&pool->taken);
		kretprobe_chunk_push(ri->chunk, ri);
		return;
	}
	if (kretprobe_push_node(&ri->llist, &kretprobe_returned_instances))
		irq_work_queue(&kretprobe_irq_work);
}

/**
 * kretprobe_put_uncached() - Release an instance other than to this CPU's cache
 * @ri: The instance.
 *
 * The functions called here may be return-probed. kprobe_running() is set so that this is
 * no hit, as the return from such a hit would call this function again.
 *
 * Context: Any. Preemption is off.
 */
void kretprobe_put_uncached(struct kretprobe_instance *ri)
{
	bool alone = !kprobe_running();

	if (alone)
		kprobe_busy_begin();
	kretprobe_instance_put(ri);
	if (alone)
		kprobe_busy_end();
}
