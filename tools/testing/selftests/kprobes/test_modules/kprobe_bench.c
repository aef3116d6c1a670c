// SPDX-License-Identifier: GPL-2.0
/*
 * Measure the cost of a hit
 *
 *	insmod kprobe_bench.ko
 *	echo BENCHMARK >/sys/module/kprobe_bench/parameters/run
 *
 * runs one of these benchmarks, and logs the results. debug.kprobes-optimization must be 1
 * for those with "optimized" in their name, and 0 for the others:
 *
 *	plain		the nanoseconds that a hit adds to a call of a function, for hits of
 *			breakpoints and hits through ftrace
 *	optimized	the nanoseconds that a hit adds to a call of a function, for jumps
 *	only KIND	one of these kinds of hits, by its name in the log
 *	places		hits of breakpoints at hundreds of adjacent instructions: their
 *			number, the sum, minimum and maximum of their durations, and the
 *			number of hits that take longer than the minimum
 *	parallel	hits per second on two CPUs, of one shared probe and of one probe
 *			for each CPU, for breakpoints and ftrace
 *	parallel-optimized	hits per second on two CPUs for jumps
 *
 * Nanoseconds are exact in a virtual machine that counts each instruction as one:
 * qemu-system-x86_64 -icount shift=0,sleep=off. Hits per second mean little there. In any
 * virtual machine, compare them only with those of another kernel on the same machine.
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
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/sprintf.h>
#include <linux/string.h>
#include <linux/stringify.h>
#include <linux/timex.h>

#ifdef CONFIG_X86
#include <asm/asm.h>
#endif

#define ROUNDS		20	/* of which the fastest counts */
#define CALLS		512	/* per round */
#define CPUS		2
#define SECONDS		2	/* duration of "parallel" */

/*
 * Copies of each function. The cost of the lookup depends on the hash of the address, so a
 * benchmark takes the mean of several addresses. An unused operand differs between the
 * copies, so that the compiler does not merge them.
 */
#define COPIES		4

/**
 * struct functions - Copies of a function
 * @probed:	The copies to be probed.
 * @unprobed:	Copies that are never probed, for comparison.
 * @name:	The names of the probed copies, without the number at the end.
 */
struct functions {
	void (*probed[COPIES])(void);
	void (*unprobed[COPIES])(void);
	const char *name;
};

#ifdef CONFIG_X86
#define CLOBBERED	_ASM_AX, "memory"
#else
#define CLOBBERED	"memory"
#endif

static int counter;

#define DEFINE_FUNCTION(name, attributes, insns)			\
static attributes void name(void)					\
{									\
	asm volatile(insns						\
		     : "+m" (counter) : "i" (__COUNTER__) : CLOBBERED);	\
}

/* Define the copies of a function by what##_function(). */
#define DEFINE_FUNCTIONS(what)						\
what##_function(bench_##what##0)					\
what##_function(bench_##what##1)					\
what##_function(bench_##what##2)					\
what##_function(bench_##what##3)					\
what##_function(bench_unprobed_##what##0)				\
what##_function(bench_unprobed_##what##1)				\
what##_function(bench_unprobed_##what##2)				\
what##_function(bench_unprobed_##what##3)				\
									\
