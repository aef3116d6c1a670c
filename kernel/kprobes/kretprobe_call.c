// SPDX-License-Identifier: GPL-2.0
/*
 * Calls of return-probed functions
 *
 * At a function's entry the address of a trampoline replaces the return address,
 * which is saved in an instance at the head of the task's list. So the list has the
 * innermost call first. Several instances of one call (of several return probes, or
 * of a function and of its tail call) are adjacent, and the oldest of them has the
 * caller's address.
 *
 * Only the task itself changes its list. An interrupt removes the instances that it
 * has added before it returns.
 */
#include "internal.h"

#include <linux/kretprobes_hit.h>
#include <linux/llist.h>
#include <linux/panic.h>
#include <linux/ptrace.h>
#include <linux/sched.h>

#ifdef kretprobe_return_place
#define RETURN_IS_IN_MEMORY	true
#else
#define RETURN_IS_IN_MEMORY	false
#define kretprobe_return_place(p, regs)	((kprobe_opcode_t **)NULL)
#endif

static __always_inline void kretprobe_divert_return(struct kretprobe *rp,
						    struct kretprobe_instance *ri,
						    struct pt_regs *regs)
{
	kprobe_opcode_t **place = kretprobe_return_place(&rp->kp, regs);

	ri->task = current;
	/* Pairs with the READ_ONCE()s in kretprobe_find_ret_addr(), see there. */
	WRITE_ONCE(ri->ret_addr, RETURN_IS_IN_MEMORY ? *place : NULL);
	WRITE_ONCE(ri->fp, place);
	/* Calls in an interrupt link theirs, and unlink them before it returns. */
	WRITE_ONCE(ri->llist.next, READ_ONCE(current->kretprobe_instances.first));
	/* Pairs with the address dependency of kretprobe_find_ret_addr(): @next is new. */
	smp_store_release(&current->kretprobe_instances.first, &ri->llist);
	barrier();	/* a stack trace that meets the trampoline finds the instance */
	if (RETURN_IS_IN_MEMORY)
		*place = (kprobe_opcode_t *)__kretprobe_trampoline;
	else
		arch_prepare_kretprobe(ri, regs);
}

static noinline int __kprobes
kretprobe_call_entry_handler(struct kretprobe *rp, struct pt_regs *regs,
			     struct kretprobe_instance *ri, kretprobe_handler_t handler)
{
	ri->task = current;
	if (handler(ri, regs))
		kretprobe_put(ri, rp);
	else
		kretprobe_divert_return(rp, ri, regs);
	return 0;
}

static __always_inline int kretprobe_begin_call(struct kretprobe *rp,
						struct kretprobe_instance *ri,
						struct pt_regs *regs)
{
	kretprobe_handler_t handler = READ_ONCE(rp->entry_handler);

	if (handler)
		return kretprobe_call_entry_handler(rp, regs, ri, handler);
	kretprobe_divert_return(rp, ri, regs);
	return 0;
}

static noinline int __kprobes kretprobe_enter_uncached(struct kretprobe *rp,
						       struct pt_regs *regs)
{
	/* Pairs with kretprobe_pool_drop() of a caller that must not wait for this. */
	struct kretprobe_pool *pool = READ_ONCE(rp->pool);
	struct kretprobe_instance *ri = pool ? kretprobe_take_uncached(pool) : NULL;

	if (ri)
		return kretprobe_begin_call(rp, ri, regs);
	kretprobe_count_miss(rp);
	return 0;
}

/* kretprobe_entered() - Pre handler of a return probe */
int __kprobes kretprobe_entered(struct kprobe *p, struct pt_regs *regs)
{
	struct kretprobe *rp = kretprobe_of(p);
	/* The cache is there for as long as this runs, even if the pool has been dropped. */
	struct kretprobe_instance *ri = raw_xchg(raw_cpu_ptr(rp->cache), NULL);

	if (unlikely(!ri))
		return kretprobe_enter_uncached(rp, regs);
	return kretprobe_begin_call(rp, ri, regs);
}

/*
 * The newest instance of the call with this key. A return that pops arguments of its call
 * gives another key than the entry: then it is the instance with the nearest one below.
 */
static __always_inline struct kretprobe_instance *kretprobe_find_call(void *fp)
{
	struct kretprobe_instance *ri, *below = NULL;

	llist_for_each_entry(ri, current->kretprobe_instances.first, llist) {
		if (ri->fp == fp)
			return ri;
		if (fp - ri->fp > 0 && fp - ri->fp <= KRETPROBE_MAX_POPPED &&
		    (!below || ri->fp > below->fp))
			below = ri;
	}
	return below;
}

/*
 * kretprobe_seek_call() - Find the newest instance of the call that is returning, by its key @fp
 *
 * Newer calls in the list have been abandoned, as their functions can no longer return. Their
 * instances are recycled.
 */
struct kretprobe_instance *kretprobe_seek_call(void *fp)
{
	struct kretprobe_instance *found = kretprobe_find_call(fp), *ri;

	if (!found)
		panic("kprobes: no kretprobe instance for the return address at %px of %s[%d]\n",
		      fp, current->comm, task_pid_nr(current));
	while ((ri = kretprobe_newest()) != found) {
		kretprobe_unlink(ri);
		kretprobe_put(ri, kretprobe_if_registered(ri));
	}
	return found;
}

