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
 *	places		hits of breakpoints at hundreds of places: how many there are, what
 *			all of them take, the least and the most that one takes, and how
 *			many take more than the least; again, with 0
 *	parallel	how many hits there are in a second on two CPUs, of one probe
 *			and of one for each CPU; again, with 0
 *	parallel-optimized	the same for jumps
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

#define ROUNDS		20	/* the fastest counts */
#define CALLS		512	/* a round */
#define CPUS		2
#define SECONDS		2	/* of hits on all CPUs */

/*
 * Each function is there several times: how long it takes to find a probe is a matter
 * of luck, of where the functions are. The compiler would make one of those that are
 * equal; an operand that is not used tells them apart.
 */
#define COPIES		4

/**
 * struct functions - Functions that are equal
 * @probed:	Those that are probed.
 * @unprobed:	Those that are not.
 * @name:	What the names of the probed ones begin with. A number follows.
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

/* Of the kind that what##_function() defines. */
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

/* A jump has room in these. No ftrace: a probe is a breakpoint. */
#define NOPS			"nop; nop; nop; nop; nop; nop; nop; nop"
#define nops_function(name)	DEFINE_FUNCTION(name, noinline notrace, NOPS)
DEFINE_FUNCTIONS(nops);

/* These begin with the call of ftrace, or what is in its place. */
#define traced_function(name)	DEFINE_FUNCTION(name, noinline, NOPS)
DEFINE_FUNCTIONS(traced);

#ifdef CONFIG_X86
/* What these begin with is not run elsewhere, but done by the breakpoint's handler. */
#define JUMP			"jmp 1f; 1:"
#define jump_function(name)	DEFINE_FUNCTION(name, noinline notrace, JUMP)
DEFINE_FUNCTIONS(jump);

/* What most begin with does something: it is run elsewhere. */
#define MOV			"mov %%" _ASM_SP ", %%" _ASM_AX ";" NOPS
#define mov_function(name)	DEFINE_FUNCTION(name, noinline notrace, MOV)
DEFINE_FUNCTIONS(mov);

#define PUSH			"push %%" _ASM_AX "; pop %%" _ASM_AX ";" NOPS
#define push_function(name)	DEFINE_FUNCTION(name, noinline notrace, PUSH)
DEFINE_FUNCTIONS(push);

#define LEA			"lea 8(%%" _ASM_SP "), %%" _ASM_AX ";" NOPS
#define lea_function(name)	DEFINE_FUNCTION(name, noinline notrace, LEA)
DEFINE_FUNCTIONS(lea);

/* Of 64 bits, it is relative to the instruction pointer. */
#define ADD			"addl $1, %0;" NOPS
#define add_function(name)	DEFINE_FUNCTION(name, noinline notrace, ADD)
DEFINE_FUNCTIONS(add);
#endif

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

/* ---------------------------------------------------------------- kinds of probes */

/**
 * struct bench - A kind of probe
 * @name:	Its name in the output.
 * @functions:	What is probed.
 * @post:	The post handler, or NULL.
 * @returns:	Whether it is a return probe.
 * @optimized:	Whether to wait until it has been optimised.
 * @parallel:	Whether it is one of those to be hit on all CPUs, too.
 */
struct bench {
	const char *name;
	const struct functions *functions;
	kprobe_post_handler_t post;
	bool returns;
	bool optimized;
	bool parallel;
};

static const struct bench benches[] = {
	{ "breakpoint", &nops, .parallel = true },
	{ "post", &nops, .post = after_hit },
	{ "return", &nops, .returns = true },
	{ "fentry", &traced, .parallel = true },
	{ "fentry-return", &traced, .returns = true },
	{ "optimized", &nops, .optimized = true, .parallel = true },
	{ "optimized-post", &nops, .post = after_hit, .optimized = true },
	{ "optimized-return", &nops, .returns = true, .optimized = true },
#ifdef CONFIG_X86
	{ "emulated", &jump },
	{ "mov", &mov },
	{ "mov-post", &mov, .post = after_hit },
	{ "mov-optimized", &mov, .optimized = true },
	{ "mov-optimized-post", &mov, .post = after_hit, .optimized = true },
	{ "push", &push },
	{ "push-post", &push, .post = after_hit },
	{ "push-optimized", &push, .optimized = true },
	{ "push-optimized-post", &push, .post = after_hit, .optimized = true },
	{ "lea", &lea },
	{ "lea-post", &lea, .post = after_hit },
	{ "lea-optimized", &lea, .optimized = true },
	{ "lea-optimized-post", &lea, .post = after_hit, .optimized = true },
	{ "add", &add },
	{ "add-post", &add, .post = after_hit },
	{ "add-optimized", &add, .optimized = true },
	{ "add-optimized-post", &add, .post = after_hit, .optimized = true },
#endif
};

