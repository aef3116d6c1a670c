/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The part of the tests of kernel probes that is about jumps on x86-64. A jump
 * displaces five bytes or more: several instructions. What is tested here is where
 * one may be, that what it displaces does the same, and what neighbours, jump
 * labels, stack traces, tasks in the text and CPUs that come and go have to do with it.
 */
#ifndef _TEST_OPTPROBES_X86_H
#define _TEST_OPTPROBES_X86_H

#include <linux/cpu.h>
#include <linux/ftrace.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/sched/task.h>
#include <linux/vmalloc.h>

#include <asm/irq_regs.h>
#include <asm/nops.h>
#include <asm/text-patching.h>

/* ---------------------------------------------------------- probes that count */

/**
 * struct counting_probe - A probe that all tasks hit
 * @kp:		The probe.
 * @hits:	How often they have.
 */
struct counting_probe {
	struct kprobe kp;
	atomic_t hits;
};

static struct counting_probe counting[3];

static int count_hit(struct kprobe *kp, struct pt_regs *regs)
{
	atomic_inc(&container_of(kp, struct counting_probe, kp)->hits);
	return 0;
}

static void unregister_counting(void *unused)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(counting); i++)
		unregister_kprobe(&counting[i].kp);
}

static struct kprobe *counting_probe(unsigned int i, unsigned long addr)
{
	struct kprobe *kp = &counting[i].kp;

	kp->addr = (kprobe_opcode_t *)addr;
	kp->pre_handler = count_hit;
	return kp;
}

static void prepare_counting(struct kunit *test)
{
	memset(counting, 0, sizeof(counting));
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, unregister_counting, NULL), 0);
}

/* ---------------------------------------------------------------- snippets */

/* Tables of snippets which a jump does, and does not, fit into. */
extern const struct snippet kprobes_test_fit[], kprobes_test_fit_end[];
extern const struct snippet kprobes_test_unfit[], kprobes_test_unfit_end[];

/* In the tables: the labels are those of __SNIPPET(). */
#define __JUMP_SNIPPET(table, name, before, insn, after)		\
	asm(".irp name, " name "\n"					\
	    ".pushsection .text\n"					\
	    ".balign 16\n"						\
	    ".type kprobes_test_opt_\\name, @function\n"		\
	    "kprobes_test_opt_\\name:\n"				\
	    "880:\n"							\
	    ASM_ENDBR							\
	    before "\n"							\
	    "881:	" insn "\n"					\
	    "882:	" after "\n"					\
	    "	int3\n"							\
	    ".size kprobes_test_opt_\\name, . - 880b\n"			\
	    ".popsection\n"						\
	    ".pushsection .rodata.kprobes_test_names, \"a\"\n"		\
	    "883:	.asciz \"\\name\"\n"				\
	    ".popsection\n"						\
	    ".pushsection .rodata.kprobes_test_" table ", \"a\"\n"	\
	    "	.quad kprobes_test_opt_\\name, 883b\n"			\
	    "	.long 881b - 880b, 882b - 881b, 0, 0\n"			\
	    ".popsection\n"						\
	    ".endr\n")

#define FITTING(name, before, insn, after)	__JUMP_SNIPPET("fit", name, before, insn, after)
#define REFUSED(name, before, insn, after)	__JUMP_SNIPPET("unfit", name, before, insn, after)

/* Objtool does not understand all that a snippet does. */
#define UNVALIDATED							\
	".pushsection .discard.func_stack_frame_non_standard, \"aw\"\n"	\
	"	.quad 880b\n"						\
	".popsection\n"

/* An instruction of three bytes to probe, and one that follows, label 1. */
#define PROBED		"add %rdx, %rax"
#define FOLLOWING	"1: lea 1(%rax), %rax\n"

/* An entry of the jump table: as a NOP at label 2, or as a jump to @target. */
#define JUMP_LABEL(target)						\
	"2: .byte " __stringify(BYTES_NOP5) "\n"			\
	".pushsection __jump_table, \"aw\"\n"				\
	_ASM_ALIGN "\n"							\
	"	.long 2b - ., " target " - .\n"				\
	"	.quad kprobes_test_flipped_key - .\n"			\
	".popsection\n"

/* By its absolute address. */
#ifdef CONFIG_SMP
#define PER_CPU_ADDRESS(var)	"%gs:" #var
#else
#define PER_CPU_ADDRESS(var)	#var
#endif

/* Return to the address in r11, if cx is 1. Then what @before it has done is of use. */
#define GO_TO_R11							\
	"cmp $1, %ecx\n"						\
	"jne 3f\n"							\
	"push %r11\n"							\
	RETURN								\
	"3:\n"

/* Known to assembler by its name. */
extern struct static_key_false kprobes_test_flipped_key;
struct static_key_false kprobes_test_flipped_key = STATIC_KEY_FALSE_INIT;

asm(".pushsection .rodata.kprobes_test_fit, \"a\"\n"
	"kprobes_test_fit:\n"
	".popsection\n"
	".pushsection .rodata.kprobes_test_unfit, \"a\"\n"
	"kprobes_test_unfit:\n"
	".popsection\n");

/* What the jump displaces does the same elsewhere. */
FITTING("plain", "", PROBED, FOLLOWING RETURN);
FITTING("five_bytes", "", "mov $1066, %eax", "1: dec %rcx\n jg 1b\n" RETURN);
FITTING("jcc_first", "", "jc 1f", "lea 1(%rax), %rax\n lea 2(%rax), %rax\n 1:" RETURN);
FITTING("jcc_near", "", "{disp32} jnz 1f", "lea 1(%rax), %rax\n 1:" RETURN);
FITTING("jcc_middle", "", "push %rdx", "jp 1f\n lea 1(%rax), %rax\n 1: pop %rbx\n" RETURN);
FITTING("jcc_last", "", PROBED, "js 1f\n lea 1(%rax), %rax\n 1:" RETURN);
FITTING("jmp_first", "", "jmp 1f", "int3\n int3\n int3\n 1:" RETURN);
FITTING("jmp_near", "", "{disp32} jmp 1f", "int3\n 1:" RETURN);
FITTING("jmp_last", "", PROBED, "jmp 1f\n int3\n 1:" RETURN);
FITTING("tail_call", "", "jmp kprobes_test_callee", "");
FITTING("call", "", "call kprobes_test_callee", RETURN);
FITTING("call_last", "", PROBED, "call kprobes_test_callee\n" RETURN);
FITTING("call_reg_last", "lea kprobes_test_callee(%rip), %rbx", "lea 1(%rax), %rax",
	INDIRECT "call *%rbx\n" RETURN);
FITTING("ret_last", "", "lea 1(%rax), %rax", RETURN);
FITTING("ret_before_padding", "", PROBED, RETURN);
FITTING("rip_first", "", "mov kprobes_test_cell(%rip), %rax", RETURN);
FITTING("rip_last", "", PROBED, "lea kprobes_test_cell(%rip), %rbx\n" RETURN);
FITTING("stack", "", "push %rdx", "push %rsp\n pop %rbx\n sub %rsp, %rbx\n pop %rax\n" RETURN);
FITTING("flags", "", "pushfq", "pop %rbx\n" PROBED "\n" RETURN);
FITTING("cli", "", "cli", "lea 1(%rax), %rax\n" RETURN);
FITTING("sti", "", "sti", "lea 1(%rax), %rax\n" RETURN);
FITTING("std", "", "std", "lea 1(%rax), %rax\n cld\n" RETURN);
FITTING("rep_stos", "lea (%rsi), %rdi", "rep stosb", "lea 1(%rax), %rax\n" RETURN);

/*
 * What changes with the hit, and must not be seen of it. A need to reschedule comes and
 * goes: it is the topmost bit.
 */
#define PREEMPT_COUNT_OPERAND	PER_CPU_ADDRESS(pcpu_hot + 8)
#define SHOW_COUNT	"mov " PREEMPT_COUNT_OPERAND ", %r9d\n and $0x7fffffff, %r9d\n"
FITTING("count_read", "", "mov " PREEMPT_COUNT_OPERAND ", %eax", "and $0x7fffffff, %eax\n" RETURN);
FITTING("count_inc", "", "incl " PREEMPT_COUNT_OPERAND,
	SHOW_COUNT "decl " PREEMPT_COUNT_OPERAND "\n cmp %rsp, %rsp\n" RETURN);
FITTING("count_dec", "incl " PREEMPT_COUNT_OPERAND,
	"decl " PREEMPT_COUNT_OPERAND, SHOW_COUNT RETURN);
FITTING("count_add", "", "addl $0x100, " PREEMPT_COUNT_OPERAND,
	SHOW_COUNT "subl $0x100, " PREEMPT_COUNT_OPERAND "\n cmp %rsp, %rsp\n" RETURN);
FITTING("count_test", "", "testl $0x7fffffff, " PREEMPT_COUNT_OPERAND, "setz %al\n" RETURN);
FITTING("count_push", "", "pushq " PREEMPT_COUNT_OPERAND,
	"pop %rax\n and $0x7fffffff, %eax\n" RETURN);
FITTING("count_second", "", "lea 1(%rbx), %rbx",
	"mov " PREEMPT_COUNT_OPERAND ", %eax\n and $0x7fffffff, %eax\n" RETURN);

/* Only what follows the first byte must not be jumped to, up to the last one. */
FITTING("jcc_to_first", "cmp $1, %ecx\n je 881f\n inc %rbx", PROBED, FOLLOWING RETURN);
FITTING("jcc_behind", "", PROBED, FOLLOWING "2: dec %rcx\n jg 2b\n" RETURN);
FITTING("loop_behind", "inc %rcx", PROBED, FOLLOWING "2: inc %rbx\n loop 2b\n" RETURN);
FITTING("return_to_first", "call kprobes_test_callee", PROBED, FOLLOWING RETURN);
FITTING("label_to_first", JUMP_LABEL("881f"), PROBED, FOLLOWING RETURN);
FITTING("label_behind", JUMP_LABEL("4f"), PROBED, FOLLOWING "4:" RETURN);
FITTING("pointer_to_behind", ".pushsection .rodata\n .balign 8\n .quad 4f\n .popsection\n",
	PROBED, FOLLOWING "4:" ANNOTATE_NOENDBR RETURN);
FITTING("fixup_elsewhere", "3: mov (%rdi), %rbx", PROBED,
	FOLLOWING RETURN "int3\n 4:" RETURN _ASM_EXTABLE(3b, 4b));

