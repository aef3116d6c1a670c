// SPDX-License-Identifier: GPL-2.0
/*
 * The optimiser replaces breakpoints by jumps, and jumps by breakpoints
 *
 * A jump is longer than the breakpoint, and a task may have been preempted after the
 * probed instruction, in bytes that the jump is to overwrite. So the detour first takes
 * the place of the slot: hits of the breakpoint then run in the detour all instructions
 * that the jump is to displace. After a grace period of RCU-tasks no task is in the
 * displaced text or on another path to it, and the jump is written. Any other change of
 * the site meanwhile ends SITE_OPTIMIZING. So the wait counts only for sites that stay in
 * that state from its start to its end: a site enters the state right before a wait, and
 * the single work item never runs two waits at once.
 *
 * Removing a jump needs no such wait and is done immediately by the caller. A site is
 * reconsidered when the reason that kept it from being optimised ends. One whose detour does not
 * call the post handlers that it gets becomes a breakpoint, and is optimised anew.
 */
#include "internal.h"

#include <linux/array_size.h>
#include <linux/export.h>
#include <linux/init.h>
#include <linux/jiffies.h>
#include <linux/kprobes_tables.h>
#include <linux/list_sort.h>
#include <linux/minmax.h>
#include <linux/sched/signal.h>
#include <linux/seq_file.h>
#include <linux/sysctl.h>
#include <linux/workqueue.h>

#include <asm/sections.h>

#include <kunit/visibility.h>

/* Delay before optimising: a site may leave again, and others may join the batch. */
#define OPTIMIZE_DELAY	(HZ / 20)

/* Delay of a retry if no event shows that the reason has ended. It doubles until one succeeds. */
#define RETRY_DELAY	(5 * HZ)
#define RETRY_DELAY_MAX	(320 * HZ)

/* How long the analysis of texts is kept after its last use. It takes an eighth of a text. */
#define FORGET_DELAY	(5 * HZ)

static struct {
	/* The knob debug.kprobes-optimization; 0 before RCU-tasks has threads. kprobe_mutex. */
	int allowed;
	/* Sites at which optimizer_work is to look when it begins, by @op.list. kprobe_mutex. */
	struct list_head pending;
	/* Delay of retry_work in jiffies. kprobe_mutex. */
	unsigned int retry_delay;
} optimizer = {
	.pending	= LIST_HEAD_INIT(optimizer.pending),
	.retry_delay	= RETRY_DELAY,
};

/*
 * What site_prepare_detour() returns besides 0 and errors: more of the text has to be analysed;
 * or tasks may be in a detour that does not suit the site's probes. The latter is the site's
 * @unfit until they no longer can be.
 */
#define TEXT_UNKNOWN	1
#define DETOUR_STALE	2

static void optimizer_run(struct work_struct *work);
static void optimizer_retry(struct work_struct *work);
static DECLARE_DELAYED_WORK(optimizer_work, optimizer_run);
static DECLARE_DELAYED_WORK(retry_work, optimizer_retry);

/* opt_pre_handler() - kprobe_pre_handlers(), for detours that cannot change the path */
void __kprobes opt_pre_handler(struct kprobe *p, struct pt_regs *regs)
{
	kprobe_pre_handlers(p, regs);
}

/* ----------------------------------------------- preparation of a detour */

int __weak arch_learn_text(unsigned long addr)
{
	return 0;
}

void __weak arch_forget_text(struct kprobe_text *text)
{
}

bool __weak arch_detour_suits(struct optimized_kprobe *op)
{
	return !site_of(&op->kp)->has_post;
}

void __weak arch_use_detour(struct optimized_kprobe *op, bool use)
{
}

/* Is another site armed in the bytes that a jump would displace? */
static bool has_armed_neighbour(struct kprobe_site *site)
{
	unsigned long start = site_addr(site) + 1, end = start + MAX_OPTIMIZED_LENGTH;
	struct kprobe_site *other;

	for_each_site_in(other, start, end)
		if (site_is_armed(other) &&
		    arch_within_optimized_kprobe(&site->op, other->kp.addr))
			return true;
	return false;
}

