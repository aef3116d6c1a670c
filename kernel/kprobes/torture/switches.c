// SPDX-License-Identifier: GPL-2.0
/* Switches: all probes are disarmed and armed, and may have jumps or not. */
#define pr_fmt(fmt) "kprobes-torture: " fmt

#include <linux/err.h>
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/fs_struct.h>
#include <linux/kernel.h>
#include <linux/rcupdate.h>
#include <linux/slab.h>
#include <linux/torture.h>
#include <linux/umh.h>

#include "torture.h"

/* Held for reading while all probes must stay armed. */
DECLARE_RWSEM(kt_armed);

static bool disarmed;
static bool jumps_are_permitted;

/* A handler calls this: there is no hit while all probes are disarmed. */
void kt_expect_armed(const void *addr)
{
	KT_EXPECT(!READ_ONCE(disarmed), "a hit of %pS", addr);
}

/* Whether the optimiser may put jumps in place now. */
bool kt_jumps_are_permitted(void)
{
	return READ_ONCE(jumps_are_permitted);
}

/* The kernel itself cannot use files of debugfs. */
static void switch_all_probes(bool arm)
{
	static const char knob[] = "/sys/kernel/debug/kprobes/enabled";
	char *command = kasprintf(GFP_KERNEL, "echo %d >%s && read -r now <%s && [ $now = %d ]",
				  arm, knob, knob, arm);
	char *argv[4] = { "/bin/sh", "-c", command, NULL };
	char *envp[2] = { "PATH=/bin:/sbin:/usr/bin", NULL };
	int err;

	err = command ? call_usermodehelper(argv[0], argv, envp, UMH_WAIT_PROC) : -ENOMEM;
	KT_EXPECT(!err, "%s: %d", command, err);
	kfree(command);
}

static const char sysctl[] = "/proc/sys/debug/kprobes-optimization";

static struct file *open_sysctl(int flags)
{
	struct file *file;

	scoped_with_init_fs()
		file = filp_open(sysctl, flags, 0);
	return file;
}

static bool read_sysctl(void)
{
	struct file *file __free(fput) = open_sysctl(O_RDONLY);
	char digit = '0';
	loff_t pos = 0;
	ssize_t n;

	if (!KT_EXPECT(!IS_ERR(file), "%pe", file))
		return false;
	n = kernel_read(file, &digit, 1, &pos);
	KT_EXPECT(n == 1 && (digit == '0' || digit == '1'), "%zd", n);
	return digit == '1';
}

static void permit_jumps(bool permit)
{
	struct file *file __free(fput) = open_sysctl(O_WRONLY);
	loff_t pos = 0;
	ssize_t n;

	if (!KT_EXPECT(!IS_ERR(file), "%pe", file))
		return;
	n = kernel_write(file, permit ? "1" : "0", 1, &pos);
	KT_EXPECT(n == 1, "%zd", n);
	WRITE_ONCE(jumps_are_permitted, read_sysctl());
	KT_EXPECT(jumps_are_permitted == permit, "%d", permit);
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

static void flip_switches(struct rnd_state *rnd)
{
	if (IS_ENABLED(CONFIG_OPTPROBES))
		permit_jumps(kt_below(rnd, 4));
	guard(rwsem_write)(&kt_armed);
	switch_all_probes(false);
	if (kt_below(rnd, 4))
		kt_sleep(rnd);
	else
		expect_no_hits(rnd);
	switch_all_probes(true);
}

/* Thread: disarm and arm all probes, and let there be jumps or not. */
int kt_switches(void *index)
{
	bool permit = jumps_are_permitted;
	struct rnd_state rnd;

	kt_seed(&rnd, (unsigned long)index);
	while (!kt_must_stop()) {
		flip_switches(&rnd);
		atomic_long_inc(&kt_stats.switches);
		schedule_timeout_uninterruptible(kt_below(&rnd, 2 * HZ));
		stutter_wait("kt_switches");
	}
	if (IS_ENABLED(CONFIG_OPTPROBES))
		permit_jumps(permit);
	torture_kthread_stopping("kt_switches");
	return 0;
}

void kt_switches_init(void)
{
	jumps_are_permitted = IS_ENABLED(CONFIG_OPTPROBES) && read_sysctl();
}
