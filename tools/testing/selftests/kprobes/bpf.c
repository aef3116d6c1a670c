// SPDX-License-Identifier: GPL-2.0
/*
 * Test BPF programs that are attached to probes, return probes, fprobes and trampolines, in each
 * way alone and in all ways together: that they run, and what they find.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../kselftest.h"
#include "bpf.h"

#define CALLS	5	/* of the probed function */
#define BYTES	42	/* its third argument and return value */

static int zero_fd;		/* /dev/zero */
static char buffer[BYTES];

static const struct way ways[] = {
	{ "perf's probe by name", PMU_NAME },
	{ "perf's probe by address", PMU_ADDRESS },
	{ "perf's probe with a cookie", PMU_LINK },
	/* Inside the function, the arguments may have been overwritten. */
	{ "perf's probe inside", PMU_NAME, .inside = true },
	{ "tracefs event", TRACEFS },
	{ "fprobe", MULTI },
	{ "perf's return probe", PMU_NAME, .returns = true },
	{ "perf's return probe by address", PMU_ADDRESS, .returns = true },
	{ "perf's return probe with a cookie", PMU_LINK, .returns = true },
	{ "tracefs return event", TRACEFS, .returns = true },
	{ "fprobe at the return", MULTI, .returns = true },
	{ "trampoline", TRAMPOLINE },
	{ "trampoline at the return", TRAMPOLINE, .returns = true },
	{ "trampoline of many", TRAMPOLINES },
	{ "trampoline of many at the return", TRAMPOLINES, .returns = true },
};

/* One program at entries and, if its result, the lowest bit of its number, is 0, at returns. */
static const struct way session = { "session", SESSION };

static void call_read(void)
{
	reset_observations();
	for (int i = 0; i < CALLS; i++)
		if (read(zero_fd, buffer, BYTES) != BYTES)
			ksft_print_msg("read: %s\n", strerror(errno));
}

static bool is_equal(const char *what, __u64 is, __u64 should_be)
{
	if (is != should_be)
		ksft_print_msg("%s: %#llx, should be %#llx\n", what, is, should_be);
	return is == should_be;
}

#define RESULTS	8	/* of check_way(), or one less inside a function */

static void check_values(const struct attached *at)
{
	const struct way *way = at->way;
	const struct observation *s = at->observation;
	bool cookie = way->how != PMU_NAME && way->how != PMU_ADDRESS && way->how != TRACEFS;

	ksft_test_result(is_equal("hits", s->hits, CALLS),
			 "%s: the program runs at each call\n", way->name);
	if (way->returns)
		ksft_test_result(is_equal("value", s->value, BYTES),
				 "%s: the program reads the return value\n", way->name);
	else if (!way->inside)
		ksft_test_result(is_equal("buffer", s->argument_2, (uintptr_t)buffer) &&
				 is_equal("count", s->argument_3, BYTES),
				 "%s: the program reads the arguments\n", way->name);
	ksft_test_result(is_equal("func_ip", s->func_ip, way->inside ? 0 : address_of("vfs_read")),
			 "%s: bpf_get_func_ip() returns %s\n", way->name,
			 way->inside ? "0" : "the function");
	ksft_test_result(is_equal("cookie", s->cookie, cookie ? COOKIE : 0),
			 "%s: bpf_get_attach_cookie() returns the cookie\n", way->name);
	ksft_test_result(is_true_stack(s, way, way->returns),
			 "%s: bpf_get_stack() returns the true stack\n", way->name);
	ksft_test_result(is_true_stack_id(s->stack_id, s),
			 "%s: bpf_get_stackid() stores the same stack\n", way->name);
}

static void check_way(const struct way *way)
{
	const char *missing = missing_for(way, "vfs_read");
	struct attached at = attach_observer(way, "vfs_read", 0);

	if (at.event == -EOPNOTSUPP) {
		detach(&at);
		for (int i = 0; i < RESULTS; i++)
			ksft_test_result_skip("%s\n", missing ?: "not in this kernel");
		return;
	}
	ksft_test_result(is_equal("error", at.event < 0 ? -at.event : 0, 0),
			 "%s: the program is attached\n", way->name);
	read_symbols();
	call_read();
	check_values(&at);
	detach(&at);
	call_read();
	ksft_test_result(is_equal("hits", observations->hits, 0),
			 "%s: the detached program does not run\n", way->name);
}

