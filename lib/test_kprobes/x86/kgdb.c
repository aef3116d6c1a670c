// SPDX-License-Identifier: GPL-2.0
/* Breakpoints of the kernel's debugger in text that is to be probed. */
#include <linux/cleanup.h>
#include <linux/delay.h>
#include <linux/kprobes_site.h>
#include <linux/preempt.h>

#include <asm/text-patching.h>

#include "../../../kernel/debug/debug_core.h"
#include "../optimize.h"
#include "../return_probes.h"
#include "functions.h"
#include "jump_code.h"
#include "jump_snippets.h"

/* Return @arg + 3. A jump at its first instruction displaces the next one. */
u64 kprobes_test_debugged(u64 arg);

KPT_ASM_FUNCTION(kprobes_test_debugged,
		 TAKE_ARG
		 "add $1, %al\n"
		 "add $2, %al\n"
		 RETURN);

static const struct place debugged = {
	"kprobes_test_debugged", kprobes_test_debugged, kprobes_test_debugged, ARG + 3
};

#define FIRST_OFFSET	ENDBR_SIZE
#define SECOND_OFFSET	(FIRST_OFFSET + TAKE_ARG_SIZE)
#define THIRD_OFFSET	(SECOND_OFFSET + 2)

static u8 *second_insn(void)
{
	return (u8 *)(kpt_address(kprobes_test_debugged) + SECOND_OFFSET);
}

static void remove_breakpoint(void *unused)
{
	dbg_deactivate_sw_breakpoints();
	dbg_remove_sw_break((unsigned long)second_insn());
}

/* Until remove_breakpoint() or the end of the test, the function must not be called. */
static void set_breakpoint(struct kunit *test)
{
	KUNIT_ASSERT_EQ(test, dbg_set_sw_break((unsigned long)second_insn()), 0);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, remove_breakpoint, NULL), 0);
	KUNIT_ASSERT_EQ(test, dbg_activate_sw_breakpoints(), 0);
	KUNIT_ASSERT_EQ(test, *second_insn(), INT3_INSN_OPCODE);
}

static struct kprobe *debugged_probe(char name, unsigned int offset)
{
	struct kprobe *kp = kpt_probe(name, debugged.symbol);

	kp->offset = offset;
	return kp;
}

/* It hides how long the instruction is, and so where the next ones begin. */
static void breakpoint_is_not_probed(struct kunit *test)
{
	struct kprobe *a = debugged_probe('a', SECOND_OFFSET);
	struct kprobe *b = debugged_probe('b', THIRD_OFFSET);

	set_breakpoint(test);
	EXPECT_REFUSED(test, a, -EILSEQ);
	EXPECT_REFUSED(test, b, -EILSEQ);
	KUNIT_EXPECT_EQ(test, *second_insn(), INT3_INSN_OPCODE);

	kunit_release_action(test, remove_breakpoint, NULL);
	ASSERT_REGISTERED(test, a);
	ASSERT_REGISTERED(test, b);
	EXPECT_CALL(test, &debugged, "ab");
}

/* The breakpoint in the displaced text is left alone; there is a jump once it is removed. */
static void expect_jump_after_breakpoint(struct kunit *test, struct kprobe *a)
{
	KUNIT_EXPECT_FALSE(test, kprobe_optimized(a));
	KUNIT_EXPECT_EQ(test, *second_insn(), INT3_INSN_OPCODE);

	kunit_release_action(test, remove_breakpoint, NULL);
	EXPECT_CALL(test, &debugged, "a");
	kpt_expect_optimized_on_retry(test, a);
	EXPECT_CALL(test, &debugged, "a");
}

static void breakpoint_is_not_displaced(struct kunit *test)
{
	struct kprobe *a = debugged_probe('a', FIRST_OFFSET);

	set_breakpoint(test);
	ASSERT_REGISTERED(test, a);
	msleep(500);
	expect_jump_after_breakpoint(test, a);
}

/* It is set after the detour has been made, while the optimiser waits for tasks. */
static void breakpoint_set_meanwhile_is_not_displaced(struct kunit *test)
{
	struct kprobe *a = debugged_probe('a', FIRST_OFFSET);
	unsigned long end = jiffies + PATIENCE;
	struct kprobe_site *site;

	ASSERT_REGISTERED(test, a);
	scoped_guard(preempt)
		site = site_of(get_kprobe(a->addr));
	while (READ_ONCE(site->state) != SITE_OPTIMIZING && time_before(jiffies, end))
		usleep_range(1000, 2000);
	KUNIT_ASSERT_EQ(test, site->state, SITE_OPTIMIZING);
	set_breakpoint(test);
	wait_for_kprobe_optimizer();
	expect_jump_after_breakpoint(test, a);
}

static struct kunit_case optprobes_x86_kgdb_cases[] = {
	KUNIT_CASE(breakpoint_is_not_probed),
	KUNIT_CASE_SLOW(breakpoint_is_not_displaced),
	KUNIT_CASE_SLOW(breakpoint_set_meanwhile_is_not_displaced),
	{ }
};

static struct kunit_suite optprobes_x86_kgdb_suite = {
	.name = "optprobes-x86-kgdb",
	.suite_init = kpt_start_return_suite,
	.init = kpt_start_return_test,
	.exit = kpt_end_return_test,
	.test_cases = optprobes_x86_kgdb_cases,
};

kunit_test_suite(optprobes_x86_kgdb_suite);
