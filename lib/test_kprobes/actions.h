/* SPDX-License-Identifier: GPL-2.0 */
/* What handlers of tests do besides writing the journal. */
#ifndef _TEST_KPROBES_ACTIONS_H
#define _TEST_KPROBES_ACTIONS_H

struct pt_regs;
struct test_probe;

int kpt_act_go_to_replacement(struct test_probe *p, struct pt_regs *regs);
int kpt_act_read_bad_address(struct test_probe *p, struct pt_regs *regs);
int kpt_act_call_target(struct test_probe *p, struct pt_regs *regs);
void kpt_try_to_change_probes(void);

#endif /* _TEST_KPROBES_ACTIONS_H */
