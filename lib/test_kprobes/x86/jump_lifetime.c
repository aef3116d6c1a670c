// SPDX-License-Identifier: GPL-2.0
/* Slots, detours and displaced text stay as they are as long as a preempted task is in them. */
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/highmem.h>
#include <linux/jiffies.h>
#include <linux/kthread.h>
#include <linux/ktime.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/pgtable.h>
#include <linux/sched/task.h>
#include <linux/vmalloc.h>

#include <asm/text-patching.h>

#include "../load.h"
#include "../optimize.h"
#include "../return_probes.h"
#include "frames.h"
#include "functions.h"
#include "jump_load.h"
#include "jump_snippets.h"

/*
 * Return the end of what was read of @size bytes at @from, by one long instruction which is
 * left without a call or a branch. A jump there, or at the NOP in front of it, displaces it.
 * On x86-64 the instruction ends with the first byte that is not 0.
 *
 * vmap() of i386 has less room. There each byte is written to the port that io_delay() uses,
 * which takes longer; nothing ends it early.
 */
u64 kprobes_test_reading(const void *from, size_t size);

#ifdef CONFIG_X86_64
#define BEGIN_READING		"mov %rsi, %rcx\n xor %eax, %eax\n"
#define BEGIN_READING_SIZE	5
#define READ_ALL		"repe scasb\n"
#define END_READING		"mov %rdi, %rax\n"
#define FEW_BYTES		SZ_1M
#define MANY_BYTES		SZ_512M	/* fewer than there is memory, for vmap() */
#define READING_NS		(20 * NSEC_PER_SEC)
#else
#define BEGIN_READING		"push %esi\n mov %edx, %ecx\n mov %eax, %esi\n mov $0x80, %edx\n"
#define BEGIN_READING_SIZE	10
#define READ_ALL		"rep outsb\n"
#define END_READING		"mov %esi, %eax\n xor %edx, %edx\n pop %esi\n"
#define FEW_BYTES		SZ_128K
#define MANY_BYTES		SZ_16M
#define READING_NS		(700 * NSEC_PER_MSEC)
#endif

KPT_ASM_FUNCTION(kprobes_test_reading,
		 BEGIN_READING
		 "nop\n"
		 READ_ALL
		 END_READING
		 RETURN);

/* Offsets of the NOP, of the long instruction, and of the one after it. */
#define READING_NOP	(ENDBR_SIZE + BEGIN_READING_SIZE)
#define READING		(READING_NOP + 1)
#define READING_NEXT	(READING + 2)

/* How long the reader is watched: longer than the optimiser waits before it begins. */
#define WATCHING	(HZ * 7 / 10)

/**
 * struct reader - A task that calls kprobes_test_reading()
 * @zeros:	A page of zeros.
 * @from:	What it reads: @zeros, mapped again and again.
 * @size:	How many bytes it reads.
 * @task:	The task.
 * @entered:	Whether it is about to make the call.
 * @left:	Whether the call has returned.
 * @right:	Whether it returned the right value. Read this after @left, with acquire.
 */
static struct reader {
	u8 *zeros;
	void *from;
	size_t size;
	struct task_struct *task;
	bool entered;
	bool left;
	bool right;
} reader;

/* Let the long instruction end. */
static void stop_reading(void)
{
	WRITE_ONCE(reader.zeros[0], 1);
}

/* Whether reading ends at @end: after all, or after the byte that stop_reading() has set. */
static bool reading_ends_at(u64 end)
{
	u64 read = end - (unsigned long)reader.from;

	return read == reader.size ||
	       (read < reader.size && read % PAGE_SIZE == 1 && reader.zeros[0]);
}

static int read_for_long(void *unused)
{
	WRITE_ONCE(reader.entered, true);
	reader.right = reading_ends_at(kprobes_test_reading(reader.from, reader.size));
	/* Pairs with has_left(): @right is visible when @left is. */
	smp_store_release(&reader.left, true);
	return 0;
}

static bool has_left(void)
{
	/* Pairs with read_for_long(). */
	return smp_load_acquire(&reader.left);
}

static void end_reading(void *unused)
{
	if (reader.task) {
		stop_reading();
		kthread_stop_put(reader.task);
	}
	vunmap(reader.from);
	free_page((unsigned long)reader.zeros);
	memset(&reader, 0, sizeof(reader));
}

