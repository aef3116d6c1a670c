// SPDX-License-Identifier: GPL-2.0
/* Tasks that sleep, or exit, inside a host. */
#include <linux/compiler.h>
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/kthread.h>
#include <linux/sched.h>
#include <linux/sched/task.h>

#include "probes.h"
#include "sleepers.h"

struct sleeper kpt_sleepers[200];
static unsigned int number_of_sleepers;
static DECLARE_COMPLETION(wake_up);

int kpt_sleep_inside(void *sleeper)
{
	complete(&((struct sleeper *)sleeper)->arrived);
	wait_for_completion_timeout(&wake_up, PATIENCE);
	return VISITED;
}

int kpt_exit_inside(void *sleeper)
{
	complete(&((struct sleeper *)sleeper)->arrived);
	kthread_exit(VISITED);
}

static void unpin_tester(void *unused)
{
	set_cpus_allowed_ptr(current, cpu_possible_mask);
}

/* Until its end, the test runs on the first CPU. */
void kpt_pin_tester(struct kunit *test)
{
	unsigned int first = cpumask_first(cpu_online_mask);

	KUNIT_ASSERT_EQ(test, set_cpus_allowed_ptr(current, cpumask_of(first)), 0);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, unpin_tester, NULL), 0);
}

static int sleeper_thread(void *sleeper)
{
	struct sleeper *s = sleeper;
	int result = kprobes_test_visit(s->host, s->inside, s);

	OPTIMIZER_HIDE_VAR(result);	/* no tail call */
	return result;
}

/* Start a task, and wait until it is inside the host. */
struct task_struct *kpt_start_task(struct kunit *test, const struct host *host,
				   int (*inside)(void *sleeper))
{
	struct sleeper *s = &kpt_sleepers[number_of_sleepers];

	KUNIT_ASSERT_LT(test, number_of_sleepers, ARRAY_SIZE(kpt_sleepers));
	s->host = host;
	s->inside = inside;
	init_completion(&s->arrived);
	s->task = kthread_create(sleeper_thread, s, "kprobes_test");
	KUNIT_ASSERT_FALSE(test, IS_ERR(s->task));
	get_task_struct(s->task);
	number_of_sleepers++;
	wake_up_process(s->task);
	KUNIT_ASSERT_TRUE(test, wait_for_completion_timeout(&s->arrived, PATIENCE));
	return s->task;
}

/* Start tasks that sleep inside the host until kpt_wake_sleepers(). */
void kpt_start_sleepers(struct kunit *test, const struct host *host, unsigned int count)
{
	while (count--)
		kpt_start_task(test, host, kpt_sleep_inside);
}

/* Wait until all tasks have ended. Returns how many of them returned a wrong result. */
unsigned int kpt_wake_sleepers(void)
{
	unsigned int wrong = 0;

	complete_all(&wake_up);
	while (number_of_sleepers)
		wrong += kthread_stop_put(kpt_sleepers[--number_of_sleepers].task) != VISITED;
	reinit_completion(&wake_up);
	return wrong;
}
