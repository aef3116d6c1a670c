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
#include <linux/cpu.h>
#include <linux/export.h>
#include <linux/init.h>
#include <linux/kprobes_tables.h>
#include <linux/list_sort.h>
#include <linux/memory.h>
#include <linux/minmax.h>
#include <linux/rcupdate.h>
#include <linux/seq_file.h>
#include <linux/sysctl.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include <asm/sections.h>

#include <kunit/visibility.h>

/* Delay before optimising: a site may leave again, and others may join the batch. */
#define OPTIMIZE_DELAY	(HZ / 20)

/*
 * Delay before sites are reconsidered if no event shows that the reason has ended.
 * It doubles after each attempt without success.
 */
#define RETRY_DELAY	(5 * HZ)
#define RETRY_DELAY_MAX	(320 * HZ)

/* How long the analysis of texts is kept after its last use. It takes an eighth of a text. */
#define FORGET_DELAY	(5 * HZ)

static struct {
	/*
	 * The knob debug.kprobes-optimization. Written under kprobe_mutex. Its sysctl reads
	 * it without, and orders nothing by it.
	 */
	bool allowed;
	/* True once the threads of RCU-tasks exist. Written under kprobe_mutex. */
	bool ready;
	/*
	 * True while optimizer_work is queued or runs. Written under kprobe_mutex. Who waits
	 * reads it without: a workqueue's lock, or that of @idle, is between.
	 */
	bool busy;
	/* Woken when busy may have become false. Has its own lock. */
	wait_queue_head_t idle;
	/* Sites to be considered. kprobe_mutex. */
	struct list_head candidates;
	/* Sites in SITE_OPTIMIZING. kprobe_mutex. */
	struct list_head optimizing;
	/* Sites with an unsuitable detour that a task may be in. kprobe_mutex. */
	struct list_head stale;
	/* Sites to be reconsidered by retry_work. kprobe_mutex. */
	struct list_head deferred;
	/* Delay of retry_work in jiffies. kprobe_mutex. */
	unsigned int retry_delay;
} optimizer = {
	.allowed	= true,
	.idle		= __WAIT_QUEUE_HEAD_INITIALIZER(optimizer.idle),
	.candidates	= LIST_HEAD_INIT(optimizer.candidates),
	.optimizing	= LIST_HEAD_INIT(optimizer.optimizing),
	.stale		= LIST_HEAD_INIT(optimizer.stale),
	.deferred	= LIST_HEAD_INIT(optimizer.deferred),
	.retry_delay	= RETRY_DELAY,
};

static void optimizer_run(struct work_struct *work);
static DECLARE_DELAYED_WORK(optimizer_work, optimizer_run);

static void optimizer_retry(struct work_struct *work);
static DECLARE_DELAYED_WORK(retry_work, optimizer_retry);

static void optimizer_forget(struct work_struct *work);
static DECLARE_DELAYED_WORK(forget_work, optimizer_forget);

static struct kprobe_site *site_of_op(struct optimized_kprobe *op)
{
	return container_of(op, struct kprobe_site, op);
}

static unsigned long op_addr(const struct optimized_kprobe *op)
{
	return (unsigned long)op->kp.addr;
}

/**
 * opt_pre_handler() - Call the pre handlers of a site's probes
 * @p: The site.
 * @regs: The registers at the hit.
 *
 * For an architecture whose detours cannot change the path.
 *
 * Context: See kprobe_pre_handlers().
 */
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

void __weak arch_disarm_optimized_kprobes(struct list_head *oplist, struct list_head *done_list)
{
	struct optimized_kprobe *op;

	arch_unoptimize_kprobes(oplist, done_list);
	list_for_each_entry(op, done_list, list)
		arch_disarm_kprobe(&op->kp);
	arch_sync_kprobes();
}

