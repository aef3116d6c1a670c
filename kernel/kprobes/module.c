// SPDX-License-Identifier: GPL-2.0
/*
 * Text of modules, which comes and goes. Who may probe it is asked of the module,
 * and its blacklist, its reserved instructions and its sites leave with it.
 */
#include "internal.h"

#include <linux/module.h>
#include <linux/notifier.h>

/**
 * module_check_text - Check that an address is in text of a module that stays
 * @addr: The address.
 *
 * A module that is going hears of it from us, under kprobe_mutex. So while that
 * is held, a module seen here in another state keeps its text.
 *
 * Context: Process context, kprobe_mutex held.
 * Return: 0; -EINVAL if it is in no module's text; -ENOENT if the module is being
 *	unloaded, or its init text is about to be freed.
 */
int module_check_text(unsigned long addr)
{
	struct module *mod;

	lockdep_assert_held(&kprobe_mutex);
	guard(preempt)();
	mod = __module_text_address(addr);
	if (!mod)
		return -EINVAL;
	if (mod->state == MODULE_STATE_GOING)
		return -ENOENT;
	if (within_module_init(addr, mod) && mod->state != MODULE_STATE_COMING)
		return -ENOENT;
	return 0;
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

static void lose_module_text(const struct module *mod, enum mod_mem_type type)
{
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