/* Branches. */
REFUSED("jcc_back", "", PROBED, FOLLOWING "dec %rcx\n jg 1b\n" RETURN);
REFUSED("jcc_near_back", "", PROBED, FOLLOWING "dec %rcx\n {disp32} jg 1b\n" RETURN);
REFUSED("jmp_back", "", PROBED, FOLLOWING "dec %rcx\n jle 2f\n jmp 1b\n 2:" RETURN);
REFUSED("jmp_near_back", "", PROBED,
	FOLLOWING "dec %rcx\n jle 2f\n {disp32} jmp 1b\n 2:" RETURN);
REFUSED("jcc_forward", "cmp $1, %ecx\n je 1f", PROBED, FOLLOWING RETURN);
REFUSED("loop_back", "inc %rcx", PROBED, FOLLOWING "loop 1b\n" RETURN);
REFUSED("jrcxz_forward", "jrcxz 1f", PROBED, FOLLOWING RETURN);
REFUSED("call_back", "", PROBED,
	FOLLOWING "dec %rcx\n js 2f\n"
	"999: .pushsection .discard.intra_function_calls\n .long 999b\n .popsection\n"
	"call 1b\n 2:" RETURN UNVALIDATED);
REFUSED("from_cold_part", "cmp $1, %ecx\n je .Lkprobes_test_cold", PROBED,
	".Lkprobes_test_warm: lea 1(%rax), %rax\n" RETURN UNVALIDATED);

/* The part of that function which another symbol covers. */
asm(".pushsection .text\n"
	".balign 16\n"
	".type kprobes_test_cold_part, @function\n"
	"kprobes_test_cold_part:\n"
	"880:\n"
	"	int3\n"
	".Lkprobes_test_cold:\n"
	"	lea 7(%rax), %rax\n"
	"	jmp .Lkprobes_test_warm\n"
	".size kprobes_test_cold_part, . - 880b\n"
	UNVALIDATED
	".popsection\n");

/* What else execution comes from. */
REFUSED("endbr", "", "nop",
	"1: endbr64\n"
	".pushsection .rodata\n .long 1b - .\n .popsection\n" RETURN);
REFUSED("label", JUMP_LABEL("1f"), PROBED, FOLLOWING RETURN);
REFUSED("fixup", "3: mov (%rdi), %rbx", PROBED, FOLLOWING RETURN _ASM_EXTABLE(3b, 1b));
REFUSED("lea", "lea 1f(%rip), %r11\n" GO_TO_R11, PROBED,
	ANNOTATE_NOENDBR FOLLOWING RETURN UNVALIDATED);
REFUSED("mov", "mov $1f, %r11\n" GO_TO_R11, PROBED,
	ANNOTATE_NOENDBR FOLLOWING RETURN UNVALIDATED);
REFUSED("movabs", "movabs $1f, %r11\n" GO_TO_R11, PROBED,
	ANNOTATE_NOENDBR FOLLOWING RETURN UNVALIDATED);
REFUSED("push", "push $1f\n pop %r11\n" GO_TO_R11, PROBED,
	ANNOTATE_NOENDBR FOLLOWING RETURN UNVALIDATED);
REFUSED("rodata",
	".pushsection .rodata\n .balign 8\n 4: .quad 1f\n .popsection\n"
	"mov 4b(%rip), %r11\n" GO_TO_R11, PROBED,
	ANNOTATE_NOENDBR FOLLOWING RETURN UNVALIDATED);
REFUSED("ro_after_init",
	".pushsection .data..ro_after_init, \"aw\"\n .balign 8\n 4: .quad 1f\n .popsection\n"
	"mov 4b(%rip), %r11\n" GO_TO_R11, PROBED,
	ANNOTATE_NOENDBR FOLLOWING RETURN UNVALIDATED);
REFUSED("data",
	".pushsection .data\n .balign 8\n 4: .quad 1f\n .popsection\n"
	"mov 4b(%rip), %r11\n" GO_TO_R11, PROBED,
	ANNOTATE_NOENDBR FOLLOWING RETURN UNVALIDATED);
REFUSED("symbol", "cmp $1, %ecx\n je kprobes_test_inner_symbol", PROBED,
	"kprobes_test_inner_symbol: lea 1(%rax), %rax\n" RETURN UNVALIDATED);

/* An indirect jump that goes nobody knows where; here, nowhere. */
#define NEVER(insn)	"cmp $7, %ecx\n jne 3f\n" insn "\n int3\n 3:\n"

REFUSED("jump_table",
	".pushsection .rodata\n .balign 4\n 4: .long 1f - 4b\n .popsection\n"
	NEVER("push %rbx\n movslq 4b(%rip), %r11\n" INDIRECT "jmp *%r11"), PROBED,
	ANNOTATE_NOENDBR FOLLOWING RETURN UNVALIDATED);
#ifdef CONFIG_MITIGATION_RETPOLINE
REFUSED("thunk", NEVER("push %rbx\n jmp __x86_indirect_thunk_r11"), PROBED,
	FOLLOWING RETURN UNVALIDATED);
#endif

/* Instructions that cannot be run elsewhere. */
REFUSED("call_middle", "lea kprobes_test_callee(%rip), %rbx", "push %rdx",
	INDIRECT "call *%rbx\n pop %rdx\n lea 1(%rax), %rax\n" RETURN);
REFUSED("return_of_call", "lea kprobes_test_callee(%rip), %rbx", INDIRECT "call *%rbx",
	FOLLOWING RETURN);
REFUSED("loop", "", PROBED, "loop 4f\n lea 1(%rax), %rax\n 4:" RETURN);
REFUSED("jrcxz", "", PROBED, "jrcxz 4f\n lea 1(%rax), %rax\n 4:" RETURN);
REFUSED("trap", "stc", "jc 4f", "ud2\n nop\n 4:" RETURN);
REFUSED("extable_first", "", "mov (%rdi), %rbx",
	"lea 1(%rax), %rax\n" RETURN "int3\n 4:" RETURN _ASM_EXTABLE(881b, 4b));
REFUSED("extable_last", "", PROBED,
	"3: mov (%rdi), %rbx\n" RETURN "int3\n 4:" RETURN _ASM_EXTABLE(3b, 4b));

/* What is of somebody else. */
REFUSED("next_function", "", PROBED, RETURN "kprobes_test_next_function:" RETURN UNVALIDATED);
REFUSED("label_inside", "", "nop", JUMP_LABEL("4f") FOLLOWING "4:" RETURN);
REFUSED("label_last", "", PROBED, JUMP_LABEL("4f") FOLLOWING "4:" RETURN);
#if defined(CONFIG_HAVE_STATIC_CALL_INLINE) && defined(MODULE)
REFUSED("static_call", "push %rsi", PROBED, "call __SCT__kprobes_test_call\n pop %rsi\n" RETURN);
#endif
#ifdef CONFIG_FTRACE_MCOUNT_USE_CC
REFUSED("ftrace", "", "nop",
	"2: call __fentry__\n"
	".pushsection __mcount_loc, \"a\"\n .balign 8\n .quad 2b\n .popsection\n" RETURN);
#endif

asm(".pushsection .rodata.kprobes_test_fit, \"a\"\n"
	"kprobes_test_fit_end:\n"
	".popsection\n"
	".pushsection .rodata.kprobes_test_unfit, \"a\"\n"
	"kprobes_test_unfit_end:\n"
	".popsection\n");

static const void *next_snippet(const struct snippet *next, const struct snippet *end, char *desc)
{
	if (next == end)
		return NULL;
	strscpy(desc, next->name, KUNIT_PARAM_DESC_SIZE);
	return next;
}

static const void *fit_gen_params(const void *prev, char *desc)
{
	return next_snippet(prev ? (const struct snippet *)prev + 1 : kprobes_test_fit,
			    kprobes_test_fit_end, desc);
}

static const void *unfit_gen_params(const void *prev, char *desc)
{
	return next_snippet(prev ? (const struct snippet *)prev + 1 : kprobes_test_unfit,
			    kprobes_test_unfit_end, desc);
}

static const struct snippet *find_fit(const char *name)
{
	const struct snippet *snippet = kprobes_test_fit;

	while (strcmp(snippet->name, name))
		snippet++;
	return snippet;
}

/* The text of the snippet under test, from the instruction on. */
static u8 unprobed_insn[TEXT_BYTES];

static const u8 *insn_text(const struct snippet *snippet)
{
	return (const u8 *)insn_address(snippet);
}

static void keep_text(const struct snippet *snippet)
{
	memcpy(unprobed_insn, insn_text(snippet), TEXT_BYTES);
}

/* What follows a breakpoint or a jump is as it was. */
static void expect_text(struct kunit *test, const struct snippet *snippet, unsigned int changed)
{
	KUNIT_EXPECT_MEMEQ(test, insn_text(snippet) + changed, unprobed_insn + changed,
			   TEXT_BYTES - changed);
}

static void displaced_insns_do_the_same(struct kunit *test)
{
	const struct snippet *snippet = test->param_value;
	const struct cpu_state *expected = expect_what_is_unprobed(test, snippet);
	struct kprobe *a = snippet_probe('a', snippet, false);

	keep_text(snippet);
	ASSERT_REGISTERED(test, a);
	ASSERT_OPTIMIZED(test, a);
	KUNIT_EXPECT_EQ(test, *insn_text(snippet), JMP32_INSN_OPCODE);
	expect_text(test, snippet, JMP32_INSN_SIZE);
	expect_same(test, snippet, expected, false);
	KUNIT_EXPECT_EQ(test, a->nmissed, 0);

	unregister_kprobe(a);
	expect_text(test, snippet, 0);
	set_input(0);
	clear_journal();
	run(snippet);
	KUNIT_EXPECT_STREQ(test, journal, "");
	expect_state(test, &expected[0], "probed no more", 0);
}

static void expect_same_with_post(struct kunit *test, const struct snippet *snippet,
				  const struct cpu_state *expected, const char *events)
{
	for (unsigned int i = 0; i < INPUTS; i++) {
		set_input(i);
		clear_journal();
		run(snippet);
		KUNIT_ASSERT_STREQ(test, journal, events);
		KUNIT_ASSERT_EQ(test, pre_ip, insn_address(snippet) + 1);
		expect_state(test, &expected[i], "with a post handler", i);
	}
}

