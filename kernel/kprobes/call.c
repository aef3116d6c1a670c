// SPDX-License-Identifier: GPL-2.0
/*
 * Calls of return-probed functions: how they begin and end, and what is asked of
 * them meanwhile.
 *
 * At a function's entry the return address is replaced by that of a trampoline.
 * What was there is kept in an instance, at the head of the task's list. So the
 * list has the innermost call first, and instances of one call (of several
 * return probes, or of a function and one that it ends in a jump to) side by
 * side, the oldest of which knows the caller.
 *
 * Nobody but the task itself changes its list, nor do interrupts: what they put
 * there they have taken away when they return.
 */
#include "internal.h"

#include <linux/bug.h>
#include <linux/kprobes_hit.h>
#include <linux/llist.h>
#include <linux/ptrace.h>
#include <linux/sched.h>

static __always_inline void count_miss(struct kretprobe *rp)
{
	BUILD_BUG_ON(sizeof(rp->nmissed) != sizeof(atomic_t));
	raw_atomic_inc((atomic_t *)&rp->nmissed);
}

/* Known before the trampoline can be met in the stack. */
static __always_inline void link_call(struct kretprobe_instance *ri)
{
	ri->llist.next = current->kretprobe_instances.first;
	WRITE_ONCE(current->kretprobe_instances.first, &ri->llist);
	barrier();
}

#ifdef kretprobe_return_place
static __always_inline void divert_return(struct kretprobe *rp, struct kretprobe_instance *ri,
					  struct pt_regs *regs)
{
	kprobe_opcode_t **place = kretprobe_return_place(&rp->kp, regs);

	ri->ret_addr = *place;
	ri->fp = place;
	link_call(ri);
	*place = (kprobe_opcode_t *)__kretprobe_trampoline;
}
#else
static __always_inline void divert_return(struct kretprobe *rp, struct kretprobe_instance *ri,
					  struct pt_regs *regs)
{
	ri->ret_addr = NULL;
	ri->fp = NULL;
	link_call(ri);
	arch_prepare_kretprobe(ri, regs);
}
#endif

static notrace noinline int __kprobes ask_entry_handler(struct kretprobe *rp,
							struct kretprobe_instance *ri,
							struct pt_regs *regs)
{
	if (rp->entry_handler(ri, regs))
		kretprobe_put(ri, rp);
	else
		divert_return(rp, ri, regs);
	return 0;
}

static notrace noinline int __kprobes enter_uncached(struct kretprobe *rp, struct pt_regs *regs)
{
	struct kretprobe_instance *ri = kretprobe_take_uncached(rp->pool);

	if (!ri) {
		count_miss(rp);
		return 0;
	}
	if (rp->entry_handler)
		return ask_entry_handler(rp, ri, regs);
	divert_return(rp, ri, regs);
	return 0;
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
	struct kretprobe_instance *ri = kretprobe_take_cached(rp->pool);

	if (unlikely(!ri))
		return enter_uncached(rp, regs);
	if (rp->entry_handler)
		return ask_entry_handler(rp, ri, regs);
	divert_return(rp, ri, regs);
	return 0;
}

/**
 * kretprobe_seek_call - Find the call that returns now
 * @fp: What identifies it.
 *
 * Calls above it in the list have been abandoned: their functions cannot return
 * any more.
 *
 * Context: Any. Preemption is off.
 * Return: Its newest instance.
 */
struct kretprobe_instance *kretprobe_seek_call(void *fp)
{
	struct kretprobe_instance *ri;
	struct llist_node *node;

	while ((node = current->kretprobe_instances.first)) {
		ri = llist_entry(node, struct kretprobe_instance, llist);
		if (ri->fp == fp)
			return ri;
		kretprobe_unlink(ri);
		kretprobe_put(ri, get_kretprobe(ri));
	}
	panic("kprobes: %s[%d] returns from a return-probed function, nobody knows where to\n",
	      current->comm, task_pid_nr(current));
}

void __weak arch_kretprobe_fixup_return(struct pt_regs *regs, kprobe_opcode_t *correct_ret_addr)
{
}

static void __kprobes call_handler(struct kretprobe *rp, struct kretprobe_instance *ri,
				   struct pt_regs *regs)
{
	struct kprobe *outer = kprobe_running();