static void map_zeros(struct kunit *test, unsigned int pages)
{
	struct page **all = kunit_kmalloc_array(test, pages, sizeof(*all), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, all);
	for (unsigned int i = 0; i < pages; i++)
		all[i] = virt_to_page(reader.zeros);
	vunmap(reader.from);
	reader.from = vmap(all, pages, VM_MAP, PAGE_KERNEL_RO);
	reader.size = pages * PAGE_SIZE;
	kunit_kfree(test, all);
	KUNIT_ASSERT_NOT_NULL(test, reader.from);
}

/* Map as many pages as take READING_NS to read, up to MANY_BYTES. */
static void prepare_reading(struct kunit *test)
{
	const unsigned int few = FEW_BYTES / PAGE_SIZE, many = MANY_BYTES / PAGE_SIZE;
	u64 start, fastest = READING_NS;

	memset(&reader, 0, sizeof(reader));
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, end_reading, NULL), 0);
	reader.zeros = (u8 *)get_zeroed_page(GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, reader.zeros);
	map_zeros(test, few);
	for (int i = 0; i < 3; i++) {
		start = ktime_get_ns();
		kprobes_test_reading(reader.from, reader.size);
		fastest = min(fastest, ktime_get_ns() - start);
	}
	map_zeros(test, clamp(div64_u64((u64)few * READING_NS, max(fastest, 1)), few, many));
}

/* Expect that the reader returns with the right value. */
static void expect_reader_leaves(struct kunit *test)
{
	stop_reading();
	while (!has_left())
		usleep_range(1000, 2000);
	KUNIT_EXPECT_TRUE(test, reader.right);
}

/* Start the reader on another CPU, if there is one; return when it is reading. */
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

/* Start the reader; return when it has hit the probe, and is in the slot or detour. */
static void begin_probed_reading(struct kunit *test)
{
	unsigned long end = jiffies + PATIENCE;

	begin_reading(test);
	while (!atomic_read(&kpt_counting[0].hits) && time_before(jiffies, end))
		usleep_range(1000, 2000);
	KUNIT_ASSERT_GT(test, atomic_read(&kpt_counting[0].hits), 0);
	usleep_range(1000, 2000);
}

/* If the jump were there before the reader has left, it would run the jump's last bytes. */
static void expect_jump_after_reader(struct kunit *test, struct kprobe *a)
{
	unsigned long start = jiffies;
	bool jump, left;

	do {
		usleep_range(500, 1000);
		if (time_after(jiffies, start + WATCHING))
			stop_reading();
		jump = kprobe_optimized(a) || READ_ONCE(*a->addr) == JMP32_INSN_OPCODE;
		left = has_left();	/* loaded after the above: x86 keeps loads in order */
		KUNIT_ASSERT_FALSE(test, jump && !left);
	} while (!left);
	KUNIT_EXPECT_TRUE(test, reader.right);
	if (time_before(jiffies, start + HZ / 5))
		SKIP_REST(test, "the reader has left too early");
	ASSERT_OPTIMIZED(test, a);
	KUNIT_EXPECT_EQ(test, kprobes_test_reading(reader.from, 1),
			(unsigned long)reader.from + 1);
}

/* Prepare counting probe @i at @offset of the function that the reader calls. */
static struct kprobe *reading_probe(unsigned int i, unsigned int offset)
{
	return kpt_counting_probe(i, kpt_address(kprobes_test_reading) + offset);
}

/* Prepare the reader and the first such probe. */
static struct kprobe *prepare_probed_reading(struct kunit *test, unsigned int offset)
{
	prepare_reading(test);
	kpt_prepare_counting(test);
	return reading_probe(0, offset);
}

static void jump_waits_for_task_in_displaced_text(struct kunit *test)
{
	struct kprobe *a = prepare_probed_reading(test, READING_NOP);

	begin_reading(test);
	ASSERT_REGISTERED(test, a);
	expect_jump_after_reader(test, a);
}

/* Register @a at the long instruction, and @b, which keeps it from becoming a jump. */
static void probe_with_slot(struct kunit *test, struct kprobe **a, struct kprobe **b)
{
	*a = prepare_probed_reading(test, READING);
	*b = reading_probe(1, READING_NEXT);
	ASSERT_REGISTERED(test, *b);
	ASSERT_REGISTERED(test, *a);
	KUNIT_ASSERT_FALSE(test, kpt_becomes_optimized(*a));
}

/* The slot ends with a jump to displaced text. @b blocks the jump until the reader is there. */
static void jump_waits_for_task_in_slot(struct kunit *test)
{
	struct kprobe *a, *b;

	probe_with_slot(test, &a, &b);
	begin_probed_reading(test);
	unregister_kprobe(b);
	expect_jump_after_reader(test, a);
}

