// SPDX-License-Identifier: GPL-2.0
/*
 * Probes that are unregistered where the caller must not wait, and freed at once: the call
 * warns, and no later hit touches them.
 */
#include <linux/delay.h>
#include <linux/irqflags.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "drop.h"
#include "linger.h"
#include "probes.h"

#define FREED	0x6b

/* What a caller may do to a probe that it has unregistered. */
static void free_probe(struct kprobe *kp)
{
	memset(kp, FREED, sizeof(*kp));
}

static bool is_freed(const struct kprobe *kp)
{
	return !memchr_inv(kp, FREED, sizeof(*kp));
}

static bool text_is_restored(void)
{
	for (unsigned int i = 0; i < PLACES; i++)
		if (memcmp(kpt_text(&kpt_places[i]), kpt_unprobed_text[i], TEXT_BYTES))
			return false;
	return true;
}

/* Soon after the last probe has been dropped, the text is what it was. */
void kpt_expect_restored_text(struct kunit *test)
{
	unsigned long end = jiffies + PATIENCE;

	while (!text_is_restored() && time_before(jiffies, end))
		msleep(20);
	KUNIT_EXPECT_TRUE(test, text_is_restored());
}

static void expect_freed(struct kunit *test, char first, char last)
{
	for (char name = first; name <= last; name++) {
		KUNIT_EXPECT_TRUE(test, is_freed(&kpt_test_probe(name)->kp));
		memset(&kpt_test_probe(name)->kp, 0, sizeof(struct kprobe));
	}
	kpt_expect_restored_text(test);
}

static DEFINE_SPINLOCK(callers_lock);

static void drop_under_spinlock(struct kprobe **kps, int num)
{
	spin_lock(&callers_lock);
	unregister_kprobes(kps, num);
	for (int i = 0; i < num; i++)
		free_probe(kps[i]);
	spin_unlock(&callers_lock);
}

static void drop_with_irqs_off(struct kprobe **kps, int num)
{
	guard(irq)();
	for (int i = 0; i < num; i++) {
		unregister_kprobe(kps[i]);
		free_probe(kps[i]);
	}
}

/* Register three probes at @place. */
static void register_three(struct kunit *test, const struct place *place, bool post,
			   bool optimized)
{
	for (char name = 'a'; name <= 'c'; name++) {
		kpt_probe(name, place->symbol);
		if (post)
			kpt_post_probe(name, place->symbol);
		ASSERT_REGISTERED(test, &kpt_test_probe(name)->kp);
	}
	if (optimized)
		wait_for_kprobe_optimizer();
}

static void dropped_probes_are_not_called(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = kpt_probe('a', place->symbol);
	struct kprobe *b = kpt_probe('b', place->symbol);
	struct kprobe *c = kpt_probe('c', place->symbol);
	struct kprobe *others[] = { a, c };

	for (int i = 0; i < 4; i++) {
		bool post = i & 1, optimized = i & 2;

		register_three(test, place, post, optimized);
		EXPECT_CALL(test, place, post ? "cbaCBA" : "cba");
		drop_under_spinlock(&b, 1);
		EXPECT_CALL(test, place, post ? "caCA" : "ca");
		drop_with_irqs_off(others, ARRAY_SIZE(others));
		EXPECT_CALL(test, place, "");
		expect_freed(test, 'a', 'c');
		EXPECT_CALL(test, place, "");
	}
}

/* A detour calls the only probe directly, and the probe that is left alone, too. */
static void only_probe_is_dropped(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = kpt_probe('a', place->symbol);

	for (int i = 0; i < 4; i++) {
		kpt_probe('a', place->symbol);
		a->post_handler = i & 1 ? kpt_post_handler : NULL;
		ASSERT_REGISTERED(test, a);
		if (i & 2)
			wait_for_kprobe_optimizer();
		EXPECT_CALL(test, place, i & 1 ? "aA" : "a");
		drop_under_spinlock(&a, 1);
		EXPECT_CALL(test, place, "");
		expect_freed(test, 'a', 'a');
	}
}

static void many_probes_are_dropped_together(struct kunit *test)
{
	struct kprobe *all[PLACES];

	for (unsigned int i = 0; i < PLACES; i++) {
		all[i] = kpt_probe('a' + i, kpt_places[i].symbol);
		ASSERT_REGISTERED(test, all[i]);
	}
	drop_under_spinlock(all, PLACES);
	EXPECT_CALLS(test, "", "", "", "");
	expect_freed(test, 'a', 'a' + PLACES - 1);
}