/**
 * struct probes - Probes on the copies of a function
 * @symbol:	Their names.
 * @kprobe:	The probes,
 * @kretprobe:	or return probes.
 * @kprobes:	The array for their registration,
 * @kretprobes:	or that of return probes.
 * @byte:	What the text shows there.
 */
struct probes {
	char symbol[COPIES][32];
	struct kprobe kprobe[COPIES];
	struct kretprobe kretprobe[COPIES];
	struct kprobe *kprobes[COPIES];
	struct kretprobe *kretprobes[COPIES];
	u8 byte[COPIES];
};

/* Kernels do not agree on which probe is said to be optimised: the text tells. */
static u8 probed_byte(const struct kprobe *p)
{
	return READ_ONCE(*(u8 *)p->addr);
}

static const struct kprobe *probe_of(const struct probes *probes, const struct bench *bench,
				     unsigned int i)
{
	return bench->returns ? &probes->kretprobe[i].kp : &probes->kprobe[i];
}

static int attach(struct probes *probes, const struct bench *bench)
{
	int err;

	for (unsigned int i = 0; i < COPIES; i++) {
		snprintf(probes->symbol[i], sizeof(probes->symbol[i]), "%s%u",
			 bench->functions->name, i);
		probes->kprobe[i] = (struct kprobe){
			.symbol_name	= probes->symbol[i],
			.pre_handler	= on_hit,
			.post_handler	= bench->post,
		};
		probes->kretprobe[i] = (struct kretprobe){
			.kp.symbol_name	= probes->symbol[i],
			.handler	= on_return,
		};
		probes->kprobes[i] = &probes->kprobe[i];
		probes->kretprobes[i] = &probes->kretprobe[i];
	}
	err = bench->returns ? register_kretprobes(probes->kretprobes, COPIES)
			     : register_kprobes(probes->kprobes, COPIES);
	for (unsigned int i = 0; i < COPIES && !err; i++)
		probes->byte[i] = probed_byte(probe_of(probes, bench, i));
	return err;
}

static void detach(struct probes *probes, const struct bench *bench)
{
	if (bench->returns)
		unregister_kretprobes(probes->kretprobes, COPIES);
	else
		unregister_kprobes(probes->kprobes, COPIES);
	/* There are kernels that take out a jump later: the next ones are not to find it. */
	msleep(500);
}

/* Do all copies look otherwise than when the probes were registered, or none? */
static bool all_look(const struct probes *probes, const struct bench *bench, bool changed)
{
	for (unsigned int i = 0; i < COPIES; i++)
		if ((probed_byte(probe_of(probes, bench, i)) != probes->byte[i]) != changed)
			return false;
	return true;
}

static bool is_ready(const struct probes *probes, const struct bench *bench)
{
	unsigned int tries = bench->optimized ? 200 : 1;

	while (!all_look(probes, bench, bench->optimized) && --tries)
		msleep(20);
	return tries;
}

static u64 time_calls(void (*const *functions)(void))
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

static int measure(const struct bench *bench)
{
	struct probes *probes __free(kfree) = kzalloc(sizeof(*probes), GFP_KERNEL);
	s64 cost;
	int err;

	if (!probes)
		return -ENOMEM;
	err = attach(probes, bench);
	if (err)
		return err;
	if (is_ready(probes, bench)) {
		cost = time_calls(bench->functions->probed) -
		       time_calls(bench->functions->unprobed);
		pr_info("%s %lld\n", bench->name, div_s64(cost + CALLS / 2, CALLS));
	}
	/* Neither before nor meanwhile? */
	if (!all_look(probes, bench, bench->optimized))
		err = -EAGAIN;
	detach(probes, bench);
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
		err = measure(bench);
		if (err) {
			pr_err("no %s: %pe\n", bench->name, ERR_PTR(err));
			failed = err;
		}
	}
	return failed;
}

