/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Return probes of a test, functions to return-probe, and tasks that stay inside of these.
 *
 * Return probes are called 'r', 's' ...: 'r' in the journal is a call of the entry handler
 * of return probe 'r', 'R' one of its handler at the return.
 */
#ifndef _TEST_KPROBES_RETURN_PROBES_H
#define _TEST_KPROBES_RETURN_PROBES_H

#include <linux/atomic.h>
#include <linux/completion.h>
#include <linux/kprobes.h>
#include <linux/notifier.h>

#include <kunit/test.h>

#include "probes.h"

/**
 * struct trace - A stack trace
 * @entries:	The addresses, innermost first.
 * @length:	How many.
 */
struct trace {
	unsigned long entries[TRACE_LENGTH];
	unsigned int length;
};

/**
 * struct test_kretprobe - A return probe of a test
 * @rp:		The return probe.
 * @on_entry:	What its entry handler does besides writing the journal, or NULL.
 * @on_return:	The same of its handler at the return.
 * @data:	For these.
 * @value:	What the last call returned.
 * @caller:	Where that returned to.
 * @entry_trace: For @on_entry.
 * @return_trace: For @on_return.
 * @entries:	How many calls all tasks have made.
 * @returns:	How many of them have returned.
 */
struct test_kretprobe {
	struct kretprobe rp;
	int (*on_entry)(struct test_kretprobe *p, struct kretprobe_instance *ri,
			struct pt_regs *regs);
	void (*on_return)(struct test_kretprobe *p, struct kretprobe_instance *ri,
			  struct pt_regs *regs);
	unsigned long data;
	unsigned long value;
	unsigned long caller;
	struct trace entry_trace;
	struct trace return_trace;
	atomic_t entries;
	atomic_t returns;
};

#define ASSERT_RETURN_PROBED(test, rp)	KUNIT_ASSERT_EQ(test, register_kretprobe(rp), 0)

/**
 * struct host - A function that a test can do something inside of
 * @symbol:	Its name.
 * @call:	The function.
 */
struct host {
	const char *symbol;
	int (*call)(struct raw_notifier_head *chain, unsigned long up, unsigned long down,
		    void *data);
};

/* With a breakpoint, and through ftrace if there is that. */
#define HOST		(&kpt_hosts[0])
#define TRACED_HOST	(&kpt_hosts[1])
#define HOSTS		2

/* What is returned from inside when all is well. */
#define VISITED	1981

/* Do something inside: the host returns what it should, and these handlers are called. */
#define EXPECT_VISIT(test, host, inside, data, events)	\
	kpt_expect_visit(test, host, inside, data, events, __LINE__)

#define PATIENCE	(20 * HZ)

/**
 * struct sleeper - A task that visits a host, to sleep there
 * @task:	The task.
 * @host:	The host.
 * @inside:	What it does there.
 * @arrived:	It is there.
 */
struct sleeper {
	struct task_struct *task;
	const struct host *host;
	int (*inside)(void *sleeper);
	struct completion arrived;
};

#define EXPECT_WAKING(test)	KUNIT_EXPECT_EQ(test, kpt_wake_sleepers(), 0)

/**
 * struct descent - Visits inside of visits
 * @host:	Where.
 * @depth:	How many more.
 */
struct descent {
	const struct host *host;
	unsigned int depth;
};

#define EXPECT_RETURN_UNTOUCHED(test, rp, given)	\
	kpt_expect_return_untouched(test, rp, given, __LINE__)
#define EXPECT_RETURN_REFUSED(test, rp, err)		\
	kpt_expect_return_refused(test, rp, err, __LINE__)

extern const struct host kpt_hosts[HOSTS];
extern struct sleeper kpt_sleepers[200];

struct test_kretprobe *kpt_test_kretprobe(char name);
struct kretprobe *kpt_return_probe(char name, const char *symbol);
int kprobes_test_host(struct raw_notifier_head *chain,
		      unsigned long up, unsigned long down, void *data);
int kprobes_test_visit(const struct host *host,
		       int (*inside)(void *data), void *data);
int kpt_do_nothing_inside(void *unused);
void kpt_expect_visit(struct kunit *test, const struct host *host, int (*inside)(void *data),
		      void *data, const char *events, int line);
int kpt_sleep_inside(void *sleeper);
int kpt_exit_inside(void *sleeper);
struct task_struct *kpt_send_task(struct kunit *test, const struct host *host,
				  int (*inside)(void *sleeper));
void kpt_put_to_sleep(struct kunit *test, const struct host *host, unsigned int count);
const void *kpt_host_gen_params(const void *prev, char *desc);
unsigned int kpt_wake_sleepers(void);
int kpt_start_return_suite(struct kunit_suite *suite);
int kpt_start_return_test(struct kunit *test);
void kpt_end_return_test(struct kunit *test);
int kpt_descend(void *descent);
void kpt_set_stale_return_results(struct kretprobe *rp);
void kpt_expect_return_untouched(struct kunit *test, const struct kretprobe *rp,
				 const struct kretprobe *given, int line);
void kpt_expect_return_refused(struct kunit *test, struct kretprobe *rp, int err, int line);

#endif /* _TEST_KPROBES_RETURN_PROBES_H */
