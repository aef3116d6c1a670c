// SPDX-License-Identifier: GPL-2.0
/* Several probes are registered in one call: all of them, or none. */
#include <linux/ftrace.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "probes.h"

static void batch_is_registered(struct kunit *test)
{
	struct kprobe *all[ARRAY_SIZE(kpt_places) + 1];
	unsigned int n;

	for (n = 0; n < ARRAY_SIZE(kpt_places); n++)
		all[n] = n % 2 ? kpt_probe('a' + n, kpt_places[n].symbol)
			       : kpt_post_probe('a' + n, kpt_places[n].symbol);
	all[n++] = kpt_post_probe('e', TRACED->symbol);

	for (int i = 0; i < 2; i++) {
		KUNIT_ASSERT_EQ(test, register_kprobes(all, n), 0);
		EXPECT_CALL(test, TARGET, "aA");
		EXPECT_CALL(test, TRACED, "ebE");
		EXPECT_CALL(test, OTHER_TARGET, "cC");
		EXPECT_CALL(test, OTHER_TRACED, "d");

		unregister_kprobes(all, n);
		EXPECT_CALL(test, TARGET, "");
		EXPECT_CALL(test, TRACED, "");
		EXPECT_CALL(test, OTHER_TARGET, "");
		EXPECT_CALL(test, OTHER_TRACED, "");
		for (unsigned int j = 0; j < n; j++) {
			KUNIT_EXPECT_FALSE(test, kpt_is_linked(all[j]));
			all[j]->addr = NULL;
		}
	}
}

static void batch_needs_probes(struct kunit *test)
{
	struct kprobe *a = kpt_probe('a', TARGET->symbol);

	KUNIT_EXPECT_EQ(test, register_kprobes(&a, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, register_kprobes(&a, -1), -EINVAL);
	KUNIT_EXPECT_EQ(test, register_kprobes(NULL, 0), -EINVAL);
	KUNIT_EXPECT_NULL(test, a->addr);
	EXPECT_CALL(test, TARGET, "");
}

#ifdef CONFIG_KPROBES_ON_FTRACE
static void ignore_call(unsigned long ip, unsigned long parent_ip,
			struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
}

/*
 * A probe with a post handler may change the path, and of those that do ftrace
 * takes only one at a function: with this one, arming such a probe fails.
 */
static struct ftrace_ops *rival;

static void free_rival(void)
{
	ftrace_free_filter(rival);
	kfree(rival);
}

static int add_rival(unsigned long ip)
{
	int err;

	rival = kzalloc(sizeof(*rival), GFP_KERNEL);
	if (!rival)
		return -ENOMEM;
	rival->func = ignore_call;
	rival->flags = FTRACE_OPS_FL_SAVE_REGS | FTRACE_OPS_FL_IPMODIFY;
	err = ftrace_set_filter_ip(rival, ip, 0, 0) ?: register_ftrace_function(rival);
	if (err)
		free_rival();
	return err;
}

static void remove_rival(void *unused)
{
	unregister_ftrace_function(rival);
	free_rival();
}

/* Where ftrace has its call in a function. */
static unsigned long traced_ip(struct kunit *test, const struct place *place)
{
	struct kprobe *e = kpt_probe('e', place->symbol);
	unsigned long ip;

	e->flags = KPROBE_FLAG_DISABLED;
	ASSERT_REGISTERED(test, e);
	ip = (unsigned long)e->addr;
	KUNIT_ASSERT_TRUE(test, kprobe_ftrace(e));
	unregister_kprobe(e);
	e->flags = 0;
	e->addr = NULL;
	return ip;
}

static void have_rival(struct kunit *test, const struct place *place)
{
	KUNIT_ASSERT_EQ(test, add_rival(traced_ip(test, place)), 0);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, remove_rival, NULL), 0);
}
#else
static void remove_rival(void *unused)
{
}

static void have_rival(struct kunit *test, const struct place *place)
{
	kunit_skip(test, "arming does not fail");
}
#endif

static void arming_fails(struct kunit *test)
{
	struct kprobe *a = kpt_post_probe('a', TRACED->symbol);
	struct kprobe *b = kpt_probe('b', TRACED->symbol);
	struct kprobe *c = kpt_post_probe('c', TRACED->symbol);

	have_rival(test, TRACED);
	EXPECT_REFUSED(test, a, -EBUSY);
	EXPECT_CALL(test, TRACED, "");

	ASSERT_REGISTERED(test, b);
	EXPECT_REFUSED(test, a, -EBUSY);
	EXPECT_CALL(test, TRACED, "b");
	unregister_kprobe(b);

	c->flags = KPROBE_FLAG_DISABLED;
	ASSERT_REGISTERED(test, c);
	KUNIT_EXPECT_EQ(test, enable_kprobe(c), -EBUSY);
	KUNIT_EXPECT_TRUE(test, kprobe_disabled(c));
	EXPECT_CALL(test, TRACED, "");

	kunit_release_action(test, remove_rival, NULL);
	KUNIT_EXPECT_EQ(test, enable_kprobe(c), 0);
	ASSERT_REGISTERED(test, a);
	EXPECT_CALL(test, TRACED, "acAC");
}

