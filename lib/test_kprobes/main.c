// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of kernel probes, as their users see them.
 *
 * A test probes a function and calls it. Probes are called 'a', 'b' ...; each
 * call of a handler appends a letter to the journal: 'a' is the pre handler of
 * probe 'a', 'A' its post handler. After a test, however it ended, the probes
 * that it has left registered are unregistered, and no trace of any is in the
 * text.
 *
 * "kprobes" tests what is the same on all architectures, "kretprobes" the same
 * of return probes, "optprobes" of jumps in place of breakpoints. "kprobes-x86"
 * tests how the displaced instruction is run, and what handlers see of it,
 * "kprobes-differential" that this is the same in all ways, "kretprobes-x86" what
 * a return leaves as it was, and "optprobes-x86" where there can be a jump.
 */
#include <linux/bug.h>
#include <linux/cpu.h>
#include <linux/delay.h>
#include <linux/ftrace.h>
#include <linux/hrtimer.h>
#include <linux/jump_label.h>
#include <linux/kallsyms.h>
#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/static_call.h>
#include <linux/string.h>
#include <linux/time.h>
#include <linux/uaccess.h>

#include <kunit/test.h>

/* Where there is never memory: among the values of ERR_PTR(). */
#define BAD_ADDRESS	((void *)-MAX_ERRNO)

/* Entries of a stack trace. */
#define TRACE_LENGTH	32

/* ------------------------------------------------------- probes and journal */

/**
 * struct test_probe - A probe of a test
 * @kp:		The probe.
 * @act:	What its pre handler does besides writing the journal, or NULL.
 * @data:	For @act.
 */
struct test_probe {
	struct kprobe kp;
	int (*act)(struct test_probe *p, struct pt_regs *regs);
	unsigned long data;
};

static struct test_probe probes[8];

static struct task_struct *tester;	/* the journal is about this task only */
static char journal[32];
static unsigned int journal_length;

static void note(char event)
{
	if (journal_length < sizeof(journal) - 1)
		journal[journal_length++] = event;
}

static void clear_journal(void)
{
	memset(journal, 0, sizeof(journal));
	journal_length = 0;
}

static int on_pre(struct kprobe *kp, struct pt_regs *regs)
{
	struct test_probe *p = container_of(kp, struct test_probe, kp);

	if (current != tester)
		return 0;
	note('a' + (p - probes));
	return p->act ? p->act(p, regs) : 0;
}

static void on_post(struct kprobe *kp, struct pt_regs *regs, unsigned long flags)
{
	struct test_probe *p = container_of(kp, struct test_probe, kp);

	if (current == tester)
		note('A' + (p - probes));
}

static struct test_probe *test_probe(char name)
{
	return &probes[name - 'a'];
}

/* Make the probe called @name one with a pre handler. */
static struct kprobe *probe(char name, const char *symbol)
{
	struct kprobe *kp = &test_probe(name)->kp;

	kp->symbol_name = symbol;
	kp->pre_handler = on_pre;
	return kp;
}

/* The same, with a post handler, too. */
static struct kprobe *post_probe(char name, const char *symbol)
{
	struct kprobe *kp = probe(name, symbol);

	kp->post_handler = on_post;
	return kp;
}

/* That of a probe that has not come as far as registration is still zero. */
static bool is_linked(const struct kprobe *kp)
{
	return (kp->list.next && !list_empty(&kp->list)) || !hlist_unhashed(&kp->hlist);
}

/* ------------------------------------------------------------------ targets */

/* Functions to probe. Always called by address: nothing is known of their registers. */

static noinline u64 kprobes_test_target(u64 arg)
{
	OPTIMIZER_HIDE_VAR(arg);
	return arg * 3 + 1;
}

static noinline u64 kprobes_test_other_target(u64 arg)
{
	OPTIMIZER_HIDE_VAR(arg);
	return arg * 5 + 2;
}

static noinline u64 kprobes_test_replacement(u64 arg)
{
	OPTIMIZER_HIDE_VAR(arg);
	return arg * 7 + 3;
}

static noinline u64 kprobes_test_blacklisted(u64 arg)
{
	OPTIMIZER_HIDE_VAR(arg);
	return arg * 11 + 4;
}

NOKPROBE_SYMBOL(kprobes_test_blacklisted);

static noinstr noinline u64 kprobes_test_noinstr(u64 arg)
{
	OPTIMIZER_HIDE_VAR(arg);
	return arg * 13 + 5;
}

static __cpuidle noinline u64 kprobes_test_idle(u64 arg)
{
	OPTIMIZER_HIDE_VAR(arg);
	return arg * 19 + 7;
}

/* Exported functions outside of lib/, which ftrace knows. Hardly anybody calls them. */

static u64 call_mktime64(u64 arg)
{
	return mktime64(arg, 1, 1, 0, 0, 0);
}

static u64 call_nsecs_to_jiffies64(u64 arg)
{
	return nsecs_to_jiffies64(arg * NSEC_PER_SEC);
}

/* Elsewhere KPROBE_FLAG_REENTRANT makes no difference: hits in hits are missed. */
#define HITS_NEST	IS_ENABLED(CONFIG_X86_64)

#define ARG		1983
#define REPLACED	(ARG * 7 + 3)

/**
 * struct place - A function that a test is run with
 * @symbol:	Its name.
 * @function:	The function.
 * @call:	Calls it, for ARG.
 * @result:	What that returns.
 */
struct place {
	const char *symbol;
	void *function;
	u64 (*call)(u64 arg);
	u64 result;
};

static const struct place places[] = {
	{ "kprobes_test_target", kprobes_test_target, kprobes_test_target, ARG * 3 + 1 },
	{ "mktime64", mktime64, call_mktime64, 410227200 },
	{ "kprobes_test_other_target", kprobes_test_other_target, kprobes_test_other_target,
	  ARG * 5 + 2 },
	{ "nsecs_to_jiffies64", nsecs_to_jiffies64, call_nsecs_to_jiffies64, (u64)ARG * HZ },
};

/* The text of those functions when none of them is probed. */
#define TEXT_BYTES	16

static u8 unprobed_text[ARRAY_SIZE(places)][TEXT_BYTES];

/* To read it by its name would be a reference to what is inside: no place for a jump. */
static const void *text(const struct place *place)
{
	const void *start = dereference_function_descriptor(place->function);

	OPTIMIZER_HIDE_VAR(start);
	return start;
}

/* Two of each kind: with a breakpoint, and through ftrace if there is that. */
#define TARGET		(&places[0])
#define TRACED		(&places[1])
#define OTHER_TARGET	(&places[2])
#define OTHER_TRACED	(&places[3])

static const void *place_gen_params(const void *prev, char *desc)
{
	const struct place *next = prev ? prev + sizeof(*next) : TARGET;

	if (next > TRACED)
		return NULL;
	strscpy(desc, next->symbol, KUNIT_PARAM_DESC_SIZE);
	return next;
}

static int start_suite(struct kunit_suite *suite)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(places); i++)
		memcpy(unprobed_text[i], text(&places[i]), TEXT_BYTES);
	return 0;
}

static int start_test(struct kunit *test)
{
	memset(probes, 0, sizeof(probes));
	clear_journal();
	tester = current;
	return 0;
}

static void end_test(struct kunit *test)
{
	struct kprobe *all[ARRAY_SIZE(probes)];
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(probes); i++)
		all[i] = &probes[i].kp;
	unregister_kprobes(all, ARRAY_SIZE(all));
	for (i = 0; i < ARRAY_SIZE(places); i++)
		KUNIT_EXPECT_MEMEQ(test, text(&places[i]), unprobed_text[i], TEXT_BYTES);
}

static bool is_in(unsigned long address, const char *function)
{
	char name[KSYM_SYMBOL_LEN];

	sprint_symbol_no_offset(name, address);
	return !strcmp(strim(strreplace(name, '[', '\0')), function);
}

static u64 call(const struct place *place)
{
	u64 (*function)(u64 arg) = place->call;

	OPTIMIZER_HIDE_VAR(function);
	return function(ARG);
}

static void expect_call(struct kunit *test, const struct place *place, const char *events,
			int line)
{
	clear_journal();
	KUNIT_EXPECT_EQ_MSG(test, call(place), place->result, "at line %d", line);
	KUNIT_EXPECT_STREQ_MSG(test, journal, events, "at line %d", line);
}

/* Call a function: it returns what it should, and these handlers are called. */
#define EXPECT_CALL(test, place, events) expect_call(test, place, events, __LINE__)

#define ASSERT_REGISTERED(test, kp)	KUNIT_ASSERT_EQ(test, register_kprobe(kp), 0)

#include "test_kprobes_load.h"

/* -------------------------------------------------------- what handlers get */

static void pre_handler_is_called(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = probe('a', place->symbol);

	EXPECT_CALL(test, place, "");
	ASSERT_REGISTERED(test, a);
	EXPECT_CALL(test, place, "a");
	EXPECT_CALL(test, place, "a");
	unregister_kprobe(a);
	EXPECT_CALL(test, place, "");
	KUNIT_EXPECT_EQ(test, a->nmissed, 0);
}

static void post_handler_is_called(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = post_probe('a', place->symbol);

	ASSERT_REGISTERED(test, a);
	EXPECT_CALL(test, place, "aA");
	unregister_kprobe(a);
	EXPECT_CALL(test, place, "");
}

static void handlers_are_optional(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = post_probe('a', place->symbol);
	struct kprobe *b = probe('b', place->symbol);

	a->pre_handler = NULL;
	b->pre_handler = NULL;
	ASSERT_REGISTERED(test, b);
	EXPECT_CALL(test, place, "");
	ASSERT_REGISTERED(test, a);
	EXPECT_CALL(test, place, "A");
}

static void probes_share_an_address(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = probe('a', place->symbol);
	struct kprobe *b = post_probe('b', place->symbol);
	struct kprobe *c = probe('c', place->symbol);
	struct kprobe *d = post_probe('d', place->symbol);

	ASSERT_REGISTERED(test, a);
	ASSERT_REGISTERED(test, b);
	EXPECT_CALL(test, place, "baB");
	ASSERT_REGISTERED(test, c);
	ASSERT_REGISTERED(test, d);
	EXPECT_CALL(test, place, "dcbaDB");
	KUNIT_EXPECT_PTR_EQ(test, a->addr, d->addr);

	unregister_kprobe(a);
	EXPECT_CALL(test, place, "dcbDB");
	unregister_kprobe(d);
	EXPECT_CALL(test, place, "cbB");
	unregister_kprobe(b);
	EXPECT_CALL(test, place, "c");
	unregister_kprobe(c);
	EXPECT_CALL(test, place, "");
}

static void probe_is_registered_again(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = probe('a', place->symbol);

	for (int i = 0; i < 3; i++) {
		a->addr = NULL;
		a->nmissed = 5;
		ASSERT_REGISTERED(test, a);
		KUNIT_EXPECT_EQ(test, a->nmissed, 0);
		EXPECT_CALL(test, place, "a");
		unregister_kprobe(a);
		EXPECT_CALL(test, place, "");
	}
}