/* --------------------------------------------------------------- many places */

#ifdef CONFIG_X86
#define PLACES		512

/* Many places with nothing between them: what differs is how far a probe is looked for. */
static noinline notrace void bench_places(void)
{
	asm volatile(".rept " __stringify(PLACES) "; nop; .endr");
}

/**
 * struct places - Probes all over a function
 * @kprobe:	One for each place, in their order.
 * @kprobes:	The array for their registration.
 * @stamp:	When the handler of each was called.
 * @least:	What the fastest hit took, from the handler before to this one.
 */
struct places {
	struct kprobe kprobe[PLACES];
	struct kprobe *kprobes[PLACES];
	u64 stamp[PLACES];
	u64 least[PLACES];
};

static struct places places;

static int on_place(struct kprobe *p, struct pt_regs *regs)
{
	places.stamp[p - places.kprobe] = get_cycles();
	return 0;
}

static int attach_places(void)
{
	for (unsigned int i = 0; i < PLACES; i++) {
		places.kprobe[i] = (struct kprobe){
			.symbol_name	= "bench_places",
			.offset		= i,
			.pre_handler	= on_place,
		};
		places.kprobes[i] = &places.kprobe[i];
		places.least[i] = U64_MAX;
	}
	return register_kprobes(places.kprobes, PLACES);
}

static void hit_places(void)
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

/* Of the first one it is not known when it began. */
static void report_places(void)
{
	u64 sum = 0, least = U64_MAX, most = 0;
	unsigned int dearer = 0;

	for (unsigned int i = 1; i < PLACES; i++) {
		sum += places.least[i];
		least = min(least, places.least[i]);
		most = max(most, places.least[i]);
	}
	for (unsigned int i = 1; i < PLACES; i++)
		dearer += places.least[i] > least;
	pr_info("places %u\n", PLACES - 1);
	pr_info("places-sum %llu\n", sum);
	pr_info("places-least %llu\n", least);
	pr_info("places-most %llu\n", most);
	pr_info("places-dearer %u\n", dearer);
}

static bool all_places_hit(void)
{
	for (unsigned int i = 0; i < PLACES; i++)
		if (!places.stamp[i])
			return false;
	return true;
}

static int run_places(void)
{
	int err;

	memset(places.stamp, 0, sizeof(places.stamp));
	err = attach_places();
	if (err)
		return err;
	hit_places();
	unregister_kprobes(places.kprobes, PLACES);
	if (!all_places_hit())
		return -EAGAIN;
	report_places();
	return 0;
}
#else
static int run_places(void)
{
	return -EOPNOTSUPP;
}
#endif

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

static int run_parallel(const struct bench *bench, bool shared)
{
	struct probes *probes __free(kfree) = kzalloc(sizeof(*probes), GFP_KERNEL);
	struct caller callers[CPUS] = { };
	u64 hits = 0;
	int err;

	if (!probes)
		return -ENOMEM;
	err = attach(probes, bench);
	if (err)
		return err;
	for (unsigned int i = 0; i < CPUS; i++)
		callers[i].function = bench->functions->probed[shared ? 0 : i];
	err = is_ready(probes, bench) ? call_everywhere(callers) : -EAGAIN;
	detach(probes, bench);
	for (unsigned int i = 0; i < CPUS; i++)
		hits += callers[i].calls;
	if (!err)
		pr_info("%s-%s %llu\n", shared ? "shared" : "own", bench->name,
			div_u64(hits, SECONDS));
	return err;
}

static int run_parallels(bool optimized)
{
	int err = 0;

	for (unsigned int i = 0; i < ARRAY_SIZE(benches) && !err; i++) {
		const struct bench *bench = &benches[i];

		if (bench->optimized != optimized || !bench->parallel)
			continue;
		err = run_parallel(bench, true);
		if (!err)
			err = run_parallel(bench, false);
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
		return run_parallels(false);
	if (sysfs_streq(kind, "parallel-optimized"))
		return run_parallels(true);
	if (sysfs_streq(kind, "places"))
		return run_places();
	return -EINVAL;
}

static const struct kernel_param_ops run_ops = { .set = run };
module_param_cb(run, &run_ops, NULL, 0200);
MODULE_PARM_DESC(run, "write what to measure: plain, optimized, places, parallel or parallel-optimized");

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
