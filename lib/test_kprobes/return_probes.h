/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Return probes of a test.
 *
 * They are called 'r', 's' ... In the journal, see probes.h, 'r' is a call of the entry
 * handler of return probe 'r' and 'R' a call of its return handler.
 */
#ifndef _TEST_KPROBES_RETURN_PROBES_H
#define _TEST_KPROBES_RETURN_PROBES_H

#include <linux/atomic.h>
#include <linux/cpumask.h>
#include <linux/kprobes.h>
#include <linux/minmax.h>

#include <kunit/resource.h>
#include <kunit/test.h>

#include "probes.h"

struct host;

/**
 * struct trace - A stack trace
 * @entries:	The addresses, innermost first.
 * @length:	The number of addresses.
 */
struct trace {
	unsigned long entries[TRACE_LENGTH];
	unsigned int length;
};

/**
 * struct test_kretprobe - A return probe of a test
 * @rp:		The return probe.
 * @on_entry:	What its entry handler does after writing the journal, or NULL.
 * @on_return:	What its return handler does after writing the journal, or NULL.
 * @data:	Belongs to @on_entry and @on_return.
 * @value:	The return value of the last call.
 * @caller:	The return address of the last call.
 * @entry_trace: Belongs to @on_entry.
 * @return_trace: Belongs to @on_return.
 * @entries:	How often the entry handler was called, in all tasks.
 * @exits:	How often the return handler was called, in all tasks.
 */
struct test_kretprobe {
	struct kretprobe rp;
	int (*on_entry)(struct test_kretprobe *p, struct kretprobe_instance *ri,
			struct pt_regs *regs);
	void (*on_return)(struct test_kretprobe *p, struct kretprobe_instance *ri,
			  struct pt_regs *regs);
	unsigned long data;
	unsigned long value;
	unsigned long caller;
	struct trace entry_trace;
	struct trace return_trace;
	atomic_t entries;
	atomic_t exits;
};

/* The instances that a return probe without maxactive has at first. */
static inline unsigned int kpt_initial_instances(void)
{
	return max(10U, 2 * num_possible_cpus());
}

struct test_kretprobe *kpt_test_kretprobe(char name);
struct kretprobe *kpt_return_probe(char name, const char *symbol);
void kpt_set_stale_return_results(struct kretprobe *rp);

extern atomic_t kpt_late_returns;
struct kretprobe *kpt_create_return_probe(struct kunit *test, const struct host *host,
					  int maxactive, kunit_action_t *destroy);
void kpt_destroy_return_probe(void *rp);

void kpt_count_freed_pools(struct kunit *test);
void kpt_expect_freed_pools(struct kunit *test, int number);

int kpt_start_return_suite(struct kunit_suite *suite);
int kpt_start_return_test(struct kunit *test);
void kpt_end_return_test(struct kunit *test);

#define ASSERT_RETURN_PROBED(test, rp)	KUNIT_ASSERT_EQ(test, register_kretprobe(rp), 0)

/* @rp is not registered, and is what @given was before, see EXPECT_UNTOUCHED(). */
#define EXPECT_RETURN_UNTOUCHED(test, rp, given)	\
	kpt_expect_return_untouched(test, rp, given, __LINE__)

/* register_kretprobe() returns @err, and leaves @rp untouched. */
#define EXPECT_RETURN_REFUSED(test, rp, err)		\
	kpt_expect_return_refused(test, rp, err, __LINE__)

void kpt_expect_return_untouched(struct kunit *test, struct kretprobe *rp,
				 const struct kretprobe *given, int line);
void kpt_expect_return_refused(struct kunit *test, struct kretprobe *rp, int err, int line);

#endif /* _TEST_KPROBES_RETURN_PROBES_H */