/* The first one runs between the handlers, the others after them. */
static void displaced_insns_do_the_same_with_post_handlers(struct kunit *test)
{
	const struct snippet *snippet = test->param_value;
	const struct cpu_state *expected = expect_what_is_unprobed(test, snippet);
	struct kprobe *a = snippet_probe('a', snippet, true);
	struct kprobe *b = snippet_probe('b', snippet, false);

	ASSERT_REGISTERED(test, a);
	expect_same_with_post(test, snippet, expected, "aA");
	wait_for_kprobe_optimizer();
	expect_same_with_post(test, snippet, expected, "aA");
	ASSERT_REGISTERED(test, b);
	wait_for_kprobe_optimizer();
	expect_same_with_post(test, snippet, expected, "baA");
}

/* Also where the detour skips the handlers, and where the breakpoint leads to the detour. */
static void skipped_displaced_insns_do_the_same(struct kunit *test)
{
	const struct snippet *snippet = test->param_value;
	struct kprobe *a = probe('a', TRACED->symbol);
	struct kprobe *b = snippet_probe('b', snippet, false);
	struct cpu_state *expected = expect_what_is_unprobed(test, snippet);

	/* In a handler some do other things than elsewhere, probed or not. */
	register_skipping(test, a, snippet);
	for (unsigned int off = 1; off < INPUTS; off += 2) {
		set_input(off);
		EXPECT_CALL(test, TRACED, "a");
		expected[off] = state;
	}
	ASSERT_REGISTERED(test, b);
	ASSERT_OPTIMIZED(test, b);
	expect_skipped(test, a, b, expected, "a");
}

/* On the way to a jump and back there are moments of which none must be seen. */
static void insns_do_the_same_while_they_become_optimized(struct kunit *test)
{
	const struct snippet *snippet = test->param_value;
	const struct cpu_state *expected = expect_what_is_unprobed(test, snippet);
	struct kprobe *a = snippet_probe('a', snippet, false);
	unsigned int rounds = 0;

	ASSERT_REGISTERED(test, a);
	do {
		expect_same(test, snippet, expected, false);
		cond_resched();
		if (rounds++ == 1000)
			wait_for_kprobe_optimizer();
	} while (!kprobe_optimized(a) && rounds < 1002);
	ASSERT_OPTIMIZED(test, a);
	expect_same(test, snippet, expected, false);
}

static void unfit_insn_keeps_its_breakpoint(struct kunit *test)
{
	const struct snippet *snippet = test->param_value;
	const struct cpu_state *expected = expect_what_is_unprobed(test, snippet);
	struct kprobe *a = snippet_probe('a', snippet, false);
	struct kprobe *b = snippet_probe('b', find_fit("plain"), false);

	keep_text(snippet);
	ASSERT_REGISTERED(test, a);
	ASSERT_REGISTERED(test, b);
	ASSERT_OPTIMIZED(test, b);
	KUNIT_ASSERT_FALSE(test, kprobe_optimized(a));	/* or it cannot be run */
	KUNIT_EXPECT_EQ(test, *insn_text(snippet), INT3_INSN_OPCODE);
	expect_text(test, snippet, INT3_INSN_SIZE);

	for (unsigned int i = 0; i < INPUTS; i++) {
		set_input(i);
		clear_journal();
		run(snippet);
		expect_state(test, &expected[i], "with a breakpoint", i);
	}
	unregister_kprobe(a);
	expect_text(test, snippet, 0);
}

/* --------------------------------------------------------------- registers */

static int see_and_change_in_detour(struct test_probe *p, struct pt_regs *regs)
{
	seen_stack = *(unsigned long *)regs->sp;
	return see_and_change(p, regs);
}

static void handlers_of_optimized_see_and_change_registers(struct kunit *test)
{
	const struct snippet *snippet = find_fit("plain"), *ret = find_snippet("ret");
	struct kprobe *a = snippet_probe('a', snippet, false);
	struct kprobe *b = probe('b', NULL);
	struct cpu_state given;

	test_probe('a')->act = see_and_change_in_detour;
	test_probe('a')->data = 1000;
	ASSERT_REGISTERED(test, a);
	for (unsigned int shared = 0; shared < 2; shared++) {
		ASSERT_OPTIMIZED(test, a);
		for (unsigned int i = 0; i < INPUTS; i++) {
			set_input(i);
			given = state;
			run(snippet);
			expect_seen(test, &given);
			KUNIT_EXPECT_EQ(test, seen.ip, insn_address(snippet) + 1);
			KUNIT_EXPECT_EQ(test, seen.cs, __KERNEL_CS);
			KUNIT_EXPECT_EQ(test, seen.ss, __KERNEL_DS);
			KUNIT_EXPECT_EQ(test, seen.orig_ax, -1UL);
			KUNIT_EXPECT_EQ(test, seen_stack, ret->code + ret->target);
			KUNIT_EXPECT_EQ(test, state.ax, 0x0101010101010101 + 1000 + 1);
			KUNIT_EXPECT_EQ(test, state.dx, 1000);
			KUNIT_EXPECT_EQ(test, state.cx, 1000);
			KUNIT_EXPECT_EQ(test, state.di, (unsigned long)&state.memory[3]);
			KUNIT_EXPECT_EQ(test, state.bx, given.bx);
			KUNIT_EXPECT_EQ(test, state.bp, given.bp);
			KUNIT_EXPECT_EQ(test, state.r15, given.r15);
			KUNIT_EXPECT_EQ(test, state.flags & X86_EFLAGS_IF,
					given.flags & X86_EFLAGS_IF);
		}
		b->addr = a->addr;
		if (!shared)
			ASSERT_REGISTERED(test, b);
	}
}

#define CHANGED_FLAGS	(X86_EFLAGS_CF | X86_EFLAGS_ZF | X86_EFLAGS_SF | X86_EFLAGS_OF | \
			 X86_EFLAGS_PF | X86_EFLAGS_AF | X86_EFLAGS_DF)

/* What the handler sees is at a function's entry: return from there. */
static int return_at_once(struct test_probe *p, struct pt_regs *regs)
{
	regs->ip = *(unsigned long *)regs->sp;
	regs->sp += sizeof(long);
	regs->ax = 1066;
	regs->r15 = 1485;
	regs->flags ^= p->data;
	return 1;
}

static void expect_return_at_once(struct kunit *test, const struct snippet *snippet,
				  const char *how)
{
	struct cpu_state expected;

	for (unsigned int i = 0; i < INPUTS; i++) {
		set_input(i);
		expected = state;
		expected.ax = 1066;
		expected.r15 = 1485;
		expected.flags ^= test_probe('a')->data;
		run(snippet);
		expect_state(test, &expected, how, i);
	}
}

static void path_of_optimized_is_changed_with_stack_and_flags(struct kunit *test)
{
	const struct snippet *snippet = find_fit("plain");
	struct kprobe *a = snippet_probe('a', snippet, false);
	struct kprobe *b = snippet_probe('b', snippet, false);

	test_probe('a')->act = return_at_once;
	for (int flip = 0; flip < 2; flip++) {
		test_probe('a')->data = flip ? CHANGED_FLAGS | X86_EFLAGS_IF : CHANGED_FLAGS;
		a->addr = (kprobe_opcode_t *)insn_address(snippet);
		b->addr = a->addr;
		ASSERT_REGISTERED(test, a);
		expect_return_at_once(test, snippet, "with a breakpoint");
		ASSERT_OPTIMIZED(test, a);
		expect_return_at_once(test, snippet, "optimised");
		unregister_kprobe(a);
		ASSERT_REGISTERED(test, b);
		ASSERT_REGISTERED(test, a);
		ASSERT_OPTIMIZED(test, a);
		clear_journal();
		expect_return_at_once(test, snippet, "optimised, of two");
		KUNIT_EXPECT_NULL(test, strchr(journal, 'b'));
		unregister_kprobe(a);
		unregister_kprobe(b);
	}
}

static void go_to_callee_after(struct kprobe *kp, struct pt_regs *regs, unsigned long flags)
{
	const struct snippet *call = find_snippet("call");

	on_post(kp, regs, flags);
	regs->ip = call->code + call->target;
	regs->bx = 1848;
}

/* The probed instruction has run, the rest of the function has not: the callee returns for it. */
static void expect_callee_after(struct kunit *test, const char *events, const char *how)
{
	struct cpu_state expected;

	for (unsigned int i = 0; i < INPUTS; i++) {
		set_input(i);
		expected = state;
		expected.ax += expected.dx + 1;
		expected.bx = 1848;
		clear_journal();
		run(find_fit("plain"));
		KUNIT_ASSERT_STREQ(test, journal, events);
		expected.flags = state.flags;
		expected.r13 = state.r13;
		expect_state(test, &expected, how, i);
	}
}

static void path_of_optimized_is_changed_after(struct kunit *test)
{
	const struct snippet *snippet = find_fit("plain");
	struct kprobe *a = snippet_probe('a', snippet, true);
	struct kprobe *b = snippet_probe('b', snippet, false);

	a->post_handler = go_to_callee_after;
	ASSERT_REGISTERED(test, a);
	expect_callee_after(test, "aA", "with a breakpoint");
	ASSERT_OPTIMIZED(test, a);
	expect_callee_after(test, "aA", "optimised");
	ASSERT_REGISTERED(test, b);
	ASSERT_OPTIMIZED(test, b);
	expect_callee_after(test, "baA", "optimised, of two");
}

/* -------------------------------------------------------------- neighbours */

static struct kprobe *plain_frame_probe(char name, unsigned int insn)
{
	struct kprobe *kp = frame_probe(name, insn);

	kp->addr = NULL;
	kp->post_handler = NULL;
	return kp;
}

static const struct place frame_place = {
	"kprobes_test_frame", kprobes_test_frame, kprobes_test_frame, ARG + 1
};

/* A jump at the first instruction displaces it and the next two. */
#define DISPLACED_INSNS	3

/* After these the function may end before a jump would. */
#define JUMP_INSNS	4

