/* SPDX-License-Identifier: GPL-2.0 */
/* Functions that tests probe and call. */
#ifndef _TEST_KPROBES_TARGETS_H
#define _TEST_KPROBES_TARGETS_H

#include <linux/compiler.h>
#include <linux/kconfig.h>
#include <linux/types.h>

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

/* Bytes of text that tests compare at a function's start. */
#define TEXT_BYTES	16

#define PLACES		4

/* Two of each kind: with a breakpoint, and through ftrace if there is that. */
#define TARGET		(&kpt_places[0])
#define TRACED		(&kpt_places[1])
#define OTHER_TARGET	(&kpt_places[2])
#define OTHER_TRACED	(&kpt_places[3])

/* Not those of rethook. */
#define OWN_RETURN_PROBES						\
	(IS_ENABLED(CONFIG_KRETPROBES) && !IS_ENABLED(CONFIG_KRETPROBE_ON_RETHOOK))

u64 kprobes_test_target(u64 arg);
u64 kprobes_test_other_target(u64 arg);
u64 kprobes_test_replacement(u64 arg);
u64 kprobes_test_blacklisted(u64 arg);
u64 kprobes_test_noinstr(u64 arg);
u64 kprobes_test_idle(u64 arg);
u64 kpt_call_mktime64(u64 arg);

extern const struct place kpt_places[PLACES];
extern u8 kpt_unprobed_text[PLACES][TEXT_BYTES];
const void *kpt_text(const struct place *place);
const void *kpt_place_gen_params(const void *prev, char *desc);
u64 kpt_call(const struct place *place);

#endif /* _TEST_KPROBES_TARGETS_H */
