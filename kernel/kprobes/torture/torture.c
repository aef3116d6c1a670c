// SPDX-License-Identifier: GPL-2.0
/*
 * Torture test of kprobes: functions are called in all contexts, and probed, for hours
 *
 * The result is in the kernel log once the module is removed: "End of test: SUCCESS", or
 * FAILURE, and before it the first failures.
 */
#define pr_fmt(fmt) "kprobes-torture: " fmt

#include <linux/delay.h>
#include <linux/jiffies.h>
#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/torture.h>

#include "torture.h"

torture_param(int, nhitters, -1, "Number of threads that call targets, or -1: one for each CPU");
torture_param(int, nwindows, 4, "Number of threads that count the hits of probes at entries");
torture_param(int, nchurns, 2, "Number of threads that register probes anywhere in targets");
torture_param(int, ndeaths, 1, "Number of threads with tasks that exit in probed code, 0 or 1");
torture_param(int, nflips, 1, "Number of threads that change static branches, 0 or 1");
torture_param(int, ndirects, 1, "Number of threads that patch entries for ftrace, 0 or 1");
torture_param(int, nswitches, 1, "Number of threads that disarm and arm all probes, 0 or 1");
torture_param(int, seconds, 0, "How long to torture (s), or 0: until the module is removed");
torture_param(int, seed, 1, "What the choices of the threads follow from");
torture_param(int, stat_interval, 60, "Number of seconds between statistics, or 0 to disable them");
torture_param(int, stutter, 5, "Number of seconds to run, and to pause, or 0 to disable pauses");
torture_param(int, shuffle_interval, 3, "Number of seconds between shuffles of threads, or 0");
torture_param(int, onoff_holdoff, 5, "Seconds before CPUs begin to go offline and online");
torture_param(int, onoff_interval, 3, "Seconds between CPUs that go offline or online, or 0");
torture_param(int, verbose, 0, "Print the beginning and end of threads");

/* Of a mix of what threads do. */
#define MAX_WEIGHT	1000

struct kt_stats kt_stats;

static char *torture_type = "kprobes";
static unsigned long begin;
static atomic_t failures;

/* More of them would flood the log. They are printed again at the end of a long one. */
#define FAILURES_PRINTED	20
static char failure_texts[FAILURES_PRINTED][160];

void kt_fail(const char *format, ...)
{
	struct va_format text = { .fmt = format };
	int n = atomic_fetch_inc(&failures);
	va_list args;

	if (n >= FAILURES_PRINTED)
		return;
	va_start(args, format);
	text.va = &args;
	snprintf(failure_texts[n], sizeof(failure_texts[n]), "%pV", &text);
	va_end(args);
	pr_alert("!!! %s\n", failure_texts[n]);
}

bool kt_must_stop(void)
{
	return torture_must_stop() || (seconds && time_after(jiffies, begin + seconds * HZ));
}

void kt_seed(struct rnd_state *rnd, unsigned int thread)
{
	prandom_seed_state(rnd, ((u64)seed << 32) + thread);
}

/* A random number below @limit. */
u32 kt_below(struct rnd_state *rnd, u32 limit)
{
	return prandom_u32_state(rnd) % limit;
}

/* Mostly less than a jump takes to get in place, now and then more. */
void kt_sleep(struct rnd_state *rnd)
{
	unsigned int longest = kt_below(rnd, 8) ? 5 : 500;

	fsleep(kt_below(rnd, longest * USEC_PER_MSEC));
}

/* Choose a number below @n, by the weight of each. */
unsigned int kt_choose(struct rnd_state *rnd, const unsigned int *weights, unsigned int n)
{
	unsigned int sum = 0, i = 0;
	u32 choice;

	for (unsigned int j = 0; j < n; j++)
		sum += weights[j];
	for (choice = kt_below(rnd, sum); choice >= weights[i]; i++)
		choice -= weights[i];
	return i;
}

/* Can the parameter @name be passed to kt_choose()? @given is the number of its weights. */
bool kt_mix_is_valid(const char *name, const unsigned int *weights, unsigned int given,
		     unsigned int n)
{
	unsigned int sum = 0, largest = 0;

	for (unsigned int i = 0; i < n; i++) {
		sum += weights[i];
		largest = max(largest, weights[i]);
	}
	if (given == n && sum && largest <= MAX_WEIGHT)
		return true;
	pr_err("%s has %u weights: it needs %u from 0 to %u, not all of them 0\n",
	       name, given, n, MAX_WEIGHT);
	return false;
}

static void print_stats(void)
{
	pr_alert("windows %ld, churns %ld, arrays %ld, refusals %ld\n",
		 atomic_long_read(&kt_stats.windows), atomic_long_read(&kt_stats.churns),
		 atomic_long_read(&kt_stats.arrays), atomic_long_read(&kt_stats.refusals));
	pr_alert("deaths %ld, switches %ld, flips %ld\n", atomic_long_read(&kt_stats.deaths),
		 atomic_long_read(&kt_stats.switches), atomic_long_read(&kt_stats.flips));
	pr_alert("shortages %ld, enomems %ld, direct calls %lu\n",
		 atomic_long_read(&kt_stats.shortages), atomic_long_read(&kt_stats.enomems),
		 kt_direct_calls());
	for (unsigned int i = 0; i < CONTEXTS; i++)
		pr_alert("calls in %s %lu\n", kt_context_names[i], kt_calls_in_context(i));
	pr_alert("failures %d\n", atomic_read(&failures));
	torture_onoff_stats();
}

