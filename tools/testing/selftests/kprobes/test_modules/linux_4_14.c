// SPDX-License-Identifier: GPL-2.0
/*
 * A module as one could write it for Linux 4.14, the last with jumper probes
 *
 *	insmod linux_4_14.ko symbol=kernel_clone
 *
 * The module's parameter names the function. The return probe measures how long a call
 * takes.
 */
#define pr_fmt(fmt) "linux_4_14: " fmt

#include <linux/kprobes.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/sched.h>

static char symbol[KSYM_NAME_LEN] = "kernel_clone";
module_param_string(symbol, symbol, sizeof(symbol), 0644);

static struct kprobe kp = { .symbol_name = symbol };

static int handler_pre(struct kprobe *p, struct pt_regs *regs)
{
	pr_info("<%s> pre_handler: ip = %lx\n", p->symbol_name, instruction_pointer(regs));
	return 0;
}

static void handler_post(struct kprobe *p, struct pt_regs *regs, unsigned long flags)
{
	pr_info("<%s> post_handler: flags = 0x%lx\n", p->symbol_name, flags);
}

/* No access of these handlers faults. */
static int handler_fault(struct kprobe *p, struct pt_regs *regs, int trapnr)
{
	pr_info("fault_handler: p->addr = 0x%px, trap #%d\n", p->addr, trapnr);
	return 0;
}

static long j_kernel_clone(struct kernel_clone_args *args)
{
	pr_info("jprobe: clone_flags = 0x%llx, stack_size = 0x%lx\n", args->flags,
		args->stack_size);
	jprobe_return();
	return 0;
}

static struct jprobe jp = {
	.entry			= j_kernel_clone,
	.kp.symbol_name		= symbol,
};

struct times {
	ktime_t entry;
};

static int entry_handler(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct times *times = (struct times *)ri->data;

	if (!current->mm)
		return 1;
	times->entry = ktime_get();
	return 0;
}

static int ret_handler(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct times *times = (struct times *)ri->data;
	s64 delta = ktime_to_ns(ktime_sub(ktime_get(), times->entry));

	pr_info("%s returned %lu and took %lld ns to execute\n", symbol,
		regs_return_value(regs), (long long)delta);
	return 0;
}

static struct kretprobe rp = {
	.handler		= ret_handler,
	.entry_handler		= entry_handler,
	.data_size		= sizeof(struct times),
	.maxactive		= 20,
};

static int __init linux_4_14_init(void)
{
	int ret;

	kp.pre_handler = handler_pre;
	kp.post_handler = handler_post;
	kp.fault_handler = handler_fault;
	ret = register_kprobe(&kp);
	if (ret < 0)
		return ret;
	ret = register_jprobe(&jp);
	if (ret < 0)
		goto no_jprobe;
	rp.kp.symbol_name = symbol;
	ret = register_kretprobe(&rp);
	if (ret < 0)
		goto no_kretprobe;
	pr_info("planted probes at %p\n", kp.addr);
	return 0;

no_kretprobe:
	unregister_jprobe(&jp);
no_jprobe:
	unregister_kprobe(&kp);
	return ret;
}

static void __exit linux_4_14_exit(void)
{
	unregister_kretprobe(&rp);
	unregister_jprobe(&jp);
	unregister_kprobe(&kp);
	pr_info("missed probing %d instances of %s\n", rp.nmissed, rp.kp.symbol_name);
}

module_init(linux_4_14_init)
module_exit(linux_4_14_exit)
MODULE_DESCRIPTION("Probes as of Linux 4.14");
MODULE_LICENSE("GPL");
