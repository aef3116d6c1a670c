// SPDX-License-Identifier: GPL-2.0
/* Jumper probes: handlers that have the prototype of the probed function. */
#include <linux/irqflags.h>
#include <linux/kallsyms.h>
#include <linux/sched.h>
#include <linux/stacktrace.h>
#include <linux/stdarg.h>
#include <linux/string.h>
#include <linux/time.h>

#include "interrupt.h"
#include "jprobe.h"
#include "optimize.h"
#include "return_probes.h"

static const struct all_arguments given = {
	.c = -5, .s = -600, .u = 0xfedcba98, .q = 0x0123456789abcdefULL,
	.pointer = (void *)&kpt_probe, .pair = { 7, 8 }, .on_stack_byte = 0xa5,
	.block = { { 11, 12, 13, 14 } }, .last = ~0ULL,
};

noinline u64 kprobes_test_arguments(ALL_ARGUMENTS)
{
	OPTIMIZER_HIDE_VAR(q);
	return SUM_OF_ARGUMENTS;
}

static u64 pass_all(arguments_fn *function)
{
	OPTIMIZER_HIDE_VAR(function);
	return function(given.c, given.s, given.u, given.q, given.pointer, given.pair,
			given.on_stack_byte, given.block, given.last);
}

static u64 call_with_all(u64 unused)
{
	return pass_all(kprobes_test_arguments);
}

static u64 call_traced_with_all(u64 unused)
{
	return pass_all(kprobes_test_traced_arguments);
}

static struct all_arguments got;

/* Keeps its arguments, then overwrites them: the probed function must not notice. */
static u64 keep_all(ALL_ARGUMENTS)
{
	if (current == kpt_tester) {
		kpt_note('j');
		got = (struct all_arguments){
			c, s, u, q, pointer, pair, on_stack_byte, block, last
		};
	}
	memset(&block, 0x5a, sizeof(block));
	on_stack_byte = 0;
	last = 0;
	barrier_data(&block);
	barrier_data(&on_stack_byte);
	barrier_data(&last);
	jprobe_return();
	if (current == kpt_tester)
		kpt_note('!');
	return 0;
}

static struct jprobe jprobes[3];

static struct jprobe *test_jprobe(unsigned int i, const char *symbol, void *entry)
{
	struct jprobe *jp = &jprobes[i];

	jp->kp.symbol_name = symbol;
	jp->entry = entry;
	return jp;
}

#define ASSERT_JPROBED(test, jp)	KUNIT_ASSERT_EQ(test, register_jprobe(jp), 0)

/* The test sets @result, by a call of the function without a probe. */
static const struct place argument_places[] = {
	{ "kprobes_test_arguments", kprobes_test_arguments, call_with_all },
	{ "kprobes_test_traced_arguments", kprobes_test_traced_arguments, call_traced_with_all },
};

KUNIT_ARRAY_PARAM_DESC(argument_place, argument_places, symbol);

static void handler_gets_all_kinds_of_arguments(struct kunit *test)
{
	struct place place = *(const struct place *)test->param_value;
	struct jprobe *jp = test_jprobe(0, place.symbol, JPROBE_ENTRY(keep_all));

	place.result = place.call(0);
	ASSERT_JPROBED(test, jp);
	for (int optimized = 0; optimized < 2; optimized++) {
		memset(&got, 0, sizeof(got));
		EXPECT_CALL(test, &place, "j");
		KUNIT_EXPECT_EQ(test, got.c, given.c);
		KUNIT_EXPECT_EQ(test, got.s, given.s);
		KUNIT_EXPECT_EQ(test, got.u, given.u);
		KUNIT_EXPECT_EQ(test, got.q, given.q);
		KUNIT_EXPECT_PTR_EQ(test, got.pointer, given.pointer);
		KUNIT_EXPECT_EQ(test, got.pair.a, given.pair.a);
		KUNIT_EXPECT_EQ(test, got.pair.b, given.pair.b);
		KUNIT_EXPECT_EQ(test, got.on_stack_byte, given.on_stack_byte);
		KUNIT_EXPECT_MEMEQ(test, &got.block, &given.block, sizeof(given.block));
		KUNIT_EXPECT_EQ(test, got.last, given.last);
		wait_for_kprobe_optimizer();
	}
	KUNIT_EXPECT_EQ(test, kprobe_ftrace(&jp->kp),
			IS_ENABLED(CONFIG_KPROBES_ON_FTRACE) &&
			place.function == kprobes_test_traced_arguments);
	unregister_jprobe(jp);
	EXPECT_CALL(test, &place, "");
}

