// SPDX-License-Identifier: GPL-2.0
/* What pre and post handlers see, and what they may do. */
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/string.h>

#include "actions.h"
#include "probes.h"

static void pre_handler_is_called(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = kpt_probe('a', place->symbol);

	EXPECT_CALL(test, place, "");
	ASSERT_REGISTERED(test, a);
	EXPECT_CALL(test, place, "a");
	EXPECT_CALL(test, place, "a");
	unregister_kprobe(a);
	EXPECT_CALL(test, place, "");
	KUNIT_EXPECT_EQ(test, a->nmissed, 0);
}

static void post_handler_is_called(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = kpt_post_probe('a', place->symbol);

	ASSERT_REGISTERED(test, a);
	EXPECT_CALL(test, place, "aA");
	unregister_kprobe(a);
	EXPECT_CALL(test, place, "");
}

static void handlers_are_optional(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = kpt_post_probe('a', place->symbol);
	struct kprobe *b = kpt_probe('b', place->symbol);

	a->pre_handler = NULL;
	b->pre_handler = NULL;
	ASSERT_REGISTERED(test, b);
	EXPECT_CALL(test, place, "");
	ASSERT_REGISTERED(test, a);
	EXPECT_CALL(test, place, "A");
}

static void probes_share_an_address(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = kpt_probe('a', place->symbol);
	struct kprobe *b = kpt_post_probe('b', place->symbol);
	struct kprobe *c = kpt_probe('c', place->symbol);
	struct kprobe *d = kpt_post_probe('d', place->symbol);

	ASSERT_REGISTERED(test, a);
	ASSERT_REGISTERED(test, b);
	EXPECT_CALL(test, place, "baB");
	ASSERT_REGISTERED(test, c);
	ASSERT_REGISTERED(test, d);
	EXPECT_CALL(test, place, "dcbaDB");
	KUNIT_EXPECT_PTR_EQ(test, a->addr, d->addr);

	unregister_kprobe(a);
	EXPECT_CALL(test, place, "dcbDB");
	unregister_kprobe(d);
	EXPECT_CALL(test, place, "cbB");
	unregister_kprobe(b);
	EXPECT_CALL(test, place, "c");
	unregister_kprobe(c);
	EXPECT_CALL(test, place, "");
}

static void probe_is_registered_again(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = kpt_probe('a', place->symbol);

	for (int i = 0; i < 3; i++) {
		a->addr = NULL;
		a->nmissed = 5;
		ASSERT_REGISTERED(test, a);
		KUNIT_EXPECT_EQ(test, a->nmissed, 0);
		EXPECT_CALL(test, place, "a");
		unregister_kprobe(a);
		EXPECT_CALL(test, place, "");
	}
}

/* Flags that an earlier registration may have left set. */
static void stale_flags_are_ignored(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = kpt_post_probe('a', place->symbol);
	struct kprobe *b = kpt_probe('b', place->symbol);

	a->flags = KPROBE_FLAG_GONE | KPROBE_FLAG_OPTIMIZED | KPROBE_FLAG_ON_FUNC_ENTRY;
	a->flags |= place == TRACED ? 0 : KPROBE_FLAG_FTRACE;
	ASSERT_REGISTERED(test, a);
	ASSERT_REGISTERED(test, b);
	KUNIT_EXPECT_EQ(test, a->flags, b->flags);
	EXPECT_CALL(test, place, "baA");
}

static void address_is_set(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = kpt_probe('a', place->symbol);
	struct kprobe *b = kpt_probe('b', NULL);

	ASSERT_REGISTERED(test, a);
	KUNIT_ASSERT_NOT_NULL(test, a->addr);
	KUNIT_EXPECT_TRUE(test, kpt_is_linked(a));
	KUNIT_EXPECT_TRUE(test, a->flags & KPROBE_FLAG_ON_FUNC_ENTRY);

	b->addr = a->addr;
	ASSERT_REGISTERED(test, b);
	KUNIT_EXPECT_PTR_EQ(test, a->addr, b->addr);
	KUNIT_EXPECT_TRUE(test, b->flags & KPROBE_FLAG_ON_FUNC_ENTRY);
	EXPECT_CALL(test, place, "ba");
}

