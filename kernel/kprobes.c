// SPDX-License-Identifier: GPL-2.0
/*
 * Kernel probes: registration and the dispatch of hits.
 *
 * Everything that changes which probes there are, or which of them are enabled,
 * is done in the same way: change the probes of all sites concerned, then let
 * settle() patch, in one batch, the sites whose text no longer suits their
 * probes. Only arming can fail; then the change is taken back and settled again.
 */
#include "kprobes/internal.h"

#include <linux/cpu.h>
#include <linux/export.h>
#include <linux/init.h>
#include <linux/jump_label.h>
#include <linux/kdebug.h>
#include <linux/kprobes_hit.h>
#include <linux/memory.h>
#include <linux/minmax.h>
#include <linux/notifier.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/sort.h>

#include <asm/sections.h>

/* Which probes and sites there are, and their states: see internal.h. */
DEFINE_MUTEX(kprobe_mutex);

DEFINE_PER_CPU(unsigned int, kprobe_context);

/* The knob "enabled" of debugfs. Written under kprobe_mutex. */
static bool all_enabled = true;

/* ------------------------------------------------------------------ hits */

static __always_inline void count_miss(struct kprobe *p)
{
	/* Several CPUs may miss at once, and none may be forgotten. */
	BUILD_BUG_ON(sizeof(p->nmissed) != sizeof(atomic_long_t));
	raw_atomic_long_inc((atomic_long_t *)&p->nmissed);
}

/**
 * kprobe_pre_handlers - Call the pre handlers of a site's probes
 * @site: The site that was hit.
 * @regs: The registers at the hit.
 *
 * Context: Any. Preemption is off, and kprobe_running() is @site.
 * Return: Non-zero if a handler has changed where execution goes on. The probes
 *	behind its one have not been asked.
 */
noinstr int kprobe_pre_handlers(struct kprobe *site, struct pt_regs *regs)
{
	struct kprobe *p;

	list_for_each_entry_lockless(p, &site->list, list)
		if (!kprobe_disabled(p) && kprobe_call_pre_handler(p, regs))
			return 1;
	return 0;
}

/**
 * kprobe_pre_handlers_nested - The same for a hit inside another one
 * @site: The site that was hit.
 * @regs: The registers at the hit.
 *
 * Probes that have not opted in to this with KPROBE_FLAG_REENTRANT miss the hit.
 *
 * Context: As kprobe_pre_handlers(), in a higher context level than the handler
 *	that was interrupted.
 * Return: As kprobe_pre_handlers().
 */
noinstr int kprobe_pre_handlers_nested(struct kprobe *site, struct pt_regs *regs)
{
	struct kprobe *p;

	list_for_each_entry_lockless(p, &site->list, list) {
		if (kprobe_disabled(p))
			continue;
		if (!(p->flags & KPROBE_FLAG_REENTRANT))
			count_miss(p);
		else if (kprobe_call_pre_handler(p, regs))
			return 1;
	}
	return 0;
}

/* Those of the probes that are enabled and have all flags that are in @need. */
static __always_inline void walk_post_handlers(struct kprobe *site, struct pt_regs *regs, u32 need)
{
	struct kprobe *p;

	list_for_each_entry_lockless(p, &site->list, list) {
		if (!p->post_handler || kprobe_disabled(p) || (p->flags & need) != need)
			continue;
		instrumentation_begin();
		p->post_handler(p, regs, 0);
		instrumentation_end();
	}
}

/**
 * kprobe_post_handlers - Call the post handlers of a site's probes
 * @site: The site whose instruction has run.
 * @regs: The registers after the instruction.
 * @flags: Passed on to the handlers; 0 at present.
 *
 * Context: As kprobe_pre_handlers().
 */
noinstr void kprobe_post_handlers(struct kprobe *site, struct pt_regs *regs, unsigned long flags)
{
	walk_post_handlers(site, regs, 0);
}

/**
 * kprobe_post_handlers_nested - The same for a hit inside another one
 * @site: The site whose instruction has run.
 * @regs: The registers after the instruction.
 *
 * A probe that has not opted in has missed the hit already.
 *
 * Context: As kprobe_pre_handlers_nested().
 */
noinstr void kprobe_post_handlers_nested(struct kprobe *site, struct pt_regs *regs)
{
	walk_post_handlers(site, regs, KPROBE_FLAG_REENTRANT);
}

/**
 * kprobes_inc_nmissed_count - Count a hit that was skipped
 * @p: The site that was hit.
 *
 * Context: Any, also noinstr. Preemption is off.
 */
noinstr void kprobes_inc_nmissed_count(struct kprobe *p)
{
	struct kprobe *probe;

	count_miss(p);
	list_for_each_entry_lockless(probe, &p->list, list)
		if (!kprobe_disabled(probe))
			count_miss(probe);
}

