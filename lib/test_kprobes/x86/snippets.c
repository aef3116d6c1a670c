// SPDX-License-Identifier: GPL-2.0
/* Snippets: functions with one instruction to probe. */
#include <linux/cpufeature.h>
#include <linux/irqflags.h>
#include <linux/objtool.h>
#include <linux/ptrace.h>
#include <linux/string.h>

#include <asm/asm.h>
#include <asm/extable_fixup_types.h>
#include <asm/processor-flags.h>
#include <asm/smap.h>

#include "snippets.h"

/* A word for operands relative to ip, or by their address. */
asm(".pushsection .data\n"
	".balign 8\n"
	".globl kprobes_test_cell\n"
	"kprobes_test_cell:\n"
	"	.quad 0x1122334455667788\n"
	".popsection\n");

/* An instruction that does not branch. */
#define SNIPPET(name, before, insn, after)				\
	SNIPPET_WITH_TARGET(name, before, insn, after "\n" RETURN, "0")

#define SNIPPET_WITH_TARGET(name, before, insn, after, target)		\
	__SNIPPET("snippets", "kprobes_test_", name, before, insn, after, target)

/* A branch to label 1 of the snippet. MARK_REG shows whether it was taken. */
#define BRANCH_SNIPPET(name, insn)					\
	SNIPPET_WITH_TARGET(name, "", insn,				\
			    "mov $1, " MARK_OPERAND "\n" RETURN		\
			    "int3\n"					\
			    "1: mov $2, " MARK_OPERAND "\n" RETURN,	\
			    "1b - 880b")

/* A call of kprobes_test_callee(). */
#define CALL_SNIPPET(name, before, insn)				\
	SNIPPET_WITH_TARGET(name, before, insn, RETURN, "kprobes_test_callee - 880b")

/* A jump there, which returns to the snippet's caller. */
#define JUMP_SNIPPET(name, before, insn)				\
	SNIPPET_WITH_TARGET(name, before, insn, "", "kprobes_test_callee - 880b")

/* A return to kprobes_test_run(). */
#define RETURN_SNIPPET(name, insn)					\
	SNIPPET_WITH_TARGET(name, "", ANNOTATE_RETPOLINE_SAFE "\n" insn, "",	\
			    ".Lkprobes_test_returned - 880b")

SNIPPET_TABLE_LABEL("snippets", "snippets");

/* Run as a copy. */
SNIPPET("setc", "", "setc %al", "");
SNIPPET("std", "", "std", "cld");
SNIPPET("lfence", "", "lfence", "");

/* Emulated. */
BRANCH_SNIPPET("je", "je 1f");
BRANCH_SNIPPET("jne", "jne 1f");
BRANCH_SNIPPET("jb", "jb 1f");
BRANCH_SNIPPET("jbe", "jbe 1f");
BRANCH_SNIPPET("js", "js 1f");
BRANCH_SNIPPET("jo", "jo 1f");
BRANCH_SNIPPET("jp", "jp 1f");
BRANCH_SNIPPET("jl", "jl 1f");
BRANCH_SNIPPET("jg", "{disp32} jg 1f");
BRANCH_SNIPPET("je_near", "{disp32} je 1f");
BRANCH_SNIPPET("jnp_near", "{disp32} jnp 1f");
BRANCH_SNIPPET("loop", "loop 1f");
BRANCH_SNIPPET("loope", "loope 1f");
BRANCH_SNIPPET("loopne", "loopne 1f");
BRANCH_SNIPPET("jecxz", "jecxz 1f");
JUMP_SNIPPET("jmp", "", "jmp kprobes_test_callee");
CALL_SNIPPET("call", "", "call kprobes_test_callee");
RETURN_SNIPPET("ret", "ret");
RETURN_SNIPPET("ret_imm", "ret $0");
SNIPPET("nop", "", "nop", "");
SNIPPET("cli", "", "cli", "");
SNIPPET("sti", "", "sti", "nop");

/*
 * Run as a copy, but stepped if there is a post handler: its stub in the slot would run
 * with the segment, or the CR0, that they set.
 */
SNIPPET("mov_es", "mov %es, %eax", "mov %eax, %es", "");
SNIPPET("mov_ds", "mov %ds, %eax", "mov %eax, %ds", "");
SNIPPET("clts", "", "clts", "");