static void traced_function_is_hit_through_ftrace(struct kunit *test)
{
	struct kprobe *a = kpt_probe('a', TRACED->symbol);
	struct kprobe *b = kpt_probe('b', TARGET->symbol);

	ASSERT_REGISTERED(test, a);
	ASSERT_REGISTERED(test, b);
	KUNIT_EXPECT_EQ(test, kprobe_ftrace(a), IS_ENABLED(CONFIG_KPROBES_ON_FTRACE));
	KUNIT_EXPECT_FALSE(test, kprobe_ftrace(b));
}

#ifdef CONFIG_HAVE_FUNCTION_ARG_ACCESS_API
static int read_argument(struct test_probe *p, struct pt_regs *regs)
{
	p->data = regs_get_kernel_argument(regs, 0);
	return 0;
}

static void pre_handler_gets_arguments(struct kunit *test)
{
	struct kprobe *a = kpt_probe('a', TARGET->symbol);
	struct kprobe *b = kpt_probe('b', TRACED->symbol);

	kpt_test_probe('a')->act = read_argument;
	kpt_test_probe('b')->act = read_argument;
	ASSERT_REGISTERED(test, a);
	ASSERT_REGISTERED(test, b);
	EXPECT_CALL(test, TARGET, "a");
	EXPECT_CALL(test, TRACED, "b");
	KUNIT_EXPECT_EQ(test, kpt_test_probe('a')->data, ARG);
	KUNIT_EXPECT_EQ(test, kpt_test_probe('b')->data, ARG);
}
#endif

/* After a pre handler has changed the path, the hit calls no further handler. */
static void pre_handler_changes_the_path(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = kpt_post_probe('a', place->symbol);
	struct kprobe *b = kpt_post_probe('b', place->symbol);
	struct kprobe *c = kpt_post_probe('c', place->symbol);
	u64 result;

	kpt_test_probe('b')->act = kpt_act_go_to_replacement;
	ASSERT_REGISTERED(test, a);
	ASSERT_REGISTERED(test, b);
	ASSERT_REGISTERED(test, c);
	result = kpt_call(place);
	KUNIT_EXPECT_EQ(test, result, REPLACED);
	KUNIT_EXPECT_STREQ(test, kpt_journal, "cb");

	unregister_kprobe(b);
	EXPECT_CALL(test, place, "caCA");
}

static void pre_handler_alone_changes_the_path(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = kpt_probe('a', place->symbol);
	u64 result;

	kpt_test_probe('a')->act = kpt_act_go_to_replacement;
	ASSERT_REGISTERED(test, a);
	result = kpt_call(place);
	KUNIT_EXPECT_EQ(test, result, REPLACED);
	KUNIT_EXPECT_STREQ(test, kpt_journal, "a");
}

static void go_to_replacement_after(struct kprobe *kp, struct pt_regs *regs, unsigned long flags)
{
	kpt_post_handler(kp, regs, flags);
	if (current == kpt_tester)
		kpt_act_go_to_replacement(container_of(kp, struct test_probe, kp), regs);
}

/* TRACED begins with a nop: after it, the replacement finds the arguments of the call. */
static void post_handler_changes_the_path(struct kunit *test)
{
	struct kprobe *a = kpt_post_probe('a', TRACED->symbol);
	struct kprobe *b = kpt_probe('b', TRACED->symbol);
	u64 result;

	if (!IS_ENABLED(CONFIG_KPROBES_ON_FTRACE) || !IS_ENABLED(CONFIG_X86))
		kunit_skip(test, "the probed instruction may not be a nop");
	a->post_handler = go_to_replacement_after;
	for (int shared = 0; shared < 2; shared++) {
		a->addr = NULL;
		ASSERT_REGISTERED(test, a);
		kpt_clear_journal();
		result = kpt_call(TRACED);
		KUNIT_EXPECT_EQ(test, result, REPLACED);
		KUNIT_EXPECT_STREQ(test, kpt_journal, shared ? "abA" : "aA");
		unregister_kprobe(a);
		if (!shared)
			ASSERT_REGISTERED(test, b);
	}
	EXPECT_CALL(test, TRACED, "b");
}

