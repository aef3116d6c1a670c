/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The part of the tests of kernel probes that makes load: threads that call a
 * function without end, and probes that count what all tasks hit.
 */
#ifndef _TEST_KPROBES_LOAD_H
#define _TEST_KPROBES_LOAD_H

#include <linux/atomic.h>
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/kthread.h>
#include <linux/sched/task.h>

/**
 * struct load - What a thread on each CPU does
 * @function:	It calls this, with ARG.
 * @result:	What that may return
 * @other:	or this instead.
 * @results:	How often it has returned the one
 * @others:	or the other.
 * @wrong:	And how often something else.
 * @stop:	It is to end.
 * @threads:	How many there are.
 */
static struct load {
	u64 (*function)(u64 arg);
	u64 result;
	u64 other;
	atomic_t results;
	atomic_t others;
	atomic_t wrong;
	bool stop;
	struct task_struct *threads[8];
} load;

static int be_load(void *unused)
{
	unsigned int n = 0;
	u64 result;

	while (!READ_ONCE(load.stop)) {
		result = load.function(ARG);
		if (result == load.result)
			atomic_inc(&load.results);
		else if (result == load.other)
			atomic_inc(&load.others);
		else
			atomic_inc(&load.wrong);
		if (!(++n % 64))
			usleep_range(50, 100);
	}
	return 0;
}

static void end_load(void *unused)
{
	WRITE_ONCE(load.stop, true);
	for (unsigned int i = 0; i < ARRAY_SIZE(load.threads); i++) {
		if (!load.threads[i])
			continue;
		kthread_stop_put(load.threads[i]);
		load.threads[i] = NULL;
	}
}

/* They are on CPUs of their own at first; one that goes offline leaves them to the others. */
static void begin_load(struct kunit *test, u64 (*function)(u64 arg), u64 result, u64 other)
{
	unsigned int i = 0, cpu;

	load = (struct load){ .function = function, .result = result, .other = other };
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, end_load, NULL), 0);
	for_each_online_cpu(cpu) {
		struct task_struct *task = kthread_create(be_load, NULL, "kprobes_load/%u", cpu);

		KUNIT_ASSERT_FALSE(test, IS_ERR(task));
		set_cpus_allowed_ptr(task, cpumask_of(cpu));
		load.threads[i++] = get_task_struct(task);
		wake_up_process(task);
		if (i == ARRAY_SIZE(load.threads))
			break;
	}
}

static void expect_load(struct kunit *test)
{
	kunit_release_action(test, end_load, NULL);
	KUNIT_EXPECT_GT(test, atomic_read(&load.results), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&load.wrong), 0);
}

#endif /* _TEST_KPROBES_LOAD_H */
