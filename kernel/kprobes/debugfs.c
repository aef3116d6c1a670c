// SPDX-License-Identifier: GPL-2.0
/*
 * Files in /sys/kernel/debug/kprobes
 */
#include "internal.h"

#include <linux/array_size.h>
#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/init.h>
#include <linux/kallsyms.h>
#include <linux/kstrtox.h>
#include <linux/rcupdate_wait.h>
#include <linux/seq_file.h>
#include <linux/sprintf.h>

/* The address to print: NULL if the file's opener has no right to see it. */
void *kprobe_shown_addr(const struct file *file, unsigned long addr)
{
	return kallsyms_show_value(file->f_cred) ? (void *)addr : NULL;
}

/*
 * For list and sites, whose data is a function that shows a site. A reader's position is an
 * address, of which all sites are shown at once: there may be many that are gone.
 */

static void *kprobe_sites_start(struct seq_file *m, loff_t *pos)
{
	/* A reader who has just added a probe expects to see whether it has a jump. */
	if (!*pos)
		kprobe_optimizer_wait_bounded();
	mutex_lock(&kprobe_mutex);
	return kprobe_site_first_from(*pos);
}

static void *kprobe_sites_next(struct seq_file *m, void *site, loff_t *pos)
{
	*pos = site_addr(site) + 1;
	return kprobe_site_first_from(*pos);
}

static void kprobe_sites_stop(struct seq_file *m, void *site)
{
	mutex_unlock(&kprobe_mutex);
}

static int kprobe_sites_show(struct seq_file *m, void *first)
{
	void (*show_site)(struct seq_file *m, struct kprobe_site *site) = m->private;
	struct kprobe_site *site;

	for_each_site_in(site, site_addr(first), site_addr(first) + 1)
		show_site(m, site);
	return 0;
}

static const struct seq_operations kprobe_sites_sops = {
	.start	= kprobe_sites_start,
	.next	= kprobe_sites_next,
	.stop	= kprobe_sites_stop,
	.show	= kprobe_sites_show,
};
DEFINE_SEQ_ATTRIBUTE(kprobe_sites);

/* list: a line for each probe, in address order */

/* What is printed of a probe, without the lock that keeps its owner from freeing it */
struct kprobe_shown {
	char type;
	u32 flags;
	void *handler;		/* the owner's function that is called at a hit */
};

static __always_inline struct kprobe_shown kprobe_shown_of(struct kprobe *p)
{
	void *pre = READ_ONCE(p->pre_handler), *post = READ_ONCE(p->post_handler);
	struct kprobe_shown shown = { 'k', p->flags, pre ?: post };

	if (is_return_probe(p)) {
		shown.type = 'r';
		shown.handler = kretprobe_of(p)->handler ?: kretprobe_of(p)->entry_handler;
	} else if (is_jprobe(p)) {
		shown.type = 'j';
		shown.handler = container_of(p, struct jprobe, kp)->entry;
	}
	return shown;
}

/* Copy what is printed of a site's probe @n. Returns false if there are not so many. */
static noinline bool __kprobes kprobe_copy_shown(struct kprobe_shown *shown,
						 const struct kprobe_site *site, unsigned int n)
{
	struct kprobe *p;

	guard(kprobe_links)();
	list_for_each_entry(p, &site->kp.list, list) {
		if (!n--) {
			*shown = kprobe_shown_of(p);
			return true;
		}
	}
	return false;
}

/* Write symbol, offset and module to @text; without a symbol @addr, as list has done, or "-". */
static noinline_for_stack void kprobe_site_symbol(const struct kprobe_site *site, void *addr,
						  char text[KSYM_SYMBOL_LEN])
{
	char name[KSYM_NAME_LEN], *module = NULL;
	const char *symbol = NULL;
	unsigned long offset = 0;

	/* Other code may have been loaded at the address of text that is gone. */
	if (site->state != SITE_GONE)
		symbol = kallsyms_lookup(site_addr(site), NULL, &offset, &module, name);
	if (symbol)
		snprintf(text, KSYM_SYMBOL_LEN, "%s+0x%lx  %s", symbol, offset, module ?: " ");
	else if (addr)
		snprintf(text, KSYM_SYMBOL_LEN, "%pK", addr);
	else
		strscpy(text, "-   ", KSYM_SYMBOL_LEN);
}

