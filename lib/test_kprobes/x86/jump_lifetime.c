// SPDX-License-Identifier: GPL-2.0
/*
 * Slots, detours and displaced text stay as long as a task can be in them: the task is
 * preempted in a long string instruction there.
 */
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/sched/task.h>
#include <linux/vmalloc.h>

#include <asm/irq_regs.h>
#include <asm/text-patching.h>

#include "../load.h"
#include "../optimize.h"
#include "../return_probes.h"
#include "jump_load.h"
#include "jump_neighbours.h"
#include "jump_snippets.h"

/*
 * A function that stays for long in one instruction, and leaves it without a call or
 * a branch. A jump at that instruction, or at the one in front of it, displaces it.
 */
u64 kprobes_test_reading(const void *from, size_t size);

asm(".pushsection .text\n"
    ".balign 16\n"
    ".globl kprobes_test_reading\n"
    ".type kprobes_test_reading, @function\n"
    "kprobes_test_reading:\n"
    ASM_ENDBR
    "	mov %rsi, %rcx\n"
    "	mov %rdi, %rsi\n"
    "	nop\n"
    "	rep lodsb\n"
    "	mov %rsi, %rax\n"
    RETURN
    "	int3\n"
    ".size kprobes_test_reading, . - kprobes_test_reading\n"
    ".popsection\n");

/* From the function's start. */
#define READING_IN_FRONT	(ENDBR_SIZE + 3 + 3)
#define READING			(READING_IN_FRONT + 1)
#define READING_BEHIND		(READING + 2)

/* How long it is to last: longer than it takes the optimiser to begin. */
#define READING_NS	(700 * NSEC_PER_MSEC)

/**
 * struct reader - A task that reads
 * @from:	What it reads: the same page again and again,
 * @size:	so many bytes in all.
 * @task:	The task.
 * @entered:	It is about to call kprobes_test_reading(),
 * @left:	and has returned from there,
 * @right:	with the right value.
 */
static struct reader {
	void *from;
	size_t size;
	struct task_struct *task;
	bool entered;
	bool left;
	bool right;
} reader;

static int read_for_long(void *unused)
{
	u64 end = (u64)reader.from + reader.size;

	WRITE_ONCE(reader.entered, true);
	reader.right = kprobes_test_reading(reader.from, reader.size) == end;
	/* So that who sees this sees what is @right. */
	smp_store_release(&reader.left, true);
	return 0;
}

static void end_reading(void *unused)
{
	if (reader.task)
		kthread_stop_put(reader.task);
	vunmap(reader.from);
	memset(&reader, 0, sizeof(reader));
}

static void map_zeros(struct kunit *test, unsigned int pages)
{
	struct page **all = kunit_kmalloc_array(test, pages, sizeof(*all), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, all);
	for (unsigned int i = 0; i < pages; i++)
		all[i] = ZERO_PAGE(0);
	vunmap(reader.from);
	reader.from = vmap(all, pages, VM_MAP, PAGE_KERNEL_RO);
	reader.size = pages * PAGE_SIZE;
	kunit_kfree(test, all);
	KUNIT_ASSERT_NOT_NULL(test, reader.from);
}

/* Map as many pages as take so long, or nearly so if this machine is very fast. */
static void prepare_reading(struct kunit *test)
{
	const unsigned int few = SZ_1M / PAGE_SIZE, many = SZ_256M / PAGE_SIZE;
	u64 start, fastest = READING_NS;

	memset(&reader, 0, sizeof(reader));
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, end_reading, NULL), 0);
	map_zeros(test, few);
	for (int i = 0; i < 3; i++) {
		start = ktime_get_ns();
		kprobes_test_reading(reader.from, reader.size);
		fastest = min(fastest, ktime_get_ns() - start);
	}
	map_zeros(test, clamp(few * READING_NS / max(fastest, 1), few, many));
}

static void begin_reading(struct kunit *test)
{
	unsigned int cpu = cpumask_any_but(cpu_online_mask, raw_smp_processor_id());
	struct task_struct *task = kthread_create(read_for_long, NULL, "kprobes_reader");

	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	if (cpu < nr_cpu_ids)
		set_cpus_allowed_ptr(task, cpumask_of(cpu));
	reader.task = get_task_struct(task);
	wake_up_process(task);
	while (!READ_ONCE(reader.entered))
		usleep_range(1000, 2000);
	usleep_range(1000, 2000);
}

/*
 * A jump in place while the reader is where its rest is would be read as instructions
 * when it goes on.
 */
