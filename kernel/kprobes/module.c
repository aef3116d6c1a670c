// SPDX-License-Identifier: GPL-2.0
/*
 * Text of modules: it comes and goes, together with the module's blacklist, its reserved
 * instructions and its sites
 */
#include "internal.h"

#include <linux/init.h>
#include <linux/kprobes_tables.h>
#include <linux/module.h>
#include <linux/notifier.h>

/*
 * kprobe_module_check_text() - Check that an address is in text of a module that stays
 *
 * That is text from the notification that the module is coming, when its blacklist is added,
 * to the notification that the module or its init text is going. Outside of that time, it can
 * be freed without a notification.
 *
 * Returns 0; -EINVAL if it is in no module's text; -ENOENT if the module is not yet ready to be
 * probed or is being unloaded, or its init text is about to be freed.
 */
int kprobe_module_check_text(unsigned long addr)
{
	const struct module *mod;

	guard(preempt)();
	mod = __module_text_address(addr);
	if (!mod)
		return -EINVAL;
	/* The state changes without a lock, but not to freed text: that takes kprobe_mutex. */
	if (data_race(mod->state) == MODULE_STATE_GOING || !kprobe_known_text(addr))
		return -ENOENT;
	return 0;
}

static int module_add_text(struct module *mod, enum mod_mem_type type)
{
	unsigned long start = (unsigned long)mod->mem[type].base;

	return kprobe_text_add(mod, start, start + mod->mem[type].size);
}

static void module_forget_text(const struct module *mod, enum mod_mem_type type)
{
	unsigned long start = (unsigned long)mod->mem[type].base;

	kprobes_forget_text(start, start + mod->mem[type].size);
	kprobe_text_forget(start);
}

/* Without its whole blacklist, a module must not be probed. */
static void module_come(struct module *mod)
{
	if (kprobe_blacklist_add_functions(mod->kprobe_blacklist,
					   mod->kprobe_blacklist + mod->num_kprobe_blacklist) ||
	    kprobe_blacklist_add_section(mod->kprobes_text_start, mod->kprobes_text_size) ||
	    kprobe_blacklist_add_section(mod->noinstr_text_start, mod->noinstr_text_size) ||
	    module_add_text(mod, MOD_TEXT) || module_add_text(mod, MOD_INIT_TEXT))
		pr_warn("no memory to probe all text of module %s: load it again to probe it\n",
			mod->name);
}

/*
 * All users of the module's tables have sorted them, and have patched its text: so the
 * targets of its jumps can be known.
 */
static void module_complete_tables(const struct module *mod)
{
	struct kprobe_text *text = kprobe_known_text((unsigned long)mod->mem[MOD_TEXT].base);
	struct kprobe_site *site;

	/* There may have been no memory for it. */
	if (!text)
		return;
	/* The entries for init text will be trimmed, but stay in memory. */
	text->fixups = mod->extable;
	text->fixups_stop = mod->extable + mod->num_exentries;
	text->complete = true;
	for_each_site_in(site, text->start, text->end)
		kprobe_optimizer_consider(site);
}

static int kprobes_module_notify(struct notifier_block *nb, unsigned long state, void *data)
{
	struct module *mod = data;

	guard(mutex)(&kprobe_mutex);
	switch (state) {
	case MODULE_STATE_COMING:
		module_come(mod);
		break;
	case MODULE_STATE_LIVE:
		module_forget_text(mod, MOD_INIT_TEXT);
		break;
	case MODULE_STATE_GOING:
		module_forget_text(mod, MOD_INIT_TEXT);
		module_forget_text(mod, MOD_TEXT);
		break;
	}
	return NOTIFY_DONE;
}

/*
 * Run before all other notifiers that depend on a module's text. Kprobe events
 * (priority 2) probe a module that is coming, and need its blacklist. If loading
 * fails, only notifiers that have been called before are told.
 */
static struct notifier_block kprobes_module_nb = {
	.notifier_call = kprobes_module_notify,
	.priority = 3,
};

static int kprobes_module_notify_last(struct notifier_block *nb, unsigned long state, void *data)
{
	guard(mutex)(&kprobe_mutex);
	if (state == MODULE_STATE_COMING)
		module_complete_tables(data);
	return NOTIFY_DONE;
}

/* Run after all others, and right before the module's init function. */
static struct notifier_block kprobes_module_last_nb = {
	.notifier_call = kprobes_module_notify_last,
	.priority = INT_MIN,
};

static int __init kprobes_init_modules(void)
{
	return register_module_notifier(&kprobes_module_nb) ?:
	       register_module_notifier(&kprobes_module_last_nb);
}
early_initcall(kprobes_init_modules);