static void optimizer_forget(struct work_struct *work);
static DECLARE_DELAYED_WORK(forget_work, optimizer_forget);

static void optimizer_forget(struct work_struct *work)
{
	guard(mutex)(&kprobe_mutex);
	/* Not while it is used, however long a step takes, or the wait for the mutex after it. */
	if (work_busy(&optimizer_work.work))
		queue_delayed_work(system_dfl_wq, &forget_work, FORGET_DELAY);
	else if (!delayed_work_pending(&forget_work))
		arch_forget_text(kprobe_known_text((unsigned long)_stext));
}

/* Returns 0, why there can be no jump, or TEXT_UNKNOWN or DETOUR_STALE. */
static int site_prepare_detour(struct kprobe_site *site)
{
	struct optimized_kprobe *op = &site->op;
	int err;

	err = arch_learn_text(site_addr(site));
	/* After the analysis, which takes longer than the delay if its own code is probed. */
	mod_delayed_work(system_dfl_wq, &forget_work, FORGET_DELAY);
	if (err)
		return err;
	if (arch_prepared_optinsn(&op->optinsn) && !arch_detour_suits(op))
		return DETOUR_STALE;
	/* For one site at a time: it may take a millisecond. */
	guard(kprobe_text)();
	if (!arch_prepared_optinsn(&op->optinsn))
		err = arch_prepare_optimized_kprobe(op, &site->kp);
	if (err)
		return err;
	if (!arch_detour_suits(op))
		return -EOPNOTSUPP;
	return has_armed_neighbour(site) ? -EEXIST : arch_check_optimized_kprobe(op);
}

/* ------------------------------------------------- breakpoints to jumps */

/* kprobe_optimizer_consider() - Let the optimiser look at a site, perhaps once more */
void kprobe_optimizer_consider(struct kprobe_site *site)
{
	lockdep_assert_held(&kprobe_mutex);
	if (!optimizer.allowed || !site_stays_breakpoint(site) || !list_empty(&site->op.list))
		return;
	list_add_tail(&site->op.list, &optimizer.pending);
	queue_delayed_work(system_dfl_wq, &optimizer_work, OPTIMIZE_DELAY);
}

/* No event shows that memory is available again or that a debugger's breakpoint is gone. */
static bool is_transient(int unfit)
{
	return unfit == -ENOMEM || unfit == -EAGAIN;
}

static void site_set_unfit(struct kprobe_site *site, int unfit)
{
	site->unfit = unfit;
	if (is_transient(unfit))
		queue_delayed_work(system_dfl_wq, &retry_work, optimizer.retry_delay);
}

static void optimizer_retry(struct work_struct *work)
{
	struct kprobe_site *site;

	guard(mutex)(&kprobe_mutex);
	optimizer.retry_delay = min(2 * optimizer.retry_delay, RETRY_DELAY_MAX);
	for_each_site(site)
		if (is_transient(site->unfit))
			kprobe_optimizer_consider(site);
}

/*
 * Make detours for sites of @todo, until a tick, and let hits use them. These sites, and those
 * whose detour is stale, join @waiting. Returns false if no site is left to do.
 */
static bool optimizer_start_some(struct list_head *todo, struct list_head *waiting)
{
	struct kprobe_site *site, *next;
	unsigned long start;
	LIST_HEAD(ops);
	int err;

	guard(mutex)(&kprobe_mutex);
	start = jiffies;
	list_for_each_entry_safe(site, next, todo, op.list) {
		if (!optimizer.allowed || !site_stays_breakpoint(site)) {
			list_del_init(&site->op.list);
			continue;
		}
		err = site_prepare_detour(site);
		if (err == TEXT_UNKNOWN)
			break;
		site_set_unfit(site, err);
		list_del_init(&site->op.list);
		if (!err || err == DETOUR_STALE)
			list_add_tail(&site->op.list, err ? waiting : &ops);
		/* The next may take long, with probes in the decoder. Others want the mutex. */
		if (time_after(jiffies, start))
			break;
	}
	if (list_empty(&ops))
		return !list_empty(todo);
	optimizer.retry_delay = RETRY_DELAY;
	scoped_guard(kprobe_text)
		arch_sync_kprobes();
	list_for_each_entry(site, &ops, op.list) {
		arch_use_detour(&site->op, true);
		kprobe_site_set_state(site, SITE_OPTIMIZING);
	}
	list_splice_tail(&ops, waiting);
	return !list_empty(todo);
}

