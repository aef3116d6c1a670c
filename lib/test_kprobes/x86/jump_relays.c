// SPDX-License-Identifier: GPL-2.0
/* Jumps of two bytes share padding, and give it back. */
#include <linux/delay.h>
#include <linux/ftrace.h>
#include <linux/jiffies.h>
#include <linux/string.h>

#include <asm/text-patching.h>

#include "../optimize.h"
#include "../return_probes.h"
#include "functions.h"
#include "jump_code.h"
#include "jump_snippets.h"

/*
 * Return @arg + SUM, if that is less than 256. The padding is the only one in reach of the
 * four instructions after it: a branch leads to the NOPs before. Each of these instructions
 * has a branch target in the five bytes from there on, and so has the first branch after them.
 */
u64 kprobes_test_relayed_function(u64 arg);

#define FAR_AWAY	80
#define PADDING		16
#define RELAYED		4

KPT_ASM_FUNCTION(kprobes_test_relayed_function,
		 TAKE_ARG
		 ".rept " __stringify(FAR_AWAY) "\n add $1, %al\n .endr\n"
		 "jmp 7f\n"
		 "6: .skip 8, 0x90\n"
		 "7: jmp 1f\n"
		 "int3\n"
		 ".skip " __stringify(PADDING) " - 1, 0x90\n"
		 "1: add $1, %al\n"
		 "2: add $2, %al\n"
		 "3: add $4, %al\n"
		 "4: add $8, %al\n"
		 "5: cmp %al, %al\n"
		 "jne 2b\n"
		 "8: jne 3b\n"
		 "jne 8b\n"
		 "jne 4b\n"
		 "jne 5b\n"
		 "jne 6b\n"
		 ".rept " __stringify(FAR_AWAY) "\n add $1, %al\n .endr\n"
		 RETURN);

#define SUM		(2 * FAR_AWAY + 15)
#define JUMP_OVER	(ENDBR_SIZE + TAKE_ARG_SIZE + 2 * FAR_AWAY + 10)
#define PADDING_AT	(JUMP_OVER + JMP8_INSN_SIZE)
#define RELAYED_AT(n)	(PADDING_AT + PADDING + 2 * (n))

/* The first INT3 stays as it is. */
#define RELAYS		((PADDING - 1) / JMP32_INSN_SIZE)

static struct kprobe *probe_at(char name, unsigned int offset)
{
	struct kprobe *kp = kpt_probe(name, "kprobes_test_relayed_function");

	kp->offset = offset;
	return kp;
}

static struct kprobe *relayed_probe(unsigned int n)
{
	return probe_at('a' + n, RELAYED_AT(n));
}

static const u8 *padding(void)
{
	return (const u8 *)kpt_address(kprobes_test_relayed_function) + PADDING_AT;
}

/* The offset in the padding of the relay to which the jump at @kp leads. */
static int relay_offset(const struct kprobe *kp)
{
	return kp->addr + JMP8_INSN_SIZE + *(s8 *)(kp->addr + 1) - padding();
}

/* Sites that have just lost their probes may be in the way for a while. */
static void expect_relay(struct kunit *test, const struct kprobe *kp, int offset)
{
	kpt_expect_optimized_on_retry(test, kp);
	ASSERT_OPTIMIZED(test, kp);
	KUNIT_ASSERT_EQ(test, *kp->addr, JMP8_INSN_OPCODE);
	KUNIT_ASSERT_EQ(test, relay_offset(kp), offset);
	KUNIT_EXPECT_EQ(test, padding()[offset], JMP32_INSN_OPCODE);
}

static void expect_sum(struct kunit *test, u64 (*function)(u64 arg), u64 sum, const char *events)
{
	kpt_clear_journal();
	KUNIT_EXPECT_EQ(test, kpt_call_untyped(function, 0), sum);
	KUNIT_EXPECT_STREQ(test, kpt_journal, events);
}