static void neighbour_comes_and_goes(struct kunit *test)
{
	struct kprobe *a = plain_frame_probe('a', 0), *b;

	ASSERT_REGISTERED(test, a);
	for (unsigned int insn = 1; insn < FRAME_INSNS; insn++) {
		bool inside = insn < DISPLACED_INSNS;

		ASSERT_OPTIMIZED(test, a);
		b = plain_frame_probe('b', insn);
		ASSERT_REGISTERED(test, b);
		KUNIT_EXPECT_EQ(test, kprobe_optimized(a), !inside);
		EXPECT_CALL(test, &frame_place, "ab");
		KUNIT_EXPECT_TRUE(test, becomes_optimized(b) || insn >= JUMP_INSNS);
		KUNIT_EXPECT_EQ(test, kprobe_optimized(a), !inside);
		EXPECT_CALL(test, &frame_place, "ab");

		KUNIT_EXPECT_EQ(test, disable_kprobe(b), 0);
		EXPECT_CALL(test, &frame_place, "a");
		ASSERT_OPTIMIZED(test, a);
		EXPECT_CALL(test, &frame_place, "a");
		KUNIT_EXPECT_EQ(test, enable_kprobe(b), 0);
		KUNIT_EXPECT_EQ(test, kprobe_optimized(a), !inside);
		EXPECT_CALL(test, &frame_place, "ab");

		unregister_kprobe(b);
		EXPECT_CALL(test, &frame_place, "a");
	}
	ASSERT_OPTIMIZED(test, a);
	EXPECT_CALL(test, &frame_place, "a");
}

static void probe_comes_before_an_optimized_one(struct kunit *test)
{
	struct kprobe *a, *b = plain_frame_probe('b', 2);

	ASSERT_REGISTERED(test, b);
	for (unsigned int insn = 0; insn < 2; insn++) {
		ASSERT_OPTIMIZED(test, b);
		a = plain_frame_probe('a', insn);
		ASSERT_REGISTERED(test, a);
		EXPECT_CALL(test, &frame_place, "ab");
		wait_for_kprobe_optimizer();
		KUNIT_EXPECT_FALSE(test, kprobe_optimized(a));
		KUNIT_EXPECT_TRUE(test, kprobe_optimized(b));
		EXPECT_CALL(test, &frame_place, "ab");
		unregister_kprobe(b);
		ASSERT_OPTIMIZED(test, a);
		EXPECT_CALL(test, &frame_place, "a");
		b->addr = NULL;
		ASSERT_REGISTERED(test, b);
		KUNIT_EXPECT_FALSE(test, kprobe_optimized(a));
		EXPECT_CALL(test, &frame_place, "ab");
		unregister_kprobe(a);
	}
}

/* All at once, each one in the way of those before it. */
static void all_neighbours_are_probed(struct kunit *test)
{
	struct kprobe *all[JUMP_INSNS];

	for (unsigned int i = 0; i < JUMP_INSNS; i++)
		all[i] = plain_frame_probe('a' + i, i);
	KUNIT_ASSERT_EQ(test, register_kprobes(all, JUMP_INSNS), 0);
	EXPECT_CALL(test, &frame_place, "abcd");
	ASSERT_OPTIMIZED(test, all[JUMP_INSNS - 1]);
	for (unsigned int i = 0; i < JUMP_INSNS - 1; i++)
		KUNIT_EXPECT_FALSE(test, kprobe_optimized(all[i]));
	EXPECT_CALL(test, &frame_place, "abcd");
	unregister_kprobes(all + 1, JUMP_INSNS - 1);
	EXPECT_CALL(test, &frame_place, "a");
	ASSERT_OPTIMIZED(test, all[0]);
	EXPECT_CALL(test, &frame_place, "a");
}

/* The last byte of a jump is the first one of an instruction. */
u64 kprobes_test_at_four(u64 arg);

asm(".pushsection .text\n"
	".balign 16\n"
	".globl kprobes_test_at_four\n"
	".type kprobes_test_at_four, @function\n"
	"kprobes_test_at_four:\n"
	ASM_ENDBR
	"	lea 1(%rdi), %rax\n"
	"	add $2, %rax\n"
	"	lea 4(%rax), %rax\n"
	RETURN
	"	int3\n"
	".size kprobes_test_at_four, . - kprobes_test_at_four\n"
	".popsection\n");

static void neighbour_is_at_the_last_byte(struct kunit *test)
{
	static const struct place place = {
		"kprobes_test_at_four", kprobes_test_at_four, kprobes_test_at_four, ARG + 7
	};
	const u8 *code = text(&place) + ENDBR_SIZE;
	struct kprobe *a = probe('a', NULL), *b = probe('b', NULL);
	u8 original[TEXT_BYTES];

	memcpy(original, code, TEXT_BYTES);
	a->addr = (kprobe_opcode_t *)code;
	b->addr = (kprobe_opcode_t *)code + 4;
	ASSERT_REGISTERED(test, a);
	for (int i = 0; i < 2; i++) {
		ASSERT_OPTIMIZED(test, a);
		EXPECT_CALL(test, &place, "a");
		ASSERT_REGISTERED(test, b);
		KUNIT_EXPECT_FALSE(test, kprobe_optimized(a));
		KUNIT_EXPECT_EQ(test, b->opcode, original[4]);
		KUNIT_EXPECT_EQ(test, code[0], INT3_INSN_OPCODE);
		KUNIT_EXPECT_MEMEQ(test, code + 1, original + 1, 3);
		EXPECT_CALL(test, &place, "ab");
		KUNIT_EXPECT_FALSE(test, becomes_optimized(a));
		EXPECT_CALL(test, &place, "ab");
		unregister_kprobe(b);
		EXPECT_CALL(test, &place, "a");
	}
	ASSERT_OPTIMIZED(test, a);
	unregister_kprobe(a);
	KUNIT_EXPECT_MEMEQ(test, code, original, TEXT_BYTES);
}

/* --------------------------------------------------- what passes of itself */

/**
 * struct obstacle - What keeps a jump away for a while, though nothing is wrong with the text
 * @desc:	What it is like.
 * @symbol:	A function that the optimiser calls,
 * @result:	and what that returns meanwhile.
 */
struct obstacle {
	const char *desc;
	const char *symbol;
	long result;
};

static const struct obstacle obstacles[] = {
	{ "no memory", "get_optinsn_slot_for", 0 },
	{ "breakpoint of kgdb", "arch_check_optimized_kprobe", -EAGAIN },
};

KUNIT_ARRAY_PARAM_DESC(obstacle, obstacles, desc);

/* Nothing else. */
void kprobes_test_return(void);

asm(".pushsection .text\n"
	".balign 16\n"
	".globl kprobes_test_return\n"
	".type kprobes_test_return, @function\n"
	"kprobes_test_return:\n"
	ASM_ENDBR
	RETURN
	"	int3\n"
	".size kprobes_test_return, . - kprobes_test_return\n"
	".popsection\n");

static long obstacle_result;
static bool obstacle_is_there;
static atomic_t obstructions;

static int obstruct(struct kprobe *kp, struct pt_regs *regs)
{
	if (!READ_ONCE(obstacle_is_there))
		return 0;
	atomic_inc(&obstructions);
	regs->ax = obstacle_result;
	regs->ip = (unsigned long)kprobes_test_return;
	return 1;
}

static void jump_comes_when_an_obstacle_has_gone(struct kunit *test)
{
	const struct obstacle *obstacle = test->param_value;
	struct kprobe *a = probe('a', TARGET->symbol);
	struct kprobe *b = probe('b', obstacle->symbol);
	unsigned long end;

	b->pre_handler = obstruct;
	obstacle_result = obstacle->result;
	WRITE_ONCE(obstacle_is_there, true);
	atomic_set(&obstructions, 0);
	ASSERT_REGISTERED(test, b);
	ASSERT_REGISTERED(test, a);
	msleep(500);
	KUNIT_EXPECT_FALSE(test, kprobe_optimized(a));
	KUNIT_EXPECT_GT(test, atomic_read(&obstructions), 0);
	EXPECT_CALL(test, TARGET, "a");
	WRITE_ONCE(obstacle_is_there, false);
	for (end = jiffies + 15 * HZ; !kprobe_optimized(a) && time_before(jiffies, end);)
		msleep(100);
	KUNIT_EXPECT_TRUE(test, kprobe_optimized(a));
	EXPECT_CALL(test, TARGET, "a");
}

/* ------------------------------------------------------------ many probes */

#define MANY	1000

/* That many instructions of as many bytes as a jump has. */
u64 kprobes_test_many(u64 arg);

asm(".pushsection .text\n"
	".balign 16\n"
	".globl kprobes_test_many\n"
	".type kprobes_test_many, @function\n"
	"kprobes_test_many:\n"
	ASM_ENDBR
	"	xor %eax, %eax\n"
	".Lkprobes_test_many:\n"
	".rept " __stringify(MANY) "\n"
	"	lea 1(%rax, %rdi), %rax\n"
	".endr\n"
	RETURN
	"	int3\n"
	".size kprobes_test_many, . - kprobes_test_many\n"
	".popsection\n");

static unsigned int many_hits;

static int count_one_of_many(struct kprobe *kp, struct pt_regs *regs)
{
	if (current == tester)
		many_hits++;
	return 0;
}

static void expect_many(struct kunit *test, unsigned int hits)
{
	many_hits = 0;
	KUNIT_EXPECT_EQ(test, kprobes_test_many(ARG), MANY * (ARG + 1));
	KUNIT_EXPECT_EQ(test, many_hits, hits);
}

static unsigned int count_optimized(struct kprobe **all, unsigned int n)
{
	unsigned int optimized = 0;

	while (n--)
		optimized += kprobe_optimized(all[n]);
	return optimized;
}

static void many_probes_are_optimized(struct kunit *test)
{
	struct kprobe **all = kunit_kcalloc(test, MANY, sizeof(*all), GFP_KERNEL);
	struct kprobe *kps = kunit_kcalloc(test, MANY, sizeof(*kps), GFP_KERNEL);
	const unsigned int offset = ENDBR_SIZE + 2, size = JMP32_INSN_SIZE;
	u8 *code = kunit_kmalloc(test, MANY * size, GFP_KERNEL);
	const u8 *start = (const u8 *)kprobes_test_many;

	KUNIT_ASSERT_TRUE(test, all && kps && code);
	OPTIMIZER_HIDE_VAR(start);	/* objtool wants ENDBRs at what it knows of */
	start += offset;
	memcpy(code, start, MANY * size);
	for (unsigned int i = 0; i < MANY; i++) {
		kps[i].addr = (kprobe_opcode_t *)start + i * size;
		kps[i].pre_handler = count_one_of_many;
		all[i] = &kps[i];
	}
	for (int round = 0; round < 2; round++) {
		KUNIT_ASSERT_EQ(test, register_kprobes(all, MANY), 0);
		expect_many(test, MANY);
		wait_for_kprobe_optimizer();
		KUNIT_EXPECT_EQ(test, count_optimized(all, MANY), MANY);
		expect_many(test, MANY);
		unregister_kprobes(all + MANY / 2, MANY / 2);
		KUNIT_EXPECT_EQ(test, count_optimized(all, MANY), MANY / 2);
		expect_many(test, MANY / 2);
		unregister_kprobes(all, MANY / 2);
		KUNIT_EXPECT_EQ(test, count_optimized(all, MANY), 0);
		KUNIT_EXPECT_MEMEQ(test, start, code, MANY * size);
		expect_many(test, 0);
	}
}