static struct kprobe busy_probe = {
	.addr = (kprobe_opcode_t *)&busy_probe,
};

/**
 * kprobe_busy_begin - Keep handlers from running on this CPU
 *
 * For code that must not be interrupted by a probe, and for those who share
 * handlers with probes. Hits are counted as missed until kprobe_busy_end(),
 * unless the probe may run in the higher context level that it is hit in.
 *
 * Context: Any. Returns with preemption off.
 */
notrace void __kprobes kprobe_busy_begin(void)
{
	preempt_disable_notrace();
	raw_cpu_write(kprobe_context, preempt_count());
	get_kprobe_ctlblk()->kprobe_status = KPROBE_HIT_ACTIVE;
	raw_cpu_write(current_kprobe, &busy_probe);
}

/**
 * kprobe_busy_end - End what kprobe_busy_begin() began
 *
 * Context: Any. Preemption is as before kprobe_busy_begin().
 */
notrace void __kprobes kprobe_busy_end(void)
{
	reset_current_kprobe();
	preempt_enable_notrace();
}

/* ------------------------------------------------- what suits the probes */

static void add_to_batch(struct kprobe_site *site, struct list_head *batch)
{
	if (list_empty(&site->batch))
		list_add_tail(&site->batch, batch);
}

static void forget_batch(struct list_head *batch)
{
	struct kprobe_site *site, *next;

	list_for_each_entry_safe(site, next, batch, batch)
		list_del_init(&site->batch);
}

static bool wants_to_be_armed(struct kprobe_site *site)
{
	struct kprobe *p;

	/* Calls in flight will return to a probed trampoline, whatever the knob says. */
	if (all_enabled || arch_trampoline_kprobe(&site->kp))
		list_for_each_entry(p, &site->kp.list, list)
			if (!kprobe_disabled(p))
				return true;
	return false;
}

static bool has_post_handler(const struct kprobe_site *site)
{
	struct kprobe *p;

	list_for_each_entry(p, &site->kp.list, list)
		if (p->post_handler)
			return true;
	return false;
}

/*
 * Let hits find what they need to know of the probes in the site itself. A back
 * end may ask for the site's post handler and call it later: once there is one it
 * stays, and finds no probe to call.
 */
static void settle_handlers(struct kprobe_site *site)
{
	struct kprobe *only = NULL;

	if (list_is_singular(&site->kp.list)) {
		only = list_first_entry(&site->kp.list, struct kprobe, list);
		if (kprobe_disabled(only) || !only->pre_handler)
			only = NULL;
	}
	WRITE_ONCE(site->only, only);
	WRITE_ONCE(site->direct, only ? only->number : 0);
	WRITE_ONCE(site->has_post, has_post_handler(site));
	if (site->has_post)
		WRITE_ONCE(site->kp.post_handler, kprobe_post_handlers);
}

/* What is left to do for a site that is not armed and shall not be. */
static void settle_idle_site(struct kprobe_site *site)
{
	bool used = !list_empty(&site->kp.list);

	switch (site->state) {
	case SITE_NEW:
		if (used)
			site_set_state(site, SITE_DISARMED);
		else
			site_destroy(site);
		break;
	case SITE_DYING:
		if (used)
			site_set_state(site, SITE_DISARMED);
		break;
	case SITE_DISARMED:
		if (!used) {
			site_set_state(site, SITE_DYING);
			site_retire(site);
		}
		break;
	case SITE_GONE:
		if (!used)
			site_retire(site);
		break;
	case SITE_ARMED:
	case SITE_OPTIMIZING:
	case SITE_JUMP:
		break;
	}
}

/**
 * settle - Patch the sites of a batch whose text does not suit their probes
 * @batch: Sites, linked by their @batch. It is empty on success.
 *
 * Context: Process context, kprobe_mutex held.
 * Return: 0, or an error of ftrace or -ENOMEM: then no site has been armed that
 *	was not. Without a site to be armed it does not fail.
 */
static int settle(struct list_head *batch)
{
	struct kprobe_site *site, *next;
	LIST_HEAD(to_disarm);
	LIST_HEAD(to_arm);
	int err;

	list_for_each_entry_safe(site, next, batch, batch) {
		bool armed = site_is_armed(site);

		settle_handlers(site);
		if (site->state != SITE_GONE && wants_to_be_armed(site)) {
			if (!armed || ftrace_site_needs_rearm(site))
				list_move_tail(&site->batch, &to_arm);
		} else if (armed) {
			list_move_tail(&site->batch, &to_disarm);
		}
	}

	err = arm_sites(&to_arm);
	disarm_sites(&to_disarm);
	unoptimize_unsuitable(batch);
	ftrace_relax_sites(batch);
	list_splice(&to_disarm, batch);
	list_splice(&to_arm, batch);
	if (err)
		return err;

	list_for_each_entry_safe(site, next, batch, batch) {
		list_del_init(&site->batch);
		if (site_is_armed(site))
			optimizer_consider(site);
		else
			settle_idle_site(site);
	}
	return 0;
}

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
	add_to_batch(site, batch);
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
	err = settle(batch);
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
 * kprobes_called_by_handler - Ask whether a handler is changing which probes there are
 *
 * It must not: that takes a mutex which the interrupted task may hold, and waits for
 * handlers to end.
 *
 * Context: Any.
 * Return: Whether this CPU runs a handler, or an interrupt in one.
 */
