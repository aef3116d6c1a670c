// SPDX-License-Identifier: GPL-2.0
/* Jumps come and go while functions are called, jump labels flip and CPUs go offline. */
#include <linux/cpu.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/jump_label.h>
#include <linux/kthread.h>
#include <linux/sched.h>
#include <linux/string.h>

#include <asm/text-patching.h>

#include "../load.h"
#include "../optimize.h"
#include "../return_probes.h"
#include "frames.h"
#include "functions.h"
#include "jump_code.h"
#include "jump_load.h"
#include "jump_snippets.h"

/* The instruction is of JMP32_INSN_SIZE bytes: the segment prefix only makes it longer. */
#ifdef CONFIG_X86_64
#define BEGIN_MANY	"xor %eax, %eax\n"
#define BEGIN_MANY_SIZE	2
#define ONE_OF_MANY	"lea 1(%rax, %rdi), %rax\n"
#else
#define BEGIN_MANY	"mov %eax, %ecx\n xor %eax, %eax\n"
#define BEGIN_MANY_SIZE	4
#define ONE_OF_MANY	"ds lea 1(%eax, %ecx), %eax\n"
#endif

KPT_ASM_FUNCTION(kprobes_test_many,
		 BEGIN_MANY
		 ".rept " __stringify(MANY) "\n"
		 ONE_OF_MANY
		 ".endr\n"
		 RETURN);

/* Offset of the first of the MANY instructions. */
#define MANY_OFFSET	(ENDBR_SIZE + BEGIN_MANY_SIZE)

static unsigned int many_hits;

static int count_one_of_many(struct kprobe *kp, struct pt_regs *regs)
{
	if (current == kpt_tester)
		many_hits++;
	return 0;
}

/* Prepare probes at the first @n instructions. */
void kpt_init_many_probes(struct kprobe *kps, unsigned int n)
{
	unsigned long start = kpt_address(kprobes_test_many) + MANY_OFFSET;

	for (unsigned int i = 0; i < n; i++) {
		kps[i].addr = (kprobe_opcode_t *)start + i * JMP32_INSN_SIZE;
		kps[i].pre_handler = count_one_of_many;
	}
}

/* Return a list of probes, prepared, at all instructions. */
struct kprobe **kpt_many_probes(struct kunit *test)
{
	struct kprobe **all = kunit_kcalloc(test, MANY, sizeof(*all), GFP_KERNEL);
	struct kprobe *kps = kunit_kcalloc(test, MANY, sizeof(*kps), GFP_KERNEL);

	KUNIT_ASSERT_TRUE(test, all && kps);
	kpt_init_many_probes(kps, MANY);
	for (unsigned int i = 0; i < MANY; i++)
		all[i] = &kps[i];
	return all;
}

static void expect_many(struct kunit *test, unsigned int hits)
{
	many_hits = 0;
	KUNIT_EXPECT_EQ(test, kprobes_test_many(ARG), MANY * (ARG + 1));
	KUNIT_EXPECT_EQ(test, many_hits, hits);
}

static unsigned int count_optimized(struct kprobe **all, unsigned int n)
{
	unsigned int optimized = 0;

	while (n--)
		optimized += kprobe_optimized(all[n]);
	return optimized;
}

static void many_probes_are_optimized(struct kunit *test)
{
	const u8 *start = (const u8 *)kpt_address(kprobes_test_many) + MANY_OFFSET;
	const size_t size = MANY * JMP32_INSN_SIZE;
	struct kprobe **all = kpt_many_probes(test);
	u8 *code = kunit_kmalloc(test, size, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, code);
	memcpy(code, start, size);
	for (int round = 0; round < 2; round++) {
		KUNIT_ASSERT_EQ(test, register_kprobes(all, MANY), 0);
		expect_many(test, MANY);
		wait_for_kprobe_optimizer();
		KUNIT_EXPECT_EQ(test, count_optimized(all, MANY), MANY);
		expect_many(test, MANY);
		unregister_kprobes(all + MANY / 2, MANY / 2);
		KUNIT_EXPECT_EQ(test, count_optimized(all, MANY), MANY / 2);
		expect_many(test, MANY / 2);
		unregister_kprobes(all, MANY / 2);
		KUNIT_EXPECT_EQ(test, count_optimized(all, MANY), 0);
		KUNIT_EXPECT_MEMEQ(test, start, code, size);
		expect_many(test, 0);
	}
}

