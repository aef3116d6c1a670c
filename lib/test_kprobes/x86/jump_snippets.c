// SPDX-License-Identifier: GPL-2.0
/* Snippets whose instruction a jump can replace, and snippets where it cannot. */
#include <linux/jump_label.h>
#include <linux/objtool.h>
#include <linux/static_call_types.h>

#include <asm/asm.h>

#include "../return_probes.h"
#include "../targets.h"
#include "jump_code.h"
#include "jump_snippets.h"

#define JUMP_SNIPPET(table, name, before, insn, after)			\
	__SNIPPET(table, "kprobes_test_opt_", name, before, insn, after, "0")

#define FITTING(name, before, insn, after)	JUMP_SNIPPET("fit", name, before, insn, after)
#define RELAYED(name, before, insn, after)				\
	FITTING(name, before, insn, after "\n .skip 40, 0xcc\n")
#define REFUSED(name, before, insn, after)	JUMP_SNIPPET("unfit", name, before, insn, after)

/* Objtool cannot validate the stack of each snippet. */
#define UNVALIDATED							\
	".pushsection .discard.func_stack_frame_non_standard, \"aw\"\n"	\
	_ASM_PTR "880b\n"						\
	".popsection\n"

/*
 * A register that snippets may change, the same as an operand of 32 bits, the thunk for
 * jumps to it, a load of 32 bits with sign, and a branch that is taken if all of cx is 0.
 */
#ifdef CONFIG_X86_64
#define TEMP		"%r11"
#define TEMP_32		"%r11d"
#define TEMP_THUNK	"__x86_indirect_thunk_r11"
#define MOV_S32		"movslq"
#define JCXZ		"jrcxz"
#else
#define TEMP		"%ebx"
#define TEMP_32		"%ebx"
#define TEMP_THUNK	"__x86_indirect_thunk_ebx"
#define MOV_S32		"mov"
#define JCXZ		"jecxz"
#endif

/* Add dx to ax in three bytes. */
#ifdef CONFIG_X86_64
#define PROBED		"add %rdx, %rax"
#else
#define PROBED		"lea (%eax, %edx), %eax"
#endif

#define ADD_ONE		"lea 1(" AX "), " AX

/* The instruction after the probed one, at label 1. */
#define FOLLOWING	"1: " ADD_ONE "\n"

/* Set bx to the address of kprobes_test_callee(). */
#define CALLEE_TO_BX	"lea " AT("kprobes_test_callee") ", " BX

/* A word of data. */
#define WORD(label, value)	_ASM_ALIGN "\n" label _ASM_PTR value "\n"

/* A per-CPU operand by its absolute address. */
#ifdef CONFIG_SMP
#define PER_CPU_ADDRESS(var)	"%" __stringify(__percpu_seg) ":" var
#else
#define PER_CPU_ADDRESS(var)	var
#endif

/* If cx is 7, which it never is, go to the address in TEMP. */
#define GO_TO_TEMP							\
	"cmp $7, %ecx\n"						\
	"jne 3f\n"							\
	"push " TEMP "\n"						\
	RETURN								\
	"3:\n"

struct static_key_false kprobes_test_flipped_key = STATIC_KEY_FALSE_INIT;

#ifdef CONFIG_X86_32
asm(".pushsection .data\n"
	WORD("kprobes_test_callee_pointer:", "kprobes_test_callee")
	".popsection\n");
#endif

SNIPPET_TABLE_LABEL("fit", "fit");
SNIPPET_TABLE_LABEL("unfit", "unfit");

