// SPDX-License-Identifier: GPL-2.0
/*
 * Kernel probes: the public API, and registration as a transaction
 */
#include "kprobes/internal.h"

#include <linux/cpu.h>
#include <linux/export.h>
#include <linux/init.h>
#include <linux/jump_label.h>
#include <linux/kdebug.h>
#include <linux/memory.h>
#include <linux/minmax.h>
#include <linux/notifier.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/sort.h>

/* Which probes and sites there are, and their states: see internal.h. */
DEFINE_MUTEX(kprobe_mutex);

/* ---------------------------------------------------------- registration */

/**
 * struct kprobe_request - A probe on its way to be registered
 * @p:		The probe.
 * @where:	What its address has been resolved to.
 * @site:	The site there, from preparation on.
 * @addr:	The probe's address as the caller gave it, for undoing.
 * @pre_handler:	And its handlers,
 * @post_handler:	of which a kind of probes has its own,
 * @nmissed:	its count of missed hits,
 * @number:	the number of its last registration,
 * @flags:	its flags,
 * @opcode:	and what it displaced last.
 */
struct kprobe_request {
	struct kprobe *p;
	struct kprobe_address where;
	struct kprobe_site *site;
	kprobe_opcode_t *addr;
	kprobe_pre_handler_t pre_handler;
	kprobe_post_handler_t post_handler;
	unsigned long nmissed;
	u32 number;
	u32 flags;
	kprobe_opcode_t opcode;
};

/**
 * struct kprobe_transaction - Probes on their way to be registered together
 * @reqs:	The probes, in the order of the caller's array.
 * @num:	How many.
 * @kind:	What kind of probes they are.
 * @prepared:	How many @kind has prepared.
 * @good:	How many have passed all checks so far. The first one that has not is
 *		at this index: what comes after it is not looked at any more.
 * @err:	The error of that one, or 0.
 */
struct kprobe_transaction {
	struct kprobe_request *reqs;
	int num;
	const struct kprobe_kind *kind;
	int prepared;
	int good;
	int err;
};

static void fail_request(struct kprobe_transaction *ta, int i, int err)
{
	ta->good = i;
	ta->err = err;
}

/*
 * Unlink probes: what their links held is of no meaning. On the way they are in
 * a list of their own once, which finds those that are named twice.
 */
static int check_new_probes(struct kprobe **kps, int num)
{
	struct kprobe *again = NULL;
	LIST_HEAD(seen);
	int i;

	for (i = 0; i < num; i++) {
		if (site_of_probe(kps[i])) {
			again = kps[i];
			continue;
		}
		INIT_LIST_HEAD(&kps[i]->list);
		INIT_HLIST_NODE(&kps[i]->hlist);
	}
	for (i = 0; i < num && !again; i++) {
		if (list_empty(&kps[i]->list))
			list_add(&kps[i]->list, &seen);
		else
			again = kps[i];
	}
	while (!list_empty(&seen))
		list_del_init(seen.next);
	if (WARN_ONCE(again, "kprobe %pS is registered twice\n", again->addr ?:
		      (void *)again->pre_handler))
		return -EINVAL;
	return 0;
}

static int collect_probes(struct kprobe **kps, struct kprobe_transaction *ta)
{
	for (int i = 0; i < ta->num; i++) {
		struct kprobe *p = kps[i];

		ta->reqs[i] = (struct kprobe_request){
			.p	 = p,
			.addr	 = p->addr,
			.pre_handler  = p->pre_handler,
			.post_handler = p->post_handler,
			.nmissed = p->nmissed,
			.number	 = p->number,
			.flags	 = p->flags,
			.opcode	 = p->opcode,
		};
	}
	return check_new_probes(kps, ta->num);
}

static void resolve_requests(struct kprobe_transaction *ta)
{
	struct kprobe_address last = { };
	int err;

	for (int i = 0; i < ta->good; i++) {
		struct kprobe_request *req = &ta->reqs[i];

		err = kprobe_resolve(req->p, &req->where, &last);
		if (!err && ta->kind)
			err = ta->kind->prepare(req->p, &req->where);
		if (err)
			fail_request(ta, i, err);
		else
			ta->prepared++;
		cond_resched_tasks_rcu_qs();
	}
}

static int compare_requests(const void *a, const void *b)
{
	const struct kprobe_request *const *left = a, *const *right = b;

	if ((*left)->where.addr == (*right)->where.addr)
		return 0;
	return (*left)->where.addr < (*right)->where.addr ? -1 : 1;
}

