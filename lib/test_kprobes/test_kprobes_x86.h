/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The part of the tests of kernel probes that is about x86-64: what is run in
 * place of an instruction does what the instruction does, and handlers see the
 * registers before and after it.
 *
 * An instruction is tested inside a snippet, a function that has its arguments
 * in all registers. What it leaves in the registers, in the flags and in memory
 * must not depend on whether, and how, the instruction is probed.
 */
#ifndef _TEST_KPROBES_X86_H
#define _TEST_KPROBES_X86_H

#include <linux/cpufeature.h>
#include <linux/cleanup.h>
#include <linux/irqflags.h>
#include <linux/kdebug.h>
#include <linux/mman.h>
#include <linux/notifier.h>
#include <linux/objtool.h>

#include <asm/alternative.h>
#include <asm/asm.h>
#include <asm/debugreg.h>
#include <asm/ibt.h>
#include <asm/nospec-branch.h>
#include <asm/processor-flags.h>
#include <asm/smap.h>
#include <asm/unwind.h>
#include <asm/vsyscall.h>

/* What a snippet starts with, and what it leaves. */
struct cpu_state {
	u64 ax, bx, cx, dx, si, di, bp;
	u64 r8, r9, r10, r11, r12, r13, r14, r15;
	u64 flags;
	u64 memory[8];	/* si points to the middle, di one below */
};

static_assert(offsetof(struct cpu_state, di) == 40);
static_assert(offsetof(struct cpu_state, r8) == 56);
static_assert(offsetof(struct cpu_state, flags) == 120);

/* Run the snippet at @code with a state, and change that to what it leaves. */
void kprobes_test_run(struct cpu_state *state, unsigned long code);

asm(".pushsection .text\n"
	".balign 16\n"
	".globl kprobes_test_run\n"
	".type kprobes_test_run, @function\n"
	"kprobes_test_run:\n"
	ASM_ENDBR
	"	push %rbp\n"
	"	push %rbx\n"
	"	push %r12\n"
	"	push %r13\n"
	"	push %r14\n"
	"	push %r15\n"
	"	pushfq\n"
	"	push %rdi\n"
	"	push %rsi\n"
	"	pushq 120(%rdi)\n"
	"	popfq\n"
	"	mov (%rdi), %rax\n"
	"	mov 8(%rdi), %rbx\n"
	"	mov 16(%rdi), %rcx\n"
	"	mov 24(%rdi), %rdx\n"
	"	mov 32(%rdi), %rsi\n"
	"	mov 48(%rdi), %rbp\n"
	"	mov 56(%rdi), %r8\n"
	"	mov 64(%rdi), %r9\n"
	"	mov 72(%rdi), %r10\n"
	"	mov 80(%rdi), %r11\n"
	"	mov 88(%rdi), %r12\n"
	"	mov 96(%rdi), %r13\n"
	"	mov 104(%rdi), %r14\n"
	"	mov 112(%rdi), %r15\n"
	"	mov 40(%rdi), %rdi\n"
	ANNOTATE_RETPOLINE_SAFE
	"	call *(%rsp)\n"
	".Lkprobes_test_returned:\n"
	"	xchg %rdi, 8(%rsp)\n"
	"	mov %rax, (%rdi)\n"
	"	mov %rbx, 8(%rdi)\n"
	"	mov %rcx, 16(%rdi)\n"
	"	mov %rdx, 24(%rdi)\n"
	"	mov %rsi, 32(%rdi)\n"
	"	mov %rbp, 48(%rdi)\n"
	"	mov %r8, 56(%rdi)\n"
	"	mov %r9, 64(%rdi)\n"
	"	mov %r10, 72(%rdi)\n"
	"	mov %r11, 80(%rdi)\n"
	"	mov %r12, 88(%rdi)\n"
	"	mov %r13, 96(%rdi)\n"
	"	mov %r14, 104(%rdi)\n"
	"	mov %r15, 112(%rdi)\n"
	"	pushfq\n"
	"	popq 120(%rdi)\n"
	"	pop %rax\n"
	"	pop %rax\n"
	"	mov %rax, 40(%rdi)\n"
	"	popfq\n"
	"	pop %r15\n"
	"	pop %r14\n"
	"	pop %r13\n"
	"	pop %r12\n"
	"	pop %rbx\n"
	"	pop %rbp\n"
	ASM_RET
	".size kprobes_test_run, . - kprobes_test_run\n"
	".popsection\n");
STACK_FRAME_NON_STANDARD_FP(kprobes_test_run);

/* Where snippets jump to or call, and a cell for operands relative to ip. */
asm(".pushsection .text\n"
	".balign 16\n"
	".type kprobes_test_callee, @function\n"
	"kprobes_test_callee:\n"
	ASM_ENDBR
	"	mov (%rsp), %r13\n"
	"	lea 1(%rax), %rax\n"
	ANNOTATE_RETPOLINE_SAFE
	"	ret\n"
	"	int3\n"
	".size kprobes_test_callee, . - kprobes_test_callee\n"
	".popsection\n"
	".pushsection .data\n"
	".balign 8\n"
	"kprobes_test_cell:\n"
	"	.quad 0x1122334455667788\n"
	".popsection\n");

/**
 * struct snippet - A function with an instruction to probe
 * @code:	The function.
 * @name:	Its name without kprobes_test_.
 * @offset:	Of the instruction in it.
 * @length:	Of the instruction.
 * @target:	Where execution may go on other than after it, from @code; or 0.
 * @reserved:	0.
 */
struct snippet {
	unsigned long code;
	const char *name;
	s32 offset;
	s32 length;
	s32 target;
	s32 reserved;
};

extern const struct snippet kprobes_test_snippets[], kprobes_test_snippets_end[];

#define SNIPPET_TABLE(lines)						\
	".pushsection .rodata.kprobes_test, \"a\"\n" lines ".popsection\n"

/* The labels: 880 the function, 881 the instruction, 882 after that. */
#define __SNIPPET(name, before, insn, after, target)			\
	asm(".irp name, " name "\n"					\
	    ".pushsection .text\n"					\
	    ".balign 16\n"						\
	    ".type kprobes_test_\\name, @function\n"			\
	    "kprobes_test_\\name:\n"					\
	    "880:\n"							\
	    ASM_ENDBR							\
	    before "\n"							\
	    "881:	" insn "\n"					\
	    "882:	" after "\n"					\
	    "	int3\n"							\
	    ".size kprobes_test_\\name, . - 880b\n"			\
	    ".popsection\n"						\
	    ".pushsection .rodata.kprobes_test_names, \"a\"\n"		\
	    "883:	.asciz \"\\name\"\n"				\
	    ".popsection\n"						\
	    SNIPPET_TABLE("	.quad kprobes_test_\\name, 883b\n"	\
			  "	.long 881b - 880b, 882b - 881b\n"	\
			  "	.long " target ", 0\n")			\
	    ".endr\n")

#define RETURN			ANNOTATE_RETPOLINE_SAFE "ret\n"

#define INDIRECT		ANNOTATE_RETPOLINE_SAFE

/* An instruction that does not branch. */
#define SNIPPET(name, before, insn, after)				\
	__SNIPPET(name, before, insn, after "\n" RETURN, "0")

/* One that may, to label 1 of the snippet. What it did shows in r14. */
#define BRANCH_SNIPPET(name, insn)					\
	__SNIPPET(name, "", insn,					\
		  "mov $1, %r14d\n" RETURN				\
		  "int3\n"						\
		  "1: mov $2, %r14d\n" RETURN,				\
		  "1b - 880b")

/* One that calls the callee, or jumps there and never comes back. */
#define CALL_SNIPPET(name, before, insn)				\
	__SNIPPET(name, before, insn, RETURN,				\
		  "kprobes_test_callee - 880b")

#define JUMP_SNIPPET(name, before, insn)				\
	__SNIPPET(name, before, insn, "",				\
		  "kprobes_test_callee - 880b")