/* Attach in all ways to one function, in the order of the table, a session last, or in reverse. */
static void check_together(bool reverse)
{
	int num = ARRAY_SIZE(ways);
	struct attached at[ARRAY_SIZE(ways)], both = { };
	const char *order = reverse ? " in reverse order" : "";
	bool hits = true, stacks = true, later = true, exits = false;

	if (reverse)
		both = attach_observer(&session, "vfs_read", MAX_OBSERVATIONS - 2);
	for (int i = 0; i < num; i++) {
		int j = reverse ? num - 1 - i : i;

		at[i] = attach_observer(&ways[j], "vfs_read", i);
		exits |= is_traced(at[i].way) && at[i].way->returns && at[i].event >= 0;
	}
	if (!reverse)
		both = attach_observer(&session, "vfs_read", MAX_OBSERVATIONS - 2);
	read_symbols();
	call_read();
	if (both.event >= 0)
		hits &= is_equal("session", both.observation->hits, 2 * CALLS);
	for (int i = 0; i < num; i++) {
		if (at[i].event == -EOPNOTSUPP)
			continue;
		hits &= is_equal(at[i].way->name, observations[i].hits, CALLS);
		if (at[i].way->returns)
			hits &= is_equal(at[i].way->name, observations[i].value, BYTES);
		stacks &= is_true_stack(&observations[i], at[i].way, exits);
	}
	for (int i = 0; i < num; i += 2)
		detach(&at[i]);
	call_read();
	for (int i = 0; i < num; i++)
		if (at[i].event >= 0)
			later &= is_equal(at[i].way->name, observations[i].hits, i & 1 ? CALLS : 0);
	for (int i = 1; i < num; i += 2)
		detach(&at[i]);
	detach(&both);
	ksft_test_result(hits, "all ways%s: all programs run\n", order);
	ksft_test_result(stacks, "all ways%s: all stacks are true\n", order);
	ksft_test_result(later, "all ways%s: the programs that stay attached run\n", order);
}

static void check_session(int result)
{
	struct attached at = attach_observer(&session, "vfs_read", result);

	call_read();
	if (at.event < 0)
		ksft_test_result_skip("session: not in this kernel\n");
	else
		ksft_test_result(is_equal("hits", at.observation->hits, result ? CALLS : 2 * CALLS),
				 "session: a program that returns %d runs at entries%s\n",
				 result, result ? "" : " and returns");
	detach(&at);
}

/* All programs at an event run, regardless of the return values of the others. */
static void check_sharing(const char *name)
{
	struct attached at[3];
	const struct way *way = ways;
	bool all = true;

	while (strcmp(way->name, name))
		way++;
	for (int i = 0; i < 3; i++)
		at[i] = attach_observer(way, "vfs_read", i);
	if (at[0].event == -EOPNOTSUPP) {
		ksft_test_result_skip("three programs at a %s all run\n", name);
		ksft_test_result_skip("the other two at a %s run after one was detached\n", name);
	} else {
		call_read();
		for (int i = 0; i < 3; i++)
			all &= is_equal("hits", observations[i].hits, CALLS);
		ksft_test_result(all, "three programs at a %s all run\n", name);
		detach(&at[1]);
		call_read();
		ksft_test_result(is_equal("first", observations[0].hits, CALLS) &&
				 is_equal("second", observations[1].hits, 0) &&
				 is_equal("third", observations[2].hits, CALLS),
				 "the other two at a %s run after one was detached\n", name);
		at[1].event = -1;
		at[1].program = -1;
	}
	for (int i = 0; i < 3; i++)
		detach(&at[i]);
}

/* Injected errors */

#define ERROR	ENOTBLK

static bool getpgid_fails(void)
{
	return getpgid(0) < 0 && errno == ERROR;
}

/* The program does nothing in another process. */
static bool getpgid_fails_in_child(void)
{
	pid_t pid = fork();
	int status = 0;

	if (!pid)
		_exit(getpgid_fails());
	return pid < 0 || waitpid(pid, &status, 0) != pid || status;
}

static int is_refused(int event, int program)
{
	int fd = set_program(event, program);

	if (fd >= 0)
		close(fd);
	return fd == -EINVAL;
}

/*
 * Attach a return probe before the injector if @first, else after it. It is not called if the
 * injector is called before it. If it is called, the return value is the injected error.
 */
static bool injected_return_is_hit(int injector, bool first, bool *good)
{
	static const struct way way = { "return probe", PMU_NAME, .returns = true };
	struct attached at = { };
	int fd = -1;

	if (first)
		at = attach_observer(&way, INJECTED, 0);
	fd = set_program(open_pmu(INJECTED, 0, false), injector);
	if (!first)
		at = attach_observer(&way, INJECTED, 0);
	reset_observations();
	*good &= getpgid_fails();
	if (observations->hits)
		*good &= is_equal("hits", observations->hits, 1) &&
			 is_equal("value", observations->value, -ERROR);
	detach(&at);
	close(fd);
	return observations->hits;
}

static void check_injected_return(int injector)
{
	bool good = true;
	int orders = injected_return_is_hit(injector, true, &good) +
		     injected_return_is_hit(injector, false, &good);

	if (access(TRACING "events/kprobes/" RETURN_EVENT, F_OK))
		ksft_test_result_skip("no return probes\n");
	else
		ksft_test_result(good && is_equal("orders", orders, 1),
				 "a return probe is hit with the injected error or not at all\n");
}

