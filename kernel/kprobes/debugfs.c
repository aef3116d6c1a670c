// SPDX-License-Identifier: GPL-2.0
/*
 * What a person sees in /sys/kernel/debug/kprobes.
 */
#include "internal.h"

#include <linux/debugfs.h>
#include <linux/fs.h>
#include <linux/init.h>
#include <linux/kallsyms.h>
#include <linux/kstrtox.h>
#include <linux/seq_file.h>

/* What to print for an address: nothing to those who may not see it. */
static void *shown(struct seq_file *m, unsigned long addr)
{
	return kallsyms_show_value(m->file->f_cred) ? (void *)addr : NULL;
}

/* list: a line for each probe, in the order of addresses */

static void *list_start(struct seq_file *m, loff_t *pos)
{
	struct kprobe_site *site;
	loff_t skip = *pos;

	mutex_lock(&kprobe_mutex);
	for (site = site_first_from(0); site && skip; skip--)
		site = site_next(site);
	return site;
}

static void *list_next(struct seq_file *m, void *site, loff_t *pos)
{
	++*pos;
	return site_next(site);
}

static void list_stop(struct seq_file *m, void *site)
{
	mutex_unlock(&kprobe_mutex);
}

static void show_place(struct seq_file *m, struct kprobe_site *site, const struct kprobe *p)
{
	char name[KSYM_NAME_LEN], *module = NULL;
	unsigned long addr = site_addr(site), offset = 0;
	const char *symbol = NULL;

	/* The address of text that is gone may belong to somebody else by now. */
	if (site->state != SITE_GONE)
		symbol = kallsyms_lookup(addr, NULL, &offset, &module, name);
	seq_printf(m, "%px  %c  ", shown(m, addr), is_return_probe(p) ? 'r' : 'k');
	if (symbol)
		seq_printf(m, "%s+0x%lx  %s ", symbol, offset, module ?: " ");
	else
		seq_printf(m, "%pK ", shown(m, addr));
}

static int list_show(struct seq_file *m, void *v)
{
	struct kprobe_site *site = v;
	struct kprobe *p;

	list_for_each_entry(p, &site->kp.list, list) {
		show_place(m, site, p);
		if (kprobe_gone(p))
			seq_puts(m, "[GONE]");
		else if (kprobe_disabled(p))
			seq_puts(m, "[DISABLED]");
		if (kprobe_optimized(&site->kp))
			seq_puts(m, "[OPTIMIZED]");
		if (kprobe_ftrace(&site->kp))
			seq_puts(m, "[FTRACE]");
		seq_putc(m, '\n');
	}
	return 0;
}

static const struct seq_operations list_sops = {
	.start	= list_start,
	.next	= list_next,
	.stop	= list_stop,
	.show	= list_show,
};
DEFINE_SEQ_ATTRIBUTE(list);

/* blacklist: a line for each function */

/**
 * struct blacklist_range - The function that is shown
 * @start: Its first address.
 * @end: The address behind its last.
 */
struct blacklist_range {
	unsigned long start;
	unsigned long end;
};

static void *blacklist_from(struct blacklist_range *range, unsigned long addr)
{
	range->start = blacklist_next(addr, &range->end);
	return range->start ? range : NULL;
}

static void *blacklist_start(struct seq_file *m, loff_t *pos)
{
	struct blacklist_range *range = m->private;
	void *found = blacklist_from(range, 0);

	for (loff_t skip = *pos; found && skip; skip--)
		found = blacklist_from(range, range->end);
	return found;
}

static void *blacklist_next_range(struct seq_file *m, void *v, loff_t *pos)
{
	struct blacklist_range *range = v;

	++*pos;
	return blacklist_from(range, range->end);
}

static void blacklist_stop(struct seq_file *m, void *v)
{
}

static int blacklist_show(struct seq_file *m, void *v)
{
	const struct blacklist_range *range = v;

	seq_printf(m, "0x%px-0x%px\t%ps\n", shown(m, range->start), shown(m, range->end),
		   (void *)range->start);
	return 0;
}

static const struct seq_operations blacklist_sops = {
	.start	= blacklist_start,
	.next	= blacklist_next_range,
	.stop	= blacklist_stop,
	.show	= blacklist_show,
};

static int blacklist_open(struct inode *inode, struct file *file)
{
	return seq_open_private(file, &blacklist_sops, sizeof(struct blacklist_range));
}

static const struct file_operations blacklist_fops = {
	.open		= blacklist_open,
	.read		= seq_read,
	.llseek		= seq_lseek,
	.release	= seq_release_private,
};

/* enabled: the switch for all probes */

static ssize_t enabled_read(struct file *file, char __user *to, size_t count, loff_t *pos)
{
	const char *text = kprobes_enabled() ? "1\n" : "0\n";

	return simple_read_from_buffer(to, count, pos, text, 2);
}

static ssize_t enabled_write(struct file *file, const char __user *from, size_t count,
			     loff_t *pos)
{
	bool on;
	int err;

	err = kstrtobool_from_user(from, count, &on);
	if (!err)
		err = kprobes_set_enabled(on);
	return err ?: count;
}

static const struct file_operations enabled_fops = {
	.read	= enabled_read,
	.write	= enabled_write,
	.llseek	= default_llseek,
};

static int __init kprobes_debugfs_init(void)
{
	struct dentry *dir = debugfs_create_dir("kprobes", NULL);

	debugfs_create_file("list", 0400, dir, NULL, &list_fops);
	debugfs_create_file("enabled", 0600, dir, NULL, &enabled_fops);
	debugfs_create_file("blacklist", 0400, dir, NULL, &blacklist_fops);
	return 0;
}
late_initcall(kprobes_debugfs_init);