/* One that returns to kprobes_test_run. */
#define RETURN_SNIPPET(name, insn)					\
	__SNIPPET(name, "", ANNOTATE_RETPOLINE_SAFE insn, "",		\
		  ".Lkprobes_test_returned - 880b")

#define STORE_CALLEE							\
	"lea kprobes_test_callee(%rip), %rax\n"				\
	"mov %rax, (%rsi)\n"						\
	"mov %rax, 8(%rsi)\n"						\
	"mov %rax, 16(%rsi)\n"

asm(SNIPPET_TABLE("kprobes_test_snippets:\n"));

/* A copy does what the original does. */
SNIPPET("add", "", "add %rdx, %rax", "");
SNIPPET("adc", "", "adc $0x12345678, %rax", "");
SNIPPET("imul", "", "imul $77, %rbx, %rax", "");
SNIPPET("push", "", "push %rdx", "pop %rax");
SNIPPET("push_mem", "", "push (%rsi)", "pop %rax");
SNIPPET("pop", "push %rdx", "pop %rax", "");
SNIPPET("leave", "push %rbp\n mov %rsp, %rbp", "leave", "");
SNIPPET("xchg", "", "xchg %rdx, %rax", "");
SNIPPET("inc_mem", "", "lock incq (%rsi)", "");
SNIPPET("store", "", "mov %rdx, 8(%rsi)", "");
SNIPPET("load", "", "mov (%rsi, %rcx, 8), %rax", "");
SNIPPET("cmov", "", "cmovz %rdx, %rax", "");
SNIPPET("setc", "", "setc %al", "");
SNIPPET("std", "", "std", "cld");
SNIPPET("rep_stos", "lea (%rsi), %rdi", "rep stosb", "");
SNIPPET("lea_rip", "", "lea 0x40(%rip), %rax", "");
SNIPPET("load_rip", "", "mov kprobes_test_cell(%rip), %rax", "");
SNIPPET("compare_rip", "", "cmpl $0x55667788, kprobes_test_cell(%rip)", "");
SNIPPET("lfence", "", "lfence", "");
SNIPPET("push_sp", "", "push %rsp", "pop %rax\n sub %rsp, %rax");
SNIPPET("pop_mem", "push %rdx", "popq 8(%rsi)", "");
SNIPPET("add_sp", "push %rdx", "lea 8(%rsp), %rsp", "");

/* Branches, and what else is emulated. */
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
BRANCH_SNIPPET("loop_ecx", "addr32 loop 1f");
BRANCH_SNIPPET("jrcxz", "jrcxz 1f");
BRANCH_SNIPPET("jecxz", "jecxz 1f");
JUMP_SNIPPET("jmp", "", "jmp kprobes_test_callee");
JUMP_SNIPPET("jmp_reg", "lea kprobes_test_callee(%rip), %r11", INDIRECT "jmp *%r11");
JUMP_SNIPPET("jmp_mem", STORE_CALLEE, INDIRECT "jmp *8(%rsi)");
JUMP_SNIPPET("jmp_mem_index", STORE_CALLEE, INDIRECT "jmp *(%rsi, %rcx, 8)");
CALL_SNIPPET("call", "", "call kprobes_test_callee");
CALL_SNIPPET("call_reg", "lea kprobes_test_callee(%rip), %rbx", INDIRECT "call *%rbx");
CALL_SNIPPET("call_mem", STORE_CALLEE, INDIRECT "call *(%rsi)");
CALL_SNIPPET("call_mem_index", STORE_CALLEE, INDIRECT "call *(%rsi, %rcx, 8)");
RETURN_SNIPPET("ret", "ret");
RETURN_SNIPPET("ret_imm", "ret $0");
SNIPPET("nop", "", "nop", "");
SNIPPET("nopl", "", "nopl 8(%rax, %rax)", "");
SNIPPET("cli", "", "cli", "");
SNIPPET("sti", "", "sti", "nop");
SNIPPET("pushf", "", "pushfq", "pop %rax");
SNIPPET("popf", "pushq $0xad7", "popfq", "");
SNIPPET("popf_off", "pushq $0x046", "popfq", "");

/* Stepped where there is a post handler: they change how that would run. */
SNIPPET("mov_es", "mov %es, %eax", "mov %eax, %es", "");
SNIPPET("mov_ds", "mov %ds, %eax", "mov %eax, %ds", "");
SNIPPET("mov_cr0", "mov %cr0, %rbx", "mov %rbx, %cr0", "");
SNIPPET("clts", "", "clts", "");

/* Stepped always: their faults are fixed up. di is a good address, or a bad one. */
SNIPPET("fault_load", "", "mov (%rdi), %rax",
	RETURN "int3\n 1: mov $-1, %rbx\n" _ASM_EXTABLE(881b, 1b));
SNIPPET("fault_store", "", "mov %rdx, (%rdi)",
	RETURN "int3\n 1: mov $-1, %rbx\n" _ASM_EXTABLE(881b, 1b));
SNIPPET("fault_user", ASM_STAC, "mov (%rdi), %rax",
	ASM_CLAC RETURN "int3\n 1:\n" ASM_CLAC "mov $-1, %rbx\n" _ASM_EXTABLE_UA(881b, 1b));

asm(SNIPPET_TABLE("kprobes_test_snippets_end:\n"));

static const void *snippet_gen_params(const void *prev, char *desc)
{
	const struct snippet *next = prev ? (const struct snippet *)prev + 1
					  : kprobes_test_snippets;

	if (next == kprobes_test_snippets_end)
		return NULL;
	strscpy(desc, next->name, KUNIT_PARAM_DESC_SIZE);
	return next;
}

static const struct snippet *find_snippet(const char *name)
{
	const struct snippet *snippet = kprobes_test_snippets;

	while (strcmp(snippet->name, name))
		snippet++;
	return snippet;
}

static unsigned long insn_address(const struct snippet *snippet)
{
	return snippet->code + snippet->offset;
}

#define ENDBR_SIZE	(IS_ENABLED(CONFIG_X86_KERNEL_IBT) ? ENDBR_INSN_SIZE : 0)

/* ----------------------------------------------------- probed and unprobed */

static const u64 input_flags[] = {
	0, X86_EFLAGS_CF, X86_EFLAGS_ZF, X86_EFLAGS_SF, X86_EFLAGS_OF, X86_EFLAGS_PF,
	X86_EFLAGS_DF, X86_EFLAGS_SF | X86_EFLAGS_OF,
	X86_EFLAGS_CF | X86_EFLAGS_PF | X86_EFLAGS_AF | X86_EFLAGS_ZF | X86_EFLAGS_SF |
	X86_EFLAGS_OF,
};

#define INPUT_COUNTS	3	/* in cx */
#define INPUTS		(2 * INPUT_COUNTS * ARRAY_SIZE(input_flags))

static struct cpu_state state;

/* With interrupts on where @input is even. */
static void set_input(unsigned int input)
{
	u64 *word = &state.ax;

	for (unsigned int i = 0; i < sizeof(state) / sizeof(*word); i++)
		word[i] = 0x0101010101010101 * (i + 1);
	state.flags = input % 2 ? X86_EFLAGS_FIXED : X86_EFLAGS_FIXED | X86_EFLAGS_IF;
	state.cx = input / 2 % INPUT_COUNTS;
	state.flags |= input_flags[input / 2 / INPUT_COUNTS];
	state.si = (unsigned long)&state.memory[4];
	state.di = (unsigned long)&state.memory[3];
}

static void run(const struct snippet *snippet)
{
	unsigned long flags;

	if (state.flags & X86_EFLAGS_IF) {
		kprobes_test_run(&state, snippet->code);
	} else {
		local_irq_save(flags);
		kprobes_test_run(&state, snippet->code);
		local_irq_restore(flags);
	}
}

