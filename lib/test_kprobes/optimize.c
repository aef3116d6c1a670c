// SPDX-License-Identifier: GPL-2.0
/*
 * Jumps in place of breakpoints: an optimized probe does what it does with a breakpoint.
 * A change removes jumps that are no longer allowed, and the optimizer later writes those
 * that are allowed again.
 *
 * Which sites can be optimized depends on the architecture. On x86 TARGET can be.
 */
#include <linux/cleanup.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/kprobes_site.h>
#include <linux/preempt.h>
#include <linux/sched.h>

#include "actions.h"
#include "interrupt.h"
#include "optimize.h"
#include "return_probes.h"

/* Let the optimizer run. Returns whether there is a jump then. */
bool kpt_becomes_optimized(const struct kprobe *kp)
{
	wait_for_kprobe_optimizer();
	return kprobe_optimized(kp);
}

static int why_no_jump(const struct kprobe *kp)
{
	const struct kprobe *site;

	guard(preempt)();
	site = get_kprobe(kp->addr);
	return site ? container_of(site, struct kprobe_site, kp)->unfit : -ENOENT;
}

void kpt_assert_optimized(struct kunit *test, const struct kprobe *kp, int line)
{
	if (kpt_becomes_optimized(kp))
		return;
	if (!IS_ENABLED(CONFIG_X86))
		SKIP_REST(test, "%pS is not optimized", kp->addr);
	KUNIT_FAIL_AND_ABORT(test, "%pS is not optimized at line %d: %d", kp->addr, line,
			     why_no_jump(kp));
}

void kpt_expect_optimized_on_retry(struct kunit *test, const struct kprobe *kp)
{
	unsigned long end = jiffies + 15 * HZ;

	while (!kprobe_optimized(kp) && time_before(jiffies, end))
		msleep(100);
	/* It is so a moment before its jump is written. */
	KUNIT_EXPECT_TRUE(test, kpt_becomes_optimized(kp));
}

static void probe_is_optimized(struct kunit *test)
{
	struct kprobe *a = kpt_probe('a', TARGET->symbol);

	for (int i = 0; i < 3; i++) {
		a->addr = NULL;
		ASSERT_REGISTERED(test, a);
		EXPECT_CALL(test, TARGET, "a");
		ASSERT_OPTIMIZED(test, a);
		EXPECT_CALL(test, TARGET, "a");
		EXPECT_CALL(test, TARGET, "a");
		KUNIT_EXPECT_EQ(test, a->nmissed, 0);
		unregister_kprobe(a);
		KUNIT_EXPECT_FALSE(test, kprobe_optimized(a));
		KUNIT_EXPECT_MEMEQ(test, kpt_text(TARGET), kpt_unprobed_text[0], TEXT_BYTES);
		EXPECT_CALL(test, TARGET, "");
	}
}

/* Also while there is a detour but no jump yet, and if the detour was made without a handler. */
static void handlers_of_optimized_probe_change(struct kunit *test)
{
	struct kprobe *b = kpt_probe('b', TARGET->symbol);
	struct kprobe *a;

	b->pre_handler = NULL;
	for (int post = 0; post < 2; post++) {
		a = post ? kpt_post_probe('a', TARGET->symbol) : kpt_probe('a', TARGET->symbol);
		for (int late = 0; late < 2; late++) {
			a->addr = NULL;
			b->addr = NULL;
			if (late)
				a->pre_handler = NULL;
			ASSERT_REGISTERED(test, a);
			msleep(60);	/* the optimizer has begun */
			a->pre_handler = kpt_pre_handler;
			if (!late)
				kpt_expect_handlers_change(test, TARGET, a);
			ASSERT_OPTIMIZED(test, a);
			kpt_expect_handlers_change(test, TARGET, a);
			ASSERT_REGISTERED(test, b);
			ASSERT_OPTIMIZED(test, a);
			kpt_expect_handlers_change(test, TARGET, a);
			ASSERT_OPTIMIZED(test, a);
			unregister_kprobe(b);
			kpt_expect_handlers_change(test, TARGET, a);
			unregister_kprobe(a);
		}
	}
}

