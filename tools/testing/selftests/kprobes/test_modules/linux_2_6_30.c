// SPDX-License-Identifier: GPL-2.0
/*
 * A module as one could write it for Linux 2.6.30
 *
 *	insmod linux_2_6_30.ko
 *
 * Probes are placed by symbol, in batches, and can be disabled. A return probe has private
 * data for each call, which an entry handler fills.
 */
#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/sched.h>

static int count_hit(struct kprobe *p, struct pt_regs *regs)
{
	pr_info("linux_2_6_30: %s is called\n", p->symbol_name);
	return 0;
}

static struct kprobe fork_probe = {
	.symbol_name = "kernel_clone",
	.pre_handler = count_hit,
};

static struct kprobe exit_probe = {
	.symbol_name = "do_exit",
	.pre_handler = count_hit,
	.flags = KPROBE_FLAG_DISABLED,
};

static struct kprobe *kprobes[] = { &fork_probe, &exit_probe };

static long jfork(struct kernel_clone_args *args)
{
	pr_info("linux_2_6_30: jprobe: exit_signal = %d\n", args->exit_signal);
	jprobe_return();
	return 0;
}

static void jexit(long code)
{
	pr_info("linux_2_6_30: jprobe: code = %ld\n", code);
	jprobe_return();
}

static struct jprobe fork_jprobe = {
	.entry = JPROBE_ENTRY(jfork),
	.kp = { .symbol_name = "kernel_clone" },
};

static struct jprobe exit_jprobe = {
	.entry = JPROBE_ENTRY(jexit),
	.kp = { .symbol_name = "do_exit" },
};

static struct jprobe *jprobes[] = { &fork_jprobe, &exit_jprobe };

struct fork_data {
	struct task_struct *caller;
	int number;
};

static int number;

static int fork_entry(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct fork_data *data = (struct fork_data *)ri->data;

	if (!current->mm)
		return 1;
	data->caller = ri->task;
	data->number = ++number;
	return 0;
}

static int fork_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct fork_data *data = (struct fork_data *)ri->data;
	struct kretprobe *rp = ri->rp;

	pr_info("linux_2_6_30: %s returns %ld to %pS, call %s\n", rp->kp.symbol_name,
		regs_return_value(regs), ri->ret_addr,
		data->caller == ri->task && data->caller == current && data->number > 0 ?
		"known" : "unknown");
	return 0;
}

static struct kretprobe fork_kretprobe = {
	.kp.symbol_name = "kernel_clone",
	.handler = fork_return,
	.entry_handler = fork_entry,
	.data_size = sizeof(struct fork_data),
	.maxactive = 20,
};

static struct kretprobe *kretprobes[] = { &fork_kretprobe };

static int __init linux_2_6_30_init(void)
{
	int ret;

	ret = register_kprobes(kprobes, ARRAY_SIZE(kprobes));
	if (ret < 0)
		return ret;
	ret = register_jprobes(jprobes, ARRAY_SIZE(jprobes));
	if (ret < 0)
		goto no_jprobes;
	ret = register_kretprobes(kretprobes, ARRAY_SIZE(kretprobes));
	if (ret < 0)
		goto no_kretprobes;
	disable_kprobe(&fork_probe);
	enable_kprobe(&exit_probe);
	disable_jprobe(&exit_jprobe);
	enable_jprobe(&exit_jprobe);
	pr_info("linux_2_6_30: planted the probes\n");
	return 0;

no_kretprobes:
	unregister_jprobes(jprobes, ARRAY_SIZE(jprobes));
no_jprobes:
	unregister_kprobes(kprobes, ARRAY_SIZE(kprobes));
	return ret;
}

static void __exit linux_2_6_30_exit(void)
{
	unregister_kretprobes(kretprobes, ARRAY_SIZE(kretprobes));
	unregister_jprobes(jprobes, ARRAY_SIZE(jprobes));
	unregister_kprobes(kprobes, ARRAY_SIZE(kprobes));
	pr_info("linux_2_6_30: missed %d of %s\n", fork_kretprobe.nmissed,
		fork_kretprobe.kp.symbol_name);
}

module_init(linux_2_6_30_init)
module_exit(linux_2_6_30_exit)
MODULE_DESCRIPTION("Probes as of Linux 2.6.30");
MODULE_LICENSE("GPL");
