// SPDX-License-Identifier: GPL-2.0
/*
 * What does a hit cost?
 *
 *	insmod kprobe_bench.ko
 *	echo KIND >/sys/module/kprobe_bench/parameters/run
 *
 * measures one of these, and tells the kernel log:
 *
 *	plain		the nanoseconds that a hit adds to a call of a function, for
 *			probes that are hit by a breakpoint or through ftrace;
 *			debug.kprobes-optimization has to be 0
 *	optimized	the same for jumps; it has to be 1
 *	parallel	how many hits there are in a second on two CPUs, of one probe
 *			and of one for each CPU
 *
 * Nanoseconds are exact in a virtual machine that counts each instruction as one:
 * qemu-system-x86_64 -icount shift=0,sleep=off. Hits in a second tell little there,
 * and in any virtual machine something only beside those of another kernel.
 *
 * See Documentation/trace/kprobes.rst.
 */
#define pr_fmt(fmt)	KBUILD_MODNAME ": " fmt

#include <linux/cleanup.h>
#include <linux/compiler.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/irqflags.h>
#include <linux/kprobes.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/string.h>

#define ROUNDS		20	/* the fastest counts */
#define CALLS		500	/* a round */
#define CPUS		2
#define SECONDS		2	/* of hits on all CPUs */

/*
 * Functions that do the same. A jump has room in them; and equal ones, of which the
 * compiler would make one, are told apart by what it takes for instructions.
 */
#define NOPS(name)	asm volatile("nop; nop; nop; nop; nop; nop; nop; nop # " name)

/* No ftrace in these: a probe is a breakpoint. */

static noinline notrace void bench_nops(void)
{
	NOPS("nops");
}

static noinline notrace void bench_nops_too(void)
{
	NOPS("nops, too");
}

static noinline notrace void bench_unprobed_nops(void)
{
	NOPS("unprobed nops");
}

/* These begin with the call of ftrace, or what is in its place. */

static noinline void bench_traced_nops(void)
{
	NOPS("traced nops");
}

static noinline void bench_traced_nops_too(void)
{
	NOPS("traced nops, too");
}