/* ------------------------------------------------------------------ under load */

/*
 * A function with a jump label, whose target is inside of what a jump at the first
 * probed instruction would displace, and with one where there can be a jump.
 */
u64 kprobes_test_flipped(u64 arg);

asm(".pushsection .text\n"
	".balign 16\n"
	".globl kprobes_test_flipped\n"
	".type kprobes_test_flipped, @function\n"
	"kprobes_test_flipped:\n"
	ASM_ENDBR
	"	mov %rdi, %rax\n"
	JUMP_LABEL("1f")
	".Lkprobes_test_flipped:\n"
	"	lea (%rax, %rax), %rax\n"
	"1:	lea 1(%rax), %rax\n"
	"	lea 1(%rax), %rax\n"
	RETURN
	"	int3\n"
	".size kprobes_test_flipped, . - kprobes_test_flipped\n"
	".popsection\n");

/* From the function's start. */
#define FLIPPED_PROBED	(ENDBR_SIZE + 3 + JMP32_INSN_SIZE)
#define FLIPPED_FIT	(FLIPPED_PROBED + 4 + 4)

#define FLIPS	200

static void jump_label_is_flipped_under_load(struct kunit *test)
{
	unsigned long start = (unsigned long)kprobes_test_flipped;
	struct kprobe *blocked, *fit;

	OPTIMIZER_HIDE_VAR(start);
	prepare_counting(test);
	blocked = counting_probe(0, start + FLIPPED_PROBED);
	fit = counting_probe(1, start + FLIPPED_FIT);
	ASSERT_REGISTERED(test, blocked);
	ASSERT_REGISTERED(test, fit);
	begin_load(test, kprobes_test_flipped, 2 * ARG + 2, ARG + 2);
	for (unsigned int i = 0; i < FLIPS; i++) {
		if (i % 2)
			static_branch_disable(&kprobes_test_flipped_key);
		else
			static_branch_enable(&kprobes_test_flipped_key);
		if (i % 20 == 5) {
			ASSERT_OPTIMIZED(test, fit);
			KUNIT_ASSERT_FALSE(test, kprobe_optimized(blocked));
		}
		if (i % 20 == 15) {
			KUNIT_ASSERT_EQ(test, disable_kprobe(blocked), 0);
			KUNIT_ASSERT_EQ(test, enable_kprobe(blocked), 0);
		}
		usleep_range(2000, 4000);
	}
	static_branch_disable(&kprobes_test_flipped_key);
	ASSERT_OPTIMIZED(test, fit);
	expect_load(test);
	KUNIT_EXPECT_GT(test, atomic_read(&load.others), 0);
	KUNIT_EXPECT_EQ(test, blocked->nmissed + fit->nmissed, 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&counting[1].hits),
			atomic_read(&load.results) + atomic_read(&load.others));
	/* It was disabled at times. */
	KUNIT_EXPECT_GT(test, atomic_read(&counting[0].hits), 0);
	KUNIT_EXPECT_LE(test, atomic_read(&counting[0].hits), atomic_read(&load.results));
}

/* While the key is flipped nothing else happens: each call is a hit. */
static void hits_are_counted_while_a_jump_label_is_flipped(struct kunit *test)
{
	unsigned long start = (unsigned long)kprobes_test_flipped;
	struct kprobe *blocked;

	OPTIMIZER_HIDE_VAR(start);
	prepare_counting(test);
	blocked = counting_probe(0, start + FLIPPED_PROBED);
	ASSERT_REGISTERED(test, blocked);
	wait_for_kprobe_optimizer();
	begin_load(test, kprobes_test_flipped, 2 * ARG + 2, ARG + 2);
	for (unsigned int i = 0; i < FLIPS; i++) {
		if (i % 2)
			static_branch_disable(&kprobes_test_flipped_key);
		else
			static_branch_enable(&kprobes_test_flipped_key);
		usleep_range(1000, 2000);
	}
	static_branch_disable(&kprobes_test_flipped_key);
	expect_load(test);
	KUNIT_EXPECT_FALSE(test, kprobe_optimized(blocked));
	KUNIT_EXPECT_GT(test, atomic_read(&load.others), 0);
	KUNIT_EXPECT_EQ(test, blocked->nmissed, 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&counting[0].hits), atomic_read(&load.results));
}

static void do_nothing_after(struct kprobe *kp, struct pt_regs *regs, unsigned long flags)
{
}

/* Of two ftrace_ops, the one with post handlers and the one without, one counts each call. */
static void hits_are_counted_while_post_handlers_come_and_go(struct kunit *test)
{
	struct kprobe *a, *b;

	if (!IS_ENABLED(CONFIG_KPROBES_ON_FTRACE))
		kunit_skip(test, "no probes through ftrace");
	prepare_counting(test);
	a = counting_probe(0, (unsigned long)text(TRACED));
	b = counting_probe(1, (unsigned long)text(TRACED));
	b->post_handler = do_nothing_after;
	ASSERT_REGISTERED(test, a);
	begin_load(test, call_mktime64, TRACED->result, TRACED->result);
	for (unsigned int i = 0; i < 50; i++) {
		ASSERT_REGISTERED(test, b);
		usleep_range(100, 2000);
		unregister_kprobe(b);
	}
	expect_load(test);
	kunit_release_action(test, unregister_counting, NULL);
	KUNIT_EXPECT_EQ(test, a->nmissed, 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&counting[0].hits), atomic_read(&load.results));
}

#define STORM	(2 * HZ)

/* Probes of one function come and go: of what a jump displaces, with it, without it. */
static void stir(struct kunit *test, unsigned int n)
{
	static const unsigned int insns[] = { 0, 0, 2 };
	unsigned int i = n % ARRAY_SIZE(counting);
	struct kprobe *kp = &counting[i].kp;
	unsigned long start = (unsigned long)kprobes_test_frame;

	OPTIMIZER_HIDE_VAR(start);
	start += ENDBR_SIZE;
	switch (n / ARRAY_SIZE(counting) % 7) {
	case 0:
	case 4:
		if (is_linked(kp))
			break;
		counting_probe(i, start + frame_offsets[insns[i]]);
		kp->flags = 0;
		kp->post_handler = n % 5 == 3 ? do_nothing_after : NULL;
		KUNIT_ASSERT_EQ(test, register_kprobe(kp), 0);
		break;
	case 1:
		if (is_linked(kp))
			KUNIT_ASSERT_EQ(test, disable_kprobe(kp), 0);
		break;
	case 2:
		if (is_linked(kp))
			KUNIT_ASSERT_EQ(test, enable_kprobe(kp), 0);
		break;
	case 3:
		if (n % 2)
			wait_for_kprobe_optimizer();
		break;
	case 5:
		usleep_range(100, 60 * 1000);
		break;
	case 6:
		if (n % 11)
			unregister_kprobe(kp);
		break;
	}
}

static void probes_come_and_go_under_load(struct kunit *test)
{
	unsigned long end = jiffies + STORM;
	struct kprobe *a = plain_frame_probe('a', 0);
	unsigned int optimized = 0;
	u8 code[TEXT_BYTES];

	memcpy(code, text(&frame_place), sizeof(code));
	prepare_counting(test);
	begin_load(test, kprobes_test_frame, ARG + 1, ARG + 1);
	for (unsigned int n = 0; time_before(jiffies, end); n++) {
		stir(test, n);
		optimized += count_optimized((struct kprobe *[]){ &counting[0].kp, &counting[1].kp,
								  &counting[2].kp }, 3);
	}
	kunit_release_action(test, unregister_counting, NULL);
	KUNIT_EXPECT_MEMEQ(test, text(&frame_place), code, sizeof(code));
	expect_load(test);
	KUNIT_EXPECT_GT(test, optimized, 0);
	for (unsigned int i = 0; i < ARRAY_SIZE(counting); i++)
		KUNIT_EXPECT_GT(test, atomic_read(&counting[i].hits), 0);
	ASSERT_REGISTERED(test, a);
	ASSERT_OPTIMIZED(test, a);
	EXPECT_CALL(test, &frame_place, "a");
}

/*
 * The hash grows and shrinks, and hits go on. Should one still look at the old one when its
 * memory is freed, only KASAN knows for sure.
 */
static void crowd_comes_and_goes_under_load(struct kunit *test)
{
	struct kprobe **all = kunit_kcalloc(test, MANY, sizeof(*all), GFP_KERNEL);
	struct kprobe *kps = kunit_kcalloc(test, MANY, sizeof(*kps), GFP_KERNEL);
	unsigned long start = (unsigned long)kprobes_test_many;
	struct kprobe *a;

	KUNIT_ASSERT_TRUE(test, all && kps);
	OPTIMIZER_HIDE_VAR(start);
	for (unsigned int i = 0; i < MANY; i++) {
		kps[i].addr = (kprobe_opcode_t *)start + ENDBR_SIZE + 2 + i * JMP32_INSN_SIZE;
		kps[i].pre_handler = count_one_of_many;
		all[i] = &kps[i];
	}
	prepare_counting(test);
	a = counting_probe(0, (unsigned long)text(&frame_place) + ENDBR_SIZE);
	a->post_handler = do_nothing_after;
	ASSERT_REGISTERED(test, a);
	begin_load(test, kprobes_test_frame, ARG + 1, ARG + 1);
	for (int i = 0; i < 10; i++) {
		KUNIT_ASSERT_EQ(test, register_kprobes(all, MANY), 0);
		unregister_kprobes(all, MANY);
		msleep(20);
	}
	expect_load(test);
	KUNIT_EXPECT_EQ(test, a->nmissed, 0);
	KUNIT_EXPECT_EQ(test, atomic_read(&counting[0].hits), atomic_read(&load.results));
}

#ifdef CONFIG_HOTPLUG_CPU
static int stir_for_long(void *test)
{
	for (unsigned int n = 0; !READ_ONCE(load.stop); n++)
		stir(test, n);
	return 0;
}

static void end_hotplug(void *cpu)
{
	add_cpu((unsigned long)cpu);
}

