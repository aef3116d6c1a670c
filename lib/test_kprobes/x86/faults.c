// SPDX-License-Identifier: GPL-2.0
/* A fault of a probed instruction reaches the same fixup as without a probe. */
#include <linux/extable.h>
#include <linux/mman.h>
#include <linux/mm.h>
#include <linux/preempt.h>
#include <linux/ptrace.h>

#include <asm/extable.h>
#include <asm/processor-flags.h>

#include "snippets.h"

/**
 * struct fault - A fault that has a fixup
 * @desc:	Description.
 * @snippet:	The snippet with the instruction that faults.
 * @address:	The address at which it faults, or a selector.
 */
struct fault {
	const char *desc;
	const char *snippet;
	unsigned long address;
};

/* A selector beyond the end of the GDT. */
#define BAD_SELECTOR	0xfff8

static const u16 bad_selector = BAD_SELECTOR;

static const struct fault faults[] = {
	{ "load, page fault", "fault_load", (unsigned long)BAD_ADDRESS },
#ifdef CONFIG_X86_64
	{ "load, not canonical", "fault_load", BIT(63) },
#else
	{ "pop of a selector, not valid", "fault_pop", BAD_SELECTOR },
#endif
	{ "selector, page fault", "fault_selector", (unsigned long)BAD_ADDRESS },
	{ "selector, not valid", "fault_selector", (unsigned long)&bad_selector },
	{ "store, page fault", "fault_store", (unsigned long)BAD_ADDRESS },
	{ "user access, page fault", "fault_user", PAGE_SIZE },
	{ "user access, error in a register", "fault_user_error", PAGE_SIZE },
};

KUNIT_ARRAY_PARAM_DESC(fault, faults, desc);

static void run_fault(const struct fault *fault, unsigned int input)
{
	kpt_set_input(input);
	kpt_state.di = fault->address;
	kpt_clear_journal();
	kpt_run_snippet(kpt_find_snippet(fault->snippet));
}

static struct cpu_state *expect_unprobed_fault(struct kunit *test, const struct fault *fault)
{
	struct cpu_state *expected = kunit_kcalloc(test, INPUTS, sizeof(*expected), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, expected);
	for (unsigned int i = 0; i < INPUTS; i++) {
		run_fault(fault, i);
		KUNIT_ASSERT_EQ(test, kpt_state.bx, ~0UL);
		expected[i] = kpt_state;
	}
	return expected;
}

/* The fixup finds the state in front of the instruction, and no post handler is called. */
static void fault_is_fixed_up(struct kunit *test)
{
	const struct fault *fault = test->param_value;
	const struct cpu_state *expected = expect_unprobed_fault(test, fault);
	struct kprobe *a, *b = kpt_probe('b', TARGET->symbol);

	ASSERT_REGISTERED(test, b);
	for (int post = 0; post < 2; post++) {
		a = kpt_snippet_probe('a', kpt_find_snippet(fault->snippet), post);
		ASSERT_REGISTERED(test, a);
		for (unsigned int i = 0; i < INPUTS; i++) {
			run_fault(fault, i);
			KUNIT_ASSERT_STREQ(test, kpt_journal, "a");
			kpt_expect_state(test, &expected[i],
					 post ? "with a post handler" : "probed", i);
			EXPECT_CALL(test, TARGET, "b");
		}
		unregister_kprobe(a);
	}
}

/* A hit inside a handler calls no handlers, but its instruction may fault all the same. */
static void skipped_fault_is_fixed_up(struct kunit *test)
{
	const struct fault *fault = test->param_value;
	const struct snippet *snippet = kpt_find_snippet(fault->snippet);
	struct kprobe *a = kpt_post_probe('a', TRACED->symbol);
	struct kprobe *b = kpt_snippet_probe('b', snippet, true);
	struct cpu_state expected;

	run_fault(fault, 1);
	expected = kpt_state;
	kpt_test_probe('a')->act = kpt_act_run_snippet;
	kpt_test_probe('a')->data = (unsigned long)snippet;
	ASSERT_REGISTERED(test, a);
	ASSERT_REGISTERED(test, b);
	kpt_set_input(1);
	kpt_state.di = fault->address;
	EXPECT_CALL(test, TRACED, "aA");
	kpt_expect_state(test, &expected, "skipped", 1);
	KUNIT_EXPECT_EQ(test, b->nmissed, 1);
}