/*
 * Expect that the reader ends well though its probe is gone. New probes get slots
 * meanwhile: in a slot that is freed too early, the reader would run one of these.
 */
static void expect_undisturbed_reader(struct kunit *test)
{
	struct kprobe *all[FRAME_INSNS];

	for (unsigned int i = 0; i < FRAME_INSNS; i++)
		all[i] = kpt_post_frame_probe('a' + i, i);
	for (int round = 0; round < 3; round++) {
		for (unsigned int i = 0; i < FRAME_INSNS; i++)
			all[i]->addr = NULL;
		KUNIT_ASSERT_EQ(test, register_kprobes(all, FRAME_INSNS), 0);
		msleep(50);
		if (round < 2)
			unregister_kprobes(all, FRAME_INSNS);
	}
	if (has_left()) {
		KUNIT_EXPECT_TRUE(test, reader.right);
		SKIP_REST(test, "the reader has left too early");
	}
	expect_reader_leaves(test);
}

static void slot_is_kept_while_task_is_in_it(struct kunit *test)
{
	struct kprobe *a, *b;

	probe_with_slot(test, &a, &b);
	begin_probed_reading(test);
	unregister_kprobe(a);
	unregister_kprobe(b);
	expect_undisturbed_reader(test);
}

static void detour_is_kept_while_task_is_in_it(struct kunit *test)
{
	struct kprobe *a = prepare_probed_reading(test, READING_NOP);

	ASSERT_REGISTERED(test, a);
	ASSERT_OPTIMIZED(test, a);
	begin_probed_reading(test);
	unregister_kprobe(a);
	expect_undisturbed_reader(test);
}

/* Probes with enough detours to fill some pages. */
#define FILLERS	50

static struct kprobe fillers[FILLERS];

static void register_fillers(struct kunit *test)
{
	memset(fillers, 0, sizeof(fillers));
	kpt_init_many_probes(fillers, FILLERS);
	for (unsigned int i = 0; i < FILLERS; i++)
		ASSERT_REGISTERED(test, &fillers[i]);
	ASSERT_OPTIMIZED(test, &fillers[0]);
}

static void unregister_fillers(void *unused)
{
	for (unsigned int i = 0; i < FILLERS; i++)
		unregister_kprobe(&fillers[i]);
}

/*
 * With a post handler, @b needs another detour than @a. The old one is the only one in its
 * page when the fillers are gone: the page is freed with it.
 */
static void replaced_detour_is_kept_while_task_is_in_it(struct kunit *test)
{
	struct kprobe *a, *b;

	prepare_reading(test);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, unregister_fillers, NULL), 0);
	register_fillers(test);
	kpt_prepare_counting(test);
	a = reading_probe(0, READING_NOP);
	b = reading_probe(1, READING_NOP);
	b->post_handler = kpt_post_nothing;
	ASSERT_REGISTERED(test, a);
	ASSERT_OPTIMIZED(test, a);
	kunit_release_action(test, unregister_fillers, NULL);
	msleep(1000);	/* until their detours are freed */
	begin_probed_reading(test);
	ASSERT_REGISTERED(test, b);
	KUNIT_EXPECT_FALSE(test, kprobe_optimized(a));
	msleep(200);
	expect_undisturbed_reader(test);
	ASSERT_OPTIMIZED(test, b);
}

/* Continue at the long instruction, in text that a jump at the NOP is going to displace. */
static int go_to_reading(struct kprobe *kp, struct pt_regs *regs)
{
	atomic_inc(&container_of(kp, struct counting_probe, kp)->hits);
	regs->ip = (unsigned long)kp->addr + READING - READING_NOP;
	return 1;
}

/*
 * A handler sends a task into text that a jump is going to displace, after the grace period
 * for the tasks there has begun: the task must not run there.
 */
static void task_is_kept_out_of_text_to_be_displaced(struct kunit *test)
{
	struct kprobe *a = prepare_probed_reading(test, READING_NOP);

	kpt_hold_off_rcu_tasks(test);
	a->pre_handler = go_to_reading;
	ASSERT_REGISTERED(test, a);
	msleep(300);
	KUNIT_ASSERT_FALSE(test, kprobe_optimized(a));
	begin_probed_reading(test);
	WRITE_ONCE(kpt_load.stop, true);
	ASSERT_OPTIMIZED(test, a);
	expect_reader_leaves(test);
}

