/* SPDX-License-Identifier: GPL-2.0 */
/* Probes that are unregistered where the caller must not wait. */
#ifndef _TEST_KPROBES_DROP_H
#define _TEST_KPROBES_DROP_H

#include <kunit/test.h>

void kpt_expect_restored_text(struct kunit *test);

#endif /* _TEST_KPROBES_DROP_H */
