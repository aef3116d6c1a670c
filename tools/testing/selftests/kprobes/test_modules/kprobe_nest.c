// SPDX-License-Identifier: GPL-2.0
/*
 * Count hits that arrive while a handler runs
 *
 *	insmod kprobe_nest.ko
 *	echo INTERRUPTS >/sys/module/kprobe_nest/parameters/run
 *
 * calls a probed function with a slow handler in a loop, while a timer interrupt calls a
 * second probed function, until the timer has expired INTERRUPTS times. Most hits of the
 * second function arrive while the handler of the first one runs. For both functions, the
 * kernel log has the numbers of calls, hits and missed hits: hits and missed hits must
 * add up to the calls.
 *
 * The functions are kprobe_nest_in_task() and kprobe_nest_in_interrupt(). Other users can
 * probe them as well, to see which hits their probes miss.
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
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/sched/signal.h>
#include <linux/time64.h>

#define INTERVAL	(100 * NSEC_PER_USEC)	/* of the timer, in ns */
#define HANDLER_TIME	50			/* duration of the first handler, in us */

/*
 * These functions have ftrace sites: handlers that are called by ftrace or by a jump run
 * with interrupts on, handlers that are called by a breakpoint with interrupts off. The
 * bodies differ so that the compiler does not merge the functions.
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
 * struct nested_function - A probed function
 * @name:	The context of its calls, for the log.
 * @symbol:	The name of the function.
 * @handler:	The pre handler of the probe.
 * @probe:	The probe on the function's entry.
 * @calls:	Calls of the function.
 * @hits:	Calls of the handler.
 */
struct nested_function {
	const char *name;
	const char *symbol;
	kprobe_pre_handler_t handler;
	struct kprobe probe;
	unsigned long calls;
	unsigned long hits;
};

static int nest_task_handler(struct kprobe *p, struct pt_regs *regs)
{
	container_of(p, struct nested_function, probe)->hits++;
	udelay(HANDLER_TIME);
	return 0;
}

static int nest_interrupt_handler(struct kprobe *p, struct pt_regs *regs)
{
	container_of(p, struct nested_function, probe)->hits++;
	return 0;
}

static struct nested_function in_task = {
	.name		= "task",
	.symbol		= "kprobe_nest_in_task",
	.handler	= nest_task_handler,
};

static struct nested_function in_interrupt = {
	.name		= "interrupt",
	.symbol		= "kprobe_nest_in_interrupt",
	.handler	= nest_interrupt_handler,
};

static enum hrtimer_restart nest_timer(struct hrtimer *timer)
{
	WRITE_ONCE(in_interrupt.calls, in_interrupt.calls + 1);
	kprobe_nest_in_interrupt();
	hrtimer_forward_now(timer, INTERVAL);
	return HRTIMER_RESTART;
}

/* The timer is pinned to this CPU, so that it interrupts the handlers of this task. */
static void nest_call_until(unsigned int interrupts)
{
	struct hrtimer timer;

	hrtimer_setup_on_stack(&timer, nest_timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	migrate_disable();
	hrtimer_start(&timer, INTERVAL, HRTIMER_MODE_REL_PINNED_HARD);
	while (READ_ONCE(in_interrupt.calls) < interrupts && !fatal_signal_pending(current)) {
		in_task.calls++;
		kprobe_nest_in_task();
		cond_resched_tasks_rcu_qs();	/* on a slow host this takes many seconds */
	}
	hrtimer_cancel(&timer);
	migrate_enable();
	destroy_hrtimer_on_stack(&timer);
}

static int nest_attach(struct nested_function *function)
{
	function->calls = 0;
	function->hits = 0;
	function->probe = (struct kprobe){
		.symbol_name	= function->symbol,
		.pre_handler	= function->handler,
	};
	return register_kprobe(&function->probe);
}

static void nest_report(const struct nested_function *function)
{
	pr_info("%s: calls %lu hits %lu missed %lu\n", function->name, function->calls,
		function->hits, function->probe.nmissed);
}

static int nest_run(const char *value, const struct kernel_param *param)
{
	static DEFINE_MUTEX(lock);
	unsigned int interrupts;
	int err;

	err = kstrtouint(value, 0, &interrupts);
	if (err)
		return err;
	guard(mutex)(&lock);
	err = nest_attach(&in_task);
	if (err)
		return err;
	err = nest_attach(&in_interrupt);
	if (!err) {
		nest_call_until(interrupts);
		nest_report(&in_task);
		nest_report(&in_interrupt);
		unregister_kprobe(&in_interrupt.probe);
	}
	unregister_kprobe(&in_task.probe);
	return err;
}

static const struct kernel_param_ops run_ops = { .set = nest_run };
module_param_cb(run, &run_ops, NULL, 0200);
MODULE_PARM_DESC(run, "Write a number of interrupts to run the test");

/* All work is done by writes to @run. */
static int __init nest_init(void)
{
	return 0;
}
module_init(nest_init);

static void __exit nest_exit(void)
{
}
module_exit(nest_exit);

MODULE_DESCRIPTION("Count hits that arrive while a handler runs");
MODULE_LICENSE("GPL");
