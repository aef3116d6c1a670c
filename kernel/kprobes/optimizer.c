// SPDX-License-Identifier: GPL-2.0
/*
 * The optimiser: it puts a jump where a breakpoint is, and takes it out again.
 *
 * A jump is longer than the breakpoint, and a task may have been interrupted
 * behind the probed instruction, where the rest of the jump is to be. So first
 * the detour takes the place of the slot: from then on what the breakpoint
 * displaced, and all that the jump is going to displace, is run there. After a
 * grace period of RCU-tasks nobody is left who came another way, and the jump is
 * put in place. Whatever happens to the site meanwhile ends SITE_OPTIMIZING, so
 * that the wait counts for those only that are in it from its start to its end:
 * sites enter it right before a wait, and the one work waits once at a time.
 *
 * Taking a jump out needs no such wait and is done at once where it is asked
 * for. A site is looked at again when what kept it from being optimised ends.
 */
#include "internal.h"

#include <linux/cpu.h>
#include <linux/jump_label.h>
#include <linux/list_sort.h>
#include <linux/memory.h>
#include <linux/minmax.h>
#include <linux/rcupdate.h>
#include <linux/seq_file.h>
#include <linux/sysctl.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include <kunit/visibility.h>

/* Time for a site to stay, and for others to come, before work begins. */
#define OPTIMIZE_DELAY	(HZ / 20)

/*
 * Time after which sites are looked at again of which nobody will tell when they can be
 * optimised: longer and longer, if it is in vain.
 */
#define RETRY_DELAY	(5 * HZ)
#define RETRY_DELAY_MAX	(320 * HZ)

/* The knob debug.kprobes-optimization. Written under kprobe_mutex. */
static bool allowed = true;

/* Whether there are threads that RCU-tasks needs. Written under kprobe_mutex. */
static bool ready;

/*
 * Sites to be looked at; those in SITE_OPTIMIZING; those with an old detour that
 * somebody may still be in; and those to be looked at later. kprobe_mutex.
 */
static LIST_HEAD(candidates);
static LIST_HEAD(optimizing);
static LIST_HEAD(stale);
static LIST_HEAD(deferred);

/* Whether the work is on its way, or at work. Written under kprobe_mutex. */
static bool busy;
static DECLARE_WAIT_QUEUE_HEAD(idle);

static void optimize_sites(struct work_struct *work);
static DECLARE_DELAYED_WORK(optimizer, optimize_sites);

static void retry_sites(struct work_struct *work);
static DECLARE_DELAYED_WORK(retry_work, retry_sites);
static unsigned int retry_delay = RETRY_DELAY;	/* kprobe_mutex */

static struct kprobe_site *site_of_op(struct optimized_kprobe *op)
{
	return container_of(op, struct kprobe_site, op);
}

static unsigned long op_addr(const struct optimized_kprobe *op)
{
	return (unsigned long)op->kp.addr;
}

/**
 * opt_pre_handler - Call the pre handlers of a site's probes
 * @p: The site.
 * @regs: The registers at the hit.
 *
 * For an architecture whose detours cannot change the path.
 *
 * Context: As kprobe_pre_handlers().
 */
void __kprobes opt_pre_handler(struct kprobe *p, struct pt_regs *regs)
{
	kprobe_pre_handlers(p, regs);
}

/* ---------------------------------------------------- what may be replaced */

/**
 * arch_learn_text - Find out about a text what arch_prepare_optimized_kprobe() must know
 * @addr: An address in the text.
 *
 * For an architecture that must know what jumps where.
 *
 * Context: Process context, kprobe_mutex held: no more than a piece of the work
 *	may be done in one call.
 * Return: 1 if it is to be called again, 0 if all is known, or an error: then
 *	no jump can be at @addr.
 */
int __weak arch_learn_text(unsigned long addr)
{
	return 0;
}

/**
 * arch_forget_text - A module goes: forget what arch_learn_text() found
 * @mod: The module.
 *
 * Context: Process context, kprobe_mutex held.
 */
void __weak arch_forget_text(const struct module *mod)
{
}

/**
 * arch_detour_suits - Does the site's detour do what its probes want?
 * @op: The site.
 *
 * Context: Process context, kprobe_mutex held.
 * Return: Whether it does.
 */
bool __weak arch_detour_suits(struct optimized_kprobe *op)
{
	return !site_of(&op->kp)->has_post;
}