/* Let hits of a breakpoint, which no longer stands for a jump, run in the slot again. */
static void site_leave_detour(struct kprobe_site *site)
{
	list_del_init(&site->op.list);
	arch_use_detour(&site->op, false);
	kprobe_site_change_flag(site, KPROBE_FLAG_OPTIMIZED, false);
	kprobe_site_set_state(site, SITE_ARMED);
}

static int kprobe_site_cmp(void *unused, const struct list_head *a, const struct list_head *b)
{
	return site_addr(list_entry(a, struct kprobe_site, op.list)) >
	       site_addr(list_entry(b, struct kprobe_site, op.list));
}

/*
 * Write the jumps of some sites whose grace period has passed, and free detours that are stale.
 * Returns false if no site is left.
 */
static bool optimizer_finish_some(struct list_head *waiting)
{
	struct kprobe_site *site, *next;
	unsigned int n = 0;
	LIST_HEAD(ops);
	int unfit;

	guard(mutex)(&kprobe_mutex);
	list_for_each_entry_safe(site, next, waiting, op.list) {
		if (n++ == SITES_AT_A_TIME)
			break;
		if (site->state == SITE_OPTIMIZING) {
			list_move_tail(&site->op.list, &ops);
			continue;
		}
		list_del_init(&site->op.list);
		arch_remove_optimized_kprobe(&site->op);
		kprobe_optimizer_consider(site);
		kprobe_optimizer_retry_near(site);
	}
	list_sort(NULL, &ops, kprobe_site_cmp);
	guard(cpus_read_lock)();
	guard(mutex)(&text_mutex);
	list_for_each_entry_safe(site, next, &ops, op.list) {
		/* A debugger may have planted a breakpoint meanwhile: none under text_mutex. */
		unfit = arch_check_optimized_kprobe(&site->op);
		if (unfit) {
			site_leave_detour(site);
			site_set_unfit(site, unfit);
			continue;
		}
		kprobe_site_set_state(site, SITE_JUMP);
		kprobe_site_change_flag(site, KPROBE_FLAG_OPTIMIZED, true);
	}
	arch_optimize_kprobes(&ops);
	return !list_empty(waiting);
}

/* Others remove sites from the lists, under kprobe_mutex, when they change their state. */
static void optimizer_run(struct work_struct *work)
{
	LIST_HEAD(waiting);
	LIST_HEAD(todo);
	bool must_wait;

	scoped_guard(mutex, &kprobe_mutex)
		list_splice_init(&optimizer.pending, &todo);
	while (optimizer_start_some(&todo, &waiting))
		cond_resched_tasks_rcu_qs();
	scoped_guard(mutex, &kprobe_mutex)
		must_wait = !list_empty(&waiting);
	if (must_wait) {
		kprobes_wait_for_tasks();
		while (optimizer_finish_some(&waiting))
			cond_resched_tasks_rcu_qs();
	}
}

/* ------------------------------------------------- jumps to breakpoints */

/* Replace jumps by breakpoints, and cancel optimisations in progress. */
static void unoptimize_ops(struct list_head *ops)
{
	struct kprobe_site *site, *next;
	LIST_HEAD(jumps);

	list_for_each_entry_safe(site, next, ops, op.list)
		if (site->state == SITE_JUMP)
			list_move_tail(&site->op.list, &jumps);
	if (!list_empty(&jumps)) {
		list_sort(NULL, &jumps, kprobe_site_cmp);
		guard(cpus_read_lock)();
		guard(mutex)(&text_mutex);
		arch_unoptimize_kprobes(&jumps, ops);
	}
	list_for_each_entry_safe(site, next, ops, op.list)
		site_leave_detour(site);
}