/* More words on the stack than a handler gets. */
static struct many_words given_words, got_words;

noinline u64 kprobes_test_words(struct many_words block)
{
	return SUM_OF_WORDS(block);
}

static u64 pass_words(words_fn *function)
{
	OPTIMIZER_HIDE_VAR(function);
	return function(given_words);
}

static u64 call_with_words(u64 unused)
{
	return pass_words(kprobes_test_words);
}

static u64 call_traced_with_words(u64 unused)
{
	return pass_words(kprobes_test_traced_words);
}

/* The handler overwrites only the copied words: the frame of jprobe_call() is above them. */
static u64 keep_words(struct many_words block)
{
	if (current == kpt_tester) {
		kpt_note('j');
		got_words = block;
	}
	memset(&block, 0x5a, JPROBE_STACK_WORDS * sizeof(long));
	barrier_data(&block);
	jprobe_return();
	if (current == kpt_tester)
		kpt_note('!');
	return 0;
}

static const struct place word_places[] = {
	{ "kprobes_test_words", kprobes_test_words, call_with_words },
	{ "kprobes_test_traced_words", kprobes_test_traced_words, call_traced_with_words },
};

KUNIT_ARRAY_PARAM_DESC(word_place, word_places, symbol);

/* The function gets all of its arguments. */
static void handler_gets_a_limited_number_of_words(struct kunit *test)
{
	struct place place = *(const struct place *)test->param_value;
	struct jprobe *jp = test_jprobe(0, place.symbol, JPROBE_ENTRY(keep_words));

	for (int i = 0; i < ARRAY_SIZE(given_words.words); i++)
		given_words.words[i] = 0xabc00001 + i;
	place.result = place.call(0);
	ASSERT_JPROBED(test, jp);
	for (int optimized = 0; optimized < 2; optimized++) {
		memset(&got_words, 0, sizeof(got_words));
		EXPECT_CALL(test, &place, "j");
		KUNIT_EXPECT_MEMEQ(test, got_words.words, given_words.words,
				   JPROBE_STACK_WORDS * sizeof(long));
		KUNIT_EXPECT_NE(test, got_words.words[JPROBE_STACK_WORDS],
				given_words.words[JPROBE_STACK_WORDS]);
		wait_for_kprobe_optimizer();
	}
}

static u64 sum_of_variadic(int count, va_list rest)
{
	u64 sum = count;

	while (count--)
		sum = sum * 3 + va_arg(rest, unsigned long);
	return sum;
}

noinline u64 kprobes_test_variadic(int count, ...)
{
	va_list rest;
	u64 sum;

	va_start(rest, count);
	sum = sum_of_variadic(count, rest);
	va_end(rest);
	return sum;
}

static u64 call_variadic(u64 unused)
{
	u64 (*function)(int count, ...) = kprobes_test_variadic;

	OPTIMIZER_HIDE_VAR(function);
	/* More than there are registers. */
	return function(10, 1UL, 2UL, 3UL, 4UL, 5UL, 6UL, 7UL, 8UL, 9UL, 10UL);
}

static u64 seen_argument;

static u64 keep_sum_of_variadic(int count, ...)
{
	va_list rest;

	va_start(rest, count);
	if (current == kpt_tester) {
		kpt_note('j');
		seen_argument = sum_of_variadic(count, rest);
	}
	va_end(rest);
	jprobe_return();
	return 0;
}

static void handler_gets_variable_arguments(struct kunit *test)
{
	struct place place = {
		"kprobes_test_variadic", kprobes_test_variadic, call_variadic, call_variadic(0)
	};
	struct jprobe *jp = test_jprobe(0, place.symbol, JPROBE_ENTRY(keep_sum_of_variadic));

	ASSERT_JPROBED(test, jp);
	for (int optimized = 0; optimized < 2; optimized++) {
		seen_argument = 0;
		EXPECT_CALL(test, &place, "j");
		KUNIT_EXPECT_EQ(test, seen_argument, place.result);
		wait_for_kprobe_optimizer();
	}
}

