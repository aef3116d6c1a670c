/* SPDX-License-Identifier: GPL-2.0 */
/* Handlers that look at registers, and change them. */
#ifndef _TEST_KPROBES_X86_REGISTERS_H
#define _TEST_KPROBES_X86_REGISTERS_H

#include "snippets.h"

extern struct pt_regs kpt_seen;
int kpt_act_see_and_change(struct test_probe *p, struct pt_regs *regs);
void kpt_expect_seen(struct kunit *test, const struct cpu_state *given);

#endif /* _TEST_KPROBES_X86_REGISTERS_H */