static void expect_state(struct kunit *test, const struct cpu_state *expected, const char *how,
			 unsigned int input)
{
	const u64 *want = &expected->ax, *got = &state.ax;

	if (!memcmp(expected, &state, sizeof(state)))
		return;
	for (unsigned int i = 0; i < sizeof(state) / sizeof(*got); i++)
		KUNIT_ASSERT_EQ_MSG(test, got[i], want[i], "word %u, %s, input %u", i, how, input);
}

static unsigned long pre_ip, post_ip, post_flags;

static int record_pre(struct test_probe *p, struct pt_regs *regs)
{
	pre_ip = regs->ip;
	return 0;
}

static void record_post(struct kprobe *kp, struct pt_regs *regs, unsigned long flags)
{
	on_post(kp, regs, flags);
	post_ip = regs->ip;
	post_flags = regs->flags;
}

/* Make probe @name one of the snippet's instruction, that records what it sees. */
static struct kprobe *snippet_probe(char name, const struct snippet *snippet, bool post)
{
	struct kprobe *kp = probe(name, NULL);

	kp->addr = (kprobe_opcode_t *)insn_address(snippet);
	kp->post_handler = post ? record_post : NULL;
	test_probe(name)->act = record_pre;
	return kp;
}

static bool may_go_on_at(const struct snippet *snippet, unsigned long ip)
{
	return ip == insn_address(snippet) + snippet->length ||
	       (snippet->target && ip == snippet->code + snippet->target);
}

static void expect_same(struct kunit *test, const struct snippet *snippet,
			const struct cpu_state *expected, bool post)
{
	const char *how = post ? "with a post handler" : "probed";

	for (unsigned int i = 0; i < INPUTS; i++) {
		set_input(i);
		clear_journal();
		run(snippet);
		KUNIT_ASSERT_STREQ(test, journal, post ? "aA" : "a");
		KUNIT_ASSERT_EQ(test, pre_ip, insn_address(snippet) + 1);
		if (post) {
			KUNIT_ASSERT_TRUE(test, may_go_on_at(snippet, post_ip));
			KUNIT_ASSERT_EQ(test, post_flags & X86_EFLAGS_IF,
					state.flags & X86_EFLAGS_IF);
		}
		expect_state(test, &expected[i], how, i);
	}
}

static struct cpu_state *expect_what_is_unprobed(struct kunit *test, const struct snippet *snippet)
{
	struct cpu_state *expected = kunit_kcalloc(test, INPUTS, sizeof(*expected), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, expected);
	for (unsigned int i = 0; i < INPUTS; i++) {
		set_input(i);
		run(snippet);
		expected[i] = state;
	}
	return expected;
}

static void insn_does_the_same(struct kunit *test)
{
	const struct snippet *snippet = test->param_value;
	const struct cpu_state *expected = expect_what_is_unprobed(test, snippet);
	struct kprobe *a;

	for (int post = 0; post < 2; post++) {
		a = snippet_probe('a', snippet, post);
		ASSERT_REGISTERED(test, a);
		KUNIT_EXPECT_PTR_EQ(test, a->addr, (void *)insn_address(snippet));
		expect_same(test, snippet, expected, post);
		KUNIT_EXPECT_EQ(test, a->nmissed, 0);
		unregister_kprobe(a);
	}
	set_input(0);
	clear_journal();
	run(snippet);
	KUNIT_EXPECT_STREQ(test, journal, "");
	expect_state(test, &expected[0], "probed no more", 0);
}

/* What a handler runs into is skipped, and its displaced instruction is run all the same. */
static int run_in_handler(struct test_probe *p, struct pt_regs *regs)
{
	run((const struct snippet *)p->data);
	return 0;
}

/* Let @snippet be run by the handler of probe 'a'. */
static void register_skipping(struct kunit *test, struct kprobe *a, const struct snippet *snippet)
{
	test_probe('a')->act = run_in_handler;
	test_probe('a')->data = (unsigned long)snippet;
	ASSERT_REGISTERED(test, a);
}

static void expect_skipped(struct kunit *test, const struct kprobe *a, const struct kprobe *b,
			   const struct cpu_state *expected, const char *calls)
{
	unsigned int off;

	for (off = 1; off < INPUTS; off += 2) {
		set_input(off);
		EXPECT_CALL(test, TRACED, calls);
		expect_state(test, &expected[off], "skipped", off);
	}
	KUNIT_EXPECT_EQ(test, b->nmissed, INPUTS / 2);
	KUNIT_EXPECT_EQ(test, a->nmissed, 0);
}

static void skipped_insn_does_the_same(struct kunit *test)
{
	const struct snippet *snippet = test->param_value;
	const struct cpu_state *expected = expect_what_is_unprobed(test, snippet);
	struct kprobe *a = post_probe('a', TRACED->symbol);
	struct kprobe *b = snippet_probe('b', snippet, true);

	register_skipping(test, a, snippet);
	ASSERT_REGISTERED(test, b);
	expect_skipped(test, a, b, expected, "aA");
}

static void inside_of_insn_is_not_probed(struct kunit *test)
{
	const struct snippet *snippet = test->param_value;
	struct kprobe *a = snippet_probe('a', snippet, false);

	for (int i = 1; i < snippet->length; i++) {
		a->addr = (kprobe_opcode_t *)insn_address(snippet) + i;
		EXPECT_REFUSED(test, a, -EILSEQ);
	}
}

/* The instruction after the return is INT3. */
static void trap_is_not_probed(struct kunit *test)
{
	const struct snippet *ret = find_snippet("ret");
	struct kprobe *a = snippet_probe('a', ret, false);

	a->offset = ret->length;
	EXPECT_REFUSED(test, a, -EOPNOTSUPP);
}

/* Instructions that are not run, and cannot be probed: where each of them is. */
extern const u8 kprobes_test_unprobeable_offsets[], kprobes_test_unprobeable_offsets_end[];
void kprobes_test_unprobeable(void);

#define UNPROBEABLE(insn)						\
	"880:	" insn "\n"						\
	".pushsection .rodata.kprobes_test_unprobeable, \"a\"\n"	\
	"	.byte 880b - kprobes_test_unprobeable\n"		\
	".popsection\n"

asm(".pushsection .rodata.kprobes_test_unprobeable, \"a\"\n"
	"kprobes_test_unprobeable_offsets:\n"
	".popsection\n"
	".pushsection .text\n"
	".balign 16\n"
	".globl kprobes_test_unprobeable\n"
	".type kprobes_test_unprobeable, @function\n"
	"kprobes_test_unprobeable:\n"
	ASM_ENDBR
	UNPROBEABLE("iretq")
	UNPROBEABLE("lretq")
	UNPROBEABLE("ljmp *(%rdi)")
	UNPROBEABLE(INDIRECT "lcall *(%rdi)")
	UNPROBEABLE("mov %eax, %ss")
	UNPROBEABLE("lss (%rdi), %eax")
	UNPROBEABLE("syscall")
	UNPROBEABLE("sysretq")
	UNPROBEABLE("swapgs")
	UNPROBEABLE("int $0x80")
	UNPROBEABLE("ud1 %eax, %eax")
	UNPROBEABLE("xbegin .")
	UNPROBEABLE("mov 0(%eip), %eax")
	RETURN
	"	int3\n"
	".size kprobes_test_unprobeable, . - kprobes_test_unprobeable\n"
	".popsection\n"
	".pushsection .rodata.kprobes_test_unprobeable, \"a\"\n"
	"kprobes_test_unprobeable_offsets_end:\n"
	".popsection\n");
STACK_FRAME_NON_STANDARD(kprobes_test_unprobeable);

/* They are where an instruction is: that is not what is wrong with them. */
static void unprobeable_insn_is_refused(struct kunit *test)
{
	unsigned long start = (unsigned long)kprobes_test_unprobeable;
	struct kprobe *a = probe('a', NULL);
	const u8 *offset;

	OPTIMIZER_HIDE_VAR(start);
	for (offset = kprobes_test_unprobeable_offsets;
	     offset < kprobes_test_unprobeable_offsets_end; offset++) {
		a->addr = (kprobe_opcode_t *)(start + *offset);
		KUNIT_EXPECT_EQ_MSG(test, register_kprobe(a), -EOPNOTSUPP, "offset %u", *offset);
		unregister_kprobe(a);
	}
}

