// SPDX-License-Identifier: GPL-2.0
/*
 * The examples of Documentation/trace/kprobes.rst: three kinds of probes of a function
 */
#define pr_fmt(fmt)	KBUILD_MODNAME ": " fmt

#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/sched/task.h>

static int on_call(struct kprobe *p, struct pt_regs *regs)
{
	pr_info("%s: %#lx\n", p->symbol_name, regs_get_kernel_argument(regs, 0));
	return 0;
}

static struct kprobe probe = {
	.symbol_name	= "kernel_clone",
	.pre_handler	= on_call,
};

static int on_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	pr_info("kernel_clone() = %ld\n", (long)regs_return_value(regs));
	return 0;
}

static struct kretprobe return_probe = {
	.kp.symbol_name	= "kernel_clone",
	.handler	= on_return,
};

static pid_t my_kernel_clone(struct kernel_clone_args *args)
{
	pr_info("flags %#llx\n", args->flags);
	jprobe_return();
	return 0;
}

static struct jprobe jumper_probe = {
	.entry		= JPROBE_ENTRY(my_kernel_clone),
	.kp.symbol_name	= "kernel_clone",
};

static void unregister_all(void)
{
	unregister_jprobe(&jumper_probe);
	unregister_kretprobe(&return_probe);
	unregister_kprobe(&probe);
}

static int __init manual_init(void)
{
	int err;

	err = register_kprobe(&probe);
	if (!err)
		err = register_kretprobe(&return_probe);
	if (!err && IS_ENABLED(CONFIG_JPROBES))
		err = register_jprobe(&jumper_probe);
	if (err)
		unregister_all();
	return err;
}
module_init(manual_init);

static void __exit manual_exit(void)
{
	unregister_all();
}
module_exit(manual_exit);

MODULE_DESCRIPTION("The examples of the manual of kprobes");
MODULE_LICENSE("GPL");