/**
 * arch_use_detour - Let hits of the breakpoint run what it displaced in the detour
 * @op: The site.
 * @use: Whether they shall. If not, in the slot, as ever.
 *
 * For an architecture whose jumps displace more than a breakpoint does.
 *
 * Context: Process context, kprobe_mutex held.
 */
void __weak arch_use_detour(struct optimized_kprobe *op, bool use)
{
}

/**
 * arch_disarm_optimized_kprobes - Restore the text where jumps are
 * @oplist: The sites, in the order of their addresses.
 * @done_list: Where to move them.
 *
 * For an architecture that can do it in fewer steps than to put breakpoints there first.
 *
 * Context: Process context, with the hotplug lock and text_mutex held.
 */
void __weak arch_disarm_optimized_kprobes(struct list_head *oplist, struct list_head *done_list)
{
	struct optimized_kprobe *op;

	arch_unoptimize_kprobes(oplist, done_list);
	list_for_each_entry(op, done_list, list)
		arch_disarm_kprobe(&op->kp);
	arch_sync_kprobes();
}

/* Is a site armed in what a jump would displace? */
static bool has_armed_neighbour(struct kprobe_site *site)
{
	unsigned long start = site_addr(site) + 1, end = start + MAX_OPTIMIZED_LENGTH;
	struct kprobe_site *other;

	for (other = site_first_in(start, end); other; other = site_next_in(other, end))
		if (site_is_armed(other) &&
		    arch_within_optimized_kprobe(&site->op, other->kp.addr))
			return true;
	return false;
}

static int prepare_detour(struct kprobe_site *site)
{
	int err;

	if (!arch_prepared_optinsn(&site->op.optinsn)) {
		err = arch_prepare_optimized_kprobe(&site->op, &site->kp);
		if (err)
			return err;
	}
	if (!arch_detour_suits(&site->op))
		return -EOPNOTSUPP;
	if (has_armed_neighbour(site))
		return -EEXIST;
	return arch_check_optimized_kprobe(&site->op);
}

/* ------------------------------------------------------------- the way in */

static void kick_optimizer(void)
{
	if (!ready || !allowed || list_empty(&candidates))
		return;
	busy = true;
	queue_delayed_work(system_unbound_wq, &optimizer, OPTIMIZE_DELAY);
}

/**
 * optimizer_consider - Have the optimiser look at a site
 * @site: The site.
 *
 * Context: Process context, kprobe_mutex held.
 */
void optimizer_consider(struct kprobe_site *site)
{
	lockdep_assert_held(&kprobe_mutex);
	if (!allowed || site->state != SITE_ARMED || kprobe_ftrace(&site->kp))
		return;
	if (list_empty(&site->op.list))
		list_add_tail(&site->op.list, &candidates);
	kick_optimizer();
}

/* Memory comes back, and a debugger's breakpoint goes, without a word to us. */
static bool is_passing(int unfit)
{
	return unfit == -ENOMEM || unfit == -EAGAIN;
}

static void refuse_jump(struct kprobe_site *site, int unfit)
{
	site->unfit = unfit;
	list_del_init(&site->op.list);
	if (!is_passing(unfit))
		return;
	list_add_tail(&site->op.list, &deferred);
	queue_delayed_work(system_unbound_wq, &retry_work, retry_delay);
}

static void retry_sites(struct work_struct *work)
{
	guard(mutex)(&kprobe_mutex);
	retry_delay = min(2 * retry_delay, RETRY_DELAY_MAX);
	list_splice_tail_init(&deferred, &candidates);
	kick_optimizer();
}

/*
 * Learn what there is to be known of the first candidate's text. Returns false
 * if that takes more than this call.
 */
static bool first_is_known(struct kprobe_site *site)
{
	int more = arch_learn_text(site_addr(site));

	if (more > 0)
		return false;
	if (more < 0)
		refuse_jump(site, more);
	return true;
}

