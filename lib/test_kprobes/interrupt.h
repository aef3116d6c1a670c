/* SPDX-License-Identifier: GPL-2.0 */
/* A timer interrupt that hits probes, at a moment that the test chooses; an NMI. */
#ifndef _TEST_KPROBES_INTERRUPT_H
#define _TEST_KPROBES_INTERRUPT_H

#include <linux/hrtimer.h>

#include <kunit/test.h>

struct place;
struct pt_regs;
struct test_probe;

enum hrtimer_restart kpt_interrupt(struct hrtimer *timer);
void kpt_prepare_interrupt(enum hrtimer_restart (*function)(struct hrtimer *timer));
void kpt_register_for_interrupt(struct kunit *test);
void kpt_wait_for_interrupt(void);
bool kpt_wait_unless_irqs_off(void);
void kpt_expect_interrupt(struct kunit *test);
void kpt_expect_interrupted_call(struct kunit *test, const struct place *place,
				 const char *events);
int kpt_act_wait_for_interrupt(struct test_probe *p, struct pt_regs *regs);
bool kpt_can_send_nmi(void);
void kpt_call_in_nmi(void (*function)(void));

#endif /* _TEST_KPROBES_INTERRUPT_H */