static void expect_jump_behind_the_reader(struct kunit *test, struct kprobe *a)
{
	unsigned long start = jiffies;
	bool jump, left;

	do {
		usleep_range(500, 1000);
		jump = kprobe_optimized(a) || READ_ONCE(*a->addr) == JMP32_INSN_OPCODE;
		/* Pairs with read_for_long(). What is above has been read before, on x86. */
		left = smp_load_acquire(&reader.left);
		KUNIT_ASSERT_FALSE(test, jump && !left);
	} while (!left);
	KUNIT_EXPECT_TRUE(test, reader.right);
	if (time_before(jiffies, start + HZ / 5))
		kunit_skip(test, "the reader has left too early");
	ASSERT_OPTIMIZED(test, a);
	KUNIT_EXPECT_EQ(test, kprobes_test_reading(reader.from, 1), (u64)reader.from + 1);
}

static void jump_waits_for_who_is_in_its_place(struct kunit *test)
{
	unsigned long start = (unsigned long)kprobes_test_reading;
	struct kprobe *a;

	OPTIMIZER_HIDE_VAR(start);
	prepare_reading(test);
	kpt_prepare_counting(test);
	a = kpt_counting_probe(0, start + READING_IN_FRONT);
	begin_reading(test);
	ASSERT_REGISTERED(test, a);
	expect_jump_behind_the_reader(test, a);
}

/* Have the reader run in the slot of @a, which the neighbour @b keeps from becoming a jump. */
static void probe_in_slot(struct kunit *test, struct kprobe **a, struct kprobe **b)
{
	unsigned long start = (unsigned long)kprobes_test_reading;

	OPTIMIZER_HIDE_VAR(start);
	prepare_reading(test);
	kpt_prepare_counting(test);
	*a = kpt_counting_probe(0, start + READING);
	*b = kpt_counting_probe(1, start + READING_BEHIND);
	ASSERT_REGISTERED(test, *b);
	ASSERT_REGISTERED(test, *a);
	KUNIT_ASSERT_FALSE(test, kpt_becomes_optimized(*a));
}

/* The slot leads back to there. The neighbour keeps the optimiser away until somebody is in. */
static void jump_waits_for_who_is_in_the_slot(struct kunit *test)
{
	struct kprobe *a, *b;

	probe_in_slot(test, &a, &b);
	begin_reading(test);
	while (!atomic_read(&kpt_counting[0].hits))
		usleep_range(1000, 2000);
	unregister_kprobe(b);
	expect_jump_behind_the_reader(test, a);
}

/*
 * What a task is in stays as it is until the task has left, also when the probe has long
 * been gone. Others get slots meanwhile, in which the task would run something else.
 */
static void expect_undisturbed_reader(struct kunit *test)
{
	struct kprobe *all[FRAME_INSNS];

	for (unsigned int i = 0; i < FRAME_INSNS; i++)
		all[i] = kpt_frame_probe('a' + i, i);
	for (int round = 0; round < 3; round++) {
		for (unsigned int i = 0; i < FRAME_INSNS; i++)
			all[i]->addr = NULL;
		KUNIT_ASSERT_EQ(test, register_kprobes(all, FRAME_INSNS), 0);
		msleep(50);
		if (round < 2)
			unregister_kprobes(all, FRAME_INSNS);
	}
	if (READ_ONCE(reader.left))
		kunit_skip(test, "the reader has left too early");
	/* Pairs with the release by the reader. */
	while (!smp_load_acquire(&reader.left))
		usleep_range(1000, 2000);
	KUNIT_EXPECT_TRUE(test, reader.right);
}

static void be_hit_by_reader(struct kunit *test)
{
	unsigned long end = jiffies + PATIENCE;

	begin_reading(test);
	while (!atomic_read(&kpt_counting[0].hits) && time_before(jiffies, end))
		usleep_range(1000, 2000);
	usleep_range(1000, 2000);
}

static void slot_is_kept_for_who_is_in_it(struct kunit *test)
{
	struct kprobe *a, *b;

	probe_in_slot(test, &a, &b);
	be_hit_by_reader(test);
	unregister_kprobe(a);
	unregister_kprobe(b);
	expect_undisturbed_reader(test);
}

static void detour_is_kept_for_who_is_in_it(struct kunit *test)
{
	unsigned long start = (unsigned long)kprobes_test_reading;
	struct kprobe *a;

	OPTIMIZER_HIDE_VAR(start);
	prepare_reading(test);
	kpt_prepare_counting(test);
	a = kpt_counting_probe(0, start + READING_IN_FRONT);
	ASSERT_REGISTERED(test, a);
	ASSERT_OPTIMIZED(test, a);
	be_hit_by_reader(test);
	unregister_kprobe(a);
	expect_undisturbed_reader(test);
}

/* Detours that fill some pages. */
#define CROWD	50

static struct kprobe crowd[CROWD];

