/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The way of a hit from an address to the handlers, for architectures that want
 * it inline. What is here calls nothing but handlers, so that nothing on the way
 * can be probed.
 */
#ifndef _LINUX_KPROBES_HIT_H
#define _LINUX_KPROBES_HIT_H

#include <linux/hash.h>
#include <linux/instrumentation.h>
#include <linux/kprobes.h>
#include <linux/rculist.h>

/**
 * struct kprobe_table - The sites, by address
 * @shift:	Of the hash value, to the right: it has BITS_PER_LONG - @shift bits.
 * @mask:	Number of slots, less one.
 * @filled:	How many slots are not NULL: sites and tombstones. kprobe_mutex.
 * @live:	How many of them are sites. kprobe_mutex.
 * @rcu:	For the time after its replacement.
 * @slot:	A site stands in the first free slot from its hash value on, so
 *		a search ends at a NULL. Hence an erased site leaves a tombstone.
 *
 * Invariant: at the most half of the slots are filled.
 */
struct kprobe_table {
	unsigned int shift;
	unsigned int mask;
	unsigned int filled;
	unsigned int live;
	struct rcu_head rcu;
	struct kprobe __rcu *slot[];
};

extern struct kprobe_table __rcu *kprobe_table;

static __always_inline unsigned int kprobe_hash(const struct kprobe_table *table,
						const void *addr)
{
	return ((unsigned long)addr * GOLDEN_RATIO_PRIME) >> table->shift;
}

/* kprobe_find - get_kprobe(), inline */
static __always_inline struct kprobe *kprobe_find(const void *addr)
{
	const struct kprobe_table *table = rcu_dereference_raw(kprobe_table);
	unsigned int i = kprobe_hash(table, addr);

	for (;;) {
		struct kprobe *kp = rcu_dereference_raw(table->slot[i]);

		if (!kp || likely(kp->addr == addr))
			return kp;
		i = (i + 1) & table->mask;
	}
}

/* kprobe_call_pre_handler - Returns whether it changed where execution goes on */
static __always_inline int kprobe_call_pre_handler(struct kprobe *p, struct pt_regs *regs)
{
	int changed;

	if (unlikely(!p->pre_handler))
		return 0;
	instrumentation_begin();
	changed = p->pre_handler(p, regs);
	instrumentation_end();
	return changed;
}

/* kprobe_call_pre_handlers - kprobe_pre_handlers(), inline */
static __always_inline int kprobe_call_pre_handlers(struct kprobe *site, struct pt_regs *regs)
{
	struct kprobe *p;

	list_for_each_entry_lockless(p, &site->list, list)
		if (likely(!kprobe_disabled(p)) && unlikely(kprobe_call_pre_handler(p, regs)))
			return 1;
	return 0;
}

/*
 * kprobe_call_post_handlers - kprobe_post_handlers(), inline
 *
 * @need: KPROBE_FLAG_REENTRANT for a hit inside another one: a probe without it
 * has missed the hit already. Or 0.
 */
static __always_inline void kprobe_call_post_handlers(struct kprobe *site, struct pt_regs *regs,
						      u32 need)
{
	struct kprobe *p;

	list_for_each_entry_lockless(p, &site->list, list) {
		if (!p->post_handler || unlikely(kprobe_disabled(p) || (p->flags & need) != need))
			continue;
		instrumentation_begin();
		p->post_handler(p, regs, 0);
		instrumentation_end();
	}
}

#endif /* _LINUX_KPROBES_HIT_H */