/* Those that are left are called as before, also by a jump, and can be unregistered. */
static void other_probes_stay(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *b = kpt_probe('b', place->symbol);

	register_three(test, place, true, true);
	drop_under_spinlock(&b, 1);
	memset(b, 0, sizeof(*b));
	msleep(20);
	EXPECT_CALL(test, place, "caCA");
	unregister_kprobe(&kpt_test_probe('a')->kp);
	EXPECT_CALL(test, place, "cC");
	kpt_post_probe('b', place->symbol);
	ASSERT_REGISTERED(test, b);
	EXPECT_CALL(test, place, "bcBC");
	unregister_kprobe(b);
	unregister_kprobe(&kpt_test_probe('c')->kp);
	EXPECT_CALL(test, place, "");
}

static void drop(struct kprobe *kp)
{
	guard(preempt)();
	unregister_kprobe(kp);
}

/* An owner that keeps the probe can unregister it again, to wait, and register it again. */
static void dropped_probe_is_used_again(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = kpt_probe('a', place->symbol);

	ASSERT_REGISTERED(test, a);
	drop(a);
	drop(a);
	EXPECT_CALL(test, place, "");
	KUNIT_EXPECT_EQ(test, disable_kprobe(a), -EINVAL);
	unregister_kprobe(a);
	KUNIT_EXPECT_FALSE(test, kpt_is_linked(a));
	EXPECT_CALL(test, place, "");
	a->addr = NULL;
	ASSERT_REGISTERED(test, a);
	EXPECT_CALL(test, place, "a");
	drop(a);
	a->addr = NULL;
	ASSERT_REGISTERED(test, a);
	EXPECT_CALL(test, place, "a");
	drop(a);
	unregister_kprobe(a);
	unregister_kprobe(a);
	KUNIT_EXPECT_NULL(test, a->addr);
	kpt_expect_restored_text(test);
}

/* Memory of a probe that was never registered: pointers to nothing, and one byte before NULL. */
static const u8 undefined[] = { FREED, 0xff };

static void unregistered_probe_is_dropped(struct kunit *test)
{
	struct kprobe *a = kpt_probe('a', TARGET->symbol);

	a->addr = (kprobe_opcode_t *)kprobes_test_other_target;
	drop(a);
	KUNIT_EXPECT_NULL(test, a->addr);
	for (unsigned int i = 0; i < ARRAY_SIZE(undefined); i++) {
		memset(a, undefined[i], sizeof(*a));
		drop(a);
		KUNIT_EXPECT_NULL(test, a->addr);
	}
	memset(a, 0, sizeof(*a));
}

static int linger(struct kprobe *kp, struct pt_regs *regs)
{
	kpt_linger();
	return 0;
}

/* The links of the probe are set anew, which the walk of a hit must not see. */
static void registering_again_waits_for_handlers(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = kpt_probe('a', place->symbol);

	if (num_online_cpus() < 2)
		kunit_skip(test, "needs two CPUs");
	a->pre_handler = linger;
	ASSERT_REGISTERED(test, a);
	ASSERT_REGISTERED(test, kpt_probe('b', place->symbol));
	kpt_begin_lingering(test, place);
	drop(a);
	a->addr = NULL;
	ASSERT_REGISTERED(test, a);
	kpt_end_lingering(test);
}

static struct task_struct *registrar;

/* Registration takes a mutex after it has waited for the handlers of an unregistered probe. */
static int unregister_meanwhile(struct kprobe *kp, struct pt_regs *regs)
{
	if (current == registrar) {
		registrar = NULL;
		unregister_kprobe(&kpt_test_probe('a')->kp);
	}
	return 0;
}

/* The links that it would set anew are those of a hit. */
static void probe_is_refused_while_it_is_unregistered(struct kunit *test)
{
	struct kprobe *a = kpt_probe('a', TARGET->symbol);
	struct kprobe mutex = {
		.symbol_name = IS_ENABLED(CONFIG_DEBUG_LOCK_ALLOC) ? "mutex_lock_nested" :
								     "mutex_lock",
		.pre_handler = unregister_meanwhile,
	};

	ASSERT_REGISTERED(test, a);
	ASSERT_REGISTERED(test, &mutex);
	a->addr = NULL;
	registrar = current;
	KUNIT_EXPECT_EQ(test, register_kprobe(a), -EINVAL);
	KUNIT_EXPECT_NULL(test, registrar);
	registrar = NULL;
	unregister_kprobe(&mutex);
	EXPECT_CALL(test, TARGET, "");
	a->addr = NULL;
	ASSERT_REGISTERED(test, a);
	EXPECT_CALL(test, TARGET, "a");
	unregister_kprobe(a);
	kpt_expect_restored_text(test);
}

/* What a change of a probe calls: a handler there does not find the links locked. */
static const char * const readers[] = {
	"copy_from_kernel_nofault", "copy_from_kernel_nofault_allowed",
};