static void crowd_comes(struct kunit *test)
{
	unsigned long start = (unsigned long)kprobes_test_many;

	OPTIMIZER_HIDE_VAR(start);
	memset(crowd, 0, sizeof(crowd));
	for (unsigned int i = 0; i < CROWD; i++) {
		crowd[i].addr = (kprobe_opcode_t *)start + ENDBR_SIZE + 2 + i * JMP32_INSN_SIZE;
		crowd[i].pre_handler = kpt_count_one_of_many;
		ASSERT_REGISTERED(test, &crowd[i]);
	}
	ASSERT_OPTIMIZED(test, &crowd[0]);
}

static void crowd_goes(void *unused)
{
	for (unsigned int i = 0; i < CROWD; i++)
		unregister_kprobe(&crowd[i]);
}

/*
 * One that no longer suits the probes, and is to be replaced. It is the only one in its page,
 * which is freed with it.
 */
static void old_detour_is_kept_for_who_is_in_it(struct kunit *test)
{
	unsigned long start = (unsigned long)kprobes_test_reading;
	struct kprobe *a, *b;

	OPTIMIZER_HIDE_VAR(start);
	prepare_reading(test);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, crowd_goes, NULL), 0);
	crowd_comes(test);
	kpt_prepare_counting(test);
	a = kpt_counting_probe(0, start + READING_IN_FRONT);
	b = kpt_counting_probe(1, start + READING_IN_FRONT);
	b->post_handler = kpt_do_nothing_after;
	ASSERT_REGISTERED(test, a);
	ASSERT_OPTIMIZED(test, a);
	kunit_release_action(test, crowd_goes, NULL);
	msleep(1000);	/* until their detours are free */
	be_hit_by_reader(test);
	ASSERT_REGISTERED(test, b);
	KUNIT_EXPECT_FALSE(test, kprobe_optimized(a));
	msleep(200);
	expect_undisturbed_reader(test);
	ASSERT_OPTIMIZED(test, b);
}

/*
 * A handler sends a task into the text that a jump is going to displace, after the grace
 * period for the tasks in that text has begun: the task must not run there.
 */
static int go_to_reading(struct kprobe *kp, struct pt_regs *regs)
{
	atomic_inc(&container_of(kp, struct counting_probe, kp)->hits);
	regs->ip = (unsigned long)kp->addr + READING - READING_IN_FRONT;
	return 1;
}

/*
 * Keeps a grace period of RCU-tasks from ending: it never gives up its CPU by itself. To
 * be asked for it, by cond_resched(), is not to do it.
 */
static int keep_tasks_waiting(void *unused)
{
	while (!READ_ONCE(kpt_load.stop))
		cond_resched();
	while (!kthread_should_stop())
		schedule_timeout_interruptible(1);
	return 0;
}

static void task_is_sent_to_where_a_jump_is_coming(struct kunit *test)
{
	unsigned long start = (unsigned long)kprobes_test_reading;
	struct task_struct *task;
	struct kprobe *a;

	OPTIMIZER_HIDE_VAR(start);
	prepare_reading(test);
	kpt_prepare_counting(test);
	kpt_load = (struct load){ };
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, kpt_end_load, NULL), 0);
	task = kthread_create(keep_tasks_waiting, NULL, "kprobes_busy");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	kpt_load.threads[0] = get_task_struct(task);
	set_cpus_allowed_ptr(task, cpumask_of(cpumask_last(cpu_online_mask)));
	wake_up_process(task);

	a = kpt_counting_probe(0, start + READING_IN_FRONT);
	a->pre_handler = go_to_reading;
	ASSERT_REGISTERED(test, a);
	msleep(300);
	KUNIT_ASSERT_FALSE(test, kprobe_optimized(a));
	begin_reading(test);
	while (!atomic_read(&kpt_counting[0].hits))
		usleep_range(1000, 2000);
	WRITE_ONCE(kpt_load.stop, true);
	ASSERT_OPTIMIZED(test, a);
	/* Pairs with the release by the reader. */
	while (!smp_load_acquire(&reader.left))
		usleep_range(1000, 2000);
	KUNIT_EXPECT_TRUE(test, reader.right);
}

static struct kunit_case optprobes_x86_lifetime_cases[] = {
	KUNIT_CASE_SLOW(jump_waits_for_who_is_in_its_place),
	KUNIT_CASE_SLOW(jump_waits_for_who_is_in_the_slot),
	KUNIT_CASE_SLOW(slot_is_kept_for_who_is_in_it),
	KUNIT_CASE_SLOW(detour_is_kept_for_who_is_in_it),
	KUNIT_CASE_SLOW(old_detour_is_kept_for_who_is_in_it),
	KUNIT_CASE_SLOW(task_is_sent_to_where_a_jump_is_coming),
	{ }
};

static struct kunit_suite optprobes_x86_lifetime_suite = {
	.name = "optprobes-x86-lifetime",
	.suite_init = kpt_start_jump_suite,
	.init = kpt_start_return_test,
	.exit = kpt_end_return_test,
	.test_cases = optprobes_x86_lifetime_cases,
};

kunit_test_suite(optprobes_x86_lifetime_suite);
