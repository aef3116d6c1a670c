// SPDX-License-Identifier: GPL-2.0
/*
 * Instances of return probes, one for each call in flight
 *
 * Instances are allocated in chunks, in process context, and handed out in any context.
 * On the fast path an instance is taken from and returned to a CPU's cache, see
 * <linux/kprobes_hit.h>. This file has the slow path, from and to the chunks.
 *
 * A pool without a fixed size adds a chunk as large as all earlier ones when three
 * quarters of its instances are taken, those in the caches of CPUs included.
 *
 * Unregistration: kretprobe_pool_stop() cuts off new users. A grace period waits for
 * users that saw the return probe. kretprobe_pool_put() releases the instances that
 * are not in flight. A call that returns later releases its instance itself, and the
 * last one frees the pool. The memory of instances is freed a grace period after they
 * have left the task's list, as other tasks may walk that list.
 */
#include "internal.h"

#include <linux/irq_work.h>
#include <linux/kprobes_hit.h>
#include <linux/llist.h>
#include <linux/minmax.h>
#include <linux/objpool.h>
#include <linux/overflow.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

/* No workload has more calls in flight. */
#define MAX_INSTANCES	1000000

/**
 * struct kretprobe_chunk - Instances that were allocated together
 * @next:	The previous chunk of the pool.
 * @pool:	The pool that the chunk belongs to.
 * @objects:	The instances that are free and not in a cache.
 */
struct kretprobe_chunk {
	struct kretprobe_chunk *next;
	struct kretprobe_pool *pool;
	struct objpool_head objects;
};

/*
 * Work for process context: pools that are to grow, and instances that could not be
 * released in the context in which their calls returned.
 */
static LLIST_HEAD(kretprobe_short_pools);
static LLIST_HEAD(kretprobe_returned_instances);

/* Pools of return probes that were unregistered where nobody could wait. */
static LLIST_HEAD(kretprobe_dropped_pools);

static DEFINE_PER_CPU(struct kretprobe_instance *, empty_cache);
static struct kretprobe_pool empty_pool = { .cache = &empty_cache };

static void kretprobe_pool_work(struct work_struct *work);
static DECLARE_WORK(kretprobe_work, kretprobe_pool_work);

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

/* ------------------------------------------------- allocation and release */

static void kretprobe_pool_unref(struct kretprobe_pool *pool)
{
	if (!refcount_dec_and_test(&pool->users))
		return;
	free_percpu(pool->cache);
	kfree(pool);
}

static int kretprobe_chunk_release(struct objpool_head *objects, void *context)
{
	struct kretprobe_chunk *chunk = context;

	kretprobe_pool_unref(chunk->pool);
	kfree(chunk);
	return 0;
}

static int kretprobe_instance_init(void *object, void *context)
{
	struct kretprobe_instance *ri = object;

	ri->chunk = context;
	ri->pool = ri->chunk->pool;
	/* NULL if the probe is unregistered while its pool grows: then no hit comes. */
	ri->rp = READ_ONCE(ri->pool->rp);
	return 0;
}

/*
 * objpool calculates the bytes for a CPU as an int: its instances, and up to two pointers
 * for each instance of the chunk.
 */
static bool kretprobe_chunk_is_too_large(int count, size_t data_size)
{
	int each = sizeof(struct kretprobe_instance) + data_size + 3 * sizeof(void *), size;

	return check_mul_overflow(count, each, &size);
}

