// SPDX-License-Identifier: GPL-2.0
/*
 * Arming that fails: a probe with a post handler may change the path, and ftrace allows
 * only one ftrace_ops that does so at a function.
 */
#include "../../kernel/kprobes/internal.h"

#include <linux/ftrace.h>
#include <linux/slab.h>

#include "arming.h"
#include "probes.h"

static void ignore_call(unsigned long ip, unsigned long parent_ip,
			struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
}

static struct ftrace_ops *ipmodify_ops;

static void free_ipmodify_ops(void)
{
	ftrace_free_filter(ipmodify_ops);
	kfree(ipmodify_ops);
}

static int add_ipmodify_ops(unsigned long ip)
{
	int err;

	ipmodify_ops = kzalloc(sizeof(*ipmodify_ops), GFP_KERNEL);
	if (!ipmodify_ops)
		return -ENOMEM;
	ipmodify_ops->func = ignore_call;
	ipmodify_ops->flags = FTRACE_OPS_FL_SAVE_REGS | FTRACE_OPS_FL_IPMODIFY;
	err = ftrace_set_filter_ip(ipmodify_ops, ip, 0, 0) ?:
	      register_ftrace_function(ipmodify_ops);
	if (err)
		free_ipmodify_ops();
	return err;
}

static void remove_ipmodify_ops(void *unused)
{
	unregister_ftrace_function(ipmodify_ops);
	free_ipmodify_ops();
}

/* The address of ftrace's call in a function. */
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

/* Until kpt_unblock_arming() or the end of the test, arming fails with -EBUSY. */
void kpt_block_arming(struct kunit *test, const struct place *place)
{
	KUNIT_ASSERT_EQ(test, add_ipmodify_ops(traced_ip(test, place)), 0);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, remove_ipmodify_ops, NULL), 0);
}

void kpt_unblock_arming(struct kunit *test)
{
	kunit_release_action(test, remove_ipmodify_ops, NULL);
}

static void arming_fails(struct kunit *test)
{
	struct kprobe *a = kpt_post_probe('a', TRACED->symbol);
	struct kprobe *b = kpt_probe('b', TRACED->symbol);
	struct kprobe *c = kpt_post_probe('c', TRACED->symbol);

	kpt_block_arming(test, TRACED);
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

	kpt_unblock_arming(test);
	KUNIT_EXPECT_EQ(test, enable_kprobe(c), 0);
	ASSERT_REGISTERED(test, a);
	EXPECT_CALL(test, TRACED, "acAC");
}

/* The probe that could be armed is not armed either: kpt_end_test() finds no call. */
static void arming_fails_for_one_of_two(struct kunit *test)
{
	struct kprobe *both[] = { kpt_probe('a', OTHER_TRACED->symbol),
				  kpt_post_probe('b', TRACED->symbol) };

	kpt_block_arming(test, TRACED);
	KUNIT_EXPECT_EQ(test, register_kprobes(both, ARRAY_SIZE(both)), -EBUSY);
	kpt_unblock_arming(test);
}

static void only_post_handlers_exclude_ipmodify_ops(struct kunit *test)
{
	struct kprobe *a = kpt_probe('a', TRACED->symbol);
	struct kprobe *b = kpt_post_probe('b', TRACED->symbol);
	unsigned long ip = traced_ip(test, TRACED);

	ASSERT_REGISTERED(test, a);
	ASSERT_REGISTERED(test, b);
	KUNIT_EXPECT_EQ(test, add_ipmodify_ops(ip), -EBUSY);
	EXPECT_CALL(test, TRACED, "baB");

	unregister_kprobe(b);
	EXPECT_CALL(test, TRACED, "a");
	KUNIT_EXPECT_EQ(test, add_ipmodify_ops(ip), 0);
	EXPECT_CALL(test, TRACED, "a");
	remove_ipmodify_ops(NULL);
	EXPECT_CALL(test, TRACED, "a");
}

/* A function that is no longer probed is not claimed again with the next one. */
static void ipmodify_ops_is_allowed_where_a_probe_was(struct kunit *test)
{
	struct kprobe *a = kpt_post_probe('a', TRACED->symbol);
	struct kprobe *b = kpt_post_probe('b', OTHER_TRACED->symbol);

	ASSERT_REGISTERED(test, a);
	unregister_kprobe(a);
	ASSERT_REGISTERED(test, b);
	kpt_block_arming(test, TRACED);
	EXPECT_CALL(test, OTHER_TRACED, "bB");
	kpt_unblock_arming(test);
}

static void switch_on(void *unused)
{
	kprobes_set_enabled(true);
}

/* One address that cannot be armed does not keep others from being armed. */
static void knob_arms_what_can_be_armed(struct kunit *test)
{
	struct kprobe *a = kpt_post_probe('a', TRACED->symbol);
	struct kprobe *b = kpt_probe('b', TARGET->symbol);
	struct kprobe *c = kpt_probe('c', OTHER_TARGET->symbol);
	struct kprobe *d = kpt_post_probe('d', OTHER_TRACED->symbol);
	struct kprobe *f = kpt_probe('f', TRACED->symbol);
	struct kprobe *all[] = { a, b, c, d };

	f->flags = KPROBE_FLAG_DISABLED;
	KUNIT_ASSERT_EQ(test, register_kprobes(all, ARRAY_SIZE(all)), 0);
	ASSERT_REGISTERED(test, f);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, switch_on, NULL), 0);
	KUNIT_EXPECT_EQ(test, kprobes_set_enabled(false), 0);
	EXPECT_CALLS(test, "", "", "", "");
	kpt_block_arming(test, TRACED);
	KUNIT_EXPECT_EQ(test, kprobes_set_enabled(true), -EBUSY);
	EXPECT_CALLS(test, "b", "", "c", "dD");

	/* What needs nothing to be armed there succeeds. */
	KUNIT_EXPECT_EQ(test, enable_kprobe(f), -EBUSY);
	KUNIT_EXPECT_EQ(test, disable_kprobe(f), 0);
	unregister_kprobe(f);
	f->addr = NULL;
	EXPECT_REFUSED(test, f, -EBUSY);
	KUNIT_EXPECT_EQ(test, kprobes_set_enabled(true), -EBUSY);
	EXPECT_CALLS(test, "b", "", "c", "dD");

	kpt_unblock_arming(test);
	KUNIT_EXPECT_EQ(test, kprobes_set_enabled(true), 0);
	EXPECT_CALLS(test, "b", "aA", "c", "dD");
}

static struct kunit_case kprobes_arming_cases[] = {
	KUNIT_CASE(arming_fails),
	KUNIT_CASE(arming_fails_for_one_of_two),
	KUNIT_CASE(only_post_handlers_exclude_ipmodify_ops),
	KUNIT_CASE(ipmodify_ops_is_allowed_where_a_probe_was),
	KUNIT_CASE(knob_arms_what_can_be_armed),
	{ }
};

static struct kunit_suite kprobes_arming_suite = {
	.name = "kprobes-arming",
	.suite_init = kpt_start_suite,
	.init = kpt_start_test,
	.exit = kpt_end_test,
	.test_cases = kprobes_arming_cases,
};

kunit_test_suite(kprobes_arming_suite);
