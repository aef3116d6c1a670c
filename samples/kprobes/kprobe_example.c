// SPDX-License-Identifier: GPL-2.0
/*
 * A probe that says when a function is called, and what its first instruction
 * has done.
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
MODULE_PARM_DESC(symbol, "function to probe");

static unsigned int offset;
module_param(offset, uint, 0444);
MODULE_PARM_DESC(offset, "of the instruction in it");

/* Before the instruction runs. Preemption is off: nothing here may sleep. */
static int on_call(struct kprobe *p, struct pt_regs *regs)
{
	pr_info("%s[%d] calls %s, first argument %#lx\n", current->comm, task_pid_nr(current),
		p->symbol_name, regs_get_kernel_argument(regs, 0));
	return 0;
}

/* After it has run. */
static void after_insn(struct kprobe *p, struct pt_regs *regs, unsigned long flags)
{
	pr_info("%s goes on at %pS\n", p->symbol_name, (void *)instruction_pointer(regs));
}

static struct kprobe probe = {
	.pre_handler	= on_call,
	.post_handler	= after_insn,
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
	pr_info("%s is probed no more, missed %lu\n", symbol, probe.nmissed);
}
module_exit(example_exit);

MODULE_DESCRIPTION("Probe the calls of a function");
MODULE_LICENSE("GPL");