static const struct functions what = {					\
	.name		= "bench_" #what,				\
	.probed		= { bench_##what##0, bench_##what##1,		\
			    bench_##what##2, bench_##what##3 },		\
	.unprobed	= {						\
		bench_unprobed_##what##0, bench_unprobed_##what##1,	\
		bench_unprobed_##what##2, bench_unprobed_##what##3,	\
	},								\
}

/* Nops that have room for a jump. Without ftrace, a probe on the entry is a breakpoint. */
#define NOPS			"nop; nop; nop; nop; nop; nop; nop; nop"
#define nops_function(name)	DEFINE_FUNCTION(name, noinline notrace, NOPS)
DEFINE_FUNCTIONS(nops);

/* Functions with an ftrace site. */
#define traced_function(name)	DEFINE_FUNCTION(name, noinline, NOPS)
DEFINE_FUNCTIONS(traced);

#ifdef CONFIG_X86
/* A branch, which the breakpoint's handler emulates. */
#define JUMP			"jmp 1f; 1:"
#define jump_function(name)	DEFINE_FUNCTION(name, noinline notrace, JUMP)
DEFINE_FUNCTIONS(jump);

/* Instructions that are executed in a slot or a detour. */
#define MOV			"mov %%" _ASM_SP ", %%" _ASM_AX ";" NOPS
#define mov_function(name)	DEFINE_FUNCTION(name, noinline notrace, MOV)
DEFINE_FUNCTIONS(mov);

#define PUSH			"push %%" _ASM_AX "; pop %%" _ASM_AX ";" NOPS
#define push_function(name)	DEFINE_FUNCTION(name, noinline notrace, PUSH)
DEFINE_FUNCTIONS(push);

#define LEA			"lea 8(%%" _ASM_SP "), %%" _ASM_AX ";" NOPS
#define lea_function(name)	DEFINE_FUNCTION(name, noinline notrace, LEA)
DEFINE_FUNCTIONS(lea);

/* On x86-64, the operand is relative to the instruction pointer. */
#define ADD			"addl $1, %0;" NOPS
#define add_function(name)	DEFINE_FUNCTION(name, noinline notrace, ADD)
DEFINE_FUNCTIONS(add);
#endif

static int bench_pre_handler(struct kprobe *p, struct pt_regs *regs)
{
	return 0;
}

static void bench_post_handler(struct kprobe *p, struct pt_regs *regs, unsigned long flags)
{
}

static int bench_return_handler(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	return 0;
}

/* ---------------------------------------------------------------- kinds of probes */

/**
 * struct bench - A benchmark of one kind of probe
 * @name:	Its name in the log.
 * @functions:	The functions to be probed.
 * @post:	The post handler, or NULL.
 * @on_return:	True for return probes.
 * @optimized:	True to wait until the probes have been optimised.
 * @parallel:	True to measure hits per second on several CPUs as well.
 */
struct bench {
	const char *name;
	const struct functions *functions;
	kprobe_post_handler_t post;
	bool on_return;
	bool optimized;
	bool parallel;
};

static const struct bench benches[] = {
	{ "breakpoint", &nops, .parallel = true },
	{ "post", &nops, .post = bench_post_handler },
	{ "return", &nops, .on_return = true },
	{ "fentry", &traced, .parallel = true },
	{ "fentry-return", &traced, .on_return = true },
	{ "optimized", &nops, .optimized = true, .parallel = true },
	{ "optimized-post", &nops, .post = bench_post_handler, .optimized = true },
	{ "optimized-return", &nops, .on_return = true, .optimized = true },
#ifdef CONFIG_X86
	{ "emulated", &jump },
	{ "mov", &mov },
	{ "mov-post", &mov, .post = bench_post_handler },
	{ "mov-optimized", &mov, .optimized = true },
	{ "mov-optimized-post", &mov, .post = bench_post_handler, .optimized = true },
	{ "push", &push },
	{ "push-post", &push, .post = bench_post_handler },
	{ "push-optimized", &push, .optimized = true },
	{ "push-optimized-post", &push, .post = bench_post_handler, .optimized = true },
	{ "lea", &lea },
	{ "lea-post", &lea, .post = bench_post_handler },
	{ "lea-optimized", &lea, .optimized = true },
	{ "lea-optimized-post", &lea, .post = bench_post_handler, .optimized = true },
	{ "add", &add },
	{ "add-post", &add, .post = bench_post_handler },
	{ "add-optimized", &add, .optimized = true },
	{ "add-optimized-post", &add, .post = bench_post_handler, .optimized = true },
#endif
};

/**
 * struct probes - Probes on the copies of a function
 * @symbol:	The names of the copies.
 * @kprobe:	The probes, unless they are return probes.
 * @kretprobe:	The return probes.
 * @kprobes:	The argument of register_kprobes().
 * @kretprobes:	The argument of register_kretprobes().
 * @byte:	The first byte at each probe right after the registration.
 */
struct probes {
	char symbol[COPIES][32];
	struct kprobe kprobe[COPIES];
	struct kretprobe kretprobe[COPIES];
	struct kprobe *kprobes[COPIES];
	struct kretprobe *kretprobes[COPIES];
	u8 byte[COPIES];
};

/*
 * Kernels differ in the flags of an optimised probe, so a benchmark tells a jump from a
 * breakpoint by the first byte.
 */
static u8 bench_probed_byte(const struct kprobe *p)
{
	return READ_ONCE(*(u8 *)p->addr);
}

static const struct kprobe *bench_kprobe(const struct probes *probes, const struct bench *bench,
					 unsigned int i)
{
	return bench->on_return ? &probes->kretprobe[i].kp : &probes->kprobe[i];
}

static int bench_attach(struct probes *probes, const struct bench *bench)
{
	int err;

	for (unsigned int i = 0; i < COPIES; i++) {
		snprintf(probes->symbol[i], sizeof(probes->symbol[i]), "%s%u",
			 bench->functions->name, i);
		probes->kprobe[i] = (struct kprobe){
			.symbol_name	= probes->symbol[i],
			.pre_handler	= bench_pre_handler,
			.post_handler	= bench->post,
		};
		probes->kretprobe[i] = (struct kretprobe){
			.kp.symbol_name	= probes->symbol[i],
			.handler	= bench_return_handler,
		};
		probes->kprobes[i] = &probes->kprobe[i];
		probes->kretprobes[i] = &probes->kretprobe[i];
	}
	err = bench->on_return ? register_kretprobes(probes->kretprobes, COPIES)
			     : register_kprobes(probes->kprobes, COPIES);
	for (unsigned int i = 0; i < COPIES && !err; i++)
		probes->byte[i] = bench_probed_byte(bench_kprobe(probes, bench, i));
	return err;
}

static void bench_detach(struct probes *probes, const struct bench *bench)
{
	if (bench->on_return)
		unregister_kretprobes(probes->kretprobes, COPIES);
	else
		unregister_kprobes(probes->kprobes, COPIES);
	/* Some kernels remove a jump later. The next registration must not meet it. */
	msleep(500);
}

/*
 * True if, since the registration, the first byte has changed at all probes; or at none of
 * them if @changed is false.
 */
static bool bench_all_changed(const struct probes *probes, const struct bench *bench, bool changed)
{
	for (unsigned int i = 0; i < COPIES; i++) {
		const struct kprobe *p = bench_kprobe(probes, bench, i);
		bool differs = bench_probed_byte(p) != probes->byte[i];

		if (differs != changed)
			return false;
	}
	return true;
}

/* Returns false if the probes do not get ready. */
static bool bench_wait_ready(const struct probes *probes, const struct bench *bench)
{
	/* Thousands of others may come before these. */
	unsigned int tries = bench->optimized ? 1500 : 1;

	while (!bench_all_changed(probes, bench, bench->optimized) && --tries)
		msleep(20);
	return tries;
}

static u64 bench_time_calls(void (*const *functions)(void))
{
	unsigned long flags;
	u64 best = U64_MAX;
	ktime_t start;

	for (unsigned int round = 0; round < ROUNDS; round++) {
		local_irq_save(flags);
		start = ktime_get();
		for (unsigned int i = 0; i < CALLS; i++)
			functions[i % COPIES]();
		best = min_t(u64, best, ktime_to_ns(ktime_sub(ktime_get(), start)));
		local_irq_restore(flags);
	}
	return best;
}

static int bench_measure(const struct bench *bench)
{
	struct probes *probes __free(kfree) = kzalloc(sizeof(*probes), GFP_KERNEL);
	s64 cost;
	int err;

	if (!probes)
		return -ENOMEM;
	err = bench_attach(probes, bench);
	if (err)
		return err;
	if (bench_wait_ready(probes, bench)) {
		cost = bench_time_calls(bench->functions->probed) -
		       bench_time_calls(bench->functions->unprobed);
		pr_info("%s %lld\n", bench->name, div_s64(cost + CALLS / 2, CALLS));
	}
	/* A probe that was or became unsuitable has spoilt the result. */
	if (!bench_all_changed(probes, bench, bench->optimized))
		err = -EAGAIN;
	bench_detach(probes, bench);
	return err;
}

/* A benchmark that the kernel does not support does not end the others. */
static int bench_run_all(bool optimized)
{
	int failed = 0;

	for (unsigned int i = 0; i < ARRAY_SIZE(benches); i++) {
		const struct bench *bench = &benches[i];
		int err;

		if (bench->optimized != optimized)
			continue;
		err = bench_measure(bench);
		if (err) {
			pr_err("%s failed: %pe\n", bench->name, ERR_PTR(err));
			failed = err;
		}
	}
	return failed;
}

static int bench_run_only(const char *kind)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(benches); i++)
		if (sysfs_streq(kind, benches[i].name))
			return bench_measure(&benches[i]);
	return -EINVAL;
}

