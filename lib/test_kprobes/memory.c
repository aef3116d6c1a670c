// SPDX-License-Identifier: GPL-2.0
/*
 * Each allocation of an operation fails once. A registration then changes nothing; to
 * disable or unregister probes needs no memory.
 */
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "load.h"
#include "memory.h"
#include "probes.h"

static void set_fail_nth(unsigned int nth)
{
	WRITE_ONCE(current->fail_nth, nth);
}

/* Let the @nth allocation of this task, counted from now, fail. */
void kpt_fail_allocation(struct kunit *test, unsigned int nth)
{
	KUNIT_ASSERT_LT(test, nth, 1000);	/* nothing needs that many */
	set_fail_nth(nth);
}

/* Let no further allocation fail. Returns whether one has. */
bool kpt_allocation_has_failed(void)
{
	bool failed = !READ_ONCE(current->fail_nth);

	set_fail_nth(0);
	return failed;
}

/* Skip the test where allocations cannot be made to fail. */
void kpt_need_failslab(struct kunit *test)
{
	void *memory;

	set_fail_nth(1);
	memory = kmalloc(1, GFP_KERNEL);
	set_fail_nth(0);
	kfree(memory);
	if (memory)
		kunit_skip(test, "write N to debugfs' failslab/ignore-gfp-wait");
}

/* Probes of all kinds: with breakpoints and through ftrace, two at one address, disabled. */
static struct kprobe *array[6];

static void prepare_array(void)
{
	array[0] = kpt_probe('a', TARGET->symbol);
	array[1] = kpt_post_probe('b', TRACED->symbol);
	array[2] = kpt_post_probe('c', OTHER_TARGET->symbol);
	array[3] = kpt_probe('d', OTHER_TRACED->symbol);
	array[4] = kpt_probe('f', TARGET->symbol);
	array[5] = kpt_probe('g', OTHER_TARGET->symbol);
	for (unsigned int i = 0; i < ARRAY_SIZE(array); i++) {
		array[i]->addr = NULL;
		array[i]->flags = i == 5 ? KPROBE_FLAG_DISABLED : 0;
	}
}

static void run_out_at_registration(struct kunit *test)
{
	struct kprobe given[ARRAY_SIZE(array)];
	bool failed = true;
	unsigned int i;
	int err;

	ASSERT_REGISTERED(test, kpt_probe('e', TARGET->symbol));
	for (unsigned int nth = 1; failed; nth++) {
		prepare_array();
		for (i = 0; i < ARRAY_SIZE(array); i++) {
			kpt_set_stale_results(array[i]);
			memcpy(&given[i], array[i], sizeof(given[i]));
		}
		kpt_fail_allocation(test, nth);
		err = register_kprobes(array, ARRAY_SIZE(array));
		failed = kpt_allocation_has_failed();
		if (!err) {	/* some allocations are optional */
			EXPECT_CALLS(test, "fae", "bB", "cC", "d");
			unregister_kprobes(array, ARRAY_SIZE(array));
			continue;
		}
		KUNIT_EXPECT_TRUE(test, failed);
		KUNIT_EXPECT_EQ_MSG(test, err, -ENOMEM, "allocation %u", nth);
		for (i = 0; i < ARRAY_SIZE(array); i++)
			EXPECT_UNTOUCHED(test, array[i], &given[i]);
		EXPECT_CALLS(test, "e", "", "", "");
	}
}

static void memory_runs_out_at_registration(struct kunit *test)
{
	kpt_need_failslab(test);
	run_out_at_registration(test);
}

static void memory_runs_out_at_registration_under_load(struct kunit *test)
{
	kpt_need_failslab(test);
	kpt_begin_load(test, TARGET->call, TARGET->result, TARGET->result);
	run_out_at_registration(test);
	kpt_expect_load(test);
}