/*
 * Return @arg + 2 if its jump label is on, or 2 * @arg + 2. The target is inside of what a
 * jump of five bytes at the instruction after the label would displace: it gets one of two
 * bytes. The last instruction fits a long one.
 */
u64 kprobes_test_flipped(u64 arg);

KPT_ASM_FUNCTION(kprobes_test_flipped,
		 TAKE_ARG
		 JUMP_LABEL("1f")
		 "lea (" AX ", " AX "), " AX "\n"
		 "1:	lea 1(" AX "), " AX "\n"
		 "lea 1(" AX "), " AX "\n"
		 RETURN
		 ".skip 32, 0xcc\n");

/* Offsets of the instruction after the label, and of the last one. */
#define FLIPPED_RELAYED	(ENDBR_SIZE + TAKE_ARG_SIZE + JMP32_INSN_SIZE)
#define FLIPPED_FIT	(FLIPPED_RELAYED + 2 * (REX_SIZE + 3))

#define FLIPS	200

static void flip_jump_label(bool on)
{
	if (on)
		static_branch_enable(&kprobes_test_flipped_key);
	else
		static_branch_disable(&kprobes_test_flipped_key);
}

static void jump_label_is_flipped_under_load(struct kunit *test)
{
	unsigned long start = kpt_address(kprobes_test_flipped);
	struct kprobe *relayed, *fit;

	kpt_prepare_counting(test);
	relayed = kpt_counting_probe(0, start + FLIPPED_RELAYED);
	fit = kpt_counting_probe(1, start + FLIPPED_FIT);
	ASSERT_REGISTERED(test, relayed);
	ASSERT_REGISTERED(test, fit);
	kpt_begin_load(test, kprobes_test_flipped, 2 * ARG + 2, ARG + 2);
	for (unsigned int i = 0; i < FLIPS; i++) {
		flip_jump_label(i % 2 == 0);
		if (i % 20 == 5) {
			ASSERT_OPTIMIZED(test, fit);
			ASSERT_OPTIMIZED(test, relayed);
			KUNIT_ASSERT_EQ(test, *relayed->addr, JMP8_INSN_OPCODE);
		}
		if (i % 20 == 15) {
			KUNIT_ASSERT_EQ(test, disable_kprobe(relayed), 0);
			KUNIT_ASSERT_EQ(test, enable_kprobe(relayed), 0);
		}
		usleep_range(2000, 4000);
	}
	flip_jump_label(false);
	ASSERT_OPTIMIZED(test, fit);
	kpt_expect_load(test);
	KUNIT_EXPECT_GT(test, atomic_read(&kpt_load.others), 0);
	KUNIT_EXPECT_EQ(test, relayed->nmissed + fit->nmissed, 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&kpt_counting[1].hits),
			atomic_read(&kpt_load.results) + atomic_read(&kpt_load.others));
	/* It was disabled for some of the calls. */
	KUNIT_EXPECT_GT(test, atomic_read(&kpt_counting[0].hits), 0);
	KUNIT_EXPECT_LE(test, atomic_read(&kpt_counting[0].hits), atomic_read(&kpt_load.results));
}

/* The probe stays armed: each call that reaches it is a hit. */
static void hits_are_counted_while_a_jump_label_is_flipped(struct kunit *test)
{
	unsigned long start = kpt_address(kprobes_test_flipped);
	struct kprobe *relayed;

	kpt_prepare_counting(test);
	relayed = kpt_counting_probe(0, start + FLIPPED_RELAYED);
	ASSERT_REGISTERED(test, relayed);
	wait_for_kprobe_optimizer();
	kpt_begin_load(test, kprobes_test_flipped, 2 * ARG + 2, ARG + 2);
	for (unsigned int i = 0; i < FLIPS; i++) {
		flip_jump_label(i % 2 == 0);
		usleep_range(1000, 2000);
	}
	flip_jump_label(false);
	kpt_expect_load(test);
	KUNIT_EXPECT_TRUE(test, kprobe_optimized(relayed));
	KUNIT_EXPECT_GT(test, atomic_read(&kpt_load.others), 0);
	KUNIT_EXPECT_EQ(test, relayed->nmissed, 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&kpt_counting[0].hits), atomic_read(&kpt_load.results));
}

