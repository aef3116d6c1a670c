// SPDX-License-Identifier: GPL-2.0
/*
 * Log each call of a function, and the address at which the call continues after the
 * probed instruction.
 *
 *	insmod kprobe_example.ko symbol=kernel_clone
 *	dmesg | tail
 *
 * See Documentation/trace/kprobes.rst.
 */
#define pr_fmt(fmt)	KBUILD_MODNAME ": " fmt

#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/sched.h>

static char *symbol = "kernel_clone";
module_param(symbol, charp, 0444);
MODULE_PARM_DESC(symbol, "Function to probe");

static unsigned int offset;
module_param(offset, uint, 0444);
MODULE_PARM_DESC(offset, "Offset of the probed instruction in the function, in bytes");

/* Runs before the instruction. Preemption is off, so the handler must not sleep. */
static int example_pre_handler(struct kprobe *p, struct pt_regs *regs)
{
	pr_info("%s[%d] calls %s, first argument %#lx\n", current->comm, task_pid_nr(current),
		p->symbol_name, regs_get_kernel_argument(regs, 0));
	return 0;
}

/* Runs after the instruction. */
static void example_post_handler(struct kprobe *p, struct pt_regs *regs, unsigned long flags)
{
	pr_info("%s continues at %pS\n", p->symbol_name, (void *)instruction_pointer(regs));
}

static struct kprobe probe = {
	.pre_handler	= example_pre_handler,
	.post_handler	= example_post_handler,
};

static int __init example_init(void)
{
	int err;

	probe.symbol_name = symbol;
	probe.offset = offset;
	err = register_kprobe(&probe);
	if (err) {
		pr_err("cannot probe %s: %pe\n", symbol, ERR_PTR(err));
		return err;
	}
	pr_info("probing %s at %pS\n", symbol, probe.addr);
	return 0;
}
module_init(example_init);

static void __exit example_exit(void)
{
	unregister_kprobe(&probe);
	pr_info("removed the probe of %s, missed %lu\n", symbol, probe.nmissed);
}
module_exit(example_exit);

MODULE_DESCRIPTION("Probe the calls of a function");
MODULE_LICENSE("GPL");