static void cpus_come_and_go_under_load(struct kunit *test)
{
	unsigned long cpu = cpumask_last(cpu_online_mask);
	struct kprobe *a = plain_frame_probe('a', 0);
	struct task_struct *task;

	if (num_online_cpus() < 2)
		kunit_skip(test, "one CPU");
	prepare_counting(test);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, end_hotplug, (void *)cpu), 0);
	begin_load(test, kprobes_test_frame, ARG + 1, ARG + 1);
	task = kthread_create(stir_for_long, test, "kprobes_stir");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	load.threads[ARRAY_SIZE(load.threads) - 1] = get_task_struct(task);
	wake_up_process(task);
	for (unsigned int i = 0; i < 5; i++) {
		KUNIT_ASSERT_EQ(test, remove_cpu(cpu), 0);
		msleep(50);
		KUNIT_ASSERT_EQ(test, add_cpu(cpu), 0);
		set_cpus_allowed_ptr(load.threads[num_online_cpus() - 1], cpumask_of(cpu));
		msleep(50);
	}
	expect_load(test);
	kunit_release_action(test, unregister_counting, NULL);
	ASSERT_REGISTERED(test, a);
	ASSERT_OPTIMIZED(test, a);
	EXPECT_CALL(test, &frame_place, "a");
}
#else
static void cpus_come_and_go_under_load(struct kunit *test)
{
	kunit_skip(test, "no CPU hotplug");
}
#endif

/* ------------------------------------------------------------ who is in the text */

/*
 * A function that stays for long in one instruction, and leaves it without a call or
 * a branch. A jump at that instruction, or at the one in front of it, displaces it.
 */
u64 kprobes_test_reading(const void *from, size_t size);

asm(".pushsection .text\n"
	".balign 16\n"
	".globl kprobes_test_reading\n"
	".type kprobes_test_reading, @function\n"
	"kprobes_test_reading:\n"
	ASM_ENDBR
	"	mov %rsi, %rcx\n"
	"	mov %rdi, %rsi\n"
	"	nop\n"
	"	rep lodsb\n"
	"	mov %rsi, %rax\n"
	RETURN
	"	int3\n"
	".size kprobes_test_reading, . - kprobes_test_reading\n"
	".popsection\n");

/* From the function's start. */
#define READING_IN_FRONT	(ENDBR_SIZE + 3 + 3)
#define READING			(READING_IN_FRONT + 1)
#define READING_BEHIND		(READING + 2)

/* How long it is to last: longer than it takes the optimiser to begin. */
#define READING_NS	(700 * NSEC_PER_MSEC)

/**
 * struct reader - A task that reads
 * @from:	What it reads: the same page again and again,
 * @size:	so many bytes in all.
 * @task:	The task.
 * @entered:	It is about to call kprobes_test_reading(),
 * @left:	and has returned from there,
 * @right:	with the right value.
 */
static struct reader {
	void *from;
	size_t size;
	struct task_struct *task;
	bool entered;
	bool left;
	bool right;
} reader;

static int read_for_long(void *unused)
{
	u64 end = (u64)reader.from + reader.size;

	WRITE_ONCE(reader.entered, true);
	reader.right = kprobes_test_reading(reader.from, reader.size) == end;
	/* So that who sees this sees what is @right. */
	smp_store_release(&reader.left, true);
	return 0;
}

static void end_reading(void *unused)
{
	if (reader.task)
		kthread_stop_put(reader.task);
	vunmap(reader.from);
	memset(&reader, 0, sizeof(reader));
}

static void map_zeros(struct kunit *test, unsigned int pages)
{
	struct page **all = kunit_kmalloc_array(test, pages, sizeof(*all), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, all);
	for (unsigned int i = 0; i < pages; i++)
		all[i] = ZERO_PAGE(0);
	vunmap(reader.from);
	reader.from = vmap(all, pages, VM_MAP, PAGE_KERNEL_RO);
	reader.size = pages * PAGE_SIZE;
	kunit_kfree(test, all);
	KUNIT_ASSERT_NOT_NULL(test, reader.from);
}

/* Map as many pages as take so long, or nearly so if this machine is very fast. */
static void prepare_reading(struct kunit *test)
{
	const unsigned int few = SZ_1M / PAGE_SIZE, many = SZ_256M / PAGE_SIZE;
	u64 start, fastest = READING_NS;

	memset(&reader, 0, sizeof(reader));
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, end_reading, NULL), 0);
	map_zeros(test, few);
	for (int i = 0; i < 3; i++) {
		start = ktime_get_ns();
		kprobes_test_reading(reader.from, reader.size);
		fastest = min(fastest, ktime_get_ns() - start);
	}
	map_zeros(test, clamp(few * READING_NS / max(fastest, 1), few, many));
}

static void begin_reading(struct kunit *test)
{
	unsigned int cpu = cpumask_any_but(cpu_online_mask, raw_smp_processor_id());
	struct task_struct *task = kthread_create(read_for_long, NULL, "kprobes_reader");

	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	if (cpu < nr_cpu_ids)
		set_cpus_allowed_ptr(task, cpumask_of(cpu));
	reader.task = get_task_struct(task);
	wake_up_process(task);
	while (!READ_ONCE(reader.entered))
		usleep_range(1000, 2000);
	usleep_range(1000, 2000);
}

/*
 * A jump in place while the reader is where its rest is would be read as instructions
 * when it goes on.
 */
static void expect_jump_behind_the_reader(struct kunit *test, struct kprobe *a)
{
	unsigned long start = jiffies;
	bool jump, left;

	do {
		usleep_range(500, 1000);
		jump = kprobe_optimized(a) || READ_ONCE(*a->addr) == JMP32_INSN_OPCODE;
		/* Pairs with read_for_long(). What is above has been read before, on x86. */
		left = smp_load_acquire(&reader.left);
		KUNIT_ASSERT_FALSE(test, jump && !left);
	} while (!left);
	KUNIT_EXPECT_TRUE(test, reader.right);
	if (time_before(jiffies, start + HZ / 5))
		kunit_skip(test, "the reader has left too early");
	ASSERT_OPTIMIZED(test, a);
	KUNIT_EXPECT_EQ(test, kprobes_test_reading(reader.from, 1), (u64)reader.from + 1);
}

static void jump_waits_for_who_is_in_its_place(struct kunit *test)
{
	unsigned long start = (unsigned long)kprobes_test_reading;
	struct kprobe *a;

	OPTIMIZER_HIDE_VAR(start);
	prepare_reading(test);
	prepare_counting(test);
	a = counting_probe(0, start + READING_IN_FRONT);
	begin_reading(test);
	ASSERT_REGISTERED(test, a);
	expect_jump_behind_the_reader(test, a);
}

/* Have the reader run in the slot of @a, which the neighbour @b keeps from becoming a jump. */
static void probe_in_slot(struct kunit *test, struct kprobe **a, struct kprobe **b)
{
	unsigned long start = (unsigned long)kprobes_test_reading;

	OPTIMIZER_HIDE_VAR(start);
	prepare_reading(test);
	prepare_counting(test);
	*a = counting_probe(0, start + READING);
	*b = counting_probe(1, start + READING_BEHIND);
	ASSERT_REGISTERED(test, *b);
	ASSERT_REGISTERED(test, *a);
	KUNIT_ASSERT_FALSE(test, becomes_optimized(*a));
}

/* The slot leads back to there. The neighbour keeps the optimiser away until somebody is in. */
static void jump_waits_for_who_is_in_the_slot(struct kunit *test)
{
	struct kprobe *a, *b;

	probe_in_slot(test, &a, &b);
	begin_reading(test);
	while (!atomic_read(&counting[0].hits))
		usleep_range(1000, 2000);
	unregister_kprobe(b);
	expect_jump_behind_the_reader(test, a);
}

/*
 * What a task is in stays as it is until the task has left, also when the probe has long
 * been gone. Others get slots meanwhile, in which the task would run something else.
 */
static void expect_undisturbed_reader(struct kunit *test)
{
	struct kprobe *all[FRAME_INSNS];

	for (unsigned int i = 0; i < FRAME_INSNS; i++)
		all[i] = frame_probe('a' + i, i);
	for (int round = 0; round < 3; round++) {
		for (unsigned int i = 0; i < FRAME_INSNS; i++)
			all[i]->addr = NULL;
		KUNIT_ASSERT_EQ(test, register_kprobes(all, FRAME_INSNS), 0);
		msleep(50);
		if (round < 2)
			unregister_kprobes(all, FRAME_INSNS);
	}
	if (READ_ONCE(reader.left))
		kunit_skip(test, "the reader has left too early");
	/* Pairs with the release by the reader. */
	while (!smp_load_acquire(&reader.left))
		usleep_range(1000, 2000);
	KUNIT_EXPECT_TRUE(test, reader.right);
}

static void be_hit_by_reader(struct kunit *test)
{
	unsigned long end = jiffies + PATIENCE;

	begin_reading(test);
	while (!atomic_read(&counting[0].hits) && time_before(jiffies, end))
		usleep_range(1000, 2000);
	usleep_range(1000, 2000);
}

static void slot_is_kept_for_who_is_in_it(struct kunit *test)
{
	struct kprobe *a, *b;

	probe_in_slot(test, &a, &b);
	be_hit_by_reader(test);
	unregister_kprobe(a);
	unregister_kprobe(b);
	expect_undisturbed_reader(test);
}

static void detour_is_kept_for_who_is_in_it(struct kunit *test)
{
	unsigned long start = (unsigned long)kprobes_test_reading;
	struct kprobe *a;

	OPTIMIZER_HIDE_VAR(start);
	prepare_reading(test);
	prepare_counting(test);
	a = counting_probe(0, start + READING_IN_FRONT);
	ASSERT_REGISTERED(test, a);
	ASSERT_OPTIMIZED(test, a);
	be_hit_by_reader(test);
	unregister_kprobe(a);
	expect_undisturbed_reader(test);
}

/* Detours that fill some pages. */
#define CROWD	50

static struct kprobe crowd[CROWD];

static void crowd_comes(struct kunit *test)
{
	unsigned long start = (unsigned long)kprobes_test_many;

	OPTIMIZER_HIDE_VAR(start);
	memset(crowd, 0, sizeof(crowd));
	for (unsigned int i = 0; i < CROWD; i++) {
		crowd[i].addr = (kprobe_opcode_t *)start + ENDBR_SIZE + 2 + i * JMP32_INSN_SIZE;
		crowd[i].pre_handler = count_one_of_many;
		ASSERT_REGISTERED(test, &crowd[i]);
	}
	ASSERT_OPTIMIZED(test, &crowd[0]);
}

