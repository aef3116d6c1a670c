/* SPDX-License-Identifier: GPL-2.0 */
/* Keep probes with a post handler at a traced function from being armed. */
#ifndef _TEST_KPROBES_ARMING_H
#define _TEST_KPROBES_ARMING_H

#include <kunit/test.h>

#include "targets.h"

#ifdef CONFIG_KPROBES_ON_FTRACE
void kpt_block_arming(struct kunit *test, const struct place *place);
void kpt_unblock_arming(struct kunit *test);
#else
static inline void kpt_block_arming(struct kunit *test, const struct place *place)
{
}

static inline void kpt_unblock_arming(struct kunit *test)
{
}
#endif

#endif /* _TEST_KPROBES_ARMING_H */
