// SPDX-License-Identifier: GPL-2.0
/*
 * Allocations of work in the background fail: of the optimizer, and of what makes a return
 * probe's pool grow. A return probe on the work lets each allocation fail once.
 */
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/kconfig.h>
#include <linux/sched.h>
#include <linux/string.h>

#include "hosts.h"
#include "load.h"
#include "memory.h"
#include "optimize.h"
#include "return_probes.h"
#include "sleepers.h"

/* Which allocation of each work fails, or 0; in how many one has, and whether any work ended. */
static unsigned int failing_nth;
static unsigned int failures;
static bool has_ended;

static int begin_work(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	WRITE_ONCE(current->fail_nth, READ_ONCE(failing_nth));
	return 0;
}

/* The worker's next work is somebody else's. */
static int end_work(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	if (READ_ONCE(failing_nth) && !READ_ONCE(current->fail_nth))
		WRITE_ONCE(failures, READ_ONCE(failures) + 1);
	/* Work that only releases pools allocates nothing. */
	if (READ_ONCE(current->fail_nth) != READ_ONCE(failing_nth))
		WRITE_ONCE(has_ended, true);
	WRITE_ONCE(current->fail_nth, 0);
	return 0;
}

static struct kretprobe work_probe;

static void unregister_work_probe(void *unused)
{
	unregister_kretprobe(&work_probe);
}

/* Until the end of the test, allocations of @function can be made to fail. */
static void prepare_to_fail(struct kunit *test, const char *function)
{
	kpt_need_failslab(test);
	failing_nth = 0;
	work_probe = (struct kretprobe){
		.kp.symbol_name = function,
		.entry_handler = begin_work,
		.handler = end_work,
	};
	ASSERT_RETURN_PROBED(test, &work_probe);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, unregister_work_probe, NULL), 0);
}

static void begin_to_fail(struct kunit *test, unsigned int nth)
{
	KUNIT_ASSERT_LT(test, nth, 1000);	/* no work needs that many */
	WRITE_ONCE(failures, 0);
	WRITE_ONCE(has_ended, false);
	WRITE_ONCE(failing_nth, nth);
}

/* Returns in how many works an allocation has failed since begin_to_fail(). */
static unsigned int end_to_fail(void)
{
	WRITE_ONCE(failing_nth, 0);
	return READ_ONCE(failures);
}

#ifdef CONFIG_OPTPROBES
/* Free the detours of earlier tests, and their pages: the next detour needs one. */
static void free_detour_page(struct kunit *test)
{
	struct kprobe *a = kpt_probe('a', TARGET->symbol);

	ASSERT_REGISTERED(test, a);
	unregister_kprobe(a);
	kpt_wait_until_site_is_freed(test, a);
}

/* Without memory there is no jump. The breakpoint does what it did. */
static void run_out_for_jump(struct kunit *test)
{
	struct kprobe *a = kpt_probe('a', TARGET->symbol);
	struct kprobe *b = kpt_post_probe('b', TARGET->symbol);
	unsigned int refused = 0;
	bool failed = true;

	free_detour_page(test);
	for (unsigned int nth = 1; failed; nth++) {
		a->addr = NULL;
		b->addr = NULL;
		begin_to_fail(test, nth);
		ASSERT_REGISTERED(test, a);
		ASSERT_REGISTERED(test, b);
		wait_for_kprobe_optimizer();
		failed = end_to_fail();
		refused += !kprobe_optimized(a);
		KUNIT_EXPECT_TRUE_MSG(test, failed || kprobe_optimized(a), "allocation %u", nth);
		EXPECT_CALL(test, TARGET, "baB");
		unregister_kprobe(a);
		unregister_kprobe(b);
		KUNIT_EXPECT_MEMEQ(test, kpt_text(TARGET), kpt_unprobed_text[0], TEXT_BYTES);
		EXPECT_CALL(test, TARGET, "");
	}
	kunit_info(test, "%u allocations were needed\n", refused);
	if (IS_ENABLED(CONFIG_X86))
		KUNIT_EXPECT_GT(test, refused, 0);
}

static void memory_runs_out_for_jump(struct kunit *test)
{
	prepare_to_fail(test, "optimizer_run");
	run_out_for_jump(test);
}

static void memory_runs_out_for_jump_under_load(struct kunit *test)
{
	prepare_to_fail(test, "optimizer_run");
	kpt_begin_load(test, TARGET->call, TARGET->result, TARGET->result);
	run_out_for_jump(test);
	kpt_expect_load(test);
}
#endif

/* On a busy host the worker gets its CPU late. */
static void expect_work_ends(struct kunit *test)
{
	unsigned long timeout = jiffies + 30 * HZ;

	while (!READ_ONCE(has_ended) && time_before(jiffies, timeout))
		msleep(20);
	KUNIT_EXPECT_TRUE(test, READ_ONCE(has_ended));
}