/* Prepare the detours of a few candidates, and let them be used. */
static void start_few(void)
{
	struct kprobe_site *site, *next;
	struct optimized_kprobe *op;
	LIST_HEAD(prepared);
	int err;

	guard(mutex)(&kprobe_mutex);
	if (!allowed)
		return;
	for (int i = 0; i < SITES_AT_A_TIME; i++) {
		op = list_first_entry_or_null(&candidates, struct optimized_kprobe, list);
		if (!op)
			break;
		site = site_of_op(op);
		site->unfit = 0;
		if (!first_is_known(site))
			break;
		if (site->unfit)
			continue;
		if (arch_prepared_optinsn(&op->optinsn) && !arch_detour_suits(op)) {
			list_move_tail(&op->list, &stale);
			continue;
		}
		list_del_init(&op->list);
		list_add_tail(&site->batch, &prepared);
	}
	if (list_empty(&prepared))
		return;

	guard(cpus_read_lock)();
	jump_label_lock();
	mutex_lock(&text_mutex);
	list_for_each_entry_safe(site, next, &prepared, batch) {
		err = prepare_detour(site);
		if (!err)
			continue;
		list_del_init(&site->batch);
		refuse_jump(site, err);
	}
	if (!list_empty(&prepared)) {
		retry_delay = RETRY_DELAY;
		arch_sync_kprobes();
	}
	mutex_unlock(&text_mutex);
	jump_label_unlock();

	list_for_each_entry_safe(site, next, &prepared, batch) {
		list_del_init(&site->batch);
		arch_use_detour(&site->op, true);
		site_set_state(site, SITE_OPTIMIZING);
		list_add_tail(&site->op.list, &optimizing);
	}
}

static int compare_sites(void *unused, const struct list_head *a, const struct list_head *b)
{
	return op_addr(list_entry(a, struct optimized_kprobe, list)) >
	       op_addr(list_entry(b, struct optimized_kprobe, list));
}

static void set_optimized(struct kprobe_site *site, bool optimized)
{
	u32 flag = optimized ? KPROBE_FLAG_OPTIMIZED : 0;
	struct kprobe *p;

	site->kp.flags = (site->kp.flags & ~KPROBE_FLAG_OPTIMIZED) | flag;
	list_for_each_entry(p, &site->kp.list, list)
		WRITE_ONCE(p->flags, (p->flags & ~KPROBE_FLAG_OPTIMIZED) | flag);
}

/* Put the jumps of a few sites in place that have been waited for. */
static void finish_few(void)
{
	struct optimized_kprobe *op, *next;
	LIST_HEAD(few);
	int n = 0;

	guard(mutex)(&kprobe_mutex);
	list_for_each_entry_safe(op, next, &optimizing, list) {
		if (n++ == SITES_AT_A_TIME)
			break;
		site_set_state(site_of_op(op), SITE_JUMP);
		set_optimized(site_of_op(op), true);
		list_move_tail(&op->list, &few);
	}
	guard(cpus_read_lock)();
	guard(mutex)(&text_mutex);
	arch_optimize_kprobes(&few);
}

/* Nobody is in the old detours any more: make new ones. */
static void renew_stale(void)
{
	struct optimized_kprobe *op, *next;

	guard(mutex)(&kprobe_mutex);
	list_for_each_entry_safe(op, next, &stale, list) {
		arch_remove_optimized_kprobe(op);
		list_move_tail(&op->list, &candidates);
	}
}

static void optimize_sites(struct work_struct *work)
{
	while (allowed && !list_empty(&candidates)) {
		start_few();
		cond_resched_tasks_rcu_qs();
	}
	if (!list_empty(&optimizing) || !list_empty(&stale)) {
		kprobes_wait_for_tasks();
		renew_stale();
		scoped_guard(mutex, &kprobe_mutex)
			list_sort(NULL, &optimizing, compare_sites);
		while (!list_empty(&optimizing)) {
			finish_few();
			cond_resched_tasks_rcu_qs();
		}
	}
	scoped_guard(mutex, &kprobe_mutex) {
		busy = false;
		kick_optimizer();
	}
	wake_up_all(&idle);
}

/* ------------------------------------------------------------ the way out */

/* Have text patched where there are jumps. The lists are of optimized_kprobes. */
static void remove_jumps(struct list_head *jumps, struct list_head *done,
			 void (*patch)(struct list_head *jumps, struct list_head *done))
{
	if (list_empty(jumps))
		return;
	list_sort(NULL, jumps, compare_sites);
	guard(cpus_read_lock)();
	guard(mutex)(&text_mutex);
	patch(jumps, done);
}

/* Nothing leads to the detours of sites any more, except from copies of text. */
static void leave_detours(struct list_head *ops, enum kprobe_site_state state)
{
	struct optimized_kprobe *op, *next;
	struct kprobe_site *site;

	list_for_each_entry_safe(op, next, ops, list) {
		list_del_init(&op->list);
		site = site_of_op(op);
		if (!site_has_detour(site))
			continue;
		arch_use_detour(op, false);
		set_optimized(site, false);
		site_set_state(site, state);
	}
}

