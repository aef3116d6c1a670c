/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Sites, how a hit finds that of its address, calls of its handlers, and misses
 *
 * The functions call no function that could be probed, except handlers.
 */
#ifndef _LINUX_KPROBES_SITE_H
#define _LINUX_KPROBES_SITE_H

#include <linux/atomic.h>
#include <linux/build_bug.h>
#include <linux/hash.h>
#include <linux/instrumentation.h>
#include <linux/kprobes.h>
#include <linux/list.h>
#include <linux/rbtree.h>
#include <linux/rculist.h>

/* Life of a site; site_transitions[] has the transitions. */
enum kprobe_site_state {
	/* Its text is not patched: it is new, its probes are disabled, or the knob is off. */
	SITE_DISARMED,
	/* A breakpoint or an ftrace call reaches its probes. */
	SITE_ARMED,
	/*
	 * A breakpoint reaches its probes, and displaced instructions run in the detour. The
	 * optimiser waits until no task is in displaced text or on another path to it.
	 */
	SITE_OPTIMIZING,
	/* A jump to the detour reaches its probes. */
	SITE_JUMP,
	/* The last probe has left. CPUs may be in its slots; a new probe there reuses it. */
	SITE_DYING,
	/* Its text went away. It stays until its probes have left and its slots may be freed. */
	SITE_GONE,
};

/*
 * A probed address. kprobe_mutex guards the fields, which a hit reads without it.
 *
 * Those after @op take the place of fields of @kp that only callers' probes need: @hlist,
 * @symbol_name, @offset, @fault_handler and @break_handler. A site that is probed through ftrace
 * ends after @kp.
 *
 * Invariant: a site is in the ordered index from its creation until it is to be freed, and
 * in the hash unless it is gone. The hash has at most one site for an address.
 */
struct kprobe_site {
	/*
	 * The probe whose handlers a hit calls: the only probe, if it is enabled, else @kp,
	 * whose handlers call those of each probe.
	 */
	struct kprobe *called;
	/* Why there is no jump: an error of the architecture or a value of optimizer.c; or 0. */
	s8 unfit;
	u8 state;		/* enum kprobe_site_state, by kprobe_site_set_state() */
	bool has_post;		/* a probe has a post handler */
	bool claimed;		/* the other ftrace_ops has the address, too, to exclude rivals */
	/*
	 * For kprobes_clean_up(): a probe has left, was disabled or got a post handler without
	 * kprobe_mutex.
	 */
	bool stale;
	struct rb_node node;	/* in the ordered index */
	union {
		/*
		 * The architecture's view. Its @addr and @opcode are constant. Its @post_handler
		 * is set when the first probe has one (by a hit, if that was set after
		 * registration), and stays set. Its @list is the head of the probes, newest first,
		 * read under RCU.
		 */
		struct kprobe kp;
#ifdef CONFIG_OPTPROBES
		/* The view of architectures that can put a jump there. */
		struct optimized_kprobe op;
#endif
		struct list_head batch;		/* in the batch of a call */
		struct {
			u8 before_symbol_name[offsetof(struct kprobe, symbol_name)];
			/*
			 * The ftrace_ops with which the site is armed, which does not change
			 * meanwhile, and whose calls alone are hits; or NULL. A hit reads it by a
			 * plain access: a marked one would cost an instruction. It is one word,
			 * read once, and a hit that sees the old value comes before the change.
			 */
			struct ftrace_ops *ops;
			/*
			 * Hits between kprobe_busy_begin() and kprobe_busy_end(). Those in
			 * interrupts of such a section, and those that a probe has missed as a
			 * handler was running, are in @kp.nmissed.
			 */
			atomic_t missed_busy;
		};
		struct {
			u8 before_fault_handler[offsetof(struct kprobe, fault_handler)];
			struct list_head retired;	/* in a list of sites to be freed */
		};
	};
};

static_assert(!offsetof(struct kprobe, hlist) &&
	      sizeof(struct hlist_node) == sizeof(struct list_head));
static_assert(offsetof(struct kprobe_site, missed_busy) ==
	      offsetof(struct kprobe_site, kp.offset) &&
	      sizeof(atomic_t) == sizeof_field(struct kprobe, offset));
static_assert(offsetof(struct kprobe_site, kp.break_handler) ==
	      offsetof(struct kprobe_site, retired.prev));

static __always_inline struct kprobe_site *site_of(struct kprobe *kp)
{
	return container_of(kp, struct kprobe_site, kp);
}

/* site_is_armed() - True if hits at the site reach its probes; may race with a change of that */
static __always_inline bool site_is_armed(const struct kprobe_site *site)
{
	enum kprobe_site_state state = READ_ONCE(site->state);

	return state == SITE_ARMED || state == SITE_OPTIMIZING || state == SITE_JUMP;
}

/*
 * Hash of the sites by address. kprobe_mutex guards it, and a hit reads the slots.
 *
 * Invariant: at most a third of the slots is filled.
 */
struct kprobe_table {
	unsigned int shift;		/* right shift of the hash value, see kprobe_hash() */
	unsigned int mask;		/* the number of slots, minus one */
	unsigned int filled;		/* slots that are not empty: sites and tombstones */
	unsigned int live;		/* slots with a site */
	struct list_head retired;	/* in the list of tables to be freed */
	/*
	 * A site is in one of the slots from its hash value on, with none that is empty between,
	 * so a search ends at an empty slot, and an erased site leaves a tombstone. An empty slot
	 * points to kprobe_no_site, whose address matches no search: a search that finds its site
	 * in one of the first two slots needs no test for it. The slot after the last one repeats
	 * the first one.
	 */
	struct kprobe __rcu *slot[];
};

