// SPDX-License-Identifier: GPL-2.0
/* Probes of a test, and the journal that their handlers write. */
#include <linux/cleanup.h>
#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/module.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/string.h>

#include "probes.h"

static struct test_probe probes[8];

/* The task that runs the test: the journal leaves out hits of other tasks. */
struct task_struct *kpt_tester;

char kpt_journal[32];
static unsigned int journal_length;

void kpt_note(char event)
{
	if (journal_length < sizeof(kpt_journal) - 1)
		kpt_journal[journal_length++] = event;
}

void kpt_clear_journal(void)
{
	memset(kpt_journal, 0, sizeof(kpt_journal));
	journal_length = 0;
}

int kpt_pre_handler(struct kprobe *kp, struct pt_regs *regs)
{
	struct test_probe *p = container_of(kp, struct test_probe, kp);

	if (current != kpt_tester)
		return 0;
	kpt_note('a' + (p - probes));
	return p->act ? p->act(p, regs) : 0;
}

void kpt_post_handler(struct kprobe *kp, struct pt_regs *regs, unsigned long flags)
{
	struct test_probe *p = container_of(kp, struct test_probe, kp);

	if (current == kpt_tester)
		kpt_note('A' + (p - probes));
}

struct test_probe *kpt_test_probe(char name)
{
	return &probes[name - 'a'];
}

/* Prepare probe @name, with a pre handler. */
struct kprobe *kpt_probe(char name, const char *symbol)
{
	struct kprobe *kp = &kpt_test_probe(name)->kp;

	kp->symbol_name = symbol;
	kp->pre_handler = kpt_pre_handler;
	return kp;
}

/* Prepare probe @name, with a pre and a post handler. */
struct kprobe *kpt_post_probe(char name, const char *symbol)
{
	struct kprobe *kp = kpt_probe(name, symbol);

	kp->post_handler = kpt_post_handler;
	return kp;
}

/* The links of a probe that was never registered may still be zero. */
bool kpt_is_linked(const struct kprobe *kp)
{
	return (kp->list.next && !list_empty(&kp->list)) || !hlist_unhashed(&kp->hlist);
}

int kpt_start_suite(struct kunit_suite *suite)
{
	for (unsigned int i = 0; i < PLACES; i++)
		memcpy(kpt_unprobed_text[i], kpt_text(&kpt_places[i]), TEXT_BYTES);
	return 0;
}

int kpt_start_test(struct kunit *test)
{
	memset(probes, 0, sizeof(probes));
	kpt_clear_journal();
	kpt_tester = current;
	return 0;
}

void kpt_end_test(struct kunit *test)
{
	struct kprobe *all[ARRAY_SIZE(probes)];

	for (unsigned int i = 0; i < ARRAY_SIZE(probes); i++)
		all[i] = &probes[i].kp;
	unregister_kprobes(all, ARRAY_SIZE(all));
	for (unsigned int i = 0; i < PLACES; i++)
		KUNIT_EXPECT_MEMEQ(test, kpt_text(&kpt_places[i]), kpt_unprobed_text[i],
				   TEXT_BYTES);
}

void kpt_expect_call(struct kunit *test, const struct place *place, const char *events,
		     int line)
{
	kpt_clear_journal();
	KUNIT_EXPECT_EQ_MSG(test, kpt_call(place), place->result, "at line %d", line);
	KUNIT_EXPECT_STREQ_MSG(test, kpt_journal, events, "at line %d", line);
}

void kpt_expect_calls(struct kunit *test, const char * const *events, int line)
{
	for (unsigned int i = 0; i < PLACES; i++)
		kpt_expect_call(test, &kpt_places[i], events[i], line);
}

/* Set the fields of a probe that an earlier registration may have left set. */
void kpt_set_stale_results(struct kprobe *kp)
{
	kp->nmissed = 1812;
	memset(&kp->opcode, 0x5a, sizeof(kp->opcode));
}

/* The links may differ: they are what says that the probe is not registered. */
void kpt_expect_untouched(struct kunit *test, struct kprobe *kp, const struct kprobe *given,
			  int line)
{
	struct kprobe unlinked;

	if (given->symbol_name && !given->addr)
		kp->addr = NULL;
	memcpy(&unlinked, kp, sizeof(unlinked));
	unlinked.list = given->list;
	unlinked.hlist = given->hlist;
	KUNIT_EXPECT_MEMEQ_MSG(test, &unlinked, given, sizeof(unlinked), "at line %d", line);
	KUNIT_EXPECT_PTR_EQ_MSG(test, kp->addr, given->addr, "at line %d", line);
	KUNIT_EXPECT_PTR_EQ_MSG(test, kp->symbol_name, given->symbol_name, "at line %d", line);
	KUNIT_EXPECT_EQ_MSG(test, kp->offset, given->offset, "at line %d", line);
	KUNIT_EXPECT_EQ_MSG(test, kp->flags, given->flags, "at line %d", line);
	KUNIT_EXPECT_FALSE_MSG(test, kpt_is_linked(kp), "at line %d", line);
}

void kpt_expect_refused(struct kunit *test, struct kprobe *kp, int err, int line)
{
	struct kprobe given;

	kpt_set_stale_results(kp);
	memcpy(&given, kp, sizeof(given));
	KUNIT_EXPECT_EQ_MSG(test, register_kprobe(kp), err, "at line %d", line);
	kpt_expect_untouched(test, kp, &given, line);
}

/*
 * Spin until *@condition is true, in any context. Returns false if it is not after @ms milliseconds
 * at least: an emulated CPU that found out how fast it is while it shared a CPU of a busy host may
 * take udelay() for next to nothing, and its jiffies may stand still while another one spins.
 */
bool kpt_spin_until(const bool *condition, unsigned int ms)
{
	for (unsigned int us = 0; !READ_ONCE(*condition) && us < 50 * USEC_PER_MSEC * ms; us++)
		udelay(1);
	return READ_ONCE(*condition);
}

/* Wait until the site of @kp, which is not registered any more, is freed, with its slots. */
void kpt_wait_until_site_is_freed(struct kunit *test, const struct kprobe *kp)
{
	unsigned long timeout = jiffies + 20 * HZ;
	bool is_freed;

	do {
		KUNIT_ASSERT_TRUE(test, time_before(jiffies, timeout));
		msleep(20);
		scoped_guard(preempt)
			is_freed = !get_kprobe(kp->addr);
	} while (!is_freed);
}

MODULE_DESCRIPTION("KUnit tests of kernel probes");
MODULE_LICENSE("GPL");
MODULE_INFO(import_ns, "EXPORTED_FOR_KUNIT_TESTING");
