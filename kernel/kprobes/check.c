// SPDX-License-Identifier: GPL-2.0
/*
 * What would happen to a probe at a place, and why: the file check in debugfs
 */
#include "internal.h"

#include <linux/ctype.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/ftrace.h>
#include <linux/kallsyms.h>
#include <linux/kstrtox.h>
#include <linux/limits.h>
#include <linux/module.h>
#include <linux/sched/signal.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/string.h>

/* Room for a letter, a space and module:symbol+offset. */
#define PLACE_LEN	(MODULE_NAME_LEN + KSYM_NAME_LEN + 32)

/**
 * struct check - What was written to an open file, and the answer
 * @asked:	What was written: perhaps the type of a probe; a symbol, perhaps of a module
 *		and with an offset, or an address.
 * @name:	The symbol in it, if there is one.
 * @kind:	The type, or NULL for a plain probe.
 * @p:		A probe there.
 * @where:	The address. From here on, it is the answer.
 * @err:	What register_kprobe() would return.
 * @symbol:	The function, with the offset and module; empty if there is none.
 * @how:	How the probe would be hit.
 * @no_jump:	Why not by a jump, or NULL.
 * @no_hit:	Why not at all, for now, or NULL.
 * @traced:	ftrace traces the function.
 * @before:	If no instruction starts at the address: the one that it is inside of. 0 if
 *		that is not found.
 * @next:	The next instruction.
 * @again:	The text must be analysed further to know @no_jump.
 */
struct check {
	char asked[PLACE_LEN];
	char name[PLACE_LEN];
	const struct kprobe_kind *kind;
	struct kprobe p;
	struct kprobe_address where;
	int err;
	char symbol[KSYM_SYMBOL_LEN];
	const char *how;
	const char *no_jump;
	const char *no_hit;
	bool traced;
	unsigned long before;
	unsigned long next;
	bool again;
};

static const struct kprobe_kind check_return_probe = { .prepare = kretprobe_check };
static const struct kprobe_kind check_jprobe = { .prepare = jprobe_check };

/* The types are those of the file list. */
static int check_parse_type(struct check *check, char type)
{
	switch (type) {
	case 'k':
		return 0;
	case 'r':
		check->kind = &check_return_probe;
		return 0;
	case 'j':
		check->kind = &check_jprobe;
		return 0;
	default:
		return -EINVAL;
	}
}

/* Split "type symbol+offset", of which only the symbol must be there, or read an address. */
static int check_parse(struct check *check)
{
	const char *place = check->asked;
	unsigned long offset = 0, addr;
	char *plus;
	int err;

	if (place[0] && place[1] == ' ') {
		err = check_parse_type(check, place[0]);
		if (err)
			return err;
		place = skip_spaces(place + 1);
	}
	strscpy(check->name, place);
	plus = strchr(check->name, '+');
	if (plus) {
		*plus = '\0';
		if (kstrtoul(plus + 1, 0, &offset) || offset > UINT_MAX)
			return -EINVAL;
	}
	check->p.offset = offset;
	if (!check->name[0])
		return -EINVAL;
	/* Names of modules may begin with a digit, too. */
	if (!isdigit(check->name[0]) || strchr(check->name, ':')) {
		check->p.symbol_name = check->name;
		return 0;
	}
	if (kstrtoul(check->name, 0, &addr))
		return -EINVAL;
	check->p.addr = (kprobe_opcode_t *)addr;
	return 0;
}

/* The symbol at an address says where the kernel is. */
static bool check_is_permitted(const struct check *check, const struct file *file)
{
	return !check->p.addr || kallsyms_show_value(file->f_cred);
}

static void check_look(struct kprobe_site *site, void *data)
{
	struct check *check = data;

	if (kprobe_ftrace(&site->kp)) {
		check->how = "ftrace";
		check->no_hit = ftrace_is_off() ? "ftrace_enabled" : NULL;
		return;
	}
	if (site_is_armed(site))
		check->no_jump = optimizer_no_jump(site);
	else
		check->again = !optimizer_try_jump(site, &check->no_jump);
	check->how = check->no_jump ? "breakpoint" : "jump";
}

#ifdef CONFIG_DYNAMIC_FTRACE
static bool check_is_traced(const struct kprobe_address *where)
{
	return ftrace_location_range(where->function, where->function + where->size - 1);
}
#else
static bool check_is_traced(const struct kprobe_address *where)
{
	return true;
}
#endif

/* Decode the function up to the instruction that contains the address. */
static void check_find_insns(struct check *check)
{
	unsigned long before = 0, next = check->where.function;

	guard(kprobe_text)();
	arch_seek_insn(&next, &before, check->where.addr);
	if (next > check->where.addr) {
		check->before = before;
		check->next = next;
	}
}

/* What the text is like. The module is not unloaded meanwhile. */
static void check_text(struct check *check)
{
	lockdep_assert_held(&kprobe_mutex);
	sprint_symbol(check->symbol, check->where.addr);
	check->traced = check_is_traced(&check->where);
	if (check->err == -EILSEQ)
		check_find_insns(check);
}

