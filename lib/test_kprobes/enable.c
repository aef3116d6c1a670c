// SPDX-License-Identifier: GPL-2.0
/* Disabling and enabling of probes. */
#include "probes.h"

static void probe_is_registered_disabled(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = kpt_post_probe('a', place->symbol);

	a->flags = KPROBE_FLAG_DISABLED;
	ASSERT_REGISTERED(test, a);
	KUNIT_EXPECT_TRUE(test, kprobe_disabled(a));
	EXPECT_CALL(test, place, "");
	KUNIT_EXPECT_EQ(test, enable_kprobe(a), 0);
	KUNIT_EXPECT_FALSE(test, kprobe_disabled(a));
	EXPECT_CALL(test, place, "aA");
}

static void probe_is_disabled_and_enabled(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = kpt_post_probe('a', place->symbol);

	ASSERT_REGISTERED(test, a);
	for (int i = 0; i < 3; i++) {
		KUNIT_EXPECT_EQ(test, disable_kprobe(a), 0);
		KUNIT_EXPECT_EQ(test, disable_kprobe(a), 0);
		KUNIT_EXPECT_TRUE(test, kprobe_disabled(a));
		KUNIT_EXPECT_TRUE(test, kpt_is_linked(a));
		EXPECT_CALL(test, place, "");
		KUNIT_EXPECT_EQ(test, enable_kprobe(a), 0);
		KUNIT_EXPECT_EQ(test, enable_kprobe(a), 0);
		KUNIT_EXPECT_FALSE(test, kprobe_disabled(a));
		EXPECT_CALL(test, place, "aA");
	}
	KUNIT_EXPECT_EQ(test, a->nmissed, 0);

	KUNIT_EXPECT_EQ(test, disable_kprobe(a), 0);
	unregister_kprobe(a);
	EXPECT_CALL(test, place, "");
}

static void neighbours_stay_enabled(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = kpt_probe('a', place->symbol);
	struct kprobe *b = kpt_post_probe('b', place->symbol);

	ASSERT_REGISTERED(test, a);
	ASSERT_REGISTERED(test, b);
	KUNIT_EXPECT_EQ(test, disable_kprobe(b), 0);
	EXPECT_CALL(test, place, "a");
	KUNIT_EXPECT_EQ(test, enable_kprobe(b), 0);
	KUNIT_EXPECT_EQ(test, disable_kprobe(a), 0);
	EXPECT_CALL(test, place, "bB");
	KUNIT_EXPECT_EQ(test, disable_kprobe(b), 0);
	EXPECT_CALL(test, place, "");
	KUNIT_EXPECT_EQ(test, enable_kprobe(a), 0);
	EXPECT_CALL(test, place, "a");
	unregister_kprobe(a);
	EXPECT_CALL(test, place, "");
	KUNIT_EXPECT_EQ(test, enable_kprobe(b), 0);
	EXPECT_CALL(test, place, "bB");
}

static void probe_joins_a_disabled_one(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = kpt_probe('a', place->symbol);
	struct kprobe *b = kpt_probe('b', place->symbol);

	a->flags = KPROBE_FLAG_DISABLED;
	ASSERT_REGISTERED(test, a);
	ASSERT_REGISTERED(test, b);
	EXPECT_CALL(test, place, "b");
	unregister_kprobe(b);
	EXPECT_CALL(test, place, "");
	KUNIT_EXPECT_EQ(test, enable_kprobe(a), 0);
	EXPECT_CALL(test, place, "a");
}

static void unregistered_probe_is_not_enabled(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = kpt_probe('a', place->symbol);
	struct kprobe *b = kpt_probe('b', place->symbol);

	KUNIT_EXPECT_EQ(test, enable_kprobe(a), -EINVAL);
	KUNIT_EXPECT_EQ(test, disable_kprobe(a), -EINVAL);

	/* Also if another probe is registered at the address. */
	ASSERT_REGISTERED(test, b);
	a->addr = b->addr;
	KUNIT_EXPECT_EQ(test, disable_kprobe(a), -EINVAL);
	KUNIT_EXPECT_EQ(test, enable_kprobe(a), -EINVAL);
	KUNIT_EXPECT_EQ(test, a->flags, 0);
	EXPECT_CALL(test, place, "b");

	unregister_kprobe(b);
	KUNIT_EXPECT_EQ(test, enable_kprobe(b), -EINVAL);
	EXPECT_CALL(test, place, "");
}

/* The site at @a's address: the only entry of the list that is not a probe of the test. */
static const struct kprobe *site_in_list(const struct kprobe *a)
{
	const struct kprobe *kp = a;

	do {
		kp = list_next_entry(kp, list);
	} while (kp->pre_handler == kpt_pre_handler);
	return kp;
}

/*
 * A hit may see that a site has a post handler, and call it later without checking again.
 * So it stays while the site is armed, also when no probe there has a post handler any more.
 */
static void post_handler_of_a_site_stays(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = kpt_probe('a', place->symbol);
	struct kprobe *b = kpt_post_probe('b', place->symbol);

	ASSERT_REGISTERED(test, a);
	ASSERT_REGISTERED(test, b);
	KUNIT_EXPECT_TRUE(test, site_in_list(a)->post_handler);
	KUNIT_EXPECT_EQ(test, disable_kprobe(b), 0);
	KUNIT_EXPECT_TRUE(test, site_in_list(a)->post_handler);
	EXPECT_CALL(test, place, "a");
	unregister_kprobe(b);
	KUNIT_EXPECT_TRUE(test, site_in_list(a)->post_handler);
	EXPECT_CALL(test, place, "a");
}

static struct kunit_case kprobes_enable_cases[] = {
	KUNIT_CASE_PARAM(probe_is_registered_disabled, kpt_place_gen_params),
	KUNIT_CASE_PARAM(probe_is_disabled_and_enabled, kpt_place_gen_params),
	KUNIT_CASE_PARAM(neighbours_stay_enabled, kpt_place_gen_params),
	KUNIT_CASE_PARAM(probe_joins_a_disabled_one, kpt_place_gen_params),
	KUNIT_CASE_PARAM(unregistered_probe_is_not_enabled, kpt_place_gen_params),
	KUNIT_CASE_PARAM(post_handler_of_a_site_stays, kpt_place_gen_params),
	{ }
};

static struct kunit_suite kprobes_enable_suite = {
	.name = "kprobes-enable",
	.suite_init = kpt_start_suite,
	.init = kpt_start_test,
	.exit = kpt_end_test,
	.test_cases = kprobes_enable_cases,
};

kunit_test_suite(kprobes_enable_suite);