static void crowd_goes(void *unused)
{
	for (unsigned int i = 0; i < CROWD; i++)
		unregister_kprobe(&crowd[i]);
}

/*
 * One that no longer suits the probes, and is to be replaced. It is the only one in its page,
 * which is freed with it.
 */
static void old_detour_is_kept_for_who_is_in_it(struct kunit *test)
{
	unsigned long start = (unsigned long)kprobes_test_reading;
	struct kprobe *a, *b;

	OPTIMIZER_HIDE_VAR(start);
	prepare_reading(test);
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, crowd_goes, NULL), 0);
	crowd_comes(test);
	prepare_counting(test);
	a = counting_probe(0, start + READING_IN_FRONT);
	b = counting_probe(1, start + READING_IN_FRONT);
	b->post_handler = do_nothing_after;
	ASSERT_REGISTERED(test, a);
	ASSERT_OPTIMIZED(test, a);
	kunit_release_action(test, crowd_goes, NULL);
	msleep(1000);	/* until their detours are free */
	be_hit_by_reader(test);
	ASSERT_REGISTERED(test, b);
	KUNIT_EXPECT_FALSE(test, kprobe_optimized(a));
	msleep(200);
	expect_undisturbed_reader(test);
	ASSERT_OPTIMIZED(test, b);
}

/* ----------------------------------------------- into what a jump displaces */

/*
 * Each instruction adds another bit. A jump at the first of them displaces the next
 * two. It is called with what it adds to.
 */
u64 kprobes_test_bits(u64 arg);

asm(".pushsection .text\n"
	".balign 16\n"
	".globl kprobes_test_bits\n"
	".type kprobes_test_bits, @function\n"
	"kprobes_test_bits:\n"
	ASM_ENDBR
	"	mov %rdi, %rax\n"
	"	add $1, %al\n"
	"	add $2, %al\n"
	"	add $4, %al\n"
	"	add $8, %al\n"
	"	add $16, %al\n"
	RETURN
	"	int3\n"
	".size kprobes_test_bits, . - kprobes_test_bits\n"
	".popsection\n");

/* Where the instruction is that adds bit @n, and what is left when it goes on there. */
#define BIT_OFFSET(n)	(ENDBR_SIZE + 3 + 2 * (n))
#define BITS		5

static unsigned long bits_address(unsigned int n)
{
	unsigned long start = (unsigned long)kprobes_test_bits;

	OPTIMIZER_HIDE_VAR(start);
	return start + BIT_OFFSET(n);
}

/* What is added by the instructions from that of bit @n on. */
static u64 bits_from(unsigned int n)
{
	return BIT(BITS) - BIT(n);
}

/* @data is which bit to go on with. */
static int go_to_bit(struct test_probe *p, struct pt_regs *regs)
{
	regs->ip = bits_address(p->data);
	return 1;
}

static void go_to_bit_after(struct kprobe *kp, struct pt_regs *regs, unsigned long flags)
{
	struct test_probe *p = container_of(kp, struct test_probe, kp);

	on_post(kp, regs, flags);
	if (current == tester)
		regs->ip = bits_address(p->data);
}

static struct kprobe *bit_probe(char name, unsigned int n)
{
	struct kprobe *kp = probe(name, NULL);

	kp->addr = (kprobe_opcode_t *)bits_address(n);
	return kp;
}

static void expect_bits(struct kunit *test, u64 expected, const char *events, const char *how)
{
	u64 (*function)(u64 arg) = kprobes_test_bits;

	OPTIMIZER_HIDE_VAR(function);
	clear_journal();
	KUNIT_EXPECT_EQ_MSG(test, function(0), expected, "%s", how);
	KUNIT_EXPECT_STREQ_MSG(test, journal, events, "%s", how);
}

static void expect_all_ways_on(struct kunit *test, const char *events, const char *how)
{
	/* Not to itself: there it would be hit again, and so on. */
	for (unsigned int n = 1; n < BITS; n++) {
		test_probe('a')->data = n;
		expect_bits(test, bits_from(n), events, how);
	}
}

/* An instruction is skipped: usual, and at a breakpoint nothing but a change of ip. */
static void handler_goes_on_in_what_is_displaced(struct kunit *test)
{
	struct kprobe *a = bit_probe('a', 0), *b = bit_probe('b', 0);

	test_probe('a')->act = go_to_bit;
	ASSERT_REGISTERED(test, b);
	ASSERT_REGISTERED(test, a);
	expect_all_ways_on(test, "a", "breakpoint, of two");
	ASSERT_OPTIMIZED(test, a);
	expect_all_ways_on(test, "a", "jump, of two");
	unregister_kprobe(b);
	expect_all_ways_on(test, "a", "breakpoint");
	ASSERT_OPTIMIZED(test, a);
	expect_all_ways_on(test, "a", "jump");
	test_probe('a')->act = NULL;
	expect_bits(test, bits_from(0), "a", "jump");
}

static void post_handler_goes_on_in_what_is_displaced(struct kunit *test)
{
	struct kprobe *a = bit_probe('a', 0);

	a->post_handler = go_to_bit_after;
	ASSERT_REGISTERED(test, a);
	for (int optimized = 0; optimized < 2; optimized++) {
		for (unsigned int n = 1; n < BITS; n++) {
			test_probe('a')->data = n;
			expect_bits(test, 1 + bits_from(n), "aA",
				    optimized ? "jump" : "breakpoint");
		}
		if (!optimized)
			ASSERT_OPTIMIZED(test, a);
	}
}

/* A function from which a handler goes to the other one. */
u64 kprobes_test_from_elsewhere(u64 arg);

asm(".pushsection .text\n"
	".balign 16\n"
	".globl kprobes_test_from_elsewhere\n"
	".type kprobes_test_from_elsewhere, @function\n"
	"kprobes_test_from_elsewhere:\n"
	ASM_ENDBR
	"	mov %rdi, %rax\n"
	"	add $1, %al\n"
	"	lea (%rax, %rdi), %rax\n"
	RETURN
	"	int3\n"
	".size kprobes_test_from_elsewhere, . - kprobes_test_from_elsewhere\n"
	".popsection\n");

static void expect_ways_from_elsewhere(struct kunit *test, bool post, const char *how)
{
	u64 (*function)(u64 arg) = kprobes_test_from_elsewhere;

	OPTIMIZER_HIDE_VAR(function);
	for (unsigned int n = 1; n < BITS; n++) {
		test_probe('a')->data = n;
		clear_journal();
		KUNIT_EXPECT_EQ_MSG(test, function(0), post + bits_from(n), "%s", how);
		KUNIT_EXPECT_STREQ_MSG(test, journal, post ? "aA" : "a", "%s", how);
	}
}

static void other_handler_goes_on_in_what_is_displaced(struct kunit *test)
{
	struct kprobe *a = probe('a', "kprobes_test_from_elsewhere");
	struct kprobe *b = bit_probe('b', 0);

	ASSERT_REGISTERED(test, b);
	ASSERT_OPTIMIZED(test, b);
	for (int post = 0; post < 2; post++) {
		a->addr = NULL;
		a->offset = ENDBR_SIZE + 3;
		a->post_handler = post ? go_to_bit_after : NULL;
		test_probe('a')->act = post ? NULL : go_to_bit;
		ASSERT_REGISTERED(test, a);
		expect_ways_from_elsewhere(test, post, "from a breakpoint");
		ASSERT_OPTIMIZED(test, a);
		expect_ways_from_elsewhere(test, post, "from a jump");
		unregister_kprobe(a);
	}
	expect_bits(test, bits_from(0), "b", "jump");
}

/*
 * A handler sends a task into the text that a jump is going to displace, after the grace
 * period for the tasks in that text has begun: the task must not run there.
 */
static int go_to_reading(struct kprobe *kp, struct pt_regs *regs)
{
	atomic_inc(&container_of(kp, struct counting_probe, kp)->hits);
	regs->ip = (unsigned long)kp->addr + READING - READING_IN_FRONT;
	return 1;
}

/*
 * Keeps a grace period of RCU-tasks from ending: it never gives up its CPU by itself. To
 * be asked for it, by cond_resched(), is not to do it.
 */
static int keep_tasks_waiting(void *unused)
{
	while (!READ_ONCE(load.stop))
		cond_resched();
	while (!kthread_should_stop())
		schedule_timeout_interruptible(1);
	return 0;
}

static void task_is_sent_to_where_a_jump_is_coming(struct kunit *test)
{
	unsigned long start = (unsigned long)kprobes_test_reading;
	struct task_struct *task;
	struct kprobe *a;

	OPTIMIZER_HIDE_VAR(start);
	prepare_reading(test);
	prepare_counting(test);
	load = (struct load){ };
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, end_load, NULL), 0);
	task = kthread_create(keep_tasks_waiting, NULL, "kprobes_busy");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	load.threads[0] = get_task_struct(task);
	set_cpus_allowed_ptr(task, cpumask_of(cpumask_last(cpu_online_mask)));
	wake_up_process(task);

	a = counting_probe(0, start + READING_IN_FRONT);
	a->pre_handler = go_to_reading;
	ASSERT_REGISTERED(test, a);
	msleep(300);
	KUNIT_ASSERT_FALSE(test, kprobe_optimized(a));
	begin_reading(test);
	while (!atomic_read(&counting[0].hits))
		usleep_range(1000, 2000);
	WRITE_ONCE(load.stop, true);
	ASSERT_OPTIMIZED(test, a);
	/* Pairs with the release by the reader. */
	while (!smp_load_acquire(&reader.left))
		usleep_range(1000, 2000);
	KUNIT_EXPECT_TRUE(test, reader.right);
}

/* ------------------------------------------------------------ stack traces */

/* A function that calls another one, by an instruction that jumps displace. */
u64 kprobes_test_calling(u64 arg);

asm(".pushsection .text\n"
	".balign 16\n"
	".globl kprobes_test_calling\n"
	".type kprobes_test_calling, @function\n"
	"kprobes_test_calling:\n"
	ASM_ENDBR
	"	push %rbx\n"
	"	lea 1(%rdi), %rbx\n"
	"	push %rbx\n"
	"	lea -1(%rbx), %rdi\n"
	"	call kprobes_test_frame\n"
	"	pop %rdi\n"
	"	sub %rdi, %rbx\n"
	"	add %rbx, %rax\n"
	"	pop %rbx\n"
	RETURN
	"	int3\n"
	".size kprobes_test_calling, . - kprobes_test_calling\n"
	".popsection\n");

