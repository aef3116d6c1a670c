// SPDX-License-Identifier: GPL-2.0
/* Snippets whose instruction a jump can replace, and snippets where it cannot. */
#include <linux/jump_label.h>
#include <linux/objtool.h>

#include <asm/asm.h>

#include "../return_probes.h"
#include "jump_snippets.h"

#define JUMP_SNIPPET(table, name, before, insn, after)			\
	__SNIPPET(table, "kprobes_test_opt_", name, before, insn, after, "0")

#define FITTING(name, before, insn, after)	JUMP_SNIPPET("fit", name, before, insn, after)
#define REFUSED(name, before, insn, after)	JUMP_SNIPPET("unfit", name, before, insn, after)

/* Objtool cannot validate the stack of each snippet. */
#define UNVALIDATED							\
	".pushsection .discard.func_stack_frame_non_standard, \"aw\"\n"	\
	"	.quad 880b\n"						\
	".popsection\n"

/* An instruction of three bytes to probe, and the next one at label 1. */
#define PROBED		"add %rdx, %rax"
#define FOLLOWING	"1: lea 1(%rax), %rax\n"

/* A per-CPU operand by its absolute address. */
#ifdef CONFIG_SMP
#define PER_CPU_ADDRESS(var)	"%gs:" #var
#else
#define PER_CPU_ADDRESS(var)	#var
#endif

/* If cx is 1, go to the address in r11. */
#define GO_TO_R11							\
	"cmp $1, %ecx\n"						\
	"jne 3f\n"							\
	"push %r11\n"							\
	RETURN								\
	"3:\n"

struct static_key_false kprobes_test_flipped_key = STATIC_KEY_FALSE_INIT;

SNIPPET_TABLE_LABEL("fit", "fit");
SNIPPET_TABLE_LABEL("unfit", "unfit");

/* A jump can displace all of these. */
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
 * A hit raises preempt_count, which must not show. The topmost bit is masked, as a need to
 * reschedule may come and go.
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

/* Branches to the first byte of a jump, or to the byte after it, do no harm. */
FITTING("jcc_to_first", "cmp $1, %ecx\n je 881f\n inc %rbx", PROBED, FOLLOWING RETURN);
FITTING("jcc_after", "", PROBED, FOLLOWING "2: dec %rcx\n jg 2b\n" RETURN);
FITTING("loop_after", "inc %rcx", PROBED, FOLLOWING "2: inc %rbx\n loop 2b\n" RETURN);
FITTING("return_to_first", "call kprobes_test_callee", PROBED, FOLLOWING RETURN);
FITTING("label_to_first", JUMP_LABEL("881f"), PROBED, FOLLOWING RETURN);
FITTING("label_after", JUMP_LABEL("4f"), PROBED, FOLLOWING "4:" RETURN);
FITTING("pointer_to_after", ".pushsection .rodata\n .balign 8\n .quad 4f\n .popsection\n",
	PROBED, FOLLOWING "4:" ANNOTATE_NOENDBR RETURN);
FITTING("fixup_elsewhere", "3: mov (%rdi), %rbx", PROBED,
	FOLLOWING RETURN "int3\n 4:" RETURN _ASM_EXTABLE(3b, 4b));

/* Branches to a displaced instruction other than the first. */
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

/* The part of that function that another symbol covers. */
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

/* Other ways to reach such an instruction. */
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

/* Code that is never run: an indirect jump could go anywhere. */
#define NEVER(insn)	"cmp $7, %ecx\n jne 3f\n" insn "\n int3\n 3:\n"

REFUSED("jump_table",
	".pushsection .rodata\n .balign 4\n 4: .long 1f - 4b\n .popsection\n"
	NEVER("push %rbx\n movslq 4b(%rip), %r11\n" INDIRECT "jmp *%r11"), PROBED,
	ANNOTATE_NOENDBR FOLLOWING RETURN UNVALIDATED);
#ifdef CONFIG_MITIGATION_RETPOLINE
REFUSED("thunk", NEVER("push %rbx\n jmp __x86_indirect_thunk_r11"), PROBED,
	FOLLOWING RETURN UNVALIDATED);
#endif

/* Instructions that cannot run in a detour. */
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

/* Text that is not the function's, or that others patch. */
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

SNIPPET_TABLE_LABEL("fit", "fit_end");
SNIPPET_TABLE_LABEL("unfit", "unfit_end");

const void *kpt_fit_gen_params(const void *prev, char *desc)
{
	return kpt_next_snippet(prev, kprobes_test_fit, kprobes_test_fit_end, desc);
}

const void *kpt_unfit_gen_params(const void *prev, char *desc)
{
	return kpt_next_snippet(prev, kprobes_test_unfit, kprobes_test_unfit_end, desc);
}

/*
 * Have the optimiser scan for branch targets now. Later, probes of the tests are in the
 * module's data, and an address in data counts as a target if it is inside a function.
 */
int kpt_start_jump_suite(struct kunit_suite *suite)
{
	struct kprobe early = { .symbol_name = OTHER_TARGET->symbol };
	int err = register_kprobe(&early);

	if (err)
		return err;
	wait_for_kprobe_optimizer();
	unregister_kprobe(&early);
	return kpt_start_return_suite(suite);
}
