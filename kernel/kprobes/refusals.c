// SPDX-License-Identifier: GPL-2.0
/*
 * The last registrations that were refused, and why
 */
#include "internal.h"

#include <linux/debugfs.h>
#include <linux/err.h>
#include <linux/init.h>
#include <linux/minmax.h>
#include <linux/sched.h>
#include <linux/sched/clock.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/time64.h>

#define REFUSALS	64U

struct refusal {
	u64 when;			/* local_clock() */
	pid_t pid;			/* of the task that asked for it */
	char comm[TASK_COMM_LEN];
	char symbol[64];		/* as given, cut short if need be; or empty */
	unsigned long addr;		/* as given, or 0 */
	unsigned int offset;
	int err;
	const char *why;
};

/*
 * The last ones, and how many there have been. They are not in .data: a back end may take any
 * address there for a target of branches.
 */
static struct refusal refusals[REFUSALS];
static unsigned int refusals_count;

/*
 * Guards both. It is only tried, as a handler or an NMI may have interrupted its holder:
 * a refusal at the very moment of another one is not kept.
 */
static DEFINE_RAW_SPINLOCK(refusals_lock);

/* kprobe_refusal_reason() - What to say of an error. A check may have said @why. */
const char *kprobe_refusal_reason(int err, const char *why)
{
	if (why)
		return why;
	switch (err) {
	case -EDEADLK:
		return "called by a handler, or where the caller must not sleep";
	case -EILSEQ:
		return "not at the start of an instruction";
	case -EOPNOTSUPP:
		return "an instruction that cannot be probed";
	case -EINVAL:
		return "the architecture cannot probe it";
	case -ENOMEM:
		return "no memory";
	case -EBUSY:
		return "ftrace: another user decides where the function continues";
	default:
		return "the text cannot be patched";
	}
}

/*
 * kprobe_refusals_add() - Keep a refused registration for debugfs; returns @err. Any context.
 *
 * @p is as its caller gave it, or NULL. @why is never freed, or NULL if @err says it.
 */
int kprobe_refusals_add(const struct kprobe *p, int err, const char *why)
{
	struct refusal refusal = {
		.when	= local_clock(),
		.pid	= current->pid,
		.addr	= p ? (unsigned long)p->addr : 0,
		.offset	= p ? p->offset : 0,
		.err	= err,
		.why	= kprobe_refusal_reason(err, why),
	};

	strscpy(refusal.comm, current->comm);
	if (p && p->symbol_name)
		strscpy(refusal.symbol, p->symbol_name);
	scoped_cond_guard(raw_spinlock_irqsave_try, return err, &refusals_lock)
		refusals[refusals_count++ % REFUSALS] = refusal;
	return err;
}

static void refusal_show(struct seq_file *m, const struct refusal *refusal)
{
	struct timespec64 when = ns_to_timespec64(refusal->when);

	seq_printf(m, "[%5lld.%06ld] %s[%d] ", when.tv_sec, when.tv_nsec / NSEC_PER_USEC,
		   refusal->comm, refusal->pid);
	if (refusal->symbol[0])
		seq_printf(m, "%s+%#x", refusal->symbol, refusal->offset);
	else if (refusal->addr)
		seq_printf(m, "0x%px+%#x", kprobe_shown_addr(m->file, refusal->addr),
			   refusal->offset);
	else
		seq_puts(m, "several probes, or no place");
	seq_printf(m, ": %pe: %s\n", ERR_PTR(refusal->err), refusal->why);
}

/* A line for each of the last refusals, the oldest first */
static int refusals_show(struct seq_file *m, void *unused)
{
	struct refusal *last __free(kfree) = kmalloc(sizeof(refusals), GFP_KERNEL);
	unsigned int count;

	if (!last)
		return -ENOMEM;
	scoped_guard(raw_spinlock_irqsave, &refusals_lock) {
		memcpy(last, refusals, sizeof(refusals));
		count = refusals_count;
	}
	for (unsigned int i = count - min(count, REFUSALS); i != count; i++)
		refusal_show(m, &last[i % REFUSALS]);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(refusals);

static int __init refusals_init(void)
{
	debugfs_create_file("refusals", 0400, kprobes_debugfs, NULL, &refusals_fops);
	return 0;
}
late_initcall(refusals_init);
