// SPDX-License-Identifier: GPL-2.0
/* A jump that cannot be made for a while is made later. */
#include <linux/delay.h>
#include <linux/ptrace.h>

#include "../optimize.h"
#include "../return_probes.h"
#include "functions.h"
#include "jump_snippets.h"

/* A function that only returns. */
void kprobes_test_return(void);

KPT_ASM_FUNCTION(kprobes_test_return, RETURN);

/**
 * struct obstacle - A reason for no jump that does not last
 * @desc:	Description.
 * @symbol:	A function that the optimiser calls.
 * @result:	What that returns as long as the obstacle is there.
 */
struct obstacle {
	const char *desc;
	const char *symbol;
	long result;
};

static const struct obstacle obstacles[] = {
	{ "no memory", "kprobe_get_optinsn_slot", 0 },
	{ "breakpoint of kgdb", "arch_check_optimized_kprobe", -EAGAIN },
};

KUNIT_ARRAY_PARAM_DESC(obstacle, obstacles, desc);

static long obstacle_result;
static bool obstacle_is_there;
static atomic_t obstructions;

/* As long as the obstacle is there, have the probed function return its result. */
static int obstruct(struct kprobe *kp, struct pt_regs *regs)
{
	if (!READ_ONCE(obstacle_is_there))
		return 0;
	atomic_inc(&obstructions);
	regs->ax = obstacle_result;
	regs->ip = (unsigned long)kprobes_test_return;
	return 1;
}

static void jump_is_made_once_obstacle_is_gone(struct kunit *test)
{
	const struct obstacle *obstacle = test->param_value;
	struct kprobe *a = kpt_probe('a', TARGET->symbol);
	struct kprobe *b = kpt_probe('b', obstacle->symbol);

	b->pre_handler = obstruct;
	obstacle_result = obstacle->result;
	WRITE_ONCE(obstacle_is_there, true);
	atomic_set(&obstructions, 0);
	ASSERT_REGISTERED(test, b);
	ASSERT_REGISTERED(test, a);
	msleep(500);
	KUNIT_EXPECT_FALSE(test, kprobe_optimized(a));
	KUNIT_EXPECT_GT(test, atomic_read(&obstructions), 0);
	EXPECT_CALL(test, TARGET, "a");
	WRITE_ONCE(obstacle_is_there, false);
	kpt_expect_optimized_on_retry(test, a);
	EXPECT_CALL(test, TARGET, "a");
}

static struct kunit_case optprobes_x86_obstacles_cases[] = {
	KUNIT_CASE_PARAM(jump_is_made_once_obstacle_is_gone, obstacle_gen_params),
	{ }
};

static struct kunit_suite optprobes_x86_obstacles_suite = {
	.name = "optprobes-x86-obstacles",
	.suite_init = kpt_start_return_suite,
	.init = kpt_start_return_test,
	.exit = kpt_end_return_test,
	.test_cases = optprobes_x86_obstacles_cases,
};

kunit_test_suite(optprobes_x86_obstacles_suite);