void kpt_post_nothing(struct kprobe *kp, struct pt_regs *regs, unsigned long flags)
{
}

/* The site changes between two ftrace_ops, with and without post handlers: no hit is lost. */
static void hits_are_counted_while_post_handlers_come_and_go(struct kunit *test)
{
	struct kprobe *a, *b;

	if (!IS_ENABLED(CONFIG_KPROBES_ON_FTRACE))
		kunit_skip(test, "no probes through ftrace");
	kpt_prepare_counting(test);
	a = kpt_counting_probe(0, (unsigned long)kpt_text(TRACED));
	b = kpt_counting_probe(1, (unsigned long)kpt_text(TRACED));
	b->post_handler = kpt_post_nothing;
	ASSERT_REGISTERED(test, a);
	kpt_begin_load(test, kpt_call_mktime64, TRACED->result, TRACED->result);
	for (unsigned int i = 0; i < 50; i++) {
		ASSERT_REGISTERED(test, b);
		usleep_range(100, 2000);
		unregister_kprobe(b);
	}
	kpt_expect_load(test);
	kunit_release_action(test, kpt_unregister_counting, NULL);
	KUNIT_EXPECT_EQ(test, a->nmissed, 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&kpt_counting[0].hits), atomic_read(&kpt_load.results));
}

#define STORM	(2 * HZ)

/*
 * Make change number @n to a counting probe: at an instruction that can have a jump, or at
 * the last one that this displaces.
 */
static void change_probe(struct kunit *test, unsigned int n)
{
	static const unsigned int insns[] = { 0, 0, 2 };
	unsigned int i = n % ARRAY_SIZE(kpt_counting);
	struct kprobe *kp = &kpt_counting[i].kp;
	unsigned long start = kpt_address(kprobes_test_frame) + ENDBR_SIZE;

	switch (n / ARRAY_SIZE(kpt_counting) % 7) {
	case 0:
	case 4:
		if (kpt_is_linked(kp))
			break;
		kpt_counting_probe(i, start + kpt_frame_offsets[insns[i]]);
		kp->flags = 0;
		kp->post_handler = n % 5 == 3 ? kpt_post_nothing : NULL;
		KUNIT_ASSERT_EQ(test, register_kprobe(kp), 0);
		break;
	case 1:
		if (kpt_is_linked(kp))
			KUNIT_ASSERT_EQ(test, disable_kprobe(kp), 0);
		break;
	case 2:
		if (kpt_is_linked(kp))
			KUNIT_ASSERT_EQ(test, enable_kprobe(kp), 0);
		break;
	case 3:
		if (n % 2)
			wait_for_kprobe_optimizer();
		break;
	case 5:
		usleep_range(100, 60 * 1000);
		break;
	case 6:
		if (n % 11)
			unregister_kprobe(kp);
		break;
	}
}

static void probes_come_and_go_under_load(struct kunit *test)
{
	unsigned long end = jiffies + STORM;
	struct kprobe *a = kpt_frame_probe('a', 0);
	unsigned int optimized = 0;
	u8 code[TEXT_BYTES];

	memcpy(code, kpt_text(&kpt_frame_place), sizeof(code));
	kpt_prepare_counting(test);
	kpt_begin_load(test, kprobes_test_frame, ARG + 1, ARG + 1);
	for (unsigned int n = 0; time_before(jiffies, end); n++) {
		change_probe(test, n);
		for (unsigned int i = 0; i < ARRAY_SIZE(kpt_counting); i++)
			optimized += kprobe_optimized(&kpt_counting[i].kp);
	}
	kunit_release_action(test, kpt_unregister_counting, NULL);
	KUNIT_EXPECT_MEMEQ(test, kpt_text(&kpt_frame_place), code, sizeof(code));
	kpt_expect_load(test);
	KUNIT_EXPECT_GT(test, optimized, 0);
	for (unsigned int i = 0; i < ARRAY_SIZE(kpt_counting); i++)
		KUNIT_EXPECT_GT(test, atomic_read(&kpt_counting[i].hits), 0);
	ASSERT_REGISTERED(test, a);
	ASSERT_OPTIMIZED(test, a);
	EXPECT_CALL(test, &kpt_frame_place, "a");
}