/* Has a variable on the stack, whose shadow is not cleared by jprobe_return() alone. */
static u64 leave_by_jprobe_return(u64 arg)
{
	char text[32];

	if (current == kpt_tester) {
		snprintf(text, sizeof(text), "%llu", arg);
		barrier_data(text);
		seen_argument = arg;
		kpt_note('j');
	}
	jprobe_return();
	kpt_note('!');
	return 0;
}

static u64 leave_by_return(u64 arg)
{
	if (current == kpt_tester) {
		seen_argument = arg;
		kpt_note('k');
	}
	return ~arg;
}

/* For mktime64(), whose arguments are smaller than those of kprobes_test_target(). */
static u64 leave_int_by_jprobe_return(unsigned int arg)
{
	return leave_by_jprobe_return(arg);
}

static u64 leave_int_by_return(unsigned int arg)
{
	return leave_by_return(arg);
}

static void handler_ends_in_either_way(struct kunit *test)
{
	const struct place *place = test->param_value;
	bool is_int = place == TRACED;
	void *by_jprobe_return = is_int ? (void *)leave_int_by_jprobe_return :
					  (void *)leave_by_jprobe_return;
	void *by_return = is_int ? (void *)leave_int_by_return : (void *)leave_by_return;
	struct jprobe *j = test_jprobe(0, place->symbol, by_jprobe_return);
	struct jprobe *k = test_jprobe(1, place->symbol, by_return);

	ASSERT_JPROBED(test, j);
	EXPECT_CALL(test, place, "j");
	KUNIT_EXPECT_EQ(test, seen_argument, ARG);
	ASSERT_JPROBED(test, k);
	EXPECT_CALL(test, place, "kj");
	unregister_jprobe(j);
	seen_argument = 0;
	EXPECT_CALL(test, place, "k");
	KUNIT_EXPECT_EQ(test, seen_argument, ARG);
	KUNIT_EXPECT_EQ(test, k->kp.nmissed, 0);
}

static void jprobe_shares_a_function(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct jprobe *j = test_jprobe(0, place->symbol, leave_by_jprobe_return);

	ASSERT_REGISTERED(test, kpt_post_probe('a', place->symbol));
	ASSERT_JPROBED(test, j);
	ASSERT_RETURN_PROBED(test, kpt_return_probe('r', place->symbol));
	ASSERT_REGISTERED(test, kpt_probe('b', place->symbol));
	EXPECT_CALL(test, place, "brjaAR");
	KUNIT_EXPECT_EQ(test, kpt_test_kretprobe('r')->value, place->result);
	wait_for_kprobe_optimizer();
	EXPECT_CALL(test, place, "brjaAR");
	unregister_jprobe(j);
	EXPECT_CALL(test, place, "braAR");
}

static void optimized_jprobe_is_called(struct kunit *test)
{
	struct jprobe *j = test_jprobe(0, TARGET->symbol, leave_by_jprobe_return);

	ASSERT_JPROBED(test, j);
	ASSERT_OPTIMIZED(test, &j->kp);
	for (int i = 0; i < 3; i++)
		EXPECT_CALL(test, TARGET, "j");
	KUNIT_EXPECT_EQ(test, j->kp.nmissed, 0);
}

static void jprobe_is_disabled_and_enabled(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct jprobe *j = test_jprobe(0, place->symbol, leave_by_return);

	j->kp.flags = KPROBE_FLAG_DISABLED;
	ASSERT_JPROBED(test, j);
	EXPECT_CALL(test, place, "");
	KUNIT_EXPECT_EQ(test, enable_jprobe(j), 0);
	EXPECT_CALL(test, place, "k");
	KUNIT_EXPECT_EQ(test, disable_jprobe(j), 0);
	EXPECT_CALL(test, place, "");
}