/* kprobe_unoptimize() - Remove the jumps of sites; if not @all, keep those that suit the probes */
void kprobe_unoptimize(struct list_head *batch, bool all)
{
	struct kprobe_site *site;
	LIST_HEAD(ops);

	lockdep_assert_held(&kprobe_mutex);
	list_for_each_entry(site, batch, batch)
		if (site_has_detour(site) && (all || !arch_detour_suits(&site->op)))
			list_move_tail(&site->op.list, &ops);
	unoptimize_ops(&ops);
}

/* kprobe_unoptimize_around() - Remove the jumps that displace sites that are about to be armed */
void kprobe_unoptimize_around(struct list_head *batch)
{
	struct kprobe_site *site, *other;
	unsigned long addr;
	LIST_HEAD(ops);

	lockdep_assert_held(&kprobe_mutex);
	list_for_each_entry(site, batch, batch) {
		addr = site_addr(site);
		for_each_site_in(other, addr - min(addr, MAX_OPTIMIZED_LENGTH + 0UL), addr) {
			if (!site_has_detour(other) ||
			    !arch_within_optimized_kprobe(&other->op, site->kp.addr))
				continue;
			other->unfit = -EEXIST;
			list_move_tail(&other->op.list, &ops);
		}
	}
	unoptimize_ops(&ops);
}

/*
 * kprobe_optimizer_retry_near() - Reconsider sites that another one, @site, may have blocked
 *
 * It is not armed, or what its jump needed besides its text is free. kprobe_mutex is held.
 */
void kprobe_optimizer_retry_near(const struct kprobe_site *site)
{
	unsigned long addr = site_addr(site), reach = site->state == SITE_DISARMED ?
						      MAX_OPTIMIZED_LENGTH : KPROBE_JUMP_REACH;
	struct kprobe_site *other;

	for_each_site_in(other, addr - min(addr, reach), addr + reach)
		if (other->unfit)
			kprobe_optimizer_consider(other);
}

/* --------------------------------------------- waiting, statistics, knob */

/*
 * wait_for_kprobe_optimizer() - Wait until the optimiser has no work left
 *
 * That may take several grace periods of RCU-tasks. The worker takes kprobe_mutex.
 */
void wait_for_kprobe_optimizer(void)
{
	while (work_busy(&optimizer_work.work))
		flush_delayed_work(&optimizer_work);
}
EXPORT_SYMBOL_IF_KUNIT(wait_for_kprobe_optimizer);

/* kprobe_optimizer_wait_bounded() - Wait for the optimiser, killable, at most 10 seconds */
void kprobe_optimizer_wait_bounded(void)
{
	unsigned long end = jiffies + 10 * HZ;

	if (delayed_work_pending(&optimizer_work))
		mod_delayed_work(system_dfl_wq, &optimizer_work, 0);
	while (work_busy(&optimizer_work.work) && time_before(jiffies, end) &&
	       !fatal_signal_pending(current))
		schedule_timeout_killable(1);
}

/*
 * The values of kprobe_site.unfit in debugfs. Documentation/trace/kprobes.rst describes
 * them. The last entries are for all other errors, and for all sites while the knob is 0.
 */
static const struct {
	int unfit;
	const char *name;
} reasons[] = {
	{ 0,		"pending" },
	{ -EADDRINUSE,	"branch_target" },
	{ -EEXIST,	"other_probe" },
	{ -EBUSY,	"patched_text" },
	{ -EILSEQ,	"insn" },
	{ -EFAULT,	"extable" },
	{ -ERANGE,	"range" },
	{ -EOPNOTSUPP,	"unsupported" },
	{ -EINVAL,	"temporary_text" },
	{ -ENOMEM,	"memory" },
	{ -EAGAIN,	"debugger" },
	{ -EPERM,	"mitigation" },
	{ 1,		"other" },
	{ 1,		"disabled" },
};

/* The largest of these numbers differ between architectures. */
static_assert(-EADDRINUSE == (s8)-EADDRINUSE && -EOPNOTSUPP == (s8)-EOPNOTSUPP);