/* Of an earlier registration. */
static void old_flags_are_ignored(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = post_probe('a', place->symbol);
	struct kprobe *b = probe('b', place->symbol);

	a->flags = KPROBE_FLAG_GONE | KPROBE_FLAG_OPTIMIZED | KPROBE_FLAG_ON_FUNC_ENTRY;
	a->flags |= place == TRACED ? 0 : KPROBE_FLAG_FTRACE;
	ASSERT_REGISTERED(test, a);
	ASSERT_REGISTERED(test, b);
	KUNIT_EXPECT_EQ(test, a->flags, b->flags);
	EXPECT_CALL(test, place, "baA");
}

static void address_is_set(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = probe('a', place->symbol);
	struct kprobe *b = probe('b', NULL);

	ASSERT_REGISTERED(test, a);
	KUNIT_ASSERT_NOT_NULL(test, a->addr);
	KUNIT_EXPECT_TRUE(test, is_linked(a));
	KUNIT_EXPECT_TRUE(test, a->flags & KPROBE_FLAG_ON_FUNC_ENTRY);

	b->addr = a->addr;
	ASSERT_REGISTERED(test, b);
	KUNIT_EXPECT_PTR_EQ(test, a->addr, b->addr);
	KUNIT_EXPECT_TRUE(test, b->flags & KPROBE_FLAG_ON_FUNC_ENTRY);
	EXPECT_CALL(test, place, "ba");
}

static void traced_function_is_hit_through_ftrace(struct kunit *test)
{
	struct kprobe *a = probe('a', TRACED->symbol);
	struct kprobe *b = probe('b', TARGET->symbol);

	ASSERT_REGISTERED(test, a);
	ASSERT_REGISTERED(test, b);
	KUNIT_EXPECT_EQ(test, kprobe_ftrace(a), IS_ENABLED(CONFIG_KPROBES_ON_FTRACE));
	KUNIT_EXPECT_FALSE(test, kprobe_ftrace(b));
}

static void module_is_named(struct kunit *test)
{
#ifdef MODULE
	struct kprobe *a = probe('a', KBUILD_MODNAME ":kprobes_test_target");

	ASSERT_REGISTERED(test, a);
	EXPECT_CALL(test, TARGET, "a");
#else
	kunit_skip(test, "not a module");
#endif
}

#ifdef CONFIG_HAVE_FUNCTION_ARG_ACCESS_API
static int read_argument(struct test_probe *p, struct pt_regs *regs)
{
	p->data = regs_get_kernel_argument(regs, 0);
	return 0;
}

static void registers_are_those_of_the_call(struct kunit *test)
{
	struct kprobe *a = probe('a', TARGET->symbol);
	struct kprobe *b = probe('b', TRACED->symbol);

	test_probe('a')->act = read_argument;
	test_probe('b')->act = read_argument;
	ASSERT_REGISTERED(test, a);
	ASSERT_REGISTERED(test, b);
	EXPECT_CALL(test, TARGET, "a");
	EXPECT_CALL(test, TRACED, "b");
	KUNIT_EXPECT_EQ(test, test_probe('a')->data, ARG);
	KUNIT_EXPECT_EQ(test, test_probe('b')->data, ARG);
}
#else
static void registers_are_those_of_the_call(struct kunit *test)
{
	kunit_skip(test, "no access to arguments");
}
#endif

static int go_elsewhere(struct test_probe *p, struct pt_regs *regs)
{
	instruction_pointer_set(regs, (unsigned long)kprobes_test_replacement);
	return 1;
}

/* Where a handler has changed the path, nothing more is run. */
static void pre_handler_changes_the_path(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = post_probe('a', place->symbol);
	struct kprobe *b = post_probe('b', place->symbol);
	struct kprobe *c = post_probe('c', place->symbol);
	u64 result;

	if (place->call != kprobes_test_target && !IS_ENABLED(CONFIG_64BIT))
		kunit_skip(test, "arguments differ in size");

	test_probe('b')->act = go_elsewhere;
	ASSERT_REGISTERED(test, a);
	ASSERT_REGISTERED(test, b);
	ASSERT_REGISTERED(test, c);
	result = call(place);
	KUNIT_EXPECT_EQ(test, result, REPLACED);
	KUNIT_EXPECT_STREQ(test, journal, "cb");

	unregister_kprobe(b);
	EXPECT_CALL(test, place, "caCA");
}

static void pre_handler_alone_changes_the_path(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = probe('a', place->symbol);
	u64 result;

	test_probe('a')->act = go_elsewhere;
	ASSERT_REGISTERED(test, a);
	result = call(place);
	KUNIT_EXPECT_EQ(test, result, REPLACED);
	KUNIT_EXPECT_STREQ(test, journal, "a");
}

static void go_elsewhere_after(struct kprobe *kp, struct pt_regs *regs, unsigned long flags)
{
	on_post(kp, regs, flags);
	if (current == tester)
		instruction_pointer_set(regs, (unsigned long)kprobes_test_replacement);
}

/* After a nop, the function is as it was called. */
static void post_handler_changes_the_path(struct kunit *test)
{
	struct kprobe *a = post_probe('a', TRACED->symbol);
	struct kprobe *b = probe('b', TRACED->symbol);
	u64 result;

	if (!IS_ENABLED(CONFIG_KPROBES_ON_FTRACE) || !IS_ENABLED(CONFIG_X86_64))
		kunit_skip(test, "what the probed instruction does is not known");
	a->post_handler = go_elsewhere_after;
	for (int shared = 0; shared < 2; shared++) {
		a->addr = NULL;
		ASSERT_REGISTERED(test, a);
		clear_journal();
		result = call(TRACED);
		KUNIT_EXPECT_EQ(test, result, REPLACED);
		KUNIT_EXPECT_STREQ(test, journal, shared ? "abA" : "aA");
		unregister_kprobe(a);
		if (!shared)
			ASSERT_REGISTERED(test, b);
	}
	EXPECT_CALL(test, TRACED, "b");
}

static int read_bad_address(struct test_probe *p, struct pt_regs *regs)
{
	unsigned long value;

	p->data = copy_from_kernel_nofault(&value, BAD_ADDRESS, sizeof(value));
	return 0;
}

static void handler_may_fault(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = post_probe('a', place->symbol);

	if (IS_ENABLED(CONFIG_TRACE_IRQFLAGS) && !IS_ENABLED(CONFIG_TRACE_IRQFLAGS_NMI))
		kunit_skip(test, "lockdep thinks that interrupts are on in a breakpoint's handler");

	test_probe('a')->act = read_bad_address;
	ASSERT_REGISTERED(test, a);
	EXPECT_CALL(test, place, "aA");
	KUNIT_EXPECT_EQ(test, (long)test_probe('a')->data, -EFAULT);
	unregister_kprobe(a);

	/* The same where nothing follows the handler. */
	a->post_handler = NULL;
	a->addr = NULL;
	test_probe('a')->data = 0;
	ASSERT_REGISTERED(test, a);
	EXPECT_CALL(test, place, "a");
	KUNIT_EXPECT_EQ(test, (long)test_probe('a')->data, -EFAULT);
}

/* ----------------------------------------------------- enabling, disabling */

static void probe_is_disabled_at_first(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = post_probe('a', place->symbol);

	a->flags = KPROBE_FLAG_DISABLED;
	ASSERT_REGISTERED(test, a);
	KUNIT_EXPECT_TRUE(test, kprobe_disabled(a));
	EXPECT_CALL(test, place, "");
	KUNIT_EXPECT_EQ(test, enable_kprobe(a), 0);
	KUNIT_EXPECT_FALSE(test, kprobe_disabled(a));
	EXPECT_CALL(test, place, "aA");
}

static void probe_is_disabled_and_enabled(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = post_probe('a', place->symbol);

	ASSERT_REGISTERED(test, a);
	for (int i = 0; i < 3; i++) {
		KUNIT_EXPECT_EQ(test, disable_kprobe(a), 0);
		KUNIT_EXPECT_EQ(test, disable_kprobe(a), 0);
		KUNIT_EXPECT_TRUE(test, kprobe_disabled(a));
		KUNIT_EXPECT_TRUE(test, is_linked(a));
		EXPECT_CALL(test, place, "");
		KUNIT_EXPECT_EQ(test, enable_kprobe(a), 0);
		KUNIT_EXPECT_EQ(test, enable_kprobe(a), 0);
		KUNIT_EXPECT_FALSE(test, kprobe_disabled(a));
		EXPECT_CALL(test, place, "aA");
	}
	KUNIT_EXPECT_EQ(test, a->nmissed, 0);

	KUNIT_EXPECT_EQ(test, disable_kprobe(a), 0);
	unregister_kprobe(a);
	EXPECT_CALL(test, place, "");
}

static void neighbours_stay_enabled(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = probe('a', place->symbol);
	struct kprobe *b = post_probe('b', place->symbol);

	ASSERT_REGISTERED(test, a);
	ASSERT_REGISTERED(test, b);
	KUNIT_EXPECT_EQ(test, disable_kprobe(b), 0);
	EXPECT_CALL(test, place, "a");
	KUNIT_EXPECT_EQ(test, enable_kprobe(b), 0);
	KUNIT_EXPECT_EQ(test, disable_kprobe(a), 0);
	EXPECT_CALL(test, place, "bB");
	KUNIT_EXPECT_EQ(test, disable_kprobe(b), 0);
	EXPECT_CALL(test, place, "");
	KUNIT_EXPECT_EQ(test, enable_kprobe(a), 0);
	EXPECT_CALL(test, place, "a");
	unregister_kprobe(a);
	EXPECT_CALL(test, place, "");
	KUNIT_EXPECT_EQ(test, enable_kprobe(b), 0);
	EXPECT_CALL(test, place, "bB");
}

static void probe_joins_a_disabled_one(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = probe('a', place->symbol);
	struct kprobe *b = probe('b', place->symbol);

	a->flags = KPROBE_FLAG_DISABLED;
	ASSERT_REGISTERED(test, a);
	ASSERT_REGISTERED(test, b);
	EXPECT_CALL(test, place, "b");
	unregister_kprobe(b);
	EXPECT_CALL(test, place, "");
	KUNIT_EXPECT_EQ(test, enable_kprobe(a), 0);
	EXPECT_CALL(test, place, "a");
}

static void unregistered_probe_is_not_enabled(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = probe('a', place->symbol);
	struct kprobe *b = probe('b', place->symbol);

	KUNIT_EXPECT_EQ(test, enable_kprobe(a), -EINVAL);
	KUNIT_EXPECT_EQ(test, disable_kprobe(a), -EINVAL);

	/* Not even if another probe is at the address. */
	ASSERT_REGISTERED(test, b);
	a->addr = b->addr;
	KUNIT_EXPECT_EQ(test, disable_kprobe(a), -EINVAL);
	KUNIT_EXPECT_EQ(test, enable_kprobe(a), -EINVAL);
	KUNIT_EXPECT_EQ(test, a->flags, 0);
	EXPECT_CALL(test, place, "b");

	unregister_kprobe(b);
	KUNIT_EXPECT_EQ(test, enable_kprobe(b), -EINVAL);
	EXPECT_CALL(test, place, "");
}

/* ------------------------------------------------------------ missed hits */

