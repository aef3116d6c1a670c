/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the rooms of kprobes share.
 *
 * A *probe* is a struct kprobe of a caller. A *site* is ours: one for each
 * probed address, from the first probe there to the last. Architectures see
 * the struct kprobe inside the site, and never a caller's.
 *
 * Locks, in the order in which they are taken:
 *
 *   kprobe_mutex -> cpus_read_lock() -> jump_label_lock() -> text_mutex
 *   kprobe_mutex -> the locks of ftrace
 *
 * The locks of ftrace are never taken under the last three of the first line:
 * the function graph tracer takes the hotplug lock under them. No lock is held
 * across a grace period. The hit path takes none.
 */
#ifndef _KERNEL_KPROBES_INTERNAL_H
#define _KERNEL_KPROBES_INTERNAL_H

#define pr_fmt(fmt)	"kprobes: " fmt

#include <linux/kprobes.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/rbtree.h>
#include <linux/rcupdate.h>

extern struct mutex kprobe_mutex;

/* Units of a slot. An architecture may put more into it than an instruction. */
#ifndef KPROBE_SLOT_SIZE
#define KPROBE_SLOT_SIZE	MAX_INSN_SIZE
#endif

/**
 * enum kprobe_site_state - Life of a site
 * @SITE_NEW:		Prepared; its text has never been touched.
 * @SITE_ARMED:		A breakpoint, or an ftrace call, leads to its probes.
 * @SITE_DISARMED:	All of its probes are disabled, or all probes are off.
 * @SITE_DYING:		The last probe has left. CPUs may be in its slots; a
 *			new probe at the address takes it over.
 * @SITE_GONE:		Its text went away; only its probes' owners still know.
 *
 * See site_set_state() for the way from one to another.
 */
enum kprobe_site_state {
	SITE_NEW,
	SITE_ARMED,
	SITE_DISARMED,
	SITE_DYING,
	SITE_GONE,
};

/**
 * struct kprobe_site - A probed address
 * @kp:		What the architecture sees. Its @addr, @opcode and @ainsn are
 *		constant, its @post_handler tells whether a probe has one. Its
 *		@list is the head of the probes, oldest first: written under
 *		kprobe_mutex, read under RCU.
 * @state:	Written under kprobe_mutex by site_set_state().
 * @ops:	The ftrace_ops that it is armed with, or NULL. kprobe_mutex.
 * @node:	In the ordered index. kprobe_mutex.
 * @batch:	In the batch that a call works on. kprobe_mutex.
 * @retired:	In a list of those to be freed. kprobe_mutex.
 * @rcu:	For the time after the last look at it.
 *
 * Invariant: every site is in the ordered index from its creation to the end;
 * and in the hash, too, unless it is gone. There is one at the most in the
 * hash for an address.
 */
struct kprobe_site {
	struct kprobe kp;
	enum kprobe_site_state state;
	struct ftrace_ops *ops;
	struct rb_node node;
	struct list_head batch;
	struct list_head retired;
	struct rcu_head rcu;
};

static __always_inline struct kprobe_site *site_of(struct kprobe *kp)
{
	return container_of(kp, struct kprobe_site, kp);
}

static inline unsigned long site_addr(const struct kprobe_site *site)
{
	return (unsigned long)site->kp.addr;
}

/* site.c */
int site_reserve(unsigned int count);
struct kprobe_site *site_create(unsigned long addr, u32 flags);
void site_destroy(struct kprobe_site *site);
struct kprobe_site *site_find(unsigned long addr);
struct kprobe_site *site_of_probe(const struct kprobe *p);
struct kprobe_site *site_first_from(unsigned long addr);
struct kprobe_site *site_next(struct kprobe_site *site);
struct kprobe_site *site_first_in(unsigned long start, unsigned long end);
struct kprobe_site *site_next_in(struct kprobe_site *site, unsigned long end);
void site_set_state(struct kprobe_site *site, enum kprobe_site_state state);
void site_lose_text(struct kprobe_site *site);
void site_retire(struct kprobe_site *site);

/* address.c */
struct kprobe_address {
	unsigned long addr;
	u32 flags;
};

struct insn_cursor {
	unsigned long function;
	unsigned long pos;
};

int kprobe_resolve(const struct kprobe *p, struct kprobe_address *where);
int kprobe_check_address(struct kprobe_address *where, struct insn_cursor *cursor);

/* blacklist.c */
struct seq_file;

void blacklist_add_module(const struct module *mod);
void blacklist_remove_module(const struct module *mod);
void blacklist_init(void);
unsigned long blacklist_next(unsigned long addr, unsigned long *end);

/* arm.c */
int arm_sites(struct list_head *batch);
void disarm_sites(struct list_head *batch);

/* ftrace.c */
#ifdef CONFIG_KPROBES_ON_FTRACE
int ftrace_arm_sites(struct list_head *batch);
void ftrace_disarm_sites(struct list_head *batch);
void ftrace_relax_sites(struct list_head *batch);
bool ftrace_site_needs_rearm(const struct kprobe_site *site);
#else
static inline int ftrace_arm_sites(struct list_head *batch)
{
	return 0;
}

static inline void ftrace_disarm_sites(struct list_head *batch) { }
static inline void ftrace_relax_sites(struct list_head *batch) { }

static inline bool ftrace_site_needs_rearm(const struct kprobe_site *site)
{
	return false;
}

static inline int arch_prepare_kprobe_ftrace(struct kprobe *p)
{
	return -EINVAL;
}
#endif

/* kprobes.c */
bool kprobes_enabled(void);
int kprobes_set_enabled(bool on);

#endif /* _KERNEL_KPROBES_INTERNAL_H */
