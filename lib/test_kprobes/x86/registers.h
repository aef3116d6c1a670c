/* SPDX-License-Identifier: GPL-2.0 */
/* Handlers that record registers, and change them. */
#ifndef _TEST_KPROBES_X86_REGISTERS_H
#define _TEST_KPROBES_X86_REGISTERS_H

#include <linux/ptrace.h>

#include "snippets.h"

extern struct pt_regs kpt_seen;

void kpt_see(const struct pt_regs *regs);
int kpt_act_see_and_change(struct test_probe *p, struct pt_regs *regs);
void kpt_expect_seen(struct kunit *test, const struct cpu_state *given);
void kpt_expect_seen_frame(struct kunit *test, unsigned long ip, unsigned long stack);

#endif /* _TEST_KPROBES_X86_REGISTERS_H */