void __weak arch_kretprobe_fixup_return(struct pt_regs *regs, kprobe_opcode_t *correct_ret_addr)
{
}

static void __kprobes kretprobe_call_handler(struct kretprobe *rp, struct kretprobe_instance *ri,
					     struct pt_regs *regs)
{
	kretprobe_handler_t handler = rp ? READ_ONCE(rp->handler) : NULL;
	struct kprobe *outer = kprobe_running();

	if (!handler)
		return;
	raw_cpu_write(current_kprobe, &rp->kp);
	handler(ri, regs);
	raw_cpu_write(current_kprobe, outer);
}

static unsigned long __kprobes kretprobe_finish_call(struct pt_regs *regs, void *fp, bool busy)
{
	struct kretprobe_instance *ri, *next, *last;
	kprobe_opcode_t *ret_addr;
	struct kretprobe *rp;
	bool more;

	ri = kretprobe_first(fp, &last);
	ret_addr = last->ret_addr;
	instruction_pointer_set(regs, (unsigned long)ret_addr);
	do {
		next = kretprobe_next(ri);
		more = ri != last;
		rp = kretprobe_if_registered(ri);
		WRITE_ONCE(ri->ret_addr, ret_addr);
		if (!busy)
			kretprobe_call_handler(rp, ri, regs);
		else if (rp)
			kretprobe_count_miss(rp);
		kretprobe_unlink(ri);
		kretprobe_put(ri, rp);
		ri = next;
	} while (more);
	arch_kretprobe_fixup_return(regs, ret_addr);
	return (unsigned long)ret_addr;
}

/*
 * __kretprobe_trampoline_handler() - Handle a return at a trampoline that is itself probed
 *
 * @frame_pointer is the key that arch_prepare_kretprobe() has stored as @fp. Preemption is off and
 * kprobe_running() is the trampoline's site. Returns the address to which the function returns.
 */
unsigned long __kprobes __kretprobe_trampoline_handler(struct pt_regs *regs, void *frame_pointer)
{
	return kretprobe_finish_call(regs, frame_pointer, false);
}

/* kretprobe_trampoline_handler() - The same at a trampoline of plain code */
unsigned long __kprobes kretprobe_trampoline_handler(struct pt_regs *regs, void *frame_pointer)
{
	unsigned long ret_addr;

	guard(preempt_notrace)();
	if (kprobe_running())
		return kretprobe_finish_call(regs, frame_pointer, true);
	kprobe_busy_begin();
	ret_addr = kretprobe_finish_call(regs, frame_pointer, false);
	kprobe_busy_end();
	return ret_addr;
}

/* The instance after @last in the task's list, if @last is still there. */
static struct llist_node *kretprobe_search_from(struct task_struct *tsk, struct llist_node *last)
{
	struct llist_node *node = READ_ONCE(tsk->kretprobe_instances.first);

	if (!last || tsk == current)
		return last ? last->next : node;
	/* Another task may have run meanwhile and changed its list. */
	for (; node; node = READ_ONCE(node->next))
		if (node == last)
			return READ_ONCE(node->next);
	return NULL;
}

/*
 * kretprobe_find_ret_addr() - Find the return address that the trampoline replaced
 *
 * @tsk is the current task, or one that is not running, @fp the key of the call, and @cur the
 * position of the search, NULL at the innermost call of a stack. Returns the address, which may be
 * that of another tracer's trampoline; or 0.
 *
 * The task may start to run meanwhile, and change its list without a lock. Then the trace
 * is useless in any case; what matters is that all pointers lead to instances. They are
 * freed only a grace period after they have left the list. If the task does not run, the
 * scheduler has ordered its writes before.
 */
unsigned long __kprobes kretprobe_find_ret_addr(struct task_struct *tsk, void *fp,
						struct llist_node **cur)
{
	struct kretprobe_instance *ri;
	kprobe_opcode_t *ret_addr;
	struct llist_node *node;

	guard(rcu)();
	for (node = kretprobe_search_from(tsk, *cur); node; node = READ_ONCE(node->next)) {
		ri = llist_entry(node, struct kretprobe_instance, llist);
		ret_addr = READ_ONCE(ri->ret_addr);
		if (READ_ONCE(ri->fp) == fp && ret_addr && !kretprobe_shares_ret_addr(ret_addr)) {
			*cur = node;
			return (unsigned long)ret_addr;
		}
	}
	return 0;
}

/*
 * kprobe_flush_task() - Recycle the instances of a task that returns from no function any more
 *
 * The task does not run. Any context, also an interrupt that has interrupted a handler.
 */
void __kprobes kprobe_flush_task(struct task_struct *tsk)
{
	struct llist_node *node = tsk->kretprobe_instances.first;
	struct kretprobe_instance *ri, *next;

	WRITE_ONCE(tsk->kretprobe_instances.first, NULL);
	/* Also the reader of a pool's @rp that kretprobe_pool_drop() waits for. */
	guard(preempt_notrace)();
	llist_for_each_entry_safe(ri, next, node, llist)
		kretprobe_put(ri, kretprobe_if_registered(ri));
}
