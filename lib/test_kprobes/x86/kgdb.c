// SPDX-License-Identifier: GPL-2.0
/* Breakpoints of the kernel's debugger in text that is to be probed. */
#include "../../../kernel/kprobes/internal.h"

#include <linux/cleanup.h>
#include <linux/delay.h>
#include <linux/ftrace.h>
#include <linux/kdebug.h>
#include <linux/kprobes_site.h>
#include <linux/kprobes_tables.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/preempt.h>
#include <linux/sched.h>
#include <linux/stringify.h>

#include <asm/text-patching.h>

#include "../../../kernel/debug/debug_core.h"
#include "../hosts.h"
#include "../optimize.h"
#include "../return_probes.h"
#include "functions.h"
#include "jump_code.h"
#include "jump_snippets.h"

/* Return @arg + 3. A jump at its first instruction, of any size, displaces the next one. */
u64 kprobes_test_debugged(u64 arg);

KPT_ASM_FUNCTION(kprobes_test_debugged,
		 "push " BX "\n"
		 TAKE_ARG
		 "add $3, %al\n"
		 "pop " BX "\n"
		 RETURN);

static const struct place debugged = {
	"kprobes_test_debugged", kprobes_test_debugged, kprobes_test_debugged, ARG + 3
};

#define FIRST_OFFSET	ENDBR_SIZE
#define SECOND_OFFSET	(FIRST_OFFSET + 1)
#define THIRD_OFFSET	(SECOND_OFFSET + TAKE_ARG_SIZE)

static u8 *second_insn(void)
{
	return (u8 *)(kpt_address(kprobes_test_debugged) + SECOND_OFFSET);
}

static void remove_breakpoint(void *addr)
{
	dbg_deactivate_sw_breakpoints();
	dbg_remove_sw_break((unsigned long)addr);
}

/* Until remove_breakpoint() or the end of the test, the function must not be called. */
static void set_breakpoint(struct kunit *test, u8 *addr)
{
	KUNIT_ASSERT_EQ(test, dbg_set_sw_break((unsigned long)addr), 0);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, remove_breakpoint, addr), 0);
	KUNIT_ASSERT_EQ(test, dbg_activate_sw_breakpoints(), 0);
	KUNIT_ASSERT_EQ(test, *addr, INT3_INSN_OPCODE);
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

	set_breakpoint(test, second_insn());
	EXPECT_REFUSED(test, a, -EILSEQ);
	EXPECT_REFUSED(test, b, -EILSEQ);
	KUNIT_EXPECT_EQ(test, *second_insn(), INT3_INSN_OPCODE);

	kunit_release_action(test, remove_breakpoint, second_insn());
	ASSERT_REGISTERED(test, a);
	ASSERT_REGISTERED(test, b);
	EXPECT_CALL(test, &debugged, "ab");

	/* As long as they are there, their instructions are known in spite of a breakpoint. */
	unregister_kprobe(a);
	unregister_kprobe(b);
	kpt_wait_until_site_is_freed(test, a);
	kpt_wait_until_site_is_freed(test, b);
}

/* The breakpoint in the displaced text is left alone; there is a jump once it is removed. */
static void expect_jump_after_breakpoint(struct kunit *test, struct kprobe *a)
{
	KUNIT_EXPECT_FALSE(test, kprobe_optimized(a));
	KUNIT_EXPECT_EQ(test, *second_insn(), INT3_INSN_OPCODE);

	kunit_release_action(test, remove_breakpoint, second_insn());
	EXPECT_CALL(test, &debugged, "a");
	kpt_expect_optimized_on_retry(test, a);
	EXPECT_CALL(test, &debugged, "a");
}

static void breakpoint_is_not_displaced(struct kunit *test)
{
	struct kprobe *a = debugged_probe('a', FIRST_OFFSET);

	set_breakpoint(test, second_insn());
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
	/* The wait for tasks does not end before this task sleeps: it must not here. */
	while (READ_ONCE(site->state) != SITE_OPTIMIZING && time_before(jiffies, end))
		cond_resched();
	KUNIT_ASSERT_EQ(test, site->state, SITE_OPTIMIZING);
	set_breakpoint(test, second_insn());
	wait_for_kprobe_optimizer();
	expect_jump_after_breakpoint(test, a);
}

/* Return @arg + 3, by a branch to the third instruction. It comes right after the return. */
u64 kprobes_test_hidden(u64 arg);

KPT_ASM_FUNCTION(kprobes_test_hidden,
		 TAKE_ARG
		 "cmp %al, %al\n"
		 "je 2f\n"
		 "add $1, %al\n"
		 "1: add $2, %al\n"
		 "add $1, %al\n"
		 RETURN
		 "2: jmp 1b\n");

static const struct place hidden = {
	"kprobes_test_hidden", kprobes_test_hidden, kprobes_test_hidden, ARG + 3
};

#define JUMPED_OVER	(ENDBR_SIZE + TAKE_ARG_SIZE + 2 + JMP8_INSN_SIZE)
#define HIDDEN		(JUMPED_OVER + 3 * 2 + RET_INSN_SIZE)

