// SPDX-License-Identifier: GPL-2.0
/*
 * Why a probe is refused, or hit without a jump: the files refusals and check in debugfs
 */
#include "internal.h"

#include <linux/debugfs.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/init.h>
#include <linux/kallsyms.h>
#include <linux/kstrtox.h>
#include <linux/minmax.h>
#include <linux/sched.h>
#include <linux/sched/clock.h>
#include <linux/sched/signal.h>
#include <linux/seq_buf.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/string_choices.h>
#include <linux/time64.h>

/* What to say of an error. A check may have said @why. */
static const char *kprobe_refusal_reason(int err, const char *why)
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

/* -------------------------------------- refusals: the last ones, and why */

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

/* They are not in .data: a back end may take any address there for a target of branches. */
static struct refusals {
	struct refusal last[REFUSALS];
	unsigned int count;		/* of all that there have been */
} refusals;

/*
 * Guards them. It is only tried, as a handler or an NMI may have interrupted its holder:
 * a refusal at the very moment of another one is not kept.
 */
static DEFINE_RAW_SPINLOCK(refusals_lock);

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
		refusals.last[refusals.count++ % REFUSALS] = refusal;
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
	struct refusals *copy __free(kfree) = kmalloc(sizeof(*copy), GFP_KERNEL);

	if (!copy)
		return -ENOMEM;
	scoped_guard(raw_spinlock_irqsave, &refusals_lock)
		memcpy(copy, &refusals, sizeof(refusals));
	for (unsigned int i = copy->count - min(copy->count, REFUSALS); i != copy->count; i++)
		refusal_show(m, &copy->last[i % REFUSALS]);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(refusals);

/* -------------------------- check: what would happen to a probe at a place */

/* What was asked, and the answer */
struct check {
	struct kprobe p;
	const struct kprobe_kind *kind;	/* NULL for a plain probe */
	struct kprobe_address where;
	int err;			/* of register_kprobe() */
	const char *no_jump;		/* why there would be no jump, or NULL */
};

static int check_no_kind(struct kprobe *p, struct kprobe_address *where)
{
	return kprobe_refuse(where, -EOPNOTSUPP, "the kernel has no probes of this type");
}

static const struct kprobe_kind check_return_probe = {
	.prepare	= IS_ENABLED(CONFIG_KRETPROBES) ? kretprobe_check : check_no_kind,
};

static const struct kprobe_kind check_jprobe = {
	.prepare	= IS_ENABLED(CONFIG_JPROBES) ? jprobe_check : check_no_kind,
};

/* Take apart "[TYPE ]PLACE[+OFFSET]". The types are those of the file list. */
static int check_parse(struct check *check, char *place)
{
	unsigned long addr;
	char *offset;

	if (place[0] && place[1] == ' ') {
		if (place[0] == 'r')
			check->kind = &check_return_probe;
		else if (place[0] == 'j')
			check->kind = &check_jprobe;
		else if (place[0] != 'k')
			return -EINVAL;
		place += 2;
	}
	offset = place;
	strsep(&offset, "+");
	if (!*place || (offset && kstrtouint(offset, 0, &check->p.offset)))
		return -EINVAL;
	if (kstrtoul(place, 0, &addr))
		check->p.symbol_name = place;
	else
		check->p.addr = (kprobe_opcode_t *)addr;
	return 0;
}

static void check_show_refusal(struct seq_buf *s, const struct check *check)
{
	const struct kprobe_address *where = &check->where;
	unsigned long before, next = where->function;

	seq_buf_printf(s, "result: %pe\nreason: %s\n", ERR_PTR(check->err),
		       kprobe_refusal_reason(check->err, where->why));
	if (check->err != -EILSEQ)
		return;
	/* The instruction that the address is inside of, and the next one. */
	guard(kprobe_text)();
	arch_seek_insn(&next, &before, where->addr);
	if (next > where->addr)
		seq_buf_printf(s, "insns: +%#lx +%#lx\n", before - where->function,
			       next - where->function);
}

static void check_show_hit(struct seq_buf *s, const struct check *check)
{
	bool by_ftrace = check->where.flags & KPROBE_FLAG_FTRACE;

	seq_buf_printf(s, "result: 0\nhit: %s\n",
		       by_ftrace ? "ftrace" : check->no_jump ? "breakpoint" : "jump");
	if (!kprobes_enabled())
		seq_buf_puts(s, "no_hit: enabled\n");
	else if (by_ftrace && kprobe_ftrace_is_off())
		seq_buf_puts(s, "no_hit: ftrace_enabled\n");
	if (check->no_jump)
		seq_buf_printf(s, "no_jump: %s\n", check->no_jump);
}

/* Put the answer in the place of the question. */
static void check_answer(const struct check *check, struct file *file, char *text)
{
	const struct kprobe_address *where = &check->where;
	struct seq_buf s;

	seq_buf_init(&s, text, SIMPLE_TRANSACTION_LIMIT);
	if (where->function)
		seq_buf_printf(&s, "address: 0x%px\nsymbol: %pS\nentry: %s\n",
			       kprobe_shown_addr(file, where->addr), (void *)where->addr,
			       str_yes_no(where->flags & KPROBE_FLAG_ON_FUNC_ENTRY));
	if (check->err)
		check_show_refusal(&s, check);
	else
		check_show_hit(&s, check);
	simple_transaction_set(file, seq_buf_used(&s));
}

static ssize_t check_write(struct file *file, const char __user *from, size_t count, loff_t *pos)
{
	char *text = simple_transaction_get(file, from, count);
	struct check check = { };
	int err;

	if (IS_ERR(text))
		return PTR_ERR(text);
	err = check_parse(&check, strim(text));
	if (err)
		return err;
	/* The symbol at an address says where the kernel is. */
	if (check.p.addr && !kallsyms_show_value(file->f_cred))
		return -EPERM;
	/* A user who has just added a probe expects to see whether it has a jump. */
	kprobe_optimizer_wait_bounded();
	do {
		cond_resched_tasks_rcu_qs();
		guard(mutex)(&kprobe_mutex);
		check.err = kprobe_try(&check.p, check.kind, &check.where, &check.no_jump);
		if (check.err != -EAGAIN)
			check_answer(&check, file, text);	/* the module is still there */
	} while (check.err == -EAGAIN && !fatal_signal_pending(current));
	return count;
}

static const struct file_operations check_fops = {
	.write		= check_write,
	.read		= simple_transaction_read,
	.release	= simple_transaction_release,
};

static int __init explain_init(void)
{
	debugfs_create_file("check", 0600, kprobes_debugfs, NULL, &check_fops);
	debugfs_create_file("refusals", 0400, kprobes_debugfs, NULL, &refusals_fops);
	return 0;
}
late_initcall(explain_init);
