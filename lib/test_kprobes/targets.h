/* SPDX-License-Identifier: GPL-2.0 */
/* Functions that tests probe and call, and their text. */
#ifndef _TEST_KPROBES_TARGETS_H
#define _TEST_KPROBES_TARGETS_H

#include <linux/kconfig.h>
#include <linux/types.h>

/* On other architectures KPROBE_FLAG_REENTRANT has no effect: nested hits are missed. */
#define HITS_NEST	IS_ENABLED(CONFIG_X86)

/* Return probes have their own instances and trampoline, not those of rethook. */
#define OWN_RETURN_PROBES						\
	(IS_ENABLED(CONFIG_KRETPROBES) && !IS_ENABLED(CONFIG_KRETPROBE_ON_RETHOOK))

/* The argument that targets are called with, and what replacements return for it. */
#define ARG		1983
#define REPLACED	(ARG * 7 + 3)

/**
 * struct place - A function that tests probe and call
 * @symbol:	The function's symbol.
 * @function:	The function.
 * @call:	Calls the function with an argument.
 * @result:	What @call returns for ARG.
 */
struct place {
	const char *symbol;
	void *function;
	u64 (*call)(u64 arg);
	u64 result;
};

/* Bytes of text at the start of a function that tests compare. */
#define TEXT_BYTES	16

#define PLACES		4

/* Two with a breakpoint, and two that are probed through ftrace if the kernel has that. */
#define TARGET		(&kpt_places[0])
#define TRACED		(&kpt_places[1])
#define OTHER_TARGET	(&kpt_places[2])
#define OTHER_TRACED	(&kpt_places[3])

u64 kprobes_test_target(u64 arg);
u64 kprobes_test_other_target(u64 arg);
u64 kprobes_test_replacement(u64 arg);
u64 kprobes_test_int_replacement(unsigned int arg);
u64 kprobes_test_blacklisted(u64 arg);
u64 kprobes_test_noinstr(u64 arg);
u64 kprobes_test_idle(u64 arg);
u64 kpt_call_mktime64(u64 arg);

extern const struct place kpt_places[PLACES];
extern u8 kpt_unprobed_text[PLACES][TEXT_BYTES];

/* Can a function only be called with its type? */
bool kpt_has_type(const void *function);
/* Call a function that may be in assembly, and so without a hash of its type. */
u64 kpt_call_untyped(u64 (*function)(u64 arg), u64 arg);
u64 kpt_call(const struct place *place);
const struct place *kpt_replacement_of(const char *symbol);
const void *kpt_text(const struct place *place);
const void *kpt_place_gen_params(struct kunit *test, const void *prev, char *desc);
bool kpt_is_in(unsigned long address, const char *function);

#endif /* _TEST_KPROBES_TARGETS_H */
