// SPDX-License-Identifier: GPL-2.0
/* Functions that tests probe and call, and their text. */
#include <linux/jiffies.h>
#include <linux/kallsyms.h>
#include <linux/kprobes.h>
#include <linux/objtool.h>
#include <linux/string.h>
#include <linux/time.h>

#include <kunit/test.h>

#ifdef CONFIG_FINEIBT
#include <asm/ibt.h>
#endif

#include "targets.h"

/*
 * Functions with a breakpoint. They are called by pointer, so that the compiler assumes
 * nothing about the registers that they leave alone.
 */

noinline u64 kprobes_test_target(u64 arg)
{
	OPTIMIZER_HIDE_VAR(arg);
	return arg * 3 + 1;
}

noinline u64 kprobes_test_other_target(u64 arg)
{
	OPTIMIZER_HIDE_VAR(arg);
	return arg * 5 + 2;
}

noinline u64 kprobes_test_replacement(u64 arg)
{
	OPTIMIZER_HIDE_VAR(arg);
	return arg * 7 + 3;
}

/* The replacement of mktime64(), which takes numbers of 32 bits. */
noinline u64 kprobes_test_int_replacement(unsigned int arg)
{
	OPTIMIZER_HIDE_VAR(arg);
	return arg * 7 + 3;
}

#ifndef CONFIG_CFI
/* Instead of the preamble that the compiler gives the function for CFI. */
static __used u64 __cfi_kprobes_test_target(u64 arg)
{
	return arg;
}
#endif

/* As objtool names the padding before a function */
static __used u64 __pfx_kprobes_test(u64 arg)
{
	return arg;
}

noinline u64 kprobes_test_blacklisted(u64 arg)
{
	OPTIMIZER_HIDE_VAR(arg);
	return arg * 11 + 4;
}

NOKPROBE_SYMBOL(kprobes_test_blacklisted);

noinstr noinline u64 kprobes_test_noinstr(u64 arg)
{
	OPTIMIZER_HIDE_VAR(arg);
	return arg * 13 + 5;
}

__cpuidle noinline u64 kprobes_test_idle(u64 arg)
{
	OPTIMIZER_HIDE_VAR(arg);
	return arg * 19 + 7;
}

/* Exported functions that ftrace can trace, and that are seldom called. */

u64 kpt_call_mktime64(u64 arg)
{
	return mktime64(arg, 1, 1, 0, 0, 0);
}

static u64 call_nsecs_to_jiffies64(u64 arg)
{
	return nsecs_to_jiffies64(arg * NSEC_PER_SEC);
}

const struct place kpt_places[PLACES] = {
	{ "kprobes_test_target", kprobes_test_target, kprobes_test_target, ARG * 3 + 1 },
	{ "mktime64", mktime64, kpt_call_mktime64, 410227200 },
	{ "kprobes_test_other_target", kprobes_test_other_target, kprobes_test_other_target,
	  ARG * 5 + 2 },
	{ "nsecs_to_jiffies64", nsecs_to_jiffies64, call_nsecs_to_jiffies64, (u64)ARG * HZ },
};

static const struct place replacement = {
	"kprobes_test_replacement", kprobes_test_replacement, kprobes_test_replacement, REPLACED
};

static const struct place int_replacement = {
	"kprobes_test_int_replacement", kprobes_test_int_replacement, .result = REPLACED
};

/*
 * A function that can run in place of the one that has @symbol, TARGET's or TRACED's. Its
 * argument has the same size: a 32-bit kernel passes one of 64 bits in two registers.
 */
const struct place *kpt_replacement_of(const char *symbol)
{
	return symbol == TRACED->symbol ? &int_replacement : &replacement;
}

/* The text of each place while it is not probed. */
u8 kpt_unprobed_text[PLACES][TEXT_BYTES];

/*
 * The start of a place's text. The compiler must not know which function it is: a
 * reference to an address inside the function would keep jumps out of it.
 */
const void *kpt_text(const struct place *place)
{
	const void *start = dereference_function_descriptor(place->function);

	OPTIMIZER_HIDE_VAR(start);
	return start;
}

/* Parameters of a test: TARGET, TRACED. */
const void *kpt_place_gen_params(struct kunit *test, const void *prev, char *desc)
{
	const struct place *next = prev ? prev + sizeof(*next) : TARGET;

	if (next > TRACED)
		return NULL;
	strscpy(desc, next->symbol, KUNIT_PARAM_DESC_SIZE);
	return next;
}

/* With FineIBT a function in C has its landing pad before its entry, where its type is checked. */
bool kpt_has_type(const void *function)
{
#ifdef CONFIG_FINEIBT
	return __is_endbr(*(const u32 *)(function - 16));
#else
	return false;
#endif
}

static noinline u64 __nocfi call_untyped(u64 (*function)(u64 arg), u64 arg)
{
	return function(arg);
}

ANNOTATE_NOCFI_SYM(call_untyped);

u64 kpt_call_untyped(u64 (*function)(u64 arg), u64 arg)
{
	return kpt_has_type(function) ? function(arg) : call_untyped(function, arg);
}

u64 kpt_call(const struct place *place)
{
	return kpt_call_untyped(place->call, ARG);
}

bool kpt_is_in(unsigned long address, const char *function)
{
	char name[KSYM_SYMBOL_LEN];

	sprint_symbol_no_offset(name, address);
	return !strcmp(strim(strreplace(name, '[', '\0')), function);	/* no "[module]" */
}