static void check_injection(void)
{
	int injector = load_injector(-ERROR);
	int event;

	if (injector < 0) {
		for (int i = 0; i < 6; i++)
			ksft_test_result_skip("injection: errors cannot be injected\n");
		return;
	}
	event = set_program(open_pmu(INJECTED, 0, false), injector);
	ksft_test_result(event >= 0, "a program that injects errors is attached\n");
	ksft_test_result(getpgid_fails() && getpgid_fails(),
			 "the function returns the injected error\n");
	ksft_test_result(!getpgid_fails_in_child(),
			 "the function does not fail in another process\n");
	close(event);
	ksft_test_result(!getpgid_fails(),
			 "the function does not fail after the program was detached\n");
	ksft_test_result(is_refused(open_pmu("vfs_read", 0, false), injector) &&
			 is_refused(open_pmu(INJECTED, offset_inside(INJECTED), false), injector),
			 "the program is refused where errors must not be injected\n");
	check_injected_return(injector);
	close(injector);
}

/* Programs that are attached and detached during calls */

#define THREADS		4
#define ROUNDS		10
#define SHORT		1000000		/* ns */
#define LONG		600000000

static atomic_bool stop;

static void sleep_ns(long ns)
{
	const struct timespec time = { .tv_nsec = ns };

	nanosleep(&time, NULL);
}

static void *sleep_once(void *unused)
{
	sleep_ns(LONG);
	return NULL;
}

static void *sleep_often(void *unused)
{
	while (!stop)
		sleep_ns(SHORT);
	return NULL;
}

static void start_threads(pthread_t *threads, void *(*body)(void *))
{
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, body, NULL))
			ksft_exit_fail_perror("thread");
}

static void join_threads(pthread_t *threads)
{
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

static void check_running(void)
{
	static const struct way entry = { "probe", PMU_NAME };
	static const struct way way = { "return probe", PMU_NAME, .returns = true };
	pthread_t threads[THREADS];
	struct attached at[2];
	bool all = true;

	reset_observations();
	at[0] = attach_observer(&way, "do_nanosleep", 0);
	if (at[0].event < 0) {
		for (int i = 0; i < 4; i++)
			ksft_test_result_skip("no return probes\n");
		detach(&at[0]);
		return;
	}
	start_threads(threads, sleep_once);
	join_threads(threads);
	ksft_test_result(is_equal("hits", observations->hits, THREADS),
			 "a program runs at returns of sleeping threads\n");

	start_threads(threads, sleep_once);
	sleep_ns(LONG / 4);
	detach(&at[0]);
	reset_observations();
	join_threads(threads);
	ksft_test_result(is_equal("hits", observations->hits, 0),
			 "a program does not run at returns after it was detached\n");

	start_threads(threads, sleep_once);
	sleep_ns(LONG / 4);
	at[0] = attach_observer(&way, "do_nanosleep", 0);
	reset_observations();
	join_threads(threads);
	ksft_test_result(is_equal("hits", observations->hits, 0),
			 "a program does not run at returns of calls from before it was attached\n");
	detach(&at[0]);

	start_threads(threads, sleep_often);
	for (int i = 0; i < ROUNDS; i++) {
		at[0] = attach_observer(&way, "do_nanosleep", 0);
		at[1] = attach_observer(&entry, "do_nanosleep", 1);
		reset_observations();
		for (int n = 0; n < 1000 && !(observations[0].hits && observations[1].hits); n++)
			sleep_ns(10 * SHORT);
		all &= observations[0].hits && observations[1].hits;
		detach(&at[i & 1]);
		sleep_ns(SHORT);
		detach(&at[!(i & 1)]);
	}
	stop = true;
	join_threads(threads);
	ksft_test_result(all, "programs are attached and detached while threads sleep\n");
}

/* With an argument, a trampoline that has programs at the exit is entered by a jump. */
int main(int argc, char **argv)
{
	trampolines_jump = argc > 1;
	ksft_print_header();
	if (!ARGUMENT_2)
		ksft_exit_skip("not for this architecture\n");
	if (access(PMU "type", R_OK) || access(EVENTS, W_OK))
		ksft_exit_skip("no kprobe events, or not in tracefs\n");
	zero_fd = open("/dev/zero", O_RDONLY);
	if (zero_fd < 0)
		ksft_exit_fail_perror("/dev/zero");
	read_symbols();
	create_maps();
	ksft_set_plan(ARRAY_SIZE(ways) * RESULTS - 1 + 2 * 3 + 2 + 2 * 2 + 6 + 4);

	write_events("p:kprobes/" ENTRY_EVENT " vfs_read\n");
	write_events("r:kprobes/" RETURN_EVENT " vfs_read\n");
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++)
		check_way(&ways[i]);
	check_together(false);
	check_together(true);
	check_session(0);
	check_session(1);
	check_sharing("tracefs event");
	check_sharing("tracefs return event");
	check_injection();
	check_running();
	write_events("-:kprobes/" ENTRY_EVENT "\n");
	write_events("-:kprobes/" RETURN_EVENT "\n");
	ksft_finished();
}
