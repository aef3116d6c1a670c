// SPDX-License-Identifier: GPL-2.0
/*
 * The instances of return probes: what is known of each call in flight.
 *
 * They are made in chunks, in process context, and handed out anywhere. On the
 * usual way an instance goes from the cache of a CPU and back: see
 * <linux/kprobes_hit.h>. This is the rest of the way, from and to the chunks.
 *
 * A pool that does not have a fixed size gets a chunk as large as all before it
 * when three quarters are taken. So it is as large as the most calls that have
 * been in flight, or twice that.
 *
 * Unregistration: kretprobe_pool_stop() cuts off new users, a grace period lets
 * those who saw the return probe come to an end, kretprobe_pool_put() gives back
 * what is not in flight. A call that returns later gives its instance back by
 * itself, and the last one frees the pool. Memory of instances is freed a grace
 * period after they have left the task's list, as others may look at that.
 */
#include "internal.h"

#include <linux/irq_work.h>
#include <linux/kprobes_hit.h>
#include <linux/llist.h>
#include <linux/minmax.h>
#include <linux/objpool.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

/* No load has more calls in flight than this. */
#define MAX_INSTANCES	1000000

/**
 * struct kretprobe_chunk - Instances that were made together
 * @next:	The chunk made before it.
 * @pool:	What it is part of.
 * @objects:	Those that are free and not in a cache.
 */
struct kretprobe_chunk {
	struct kretprobe_chunk *next;
	struct kretprobe_pool *pool;
	struct objpool_head objects;
};

/*
 * What is left to process context: pools that want to grow, and instances that
 * could not be given back where the call returned.
 */
static LLIST_HEAD(short_pools);
static LLIST_HEAD(returned);

static void tend(struct work_struct *work);
static DECLARE_WORK(tend_work, tend);

static void schedule_tending(struct irq_work *work)
{
	schedule_work(&tend_work);
}

static DEFINE_IRQ_WORK(tend_irq_work, schedule_tending);

/* ------------------------------------------------------ making and freeing */

static void put_pool(struct kretprobe_pool *pool)
{
	if (!refcount_dec_and_test(&pool->users))
		return;
	free_percpu(pool->cache);
	kfree(pool);
}

static int release_chunk(struct objpool_head *objects, void *context)
{
	struct kretprobe_chunk *chunk = context;

	put_pool(chunk->pool);
	kfree(chunk);
	return 0;
}

static int init_instance(void *object, void *context)
{
	struct kretprobe_instance *ri = object;

	ri->chunk = context;
	ri->pool = ri->chunk->pool;
	return 0;
}

static int add_chunk(struct kretprobe_pool *pool, unsigned int count, size_t data_size)
{
	struct kretprobe_chunk *chunk = kzalloc(sizeof(*chunk), GFP_KERNEL);
	int err;

	if (!chunk)
		return -ENOMEM;
	chunk->pool = pool;
	chunk->next = pool->chunks;
	err = objpool_init(&chunk->objects, count,
			   sizeof(struct kretprobe_instance) + data_size,
			   GFP_KERNEL | __GFP_NOWARN, chunk, init_instance, release_chunk);
	if (err) {
		kfree(chunk);
		return err;
	}
	refcount_inc(&pool->users);
	WRITE_ONCE(pool->total, pool->total + count);
	/* Pairs with the READ_ONCE() of those who take from it. */
	smp_store_release(&pool->chunks, chunk);
	return 0;
}

static unsigned int wanted_instances(const struct kretprobe *rp)
{
	return rp->maxactive > 0 ? rp->maxactive : max(10U, 2 * num_possible_cpus());
}

/**
 * kretprobe_pool_create - Make the instances of a return probe
 * @rp: The return probe. Its @pool is set.
 *
 * Context: Process context. May sleep.
 * Return: 0 or -ENOMEM, also if there cannot be so many.
 */
int kretprobe_pool_create(struct kretprobe *rp)
{
	struct kretprobe_pool *pool = kzalloc(sizeof(*pool), GFP_KERNEL);
	int err = -ENOMEM;

	if (!pool)
		return -ENOMEM;
	pool->rp = rp;
	pool->adaptive = rp->maxactive <= 0;
	refcount_set(&pool->users, 1);
	pool->cache = alloc_percpu(struct kretprobe_instance *);
	if (pool->cache)
		err = add_chunk(pool, wanted_instances(rp), rp->data_size);
	if (err) {
		put_pool(pool);
		return -ENOMEM;
	}
	rp->pool = pool;
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
	if (rp->pool)
		WRITE_ONCE(rp->pool->rp, NULL);
}

/* kretprobe_pools_settle - Wait for what stopped pools have left to be done. */
void kretprobe_pools_settle(void)
{
	irq_work_sync(&tend_irq_work);
	flush_work(&tend_work);
}

static void drop_instance(struct kretprobe_instance *ri)
{
	objpool_drop(ri, &ri->chunk->objects);
}

/**
 * kretprobe_pool_put - Give back the instances of a return probe
 * @rp: The return probe. A grace period, and then kretprobe_pools_settle(), have
 *	passed since it was stopped. Its @pool is cleared.
 *
 * Those of calls in flight follow when they return.
 *
 * Context: Process context. May sleep.
 */