/* The probe is unregistered or disabled at different moments of its optimization. */
static void optimization_is_cancelled(struct kunit *test)
{
	struct kprobe *a = kpt_probe('a', TARGET->symbol);

	for (unsigned int i = 0; i < 20; i++) {
		a->addr = NULL;
		a->flags = 0;
		ASSERT_REGISTERED(test, a);
		usleep_range(5000 * i, 5000 * i + 100);
		EXPECT_CALL(test, TARGET, "a");
		if (i % 2)
			KUNIT_EXPECT_EQ(test, disable_kprobe(a), 0);
		else
			unregister_kprobe(a);
		KUNIT_EXPECT_FALSE(test, kprobe_optimized(a));
		KUNIT_EXPECT_MEMEQ(test, kpt_text(TARGET), kpt_unprobed_text[0], TEXT_BYTES);
		EXPECT_CALL(test, TARGET, "");
		if (i % 2)
			unregister_kprobe(a);
	}
}

static void optimized_probe_is_disabled_and_enabled(struct kunit *test)
{
	struct kprobe *a = kpt_probe('a', TARGET->symbol);

	ASSERT_REGISTERED(test, a);
	for (int i = 0; i < 3; i++) {
		ASSERT_OPTIMIZED(test, a);
		EXPECT_CALL(test, TARGET, "a");
		KUNIT_EXPECT_EQ(test, disable_kprobe(a), 0);
		KUNIT_EXPECT_FALSE(test, kprobe_optimized(a));
		KUNIT_EXPECT_MEMEQ(test, kpt_text(TARGET), kpt_unprobed_text[0], TEXT_BYTES);
		EXPECT_CALL(test, TARGET, "");
		wait_for_kprobe_optimizer();
		KUNIT_EXPECT_FALSE(test, kprobe_optimized(a));
		EXPECT_CALL(test, TARGET, "");
		KUNIT_EXPECT_EQ(test, enable_kprobe(a), 0);
		EXPECT_CALL(test, TARGET, "a");
	}
}

static void optimized_probe_is_registered_disabled(struct kunit *test)
{
	struct kprobe *a = kpt_probe('a', TARGET->symbol);

	a->flags = KPROBE_FLAG_DISABLED;
	ASSERT_REGISTERED(test, a);
	KUNIT_EXPECT_FALSE(test, kpt_becomes_optimized(a));
	EXPECT_CALL(test, TARGET, "");
	KUNIT_EXPECT_EQ(test, enable_kprobe(a), 0);
	ASSERT_OPTIMIZED(test, a);
	EXPECT_CALL(test, TARGET, "a");
}

static void probe_joins_an_optimized_one(struct kunit *test)
{
	struct kprobe *a = kpt_probe('a', TARGET->symbol);
	struct kprobe *b = kpt_probe('b', TARGET->symbol);

	ASSERT_REGISTERED(test, a);
	for (int i = 0; i < 3; i++) {
		ASSERT_OPTIMIZED(test, a);
		b->addr = NULL;
		ASSERT_REGISTERED(test, b);
		EXPECT_CALL(test, TARGET, "ba");
		ASSERT_OPTIMIZED(test, a);
		KUNIT_EXPECT_TRUE(test, kprobe_optimized(b));
		EXPECT_CALL(test, TARGET, "ba");
		unregister_kprobe(b);
		KUNIT_EXPECT_FALSE(test, kprobe_optimized(b));
		EXPECT_CALL(test, TARGET, "a");
	}
	ASSERT_OPTIMIZED(test, a);
	EXPECT_CALL(test, TARGET, "a");
}

/* The probe that the detour was made for is unregistered. */
static void first_probe_leaves_an_optimized_one(struct kunit *test)
{
	struct kprobe *a = kpt_probe('a', TARGET->symbol);
	struct kprobe *b = kpt_probe('b', TARGET->symbol);
	struct kprobe *c = kpt_probe('c', TARGET->symbol);

	ASSERT_REGISTERED(test, a);
	ASSERT_OPTIMIZED(test, a);
	ASSERT_REGISTERED(test, b);
	unregister_kprobe(a);
	EXPECT_CALL(test, TARGET, "b");
	ASSERT_OPTIMIZED(test, b);
	EXPECT_CALL(test, TARGET, "b");

	/* Before and after the optimizer has noticed the second probe. */
	ASSERT_REGISTERED(test, c);
	EXPECT_CALL(test, TARGET, "cb");
	ASSERT_OPTIMIZED(test, c);
	EXPECT_CALL(test, TARGET, "cb");
	unregister_kprobe(b);
	EXPECT_CALL(test, TARGET, "c");
	ASSERT_OPTIMIZED(test, c);
	EXPECT_CALL(test, TARGET, "c");
	unregister_kprobe(c);
	EXPECT_CALL(test, TARGET, "");
}