/* A jump can displace all of these. */
FITTING("plain", "", PROBED, FOLLOWING RETURN);
FITTING("mov_ds", "mov %ds, " TEMP_32, "mov " TEMP_32 ", %ds", "nop\n nop\n nop\n" RETURN);
FITTING("five_bytes", "", "mov $1066, %eax", "1: dec " CX "\n jg 1b\n" RETURN);
FITTING("jcc_first", "", "jc 1f", ADD_ONE "\n lea 2(" AX "), " AX "\n 1:" RETURN);
FITTING("jcc_near", "", "{disp32} jnz 1f", ADD_ONE "\n 1:" RETURN);
FITTING("jcc_middle", "", "push " DX, "jp 1f\n " ADD_ONE "\n 1: pop " BX "\n" RETURN);
FITTING("jcc_last", "", PROBED, "js 1f\n " ADD_ONE "\n 1:" RETURN);
FITTING("jmp_first", "", "jmp 1f", "int3\n int3\n int3\n 1:" RETURN);
FITTING("jmp_near", "", "{disp32} jmp 1f", "int3\n 1:" RETURN);
FITTING("jmp_last", "", PROBED, "jmp 1f\n int3\n 1:" RETURN);
FITTING("tail_call", "", "jmp kprobes_test_callee", "");
FITTING("call", "", "call kprobes_test_callee", RETURN);
FITTING("call_last", "", PROBED, "call kprobes_test_callee\n" RETURN);
FITTING("call_reg_last", CALLEE_TO_BX, ADD_ONE, INDIRECT "call *" BX "\n" RETURN);
FITTING("ret_last", "", ADD_ONE, RETURN);
FITTING("ret_before_padding", "", PROBED, RETURN);
FITTING("rip_first", "", "mov " AT("kprobes_test_cell") ", " AX, RETURN);
FITTING("rip_last", "", PROBED, "lea " AT("kprobes_test_cell") ", " BX "\n" RETURN);
FITTING("stack", "", "push " DX,
	"push " SP "\n pop " BX "\n sub " SP ", " BX "\n pop " AX "\n" RETURN);
FITTING("flags", "", "pushf", "pop " BX "\n" PROBED "\n" RETURN);
FITTING("cli", "", "cli", ADD_ONE "\n" RETURN);
FITTING("sti", "", "sti", ADD_ONE "\n" RETURN);
FITTING("std", "", "std", ADD_ONE "\n cld\n" RETURN);
FITTING("rep_stos", "lea (" SI "), " DI, "rep stosb", ADD_ONE "\n" RETURN);

#ifdef CONFIG_X86_32
/* Instructions that x86-64 does not have, or not with these operands. */
FITTING("one_byte_each", "", "inc %eax", "dec %ebx\n push %edx\n inc %ecx\n pop %edx\n" RETURN);
FITTING("two_bytes", "", "add %edx, %eax", FOLLOWING RETURN);
FITTING("pusha", "", "pusha", "mov 20(%esp), %ebx\n lea 28(%esp), %esp\n pop %ecx\n" RETURN);
FITTING("store_address", "", "mov %eax, kprobes_test_cell",
	"xchg kprobes_test_cell, %ebx\n movl $0x55667788, kprobes_test_cell\n" RETURN);
FITTING("call_address", "", INDIRECT "call *kprobes_test_callee_pointer", RETURN);
FITTING("call_address_last", "", PROBED, INDIRECT "call *kprobes_test_callee_pointer\n" RETURN);
FITTING("call_memory_last", "movl $kprobes_test_callee, (%esi)", PROBED,
	INDIRECT "call *(%esi)\n" RETURN);
FITTING("jmp_address", "", INDIRECT "jmp *kprobes_test_callee_pointer", "");
#endif

/*
 * A hit raises preempt_count, which must not show. The topmost bit is masked, as a need to
 * reschedule may come and go.
 */
#define PREEMPT_COUNT_OPERAND	PER_CPU_ADDRESS("__preempt_count")
#define SHOW_COUNT							\
	"mov " PREEMPT_COUNT_OPERAND ", " TEMP_32 "\n"			\
	"and $0x7fffffff, " TEMP_32 "\n"
FITTING("count_read", "", "mov " PREEMPT_COUNT_OPERAND ", %eax", "and $0x7fffffff, %eax\n" RETURN);
FITTING("count_inc", "", "incl " PREEMPT_COUNT_OPERAND,
	SHOW_COUNT "decl " PREEMPT_COUNT_OPERAND "\n cmp " SP ", " SP "\n" RETURN);
FITTING("count_dec", "incl " PREEMPT_COUNT_OPERAND,
	"decl " PREEMPT_COUNT_OPERAND, SHOW_COUNT RETURN);
FITTING("count_add", "", "addl $0x100, " PREEMPT_COUNT_OPERAND,
	SHOW_COUNT "subl $0x100, " PREEMPT_COUNT_OPERAND "\n cmp " SP ", " SP "\n" RETURN);
FITTING("count_test", "", "testl $0x7fffffff, " PREEMPT_COUNT_OPERAND, "setz %al\n" RETURN);
FITTING("count_push", "", "push " PREEMPT_COUNT_OPERAND,
	"pop " AX "\n and $0x7fffffff, %eax\n" RETURN);
