// SPDX-License-Identifier: GPL-2.0
/*
 * Kernel probes: the public API and the registration transaction
 */
#include "kprobes/internal.h"

#include <linux/err.h>
#include <linux/export.h>
#include <linux/init.h>
#include <linux/irq_work.h>
#include <linux/kdebug.h>
#include <linux/list_sort.h>
#include <linux/notifier.h>
#include <linux/ratelimit.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include <kunit/visibility.h>

/* Serialises registration. Guards the probes, the sites and their states. */
DEFINE_MUTEX(kprobe_mutex);

/* A test makes the copies of a probe without registering it. */
EXPORT_SYMBOL_IF_KUNIT(kprobe_mutex);

void kprobe_text_lock(void)
{
	cpus_read_lock();
	jump_label_lock();
	mutex_lock(&text_mutex);
}
EXPORT_SYMBOL_IF_KUNIT(kprobe_text_lock);

void kprobe_text_unlock(void)
{
	mutex_unlock(&text_mutex);
	jump_label_unlock();
	cpus_read_unlock();
}
EXPORT_SYMBOL_IF_KUNIT(kprobe_text_unlock);

/* ---------------------------------------------------------- registration */

/* A probe that is being registered */
struct kprobe_request {
	struct kprobe *p;
	struct kprobe before;		/* as its caller gave it, to be restored on failure */
	struct kprobe_address where;	/* the address that it was resolved to */
	struct kprobe_site *site;	/* the site at that address, from preparation on */
	struct list_head by_addr;	/* in the list of the requests in address order */
};

/* Probes that are being registered together */
struct kprobe_transaction {
	struct kprobe_request *reqs;	/* in the order of the caller's array */
	int num;			/* of probes */
	const struct kprobe_kind *kind;	/* NULL for plain probes */
	int prepared;			/* the number of probes that @kind has prepared */
	/* The index of the first probe that failed a check: later ones are not checked. Or @num. */
	int good;
	int err;			/* of that probe, or 0 */
	struct list_head batch;		/* the sites of the probes */
};

static int kprobes_set_failed(struct kprobe_transaction *ta, int i, int err)
{
	ta->good = i;
	ta->err = err;
	return err;
}

/*
 * Initialise the links of probes that are not registered. A private list that holds
 * each probe for a moment reveals a probe that the array names twice.
 */
static int kprobes_collect_requests(struct kprobe **kps, struct kprobe_transaction *ta)
{
	struct kprobe_request *reqs = ta->reqs;
	int i, again = -1;
	LIST_HEAD(seen);

	for (i = 0; i < ta->num; i++) {
		if (!kps[i]) {
			reqs[i].where.why = "a NULL pointer in the array";
			return kprobes_set_failed(ta, i, -EINVAL);
		}
		/* One whose unregistration is under way has links that hits follow. */
		if (kprobe_site_of_probe(kps[i]) || kprobe_is_unlinked(kps[i])) {
			again = i;
			continue;
		}
		INIT_LIST_HEAD(&kps[i]->list);
		INIT_HLIST_NODE(&kps[i]->hlist);
	}
	for (i = 0; i < ta->num && again < 0; i++) {
		if (list_empty(&kps[i]->list))
			list_add(&kps[i]->list, &seen);
		else
			again = i;
	}
	while (!list_empty(&seen))
		list_del_init(seen.next);
	if (again < 0)
		return 0;
	WARN_ONCE(1, "kprobe %pS is registered twice\n", kps[again]->addr ?:
		  (void *)kps[again]->pre_handler);
	reqs[again].where.why = "the probe is registered, or twice in the array";
	return kprobes_set_failed(ta, again, -EINVAL);
}

static void kprobes_resolve_requests(struct kprobe **kps, struct kprobe_transaction *ta)
{
	int err;

	for (int i = 0; i < ta->good; i++) {
		struct kprobe_request *req = &ta->reqs[i];

		req->p = kps[i];
		req->before = *kps[i];
		err = kprobe_resolve(req->p, &req->where);
		if (!err && ta->kind)
			err = ta->kind->prepare(req->p, &req->where);
		if (err)
			kprobes_set_failed(ta, i, err);
		cond_resched_tasks_rcu_qs();
	}
	ta->prepared = ta->good;
}

