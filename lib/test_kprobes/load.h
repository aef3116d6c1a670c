/* SPDX-License-Identifier: GPL-2.0 */
/* Load: a thread on each CPU that calls a function, and probes that count all hits. */
#ifndef _TEST_KPROBES_LOAD_H
#define _TEST_KPROBES_LOAD_H

#include <linux/atomic.h>
#include <linux/kprobes.h>

#include <kunit/test.h>

/**
 * struct load - What a thread on each CPU does
 * @function:	It calls this, with ARG.
 * @result:	What that may return
 * @other:	or this instead.
 * @results:	How often it has returned the one
 * @others:	or the other.
 * @wrong:	And how often something else.
 * @stop:	It is to end.
 * @threads:	How many there are.
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
 * struct counting_probe - A probe that all tasks hit
 * @kp:		The probe.
 * @hits:	How often they have.
 */
struct counting_probe {
	struct kprobe kp;
	atomic_t hits;
};

extern struct load kpt_load;
extern struct counting_probe kpt_counting[3];

void kpt_end_load(void *unused);
void kpt_begin_load(struct kunit *test, u64 (*function)(u64 arg), u64 result, u64 other);
void kpt_expect_load(struct kunit *test);
void kpt_unregister_counting(void *unused);
struct kprobe *kpt_counting_probe(unsigned int i, unsigned long addr);
void kpt_prepare_counting(struct kunit *test);

#endif /* _TEST_KPROBES_LOAD_H */
