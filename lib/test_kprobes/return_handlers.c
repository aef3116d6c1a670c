// SPDX-License-Identifier: GPL-2.0
/* What entry and return handlers see, and what they may do. */
#include <linux/ptrace.h>
#include <linux/string.h>

#include "actions.h"
#include "hosts.h"
#include "return_probes.h"

static void return_is_seen(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kretprobe *r = kpt_return_probe('r', place->symbol);

	ASSERT_RETURN_PROBED(test, r);
	for (int i = 0; i < 2; i++) {
		kpt_test_kretprobe('r')->value = 0;
		EXPECT_CALL(test, place, "rR");
		KUNIT_EXPECT_EQ(test, kpt_test_kretprobe('r')->value, (unsigned long)place->result);
	}
	unregister_kretprobe(r);
	EXPECT_CALL(test, place, "");
	KUNIT_EXPECT_EQ(test, r->nmissed, 0);
	KUNIT_EXPECT_EQ(test, r->kp.nmissed, 0);
}

static int other_entry_handler(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	if (current == kpt_tester)
		kpt_note('1');
	return 0;
}

static int other_return_handler(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	if (current == kpt_tester)
		kpt_note('2');
	return 0;
}

static void return_handlers_change(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kretprobe *r = kpt_return_probe('r', place->symbol);
	kretprobe_handler_t entry_handler = r->entry_handler, handler = r->handler;

	/* Alone, and as the first of two. */
	ASSERT_RETURN_PROBED(test, r);
	for (int shared = 0; shared < 2; shared++) {
		EXPECT_CALL(test, place, shared ? "srRS" : "rR");
		WRITE_ONCE(r->entry_handler, other_entry_handler);
		EXPECT_CALL(test, place, shared ? "s1RS" : "1R");
		WRITE_ONCE(r->handler, other_return_handler);
		EXPECT_CALL(test, place, shared ? "s12S" : "12");
		WRITE_ONCE(r->entry_handler, NULL);
		EXPECT_CALL(test, place, shared ? "s2S" : "2");
		WRITE_ONCE(r->handler, NULL);
		EXPECT_CALL(test, place, shared ? "sS" : "");
		WRITE_ONCE(r->entry_handler, entry_handler);
		WRITE_ONCE(r->handler, handler);
		if (!shared)
			ASSERT_RETURN_PROBED(test, kpt_return_probe('s', place->symbol));
	}
}

static void return_handlers_are_optional(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kretprobe *r = kpt_return_probe('r', place->symbol);
	struct kretprobe *s = kpt_return_probe('s', place->symbol);
	struct kretprobe *t = kpt_return_probe('t', place->symbol);

	r->handler = NULL;
	r->entry_handler = NULL;
	s->handler = NULL;
	t->entry_handler = NULL;
	ASSERT_RETURN_PROBED(test, r);
	EXPECT_CALL(test, place, "");
	ASSERT_RETURN_PROBED(test, s);
	EXPECT_CALL(test, place, "s");
	ASSERT_RETURN_PROBED(test, t);
	EXPECT_CALL(test, place, "sT");
	unregister_kretprobe(r);
	unregister_kretprobe(s);
	EXPECT_CALL(test, place, "T");
}

#ifdef CONFIG_HAVE_FUNCTION_ARG_ACCESS_API
static int keep_argument(struct test_kretprobe *p, struct kretprobe_instance *ri,
			 struct pt_regs *regs)
{
	p->data = regs_get_kernel_argument(regs, 0);
	return 0;
}

static void entry_handler_gets_arguments(struct kunit *test)
{
	const struct place *place = test->param_value;

	kpt_test_kretprobe('r')->on_entry = keep_argument;
	ASSERT_RETURN_PROBED(test, kpt_return_probe('r', place->symbol));
	EXPECT_CALL(test, place, "rR");
	KUNIT_EXPECT_EQ(test, kpt_test_kretprobe('r')->data, ARG);
}
#endif