/* Is another site armed in the bytes that a jump would displace? */
static bool has_armed_neighbour(struct kprobe_site *site)
{
	unsigned long start = site_addr(site) + 1, end = start + MAX_OPTIMIZED_LENGTH;
	struct kprobe_site *other;

	other = kprobe_site_first_in(start, end);
	for (; other; other = kprobe_site_next_in(other, end))
		if (site_is_armed(other) &&
		    arch_within_optimized_kprobe(&site->op, other->kp.addr))
			return true;
	return false;
}

static int site_prepare_detour(struct kprobe_site *site)
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

/* ------------------------------------------------- breakpoints to jumps */

static void optimizer_kick(void)
{
	lockdep_assert_held(&kprobe_mutex);
	if (!optimizer.ready || !optimizer.allowed || list_empty(&optimizer.candidates))
		return;
	WRITE_ONCE(optimizer.busy, true);
	queue_delayed_work(system_unbound_wq, &optimizer_work, OPTIMIZE_DELAY);
}

/**
 * kprobe_optimizer_consider() - Make a site a candidate for a jump
 * @site: The site.
 *
 * Context: Process context, kprobe_mutex held.
 */
void kprobe_optimizer_consider(struct kprobe_site *site)
{
	lockdep_assert_held(&kprobe_mutex);
	if (!optimizer.allowed || !site_stays_breakpoint(site))
		return;
	if (list_empty(&site->op.list))
		list_add_tail(&site->op.list, &optimizer.candidates);
	optimizer_kick();
}

/* No event shows that memory is available again or that a debugger's breakpoint is gone. */
static bool is_transient(int unfit)
{
	return unfit == -ENOMEM || unfit == -EAGAIN;
}

static void site_refuse_jump(struct kprobe_site *site, int unfit)
{
	site->unfit = unfit;
	list_del_init(&site->op.list);
	if (!is_transient(unfit))
		return;
	list_add_tail(&site->op.list, &optimizer.deferred);
	queue_delayed_work(system_unbound_wq, &retry_work, optimizer.retry_delay);
}

static void optimizer_retry(struct work_struct *work)
{
	guard(mutex)(&kprobe_mutex);
	optimizer.retry_delay = min(2 * optimizer.retry_delay, RETRY_DELAY_MAX);
	list_splice_tail_init(&optimizer.deferred, &optimizer.candidates);
	optimizer_kick();
}

static void optimizer_forget(struct work_struct *work)
{
	struct kprobe_text *text;

	guard(mutex)(&kprobe_mutex);
	text = kprobe_known_text((unsigned long)_stext);
	if (text)
		arch_forget_text(text);
}

static int optimizer_learn_text(const struct kprobe_site *site)
{
	mod_delayed_work(system_unbound_wq, &forget_work, FORGET_DELAY);
	return arch_learn_text(site_addr(site));
}

/*
 * Analyse the text of the first candidate. Returns false if the analysis needs further
 * calls.
 */
static bool site_learn_text(struct kprobe_site *site)
{
	int more = optimizer_learn_text(site);

	if (more > 0)
		return false;
	if (more < 0)
		site_refuse_jump(site, more);
	return true;
}

/* Move some candidates whose text is known to @sites. */
static void optimizer_take_candidates(struct list_head *sites)
{
	struct optimized_kprobe *op;
	struct kprobe_site *site;

	for (int i = 0; i < SITES_AT_A_TIME; i++) {
		op = list_first_entry_or_null(&optimizer.candidates, struct optimized_kprobe, list);
		if (!op)
			break;
		site = site_of_op(op);
		site->unfit = 0;
		if (!site_learn_text(site))
			break;
		if (site->unfit)
			continue;
		if (arch_prepared_optinsn(&op->optinsn) && !arch_detour_suits(op)) {
			list_move_tail(&op->list, &optimizer.stale);
			continue;
		}
		list_del_init(&op->list);
		list_add_tail(&site->batch, sites);
	}
}

