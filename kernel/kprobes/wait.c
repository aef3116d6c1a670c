// SPDX-License-Identifier: GPL-2.0
/*
 * Waits, one function for each question: which handlers still run, and which tasks are
 * still in text that no hit reaches any more
 *
 * Both rest on RCU, which does not watch a CPU before rcutree_report_cpu_starting() nor
 * after rcutree_report_cpu_dead(). Probes are hit there all the same, so both wait for such
 * CPUs, too. The architecture excludes from probing what a CPU runs after it has reported
 * its death, when nothing tells whether it still runs.
 *
 * RCU-tasks must be more than plain RCU wherever preemption is counted: an interrupt that
 * arrives while the count is 0, as in a slot, is a quiescent state of plain RCU there.
 */
#include "internal.h"

#include <linux/build_bug.h>
#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/cpumask.h>
#include <linux/init.h>
#include <linux/irq_work.h>
#include <linux/irqflags.h>
#include <linux/preempt.h>
#include <linux/rethook.h>
#include <linux/sched.h>
#include <linux/smp.h>

static_assert(!IS_ENABLED(CONFIG_PREEMPT_COUNT) || IS_ENABLED(CONFIG_TASKS_RCU));

/*
 * CPUs from just before they are started until they are dead. One that is not online is in
 * bring-up or dies, and RCU may not watch it.
 */
static struct cpumask running_cpus;

static int kprobes_cpu_starts(unsigned int cpu)
{
	cpumask_set_cpu(cpu, &running_cpus);
	/* It begins anew, and never returns from the functions in which the CPU has died. */
	kprobe_flush_task(idle_task(cpu));
	rethook_flush_task(idle_task(cpu));
	/* Pairs with kprobes_wait_for_unwatched_cpus(): the CPU sees what it has missed. */
	smp_mb__after_atomic();
	return 0;
}

/*
 * kprobe_queue_irq_work() - Queue irq_work that a hit asks for. Any context.
 *
 * Not on a CPU that is not online: its interrupt would be lost, and the CPU would never run
 * irq_work again. kprobes_do_work_of() makes up for it.
 */
void __kprobes kprobe_queue_irq_work(struct irq_work *work)
{
	if (cpu_online(raw_smp_processor_id()))
		irq_work_queue(work);
}

/* @cpu was not online for a while. */
static int kprobes_do_work_of(unsigned int cpu)
{
	kprobes_clean_up_later();
	if (IS_ENABLED(CONFIG_KRETPROBES) && !IS_ENABLED(CONFIG_KRETPROBE_ON_RETHOOK))
		kretprobe_pools_look();
	return 0;
}

static int kprobes_cpu_is_dead(unsigned int cpu)
{
	cpumask_clear_cpu(cpu, &running_cpus);
	return kprobes_do_work_of(cpu);
}

/*
 * Is no CPU on its way up or down? Then those that are not online have not been started yet: state
 * control has stopped them before that. But while the kernel boots, the lock is free between two
 * steps of one CPU.
 */
static bool kprobes_hotplug_rests(void)
{
	if (!IS_ENABLED(CONFIG_CPU_HOTPLUG_STATE_CONTROL) || system_state < SYSTEM_RUNNING ||
	    !cpus_read_trylock())
		return false;
	cpus_read_unlock();
	return true;
}

/*
 * Not by the hotplug lock, which is held for long, and which the caller may hold. Of all
 * callbacks on the control CPU, ours is the last one before a CPU is started, and the first
 * one after it is dead: hotplug runs no code in between that could wait for the caller. While the
 * kernel boots, all CPUs may be started before the callbacks of one run: these must not wait.
 */
static void kprobes_wait_for_unwatched_cpus(void)
{
	smp_mb();	/* a CPU that starts later sees that the probes are unlinked */
	while (!cpumask_subset(&running_cpus, cpu_online_mask) && !kprobes_hotplug_rests())
		schedule_timeout_uninterruptible(1);
	smp_mb();	/* its handlers are over before their probes are freed */
}

/*
 * kprobes_must_not_wait() - Check for a caller that must not change probes
 *
 * Registration takes mutexes, and waits for handlers, for readers of RCU and for other
 * CPUs. The task that a handler or an interrupt has interrupted may hold the mutexes.
 *
 * Returns true in a handler, and in an interrupt in one; where preemption or interrupts are off,
 * and in a reader of RCU, as far as the configuration lets the kernel know.
 */
bool kprobes_must_not_wait(void)
{
	if (in_atomic() || irqs_disabled() || rcu_preempt_depth())
		return true;
	/* Preemption is off in a handler. Only where that is not counted, ask for the hit. */
	if (IS_ENABLED(CONFIG_PREEMPT_COUNT))
		return false;
	guard(preempt_notrace)();
	return kprobe_running();
}

/*
 * kprobes_wait_for_handlers() - Wait until all running handlers have returned
 *
 * On return no handler of a probe that was unlinked, or disabled, before the call is running. No
 * lock of kprobes is held. An expedited grace period interrupts busy CPUs, but so did the text
 * patching before it, and callers that attach thousands of probes one by one need its speed.
 */
void kprobes_wait_for_handlers(void)
{
	synchronize_rcu_expedited();
	kprobes_wait_for_unwatched_cpus();
}

/*
 * kprobes_wait_for_tasks() - Wait for tasks in slots, detours and displaced text
 *
 * On return no task is in one that it could reach before the call and no hit reaches any more. No
 * lock is held.
 */
void kprobes_wait_for_tasks(void)
{
	synchronize_rcu_tasks();
	kprobes_wait_for_unwatched_cpus();
}

static int __init kprobes_init_waits(void)
{
	cpuhp_setup_state_nocalls(CPUHP_AP_ONLINE_DYN, "kprobes:online", kprobes_do_work_of, NULL);
	return cpuhp_setup_state(CPUHP_BP_PREPARE_DYN_END, "kprobes:running",
				 kprobes_cpu_starts, kprobes_cpu_is_dead);
}
early_initcall(kprobes_init_waits);