static const u8 *prepared_detour(const struct kprobe *kp)
{
	guard(preempt)();
	return container_of(get_kprobe(kp->addr), struct optimized_kprobe, kp)->optinsn.insn;
}

/*
 * With @b, the site needs another detour. While the optimizer waits to free the old one, the
 * probes are disabled, which needs none; or unregistered, and the site is freed.
 */
static void site_is_left_while_optimizer_waits(struct kunit *test)
{
	struct kprobe *a = kpt_probe('a', TARGET->symbol);
	struct kprobe *b = kpt_post_probe('b', TARGET->symbol);

	for (int freed = 0; freed < 2; freed++) {
		ASSERT_REGISTERED(test, a);
		ASSERT_OPTIMIZED(test, a);
		kpt_hold_off_rcu_tasks(test);
		ASSERT_REGISTERED(test, b);
		msleep(300);
		KUNIT_ASSERT_NOT_NULL(test, prepared_detour(a));
		KUNIT_ASSERT_FALSE(test, kprobe_optimized(a));
		if (!freed) {
			KUNIT_EXPECT_EQ(test, disable_kprobe(b), 0);
			KUNIT_EXPECT_EQ(test, disable_kprobe(a), 0);
		} else {
			unregister_kprobe(b);
			unregister_kprobe(a);
		}
		kunit_release_action(test, kpt_end_load, NULL);
		wait_for_kprobe_optimizer();
		if (!freed) {
			KUNIT_EXPECT_NULL(test, prepared_detour(a));
			KUNIT_EXPECT_EQ(test, enable_kprobe(a), 0);
			KUNIT_EXPECT_EQ(test, enable_kprobe(b), 0);
			ASSERT_OPTIMIZED(test, a);
			EXPECT_CALL(test, TARGET, "baB");
			unregister_kprobe(b);
			unregister_kprobe(a);
		}
		kpt_wait_until_site_is_freed(test, a);
		a->addr = NULL;
		b->addr = NULL;
	}
}

static void expect_read_only(struct kunit *test, const void *addr)
{
	unsigned int level;
	const pte_t *pte = addr ? lookup_address((unsigned long)addr, &level) : NULL;

	KUNIT_ASSERT_NOT_NULL(test, pte);
	KUNIT_EXPECT_FALSE(test, pte_flags(*pte) & _PAGE_RW);
}

/* Nor in the mapping of all memory, if that has the page. */
static void expect_read_only_code(struct kunit *test, const void *code)
{
	struct page *page;

	expect_read_only(test, code);
	page = vmalloc_to_page(code);
	if (!PageHighMem(page))
		expect_read_only(test, page_address(page));
}

static void slots_and_detours_are_not_writable(struct kunit *test)
{
	struct kprobe *a = kpt_probe('a', TARGET->symbol);
	struct kprobe *b = kpt_post_probe('b', TARGET->symbol);
	const struct kprobe *site;

	ASSERT_REGISTERED(test, a);
	ASSERT_REGISTERED(test, b);
	site = get_kprobe(a->addr);
	expect_read_only_code(test, site->ainsn.insn);
	expect_read_only_code(test, site->ainsn.post_insn);
	ASSERT_OPTIMIZED(test, a);
	expect_read_only_code(test, prepared_detour(a));
}

static struct kunit_case optprobes_x86_lifetime_cases[] = {
	KUNIT_CASE(slots_and_detours_are_not_writable),
	KUNIT_CASE_SLOW(jump_waits_for_task_in_displaced_text),
	KUNIT_CASE_SLOW(jump_waits_for_task_in_slot),
	KUNIT_CASE_SLOW(slot_is_kept_while_task_is_in_it),
	KUNIT_CASE_SLOW(detour_is_kept_while_task_is_in_it),
	KUNIT_CASE_SLOW(replaced_detour_is_kept_while_task_is_in_it),
	KUNIT_CASE_SLOW(task_is_kept_out_of_text_to_be_displaced),
	KUNIT_CASE_SLOW(site_is_left_while_optimizer_waits),
	{ }
};

static struct kunit_suite optprobes_x86_lifetime_suite = {
	.name = "optprobes-x86-lifetime",
	.suite_init = kpt_start_return_suite,
	.init = kpt_start_return_test,
	.exit = kpt_end_return_test,
	.test_cases = optprobes_x86_lifetime_cases,
};

kunit_test_suite(optprobes_x86_lifetime_suite);