static int kprobe_request_cmp(void *unused, const struct list_head *a, const struct list_head *b)
{
	return list_entry(a, struct kprobe_request, by_addr)->where.addr >
	       list_entry(b, struct kprobe_request, by_addr)->where.addr;
}

/* Symbol searches are slow: kprobe_check_place() does them under no lock but kprobe_mutex. */
static int kprobe_prepare_site(struct kprobe_request *req, struct kprobe_cursor *cursor,
			       struct list_head *batch)
{
	struct kprobe_site *site;
	struct kprobe *kp;
	int err = kprobe_check_place(&req->where, cursor);

	if (err)
		return err;
	/* A slot is text: nobody else patches any while it is written. */
	guard(kprobe_text)();
	err = kprobe_check_insn(&req->where, cursor);
	if (err)
		return err;
	kp = get_kprobe((void *)req->where.addr);
	site = kp ? site_of(kp) : kprobe_site_create(req->where.addr, req->where.flags);
	if (IS_ERR(site))
		return PTR_ERR(site);
	site_add_to_batch(site, batch);
	req->site = site;
	return req->p->post_handler ? arch_prepare_post_handler(&site->kp) : 0;
}

/* In address order, so that each function is decoded only once. */
static void kprobes_prepare_sites(struct kprobe_transaction *ta)
{
	struct kprobe_cursor cursor = { };
	struct kprobe_request *req;
	LIST_HEAD(order);
	int err;

	for (int i = 0; i < ta->good; i++)
		list_add_tail(&ta->reqs[i].by_addr, &order);
	list_sort(NULL, &order, kprobe_request_cmp);
	list_for_each_entry(req, &order, by_addr) {
		if (req - ta->reqs >= ta->good)
			continue;
		err = kprobe_prepare_site(req, &cursor, &ta->batch);
		if (err)
			kprobes_set_failed(ta, req - ta->reqs, err);
		cond_resched_tasks_rcu_qs();
	}
}

/* All that is done to register probes before somebody else sees them. */
static int kprobes_prepare(struct kprobe **kps, struct kprobe_transaction *ta)
{
	int err;

	INIT_LIST_HEAD(&ta->batch);
	err = kprobes_collect_requests(kps, ta) ?: kprobe_site_reserve(ta->num);
	if (err)
		return err;
	kprobes_resolve_requests(kps, ta);
	kprobes_prepare_sites(ta);
	return ta->err;
}

/* Link the probes, so that hits find them, and arm their sites. */
static int kprobes_publish(struct kprobe_transaction *ta)
{
	int err;

	for (int i = 0; i < ta->num; i++) {
		struct kprobe_request *req = &ta->reqs[i];
		struct kprobe_site *site = req->site;
		struct kprobe *p = req->p;

		p->nmissed = 0;
		p->addr = site->kp.addr;
		p->opcode = site->kp.opcode;
		p->ainsn = site->kp.ainsn;
		p->flags &= KPROBE_FLAG_DISABLED | KPROBE_FLAG_REENTRANT;
		p->flags |= req->where.flags | (site->kp.flags & KPROBE_FLAG_OPTIMIZED);
		kprobe_link(p, site);
	}
	err = kprobes_apply(&ta->batch, true);
	if (err)
		for (int i = 0; i < ta->num; i++)
			kprobe_unlink(ta->reqs[i].p);
	return err;
}

/*
 * A hit may still use a probe that was unlinked, and its links: wait. A probe that was not
 * registered, or is named a second time, loses its @addr when it is unregistered.
 */
static void kprobes_finish_unlinking(struct kprobe **kps, int num, bool unregistering)
{
	bool found = false;

	for (int i = 0; i < num; i++)
		found |= kps[i] && kprobe_is_unlinked(kps[i]);
	if (found)
		kprobes_wait_for_handlers();
	for (int i = 0; i < num; i++) {
		struct kprobe *p = kps[i];

		if (p && kprobe_is_unlinked(p)) {
			p->ainsn = (struct arch_specific_insn){ };
			INIT_LIST_HEAD(&p->list);
		} else if (p && unregistering) {
			p->addr = NULL;
		}
	}
}