static int kretprobe_pool_add_chunk(struct kretprobe_pool *pool, unsigned int count)
{
	struct kretprobe_chunk *chunk;
	int err;

	if (kretprobe_chunk_is_too_large(count, pool->data_size))
		return -ENOMEM;
	chunk = kzalloc(sizeof(*chunk), GFP_KERNEL);
	if (!chunk)
		return -ENOMEM;
	chunk->pool = pool;
	chunk->next = pool->chunks;
	err = objpool_init(&chunk->objects, count,
			   sizeof(struct kretprobe_instance) + pool->data_size,
			   GFP_KERNEL | __GFP_NOWARN, chunk, kretprobe_instance_init,
			   kretprobe_chunk_release);
	if (err) {
		kfree(chunk);
		return err;
	}
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
 * @rp: The return probe. Its @pool is set.
 *
 * Context: Process context. May sleep.
 * Return: 0, or -ENOMEM, also if @maxactive is too large.
 */
int kretprobe_pool_create(struct kretprobe *rp)
{
	struct kretprobe_pool *pool = kzalloc(sizeof(*pool), GFP_KERNEL);
	int err = -ENOMEM;

	if (!pool)
		return -ENOMEM;
	pool->rp = rp;
	pool->adaptive = rp->maxactive <= 0;
	pool->data_size = rp->data_size;
	refcount_set(&pool->users, 1);
	pool->cache = alloc_percpu(struct kretprobe_instance *);
	if (pool->cache)
		err = kretprobe_pool_add_chunk(pool, kretprobe_wanted_instances(rp));
	if (err) {
		kretprobe_pool_unref(pool);
		return -ENOMEM;
	}
	rp->pool = pool;
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
	/* Pairs with get_kretprobe() and the grace period that the caller waits for next. */
	if (rp->pool)
		WRITE_ONCE(rp->pool->rp, NULL);
}

/* kretprobe_pools_flush() - Wait for deferred work of stopped pools */
void kretprobe_pools_flush(void)
{
	irq_work_sync(&kretprobe_irq_work);
	flush_work(&kretprobe_work);
}

static void kretprobe_instance_drop(struct kretprobe_instance *ri)
{
	objpool_drop(ri, &ri->chunk->objects);
}

static void kretprobe_pool_free(struct kretprobe_pool *pool)
{
	struct kretprobe_chunk *chunk, *next;
	int cpu;

	for_each_possible_cpu(cpu) {
		struct kretprobe_instance *ri = *per_cpu_ptr(pool->cache, cpu);

		if (ri)
			kretprobe_instance_drop(ri);
	}
	for (chunk = pool->chunks; chunk; chunk = next) {
		next = chunk->next;
		objpool_fini(&chunk->objects);
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

	/* Pairs with get_kretprobe(). */
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
	/*
	 * Pairs with kretprobe_pool_stop(). If memory is short, the next hit that finds the
	 * pool short asks again.
	 */
	if (READ_ONCE(pool->rp) && pool->total < MAX_INSTANCES)
		kretprobe_pool_add_chunk(pool, pool->total);
	/*
	 * Pairs with the xchg() in kretprobe_pool_ran_short(): a hit that sees this links
	 * @short_node again, which must not be before the work has read it.
	 */
	smp_store_release(&pool->is_short, false);
}

static bool kretprobe_instance_push(struct kretprobe_instance *ri)
{
	guard(preempt)();
	if (!get_kretprobe(ri))
		return false;
	atomic_dec(&ri->pool->taken);
	objpool_push(ri, &ri->chunk->objects);
	return true;
}

static void kretprobe_pool_work(struct work_struct *work)
{
	struct llist_node *pools = llist_del_all(&kretprobe_short_pools);
	struct llist_node *instances = llist_del_all(&kretprobe_returned_instances);
	struct kretprobe_instance *ri, *next_ri;
	struct kretprobe_pool *pool, *next;

	llist_for_each_entry_safe(pool, next, pools, short_node)
		kretprobe_pool_grow(pool);
	if (!instances)
		return;
	kprobes_wait_for_handlers();	/* and for those who read the lists of tasks */
	llist_for_each_entry_safe(ri, next_ri, instances, llist)
		if (!kretprobe_instance_push(ri))
			kretprobe_instance_drop(ri);
}

/* ------------------------------------------------------------- at a hit */

static notrace void __kprobes kretprobe_pool_ran_short(struct kretprobe_pool *pool)
{
	if (!pool->adaptive || xchg(&pool->is_short, true))
		return;
	if (kretprobe_push_node(&pool->short_node, &kretprobe_short_pools))
		irq_work_queue(&kretprobe_irq_work);
}

static notrace struct kretprobe_instance * __kprobes
kretprobe_take_from_chunks(struct kretprobe_pool *pool)
{
	struct kretprobe_chunk *chunk = READ_ONCE(pool->chunks);
	struct kretprobe_instance *ri = NULL;
	unsigned int total;

	for (; chunk && !ri; chunk = chunk->next)
		ri = objpool_pop(&chunk->objects);
	/* The pool may be growing. An old number makes it grow once more, at worst. */
	total = READ_ONCE(pool->total);
	if (ri && atomic_inc_return(&pool->taken) > total - total / 4)
		kretprobe_pool_ran_short(pool);
	return ri;
}

/* Empty the caches of other CPUs before a pool of fixed size misses a call. */
static notrace struct kretprobe_instance * __kprobes
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

	if (likely(READ_ONCE(pool->rp) && !in_nmi())) {
		atomic_dec(&pool->taken);
		objpool_push(ri, &ri->chunk->objects);
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
 * Context: Any. Preemption is off. An NMI may have interrupted another release to
 *	the same pool: only the list of released instances is safe then.
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
