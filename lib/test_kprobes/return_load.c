// SPDX-License-Identifier: GPL-2.0
/* Return probes are registered and unregistered while all CPUs call their functions. */
#include <linux/cleanup.h>
#include <linux/delay.h>
#include <linux/irq_work.h>
#include <linux/llist.h>
#include <linux/preempt.h>
#include <linux/string.h>

#include "hosts.h"
#include "load.h"
#include "return_probes.h"
#include "sleepers.h"

/*
 * Two return probes. Their handlers count the calls and returns of all tasks, and how
 * often get_kretprobe() returned neither of the two.
 */
static struct kretprobe owned[2];
static atomic_t owned_entries, owned_returns, orphans;

static void check_owner(struct kretprobe_instance *ri)
{
	const struct kretprobe *rp = get_kretprobe(ri);

	if (rp != &owned[0] && rp != &owned[1])
		atomic_inc(&orphans);
}

static int enter_owned(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	atomic_inc(&owned_entries);
	check_owner(ri);
	return 0;
}

static int leave_owned(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	atomic_inc(&owned_returns);
	check_owner(ri);
	return 0;
}

static void unregister_owned(void *unused)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(owned); i++)
		unregister_kretprobe(&owned[i]);
}

static void prepare_owned(struct kunit *test, const char * const *symbols)
{
	memset(owned, 0, sizeof(owned));
	atomic_set(&owned_entries, 0);
	atomic_set(&owned_returns, 0);
	atomic_set(&orphans, 0);
	for (unsigned int i = 0; i < ARRAY_SIZE(owned); i++) {
		owned[i].kp.symbol_name = symbols[i];
		owned[i].entry_handler = enter_owned;
		owned[i].handler = leave_owned;
	}
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, unregister_owned, NULL), 0);
}

/* Register and unregister, so often that calls meet each step of it. */
static void cycle_owned(struct kunit *test, unsigned int cycles)
{
	struct kretprobe *both[] = { &owned[0], &owned[1] };

	while (cycles--) {
		both[0]->kp.addr = NULL;
		both[1]->kp.addr = NULL;
		KUNIT_ASSERT_EQ(test, register_kretprobes(both, 2), 0);
		usleep_range(100, 1000);
		if (cycles % 2) {
			unregister_kretprobes(both, 2);
		} else {
			unregister_kretprobe(both[0]);
			unregister_kretprobe(both[1]);
		}
	}
}

static u64 call_both_places(u64 arg)
{
	return kpt_call_mktime64(arg) + kprobes_test_target(arg);
}

/* A handler always gets its return probe, also of one that is being unregistered. */
static void return_probes_are_cycled_under_load(struct kunit *test)
{
	static const char * const symbols[] = { "mktime64", "kprobes_test_target" };
	u64 result = TARGET->result + TRACED->result;

	prepare_owned(test, symbols);
	kpt_begin_load(test, call_both_places, result, result);
	cycle_owned(test, 100);
	kpt_expect_load(test);
	KUNIT_EXPECT_EQ(test, atomic_read(&orphans), 0);
	KUNIT_EXPECT_GT(test, atomic_read(&owned_entries), 0);
	KUNIT_EXPECT_LE(test, atomic_read(&owned_returns), atomic_read(&owned_entries));
}

static void do_irq_work(struct irq_work *work)
{
}

static struct irq_work test_irq_works[8] = {
	[0 ... 7] = IRQ_WORK_INIT(do_irq_work),
};

/* Call what releases the instances of an unregistered return probe. */
static u64 queue_irq_work(u64 arg)
{
	LLIST_HEAD(list);
	struct llist_node node;

	llist_add_batch(&node, &node, &list);
	guard(preempt)();
	irq_work_queue(&test_irq_works[smp_processor_id() % ARRAY_SIZE(test_irq_works)]);
	return arg;
}

/* Newer kernels inline llist_add_batch(). */
static const char *probed_release(void)
{
	struct kprobe kp = { .symbol_name = "llist_add_batch" };
	int err = register_kprobe(&kp);

	unregister_kprobe(&kp);
	return err == -ENOENT ? "queue_work_on" : "llist_add_batch";
}

/* Return probes of these functions neither recurse without end nor miss calls. */
static void release_of_instances_is_probed(struct kunit *test)
{
	const char * const symbols[] = { probed_release(), "irq_work_queue" };
	struct kretprobe *r = kpt_return_probe('r', HOST->symbol);

	prepare_owned(test, symbols);
	kpt_begin_load(test, queue_irq_work, ARG, ARG);
	cycle_owned(test, 100);
	KUNIT_EXPECT_EQ(test, owned[0].nmissed + owned[1].nmissed, 0);

	/* Also while the instances of another return probe are released. */
	owned[0].kp.addr = NULL;
	owned[1].kp.addr = NULL;
	ASSERT_RETURN_PROBED(test, &owned[0]);
	ASSERT_RETURN_PROBED(test, &owned[1]);
	for (unsigned int i = 0; i < 5; i++) {
		r->kp.addr = NULL;
		ASSERT_RETURN_PROBED(test, r);
		kpt_start_sleepers(test, HOST, 8);
		unregister_kretprobe(r);
		EXPECT_SLEEPERS_RETURN(test);
	}
	KUNIT_EXPECT_EQ(test, owned[0].nmissed + owned[1].nmissed, 0);
	kpt_expect_load(test);
	KUNIT_EXPECT_EQ(test, atomic_read(&orphans), 0);
	kunit_release_action(test, unregister_owned, NULL);
	for (unsigned int i = 0; i < ARRAY_SIZE(test_irq_works); i++)
		irq_work_sync(&test_irq_works[i]);
}

static struct kunit_case kretprobes_load_cases[] = {
	KUNIT_CASE_SLOW(return_probes_are_cycled_under_load),
	KUNIT_CASE_SLOW(release_of_instances_is_probed),
	{ }
};

static struct kunit_suite kretprobes_load_suite = {
	.name = "kretprobes-load",
	.suite_init = kpt_start_return_suite,
	.init = kpt_start_return_test,
	.exit = kpt_end_return_test,
	.test_cases = kretprobes_load_cases,
};

kunit_test_suite(kretprobes_load_suite);