static int decline_call(struct test_kretprobe *p, struct kretprobe_instance *ri,
			struct pt_regs *regs)
{
	return p->data;
}

/* The instance of a declined call is free again at once. */
static void entry_handler_declines_a_call(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kretprobe *r = kpt_return_probe('r', place->symbol);

	r->maxactive = 1;
	kpt_test_kretprobe('r')->on_entry = decline_call;
	ASSERT_RETURN_PROBED(test, r);
	for (int i = 0; i < 3; i++) {
		kpt_test_kretprobe('r')->data = i - 1;
		EXPECT_CALL(test, place, i == 1 ? "rR" : "r");
	}

	/* Another return probe is not affected. */
	ASSERT_RETURN_PROBED(test, kpt_return_probe('s', place->symbol));
	EXPECT_CALL(test, place, "srS");
	KUNIT_EXPECT_EQ(test, r->nmissed, 0);
}

static void handler_gets_real_return_address(struct kunit *test)
{
	const struct host *host = test->param_value;
	static const char names[] = "rst";

	for (unsigned int i = 0; names[i]; i++)
		ASSERT_RETURN_PROBED(test, kpt_return_probe(names[i], host->symbol));
	EXPECT_VISIT(test, host, kpt_do_nothing_inside, NULL, "tsrRST");
	for (unsigned int i = 0; names[i]; i++) {
		unsigned long caller = kpt_test_kretprobe(names[i])->caller;

		KUNIT_EXPECT_TRUE_MSG(test, kpt_is_in(caller, "kprobes_test_visit"), "%pS",
				      (void *)caller);
		KUNIT_EXPECT_EQ(test, caller, kpt_test_kretprobe('r')->caller);
	}
}

#ifdef CONFIG_HAVE_FUNCTION_ERROR_INJECTION
static void change_value(struct test_kretprobe *p, struct kretprobe_instance *ri,
			 struct pt_regs *regs)
{
	regs_set_return_value(regs, p->data);
}

/* The next handler, and at last the caller, get the value that a handler has set. */
static void return_value_is_changed(struct kunit *test)
{
	const struct place *place = test->param_value;

	kpt_test_kretprobe('r')->on_return = change_value;
	kpt_test_kretprobe('r')->data = 1812;
	kpt_test_kretprobe('s')->on_return = change_value;
	kpt_test_kretprobe('s')->data = 1789;
	ASSERT_RETURN_PROBED(test, kpt_return_probe('r', place->symbol));
	KUNIT_EXPECT_EQ(test, (unsigned long)kpt_call(place), 1812);
	ASSERT_RETURN_PROBED(test, kpt_return_probe('s', place->symbol));
	KUNIT_EXPECT_EQ(test, (unsigned long)kpt_call(place), 1789);
	KUNIT_EXPECT_EQ(test, kpt_test_kretprobe('r')->value, (unsigned long)place->result);
	KUNIT_EXPECT_EQ(test, kpt_test_kretprobe('s')->value, 1812);
}
#endif

static void expect_recursion(struct kunit *test, const struct host *host, unsigned int depth,
			     const char *events, int line)
{
	struct recursion recursion = { .host = host, .depth = depth - 1 };

	kpt_expect_visit(test, host, kpt_recurse_inside, &recursion, events, line);
}

/* Call a host, which calls itself: @depth calls in all. */
#define EXPECT_RECURSION(test, host, depth, events)	\
	expect_recursion(test, host, depth, events, __LINE__)