void kretprobe_pool_put(struct kretprobe *rp)
{
	struct kretprobe_pool *pool = rp->pool;
	struct kretprobe_chunk *chunk, *next;
	int cpu;

	if (!pool)
		return;
	rp->pool = NULL;
	for_each_possible_cpu(cpu) {
		struct kretprobe_instance *ri = *per_cpu_ptr(pool->cache, cpu);

		if (ri)
			drop_instance(ri);
	}
	for (chunk = pool->chunks; chunk; chunk = next) {
		next = chunk->next;
		objpool_fini(&chunk->objects);
	}
	put_pool(pool);
}

/* ------------------------------------------------------ in process context */

static void grow(struct kretprobe_pool *pool)
{
	struct kretprobe *rp = pool->rp;

	/* If there is no memory now, the next one who runs short asks again. */
	if (rp && pool->total < MAX_INSTANCES)
		add_chunk(pool, pool->total, rp->data_size);
	WRITE_ONCE(pool->is_short, false);
}

static bool push_instance(struct kretprobe_instance *ri)
{
	guard(preempt)();
	if (!get_kretprobe(ri))
		return false;
	atomic_dec(&ri->pool->taken);
	objpool_push(ri, &ri->chunk->objects);
	return true;
}

static void tend(struct work_struct *work)
{
	struct llist_node *pools = llist_del_all(&short_pools);
	struct llist_node *instances = llist_del_all(&returned);
	struct kretprobe_instance *ri, *next_ri;
	struct kretprobe_pool *pool, *next;

	llist_for_each_entry_safe(pool, next, pools, short_node)
		grow(pool);
	if (!instances)
		return;
	synchronize_rcu();
	llist_for_each_entry_safe(ri, next_ri, instances, llist)
		if (!push_instance(ri))
			drop_instance(ri);
}

/* ------------------------------------------------------------- at a hit */

/*
 * llist_add(), which calls a function that may be return-probed itself, without a
 * call. Returns whether the list was empty. Work has been queued if it was not.
 */
static __always_inline bool push_node(struct llist_node *node, struct llist_head *head)
{
	struct llist_node *first = READ_ONCE(head->first);

	do {
		node->next = first;
	} while (!raw_try_cmpxchg(&head->first, &first, node));
	return !first;
}

static notrace void __kprobes run_short(struct kretprobe_pool *pool)
{
	if (!pool->adaptive || xchg(&pool->is_short, true))
		return;
	if (push_node(&pool->short_node, &short_pools))
		irq_work_queue(&tend_irq_work);
}

static notrace struct kretprobe_instance * __kprobes take_from_chunks(struct kretprobe_pool *pool)
{
	struct kretprobe_chunk *chunk = READ_ONCE(pool->chunks);
	struct kretprobe_instance *ri = NULL;

	for (; chunk && !ri; chunk = chunk->next)
		ri = objpool_pop(&chunk->objects);
	if (ri && atomic_inc_return(&pool->taken) > pool->total - pool->total / 4)
		run_short(pool);
	return ri;
}

/* So that a pool of fixed size is used up before a call is missed. */
static notrace struct kretprobe_instance * __kprobes take_from_caches(struct kretprobe_pool *pool)
{
	struct kretprobe_instance **cache, *ri;
	int cpu;

	for_each_possible_cpu(cpu) {
		cache = per_cpu_ptr(pool->cache, cpu);
		/* Where nothing is, look and do not write: every hit comes by here. */
		ri = READ_ONCE(*cache) ? xchg(cache, NULL) : NULL;
		if (ri)
			return ri;
	}
	run_short(pool);
	return NULL;
}

/**
 * kretprobe_take_uncached - Take an instance that is not in this CPU's cache
 * @pool: Where from.
 *
 * Context: Any. Preemption is off.
 * Return: The instance, or NULL if all are in use.
 */
struct kretprobe_instance *kretprobe_take_uncached(struct kretprobe_pool *pool)
{
	return take_from_chunks(pool) ?: take_from_caches(pool);
}

static __always_inline void put_instance(struct kretprobe_instance *ri)
{
	struct kretprobe_pool *pool = ri->pool;

	if (likely(READ_ONCE(pool->rp) && !in_nmi())) {
		atomic_dec(&pool->taken);
		objpool_push(ri, &ri->chunk->objects);
		return;
	}
	if (push_node(&ri->llist, &returned))
		irq_work_queue(&tend_irq_work);
}

/**
 * kretprobe_put_uncached - Give back an instance other than to this CPU's cache
 * @ri: The instance.
 *
 * What this calls may be return-probed: it is no hit, or the return from it would
 * come by here again.
 *
 * Context: Any. Preemption is off. An NMI may have interrupted the same for the
 *	same pool, which only the list can cope with.
 */
void kretprobe_put_uncached(struct kretprobe_instance *ri)
{
	static struct kprobe busy = { .addr = (kprobe_opcode_t *)&busy };
	bool alone = !kprobe_running();

	if (alone) {
		raw_cpu_write(kprobe_context, preempt_count());
		raw_cpu_write(current_kprobe, &busy);
	}
	put_instance(ri);
	if (alone)
		reset_current_kprobe();
}
