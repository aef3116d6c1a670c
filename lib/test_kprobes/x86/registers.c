// SPDX-License-Identifier: GPL-2.0
/* Handlers see and change the registers before and after the instruction. */
#include <linux/cache.h>

#include <asm/processor-flags.h>
#include <asm/segment.h>
#include <asm/text-patching.h>

#include "registers.h"

/* The registers that a handler has seen, and the word at the top of the stack. */
struct pt_regs kpt_seen;
static unsigned long seen_stack;

void kpt_see(const struct pt_regs *regs)
{
	kpt_seen = *regs;
	seen_stack = *(unsigned long *)regs->sp;
}

/* Set dx and cx to @p->data, and di to a good address. */
int kpt_act_see_and_change(struct test_probe *p, struct pt_regs *regs)
{
	kpt_see(regs);
	regs->dx = p->data;
	regs->cx = p->data;
	regs->di = (unsigned long)&kpt_state.memory[3];
	return 0;
}

static void post_change(struct kprobe *kp, struct pt_regs *regs, unsigned long flags)
{
	kpt_post_handler(kp, regs, flags);
	regs->SPARE_REG = regs->ax;
	regs->flags |= X86_EFLAGS_CF;
}

/* Offsets in struct pt_regs of the registers of struct cpu_state, in its order. */
static const size_t seen_registers[] = {
	offsetof(struct pt_regs, ax), offsetof(struct pt_regs, bx), offsetof(struct pt_regs, cx),
	offsetof(struct pt_regs, dx), offsetof(struct pt_regs, si), offsetof(struct pt_regs, di),
	offsetof(struct pt_regs, bp),
#ifdef CONFIG_X86_64
	offsetof(struct pt_regs, r8), offsetof(struct pt_regs, r9),
	offsetof(struct pt_regs, r10), offsetof(struct pt_regs, r11),
	offsetof(struct pt_regs, r12), offsetof(struct pt_regs, r13),
	offsetof(struct pt_regs, r14), offsetof(struct pt_regs, r15),
#endif
};

static_assert(ARRAY_SIZE(seen_registers) == offsetof(struct cpu_state, flags) / sizeof(long));

/* Expect that the handler has seen the registers that were @given. */
void kpt_expect_seen(struct kunit *test, const struct cpu_state *given)
{
	const unsigned long *word = (const unsigned long *)given;

	for (unsigned int i = 0; i < ARRAY_SIZE(seen_registers); i++)
		KUNIT_EXPECT_EQ_MSG(test, *(unsigned long *)((void *)&kpt_seen + seen_registers[i]),
				    word[i], "register %u", i);
	KUNIT_EXPECT_EQ(test, kpt_seen.flags & ~X86_EFLAGS_RF, given->flags);
}

#ifdef CONFIG_X86_32
/* The kernel's code finds these selectors, but in GS, which it does not use. */
static void expect_seen_segments(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, kpt_seen.ds, __USER_DS);
	KUNIT_EXPECT_EQ(test, kpt_seen.es, __USER_DS);
	KUNIT_EXPECT_EQ(test, kpt_seen.fs, __KERNEL_PERCPU);
}
#else
static void expect_seen_segments(struct kunit *test) { }
#endif

/* Expect the other registers that the handler has seen, and @stack at the top of the stack. */
void kpt_expect_seen_frame(struct kunit *test, unsigned long ip, unsigned long stack)
{
	KUNIT_EXPECT_EQ(test, kpt_seen.ip, ip);
	KUNIT_EXPECT_EQ(test, kpt_seen.cs, __KERNEL_CS);
	KUNIT_EXPECT_EQ(test, kpt_seen.ss, __KERNEL_DS);
	/* As in an event, or by perf: without what is stored beside the selectors. */
	KUNIT_EXPECT_EQ(test, regs_get_register(&kpt_seen, offsetof(struct pt_regs, cs)),
			__KERNEL_CS);
	KUNIT_EXPECT_EQ(test, regs_get_register(&kpt_seen, offsetof(struct pt_regs, ss)),
			__KERNEL_DS);
	KUNIT_EXPECT_EQ(test, kpt_seen.orig_ax, -1UL);
	expect_seen_segments(test);
	KUNIT_EXPECT_EQ(test, seen_stack, stack);
}

