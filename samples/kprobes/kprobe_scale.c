// SPDX-License-Identifier: GPL-2.0
/*
 * What does it cost to probe thousands of instructions?
 *
 *	insmod kprobe_scale.ko targets=/tmp/targets
 *
 * reads what is to be probed, one SYMBOL, SYMBOL+OFFSET or address on each line,
 * and leaves out what cannot be. Then
 *
 *	echo COMMAND >/sys/module/kprobe_scale/parameters/run
 *
 * does one of these, and tells the kernel log how many nanoseconds it took:
 *
 *	attach N	register_kprobes() of the first N
 *	jumps N		the same, until the text there has come to rest, with jumps for
 *			breakpoints; and how long that is after register_kprobes()
 *	attach-single N	register_kprobe() of the first N, one by one
 *	detach		unregister_kprobes() of all that are registered
 *	detach-single	unregister_kprobe() of them, one by one
 *	wait N		register_kprobes() of the first N and then, while these are
 *			optimised, register_kprobe() of others: the longest of them
 *	filter N	for comparison, and without any probe: let an ftrace_ops be called
 *			from the first N of more, which are functions, one by one; no more,
 *			one by one; and that again, waiting after each as the kernel does
 *			when it closes a perf event
 *
 * In a virtual machine that counts each instruction as a nanosecond these times
 * are those of an idle machine, waiting included, and repeat almost exactly.
 *
 * See Documentation/trace/kprobes.rst.
 */
#define pr_fmt(fmt)	KBUILD_MODNAME ": " fmt

#include <linux/cleanup.h>
#include <linux/compiler.h>
#include <linux/delay.h>
#include <linux/ftrace.h>
#include <linux/kernel_read_file.h>
#include <linux/kprobes.h>
#include <linux/kstrtox.h>
#include <linux/ktime.h>
#include <linux/limits.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/tracepoint.h>
#include <linux/vmalloc.h>

/* How long to look at how long others wait: longer than an optimisation takes. */
#define WAIT_TIME	(3 * NSEC_PER_SEC)

/* How long nothing must change for the text to be at rest. */
#define REST_TIME	(2 * NSEC_PER_SEC)

static char *file;
module_param_named(targets, file, charp, 0444);
MODULE_PARM_DESC(targets, "a file with what to probe: SYMBOL, SYMBOL+OFFSET or address, one a line");

/**
 * struct target - What to probe
 * @symbol:	The symbol, in @text, or NULL.
 * @offset:	Bytes from there.
 * @addr:	Or the address.
 */
struct target {
	const char *symbol;
	unsigned int offset;
	kprobe_opcode_t *addr;
};

static char *text;
static struct target *targets;
static struct kprobe *probes;
static struct kprobe **array;

/* How many targets can be probed, the first ones; and how many are probed now. */
static unsigned int usable, attached;

/* Of one command at a time. */
static DEFINE_MUTEX(lock);

static int on_hit(struct kprobe *p, struct pt_regs *regs)
{
	return 0;
}

/* ---------------------------------------------------------------- targets */

static int parse_target(char *line, struct target *target)
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

/* A registration changes the probe: it is made anew each time. */
static void set_up(struct kprobe *p, const struct target *target, u32 flags)
{
	*p = (struct kprobe){
		.symbol_name	= target->symbol,
		.offset		= target->offset,
		.addr		= target->addr,
		.pre_handler	= on_hit,
		.flags		= flags,
	};
}

/* Move those to the front that can be registered. */
static void sort_out(unsigned int count)
{
	for (unsigned int i = 0; i < count; i++) {
		set_up(&probes[usable], &targets[i], KPROBE_FLAG_DISABLED);
		if (register_kprobe(&probes[usable]))
			continue;
		array[usable] = &probes[usable];
		targets[usable++] = targets[i];
		cond_resched();
	}
	unregister_kprobes(array, usable);
}

static int read_targets(void)
{
	unsigned int count = 0;
	void *data = NULL;
	ssize_t size;
	char *rest;
	int err;

	size = kernel_read_file_from_path(file, 0, &data, INT_MAX, NULL, READING_UNKNOWN);
	if (size < 0)
		return size;
	text = kvzalloc(size + 1, GFP_KERNEL);
	if (text)
		memcpy(text, data, size);
	vfree(data);
	if (!text)
		return -ENOMEM;
	for (ssize_t i = 0; i < size; i++)
		count += text[i] == '\n';

	targets = kvcalloc(count, sizeof(*targets), GFP_KERNEL);
	probes = kvcalloc(count, sizeof(*probes), GFP_KERNEL);
	array = kvcalloc(count, sizeof(*array), GFP_KERNEL);
	if (!targets || !probes || !array)
		return -ENOMEM;
	rest = text;
	for (unsigned int i = 0; i < count; i++) {
		err = parse_target(strsep(&rest, "\n"), &targets[i]);
		if (err)
			return err;
	}
	sort_out(count);
	pr_info("targets %u\n", usable);
	return 0;
}

/* --------------------------------------------------------------- commands */

static u64 ns_since(ktime_t start)
{
	return ktime_to_ns(ktime_sub(ktime_get(), start));
}

static int attach(unsigned int count)
{
	int err;

	for (unsigned int i = 0; i < count; i++)
		set_up(&probes[i], &targets[i], 0);
	err = register_kprobes(array, count);
	if (!err)
		attached = count;
	return err;
}