/* A load whose fixup decodes it, and must not find a breakpoint. */
void kprobes_test_zeropad(void);

asm(".pushsection .text\n"
	".balign 16\n"
	".globl kprobes_test_zeropad\n"
	".type kprobes_test_zeropad, @function\n"
	"kprobes_test_zeropad:\n"
	ASM_ENDBR
	"880:	mov (%rdi), %rax\n"
	"881:	mov %rax, %rdx\n"
	RETURN
	"	int3\n"
	".size kprobes_test_zeropad, . - kprobes_test_zeropad\n"
	".popsection\n"
	_ASM_EXTABLE_TYPE(880b, 881b, EX_TYPE_ZEROPAD));

static void load_with_zero_padding_is_not_probed(struct kunit *test)
{
	unsigned long start = (unsigned long)kprobes_test_zeropad;
	struct kprobe *a = probe('a', NULL);

	OPTIMIZER_HIDE_VAR(start);
	a->addr = (kprobe_opcode_t *)(start + ENDBR_SIZE);
	EXPECT_REFUSED(test, a, -EOPNOTSUPP);
	a->addr = (kprobe_opcode_t *)(start + ENDBR_SIZE + 3);
	ASSERT_REGISTERED(test, a);
}

/* Covered by a symbol, and executable, but not the kernel's. */
static void vsyscall_page_is_not_probed(struct kunit *test)
{
	struct kprobe *a = probe('a', NULL);

	a->addr = (kprobe_opcode_t *)VSYSCALL_ADDR;
	EXPECT_REFUSED(test, a, IS_ENABLED(CONFIG_X86_VSYSCALL_EMULATION) ? -EINVAL : -ENOENT);
}

/*
 * The kernel's own tables of what is reserved are not for modules to see. But there
 * are functions that have such instructions for sure, of which something is known.
 */
static const struct reserved_insn {
	const char *desc;
	const char *symbol;
	u8 code[4];
	unsigned int size;
	bool is_there;
} reserved_insns[] = {
	{ "warning", "refcount_warn_saturate", { 0x0f, 0x0b }, 2, IS_ENABLED(CONFIG_BUG) },
	{ "jump label", "kfree", { 0x0f, 0x1f, 0x44, 0x00 }, 4,
	  IS_ENABLED(CONFIG_JUMP_LABEL) && IS_ENABLED(CONFIG_TRACEPOINTS) },
	/* Of might_sleep(), and whatever that is at present: here nothing else is reserved. */
	{ "static call", "mutex_lock", { }, 0,
	  IS_ENABLED(CONFIG_HAVE_STATIC_CALL_INLINE) && IS_ENABLED(CONFIG_PREEMPT_DYNAMIC) &&
	  !IS_ENABLED(CONFIG_DEBUG_LOCK_ALLOC) },
};

KUNIT_ARRAY_PARAM_DESC(reserved_insn, reserved_insns, desc);

static void kernels_reserved_insn_is_not_probed(struct kunit *test)
{
	const struct reserved_insn *insn = test->param_value;
	struct kprobe *a = probe('a', insn->symbol);
	unsigned int refused = 0;
	const u8 *code;

	if (!insn->is_there)
		kunit_skip(test, "not in this kernel");
	ASSERT_REGISTERED(test, a);
	code = (const u8 *)a->addr;
	unregister_kprobe(a);
	for (unsigned int i = CALL_INSN_SIZE; i < (insn->size ? 300 : 40); i++) {
		if (memcmp(code + i, insn->code, insn->size))
			continue;
		a->symbol_name = NULL;
		a->addr = (kprobe_opcode_t *)code + i;
		switch (register_kprobe(a)) {
		case 0:
			unregister_kprobe(a);
			break;
		case -EINVAL:
			refused++;
			break;
		}
	}
	KUNIT_EXPECT_GT(test, refused, 0);
}

/* An instruction with a prefix that is another one while there is only one CPU. */
u64 kprobes_test_lock(u64 *cell);

asm(".pushsection .text\n"
	".balign 16\n"
	".globl kprobes_test_lock\n"
	".type kprobes_test_lock, @function\n"
	"kprobes_test_lock:\n"
	ASM_ENDBR
	"	nop\n"
	LOCK_PREFIX "incq (%rdi)\n"
	"	mov (%rdi), %rax\n"
	RETURN
	"	int3\n"
	".size kprobes_test_lock, . - kprobes_test_lock\n"
	".popsection\n");

/* A probe would keep the prefix from coming back with the second CPU, and so would a jump. */
static void patched_lock_prefix_is_not_probed(struct kunit *test)
{
	const u8 *nop = (const u8 *)kprobes_test_lock, *lock;
	u64 (*function)(u64 *cell) = kprobes_test_lock;
	struct kprobe *a = probe('a', NULL);
	u64 cell = ARG;

	OPTIMIZER_HIDE_VAR(nop);
	OPTIMIZER_HIDE_VAR(function);
	nop += ENDBR_SIZE;
	lock = nop + 1;
	if (*lock == 0xf0)
		kunit_skip(test, "only when booted with maxcpus=1");
	KUNIT_ASSERT_EQ(test, *lock, 0x3e);
	a->addr = (kprobe_opcode_t *)lock;
	EXPECT_REFUSED(test, a, -EINVAL);

	a->addr = (kprobe_opcode_t *)nop;
	ASSERT_REGISTERED(test, a);
	wait_for_kprobe_optimizer();
	KUNIT_EXPECT_FALSE(test, kprobe_optimized(a));
	KUNIT_EXPECT_EQ(test, function(&cell), ARG + 1);
	unregister_kprobe(a);

	a->addr = (kprobe_opcode_t *)lock + 4;
	ASSERT_REGISTERED(test, a);
	KUNIT_EXPECT_EQ(test, function(&cell), ARG + 2);
}

#if defined(CONFIG_HAVE_STATIC_CALL_INLINE) && defined(MODULE)
static void static_call_trampoline_is_not_probed(struct kunit *test)
{
	expect_reserved(test, (unsigned long)STATIC_CALL_TRAMP_ADDR(kprobes_test_call));
}
#else
static void static_call_trampoline_is_not_probed(struct kunit *test)
{
	kunit_skip(test, "no patched static calls, or not a module");
}
#endif

/* ---------------------------------------------------- faults of the instruction */

static const struct fault {
	const char *desc;
	const char *snippet;
	unsigned long address;
} faults[] = {
	{ "load, page fault", "fault_load", (unsigned long)BAD_ADDRESS },
	{ "load, not canonical", "fault_load", BIT(63) },
	{ "store, page fault", "fault_store", (unsigned long)BAD_ADDRESS },
	{ "user access, page fault", "fault_user", PAGE_SIZE },
};

KUNIT_ARRAY_PARAM_DESC(fault, faults, desc);

static void run_fault(const struct fault *fault, unsigned int input)
{
	set_input(input);
	state.di = fault->address;
	clear_journal();
	run(find_snippet(fault->snippet));
}

static struct cpu_state *expect_unprobed_fault(struct kunit *test, const struct fault *fault)
{
	struct cpu_state *expected = kunit_kcalloc(test, INPUTS, sizeof(*expected), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, expected);
	for (unsigned int i = 0; i < INPUTS; i++) {
		run_fault(fault, i);
		KUNIT_ASSERT_EQ(test, state.bx, ~0ULL);
		expected[i] = state;
	}
	return expected;
}

