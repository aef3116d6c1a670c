// SPDX-License-Identifier: GPL-2.0
/*
 * What becomes of a hit while a handler runs?
 *
 *	insmod kprobe_nest.ko
 *	echo INTERRUPTS >/sys/module/kprobe_nest/parameters/run
 *
 * lets a task call a probed function whose handler takes its time, and a timer's
 * interrupt call another one, until so many interrupts have come. The hits of that
 * one come while the task's handler runs, more often than not. The kernel log tells
 * of both how often they were called, hit and missed: what is not hit has to be
 * counted as missed.
 *
 * The functions are kprobe_nest_in_task() and kprobe_nest_in_interrupt(): other
 * probes can be put there, too, to see what becomes of their hits.
 *
 * See Documentation/trace/kprobes.rst.
 */
#define pr_fmt(fmt)	KBUILD_MODNAME ": " fmt

#include <linux/cleanup.h>
#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/kprobes.h>
#include <linux/kstrtox.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/time64.h>

#define INTERVAL	(100 * NSEC_PER_USEC)	/* of the timer */
#define HANDLER_TIME	50			/* of the task's handler, in us */

/*
 * Where ftrace brings hits to handlers, or a jump does, interrupts are on while
 * they run. With a breakpoint they are off. Two equal functions would become one.
 */
static noinline void kprobe_nest_in_task(void)
{
	asm volatile("nop");
}

static noinline void kprobe_nest_in_interrupt(void)
{
	asm volatile("nop; nop");
}

/**
 * struct nest - A probed function
 * @name:	What it is called in the log.
 * @symbol:	Its name.
 * @handler:	The handler of its probe.
 * @probe:	The probe.
 * @calls:	How often the function was called.
 * @hits:	How often the handler was.
 */
struct nest {
	const char *name;
	const char *symbol;
	kprobe_pre_handler_t handler;
	struct kprobe probe;
	unsigned long calls;
	unsigned long hits;
};

static int on_task_hit(struct kprobe *p, struct pt_regs *regs)
{
	container_of(p, struct nest, probe)->hits++;
	udelay(HANDLER_TIME);
	return 0;
}

static int on_interrupt_hit(struct kprobe *p, struct pt_regs *regs)
{
	container_of(p, struct nest, probe)->hits++;
	return 0;
}

static struct nest in_task = {
	.name		= "task",
	.symbol		= "kprobe_nest_in_task",
	.handler	= on_task_hit,
};

static struct nest in_interrupt = {
	.name		= "interrupt",
	.symbol		= "kprobe_nest_in_interrupt",
	.handler	= on_interrupt_hit,
};

static enum hrtimer_restart on_timer(struct hrtimer *timer)
{
	WRITE_ONCE(in_interrupt.calls, in_interrupt.calls + 1);
	kprobe_nest_in_interrupt();
	hrtimer_forward_now(timer, INTERVAL);
	return HRTIMER_RESTART;
}

/* On one CPU: it is its own handlers that an interrupt comes across. */
static void call_until(unsigned int interrupts)
{
	struct hrtimer timer;

	hrtimer_init_on_stack(&timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	timer.function = on_timer;
	migrate_disable();
	hrtimer_start(&timer, INTERVAL, HRTIMER_MODE_REL_PINNED_HARD);
	while (READ_ONCE(in_interrupt.calls) < interrupts && !fatal_signal_pending(current)) {
		in_task.calls++;
		kprobe_nest_in_task();
		cond_resched();
	}
	hrtimer_cancel(&timer);
	migrate_enable();
	destroy_hrtimer_on_stack(&timer);
}

static int attach(struct nest *nest)
{
	nest->calls = 0;
	nest->hits = 0;
	nest->probe = (struct kprobe){
		.symbol_name	= nest->symbol,
		.pre_handler	= nest->handler,
	};
	return register_kprobe(&nest->probe);
}

static void report(const struct nest *nest)
{
	pr_info("%s: calls %lu hits %lu missed %lu\n", nest->name, nest->calls, nest->hits,
		nest->probe.nmissed);
}

static int run(const char *value, const struct kernel_param *param)
{
	static DEFINE_MUTEX(lock);
	unsigned int interrupts;
	int err;

	err = kstrtouint(value, 0, &interrupts);
	if (err)
		return err;
	guard(mutex)(&lock);
	err = attach(&in_task);
	if (err)
		return err;
	err = attach(&in_interrupt);
	if (!err) {
		call_until(interrupts);
		report(&in_task);
		report(&in_interrupt);
		unregister_kprobe(&in_interrupt.probe);
	}
	unregister_kprobe(&in_task.probe);
	return err;
}

static const struct kernel_param_ops run_ops = { .set = run };
module_param_cb(run, &run_ops, NULL, 0200);
MODULE_PARM_DESC(run, "write how many interrupts are to come");

/* Nothing is left to be undone. */
static int __init nest_init(void)
{
	return 0;
}
module_init(nest_init);

static void __exit nest_exit(void)
{
}
module_exit(nest_exit);

MODULE_DESCRIPTION("Hits that come while a handler runs");
MODULE_LICENSE("GPL");