static void expect_call(struct kunit *test, const char *events)
{
	expect_sum(test, kprobes_test_relayed_function, SUM, events);
}

static bool is_padding_restored(unsigned int start, unsigned int size)
{
	const u8 *bytes = padding() + start;

	return (start || *bytes == INT3_INSN_OPCODE) &&
	       !memchr_inv(bytes + !start, 0x90, size - !start);
}

/* Detours are freed some time after their probes. */
static void expect_padding_is_restored(struct kunit *test, unsigned int start, unsigned int size)
{
	unsigned long end = jiffies + PATIENCE;

	while (!is_padding_restored(start, size) && time_before(jiffies, end))
		msleep(20);
	KUNIT_EXPECT_TRUE(test, is_padding_restored(start, size));
}

static void relays_fill_the_padding(struct kunit *test)
{
	struct kprobe *all[RELAYED];

	for (unsigned int i = 0; i < RELAYED; i++) {
		all[i] = relayed_probe(i);
		ASSERT_REGISTERED(test, all[i]);
		if (i < RELAYS)
			expect_relay(test, all[i], PADDING - (i + 1) * JMP32_INSN_SIZE);
		else
			KUNIT_EXPECT_FALSE(test, kpt_becomes_optimized(all[i]));
	}
	KUNIT_EXPECT_EQ(test, padding()[0], INT3_INSN_OPCODE);
	expect_call(test, "abcd");

	/* One goes, and one after it gets its place; and the other way round. */
	unregister_kprobe(all[1]);
	expect_relay(test, all[3], PADDING - 2 * JMP32_INSN_SIZE);
	expect_call(test, "acd");
	all[1]->addr = NULL;
	ASSERT_REGISTERED(test, all[1]);
	KUNIT_EXPECT_FALSE(test, kpt_becomes_optimized(all[1]));
	unregister_kprobe(all[3]);
	expect_relay(test, all[1], PADDING - 2 * JMP32_INSN_SIZE);
	expect_call(test, "abc");
	unregister_kprobes(all, RELAYS);
	expect_call(test, "");
	expect_padding_is_restored(test, 0, PADDING);
}

static void relay_is_made_anew_for_post_handler(struct kunit *test)
{
	struct kprobe *a = relayed_probe(0);
	struct kprobe *b = kpt_post_probe('b', "kprobes_test_relayed_function");

	b->offset = RELAYED_AT(0);
	ASSERT_REGISTERED(test, a);
	expect_relay(test, a, PADDING - JMP32_INSN_SIZE);
	ASSERT_REGISTERED(test, b);
	expect_call(test, "baB");
	expect_relay(test, b, PADDING - JMP32_INSN_SIZE);
	expect_call(test, "baB");
	unregister_kprobe(a);
	unregister_kprobe(b);
	expect_padding_is_restored(test, 0, PADDING);
}

/* A conditional branch gets no jump if it has a post handler. */
static void padding_of_a_lost_jump_is_used(struct kunit *test)
{
	struct kprobe *a = probe_at('a', RELAYED_AT(RELAYED + 1));
	struct kprobe *e = kpt_post_probe('e', "kprobes_test_relayed_function");

	e->offset = a->offset;
	ASSERT_REGISTERED(test, a);
	expect_relay(test, a, PADDING - JMP32_INSN_SIZE);
	for (unsigned int i = 1; i < RELAYS; i++) {
		ASSERT_REGISTERED(test, relayed_probe(i));
		expect_relay(test, relayed_probe(i), PADDING - (i + 1) * JMP32_INSN_SIZE);
	}
	ASSERT_REGISTERED(test, relayed_probe(RELAYS));
	KUNIT_EXPECT_FALSE(test, kpt_becomes_optimized(relayed_probe(RELAYS)));
	expect_call(test, "bcda");

	ASSERT_REGISTERED(test, e);
	expect_relay(test, relayed_probe(RELAYS), PADDING - JMP32_INSN_SIZE);
	KUNIT_EXPECT_FALSE(test, kpt_becomes_optimized(a));
	expect_call(test, "bcdeaE");
}

