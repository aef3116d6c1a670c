// SPDX-License-Identifier: GPL-2.0
/*
 * Time to look at the probes of a module that is being loaded
 *
 *	insmod kprobe_coming.ko name=MODULE
 *	modprobe MODULE
 *
 * When the module has got its event probes, and is still to be patched by others, loading it
 * stops for three seconds.
 *
 * See Documentation/trace/kprobes.rst.
 */
#include <linux/delay.h>
#include <linux/init.h>
#include <linux/module.h>
#include <linux/notifier.h>
#include <linux/string.h>

static char *name = "";
module_param(name, charp, 0);
MODULE_PARM_DESC(name, "The module whose loading stops");

static int coming_notify(struct notifier_block *nb, unsigned long state, void *data)
{
	struct module *mod = data;

	if (state == MODULE_STATE_COMING && !strcmp(mod->name, name))
		msleep(3000);
	return NOTIFY_DONE;
}

/* Run after the one of event probes, and before the one of jump labels. */
static struct notifier_block coming_nb = {
	.notifier_call = coming_notify,
	.priority = 2,
};

static int __init coming_init(void)
{
	return register_module_notifier(&coming_nb);
}
module_init(coming_init);

static void __exit coming_exit(void)
{
	unregister_module_notifier(&coming_nb);
}
module_exit(coming_exit);

MODULE_DESCRIPTION("Stop the loading of a module, to look at its probes");
MODULE_LICENSE("GPL");
