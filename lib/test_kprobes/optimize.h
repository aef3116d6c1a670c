/* SPDX-License-Identifier: GPL-2.0 */
/* Whether a jump has replaced a probe's breakpoint. */
#ifndef _TEST_KPROBES_OPTIMIZE_H
#define _TEST_KPROBES_OPTIMIZE_H

#include <linux/kprobes.h>

#include <kunit/test.h>

bool kpt_becomes_optimized(const struct kprobe *kp);

/* After the optimizer has run, there is a jump at the probe's address. */
#define ASSERT_OPTIMIZED(test, kp)	kpt_assert_optimized(test, kp, __LINE__)

void kpt_assert_optimized(struct kunit *test, const struct kprobe *kp, int line);

/* There is a jump once the optimizer has tried again, some seconds after it could not. */
void kpt_expect_optimized_on_retry(struct kunit *test, const struct kprobe *kp);

#endif /* _TEST_KPROBES_OPTIMIZE_H */
