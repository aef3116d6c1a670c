// SPDX-License-Identifier: GPL-2.0
/* Instances of return probes, while tasks sleep, migrate or exit in probed functions. */
#include <linux/atomic.h>
#include <linux/cpu.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/gfp.h>
#include <linux/jiffies.h>
#include <linux/mm.h>
#include <linux/numa.h>
#include <linux/ptrace.h>
#include <linux/sched.h>

#include "hosts.h"
#include "linger.h"
#include "load.h"
#include "return_probes.h"
#include "sleepers.h"

static int sleep_a_moment(void *unused)
{
	schedule_timeout_uninterruptible(1);
	return VISITED;
}

static void probed_function_sleeps(struct kunit *test)
{
	const struct host *host = test->param_value;

	ASSERT_RETURN_PROBED(test, kpt_return_probe('r', host->symbol));
	kpt_start_sleepers(test, host, 1);
	EXPECT_VISIT(test, host, sleep_a_moment, NULL, "rR");
	EXPECT_SLEEPERS_RETURN(test);
	KUNIT_EXPECT_EQ(test, atomic_read(&kpt_test_kretprobe('r')->entries), 2);
	KUNIT_EXPECT_EQ(test, atomic_read(&kpt_test_kretprobe('r')->exits), 2);
	KUNIT_EXPECT_EQ(test, kpt_test_kretprobe('r')->rp.nmissed, 0);
}

static int migrate(void *unused)
{
	unsigned int other = cpumask_any_but(cpu_online_mask, raw_smp_processor_id());

	return set_cpus_allowed_ptr(current, cpumask_of(other)) ? 0 : VISITED;
}

static int note_cpu(struct test_kretprobe *p, struct kretprobe_instance *ri, struct pt_regs *regs)
{
	p->data = smp_processor_id();
	return 0;
}

static void compare_cpu(struct test_kretprobe *p, struct kretprobe_instance *ri,
			struct pt_regs *regs)
{
	if (p->data == smp_processor_id())
		kpt_note('!');
}

/* An instance that was returned on another CPU can be taken again on this one. */
static void probed_function_migrates(struct kunit *test)
{
	const struct host *host = test->param_value;
	struct kretprobe *r = kpt_return_probe('r', host->symbol);

	if (num_online_cpus() < 2)
		kunit_skip(test, "needs two CPUs");
	r->maxactive = 1;
	kpt_test_kretprobe('r')->on_entry = note_cpu;
	kpt_test_kretprobe('r')->on_return = compare_cpu;
	ASSERT_RETURN_PROBED(test, r);
	/* From now on the scheduler moves the task nowhere. */
	KUNIT_EXPECT_EQ(test, migrate(NULL), VISITED);
	for (int i = 0; i < 5; i++) {
		EXPECT_VISIT(test, host, migrate, NULL, "rR");
		KUNIT_EXPECT_EQ(test, migrate(NULL), VISITED);
	}
	KUNIT_EXPECT_EQ(test, r->nmissed, 0);
	set_cpus_allowed_ptr(current, cpu_possible_mask);
}

static bool return_is_seen(const struct host *host)
{
	kpt_clear_journal();
	kprobes_test_visit(host, kpt_do_nothing_inside, NULL);
	return !strcmp(kpt_journal, "rR");
}

/* Some time after the task has exited, its instance is free again. */
static void task_exits_in_a_probed_function(struct kunit *test)
{
	const struct host *host = test->param_value;
	struct kretprobe *r = kpt_return_probe('r', host->symbol);
	unsigned long end = jiffies + PATIENCE;

	r->maxactive = 1;
	ASSERT_RETURN_PROBED(test, r);
	for (int i = 0; i < 3; i++) {
		kpt_start_task(test, host, kpt_exit_inside);
		EXPECT_SLEEPERS_RETURN(test);
		while (!return_is_seen(host) && time_before(jiffies, end))
			usleep_range(100, 200);
		KUNIT_EXPECT_STREQ(test, kpt_journal, "rR");
		KUNIT_EXPECT_EQ(test, atomic_read(&kpt_test_kretprobe('r')->entries), 2 * (i + 1));
		KUNIT_EXPECT_EQ(test, atomic_read(&kpt_test_kretprobe('r')->exits), i + 1);
	}
}