	if (!rp || !rp->handler)
		return;
	raw_cpu_write(current_kprobe, &rp->kp);
	rp->handler(ri, regs);
	raw_cpu_write(current_kprobe, outer);
}

static unsigned long __kprobes finish_call(struct pt_regs *regs, void *frame_pointer, bool busy)
{
	struct kretprobe_instance *ri, *next, *last;
	kprobe_opcode_t *ret_addr;
	struct kretprobe *rp;
	bool more;

	ri = kretprobe_first(frame_pointer, &last);
	ret_addr = last->ret_addr;
	instruction_pointer_set(regs, (unsigned long)ret_addr);
	do {
		next = kretprobe_next(ri);
		more = ri != last;
		rp = get_kretprobe(ri);
		ri->ret_addr = ret_addr;
		if (!busy)
			call_handler(rp, ri, regs);
		else if (rp)
			count_miss(rp);
		kretprobe_unlink(ri);
		kretprobe_put(ri, rp);
		ri = next;
	} while (more);
	arch_kretprobe_fixup_return(regs, ret_addr);
	return (unsigned long)ret_addr;
}

/**
 * __kretprobe_trampoline_handler - A return-probed function has returned
 * @regs: The registers at the return.
 * @frame_pointer: What identifies the call: what arch_prepare_kretprobe() has
 *	stored as @fp.
 *
 * Context: From an architecture's trampoline that is probed itself: with
 *	preemption off and kprobe_running() set to that.
 * Return: Where the function returns to.
 */
unsigned long __kprobes __kretprobe_trampoline_handler(struct pt_regs *regs, void *frame_pointer)
{
	return finish_call(regs, frame_pointer, false);
}

/**
 * kretprobe_trampoline_handler - The same from a trampoline that is plain code
 * @regs: As __kretprobe_trampoline_handler().
 * @frame_pointer: As __kretprobe_trampoline_handler().
 *
 * Context: From an architecture's trampoline.
 * Return: As __kretprobe_trampoline_handler().
 */
unsigned long __kprobes kretprobe_trampoline_handler(struct pt_regs *regs, void *frame_pointer)
{
	unsigned long ret_addr;

	guard(preempt_notrace)();
	if (kprobe_running())
		return finish_call(regs, frame_pointer, true);
	kprobe_busy_begin();
	ret_addr = finish_call(regs, frame_pointer, false);
	kprobe_busy_end();
	return ret_addr;
}

/* The instance behind @last in the task's list, if that is still there. */
static struct llist_node *continue_at(struct task_struct *tsk, struct llist_node *last)
{
	struct llist_node *node = READ_ONCE(tsk->kretprobe_instances.first);

	if (!last || tsk == current)
		return last ? last->next : node;
	/* Another task may have gone on meanwhile. */
	for (; node; node = READ_ONCE(node->next))
		if (node == last)
			return node->next;
	return NULL;
}

/**
 * kretprobe_find_ret_addr - Find what stood where the trampoline stands
 * @tsk: Whose stack is looked at: the current task, or one that does not run.
 * @fp: What identifies the call.
 * @cur: How far the search has come. NULL at the innermost call of a stack.
 *
 * Context: Any.
 * Return: The address, which may be that of somebody else's trampoline; or 0.
 */
unsigned long __kprobes kretprobe_find_ret_addr(struct task_struct *tsk, void *fp,
						struct llist_node **cur)
{
	struct kretprobe_instance *ri;
	struct llist_node *node;

	if (WARN_ON_ONCE(!cur))
		return 0;
	guard(rcu)();
	for (node = continue_at(tsk, *cur); node; node = READ_ONCE(node->next)) {
		ri = llist_entry(node, struct kretprobe_instance, llist);
		if (ri->fp == fp && ri->ret_addr && !kretprobe_is_outdone(ri)) {
			*cur = node;
			return (unsigned long)ri->ret_addr;
		}
	}
	return 0;
}

/**
 * kprobe_flush_task - A task has ended in return-probed functions
 * @tsk: The task. It does not run any more.
 *
 * Context: Any.
 */
void __kprobes kprobe_flush_task(struct task_struct *tsk)
{
	struct llist_node *node = tsk->kretprobe_instances.first;
	struct kretprobe_instance *ri, *next;

	tsk->kretprobe_instances.first = NULL;
	guard(preempt)();
	llist_for_each_entry_safe(ri, next, node, llist)
		kretprobe_put(ri, get_kretprobe(ri));
}
