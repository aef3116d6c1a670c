// SPDX-License-Identifier: GPL-2.0
/*
 * Measure the registration of thousands of probes
 *
 *	insmod kprobe_scale.ko targets=/tmp/targets
 *
 * reads the addresses to probe, one SYMBOL, SYMBOL+OFFSET or address on each line, and
 * drops those that cannot be probed. Then
 *
 *	echo COMMAND >/sys/module/kprobe_scale/parameters/run
 *
 * runs one of these commands, and logs its duration in nanoseconds:
 *
 *	attach N	register_kprobes() of the first N targets
 *	jumps N		register_kprobes() of the first N targets, up to the last change of
 *			the probed text by the optimiser; and the part of that time after
 *			register_kprobes()
 *	attach-single N	register_kprobe() of each of the first N targets
 *	detach		unregister_kprobes() of all registered probes
 *	detach-single	unregister_kprobe() of each registered probe
 *	wait N		register_kprobes() of the first N targets, then register_kprobe() of
 *			further ones while the first are optimised: the longest of the latter
 *	beside N	register_kprobes() of the first N targets, then register_kprobe() of
 *			each of 100 further ones: the mean of the latter; and that of
 *			unregister_kprobe() of these
 *	alone N		register_kprobe() and unregister_kprobe() of each of the first N
 *			targets, with no other probe: the mean
 *	filter N	the cost of ftrace alone, without a probe: add the first N targets to
 *			the filter of an ftrace_ops one by one, remove them one by one, and
 *			remove them with a grace period after each, as the kernel does when it
 *			closes a perf event. There must be more targets than N, all of them
 *			functions
 *
 * In a virtual machine that counts each instruction as a nanosecond, the durations are
 * those of an idle machine, include all waiting, and repeat almost exactly.
 *
 * See Documentation/trace/kprobes.rst.
 */
#define pr_fmt(fmt)	KBUILD_MODNAME ": " fmt

#include <linux/cleanup.h>
#include <linux/compiler.h>
#include <linux/delay.h>
#include <linux/ftrace.h>
#include <linux/kprobes.h>
#include <linux/kstrtox.h>
#include <linux/ktime.h>
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/tracepoint.h>

#include "read_text.h"

/* Duration of the command "wait" in ns. An optimisation takes less. */
#define WAIT_TIME	(3ULL * NSEC_PER_SEC)

/* The number of further probes of the command "beside". */
#define FURTHER		100

/* The optimiser is done when the text has not changed for this many ns. */
#define REST_TIME	(2ULL * NSEC_PER_SEC)

static char *file;
module_param_named(targets, file, charp, 0444);
MODULE_PARM_DESC(targets, "File with a SYMBOL, SYMBOL+OFFSET or address on each line");

/**
 * struct target - An address to probe
 * @symbol:	The symbol, a part of @text; or NULL if @addr is set.
 * @offset:	Bytes from @symbol.
 * @addr:	The address, or NULL if @symbol is set.
 */
struct target {
	const char *symbol;
	unsigned int offset;
	kprobe_opcode_t *addr;
};

static char *text;
static struct target *targets;
static struct kprobe *probes;
static struct kprobe **kprobes;

/* The first @usable targets can be probed, the first @attached ones are probed. */
static unsigned int usable, attached;

/* Serialises commands. */
static DEFINE_MUTEX(lock);

static int scale_pre_handler(struct kprobe *p, struct pt_regs *regs)
{
	return 0;
}

/* ---------------------------------------------------------------- targets */

static int scale_parse_target(char *line, struct target *target)
{
	unsigned long addr;
	int err;

	if (str_has_prefix(line, "0x")) {
		err = kstrtoul(line, 0, &addr);
		target->addr = (kprobe_opcode_t *)addr;
		return err;
	}
	target->symbol = strsep(&line, "+");
	return line ? kstrtouint(line, 0, &target->offset) : 0;
}

/* Initialise a probe before each registration, since a registration changes it. */
static void scale_init_probe(struct kprobe *p, const struct target *target, u32 flags)
{
	*p = (struct kprobe){
		.symbol_name	= target->symbol,
		.offset		= target->offset,
		.addr		= target->addr,
		.pre_handler	= scale_pre_handler,
		.flags		= flags,
	};
}

/* Move the targets that can be probed to the front. */
static void scale_select_targets(unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		scale_init_probe(&probes[usable], &targets[i], KPROBE_FLAG_DISABLED);
		if (register_kprobe(&probes[usable]))
			continue;
		kprobes[usable] = &probes[usable];
		targets[usable++] = targets[i];
		cond_resched();
	}
	unregister_kprobes(kprobes, usable);
}