static unsigned int jump_reason(int unfit)
{
	unsigned int i = ARRAY_SIZE(reasons) - 1;

	if (optimizer.allowed)
		for (i = 0; i < ARRAY_SIZE(reasons) - 2; i++)
			if (reasons[i].unfit == min(unfit, 0))
				break;
	return i;
}

/* kprobe_no_jump_reason() - Why an armed site has no jump, as in debugfs; NULL with a detour */
const char *kprobe_no_jump_reason(const struct kprobe_site *site)
{
	lockdep_assert_held(&kprobe_mutex);
	return site_has_detour(site) ? NULL : reasons[jump_reason(site->unfit)].name;
}

/*
 * kprobe_try_jump() - Find out if a site has, or could have, a jump
 *
 * Sets *@no_jump to the reason if not, as in debugfs; otherwise to NULL. Returns 0; or -EAGAIN if
 * the text must be analysed further: call again, after others had kprobe_mutex.
 */
int kprobe_try_jump(struct kprobe_site *site, const char **no_jump)
{
	bool had_detour = arch_prepared_optinsn(&site->op.optinsn);
	int unfit;

	lockdep_assert_held(&kprobe_mutex);
	if (site_is_armed(site)) {
		*no_jump = kprobe_no_jump_reason(site);
		return 0;
	}
	/* A stale detour is made anew once the site is armed. */
	unfit = site_prepare_detour(site);
	if (unfit == TEXT_UNKNOWN)
		return -EAGAIN;
	if (!had_detour)
		arch_remove_optimized_kprobe(&site->op);
	*no_jump = unfit || !optimizer.allowed ? reasons[jump_reason(unfit)].name : NULL;
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(kprobe_try_jump);

/* kprobe_optimizer_show_reasons() - Show how many sites have no jump, a line for each reason */
void kprobe_optimizer_show_reasons(struct seq_file *m)
{
	unsigned long count[ARRAY_SIZE(reasons)] = { };
	struct kprobe_site *site;

	lockdep_assert_held(&kprobe_mutex);
	for_each_site(site)
		if (site_stays_breakpoint(site))
			count[jump_reason(site->unfit)]++;
	for (unsigned int i = 0; i < ARRAY_SIZE(reasons); i++)
		seq_printf(m, "no_jump_%s: %lu\n", reasons[i].name, count[i]);
}

static void optimizer_reconsider_all(void)
{
	struct kprobe_site *site;
	LIST_HEAD(ops);

	for_each_site(site) {
		if (optimizer.allowed)
			kprobe_optimizer_consider(site);
		else if (site_has_detour(site))
			list_move_tail(&site->op.list, &ops);
	}
	unoptimize_ops(&ops);
}

static int optimizer_sysctl_handler(const struct ctl_table *table, int write, void *buffer,
				    size_t *length, loff_t *ppos)
{
	int before, err;

	guard(mutex)(&kprobe_mutex);
	before = optimizer.allowed;
	err = proc_dointvec_minmax(table, write, buffer, length, ppos);
	if (optimizer.allowed == before)
		return err;
	optimizer_reconsider_all();
	if (before)
		pr_info("jumps are off: set sysctl debug.kprobes-optimization to 1 for jumps\n");
	else
		pr_info("jumps are on: breakpoints become jumps in the background\n");
	return err;
}

static struct ctl_table optimizer_sysctls[] = {
	{
		.procname	= "kprobes-optimization",
		.data		= &optimizer.allowed,
		.maxlen		= sizeof(int),
		.mode		= 0644,
		.proc_handler	= optimizer_sysctl_handler,
		.extra1		= SYSCTL_ZERO,
		.extra2		= SYSCTL_ONE,
	},
};

static int __init optimizer_init(void)
{
	register_sysctl_init("debug", optimizer_sysctls);
	guard(mutex)(&kprobe_mutex);
	optimizer.allowed = 1;
	optimizer_reconsider_all();
	return 0;
}
subsys_initcall(optimizer_init);
