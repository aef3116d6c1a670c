/* SPDX-License-Identifier: GPL-2.0 */
/* Whether there is a jump in place of a probe's breakpoint. */
#ifndef _TEST_KPROBES_OPTIMIZE_H
#define _TEST_KPROBES_OPTIMIZE_H

#include <linux/kprobes.h>

#include <kunit/test.h>

#define ASSERT_OPTIMIZED(test, kp)	kpt_assert_optimized(test, kp, __LINE__)

bool kpt_becomes_optimized(const struct kprobe *kp);
void kpt_assert_optimized(struct kunit *test, const struct kprobe *kp, int line);

#endif /* _TEST_KPROBES_OPTIMIZE_H */
