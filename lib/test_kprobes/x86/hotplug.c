// SPDX-License-Identifier: GPL-2.0
/*
 * CPUs that come and go run probed code while RCU does not watch them: unregistering waits
 * for their handlers all the same. What a CPU runs after it has reported its death is not
 * probed.
 */
#include <linux/cleanup.h>
#include <linux/cpu.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/jiffies.h>
#include <linux/kprobes_site.h>
#include <linux/kthread.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/sched/task.h>

#include "../load.h"
#include "../optimize.h"
#include "../probes.h"

#ifdef CONFIG_HOTPLUG_CPU
/* An ENDBR and a call of ftrace. */
#define ENTRY_BYTES	9

/* How long the handler runs, in milliseconds. */
#define HANDLER_TIME	500

/**
 * struct unwatched - A function that a CPU runs while RCU does not watch it
 * @symbol:	The function.
 * @up:		Whether the CPU is brought up then, or goes.
 */
struct unwatched {
	const char *symbol;
	bool up;
};

static const struct unwatched unwatched[] = {
	{ "fpu__init_cpu", true },
	{ "smp_call_function_single", false },
};

KUNIT_ARRAY_PARAM_DESC(unwatched, unwatched, symbol);

static bool entered, left;
static unsigned long cpu;

static int linger_unwatched(struct kprobe *kp, struct pt_regs *regs)
{
	if (raw_smp_processor_id() != cpu || cpu_online(cpu) || !is_idle_task(current) ||
	    READ_ONCE(entered))
		return 0;
	WRITE_ONCE(entered, true);
	mdelay(HANDLER_TIME);
	WRITE_ONCE(left, true);
	return 0;
}

static int linger_in_call(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	return linger_unwatched(&get_kretprobe(ri)->kp, regs);
}

static struct kretprobe lingering_return;

static int plug_thread(void *up)
{
	int err = up ? add_cpu(cpu) : remove_cpu(cpu);

	while (!kthread_should_stop())
		schedule_timeout_interruptible(1);
	return err;
}

/* How a hit reaches a pair of probes */
enum way { BY_FTRACE, BY_BREAKPOINT, BY_JUMP, BY_RETURN };

/*
 * Two probes at the entry, through ftrace if the kernel has that, or at the first instruction
 * after it that may be probed, or gets a jump. The second one stays, so that unregistering the
 * other one does not wait for the CPU to patch the text.
 */
static void register_pair(struct kunit *test, const char *symbol, enum way way)
{
	struct kprobe *a = kpt_probe('a', symbol), *b = kpt_probe('b', symbol);
	int err;

	a->pre_handler = linger_unwatched;
	for (a->offset = way == BY_FTRACE ? 0 : ENTRY_BYTES; a->offset < 64; a->offset++) {
		a->addr = NULL;
		err = register_kprobe(a);
		if (!err && (way != BY_JUMP || kpt_becomes_optimized(a)))
			break;
		if (!err)
			unregister_kprobe(a);
		else
			KUNIT_ASSERT_TRUE(test, err == -EILSEQ || err == -EINVAL);
	}
	KUNIT_ASSERT_LT(test, a->offset, 64);
	b->offset = a->offset;
	ASSERT_REGISTERED(test, b);
	if (way == BY_JUMP)
		KUNIT_EXPECT_TRUE(test, kpt_becomes_optimized(a));
}

static void register_return_pair(struct kunit *test, const char *symbol)
{
	lingering_return = (struct kretprobe){
		.kp.symbol_name = symbol,
		.entry_handler = linger_in_call,
	};
	KUNIT_ASSERT_EQ(test, register_kretprobe(&lingering_return), 0);
	ASSERT_REGISTERED(test, kpt_probe('b', symbol));
}