/* Run @snippet with a bad di, and a probe whose handlers change it and other registers. */
static void run_changed(struct kunit *test, const struct snippet *snippet, bool post,
			unsigned int input, unsigned long value)
{
	struct kprobe *a = kpt_snippet_probe('a', snippet, post);
	struct cpu_state given;

	kpt_test_probe('a')->act = kpt_act_see_and_change;
	kpt_test_probe('a')->data = value;
	a->post_handler = post ? post_change : NULL;
	ASSERT_REGISTERED(test, a);
	kpt_set_input(input);
	kpt_state.di = (unsigned long)BAD_ADDRESS;
	given = kpt_state;
	kpt_run_snippet(snippet);
	kpt_expect_seen(test, &given);
	kpt_expect_seen_frame(test, kpt_insn_address(snippet) + INT3_INSN_SIZE,
			      kpt_snippet_return_address());
	unregister_kprobe(a);
}

/* An instruction that is run as a copy, one that is emulated, and one that is stepped. */
static void handlers_see_and_change_registers(struct kunit *test)
{
	for (unsigned int i = 0; i < 4; i++) {
		bool post = i / 2;
		unsigned long spare;

		kpt_set_input(i);
		spare = kpt_state.SPARE_REG;
		run_changed(test, kpt_find_snippet("add"), post, i, 1000);
		KUNIT_EXPECT_EQ(test, kpt_state.ax, INPUT_WORD(0) + 1000);
		KUNIT_EXPECT_EQ(test, kpt_state.SPARE_REG, post ? kpt_state.ax : spare);
		KUNIT_EXPECT_EQ(test, kpt_state.flags & X86_EFLAGS_CF, post);

		run_changed(test, kpt_find_snippet(JCXZ_SNIPPET), post, i, 0);
		KUNIT_EXPECT_EQ(test, kpt_state.MARK_REG, 2);
		run_changed(test, kpt_find_snippet(JCXZ_SNIPPET), post, i, 1);
		KUNIT_EXPECT_EQ(test, kpt_state.MARK_REG, 1);
		KUNIT_EXPECT_EQ(test, kpt_state.flags & X86_EFLAGS_CF, post);

		run_changed(test, kpt_find_snippet("fault_load"), post, i, 0);
		KUNIT_EXPECT_EQ(test, kpt_state.ax, kpt_state.memory[3]);
		KUNIT_EXPECT_EQ(test, kpt_state.SPARE_REG, post ? kpt_state.ax : spare);
		KUNIT_EXPECT_EQ(test, kpt_state.flags & X86_EFLAGS_CF, post);
	}
}

static void ip_is_after_the_breakpoint(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = kpt_post_probe('a', place->symbol);

	a->post_handler = kpt_record_post;
	kpt_test_probe('a')->act = kpt_act_record;
	ASSERT_REGISTERED(test, a);
	EXPECT_CALL(test, place, "aA");
	KUNIT_EXPECT_EQ(test, kpt_pre_ip, (unsigned long)a->addr + 1);
	if (kprobe_ftrace(a))
		KUNIT_EXPECT_EQ(test, kpt_post_ip, (unsigned long)a->addr + CALL_INSN_SIZE);
	else
		KUNIT_EXPECT_GT(test, kpt_post_ip, (unsigned long)a->addr);
}

static struct kunit_case kprobes_x86_registers_cases[] = {
	KUNIT_CASE(handlers_see_and_change_registers),
	KUNIT_CASE_PARAM(ip_is_after_the_breakpoint, kpt_place_gen_params),
	{ }
};

static struct kunit_suite kprobes_x86_registers_suite = {
	.name = "kprobes-x86-registers",
	.suite_init = kpt_start_suite,
	.init = kpt_start_test,
	.exit = kpt_end_test,
	.test_cases = kprobes_x86_registers_cases,
};

kunit_test_suite(kprobes_x86_registers_suite);
