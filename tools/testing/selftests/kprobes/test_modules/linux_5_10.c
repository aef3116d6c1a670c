// SPDX-License-Identifier: GPL-2.0
/*
 * A module as one could write it for Linux 5.10
 *
 *	insmod linux_5_10.ko
 *
 * An array of return probes that share their handlers and have private data for each call;
 * and a fault handler, which probes had up to 5.13.
 */
#define pr_fmt(fmt) "%s: " fmt, KBUILD_MODNAME

#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/sched.h>

struct call {
	unsigned long argument;
};

static int enter(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct call *call = (struct call *)ri->data;

	if (!current->mm)
		return 1;
	call->argument = regs_get_kernel_argument(regs, 0);
	return 0;
}

NOKPROBE_SYMBOL(enter);

static int leave(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct call *call = (struct call *)ri->data;

	pr_info("%s(%#lx) = %ld\n", ri->rp->kp.symbol_name, call->argument,
		regs_return_value(regs));
	return 0;
}

NOKPROBE_SYMBOL(leave);

#define RETURN_PROBE(symbol)				\
	{						\
		.kp.symbol_name = symbol,		\
		.entry_handler = enter,			\
		.handler = leave,			\
		.data_size = sizeof(struct call),	\
		.maxactive = 2 * NR_CPUS,		\
	}

static struct kretprobe probes[] = {
	RETURN_PROBE("kernel_clone"),
	RETURN_PROBE("do_wait"),
};

static struct kretprobe *pointers[] = { &probes[0], &probes[1] };

static int pre_handler(struct kprobe *p, struct pt_regs *regs)
{
	return 0;
}

static int fault_handler(struct kprobe *p, struct pt_regs *regs, int trapnr)
{
	pr_info("%pS faults, trap %d\n", p->addr, trapnr);
	return 0;
}

static struct kprobe probe = {
	.symbol_name = "kernel_clone",
	.pre_handler = pre_handler,
	.fault_handler = fault_handler,
};

static int __init linux_5_10_init(void)
{
	int ret = register_kretprobes(pointers, ARRAY_SIZE(pointers));

	if (ret)
		return ret;
	ret = register_kprobe(&probe);
	if (ret) {
		unregister_kretprobes(pointers, ARRAY_SIZE(pointers));
		return ret;
	}
	pr_info("%d probes are registered\n", 1 + (int)ARRAY_SIZE(pointers));
	return 0;
}

static void __exit linux_5_10_exit(void)
{
	unregister_kprobe(&probe);
	unregister_kretprobes(pointers, ARRAY_SIZE(pointers));
	pr_info("missed %lu, %d and %d\n", probe.nmissed, probes[0].nmissed, probes[1].nmissed);
}

module_init(linux_5_10_init)
module_exit(linux_5_10_exit)
MODULE_DESCRIPTION("Probes as of Linux 5.10");
MODULE_LICENSE("GPL");
