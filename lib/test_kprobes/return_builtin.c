// SPDX-License-Identifier: GPL-2.0
/* Returns while kprobe_busy_begin(), which is not exported to modules, is in effect. */
#include "hosts.h"
#include "return_probes.h"

static int begin_busy_inside(void *unused)
{
	kprobe_busy_begin();
	return VISITED;
}

/* No handler may be called then, and the return counts as missed. */
static void busy_code_returns(struct kunit *test)
{
	const struct host *host = test->param_value;
	struct kretprobe *r = kpt_return_probe('r', host->symbol);

	ASSERT_RETURN_PROBED(test, r);
	kpt_clear_journal();
	KUNIT_EXPECT_EQ(test, kprobes_test_visit(host, begin_busy_inside, NULL), VISITED);
	kprobe_busy_end();
	KUNIT_EXPECT_STREQ(test, kpt_journal, "r");
	KUNIT_EXPECT_EQ(test, r->nmissed, 1);
	EXPECT_VISIT(test, host, kpt_do_nothing_inside, NULL, "rR");
}

static struct kunit_case kretprobes_builtin_cases[] = {
	KUNIT_CASE_PARAM(busy_code_returns, kpt_host_gen_params),
	{ }
};

static struct kunit_suite kretprobes_builtin_suite = {
	.name = "kretprobes-builtin",
	.suite_init = kpt_start_return_suite,
	.init = kpt_start_return_test,
	.exit = kpt_end_return_test,
	.test_cases = kretprobes_builtin_cases,
};

kunit_test_suite(kretprobes_builtin_suite);