static void kprobes_restore_requests(const struct kprobe_transaction *ta)
{
	for (int i = 0; i < ta->num; i++) {
		const struct kprobe_request *req = &ta->reqs[i];

		if (!req->p)
			break;
		*req->p = req->before;
		/* Callers look up symbols by what is refused, as those of data. */
		if (req->p->symbol_name && i <= ta->good && i < ta->prepared)
			req->p->addr = (kprobe_opcode_t *)req->where.addr;
	}
}

/* A kernel with debugfs has another one, which keeps the refusal. */
int __weak kprobe_refusals_add(const struct kprobe *p, int err, const char *why)
{
	return err;
}

/* kprobes_register() - register_kprobes() for a @kind; also returns errors of @kind->prepare() */
int kprobes_register(struct kprobe **kps, int num, const struct kprobe_kind *kind)
{
	struct kprobe_request *reqs __free(kvfree) = NULL;
	struct kprobe_transaction ta = { .num = num, .kind = kind, .good = num };
	int err;

	if (num <= 0)
		return kprobe_refusals_add(NULL, -EINVAL, "the number of probes is not positive");
	if (kprobes_must_not_wait())
		return kprobe_refusals_add(kps[0], -EDEADLK, NULL);
	reqs = kvcalloc(num, sizeof(*reqs), GFP_KERNEL | __GFP_NOWARN);
	if (!reqs)
		return kprobe_refusals_add(kps[0], -ENOMEM, NULL);

	ta.reqs = reqs;
	kprobes_finish_unlinking(kps, num, false);
	scoped_guard(mutex, &kprobe_mutex) {
		err = kprobes_prepare(kps, &ta) ?: kprobes_publish(&ta);
		if (err)
			kprobes_apply_removal(&ta.batch);
	}
	if (!err)
		return 0;
	kprobes_finish_unlinking(kps, num, false);
	kprobes_restore_requests(&ta);
	if (kind && kind->undo)
		kind->undo(kps, ta.prepared);
	if (ta.good < num)
		return kprobe_refusals_add(kps[ta.good], err, reqs[ta.good].where.why);
	return kprobe_refusals_add(num == 1 ? kps[0] : NULL, err, NULL);
}

/*
 * kprobe_try() - Prepare a probe as if to register it, and undo that; kprobe_mutex is held
 *
 * @kind only checks the probe, and is not called to undo that. Sets @where to the address that the
 * probe was resolved to, or why it would be refused; and *@no_jump as kprobe_try_jump() does, or to
 * NULL for other sites. Returns what register_kprobe() would return, if arming did not fail; or
 * -EAGAIN from kprobe_try_jump().
 */
int kprobe_try(struct kprobe *p, const struct kprobe_kind *kind, struct kprobe_address *where,
	       const char **no_jump)
{
	struct kprobe_request req = { };
	struct kprobe_transaction ta = { .reqs = &req, .num = 1, .good = 1, .kind = kind };
	int err;

	*no_jump = NULL;
	err = kprobes_prepare(&p, &ta);
	if (!err) {
		if (!kprobe_ftrace(&req.site->kp))
			err = kprobe_try_jump(req.site, no_jump);
		/* Nothing changes for a site that was there before. */
		if (!list_empty(&req.site->kp.list))
			list_del_init(&req.site->batch);
	}
	kprobes_apply_removal(&ta.batch);
	*where = req.where;
	return err;
}

/**
 * register_kprobes() - Register several probes, all or none
 * @kps: The probes, see register_kprobe().
 * @num: The number of probes, at least 1.
 *
 * All probes share one text update, which is much cheaper than one update each.
 * Handlers may run before all probes are armed and, if arming fails, before the
 * call returns.
 *
 * Context: Process context. May sleep.
 * Return: See register_kprobe(), for the first probe of the array that is refused.
 *	-EINVAL also if @num is not positive, or a pointer in the array is NULL.
 */
int register_kprobes(struct kprobe **kps, int num)
{
	return kprobes_register(kps, num, NULL);
}
EXPORT_SYMBOL_GPL(register_kprobes);