FITTING("count_second", "", "lea 1(" BX "), " BX,
	"mov " PREEMPT_COUNT_OPERAND ", %eax\n and $0x7fffffff, %eax\n" RETURN);

/* Handlers run with the segments of the kernel, and the instructions with these. */
#ifdef CONFIG_X86_32
FITTING("load_es", "mov %es, %ebx", "mov %ebx, %es", ADD_ONE "\n" RETURN);
FITTING("load_ds", "mov %ds, %ebx", "mov %ebx, %ds", ADD_ONE "\n" RETURN);
FITTING("load_fs", "mov %fs, %ebx", "mov %ebx, %fs", ADD_ONE "\n" RETURN);
FITTING("null_es", "push %es\n push $0\n pop %es", PROBED,
	FOLLOWING "mov %es, %ecx\n pop %es\n" RETURN);
FITTING("null_ds", "push %ds\n push $0\n pop %ds", PROBED,
	FOLLOWING "mov %ds, %ecx\n pop %ds\n" RETURN);
FITTING("null_fs", "push %fs\n push $0\n pop %fs", PROBED,
	FOLLOWING "mov %fs, %ecx\n pop %fs\n" RETURN);
FITTING("lds", "mov %ds, 4(%esi)\n lds (%esi), %ebx", PROBED, FOLLOWING RETURN);
FITTING("les", "mov %es, 4(%esi)\n les (%esi), %ebx", PROBED, FOLLOWING RETURN);
FITTING("lfs", "mov %fs, 4(%esi)\n lfs (%esi), %ebx", PROBED, FOLLOWING RETURN);
#endif

/* Branches to the first byte of a jump, or to the byte after it, do no harm. */
FITTING("jcc_to_first", "cmp $1, %ecx\n je 881f\n inc " BX, PROBED, FOLLOWING RETURN);
FITTING("jcc_after", "", PROBED, FOLLOWING "2: dec " CX "\n jg 2b\n" RETURN);
FITTING("loop_after", "inc " CX, PROBED, FOLLOWING "2: inc " BX "\n loop 2b\n" RETURN);
FITTING("return_to_first", "call kprobes_test_callee", PROBED, FOLLOWING RETURN);
FITTING("label_to_first", JUMP_LABEL("881f"), PROBED, FOLLOWING RETURN);
FITTING("label_after", JUMP_LABEL("4f"), PROBED, FOLLOWING "4:" RETURN);
FITTING("pointer_to_after", ".pushsection .rodata\n" WORD("", "4f") ".popsection\n",
	PROBED, FOLLOWING "4:" ANNOTATE_NOENDBR "\n" RETURN);
FITTING("fixup_elsewhere", "3: mov (" DI "), " BX, PROBED,
	FOLLOWING RETURN "int3\n 4:" RETURN _ASM_EXTABLE(3b, 4b));

SNIPPET_TABLE_LABEL("fit", "relayed");

/*
 * Branches to an instruction that a jump of five bytes would displace, other than the first.
 * One of two bytes displaces the first one only.
 */
RELAYED("jcc_back", "", PROBED, FOLLOWING "dec " CX "\n jg 1b\n" RETURN);
RELAYED("jcc_near_back", "", PROBED, FOLLOWING "dec " CX "\n {disp32} jg 1b\n" RETURN);
RELAYED("jmp_back", "", PROBED, FOLLOWING "dec " CX "\n jle 2f\n jmp 1b\n 2:" RETURN);
RELAYED("jmp_near_back", "", PROBED,
	FOLLOWING "dec " CX "\n jle 2f\n {disp32} jmp 1b\n 2:" RETURN);
RELAYED("jcc_forward", "cmp $7, %ecx\n je 1f", PROBED, FOLLOWING RETURN);
RELAYED("loop_back", "inc " CX, PROBED, FOLLOWING "loop 1b\n" RETURN);
RELAYED("jcxz_forward", "inc " CX "\n " JCXZ " 1f", PROBED, FOLLOWING RETURN);
RELAYED("call_back", "", PROBED,
	FOLLOWING "dec " CX "\n js 2f\n"
	"999: .pushsection .discard.intra_function_calls\n .long 999b\n .popsection\n"
	"call 1b\n 2:" RETURN UNVALIDATED);
RELAYED("from_cold_part", "cmp $7, %ecx\n je .Lkprobes_test_cold", PROBED,
	".Lkprobes_test_warm: " ADD_ONE "\n" RETURN UNVALIDATED);

