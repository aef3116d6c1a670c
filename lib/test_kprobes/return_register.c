// SPDX-License-Identifier: GPL-2.0
/* What register_kretprobe() accepts, and the errors with which it refuses the rest. */
#include <linux/string.h>

#include "return_probes.h"

static void return_probe_is_disabled_and_enabled(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kretprobe *r = kpt_return_probe('r', place->symbol);

	r->kp.flags = KPROBE_FLAG_DISABLED;
	ASSERT_RETURN_PROBED(test, r);
	for (int i = 0; i < 3; i++) {
		KUNIT_EXPECT_TRUE(test, kprobe_disabled(&r->kp));
		EXPECT_CALL(test, place, "");
		KUNIT_EXPECT_EQ(test, enable_kretprobe(r), 0);
		KUNIT_EXPECT_EQ(test, enable_kretprobe(r), 0);
		KUNIT_EXPECT_FALSE(test, kprobe_disabled(&r->kp));
		EXPECT_CALL(test, place, "rR");
		KUNIT_EXPECT_EQ(test, disable_kretprobe(r), 0);
		KUNIT_EXPECT_EQ(test, disable_kretprobe(r), 0);
	}
	ASSERT_RETURN_PROBED(test, kpt_return_probe('s', place->symbol));
	EXPECT_CALL(test, place, "sS");
	unregister_kretprobe(r);
	EXPECT_CALL(test, place, "sS");
	KUNIT_EXPECT_EQ(test, enable_kretprobe(r), -EINVAL);
	KUNIT_EXPECT_EQ(test, disable_kretprobe(r), -EINVAL);
}

static void return_probe_has_an_address(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kretprobe *r = kpt_return_probe('r', NULL);
	struct kretprobe *s = kpt_return_probe('s', NULL);

	EXPECT_RETURN_REFUSED(test, r, -EINVAL);
	r->kp.addr = (kprobe_opcode_t *)kpt_text(place);
	r->kp.symbol_name = place->symbol;
	EXPECT_RETURN_REFUSED(test, r, -EINVAL);
	r->kp.symbol_name = NULL;
	ASSERT_RETURN_PROBED(test, r);
	KUNIT_EXPECT_TRUE(test, kpt_is_linked(&r->kp));
	KUNIT_EXPECT_TRUE(test, r->kp.flags & KPROBE_FLAG_ON_FUNC_ENTRY);

	/* The address that registration has set can be registered. */
	s->kp.addr = r->kp.addr;
	ASSERT_RETURN_PROBED(test, s);
	KUNIT_EXPECT_PTR_EQ(test, s->kp.addr, r->kp.addr);
	EXPECT_CALL(test, place, "srRS");
}

static void only_entries_are_return_probed(struct kunit *test)
{
	struct kretprobe *r = kpt_return_probe('r', NULL);
	unsigned long entry = (unsigned long)kpt_text(TRACED);

	OPTIMIZER_HIDE_VAR(entry);	/* see kpt_text() */
	for (unsigned int offset = 17; offset < 25; offset++) {
		r->kp.addr = (kprobe_opcode_t *)(entry + offset);
		EXPECT_RETURN_REFUSED(test, r, -EINVAL);
		r->kp.addr = (kprobe_opcode_t *)entry;
		r->kp.offset = offset;
		EXPECT_RETURN_REFUSED(test, r, -EINVAL);
		r->kp.offset = 0;
	}
	EXPECT_CALL(test, TRACED, "");
}

/**
 * struct bad_return_probe - A return probe that is refused
 * @desc:	What is wrong with it.
 * @symbol:	Its symbol.
 * @offset:	Its offset.
 * @data_size:	Its size of data.
 * @maxactive:	Its number of instances.
 * @err:	What register_kretprobe() returns.
 */
struct bad_return_probe {
	const char *desc;
	const char *symbol;
	unsigned int offset;
	size_t data_size;
	int maxactive;
	int err;
};

