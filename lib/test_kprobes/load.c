// SPDX-License-Identifier: GPL-2.0
/* Load: threads on all CPUs that call a function, and probes that count their hits. */
#include <linux/cpu.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/kthread.h>
#include <linux/sched.h>
#include <linux/sched/task.h>
#include <linux/string.h>

#include "load.h"
#include "targets.h"

struct load kpt_load;

static int load_thread(void *unused)
{
	unsigned int n = 0;
	u64 result;

	while (!READ_ONCE(kpt_load.stop)) {
		result = kpt_call_untyped(kpt_load.function, ARG);
		if (result == kpt_load.result)
			atomic_inc(&kpt_load.results);
		else if (result == kpt_load.other)
			atomic_inc(&kpt_load.others);
		else
			atomic_inc(&kpt_load.wrong);
		if (!(++n % 64))
			usleep_range(50, 100);
	}
	return 0;
}

void kpt_end_load(void *unused)
{
	WRITE_ONCE(kpt_load.stop, true);
	for (unsigned int i = 0; i < ARRAY_SIZE(kpt_load.threads); i++) {
		if (!kpt_load.threads[i])
			continue;
		kthread_stop_put(kpt_load.threads[i]);
		kpt_load.threads[i] = NULL;
	}
}

/* The affinity of a thread whose CPU goes offline is reset: it runs on another CPU then. */
void kpt_begin_load(struct kunit *test, u64 (*function)(u64 arg), u64 result, u64 other)
{
	unsigned int i = 0, cpu;

	kpt_load = (struct load){ .function = function, .result = result, .other = other };
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, kpt_end_load, NULL), 0);
	for_each_online_cpu(cpu) {
		struct task_struct *task;

		task = kthread_create(load_thread, NULL, "kprobes_load/%u", cpu);
		KUNIT_ASSERT_FALSE(test, IS_ERR(task));
		set_cpus_allowed_ptr(task, cpumask_of(cpu));
		kpt_load.threads[i++] = get_task_struct(task);
		wake_up_process(task);
		if (i == ARRAY_SIZE(kpt_load.threads))
			break;
	}
}

static int busy_thread(void *unused)
{
	while (!READ_ONCE(kpt_load.stop))
		cond_resched();
	while (!kthread_should_stop())
		schedule_timeout_interruptible(1);
	return 0;
}

/*
 * Until @kpt_load.stop is set, keep grace periods of RCU-tasks from ending: cond_resched() is
 * no voluntary switch.
 */
void kpt_hold_off_rcu_tasks(struct kunit *test)
{
	struct task_struct *task;

	kpt_load = (struct load){ };
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, kpt_end_load, NULL), 0);
	task = kthread_create(busy_thread, NULL, "kprobes_busy");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	kpt_load.threads[0] = get_task_struct(task);
	set_cpus_allowed_ptr(task, cpumask_of(cpumask_last(cpu_online_mask)));
	wake_up_process(task);
}

/* End the load, and check the results of all calls. */
void kpt_expect_load(struct kunit *test)
{
	kunit_release_action(test, kpt_end_load, NULL);
	KUNIT_EXPECT_GT(test, atomic_read(&kpt_load.results), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&kpt_load.wrong), 0);
}

#ifdef CONFIG_HOTPLUG_CPU
/* For the end of a test that takes @cpu offline. */
void kpt_put_online(void *cpu)
{
	add_cpu((unsigned long)cpu);
}
#endif

struct counting_probe kpt_counting[3];

static int count_hit(struct kprobe *kp, struct pt_regs *regs)
{
	atomic_inc(&container_of(kp, struct counting_probe, kp)->hits);
	return 0;
}

void kpt_unregister_counting(void *unused)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(kpt_counting); i++)
		unregister_kprobe(&kpt_counting[i].kp);
}

/* Prepare the counting probe @i. */
struct kprobe *kpt_counting_probe(unsigned int i, unsigned long addr)
{
	struct kprobe *kp = &kpt_counting[i].kp;

	kp->addr = (kprobe_opcode_t *)addr;
	kp->pre_handler = count_hit;
	return kp;
}

/* Reset the counting probes. They are unregistered at the end of the test. */
void kpt_prepare_counting(struct kunit *test)
{
	memset(kpt_counting, 0, sizeof(kpt_counting));
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, kpt_unregister_counting, NULL), 0);
}
