// SPDX-License-Identifier: GPL-2.0
/* Return probes of a test. */
#include <linux/atomic.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "hosts.h"
#include "return_probes.h"
#include "sleepers.h"

static struct test_kretprobe return_probes[5];

/* Note a surprise in the journal, which makes the test fail. */
static void check_fields(struct kretprobe_instance *ri)
{
	if (get_kretprobe(ri) != ri->rp || ri->task != current)
		kpt_note('?');
}

static int entry_handler(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct test_kretprobe *p = container_of(ri->rp, struct test_kretprobe, rp);

	atomic_inc(&p->entries);
	if (current != kpt_tester)
		return 0;
	kpt_note('r' + (p - return_probes));
	check_fields(ri);
	return p->on_entry ? p->on_entry(p, ri, regs) : 0;
}

static int return_handler(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct test_kretprobe *p = container_of(ri->rp, struct test_kretprobe, rp);

	atomic_inc(&p->exits);
	if (current != kpt_tester)
		return 0;
	kpt_note('R' + (p - return_probes));
	check_fields(ri);
	p->value = regs_return_value(regs);
	p->caller = get_kretprobe_retaddr(ri);
	if (p->on_return)
		p->on_return(p, ri, regs);
	return 0;
}

struct test_kretprobe *kpt_test_kretprobe(char name)
{
	return &return_probes[name - 'r'];
}

/* Prepare return probe @name, with both handlers. */
struct kretprobe *kpt_return_probe(char name, const char *symbol)
{
	struct kretprobe *rp = &kpt_test_kretprobe(name)->rp;

	rp->kp.symbol_name = symbol;
	rp->entry_handler = entry_handler;
	rp->handler = return_handler;
	return rp;
}

int kpt_start_return_suite(struct kunit_suite *suite)
{
	kpt_save_host_text();
	return kpt_start_suite(suite);
}

int kpt_start_return_test(struct kunit *test)
{
	memset(return_probes, 0, sizeof(return_probes));
	return kpt_start_test(test);
}

void kpt_end_return_test(struct kunit *test)
{
	struct kretprobe *all[ARRAY_SIZE(return_probes)];

	kpt_wake_sleepers();
	for (unsigned int i = 0; i < ARRAY_SIZE(return_probes); i++)
		all[i] = &return_probes[i].rp;
	unregister_kretprobes(all, ARRAY_SIZE(all));
	kpt_end_test(test);
	kpt_expect_host_text(test);
}

/* Set the fields of a return probe that an earlier registration may have left set. */
void kpt_set_stale_return_results(struct kretprobe *rp)
{
	kpt_set_stale_results(&rp->kp);
	rp->nmissed = 1815;
}

/* The number of calls of the handlers of kpt_create_return_probe(). */
atomic_t kpt_late_returns;

static int count_late_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	atomic_inc(&kpt_late_returns);
	return 0;
}

/* Unregister and free what kpt_create_return_probe() has returned. */
void kpt_destroy_return_probe(void *rp)
{
	unregister_kretprobe(rp);
	memset(rp, 0x5a, sizeof(struct kretprobe));
	kfree(rp);
}

/* Register a return probe in memory of its own. The test ends with @destroy, if it is left. */
struct kretprobe *kpt_create_return_probe(struct kunit *test, const struct host *host,
					  int maxactive, kunit_action_t *destroy)
{
	struct kretprobe *rp = kzalloc(sizeof(*rp), GFP_KERNEL);
	int err;

	KUNIT_ASSERT_NOT_NULL(test, rp);
	rp->kp.symbol_name = host->symbol;
	rp->handler = count_late_return;
	rp->maxactive = maxactive;
	rp->data_size = 100;
	err = register_kretprobe(rp);
	if (err)
		kfree(rp);
	KUNIT_ASSERT_EQ(test, err, 0);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, destroy, rp), 0);
	return rp;
}

static atomic_t freed_pools;

#ifdef CONFIG_KRETPROBE_ON_RETHOOK
static bool is_of_pool(const struct kretprobe *rp, unsigned long memory)
{
	return false;
}
#else
/* A return probe keeps the address after its pool has gone. */
static bool is_of_pool(const struct kretprobe *rp, unsigned long memory)
{
	return memory && memory == (__force unsigned long)rp->cache;
}
#endif

static int count_freed_pool(struct kprobe *kp, struct pt_regs *regs)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(return_probes); i++)
		if (is_of_pool(&return_probes[i].rp, regs_get_kernel_argument(regs, 0)))
			atomic_inc(&freed_pools);
	return 0;
}

/* A pool has one allocation of this kind, and is freed by work. */
void kpt_count_freed_pools(struct kunit *test)
{
	struct kprobe *b = kpt_probe('b', "free_percpu");

	b->pre_handler = count_freed_pool;
	atomic_set(&freed_pools, 0);
	ASSERT_REGISTERED(test, b);
}

void kpt_expect_freed_pools(struct kunit *test, int number)
{
	unsigned long end = jiffies + PATIENCE;

	while (atomic_read(&freed_pools) < number && time_before(jiffies, end))
		msleep(20);
	KUNIT_EXPECT_GE(test, atomic_read(&freed_pools), number);
}

void kpt_expect_return_untouched(struct kunit *test, struct kretprobe *rp,
				 const struct kretprobe *given, int line)
{
	kpt_expect_untouched(test, &rp->kp, &given->kp, line);
	rp->chosen = given->chosen;
	KUNIT_EXPECT_EQ_MSG(test, rp->nmissed, given->nmissed, "at line %d", line);
	KUNIT_EXPECT_TRUE_MSG(test, rp->handler == given->handler, "at line %d", line);
	KUNIT_EXPECT_TRUE_MSG(test, rp->entry_handler == given->entry_handler, "at line %d",
			      line);
	KUNIT_EXPECT_EQ_MSG(test, rp->maxactive, given->maxactive, "at line %d", line);
	KUNIT_EXPECT_EQ_MSG(test, rp->data_size, given->data_size, "at line %d", line);
}

void kpt_expect_return_refused(struct kunit *test, struct kretprobe *rp, int err, int line)
{
	struct kretprobe given;

	kpt_set_stale_return_results(rp);
	memcpy(&given, rp, sizeof(given));
	KUNIT_EXPECT_EQ_MSG(test, register_kretprobe(rp), err, "at line %d", line);
	kpt_expect_return_untouched(test, rp, &given, line);
}