static void print_failures_again(void)
{
	for (int i = 0; i < min(atomic_read(&failures), FAILURES_PRINTED); i++)
		pr_alert("!!! %s\n", failure_texts[i]);
}

static int kt_print_stats(void *unused)
{
	while (!torture_must_stop()) {
		schedule_timeout_interruptible(stat_interval * HZ);
		print_stats();
	}
	torture_kthread_stopping("kt_print_stats");
	return 0;
}

/**
 * struct group - Threads that do the same
 * @function:	What they do.
 * @name:	Their name.
 * @n:		Their number.
 * @tasks:	The threads.
 */
struct group {
	int (*function)(void *index);
	char *name;
	int *n;
	struct task_struct **tasks;
};

static int nstats;

static struct group groups[] = {
	{ kt_hitter, "kt_hitter", &nhitters },
	{ kt_windows, "kt_windows", &nwindows },
	{ kt_churn, "kt_churn", &nchurns },
#ifdef CONFIG_KRETPROBES
	{ kt_deaths, "kt_deaths", &ndeaths },
#endif
	{ kt_flip_branches, "kt_flip_branches", &nflips },
#ifdef HAVE_DIRECT_CALLS
	{ kt_call_directly, "kt_call_directly", &ndirects },
#endif
	{ kt_switches, "kt_switches", &nswitches },
	{ kt_print_stats, "kt_print_stats", &nstats },
};

static int start_group(struct group *group)
{
	static unsigned long threads;
	int err = 0;

	group->tasks = kcalloc(*group->n, sizeof(*group->tasks), GFP_KERNEL);
	if (*group->n && !group->tasks)
		return -ENOMEM;
	for (int i = 0; i < *group->n && !err; i++) {
		/* Hitters are known by their index, the others have one only to be different. */
		unsigned long index = group->function == kt_hitter ? i : 1000 + threads++;

		err = _torture_create_kthread(group->function, (void *)index, group->name,
					      "Creating a thread", "Failed to create a thread",
					      &group->tasks[i], NULL);
	}
	return err;
}

static void stop_group(struct group *group)
{
	for (int i = 0; group->tasks && i < *group->n; i++)
		_torture_stop_kthread("Stopping a thread", &group->tasks[i]);
	kfree(group->tasks);
}

static void kt_cleanup(void)
{
	if (torture_cleanup_begin())
		return;
	for (unsigned int i = 0; i < ARRAY_SIZE(groups); i++)
		stop_group(&groups[i]);
	kt_hitters_exit();
	kt_targets_exit();
	kt_print_kinds();
	kt_expect_kinds();
	print_failures_again();
	print_stats();
	pr_alert("--- End of test: %s\n",
		 atomic_read(&failures) || torture_onoff_failures() ? "FAILURE" : "SUCCESS");
	torture_cleanup_end();
}

static int start_disturbances(void)
{
	int err = 0;

	if (stutter)
		err = torture_stutter_init(stutter * HZ, stutter * HZ);
	if (!err && shuffle_interval)
		err = torture_shuffle_init(shuffle_interval * HZ);
	if (!err && onoff_interval)
		err = torture_onoff_init(onoff_holdoff * HZ, onoff_interval * HZ, NULL);
	return err;
}

static bool is_flag(int number)
{
	return number == 0 || number == 1;
}

static bool parameters_are_valid(void)
{
	if (nhitters < -1 || nhitters > (int)nr_cpu_ids || nwindows < 0 || nchurns < 0 ||
	    !is_flag(ndeaths) || !is_flag(nflips) || !is_flag(ndirects) || !is_flag(nswitches)) {
		pr_err("a number of threads is out of range\n");
		return false;
	}
	if (seconds < 0 || stat_interval < 0 || stutter < 0 || shuffle_interval < 0 ||
	    onoff_holdoff < 0 || onoff_interval < 0) {
		pr_err("a number of seconds is negative\n");
		return false;
	}
	return kt_windows_are_valid() && kt_churn_is_valid();
}

static int start_groups(void)
{
	int err = 0;

	for (unsigned int i = 0; i < ARRAY_SIZE(groups) && !err; i++)
		err = start_group(&groups[i]);
	return err;
}

static int __init kt_init(void)
{
	int err;

	if (!parameters_are_valid())
		return -EINVAL;
	if (nhitters == -1)
		nhitters = num_online_cpus();
	nstats = !!stat_interval;
	if (!torture_init_begin(torture_type, verbose))
		return -EBUSY;
	begin = jiffies;
	kt_shortages_init();
	kt_switches_init();
	err = kt_targets_init() ?: kt_hitters_init() ?: start_groups() ?: start_disturbances();
	torture_init_end();
	if (err) {
		kt_fail("the test could not begin: %d", err);
		kt_cleanup();
	}
	return err;
}

module_init(kt_init);
module_exit(kt_cleanup);
MODULE_DESCRIPTION("Torture test of kprobes");
MODULE_LICENSE("GPL");
