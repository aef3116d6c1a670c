// SPDX-License-Identifier: GPL-2.0
/*
 * The last registrations that were refused, and why
 */
#include "internal.h"

#include <linux/err.h>
#include <linux/minmax.h>
#include <linux/sched.h>
#include <linux/sched/clock.h>
#include <linux/seq_file.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/time64.h>

#include <asm/div64.h>

#define REFUSALS	64

/**
 * struct refusal - Registration that was refused
 * @when:	The time, by local_clock().
 * @pid:	The task that asked for it.
 * @comm:	The name of that task.
 * @symbol:	The symbol that was given, cut short if need be; or empty.
 * @addr:	The address that was given, or 0.
 * @offset:	The offset that was given.
 * @err:	The error.
 * @why:	The reason.
 */
struct refusal {
	u64 when;
	pid_t pid;
	char comm[TASK_COMM_LEN];
	char symbol[64];
	unsigned long addr;
	unsigned int offset;
	int err;
	const char *why;
};

static struct refusal refusals[REFUSALS];

/* The number of refusals so far, of which @refusals has the last ones. */
static unsigned long refusals_count;

/*
 * Guards both. It is only tried, as a handler or an NMI may have interrupted its holder: a
 * refusal at the very moment of another one is not kept.
 */
static DEFINE_RAW_SPINLOCK(refusals_lock);

/* What errors mean if no check has given a reason. */
static const char *refusal_default_reason(int err)
{
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

/**
 * refusal_reason() - The reason for an error of a registration
 * @err: The error.
 * @why: The reason that a check has given, or NULL.
 *
 * Context: Any.
 * Return: The reason, for people.
 */
const char *refusal_reason(int err, const char *why)
{
	return why ?: refusal_default_reason(err);
}

/**
 * refusals_add() - Keep a refused registration for debugfs
 * @p: The probe, as its caller gave it, or NULL.
 * @err: The error.
 * @why: The reason, a string that is never freed, or NULL if @err says it.
 *
 * Context: Any.
 * Return: @err.
 */
int refusals_add(const struct kprobe *p, int err, const char *why)
{
	struct refusal *refusal;
	unsigned long flags;

	if (!raw_spin_trylock_irqsave(&refusals_lock, flags))
		return err;
	refusal = &refusals[refusals_count % REFUSALS];
	/* Pairs with the READ_ONCE() of refusals_show(), which only wants to come to an end. */
	WRITE_ONCE(refusals_count, refusals_count + 1);
	*refusal = (struct refusal){
		.when	= local_clock(),
		.pid	= current->pid,
		.addr	= p ? (unsigned long)p->addr : 0,
		.offset	= p ? p->offset : 0,
		.err	= err,
		.why	= refusal_reason(err, why),
	};
	strscpy(refusal->comm, current->comm);
	if (p && p->symbol_name)
		strscpy(refusal->symbol, p->symbol_name);
	raw_spin_unlock_irqrestore(&refusals_lock, flags);
	return err;
}

/* Copy the refusal with this number, or the oldest one after it. Returns its number, or -1. */
static long refusals_get(unsigned long number, struct refusal *refusal)
{
	unsigned long flags;
	bool found;

	raw_spin_lock_irqsave(&refusals_lock, flags);
	if (refusals_count > REFUSALS)
		number = max(number, refusals_count - REFUSALS);
	found = number < refusals_count;
	if (found)
		*refusal = refusals[number % REFUSALS];
	raw_spin_unlock_irqrestore(&refusals_lock, flags);
	return found ? number : -1;
}

static void refusal_show(struct seq_file *m, const struct refusal *refusal)
{
	u64 seconds = refusal->when;
	u32 rest = do_div(seconds, NSEC_PER_SEC);

	seq_printf(m, "[%5llu.%06u] %s[%d] ", seconds, rest / 1000, refusal->comm, refusal->pid);
	if (refusal->symbol[0])
		seq_printf(m, "%s+%#x", refusal->symbol, refusal->offset);
	else if (refusal->addr)
		seq_printf(m, "0x%px+%#x", kprobe_shown_addr(m, refusal->addr), refusal->offset);
	else
		seq_puts(m, "several probes, or no place");
	seq_printf(m, ": %pe: %s\n", ERR_PTR(refusal->err), refusal->why);
}

/* refusals_show() - Show a line for each of the last refusals, the oldest first */
int refusals_show(struct seq_file *m, void *unused)
{
	unsigned long end = READ_ONCE(refusals_count);	/* those after it may never end */
	struct refusal refusal;
	long number = -1;

	while ((number = refusals_get(number + 1, &refusal)) >= 0 && number < end)
		refusal_show(m, &refusal);
	return 0;
}