/* The fixup is reached as if there were no probe, and the instruction has not run. */
static void fault_is_fixed_up(struct kunit *test)
{
	const struct fault *fault = test->param_value;
	const struct cpu_state *expected = expect_unprobed_fault(test, fault);
	struct kprobe *a, *b = probe('b', TARGET->symbol);

	ASSERT_REGISTERED(test, b);
	for (int post = 0; post < 2; post++) {
		a = snippet_probe('a', find_snippet(fault->snippet), post);
		ASSERT_REGISTERED(test, a);
		for (unsigned int i = 0; i < INPUTS; i++) {
			run_fault(fault, i);
			KUNIT_ASSERT_STREQ(test, journal, "a");
			expect_state(test, &expected[i], post ? "with a post handler" : "probed",
				     i);
			EXPECT_CALL(test, TARGET, "b");
		}
		unregister_kprobe(a);
	}
}

/* Some more so in a handler. */
static void skipped_fault_is_fixed_up(struct kunit *test)
{
	const struct fault *fault = test->param_value;
	const struct snippet *snippet = find_snippet(fault->snippet);
	struct kprobe *a = post_probe('a', TRACED->symbol);
	struct kprobe *b = snippet_probe('b', snippet, true);
	struct cpu_state expected;

	run_fault(fault, 1);
	expected = state;
	test_probe('a')->act = run_in_handler;
	test_probe('a')->data = (unsigned long)snippet;
	ASSERT_REGISTERED(test, a);
	ASSERT_REGISTERED(test, b);
	set_input(1);
	state.di = fault->address;
	EXPECT_CALL(test, TRACED, "aA");
	expect_state(test, &expected, "skipped", 1);
	KUNIT_EXPECT_EQ(test, b->nmissed, 1);
}

/* A fault that is dealt with lets the instruction run again, and the probe be hit again. */
static void fault_may_sleep(struct kunit *test)
{
	struct kprobe *a = snippet_probe('a', find_snippet("fault_user"), true);
	unsigned long page;

	page = kunit_vm_mmap(test, NULL, 0, 2 * PAGE_SIZE, PROT_READ | PROT_WRITE,
			     MAP_ANONYMOUS | MAP_PRIVATE, 0);
	KUNIT_ASSERT_LT(test, page, TASK_SIZE);
	ASSERT_REGISTERED(test, a);
	for (int i = 0; i < 2; i++) {
		set_input(0);
		state.di = page;
		clear_journal();
		run(find_snippet("fault_user"));
		KUNIT_EXPECT_STREQ(test, journal, i ? "aA" : "aaA");
		KUNIT_EXPECT_EQ(test, state.ax, 0);
		KUNIT_EXPECT_TRUE(test, state.flags & X86_EFLAGS_IF);
	}

	/* The same without a post handler. */
	unregister_kprobe(a);
	a = snippet_probe('a', find_snippet("fault_user"), false);
	ASSERT_REGISTERED(test, a);
	set_input(0);
	state.di = page + PAGE_SIZE;
	clear_journal();
	run(find_snippet("fault_user"));
	KUNIT_EXPECT_STREQ(test, journal, "aa");
	KUNIT_EXPECT_EQ(test, state.ax, 0);
}

/* ----------------------------------------------------------------- registers */

static struct pt_regs seen;

static int see_and_change(struct test_probe *p, struct pt_regs *regs)
{
	seen = *regs;
	regs->dx = p->data;
	regs->cx = p->data;
	regs->di = (unsigned long)&state.memory[3];
	return 0;
}

static void change_after(struct kprobe *kp, struct pt_regs *regs, unsigned long flags)
{
	on_post(kp, regs, flags);
	regs->r12 = regs->ax;
	regs->flags |= X86_EFLAGS_CF;
}

static void expect_seen(struct kunit *test, const struct cpu_state *given)
{
	KUNIT_EXPECT_EQ(test, seen.ax, given->ax);
	KUNIT_EXPECT_EQ(test, seen.bx, given->bx);
	KUNIT_EXPECT_EQ(test, seen.cx, given->cx);
	KUNIT_EXPECT_EQ(test, seen.dx, given->dx);
	KUNIT_EXPECT_EQ(test, seen.si, given->si);
	KUNIT_EXPECT_EQ(test, seen.di, given->di);
	KUNIT_EXPECT_EQ(test, seen.bp, given->bp);
	KUNIT_EXPECT_EQ(test, seen.r8, given->r8);
	KUNIT_EXPECT_EQ(test, seen.r9, given->r9);
	KUNIT_EXPECT_EQ(test, seen.r10, given->r10);
	KUNIT_EXPECT_EQ(test, seen.r11, given->r11);
	KUNIT_EXPECT_EQ(test, seen.r12, given->r12);
	KUNIT_EXPECT_EQ(test, seen.r13, given->r13);
	KUNIT_EXPECT_EQ(test, seen.r14, given->r14);
	KUNIT_EXPECT_EQ(test, seen.r15, given->r15);
	KUNIT_EXPECT_EQ(test, seen.flags & ~X86_EFLAGS_RF, given->flags);
}

static void run_changed(struct kunit *test, const struct snippet *snippet, bool post,
			unsigned int input, unsigned long value)
{
	struct kprobe *a = snippet_probe('a', snippet, post);
	struct cpu_state given;

	test_probe('a')->act = see_and_change;
	test_probe('a')->data = value;
	a->post_handler = post ? change_after : NULL;
	ASSERT_REGISTERED(test, a);
	set_input(input);
	state.di = (unsigned long)BAD_ADDRESS;
	given = state;
	run(snippet);
	expect_seen(test, &given);
	unregister_kprobe(a);
}

/* However the instruction is run: copied, emulated, stepped. */
static void handlers_see_and_change_registers(struct kunit *test)
{
	for (unsigned int i = 0; i < 4; i++) {
		bool post = i / 2;

		run_changed(test, find_snippet("add"), post, i, 1000);
		KUNIT_EXPECT_EQ(test, state.ax, 0x0101010101010101 + 1000);
		KUNIT_EXPECT_EQ(test, state.r12, post ? state.ax : 0x0101010101010101 * 12);
		KUNIT_EXPECT_EQ(test, state.flags & X86_EFLAGS_CF, post);

		run_changed(test, find_snippet("jrcxz"), post, i, 0);
		KUNIT_EXPECT_EQ(test, state.r14, 2);
		run_changed(test, find_snippet("jrcxz"), post, i, 1);
		KUNIT_EXPECT_EQ(test, state.r14, 1);
		KUNIT_EXPECT_EQ(test, state.flags & X86_EFLAGS_CF, post);

		run_changed(test, find_snippet("fault_load"), post, i, 0);
		KUNIT_EXPECT_EQ(test, state.ax, state.memory[3]);
		KUNIT_EXPECT_EQ(test, state.r12, post ? state.ax : 0x0101010101010101 * 12);
		KUNIT_EXPECT_EQ(test, state.flags & X86_EFLAGS_CF, post);
	}
}

static void ip_is_behind_the_breakpoint(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = post_probe('a', place->symbol);

	a->post_handler = record_post;
	test_probe('a')->act = record_pre;
	ASSERT_REGISTERED(test, a);
	EXPECT_CALL(test, place, "aA");
	KUNIT_EXPECT_EQ(test, pre_ip, (unsigned long)a->addr + 1);
	if (kprobe_ftrace(a))
		KUNIT_EXPECT_EQ(test, post_ip, (unsigned long)a->addr + CALL_INSN_SIZE);
	else
		KUNIT_EXPECT_GT(test, post_ip, (unsigned long)a->addr);
}

/* ------------------------------------------------------- a function's entry */

/* A function without ENDBR. */
void kprobes_test_plain(void);

asm(".pushsection .text\n"
	".balign 16\n"
	".globl kprobes_test_plain\n"
	".type kprobes_test_plain, @function\n"
	"kprobes_test_plain:\n"
	"	nopl 8(%rax, %rax)\n"
	ASM_RET
	".size kprobes_test_plain, . - kprobes_test_plain\n"
	".popsection\n");

