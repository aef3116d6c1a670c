/* SPDX-License-Identifier: GPL-2.0 */
/* Return handlers and return-probed functions that are interrupted. */
#ifndef _TEST_KPROBES_RETURN_NESTING_H
#define _TEST_KPROBES_RETURN_NESTING_H

#include "return_probes.h"

void kpt_return_wait_for_interrupt(struct test_kretprobe *p, struct kretprobe_instance *ri,
				   struct pt_regs *regs);
int kpt_be_interrupted_inside(void *unused);

#endif /* _TEST_KPROBES_RETURN_NESTING_H */
