/* SPDX-License-Identifier: GPL-2.0 */
/* Allocations that fail when a test asks for it. */
#ifndef _TEST_KPROBES_MEMORY_H
#define _TEST_KPROBES_MEMORY_H

#include <kunit/test.h>

void kpt_need_failslab(struct kunit *test);
void kpt_fail_allocation(struct kunit *test, unsigned int nth);
bool kpt_allocation_has_failed(void);

#endif /* _TEST_KPROBES_MEMORY_H */