static void optimized_probe_is_disabled_beside_others(struct kunit *test)
{
	struct kprobe *a = kpt_probe('a', TARGET->symbol);
	struct kprobe *b = kpt_probe('b', TARGET->symbol);

	ASSERT_REGISTERED(test, a);
	ASSERT_REGISTERED(test, b);
	for (int i = 0; i < 2; i++) {
		ASSERT_OPTIMIZED(test, a);
		EXPECT_CALL(test, TARGET, "ba");
		KUNIT_EXPECT_EQ(test, disable_kprobe(a), 0);
		EXPECT_CALL(test, TARGET, "b");
		ASSERT_OPTIMIZED(test, b);
		EXPECT_CALL(test, TARGET, "b");
		KUNIT_EXPECT_EQ(test, disable_kprobe(b), 0);
		KUNIT_EXPECT_FALSE(test, kprobe_optimized(b));
		EXPECT_CALL(test, TARGET, "");
		KUNIT_EXPECT_EQ(test, enable_kprobe(a), 0);
		EXPECT_CALL(test, TARGET, "a");
		ASSERT_OPTIMIZED(test, a);
		EXPECT_CALL(test, TARGET, "a");
		KUNIT_EXPECT_EQ(test, enable_kprobe(b), 0);
		EXPECT_CALL(test, TARGET, "ba");
	}
}

static int other_pre_handler(struct kprobe *kp, struct pt_regs *regs)
{
	if (current == kpt_tester)
		kpt_note('*');
	return kpt_pre_handler(kp, regs);
}

/* A struct kprobe is registered again with another handler. */
static void optimized_probe_changes_its_handler(struct kunit *test)
{
	struct kprobe *a = kpt_probe('a', TARGET->symbol);

	for (int i = 0; i < 2; i++) {
		a->addr = NULL;
		a->pre_handler = kpt_pre_handler;
		ASSERT_REGISTERED(test, a);
		ASSERT_OPTIMIZED(test, a);
		EXPECT_CALL(test, TARGET, "a");
		unregister_kprobe(a);
		a->addr = NULL;
		a->pre_handler = other_pre_handler;
		ASSERT_REGISTERED(test, a);
		EXPECT_CALL(test, TARGET, "*a");
		ASSERT_OPTIMIZED(test, a);
		EXPECT_CALL(test, TARGET, "*a");
		unregister_kprobe(a);
		a->addr = NULL;
		a->pre_handler = NULL;
		ASSERT_REGISTERED(test, a);
		EXPECT_CALL(test, TARGET, "");
		wait_for_kprobe_optimizer();
		EXPECT_CALL(test, TARGET, "");
		unregister_kprobe(a);
	}
}

/* Another probe keeps the site while the struct kprobe is registered again. */
static void shared_optimized_probe_changes_its_handler(struct kunit *test)
{
	struct kprobe *a = kpt_probe('a', TARGET->symbol);
	struct kprobe *b = kpt_probe('b', TARGET->symbol);

	ASSERT_REGISTERED(test, a);
	ASSERT_OPTIMIZED(test, a);
	ASSERT_REGISTERED(test, b);
	unregister_kprobe(a);
	a->addr = NULL;
	a->pre_handler = other_pre_handler;
	ASSERT_REGISTERED(test, a);
	EXPECT_CALL(test, TARGET, "*ab");
	unregister_kprobe(b);
	EXPECT_CALL(test, TARGET, "*a");
	ASSERT_OPTIMIZED(test, a);
	EXPECT_CALL(test, TARGET, "*a");
}