static void handler_may_fault(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = kpt_post_probe('a', place->symbol);

	if (IS_ENABLED(CONFIG_TRACE_IRQFLAGS) && !IS_ENABLED(CONFIG_TRACE_IRQFLAGS_NMI))
		kunit_skip(test, "lockdep thinks that interrupts are on in a breakpoint's handler");

	kpt_test_probe('a')->act = kpt_act_read_bad_address;
	ASSERT_REGISTERED(test, a);
	EXPECT_CALL(test, place, "aA");
	KUNIT_EXPECT_EQ(test, (long)kpt_test_probe('a')->data, -EFAULT);
	unregister_kprobe(a);

	/* Also without a post handler, when the instruction may be boosted. */
	a->post_handler = NULL;
	a->addr = NULL;
	kpt_test_probe('a')->data = 0;
	ASSERT_REGISTERED(test, a);
	EXPECT_CALL(test, place, "a");
	KUNIT_EXPECT_EQ(test, (long)kpt_test_probe('a')->data, -EFAULT);
}

static int other_pre_handler(struct kprobe *kp, struct pt_regs *regs)
{
	if (current == kpt_tester)
		kpt_note('1');
	return 0;
}

static void other_post_handler(struct kprobe *kp, struct pt_regs *regs, unsigned long flags)
{
	if (current == kpt_tester)
		kpt_note('2');
}

/* Set a post handler where there is none: the kernel may prepare for it at the first hit. */
void kpt_set_post_handler_late(struct kprobe *kp, kprobe_post_handler_t handler,
			       void (*hit)(const void *data), const void *data)
{
	unsigned long end = jiffies + PATIENCE;

	WRITE_ONCE(kp->post_handler, handler);
	do {
		kpt_clear_journal();
		hit(data);
		msleep(20);
	} while (!strpbrk(kpt_journal, "ABCDEFG") && time_before(jiffies, end));
}

static void call_place(const void *place)
{
	kpt_call(place);
}

/* Expect that calls of @place call the handlers that @a, which is registered there, has then. */
void kpt_expect_handlers_change(struct kunit *test, const struct place *place, struct kprobe *a)
{
	bool post = a->post_handler;

	EXPECT_CALL(test, place, post ? "aA" : "a");
	WRITE_ONCE(a->pre_handler, other_pre_handler);
	EXPECT_CALL(test, place, post ? "1A" : "1");
	WRITE_ONCE(a->pre_handler, NULL);
	EXPECT_CALL(test, place, post ? "A" : "");
	if (!post) {
		kpt_set_post_handler_late(a, kpt_post_handler, call_place, place);
		EXPECT_CALL(test, place, "A");
	}
	WRITE_ONCE(a->post_handler, other_post_handler);
	EXPECT_CALL(test, place, "2");
	WRITE_ONCE(a->post_handler, NULL);
	EXPECT_CALL(test, place, "");
	if (post)
		WRITE_ONCE(a->post_handler, kpt_post_handler);
	WRITE_ONCE(a->pre_handler, kpt_pre_handler);
	EXPECT_CALL(test, place, post ? "aA" : "a");
}