#ifdef CONFIG_X86_64
#include "snippet_code_64.h"
#else
#include "snippet_code_32.h"
#endif
STACK_FRAME_NON_STANDARD_FP(kprobes_test_run);

SNIPPET_TABLE_LABEL("snippets", "snippets_end");

/* Return the entry of @table after @prev, with its name in @desc, or NULL at its @end. */
const void *kpt_next_snippet(const void *prev, const struct snippet *table,
			     const struct snippet *end, char *desc)
{
	const struct snippet *next = prev ? (const struct snippet *)prev + 1 : table;

	if (next == end)
		return NULL;
	strscpy(desc, next->name, KUNIT_PARAM_DESC_SIZE);
	return next;
}

const void *kpt_snippet_gen_params(struct kunit *test, const void *prev, char *desc)
{
	return kpt_next_snippet(prev, kprobes_test_snippets, kprobes_test_snippets_end, desc);
}

/* Return the snippet @name, which must be in the table. */
const struct snippet *kpt_find_snippet(const char *name)
{
	const struct snippet *snippet = kprobes_test_snippets;

	while (strcmp(snippet->name, name))
		snippet++;
	return snippet;
}

unsigned long kpt_insn_address(const struct snippet *snippet)
{
	return snippet->code + snippet->offset;
}

/* Return the address in kprobes_test_run() to which snippets return. */
unsigned long kpt_snippet_return_address(void)
{
	const struct snippet *ret = kpt_find_snippet("ret");

	return ret->code + ret->target;
}

static const unsigned long input_flags[INPUT_FLAGS] = {
	0, X86_EFLAGS_CF, X86_EFLAGS_ZF, X86_EFLAGS_SF, X86_EFLAGS_OF, X86_EFLAGS_PF,
	X86_EFLAGS_DF, X86_EFLAGS_AC | X86_EFLAGS_SF | X86_EFLAGS_OF,
	X86_EFLAGS_CF | X86_EFLAGS_PF | X86_EFLAGS_AF | X86_EFLAGS_ZF | X86_EFLAGS_SF |
	X86_EFLAGS_OF,
};

struct cpu_state kpt_state;

/* Set kpt_state to input number @input, with interrupts on if that is even. */
void kpt_set_input(unsigned int input)
{
	unsigned long *word = (unsigned long *)&kpt_state;

	for (unsigned int i = 0; i < sizeof(kpt_state) / sizeof(*word); i++)
		word[i] = INPUT_WORD(i);
	kpt_state.flags = input % 2 ? X86_EFLAGS_FIXED : X86_EFLAGS_FIXED | X86_EFLAGS_IF;
	kpt_state.cx = input / 2 % INPUT_COUNTS;
	kpt_state.flags |= input_flags[input / 2 / INPUT_COUNTS];
	kpt_state.si = (unsigned long)&kpt_state.memory[4];
	kpt_state.di = (unsigned long)&kpt_state.memory[3];
}

/* Not inlined: stack traces from code that is run twice are compared. */
noinline void kpt_run_code(struct cpu_state *state, unsigned long code)
{
	unsigned long flags;

	if (state->flags & X86_EFLAGS_IF) {
		kprobes_test_run(state, code);
	} else {
		local_irq_save(flags);
		kprobes_test_run(state, code);
		local_irq_restore(flags);
	}
}

void kpt_run_snippet(const struct snippet *snippet)
{
	kpt_run_code(&kpt_state, snippet->code);
}

/* Expect @expected in kpt_state. @how tells how the snippet was probed, @input its input. */
void kpt_expect_state(struct kunit *test, const struct cpu_state *expected, const char *how,
		      unsigned int input)
{
	const unsigned long *want = (const unsigned long *)expected;
	const unsigned long *got = (const unsigned long *)&kpt_state;

	if (!memcmp(expected, &kpt_state, sizeof(kpt_state)))
		return;
	for (unsigned int i = 0; i < sizeof(kpt_state) / sizeof(*got); i++)
		KUNIT_ASSERT_EQ_MSG(test, got[i], want[i], "word %u, %s, input %u", i, how, input);
}

/* Run @snippet with each input; return what it leaves. */
struct cpu_state *kpt_unprobed_states(struct kunit *test, const struct snippet *snippet)
{
	struct cpu_state *expected = kunit_kcalloc(test, INPUTS, sizeof(*expected), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, expected);
	for (unsigned int i = 0; i < INPUTS; i++) {
		kpt_set_input(i);
		kpt_run_snippet(snippet);
		expected[i] = kpt_state;
	}
	return expected;
}