/* --------------------------------------------------------------- many places */

#ifdef CONFIG_X86
#define PLACES		512

/* All hits do the same work, except for the lookup of the probe. */
static noinline notrace void bench_places(void)
{
	asm volatile(".rept " __stringify(PLACES) "; nop; .endr");
}

/**
 * struct places - Probes on each instruction of bench_places()
 * @kprobe:	The probes, in address order.
 * @kprobes:	The argument of register_kprobes().
 * @stamp:	Cycles at the last call of each handler.
 * @least:	The fewest cycles from the previous handler to this one.
 */
struct places {
	struct kprobe kprobe[PLACES];
	struct kprobe *kprobes[PLACES];
	u64 stamp[PLACES];
	u64 least[PLACES];
};

static struct places places;

static int bench_place_handler(struct kprobe *p, struct pt_regs *regs)
{
	places.stamp[p - places.kprobe] = get_cycles();
	return 0;
}

static int bench_attach_places(void)
{
	for (unsigned int i = 0; i < PLACES; i++) {
		places.kprobe[i] = (struct kprobe){
			.symbol_name	= "bench_places",
			.offset		= i,
			.pre_handler	= bench_place_handler,
		};
		places.kprobes[i] = &places.kprobe[i];
		places.least[i] = U64_MAX;
	}
	return register_kprobes(places.kprobes, PLACES);
}

