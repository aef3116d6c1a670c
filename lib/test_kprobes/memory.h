/* SPDX-License-Identifier: GPL-2.0 */
/* Allocations that fail when a test wants them to. */
#ifndef _TEST_KPROBES_MEMORY_H
#define _TEST_KPROBES_MEMORY_H

#include <kunit/test.h>

void kpt_fail_allocation(unsigned int nth);
bool kpt_allocation_has_failed(void);
void kpt_need_failslab(struct kunit *test);

#endif /* _TEST_KPROBES_MEMORY_H */