/* The requests that are good so far, in the order of addresses: each function is decoded once. */
static struct kprobe_request **sort_requests(const struct kprobe_transaction *ta)
{
	struct kprobe_request **order;

	order = kvmalloc_array(ta->good, sizeof(*order), GFP_KERNEL);
	if (!order)
		return NULL;
	for (int i = 0; i < ta->good; i++)
		order[i] = &ta->reqs[i];
	sort(order, ta->good, sizeof(*order), compare_requests, NULL);
	return order;
}

static int prepare_site(struct kprobe_request *req, struct insn_cursor *cursor,
			struct list_head *batch)
{
	struct kprobe_site *site;
	int err;

	err = kprobe_check_insn(&req->where, cursor);
	if (err)
		return err;

	site = site_find(req->where.addr);
	if (!site) {
		site = site_create(req->where.addr, req->where.flags);
		if (IS_ERR(site))
			return PTR_ERR(site);
	}
	site_add_to_batch(site, batch);
	req->site = site;
	return req->p->post_handler ? arch_prepare_post_handler(&site->kp) : 0;
}

/* Make the sites of @num requests, with nobody else patching the text. */
static void prepare_few(struct kprobe_transaction *ta, struct kprobe_request **order, int num,
			struct insn_cursor *cursor, struct list_head *batch)
{
	int err;

	guard(cpus_read_lock)();	/* for architectures that patch their slots */
	jump_label_lock();
	mutex_lock(&text_mutex);
	for (int i = 0; i < num; i++) {
		if (order[i] - ta->reqs >= ta->good)
			continue;
		err = prepare_site(order[i], cursor, batch);
		if (err)
			fail_request(ta, order[i] - ta->reqs, err);
	}
	mutex_unlock(&text_mutex);
	jump_label_unlock();
}

/* What needs a search for symbols is asked first, under no lock but kprobe_mutex. */
static void check_places(struct kprobe_transaction *ta, struct kprobe_request **order, int num)
{
	struct blacklist_cursor cursor = { };
	int err;

	for (int i = 0; i < num; i++) {
		if (order[i] - ta->reqs >= ta->good)
			continue;
		err = kprobe_check_place(&order[i]->where, &cursor);
		if (err)
			fail_request(ta, order[i] - ta->reqs, err);
		cond_resched_tasks_rcu_qs();
	}
}

static int prepare_requests(struct kprobe_transaction *ta, struct list_head *batch)
{
	struct kprobe_request **order __free(kvfree) = NULL;
	struct insn_cursor cursor = { };
	int num = ta->good, err;

	if (!num)
		return ta->err;
	order = sort_requests(ta);
	if (!order)
		return -ENOMEM;
	check_places(ta, order, num);
	err = site_reserve(num);
	if (err)
		return err;
	for (int i = 0; i < num; i += SITES_AT_A_TIME) {
		prepare_few(ta, order + i, min(num - i, SITES_AT_A_TIME), &cursor, batch);
		cond_resched_tasks_rcu_qs();
	}
	return ta->err;
}

static void link_requests(const struct kprobe_transaction *ta)
{
	static u32 last_number;		/* kprobe_mutex */

	for (int i = 0; i < ta->num; i++) {
		struct kprobe_request *req = &ta->reqs[i];
		struct kprobe_site *site = req->site;
		struct kprobe *p = req->p;

		p->nmissed = 0;
		p->number = ++last_number;
		p->addr = site->kp.addr;
		p->opcode = site->kp.opcode;
		p->flags &= KPROBE_FLAG_DISABLED | KPROBE_FLAG_REENTRANT;
		p->flags |= req->where.flags | (site->kp.flags & KPROBE_FLAG_OPTIMIZED);
		list_add_rcu(&p->list, &site->kp.list);
	}
}

static int publish_requests(const struct kprobe_transaction *ta, struct list_head *batch)
{
	int err;

	link_requests(ta);
	err = kprobes_apply(batch);
	if (err)
		for (int i = 0; i < ta->num; i++)
			list_del_rcu(&ta->reqs[i].p->list);
	return err;
}

static void restore_requests(const struct kprobe_transaction *ta)
{
	for (int i = 0; i < ta->num; i++) {
		const struct kprobe_request *req = &ta->reqs[i];
		struct kprobe *p = req->p;

		INIT_LIST_HEAD(&p->list);
		p->addr = req->addr;
		p->pre_handler = req->pre_handler;
		p->post_handler = req->post_handler;
		p->nmissed = req->nmissed;
		p->number = req->number;
		p->flags = req->flags;
		p->opcode = req->opcode;
	}
}

