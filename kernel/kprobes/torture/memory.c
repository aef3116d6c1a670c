// SPDX-License-Identifier: GPL-2.0
/* Shortages: allocations fail at random while a prober changes probes. */
#define pr_fmt(fmt) "kprobes-torture: " fmt

#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/torture.h>

#include "torture.h"

torture_param(bool, shortages, IS_ENABLED(CONFIG_FAILSLAB),
	      "Let allocations fail while probes are registered, changed and unregistered");

/* Half of the calls have all the memory that they want. Most have fewer allocations. */
#define LAST_ALLOCATION		32
#define NO_ALLOCATION		INT_MAX

#ifdef CONFIG_FAULT_INJECTION
static void set_fail_nth(unsigned int nth)
{
	WRITE_ONCE(current->fail_nth, nth);
}

static unsigned int get_fail_nth(void)
{
	return READ_ONCE(current->fail_nth);
}
#else
static void set_fail_nth(unsigned int nth) { }
static unsigned int get_fail_nth(void) { return 1; }
#endif

/*
 * Let one of the next allocations of this task fail, or none. The call after it is followed
 * by kt_end_shortage().
 */
void kt_begin_shortage(struct rnd_state *rnd)
{
	if (shortages)
		set_fail_nth(kt_below(rnd, 2) ? 1 + kt_below(rnd, LAST_ALLOCATION) : NO_ALLOCATION);
}

/* Returns the result of the call that was short of memory: only that may be -ENOMEM. */
int kt_end_shortage(int err)
{
	bool failed = shortages && !get_fail_nth();

	set_fail_nth(0);
	KT_EXPECT(failed || err != -ENOMEM, "%d", err);
	atomic_long_add(failed, &kt_stats.shortages);
	atomic_long_add(err == -ENOMEM, &kt_stats.enomems);
	return err;
}

/* The text of a module that is being unloaded must not be probed any more. */
bool kt_may_fail_with(int err)
{
	return err == -ENOMEM || (err == -ENOENT && !module_is_live(THIS_MODULE));
}

/* A registration that has failed has changed nothing. */
void kt_expect_unlinked(const struct kprobe *kp)
{
	KT_EXPECT((!kp->list.next || list_empty(&kp->list)) && hlist_unhashed(&kp->hlist),
		  "%s %pS", kp->symbol_name ?: "", kp->addr);
}

/* Unless told otherwise, failslab ignores allocations that may sleep. */
void kt_shortages_init(void)
{
	void *memory;

	if (!shortages)
		return;
	set_fail_nth(1);
	memory = kmalloc(1, GFP_KERNEL);
	set_fail_nth(0);
	if (!memory)
		return;
	kfree(memory);
	shortages = false;
	pr_alert("no shortages: write N to debugfs' failslab/ignore-gfp-wait, and 0 to verbose\n");
}