static int call_target(struct test_probe *p, struct pt_regs *regs)
{
	for (unsigned long i = 0; i < p->data; i++)
		if (call(TARGET) != TARGET->result)
			note('!');
	return 0;
}

/* What a handler runs into is missed, and counted. */
static void handler_calls_a_probed_function(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = post_probe('a', place->symbol);
	struct kprobe *b = post_probe('b', TARGET->symbol);
	struct kprobe *c = probe('c', TARGET->symbol);
	struct kprobe *d = probe('d', TARGET->symbol);
	bool same = place->call == TARGET->call;

	test_probe('a')->act = call_target;
	test_probe('a')->data = 3;
	b->flags = KPROBE_FLAG_DISABLED;
	d->flags = KPROBE_FLAG_REENTRANT;
	ASSERT_REGISTERED(test, a);
	ASSERT_REGISTERED(test, b);
	ASSERT_REGISTERED(test, c);
	ASSERT_REGISTERED(test, d);

	EXPECT_CALL(test, place, same ? "dcaA" : "aA");
	KUNIT_EXPECT_EQ(test, a->nmissed, same ? 3 : 0);
	KUNIT_EXPECT_EQ(test, b->nmissed, 0);
	KUNIT_EXPECT_EQ(test, c->nmissed, 3);
	KUNIT_EXPECT_EQ(test, d->nmissed, 3);

	test_probe('a')->act = NULL;
	EXPECT_CALL(test, TARGET, same ? "dcaA" : "dc");
	KUNIT_EXPECT_EQ(test, c->nmissed, 3);
}

static int call_traced(struct test_probe *p, struct pt_regs *regs)
{
	if (call(TRACED) != TRACED->result)
		note('!');
	return 0;
}

static void handler_calls_a_traced_function(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = probe('a', place->symbol);
	struct kprobe *b = post_probe('b', TRACED->symbol);
	bool same = place->call == TRACED->call;

	test_probe('a')->act = call_traced;
	ASSERT_REGISTERED(test, a);
	ASSERT_REGISTERED(test, b);

	EXPECT_CALL(test, place, same ? "baB" : "a");
	KUNIT_EXPECT_EQ(test, a->nmissed, same ? 1 : 0);
	KUNIT_EXPECT_EQ(test, b->nmissed, 1);
}

static void call_target_and_note(struct kprobe *kp, struct pt_regs *regs, unsigned long flags)
{
	on_post(kp, regs, flags);
	if (current == tester && call(TARGET) != TARGET->result)
		note('!');
}

static void post_handler_calls_a_probed_function(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = post_probe('a', place->symbol);
	struct kprobe *b = post_probe('b', TARGET->symbol);
	bool same = place->call == TARGET->call;

	a->post_handler = call_target_and_note;
	ASSERT_REGISTERED(test, a);
	ASSERT_REGISTERED(test, b);
	EXPECT_CALL(test, place, same ? "baBA" : "aA");
	KUNIT_EXPECT_EQ(test, b->nmissed, 1);
}

/**
 * struct interruption - A timer whose interrupt calls TARGET
 * @timer:	The timer.
 * @hardirq:	It came in hard interrupt context.
 * @done:	It came.
 * @wrong:	TARGET did not return what it should.
 */
static struct interruption {
	struct hrtimer timer;
	bool hardirq;
	bool done;
	bool wrong;
} interruption;

static enum hrtimer_restart interrupt(struct hrtimer *timer)
{
	interruption.hardirq = in_hardirq();
	interruption.wrong = call(TARGET) != TARGET->result;
	WRITE_ONCE(interruption.done, true);
	return HRTIMER_NORESTART;
}

/* Let an interrupt come on this CPU now. Preemption is off, interrupts are on. */
static void be_interrupted(void)
{
	unsigned long count = 0;

	interruption.done = false;
	hrtimer_start(&interruption.timer, ns_to_ktime(100 * NSEC_PER_USEC),
		      HRTIMER_MODE_REL_PINNED_HARD);
	while (!READ_ONCE(interruption.done) && count++ < 1000 * 1000)
		udelay(1);
}

static void expect_interruption(struct kunit *test)
{
	hrtimer_cancel(&interruption.timer);
	KUNIT_ASSERT_TRUE(test, interruption.done);
	KUNIT_EXPECT_TRUE(test, interruption.hardirq);
	KUNIT_EXPECT_FALSE(test, interruption.wrong);
}

static void prepare_interruption(enum hrtimer_restart (*function)(struct hrtimer *timer))
{
	hrtimer_init(&interruption.timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_PINNED_HARD);
	interruption.timer.function = function;
}

static void register_for_interruption(struct kunit *test)
{
	struct kprobe *b = post_probe('b', TARGET->symbol);
	struct kprobe *c = post_probe('c', TARGET->symbol);
	struct kprobe *d = probe('d', TARGET->symbol);

	prepare_interruption(interrupt);
	c->flags = KPROBE_FLAG_REENTRANT;
	d->flags = KPROBE_FLAG_REENTRANT | KPROBE_FLAG_DISABLED;
	ASSERT_REGISTERED(test, b);
	ASSERT_REGISTERED(test, c);
	ASSERT_REGISTERED(test, d);
}

static int interrupt_handler(struct test_probe *p, struct pt_regs *regs)
{
	p->data = irqs_disabled();
	if (!p->data)
		be_interrupted();
	return 0;
}

/*
 * An interrupt that lands in a handler and hits a probe: those that have opted
 * in are called, the others miss it.
 */
static void handler_is_interrupted(struct kunit *test)
{
	struct kprobe *a = post_probe('a', TRACED->symbol);

	register_for_interruption(test);
	test_probe('a')->act = interrupt_handler;
	ASSERT_REGISTERED(test, a);
	clear_journal();
	KUNIT_EXPECT_EQ(test, call(TRACED), TRACED->result);
	if (test_probe('a')->data)
		kunit_skip(test, "handlers run with interrupts off");
	expect_interruption(test);
	KUNIT_EXPECT_STREQ(test, journal, HITS_NEST ? "acCA" : "aA");
	KUNIT_EXPECT_EQ(test, a->nmissed, 0);
	KUNIT_EXPECT_EQ(test, test_probe('b')->kp.nmissed, 1);
	KUNIT_EXPECT_EQ(test, test_probe('c')->kp.nmissed, HITS_NEST ? 0 : 1);
	KUNIT_EXPECT_EQ(test, test_probe('d')->kp.nmissed, 0);

	/* The interrupt has left no trace in the state of the outer hit. */
	test_probe('a')->act = NULL;
	EXPECT_CALL(test, TRACED, "aA");
	EXPECT_CALL(test, TARGET, "cbCB");
}

#ifndef MODULE
/* Code that keeps handlers away is like a handler. */
static void busy_code_is_interrupted(struct kunit *test)
{
	register_for_interruption(test);
	clear_journal();
	kprobe_busy_begin();
	be_interrupted();
	KUNIT_EXPECT_EQ(test, call(TARGET), TARGET->result);
	kprobe_busy_end();
	expect_interruption(test);
	KUNIT_EXPECT_STREQ(test, journal, HITS_NEST ? "cC" : "");
	KUNIT_EXPECT_EQ(test, test_probe('b')->kp.nmissed, 2);
	KUNIT_EXPECT_EQ(test, test_probe('c')->kp.nmissed, HITS_NEST ? 1 : 2);
	KUNIT_EXPECT_EQ(test, test_probe('d')->kp.nmissed, 0);
	EXPECT_CALL(test, TARGET, "cbCB");
}