/* With maxactive, there are exactly as many instances. */
static void maxactive_is_exact(struct kunit *test)
{
	const struct host *host = test->param_value;
	struct kretprobe *r = kpt_return_probe('r', host->symbol);

	r->maxactive = 12;
	ASSERT_RETURN_PROBED(test, r);
	for (int i = 1; i <= 3; i++) {
		kpt_start_sleepers(test, host, 17);
		EXPECT_SLEEPERS_RETURN(test);
		KUNIT_EXPECT_EQ(test, r->nmissed, 5 * i);
		KUNIT_EXPECT_EQ(test, atomic_read(&kpt_test_kretprobe('r')->entries), 12 * i);
		KUNIT_EXPECT_EQ(test, atomic_read(&kpt_test_kretprobe('r')->exits), 12 * i);
	}
	kpt_start_sleepers(test, host, 12);
	EXPECT_SLEEPERS_RETURN(test);
	KUNIT_EXPECT_EQ(test, r->nmissed, 15);
}

/*
 * Without maxactive, the pool grows to what has been needed so far. Calls may be missed
 * while it grows, which takes a moment in process context.
 */
static void pool_grows(struct kunit *test)
{
	unsigned int initial = kpt_initial_instances();
	const struct host *host = test->param_value;
	struct kretprobe *r = kpt_return_probe('r', host->symbol);
	int missed = 0;

	if (IS_ENABLED(CONFIG_KRETPROBE_ON_RETHOOK) || initial > ARRAY_SIZE(kpt_sleepers) / 3)
		kunit_skip(test, "the pool does not grow, or has too many instances already");
	ASSERT_RETURN_PROBED(test, r);
	for (unsigned int i = 0; i < ARRAY_SIZE(kpt_sleepers); i++) {
		kpt_start_task(test, host, kpt_sleep_inside);
		if (r->nmissed != missed)
			msleep(20);
		missed = r->nmissed;
	}
	EXPECT_SLEEPERS_RETURN(test);
	KUNIT_EXPECT_LT(test, missed, 10);

	atomic_set(&kpt_test_kretprobe('r')->exits, 0);
	kpt_start_sleepers(test, host, ARRAY_SIZE(kpt_sleepers));
	EXPECT_SLEEPERS_RETURN(test);
	KUNIT_EXPECT_EQ(test, r->nmissed, missed);
	KUNIT_EXPECT_EQ(test, atomic_read(&kpt_test_kretprobe('r')->exits),
			ARRAY_SIZE(kpt_sleepers));
}

#ifndef CONFIG_KRETPROBE_ON_RETHOOK
static atomic_t pool_works;

static int count_pool_work(struct kprobe *kp, struct pt_regs *regs)
{
	atomic_inc(&pool_works);
	return 0;
}

/* It has exactly as many instances then. Calls that it misses queue no work any more. */
static void pool_grows_to_its_maximum(struct kunit *test)
{
	unsigned int initial = kpt_initial_instances(), max = initial + initial / 2;
	struct kretprobe *r = kpt_return_probe('r', HOST->symbol);
	struct kprobe *a = kpt_probe('a', "kretprobe_pool_work");

	if (3 * max > ARRAY_SIZE(kpt_sleepers))
		kunit_skip(test, "the pool has too many instances already");
	a->pre_handler = count_pool_work;
	ASSERT_REGISTERED(test, a);
	ASSERT_RETURN_PROBED(test, r);
	r->pool->max = max;
	for (unsigned int i = 0; i < 2 * max; i++) {
		kpt_start_task(test, HOST, kpt_sleep_inside);
		msleep(20);
	}
	KUNIT_EXPECT_EQ(test, 2 * max - r->nmissed, max);
	atomic_set(&pool_works, 0);
	kpt_start_sleepers(test, HOST, max);
	msleep(100);
	KUNIT_EXPECT_EQ(test, r->nmissed, 2 * max);
	KUNIT_EXPECT_EQ(test, atomic_read(&pool_works), 0);
	EXPECT_SLEEPERS_RETURN(test);
	KUNIT_EXPECT_EQ(test, atomic_read(&kpt_test_kretprobe('r')->exits), max);
}

/*
 * Instances, in steps of 8 bytes, and their shadow take memory in proportion, on however many CPUs.
 * There are so many that what others take meanwhile does not count.
 */
static void instances_take_memory_in_proportion(struct kunit *test)
{
	const unsigned int count = 1000000;
	const unsigned int bytes = count * ALIGN(sizeof(struct kretprobe_instance), sizeof(u64));
	struct kretprobe *r = kpt_return_probe('r', HOST->symbol);
	unsigned int shadow = IS_ENABLED(CONFIG_KASAN_VMALLOC) ? bytes / 8 : 0;
	struct sysinfo before, after;

	r->maxactive = count;
	si_meminfo(&before);
	ASSERT_RETURN_PROBED(test, r);
	si_meminfo(&after);
	KUNIT_EXPECT_LT(test, (before.freeram - after.freeram) * PAGE_SIZE,
			bytes / 10 * 11 + shadow);
}