/* A post handler may prevent the jump, but only while it is enabled. */
static void post_handler_joins_an_optimized_probe(struct kunit *test)
{
	struct kprobe *a = kpt_probe('a', TARGET->symbol);
	struct kprobe *b = kpt_post_probe('b', TARGET->symbol);

	ASSERT_REGISTERED(test, a);
	for (int i = 0; i < 2; i++) {
		ASSERT_OPTIMIZED(test, a);
		EXPECT_CALL(test, TARGET, "a");
		b->addr = NULL;
		ASSERT_REGISTERED(test, b);
		EXPECT_CALL(test, TARGET, "baB");
		wait_for_kprobe_optimizer();
		EXPECT_CALL(test, TARGET, "baB");
		KUNIT_EXPECT_EQ(test, disable_kprobe(b), 0);
		EXPECT_CALL(test, TARGET, "a");
		wait_for_kprobe_optimizer();
		EXPECT_CALL(test, TARGET, "a");
		KUNIT_EXPECT_EQ(test, enable_kprobe(b), 0);
		EXPECT_CALL(test, TARGET, "baB");
		unregister_kprobe(b);
		EXPECT_CALL(test, TARGET, "a");
	}

	/* The probe without a post handler joins the other one. */
	b->addr = NULL;
	ASSERT_REGISTERED(test, b);
	unregister_kprobe(a);
	EXPECT_CALL(test, TARGET, "bB");
	wait_for_kprobe_optimizer();
	EXPECT_CALL(test, TARGET, "bB");
	a->addr = NULL;
	ASSERT_REGISTERED(test, a);
	EXPECT_CALL(test, TARGET, "abB");
	unregister_kprobe(b);
	ASSERT_OPTIMIZED(test, a);
	EXPECT_CALL(test, TARGET, "a");
}

static void batch_is_optimized(struct kunit *test)
{
	struct kprobe *all[] = {
		kpt_probe('a', OTHER_TARGET->symbol), kpt_probe('b', TARGET->symbol),
		kpt_probe('c', TRACED->symbol), kpt_probe('d', TARGET->symbol),
	};

	KUNIT_ASSERT_EQ(test, register_kprobes(all, ARRAY_SIZE(all)), 0);
	ASSERT_OPTIMIZED(test, all[0]);
	ASSERT_OPTIMIZED(test, all[1]);
	ASSERT_OPTIMIZED(test, all[3]);
	EXPECT_CALL(test, OTHER_TARGET, "a");
	EXPECT_CALL(test, TARGET, "db");
	EXPECT_CALL(test, TRACED, "c");
	unregister_kprobes(all, ARRAY_SIZE(all));
	for (unsigned int i = 0; i < ARRAY_SIZE(all); i++)
		KUNIT_EXPECT_FALSE(test, kprobe_optimized(all[i]));
	EXPECT_CALL(test, OTHER_TARGET, "");
	EXPECT_CALL(test, TARGET, "");
	EXPECT_CALL(test, TRACED, "");
}

static void optimized_probe_changes_the_path(struct kunit *test)
{
	struct kprobe *a = kpt_probe('a', TARGET->symbol);
	struct kprobe *b = kpt_probe('b', TARGET->symbol);
	struct kprobe *c = kpt_probe('c', TARGET->symbol);
	u64 result;

	if (!IS_ENABLED(CONFIG_X86))
		kunit_skip(test, "elsewhere the path of an optimized probe cannot be changed");
	kpt_test_probe('b')->act = kpt_act_go_to_replacement;
	ASSERT_REGISTERED(test, b);
	ASSERT_OPTIMIZED(test, b);
	result = kpt_call(TARGET);
	KUNIT_EXPECT_EQ(test, result, REPLACED);
	KUNIT_EXPECT_STREQ(test, kpt_journal, "b");
	unregister_kprobe(b);

	b->addr = NULL;
	ASSERT_REGISTERED(test, a);
	ASSERT_REGISTERED(test, b);
	ASSERT_REGISTERED(test, c);
	ASSERT_OPTIMIZED(test, a);
	kpt_clear_journal();
	result = kpt_call(TARGET);
	KUNIT_EXPECT_EQ(test, result, REPLACED);
	KUNIT_EXPECT_STREQ(test, kpt_journal, "cb");
	kpt_test_probe('b')->act = NULL;
	EXPECT_CALL(test, TARGET, "cba");
}