static void jprobe_batch_is_all_or_nothing(struct kunit *test)
{
	struct jprobe *all[] = {
		test_jprobe(0, TARGET->symbol, leave_by_return),
		test_jprobe(1, TRACED->symbol, leave_by_return),
		test_jprobe(2, OTHER_TARGET->symbol, leave_by_return),
	};

	all[2]->kp.offset = 1;
	KUNIT_EXPECT_LT(test, register_jprobes(all, 3), 0);
	KUNIT_EXPECT_NULL(test, all[0]->kp.pre_handler);
	EXPECT_CALL(test, TARGET, "");
	all[2]->kp.offset = 0;
	for (unsigned int i = 0; i < ARRAY_SIZE(all); i++)
		all[i]->kp.addr = NULL;		/* what the symbol was found to be */
	KUNIT_ASSERT_EQ(test, register_jprobes(all, 3), 0);
	EXPECT_CALL(test, TARGET, "k");
	EXPECT_CALL(test, TRACED, "k");
	EXPECT_CALL(test, OTHER_TARGET, "k");
	unregister_jprobes(all, 3);
	EXPECT_CALL(test, TARGET, "");
	KUNIT_EXPECT_EQ(test, register_jprobes(all, 0), -EINVAL);
}

static void bad_jprobe_is_refused(struct kunit *test)
{
	struct jprobe *j = test_jprobe(0, TARGET->symbol, NULL);
	int (*stack_address)(void) = (void *)&j;

	KUNIT_EXPECT_EQ(test, register_jprobe(j), -EINVAL);
	j->entry = stack_address;
	KUNIT_EXPECT_EQ(test, register_jprobe(j), -EINVAL);
	j->entry = leave_by_return;
	j->kp.symbol_name = "kprobes_test_no_such_function";
	KUNIT_EXPECT_EQ(test, register_jprobe(j), -ENOENT);
	j->kp.symbol_name = "kprobes_test_blacklisted";
	KUNIT_EXPECT_EQ(test, register_jprobe(j), -EINVAL);
	KUNIT_EXPECT_NULL(test, j->kp.pre_handler);

	/* Inside of a function, at whatever instruction */
	j->kp.symbol_name = TARGET->symbol;
	for (j->kp.offset = 5; j->kp.offset < TEXT_BYTES; j->kp.offset++)
		KUNIT_EXPECT_EQ(test, register_jprobe(j), -EINVAL);
	KUNIT_EXPECT_NULL(test, j->kp.pre_handler);
}

/* The kernel warns, but only the first time. */
static void jprobe_return_needs_a_handler(struct kunit *test)
{
	struct jprobe *j = test_jprobe(0, TARGET->symbol, leave_by_jprobe_return);

	jprobe_return();
	jprobe_return();
	ASSERT_JPROBED(test, j);
	EXPECT_CALL(test, TARGET, "j");
	jprobe_return();
	EXPECT_CALL(test, TARGET, "j");
}

static u64 call_target_and_return(u64 arg)
{
	if (current == kpt_tester) {
		kpt_note('j');
		if (kpt_call(TARGET) != TARGET->result)
			kpt_note('!');
	}
	jprobe_return();
	return 0;
}

static void hit_in_a_jprobe_is_missed(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct jprobe *j = test_jprobe(0, place->symbol, call_target_and_return);
	struct kprobe *a = kpt_probe('a', TARGET->symbol);

	ASSERT_JPROBED(test, j);
	ASSERT_REGISTERED(test, a);
	EXPECT_CALL(test, place, place->call == TARGET->call ? "aj" : "j");
	KUNIT_EXPECT_EQ(test, a->nmissed, 1);
	KUNIT_EXPECT_EQ(test, j->kp.nmissed, place->call == TARGET->call);
}

static bool interrupted;

/* For mktime64(). The interrupt calls the handler of another jumper probe. */
static u64 wait_for_interrupt_and_return(unsigned int arg)
{
	if (current == kpt_tester) {
		kpt_note('w');
		interrupted = !irqs_disabled();
		if (interrupted)
			kpt_wait_for_interrupt();
		kpt_note('+');
	}
	jprobe_return();
	kpt_note('!');
	return 0;
}