/**
 * kprobes_register - Register several probes of a kind, all or none
 * @kps: The probes.
 * @num: How many, at least 1.
 * @kind: What is to be done for each beside; NULL for plain probes.
 *
 * Context: Process context. May sleep.
 * Return: As register_kprobes(), or an error of @kind->prepare().
 */
int kprobes_register(struct kprobe **kps, int num, const struct kprobe_kind *kind)
{
	struct kprobe_request *reqs __free(kvfree) = NULL;
	struct kprobe_transaction ta = { .num = num, .kind = kind, .good = num };
	bool published = false;
	LIST_HEAD(batch);
	int err;

	if (num <= 0)
		return -EINVAL;
	if (kprobes_called_by_handler())
		return -EDEADLK;
	reqs = kvcalloc(num, sizeof(*reqs), GFP_KERNEL);
	if (!reqs)
		return -ENOMEM;

	ta.reqs = reqs;
	scoped_guard(mutex, &kprobe_mutex) {
		err = collect_probes(kps, &ta);
		if (err)
			return err;
		resolve_requests(&ta);
		err = prepare_requests(&ta, &batch);
		if (!err) {
			err = publish_requests(&ta, &batch);
			published = true;
		}
		if (err)
			kprobes_apply_removal(&batch);
	}
	if (!err)
		return 0;
	if (published)
		kprobes_wait_for_handlers();
	restore_requests(&ta);
	if (kind)
		kind->undo(kps, ta.prepared);
	return err;
}

/**
 * register_kprobes - Register several probes, all or none
 * @kps: The probes, see register_kprobe().
 * @num: How many, at least 1.
 *
 * The text is patched for all of them together, which is much cheaper than one
 * by one. Some handlers may run before all are armed, and, should arming fail,
 * before the call returns.
 *
 * Context: Process context. May sleep.
 * Return: As register_kprobe(), for the first probe of the array that is refused;
 *	and -EINVAL if @num is not positive.
 */
int register_kprobes(struct kprobe **kps, int num)
{
	return kprobes_register(kps, num, NULL);
}
EXPORT_SYMBOL_GPL(register_kprobes);

/**
 * register_kprobe - Register a probe
 * @p: The probe: @symbol_name or @addr, @offset, handlers and flags are set, the
 *	rest is zero.
 *
 * Context: Process context. May sleep. The handlers may run before it returns.
 * Return: 0, or with nothing changed
 *	-EINVAL if @symbol_name and @addr are both given, or neither; if the
 *	address is not in the text of the kernel or of a module, or is where no
 *	probe may be; if @p is registered already;
 *	-ENOENT if there is no such symbol or no symbol covers the address, or
 *	its module is on its way out or its init text has been freed;
 *	-EILSEQ if no instruction starts at the address;
 *	-EOPNOTSUPP if the instruction cannot be probed;
 *	-EDEADLK if a handler calls;
 *	-ENOMEM; or an error of ftrace, like -EBUSY.
 */
int register_kprobe(struct kprobe *p)
{
	return register_kprobes(&p, 1);
}
EXPORT_SYMBOL_GPL(register_kprobe);

/* Has list_del_rcu() taken the probe out of a site's list, and nothing followed? */
static bool is_unlinked(const struct kprobe *p)
{
	return p->list.prev == LIST_POISON2;
}

/**
 * unregister_kprobes - Unregister several probes
 * @kps: The probes. Of one that is not registered, @addr is cleared.
 * @num: How many. Nothing is done if it is not positive.
 *
 * When it returns, no handler of theirs runs or will run, and they are the
 * caller's to free. A handler cannot call: that is warned of, and nothing is done.
 *
 * Context: Process context. Waits for one grace period, an expedited one.
 */
void unregister_kprobes(struct kprobe **kps, int num)
{
	bool found = false;
	LIST_HEAD(batch);

	if (WARN_ONCE(kprobes_called_by_handler(), "a handler cannot unregister probes\n"))
		return;
	scoped_guard(mutex, &kprobe_mutex) {
		for (int i = 0; i < num; i++) {
			struct kprobe_site *site = site_of_probe(kps[i]);

			if (site) {
				found = true;
				kps[i]->addr = site->kp.addr;
				kps[i]->flags &= ~KPROBE_FLAG_OPTIMIZED;
				list_del_rcu(&kps[i]->list);
				site_add_to_batch(site, &batch);
			} else if (!is_unlinked(kps[i])) {
				kps[i]->addr = NULL;
			}
			cond_resched_tasks_rcu_qs();
		}
		kprobes_apply_removal(&batch);
	}
	if (!found)
		return;

	kprobes_wait_for_handlers();
	for (int i = 0; i < num; i++)
		if (is_unlinked(kps[i]))
			INIT_LIST_HEAD(&kps[i]->list);
}
EXPORT_SYMBOL_GPL(unregister_kprobes);