static void handler_of_optimized_probe_may_fault(struct kunit *test)
{
	struct kprobe *a = kpt_probe('a', TARGET->symbol);

	kpt_test_probe('a')->act = kpt_act_read_bad_address;
	ASSERT_REGISTERED(test, a);
	ASSERT_OPTIMIZED(test, a);
	EXPECT_CALL(test, TARGET, "a");
	KUNIT_EXPECT_EQ(test, (long)kpt_test_probe('a')->data, -EFAULT);
}

/* The handler of probe 'a' at @caller calls TARGET, where 'b' is and, if @shared, 'c'. */
static void expect_hits_missed(struct kunit *test, const struct place *caller, bool shared)
{
	struct kprobe *a = kpt_probe('a', caller->symbol);
	struct kprobe *b = &kpt_test_probe('b')->kp;
	struct kprobe *c = kpt_probe('c', TARGET->symbol);
	bool same = caller == TARGET;

	kpt_test_probe('a')->act = kpt_act_call_target;
	kpt_test_probe('a')->data = 3;
	a->addr = NULL;
	c->addr = NULL;
	ASSERT_REGISTERED(test, a);
	if (shared)
		ASSERT_REGISTERED(test, c);
	ASSERT_OPTIMIZED(test, b);
	KUNIT_EXPECT_EQ(test, kprobe_optimized(a), !kprobe_ftrace(a));

	b->nmissed = 0;
	c->nmissed = 0;
	EXPECT_CALL(test, caller, !same ? "a" : shared ? "cab" : "ab");
	KUNIT_EXPECT_EQ(test, b->nmissed, 3);
	KUNIT_EXPECT_EQ(test, a->nmissed, same ? 3 : 0);
	KUNIT_EXPECT_EQ(test, c->nmissed, shared ? 3 : 0);

	/* The missed hits have not changed the state of later ones. */
	kpt_test_probe('a')->act = NULL;
	KUNIT_EXPECT_EQ(test, kpt_call(caller), caller->result);
	KUNIT_EXPECT_EQ(test, b->nmissed, 3);
	unregister_kprobe(a);
	unregister_kprobe(c);
	EXPECT_CALL(test, TARGET, "b");
}

/* The hits of a handler are missed and counted, whether its own probe is optimized or not. */
static void handler_calls_an_optimized_function(struct kunit *test)
{
	static const struct place * const callers[] = { TARGET, OTHER_TARGET, TRACED };

	ASSERT_REGISTERED(test, kpt_probe('b', TARGET->symbol));
	for (unsigned int i = 0; i < ARRAY_SIZE(callers); i++) {
		expect_hits_missed(test, callers[i], false);
		expect_hits_missed(test, callers[i], true);
	}
}

static void handler_of_optimized_probe_is_interrupted(struct kunit *test)
{
	struct kprobe *a = kpt_probe('a', OTHER_TARGET->symbol);
	struct kprobe *b = kpt_probe('b', TARGET->symbol);
	struct kprobe *c = kpt_probe('c', TARGET->symbol);

	kpt_prepare_interrupt(kpt_interrupt);
	c->flags = KPROBE_FLAG_REENTRANT;
	kpt_test_probe('a')->act = kpt_act_wait_for_interrupt;
	ASSERT_REGISTERED(test, a);
	ASSERT_REGISTERED(test, b);
	ASSERT_REGISTERED(test, c);
	ASSERT_OPTIMIZED(test, a);
	ASSERT_OPTIMIZED(test, b);

	kpt_expect_interrupted_call(test, OTHER_TARGET, HITS_NEST ? "ac" : "a");
	KUNIT_EXPECT_EQ(test, a->nmissed, 0);
	KUNIT_EXPECT_EQ(test, b->nmissed, 1);
	KUNIT_EXPECT_EQ(test, c->nmissed, HITS_NEST ? 0 : 1);

	/* The probe that has opted in is now the only one, with a detour of its own. */
	unregister_kprobe(b);
	ASSERT_OPTIMIZED(test, c);
	kpt_clear_journal();
	KUNIT_EXPECT_EQ(test, kpt_call(OTHER_TARGET), OTHER_TARGET->result);
	kpt_expect_interrupt(test);
	KUNIT_EXPECT_STREQ(test, kpt_journal, HITS_NEST ? "ac" : "a");
	KUNIT_EXPECT_EQ(test, c->nmissed, HITS_NEST ? 0 : 2);

	/* The interrupt has not changed the state of the outer hit. */
	kpt_test_probe('a')->act = NULL;
	EXPECT_CALL(test, OTHER_TARGET, "a");
	EXPECT_CALL(test, TARGET, "c");
}

