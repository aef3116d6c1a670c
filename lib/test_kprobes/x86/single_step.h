/* SPDX-License-Identifier: GPL-2.0 */
/* Traps of code that a test runs with TF set. */
#ifndef _TEST_KPROBES_X86_SINGLE_STEP_H
#define _TEST_KPROBES_X86_SINGLE_STEP_H

#include <linux/kdebug.h>
#include <linux/sched.h>

#include <asm/debugreg.h>

#include "../probes.h"

/* For a die notifier: return whether the event is such a trap, which is handled then. */
static inline bool kpt_take_step(unsigned long event, struct die_args *args)
{
	unsigned long *dr6 = (unsigned long *)args->err;

	if (event != DIE_DEBUG || current != kpt_tester || !(*dr6 & DR_STEP))
		return false;
	*dr6 &= ~DR_STEP;
	return true;
}

#endif /* _TEST_KPROBES_X86_SINGLE_STEP_H */