/* A hit that looks at the old hash after its memory is freed needs KASAN to be noticed. */
static void hash_is_resized_under_load(struct kunit *test)
{
	struct kprobe **all = kpt_many_probes(test);
	struct kprobe *a;

	kpt_prepare_counting(test);
	a = kpt_counting_probe(0, kpt_address(kprobes_test_frame) + ENDBR_SIZE);
	a->post_handler = kpt_post_nothing;
	ASSERT_REGISTERED(test, a);
	kpt_begin_load(test, kprobes_test_frame, ARG + 1, ARG + 1);
	for (int i = 0; i < 10; i++) {
		KUNIT_ASSERT_EQ(test, register_kprobes(all, MANY), 0);
		unregister_kprobes(all, MANY);
		msleep(20);
	}
	kpt_expect_load(test);
	KUNIT_EXPECT_EQ(test, a->nmissed, 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&kpt_counting[0].hits), atomic_read(&kpt_load.results));
}

#ifdef CONFIG_HOTPLUG_CPU
static int change_probes_until_stop(void *test)
{
	for (unsigned int n = 0; !READ_ONCE(kpt_load.stop); n++)
		change_probe(test, n);
	return 0;
}

static void cpus_come_and_go_under_load(struct kunit *test)
{
	unsigned long cpu = cpumask_last(cpu_online_mask);
	struct kprobe *a = kpt_frame_probe('a', 0);
	struct task_struct *task;

	if (num_online_cpus() < 2)
		kunit_skip(test, "one CPU");
	kpt_prepare_counting(test);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, kpt_put_online, (void *)cpu), 0);
	kpt_begin_load(test, kprobes_test_frame, ARG + 1, ARG + 1);
	task = kthread_create(change_probes_until_stop, test, "kprobes_change");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	kpt_load.threads[ARRAY_SIZE(kpt_load.threads) - 1] = get_task_struct(task);
	wake_up_process(task);
	for (unsigned int i = 0; i < 5; i++) {
		KUNIT_ASSERT_EQ(test, remove_cpu(cpu), 0);
		msleep(50);
		KUNIT_ASSERT_EQ(test, add_cpu(cpu), 0);
		set_cpus_allowed_ptr(kpt_load.threads[num_online_cpus() - 1], cpumask_of(cpu));
		msleep(50);
	}
	kpt_expect_load(test);
	kunit_release_action(test, kpt_unregister_counting, NULL);
	ASSERT_REGISTERED(test, a);
	ASSERT_OPTIMIZED(test, a);
	EXPECT_CALL(test, &kpt_frame_place, "a");
}
#else
static void cpus_come_and_go_under_load(struct kunit *test)
{
	kunit_skip(test, "no CPU hotplug");
}
#endif

static struct kunit_case optprobes_x86_load_cases[] = {
	KUNIT_CASE_SLOW(many_probes_are_optimized),
	KUNIT_CASE_SLOW(jump_label_is_flipped_under_load),
	KUNIT_CASE_SLOW(hits_are_counted_while_a_jump_label_is_flipped),
	KUNIT_CASE_SLOW(hits_are_counted_while_post_handlers_come_and_go),
	KUNIT_CASE_SLOW(probes_come_and_go_under_load),
	KUNIT_CASE_SLOW(hash_is_resized_under_load),
	KUNIT_CASE_SLOW(cpus_come_and_go_under_load),
	{ }
};

static struct kunit_suite optprobes_x86_load_suite = {
	.name = "optprobes-x86-load",
	.suite_init = kpt_start_return_suite,
	.init = kpt_start_return_test,
	.exit = kpt_end_return_test,
	.test_cases = optprobes_x86_load_cases,
};

kunit_test_suite(optprobes_x86_load_suite);
