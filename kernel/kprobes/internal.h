/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Interfaces between the files of kprobes
 *
 * A *probe* is a caller's struct kprobe. A *site* is ours: one for each probed
 * address, from the first probe there until some time after the last. Architectures
 * prepare and arm the struct kprobe inside the site, and never a caller's.
 *
 * Locks, in the order in which they are taken:
 *
 *   kprobe_mutex -> cpus_read_lock() -> jump_label_lock() -> text_mutex
 *   kprobe_mutex -> the locks of ftrace
 *
 * The locks of ftrace are never taken under the last three locks of the first line:
 * the function graph tracer takes the hotplug lock under the locks of ftrace. No lock
 * is held across a grace period. The hit path takes no lock. That of links.c is the
 * innermost one.
 */
#ifndef _KERNEL_KPROBES_INTERNAL_H
#define _KERNEL_KPROBES_INTERNAL_H

#define pr_fmt(fmt)	"kprobes: " fmt

#include <linux/cleanup.h>
#include <linux/cpu.h>
#include <linux/errno.h>
#include <linux/gfp.h>
#include <linux/jump_label.h>
#include <linux/kprobes_site.h>
#include <linux/limits.h>
#include <linux/list.h>
#include <linux/maple_tree.h>
#include <linux/memory.h>
#include <linux/mutex.h>
#include <linux/poison.h>
#include <linux/printk.h>
#include <linux/rcupdate.h>

struct dentry;
struct file;
struct irq_work;
struct module;
struct seq_file;

extern struct mutex kprobe_mutex;

/* Exclude all other patching of text, jump labels included, and CPU hotplug. */
void kprobe_text_lock(void);
void kprobe_text_unlock(void);

DEFINE_LOCK_GUARD_0(kprobe_text, kprobe_text_lock(), kprobe_text_unlock())

/*
 * Remove the entries from @start to @end, which the caller is about to free. The tree
 * would keep them if mtree_erase() had no memory, which this waits for.
 */
static inline void range_tree_clear(struct maple_tree *tree, unsigned long start,
				    unsigned long end)
{
	if (start < end)
		mtree_store_range(tree, start, end - 1, NULL, GFP_KERNEL | __GFP_NOFAIL);
}

/*
 * Background work frees at most so many sites, or writes so many jumps, before it lets kprobe_mutex
 * go, and a call that disarms sites before it lets text_mutex go.
 */
#define SITES_AT_A_TIME	128

/* Units of a slot. An architecture may store more than an instruction there. */
#ifndef KPROBE_SLOT_SIZE
#define KPROBE_SLOT_SIZE	MAX_INSN_SIZE
#endif

static inline unsigned long site_addr(const struct kprobe_site *site)
{
	return (unsigned long)site->kp.addr;
}

/* Does the site have a detour that hits may run through? */
static inline bool site_has_detour(const struct kprobe_site *site)
{
	return site->state == SITE_OPTIMIZING || site->state == SITE_JUMP;
}

/* Is it armed by a breakpoint, without a detour that a jump is about to lead to? */
static inline bool site_stays_breakpoint(const struct kprobe_site *site)
{
	return site->state == SITE_ARMED && !kprobe_ftrace(&site->kp);
}

static inline void site_add_to_batch(struct kprobe_site *site, struct list_head *batch)
{
	if (list_empty(&site->batch))
		list_add_tail(&site->batch, batch);
}

static inline void sites_leave_batch(struct list_head *batch)
{
	while (!list_empty(batch))
		list_del_init(batch->next);
}

/* site.c */
void kprobe_sites_init(void);
int kprobe_site_reserve(unsigned int count);
struct kprobe_site *kprobe_site_create(unsigned long addr, u32 flags);
struct kprobe_site *kprobe_site_first_from(unsigned long addr);
struct kprobe_site *kprobe_site_next(struct kprobe_site *site);
void kprobe_site_set_state(struct kprobe_site *site, enum kprobe_site_state state);
void kprobe_site_set_gone(struct kprobe_site *site);
void kprobe_site_retire(struct kprobe_site *site);