#ifdef CONFIG_KPROBES_ON_FTRACE
static void only_post_handlers_keep_rivals_away(struct kunit *test)
{
	struct kprobe *a = kpt_probe('a', TRACED->symbol);
	struct kprobe *b = kpt_post_probe('b', TRACED->symbol);
	unsigned long ip = traced_ip(test, TRACED);

	ASSERT_REGISTERED(test, a);
	ASSERT_REGISTERED(test, b);
	KUNIT_EXPECT_EQ(test, add_rival(ip), -EBUSY);
	EXPECT_CALL(test, TRACED, "baB");

	unregister_kprobe(b);
	EXPECT_CALL(test, TRACED, "a");
	KUNIT_EXPECT_EQ(test, add_rival(ip), 0);
	EXPECT_CALL(test, TRACED, "a");
	remove_rival(NULL);
	EXPECT_CALL(test, TRACED, "a");
}
#else
static void only_post_handlers_keep_rivals_away(struct kunit *test)
{
	kunit_skip(test, "no probes through ftrace");
}
#endif

/**
 * struct bad_probe - What makes registration of an array fail
 * @desc:	Says what.
 * @symbol:	Of the bad probe.
 * @offset:	Of the bad probe.
 * @rival:	Arming it fails.
 * @err:	The result.
 */
struct bad_probe {
	const char *desc;
	const char *symbol;
	unsigned int offset;
	bool rival;
	int err;
};

static const struct bad_probe bad_probes[] = {
	{ "unknown symbol", "kprobes_test_no_such_function", .err = -ENOENT },
	{ "neither symbol nor address", NULL, .err = -EINVAL },
	{ "blacklisted function", "kprobes_test_blacklisted", .err = -EINVAL },
#ifdef CONFIG_X86
	{ "inside of an instruction", "mktime64", .offset = 1, .err = -EILSEQ },
#endif
	{ "arming fails", "nsecs_to_jiffies64", .rival = true, .err = -EBUSY },
};

KUNIT_ARRAY_PARAM_DESC(bad_probe, bad_probes, desc);

static void batch_is_refused(struct kunit *test, const struct bad_probe *bad, unsigned int position)
{
	struct kprobe *all[ARRAY_SIZE(kpt_places) + 1], given[ARRAY_SIZE(all)];
	unsigned int n = ARRAY_SIZE(all), i;

	for (i = 0; i < ARRAY_SIZE(kpt_places); i++)
		all[i < position ? i : i + 1] = kpt_probe('a' + i, kpt_places[i].symbol);
	all[position] = bad->rival ? kpt_post_probe('e', bad->symbol) : kpt_probe('e', bad->symbol);
	all[position]->offset = bad->offset;
	for (i = 0; i < n; i++) {
		all[i]->addr = NULL;
		all[i]->flags = KPROBE_FLAG_REENTRANT;
		kpt_leave_results(all[i]);
		memcpy(&given[i], all[i], sizeof(given[i]));
	}

	KUNIT_EXPECT_EQ(test, register_kprobes(all, n), bad->err);
	for (i = 0; i < n; i++)
		EXPECT_UNTOUCHED(test, all[i], &given[i]);
	EXPECT_CALL(test, TARGET, "f");
	EXPECT_CALL(test, TRACED, "gG");
	EXPECT_CALL(test, OTHER_TARGET, "");
	EXPECT_CALL(test, OTHER_TRACED, "");

	/* Without the bad one it works. */
	for (i = position; i < n - 1; i++)
		all[i] = all[i + 1];
	KUNIT_EXPECT_EQ(test, register_kprobes(all, n - 1), 0);
	EXPECT_CALL(test, TARGET, "af");
	EXPECT_CALL(test, TRACED, "bgG");
	EXPECT_CALL(test, OTHER_TARGET, "c");
	EXPECT_CALL(test, OTHER_TRACED, "d");
	unregister_kprobes(all, n - 1);
}

static void batch_is_all_or_nothing(struct kunit *test)
{
	const struct bad_probe *bad = test->param_value;

	if (bad->rival)
		have_rival(test, OTHER_TRACED);
	ASSERT_REGISTERED(test, kpt_probe('f', TARGET->symbol));
	ASSERT_REGISTERED(test, kpt_post_probe('g', TRACED->symbol));
	for (unsigned int position = 0; position <= ARRAY_SIZE(kpt_places); position++)
		batch_is_refused(test, bad, position);
	if (bad->rival)
		kunit_release_action(test, remove_rival, NULL);
}

/* Whatever is found out first, and whatever their addresses. */
static void first_error_in_an_array_counts(struct kunit *test)
{
	const struct bad_probe *bad = bad_probes;
	struct kprobe *all[3] = { kpt_probe('a', TARGET->symbol) };

	for (unsigned int i = 0; i < ARRAY_SIZE(bad_probes); i++) {
		for (unsigned int j = 0; j < ARRAY_SIZE(bad_probes); j++) {
			if (i == j || bad[i].rival || bad[j].rival)
				continue;
			all[1] = kpt_probe('b', bad[i].symbol);
			all[1]->offset = bad[i].offset;
			all[2] = kpt_probe('c', bad[j].symbol);
			all[2]->offset = bad[j].offset;
			KUNIT_EXPECT_EQ_MSG(test, register_kprobes(all, 3), bad[i].err,
					    "%s, then %s", bad[i].desc, bad[j].desc);
		}
	}
	EXPECT_CALL(test, TARGET, "");
}

static struct kunit_case kprobes_batch_cases[] = {
	KUNIT_CASE(batch_is_registered),
	KUNIT_CASE(batch_needs_probes),
	KUNIT_CASE(arming_fails),
	KUNIT_CASE(only_post_handlers_keep_rivals_away),
	KUNIT_CASE_PARAM(batch_is_all_or_nothing, bad_probe_gen_params),
	KUNIT_CASE(first_error_in_an_array_counts),
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