static void bench_hit_places(void)
{
	unsigned long flags;

	for (unsigned int round = 0; round < ROUNDS; round++) {
		local_irq_save(flags);
		bench_places();
		local_irq_restore(flags);
		for (unsigned int i = 1; i < PLACES; i++)
			places.least[i] = min(places.least[i],
					      places.stamp[i] - places.stamp[i - 1]);
	}
}

/* The duration of the first hit is not known. */
static void bench_report_places(void)
{
	u64 sum = 0, least = U64_MAX, most = 0;
	unsigned int above_least = 0;

	for (unsigned int i = 1; i < PLACES; i++) {
		sum += places.least[i];
		least = min(least, places.least[i]);
		most = max(most, places.least[i]);
	}
	for (unsigned int i = 1; i < PLACES; i++)
		above_least += places.least[i] > least;
	pr_info("places %u\n", PLACES - 1);
	pr_info("places-sum %llu\n", sum);
	pr_info("places-least %llu\n", least);
	pr_info("places-most %llu\n", most);
	pr_info("places-dearer %u\n", above_least);
}

static bool bench_all_places_hit(void)
{
	for (unsigned int i = 0; i < PLACES; i++)
		if (!places.stamp[i])
			return false;
	return true;
}

static int bench_run_places(void)
{
	int err;

	memset(places.stamp, 0, sizeof(places.stamp));
	err = bench_attach_places();
	if (err)
		return err;
	bench_hit_places();
	unregister_kprobes(places.kprobes, PLACES);
	if (!bench_all_places_hit())
		return -EAGAIN;
	bench_report_places();
	return 0;
}
#else
static int bench_run_places(void)
{
	return -EOPNOTSUPP;
}
#endif