/**
 * register_kprobe() - Register a probe
 * @p: The probe. The caller sets @symbol_name or @addr, @offset and the handlers,
 *	and clears the rest.
 *
 * Context: Process context. May sleep. The handlers may run before it returns.
 * Return: 0 on success. On failure nothing has changed, but for @addr: it is what the symbol
 *	was found to be, and must be cleared before another attempt.
 *	-EINVAL if @symbol_name and @addr are both given, or neither; if the address
 *	is not in the text of the kernel or of a module, or must not be probed;
 *	if @p is already registered;
 *	-ENOENT if the symbol does not exist, no symbol covers the address, its module
 *	is being unloaded, or its init text has been freed;
 *	-EILSEQ if no instruction starts at the address, or ftrace patches it with the one before;
 *	-EOPNOTSUPP if the instruction cannot be probed;
 *	-EDEADLK if the caller is a handler or must not sleep;
 *	-ENOMEM if memory is short; or an error of ftrace, such as -EBUSY.
 */
int register_kprobe(struct kprobe *p)
{
	return register_kprobes(&p, 1);
}
EXPORT_SYMBOL_GPL(register_kprobe);

/* Follow up what was done to probes without kprobe_mutex. Returns false if memory was short. */
static bool kprobes_follow_up(void)
{
	struct kprobe_site *site;
	bool complete = true;
	LIST_HEAD(batch);

	guard(mutex)(&kprobe_mutex);
	for_each_site(site) {
		if (!READ_ONCE(site->stale))
			continue;
		site_add_to_batch(site, &batch);
		if (!READ_ONCE(site->kp.post_handler) || !site_is_armed(site) ||
		    kprobe_ftrace(&site->kp))
			continue;
		guard(kprobe_text)();
		complete &= !arch_prepare_post_handler(&site->kp);
	}
	kprobes_apply_removal(&batch);
	return complete;
}

static void kprobes_clean_up(struct work_struct *unused)
{
	/* The next hit that finds a post handler and no copy asks again: not all the time. */
	if (!kprobes_follow_up())
		schedule_timeout_idle(HZ);
}

static DECLARE_WORK(clean_up_work, kprobes_clean_up);

static void kprobes_queue_clean_up(struct irq_work *work)
{
	queue_work(system_dfl_wq, &clean_up_work);
}

/* On PREEMPT_RT a thread runs others, which is parked before its CPU goes off line. */
static struct irq_work clean_up_irq_work = IRQ_WORK_INIT_HARD(kprobes_queue_clean_up);

/* kprobes_clean_up_later() - Let a worker call kprobes_clean_up(). Any context. */
void __kprobes kprobes_clean_up_later(void)
{
	kprobe_queue_irq_work(&clean_up_irq_work);
}

/* Unregister a probe for a caller that must not wait. */
static void kprobe_drop(struct kprobe *p)
{
	struct kprobe_site *site = kprobe_unlink(p);

	kprobes_clean_up_later();
	if (!site && !kprobe_is_unlinked(p))
		p->addr = NULL;
	WARN_RATELIMIT(IS_ERR(site), "kprobes: an NMI cannot unregister %pS now: it stays\n",
		       p->addr);
}

/**
 * unregister_kprobes() - Unregister several probes
 * @kps: The probes. The call clears @addr of a probe that is not registered, or that the
 *	array names twice.
 * @num: The number of probes. Nothing is done if it is not positive.
 *
 * A NULL pointer in the array is passed over.
 *
 * After the call no handler of the probes runs or will run, and the caller may
 * free them. A call from a handler, or from code that must not sleep, triggers a
 * warning: no later hit calls a handler, but one that runs already is not waited for.
 *
 * Context: Process context. Waits for one expedited grace period.
 */