/* The part of that function that another symbol covers. */
asm(".pushsection .text\n"
	".balign 16\n"
	".type kprobes_test_cold_part, @function\n"
	"kprobes_test_cold_part:\n"
	"880:\n"
	"	int3\n"
	".Lkprobes_test_cold:\n"
	"	lea 7(" AX "), " AX "\n"
	"	jmp .Lkprobes_test_warm\n"
	".size kprobes_test_cold_part, . - 880b\n"
	UNVALIDATED
	".popsection\n");

/* Other ways to reach such an instruction. */
REFUSED("endbr", "", "nop",
	"1: endbr64\n"
	".pushsection .rodata\n .long 1b - .\n .popsection\n" RETURN);
REFUSED("probed_endbr", "nop", "endbr64",
	FOLLOWING ".pushsection .rodata\n .long 881b - .\n .popsection\n" RETURN);
RELAYED("label", JUMP_LABEL("1f"), PROBED, FOLLOWING RETURN);
RELAYED("fixup", "3: mov (" DI "), " BX, PROBED, FOLLOWING RETURN _ASM_EXTABLE(3b, 1b));
RELAYED("lea", "lea " AT("1f") ", " TEMP "\n" GO_TO_TEMP, PROBED,
	ANNOTATE_NOENDBR "\n" FOLLOWING RETURN UNVALIDATED);
RELAYED("mov", "mov $1f, " TEMP "\n" GO_TO_TEMP, PROBED,
	ANNOTATE_NOENDBR "\n" FOLLOWING RETURN UNVALIDATED);
#ifdef CONFIG_X86_64
RELAYED("movabs", "movabs $1f, " TEMP "\n" GO_TO_TEMP, PROBED,
	ANNOTATE_NOENDBR "\n" FOLLOWING RETURN UNVALIDATED);
#endif
RELAYED("push", "push $1f\n pop " TEMP "\n" GO_TO_TEMP, PROBED,
	ANNOTATE_NOENDBR "\n" FOLLOWING RETURN UNVALIDATED);
RELAYED("rodata",
	".pushsection .rodata\n" WORD("4:", "1f") ".popsection\n"
	"mov " AT("4b") ", " TEMP "\n" GO_TO_TEMP, PROBED,
	ANNOTATE_NOENDBR "\n" FOLLOWING RETURN UNVALIDATED);
RELAYED("ro_after_init",
	".pushsection .data..ro_after_init, \"aw\"\n" WORD("4:", "1f") ".popsection\n"
	"mov " AT("4b") ", " TEMP "\n" GO_TO_TEMP, PROBED,
	ANNOTATE_NOENDBR "\n" FOLLOWING RETURN UNVALIDATED);
RELAYED("data",
	".pushsection .data\n" WORD("4:", "1f") ".popsection\n"
	"mov " AT("4b") ", " TEMP "\n" GO_TO_TEMP, PROBED,
	ANNOTATE_NOENDBR "\n" FOLLOWING RETURN UNVALIDATED);
RELAYED("symbol", "cmp $7, %ecx\n je kprobes_test_inner_symbol", PROBED,
	"kprobes_test_inner_symbol: " ADD_ONE "\n" RETURN UNVALIDATED);

/* Code that is never run: an indirect jump could go anywhere. */
#define NEVER(insn)	"cmp $7, %ecx\n jne 3f\n" insn "\n int3\n 3:\n"

REFUSED("jump_table",
	".pushsection .rodata\n .balign 4\n"
	".type kprobes_test_offset, @object\n .size kprobes_test_offset, 4\n"
	"kprobes_test_offset: .long 1f - kprobes_test_offset\n .popsection\n"
	NEVER("push " BX "\n" MOV_S32 " " AT("kprobes_test_offset") ", " TEMP "\n"
	      INDIRECT "jmp *" TEMP),
	PROBED,
	ANNOTATE_NOENDBR "\n" FOLLOWING RETURN UNVALIDATED);
#ifdef CONFIG_MITIGATION_RETPOLINE
REFUSED("thunk", NEVER("push " BX "\n jmp " TEMP_THUNK), PROBED,
	FOLLOWING RETURN UNVALIDATED);
ANNOTATE_NOCFI_SYM(kprobes_test_opt_thunk);
#endif

