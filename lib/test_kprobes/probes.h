/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Probes of a test, and the journal that their handlers write.
 *
 * Probes are called 'a', 'b' ...: 'a' in the journal is a call of the pre handler of
 * probe 'a', 'A' one of its post handler. Only hits of the task that runs the test are
 * written there. After a test, however it ended, the probes that it left registered are
 * unregistered, and the text of all targets must be what it was before.
 */
#ifndef _TEST_KPROBES_PROBES_H
#define _TEST_KPROBES_PROBES_H

#include <linux/errno.h>
#include <linux/kprobes.h>

#include <kunit/test.h>

#include "targets.h"

/* Where there is never memory: among the values of ERR_PTR(). */
#define BAD_ADDRESS	((void *)-MAX_ERRNO)

/* Entries of a stack trace. */
#define TRACE_LENGTH	32

/**
 * struct test_probe - A probe of a test
 * @kp:		The probe.
 * @act:	What its pre handler does besides writing the journal, or NULL.
 * @data:	For @act.
 */
struct test_probe {
	struct kprobe kp;
	int (*act)(struct test_probe *p, struct pt_regs *regs);
	unsigned long data;
};

/* Call a function: it returns what it should, and these handlers are called. */
#define EXPECT_CALL(test, place, events) kpt_expect_call(test, place, events, __LINE__)

#define ASSERT_REGISTERED(test, kp)	KUNIT_ASSERT_EQ(test, register_kprobe(kp), 0)

/* The probe is not registered, and as its caller left it. */
#define EXPECT_UNTOUCHED(test, kp, given) kpt_expect_untouched(test, kp, given, __LINE__)
#define EXPECT_REFUSED(test, kp, err)	kpt_expect_refused(test, kp, err, __LINE__)

extern struct task_struct *kpt_tester;
extern char kpt_journal[32];
void kpt_note(char event);
void kpt_clear_journal(void);
int kpt_pre_handler(struct kprobe *kp, struct pt_regs *regs);
void kpt_post_handler(struct kprobe *kp, struct pt_regs *regs, unsigned long flags);
struct test_probe *kpt_test_probe(char name);
struct kprobe *kpt_probe(char name, const char *symbol);
struct kprobe *kpt_post_probe(char name, const char *symbol);
bool kpt_is_linked(const struct kprobe *kp);
int kpt_start_suite(struct kunit_suite *suite);
int kpt_start_test(struct kunit *test);
void kpt_end_test(struct kunit *test);
bool kpt_is_in(unsigned long address, const char *function);
void kpt_expect_call(struct kunit *test, const struct place *place, const char *events,
		     int line);
int kpt_act_replace(struct test_probe *p, struct pt_regs *regs);
int kpt_act_read_bad_address(struct test_probe *p, struct pt_regs *regs);
int kpt_act_call_target(struct test_probe *p, struct pt_regs *regs);
void kpt_leave_results(struct kprobe *kp);
void kpt_expect_untouched(struct kunit *test, const struct kprobe *kp,
			  const struct kprobe *given, int line);
void kpt_expect_refused(struct kunit *test, struct kprobe *kp, int err, int line);
void kpt_try_to_change_probes(void);

#endif /* _TEST_KPROBES_PROBES_H */
