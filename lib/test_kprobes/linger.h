/* SPDX-License-Identifier: GPL-2.0 */
/* A handler that keeps another CPU busy while its probe is unregistered. */
#ifndef _TEST_KPROBES_LINGER_H
#define _TEST_KPROBES_LINGER_H

#include <kunit/test.h>

#include "targets.h"

void kpt_linger(void);
void kpt_begin_lingering(struct kunit *test, const struct place *place);
void kpt_end_lingering(struct kunit *test);

#endif /* _TEST_KPROBES_LINGER_H */