static void probe_is_unregistered_while_another_one_changes(struct kunit *test)
{
	struct kprobe *a = kpt_probe('a', TARGET->symbol);
	struct kprobe *b = kpt_probe('b', OTHER_TARGET->symbol);
	u8 byte;

	for (unsigned int i = 0; i < ARRAY_SIZE(readers); i++) {
		struct kprobe reader = {
			.symbol_name = readers[i],
			.pre_handler = unregister_meanwhile,
		};

		a->addr = NULL;
		b->addr = NULL;
		ASSERT_REGISTERED(test, a);
		ASSERT_REGISTERED(test, b);
		ASSERT_REGISTERED(test, &reader);
		registrar = current;
		KUNIT_EXPECT_EQ(test, disable_kprobe(b), 0);
		unregister_kprobe(b);
		KUNIT_EXPECT_EQ(test, copy_from_kernel_nofault(&byte, kpt_text(TARGET), 1), 0);
		KUNIT_EXPECT_NULL(test, registrar);
		registrar = NULL;
		unregister_kprobe(&reader);
		EXPECT_CALL(test, TARGET, "");
		unregister_kprobe(a);
		kpt_expect_restored_text(test);
	}
}

/* ------------------------------------------------------------- by handlers */

/* Drop probe @p->data. */
static int drop_before(struct test_probe *p, struct pt_regs *regs)
{
	struct kprobe *kp = &kpt_test_probe(p->data)->kp;

	unregister_kprobe(kp);
	if (kp != &p->kp)
		free_probe(kp);
	return 0;
}

static void handler_drops_probe_elsewhere(struct kunit *test)
{
	const struct place *place = test->param_value;

	kpt_post_probe('a', place->symbol);
	kpt_test_probe('a')->act = drop_before;
	kpt_test_probe('a')->data = 'b';
	ASSERT_REGISTERED(test, &kpt_test_probe('a')->kp);
	for (unsigned int i = 0; i < PLACES; i++) {
		if (&kpt_places[i] == place)
			continue;
		ASSERT_REGISTERED(test, kpt_probe('b', kpt_places[i].symbol));
		EXPECT_CALL(test, place, "aA");
		EXPECT_CALL(test, &kpt_places[i], "");
		KUNIT_EXPECT_TRUE(test, is_freed(&kpt_test_probe('b')->kp));
		memset(&kpt_test_probe('b')->kp, 0, sizeof(struct kprobe));
	}
	unregister_kprobe(&kpt_test_probe('a')->kp);
	kpt_expect_restored_text(test);
}

/* Whichever of three probes drops whichever, it is the only one that is not called any more. */
static void handler_drops_probe_at_its_site(struct kunit *test)
{
	const struct place *place = test->param_value;

	for (char dropper = 'a'; dropper <= 'c'; dropper++) {
		for (char dropped = 'a'; dropped <= 'c'; dropped++) {
			char expected[4] = "", *end = expected;

			register_three(test, place, false, dropper == 'b');
			kpt_test_probe(dropper)->act = drop_before;
			kpt_test_probe(dropper)->data = dropped;
			/* If it comes later in the walk, it is not called this time, either. */
			EXPECT_CALL(test, place, dropped >= dropper ? "cba" :
				    dropped == 'b' ? "ca" : "cb");
			kpt_test_probe(dropper)->act = NULL;
			for (char name = 'c'; name >= 'a'; name--)
				if (name != dropped)
					*end++ = name;
			EXPECT_CALL(test, place, expected);
			for (char name = 'a'; name <= 'c'; name++)
				if (name != dropped)
					unregister_kprobe(&kpt_test_probe(name)->kp);
			for (char name = 'a'; name <= 'c'; name++)
				memset(&kpt_test_probe(name)->kp, 0, sizeof(struct kprobe));
			EXPECT_CALL(test, place, "");
			kpt_expect_restored_text(test);
		}
	}
}

static struct kunit_case kprobes_drop_cases[] = {
	KUNIT_CASE_PARAM(dropped_probes_are_not_called, kpt_place_gen_params),
	KUNIT_CASE_PARAM(only_probe_is_dropped, kpt_place_gen_params),
	KUNIT_CASE(many_probes_are_dropped_together),
	KUNIT_CASE_PARAM(other_probes_stay, kpt_place_gen_params),
	KUNIT_CASE_PARAM(dropped_probe_is_used_again, kpt_place_gen_params),
	KUNIT_CASE(unregistered_probe_is_dropped),
	KUNIT_CASE_PARAM(registering_again_waits_for_handlers, kpt_place_gen_params),
	KUNIT_CASE(probe_is_refused_while_it_is_unregistered),
	KUNIT_CASE(probe_is_unregistered_while_another_one_changes),
	KUNIT_CASE_PARAM(handler_drops_probe_elsewhere, kpt_place_gen_params),
	KUNIT_CASE_PARAM(handler_drops_probe_at_its_site, kpt_place_gen_params),
	{ }
};

static struct kunit_suite kprobes_drop_suite = {
	.name = "kprobes-drop",
	.suite_init = kpt_start_suite,
	.init = kpt_start_test,
	.exit = kpt_end_test,
	.test_cases = kprobes_drop_cases,
};

kunit_test_suite(kprobes_drop_suite);