static int check_run(struct check *check)
{
	do {
		if (fatal_signal_pending(current))
			return -EINTR;
		memset_startat(check, 0, where);
		scoped_guard(mutex, &kprobe_mutex) {
			check->err = kprobe_try(&check->p, check->kind, &check->where,
						check_look, check);
			if (check->where.function)
				check_text(check);
		}
		cond_resched_tasks_rcu_qs();
	} while (check->again);
	return 0;
}

static void check_show_address(struct seq_file *m, const struct check *check)
{
	seq_printf(m, "address: 0x%px\n", kprobe_shown_addr(m->file, check->where.addr));
	seq_printf(m, "symbol: %s\n", check->symbol);
	seq_printf(m, "entry: %s\n",
		   check->where.flags & KPROBE_FLAG_ON_FUNC_ENTRY ? "yes" : "no");
}

static void check_show_result(struct seq_file *m, const struct check *check)
{
	const struct kprobe_address *where = &check->where;

	if (check->err) {
		seq_printf(m, "result: %pe\n", ERR_PTR(check->err));
		seq_printf(m, "reason: %s\n", refusal_reason(check->err, where->why));
		if (check->before)
			seq_printf(m, "insns: +%#lx +%#lx\n", check->before - where->function,
				   check->next - where->function);
		return;
	}
	seq_puts(m, "result: 0\n");
	seq_printf(m, "hit: %s\n", check->how);
	if (check->no_hit)
		seq_printf(m, "no_hit: %s\n", check->no_hit);
	if (check->no_jump)
		seq_printf(m, "no_jump: %s\n", check->no_jump);
	seq_printf(m, "traced: %s\n", check->traced ? "yes" : "no");
}

/**
 * struct check_names - Search for the symbols of a function's parts and namesakes
 * @m:		Receives them.
 * @left:	How many more are shown.
 * @name:	The symbol that was given, without its module.
 * @len:	Its length.
 */
struct check_names {
	struct seq_file *m;
	unsigned int left;
	const char *name;
	size_t len;
};

/* kallsyms keeps modules from being unloaded while it is at their symbols. */
static const char *check_module_name(unsigned long addr)
{
	struct module *mod;

	guard(preempt)();
	mod = __module_address(addr);
	return mod ? module_name(mod) : NULL;
}

/* The compiler appends .isra.0, .constprop.0, .part.0, .cold and the like. */
static int check_show_name(void *data, const char *name, unsigned long addr)
{
	struct check_names *names = data;
	const char *module;

	if (strncmp(name, names->name, names->len) ||
	    (name[names->len] && name[names->len] != '.'))
		return 0;
	module = check_module_name(addr);
	seq_printf(names->m, "name: %s%s%s 0x%px\n", module ?: "", module ? ":" : "", name,
		   kprobe_shown_addr(names->m->file, addr));
	return !--names->left;
}

static void check_show_names(struct seq_file *m, const char *symbol)
{
	const char *colon = strchr(symbol, ':');
	struct check_names names = {
		.m	= m,
		.left	= 100,
		.name	= colon ? colon + 1 : symbol,
	};

	names.len = strcspn(names.name, ".");
	if (names.len && !kallsyms_on_each_symbol(check_show_name, &names))
		module_kallsyms_on_each_symbol(NULL, check_show_name, &names);
}

static int check_show(struct seq_file *m, void *unused)
{
	struct check *check = m->private;
	int err;

	if (!check) {
		seq_puts(m, "Write [k|r|j ][MODULE:]SYMBOL[+OFFSET] or an address to this open file first.\n");
		return 0;
	}
	/* A reader who has just added a probe expects to see whether it has a jump. */
	optimizer_wait_bounded();
	err = check_run(check);
	if (err)
		return err;
	seq_printf(m, "place: %s\n", check->asked);
	if (check->symbol[0])
		check_show_address(m, check);
	check_show_result(m, check);
	if (check->p.symbol_name)
		check_show_names(m, check->p.symbol_name);
	return 0;
}

static int check_open(struct inode *inode, struct file *file)
{
	return single_open(file, check_show, NULL);
}

static int check_release(struct inode *inode, struct file *file)
{
	struct seq_file *m = file->private_data;

	kfree(m->private);
	return single_release(inode, file);
}

static ssize_t check_write(struct file *file, const char __user *from, size_t count, loff_t *pos)
{
	struct seq_file *m = file->private_data;
	struct check *check __free(kfree) = kzalloc(sizeof(*check), GFP_KERNEL);
	char *text __free(kfree) = NULL;
	int err;

	if (!check)
		return -ENOMEM;
	if (count >= PLACE_LEN)
		return -EINVAL;
	text = memdup_user_nul(from, count);
	if (IS_ERR(text))
		return PTR_ERR(text);
	strscpy(check->asked, strim(text));
	err = check_parse(check);
	if (err)
		return err;
	if (!check_is_permitted(check, file))
		return -EPERM;
	guard(mutex)(&m->lock);
	kfree(m->private);
	m->private = no_free_ptr(check);
	*pos = 0;	/* of the answer */
	return count;
}

const struct file_operations kprobe_check_fops = {
	.open		= check_open,
	.read		= seq_read,
	.write		= check_write,
	.llseek		= seq_lseek,
	.release	= check_release,
};