/* Instructions that cannot run in a detour. A jump of two bytes leaves some in place. */
RELAYED("call_middle", CALLEE_TO_BX, "push " DX,
	INDIRECT "call *" BX "\n pop " DX "\n " ADD_ONE "\n" RETURN);
#ifdef CONFIG_X86_32
REFUSED("call_stack", "push $kprobes_test_callee", INDIRECT "call *(%esp)",
	"pop %ebx\n" ADD_ONE "\n" RETURN);
RELAYED("call_stack_last", "push $kprobes_test_callee", ADD_ONE,
	INDIRECT "call *(%esp)\n pop %ebx\n" RETURN);
#endif
RELAYED("return_of_call", CALLEE_TO_BX, INDIRECT "call *" BX,
	FOLLOWING RETURN);
RELAYED("loop", "", PROBED, "loop 4f\n " ADD_ONE "\n 4:" RETURN);
RELAYED("jcxz", "", PROBED, JCXZ " 4f\n " ADD_ONE "\n 4:" RETURN);
RELAYED("trap", "stc", "jc 4f", "ud2\n nop\n 4:" RETURN);
REFUSED("extable_first", "", "mov (" DI "), " BX,
	ADD_ONE "\n" RETURN "int3\n 4:" RETURN _ASM_EXTABLE(881b, 4b));
RELAYED("extable_last", "", PROBED,
	"3: mov (" DI "), " BX "\n" RETURN "int3\n 4:" RETURN _ASM_EXTABLE(3b, 4b));

/* A jump of two bytes is too long, too. */
REFUSED("narrow_branch", "", "nop", FOLLOWING "dec " CX "\n jg 1b\n" RETURN);
REFUSED("narrow_loop", "", "nop", "loop 4f\n " ADD_ONE "\n 4:" RETURN);
REFUSED("narrow_fixup", "", "nop",
	"3: mov (" DI "), " BX "\n" RETURN "int3\n 4:" RETURN _ASM_EXTABLE(3b, 4b));
REFUSED("narrow_function", "", "nop", "kprobes_test_other_function:" RETURN UNVALIDATED);

/* Text that is not the function's, or that others patch. */
RELAYED("next_function", "", PROBED, RETURN "kprobes_test_next_function:" RETURN UNVALIDATED);
REFUSED("label_inside", "", "nop", JUMP_LABEL("4f") FOLLOWING "4:" RETURN);
RELAYED("label_last", "", PROBED, JUMP_LABEL("4f") FOLLOWING "4:" RETURN);
#if defined(CONFIG_HAVE_STATIC_CALL_INLINE) && defined(MODULE)
/* Objtool may look for the key in this object only. */
DECLARE_STATIC_CALL(kprobes_test_call, kprobes_test_target);
__ADDRESSABLE(STATIC_CALL_KEY(kprobes_test_call));
RELAYED("static_call", "push " SI, PROBED, "call __SCT__kprobes_test_call\n pop " SI "\n" RETURN);
#endif
#ifdef CONFIG_FTRACE_MCOUNT_USE_CC
REFUSED("ftrace", "", "nop",
	"2: call __fentry__\n"
	".pushsection __mcount_loc, \"a\"\n" WORD("", "2b") ".popsection\n" RETURN);
#endif

SNIPPET_TABLE_LABEL("fit", "fit_end");
SNIPPET_TABLE_LABEL("unfit", "unfit_end");

const void *kpt_fit_gen_params(struct kunit *test, const void *prev, char *desc)
{
	return kpt_next_snippet(prev, kprobes_test_fit, kprobes_test_fit_end, desc);
}

const void *kpt_unfit_gen_params(struct kunit *test, const void *prev, char *desc)
{
	return kpt_next_snippet(prev, kprobes_test_unfit, kprobes_test_unfit_end, desc);
}

static const u8 *jump_target(const u8 *jump)
{
	s32 offset;

	if (*jump == JMP8_INSN_OPCODE)
		return jump + JMP8_INSN_SIZE + *(s8 *)(jump + 1);
	memcpy(&offset, jump + 1, sizeof(offset));
	return jump + JMP32_INSN_SIZE + offset;
}

/* Where the jump at a probe leads. A jump of two bytes leads to one of five. */
const u8 *kpt_detour_of(const struct kprobe *kp)
{
	const u8 *target = jump_target(kp->addr);

	return *kp->addr == JMP8_INSN_OPCODE ? jump_target(target) : target;
}