static void kprobe_list_show(struct seq_file *m, struct kprobe_site *site)
{
	void *addr = kprobe_shown_addr(m->file, site_addr(site));
	char symbol[KSYM_SYMBOL_LEN];
	struct kprobe_shown shown;

	kprobe_site_symbol(site, addr, symbol);
	for (unsigned int n = 0; kprobe_copy_shown(&shown, site, n); n++) {
		cond_resched_tasks_rcu_qs();
		if (seq_has_overflowed(m))
			return;
		seq_printf(m, "%px  %c  %s %s%s%s\n", addr, shown.type, symbol,
			   shown.flags & KPROBE_FLAG_GONE ? "[GONE]" :
			   shown.flags & KPROBE_FLAG_DISABLED ? "[DISABLED]" : "",
			   kprobe_optimized(&site->kp) ? "[OPTIMIZED]" : "",
			   kprobe_ftrace(&site->kp) ? "[FTRACE]" : "");
	}
}

/* blacklist: a line for each function */

static int blacklist_show(struct seq_file *m, void *unused)
{
	MA_STATE(mas, &kprobe_blacklist, 0, 0);
	void *entry;

	guard(mutex)(&kprobe_mutex);	/* it keeps the text of the functions, too */
	guard(rcu)();
	mas_for_each(&mas, entry, ULONG_MAX) {
		seq_printf(m, "0x%px-0x%px\t%ps\n", kprobe_shown_addr(m->file, mas.index),
			   kprobe_shown_addr(m->file, mas.last + 1), (void *)mas.index);
		mas_pause(&mas);
		cond_resched_rcu();
	}
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(blacklist);

/* enabled: arms or disarms all probes */

static int kprobes_enabled_show(struct seq_file *m, void *unused)
{
	seq_printf(m, "%d\n", kprobes_enabled());
	return 0;
}

static ssize_t kprobes_enabled_write(struct file *file, const char __user *from, size_t count,
				     loff_t *pos)
{
	bool on;
	int err = kstrtobool_from_user(from, count, &on) ?: kprobes_set_enabled(on);

	return err ?: count;
}
DEFINE_SHOW_STORE_ATTRIBUTE(kprobes_enabled);

/*
 * stats: a line for each number, see Documentation/trace/kprobes.rst. All lines are always present,
 * but the reasons for breakpoints only with CONFIG_OPTPROBES. The misses are those of the
 * registered probes, but by reason those of the sites, which all probes of one may have missed.
 */

/* Armed through ftrace; the other kinds are the states. */
#define KIND_FTRACE	(SITE_GONE + 1)

static const char * const site_kinds[] = {
	[SITE_ARMED]		= "breakpoint",
	[SITE_OPTIMIZING]	= "optimizing",
	[SITE_JUMP]		= "jump",
	[SITE_DISARMED]		= "disarmed",
	[SITE_DYING]		= "dying",
	[SITE_GONE]		= "gone",
	[KIND_FTRACE]		= "ftrace",
};

static unsigned int kprobe_site_kind(const struct kprobe_site *site)
{
	return site->state == SITE_ARMED && kprobe_ftrace(&site->kp) ? KIND_FTRACE : site->state;
}

/* Numbers of one site, or of several */
struct kprobe_counts {
	unsigned long probes;
	unsigned long disabled;
	unsigned long missed;	/* without @returns */
	unsigned long nested;	/* missed while a handler ran, or in an interrupt of @busy */
	unsigned long busy;	/* between kprobe_busy_begin() and kprobe_busy_end() */
	unsigned long returns;
};

static noinline void __kprobes kprobe_counts_add(struct kprobe_counts *counts,
						 const struct kprobe_site *site)
{
	struct kprobe *p;

	counts->nested += READ_ONCE(site->kp.nmissed);
	counts->busy += (unsigned int)atomic_read(&site->missed_busy);
	guard(kprobe_links)();
	list_for_each_entry(p, &site->kp.list, list) {
		counts->probes++;
		counts->disabled += kprobe_disabled(p);
		counts->missed += READ_ONCE(p->nmissed);
		if (is_return_probe(p))
			counts->returns += (unsigned int)READ_ONCE(kretprobe_of(p)->nmissed);
	}
}

static int kprobes_stats_show(struct seq_file *m, void *unused)
{
	unsigned long sites = 0, of_kind[ARRAY_SIZE(site_kinds)] = { };
	struct kprobe_counts counts = { };
	struct kprobe_site *site;

	guard(mutex)(&kprobe_mutex);
	for_each_site(site) {
		sites++;
		of_kind[kprobe_site_kind(site)]++;
		kprobe_counts_add(&counts, site);
	}

	seq_printf(m, "probes: %lu\n", counts.probes);
	seq_printf(m, "probes_disabled: %lu\n", counts.disabled);
	seq_printf(m, "missed: %lu\n", counts.missed + counts.returns);
	seq_printf(m, "missed_nested: %lu\n", counts.nested);
	seq_printf(m, "missed_busy: %lu\n", counts.busy);
	seq_printf(m, "missed_returns: %lu\n", counts.returns);
	seq_printf(m, "sites: %lu\n", sites);
	seq_printf(m, "sites_ftrace: %lu\n", of_kind[KIND_FTRACE]);
	for (unsigned int i = 0; i < KIND_FTRACE; i++)
		seq_printf(m, "sites_%s: %lu\n", site_kinds[i], of_kind[i]);
	kprobe_optimizer_show_reasons(m);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(kprobes_stats);

/* sites: a line for each probed address, in address order */

static void kprobe_site_show_probes(struct seq_file *m, const struct kprobe_site *site)
{
	struct kprobe_shown shown;

	for (unsigned int n = 0; kprobe_copy_shown(&shown, site, n); n++) {
		cond_resched_tasks_rcu_qs();
		if (seq_has_overflowed(m))
			return;
		if (n)
			seq_putc(m, ',');
		if (shown.handler)
			seq_printf(m, "%ps", shown.handler);
		else
			seq_puts(m, "none");
		if (shown.flags & (KPROBE_FLAG_GONE | KPROBE_FLAG_DISABLED))
			seq_puts(m, "(disabled)");
	}
}

static void kprobe_site_show(struct seq_file *m, struct kprobe_site *site)
{
	char symbol[KSYM_SYMBOL_LEN];
	struct kprobe_counts counts = { };

	kprobe_counts_add(&counts, site);
	kprobe_site_symbol(site, NULL, symbol);
	seq_printf(m, "%px  %s  kind=%s", kprobe_shown_addr(m->file, site_addr(site)), symbol,
		   site_kinds[kprobe_site_kind(site)]);
	if (site_stays_breakpoint(site))
		seq_printf(m, " no_jump=%s", kprobe_no_jump_reason(site));
	if (kprobe_site_kind(site) == KIND_FTRACE && kprobe_ftrace_is_off())
		seq_puts(m, " no_hit=ftrace_enabled");
	seq_printf(m, " missed_nested=%lu missed_busy=%lu missed_returns=%lu handlers=",
		   counts.nested, counts.busy, counts.returns);
	kprobe_site_show_probes(m, site);
	seq_putc(m, '\n');
}

struct dentry *kprobes_debugfs;

static int __init kprobes_debugfs_init(void)
{
	kprobes_debugfs = debugfs_create_dir("kprobes", NULL);
	debugfs_create_file("list", 0400, kprobes_debugfs, kprobe_list_show, &kprobe_sites_fops);
	debugfs_create_file("enabled", 0600, kprobes_debugfs, NULL, &kprobes_enabled_fops);
	debugfs_create_file("blacklist", 0400, kprobes_debugfs, NULL, &blacklist_fops);
	debugfs_create_file("stats", 0400, kprobes_debugfs, NULL, &kprobes_stats_fops);
	debugfs_create_file("sites", 0400, kprobes_debugfs, kprobe_site_show, &kprobe_sites_fops);
	return 0;
}
fs_initcall(kprobes_debugfs_init);
