// SPDX-License-Identifier: GPL-2.0
/* Each allocation fails once while return probes are registered or unregistered. */
#include <linux/string.h>

#include "memory.h"
#include "return_probes.h"

static void memory_runs_out_for_return_probes(struct kunit *test)
{
	struct kretprobe *all[] = {
		kpt_return_probe('r', TARGET->symbol), kpt_return_probe('s', TRACED->symbol),
		kpt_return_probe('t', OTHER_TRACED->symbol),
	};
	struct kretprobe given[ARRAY_SIZE(all)];
	bool failed = true;
	unsigned int i;
	int err;

	kpt_need_failslab(test);
	if (!OWN_RETURN_PROBES)
		kunit_skip(test, "rethook warns when memory runs out");
	ASSERT_RETURN_PROBED(test, kpt_return_probe('u', TARGET->symbol));
	for (unsigned int nth = 1; failed; nth++) {
		for (i = 0; i < ARRAY_SIZE(all); i++) {
			all[i]->kp.addr = NULL;
			all[i]->kp.flags = 0;
			kpt_set_stale_return_results(all[i]);
			memcpy(&given[i], all[i], sizeof(given[i]));
		}
		kpt_fail_allocation(test, nth);
		err = register_kretprobes(all, ARRAY_SIZE(all));
		failed = kpt_allocation_has_failed();
		EXPECT_CALL(test, TARGET, err ? "uU" : "ruUR");
		EXPECT_CALL(test, TRACED, err ? "" : "sS");
		EXPECT_CALL(test, OTHER_TRACED, err ? "" : "tT");
		if (!err) {	/* some allocations are optional */
			unregister_kretprobes(all, ARRAY_SIZE(all));
			continue;
		}
		KUNIT_EXPECT_TRUE(test, failed);
		KUNIT_EXPECT_EQ_MSG(test, err, -ENOMEM, "allocation %u", nth);
		for (i = 0; i < ARRAY_SIZE(all); i++)
			EXPECT_RETURN_UNTOUCHED(test, all[i], &given[i]);
	}
}

static void memory_runs_out_when_unregistering_return_probes(struct kunit *test)
{
	struct kretprobe *all[] = {
		kpt_return_probe('r', TARGET->symbol), kpt_return_probe('s', TRACED->symbol),
	};
	bool failed = true;

	kpt_need_failslab(test);
	for (unsigned int nth = 1; failed; nth++) {
		all[0]->kp.addr = NULL;
		all[1]->kp.addr = NULL;
		KUNIT_ASSERT_EQ(test, register_kretprobes(all, 2), 0);
		kpt_fail_allocation(test, nth);
		unregister_kretprobes(all, 2);
		failed = kpt_allocation_has_failed();
		EXPECT_CALL(test, TARGET, "");
		EXPECT_CALL(test, TRACED, "");
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
