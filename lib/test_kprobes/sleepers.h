/* SPDX-License-Identifier: GPL-2.0 */
/* Tasks that sleep, or exit, inside a host. */
#ifndef _TEST_KPROBES_SLEEPERS_H
#define _TEST_KPROBES_SLEEPERS_H

#include <linux/completion.h>

#include <kunit/test.h>

#include "hosts.h"

/**
 * struct sleeper - A task inside a host
 * @task:	The task.
 * @host:	The host that the task calls.
 * @inside:	What the task calls inside the host.
 * @arrived:	The task is inside the host.
 */
struct sleeper {
	struct task_struct *task;
	const struct host *host;
	int (*inside)(void *sleeper);
	struct completion arrived;
};

extern struct sleeper kpt_sleepers[200];

int kpt_sleep_inside(void *sleeper);
int kpt_exit_inside(void *sleeper);
struct task_struct *kpt_start_task(struct kunit *test, const struct host *host,
				   int (*inside)(void *sleeper));
void kpt_start_sleepers(struct kunit *test, const struct host *host, unsigned int count);
unsigned int kpt_wake_sleepers(void);
void kpt_pin_tester(struct kunit *test);

/* Wake all sleepers: each of them returns what it should. */
#define EXPECT_SLEEPERS_RETURN(test)	KUNIT_EXPECT_EQ(test, kpt_wake_sleepers(), 0)

#endif /* _TEST_KPROBES_SLEEPERS_H */
