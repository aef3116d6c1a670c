/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Probes of a test, and the journal that their handlers write.
 *
 * The probes are called 'a', 'b' ... In the journal, 'a' is a call of the pre handler of
 * probe 'a' and 'A' a call of its post handler; only hits of the task that runs the test
 * are written there. '!' says that something went wrong. After each test, even a failed
 * one, the probes that it left registered are unregistered, and the text of all places
 * must be what it was before.
 */
#ifndef _TEST_KPROBES_PROBES_H
#define _TEST_KPROBES_PROBES_H

#include <linux/errno.h>
#include <linux/jiffies.h>
#include <linux/kprobes.h>

#include <kunit/test.h>

#include "targets.h"

/* Not every architecture has it. No argument is what a test looks for there. */
#ifndef CONFIG_HAVE_FUNCTION_ARG_ACCESS_API
static inline unsigned long regs_get_kernel_argument(struct pt_regs *regs, unsigned int n)
{
	return 0;
}
#endif

/* An address, among those of ERR_PTR(), at which there is never memory. */
#define BAD_ADDRESS	((void *)-MAX_ERRNO)

/* The most entries that tests save of a stack trace. */
#define TRACE_LENGTH	64

/* How long a test waits for another task, in jiffies. */
#define PATIENCE	(20 * HZ)

/**
 * struct test_probe - A probe of a test
 * @kp:		The probe.
 * @act:	What its pre handler does after writing the journal, or NULL. See actions.h.
 * @data:	Belongs to @act.
 */
struct test_probe {
	struct kprobe kp;
	int (*act)(struct test_probe *p, struct pt_regs *regs);
	unsigned long data;
};

extern struct task_struct *kpt_tester;
extern char kpt_journal[32];

void kpt_note(char event);
void kpt_clear_journal(void);

struct test_probe *kpt_test_probe(char name);
struct kprobe *kpt_probe(char name, const char *symbol);
struct kprobe *kpt_post_probe(char name, const char *symbol);
void kpt_expect_handlers_change(struct kunit *test, const struct place *place, struct kprobe *a);
void kpt_set_post_handler_late(struct kprobe *kp, kprobe_post_handler_t handler,
			       void (*hit)(const void *data), const void *data);
int kpt_pre_handler(struct kprobe *kp, struct pt_regs *regs);
void kpt_post_handler(struct kprobe *kp, struct pt_regs *regs, unsigned long flags);
bool kpt_is_linked(const struct kprobe *kp);
void kpt_set_stale_results(struct kprobe *kp);

int kpt_start_suite(struct kunit_suite *suite);
int kpt_start_test(struct kunit *test);
void kpt_end_test(struct kunit *test);

/* Skip the rest of a test. Unlike kunit_skip(), it hides no earlier failure. */
#define SKIP_REST(test, fmt, ...)				\
do {								\
	KUNIT_ASSERT_EQ(test, (test)->status, KUNIT_SUCCESS);	\
	kunit_skip(test, fmt, ##__VA_ARGS__);			\
} while (0)

/* A call of @place returns what it should, and @events are written to the journal. */
#define EXPECT_CALL(test, place, events)	\
	kpt_expect_call(test, place, events, __LINE__)

/*
 * Calls of TARGET, TRACED, OTHER_TARGET and OTHER_TRACED return what they should, and write
 * the events of the arguments, in this order, to the journal.
 */
#define EXPECT_CALLS(test, ...)			\
	kpt_expect_calls(test, (const char * const [PLACES]) { __VA_ARGS__ }, __LINE__)

#define ASSERT_REGISTERED(test, kp)	KUNIT_ASSERT_EQ(test, register_kprobe(kp), 0)

/*
 * @kp is not registered, and is what @given was before. If it has a symbol that was found, @addr
 * has the address of that: it is cleared.
 */
#define EXPECT_UNTOUCHED(test, kp, given)	\
	kpt_expect_untouched(test, kp, given, __LINE__)

/* register_kprobe() returns @err, and leaves @kp untouched. */
#define EXPECT_REFUSED(test, kp, err)		\
	kpt_expect_refused(test, kp, err, __LINE__)

void kpt_expect_call(struct kunit *test, const struct place *place, const char *events,
		     int line);
void kpt_expect_calls(struct kunit *test, const char * const *events, int line);
void kpt_expect_untouched(struct kunit *test, struct kprobe *kp, const struct kprobe *given,
			  int line);
void kpt_expect_refused(struct kunit *test, struct kprobe *kp, int err, int line);
bool kpt_spin_until(const bool *condition, unsigned int ms);
void kpt_wait_until_site_is_freed(struct kunit *test, const struct kprobe *kp);

#endif /* _TEST_KPROBES_PROBES_H */