static int scale_read_targets(void)
{
	unsigned int count;
	char *rest;
	int err;

	text = read_text(file);
	if (IS_ERR(text)) {
		err = PTR_ERR(text);
		text = NULL;
		return err;
	}
	count = count_lines(text);
	targets = kvcalloc(count, sizeof(*targets), GFP_KERNEL);
	probes = kvcalloc(count, sizeof(*probes), GFP_KERNEL);
	kprobes = kvcalloc(count, sizeof(*kprobes), GFP_KERNEL);
	if (!targets || !probes || !kprobes)
		return -ENOMEM;
	rest = text;
	for (unsigned int i = 0; i < count; i++) {
		err = scale_parse_target(strsep(&rest, "\n"), &targets[i]);
		if (err)
			return err;
	}
	scale_select_targets(count);
	pr_info("targets %u\n", usable);
	return 0;
}

/* --------------------------------------------------------------- commands */

static u64 scale_ns_since(ktime_t start)
{
	return ktime_to_ns(ktime_sub(ktime_get(), start));
}

static int scale_attach(unsigned int count)
{
	int err;

	for (unsigned int i = 0; i < count; i++)
		scale_init_probe(&probes[i], &targets[i], 0);
	err = register_kprobes(kprobes, count);
	if (!err)
		attached = count;
	return err;
}

/* Register probes one by one until @count are registered. */
static int scale_attach_single(unsigned int count)
{
	for (; attached < count; attached++) {
		int err;

		scale_init_probe(&probes[attached], &targets[attached], 0);
		err = register_kprobe(&probes[attached]);
		if (err)
			return err;
		cond_resched();
	}
	return 0;
}

static void scale_detach(void)
{
	unregister_kprobes(kprobes, attached);
	attached = 0;
}

/* Unregister probes one by one until @count are registered. */
static void scale_detach_single(unsigned int count)
{
	while (attached > count) {
		unregister_kprobe(&probes[--attached]);
		cond_resched();
	}
}

/* Read the first byte at each probe into @seen: true if one has changed. */
static bool scale_text_changed(u8 *seen)
{
	bool changed = false;

	for (unsigned int i = 0; i < attached; i++) {
		u8 byte = READ_ONCE(*(u8 *)probes[i].addr);

		changed |= seen[i] != byte;
		seen[i] = byte;
	}
	return changed;
}

static int scale_attach_jumps(unsigned int count, u64 *taken)
{
	u8 *seen __free(kvfree) = kvzalloc(count, GFP_KERNEL);
	ktime_t start, attached_at, changed_at;
	int err;

	if (!seen)
		return -ENOMEM;
	start = ktime_get();
	err = scale_attach(count);
	if (err)
		return err;
	attached_at = ktime_get();
	changed_at = attached_at;
	scale_text_changed(seen);
	while (scale_ns_since(changed_at) < REST_TIME) {
		usleep_range(500, 1000);
		if (scale_text_changed(seen))
			changed_at = ktime_get();
	}
	*taken = ktime_to_ns(ktime_sub(changed_at, start));
	pr_info("jumps-later-%u %llu\n", count, ktime_to_ns(ktime_sub(changed_at, attached_at)));
	return 0;
}

/* The later registrations are spread over the whole optimisation. */
static int scale_longest_wait(unsigned int count, u64 *longest)
{
	ktime_t start, began;
	int err;

	*longest = 0;
	err = scale_attach(count);
	began = ktime_get();
	while (!err && attached < usable && scale_ns_since(began) < WAIT_TIME) {
		start = ktime_get();
		err = scale_attach_single(attached + 1);
		*longest = max(*longest, scale_ns_since(start));
		usleep_range(1000, 2000);
	}
	return err;
}

static int scale_alone(unsigned int count, u64 *each)
{
	ktime_t start = ktime_get();

	for (unsigned int i = 0; i < count; i++) {
		int err;

		scale_init_probe(&probes[0], &targets[i], 0);
		err = register_kprobe(&probes[0]);
		if (err)
			return err;
		unregister_kprobe(&probes[0]);
		cond_resched();
	}
	*each = div_u64(scale_ns_since(start), count);
	return 0;
}

static int scale_beside(unsigned int count, u64 *each)
{
	ktime_t start;
	int err;

	if (count + FURTHER > usable)
		return -EINVAL;
	err = scale_attach(count);
	if (err)
		return err;
	start = ktime_get();
	err = scale_attach_single(count + FURTHER);
	*each = div_u64(scale_ns_since(start), FURTHER);
	start = ktime_get();
	scale_detach_single(count);
	pr_info("beside-detach-%u %llu\n", count, div_u64(scale_ns_since(start), FURTHER));
	return err;
}

#ifdef CONFIG_DYNAMIC_FTRACE
static void notrace scale_ftrace_callback(unsigned long ip, unsigned long parent_ip,
					  struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
}