/* Expect that @snippet calls no handler after its probe was unregistered. */
void kpt_expect_unprobed(struct kunit *test, const struct snippet *snippet,
			 const struct cpu_state *expected)
{
	kpt_set_input(0);
	kpt_clear_journal();
	kpt_run_snippet(snippet);
	KUNIT_EXPECT_STREQ(test, kpt_journal, "");
	kpt_expect_state(test, &expected[0], "no longer probed", 0);
}

unsigned long kpt_pre_ip, kpt_post_ip, kpt_post_flags;

/* Handlers must not inherit the flag that lets the probed code access memory of users. */
static void check_access_is_off(void)
{
	if (boot_cpu_has(X86_FEATURE_SMAP) && native_save_fl() & X86_EFLAGS_AC)
		kpt_note('!');
}

int kpt_act_record(struct test_probe *p, struct pt_regs *regs)
{
	check_access_is_off();
	kpt_pre_ip = regs->ip;
	return 0;
}

void kpt_record_post(struct kprobe *kp, struct pt_regs *regs, unsigned long flags)
{
	kpt_post_handler(kp, regs, flags);
	check_access_is_off();
	kpt_post_ip = regs->ip;
	kpt_post_flags = regs->flags;
}

/* Prepare probe @name at the instruction of @snippet, to record ip and flags. */
struct kprobe *kpt_snippet_probe(char name, const struct snippet *snippet, bool post)
{
	struct kprobe *kp = kpt_probe(name, NULL);

	kp->addr = (kprobe_opcode_t *)kpt_insn_address(snippet);
	kp->post_handler = post ? kpt_record_post : NULL;
	kpt_test_probe(name)->act = kpt_act_record;
	return kp;
}

static bool may_continue_at(const struct snippet *snippet, unsigned long ip)
{
	return ip == kpt_insn_address(snippet) + snippet->length ||
	       (snippet->target && ip == snippet->code + snippet->target);
}

/* Expect that @snippet leaves @expected with probe 'a', as it did without one. */
void kpt_expect_same(struct kunit *test, const struct snippet *snippet,
		     const struct cpu_state *expected, bool post)
{
	const char *how = post ? "with a post handler" : "probed";

	for (unsigned int i = 0; i < INPUTS; i++) {
		kpt_set_input(i);
		kpt_clear_journal();
		kpt_run_snippet(snippet);
		KUNIT_ASSERT_STREQ(test, kpt_journal, post ? "aA" : "a");
		KUNIT_ASSERT_EQ(test, kpt_pre_ip, kpt_insn_address(snippet) + 1);
		if (post) {
			KUNIT_ASSERT_TRUE(test, may_continue_at(snippet, kpt_post_ip));
			KUNIT_ASSERT_EQ(test, kpt_post_flags & X86_EFLAGS_IF,
					kpt_state.flags & X86_EFLAGS_IF);
		}
		kpt_expect_state(test, &expected[i], how, i);
	}
}

int kpt_act_run_snippet(struct test_probe *p, struct pt_regs *regs)
{
	kpt_run_snippet((const struct snippet *)p->data);
	return 0;
}

/*
 * Register @a, whose handler runs @snippet. A hit there calls no handler, as it is inside
 * another one, but runs the instruction.
 */
void kpt_register_skipping(struct kunit *test, struct kprobe *a, const struct snippet *snippet)
{
	kpt_test_probe('a')->act = kpt_act_run_snippet;
	kpt_test_probe('a')->data = (unsigned long)snippet;
	ASSERT_REGISTERED(test, a);
}

/* Expect that the instruction of @b leaves @expected if the handler of @a runs it. */
void kpt_expect_skipped(struct kunit *test, const struct kprobe *a, const struct kprobe *b,
			const struct cpu_state *expected, const char *events)
{
	/* Only inputs with interrupts off, as they may be in a handler. */
	for (unsigned int i = 1; i < INPUTS; i += 2) {
		kpt_set_input(i);
		EXPECT_CALL(test, TRACED, events);
		kpt_expect_state(test, &expected[i], "skipped", i);
	}
	KUNIT_EXPECT_EQ(test, b->nmissed, INPUTS / 2);
	KUNIT_EXPECT_EQ(test, a->nmissed, 0);
}
