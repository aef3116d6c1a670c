// SPDX-License-Identifier: GPL-2.0
/* Each allocation of a registration fails once: nothing may have changed then. */
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "memory.h"
#include "probes.h"

/* Let the @nth allocation of this task from now on fail, none if that is 0. */
void kpt_fail_allocation(unsigned int nth)
{
	WRITE_ONCE(current->fail_nth, nth);
}

/* End that, and tell whether it has happened. */
bool kpt_allocation_has_failed(void)
{
	bool failed = !READ_ONCE(current->fail_nth);

	kpt_fail_allocation(0);
	return failed;
}

void kpt_need_failslab(struct kunit *test)
{
	void *memory;

	kpt_fail_allocation(1);
	memory = kmalloc(1, GFP_KERNEL);
	kpt_fail_allocation(0);
	kfree(memory);
	if (memory)
		kunit_skip(test, "write N to debugfs' failslab/ignore-gfp-wait");
}

static void memory_runs_out_at_registration(struct kunit *test)
{
	struct kprobe *all[] = {
		kpt_probe('a', TARGET->symbol), kpt_post_probe('b', TRACED->symbol),
		kpt_post_probe('c', OTHER_TARGET->symbol), kpt_probe('d', OTHER_TRACED->symbol),
	};
	struct kprobe given[ARRAY_SIZE(all)];
	bool failed = true;
	unsigned int i;
	int err;

	kpt_need_failslab(test);
	ASSERT_REGISTERED(test, kpt_probe('e', TARGET->symbol));
	for (unsigned int nth = 1; failed; nth++) {
		KUNIT_ASSERT_LT(test, nth, 1000);
		for (i = 0; i < ARRAY_SIZE(all); i++) {
			all[i]->addr = NULL;
			kpt_leave_results(all[i]);
			memcpy(&given[i], all[i], sizeof(given[i]));
		}
		kpt_fail_allocation(nth);
		err = register_kprobes(all, ARRAY_SIZE(all));
		failed = kpt_allocation_has_failed();
		if (!err) {	/* there are allocations that we can do without */
			EXPECT_CALL(test, TARGET, "ae");
			EXPECT_CALL(test, TRACED, "bB");
			EXPECT_CALL(test, OTHER_TARGET, "cC");
			EXPECT_CALL(test, OTHER_TRACED, "d");
			unregister_kprobes(all, ARRAY_SIZE(all));
			for (i = 0; i < ARRAY_SIZE(all); i++)
				all[i]->flags = 0;
			continue;
		}
		KUNIT_EXPECT_TRUE(test, failed);
		KUNIT_EXPECT_EQ_MSG(test, err, -ENOMEM, "allocation %u", nth);
		for (i = 0; i < ARRAY_SIZE(all); i++)
			EXPECT_UNTOUCHED(test, all[i], &given[i]);
		EXPECT_CALL(test, TARGET, "e");
		EXPECT_CALL(test, TRACED, "");
		EXPECT_CALL(test, OTHER_TARGET, "");
		EXPECT_CALL(test, OTHER_TRACED, "");
	}
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
		KUNIT_ASSERT_LT(test, nth, 1000);
		kpt_fail_allocation(nth);
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

/* What takes a probe away does not fail. */
static void memory_runs_out_when_unregistering(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = kpt_post_probe('a', place->symbol);
	struct kprobe *b = kpt_probe('b', place->symbol);
	bool failed = true;

	kpt_need_failslab(test);
	ASSERT_REGISTERED(test, b);
	for (unsigned int nth = 1; failed; nth++) {
		KUNIT_ASSERT_LT(test, nth, 1000);
		a->addr = NULL;
		ASSERT_REGISTERED(test, a);
		EXPECT_CALL(test, place, "abA");
		kpt_fail_allocation(nth);
		unregister_kprobe(a);
		failed = kpt_allocation_has_failed();
		EXPECT_CALL(test, place, "b");
	}
}

static void memory_runs_out_when_disabling(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = kpt_probe('a', place->symbol);
	bool failed = true;

	/* ftrace keeps a list for all of these probes. */
	kpt_need_failslab(test);
	ASSERT_REGISTERED(test, kpt_probe('b', OTHER_TRACED->symbol));
	ASSERT_REGISTERED(test, a);
	for (unsigned int nth = 1; failed; nth++) {
		KUNIT_ASSERT_LT(test, nth, 1000);
		kpt_fail_allocation(nth);
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
	KUNIT_CASE_PARAM(memory_runs_out_when_enabling, kpt_place_gen_params),
	KUNIT_CASE_PARAM(memory_runs_out_when_unregistering, kpt_place_gen_params),
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