static void memory_runs_out_when_enabling(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = kpt_post_probe('a', place->symbol);
	bool failed = true;
	int err;

	kpt_need_failslab(test);
	a->flags = KPROBE_FLAG_DISABLED;
	ASSERT_REGISTERED(test, a);
	for (unsigned int nth = 1; failed; nth++) {
		kpt_fail_allocation(test, nth);
		err = enable_kprobe(a);
		failed = kpt_allocation_has_failed();
		KUNIT_EXPECT_EQ(test, kprobe_disabled(a), !!err);
		EXPECT_CALL(test, place, err ? "" : "aA");
		if (err)
			KUNIT_EXPECT_EQ_MSG(test, err, -ENOMEM, "allocation %u", nth);
		else
			KUNIT_EXPECT_EQ(test, disable_kprobe(a), 0);
	}
}

static void memory_runs_out_when_unregistering(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = kpt_post_probe('a', place->symbol);
	struct kprobe *b = kpt_probe('b', place->symbol);
	bool failed = true;

	kpt_need_failslab(test);
	ASSERT_REGISTERED(test, b);
	for (unsigned int nth = 1; failed; nth++) {
		a->addr = NULL;
		ASSERT_REGISTERED(test, a);
		EXPECT_CALL(test, place, "abA");
		kpt_fail_allocation(test, nth);
		unregister_kprobe(a);
		failed = kpt_allocation_has_failed();
		EXPECT_CALL(test, place, "b");
	}
}

static void memory_runs_out_when_unregistering_an_array(struct kunit *test)
{
	bool failed = true;

	kpt_need_failslab(test);
	ASSERT_REGISTERED(test, kpt_probe('e', TARGET->symbol));
	for (unsigned int nth = 1; failed; nth++) {
		prepare_array();
		KUNIT_ASSERT_EQ(test, register_kprobes(array, ARRAY_SIZE(array)), 0);
		EXPECT_CALLS(test, "fae", "bB", "cC", "d");
		kpt_fail_allocation(test, nth);
		unregister_kprobes(array, ARRAY_SIZE(array));
		failed = kpt_allocation_has_failed();
		for (unsigned int i = 0; i < ARRAY_SIZE(array); i++)
			KUNIT_EXPECT_FALSE(test, kpt_is_linked(array[i]));
		EXPECT_CALLS(test, "e", "", "", "");
	}
}

static void memory_runs_out_when_disabling(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = kpt_probe('a', place->symbol);
	bool failed = true;

	kpt_need_failslab(test);
	/* As all probes through ftrace share a filter, TRACED is removed from it. */
	ASSERT_REGISTERED(test, kpt_probe('b', OTHER_TRACED->symbol));
	ASSERT_REGISTERED(test, a);
	for (unsigned int nth = 1; failed; nth++) {
		kpt_fail_allocation(test, nth);
		KUNIT_EXPECT_EQ(test, disable_kprobe(a), 0);
		failed = kpt_allocation_has_failed();
		EXPECT_CALL(test, place, "");
		EXPECT_CALL(test, OTHER_TRACED, "b");
		KUNIT_EXPECT_EQ(test, enable_kprobe(a), 0);
		EXPECT_CALL(test, place, "a");
	}
}

static struct kunit_case kprobes_memory_cases[] = {
	KUNIT_CASE(memory_runs_out_at_registration),
	KUNIT_CASE(memory_runs_out_at_registration_under_load),
	KUNIT_CASE_PARAM(memory_runs_out_when_enabling, kpt_place_gen_params),
	KUNIT_CASE_PARAM(memory_runs_out_when_unregistering, kpt_place_gen_params),
	KUNIT_CASE(memory_runs_out_when_unregistering_an_array),
	KUNIT_CASE_PARAM(memory_runs_out_when_disabling, kpt_place_gen_params),
	{ }
};

static struct kunit_suite kprobes_memory_suite = {
	.name = "kprobes-memory",
	.suite_init = kpt_start_suite,
	.init = kpt_start_test,
	.exit = kpt_end_test,
	.test_cases = kprobes_memory_cases,
};

kunit_test_suite(kprobes_memory_suite);