/* Make detours. Sites that cannot have one leave @sites. */
static void sites_prepare_detours(struct list_head *sites)
{
	struct kprobe_site *site, *next;
	int err;

	list_for_each_entry_safe(site, next, sites, batch) {
		/* Not for all of them: it may take a millisecond. */
		scoped_guard(kprobe_text)
			err = site_prepare_detour(site);
		if (!err)
			continue;
		list_del_init(&site->batch);
		site_refuse_jump(site, err);
	}
	if (list_empty(sites))
		return;
	optimizer.retry_delay = RETRY_DELAY;
	guard(kprobe_text)();
	arch_sync_kprobes();
}

/*
 * Prepare the detours of some candidates, and make hits use them. Returns false if there
 * was no candidate.
 */
static bool optimizer_start_some(void)
{
	struct kprobe_site *site, *next;
	LIST_HEAD(prepared);

	guard(mutex)(&kprobe_mutex);
	if (!optimizer.allowed || list_empty(&optimizer.candidates))
		return false;
	optimizer_take_candidates(&prepared);
	if (list_empty(&prepared))
		return true;
	sites_prepare_detours(&prepared);
	list_for_each_entry_safe(site, next, &prepared, batch) {
		list_del_init(&site->batch);
		arch_use_detour(&site->op, true);
		kprobe_site_set_state(site, SITE_OPTIMIZING);
		list_add_tail(&site->op.list, &optimizer.optimizing);
	}
	return true;
}

static int kprobe_op_addr_cmp(void *unused, const struct list_head *a, const struct list_head *b)
{
	return op_addr(list_entry(a, struct optimized_kprobe, list)) >
	       op_addr(list_entry(b, struct optimized_kprobe, list));
}

/*
 * A debugger may have planted a breakpoint in the displaced text since the detour was made.
 * It plants none while text_mutex is held.
 */
static void sites_recheck(struct list_head *ops)
{
	struct optimized_kprobe *op, *next;
	struct kprobe_site *site;
	int unfit;

	lockdep_assert_held(&text_mutex);
	list_for_each_entry_safe(op, next, ops, list) {
		unfit = arch_check_optimized_kprobe(op);
		if (!unfit)
			continue;
		site = site_of_op(op);
		arch_use_detour(op, false);
		kprobe_site_set_state(site, SITE_ARMED);
		site_refuse_jump(site, unfit);
	}
}

/*
 * Write the jumps of some sites whose grace period has passed. Returns false if there was
 * none.
 */
static bool optimizer_finish_some(void)
{
	struct optimized_kprobe *op, *next;
	LIST_HEAD(few);
	int n = 0;

	guard(mutex)(&kprobe_mutex);
	if (list_empty(&optimizer.optimizing))
		return false;
	list_for_each_entry_safe(op, next, &optimizer.optimizing, list) {
		if (n++ == SITES_AT_A_TIME)
			break;
		list_move_tail(&op->list, &few);
	}
	guard(cpus_read_lock)();
	guard(mutex)(&text_mutex);
	sites_recheck(&few);
	list_for_each_entry(op, &few, list) {
		kprobe_site_set_state(site_of_op(op), SITE_JUMP);
		kprobe_site_change_flag(site_of_op(op), KPROBE_FLAG_OPTIMIZED, true);
	}
	arch_optimize_kprobes(&few);
	return true;
}

/*
 * No task is in the stale detours any more: free them, and prepare new ones, before a site
 * that was registered meanwhile gets what they needed.
 */
static void optimizer_renew_stale(void)
{
	struct optimized_kprobe *op, *next;

	guard(mutex)(&kprobe_mutex);
	list_for_each_entry_safe(op, next, &optimizer.stale, list) {
		arch_remove_optimized_kprobe(op);
		list_move(&op->list, &optimizer.candidates);
	}
}

static bool optimizer_must_wait(void)
{
	guard(mutex)(&kprobe_mutex);
	return !list_empty(&optimizer.optimizing) || !list_empty(&optimizer.stale);
}

