/* SPDX-License-Identifier: GPL-2.0 */
/* Load: threads on all CPUs that call a function, and probes that count their hits. */
#ifndef _TEST_KPROBES_LOAD_H
#define _TEST_KPROBES_LOAD_H

#include <linux/atomic.h>
#include <linux/kprobes.h>

#include <kunit/test.h>

/**
 * struct load - Threads that call a function
 * @function:	The function, called with ARG.
 * @result:	A correct result of @function.
 * @other:	Another correct result, or @result.
 * @results:	How many calls returned @result.
 * @others:	How many calls returned @other and not @result.
 * @wrong:	How many calls returned neither.
 * @stop:	The threads are to end.
 * @threads:	The threads, of one CPU each. The rest is NULL.
 */
struct load {
	u64 (*function)(u64 arg);
	u64 result;
	u64 other;
	atomic_t results;
	atomic_t others;
	atomic_t wrong;
	bool stop;
	struct task_struct *threads[8];
};

/**
 * struct counting_probe - A probe that counts the hits of all tasks
 * @kp:		The probe.
 * @hits:	The number of hits.
 */
struct counting_probe {
	struct kprobe kp;
	atomic_t hits;
};

extern struct load kpt_load;

void kpt_begin_load(struct kunit *test, u64 (*function)(u64 arg), u64 result, u64 other);
void kpt_end_load(void *unused);
void kpt_hold_off_rcu_tasks(struct kunit *test);
void kpt_expect_load(struct kunit *test);
void kpt_put_online(void *cpu);

extern struct counting_probe kpt_counting[3];

void kpt_prepare_counting(struct kunit *test);
struct kprobe *kpt_counting_probe(unsigned int i, unsigned long addr);
void kpt_unregister_counting(void *unused);

#endif /* _TEST_KPROBES_LOAD_H */