/* Visit all sites, or those at addresses from @start on and below @end, in address order. */
#define for_each_site(site)	for_each_site_in(site, 0, ULONG_MAX)
#define for_each_site_in(site, start, end)						\
	for (site = kprobe_site_first_from(start); site && site_addr(site) < (end);	\
	     site = kprobe_site_next(site))

/* links.c */
struct kprobe_site *kprobe_site_of_probe(struct kprobe *p);
void kprobe_link(struct kprobe *p, struct kprobe_site *site);
struct kprobe_site *kprobe_unlink(struct kprobe *p);

/* Has kprobe_unlink() unlinked @p, with nobody waiting for its handlers since? */
static inline bool kprobe_is_unlinked(const struct kprobe *p)
{
	return p->list.prev == LIST_POISON2;
}

bool kprobes_disable_all(struct kprobe *kp);
void kprobe_change_flag(struct kprobe *p, u32 flag, bool set);
void kprobe_site_change_flag(struct kprobe_site *site, u32 flag, bool set);

/* address.c */

/* The resolved address of a probe */
struct kprobe_address {
	unsigned long addr;
	unsigned long function;	/* the start of the function that contains @addr */
	u32 flags;		/* KPROBE_FLAG_ON_FUNC_ENTRY, KPROBE_FLAG_FTRACE */
	const char *why;	/* why a check has failed, for people; NULL if the error says it */
};

/* Let a check of @where fail with @err. @why is a string that is never freed. */
static inline int kprobe_refuse(struct kprobe_address *where, int err, const char *why)
{
	where->why = why;
	return err;
}

/* What is known of the function that was checked last; zero at first */
struct kprobe_cursor {
	unsigned long function;	/* its start */
	const char *why;	/* why it must not be probed, besides the blacklist; or NULL */
	unsigned long pos;	/* the last instruction that was decoded */
};

int kprobe_resolve(const struct kprobe *p, struct kprobe_address *where);
int kprobe_check_place(struct kprobe_address *where, struct kprobe_cursor *cursor);
int kprobe_check_insn(struct kprobe_address *where, struct kprobe_cursor *cursor);

/* text.c */
const char *kprobe_reserved_for(unsigned long addr);
int kprobe_text_add(struct module *mod, unsigned long start, unsigned long end);
void kprobe_text_forget(unsigned long start);

/* blacklist.c */
extern struct maple_tree kprobe_blacklist;

bool kprobe_blacklist_has_parent(char *name);
const char *kprobe_blacklisted_by(unsigned long addr);
int kprobe_blacklist_add_functions(const unsigned long *function, const unsigned long *end);
int kprobe_blacklist_add_section(const void *start, unsigned long size);
void kprobe_blacklist_init(void);

/* ftrace.c */
#ifdef CONFIG_KPROBES_ON_FTRACE
int kprobe_ftrace_arm_sites(struct list_head *batch);
void kprobe_ftrace_disarm_sites(struct list_head *batch);
void kprobe_ftrace_release_claims(struct list_head *batch);

/*
 * Does the sysctl kernel.ftrace_enabled keep ftrace from calling anybody? When ftrace shuts down
 * it is 0, too, but the calls stay.
 */
static inline bool kprobe_ftrace_is_off(void)
{
	return !READ_ONCE(ftrace_enabled) && !READ_ONCE(kprobe_ftrace_disabled);
}
#else
static inline int kprobe_ftrace_arm_sites(struct list_head *batch)
{
	return 0;
}

static inline void kprobe_ftrace_disarm_sites(struct list_head *batch) { }
static inline void kprobe_ftrace_release_claims(struct list_head *batch) { }

static inline bool kprobe_ftrace_is_off(void)
{
	return false;
}
#endif