/* Each jprobe_return() leaves the handler that calls it. */
static void handler_is_interrupted_by_a_jprobe(struct kunit *test)
{
	struct jprobe *w = test_jprobe(0, TRACED->symbol, wait_for_interrupt_and_return);
	struct jprobe *j = test_jprobe(1, TARGET->symbol, leave_by_jprobe_return);

	kpt_prepare_interrupt(kpt_interrupt);
	j->kp.flags = KPROBE_FLAG_REENTRANT;
	ASSERT_JPROBED(test, w);
	ASSERT_JPROBED(test, j);
	kpt_clear_journal();
	KUNIT_EXPECT_EQ(test, kpt_call(TRACED), TRACED->result);
	KUNIT_ASSERT_EQ(test, kpt_journal[0], 'w');
	if (!interrupted)
		SKIP_REST(test, "handlers run with interrupts off");
	kpt_expect_interrupt(test);
	KUNIT_EXPECT_STREQ(test, kpt_journal, HITS_NEST ? "wj+" : "w+");
	KUNIT_EXPECT_EQ(test, w->kp.nmissed, 0);
	KUNIT_EXPECT_EQ(test, j->kp.nmissed, HITS_NEST ? 0 : 1);
}

static unsigned long jprobe_trace[TRACE_LENGTH];
static unsigned int jprobe_trace_length;

static u64 save_trace_and_return(u64 arg)
{
	if (current == kpt_tester) {
		jprobe_trace_length = stack_trace_save(jprobe_trace, TRACE_LENGTH, 0);
		kpt_note('j');
	}
	jprobe_return();
	return 0;
}

/* After the handler there is the probed function, and then its caller. */
static void handler_has_the_callers_in_its_trace(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct jprobe *j = test_jprobe(0, place->symbol, save_trace_and_return);
	unsigned int i = 0;

	if (!IS_ENABLED(CONFIG_STACKTRACE) || !IS_ENABLED(CONFIG_UNWINDER_ORC))
		kunit_skip(test, "needs reliable stack traces");
	ASSERT_JPROBED(test, j);
	EXPECT_CALL(test, place, "j");
	while (i < jprobe_trace_length && !kpt_is_in(jprobe_trace[i], place->symbol))
		i++;
	KUNIT_ASSERT_LT(test, i + 1, jprobe_trace_length);
	while (++i < jprobe_trace_length &&
	       !kpt_is_in(jprobe_trace[i], "handler_has_the_callers_in_its_trace"))
		;
	KUNIT_EXPECT_LT(test, i, jprobe_trace_length);
}

static int start_jprobe_test(struct kunit *test)
{
	memset(jprobes, 0, sizeof(jprobes));
	return kpt_start_return_test(test);
}

static void end_jprobe_test(struct kunit *test)
{
	struct jprobe *all[] = { &jprobes[0], &jprobes[1], &jprobes[2] };

	unregister_jprobes(all, ARRAY_SIZE(all));
	kpt_end_return_test(test);
}

static struct kunit_case jprobes_cases[] = {
	KUNIT_CASE_PARAM(handler_gets_all_kinds_of_arguments, argument_place_gen_params),
	KUNIT_CASE_PARAM(handler_gets_a_limited_number_of_words, word_place_gen_params),
	KUNIT_CASE(handler_gets_variable_arguments),
	KUNIT_CASE_PARAM(handler_ends_in_either_way, kpt_place_gen_params),
	KUNIT_CASE_PARAM(jprobe_shares_a_function, kpt_place_gen_params),
	KUNIT_CASE(optimized_jprobe_is_called),
	KUNIT_CASE_PARAM(jprobe_is_disabled_and_enabled, kpt_place_gen_params),
	KUNIT_CASE(jprobe_batch_is_all_or_nothing),
	KUNIT_CASE(bad_jprobe_is_refused),
	KUNIT_CASE(jprobe_return_needs_a_handler),
	KUNIT_CASE_PARAM(hit_in_a_jprobe_is_missed, kpt_place_gen_params),
	KUNIT_CASE(handler_is_interrupted_by_a_jprobe),
	KUNIT_CASE_PARAM(handler_has_the_callers_in_its_trace, kpt_place_gen_params),
	{ }
};

static struct kunit_suite jprobes_suite = {
	.name = "jprobes",
	.suite_init = kpt_start_return_suite,
	.init = start_jprobe_test,
	.exit = end_jprobe_test,
	.test_cases = jprobes_cases,
};

kunit_test_suite(jprobes_suite);