static void optimizer_run(struct work_struct *work)
{
	while (optimizer_start_some())
		cond_resched_tasks_rcu_qs();
	if (optimizer_must_wait()) {
		kprobes_wait_for_tasks();
		optimizer_renew_stale();
		scoped_guard(mutex, &kprobe_mutex)
			list_sort(NULL, &optimizer.optimizing, kprobe_op_addr_cmp);
		while (optimizer_finish_some())
			cond_resched_tasks_rcu_qs();
	}
	scoped_guard(mutex, &kprobe_mutex) {
		WRITE_ONCE(optimizer.busy, false);
		optimizer_kick();
	}
	wake_up_all(&optimizer.idle);
}

/* ------------------------------------------------- jumps to breakpoints */

/* Patch the text at jumps. Both lists link the sites by their @op.list. */
static void sites_remove_jumps(struct list_head *jumps, struct list_head *done,
			       void (*patch)(struct list_head *jumps, struct list_head *done))
{
	if (list_empty(jumps))
		return;
	list_sort(NULL, jumps, kprobe_op_addr_cmp);
	guard(cpus_read_lock)();
	guard(mutex)(&text_mutex);
	patch(jumps, done);
}

/* The jumps are gone; breakpoints stop using the copies in the detours, too. */
static void sites_leave_detours(struct list_head *ops, enum kprobe_site_state state)
{
	struct optimized_kprobe *op, *next;
	struct kprobe_site *site;

	list_for_each_entry_safe(op, next, ops, list) {
		list_del_init(&op->list);
		site = site_of_op(op);
		if (!site_has_detour(site))
			continue;
		arch_use_detour(op, false);
		kprobe_site_change_flag(site, KPROBE_FLAG_OPTIMIZED, false);
		kprobe_site_set_state(site, state);
	}
}

/* Replace jumps by breakpoints, and cancel optimisations in progress. */
static void unoptimize_ops(struct list_head *ops)
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
	sites_remove_jumps(&jumps, &done, arch_unoptimize_kprobes);
	sites_leave_detours(&done, SITE_ARMED);
}

/* Is the site in one of the optimiser's lists? */
static bool site_is_listed(const struct kprobe_site *site)
{
	return !kprobe_ftrace(&site->kp) && !list_empty(&site->op.list);
}

/**
 * kprobe_unoptimize() - Replace jumps by breakpoints, and cancel optimisations
 * @batch: The sites, linked by their @batch. A site without a detour only leaves the
 *	optimiser's lists.
 *
 * Context: Process context, kprobe_mutex held.
 */
void kprobe_unoptimize(struct list_head *batch)
{
	struct kprobe_site *site;
	LIST_HEAD(ops);

	lockdep_assert_held(&kprobe_mutex);
	list_for_each_entry(site, batch, batch)
		if (site_has_detour(site) || site_is_listed(site))
			list_move_tail(&site->op.list, &ops);
	unoptimize_ops(&ops);
}

/**
 * kprobe_disarm_jumps() - Restore the text where there are jumps
 * @batch: The sites, linked by their @batch. Sites with a jump are removed from it.
 * @restored: Receives these sites, disarmed.
 *
 * Context: Process context, kprobe_mutex held.
 */
void kprobe_disarm_jumps(struct list_head *batch, struct list_head *restored)
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
	sites_remove_jumps(&jumps, &done, arch_disarm_optimized_kprobes);
	sites_leave_detours(&done, SITE_DISARMED);
}

/**
 * kprobe_unoptimize_unsuitable() - Unoptimise sites whose detour no longer suits their probes
 * @batch: The sites.
 *
 * Context: Process context, kprobe_mutex held.
 */
void kprobe_unoptimize_unsuitable(struct list_head *batch)
{
	struct kprobe_site *site;
	LIST_HEAD(ops);

	list_for_each_entry(site, batch, batch)
		if (site_has_detour(site) && !arch_detour_suits(&site->op))
			list_move_tail(&site->op.list, &ops);
	unoptimize_ops(&ops);
}

/* The lowest address of a jump that could displace @addr. */
static unsigned long lowest_jump_to(unsigned long addr)
{
	return addr - min_t(unsigned long, addr, MAX_OPTIMIZED_LENGTH);
}