/*
 * Return @arg + LABELLED_SUM, if that is less than 256. While the key is on, a jump is in front
 * of NOPs, which seem to be padding. They are in reach of the instruction after them, in whose
 * five bytes a branch ends.
 */
u64 kprobes_test_labelled(u64 arg);

KPT_ASM_FUNCTION(kprobes_test_labelled,
		 TAKE_ARG
		 ".rept " __stringify(FAR_AWAY) "\n add $1, %al\n .endr\n"
		 JUMP_LABEL("6f")
		 ".byte " __stringify(BYTES_NOP5) "\n"
		 "add $1, %al\n"
		 "1: add $2, %al\n"
		 "cmp %al, %al\n"
		 "jne 1b\n"
		 ".rept " __stringify(FAR_AWAY) "\n add $1, %al\n .endr\n"
		 "6: " RETURN);

#define LABELLED_SUM	(2 * FAR_AWAY + 3)
#define LABELLED_AT	(ENDBR_SIZE + TAKE_ARG_SIZE + 2 * FAR_AWAY + 2 * JMP32_INSN_SIZE)

static void disable_flipped_key(void *unused)
{
	static_branch_disable(&kprobes_test_flipped_key);
}

/* Execution reaches what is after a jump label when that is a NOP again. */
static void nops_after_jump_label_are_not_used(struct kunit *test)
{
	struct kprobe *a = kpt_probe('a', "kprobes_test_labelled");

	a->offset = LABELLED_AT;
	static_branch_enable(&kprobes_test_flipped_key);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, disable_flipped_key, NULL), 0);
	ASSERT_REGISTERED(test, a);
	KUNIT_EXPECT_FALSE(test, kpt_becomes_optimized(a));
	kunit_release_action(test, disable_flipped_key, NULL);
	expect_sum(test, kprobes_test_labelled, LABELLED_SUM, "a");
}

static void relay_is_not_probed(struct kunit *test)
{
	struct kprobe *a = relayed_probe(0), *b;

	ASSERT_REGISTERED(test, a);
	expect_relay(test, a, PADDING - JMP32_INSN_SIZE);
	for (unsigned int i = 1; i < PADDING; i++) {
		b = probe_at('b', PADDING_AT + i);
		b->addr = NULL;
		KUNIT_EXPECT_EQ_MSG(test, register_kprobe(b),
				    i < PADDING - JMP32_INSN_SIZE ? 0 : -EINVAL, "byte %u", i);
		if (i < PADDING - JMP32_INSN_SIZE)
			unregister_kprobe(b);
	}
	expect_call(test, "a");
	unregister_kprobe(a);
	expect_padding_is_restored(test, 0, PADDING);
	b->addr = NULL;
	ASSERT_REGISTERED(test, b);
}

/* A disabled probe may be enabled at any time, and get a jump. */
static void probed_padding_is_not_used(struct kunit *test)
{
	struct kprobe *a = relayed_probe(0);
	struct kprobe *b = probe_at('b', PADDING_AT + 5), *c = probe_at('c', PADDING_AT + 7);

	b->flags = KPROBE_FLAG_DISABLED;
	ASSERT_REGISTERED(test, b);
	ASSERT_REGISTERED(test, c);
	ASSERT_REGISTERED(test, a);
	KUNIT_EXPECT_FALSE(test, kpt_becomes_optimized(a));
	expect_call(test, "a");
}

