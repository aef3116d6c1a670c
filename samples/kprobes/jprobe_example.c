// SPDX-License-Identifier: GPL-2.0
/*
 * Log the arguments of a function: the handler gets them as its own parameters.
 *
 *	insmod jprobe_example.ko
 *	dmesg | tail
 *
 * See Documentation/trace/kprobes.rst.
 */
#define pr_fmt(fmt)	KBUILD_MODNAME ": " fmt

#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/sched/task.h>

/* Has the prototype of kernel_clone(). Preemption is off, so it must not sleep. */
static pid_t example_kernel_clone(struct kernel_clone_args *args)
{
	pr_info("%s[%d] clones, flags %#llx, stack %#lx\n", current->comm,
		task_pid_nr(current), args->flags, args->stack);
	jprobe_return();
	return 0;
}

static struct jprobe probe = {
	.entry		= JPROBE_ENTRY(example_kernel_clone),
	.kp.symbol_name	= "kernel_clone",
};

static int __init example_init(void)
{
	int err;

	err = register_jprobe(&probe);
	if (err) {
		pr_err("cannot probe %s: %pe\n", probe.kp.symbol_name, ERR_PTR(err));
		return err;
	}
	pr_info("probing %pS\n", probe.kp.addr);
	return 0;
}
module_init(example_init);

static void __exit example_exit(void)
{
	unregister_jprobe(&probe);
	pr_info("removed the probe, missed %lu\n", probe.kp.nmissed);
}
module_exit(example_exit);

MODULE_DESCRIPTION("Log the arguments of a function");
MODULE_LICENSE("GPL");