#define MANY_INSTANCES	10000

static atomic_t allocations, deadly_allocations;

/* NUMA_NO_NODE has all bits set. */
static bool has_gfp(struct pt_regs *regs, gfp_t gfp)
{
	u32 arg;

	for (unsigned int n = 1; n < 4; n++) {
		arg = regs_get_kernel_argument(regs, n);
		if (arg != (u32)NUMA_NO_NODE && (arg & (__force u32)gfp) == (__force u32)gfp)
			return true;
	}
	return false;
}

static int look_at_allocation(struct kprobe *kp, struct pt_regs *regs)
{
	if (regs_get_kernel_argument(regs, 0) < MANY_INSTANCES * sizeof(void *))
		return 0;
	atomic_inc(&allocations);
	if (!has_gfp(regs, GFP_KERNEL | __GFP_NORETRY))
		atomic_inc(&deadly_allocations);
	return 0;
}

/* If memory is short, calls are missed, but the OOM killer is not called. */
static void instances_kill_no_task(struct kunit *test)
{
	struct kretprobe *r = kpt_return_probe('r', HOST->symbol);
	struct kprobe *a = kpt_probe('a', "__kvmalloc_node_noprof");

	if (!IS_ENABLED(CONFIG_X86_64))
		kunit_skip(test, "arguments are not in registers");
	a->pre_handler = look_at_allocation;
	r->maxactive = MANY_INSTANCES;
	ASSERT_REGISTERED(test, a);
	atomic_set(&allocations, 0);
	atomic_set(&deadly_allocations, 0);
	ASSERT_RETURN_PROBED(test, r);
	KUNIT_EXPECT_GT(test, atomic_read(&allocations), 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&deadly_allocations), 0);
}
#endif

static void call_in_flight_at_registration_is_not_seen(struct kunit *test)
{
	const struct host *host = test->param_value;

	kpt_start_sleepers(test, host, 2);
	ASSERT_RETURN_PROBED(test, kpt_return_probe('r', host->symbol));
	EXPECT_VISIT(test, host, kpt_do_nothing_inside, NULL, "rR");
	EXPECT_SLEEPERS_RETURN(test);
	KUNIT_EXPECT_EQ(test, atomic_read(&kpt_test_kretprobe('r')->exits), 1);
}

/* An unregistered return probe may be freed at once, even if calls are in flight. */
static void call_outlives_its_return_probe(struct kunit *test)
{
	const struct host *host = test->param_value;
	struct kretprobe *r = kpt_return_probe('r', host->symbol);

	atomic_set(&kpt_late_returns, 0);
	for (unsigned int i = 0; i < 3; i++) {
		struct kretprobe *older, *newer;

		r->kp.addr = NULL;
		older = kpt_create_return_probe(test, host, 0, kpt_destroy_return_probe);
		ASSERT_RETURN_PROBED(test, r);
		newer = kpt_create_return_probe(test, host, 2, kpt_destroy_return_probe);
		kpt_start_sleepers(test, host, 3);
		KUNIT_EXPECT_EQ(test, newer->nmissed, 1);
		kunit_release_action(test, kpt_destroy_return_probe, older);
		kunit_release_action(test, kpt_destroy_return_probe, newer);
		if (i == 1)
			unregister_kretprobe(r);
		EXPECT_VISIT(test, host, kpt_do_nothing_inside, NULL, i == 1 ? "" : "rR");
		EXPECT_SLEEPERS_RETURN(test);
		EXPECT_VISIT(test, host, kpt_do_nothing_inside, NULL, i == 1 ? "" : "rR");
		KUNIT_EXPECT_EQ(test, atomic_read(&kpt_late_returns), 0);
		unregister_kretprobe(r);
	}
	KUNIT_EXPECT_EQ(test, atomic_read(&kpt_test_kretprobe('r')->exits), 10);
}

static int linger_in_handler(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	kpt_linger();
	return 0;
}

static void unregistering_waits_for_return_handlers(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kretprobe *r = kpt_return_probe('r', place->symbol);

	if (num_online_cpus() < 2)
		kunit_skip(test, "needs two CPUs");
	for (int entry = 0; entry < 2; entry++) {
		r->kp.addr = NULL;
		r->entry_handler = entry ? linger_in_handler : NULL;
		r->handler = entry ? NULL : linger_in_handler;
		ASSERT_RETURN_PROBED(test, r);
		kpt_begin_lingering(test, place);
		unregister_kretprobe(r);
		kpt_end_lingering(test);
	}
}