/* Where it leads is not known until the breakpoint is gone. */
static void branch_hidden_by_breakpoint_is_found(struct kunit *test)
{
	struct kprobe *a = kpt_probe('a', hidden.symbol);
	u8 *branch = (u8 *)(kpt_address(kprobes_test_hidden) + HIDDEN);

	KUNIT_ASSERT_EQ(test, *branch, JMP8_INSN_OPCODE);
	wait_for_kprobe_optimizer();
	scoped_guard(mutex, &kprobe_mutex)
		arch_forget_text(kprobe_known_text((unsigned long)branch));
	set_breakpoint(test, branch);
	a->offset = JUMPED_OVER;
	ASSERT_REGISTERED(test, a);
	msleep(500);
	wait_for_kprobe_optimizer();
	KUNIT_EXPECT_FALSE(test, kprobe_optimized(a));
	kunit_release_action(test, remove_breakpoint, branch);
	EXPECT_CALL(test, &hidden, "");
}

/*
 * Return @arg + 3. Between many additions, there is room for a jump of two bytes only. The
 * padding after the last jump is the only one in reach.
 */
u64 kprobes_test_narrow_debugged(u64 arg);

#define ADDITIONS	64
#define ADD_256		".rept " __stringify(ADDITIONS) "\n add $4, %al\n .endr\n"

KPT_ASM_FUNCTION(kprobes_test_narrow_debugged,
		 TAKE_ARG
		 ADD_256
		 "add $1, %al\n"
		 "1: add $2, %al\n"
		 "cmp %al, %al\n"
		 "jne 1b\n"
		 "jmp 2f\n"
		 "int3\n"
		 ".skip 16, 0x90\n"
		 "2:\n"
		 ADD_256
		 RETURN);

static const struct place narrow = {
	"kprobes_test_narrow_debugged", kprobes_test_narrow_debugged,
	kprobes_test_narrow_debugged, ARG + 3
};

/* Where the padding is that the jump needs is not known until the breakpoint is gone. */
static void padding_behind_breakpoint_is_found(struct kunit *test)
{
	struct kprobe *a = kpt_probe('a', narrow.symbol), *b = debugged_probe('b', FIRST_OFFSET);
	unsigned int offset = ENDBR_SIZE + TAKE_ARG_SIZE + 2 * ADDITIONS;
	u8 *after = (u8 *)(kpt_address(kprobes_test_narrow_debugged) + offset + 2);

	/* Once there is a jump, all branches are known. */
	ASSERT_REGISTERED(test, b);
	ASSERT_OPTIMIZED(test, b);
	set_breakpoint(test, after);
	a->offset = offset;
	ASSERT_REGISTERED(test, a);
	msleep(500);
	KUNIT_EXPECT_FALSE(test, kprobe_optimized(a));
	kunit_release_action(test, remove_breakpoint, after);
	kpt_expect_optimized_on_retry(test, a);
	EXPECT_CALL(test, &narrow, "a");
}

#ifdef CONFIG_KPROBES_ON_FTRACE
static kprobe_opcode_t *traced_site;
static unsigned int stops;

/* As a debugger, if one was connected, but for the call of ftrace, which it lets pass unseen. */
static int stop_in_debugger(struct notifier_block *self, unsigned long event, void *data)
{
	struct pt_regs *regs = ((struct die_args *)data)->regs;

	if (event != DIE_INT3 || regs->ip != (unsigned long)traced_site + INT3_INSN_SIZE)
		return NOTIFY_DONE;
	regs->ip = (unsigned long)traced_site + MCOUNT_INSN_SIZE;
	stops++;
	return NOTIFY_STOP;
}

static struct notifier_block debugger = { .notifier_call = stop_in_debugger };

static void disconnect_debugger(void *unused)
{
	unregister_die_notifier(&debugger);
}

/* Probes that ftrace calls have no breakpoint: this one is not taken for theirs. */
static void breakpoint_at_ftrace_site_is_the_debuggers(struct kunit *test)
{
	struct kretprobe *r = kpt_return_probe('r', TRACED_HOST->symbol);
	struct kprobe *a = kpt_probe('a', TRACED_HOST->symbol);

	ASSERT_REGISTERED(test, a);
	ASSERT_RETURN_PROBED(test, r);
	KUNIT_ASSERT_TRUE(test, kprobe_ftrace(a));
	EXPECT_VISIT(test, TRACED_HOST, kpt_do_nothing_inside, NULL, "raR");
	traced_site = a->addr;
	stops = 0;
	KUNIT_ASSERT_EQ(test, register_die_notifier(&debugger), 0);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, disconnect_debugger, NULL), 0);
	set_breakpoint(test, traced_site);
	EXPECT_VISIT(test, TRACED_HOST, kpt_do_nothing_inside, NULL, "");
	disable_kprobe(a);
	EXPECT_VISIT(test, TRACED_HOST, kpt_do_nothing_inside, NULL, "");
	kunit_release_action(test, remove_breakpoint, traced_site);
	KUNIT_EXPECT_EQ(test, stops, 2);
	EXPECT_VISIT(test, TRACED_HOST, kpt_do_nothing_inside, NULL, "rR");
}
#endif

static struct kunit_case optprobes_x86_kgdb_cases[] = {
#ifdef CONFIG_KPROBES_ON_FTRACE
	KUNIT_CASE(breakpoint_at_ftrace_site_is_the_debuggers),
#endif
	KUNIT_CASE(breakpoint_is_not_probed),
	KUNIT_CASE_SLOW(breakpoint_is_not_displaced),
	KUNIT_CASE_SLOW(breakpoint_set_meanwhile_is_not_displaced),
	KUNIT_CASE(branch_hidden_by_breakpoint_is_found),
	KUNIT_CASE_SLOW(padding_behind_breakpoint_is_found),
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