/* The interrupt of a handler hits the handler's own probe. */
static void optimized_probe_is_interrupted_by_itself(struct kunit *test)
{
	struct kprobe *a = kpt_probe('a', TARGET->symbol);

	if (!HITS_NEST)
		kunit_skip(test, "no handler interrupts another one");
	kpt_prepare_interrupt(kpt_interrupt);
	ASSERT_REGISTERED(test, a);
	ASSERT_OPTIMIZED(test, a);
	kpt_test_probe('a')->act = kpt_act_wait_for_interrupt;
	EXPECT_CALL(test, TARGET, "a");
	kpt_expect_interrupt(test);
	KUNIT_EXPECT_EQ(test, a->nmissed, 1);
	kpt_test_probe('a')->act = NULL;
	EXPECT_CALL(test, TARGET, "a");
}

static void return_probe_is_optimized(struct kunit *test)
{
	struct kprobe *a = kpt_probe('a', TARGET->symbol);
	struct kretprobe *r = kpt_return_probe('r', TARGET->symbol);
	struct kretprobe *s = kpt_return_probe('s', TARGET->symbol);

	ASSERT_RETURN_PROBED(test, r);
	ASSERT_OPTIMIZED(test, &r->kp);
	for (int i = 0; i < 3; i++) {
		kpt_test_kretprobe('r')->value = 0;
		EXPECT_CALL(test, TARGET, "rR");
		KUNIT_EXPECT_EQ(test, kpt_test_kretprobe('r')->value, TARGET->result);
	}
	ASSERT_RETURN_PROBED(test, s);
	EXPECT_CALL(test, TARGET, "srRS");
	ASSERT_REGISTERED(test, a);
	ASSERT_OPTIMIZED(test, &s->kp);
	EXPECT_CALL(test, TARGET, "asrRS");
	unregister_kretprobe(r);
	EXPECT_CALL(test, TARGET, "asS");
	ASSERT_OPTIMIZED(test, a);
	KUNIT_EXPECT_EQ(test, disable_kretprobe(s), 0);
	EXPECT_CALL(test, TARGET, "a");
	unregister_kprobe(a);
	KUNIT_EXPECT_EQ(test, enable_kretprobe(s), 0);
	ASSERT_OPTIMIZED(test, &s->kp);
	EXPECT_CALL(test, TARGET, "sS");
	KUNIT_EXPECT_EQ(test, r->nmissed + s->nmissed + r->kp.nmissed + s->kp.nmissed, 0);
}

static struct kunit_case optprobes_cases[] = {
	KUNIT_CASE(probe_is_optimized),
	KUNIT_CASE(handlers_of_optimized_probe_change),
	KUNIT_CASE(optimization_is_cancelled),
	KUNIT_CASE(optimized_probe_is_disabled_and_enabled),
	KUNIT_CASE(optimized_probe_is_registered_disabled),
	KUNIT_CASE(probe_joins_an_optimized_one),
	KUNIT_CASE(first_probe_leaves_an_optimized_one),
	KUNIT_CASE(optimized_probe_is_disabled_beside_others),
	KUNIT_CASE(optimized_probe_changes_its_handler),
	KUNIT_CASE(shared_optimized_probe_changes_its_handler),
	KUNIT_CASE(post_handler_joins_an_optimized_probe),
	KUNIT_CASE(batch_is_optimized),
	KUNIT_CASE(optimized_probe_changes_the_path),
	KUNIT_CASE(handler_of_optimized_probe_may_fault),
	KUNIT_CASE(handler_calls_an_optimized_function),
	KUNIT_CASE(handler_of_optimized_probe_is_interrupted),
	KUNIT_CASE(optimized_probe_is_interrupted_by_itself),
	KUNIT_CASE(return_probe_is_optimized),
	{ }
};

static struct kunit_suite optprobes_suite = {
	.name = "optprobes",
	.suite_init = kpt_start_return_suite,
	.init = kpt_start_return_test,
	.exit = kpt_end_return_test,
	.test_cases = optprobes_cases,
};

kunit_test_suite(optprobes_suite);
