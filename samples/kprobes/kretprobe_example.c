// SPDX-License-Identifier: GPL-2.0
/*
 * Log the return value and the duration of each call of a function.
 *
 *	insmod kretprobe_example.ko func=kernel_clone
 *	dmesg | tail
 *
 * See Documentation/trace/kprobes.rst.
 */
#define pr_fmt(fmt)	KBUILD_MODNAME ": " fmt

#include <linux/kprobes.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/sched.h>

static char *func = "kernel_clone";
module_param(func, charp, 0444);
MODULE_PARM_DESC(func, "Function to probe");

/* Data of a call from its entry to its return. */
struct call {
	u64 start;	/* in ns */
};

/* Runs on entry to the function. */
static int example_entry_handler(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct call *call = (struct call *)ri->data;

	if (!current->mm)
		return 1;	/* Do not track calls of kernel threads. */
	call->start = ktime_get_mono_fast_ns();	/* safe in any context */
	return 0;
}

/* Runs after the return, in the same task but possibly on another CPU. */
static int example_return_handler(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	const struct call *call = (const struct call *)ri->data;

	pr_info("%s[%d]: %s returned %ld to %pS, after %llu ns\n", current->comm,
		task_pid_nr(current), func, (long)regs_return_value(regs),
		(void *)get_kretprobe_retaddr(ri),
		ktime_get_mono_fast_ns() - call->start);
	return 0;
}

static struct kretprobe probe = {
	.entry_handler	= example_entry_handler,
	.handler	= example_return_handler,
	.data_size	= sizeof(struct call),
};

static int __init example_init(void)
{
	int err;

	probe.kp.symbol_name = func;
	err = register_kretprobe(&probe);
	if (err) {
		pr_err("cannot probe the return of %s: %pe\n", func, ERR_PTR(err));
		return err;
	}
	pr_info("probing the return of %s at %pS\n", func, probe.kp.addr);
	return 0;
}
module_init(example_init);

static void __exit example_exit(void)
{
	unregister_kretprobe(&probe);
	pr_info("removed the return probe of %s, missed %d\n", func, probe.nmissed);
}
module_exit(example_exit);

MODULE_DESCRIPTION("Probe the returns of a function");
MODULE_LICENSE("GPL");