/* Make calls until one is not missed. Returns their number. */
static unsigned int tasks_until_pool_grows(struct kunit *test, const struct kretprobe *r)
{
	unsigned int tasks = 0;
	int missed;

	do {
		missed = r->nmissed;
		kpt_start_task(test, HOST, kpt_sleep_inside);
		KUNIT_ASSERT_LT(test, ++tasks, 50);
		msleep(20);
	} while (r->nmissed != missed);
	return tasks;
}

/*
 * A pool that cannot grow misses calls, and counts them. It grows a moment later.
 */
static void memory_runs_out_when_pool_grows(struct kunit *test)
{
	unsigned int initial = kpt_initial_instances();
	unsigned int refused = 0;
	unsigned int tasks;
	struct kretprobe *r;
	bool failed = true;
	int missed;

	if (IS_ENABLED(CONFIG_KRETPROBE_ON_RETHOOK) || 3 * initial > ARRAY_SIZE(kpt_sleepers))
		kunit_skip(test, "the pool does not grow, or has too many instances already");
	prepare_to_fail(test, "kretprobe_pool_work");
	for (unsigned int nth = 1; failed; nth++) {
		memset(kpt_test_kretprobe('r'), 0, sizeof(struct test_kretprobe));
		r = kpt_return_probe('r', HOST->symbol);
		ASSERT_RETURN_PROBED(test, r);
		begin_to_fail(test, nth);
		for (unsigned int i = 0; i < initial + 3; i++) {
			kpt_start_task(test, HOST, kpt_sleep_inside);
			usleep_range(5000, 6000);
		}
		expect_work_ends(test);
		failed = end_to_fail();
		missed = r->nmissed;
		refused += failed;
		KUNIT_EXPECT_LE_MSG(test, missed, 3, "allocation %u", nth);

		tasks = initial + 3 + tasks_until_pool_grows(test, r);
		missed = r->nmissed;
		kpt_start_sleepers(test, HOST, 5);
		KUNIT_EXPECT_EQ_MSG(test, r->nmissed, missed, "allocation %u", nth);
		EXPECT_SLEEPERS_RETURN(test);
		KUNIT_EXPECT_EQ(test, atomic_read(&kpt_test_kretprobe('r')->exits),
				tasks + 5 - missed);
		unregister_kretprobe(r);
	}
	kunit_info(test, "%u allocations were needed\n", refused);
	KUNIT_EXPECT_GT(test, refused, 0);
}

/* Once there is no memory, the pool waits before it tries again, however many calls are missed. */
static void missed_calls_do_not_repeat_work(struct kunit *test)
{
	struct kretprobe *r = kpt_return_probe('r', HOST->symbol);
	unsigned long began = jiffies;

	if (IS_ENABLED(CONFIG_KRETPROBE_ON_RETHOOK) ||
	    3 * kpt_initial_instances() > ARRAY_SIZE(kpt_sleepers))
		kunit_skip(test, "the pool does not grow, or has too many instances already");
	prepare_to_fail(test, "kretprobe_pool_work");
	ASSERT_RETURN_PROBED(test, r);
	begin_to_fail(test, 1);
	kpt_start_sleepers(test, HOST, kpt_initial_instances());
	for (unsigned int i = 0; i < 100; i++) {
		kprobes_test_visit(HOST, kpt_do_nothing_inside, NULL);
		usleep_range(1000, 2000);
	}
	expect_work_ends(test);
	KUNIT_EXPECT_EQ(test, r->nmissed, 100);
	/* The work begins early if it has another pool to release. */
	KUNIT_EXPECT_LE(test, end_to_fail(), 3 + (jiffies - began) / HZ);
	EXPECT_SLEEPERS_RETURN(test);
	unregister_kretprobe(r);
}

static struct kunit_case kprobes_memory_work_cases[] = {
#ifdef CONFIG_OPTPROBES
	KUNIT_CASE_SLOW(memory_runs_out_for_jump),
	KUNIT_CASE_SLOW(memory_runs_out_for_jump_under_load),
#endif
	KUNIT_CASE_SLOW(memory_runs_out_when_pool_grows),
	KUNIT_CASE(missed_calls_do_not_repeat_work),
	{ }
};

static struct kunit_suite kprobes_memory_work_suite = {
	.name = "kprobes-memory-work",
	.suite_init = kpt_start_return_suite,
	.init = kpt_start_return_test,
	.exit = kpt_end_return_test,
	.test_cases = kprobes_memory_work_cases,
};

kunit_test_suite(kprobes_memory_work_suite);