bool kprobes_called_by_handler(void)
{
	guard(preempt_notrace)();
	return kprobe_running();
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
			settle(&batch);
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

/**
 * kprobes_wait_for_handlers - Wait for those that run
 *
 * An expedited grace period interrupts CPUs that are busy. So has the patching
 * that comes before, and those who attach probes one by one have thousands of them.
 *
 * Context: Process context. When it returns, no handler runs any more of a probe
 *	that has been unlinked before.
 */
void kprobes_wait_for_handlers(void)
{
	synchronize_rcu_expedited();
}

/**
 * kprobes_wait_for_tasks - Wait for those in text that hits no longer lead through
 *
 * Context: Process context, no lock held. When it returns, no task is any more in a
 *	slot, a detour or the original text that it was on its way in before.
 */
void kprobes_wait_for_tasks(void)
{
	synchronize_rcu_tasks();
	cpus_read_lock();	/* CPUs on their way up are not watched */
	cpus_read_unlock();
}

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
				add_to_batch(site, &batch);
			} else if (!is_unlinked(kps[i])) {
				kps[i]->addr = NULL;
			}
			cond_resched_tasks_rcu_qs();
		}
		settle(&batch);
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
	add_to_batch(site_of(kp), &batch);
	settle(&batch);
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
	add_to_batch(site, &batch);
	err = settle(&batch);
	if (err) {
		WRITE_ONCE(p->flags, p->flags ^ KPROBE_FLAG_DISABLED);
		settle_handlers(site);
		forget_batch(&batch);
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

/* kprobes_enabled - Is the knob "enabled" on? */
bool kprobes_enabled(void)
{
	return READ_ONCE(all_enabled);
}

/**
 * kprobes_set_enabled - Turn the knob "enabled"
 * @on: Whether those probes that are enabled shall be armed.
 *
 * Context: Process context. May sleep.
 * Return: 0, or with nothing changed an error of ftrace.
 */
int kprobes_set_enabled(bool on)
{
	struct kprobe_site *site;
	LIST_HEAD(batch);
	int err;

	guard(mutex)(&kprobe_mutex);
	if (all_enabled == on)
		return 0;
	all_enabled = on;
	for (site = site_first_from(0); site; site = site_next(site))
		add_to_batch(site, &batch);
	err = settle(&batch);
	if (err) {
		all_enabled = !on;
		forget_batch(&batch);
		return err;
	}
	pr_info("all probes are switched %s\n", on ? "on" : "off");
	return 0;
}

/* ----------------------------------------------- text that comes and goes */

/**
 * kprobes_lose_text - Text is about to be freed
 * @start: Its first address.
 * @end: The address after its last. What is there is still mapped.
 *
 * Context: Process context, kprobe_mutex held.
 */
void kprobes_lose_text(unsigned long start, unsigned long end)
{
	struct kprobe_site *site;
	LIST_HEAD(armed);

	lockdep_assert_held(&kprobe_mutex);
	for (site = site_first_in(start, end); site; site = site_next_in(site, end))
		if (site_is_armed(site))
			add_to_batch(site, &armed);
	disarm_sites(&armed);
	forget_batch(&armed);
	for (site = site_first_in(start, end); site; site = site_next_in(site, end))
		if (site->state != SITE_GONE)
			site_lose_text(site);
	blacklist_remove(start, end);
}

/**
 * kprobe_free_init_mem - The kernel's init text is about to be freed
 *
 * Context: Process context, once, when no new probe can be registered there.
 */
void kprobe_free_init_mem(void)
{
	guard(mutex)(&kprobe_mutex);
	kprobes_lose_text((unsigned long)__init_begin, (unsigned long)__init_end);
}

/* ------------------------------------------------------- odds and the end */

/**
 * dump_kprobe - Print where a probe is
 * @kp: The probe or site.
 *
 * Context: Any, for a last message.
 */
void __kprobes dump_kprobe(struct kprobe *kp)
{
	pr_err("probe %pS (%s+%#x), flags %#x, missed %lu\n", kp->addr,
	       kp->symbol_name ?: "no symbol", kp->offset, kp->flags, kp->nmissed);
}

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
