// SPDX-License-Identifier: GPL-2.0
/*
 * Text of modules, which comes and goes. Who may probe it is asked of the module,
 * and its blacklist, its reserved instructions and its sites leave with it.
 */
#include "internal.h"

#include <linux/maple_tree.h>
#include <linux/module.h>
#include <linux/notifier.h>

/*
 * The text that may be probed: from when we hear that a module is coming, and know its
 * blacklist, to when we hear that it is going, or that its init text is. Before, and
 * after, a module may be given up without a word. kprobe_mutex.
 */
static struct maple_tree known_text = MTREE_INIT(known_text, 0);

/**
 * module_check_text - Check that an address is in text of a module that stays
 * @addr: The address.
 *
 * Context: Process context, kprobe_mutex held.
 * Return: 0; -EINVAL if it is in no module's text; -ENOENT if the module is not yet
 *	ready to be probed or is being unloaded, or its init text is about to be freed.
 */
int module_check_text(unsigned long addr)
{
	struct module *mod;

	lockdep_assert_held(&kprobe_mutex);
	guard(preempt)();
	mod = __module_text_address(addr);
	if (!mod)
		return -EINVAL;
	return mod->state != MODULE_STATE_GOING && mtree_load(&known_text, addr) == mod ?
		0 : -ENOENT;
}

static struct module *find_live_text(unsigned long addr)
{
	struct module *mod;

	guard(preempt)();
	mod = __module_text_address(addr);
	return mod && mod->state == MODULE_STATE_LIVE &&
	       within_module_mem_type(addr, mod, MOD_TEXT) ? mod : NULL;
}

/**
 * module_text_tables - Find out where a module tells of its reserved instructions
 * @addr: An address in its text.
 * @tables: Filled in.
 *
 * The tables are put in order while the module is on its way in; and before it has
 * left for good, whatever asks for its text is refused.
 *
 * Context: Process context, kprobe_mutex held.
 * Return: Whether there is a module whose tables are complete.
 */
bool module_text_tables(unsigned long addr, struct text_tables *tables)
{
	const struct module *mod = find_live_text(addr);

	lockdep_assert_held(&kprobe_mutex);
	if (!mod)
		return false;
	tables->start = (unsigned long)mod->mem[MOD_TEXT].base;
	tables->size = mod->mem[MOD_TEXT].size;
#ifdef CONFIG_JUMP_LABEL
	tables->jumps = mod->jump_entries;
	tables->jumps_stop = mod->jump_entries + mod->num_jump_entries;
#endif
#ifdef CONFIG_HAVE_STATIC_CALL_INLINE
	tables->calls = mod->static_call_sites;
	tables->calls_stop = mod->static_call_sites + mod->num_static_call_sites;
#endif
#ifdef CONFIG_GENERIC_BUG
	tables->bugs = mod->bug_table;
	tables->bugs_stop = mod->bug_table + mod->num_bugs;
#endif
	return true;
}

static unsigned long text_start(const struct module *mod, enum mod_mem_type type)
{
	return (unsigned long)mod->mem[type].base;
}

static unsigned long text_end(const struct module *mod, enum mod_mem_type type)
{
	return text_start(mod, type) + mod->mem[type].size;
}

static void add_module_text(struct module *mod, enum mod_mem_type type)
{
	unsigned long start = text_start(mod, type), end = text_end(mod, type);

	if (start < end && mtree_insert_range(&known_text, start, end - 1, mod, GFP_KERNEL))
		pr_warn("no memory: text of module %s cannot be probed\n", mod->name);
}

static void lose_module_text(const struct module *mod, enum mod_mem_type type)
{
	if (text_start(mod, type) < text_end(mod, type))
		mtree_erase(&known_text, text_start(mod, type));
	kprobes_lose_text(text_start(mod, type), text_end(mod, type));
}

static void add_module_blacklist(const struct module *mod)
{
	blacklist_add_functions(mod->kprobe_blacklist,
				mod->kprobe_blacklist + mod->num_kprobe_blacklist);
	blacklist_add_section(mod->kprobes_text_start, mod->kprobes_text_size);
	blacklist_add_section(mod->noinstr_text_start, mod->noinstr_text_size);
}

/* It can be known only now where the module's code jumps to. */
static void optimize_module(const struct module *mod)
{
	unsigned long end = text_end(mod, MOD_TEXT);
	struct kprobe_site *site = site_first_in(text_start(mod, MOD_TEXT), end);

	for (; site; site = site_next_in(site, end))
		optimizer_consider(site);
}

static int module_changed(struct notifier_block *nb, unsigned long state, void *data)
{
	struct module *mod = data;

	guard(mutex)(&kprobe_mutex);
	switch (state) {
	case MODULE_STATE_COMING:
		add_module_blacklist(mod);
		add_module_text(mod, MOD_TEXT);
		add_module_text(mod, MOD_INIT_TEXT);
		break;
	case MODULE_STATE_LIVE:
		lose_module_text(mod, MOD_INIT_TEXT);
		optimize_module(mod);
		break;
	case MODULE_STATE_GOING:
		lose_module_text(mod, MOD_INIT_TEXT);
		lose_module_text(mod, MOD_TEXT);
		reserved_forget_text(text_start(mod, MOD_TEXT));
		arch_forget_text(mod);
		break;
	}
	return NOTIFY_DONE;
}

/*
 * Before all others that care for a module's text: kprobe events (priority 2)
 * probe a module that is coming, when its blacklist must be known; and should
 * it fail to come, only those notifiers hear of it that were called before.
 */
static struct notifier_block module_nb = {
	.notifier_call = module_changed,
	.priority = 3,
};

int __init kprobes_init_modules(void)
{
	return register_module_notifier(&module_nb);
}
