/* SPDX-License-Identifier: GPL-2.0 */
/* Functions that a test can do something inside. */
#ifndef _TEST_KPROBES_HOSTS_H
#define _TEST_KPROBES_HOSTS_H

#include <linux/notifier.h>

#include <kunit/test.h>

/**
 * struct host - A function that calls what a test wants called inside it
 * @symbol:	The function's symbol.
 * @call:	The function. It calls a chain of notifiers, and returns their result.
 */
struct host {
	const char *symbol;
	int (*call)(struct raw_notifier_head *chain, unsigned long up, unsigned long down,
		    void *data);
};

/* One with a breakpoint, and one that is probed through ftrace if the kernel has that. */
#define HOST		(&kpt_hosts[0])
#define TRACED_HOST	(&kpt_hosts[1])
#define HOSTS		2

/* What a function called inside returns on success. */
#define VISITED		1981

/**
 * struct recursion - Argument of kpt_recurse_inside()
 * @host:	The host that is called again.
 * @depth:	How many more calls there will be.
 */
struct recursion {
	const struct host *host;
	unsigned int depth;
};

extern const struct host kpt_hosts[HOSTS];

const void *kpt_host_gen_params(struct kunit *test, const void *prev, char *desc);
void kpt_save_host_text(void);
void kpt_expect_host_text(struct kunit *test);
void kpt_wait_for_host_text(void);

int kprobes_test_host(struct raw_notifier_head *chain, unsigned long up, unsigned long down,
		      void *data);
int kprobes_test_visit(const struct host *host, int (*inside)(void *data), void *data);
int kpt_do_nothing_inside(void *unused);
int kpt_recurse_inside(void *recursion);

/*
 * Call @host, and @inside(@data) inside it: @host returns VISITED, and @events are
 * written to the journal.
 */
#define EXPECT_VISIT(test, host, inside, data, events)	\
	kpt_expect_visit(test, host, inside, data, events, __LINE__)

void kpt_expect_visit(struct kunit *test, const struct host *host, int (*inside)(void *data),
		      void *data, const char *events, int line);

#endif /* _TEST_KPROBES_HOSTS_H */