static void entries_are_known(struct kunit *test)
{
	const struct place *place = test->param_value;
	kprobe_opcode_t *start = place->function;

	KUNIT_EXPECT_EQ(test, kprobe_on_func_entry(NULL, place->symbol, 0), 0);
	KUNIT_EXPECT_EQ(test, kprobe_on_func_entry(start, NULL, 0), 0);
	KUNIT_EXPECT_EQ(test, kprobe_on_func_entry(NULL, place->symbol, 9), -EINVAL);
	KUNIT_EXPECT_EQ(test, kprobe_on_func_entry(start, NULL, 9), -EINVAL);
	KUNIT_EXPECT_EQ(test, kprobe_on_func_entry(start + 9, NULL, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, kprobe_on_func_entry(start, place->symbol, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, kprobe_on_func_entry(NULL, NULL, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, kprobe_on_func_entry(NULL, "kprobes_test_no_such_function", 0),
			-ENOENT);
}

static void blacklist_is_known(struct kunit *test)
{
	unsigned long start = (unsigned long)kprobes_test_blacklisted;

	KUNIT_EXPECT_TRUE(test, within_kprobe_blacklist(start));
	KUNIT_EXPECT_TRUE(test, within_kprobe_blacklist(start + 1));
	KUNIT_EXPECT_TRUE(test, within_kprobe_blacklist((unsigned long)kprobes_test_noinstr));
	KUNIT_EXPECT_FALSE(test, within_kprobe_blacklist((unsigned long)kprobes_test_target));
}
#else
static void busy_code_is_interrupted(struct kunit *test)
{
	kunit_skip(test, "not for modules");
}

static void entries_are_known(struct kunit *test)
{
	kunit_skip(test, "not for modules");
}

static void blacklist_is_known(struct kunit *test)
{
	kunit_skip(test, "not for modules");
}
#endif

/* ------------------------------------------------------------- unregistering */

static void unregistered_probe_is_left_alone(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = probe('a', place->symbol);
	struct kprobe *b = probe('b', place->symbol);
	struct kprobe *c = probe('c', place->symbol);
	struct kprobe *all[] = { a, b, c };

	a->addr = (kprobe_opcode_t *)kprobes_test_other_target;
	unregister_kprobe(a);
	KUNIT_EXPECT_NULL(test, a->addr);
	unregister_kprobe(a);
	KUNIT_EXPECT_NULL(test, a->addr);

	/* Where another probe is, and in an array with probes that are registered. */
	ASSERT_REGISTERED(test, b);
	a->addr = b->addr;
	unregister_kprobe(a);
	KUNIT_EXPECT_NULL(test, a->addr);
	KUNIT_EXPECT_NOT_NULL(test, b->addr);
	EXPECT_CALL(test, place, "b");
	ASSERT_REGISTERED(test, c);
	unregister_kprobes(all, ARRAY_SIZE(all));
	EXPECT_CALL(test, place, "");
	KUNIT_EXPECT_FALSE(test, is_linked(b));
	KUNIT_EXPECT_FALSE(test, is_linked(c));
	unregister_kprobe(b);
	KUNIT_EXPECT_NULL(test, b->addr);
}

#ifndef MODULE
static int save_running(struct test_probe *p, struct pt_regs *regs)
{
	p->data = (unsigned long)kprobe_running();
	return 0;
}

static struct kprobe *site_at(const struct kprobe *a)
{
	guard(preempt)();
	return get_kprobe(a->addr);
}

/* What architectures see is nobody's to free: one of them unregisters it. */
static void site_is_no_probe(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = post_probe('a', place->symbol), *site;

	test_probe('a')->act = save_running;
	ASSERT_REGISTERED(test, a);
	ASSERT_REGISTERED(test, probe('b', place->symbol));
	site = site_at(a);
	KUNIT_ASSERT_NOT_NULL(test, site);
	KUNIT_EXPECT_PTR_NE(test, site, a);
	KUNIT_EXPECT_PTR_EQ(test, site->addr, a->addr);
	EXPECT_CALL(test, place, "baA");
	KUNIT_EXPECT_PTR_EQ(test, (struct kprobe *)test_probe('a')->data, site);

	unregister_kprobe(site);
	EXPECT_CALL(test, place, "");
	KUNIT_EXPECT_TRUE(test, is_linked(a));
	KUNIT_EXPECT_TRUE(test, kprobe_disabled(a));
	KUNIT_EXPECT_PTR_EQ(test, site_at(a), site);

	KUNIT_EXPECT_EQ(test, enable_kprobe(a), 0);
	EXPECT_CALL(test, place, "aA");
	unregister_kprobe(a);
	EXPECT_CALL(test, place, "");
}
#else
static void site_is_no_probe(struct kunit *test)
{
	kunit_skip(test, "not for modules");
}
#endif

/* A site is the only entry of its list that is no probe. Modules find it, too. */
static const struct kprobe *site_in_list(const struct kprobe *a)
{
	const struct kprobe *kp = a;

	do {
		kp = list_next_entry(kp, list);
	} while (kp->pre_handler == on_pre);
	return kp;
}

/*
 * An architecture may look at the site's post handler and, without looking again, call it:
 * it stays as long as there is a breakpoint, and finds no probe to call.
 */
static void post_handler_of_a_site_stays(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = probe('a', place->symbol);
	struct kprobe *b = post_probe('b', place->symbol);

	ASSERT_REGISTERED(test, a);
	ASSERT_REGISTERED(test, b);
	KUNIT_EXPECT_TRUE(test, site_in_list(a)->post_handler);
	KUNIT_EXPECT_EQ(test, disable_kprobe(b), 0);
	KUNIT_EXPECT_TRUE(test, site_in_list(a)->post_handler);
	EXPECT_CALL(test, place, "a");
	unregister_kprobe(b);
	KUNIT_EXPECT_TRUE(test, site_in_list(a)->post_handler);
	EXPECT_CALL(test, place, "a");
}

/* Probed by one test only, so that its site has never had a post handler. */
static noinline u64 kprobes_test_own_target(u64 arg)
{
	OPTIMIZER_HIDE_VAR(arg);
	return arg * 9 + 4;
}

/* To set a handler of a registered probe is wrong, but must not hang its caller. */
static void late_post_handler_does_no_harm(struct kunit *test)
{
	struct kprobe *a = probe('a', "kprobes_test_own_target");
	u64 (*target)(u64 arg) = kprobes_test_own_target;

	OPTIMIZER_HIDE_VAR(target);
	ASSERT_REGISTERED(test, a);
	KUNIT_EXPECT_EQ(test, disable_kprobe(a), 0);
	a->post_handler = on_post;
	KUNIT_EXPECT_EQ(test, enable_kprobe(a), 0);
	clear_journal();
	KUNIT_EXPECT_EQ(test, target(ARG), ARG * 9 + 4);
	KUNIT_EXPECT_EQ(test, journal[0], 'a');
}

/**
 * struct lingering - A handler that another CPU stays in for a while
 * @entered:	It has come there,
 * @left:	and left.
 * @task:	Who calls the probed function.
 */
static struct lingering {
	bool entered;
	bool left;
	struct task_struct *task;
} lingering;

static void linger(void)
{
	if (current != lingering.task)
		return;
	WRITE_ONCE(lingering.entered, true);
	mdelay(200);
	WRITE_ONCE(lingering.left, true);
}

static int linger_before(struct kprobe *kp, struct pt_regs *regs)
{
	linger();
	return 0;
}

static void linger_after(struct kprobe *kp, struct pt_regs *regs, unsigned long flags)
{
	linger();
}

static int call_place(void *place)
{
	u64 result = call(place);

	while (!kthread_should_stop())
		schedule_timeout_interruptible(1);
	return result != ((const struct place *)place)->result;
}

/* Let another CPU call a place, until it is in the handler. */
static void begin_lingering(struct kunit *test, const struct place *place)
{
	unsigned int cpu = cpumask_any_but(cpu_online_mask, raw_smp_processor_id());
	unsigned long end = jiffies + 20 * HZ;

	lingering = (struct lingering){ };
	lingering.task = kthread_create(call_place, (void *)place, "kprobes_linger");
	KUNIT_ASSERT_FALSE(test, IS_ERR(lingering.task));
	get_task_struct(lingering.task);
	set_cpus_allowed_ptr(lingering.task, cpumask_of(cpu));
	wake_up_process(lingering.task);
	while (!READ_ONCE(lingering.entered) && time_before(jiffies, end))
		cpu_relax();
}

/* It is not in the handler any more. */
static void end_lingering(struct kunit *test)
{
	bool left = READ_ONCE(lingering.left);

	KUNIT_EXPECT_EQ(test, kthread_stop_put(lingering.task), 0);
	KUNIT_EXPECT_TRUE(test, lingering.entered);
	KUNIT_EXPECT_TRUE(test, left);
}

/* Then its memory is free to go, the handler's text, too. */
static void unregistering_waits_for_handlers(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = probe('a', place->symbol);

	if (num_online_cpus() < 2)
		kunit_skip(test, "needs two CPUs");
	for (int post = 0; post < 2; post++) {
		for (int optimized = 0; optimized < 2; optimized++) {
			a->addr = NULL;
			a->pre_handler = post ? NULL : linger_before;
			a->post_handler = post ? linger_after : NULL;
			ASSERT_REGISTERED(test, a);
			if (optimized)
				msleep(500);	/* for a jump, where that can be */
			begin_lingering(test, place);
			unregister_kprobe(a);
			end_lingering(test);
		}
	}
}

static void nothing_is_unregistered(struct kunit *test)
{
	struct kprobe *a = probe('a', TARGET->symbol);

	ASSERT_REGISTERED(test, a);
	unregister_kprobes(&a, 0);
	unregister_kprobes(&a, -1);
	unregister_kprobes(NULL, 0);
	EXPECT_CALL(test, TARGET, "a");
}

/* --------------------------------------------------------------- refusals */

/* What an earlier registration may have left in a probe. */
static void leave_results(struct kprobe *kp)
{
	kp->nmissed = 1812;
	kp->opcode = 0x5a;
	kp->number = 1789;
}

/* Is it not registered, and but for what tells so, its links, as it was given? */
static void expect_untouched(struct kunit *test, const struct kprobe *kp,
			     const struct kprobe *given, int line)
{
	struct kprobe unlinked;

	memcpy(&unlinked, kp, sizeof(unlinked));
	unlinked.list = given->list;
	unlinked.hlist = given->hlist;
	KUNIT_EXPECT_MEMEQ_MSG(test, &unlinked, given, sizeof(unlinked), "at line %d", line);
	KUNIT_EXPECT_PTR_EQ_MSG(test, kp->addr, given->addr, "at line %d", line);
	KUNIT_EXPECT_PTR_EQ_MSG(test, kp->symbol_name, given->symbol_name, "at line %d", line);
	KUNIT_EXPECT_EQ_MSG(test, kp->offset, given->offset, "at line %d", line);
	KUNIT_EXPECT_EQ_MSG(test, kp->flags, given->flags, "at line %d", line);
	KUNIT_EXPECT_FALSE_MSG(test, is_linked(kp), "at line %d", line);
}

static void expect_refused(struct kunit *test, struct kprobe *kp, int err, int line)
{
	struct kprobe given;

	leave_results(kp);
	memcpy(&given, kp, sizeof(given));
	KUNIT_EXPECT_EQ_MSG(test, register_kprobe(kp), err, "at line %d", line);
	expect_untouched(test, kp, &given, line);
}

/* The probe is not registered, and as its caller left it. */
#define EXPECT_UNTOUCHED(test, kp, given) expect_untouched(test, kp, given, __LINE__)
#define EXPECT_REFUSED(test, kp, err)	expect_refused(test, kp, err, __LINE__)

static void probe_needs_one_place(struct kunit *test)
{
	struct kprobe *a = probe('a', NULL);

	EXPECT_REFUSED(test, a, -EINVAL);
	a->symbol_name = TARGET->symbol;
	a->addr = (kprobe_opcode_t *)kprobes_test_target;
	EXPECT_REFUSED(test, a, -EINVAL);
	a->addr = NULL;
	ASSERT_REGISTERED(test, a);
}

static void symbol_must_exist(struct kunit *test)
{
	EXPECT_REFUSED(test, probe('a', "kprobes_test_no_such_function"), -ENOENT);
	EXPECT_REFUSED(test, probe('a', ""), -ENOENT);
	EXPECT_REFUSED(test, probe('a', "no_such_module:kprobes_test_target"), -ENOENT);
}

static void address_must_have_a_symbol(struct kunit *test)
{
	struct kprobe *a = probe('a', NULL);

	a->addr = (kprobe_opcode_t *)PAGE_SIZE;
	EXPECT_REFUSED(test, a, -ENOENT);
	a->addr = (kprobe_opcode_t *)BAD_ADDRESS;
	EXPECT_REFUSED(test, a, -ENOENT);
	a->addr = (kprobe_opcode_t *)&a;
	EXPECT_REFUSED(test, a, -ENOENT);

	/* Also when it is an offset that leads there. */
	a->addr = (kprobe_opcode_t *)1;
	a->offset = PAGE_SIZE;
	EXPECT_REFUSED(test, a, -ENOENT);
}

static void data_is_not_probed(struct kunit *test)
{
	int err = IS_ENABLED(CONFIG_KALLSYMS_ALL) ? -EINVAL : -ENOENT;
	struct kprobe *a = probe('a', "jiffies");

	EXPECT_REFUSED(test, a, err);
	a->symbol_name = NULL;
	a->addr = (kprobe_opcode_t *)&jiffies;
	EXPECT_REFUSED(test, a, err);
}

/* Not those of rethook. */
#define OWN_RETURN_PROBES						\
	(IS_ENABLED(CONFIG_KRETPROBES) && !IS_ENABLED(CONFIG_KRETPROBE_ON_RETHOOK))

/* A symbol of the kernel that must not be probed, if it has it. */
static const struct forbidden_symbol {
	const char *name;
	bool exists;
} forbidden_symbols[] = {
	{ "get_kprobe", true },
	{ "kprobe_pre_handlers", true },
	{ "kprobe_post_handlers", true },
	{ "kprobes_inc_nmissed_count", true },
	{ "kprobe_busy_begin", true },
	{ "kprobe_busy_end", true },
	{ "kprobe_ftrace_handler", IS_ENABLED(CONFIG_KPROBES_ON_FTRACE) },
	{ "kprobe_flush_task", OWN_RETURN_PROBES },
	{ "kretprobe_entered", IS_ENABLED(CONFIG_KRETPROBES) },
	{ "kretprobe_seek_call", OWN_RETURN_PROBES },
	{ "kretprobe_take_uncached", OWN_RETURN_PROBES },
	{ "kretprobe_put_uncached", OWN_RETURN_PROBES },
	{ "kretprobe_find_ret_addr", OWN_RETURN_PROBES },
	{ "__kretprobe_trampoline", OWN_RETURN_PROBES },
	{ "preempt_schedule_notrace", IS_ENABLED(CONFIG_X86) && IS_ENABLED(CONFIG_PREEMPTION) },
#ifdef CONFIG_X86
	{ "kprobe_int3_handler", true },
	{ "kprobe_fault_handler", true },
	{ "kprobe_fixup_fault", true },
	{ "kprobe_copy_done", IS_ENABLED(CONFIG_X86_64) },
	{ "kprobe_post_stub", IS_ENABLED(CONFIG_X86_64) },
	{ "kretprobe_returned", IS_ENABLED(CONFIG_X86_64) && IS_ENABLED(CONFIG_KRETPROBES) },
	{ "emulate_insn", true },
	{ "exc_int3", true },
	{ "asm_exc_int3", true },
	{ "asm_exc_page_fault", true },
	{ "entry_SYSCALL_64", IS_ENABLED(CONFIG_X86_64) },
	{ "error_entry", IS_ENABLED(CONFIG_X86_64) },
	{ "ftrace_regs_caller", IS_ENABLED(CONFIG_DYNAMIC_FTRACE_WITH_REGS) },
	{ "ftrace_caller", IS_ENABLED(CONFIG_DYNAMIC_FTRACE) },
	{ "ftrace_stub", IS_ENABLED(CONFIG_FUNCTION_TRACER) },
	{ "return_to_handler", IS_ENABLED(CONFIG_FUNCTION_GRAPH_TRACER) },
	{ "__x86_return_thunk", IS_ENABLED(CONFIG_MITIGATION_RETHUNK) },
	{ "retbleed_return_thunk", IS_ENABLED(CONFIG_MITIGATION_UNRET_ENTRY) },
	{ "srso_return_thunk", IS_ENABLED(CONFIG_MITIGATION_SRSO) },
	{ "srso_alias_return_thunk", IS_ENABLED(CONFIG_MITIGATION_SRSO) },
	{ "srso_alias_safe_ret", IS_ENABLED(CONFIG_MITIGATION_SRSO) },
	{ "call_depth_return_thunk", IS_ENABLED(CONFIG_MITIGATION_CALL_DEPTH_TRACKING) },
	{ "__x86_indirect_thunk_rax",
	  IS_ENABLED(CONFIG_X86_64) && IS_ENABLED(CONFIG_MITIGATION_RETPOLINE) },
#endif
};

KUNIT_ARRAY_PARAM_DESC(forbidden_symbol, forbidden_symbols, name);

static void forbidden_symbol_is_not_probed(struct kunit *test)
{
	const struct forbidden_symbol *symbol = test->param_value;

	if (!symbol->exists)
		kunit_skip(test, "not in this kernel");
	EXPECT_REFUSED(test, probe('a', symbol->name), -EINVAL);
}

static void blacklisted_function_is_not_probed(struct kunit *test)
{
	struct kprobe *a = probe('a', "kprobes_test_blacklisted");

	EXPECT_REFUSED(test, a, -EINVAL);
	EXPECT_REFUSED(test, probe('a', "kprobes_test_noinstr"), -EINVAL);
	/* RCU need not watch where a CPU idles. */
	EXPECT_REFUSED(test, probe('a', "kprobes_test_idle"), -EINVAL);

	/* Not anywhere inside either. */
	a->symbol_name = NULL;
	for (a->offset = 0; a->offset < 8; a->offset++) {
		a->addr = (kprobe_opcode_t *)kprobes_test_blacklisted;
		EXPECT_REFUSED(test, a, -EINVAL);
		a->addr = (kprobe_opcode_t *)kprobes_test_noinstr;
		EXPECT_REFUSED(test, a, -EINVAL);
		a->addr = (kprobe_opcode_t *)kprobes_test_idle;
		EXPECT_REFUSED(test, a, -EINVAL);
	}
}

/*
 * Instructions that others patch or look for by their address. They are found
 * in the tables that tell those; the kernel's own are not for everybody to see.
 */

static void __maybe_unused expect_reserved(struct kunit *test, unsigned long addr)
{
	struct kprobe *a = probe('a', NULL);

	KUNIT_ASSERT_NE(test, addr, 0);
	a->addr = (kprobe_opcode_t *)addr;
	EXPECT_REFUSED(test, a, -EINVAL);
}

#if defined(CONFIG_JUMP_LABEL) && defined(MODULE)
static DEFINE_STATIC_KEY_FALSE(kprobes_test_key);

static noinline u64 kprobes_test_branch(u64 arg)
{
	if (static_branch_unlikely(&kprobes_test_key))
		return kprobes_test_target(arg);
	return arg;
}

static unsigned long find_jump_label(const struct static_key *key)
{
	const struct jump_entry *table = THIS_MODULE->jump_entries;

	for (unsigned int i = 0; i < THIS_MODULE->num_jump_entries; i++)
		if (jump_entry_key(&table[i]) == key)
			return jump_entry_code(&table[i]);
	return 0;
}

static void jump_label_is_not_probed(struct kunit *test)
{
	u64 (*branch)(u64 arg) = kprobes_test_branch;

	OPTIMIZER_HIDE_VAR(branch);
	expect_reserved(test, find_jump_label(&kprobes_test_key.key));
	KUNIT_EXPECT_EQ(test, branch(ARG), ARG);
}
#else
static void jump_label_is_not_probed(struct kunit *test)
{
	kunit_skip(test, "no jump labels, or not a module");
}
#endif

#if defined(CONFIG_HAVE_STATIC_CALL_INLINE) && defined(MODULE)
DEFINE_STATIC_CALL(kprobes_test_call, kprobes_test_target);

static noinline u64 kprobes_test_caller(u64 arg)
{
	return static_call(kprobes_test_call)(arg) + 1;
}

static unsigned long find_static_call(const struct static_call_key *key)
{
	const struct static_call_site *site = THIS_MODULE->static_call_sites;

	for (int i = 0; i < THIS_MODULE->num_static_call_sites; i++, site++)
		if (((unsigned long)&site->key + site->key) - (unsigned long)key <=
		    STATIC_CALL_SITE_FLAGS)
			return (unsigned long)&site->addr + site->addr;
	return 0;
}

static void static_call_is_not_probed(struct kunit *test)
{
	u64 (*caller)(u64 arg) = kprobes_test_caller;

	OPTIMIZER_HIDE_VAR(caller);
	expect_reserved(test, find_static_call(&STATIC_CALL_KEY(kprobes_test_call)));
	KUNIT_EXPECT_EQ(test, caller(ARG), TARGET->result + 1);
}
#else
static void static_call_is_not_probed(struct kunit *test)
{
	kunit_skip(test, "no patched static calls, or not a module");
}
#endif

#if defined(CONFIG_GENERIC_BUG) && defined(MODULE)
static noinline u64 kprobes_test_warning(u64 arg)
{
	WARN_ON(arg != ARG);
	return arg;
}

static unsigned long bug_address(const struct bug_entry *bug)
{
#ifdef CONFIG_GENERIC_BUG_RELATIVE_POINTERS
	return (unsigned long)&bug->bug_addr_disp + bug->bug_addr_disp;
#else
	return bug->bug_addr;
#endif
}

static unsigned long find_warning(const char *function)
{
	const struct bug_entry *bug = THIS_MODULE->bug_table;
	char name[KSYM_SYMBOL_LEN];

	for (unsigned int i = 0; i < THIS_MODULE->num_bugs; i++, bug++) {
		sprint_symbol_no_offset(name, bug_address(bug));
		if (strstarts(name, function))
			return bug_address(bug);
	}
	return 0;
}

static void warning_is_not_probed(struct kunit *test)
{
	u64 (*warning)(u64 arg) = kprobes_test_warning;

	OPTIMIZER_HIDE_VAR(warning);
	KUNIT_EXPECT_EQ(test, warning(ARG), ARG);
	expect_reserved(test, find_warning("kprobes_test_warning"));
}
#else
static void warning_is_not_probed(struct kunit *test)
{
	kunit_skip(test, "no table of warnings, or not a module");
}
#endif

static void cfi_preamble_is_not_probed(struct kunit *test)
{
	if (!IS_ENABLED(CONFIG_CFI_CLANG))
		kunit_skip(test, "no CFI");
	EXPECT_REFUSED(test, probe('a', "__cfi_kprobes_test_target"), -EINVAL);
}

static void kernel_init_text_is_not_probed(struct kunit *test)
{
	struct kprobe *a = probe('a', "start_kernel");

	if (system_state < SYSTEM_RUNNING)
		kunit_skip(test, "it is still there");
	EXPECT_REFUSED(test, a, -EINVAL);
}

/* ------------------------------------------- what handlers cannot ask for */

/*
 * Probe 'b' is not registered, 'c' is, 'd' is disabled, and a handler calls: whatever it
 * asks for takes a mutex that the interrupted task may hold.
 */
static void try_to_change_probes(void)
{
	struct kprobe *b = &test_probe('b')->kp;
	int errors[] = {
		register_kprobe(b), register_kprobes(&b, 1),
		disable_kprobe(&test_probe('c')->kp), enable_kprobe(&test_probe('d')->kp),
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(errors); i++)
		note(errors[i] == -EDEADLK ? '-' : '!');
}

static int change_probes_before(struct test_probe *p, struct pt_regs *regs)
{
	try_to_change_probes();
	return 0;
}

static void change_probes_after(struct kprobe *kp, struct pt_regs *regs, unsigned long flags)
{
	on_post(kp, regs, flags);
	if (current == tester)
		try_to_change_probes();
}

/* All of them are asked for by a handler in vain, and by the test with success. */
static void handler_cannot_change_probes(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = post_probe('a', place->symbol);
	struct kprobe *b = probe('b', OTHER_TARGET->symbol);
	struct kprobe *c = probe('c', OTHER_TARGET->symbol);
	struct kprobe *d = probe('d', OTHER_TARGET->symbol);
	struct kprobe given;

	test_probe('a')->act = change_probes_before;
	a->post_handler = change_probes_after;
	d->flags = KPROBE_FLAG_DISABLED;
	ASSERT_REGISTERED(test, a);
	ASSERT_REGISTERED(test, c);
	ASSERT_REGISTERED(test, d);
	leave_results(b);
	memcpy(&given, b, sizeof(given));

	EXPECT_CALL(test, place, "a----A----");
	EXPECT_UNTOUCHED(test, b, &given);
	KUNIT_EXPECT_FALSE(test, kprobe_disabled(c));
	KUNIT_EXPECT_TRUE(test, kprobe_disabled(d));
	EXPECT_CALL(test, OTHER_TARGET, "c");

	ASSERT_REGISTERED(test, b);
	KUNIT_EXPECT_EQ(test, disable_kprobe(c), 0);
	KUNIT_EXPECT_EQ(test, enable_kprobe(d), 0);
	EXPECT_CALL(test, OTHER_TARGET, "bd");
}

static int unregister_before(struct test_probe *p, struct pt_regs *regs)
{
	struct kprobe *c = &test_probe('c')->kp;

	unregister_kprobe(c);
	unregister_kprobes(&c, 1);
	return 0;
}

/* As nothing is returned, the kernel warns of it, once. */
static void handler_cannot_unregister(struct kunit *test)
{
	struct kprobe *a = post_probe('a', TRACED->symbol);
	struct kprobe *b = post_probe('b', TARGET->symbol);
	struct kprobe *c = probe('c', OTHER_TARGET->symbol);

	test_probe('a')->act = unregister_before;
	test_probe('b')->act = unregister_before;
	ASSERT_REGISTERED(test, a);
	ASSERT_REGISTERED(test, b);
	ASSERT_REGISTERED(test, c);
	EXPECT_CALL(test, TRACED, "aA");
	EXPECT_CALL(test, OTHER_TARGET, "c");
	EXPECT_CALL(test, TARGET, "bB");
	EXPECT_CALL(test, OTHER_TARGET, "c");
	KUNIT_EXPECT_TRUE(test, is_linked(c));
	KUNIT_EXPECT_NOT_NULL(test, c->addr);

	unregister_kprobe(c);
	EXPECT_CALL(test, OTHER_TARGET, "");
}

/* ----------------------------------------------- text that comes, text that is gone */

/**
 * struct early_probe - A probe that the module's init function registers
 * @kp:		The probe.
 * @error:	What register_kprobe() has said.
 * @hits:	How often it has been hit.
 */
struct early_probe {
	struct kprobe kp;
	int error;
	unsigned int hits;
};

static int count_early_hit(struct kprobe *kp, struct pt_regs *regs)
{
	container_of(kp, struct early_probe, kp)->hits++;
	return 0;
}

#define EARLY_PROBE(symbol)	{ .kp.symbol_name = (symbol), .kp.pre_handler = count_early_hit }

/* The module's own init text: when the tests run it has been given up. */
static int __init kprobes_test_init_text(int arg)
{
	OPTIMIZER_HIDE_VAR(arg);
	return arg - 1;
}

/* Listed as long as it is there: debugfs.sh looks at what is left. */
static int __init kprobes_test_init_blacklisted(int arg)
{
	OPTIMIZER_HIDE_VAR(arg);
	return arg + 1;
}

NOKPROBE_SYMBOL(kprobes_test_init_blacklisted);

static struct early_probe probe_of_init_text = EARLY_PROBE("kprobes_test_init_text");

/* Text that stays: what jumps where is not known yet. */
static noinline u64 kprobes_test_early(u64 arg)
{
	OPTIMIZER_HIDE_VAR(arg);
	return arg * 17 + 6;
}

static const struct place early_place = {
	"kprobes_test_early", kprobes_test_early, kprobes_test_early, ARG * 17 + 6
};

/* What is reserved in the module's text is so before it is live, too. */
enum { EARLY_LABEL, EARLY_CALL, EARLY_WARNING, EARLY_RESERVED };

static int early_reserved_errors[EARLY_RESERVED];
static int early_blacklisted_error;

static int probe_early(unsigned long addr)
{
	struct kprobe kp = { .addr = (kprobe_opcode_t *)addr };
	int err = addr ? register_kprobe(&kp) : -ENOENT;

	if (!err)
		unregister_kprobe(&kp);
	return err;
}

#if defined(CONFIG_JUMP_LABEL) && defined(CONFIG_HAVE_STATIC_CALL_INLINE) && \
	defined(CONFIG_GENERIC_BUG) && defined(MODULE)
#define HAVE_ALL_RESERVED	1

static void probe_early_reserved(void)
{
	early_reserved_errors[EARLY_LABEL] =
		probe_early(find_jump_label(&kprobes_test_key.key));
	early_reserved_errors[EARLY_CALL] =
		probe_early(find_static_call(&STATIC_CALL_KEY(kprobes_test_call)));
	early_reserved_errors[EARLY_WARNING] =
		probe_early(find_warning("kprobes_test_warning"));
}
#else
#define HAVE_ALL_RESERVED	0

static void probe_early_reserved(void)
{
}
#endif

static struct early_probe probe_of_early_place = EARLY_PROBE("kprobes_test_early");

static void unregister_early_probes(void)
{
	unregister_kprobe(&probe_of_init_text.kp);
	unregister_kprobe(&probe_of_early_place.kp);
}

static int __init kprobes_test_init(void)
{
	int (*init_text)(int arg) = kprobes_test_init_text;

	if (IS_MODULE(CONFIG_KPROBES_SANITY_TEST)) {
		OPTIMIZER_HIDE_VAR(init_text);
		probe_of_init_text.error = register_kprobe(&probe_of_init_text.kp);
		init_text(1);
		init_text = kprobes_test_init_blacklisted;
		OPTIMIZER_HIDE_VAR(init_text);
		init_text(1);
		early_blacklisted_error = probe_early((unsigned long)init_text);
		probe_of_early_place.error = register_kprobe(&probe_of_early_place.kp);
		probe_early_reserved();
		wait_for_kprobe_optimizer();
	}
	return 0;
}
module_init(kprobes_test_init);

/* No probe comes into a module that goes: it would be left. */
static void __exit kprobes_test_exit(void)
{
	struct kprobe late = { .symbol_name = "kprobes_test_target" };
	int err = register_kprobe(&late);

	pr_info("kprobes_test: probing a module that goes: %d\n", err);
	WARN_ON(err != -ENOENT);
	unregister_kprobe(&late);
	/* If there has been none of the tests that do so. */
	unregister_early_probes();
}
module_exit(kprobes_test_exit);

static void init_text_is_probed_until_it_is_gone(struct kunit *test)
{
	struct kprobe *early = &probe_of_init_text.kp;
	struct kprobe *a = probe('a', "kprobes_test_init_text");
	u32 flags;

	if (!IS_MODULE(CONFIG_KPROBES_SANITY_TEST))
		kunit_skip(test, "not a module");
	KUNIT_EXPECT_EQ(test, early_blacklisted_error, -EINVAL);
	KUNIT_ASSERT_EQ(test, probe_of_init_text.error, 0);
	KUNIT_EXPECT_EQ(test, probe_of_init_text.hits, 1);
	if (!is_linked(early))
		kunit_skip(test, "only when the module has just been loaded");

	KUNIT_EXPECT_TRUE(test, kprobe_gone(early));
	KUNIT_EXPECT_TRUE(test, kprobe_disabled(early));
	flags = early->flags;
	KUNIT_EXPECT_EQ(test, enable_kprobe(early), -EINVAL);
	KUNIT_EXPECT_EQ(test, early->flags, flags);

	/* Registered again, it is not to be found disabled. */
	KUNIT_EXPECT_EQ(test, disable_kprobe(early), 0);
	KUNIT_EXPECT_EQ(test, early->flags, flags);

	/* The text is still there, but nobody must count on it. */
	EXPECT_REFUSED(test, a, -ENOENT);
	a->symbol_name = NULL;
	a->addr = early->addr;
	EXPECT_REFUSED(test, a, -ENOENT);

	unregister_kprobe(early);
	KUNIT_EXPECT_FALSE(test, is_linked(early));
	KUNIT_EXPECT_EQ(test, enable_kprobe(early), -EINVAL);
}

static void reserved_insn_of_a_coming_module_is_not_probed(struct kunit *test)
{
	if (!HAVE_ALL_RESERVED)
		kunit_skip(test, "not a module, or it has not all kinds of them");
	for (unsigned int i = 0; i < EARLY_RESERVED; i++)
		KUNIT_EXPECT_EQ_MSG(test, early_reserved_errors[i], -EINVAL, "kind %u", i);
}

/* The optimiser has been there in vain, and comes again. */
static void probe_of_a_coming_module_is_optimized(struct kunit *test)
{
	struct kprobe *early = &probe_of_early_place.kp;

	if (!IS_MODULE(CONFIG_KPROBES_SANITY_TEST))
		kunit_skip(test, "not a module");
	KUNIT_ASSERT_EQ(test, probe_of_early_place.error, 0);
	if (!is_linked(early))
		kunit_skip(test, "only when the module has just been loaded");
	EXPECT_CALL(test, &early_place, "");
	KUNIT_EXPECT_EQ(test, probe_of_early_place.hits, 1);
	wait_for_kprobe_optimizer();
	KUNIT_EXPECT_EQ(test, kprobe_optimized(early),
			IS_ENABLED(CONFIG_OPTPROBES) && IS_ENABLED(CONFIG_X86));
	EXPECT_CALL(test, &early_place, "");
	KUNIT_EXPECT_EQ(test, probe_of_early_place.hits, 2);
	unregister_kprobe(early);
}

/* ----------------------------------------------------------- several at once */

static void batch_is_registered(struct kunit *test)
{
	struct kprobe *all[ARRAY_SIZE(places) + 1];
	unsigned int n;

	for (n = 0; n < ARRAY_SIZE(places); n++)
		all[n] = n % 2 ? probe('a' + n, places[n].symbol)
			       : post_probe('a' + n, places[n].symbol);
	all[n++] = post_probe('e', TRACED->symbol);

	for (int i = 0; i < 2; i++) {
		KUNIT_ASSERT_EQ(test, register_kprobes(all, n), 0);
		EXPECT_CALL(test, TARGET, "aA");
		EXPECT_CALL(test, TRACED, "ebE");
		EXPECT_CALL(test, OTHER_TARGET, "cC");
		EXPECT_CALL(test, OTHER_TRACED, "d");

		unregister_kprobes(all, n);
		EXPECT_CALL(test, TARGET, "");
		EXPECT_CALL(test, TRACED, "");
		EXPECT_CALL(test, OTHER_TARGET, "");
		EXPECT_CALL(test, OTHER_TRACED, "");
		for (unsigned int j = 0; j < n; j++) {
			KUNIT_EXPECT_FALSE(test, is_linked(all[j]));
			all[j]->addr = NULL;
		}
	}
}

static void batch_needs_probes(struct kunit *test)
{
	struct kprobe *a = probe('a', TARGET->symbol);

	KUNIT_EXPECT_EQ(test, register_kprobes(&a, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, register_kprobes(&a, -1), -EINVAL);
	KUNIT_EXPECT_EQ(test, register_kprobes(NULL, 0), -EINVAL);
	KUNIT_EXPECT_NULL(test, a->addr);
	EXPECT_CALL(test, TARGET, "");
}

#ifdef CONFIG_KPROBES_ON_FTRACE
static void ignore_call(unsigned long ip, unsigned long parent_ip,
			struct ftrace_ops *ops, struct ftrace_regs *fregs)
{
}

/*
 * A probe with a post handler may change the path, and of those that do ftrace
 * takes only one at a function: with this one, arming such a probe fails.
 */
static struct ftrace_ops *rival;

static void free_rival(void)
{
	ftrace_free_filter(rival);
	kfree(rival);
}

static int add_rival(unsigned long ip)
{
	int err;

	rival = kzalloc(sizeof(*rival), GFP_KERNEL);
	if (!rival)
		return -ENOMEM;
	rival->func = ignore_call;
	rival->flags = FTRACE_OPS_FL_SAVE_REGS | FTRACE_OPS_FL_IPMODIFY;
	err = ftrace_set_filter_ip(rival, ip, 0, 0) ?: register_ftrace_function(rival);
	if (err)
		free_rival();
	return err;
}

static void remove_rival(void *unused)
{
	unregister_ftrace_function(rival);
	free_rival();
}

/* Where ftrace has its call in a function. */
static unsigned long traced_ip(struct kunit *test, const struct place *place)
{
	struct kprobe *e = probe('e', place->symbol);
	unsigned long ip;

	e->flags = KPROBE_FLAG_DISABLED;
	ASSERT_REGISTERED(test, e);
	ip = (unsigned long)e->addr;
	KUNIT_ASSERT_TRUE(test, kprobe_ftrace(e));
	unregister_kprobe(e);
	e->flags = 0;
	e->addr = NULL;
	return ip;
}

static void have_rival(struct kunit *test, const struct place *place)
{
	KUNIT_ASSERT_EQ(test, add_rival(traced_ip(test, place)), 0);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, remove_rival, NULL), 0);
}
#else
static void remove_rival(void *unused)
{
}

static void have_rival(struct kunit *test, const struct place *place)
{
	kunit_skip(test, "arming does not fail");
}
#endif

static void arming_fails(struct kunit *test)
{
	struct kprobe *a = post_probe('a', TRACED->symbol);
	struct kprobe *b = probe('b', TRACED->symbol);
	struct kprobe *c = post_probe('c', TRACED->symbol);

	have_rival(test, TRACED);
	EXPECT_REFUSED(test, a, -EBUSY);
	EXPECT_CALL(test, TRACED, "");

	ASSERT_REGISTERED(test, b);
	EXPECT_REFUSED(test, a, -EBUSY);
	EXPECT_CALL(test, TRACED, "b");
	unregister_kprobe(b);

	c->flags = KPROBE_FLAG_DISABLED;
	ASSERT_REGISTERED(test, c);
	KUNIT_EXPECT_EQ(test, enable_kprobe(c), -EBUSY);
	KUNIT_EXPECT_TRUE(test, kprobe_disabled(c));
	EXPECT_CALL(test, TRACED, "");

	kunit_release_action(test, remove_rival, NULL);
	KUNIT_EXPECT_EQ(test, enable_kprobe(c), 0);
	ASSERT_REGISTERED(test, a);
	EXPECT_CALL(test, TRACED, "acAC");
}

#ifdef CONFIG_KPROBES_ON_FTRACE
static void only_post_handlers_keep_rivals_away(struct kunit *test)
{
	struct kprobe *a = probe('a', TRACED->symbol);
	struct kprobe *b = post_probe('b', TRACED->symbol);
	unsigned long ip = traced_ip(test, TRACED);

	ASSERT_REGISTERED(test, a);
	ASSERT_REGISTERED(test, b);
	KUNIT_EXPECT_EQ(test, add_rival(ip), -EBUSY);
	EXPECT_CALL(test, TRACED, "baB");

	unregister_kprobe(b);
	EXPECT_CALL(test, TRACED, "a");
	KUNIT_EXPECT_EQ(test, add_rival(ip), 0);
	EXPECT_CALL(test, TRACED, "a");
	remove_rival(NULL);
	EXPECT_CALL(test, TRACED, "a");
}
#else
static void only_post_handlers_keep_rivals_away(struct kunit *test)
{
	kunit_skip(test, "no probes through ftrace");
}
#endif

/**
 * struct bad_probe - What makes registration of an array fail
 * @desc:	Says what.
 * @symbol:	Of the bad probe.
 * @offset:	Of the bad probe.
 * @rival:	Arming it fails.
 * @err:	The result.
 */
struct bad_probe {
	const char *desc;
	const char *symbol;
	unsigned int offset;
	bool rival;
	int err;
};

static const struct bad_probe bad_probes[] = {
	{ "unknown symbol", "kprobes_test_no_such_function", .err = -ENOENT },
	{ "neither symbol nor address", NULL, .err = -EINVAL },
	{ "blacklisted function", "kprobes_test_blacklisted", .err = -EINVAL },
#ifdef CONFIG_X86
	{ "inside of an instruction", "mktime64", .offset = 1, .err = -EILSEQ },
#endif
	{ "arming fails", "nsecs_to_jiffies64", .rival = true, .err = -EBUSY },
};

KUNIT_ARRAY_PARAM_DESC(bad_probe, bad_probes, desc);

static void batch_is_refused(struct kunit *test, const struct bad_probe *bad, unsigned int position)
{
	struct kprobe *all[ARRAY_SIZE(places) + 1], given[ARRAY_SIZE(all)];
	unsigned int n = ARRAY_SIZE(all), i;

	for (i = 0; i < ARRAY_SIZE(places); i++)
		all[i < position ? i : i + 1] = probe('a' + i, places[i].symbol);
	all[position] = bad->rival ? post_probe('e', bad->symbol) : probe('e', bad->symbol);
	all[position]->offset = bad->offset;
	for (i = 0; i < n; i++) {
		all[i]->addr = NULL;
		all[i]->flags = KPROBE_FLAG_REENTRANT;
		leave_results(all[i]);
		memcpy(&given[i], all[i], sizeof(given[i]));
	}

	KUNIT_EXPECT_EQ(test, register_kprobes(all, n), bad->err);
	for (i = 0; i < n; i++)
		EXPECT_UNTOUCHED(test, all[i], &given[i]);
	EXPECT_CALL(test, TARGET, "f");
	EXPECT_CALL(test, TRACED, "gG");
	EXPECT_CALL(test, OTHER_TARGET, "");
	EXPECT_CALL(test, OTHER_TRACED, "");

	/* Without the bad one it works. */
	for (i = position; i < n - 1; i++)
		all[i] = all[i + 1];
	KUNIT_EXPECT_EQ(test, register_kprobes(all, n - 1), 0);
	EXPECT_CALL(test, TARGET, "af");
	EXPECT_CALL(test, TRACED, "bgG");
	EXPECT_CALL(test, OTHER_TARGET, "c");
	EXPECT_CALL(test, OTHER_TRACED, "d");
	unregister_kprobes(all, n - 1);
}

static void batch_is_all_or_nothing(struct kunit *test)
{
	const struct bad_probe *bad = test->param_value;

	if (bad->rival)
		have_rival(test, OTHER_TRACED);
	ASSERT_REGISTERED(test, probe('f', TARGET->symbol));
	ASSERT_REGISTERED(test, post_probe('g', TRACED->symbol));
	for (unsigned int position = 0; position <= ARRAY_SIZE(places); position++)
		batch_is_refused(test, bad, position);
	if (bad->rival)
		kunit_release_action(test, remove_rival, NULL);
}

/* Whatever is found out first, and whatever their addresses. */
static void first_error_in_an_array_counts(struct kunit *test)
{
	const struct bad_probe *bad = bad_probes;
	struct kprobe *all[3] = { probe('a', TARGET->symbol) };

	for (unsigned int i = 0; i < ARRAY_SIZE(bad_probes); i++) {
		for (unsigned int j = 0; j < ARRAY_SIZE(bad_probes); j++) {
			if (i == j || bad[i].rival || bad[j].rival)
				continue;
			all[1] = probe('b', bad[i].symbol);
			all[1]->offset = bad[i].offset;
			all[2] = probe('c', bad[j].symbol);
			all[2]->offset = bad[j].offset;
			KUNIT_EXPECT_EQ_MSG(test, register_kprobes(all, 3), bad[i].err,
					    "%s, then %s", bad[i].desc, bad[j].desc);
		}
	}
	EXPECT_CALL(test, TARGET, "");
}

#ifdef CONFIG_FAILSLAB
/* Let the @nth allocation of this task from now on fail, none if that is 0. */
static void fail_allocation(unsigned int nth)
{
	WRITE_ONCE(current->fail_nth, nth);
}

/* End that, and tell whether it has happened. */
static bool has_failed(void)
{
	bool failed = !READ_ONCE(current->fail_nth);

	fail_allocation(0);
	return failed;
}

static void need_failing_allocations(struct kunit *test)
{
	void *memory;

	fail_allocation(1);
	memory = kmalloc(1, GFP_KERNEL);
	fail_allocation(0);
	kfree(memory);
	if (memory)
		kunit_skip(test, "write N to debugfs' failslab/ignore-gfp-wait");
}

static void memory_runs_out_at_registration(struct kunit *test)
{
	struct kprobe *all[] = {
		probe('a', TARGET->symbol), post_probe('b', TRACED->symbol),
		post_probe('c', OTHER_TARGET->symbol), probe('d', OTHER_TRACED->symbol),
	};
	struct kprobe given[ARRAY_SIZE(all)];
	bool failed = true;
	unsigned int i;
	int err;

	need_failing_allocations(test);
	ASSERT_REGISTERED(test, probe('e', TARGET->symbol));
	for (unsigned int nth = 1; failed; nth++) {
		KUNIT_ASSERT_LT(test, nth, 1000);
		for (i = 0; i < ARRAY_SIZE(all); i++) {
			all[i]->addr = NULL;
			leave_results(all[i]);
			memcpy(&given[i], all[i], sizeof(given[i]));
		}
		fail_allocation(nth);
		err = register_kprobes(all, ARRAY_SIZE(all));
		failed = has_failed();
		if (!err) {	/* there are allocations that we can do without */
			EXPECT_CALL(test, TARGET, "ae");
			EXPECT_CALL(test, TRACED, "bB");
			EXPECT_CALL(test, OTHER_TARGET, "cC");
			EXPECT_CALL(test, OTHER_TRACED, "d");
			unregister_kprobes(all, ARRAY_SIZE(all));
			for (i = 0; i < ARRAY_SIZE(all); i++)
				all[i]->flags = 0;
			continue;
		}
		KUNIT_EXPECT_TRUE(test, failed);
		KUNIT_EXPECT_EQ_MSG(test, err, -ENOMEM, "allocation %u", nth);
		for (i = 0; i < ARRAY_SIZE(all); i++)
			EXPECT_UNTOUCHED(test, all[i], &given[i]);
		EXPECT_CALL(test, TARGET, "e");
		EXPECT_CALL(test, TRACED, "");
		EXPECT_CALL(test, OTHER_TARGET, "");
		EXPECT_CALL(test, OTHER_TRACED, "");
	}
}

static void memory_runs_out_when_enabling(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = post_probe('a', place->symbol);
	bool failed = true;
	int err;

	need_failing_allocations(test);
	a->flags = KPROBE_FLAG_DISABLED;
	ASSERT_REGISTERED(test, a);
	for (unsigned int nth = 1; failed; nth++) {
		KUNIT_ASSERT_LT(test, nth, 1000);
		fail_allocation(nth);
		err = enable_kprobe(a);
		failed = has_failed();
		KUNIT_EXPECT_EQ(test, kprobe_disabled(a), !!err);
		EXPECT_CALL(test, place, err ? "" : "aA");
		if (err)
			KUNIT_EXPECT_EQ_MSG(test, err, -ENOMEM, "allocation %u", nth);
		else
			KUNIT_EXPECT_EQ(test, disable_kprobe(a), 0);
	}
}

/* What takes a probe away does not fail. */
static void memory_runs_out_when_unregistering(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = post_probe('a', place->symbol);
	struct kprobe *b = probe('b', place->symbol);
	bool failed = true;

	need_failing_allocations(test);
	ASSERT_REGISTERED(test, b);
	for (unsigned int nth = 1; failed; nth++) {
		KUNIT_ASSERT_LT(test, nth, 1000);
		a->addr = NULL;
		ASSERT_REGISTERED(test, a);
		EXPECT_CALL(test, place, "abA");
		fail_allocation(nth);
		unregister_kprobe(a);
		failed = has_failed();
		EXPECT_CALL(test, place, "b");
	}
}

static void memory_runs_out_when_disabling(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = probe('a', place->symbol);
	bool failed = true;

	/* ftrace keeps a list for all of these probes. */
	need_failing_allocations(test);
	ASSERT_REGISTERED(test, probe('b', OTHER_TRACED->symbol));
	ASSERT_REGISTERED(test, a);
	for (unsigned int nth = 1; failed; nth++) {
		KUNIT_ASSERT_LT(test, nth, 1000);
		fail_allocation(nth);
		KUNIT_EXPECT_EQ(test, disable_kprobe(a), 0);
		failed = has_failed();
		EXPECT_CALL(test, place, "");
		EXPECT_CALL(test, OTHER_TRACED, "b");
		KUNIT_EXPECT_EQ(test, enable_kprobe(a), 0);
		EXPECT_CALL(test, place, "a");
	}
}
#else
static void memory_runs_out_at_registration(struct kunit *test)
{
	kunit_skip(test, "allocations cannot be made to fail");
}

static void memory_runs_out_when_enabling(struct kunit *test)
{
	kunit_skip(test, "allocations cannot be made to fail");
}

static void memory_runs_out_when_unregistering(struct kunit *test)
{
	kunit_skip(test, "allocations cannot be made to fail");
}

static void memory_runs_out_when_disabling(struct kunit *test)
{
	kunit_skip(test, "allocations cannot be made to fail");
}
#endif

/* The kernel warns of each way once. */
static void probe_is_registered_once(struct kunit *test)
{
	struct kprobe *a = probe('a', TARGET->symbol);
	struct kprobe *b = probe('b', TARGET->symbol);
	struct kprobe *c = probe('c', TRACED->symbol);
	struct kprobe *with_registered[] = { b, a }, *with_double[] = { b, c, b };
	struct kprobe before, given = *b, other = *c;

	ASSERT_REGISTERED(test, a);
	before = *a;
	KUNIT_EXPECT_EQ(test, register_kprobe(a), -EINVAL);
	KUNIT_EXPECT_EQ(test, register_kprobes(with_registered, 2), -EINVAL);
	KUNIT_EXPECT_MEMEQ(test, a, &before, sizeof(before));
	EXPECT_UNTOUCHED(test, b, &given);
	EXPECT_CALL(test, TARGET, "a");

	KUNIT_EXPECT_EQ(test, register_kprobes(with_double, 3), -EINVAL);
	EXPECT_UNTOUCHED(test, b, &given);
	EXPECT_UNTOUCHED(test, c, &other);
	EXPECT_CALL(test, TARGET, "a");
	EXPECT_CALL(test, TRACED, "");

	/* As a symbol and an address would both be given, this is no repetition. */
	unregister_kprobe(a);
	EXPECT_REFUSED(test, a, -EINVAL);
	EXPECT_CALL(test, TARGET, "");
}

/*
 * What a caller may have done to the address of a registered probe, which was meant for
 * the place @given.
 */
enum rewriting { CLEARED, FUNCTION, ELSEWHERE, REWRITINGS };

static void rewrite_address(struct kprobe *kp, const struct place *given, enum rewriting how)
{
	kp->symbol_name = how == CLEARED ? given->symbol : NULL;
	kp->addr = how == CLEARED ? NULL :
		   (kprobe_opcode_t *)text(how == FUNCTION ? given : OTHER_TARGET);
}

/* It is known by more than that. */
static void rewritten_probe_is_registered_once(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = probe('a', place->symbol);
	struct kprobe *b = probe('b', OTHER_TRACED->symbol);
	struct kprobe *both[] = { b, a };
	kprobe_opcode_t *rewritten;

	for (enum rewriting how = CLEARED; how < REWRITINGS; how++) {
		a->symbol_name = place->symbol;
		a->addr = NULL;
		ASSERT_REGISTERED(test, a);
		rewrite_address(a, place, how);
		rewritten = a->addr;
		KUNIT_EXPECT_EQ(test, register_kprobe(a), -EINVAL);
		KUNIT_EXPECT_EQ(test, register_kprobes(both, 2), -EINVAL);
		KUNIT_EXPECT_PTR_EQ(test, a->addr, rewritten);
		KUNIT_EXPECT_TRUE(test, is_linked(a));
		KUNIT_EXPECT_FALSE(test, is_linked(b));
		EXPECT_CALL(test, place, "a");
		EXPECT_CALL(test, OTHER_TARGET, "");
		EXPECT_CALL(test, OTHER_TRACED, "");
		unregister_kprobe(a);
		EXPECT_CALL(test, place, "");
	}
}

static void rewritten_probe_is_unregistered(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = probe('a', place->symbol);
	struct kprobe *b = probe('b', place->symbol);

	ASSERT_REGISTERED(test, b);
	for (enum rewriting how = CLEARED; how < REWRITINGS; how++) {
		a->symbol_name = place->symbol;
		a->addr = NULL;
		ASSERT_REGISTERED(test, a);
		EXPECT_CALL(test, place, "ab");
		rewrite_address(a, place, how);
		unregister_kprobe(a);
		EXPECT_CALL(test, place, "b");
		KUNIT_EXPECT_FALSE(test, is_linked(a));
	}
}

static struct kunit_case kprobes_cases[] = {
	KUNIT_CASE_PARAM(pre_handler_is_called, place_gen_params),
	KUNIT_CASE_PARAM(post_handler_is_called, place_gen_params),
	KUNIT_CASE_PARAM(handlers_are_optional, place_gen_params),
	KUNIT_CASE_PARAM(probes_share_an_address, place_gen_params),
	KUNIT_CASE_PARAM(probe_is_registered_again, place_gen_params),
	KUNIT_CASE_PARAM(old_flags_are_ignored, place_gen_params),
	KUNIT_CASE_PARAM(address_is_set, place_gen_params),
	KUNIT_CASE(traced_function_is_hit_through_ftrace),
	KUNIT_CASE(module_is_named),
	KUNIT_CASE(registers_are_those_of_the_call),
	KUNIT_CASE_PARAM(pre_handler_changes_the_path, place_gen_params),
	KUNIT_CASE_PARAM(pre_handler_alone_changes_the_path, place_gen_params),
	KUNIT_CASE(post_handler_changes_the_path),
	KUNIT_CASE_PARAM(handler_may_fault, place_gen_params),
	KUNIT_CASE_PARAM(probe_is_disabled_at_first, place_gen_params),
	KUNIT_CASE_PARAM(probe_is_disabled_and_enabled, place_gen_params),
	KUNIT_CASE_PARAM(neighbours_stay_enabled, place_gen_params),
	KUNIT_CASE_PARAM(probe_joins_a_disabled_one, place_gen_params),
	KUNIT_CASE_PARAM(unregistered_probe_is_not_enabled, place_gen_params),
	KUNIT_CASE_PARAM(handler_calls_a_probed_function, place_gen_params),
	KUNIT_CASE_PARAM(handler_calls_a_traced_function, place_gen_params),
	KUNIT_CASE_PARAM(post_handler_calls_a_probed_function, place_gen_params),
	KUNIT_CASE(handler_is_interrupted),
	KUNIT_CASE(busy_code_is_interrupted),
	KUNIT_CASE_PARAM(entries_are_known, place_gen_params),
	KUNIT_CASE(blacklist_is_known),
	KUNIT_CASE_PARAM(unregistered_probe_is_left_alone, place_gen_params),
	KUNIT_CASE_PARAM(site_is_no_probe, place_gen_params),
	KUNIT_CASE_PARAM(post_handler_of_a_site_stays, place_gen_params),
	KUNIT_CASE(late_post_handler_does_no_harm),
	KUNIT_CASE_PARAM(unregistering_waits_for_handlers, place_gen_params),
	KUNIT_CASE(nothing_is_unregistered),
	KUNIT_CASE(probe_needs_one_place),
	KUNIT_CASE(symbol_must_exist),
	KUNIT_CASE(address_must_have_a_symbol),
	KUNIT_CASE(data_is_not_probed),
	KUNIT_CASE_PARAM(forbidden_symbol_is_not_probed, forbidden_symbol_gen_params),
	KUNIT_CASE(blacklisted_function_is_not_probed),
	KUNIT_CASE(jump_label_is_not_probed),
	KUNIT_CASE(static_call_is_not_probed),
	KUNIT_CASE(warning_is_not_probed),
	KUNIT_CASE(cfi_preamble_is_not_probed),
	KUNIT_CASE(kernel_init_text_is_not_probed),
	KUNIT_CASE_PARAM(handler_cannot_change_probes, place_gen_params),
	KUNIT_CASE(handler_cannot_unregister),
	KUNIT_CASE(init_text_is_probed_until_it_is_gone),
	KUNIT_CASE(reserved_insn_of_a_coming_module_is_not_probed),
	KUNIT_CASE(probe_of_a_coming_module_is_optimized),
	KUNIT_CASE(batch_is_registered),
	KUNIT_CASE(batch_needs_probes),
	KUNIT_CASE(arming_fails),
	KUNIT_CASE(only_post_handlers_keep_rivals_away),
	KUNIT_CASE_PARAM(batch_is_all_or_nothing, bad_probe_gen_params),
	KUNIT_CASE(first_error_in_an_array_counts),
	KUNIT_CASE(memory_runs_out_at_registration),
	KUNIT_CASE_PARAM(memory_runs_out_when_enabling, place_gen_params),
	KUNIT_CASE_PARAM(memory_runs_out_when_unregistering, place_gen_params),
	KUNIT_CASE_PARAM(memory_runs_out_when_disabling, place_gen_params),
	KUNIT_CASE(probe_is_registered_once),
	KUNIT_CASE_PARAM(rewritten_probe_is_registered_once, place_gen_params),
	KUNIT_CASE_PARAM(rewritten_probe_is_unregistered, place_gen_params),
	{ }
};

/* Also if its test has not been among those that were to run. */
static void end_suite(struct kunit_suite *suite)
{
	unregister_early_probes();
}

static struct kunit_suite kprobes_suite = {
	.name = "kprobes",
	.suite_init = start_suite,
	.suite_exit = end_suite,
	.init = start_test,
	.exit = end_test,
	.test_cases = kprobes_cases,
};

kunit_test_suite(kprobes_suite);

#ifdef CONFIG_KRETPROBES
#include "test_kretprobes.h"
#endif

#ifdef CONFIG_OPTPROBES
#include "test_optprobes.h"
#endif

#ifdef CONFIG_X86_64
#include "test_kprobes_x86.h"
#include "test_kprobes_differential_x86.h"
#ifdef CONFIG_OPTPROBES
#include "test_optprobes_x86.h"
#endif
#include "test_kprobes_matrix_x86.h"
#endif

MODULE_DESCRIPTION("KUnit tests of kernel probes");
MODULE_LICENSE("GPL");
MODULE_IMPORT_NS(EXPORTED_FOR_KUNIT_TESTING);