static const struct bad_return_probe bad_return_probes[] = {
	{ "unknown symbol", "kprobes_test_no_such_function", .err = -ENOENT },
	{ "neither symbol nor address", NULL, .err = -EINVAL },
	{ "blacklisted function", "kprobes_test_blacklisted", .err = -EINVAL },
	{ "not an entry", "mktime64", .offset = 24, .err = -EINVAL },
	{ "too much data", "mktime64", .data_size = KRETPROBE_MAX_DATA_SIZE + 1, .err = -E2BIG },
	{ "very much data", "mktime64", .data_size = SIZE_MAX, .err = -E2BIG },
	{ "very many instances", "mktime64", .maxactive = INT_MAX, .err = -ENOMEM },
#ifdef CONFIG_X86
	{ "does not return to its caller", "__switch_to", .err = -EINVAL },
#endif
};

KUNIT_ARRAY_PARAM_DESC(bad_return_probe, bad_return_probes, desc);

/* Prepare return probe @name as a bad one. */
static struct kretprobe *bad_return_probe(char name, const struct bad_return_probe *bad)
{
	struct kretprobe *rp = kpt_return_probe(name, bad->symbol);

	rp->kp.offset = bad->offset;
	rp->data_size = bad->data_size;
	rp->maxactive = bad->maxactive;
	return rp;
}

static void bad_return_probe_is_refused(struct kunit *test)
{
	const struct bad_return_probe *bad = test->param_value;
	struct kretprobe *r = bad_return_probe('r', bad);

	EXPECT_RETURN_REFUSED(test, r, bad->err);
	r->kp.flags = KPROBE_FLAG_DISABLED;
	EXPECT_RETURN_REFUSED(test, r, bad->err);
	EXPECT_CALL(test, TRACED, "");
}

static void return_batch_is_registered(struct kunit *test)
{
	struct kretprobe *all[PLACES + 1];
	unsigned int n;

	for (n = 0; n < PLACES; n++)
		all[n] = kpt_return_probe('r' + n, kpt_places[n].symbol);
	all[n++] = kpt_return_probe('v', TRACED->symbol);

	for (int i = 0; i < 2; i++) {
		KUNIT_ASSERT_EQ(test, register_kretprobes(all, n), 0);
		EXPECT_CALLS(test, "rR", "vsSV", "tT", "uU");
		unregister_kretprobes(all, n);
		EXPECT_CALLS(test, "", "", "", "");
		for (unsigned int j = 0; j < n; j++) {
			KUNIT_EXPECT_FALSE(test, kpt_is_linked(&all[j]->kp));
			all[j]->kp.addr = NULL;
		}
	}
}

