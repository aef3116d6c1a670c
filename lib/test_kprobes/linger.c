// SPDX-License-Identifier: GPL-2.0
/* A handler that keeps another CPU busy while its probe is unregistered. */
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/kthread.h>
#include <linux/sched.h>
#include <linux/sched/task.h>

#include "linger.h"
#include "probes.h"

/**
 * struct lingering - A call of the handler on another CPU
 * @entered:	Whether the handler has begun.
 * @left:	Whether the handler has ended.
 * @task:	The task that calls the probed function.
 */
static struct lingering {
	bool entered;
	bool left;
	struct task_struct *task;
} lingering;

/* To be called by the handler. */
void kpt_linger(void)
{
	if (current != lingering.task)
		return;
	WRITE_ONCE(lingering.entered, true);
	mdelay(200);
	WRITE_ONCE(lingering.left, true);
}

static int linger_thread(void *place)
{
	u64 result = kpt_call(place);

	while (!kthread_should_stop())
		schedule_timeout_interruptible(1);
	return result != ((const struct place *)place)->result;
}

/* Return when another CPU, which calls @place, is in the handler. */
void kpt_begin_lingering(struct kunit *test, const struct place *place)
{
	unsigned long end = jiffies + PATIENCE;
	unsigned int cpu;

	lingering = (struct lingering){ };
	lingering.task = kthread_create(linger_thread, (void *)place, "kprobes_linger");
	KUNIT_ASSERT_FALSE(test, IS_ERR(lingering.task));
	get_task_struct(lingering.task);
	/* A kernel that is not preempted would let this loop keep the other CPU. */
	migrate_disable();
	cpu = cpumask_any_but(cpu_online_mask, smp_processor_id());
	set_cpus_allowed_ptr(lingering.task, cpumask_of(cpu));
	wake_up_process(lingering.task);
	while (!READ_ONCE(lingering.entered) && time_before(jiffies, end))
		cpu_relax();
	migrate_enable();
}

/* Check that the handler has ended: its probe has been unregistered. */
void kpt_end_lingering(struct kunit *test)
{
	bool left = READ_ONCE(lingering.left);

	KUNIT_EXPECT_EQ(test, kthread_stop_put(lingering.task), 0);
	KUNIT_EXPECT_TRUE(test, lingering.entered);
	KUNIT_EXPECT_TRUE(test, left);
}
