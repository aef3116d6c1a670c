// SPDX-License-Identifier: GPL-2.0
/* Deaths: tasks that sleep and that exit in functions with return probes. */
#include <linux/completion.h>
#include <linux/err.h>
#include <linux/jiffies.h>
#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/kthread.h>
#include <linux/sched.h>
#include <linux/sched/task.h>
#include <linux/string.h>
#include <linux/torture.h>

#include "torture.h"

#define TASKS		16

noinline void kprobes_torture_sleeper(bool exit);

/**
 * struct crowd - Tasks in a function with a return probe
 * @rp:		The return probe.
 * @exit:	Whether the tasks exit in the function.
 * @tasks:	The tasks.
 * @left:	The number of tasks that have not ended.
 * @empty:	When there are none left.
 * @entries:	Calls of the entry handler.
 * @exits:	Calls of the return handler.
 */
static struct crowd {
	struct kretprobe rp;
	bool exit;
	struct task_struct *tasks[TASKS];
	atomic_t left;
	struct completion empty;
	atomic_long_t entries;
	atomic_long_t exits;
} crowd;

static int crowd_entry(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	atomic_long_inc(&crowd.entries);
	return 0;
}

static int crowd_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	atomic_long_inc(&crowd.exits);
	return 0;
}

static void leave_crowd(void)
{
	if (atomic_dec_and_test(&crowd.left))
		complete(&crowd.empty);
}

/* Sleep, then return, or exit with the instance of a return probe. */
noinline void kprobes_torture_sleeper(bool exit)
{
	schedule_timeout_uninterruptible(1);
	if (exit) {
		leave_crowd();
		kthread_exit(0);
	}
	barrier();
}

static int crowd_task(void *unused)
{
	void (*function)(bool exit) = kprobes_torture_sleeper;

	OPTIMIZER_HIDE_VAR(function);
	function(crowd.exit);
	leave_crowd();
	return 0;
}

/* Let a crowd of tasks call the function. */
static void run_crowd(bool exit)
{
	unsigned long missed = crowd.rp.nmissed + crowd.rp.kp.nmissed;
	unsigned long entries, returns;
	unsigned int tasks = 0;

	crowd.exit = exit;
	atomic_set(&crowd.left, 1);
	reinit_completion(&crowd.empty);
	atomic_long_set(&crowd.entries, 0);
	atomic_long_set(&crowd.exits, 0);
	for (unsigned int i = 0; i < TASKS; i++) {
		struct task_struct *task = kthread_create(crowd_task, NULL, "kt_crowd/%u", i);

		if (IS_ERR(task))
			continue;
		atomic_inc(&crowd.left);
		crowd.tasks[tasks++] = get_task_struct(task);
		wake_up_process(task);
	}
	leave_crowd();
	wait_for_completion(&crowd.empty);
	/* Each of them may still have to return, or exit, in this module's text. */
	for (unsigned int i = 0; i < tasks; i++)
		kthread_stop_put(crowd.tasks[i]);
	missed = crowd.rp.nmissed + crowd.rp.kp.nmissed - missed;
	entries = atomic_long_read(&crowd.entries);
	returns = atomic_long_read(&crowd.exits);
	/* All may be missed: tasks of the previous crowd may still have their instances. */
	KT_EXPECT(entries + missed == tasks, "%u tasks, %lu entries, %lu missed",
		  tasks, entries, missed);
	KT_EXPECT(returns == (exit ? 0 : entries), "%lu entries, %lu returns", entries, returns);
	atomic_long_add(exit ? entries : 0, &kt_stats.deaths);
}

/* Thread: a return probe, and crowds in its function. */
int kt_deaths(void *index)
{
	struct rnd_state rnd;
	int err;

	init_completion(&crowd.empty);
	kt_seed(&rnd, (unsigned long)index);
	while (!kt_must_stop()) {
		memset(&crowd.rp, 0, sizeof(crowd.rp));
		crowd.rp.kp.symbol_name = "kprobes_torture_sleeper";
		crowd.rp.entry_handler = crowd_entry;
		crowd.rp.handler = crowd_return;
		crowd.rp.maxactive = kt_below(&rnd, 2 * TASKS);
		kt_begin_shortage(&rnd);
		err = kt_end_shortage(register_kretprobe(&crowd.rp));
		if (kt_may_fail_with(err))
			continue;
		if (!KT_EXPECT(!err, "%d", err))
			break;
		scoped_guard(rwsem_read, &kt_armed) {
			for (unsigned int i = 0; i < 4; i++)
				run_crowd(kt_below(&rnd, 2));
		}
		kt_begin_shortage(&rnd);
		unregister_kretprobe(&crowd.rp);
		kt_end_shortage(0);
		stutter_wait("kt_deaths");
	}
	torture_kthread_stopping("kt_deaths");
	return 0;
}