/* --------------------------------------------------------------- hits on all CPUs */

/**
 * struct caller - A thread that calls a function
 * @task:	The thread.
 * @function:	The function.
 * @calls:	Number of calls so far.
 */
struct caller {
	struct task_struct *task;
	void (*function)(void);
	u64 calls;
};

static int bench_call_thread(void *data)
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

static int bench_call_on_cpus(struct caller *callers)
{
	unsigned int started = 0;
	int cpu, err = 0;

	for_each_online_cpu(cpu) {
		if (started == CPUS)
			break;
		callers[started].task = kthread_create_on_cpu(bench_call_thread, &callers[started],
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

static int bench_run_parallel(const struct bench *bench, bool shared)
{
	struct probes *probes __free(kfree) = kzalloc(sizeof(*probes), GFP_KERNEL);
	struct caller callers[CPUS] = { };
	u64 hits = 0;
	int err;

	if (!probes)
		return -ENOMEM;
	err = bench_attach(probes, bench);
	if (err)
		return err;
	for (unsigned int i = 0; i < CPUS; i++)
		callers[i].function = bench->functions->probed[shared ? 0 : i];
	err = bench_wait_ready(probes, bench) ? bench_call_on_cpus(callers) : -EAGAIN;
	bench_detach(probes, bench);
	for (unsigned int i = 0; i < CPUS; i++)
		hits += callers[i].calls;
	if (!err)
		pr_info("%s-%s %llu\n", shared ? "shared" : "own", bench->name,
			div_u64(hits, SECONDS));
	return err;
}

static int bench_run_all_parallel(bool optimized)
{
	int err = 0;

	for (unsigned int i = 0; i < ARRAY_SIZE(benches) && !err; i++) {
		const struct bench *bench = &benches[i];

		if (bench->optimized != optimized || !bench->parallel)
			continue;
		err = bench_run_parallel(bench, true);
		if (!err)
			err = bench_run_parallel(bench, false);
	}
	return err;
}

/* --------------------------------------------------------------------- module */

static int bench_run(const char *kind, const struct kernel_param *param)
{
	static DEFINE_MUTEX(lock);
	size_t only = str_has_prefix(kind, "only ");

	/* The optimiser ignores the text of a module that is being loaded. */
	if (THIS_MODULE->state != MODULE_STATE_LIVE)
		return -EAGAIN;
	guard(mutex)(&lock);
	if (sysfs_streq(kind, "plain"))
		return bench_run_all(false);
	if (sysfs_streq(kind, "optimized"))
		return bench_run_all(true);
	if (only)
		return bench_run_only(kind + only);
	if (sysfs_streq(kind, "parallel"))
		return bench_run_all_parallel(false);
	if (sysfs_streq(kind, "parallel-optimized"))
		return bench_run_all_parallel(true);
	if (sysfs_streq(kind, "places"))
		return bench_run_places();
	return -EINVAL;
}

static const struct kernel_param_ops run_ops = { .set = bench_run };
module_param_cb(run, &run_ops, NULL, 0200);
MODULE_PARM_DESC(run, "Write the name of a benchmark: plain, optimized, only KIND, places, parallel or parallel-optimized");

/* All work is done by writes to @run. */
static int __init bench_init(void)
{
	return 0;
}
module_init(bench_init);

static void __exit bench_exit(void)
{
}
module_exit(bench_exit);

MODULE_DESCRIPTION("Measure the cost of a hit");
MODULE_LICENSE("GPL");