/**
 * kprobe_unoptimize_around() - Remove the jumps that displace the instructions of sites
 * @batch: The sites, which are about to be armed.
 *
 * Context: Process context, kprobe_mutex held.
 */
void kprobe_unoptimize_around(struct list_head *batch)
{
	struct kprobe_site *site, *other;
	LIST_HEAD(ops);

	list_for_each_entry(site, batch, batch) {
		other = kprobe_site_first_in(lowest_jump_to(site_addr(site)), site_addr(site));
		for (; other; other = kprobe_site_next_in(other, site_addr(site))) {
			if (!site_has_detour(other) ||
			    !arch_within_optimized_kprobe(&other->op, site->kp.addr))
				continue;
			other->unfit = -EEXIST;
			list_move_tail(&other->op.list, &ops);
		}
	}
	unoptimize_ops(&ops);
}

/**
 * kprobe_optimizer_retry_around() - Reconsider sites that a disarmed neighbour had blocked
 * @batch: The neighbours, no longer armed.
 *
 * Context: Process context, kprobe_mutex held.
 */
void kprobe_optimizer_retry_around(struct list_head *batch)
{
	struct kprobe_site *site, *other;

	list_for_each_entry(site, batch, batch) {
		other = kprobe_site_first_in(lowest_jump_to(site_addr(site)), site_addr(site));
		for (; other; other = kprobe_site_next_in(other, site_addr(site)))
			if (other->unfit == -EEXIST)
				kprobe_optimizer_consider(other);
	}
}

/**
 * kprobe_optimizer_retry_near() - Reconsider sites that may have lacked what another one used
 * @addr: The address of the site that is being freed.
 *
 * For an architecture whose jumps need more than the text that they displace.
 *
 * Context: Process context, kprobe_mutex held.
 */
void kprobe_optimizer_retry_near(unsigned long addr)
{
	unsigned long end = addr + KPROBE_JUMP_REACH;
	struct kprobe_site *site = kprobe_site_first_in(addr - KPROBE_JUMP_REACH, end);

	for (; site; site = kprobe_site_next_in(site, end))
		if (site->unfit && site->unfit != -EEXIST)
			kprobe_optimizer_consider(site);
}

/* --------------------------------------------- waiting, statistics, knob */

/**
 * wait_for_kprobe_optimizer() - Wait until the optimiser has no work left
 *
 * Context: Process context. May sleep for several grace periods of RCU-tasks.
 */
void wait_for_kprobe_optimizer(void)
{
	while (READ_ONCE(optimizer.busy)) {
		mod_delayed_work(system_unbound_wq, &optimizer_work, 0);
		flush_delayed_work(&optimizer_work);
	}
}
EXPORT_SYMBOL_IF_KUNIT(wait_for_kprobe_optimizer);

/* kprobe_optimizer_wait_bounded() - Wait for the optimiser, killable, at most 10 seconds */
void kprobe_optimizer_wait_bounded(void)
{
	if (!READ_ONCE(optimizer.busy))
		return;
	mod_delayed_work(system_unbound_wq, &optimizer_work, 0);
	wait_event_killable_timeout(optimizer.idle, !READ_ONCE(optimizer.busy), 10 * HZ);
}

/*
 * The values of kprobe_site.unfit in debugfs. Documentation/trace/kprobes.rst describes
 * them. The last entry is for all other values.
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
};

/* The largest of these numbers differ between architectures. */
static_assert(-EADDRINUSE == (s8)-EADDRINUSE && -EOPNOTSUPP == (s8)-EOPNOTSUPP);

static unsigned int unfit_reason(int unfit)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(reasons) - 1; i++)
		if (reasons[i].unfit == unfit)
			break;
	return i;
}

/**
 * kprobe_no_jump_reason() - Say why an armed site has no jump
 * @site: The site.
 *
 * Context: Process context, kprobe_mutex held.
 * Return: The reason, as in debugfs; NULL if there is a jump, or will be soon.
 */