static void probed_function_calls_itself(struct kunit *test)
{
	const struct host *host = test->param_value;
	struct kretprobe *r = kpt_return_probe('r', host->symbol);
	static const struct {
		int maxactive;
		const char *events;
		int missed;
	} cases[] = {
		{ 0, "rrrrrRRRRR", 0 },
		{ -1, "rrrrrRRRRR", 0 },
		{ 5, "rrrrrRRRRR", 0 },
		{ 4, "rrrrRRRR", 1 },
		{ 1, "rR", 4 },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(cases); i++) {
		r->kp.addr = NULL;
		r->maxactive = cases[i].maxactive;
		ASSERT_RETURN_PROBED(test, r);
		KUNIT_EXPECT_EQ(test, r->nmissed, 0);
		EXPECT_RECURSION(test, host, 5, cases[i].events);
		KUNIT_EXPECT_EQ(test, r->nmissed, cases[i].missed);
		EXPECT_RECURSION(test, host, 5, cases[i].events);
		KUNIT_EXPECT_EQ(test, r->nmissed, 2 * cases[i].missed);
		unregister_kretprobe(r);
		KUNIT_EXPECT_EQ(test, r->kp.nmissed, 0);
	}
}

/* Fill the instance's data with the depth of the call. */
static int fill_data(struct test_kretprobe *p, struct kretprobe_instance *ri,
		     struct pt_regs *regs)
{
	memset(ri->data, ++p->data, p->rp.data_size);
	return 0;
}

static void check_data(struct test_kretprobe *p, struct kretprobe_instance *ri,
		       struct pt_regs *regs)
{
	if (memchr_inv(ri->data, p->data--, p->rp.data_size))
		kpt_note('!');
}

static void each_call_has_its_own_data(struct kunit *test)
{
	static const size_t sizes[] = { 0, 1, 60, KRETPROBE_MAX_DATA_SIZE };
	const struct host *host = test->param_value;
	struct kretprobe *r = kpt_return_probe('r', host->symbol);

	kpt_test_kretprobe('r')->on_entry = fill_data;
	kpt_test_kretprobe('r')->on_return = check_data;
	for (unsigned int i = 0; i < ARRAY_SIZE(sizes); i++) {
		r->kp.addr = NULL;
		r->data_size = sizes[i];
		ASSERT_RETURN_PROBED(test, r);
		EXPECT_RECURSION(test, host, 5, "rrrrrRRRRR");
		unregister_kretprobe(r);
	}
}

static int call_targets_inside(void *unused)
{
	if (kpt_call(TARGET) != TARGET->result || kpt_call(TRACED) != TRACED->result)
		return 0;
	return VISITED;
}

static void probed_functions_call_each_other(struct kunit *test)
{
	struct recursion once = { TRACED_HOST, 1 }, twice = { HOST, 2 };

	ASSERT_RETURN_PROBED(test, kpt_return_probe('r', HOST->symbol));
	ASSERT_RETURN_PROBED(test, kpt_return_probe('s', TRACED_HOST->symbol));
	ASSERT_RETURN_PROBED(test, kpt_return_probe('t', TARGET->symbol));
	ASSERT_RETURN_PROBED(test, kpt_return_probe('u', TRACED->symbol));
	EXPECT_VISIT(test, HOST, call_targets_inside, NULL, "rtTuUR");
	EXPECT_VISIT(test, TRACED_HOST, call_targets_inside, NULL, "stTuUS");
	EXPECT_VISIT(test, HOST, kpt_recurse_inside, &once, "rsSR");
	EXPECT_VISIT(test, TRACED_HOST, kpt_recurse_inside, &twice, "srrRRS");
}

static void return_probes_share_a_function(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kretprobe *r = kpt_return_probe('r', place->symbol);
	struct kretprobe *s = kpt_return_probe('s', place->symbol);
	struct kretprobe *t = kpt_return_probe('t', place->symbol);

	ASSERT_RETURN_PROBED(test, r);
	ASSERT_RETURN_PROBED(test, s);
	EXPECT_CALL(test, place, "srRS");
	ASSERT_RETURN_PROBED(test, t);
	EXPECT_CALL(test, place, "tsrRST");
	unregister_kretprobe(s);
	EXPECT_CALL(test, place, "trRT");
	unregister_kretprobe(t);
	EXPECT_CALL(test, place, "rR");
	unregister_kretprobe(r);
	EXPECT_CALL(test, place, "");
}

