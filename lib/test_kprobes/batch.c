// SPDX-License-Identifier: GPL-2.0
/* One call registers several probes: all of them, or none. */
#include <linux/string.h>

#include "arming.h"
#include "probes.h"

static void batch_is_registered(struct kunit *test)
{
	struct kprobe *all[PLACES + 1];
	unsigned int n;

	for (n = 0; n < PLACES; n++)
		all[n] = n % 2 ? kpt_probe('a' + n, kpt_places[n].symbol)
			       : kpt_post_probe('a' + n, kpt_places[n].symbol);
	all[n++] = kpt_post_probe('e', TRACED->symbol);

	for (int i = 0; i < 2; i++) {
		KUNIT_ASSERT_EQ(test, register_kprobes(all, n), 0);
		EXPECT_CALLS(test, "aA", "ebE", "cC", "d");
		unregister_kprobes(all, n);
		EXPECT_CALLS(test, "", "", "", "");
		for (unsigned int j = 0; j < n; j++) {
			KUNIT_EXPECT_FALSE(test, kpt_is_linked(all[j]));
			all[j]->addr = NULL;
		}
	}
}

static void empty_batch_is_refused(struct kunit *test)
{
	struct kprobe *a = kpt_probe('a', TARGET->symbol);

	KUNIT_EXPECT_EQ(test, register_kprobes(&a, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, register_kprobes(&a, -1), -EINVAL);
	KUNIT_EXPECT_EQ(test, register_kprobes(NULL, 0), -EINVAL);
	KUNIT_EXPECT_NULL(test, a->addr);
	EXPECT_CALL(test, TARGET, "");
}

/**
 * struct bad_probe - A probe that makes the registration of a batch fail
 * @desc:	What is wrong with the probe.
 * @symbol:	The probe's symbol.
 * @offset:	The probe's offset.
 * @blocked:	The probe is valid, but cannot be armed.
 * @err:	What register_kprobes() returns.
 */
struct bad_probe {
	const char *desc;
	const char *symbol;
	unsigned int offset;
	bool blocked;
	int err;
};

static const struct bad_probe bad_probes[] = {
	{ "unknown symbol", "kprobes_test_no_such_function", .err = -ENOENT },
	{ "neither symbol nor address", NULL, .err = -EINVAL },
	{ "blacklisted function", "kprobes_test_blacklisted", .err = -EINVAL },
	{ "blacklisted function of the kernel", "get_kprobe", .err = -EINVAL },
#ifdef CONFIG_X86
	{ "inside an instruction", "mktime64", .offset = 1, .err = -EILSEQ },
#endif
#ifdef CONFIG_KPROBES_ON_FTRACE
	{ "arming fails", "nsecs_to_jiffies64", .blocked = true, .err = -EBUSY },
#endif
};

KUNIT_ARRAY_PARAM_DESC(bad_probe, bad_probes, desc);

/* Prepare probe @name as a bad one. */
static struct kprobe *bad_probe(char name, const struct bad_probe *bad)
{
	struct kprobe *kp = bad->blocked ? kpt_post_probe(name, bad->symbol)
					 : kpt_probe(name, bad->symbol);

	kp->offset = bad->offset;
	return kp;
}

static void batch_is_refused(struct kunit *test, const struct bad_probe *bad,
			     unsigned int position)
{
	struct kprobe *all[PLACES + 1], given[ARRAY_SIZE(all)];
	unsigned int n = ARRAY_SIZE(all), i;

	for (i = 0; i < PLACES; i++)
		all[i < position ? i : i + 1] = kpt_probe('a' + i, kpt_places[i].symbol);
	all[position] = bad_probe('e', bad);
	for (i = 0; i < n; i++) {
		all[i]->addr = NULL;
		all[i]->flags = KPROBE_FLAG_REENTRANT;
		kpt_set_stale_results(all[i]);
		memcpy(&given[i], all[i], sizeof(given[i]));
	}

	KUNIT_EXPECT_EQ(test, register_kprobes(all, n), bad->err);
	for (i = 0; i < n; i++)
		EXPECT_UNTOUCHED(test, all[i], &given[i]);
	EXPECT_CALLS(test, "f", "gG", "", "");

	/* Without the bad probe, the batch is registered. */
	for (i = position; i < n - 1; i++)
		all[i] = all[i + 1];
	KUNIT_EXPECT_EQ(test, register_kprobes(all, n - 1), 0);
	EXPECT_CALLS(test, "af", "bgG", "c", "d");
	unregister_kprobes(all, n - 1);
}

static void batch_is_all_or_nothing(struct kunit *test)
{
	const struct bad_probe *bad = test->param_value;

	if (bad->blocked)
		kpt_block_arming(test, OTHER_TRACED);
	ASSERT_REGISTERED(test, kpt_probe('f', TARGET->symbol));
	ASSERT_REGISTERED(test, kpt_post_probe('g', TRACED->symbol));
	for (unsigned int position = 0; position <= PLACES; position++)
		batch_is_refused(test, bad, position);
	if (bad->blocked)
		kpt_unblock_arming(test);
}

/* The order in which errors are detected, and the probes' addresses, make no difference. */
static void first_error_of_a_batch_is_returned(struct kunit *test)
{
	const struct bad_probe *bad = bad_probes;
	struct kprobe *all[3] = { kpt_probe('a', TARGET->symbol) };

	for (unsigned int i = 0; i < ARRAY_SIZE(bad_probes); i++) {
		for (unsigned int j = 0; j < ARRAY_SIZE(bad_probes); j++) {
			if (i == j || bad[i].blocked || bad[j].blocked)
				continue;
			all[1] = bad_probe('b', &bad[i]);
			all[2] = bad_probe('c', &bad[j]);
			for (unsigned int k = 0; k < ARRAY_SIZE(all); k++)
				all[k]->addr = NULL;
			KUNIT_EXPECT_EQ_MSG(test, register_kprobes(all, 3), bad[i].err,
					    "%s, then %s", bad[i].desc, bad[j].desc);
		}
	}
	EXPECT_CALL(test, TARGET, "");
}

static struct kunit_case kprobes_batch_cases[] = {
	KUNIT_CASE(batch_is_registered),
	KUNIT_CASE(empty_batch_is_refused),
	KUNIT_CASE_PARAM(batch_is_all_or_nothing, bad_probe_gen_params),
	KUNIT_CASE(first_error_of_a_batch_is_returned),
	{ }
};

static struct kunit_suite kprobes_batch_suite = {
	.name = "kprobes-batch",
	.suite_init = kpt_start_suite,
	.init = kpt_start_test,
	.exit = kpt_end_test,
	.test_cases = kprobes_batch_cases,
};

kunit_test_suite(kprobes_batch_suite);