/* Have breakpoints where jumps are or were to be. */
static void unoptimize(struct list_head *ops)
{
	struct optimized_kprobe *op, *next;
	LIST_HEAD(jumps);
	LIST_HEAD(done);

	list_for_each_entry_safe(op, next, ops, list) {
		if (site_of_op(op)->state == SITE_JUMP)
			list_move_tail(&op->list, &jumps);
		else
			list_move_tail(&op->list, &done);
	}
	remove_jumps(&jumps, &done, arch_unoptimize_kprobes);
	leave_detours(&done, SITE_ARMED);
}

/**
 * unoptimize_sites - Have breakpoints where jumps are or were to be
 * @batch: The sites, linked by their @batch. Of those that are not optimised the
 *	optimiser only forgets that it was to look at them.
 *
 * Context: Process context, kprobe_mutex held.
 */
void unoptimize_sites(struct list_head *batch)
{
	struct kprobe_site *site;
	LIST_HEAD(ops);

	lockdep_assert_held(&kprobe_mutex);
	list_for_each_entry(site, batch, batch)
		if (site_has_detour(site) || !list_empty(&site->op.list))
			list_move_tail(&site->op.list, &ops);
	unoptimize(&ops);
}

/**
 * disarm_jumps - Restore the text where there are jumps
 * @batch: The sites, linked by their @batch. Those that have a jump leave it.
 * @restored: They come here, and are disarmed.
 *
 * Context: Process context, kprobe_mutex held.
 */
void disarm_jumps(struct list_head *batch, struct list_head *restored)
{
	struct kprobe_site *site, *next;
	LIST_HEAD(jumps);
	LIST_HEAD(done);

	lockdep_assert_held(&kprobe_mutex);
	list_for_each_entry_safe(site, next, batch, batch) {
		if (site->state != SITE_JUMP)
			continue;
		list_move_tail(&site->batch, restored);
		list_move_tail(&site->op.list, &jumps);
	}
	remove_jumps(&jumps, &done, arch_disarm_optimized_kprobes);
	leave_detours(&done, SITE_DISARMED);
}

/**
 * unoptimize_unsuitable - The same for those whose detour no longer suits their probes
 * @batch: The sites.
 *
 * Context: Process context, kprobe_mutex held.
 */
void unoptimize_unsuitable(struct list_head *batch)
{
	struct kprobe_site *site;
	LIST_HEAD(ops);

	list_for_each_entry(site, batch, batch)
		if (site_has_detour(site) && !arch_detour_suits(&site->op))
			list_move_tail(&site->op.list, &ops);
	unoptimize(&ops);
}

/* The lowest address at which a jump could reach @addr. */
static unsigned long reach(unsigned long addr)
{
	return addr - min_t(unsigned long, addr, MAX_OPTIMIZED_LENGTH);
}

/**
 * unoptimize_around - Take out the jumps that displace what is at sites
 * @batch: The sites, which are about to be armed.
 *
 * Context: Process context, kprobe_mutex held.
 */
void unoptimize_around(struct list_head *batch)
{
	struct kprobe_site *site, *other;
	LIST_HEAD(ops);

	list_for_each_entry(site, batch, batch) {
		other = site_first_in(reach(site_addr(site)), site_addr(site));
		for (; other; other = site_next_in(other, site_addr(site))) {
			if (!site_has_detour(other) ||
			    !arch_within_optimized_kprobe(&other->op, site->kp.addr))
				continue;
			other->unfit = -EEXIST;
			list_move_tail(&other->op.list, &ops);
		}
	}
	unoptimize(&ops);
}

/**
 * optimizer_neighbours_left - Look at those again that sites have been in the way of
 * @batch: The sites, no longer armed.
 *
 * Context: Process context, kprobe_mutex held.
 */
void optimizer_neighbours_left(struct list_head *batch)
{
	struct kprobe_site *site, *other;

	list_for_each_entry(site, batch, batch) {
		other = site_first_in(reach(site_addr(site)), site_addr(site));
		for (; other; other = site_next_in(other, site_addr(site)))
			if (other->unfit == -EEXIST)
				optimizer_consider(other);
	}
}

/* ------------------------------------------------------ waiting, switching */