void unregister_kprobes(struct kprobe **kps, int num)
{
	struct kprobe_site *site;
	LIST_HEAD(batch);

	if (kprobes_must_not_wait()) {
		WARN_RATELIMIT(1, "kprobes: handlers and atomic code must not unregister probes: %s\n",
			       "they may still run");
		for (int i = 0; i < num; i++)
			if (kps[i])
				kprobe_drop(kps[i]);
		return;
	}
	scoped_guard(mutex, &kprobe_mutex) {
		for (int i = 0; i < num; i++) {
			site = kps[i] ? kprobe_unlink(kps[i]) : NULL;
			if (!IS_ERR_OR_NULL(site))
				site_add_to_batch(site, &batch);
			cond_resched_tasks_rcu_qs();
		}
		kprobes_apply_removal(&batch);
	}
	kprobes_finish_unlinking(kps, num, true);
}
EXPORT_SYMBOL_GPL(unregister_kprobes);

/**
 * unregister_kprobe() - Unregister a probe
 * @p: The probe. An architecture that finds out too late that an address must not
 *	be probed passes the result of get_kprobe(): the call then disables the
 *	probes there, and their owners still have to unregister them.
 *
 * Context: See unregister_kprobes(). An architecture that passes the result of get_kprobe() may
 *	be in an exception of the probed code, with interrupts off: sh is.
 */
void unregister_kprobe(struct kprobe *p)
{
	if (!p || !kprobes_disable_all(p))
		unregister_kprobes(&p, 1);
	else if (kprobes_must_not_wait())
		kprobes_clean_up_later();
	else
		kprobes_follow_up();
}
EXPORT_SYMBOL_GPL(unregister_kprobe);

/* --------------------------------------------------------------- enabling */

static int kprobe_set_disabled(struct kprobe *p, u32 disabled)
{
	struct kprobe_site *site;
	LIST_HEAD(batch);
	int err;

	if (kprobes_must_not_wait())
		return -EDEADLK;
	guard(mutex)(&kprobe_mutex);
	site = kprobe_site_of_probe(p);
	if (!site)
		return -EINVAL;
	if (kprobe_gone(p))
		return disabled ? 0 : -EINVAL;
	if ((p->flags & KPROBE_FLAG_DISABLED) == disabled)
		return 0;
	kprobe_change_flag(p, KPROBE_FLAG_DISABLED, disabled);
	site_add_to_batch(site, &batch);
	err = kprobes_apply(&batch, !disabled);
	if (err)
		kprobe_change_flag(p, KPROBE_FLAG_DISABLED, true);
	kprobes_apply_removal(&batch);
	return err;
}

/**
 * enable_kprobe() - Arm a disabled probe
 * @kp: The probe.
 *
 * Context: Process context. May sleep.
 * Return: 0, also if the probe is not disabled; -EINVAL if it is not registered or
 *	its text is gone; -EDEADLK if the caller is a handler or must not sleep;
 *	-ENOMEM; or an error of ftrace.
 */
int enable_kprobe(struct kprobe *kp)
{
	return kprobe_set_disabled(kp, 0);
}
EXPORT_SYMBOL_GPL(enable_kprobe);

/**
 * disable_kprobe() - Disarm a probe that stays registered
 * @kp: The probe.
 *
 * A handler may still run on another CPU when the call returns. The call does not
 * change a probe whose text is gone.
 *
 * Context: Process context. May sleep.
 * Return: 0, also if the probe is disabled; -EINVAL if it is not registered;
 *	-EDEADLK if the caller is a handler or must not sleep.
 */
int disable_kprobe(struct kprobe *kp)
{
	return kprobe_set_disabled(kp, KPROBE_FLAG_DISABLED);
}
EXPORT_SYMBOL_GPL(disable_kprobe);

/* --------------------------------------------------------- initialization */

int __weak arch_prepare_post_handler(struct kprobe *p)
{
	return 0;
}

int __weak __kprobes arch_trampoline_kprobe(struct kprobe *p)
{
	return 0;
}

int __weak __kprobes kprobe_exceptions_notify(struct notifier_block *self, unsigned long val,
					      void *data)
{
	return NOTIFY_DONE;
}

static struct notifier_block kprobe_exceptions_nb = {
	.notifier_call = kprobe_exceptions_notify,
	.priority = INT_MAX,
};

static int __init init_kprobes(void)
{
	kprobe_sites_init();
	kprobe_blacklist_init();
	return register_die_notifier(&kprobe_exceptions_nb) ?: arch_init_kprobes();
}
early_initcall(init_kprobes);