static void expect_entry(struct kunit *test, const char *symbol, unsigned int offset,
			 unsigned int at, bool entry)
{
	struct kprobe *a = probe('a', symbol), *b = probe('b', NULL);
	unsigned long start;

	a->offset = at;
	ASSERT_REGISTERED(test, a);
	start = (unsigned long)a->addr - at;
	unregister_kprobe(a);

	a->addr = NULL;
	a->offset = offset;
	ASSERT_REGISTERED(test, a);
	b->addr = (kprobe_opcode_t *)start;
	b->offset = offset;
	ASSERT_REGISTERED(test, b);
	KUNIT_EXPECT_EQ(test, (unsigned long)a->addr, start + at);
	KUNIT_EXPECT_PTR_EQ(test, a->addr, b->addr);
	KUNIT_EXPECT_EQ(test, !!(a->flags & KPROBE_FLAG_ON_FUNC_ENTRY), entry);
	KUNIT_EXPECT_EQ(test, !!(b->flags & KPROBE_FLAG_ON_FUNC_ENTRY), entry);
	unregister_kprobe(a);
	unregister_kprobe(b);
	a->addr = NULL;
}

/* The entry is after ENDBR, which the CPU has to find. */
static void entry_is_behind_endbr(struct kunit *test)
{
	expect_entry(test, "kprobes_test_frame", 0, ENDBR_SIZE, true);
	expect_entry(test, "kprobes_test_frame", ENDBR_SIZE, ENDBR_SIZE, true);
	expect_entry(test, "kprobes_test_frame", ENDBR_SIZE + 1, ENDBR_SIZE + 1, false);
	expect_entry(test, "mktime64", 0, ENDBR_SIZE, true);
	expect_entry(test, "mktime64", ENDBR_SIZE, ENDBR_SIZE, true);
	expect_entry(test, "kprobes_test_plain", 0, 0, true);
	expect_entry(test, "kprobes_test_plain", 5, 5, false);
}

/* After ENDBR there is the call of ftrace: one instruction, whether in use or not. */
static void inside_of_entry_is_not_probed(struct kunit *test)
{
	struct kprobe *a = probe('a', "mktime64");

	if (!IS_ENABLED(CONFIG_KPROBES_ON_FTRACE))
		kunit_skip(test, "no probes through ftrace");
	for (int armed = 0; armed < 2; armed++) {
		for (unsigned int i = 1; i < CALL_INSN_SIZE; i++) {
			a->offset = ENDBR_SIZE + i;
			EXPECT_REFUSED(test, a, -EILSEQ);
		}
		if (!armed)
			ASSERT_REGISTERED(test, probe('b', "mktime64"));
	}
	a->offset = ENDBR_SIZE + CALL_INSN_SIZE;
	ASSERT_REGISTERED(test, a);
	EXPECT_CALL(test, TRACED, "ba");
}

/* ----------------------------------------------------- stacks and neighbours */

/* An instruction at each of frame_offsets[]. */
u64 kprobes_test_frame(u64 arg);

asm(".pushsection .text\n"
	".balign 16\n"
	".globl kprobes_test_frame\n"
	".type kprobes_test_frame, @function\n"
	"kprobes_test_frame:\n"
	ASM_ENDBR
	"	push %rbx\n"
	"	push %r12\n"
	"	lea 1(%rdi), %rax\n"
	"	pop %r12\n"
	"	pop %rbx\n"
	ANNOTATE_RETPOLINE_SAFE
	"	ret\n"
	"	int3\n"
	".size kprobes_test_frame, . - kprobes_test_frame\n"
	".popsection\n");

static const unsigned int frame_offsets[] = { 0, 1, 3, 7, 9, 10 };

#define FRAME_INSNS	ARRAY_SIZE(frame_offsets)

static struct kprobe *frame_probe(char name, unsigned int insn)
{
	struct kprobe *kp = post_probe(name, "kprobes_test_frame");

	kp->offset = ENDBR_SIZE + frame_offsets[insn];
	return kp;
}

static void neighbours_are_probed(struct kunit *test)
{
	static const struct place frame = {
		"kprobes_test_frame", kprobes_test_frame, kprobes_test_frame, ARG + 1
	};
	struct kprobe *all[FRAME_INSNS];
	unsigned int i;

	for (i = 0; i < FRAME_INSNS; i++)
		all[i] = frame_probe('a' + i, i);
	KUNIT_ASSERT_EQ(test, register_kprobes(all, FRAME_INSNS), 0);
	EXPECT_CALL(test, &frame, "aAbBcCdDeEfF");
	for (i = 0; i < FRAME_INSNS; i += 2)
		unregister_kprobe(all[i]);
	EXPECT_CALL(test, &frame, "bBdDfF");
	for (i = 0; i < FRAME_INSNS; i += 2) {
		all[i]->addr = NULL;
		all[i]->post_handler = NULL;
		ASSERT_REGISTERED(test, all[i]);
	}
	EXPECT_CALL(test, &frame, "abBcdDefF");
}

static noinline __noclone u64 kprobes_test_middle(u64 arg)
{
	return kprobes_test_frame(arg) + 1;
}

static noinline __noclone u64 kprobes_test_outer(u64 arg)
{
	return kprobes_test_middle(arg) + 1;
}

static noinline __noclone u64 kprobes_test_traced_outer(u64 arg)
{
	return mktime64(arg, 1, 1, 0, 0, 0) + 1;
}

static unsigned long trace_from_here[TRACE_LENGTH], trace_from_regs[TRACE_LENGTH];
static unsigned long post_trace_from_here[TRACE_LENGTH], post_trace_from_regs[TRACE_LENGTH];

/* Addresses on the stack, up to a 0. */
static void save_trace(unsigned long *trace, struct pt_regs *regs)
{
	struct unwind_state unwind;
	unsigned int i = 0;

	for (unwind_start(&unwind, current, regs, NULL);
	     !unwind_done(&unwind) && i < TRACE_LENGTH - 1; unwind_next_frame(&unwind))
		trace[i++] = unwind_get_return_address(&unwind);
	trace[i] = 0;
}

static int trace_pre(struct test_probe *p, struct pt_regs *regs)
{
	save_trace(trace_from_here, NULL);
	save_trace(trace_from_regs, regs);
	return 0;
}

static void trace_post(struct kprobe *kp, struct pt_regs *regs, unsigned long flags)
{
	save_trace(post_trace_from_here, NULL);
	save_trace(post_trace_from_regs, regs);
}

/* Is each of the functions, up to a NULL, called by the next one? */
static void expect_trace(struct kunit *test, const unsigned long *trace,
			 const char * const *functions, const char *what, unsigned int insn)
{
	unsigned int i = 0;

	while (trace[i] && !is_in(trace[i], functions[0]))
		i++;
	for (; *functions; i++, functions++) {
		KUNIT_ASSERT_NE_MSG(test, trace[i], 0, "%s: no %s, instruction %u", what,
				    *functions, insn);
		KUNIT_EXPECT_TRUE_MSG(test, is_in(trace[i], *functions),
				      "%s: %pS instead of %s, instruction %u", what,
				      (void *)trace[i], *functions, insn);
	}
}

static void expect_traces(struct kunit *test, const char * const *functions,
			  const char * const *functions_after, unsigned int insn)
{
	expect_trace(test, trace_from_here, functions, "pre handler", insn);
	expect_trace(test, post_trace_from_here, functions_after, "post handler", insn);

	/* From registers it is walked from their caller on. */
	expect_trace(test, trace_from_regs, functions + 1, "registers", insn);
	expect_trace(test, post_trace_from_regs, functions_after + 1, "registers after", insn);
	KUNIT_EXPECT_TRUE(test, is_in(trace_from_regs[0], functions[1]));
	KUNIT_EXPECT_TRUE(test, is_in(post_trace_from_regs[0], functions_after[1]));
}

