// SPDX-License-Identifier: GPL-2.0
/*
 * Torture test of kprobes: functions are called in all contexts, and probed, for hours
 *
 * The result is in the kernel log once the module is removed: "End of test: SUCCESS", or
 * FAILURE, and before it the first failures.
 */
#define pr_fmt(fmt) "kprobes-torture: " fmt

#include <linux/delay.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/jiffies.h>
#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/torture.h>
#include <linux/umh.h>

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

struct kt_stats kt_stats;

/* Held for reading while all probes must stay armed. */
DECLARE_RWSEM(kt_armed);

static char *torture_type = "kprobes";
static unsigned long end;
static atomic_t failures;
static bool disarmed;

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

/* A handler calls this: there is no hit while all probes are disarmed. */
void kt_expect_armed(const struct target *t)
{
	KT_EXPECT(!READ_ONCE(disarmed), "a hit of %s", t->symbol);
}

bool kt_must_stop(void)
{
	return torture_must_stop() || (seconds && time_after(jiffies, end));
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

/* The kernel itself cannot write to files of debugfs. */
static void write_knob(const char *path, int value)
{
	char *command = kasprintf(GFP_KERNEL, "echo %d >%s", value, path);
	char *argv[4] = { "/bin/sh", "-c", command, NULL };
	char *envp[2] = { "PATH=/bin:/sbin:/usr/bin", NULL };
	int err;

	err = command ? call_usermodehelper(argv[0], argv, envp, UMH_WAIT_PROC) : -ENOMEM;
	KT_EXPECT(!err, "%s: %d", path, err);
	kfree(command);
}

/* The sysctl that permits jumps, as it was set. */
static int read_optimization(void)
{
	struct file *file = filp_open("/proc/sys/debug/kprobes-optimization", O_RDONLY, 0);
	char digit = '1';
	loff_t pos = 0;
	ssize_t n;

	if (!KT_EXPECT(!IS_ERR(file), "%pe", file))
		return 1;
	n = kernel_read(file, &digit, 1, &pos);
	KT_EXPECT(n == 1 && (digit == '0' || digit == '1'), "%zd", n);
	filp_close(file, NULL);
	return digit == '1';
}

/* Let tasks leave detours and handlers that they had entered, then expect no hits. */
static void expect_no_hits(struct rnd_state *rnd)
{
	synchronize_rcu_tasks();
	synchronize_rcu();
	WRITE_ONCE(disarmed, true);
	kt_sleep(rnd);
	WRITE_ONCE(disarmed, false);
	synchronize_rcu();
}

/* Thread: disarm and arm all probes, and let there be jumps or not. */
static int kt_switches(void *index)
{
	int optimization = IS_ENABLED(CONFIG_OPTPROBES) ? read_optimization() : 0;
	struct rnd_state rnd;

	kt_seed(&rnd, (unsigned long)index);
	while (!kt_must_stop()) {
		if (IS_ENABLED(CONFIG_OPTPROBES))
			write_knob("/proc/sys/debug/kprobes-optimization", kt_below(&rnd, 2));
		scoped_guard(rwsem_write, &kt_armed) {
			write_knob("/sys/kernel/debug/kprobes/enabled", 0);
			if (kt_below(&rnd, 4))
				kt_sleep(&rnd);
			else
				expect_no_hits(&rnd);
			write_knob("/sys/kernel/debug/kprobes/enabled", 1);
		}
		atomic_long_inc(&kt_stats.switches);
		kt_sleep(&rnd);
		stutter_wait("kt_switches");
	}
	if (IS_ENABLED(CONFIG_OPTPROBES))
		write_knob("/proc/sys/debug/kprobes-optimization", optimization);
	torture_kthread_stopping("kt_switches");
	return 0;
}

static void print_stats(void)
{
	pr_alert("windows %ld, churns %ld, refusals %ld\n", atomic_long_read(&kt_stats.windows),
		 atomic_long_read(&kt_stats.churns), atomic_long_read(&kt_stats.refusals));
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

static int __init kt_init(void)
{
	int err;

	if (nhitters < -1 || nhitters > (int)nr_cpu_ids || nwindows < 0 || nchurns < 0 ||
	    ndeaths < 0 || ndeaths > 1 || nflips < 0 || nflips > 1 ||
	    ndirects < 0 || ndirects > 1 || nswitches < 0 || nswitches > 1)
		return -EINVAL;
	if (seconds < 0 || stat_interval < 0 || stutter < 0 || shuffle_interval < 0 ||
	    onoff_holdoff < 0 || onoff_interval < 0)
		return -EINVAL;
	if (nhitters == -1)
		nhitters = num_online_cpus();
	nstats = !!stat_interval;
	end = jiffies + (unsigned long)seconds * HZ;
	if (!torture_init_begin(torture_type, verbose))
		return -EBUSY;
	kt_shortages_init();
	err = kt_targets_init() ?: kt_hitters_init();
	for (unsigned int i = 0; i < ARRAY_SIZE(groups) && !err; i++)
		err = start_group(&groups[i]);
	err = err ?: start_disturbances();
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