/* optimizer.c */
#ifdef CONFIG_OPTPROBES
void kprobe_optimizer_consider(struct kprobe_site *site);
void kprobe_optimizer_retry_near(const struct kprobe_site *site);
void kprobe_unoptimize(struct list_head *batch, bool all);
void kprobe_unoptimize_around(struct list_head *batch);
void kprobe_optimizer_wait_bounded(void);
void kprobe_optimizer_show_reasons(struct seq_file *m);
const char *kprobe_no_jump_reason(const struct kprobe_site *site);
int kprobe_try_jump(struct kprobe_site *site, const char **no_jump);
#else
static inline void kprobe_optimizer_consider(struct kprobe_site *site) { }
static inline void kprobe_optimizer_retry_near(const struct kprobe_site *site) { }
static inline void kprobe_unoptimize(struct list_head *batch, bool all) { }
static inline void kprobe_unoptimize_around(struct list_head *batch) { }
static inline void kprobe_optimizer_wait_bounded(void) { }
static inline void kprobe_optimizer_show_reasons(struct seq_file *m) { }

static inline const char *kprobe_no_jump_reason(const struct kprobe_site *site)
{
	return "unsupported";
}

static inline int kprobe_try_jump(struct kprobe_site *site, const char **no_jump)
{
	*no_jump = "unsupported";
	return 0;
}

static inline void arch_forget_text(struct kprobe_text *text) { }
#endif

/* kretprobe.c */
int kretprobe_check(struct kprobe *p, struct kprobe_address *where);

/* kretprobe_call.c, or kretprobe_rethook.c on architectures that use rethook */
int kretprobe_entered(struct kprobe *p, struct pt_regs *regs);

/* kretprobe_pool.c, or kretprobe_rethook.c */
int kretprobe_pool_create(struct kretprobe *rp);
void kretprobe_pool_drop(struct kretprobe *rp);
void kretprobe_pools_look(void);

static __always_inline struct kretprobe *kretprobe_of(struct kprobe *p)
{
	return container_of(p, struct kretprobe, kp);
}

static inline bool is_return_probe(const struct kprobe *p)
{
	return IS_ENABLED(CONFIG_KRETPROBES) && p->pre_handler == kretprobe_entered;
}

/* jprobe.c */
int jprobe_check(struct kprobe *p, struct kprobe_address *where);
int jprobe_entered(struct kprobe *p, struct pt_regs *regs);

static inline bool is_jprobe(const struct kprobe *p)
{
	return IS_ENABLED(CONFIG_JPROBES) && p->pre_handler == jprobe_entered;
}

/* module.c */
int kprobe_module_check_text(unsigned long addr);

/* kprobes.c */

/* Callbacks to register probes of a kind */
struct kprobe_kind {
	/*
	 * Checks a probe whose address has been resolved, and allocates what it needs. Called with
	 * kprobe_mutex held, in the order of the caller's array. Returns 0 or the error that
	 * register_kprobes() is to return.
	 */
	int (*prepare)(struct kprobe *p, struct kprobe_address *where);
	/*
	 * Undoes @prepare for the first @num probes of the array after a failed registration, whose
	 * pre handlers are no longer called. NULL if there is nothing to undo.
	 */
	void (*undo)(struct kprobe **kps, int num);
};

int kprobes_register(struct kprobe **kps, int num, const struct kprobe_kind *kind);
int kprobe_try(struct kprobe *p, const struct kprobe_kind *kind, struct kprobe_address *where,
	       const char **no_jump);

/* debugfs.c */
extern struct dentry *kprobes_debugfs;	/* the directory */

void *kprobe_shown_addr(const struct file *file, unsigned long addr);

/* explain.c */
int kprobe_refusals_add(const struct kprobe *p, int err, const char *why);

/* apply.c */
int kprobes_apply(struct list_head *batch, bool may_arm);
bool kprobes_enabled(void);
int kprobes_set_enabled(bool on);
void kprobes_forget_text(unsigned long start, unsigned long end);

static inline void kprobes_apply_removal(struct list_head *batch)
{
	kprobes_apply(batch, false);
}

/* wait.c */
void kprobe_queue_irq_work(struct irq_work *work);
bool kprobes_must_not_wait(void);
void kprobes_wait_for_tasks(void);

#endif /* _KERNEL_KPROBES_INTERNAL_H */