/**
 * wait_for_kprobe_optimizer - Wait until all that can be optimised is
 *
 * Context: Process context. May sleep for some grace periods of RCU-tasks.
 */
void wait_for_kprobe_optimizer(void)
{
	while (READ_ONCE(busy)) {
		mod_delayed_work(system_unbound_wq, &optimizer, 0);
		flush_delayed_work(&optimizer);
	}
}
EXPORT_SYMBOL_IF_KUNIT(wait_for_kprobe_optimizer);

/* wait_for_optimizer_a_while - The same for a reader, who has no time for ever */
void wait_for_optimizer_a_while(void)
{
	if (!READ_ONCE(busy))
		return;
	mod_delayed_work(system_unbound_wq, &optimizer, 0);
	wait_event_killable_timeout(idle, !READ_ONCE(busy), 10 * HZ);
}

/* What to tell of kprobe_site.unfit. The last one is for all others. */
static const struct {
	int unfit;
	const char *text;
} reasons[] = {
	{ 0,		"waiting" },
	{ -EADDRINUSE,	"something may jump behind the first instruction" },
	{ -EEXIST,	"another probe is in the way" },
	{ -EBUSY,	"others patch the text" },
	{ -EILSEQ,	"an instruction cannot be moved" },
	{ -EFAULT,	"faults of an instruction are fixed up" },
	{ -ERANGE,	"too near to the end of the function, or out of reach" },
	{ -EOPNOTSUPP,	"not supported for these probes" },
	{ -EINVAL,	"the text is not there to stay" },
	{ -ENOMEM,	"no memory" },
	{ -EAGAIN,	"a breakpoint of a debugger is in the way" },
	{ -EPERM,	"a branch is guarded against speculation" },
	{ 1,		"other reasons" },
};

static unsigned int reason(const struct kprobe_site *site)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(reasons) - 1; i++)
		if (reasons[i].unfit == site->unfit)
			break;
	return i;
}

/**
 * optimizer_show_reasons - Tell why sites have breakpoints, and not jumps
 * @m: A line for each reason goes there.
 *
 * Context: Process context, kprobe_mutex held.
 */
void optimizer_show_reasons(struct seq_file *m)
{
	unsigned long count[ARRAY_SIZE(reasons)] = { }, switched_off = 0;
	struct kprobe_site *site;

	lockdep_assert_held(&kprobe_mutex);
	for (site = site_first_from(0); site; site = site_next(site)) {
		if (site->state != SITE_ARMED || kprobe_ftrace(&site->kp))
			continue;
		if (allowed)
			count[reason(site)]++;
		else
			switched_off++;
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(reasons); i++)
		seq_printf(m, "without a jump, %s: %lu\n", reasons[i].text, count[i]);
	seq_printf(m, "without a jump, switched off: %lu\n", switched_off);
}

/* The knob has been turned: what is optimised must not be, or what is not may be. */
static void reconsider_all(void)
{
	struct kprobe_site *site;
	LIST_HEAD(ops);

	for (site = site_first_from(0); site; site = site_next(site)) {
		if (allowed)
			optimizer_consider(site);
		else if (site_has_detour(site) || !list_empty(&site->op.list))
			list_move_tail(&site->op.list, &ops);
	}
	unoptimize(&ops);
}

static int change_allowed(const struct ctl_table *table, int write, void *buffer,
			  size_t *length, loff_t *ppos)
{
	int value = allowed;
	const struct ctl_table copy = {
		.data	= &value,
		.maxlen	= sizeof(value),
		.mode	= table->mode,
		.extra1	= SYSCTL_ZERO,
		.extra2	= SYSCTL_ONE,
	};
	int err = proc_dointvec_minmax(&copy, write, buffer, length, ppos);

	if (err || !write)
		return err;
	guard(mutex)(&kprobe_mutex);
	if (allowed != value) {
		allowed = value;
		reconsider_all();
		pr_info("jumps in place of breakpoints are switched %s\n",
			value ? "on" : "off");
	}
	return 0;
}

static struct ctl_table optimizer_sysctls[] = {
	{
		.procname	= "kprobes-optimization",
		.maxlen		= sizeof(int),
		.mode		= 0644,
		.proc_handler	= change_allowed,
	},
};

static int __init optimizer_init(void)
{
	register_sysctl_init("debug", optimizer_sysctls);
	guard(mutex)(&kprobe_mutex);
	ready = true;
	kick_optimizer();
	return 0;
}
subsys_initcall(optimizer_init);
