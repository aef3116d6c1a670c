// SPDX-License-Identifier: GPL-2.0
/*
 * Each allocation fails once while jumper probes are registered, enabled, disabled or
 * unregistered.
 */
#include <linux/sched.h>
#include <linux/string.h>

#include "load.h"
#include "memory.h"
#include "probes.h"

static u64 note_and_return(u64 arg)
{
	if (current == kpt_tester)
		kpt_note('j');
	jprobe_return();
	return 0;
}

static struct jprobe jprobes[2];
static struct jprobe *all[] = { &jprobes[0], &jprobes[1] };

/* Prepare both anew: one has a breakpoint, one is probed through ftrace. */
static void prepare_jprobes(void)
{
	memset(jprobes, 0, sizeof(jprobes));
	jprobes[0].kp.symbol_name = TARGET->symbol;
	jprobes[1].kp.symbol_name = TRACED->symbol;
	for (unsigned int i = 0; i < ARRAY_SIZE(jprobes); i++) {
		jprobes[i].entry = JPROBE_ENTRY(note_and_return);
		kpt_set_stale_results(&jprobes[i].kp);
	}
}

static void run_out_at_registration(struct kunit *test)
{
	struct jprobe given[ARRAY_SIZE(jprobes)];
	bool failed = true;
	int err;

	for (unsigned int nth = 1; failed; nth++) {
		prepare_jprobes();
		memcpy(given, jprobes, sizeof(given));
		kpt_fail_allocation(test, nth);
		err = register_jprobes(all, ARRAY_SIZE(all));
		failed = kpt_allocation_has_failed();
		EXPECT_CALL(test, TARGET, err ? "" : "j");
		EXPECT_CALL(test, TRACED, err ? "" : "j");
		if (!err) {	/* some allocations are optional */
			unregister_jprobes(all, ARRAY_SIZE(all));
			continue;
		}
		KUNIT_EXPECT_TRUE(test, failed);
		KUNIT_EXPECT_EQ_MSG(test, err, -ENOMEM, "allocation %u", nth);
		for (unsigned int i = 0; i < ARRAY_SIZE(jprobes); i++)
			EXPECT_UNTOUCHED(test, &jprobes[i].kp, &given[i].kp);
	}
}

static void memory_runs_out_for_jprobes(struct kunit *test)
{
	kpt_need_failslab(test);
	run_out_at_registration(test);
}

static void memory_runs_out_for_jprobes_under_load(struct kunit *test)
{
	kpt_need_failslab(test);
	kpt_begin_load(test, TARGET->call, TARGET->result, TARGET->result);
	run_out_at_registration(test);
	kpt_expect_load(test);
}

static void memory_runs_out_when_enabling_jprobes(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct jprobe *j = &jprobes[place == TRACED];
	bool failed = true;
	int err;

	kpt_need_failslab(test);
	j->kp.flags = KPROBE_FLAG_DISABLED;
	KUNIT_ASSERT_EQ(test, register_jprobe(j), 0);
	for (unsigned int nth = 1; failed; nth++) {
		kpt_fail_allocation(test, nth);
		err = enable_jprobe(j);
		failed = kpt_allocation_has_failed();
		KUNIT_EXPECT_EQ(test, kprobe_disabled(&j->kp), !!err);
		EXPECT_CALL(test, place, err ? "" : "j");
		if (err)
			KUNIT_EXPECT_EQ_MSG(test, err, -ENOMEM, "allocation %u", nth);
		else
			KUNIT_EXPECT_EQ(test, disable_jprobe(j), 0);
	}
}

/* Neither needs memory. */
static void memory_runs_out_when_removing_jprobes(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct jprobe *j = &jprobes[place == TRACED];
	bool failed = true;

	kpt_need_failslab(test);
	for (unsigned int nth = 1; failed; nth++) {
		prepare_jprobes();
		KUNIT_ASSERT_EQ(test, register_jprobe(j), 0);
		kpt_fail_allocation(test, nth);
		KUNIT_EXPECT_EQ(test, disable_jprobe(j), 0);
		failed = kpt_allocation_has_failed();
		EXPECT_CALL(test, place, "");
		KUNIT_EXPECT_EQ(test, enable_jprobe(j), 0);
		EXPECT_CALL(test, place, "j");
		kpt_fail_allocation(test, nth);
		unregister_jprobe(j);
		failed |= kpt_allocation_has_failed();
		EXPECT_CALL(test, place, "");
	}
}

static struct kunit_case jprobes_memory_cases[] = {
	KUNIT_CASE(memory_runs_out_for_jprobes),
	KUNIT_CASE(memory_runs_out_for_jprobes_under_load),
	KUNIT_CASE_PARAM(memory_runs_out_when_enabling_jprobes, kpt_place_gen_params),
	KUNIT_CASE_PARAM(memory_runs_out_when_removing_jprobes, kpt_place_gen_params),
	{ }
};

static int start_test(struct kunit *test)
{
	prepare_jprobes();
	return kpt_start_test(test);
}

static void end_test(struct kunit *test)
{
	unregister_jprobes(all, ARRAY_SIZE(all));
	kpt_end_test(test);
}

static struct kunit_suite jprobes_memory_suite = {
	.name = "jprobes-memory",
	.suite_init = kpt_start_suite,
	.init = start_test,
	.exit = end_test,
	.test_cases = jprobes_memory_cases,
};

kunit_test_suite(jprobes_memory_suite);