static noinline void bench_unprobed_traced_nops(void)
{
	NOPS("unprobed traced nops");
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

/* -------------------------------------------------------------------- one hit */

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

/* Kernels do not agree on which probe is said to be optimised: the text tells. */
static u8 probed_byte(const struct kprobe *p)
{
	return READ_ONCE(*(u8 *)p->addr);
}

static bool becomes_optimized(const struct kprobe *p)
{
	u8 breakpoint = probed_byte(p);

	for (unsigned int tries = 0; tries < 200; tries++) {
		if (probed_byte(p) != breakpoint)
			return true;
		msleep(20);
	}
	return false;
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

static int measure(const struct bench *bench, const struct kprobe *p)
{
	u8 byte;
	s64 cost;

	if (bench->optimized && !becomes_optimized(p))
		return -EAGAIN;
	byte = probed_byte(p);
	cost = time_calls(bench->probed) - time_calls(bench->unprobed);
	if (byte != probed_byte(p))
		return -EAGAIN;
	pr_info("%s %lld\n", bench->name, div_s64(cost + CALLS / 2, CALLS));
	return 0;
}

static int run_kprobe(const struct bench *bench)
{
	struct kprobe probe = {
		.symbol_name	= bench->symbol,
		.pre_handler	= on_hit,
		.post_handler	= bench->post,
	};
	int err = register_kprobe(&probe);

	if (err)
		return err;
	err = measure(bench, &probe);
	unregister_kprobe(&probe);
	return err;
}

static int run_kretprobe(const struct bench *bench)
{
	struct kretprobe probe = {
		.kp.symbol_name	= bench->symbol,
		.handler	= on_return,
	};
	int err = register_kretprobe(&probe);

	if (err)
		return err;
	err = measure(bench, &probe.kp);
	unregister_kretprobe(&probe);
	return err;
}

/* A kernel that cannot do one of them can do the others. */
static int run_benches(bool optimized)
{
	int failed = 0;

	for (unsigned int i = 0; i < ARRAY_SIZE(benches); i++) {
		const struct bench *bench = &benches[i];
		int err;

		if (bench->optimized != optimized)
			continue;
		err = bench->returns ? run_kretprobe(bench) : run_kprobe(bench);
		if (err) {
			pr_err("no %s: %pe\n", bench->name, ERR_PTR(err));
			failed = err;
		}
	}
	return failed;
}

/* --------------------------------------------------------------- hits on all CPUs */

/**
 * struct caller - A thread that calls a function
 * @task:	The thread.
 * @function:	The function.
 * @calls:	How often it was called.
 */
struct caller {
	struct task_struct *task;
	void (*function)(void);
	u64 calls;
};

static int call_until_stopped(void *data)
{
	struct caller *caller = data;

	while (!kthread_should_stop()) {
		for (unsigned int i = 0; i < CALLS; i++)
			caller->function();
		caller->calls += CALLS;
		cond_resched();
	}
	return 0;
}

static int call_everywhere(struct caller *callers)
{
	unsigned int started = 0;
	int cpu, err = 0;

	for_each_online_cpu(cpu) {
		if (started == CPUS)
			break;
		callers[started].task = kthread_create_on_cpu(call_until_stopped, &callers[started],
							      cpu, "kprobe_bench/%u");
		if (IS_ERR(callers[started].task)) {
			err = PTR_ERR(callers[started].task);
			break;
		}
		wake_up_process(callers[started++].task);
	}
	if (!err)
		msleep(SECONDS * MSEC_PER_SEC);
	while (started)
		kthread_stop(callers[--started].task);
	return err;
}

/**
 * struct parallel - A kind of probes to be hit on all CPUs
 * @name:	Its name in the output.
 * @symbols:	The functions that are probed, one for each CPU.
 * @functions:	The same.
 */
static const struct parallel {
	const char *name;
	const char *symbols[CPUS];
	void (*functions[CPUS])(void);
} parallels[] = {
	{ "breakpoint", { "bench_nops", "bench_nops_too" }, { bench_nops, bench_nops_too } },
	{ "fentry", { "bench_traced_nops", "bench_traced_nops_too" },
	  { bench_traced_nops, bench_traced_nops_too } },
};

static int run_parallel(const struct parallel *parallel, bool shared)
{
	struct caller callers[CPUS] = { };
	struct kprobe probes[CPUS] = { };
	struct kprobe *array[CPUS];
	u64 hits = 0;
	int err;

	for (unsigned int i = 0; i < CPUS; i++) {
		probes[i].symbol_name = parallel->symbols[i];
		probes[i].pre_handler = on_hit;
		array[i] = &probes[i];
		callers[i].function = parallel->functions[shared ? 0 : i];
	}
	err = register_kprobes(array, CPUS);
	if (err)
		return err;
	err = call_everywhere(callers);
	unregister_kprobes(array, CPUS);
	for (unsigned int i = 0; i < CPUS; i++)
		hits += callers[i].calls;
	if (!err)
		pr_info("%s-%s %llu\n", shared ? "shared" : "own", parallel->name,
			div_u64(hits, SECONDS));
	return err;
}

static int run_parallels(void)
{
	int err = 0;

	for (unsigned int i = 0; i < ARRAY_SIZE(parallels) && !err; i++) {
		err = run_parallel(&parallels[i], true);
		if (!err)
			err = run_parallel(&parallels[i], false);
	}
	return err;
}

/* --------------------------------------------------------------------- module */

static int run(const char *kind, const struct kernel_param *param)
{
	static DEFINE_MUTEX(lock);

	/* A module is not optimised while it is still on its way in. */
	if (THIS_MODULE->state != MODULE_STATE_LIVE)
		return -EAGAIN;
	guard(mutex)(&lock);
	if (sysfs_streq(kind, "plain"))
		return run_benches(false);
	if (sysfs_streq(kind, "optimized"))
		return run_benches(true);
	if (sysfs_streq(kind, "parallel"))
		return run_parallels();
	return -EINVAL;
}

static const struct kernel_param_ops run_ops = { .set = run };
module_param_cb(run, &run_ops, NULL, 0200);
MODULE_PARM_DESC(run, "write what to measure: plain, optimized or parallel");

/* Nothing is left to be undone. */
static int __init bench_init(void)
{
	return 0;
}
module_init(bench_init);

static void __exit bench_exit(void)
{
}
module_exit(bench_exit);

MODULE_DESCRIPTION("Measure what a probe's hit costs");
MODULE_LICENSE("GPL");