/* Add probes one by one, until there are as many. */
static int attach_up_to(unsigned int count)
{
	for (; attached < count; attached++) {
		int err;

		set_up(&probes[attached], &targets[attached], 0);
		err = register_kprobe(&probes[attached]);
		if (err)
			return err;
		cond_resched();
	}
	return 0;
}

static void detach(void)
{
	unregister_kprobes(array, attached);
	attached = 0;
}

static void detach_single(void)
{
	while (attached) {
		unregister_kprobe(&probes[--attached]);
		cond_resched();
	}
}

/* Remember what the text shows at the probes; has that changed? */
static bool look_at_text(u8 *seen)
{
	bool changed = false;

	for (unsigned int i = 0; i < attached; i++) {
		u8 byte = READ_ONCE(*(u8 *)probes[i].addr);

		changed |= seen[i] != byte;
		seen[i] = byte;
	}
	return changed;
}

static int attach_until_rest(unsigned int count, u64 *taken)
{
	u8 *seen __free(kvfree) = kvzalloc(count, GFP_KERNEL);
	ktime_t start, attached_at, changed_at;
	int err;

	if (!seen)
		return -ENOMEM;
	start = ktime_get();
	err = attach(count);
	if (err)
		return err;
	attached_at = ktime_get();
	changed_at = attached_at;
	look_at_text(seen);
	while (ns_since(changed_at) < REST_TIME) {
		usleep_range(500, 1000);
		if (look_at_text(seen))
			changed_at = ktime_get();
	}
	*taken = ktime_to_ns(ktime_sub(changed_at, start));
	pr_info("jumps-later-%u %llu\n", count, ktime_to_ns(ktime_sub(changed_at, attached_at)));
	return 0;
}

/* The others come at any moment of the optimisation, some of them at the worst. */
static int longest_wait(unsigned int count, u64 *longest)
{
	ktime_t start, began;
	int err;

	*longest = 0;
	err = attach(count);
	began = ktime_get();
	while (!err && attached < usable && ns_since(began) < WAIT_TIME) {
		start = ktime_get();
		err = attach_up_to(attached + 1);
		*longest = max(*longest, ns_since(start));
		usleep_range(1000, 2000);
	}
	return err;
}

#ifdef CONFIG_DYNAMIC_FTRACE
static void notrace on_call(unsigned long ip, unsigned long parent_ip, struct ftrace_ops *ops,
			    struct ftrace_regs *fregs)
{
}

static struct ftrace_ops filter_ops = {
	.func	= on_call,
	.flags	= FTRACE_OPS_FL_SAVE_REGS_IF_SUPPORTED,
};

static int filter_and_report(const char *name, const unsigned long *ips, unsigned int count,
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
	pr_info("%s-%u %llu\n", name, count, ns_since(start));
	return 0;
}

static int filter_all(unsigned long *ips, unsigned int count)
{
	return filter_and_report("filter-add", ips, count, false, false) ?:
	       filter_and_report("filter-remove", ips, count, true, false) ?:
	       ftrace_set_filter_ips(&filter_ops, ips, count, 0, 0) ?:
	       filter_and_report("filter-remove-wait", ips, count, true, true);
}

/*
 * What arms probes one by one through ftrace, or disarms them, can hardly take less. One
 * more function stays in the filter: an empty one is that of all functions.
 */
static int filter_functions(unsigned int count)
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
		err = filter_all(ips, count);
		unregister_ftrace_function(&filter_ops);
	}
	ftrace_free_filter(&filter_ops);
	return err;
}
#else
static int filter_functions(unsigned int count)
{
	return -EOPNOTSUPP;
}
#endif

static int run_command(const char *name, unsigned int count)
{
	ktime_t start = ktime_get();
	u64 found = U64_MAX;
	int err = 0;

	if (!strcmp(name, "attach"))
		err = attach(count);
	else if (!strcmp(name, "attach-single"))
		err = attach_up_to(count);
	else if (!strcmp(name, "wait"))
		err = longest_wait(count, &found);
	else if (!strcmp(name, "jumps"))
		err = attach_until_rest(count, &found);
	else if (!strcmp(name, "filter"))
		err = filter_functions(count);
	else if (!strcmp(name, "detach"))
		detach();
	else if (!strcmp(name, "detach-single"))
		detach_single();
	else
		return -EINVAL;
	if (err)
		return err;
	pr_info("%s-%u %llu\n", name, count, found < U64_MAX ? found : ns_since(start));
	return 0;
}

static int run(const char *value, const struct kernel_param *param)
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
	return run_command(name, count);
}

static const struct kernel_param_ops run_ops = { .set = run };
module_param_cb(run, &run_ops, NULL, 0200);
MODULE_PARM_DESC(run, "write a command: attach N, attach-single N, jumps N, wait N, filter N, detach, detach-single");

/* ----------------------------------------------------------------- module */

static void free_targets(void)
{
	kvfree(array);
	kvfree(probes);
	kvfree(targets);
	kvfree(text);
}

static int __init scale_init(void)
{
	int err = read_targets();

	if (err) {
		pr_err("cannot use %s: %pe\n", file, ERR_PTR(err));
		free_targets();
	}
	return err;
}
module_init(scale_init);

static void __exit scale_exit(void)
{
	detach();
	free_targets();
}
module_exit(scale_exit);

MODULE_DESCRIPTION("Measure what it costs to probe thousands of instructions");
MODULE_LICENSE("GPL");