/* Alone, beside a probe without handlers, and disabled meanwhile. */
static void handlers_change(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *b = kpt_probe('b', place->symbol);
	struct kprobe *a;

	b->pre_handler = NULL;
	for (int post = 0; post < 2; post++) {
		a = post ? kpt_post_probe('a', place->symbol) : kpt_probe('a', place->symbol);
		a->addr = NULL;
		b->addr = NULL;
		ASSERT_REGISTERED(test, a);
		kpt_expect_handlers_change(test, place, a);
		ASSERT_REGISTERED(test, b);
		kpt_expect_handlers_change(test, place, a);
		unregister_kprobe(b);
		KUNIT_EXPECT_EQ(test, disable_kprobe(a), 0);
		a->pre_handler = other_pre_handler;
		KUNIT_EXPECT_EQ(test, enable_kprobe(a), 0);
		EXPECT_CALL(test, place, post ? "1A" : "1");
		unregister_kprobe(a);
	}
}

/* A probe that has none at first. */
static void pre_handler_is_set_late(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = kpt_probe('a', place->symbol);

	a->pre_handler = NULL;
	ASSERT_REGISTERED(test, a);
	EXPECT_CALL(test, place, "");
	WRITE_ONCE(a->pre_handler, kpt_pre_handler);
	kpt_expect_handlers_change(test, place, a);
}

/* Only one test probes it, so that its site has never had a post handler. */
static noinline u64 kprobes_test_own_target(u64 arg)
{
	OPTIMIZER_HIDE_VAR(arg);
	return arg * 9 + 4;
}

/* While it is disabled, and while it is enabled. */
static void post_handler_is_set_late(struct kunit *test)
{
	struct place own = { .call = kprobes_test_own_target };
	struct kprobe *a = kpt_probe('a', "kprobes_test_own_target");

	for (int disabled = 0; disabled < 2; disabled++) {
		a->addr = NULL;
		a->flags = disabled ? KPROBE_FLAG_DISABLED : 0;
		a->post_handler = NULL;
		ASSERT_REGISTERED(test, a);
		if (disabled) {
			a->post_handler = kpt_post_handler;
			KUNIT_EXPECT_EQ(test, enable_kprobe(a), 0);
		}
		kpt_set_post_handler_late(a, kpt_post_handler, call_place, &own);
		KUNIT_EXPECT_STREQ(test, kpt_journal, "aA");
		unregister_kprobe(a);
		/* The next one has no copy that this one has left. */
		kpt_wait_until_site_is_freed(test, a);
	}
}

static struct kunit_case kprobes_handlers_cases[] = {
	KUNIT_CASE_PARAM(pre_handler_is_called, kpt_place_gen_params),
	KUNIT_CASE_PARAM(post_handler_is_called, kpt_place_gen_params),
	KUNIT_CASE_PARAM(handlers_are_optional, kpt_place_gen_params),
	KUNIT_CASE_PARAM(probes_share_an_address, kpt_place_gen_params),
	KUNIT_CASE_PARAM(probe_is_registered_again, kpt_place_gen_params),
	KUNIT_CASE_PARAM(stale_flags_are_ignored, kpt_place_gen_params),
	KUNIT_CASE_PARAM(address_is_set, kpt_place_gen_params),
	KUNIT_CASE(traced_function_is_hit_through_ftrace),
#ifdef CONFIG_HAVE_FUNCTION_ARG_ACCESS_API
	KUNIT_CASE(pre_handler_gets_arguments),
#endif
	KUNIT_CASE_PARAM(pre_handler_changes_the_path, kpt_place_gen_params),
	KUNIT_CASE_PARAM(pre_handler_alone_changes_the_path, kpt_place_gen_params),
	KUNIT_CASE(post_handler_changes_the_path),
	KUNIT_CASE_PARAM(handler_may_fault, kpt_place_gen_params),
	KUNIT_CASE_PARAM(handlers_change, kpt_place_gen_params),
	KUNIT_CASE_PARAM(pre_handler_is_set_late, kpt_place_gen_params),
	KUNIT_CASE(post_handler_is_set_late),
	{ }
};

static struct kunit_suite kprobes_handlers_suite = {
	.name = "kprobes-handlers",
	.suite_init = kpt_start_suite,
	.init = kpt_start_test,
	.exit = kpt_end_test,
	.test_cases = kprobes_handlers_cases,
};

kunit_test_suite(kprobes_handlers_suite);