/* After a fault that maps the page, the instruction runs again: the probe is hit twice. */
static void fault_may_sleep(struct kunit *test)
{
	struct kprobe *a = kpt_snippet_probe('a', kpt_find_snippet("fault_user"), true);
	unsigned long page;

	page = kunit_vm_mmap(test, NULL, 0, 2 * PAGE_SIZE, PROT_READ | PROT_WRITE,
			     MAP_ANONYMOUS | MAP_PRIVATE, 0);
	KUNIT_ASSERT_LT(test, page, TASK_SIZE);
	ASSERT_REGISTERED(test, a);
	for (int i = 0; i < 2; i++) {
		kpt_set_input(0);
		kpt_state.di = page;
		kpt_clear_journal();
		kpt_run_snippet(kpt_find_snippet("fault_user"));
		KUNIT_EXPECT_STREQ(test, kpt_journal, i ? "aA" : "aaA");
		KUNIT_EXPECT_EQ(test, kpt_state.ax, 0);
		KUNIT_EXPECT_TRUE(test, kpt_state.flags & X86_EFLAGS_IF);
	}

	/* Without a post handler, on the next page. */
	unregister_kprobe(a);
	a = kpt_snippet_probe('a', kpt_find_snippet("fault_user"), false);
	ASSERT_REGISTERED(test, a);
	kpt_set_input(0);
	kpt_state.di = page + PAGE_SIZE;
	kpt_clear_journal();
	kpt_run_snippet(kpt_find_snippet("fault_user"));
	KUNIT_EXPECT_STREQ(test, kpt_journal, "aa");
	KUNIT_EXPECT_EQ(test, kpt_state.ax, 0);
}

#if IS_BUILTIN(CONFIG_KPROBES_SANITY_TEST)
/* A machine check in a copy asks for the kind of the fixup before the fault is moved. */
static void kind_of_fixup_is_that_of_the_instruction(struct kunit *test)
{
	const struct fault *fault = test->param_value;
	struct kprobe *a = kpt_snippet_probe('a', kpt_find_snippet(fault->snippet), true);
	unsigned long copy;

	ASSERT_REGISTERED(test, a);
	scoped_guard(preempt)
		copy = (unsigned long)get_kprobe(a->addr)->ainsn.insn;
	KUNIT_EXPECT_NE(test, ex_get_fixup_type((unsigned long)a->addr), EX_TYPE_NONE);
	KUNIT_EXPECT_EQ(test, ex_get_fixup_type(copy), ex_get_fixup_type((unsigned long)a->addr));
}
#endif

static struct kunit_case kprobes_x86_faults_cases[] = {
	KUNIT_CASE_PARAM(fault_is_fixed_up, fault_gen_params),
	KUNIT_CASE_PARAM(skipped_fault_is_fixed_up, fault_gen_params),
	KUNIT_CASE(fault_may_sleep),
#if IS_BUILTIN(CONFIG_KPROBES_SANITY_TEST)
	KUNIT_CASE_PARAM(kind_of_fixup_is_that_of_the_instruction, fault_gen_params),
#endif
	{ }
};

static struct kunit_suite kprobes_x86_faults_suite = {
	.name = "kprobes-x86-faults",
	.suite_init = kpt_start_suite,
	.init = kpt_start_test,
	.exit = kpt_end_test,
	.test_cases = kprobes_x86_faults_cases,
};

kunit_test_suite(kprobes_x86_faults_suite);
