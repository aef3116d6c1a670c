// SPDX-License-Identifier: GPL-2.0
/*
 * What does a hit cost, and what does registration?
 *
 *	insmod kprobe_bench.ko functions=/tmp/functions
 *	dmesg | grep kprobe_bench:
 *
 * prints for each kind of probe the nanoseconds that a hit adds to a call of a
 * probed function, and then the same with many other probes registered. And, if
 * a file with names of functions is given, one on each line, how long it takes
 * to register probes on all of them at once, and to unregister them.
 *
 * For breakpoints to be what is measured, debug.kprobes-optimization has to be 0.
 * When it is 1, and the module is loaded,
 *
 *	echo 1 >/sys/module/kprobe_bench/parameters/optimized
 *
 * measures the jumps that take their place.
 *
 * All are exact in a virtual machine that counts each instruction as a
 * nanosecond: qemu-system-x86_64 -icount shift=0,sleep=off.
 *
 * See Documentation/trace/kprobes.rst.
 */
#define pr_fmt(fmt)	KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/irqflags.h>
#include <linux/kernel_read_file.h>
#include <linux/kprobes.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/stringify.h>
#include <linux/vmalloc.h>

#define ROUNDS		20	/* the fastest counts */
#define CALLS		500	/* a round */
#define MAX_OTHERS	1000

static unsigned int others = MAX_OTHERS;
module_param(others, uint, 0444);
MODULE_PARM_DESC(others, "how many other probes, at the most " __stringify(MAX_OTHERS));

static char *functions;
module_param(functions, charp, 0444);
MODULE_PARM_DESC(functions, "a file with names of functions, to be probed all at once");

/* Equal functions. No ftrace in these: a probe is a breakpoint. */

static noinline notrace void bench_nops(void)
{
	asm volatile("nop; nop; nop");
}

static noinline notrace void bench_unprobed_nops(void)
{
	asm volatile("nop; nop; nop");
}

/* These begin with the call of ftrace, or what is in its place. */

static noinline void bench_traced_nops(void)
{
	asm volatile("nop; nop; nop");
}

static noinline void bench_unprobed_traced_nops(void)
{
	asm volatile("nop; nop; nop");
}

/*
 * Never called: one instruction for each of the other probes, and some more, as
 * the compiler may put others in front of them.
 */
#define SPARE		16

static noinline notrace void bench_uncalled(void)
{
	asm volatile(".rept " __stringify(SPARE + MAX_OTHERS) "\n"
		     "	nop\n"
		     ".endr");
}

static int on_hit(struct kprobe *p, struct pt_regs *regs)
{
	return 0;
}

static void after_hit(struct kprobe *p, struct pt_regs *regs, unsigned long flags)
{
}

static int on_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	return 0;
}

/**
 * struct bench - A kind of probe
 * @name:	Its name in the output.
 * @probed:	The function that is probed.
 * @unprobed:	One that is the same, but is not.
 * @symbol:	The name of @probed.
 * @post:	The post handler, or NULL.
 * @returns:	Whether it is a return probe.
 * @optimized:	Whether to wait until it has been optimised.
 */
struct bench {
	const char *name;
	void (*probed)(void);
	void (*unprobed)(void);
	const char *symbol;
	kprobe_post_handler_t post;
	bool returns;
	bool optimized;
};

static const struct bench benches[] = {
	{ "breakpoint", bench_nops, bench_unprobed_nops, "bench_nops" },
	{ "post", bench_nops, bench_unprobed_nops, "bench_nops", .post = after_hit },
	{ "return", bench_nops, bench_unprobed_nops, "bench_nops", .returns = true },
	{ "fentry", bench_traced_nops, bench_unprobed_traced_nops, "bench_traced_nops" },
	{ "fentry-return", bench_traced_nops, bench_unprobed_traced_nops, "bench_traced_nops",
	  .returns = true },
	{ "optimized", bench_nops, bench_unprobed_nops, "bench_nops", .optimized = true },
	{ "optimized-post", bench_nops, bench_unprobed_nops, "bench_nops", .post = after_hit,
	  .optimized = true },
	{ "optimized-return", bench_nops, bench_unprobed_nops, "bench_nops", .returns = true,
	  .optimized = true },
};

/* Is the probe what is to be measured, or does it become so? */
static bool is_ready(const struct bench *bench, struct kprobe *probe)
{
	unsigned int tries = 200;

	while (bench->optimized && !kprobe_optimized(probe) && tries--)
		msleep(20);
	return !!kprobe_optimized(probe) == bench->optimized;
}

static u64 time_calls(void (*function)(void))
{
	unsigned long flags;
	u64 best = U64_MAX;
	ktime_t start;

	for (unsigned int round = 0; round < ROUNDS; round++) {
		local_irq_save(flags);
		start = ktime_get();
		for (unsigned int i = 0; i < CALLS; i++)
			function();
		best = min_t(u64, best, ktime_to_ns(ktime_sub(ktime_get(), start)));
		local_irq_restore(flags);
	}
	return best;
}

static void report(const struct bench *bench, const char *with)
{
	s64 cost = time_calls(bench->probed) - time_calls(bench->unprobed);

	pr_info("%s%s %lld\n", bench->name, with, div_s64(cost + CALLS / 2, CALLS));
}

