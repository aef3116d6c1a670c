// SPDX-License-Identifier: GPL-2.0
/* Each allocation fails once while return probes are registered or unregistered. */
#include <linux/string.h>

#include "memory.h"
#include "return_probes.h"

/* With a breakpoint and through ftrace, and a disabled one at the address of the first. */
static struct kretprobe *array[4];

static void prepare_array(void)
{
	array[0] = kpt_return_probe('r', TARGET->symbol);
	array[1] = kpt_return_probe('s', TRACED->symbol);
	array[2] = kpt_return_probe('t', OTHER_TRACED->symbol);
	array[3] = kpt_return_probe('v', TARGET->symbol);
	for (unsigned int i = 0; i < ARRAY_SIZE(array); i++) {
		array[i]->kp.addr = NULL;
		array[i]->kp.flags = i == 3 ? KPROBE_FLAG_DISABLED : 0;
	}
}

static void memory_runs_out_for_return_probes(struct kunit *test)
{
	struct kretprobe given[ARRAY_SIZE(array)];
	bool failed = true;
	unsigned int i;
	int err;

	kpt_need_failslab(test);
	if (!OWN_RETURN_PROBES)
		kunit_skip(test, "rethook warns when memory runs out");
	ASSERT_RETURN_PROBED(test, kpt_return_probe('u', TARGET->symbol));
	for (unsigned int nth = 1; failed; nth++) {
		prepare_array();
		for (i = 0; i < ARRAY_SIZE(array); i++) {
			kpt_set_stale_return_results(array[i]);
			memcpy(&given[i], array[i], sizeof(given[i]));
		}
		kpt_fail_allocation(test, nth);
		err = register_kretprobes(array, ARRAY_SIZE(array));
		failed = kpt_allocation_has_failed();
		EXPECT_CALL(test, TARGET, err ? "uU" : "ruUR");
		EXPECT_CALL(test, TRACED, err ? "" : "sS");
		EXPECT_CALL(test, OTHER_TRACED, err ? "" : "tT");
		if (!err) {	/* some allocations are optional */
			unregister_kretprobes(array, ARRAY_SIZE(array));
			continue;
		}
		KUNIT_EXPECT_TRUE(test, failed);
		KUNIT_EXPECT_EQ_MSG(test, err, -ENOMEM, "allocation %u", nth);
		for (i = 0; i < ARRAY_SIZE(array); i++)
			EXPECT_RETURN_UNTOUCHED(test, array[i], &given[i]);
	}
}

static void memory_runs_out_when_unregistering_return_probes(struct kunit *test)
{
	bool failed = true;

	kpt_need_failslab(test);
	for (unsigned int nth = 1; failed; nth++) {
		prepare_array();
		KUNIT_ASSERT_EQ(test, register_kretprobes(array, ARRAY_SIZE(array)), 0);
		kpt_fail_allocation(test, nth);
		unregister_kretprobes(array, ARRAY_SIZE(array));
		failed = kpt_allocation_has_failed();
		for (unsigned int i = 0; i < ARRAY_SIZE(array); i++)
			KUNIT_EXPECT_FALSE(test, kpt_is_linked(&array[i]->kp));
		EXPECT_CALL(test, TARGET, "");
		EXPECT_CALL(test, TRACED, "");
		EXPECT_CALL(test, OTHER_TRACED, "");
	}
}

static struct kunit_case kretprobes_memory_cases[] = {
	KUNIT_CASE(memory_runs_out_for_return_probes),
	KUNIT_CASE(memory_runs_out_when_unregistering_return_probes),
	{ }
};

static struct kunit_suite kretprobes_memory_suite = {
	.name = "kretprobes-memory",
	.suite_init = kpt_start_return_suite,
	.init = kpt_start_return_test,
	.exit = kpt_end_return_test,
	.test_cases = kretprobes_memory_cases,
};

kunit_test_suite(kretprobes_memory_suite);