#ifdef CONFIG_HOTPLUG_CPU
/* A CPU keeps an instance when it goes offline: it can be taken, and is freed with the rest. */
static void instances_of_offline_cpu_are_used_and_freed(struct kunit *test)
{
	unsigned long cpu = cpumask_last(cpu_online_mask);
	struct kretprobe *r = kpt_return_probe('r', HOST->symbol);
	struct kretprobe *s = kpt_return_probe('s', HOST->symbol);

	if (!OWN_RETURN_PROBES || num_online_cpus() < 2)
		kunit_skip(test, "needs caches of instances, and two CPUs");
	r->maxactive = 1;
	s->maxactive = 1;
	ASSERT_RETURN_PROBED(test, r);
	ASSERT_RETURN_PROBED(test, s);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, kpt_put_online, (void *)cpu), 0);
	KUNIT_ASSERT_EQ(test, set_cpus_allowed_ptr(current, cpumask_of(cpu)), 0);
	EXPECT_VISIT(test, HOST, kpt_do_nothing_inside, NULL, "srRS");
	set_cpus_allowed_ptr(current, cpu_possible_mask);
	KUNIT_ASSERT_EQ(test, remove_cpu(cpu), 0);

	kpt_count_freed_pools(test);	/* hotplug frees memory per CPU, too */
	unregister_kretprobe(s);
	kpt_expect_freed_pools(test, 1);
	EXPECT_VISIT(test, HOST, kpt_do_nothing_inside, NULL, "rR");
	KUNIT_EXPECT_EQ(test, r->nmissed, 0);
}

static int ignore_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	return 0;
}

/* It never returns from the functions that it was in. Each other one needs one instance. */
static void idle_task_of_dead_cpu_has_no_instances(struct kunit *test)
{
	unsigned long cpu = cpumask_last(cpu_online_mask);
	struct kretprobe *r = kpt_return_probe('r', "do_idle");

	if (num_online_cpus() < 2)
		kunit_skip(test, "needs two CPUs");
	r->entry_handler = NULL;
	r->handler = ignore_return;
	r->maxactive = num_online_cpus() + 1;
	ASSERT_RETURN_PROBED(test, r);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, kpt_put_online, (void *)cpu), 0);
	for (int i = 0; i < 4; i++) {
		KUNIT_ASSERT_EQ(test, remove_cpu(cpu), 0);
		KUNIT_ASSERT_EQ(test, add_cpu(cpu), 0);
	}
	KUNIT_EXPECT_EQ(test, r->nmissed, 0);
}
#endif

static struct kunit_case kretprobes_tasks_cases[] = {
	KUNIT_CASE_PARAM(probed_function_sleeps, kpt_host_gen_params),
	KUNIT_CASE_PARAM(probed_function_migrates, kpt_host_gen_params),
	KUNIT_CASE_PARAM(task_exits_in_a_probed_function, kpt_host_gen_params),
	KUNIT_CASE_PARAM(maxactive_is_exact, kpt_host_gen_params),
	KUNIT_CASE_PARAM(pool_grows, kpt_host_gen_params),
#ifndef CONFIG_KRETPROBE_ON_RETHOOK
	KUNIT_CASE_SLOW(pool_grows_to_its_maximum),
	KUNIT_CASE(instances_take_memory_in_proportion),
	KUNIT_CASE(instances_kill_no_task),
#endif
	KUNIT_CASE_PARAM(call_in_flight_at_registration_is_not_seen, kpt_host_gen_params),
	KUNIT_CASE_PARAM(call_outlives_its_return_probe, kpt_host_gen_params),
	KUNIT_CASE_PARAM(unregistering_waits_for_return_handlers, kpt_place_gen_params),
#ifdef CONFIG_HOTPLUG_CPU
	KUNIT_CASE(instances_of_offline_cpu_are_used_and_freed),
	KUNIT_CASE_SLOW(idle_task_of_dead_cpu_has_no_instances),
#endif
	{ }
};

static struct kunit_suite kretprobes_tasks_suite = {
	.name = "kretprobes-tasks",
	.suite_init = kpt_start_return_suite,
	.init = kpt_start_return_test,
	.exit = kpt_end_return_test,
	.test_cases = kretprobes_tasks_cases,
};

kunit_test_suite(kretprobes_tasks_suite);