static int run_kprobe(const struct bench *bench, const char *with)
{
	struct kprobe probe = {
		.symbol_name	= bench->symbol,
		.pre_handler	= on_hit,
		.post_handler	= bench->post,
	};
	int err = register_kprobe(&probe);

	if (err)
		return err;
	if (is_ready(bench, &probe))
		report(bench, with);
	else
		err = -EAGAIN;
	unregister_kprobe(&probe);
	return err;
}

static int run_kretprobe(const struct bench *bench, const char *with)
{
	struct kretprobe probe = {
		.kp.symbol_name	= bench->symbol,
		.handler	= on_return,
	};
	int err = register_kretprobe(&probe);

	if (err)
		return err;
	if (is_ready(bench, &probe.kp))
		report(bench, with);
	else
		err = -EAGAIN;
	unregister_kretprobe(&probe);
	return err;
}

static int run_bench(const struct bench *bench, const char *with)
{
	int err = bench->returns ? run_kretprobe(bench, with) : run_kprobe(bench, with);

	if (err)
		pr_err("cannot probe %s: %pe\n", bench->symbol, ERR_PTR(err));
	return err;
}

static int run_benches(const char *with, bool optimized)
{
	int err = 0;

	for (unsigned int i = 0; i < ARRAY_SIZE(benches) && !err; i++)
		if (benches[i].optimized == optimized)
			err = run_bench(&benches[i], with);
	return err;
}

static int run_among_others(struct kprobe *probes, struct kprobe **array, bool optimized)
{
	char with[32];
	int err;

	for (unsigned int i = 0; i < others; i++) {
		probes[i].addr = (kprobe_opcode_t *)bench_uncalled;
		probes[i].offset = (SPARE + i) * sizeof(kprobe_opcode_t);
		probes[i].pre_handler = on_hit;
		array[i] = &probes[i];
	}
	err = register_kprobes(array, others);
	if (err) {
		pr_err("cannot register %u other probes: %pe\n", others, ERR_PTR(err));
		return err;
	}
	snprintf(with, sizeof(with), "+%u", others);
	err = run_benches(with, optimized);
	unregister_kprobes(array, others);
	return err;
}

static int run_hits(bool optimized)
{
	struct kprobe **array;
	struct kprobe *probes;
	int err;

	others = clamp(others, 1, MAX_OTHERS);
	probes = kvcalloc(others, sizeof(*probes), GFP_KERNEL);
	array = kvcalloc(others, sizeof(*array), GFP_KERNEL);
	err = probes && array ? run_benches("", optimized) : -ENOMEM;
	if (!err)
		err = run_among_others(probes, array, optimized);
	kvfree(array);
	kvfree(probes);
	return err;
}

/* Register probes on all functions that are named, and unregister them. */
static int time_registration(char *names, unsigned int count)
{
	struct kprobe *probes = kvcalloc(count, sizeof(*probes), GFP_KERNEL);
	struct kprobe **array = kvcalloc(count, sizeof(*array), GFP_KERNEL);
	ktime_t start, registered, unregistered;
	int err = -ENOMEM;

	if (!probes || !array)
		goto out;
	for (unsigned int i = 0; i < count; i++) {
		probes[i].symbol_name = strsep(&names, "\n");
		probes[i].pre_handler = on_hit;
		array[i] = &probes[i];
	}
	start = ktime_get();
	err = register_kprobes(array, count);
	registered = ktime_get();
	if (err) {
		pr_err("cannot register %u probes: %pe\n", count, ERR_PTR(err));
		goto out;
	}
	unregister_kprobes(array, count);
	unregistered = ktime_get();
	pr_info("register-%u %lld\n", count, ktime_to_ns(ktime_sub(registered, start)));
	pr_info("unregister-%u %lld\n", count,
		ktime_to_ns(ktime_sub(unregistered, registered)));
out:
	kvfree(array);
	kvfree(probes);
	return err;
}

static int run_registration(void)
{
	unsigned int count = 0;
	void *data = NULL;
	ssize_t size;
	char *names;
	int err;

	size = kernel_read_file_from_path(functions, 0, &data, INT_MAX, NULL, READING_UNKNOWN);
	if (size < 0) {
		pr_err("cannot read %s: %pe\n", functions, ERR_PTR(size));
		return size;
	}
	names = kmemdup_nul(data, size, GFP_KERNEL);
	vfree(data);
	if (!names)
		return -ENOMEM;
	for (ssize_t i = 0; i < size; i++)
		count += names[i] == '\n';
	err = count ? time_registration(names, count) : -EINVAL;
	kfree(names);
	return err;
}

/* A module is not optimised while it is still on its way in. */
static int run_optimized(const char *value, const struct kernel_param *param)
{
	return THIS_MODULE->state == MODULE_STATE_LIVE ? run_hits(true) : -EAGAIN;
}

static const struct kernel_param_ops optimized_ops = { .set = run_optimized };
module_param_cb(optimized, &optimized_ops, NULL, 0200);
MODULE_PARM_DESC(optimized, "write 1: measure probes that have been optimised");

static int __init bench_init(void)
{
	int err = run_hits(false);

	return err || !functions ? err : run_registration();
}
module_init(bench_init);

/* Nothing is left to be undone. */
static void __exit bench_exit(void)
{
}
module_exit(bench_exit);

MODULE_DESCRIPTION("Measure the cost of a probe's hit");
MODULE_LICENSE("GPL");