static void stack_is_walked(struct kunit *test)
{
	static const char * const functions[] = {
		"kprobes_test_frame", "kprobes_test_middle", "kprobes_test_outer",
		"stack_is_walked", "kunit_try_run_case", NULL
	};
	struct kprobe *a;

	if (!IS_ENABLED(CONFIG_UNWINDER_ORC))
		kunit_skip(test, "needs the ORC unwinder");
	for (unsigned int insn = 0; insn < FRAME_INSNS; insn++) {
		bool returns = insn == FRAME_INSNS - 1;

		a = frame_probe('a', insn);
		a->addr = NULL;
		a->post_handler = trace_post;
		test_probe('a')->act = trace_pre;
		ASSERT_REGISTERED(test, a);
		KUNIT_EXPECT_EQ(test, kprobes_test_outer(ARG), ARG + 3);
		unregister_kprobe(a);
		expect_traces(test, functions, functions + returns, insn);
	}
}

static void stack_is_walked_from_a_traced_function(struct kunit *test)
{
	static const char * const functions[] = {
		"mktime64", "kprobes_test_traced_outer",
		"stack_is_walked_from_a_traced_function", "kunit_try_run_case", NULL
	};
	struct kprobe *a = post_probe('a', "mktime64");

	if (!IS_ENABLED(CONFIG_UNWINDER_ORC))
		kunit_skip(test, "needs the ORC unwinder");
	a->post_handler = trace_post;
	test_probe('a')->act = trace_pre;
	ASSERT_REGISTERED(test, a);
	KUNIT_EXPECT_EQ(test, kprobes_test_traced_outer(ARG), TRACED->result + 1);
	expect_traces(test, functions, functions, 0);
}

static struct kunit_case kprobes_x86_cases[] = {
	KUNIT_CASE_PARAM(insn_does_the_same, snippet_gen_params),
	KUNIT_CASE_PARAM(skipped_insn_does_the_same, snippet_gen_params),
	KUNIT_CASE_PARAM(inside_of_insn_is_not_probed, snippet_gen_params),
	KUNIT_CASE(trap_is_not_probed),
	KUNIT_CASE(unprobeable_insn_is_refused),
	KUNIT_CASE(load_with_zero_padding_is_not_probed),
	KUNIT_CASE(vsyscall_page_is_not_probed),
	KUNIT_CASE_PARAM(kernels_reserved_insn_is_not_probed, reserved_insn_gen_params),
	KUNIT_CASE(patched_lock_prefix_is_not_probed),
	KUNIT_CASE(static_call_trampoline_is_not_probed),
	KUNIT_CASE_PARAM(fault_is_fixed_up, fault_gen_params),
	KUNIT_CASE_PARAM(skipped_fault_is_fixed_up, fault_gen_params),
	KUNIT_CASE(fault_may_sleep),
	KUNIT_CASE(handlers_see_and_change_registers),
	KUNIT_CASE_PARAM(ip_is_behind_the_breakpoint, place_gen_params),
	KUNIT_CASE(entry_is_behind_endbr),
	KUNIT_CASE(inside_of_entry_is_not_probed),
	KUNIT_CASE(neighbours_are_probed),
	KUNIT_CASE(stack_is_walked),
	KUNIT_CASE(stack_is_walked_from_a_traced_function),
	{ }
};

static struct kunit_suite kprobes_x86_suite = {
	.name = "kprobes-x86",
	.suite_init = start_suite,
	.init = start_test,
	.exit = end_test,
	.test_cases = kprobes_x86_cases,
};

kunit_test_suite(kprobes_x86_suite);

#ifdef CONFIG_KRETPROBES
/* ------------------------------------------------------------------- returns */

static unsigned long seen_stack;

static void see_return(struct test_kretprobe *p, struct kretprobe_instance *ri,
		       struct pt_regs *regs)
{
	seen = *regs;
	seen_stack = *(unsigned long *)regs->sp;
}

static struct kretprobe *snippet_return_probe(char name, const struct snippet *snippet)
{
	struct kretprobe *rp = return_probe(name, NULL);

	rp->kp.addr = (kprobe_opcode_t *)snippet->code;
	return rp;
}

static void expect_seen_return(struct kunit *test, const struct snippet *snippet,
			       const struct cpu_state *left)
{
	const struct snippet *ret = find_snippet("ret");

	expect_seen(test, left);
	KUNIT_EXPECT_EQ(test, seen.ip, ret->code + ret->target);
	KUNIT_EXPECT_EQ(test, seen_stack, snippet->code);	/* what its caller has pushed */
	KUNIT_EXPECT_EQ(test, seen.orig_ax, -1UL);
	KUNIT_EXPECT_EQ(test, seen.cs, __KERNEL_CS);
	KUNIT_EXPECT_EQ(test, seen.ss, __KERNEL_DS);
}

/* All of them, and the flags, but for that of direction: it is clear at every return. */
static void return_leaves_registers(struct kunit *test)
{
	static const char * const names[] = { "add", "cli", "sti", "popf_off" };

	test_kretprobe('r')->on_return = see_return;
	for (unsigned int n = 0; n < ARRAY_SIZE(names); n++) {
		const struct snippet *snippet = find_snippet(names[n]);
		const struct cpu_state *expected = expect_what_is_unprobed(test, snippet);
		struct kretprobe *r = snippet_return_probe('r', snippet);

		ASSERT_RETURN_PROBED(test, r);
		for (unsigned int i = 0; i < INPUTS; i++) {
			if (expected[i].flags & X86_EFLAGS_DF)
				continue;
			set_input(i);
			clear_journal();
			run(snippet);
			KUNIT_ASSERT_STREQ(test, journal, "rR");
			expect_state(test, &expected[i], "return-probed", i);
			expect_seen_return(test, snippet, &expected[i]);
		}
		unregister_kretprobe(r);
	}
}

static void change_result(struct test_kretprobe *p, struct kretprobe_instance *ri,
			  struct pt_regs *regs)
{
	regs->ax = 1066;
	regs->dx = ~regs->dx;
}

static void return_handler_changes_the_result(struct kunit *test)
{
	const struct snippet *snippet = find_snippet("nop");
	struct cpu_state *expected = expect_what_is_unprobed(test, snippet);

	test_kretprobe('r')->on_return = change_result;
	ASSERT_RETURN_PROBED(test, snippet_return_probe('r', snippet));
	for (unsigned int i = 0; i < 2; i++) {
		expected[i].ax = 1066;
		expected[i].dx = ~expected[i].dx;
		set_input(i);
		run(snippet);
		expect_state(test, &expected[i], "return-probed", i);
	}
}

/* A function that ends in a jump to another one. */
u64 kprobes_test_tail(u64 arg);

asm(".pushsection .text\n"
	".balign 16\n"
	".globl kprobes_test_tail\n"
	".type kprobes_test_tail, @function\n"
	"kprobes_test_tail:\n"
	ASM_ENDBR
	"	lea 10(%rdi), %rdi\n"
	"	jmp kprobes_test_frame\n"
	"	int3\n"
	".size kprobes_test_tail, . - kprobes_test_tail\n"
	".popsection\n");

/* Its return is that of both. */
static void functions_return_together(struct kunit *test)
{
	static const struct place tail = {
		"kprobes_test_tail", kprobes_test_tail, kprobes_test_tail, ARG + 11
	};
	static const char names[] = "rstu";
	struct kretprobe *r = return_probe('r', "kprobes_test_tail");
	struct kretprobe *s = return_probe('s', "kprobes_test_frame");
	struct kretprobe *t = return_probe('t', "kprobes_test_frame");
	struct kretprobe *u = return_probe('u', "kprobes_test_tail");

	ASSERT_RETURN_PROBED(test, r);
	EXPECT_CALL(test, &tail, "rR");
	ASSERT_RETURN_PROBED(test, s);
	EXPECT_CALL(test, &tail, "rsSR");
	ASSERT_RETURN_PROBED(test, t);
	ASSERT_RETURN_PROBED(test, u);
	EXPECT_CALL(test, &tail, "urtsSTRU");
	for (unsigned int i = 0; names[i]; i++) {
		KUNIT_EXPECT_EQ(test, test_kretprobe(names[i])->value, tail.result);
		KUNIT_EXPECT_EQ(test, test_kretprobe(names[i])->caller,
				test_kretprobe('r')->caller);
	}
	unregister_kretprobe(r);
	unregister_kretprobe(u);
	EXPECT_CALL(test, &tail, "tsST");
}

