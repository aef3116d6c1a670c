// SPDX-License-Identifier: GPL-2.0
/*
 * A module as one could write it for Linux 2.6.11
 *
 *	insmod linux_2_6_11.ko do_fork=0x$(grep -w kernel_clone /proc/kallsyms | cut -d ' ' -f 1)
 *
 * Probes are placed by address. There are three kinds of handlers, and jumper probes. What
 * other interfaces were like then is not what this module is about.
 */
#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/uaccess.h>

static unsigned long do_fork;
module_param(do_fork, ulong, 0444);
MODULE_PARM_DESC(do_fork, "Address of the function that creates a process");

static struct kprobe kp;
static struct jprobe jp;

static int handler_pre(struct kprobe *p, struct pt_regs *regs)
{
	int value;

	/* Nothing is mapped there: handler_fault() is called, then the access fails. */
	if (get_kernel_nofault(value, (int *)-8L))
		pr_info("linux_2_6_11: pre_handler: p->addr=0x%px\n", p->addr);
	return 0;
}

static void handler_post(struct kprobe *p, struct pt_regs *regs, unsigned long flags)
{
	pr_info("linux_2_6_11: post_handler: p->addr=0x%px\n", p->addr);
}

static int handler_fault(struct kprobe *p, struct pt_regs *regs, int trapnr)
{
	pr_info("linux_2_6_11: fault_handler: p->addr=0x%px, trap #%d\n", p->addr, trapnr);
	return 0;
}

/* Has the parameters of do_fork()'s successor. */
static long jdo_fork(struct kernel_clone_args *args)
{
	pr_info("linux_2_6_11: jprobe: clone_flags=0x%lx\n", (unsigned long)args->flags);
	jprobe_return();
	return 0;
}

static int linux_2_6_11_init(void)
{
	int ret;

	kp.pre_handler = handler_pre;
	kp.post_handler = handler_post;
	kp.fault_handler = handler_fault;
	kp.addr = (kprobe_opcode_t *)do_fork;
	ret = register_kprobe(&kp);
	if (ret < 0)
		return ret;

	jp.entry = (kprobe_opcode_t *)jdo_fork;
	jp.kp.addr = (kprobe_opcode_t *)do_fork;
	ret = register_jprobe(&jp);
	if (ret < 0) {
		unregister_kprobe(&kp);
		return ret;
	}
	pr_info("linux_2_6_11: planted probes at %px\n", jp.kp.addr);
	return 0;
}

static void linux_2_6_11_exit(void)
{
	unregister_jprobe(&jp);
	unregister_kprobe(&kp);
	pr_info("linux_2_6_11: removed the probes\n");
}

module_init(linux_2_6_11_init);
module_exit(linux_2_6_11_exit);
MODULE_DESCRIPTION("Probes as of Linux 2.6.11");
MODULE_LICENSE("GPL");