static void unregistering_waits_for_unwatched_handler(struct kunit *test)
{
	const struct unwatched *u = test->param_value;
	unsigned long end;
	struct task_struct *task;
	unsigned int waits = 0;

	cpu = cpumask_last(cpu_online_mask);
	if (num_online_cpus() < 2)
		kunit_skip(test, "needs two CPUs");
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, kpt_put_online, (void *)cpu), 0);
	for (enum way way = BY_FTRACE; way <= BY_RETURN; way++) {
		struct kprobe *a = kpt_probe('a', u->symbol);

		if (u->up)
			KUNIT_ASSERT_EQ(test, remove_cpu(cpu), 0);
		memset(a, 0, sizeof(*a));
		memset(&kpt_test_probe('b')->kp, 0, sizeof(struct kprobe));
		entered = false;
		left = false;
		if (way == BY_RETURN)
			register_return_pair(test, u->symbol);
		else
			register_pair(test, u->symbol, way);
		task = kthread_create(plug_thread, (void *)u->up, "kprobes_plug");
		KUNIT_ASSERT_FALSE(test, IS_ERR(task));
		get_task_struct(task);
		set_cpus_allowed_ptr(task, cpumask_of(cpumask_first(cpu_online_mask)));
		wake_up_process(task);
		end = jiffies + PATIENCE;
		while (!READ_ONCE(entered) && time_before(jiffies, end))
			usleep_range(100, 200);
		waits += !READ_ONCE(left);
		if (way == BY_RETURN)
			unregister_kretprobe(&lingering_return);
		else
			unregister_kprobe(a);
		KUNIT_EXPECT_TRUE(test, READ_ONCE(left));
		KUNIT_EXPECT_EQ(test, kthread_stop_put(task), 0);
		KUNIT_EXPECT_TRUE(test, entered);
		unregister_kprobe(&kpt_test_probe('b')->kp);
		if (!u->up)
			KUNIT_ASSERT_EQ(test, add_cpu(cpu), 0);
	}
	/* Not each time if the host is slow. */
	KUNIT_EXPECT_GT(test, waits, 0);
}

static bool is_ready_for_post_handlers(const struct kprobe *kp)
{
	guard(preempt)();
	return READ_ONCE(container_of(get_kprobe(kp->addr), struct kprobe_site, kp)->has_post);
}

/* The dying CPU runs no irq_work any more when it finds the handler. */
static void other_cpu_prepares_for_late_post_handler(struct kunit *test)
{
	struct kprobe *b = kpt_probe('b', "cpuhp_report_idle_dead");
	unsigned long end;

	cpu = cpumask_last(cpu_online_mask);
	if (num_online_cpus() < 2)
		kunit_skip(test, "needs two CPUs");
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, kpt_put_online, (void *)cpu), 0);
	entered = true;
	register_pair(test, "cpuhp_report_idle_dead", BY_BREAKPOINT);
	WRITE_ONCE(b->post_handler, kpt_post_handler);
	KUNIT_ASSERT_EQ(test, remove_cpu(cpu), 0);
	end = jiffies + PATIENCE / 4;
	while (!is_ready_for_post_handlers(b) && time_before(jiffies, end))
		msleep(20);
	KUNIT_EXPECT_TRUE(test, is_ready_for_post_handlers(b));
}
#endif

/* Not all of them are in each kernel. */
static const char * const dead_code[] = {
	"cpuhp_ap_report_dead",
	"play_dead_common",
	"native_play_dead",
	"hlt_play_dead",
	"arch_cpu_idle_dead",
	"tboot_shutdown",
	"cpuidle_play_dead",
	"acpi_idle_play_dead",
};

static void code_of_dead_cpu_is_not_probed(struct kunit *test)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(dead_code); i++) {
		struct kprobe a = { .symbol_name = dead_code[i] };
		int err = register_kprobe(&a);

		KUNIT_EXPECT_TRUE_MSG(test, err == -EINVAL || err == -ENOENT, "%s: %d",
				      dead_code[i], err);
		unregister_kprobe(&a);
	}
}

static struct kunit_case kprobes_x86_hotplug_cases[] = {
#ifdef CONFIG_HOTPLUG_CPU
	KUNIT_CASE_PARAM(unregistering_waits_for_unwatched_handler, unwatched_gen_params),
	KUNIT_CASE(other_cpu_prepares_for_late_post_handler),
#endif
	KUNIT_CASE(code_of_dead_cpu_is_not_probed),
	{ }
};

static struct kunit_suite kprobes_x86_hotplug_suite = {
	.name = "kprobes-x86-hotplug",
	.suite_init = kpt_start_suite,
	.init = kpt_start_test,
	.exit = kpt_end_test,
	.test_cases = kprobes_x86_hotplug_cases,
};

kunit_test_suite(kprobes_x86_hotplug_suite);