/* ENDBR is part of it, and what follows. */
static void entry_is_return_probed(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kretprobe *r = return_probe('r', place->symbol);

	for (unsigned int offset = 0; offset < TEXT_BYTES; offset++) {
		r->kp.addr = NULL;
		r->kp.offset = offset;
		if (offset && offset != ENDBR_SIZE) {
			EXPECT_RETURN_REFUSED(test, r, -EINVAL);
			continue;
		}
		ASSERT_RETURN_PROBED(test, r);
		EXPECT_CALL(test, place, "rR");
		unregister_kretprobe(r);
	}
}

/* ------------------------------------------------- traces at each instruction */

/* Call a function, with a trap after each instruction until it has returned. */
u64 kprobes_test_step(u64 arg, u64 (*function)(u64 arg));

asm(".pushsection .text\n"
	".balign 16\n"
	".globl kprobes_test_step\n"
	".type kprobes_test_step, @function\n"
	"kprobes_test_step:\n"
	ASM_ENDBR
	"	push %rbx\n"
	"	pushfq\n"
	"	btsl $" __stringify(X86_EFLAGS_TF_BIT) ", (%rsp)\n"
	"	popfq\n"
	ANNOTATE_RETPOLINE_SAFE
	"	call *%rsi\n"
	"	pushfq\n"
	"	btrl $" __stringify(X86_EFLAGS_TF_BIT) ", (%rsp)\n"
	"	popfq\n"
	"	pop %rbx\n"
	ASM_RET
	".size kprobes_test_step, . - kprobes_test_step\n"
	".popsection\n");
STACK_FRAME_NON_STANDARD_FP(kprobes_test_step);

/**
 * struct steps - What the traps of kprobes_test_step() have found
 * @place:	Of the function's return address.
 * @trampoline:	What stood there when it was replaced.
 * @expected:	The trace of the first trap: nothing is replaced yet.
 * @frames:	How many entries it has.
 * @count:	How many traps there were.
 * @in_trampoline: One was in front of the trampoline's first instruction.
 * @bad:	How many had a trace that was wrong.
 * @bad_ip:	Where the first of these was.
 */
static struct steps {
	unsigned long *place;
	unsigned long trampoline;
	unsigned long expected[TRACE_LENGTH];
	unsigned int frames;
	unsigned int count;
	bool in_trampoline;
	unsigned int bad;
	unsigned long bad_ip;
} steps;

#define MAX_STEPS	100000

static unsigned int count_frames(const unsigned long *trace)
{
	unsigned int n = 0;

	while (trace[n])
		n++;
	return n;
}

/* Does a trace end in @caller, or begin there if that is 0, and its callers? */
static bool is_good_trace(const unsigned long *trace, unsigned long caller)
{
	const unsigned long *callers = steps.expected + 1;
	unsigned int above = count_frames(trace) - (steps.frames - 1);

	if ((int)above < !!caller || memcmp(trace + above, callers,
					    (steps.frames - 1) * sizeof(*trace)))
		return false;
	return caller ? trace[above - 1] == caller : !above;
}

static void check_step(struct pt_regs *regs)
{
	static unsigned long from_regs[TRACE_LENGTH], from_here[TRACE_LENGTH];
	unsigned long caller = steps.expected[0];
	bool returned;

	if (!steps.count++) {
		save_trace(steps.expected, regs);
		steps.frames = count_frames(steps.expected);
		steps.place = (unsigned long *)regs->sp;
		return;
	}
	if (regs->sp == (unsigned long)steps.place && *steps.place != caller)
		steps.trampoline = *steps.place;
	if (regs->ip == steps.trampoline)
		steps.in_trampoline = true;

	/* The trampoline is taken for the caller, and that is not above itself. */
	returned = regs->ip - caller < 16;
	save_trace(from_regs, regs);
	save_trace(from_here, NULL);
	if (is_good_trace(from_regs, returned || regs->ip == steps.trampoline ? 0 : caller) &&
	    is_good_trace(from_here, returned ? regs->ip : caller))
		return;
	if (!steps.bad++)
		steps.bad_ip = regs->ip;
}

static int on_trap(struct notifier_block *nb, unsigned long event, void *data)
{
	struct die_args *args = data;
	unsigned long *dr6 = (unsigned long *)args->err;

	if (event != DIE_DEBUG || current != tester || !(*dr6 & DR_STEP))
		return NOTIFY_DONE;
	*dr6 &= ~DR_STEP;
	check_step(args->regs);
	if (steps.count == MAX_STEPS)
		args->regs->flags &= ~X86_EFLAGS_TF;
	return NOTIFY_STOP;
}

static struct notifier_block trap_notifier = { .notifier_call = on_trap };

static const struct place stepped[] = {
	{ "kprobes_test_frame", kprobes_test_frame, kprobes_test_frame,
	  ARG * NSEC_PER_SEC + 1 },
	{ "nsecs_to_jiffies64", nsecs_to_jiffies64, nsecs_to_jiffies64, ARG * HZ },
};

KUNIT_ARRAY_PARAM_DESC(stepped, stepped, symbol);

/* A generic retpoline has, for an instruction or two, a return address too many. */
static void need_traces_at_each_instruction(struct kunit *test)
{
	if (!IS_ENABLED(CONFIG_UNWINDER_ORC))
		kunit_skip(test, "needs the ORC unwinder");
	if (boot_cpu_has(X86_FEATURE_RETPOLINE) && !boot_cpu_has(X86_FEATURE_RETPOLINE_LFENCE))
		kunit_skip(test, "the stack cannot be walked in generic retpolines");
}

static void real_callers_are_in_traces_at_each_instruction(struct kunit *test)
{
	const struct place *place = test->param_value;
	unsigned long flags;
	u64 result;

	need_traces_at_each_instruction(test);
	memset(&steps, 0, sizeof(steps));
	ASSERT_RETURN_PROBED(test, return_probe('r', place->symbol));
	ASSERT_RETURN_PROBED(test, return_probe('s', place->symbol));
	KUNIT_ASSERT_EQ(test, register_die_notifier(&trap_notifier), 0);
	local_irq_save(flags);
	result = kprobes_test_step(ARG * NSEC_PER_SEC, place->call);
	local_irq_restore(flags);
	unregister_die_notifier(&trap_notifier);

	KUNIT_EXPECT_EQ(test, result, place->result);
	KUNIT_EXPECT_STREQ(test, journal, "srRS");
	KUNIT_EXPECT_TRUE(test, steps.in_trampoline);
	KUNIT_EXPECT_LT(test, steps.count, MAX_STEPS);
	KUNIT_EXPECT_GT(test, steps.frames, 3);
	KUNIT_EXPECT_EQ_MSG(test, steps.bad, 0, "of %u, the first one at %pS", steps.count,
			    (void *)steps.bad_ip);
}

static struct kunit_case kretprobes_x86_cases[] = {
	KUNIT_CASE(return_leaves_registers),
	KUNIT_CASE(return_handler_changes_the_result),
	KUNIT_CASE(functions_return_together),
	KUNIT_CASE_PARAM(entry_is_return_probed, place_gen_params),
	KUNIT_CASE_PARAM(real_callers_are_in_traces_at_each_instruction, stepped_gen_params),
	{ }
};

static struct kunit_suite kretprobes_x86_suite = {
	.name = "kretprobes-x86",
	.suite_init = start_return_suite,
	.init = start_return_test,
	.exit = end_return_test,
	.test_cases = kretprobes_x86_cases,
};

kunit_test_suite(kretprobes_x86_suite);
#endif /* CONFIG_KRETPROBES */

#endif /* _TEST_KPROBES_X86_H */