static void empty_return_batch_is_refused(struct kunit *test)
{
	struct kretprobe *r = kpt_return_probe('r', TARGET->symbol);

	KUNIT_EXPECT_EQ(test, register_kretprobes(&r, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, register_kretprobes(&r, -1), -EINVAL);
	KUNIT_EXPECT_EQ(test, register_kretprobes(NULL, 0), -EINVAL);
	KUNIT_EXPECT_NULL(test, r->kp.addr);
	EXPECT_CALL(test, TARGET, "");

	ASSERT_RETURN_PROBED(test, r);
	unregister_kretprobes(&r, 0);
	unregister_kretprobes(&r, -1);
	unregister_kretprobes(NULL, 0);
	EXPECT_CALL(test, TARGET, "rR");
}

static void return_batch_is_refused(struct kunit *test, const struct bad_return_probe *bad,
				    unsigned int position)
{
	struct kretprobe *all[3], given[ARRAY_SIZE(all)];
	unsigned int n = ARRAY_SIZE(all), i;

	for (i = 0; i < n - 1; i++)
		all[i < position ? i : i + 1] = kpt_return_probe('r' + i, kpt_places[i].symbol);
	all[position] = bad_return_probe('t', bad);
	for (i = 0; i < n; i++) {
		all[i]->kp.addr = NULL;
		all[i]->kp.flags = KPROBE_FLAG_REENTRANT;
		kpt_set_stale_return_results(all[i]);
		memcpy(&given[i], all[i], sizeof(given[i]));
	}

	KUNIT_EXPECT_EQ(test, register_kretprobes(all, n), bad->err);
	for (i = 0; i < n; i++)
		EXPECT_RETURN_UNTOUCHED(test, all[i], &given[i]);
	EXPECT_CALL(test, TARGET, "uU");
	EXPECT_CALL(test, TRACED, "");

	/* Without the bad return probe, the batch is registered. */
	for (i = position; i < n - 1; i++)
		all[i] = all[i + 1];
	KUNIT_EXPECT_EQ(test, register_kretprobes(all, n - 1), 0);
	EXPECT_CALL(test, TARGET, "ruUR");
	EXPECT_CALL(test, TRACED, "sS");
	unregister_kretprobes(all, n - 1);
}

static void return_batch_is_all_or_nothing(struct kunit *test)
{
	ASSERT_RETURN_PROBED(test, kpt_return_probe('u', TARGET->symbol));
	for (unsigned int position = 0; position < 3; position++)
		return_batch_is_refused(test, test->param_value, position);
}

static void first_error_of_a_return_batch_is_returned(struct kunit *test)
{
	const struct bad_return_probe *bad = bad_return_probes;
	struct kretprobe *all[3] = { kpt_return_probe('r', TARGET->symbol) };

	for (unsigned int i = 0; i < ARRAY_SIZE(bad_return_probes); i++) {
		for (unsigned int j = 0; j < ARRAY_SIZE(bad_return_probes); j++) {
			if (i == j)
				continue;
			all[1] = bad_return_probe('s', &bad[i]);
			all[2] = bad_return_probe('t', &bad[j]);
			for (unsigned int k = 0; k < ARRAY_SIZE(all); k++)
				all[k]->kp.addr = NULL;
			KUNIT_EXPECT_EQ_MSG(test, register_kretprobes(all, 3), bad[i].err,
					    "%s, then %s", bad[i].desc, bad[j].desc);
		}
	}
	EXPECT_CALL(test, TARGET, "");
}

/* The pools of a refused batch are freed. */
static void refused_return_probe_leaves_no_instances(struct kunit *test)
{
	struct kretprobe *r = kpt_return_probe('r', TARGET->symbol);
	struct kretprobe *s = kpt_return_probe('s', "kprobes_test_blacklisted");
	struct kretprobe *both[] = { r, s };

	if (!OWN_RETURN_PROBES)
		kunit_skip(test, "rethook has the instances");
	ASSERT_REGISTERED(test, kpt_probe('a', "kretprobe_pool_create"));
	kpt_count_freed_pools(test);
	kpt_clear_journal();
	KUNIT_EXPECT_EQ(test, register_kretprobes(both, 2), -EINVAL);
	KUNIT_EXPECT_STREQ(test, kpt_journal, "aa");
	kpt_expect_freed_pools(test, 2);
	r->kp.addr = NULL;
	ASSERT_RETURN_PROBED(test, r);
	unregister_kretprobe(r);
	KUNIT_EXPECT_STREQ(test, kpt_journal, "aaa");
	kpt_expect_freed_pools(test, 3);
}

/* The kernel has warned in probe_is_registered_once() already. */
static void return_probe_is_registered_once(struct kunit *test)
{
	struct kretprobe *r = kpt_return_probe('r', TARGET->symbol);
	struct kretprobe *s = kpt_return_probe('s', TARGET->symbol);
	struct kretprobe *t = kpt_return_probe('t', TRACED->symbol);
	struct kretprobe *with_registered[] = { s, r }, *with_double[] = { s, t, s };
	struct kretprobe before, given = *s, other = *t;

	ASSERT_RETURN_PROBED(test, r);
	before = *r;
	KUNIT_EXPECT_EQ(test, register_kretprobe(r), -EINVAL);
	KUNIT_EXPECT_EQ(test, register_kretprobes(with_registered, 2), -EINVAL);
	KUNIT_EXPECT_MEMEQ(test, r, &before, sizeof(before));
	EXPECT_RETURN_UNTOUCHED(test, s, &given);
	EXPECT_CALL(test, TARGET, "rR");

	KUNIT_EXPECT_EQ(test, register_kretprobes(with_double, 3), -EINVAL);
	EXPECT_RETURN_UNTOUCHED(test, s, &given);
	EXPECT_RETURN_UNTOUCHED(test, t, &other);
	EXPECT_CALL(test, TARGET, "rR");
	EXPECT_CALL(test, TRACED, "");

	unregister_kretprobe(r);
	EXPECT_CALL(test, TARGET, "");
}

static void unregistered_return_probe_is_ignored(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kretprobe *r = kpt_return_probe('r', place->symbol);
	struct kretprobe *s = kpt_return_probe('s', place->symbol);
	struct kretprobe *t = kpt_return_probe('t', place->symbol);
	struct kretprobe *all[] = { r, s, t };
	struct kretprobe given = *r;

	r->kp.addr = (kprobe_opcode_t *)kpt_text(OTHER_TARGET);
	unregister_kretprobe(r);
	KUNIT_EXPECT_MEMEQ(test, r, &given, sizeof(given));
	unregister_kretprobe(r);
	KUNIT_EXPECT_MEMEQ(test, r, &given, sizeof(given));

	/* Also at the address of others, and in a batch with registered return probes. */
	ASSERT_RETURN_PROBED(test, s);
	ASSERT_RETURN_PROBED(test, t);
	r->kp.addr = s->kp.addr;
	unregister_kretprobe(r);
	KUNIT_EXPECT_MEMEQ(test, r, &given, sizeof(given));
	EXPECT_CALL(test, place, "tsST");
	unregister_kretprobes(all, ARRAY_SIZE(all));
	KUNIT_EXPECT_MEMEQ(test, r, &given, sizeof(given));
	EXPECT_CALL(test, place, "");
	unregister_kretprobe(t);
	KUNIT_EXPECT_NULL(test, t->kp.addr);

	/* Also a return probe that was refused. */
	r->data_size = KRETPROBE_MAX_DATA_SIZE + 1;
	KUNIT_EXPECT_EQ(test, register_kretprobe(r), -E2BIG);
	unregister_kretprobe(r);
	KUNIT_EXPECT_NULL(test, r->kp.addr);
}

static void hole_in_return_array_is_passed_over(struct kunit *test)
{
	struct kretprobe *r = kpt_return_probe('r', TARGET->symbol);
	struct kretprobe *all[] = { NULL, r, NULL };

	KUNIT_EXPECT_EQ(test, register_kretprobes(all, ARRAY_SIZE(all)), -EINVAL);
	unregister_kretprobes(all, ARRAY_SIZE(all));
	r->kp.addr = NULL;
	ASSERT_RETURN_PROBED(test, r);
	EXPECT_CALL(test, TARGET, "rR");
	unregister_kretprobes(all, ARRAY_SIZE(all));
	KUNIT_EXPECT_FALSE(test, kpt_is_linked(&r->kp));
	EXPECT_CALL(test, TARGET, "");
}

static struct kunit_case kretprobes_register_cases[] = {
	KUNIT_CASE_PARAM(return_probe_is_disabled_and_enabled, kpt_place_gen_params),
	KUNIT_CASE_PARAM(return_probe_has_an_address, kpt_place_gen_params),
	KUNIT_CASE(only_entries_are_return_probed),
	KUNIT_CASE_PARAM(bad_return_probe_is_refused, bad_return_probe_gen_params),
	KUNIT_CASE(return_batch_is_registered),
	KUNIT_CASE(empty_return_batch_is_refused),
	KUNIT_CASE_PARAM(return_batch_is_all_or_nothing, bad_return_probe_gen_params),
	KUNIT_CASE(first_error_of_a_return_batch_is_returned),
	KUNIT_CASE(refused_return_probe_leaves_no_instances),
	KUNIT_CASE(return_probe_is_registered_once),
	KUNIT_CASE_PARAM(unregistered_return_probe_is_ignored, kpt_place_gen_params),
	KUNIT_CASE(hole_in_return_array_is_passed_over),
	{ }
};

static struct kunit_suite kretprobes_register_suite = {
	.name = "kretprobes-register",
	.suite_init = kpt_start_return_suite,
	.init = kpt_start_return_test,
	.exit = kpt_end_return_test,
	.test_cases = kretprobes_register_cases,
};

kunit_test_suite(kretprobes_register_suite);