static void probes_and_return_probes_share_a_function(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = kpt_probe('a', place->symbol);
	struct kprobe *b = kpt_post_probe('b', place->symbol);
	struct kretprobe *r = kpt_return_probe('r', place->symbol);
	struct kretprobe *s = kpt_return_probe('s', place->symbol);

	ASSERT_REGISTERED(test, a);
	ASSERT_RETURN_PROBED(test, r);
	EXPECT_CALL(test, place, "raR");
	ASSERT_REGISTERED(test, b);
	EXPECT_CALL(test, place, "braBR");
	ASSERT_RETURN_PROBED(test, s);
	EXPECT_CALL(test, place, "sbraBRS");
	unregister_kretprobe(r);
	EXPECT_CALL(test, place, "sbaBS");
	unregister_kprobe(a);
	unregister_kprobe(b);
	EXPECT_CALL(test, place, "sS");
	unregister_kretprobe(s);
	EXPECT_CALL(test, place, "");
}

/*
 * After the entry handler, the handler of another probe lets a replacement run in place
 * of the probed function. The replacement, also probed, returns for both.
 */
static void replacement_returns_for_both(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kretprobe *s = kpt_return_probe('s', kpt_replacement_of(place->symbol)->symbol);
	u64 result;

	kpt_test_probe('a')->act = kpt_act_go_to_replacement;
	ASSERT_REGISTERED(test, kpt_probe('a', place->symbol));
	ASSERT_RETURN_PROBED(test, kpt_return_probe('r', place->symbol));
	ASSERT_RETURN_PROBED(test, s);
	result = kpt_call(place);
	KUNIT_EXPECT_EQ(test, result, REPLACED);
	KUNIT_EXPECT_STREQ(test, kpt_journal, "rasSR");
	KUNIT_EXPECT_EQ(test, kpt_test_kretprobe('r')->value, REPLACED);
	KUNIT_EXPECT_EQ(test, kpt_test_kretprobe('r')->caller, kpt_test_kretprobe('s')->caller);

	unregister_kretprobe(s);
	kpt_clear_journal();
	result = kpt_call(place);
	KUNIT_EXPECT_EQ(test, result, REPLACED);
	KUNIT_EXPECT_STREQ(test, kpt_journal, "raR");
}

static struct kunit_case kretprobes_handlers_cases[] = {
	KUNIT_CASE_PARAM(return_is_seen, kpt_place_gen_params),
	KUNIT_CASE_PARAM(return_handlers_are_optional, kpt_place_gen_params),
	KUNIT_CASE_PARAM(return_handlers_change, kpt_place_gen_params),
#ifdef CONFIG_HAVE_FUNCTION_ARG_ACCESS_API
	KUNIT_CASE_PARAM(entry_handler_gets_arguments, kpt_place_gen_params),
#endif
	KUNIT_CASE_PARAM(entry_handler_declines_a_call, kpt_place_gen_params),
	KUNIT_CASE_PARAM(handler_gets_real_return_address, kpt_host_gen_params),
#ifdef CONFIG_HAVE_FUNCTION_ERROR_INJECTION
	KUNIT_CASE_PARAM(return_value_is_changed, kpt_place_gen_params),
#endif
	KUNIT_CASE_PARAM(probed_function_calls_itself, kpt_host_gen_params),
	KUNIT_CASE_PARAM(each_call_has_its_own_data, kpt_host_gen_params),
	KUNIT_CASE(probed_functions_call_each_other),
	KUNIT_CASE_PARAM(return_probes_share_a_function, kpt_place_gen_params),
	KUNIT_CASE_PARAM(probes_and_return_probes_share_a_function, kpt_place_gen_params),
	KUNIT_CASE_PARAM(replacement_returns_for_both, kpt_place_gen_params),
	{ }
};

static struct kunit_suite kretprobes_handlers_suite = {
	.name = "kretprobes-handlers",
	.suite_init = kpt_start_return_suite,
	.init = kpt_start_return_test,
	.exit = kpt_end_return_test,
	.test_cases = kretprobes_handlers_cases,
};

kunit_test_suite(kretprobes_handlers_suite);