/* If it was not, there would be room for another relay. */
static void first_int3_is_not_used(struct kunit *test)
{
	struct kprobe *d = probe_at('d', PADDING_AT + PADDING - 1), *a;

	d->flags = KPROBE_FLAG_DISABLED;
	ASSERT_REGISTERED(test, d);
	for (unsigned int i = 0; i < RELAYS; i++) {
		a = relayed_probe(i);
		ASSERT_REGISTERED(test, a);
		if (i < RELAYS - 1)
			expect_relay(test, a, PADDING - 1 - (i + 1) * JMP32_INSN_SIZE);
		else
			KUNIT_EXPECT_FALSE(test, kpt_becomes_optimized(a));
	}
	expect_call(test, "abc");
}

/*
 * Functions that add 1 to @arg, and whose only padding has room for one relay, @distance
 * bytes from the end of a jump of two bytes.
 */
#define AROUND		140
#define FILL(bytes)	".skip " bytes ", 0x90\n"
#define ONE_PLACE	"jmp 3f\n int3\n" FILL("5") "3:\n"
#define ONE_PLACE_SIZE	8
#define PROBED_AT_1	"1: add $1, %al\n 2: nop\n"
#define LEAD_TO_2	"cmp %al, %al\n jne 2b\n"

#define PADDED_AFTER(name, distance)					\
	KPT_ASM_FUNCTION(name, TAKE_ARG FILL(__stringify(AROUND)) PROBED_AT_1 \
			 FILL(#distance " - 4") ONE_PLACE LEAD_TO_2	\
			 FILL(__stringify(AROUND)) RETURN)
#define PADDED_BEFORE(name, distance)					\
	KPT_ASM_FUNCTION(name, TAKE_ARG FILL(__stringify(AROUND)) ONE_PLACE \
			 FILL(#distance " - 7") PROBED_AT_1 LEAD_TO_2	\
			 FILL(__stringify(AROUND)) RETURN)

PADDED_AFTER(kprobes_test_padded_127_after, 127);
PADDED_AFTER(kprobes_test_padded_128_after, 128);
PADDED_BEFORE(kprobes_test_padded_128_before, 128);
PADDED_BEFORE(kprobes_test_padded_129_before, 129);

/**
 * struct padded - A function with padding near the end of the reach
 * @name:	Its name.
 * @offset:	Offset of the instruction to probe, after TAKE_ARG.
 * @distance:	The distance of the padding, or 0 if it is out of reach.
 */
struct padded {
	const char *name;
	unsigned int offset;
	int distance;
};

static const struct padded padded[] = {
	{ "kprobes_test_padded_127_after", AROUND, 127 },
	{ "kprobes_test_padded_128_after", AROUND, 0 },
	{ "kprobes_test_padded_128_before", AROUND + ONE_PLACE_SIZE + 128 - 7, -128 },
	{ "kprobes_test_padded_129_before", AROUND + ONE_PLACE_SIZE + 129 - 7, 0 },
};

KUNIT_ARRAY_PARAM_DESC(padded, padded, name);

static void relay_is_in_reach(struct kunit *test)
{
	const struct padded *at = test->param_value;
	struct kprobe *a = kpt_probe('a', at->name);

	a->offset = ENDBR_SIZE + TAKE_ARG_SIZE + at->offset;
	ASSERT_REGISTERED(test, a);
	KUNIT_EXPECT_EQ(test, kpt_becomes_optimized(a), !!at->distance);
	if (at->distance)
		KUNIT_EXPECT_EQ(test, *(s8 *)(a->addr + 1), at->distance);
}

/*
 * Functions that add 1 to @arg. The only padding is at their end, in front of another
 * symbol: an INT3 and 21 NOPs, of which mitigations may use the last 16 unless the symbol
 * stands for these.
 */
#define PADDED_UP_TO(name, symbol)					\
	KPT_ASM_FUNCTION(name, TAKE_ARG FILL(__stringify(AROUND)) PROBED_AT_1 \
			 LEAD_TO_2 RETURN "int3\n" FILL("21")		\
			 #symbol ":\n" FILL(__stringify(AROUND)) "int3\n")

PADDED_UP_TO(kprobes_test_before_function, kprobes_test_padded_function);
PADDED_UP_TO(kprobes_test_before_prefix, __pfx_kprobes_test_padded_function);

/* The offset of the relay from the end of a jump there, if it is in NOP @nop. */
#define PADDED_NOP(nop)		(1 + 4 + 1 + 1 + (nop))

static void expect_relay_at(struct kunit *test, const char *function, int distance)
{
	struct kprobe *a = kpt_probe('a', function);

	a->addr = NULL;
	a->offset = ENDBR_SIZE + TAKE_ARG_SIZE + AROUND;
	ASSERT_REGISTERED(test, a);
	ASSERT_OPTIMIZED(test, a);
	KUNIT_EXPECT_EQ(test, *(s8 *)(a->addr + 1), distance);
	unregister_kprobe(a);
}

static void preamble_of_function_is_not_used(struct kunit *test)
{
	bool used = IS_ENABLED(CONFIG_CALL_PADDING);

	if (used && CONFIG_FUNCTION_PADDING_BYTES != 16)
		kunit_skip(test, "preambles have %d bytes", CONFIG_FUNCTION_PADDING_BYTES);
	expect_relay_at(test, "kprobes_test_before_function", PADDED_NOP(used ? 0 : 16));
	expect_relay_at(test, "kprobes_test_before_prefix", PADDED_NOP(16));
}

/* The jump of five bytes at the short one would displace three bytes of padding. */
static void long_jump_and_relays_do_not_overlap(struct kunit *test)
{
	struct kprobe *d = probe_at('d', JUMP_OVER), *all[RELAYS];

	for (unsigned int i = 0; i < RELAYS; i++)
		all[i] = relayed_probe(i);
	ASSERT_REGISTERED(test, d);
	kpt_expect_optimized_on_retry(test, d);
	KUNIT_EXPECT_EQ(test, *d->addr, JMP32_INSN_OPCODE);
	for (unsigned int i = 0; i < RELAYS; i++) {
		ASSERT_REGISTERED(test, all[i]);
		KUNIT_EXPECT_EQ(test, kpt_becomes_optimized(all[i]), i < RELAYS - 1);
	}
	expect_call(test, "dabc");
	unregister_kprobe(d);
	unregister_kprobe(all[RELAYS - 1]);
	expect_padding_is_restored(test, 0, JMP32_INSN_SIZE);

	all[RELAYS - 1]->addr = NULL;
	ASSERT_REGISTERED(test, all[RELAYS - 1]);
	expect_relay(test, all[RELAYS - 1], 1);
	d->addr = NULL;
	ASSERT_REGISTERED(test, d);
	KUNIT_EXPECT_FALSE(test, kpt_becomes_optimized(d));
	expect_call(test, "dabc");
}

#if defined(CONFIG_DYNAMIC_FTRACE_WITH_JMP) && defined(CONFIG_FTRACE_MCOUNT_USE_CC)
/*
 * Return @arg + 1. The NOPs after the ftrace site, which are executed, are all that is in reach
 * of the instruction after them.
 */
u64 kprobes_test_after_ftrace(u64 arg);

KPT_ASM_FUNCTION(kprobes_test_after_ftrace,
		 "0: call __fentry__\n"
		 ".pushsection __mcount_loc, \"a\"\n" _ASM_PTR "0b\n .popsection\n"
		 FILL("120") TAKE_ARG PROBED_AT_1 LEAD_TO_2 FILL(__stringify(AROUND)) RETURN);

/* As for the trampoline of a BPF program that is called at a function's end. */
static void nops_after_jump_of_ftrace_are_not_used(struct kunit *test)
{
	unsigned long start = kpt_address(kprobes_test_after_ftrace);
	unsigned long jump_to = (start + ENDBR_SIZE + MCOUNT_INSN_SIZE) | 1;
	struct ftrace_ops *ops = kunit_kzalloc(test, sizeof(*ops), GFP_KERNEL);
	struct kprobe *a = kpt_probe('a', "kprobes_test_after_ftrace");

	KUNIT_ASSERT_NOT_NULL(test, ops);
	KUNIT_ASSERT_EQ(test, ftrace_set_filter_ip(ops, start, 0, 0), 0);
	KUNIT_ASSERT_EQ(test, register_ftrace_direct(ops, jump_to), 0);
	KUNIT_EXPECT_EQ(test, *(u8 *)(start + ENDBR_SIZE), JMP32_INSN_OPCODE);
	a->offset = ENDBR_SIZE + MCOUNT_INSN_SIZE + 120 + TAKE_ARG_SIZE;
	KUNIT_EXPECT_EQ(test, register_kprobe(a), 0);
	KUNIT_EXPECT_FALSE(test, kpt_becomes_optimized(a));
	KUNIT_EXPECT_EQ(test, unregister_ftrace_direct(ops, jump_to, true), 0);
}

/* With the first byte of the NOP, the jump to there would end in the midst of an instruction. */
static void jump_of_ftrace_is_not_taken_for_a_probes(struct kunit *test)
{
	unsigned long start = kpt_address(kprobes_test_after_ftrace);
	unsigned long next = start + ENDBR_SIZE + MCOUNT_INSN_SIZE;
	unsigned long jump_to = (next + 0x491) | 1;
	struct ftrace_ops *ops = kunit_kzalloc(test, sizeof(*ops), GFP_KERNEL);
	struct kprobe *a = kpt_probe('a', "kprobes_test_after_ftrace");
	struct kprobe *b = kpt_probe('b', "kprobes_test_after_ftrace");

	KUNIT_ASSERT_NOT_NULL(test, ops);
	a->flags = KPROBE_FLAG_DISABLED;
	ASSERT_REGISTERED(test, a);
	KUNIT_EXPECT_TRUE(test, kprobe_ftrace(a));
	KUNIT_ASSERT_EQ(test, ftrace_set_filter_ip(ops, start, 0, 0), 0);
	KUNIT_ASSERT_EQ(test, register_ftrace_direct(ops, jump_to), 0);
	KUNIT_EXPECT_EQ(test, *(u8 *)(start + ENDBR_SIZE), JMP32_INSN_OPCODE);
	b->offset = next - start;
	KUNIT_EXPECT_EQ(test, register_kprobe(b), 0);
	KUNIT_EXPECT_EQ(test, unregister_ftrace_direct(ops, jump_to, true), 0);
}
#endif

static struct kunit_case optprobes_x86_relays_cases[] = {
#if defined(CONFIG_DYNAMIC_FTRACE_WITH_JMP) && defined(CONFIG_FTRACE_MCOUNT_USE_CC)
	KUNIT_CASE(nops_after_jump_of_ftrace_are_not_used),
	KUNIT_CASE(jump_of_ftrace_is_not_taken_for_a_probes),
#endif
	KUNIT_CASE(relays_fill_the_padding),
	KUNIT_CASE(relay_is_made_anew_for_post_handler),
	KUNIT_CASE(padding_of_a_lost_jump_is_used),
	KUNIT_CASE(nops_after_jump_label_are_not_used),
	KUNIT_CASE(relay_is_not_probed),
	KUNIT_CASE(probed_padding_is_not_used),
	KUNIT_CASE(first_int3_is_not_used),
	KUNIT_CASE(long_jump_and_relays_do_not_overlap),
	KUNIT_CASE_PARAM(relay_is_in_reach, padded_gen_params),
	KUNIT_CASE(preamble_of_function_is_not_used),
	{ }
};

static struct kunit_suite optprobes_x86_relays_suite = {
	.name = "optprobes-x86-relays",
	.suite_init = kpt_start_return_suite,
	.init = kpt_start_return_test,
	.exit = kpt_end_return_test,
	.test_cases = optprobes_x86_relays_cases,
};

kunit_test_suite(optprobes_x86_relays_suite);