static noinline __noclone u64 kprobes_test_calling_middle(u64 arg)
{
	return kprobes_test_calling(arg) + 1;
}

static const char * const frame_callers[] = {
	"kprobes_test_frame", "kprobes_test_middle", NULL
};

static const char * const calling_callers[] = {
	"kprobes_test_calling", "kprobes_test_calling_middle", NULL
};

#define FRAME(where)							\
	{ "kprobes_test_frame", where,					\
	  kprobes_test_frame, kprobes_test_middle, frame_callers }
#define CALLING(where)							\
	{ "kprobes_test_calling", where,				\
	  kprobes_test_calling, kprobes_test_calling_middle, calling_callers }

/*
 * struct traced_insn - An instruction in whose detour stacks are walked
 * @symbol:	The function,
 * @offset:	and where the instruction is in it, after ENDBR.
 * @function:	The function. It returns one more than its argument.
 * @caller:	Calls it, and returns one more than that.
 * @callers:	Their names.
 */
static const struct traced_insn {
	const char *symbol;
	unsigned int offset;
	u64 (*function)(u64 arg);
	u64 (*caller)(u64 arg);
	const char * const *callers;
} traced_insns[] = {
	FRAME(0), FRAME(1), FRAME(3), FRAME(7),
	CALLING(0), CALLING(1), CALLING(5), CALLING(6), CALLING(10), CALLING(15),
};

static void traced_insn_desc(const struct traced_insn *insn, char *desc)
{
	snprintf(desc, KUNIT_PARAM_DESC_SIZE, "%s+%u", insn->symbol, insn->offset);
}

KUNIT_ARRAY_PARAM(traced_insn, traced_insns, traced_insn_desc);

static struct kprobe *traced_insn_probe(struct kunit *test)
{
	const struct traced_insn *insn = test->param_value;
	struct kprobe *a = probe('a', insn->symbol);

	if (!IS_ENABLED(CONFIG_UNWINDER_ORC))
		kunit_skip(test, "needs the ORC unwinder");
	a->offset = ENDBR_SIZE + insn->offset;
	ASSERT_REGISTERED(test, a);
	ASSERT_OPTIMIZED(test, a);
	return a;
}

static void callers_are_in_traces_of_optimized(struct kunit *test)
{
	const struct traced_insn *insn = test->param_value;

	traced_insn_probe(test);
	test_probe('a')->act = trace_pre;
	for (int shared = 0; shared < 2; shared++) {
		trace_from_here[0] = 0;
		trace_from_regs[0] = 0;
		KUNIT_EXPECT_EQ(test, insn->caller(ARG), ARG + 2);
		expect_trace(test, trace_from_here, insn->callers, "pre handler", insn->offset);
		expect_trace(test, trace_from_regs, insn->callers + 1, "registers", insn->offset);
		KUNIT_EXPECT_TRUE(test, is_in(trace_from_regs[0], insn->callers[1]));
		if (!shared) {
			struct kprobe *b = probe('b', insn->symbol);

			b->offset = ENDBR_SIZE + insn->offset;
			ASSERT_REGISTERED(test, b);
			wait_for_kprobe_optimizer();
		}
	}
}

static enum hrtimer_restart interrupt_and_walk(struct hrtimer *timer)
{
	save_trace(trace_from_here, NULL);
	save_trace(trace_from_regs, get_irq_regs());
	return interrupt(timer);
}

static void callers_are_in_traces_of_interrupts_of_optimized(struct kunit *test)
{
	const struct traced_insn *insn = test->param_value;

	prepare_interruption(interrupt_and_walk);
	traced_insn_probe(test);
	test_probe('a')->act = interrupt_handler;
	KUNIT_EXPECT_EQ(test, insn->caller(ARG), ARG + 2);
	expect_interruption(test);
	expect_trace(test, trace_from_here, insn->callers, "interrupt", insn->offset);
	expect_trace(test, trace_from_regs, insn->callers, "interrupt's registers", insn->offset);
}

/* Where the detour of the probe is, which a test steps through. */
static unsigned long detour;
static unsigned int steps_in_detour, steps_in_copies;

#define DETOUR_BYTES	512

static int on_trap_of_detour(struct notifier_block *nb, unsigned long event, void *data)
{
	struct die_args *args = data;
	unsigned long ip = args->regs->ip;

	if (event == DIE_DEBUG && current == tester && ip - detour < DETOUR_BYTES) {
		if (journal_length)
			steps_in_copies++;
		steps_in_detour++;
	}
	return on_trap(nb, event, data);
}

static struct notifier_block detour_trap_notifier = { .notifier_call = on_trap_of_detour };

static unsigned long jump_target(const struct kprobe *a)
{
	s32 offset;

	memcpy(&offset, a->addr + 1, sizeof(offset));
	return (unsigned long)a->addr + JMP32_INSN_SIZE + offset;
}

static void callers_are_in_traces_at_each_instruction_of_optimized(struct kunit *test)
{
	const struct traced_insn *insn = test->param_value;
	struct kprobe *a;
	unsigned long flags;
	u64 result;

	need_traces_at_each_instruction(test);
	a = traced_insn_probe(test);
	for (int changed = 0; changed < 2; changed++) {
		memset(&steps, 0, sizeof(steps));
		steps_in_detour = 0;
		steps_in_copies = 0;
		detour = jump_target(a);
		clear_journal();
		KUNIT_ASSERT_EQ(test, register_die_notifier(&detour_trap_notifier), 0);
		local_irq_save(flags);
		result = kprobes_test_step(ARG, insn->function);
		local_irq_restore(flags);
		unregister_die_notifier(&detour_trap_notifier);

		KUNIT_EXPECT_EQ(test, result, ARG + 1);
		KUNIT_EXPECT_STREQ(test, journal, changed ? "ba" : "a");
		KUNIT_EXPECT_LT(test, steps.count, MAX_STEPS);
		KUNIT_EXPECT_GT(test, steps.frames, 3);
		KUNIT_EXPECT_GT(test, steps_in_detour, 30);
		KUNIT_EXPECT_GT(test, steps_in_copies, 17);
		KUNIT_EXPECT_EQ_MSG(test, steps.bad, 0, "of %u, the first one at %pS, detour+%#lx",
				    steps.count, (void *)steps.bad_ip, steps.bad_ip - detour);
		if (!changed) {
			struct kprobe *b = probe('b', insn->symbol);

			b->offset = ENDBR_SIZE + insn->offset;
			ASSERT_REGISTERED(test, b);
			ASSERT_OPTIMIZED(test, b);
		}
	}
}

static struct kunit_case optprobes_x86_cases[] = {
	KUNIT_CASE_PARAM(displaced_insns_do_the_same, fit_gen_params),
	KUNIT_CASE_PARAM(displaced_insns_do_the_same_with_post_handlers, fit_gen_params),
	KUNIT_CASE_PARAM(skipped_displaced_insns_do_the_same, fit_gen_params),
	KUNIT_CASE_PARAM(insns_do_the_same_while_they_become_optimized, fit_gen_params),
	KUNIT_CASE_PARAM(unfit_insn_keeps_its_breakpoint, unfit_gen_params),
	KUNIT_CASE(handlers_of_optimized_see_and_change_registers),
	KUNIT_CASE(path_of_optimized_is_changed_with_stack_and_flags),
	KUNIT_CASE(path_of_optimized_is_changed_after),
	KUNIT_CASE_SLOW(neighbour_comes_and_goes),
	KUNIT_CASE_SLOW(probe_comes_before_an_optimized_one),
	KUNIT_CASE(all_neighbours_are_probed),
	KUNIT_CASE(neighbour_is_at_the_last_byte),
	KUNIT_CASE_PARAM(jump_comes_when_an_obstacle_has_gone, obstacle_gen_params),
	KUNIT_CASE_SLOW(many_probes_are_optimized),
	KUNIT_CASE_SLOW(jump_label_is_flipped_under_load),
	KUNIT_CASE_SLOW(hits_are_counted_while_a_jump_label_is_flipped),
	KUNIT_CASE_SLOW(hits_are_counted_while_post_handlers_come_and_go),
	KUNIT_CASE_SLOW(probes_come_and_go_under_load),
	KUNIT_CASE_SLOW(crowd_comes_and_goes_under_load),
	KUNIT_CASE_SLOW(cpus_come_and_go_under_load),
	KUNIT_CASE_SLOW(jump_waits_for_who_is_in_its_place),
	KUNIT_CASE_SLOW(jump_waits_for_who_is_in_the_slot),
	KUNIT_CASE_SLOW(slot_is_kept_for_who_is_in_it),
	KUNIT_CASE_SLOW(detour_is_kept_for_who_is_in_it),
	KUNIT_CASE_SLOW(old_detour_is_kept_for_who_is_in_it),
	KUNIT_CASE(handler_goes_on_in_what_is_displaced),
	KUNIT_CASE(post_handler_goes_on_in_what_is_displaced),
	KUNIT_CASE(other_handler_goes_on_in_what_is_displaced),
	KUNIT_CASE_SLOW(task_is_sent_to_where_a_jump_is_coming),
	KUNIT_CASE_PARAM(callers_are_in_traces_of_optimized, traced_insn_gen_params),
	KUNIT_CASE_PARAM(callers_are_in_traces_of_interrupts_of_optimized, traced_insn_gen_params),
	KUNIT_CASE_PARAM(callers_are_in_traces_at_each_instruction_of_optimized,
			 traced_insn_gen_params),
	{ }
};

/*
 * Let what jumps where be learned now: later, probes of the tests are in the module's data,
 * and there an address in a function is one that may be jumped to.
 */
static int start_opt_x86_suite(struct kunit_suite *suite)
{
	struct kprobe early = { .symbol_name = OTHER_TARGET->symbol };
	int err = register_kprobe(&early);

	if (err)
		return err;
	wait_for_kprobe_optimizer();
	unregister_kprobe(&early);
	return start_opt_suite(suite);
}

static struct kunit_suite optprobes_x86_suite = {
	.name = "optprobes-x86",
	.suite_init = start_opt_x86_suite,
	.init = start_opt_test,
	.exit = end_opt_test,
	.test_cases = optprobes_x86_cases,
};

kunit_test_suite(optprobes_x86_suite);

#endif /* _TEST_OPTPROBES_X86_H */
