// SPDX-License-Identifier: GPL-2.0
/* The entry of a function: with ENDBR, with the call of ftrace, or with neither. */
#include <linux/cache.h>

#include <asm/asm.h>
#include <asm/text-patching.h>

#include "../probes.h"
#include "functions.h"

/* A function without ENDBR. */
void kprobes_test_plain(void);

__KPT_ASM_FUNCTION(kprobes_test_plain,
		   "nopl 8(%" _ASM_AX ", %" _ASM_AX ")\n"
		   ASM_RET);

/*
 * Expect that a probe at @offset of @symbol is put at offset @at, and is told whether that
 * is the function's entry; the same if it is registered by its address.
 */
static void expect_entry(struct kunit *test, const char *symbol, unsigned int offset,
			 unsigned int at, bool entry)
{
	struct kprobe *a = kpt_probe('a', symbol), *b = kpt_probe('b', NULL);
	unsigned long start;

	a->offset = at;
	ASSERT_REGISTERED(test, a);
	start = (unsigned long)a->addr - at;
	unregister_kprobe(a);

	a->addr = NULL;
	a->offset = offset;
	ASSERT_REGISTERED(test, a);
	b->addr = (kprobe_opcode_t *)start;
	b->offset = offset;
	ASSERT_REGISTERED(test, b);
	KUNIT_EXPECT_EQ(test, (unsigned long)a->addr, start + at);
	KUNIT_EXPECT_PTR_EQ(test, a->addr, b->addr);
	KUNIT_EXPECT_EQ(test, !!(a->flags & KPROBE_FLAG_ON_FUNC_ENTRY), entry);
	KUNIT_EXPECT_EQ(test, !!(b->flags & KPROBE_FLAG_ON_FUNC_ENTRY), entry);
	unregister_kprobe(a);
	unregister_kprobe(b);
	a->addr = NULL;
}

/* The CPU must find ENDBR where an indirect branch goes. */
static void entry_is_after_endbr(struct kunit *test)
{
	expect_entry(test, "kprobes_test_frame", 0, ENDBR_SIZE, true);
	expect_entry(test, "kprobes_test_frame", ENDBR_SIZE, ENDBR_SIZE, true);
	expect_entry(test, "kprobes_test_frame", ENDBR_SIZE + 1, ENDBR_SIZE + 1, false);
	expect_entry(test, "mktime64", 0, ENDBR_SIZE, true);
	expect_entry(test, "mktime64", ENDBR_SIZE, ENDBR_SIZE, true);
	expect_entry(test, "kprobes_test_plain", 0, 0, true);
	expect_entry(test, "kprobes_test_plain", 5, 5, false);
}

/* After ENDBR comes the call of ftrace: one instruction, in use or not. */
static void inside_of_entry_is_not_probed(struct kunit *test)
{
	struct kprobe *a = kpt_probe('a', "mktime64");

	if (!IS_ENABLED(CONFIG_KPROBES_ON_FTRACE))
		kunit_skip(test, "no probes through ftrace");
	for (int armed = 0; armed < 2; armed++) {
		for (unsigned int i = 1; i < CALL_INSN_SIZE; i++) {
			a->offset = ENDBR_SIZE + i;
			EXPECT_REFUSED(test, a, -EILSEQ);
		}
		if (!armed)
			ASSERT_REGISTERED(test, kpt_probe('b', "mktime64"));
	}
	a->offset = ENDBR_SIZE + CALL_INSN_SIZE;
	ASSERT_REGISTERED(test, a);
	EXPECT_CALL(test, TRACED, "ba");
}

static struct kunit_case kprobes_x86_entry_cases[] = {
	KUNIT_CASE(entry_is_after_endbr),
	KUNIT_CASE(inside_of_entry_is_not_probed),
	{ }
};

static struct kunit_suite kprobes_x86_entry_suite = {
	.name = "kprobes-x86-entry",
	.suite_init = kpt_start_suite,
	.init = kpt_start_test,
	.exit = kpt_end_test,
	.test_cases = kprobes_x86_entry_cases,
};

kunit_test_suite(kprobes_x86_entry_suite);