static struct ftrace_ops filter_ops = {
	.func	= scale_ftrace_callback,
	.flags	= FTRACE_OPS_FL_SAVE_REGS_IF_SUPPORTED,
};

static int scale_filter_each(const char *name, const unsigned long *ips, unsigned int count,
			     bool remove, bool wait)
{
	ktime_t start = ktime_get();

	for (unsigned int i = 0; i < count; i++) {
		int err = ftrace_set_filter_ip(&filter_ops, ips[i], remove, 0);

		if (err)
			return err;
		if (wait)
			tracepoint_synchronize_unregister();
		cond_resched();
	}
	pr_info("%s-%u %llu\n", name, count, scale_ns_since(start));
	return 0;
}

static int scale_filter_all(unsigned long *ips, unsigned int count)
{
	return scale_filter_each("filter-add", ips, count, false, false) ?:
	       scale_filter_each("filter-remove", ips, count, true, false) ?:
	       ftrace_set_filter_ips(&filter_ops, ips, count, 0, 0) ?:
	       scale_filter_each("filter-remove-wait", ips, count, true, true);
}

/*
 * A lower bound for arming and disarming probes through ftrace one by one. One more
 * function stays in the filter, since an empty filter selects all functions.
 */
static int scale_filter(unsigned int count)
{
	unsigned long *ips __free(kvfree) = kvmalloc_array(count, sizeof(*ips), GFP_KERNEL);
	int err;

	if (!ips)
		return -ENOMEM;
	if (count == usable)
		return -EINVAL;
	for (unsigned int i = 0; i < count; i++)
		ips[i] = (unsigned long)targets[i].addr;
	err = ftrace_set_filter_ip(&filter_ops, (unsigned long)targets[count].addr, 0, 0) ?:
	      register_ftrace_function(&filter_ops);
	if (!err) {
		err = scale_filter_all(ips, count);
		unregister_ftrace_function(&filter_ops);
	}
	ftrace_free_filter(&filter_ops);
	return err;
}
#else
static int scale_filter(unsigned int count)
{
	return -EOPNOTSUPP;
}
#endif

static int scale_run_command(const char *name, unsigned int count)
{
	ktime_t start = ktime_get();
	u64 duration = U64_MAX;
	int err = 0;

	if (!strcmp(name, "attach"))
		err = scale_attach(count);
	else if (!strcmp(name, "attach-single"))
		err = scale_attach_single(count);
	else if (!strcmp(name, "wait"))
		err = scale_longest_wait(count, &duration);
	else if (!strcmp(name, "jumps"))
		err = scale_attach_jumps(count, &duration);
	else if (!strcmp(name, "alone"))
		err = scale_alone(count, &duration);
	else if (!strcmp(name, "beside"))
		err = scale_beside(count, &duration);
	else if (!strcmp(name, "filter"))
		err = scale_filter(count);
	else if (!strcmp(name, "detach"))
		scale_detach();
	else if (!strcmp(name, "detach-single"))
		scale_detach_single(0);
	else
		return -EINVAL;
	if (err)
		return err;
	pr_info("%s-%u %llu\n", name, count,
		duration < U64_MAX ? duration : scale_ns_since(start));
	return 0;
}

static int scale_run(const char *value, const struct kernel_param *param)
{
	unsigned int count;
	char name[16];
	int found;

	guard(mutex)(&lock);
	found = sscanf(value, "%15s %u", name, &count);
	if (found < 1)
		return -EINVAL;
	if (found == 1)
		count = attached;
	else if (attached || !count || count > usable)
		return -EINVAL;
	if (!count)
		return -EINVAL;
	return scale_run_command(name, count);
}

static const struct kernel_param_ops run_ops = { .set = scale_run };
module_param_cb(run, &run_ops, NULL, 0200);
MODULE_PARM_DESC(run, "Write a command: attach N, attach-single N, jumps N, wait N, alone N, beside N, filter N, detach, detach-single");

/* ----------------------------------------------------------------- module */

static void scale_free_targets(void)
{
	kvfree(kprobes);
	kvfree(probes);
	kvfree(targets);
	kvfree(text);
}

static int __init scale_init(void)
{
	int err;

	if (!file) {
		pr_err("the parameter targets is missing\n");
		return -EINVAL;
	}
	err = scale_read_targets();
	if (err) {
		pr_err("cannot use %s: %pe\n", file, ERR_PTR(err));
		scale_free_targets();
	}
	return err;
}
module_init(scale_init);

static void __exit scale_exit(void)
{
	scale_detach();
	scale_free_targets();
}
module_exit(scale_exit);

MODULE_DESCRIPTION("Measure the registration of thousands of probes");
MODULE_LICENSE("GPL");