const char *kprobe_no_jump_reason(const struct kprobe_site *site)
{
	lockdep_assert_held(&kprobe_mutex);
	if (site_has_detour(site))
		return NULL;
	return optimizer.allowed ? reasons[unfit_reason(site->unfit)].name : "disabled";
}

/**
 * kprobe_try_jump() - Find out if a site that is not armed could have a jump
 * @site: The site.
 * @no_jump: Set to the reason if it could not, as in debugfs; otherwise to NULL.
 *
 * Context: Process context, kprobe_mutex held. May sleep.
 * Return: false if the text must be analysed further: call again, after others had the mutex.
 */
bool kprobe_try_jump(struct kprobe_site *site, const char **no_jump)
{
	bool has_detour = arch_prepared_optinsn(&site->op.optinsn);
	int unfit;

	lockdep_assert_held(&kprobe_mutex);
	*no_jump = "disabled";
	if (!optimizer.allowed)
		return true;
	unfit = optimizer_learn_text(site);
	if (unfit > 0)
		return false;
	/*
	 * A detour that does not suit its probes any more is made anew once the site is armed:
	 * tasks may still be in this one.
	 */
	if (!unfit && has_detour && !arch_detour_suits(&site->op)) {
		*no_jump = "pending";
		return true;
	}
	if (!unfit) {
		scoped_guard(kprobe_text)
			unfit = site_prepare_detour(site);
		if (!has_detour)
			arch_remove_optimized_kprobe(&site->op);
	}
	*no_jump = unfit ? reasons[unfit_reason(unfit)].name : NULL;
	return true;
}

/**
 * kprobe_optimizer_show_reasons() - Show why sites have breakpoints and not jumps
 * @m: Receives one line for each reason.
 *
 * Context: Process context, kprobe_mutex held.
 */
void kprobe_optimizer_show_reasons(struct seq_file *m)
{
	unsigned long count[ARRAY_SIZE(reasons)] = { }, switched_off = 0;
	struct kprobe_site *site;

	lockdep_assert_held(&kprobe_mutex);
	for (site = kprobe_site_first_from(0); site; site = kprobe_site_next(site)) {
		if (!site_stays_breakpoint(site))
			continue;
		if (optimizer.allowed)
			count[unfit_reason(site->unfit)]++;
		else
			switched_off++;
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(reasons); i++)
		seq_printf(m, "no_jump_%s: %lu\n", reasons[i].name, count[i]);
	seq_printf(m, "no_jump_disabled: %lu\n", switched_off);
}

/* Apply a new value of the knob to all sites. */
static void optimizer_reconsider_all(void)
{
	struct kprobe_site *site;
	LIST_HEAD(ops);

	for (site = kprobe_site_first_from(0); site; site = kprobe_site_next(site)) {
		if (optimizer.allowed)
			kprobe_optimizer_consider(site);
		else if (site_has_detour(site) || site_is_listed(site))
			list_move_tail(&site->op.list, &ops);
	}
	unoptimize_ops(&ops);
}

static int optimizer_sysctl_handler(const struct ctl_table *table, int write, void *buffer,
				    size_t *length, loff_t *ppos)
{
	int value = READ_ONCE(optimizer.allowed);
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
	if (optimizer.allowed != value) {
		WRITE_ONCE(optimizer.allowed, value);
		optimizer_reconsider_all();
		if (value)
			pr_info("jumps are on: breakpoints become jumps in the background\n");
		else
			pr_info("jumps are off: set sysctl debug.kprobes-optimization to 1 for jumps\n");
	}
	return 0;
}

static struct ctl_table optimizer_sysctls[] = {
	{
		.procname	= "kprobes-optimization",
		.maxlen		= sizeof(int),
		.mode		= 0644,
		.proc_handler	= optimizer_sysctl_handler,
	},
};

static int __init optimizer_init(void)
{
	register_sysctl_init("debug", optimizer_sysctls);
	guard(mutex)(&kprobe_mutex);
	optimizer.ready = true;
	optimizer_kick();
	return 0;
}
subsys_initcall(optimizer_init);