/* A site's own kprobe has no owner who could free it: disable the probes there. */
static bool disable_if_site(struct kprobe *kp)
{
	struct kprobe *p;
	LIST_HEAD(batch);

	guard(mutex)(&kprobe_mutex);
	if (!kp->addr || get_kprobe(kp->addr) != kp)
		return false;
	list_for_each_entry(p, &kp->list, list)
		WRITE_ONCE(p->flags, p->flags | KPROBE_FLAG_DISABLED);
	site_add_to_batch(site_of(kp), &batch);
	kprobes_apply_removal(&batch);
	return true;
}

/**
 * unregister_kprobe - Unregister a probe
 * @p: The probe. An architecture that finds out too late that no probe may be at
 *	an address passes what get_kprobe() returned: then the probes there are
 *	disabled, and stay their owners' to unregister.
 *
 * Context: As unregister_kprobes().
 */
void unregister_kprobe(struct kprobe *p)
{
	if (kprobes_called_by_handler() || !disable_if_site(p))
		unregister_kprobes(&p, 1);
}
EXPORT_SYMBOL_GPL(unregister_kprobe);

/* --------------------------------------------------------------- enabling */

static int set_probe_disabled(struct kprobe *p, struct kprobe_site *site, u32 disabled)
{
	LIST_HEAD(batch);
	int err;

	if ((p->flags & KPROBE_FLAG_DISABLED) == disabled)
		return 0;
	WRITE_ONCE(p->flags, p->flags ^ KPROBE_FLAG_DISABLED);
	site_add_to_batch(site, &batch);
	err = kprobes_apply(&batch);
	if (err) {
		WRITE_ONCE(p->flags, p->flags ^ KPROBE_FLAG_DISABLED);
		kprobes_apply_removal(&batch);
	}
	return err;
}

/**
 * enable_kprobe - Let a disabled probe be hit again
 * @kp: The probe.
 *
 * Context: Process context. May sleep.
 * Return: 0, also if it is not disabled; -EINVAL if it is not registered or its
 *	text is gone; -EDEADLK if a handler calls; an error of ftrace.
 */
int enable_kprobe(struct kprobe *kp)
{
	struct kprobe_site *site;

	if (kprobes_called_by_handler())
		return -EDEADLK;
	guard(mutex)(&kprobe_mutex);
	site = site_of_probe(kp);
	if (!site || kprobe_gone(kp))
		return -EINVAL;
	return set_probe_disabled(kp, site, 0);
}
EXPORT_SYMBOL_GPL(enable_kprobe);

/**
 * disable_kprobe - Let a probe stay registered, but not be hit
 * @kp: The probe.
 *
 * A handler may still run on another CPU when it returns. A probe whose text is
 * gone stays as it is.
 *
 * Context: Process context. May sleep.
 * Return: 0, also if it is disabled; -EINVAL if it is not registered; -EDEADLK if a
 *	handler calls.
 */
int disable_kprobe(struct kprobe *kp)
{
	struct kprobe_site *site;

	if (kprobes_called_by_handler())
		return -EDEADLK;
	guard(mutex)(&kprobe_mutex);
	site = site_of_probe(kp);
	if (!site)
		return -EINVAL;
	return kprobe_gone(kp) ? 0 : set_probe_disabled(kp, site, KPROBE_FLAG_DISABLED);
}
EXPORT_SYMBOL_GPL(disable_kprobe);

/* ---------------------------------------------------------------- set-up */

int __weak arch_prepare_post_handler(struct kprobe *p)
{
	return 0;
}

int __weak arch_trampoline_kprobe(struct kprobe *p)
{
	return 0;
}

int __weak __kprobes kprobe_exceptions_notify(struct notifier_block *self, unsigned long val,
					      void *data)
{
	return NOTIFY_DONE;
}

static struct notifier_block exceptions_nb = {
	.notifier_call = kprobe_exceptions_notify,
	.priority = INT_MAX,
};

static int __init init_kprobes(void)
{
	int err;

	sites_init();
	slots_init();
	blacklist_init();
	err = arch_init_kprobes();
	if (!err)
		err = register_die_notifier(&exceptions_nb);
	return err ?: kprobes_init_modules();
}
early_initcall(init_kprobes);