extern struct kprobe_table __rcu *kprobe_sites;
extern struct kprobe kprobe_no_site;

static __always_inline unsigned long kprobe_hash(const struct kprobe_table *table,
						 const void *addr)
{
	return ((unsigned long)addr * GOLDEN_RATIO_PRIME) >> table->shift;
}

/* kprobe_find() - Inline get_kprobe() */
static __always_inline struct kprobe *kprobe_find(const void *addr)
{
	const struct kprobe_table *table = rcu_dereference_raw(kprobe_sites);
	unsigned long i = kprobe_hash(table, addr);
	struct kprobe *kp = rcu_dereference_raw(table->slot[i]);

	if (unlikely(kp->addr != addr)) {
		smp_rmb();	/* see site_table_insert() */
		kp = rcu_dereference_raw(table->slot[++i]);
		while (unlikely(kp->addr != addr)) {
			if (kp == &kprobe_no_site)
				return NULL;
			smp_rmb();	/* as above */
			kp = rcu_dereference_raw(table->slot[++i & table->mask]);
		}
	}
	/* Never NULL: tell the compiler, which does not infer it from the access. */
	if (!kp)
		__builtin_unreachable();
	return kp;
}

/* kprobe_find_breakpoint() - The same for an int3: where ftrace calls a site, it is another's */
static __always_inline struct kprobe *kprobe_find_breakpoint(const void *addr)
{
	struct kprobe *kp = kprobe_find(addr);

	return likely(kp && !(kp->flags & KPROBE_FLAG_FTRACE)) ? kp : NULL;
}

/* kprobe_is_site() - True if @kp is that of a site, and no caller's probe */
static __always_inline bool kprobe_is_site(const struct kprobe *kp)
{
	return READ_ONCE(kp->pre_handler) == kprobe_pre_handlers;
}

/*
 * kprobe_call_pre_handler() - Returns non-zero if the handler has changed the path
 *
 * Owners change the handlers of a registered probe, also to NULL: each hit reads them, once.
 */
static __always_inline int kprobe_call_pre_handler(struct kprobe *p, struct pt_regs *regs)
{
	kprobe_pre_handler_t handler = READ_ONCE(p->pre_handler);
	int changed;

	if (unlikely(!handler))
		return 0;
	instrumentation_begin();
	changed = handler(p, regs);
	instrumentation_end();
	return changed;
}

/* kprobe_call_post_handler() - Call a post handler, if there is one */
static __always_inline void kprobe_call_post_handler(struct kprobe *p, struct pt_regs *regs)
{
	kprobe_post_handler_t handler = READ_ONCE(p->post_handler);

	if (unlikely(!handler))
		return;
	instrumentation_begin();
	handler(p, regs, 0);
	instrumentation_end();
}

/* True if the hit that this CPU handles has interrupted another one, and may be missed. */
#ifndef kprobe_hit_is_nested
#define kprobe_hit_is_nested()	false
#endif

/*
 * kprobe_called() - The probe whose handlers a hit calls
 *
 * A hit that is @nested calls those of the site, which ask each probe if it takes part.
 */
static __always_inline struct kprobe *kprobe_called(struct kprobe *site, bool nested)
{
	return unlikely(nested) ? site : READ_ONCE(site_of(site)->called);
}

/*
 * kprobe_has_post() - True if a hit that runs the instruction has a post handler to call
 *
 * Its owner may have set it after registration. A marked access would cost an instruction.
 */
static __always_inline bool kprobe_has_post(struct kprobe *site, bool nested)
{
	return kprobe_called(site, nested)->post_handler;
}

static __always_inline void kprobe_count_miss(struct kprobe *p)
{
	/* Several CPUs may miss a hit at once, and each miss must be counted. */
	BUILD_BUG_ON(sizeof(p->nmissed) != sizeof(atomic_long_t));
	raw_atomic_long_inc((atomic_long_t *)&p->nmissed);
}

/* What kprobe_running() returns while kprobe_busy_begin() is in effect. */
extern struct kprobe kprobe_busy_probe;

/* kprobe_count_skipped() - Count a hit of a site at which no handler is called */
static __always_inline void kprobe_count_skipped(struct kprobe *site)
{
	struct kprobe *p;

	if (kprobe_running() != &kprobe_busy_probe)
		kprobe_count_miss(site);
	else
		raw_atomic_inc(&site_of(site)->missed_busy);
	list_for_each_entry_lockless(p, &site->list, list)
		if (!kprobe_disabled(p))
			kprobe_count_miss(p);
}

void kprobes_clean_up_later(void);

/* Let a worker prepare a site at which a hit has found a post handler set after registration. */
static __always_inline void kprobe_prepare_post_later(struct kprobe_site *site)
{
	WRITE_ONCE(site->kp.post_handler, kprobe_post_handlers);
	if (READ_ONCE(site->stale))
		return;
	WRITE_ONCE(site->stale, true);
	instrumentation_begin();
	kprobes_clean_up_later();
	instrumentation_end();
}

/*
 * The probe after @p of the same hit, or the first one if that is NULL; NULL if there is none. A
 * hit is that of a site, whose newest probe is the first, or of a return probe, the only one.
 */
static __always_inline struct kprobe *kprobe_next_of_hit(struct kprobe *running, struct kprobe *p)
{
	if (!kprobe_is_site(running))
		return p ? NULL : running;
	return list_next_or_null_rcu(&running->list, p ? &p->list : &running->list,
				     struct kprobe, list);
}

#endif /* _LINUX_KPROBES_SITE_H */
