// SPDX-License-Identifier: GPL-2.0
/* Snippets of many forms of instructions, each to be displaced as the first and the second. */
#include <linux/objtool.h>
#include <linux/percpu.h>
#include <linux/string.h>

#include <asm/processor-flags.h>

#include "forms.h"
#include "operands.h"
#include "snippets.h"
#include "words.h"

/* Pointers for indirect branches. */
asm(".pushsection .data\n"
	_ASM_ALIGN "\n"
	"kprobes_test_pointer:\n"
	".rept 3\n"
	_ASM_PTR "kprobes_test_callee\n"
	".endr\n"
	".popsection\n");

/* A pair of words for CMPXCHG16B. */
asm(".pushsection .data\n"
	".balign 16\n"
	"kprobes_test_two_cells:\n"
	"	.quad 1, 2\n"
	".popsection\n");

DEFINE_PER_CPU(u64, kprobes_test_number) = 7;
DEFINE_PER_CPU_ALIGNED(struct pair, kprobes_test_pair);

#define TWO_CELLS		VARIABLE("kprobes_test_two_cells")
#define LOAD_TWO_CELLS		"mov $1, %eax\n	mov $2, %edx"
#define LEA_NUMBER		"lea " VARIABLE("kprobes_test_number") ", " BX
#define LEA_CALLEE(reg)		"lea " VARIABLE("kprobes_test_callee") ", " reg

/* Load the operand into registers, and restore it. */
#define SHOW_TWO_CELLS							\
	"mov " TWO_CELLS ", %rax\n"					\
	"mov 8 + " TWO_CELLS ", %rdx\n"					\
	"movq $1, " TWO_CELLS "\n"					\
	"movq $2, 8 + " TWO_CELLS
#define SHOW_CELL							\
	"mov " VARIABLE("kprobes_test_cell") ", %ebx\n"			\
	"movl $0x55667788, " VARIABLE("kprobes_test_cell")
#define SHOW_NUMBER							\
	"mov " NUMBER_HERE ", " BX "\n"					\
	__ASM_SIZE(mov) "$7, " NUMBER_HERE
#define SHOW_PAIR							\
	"mov " PAIR_HERE ", %rax\n"					\
	"mov " THIS_CPU("kprobes_test_pair + 8") ", %rdx\n"		\
	"movq $0, " PAIR_HERE "\n"					\
	"movq $0, " THIS_CPU("kprobes_test_pair + 8")

/* Push what POPA pops. */
#define PUSH_EIGHT							\
	".irp word, 1, 2, 3, 4, 5, 6, 7, 8\n"				\
	"	push $0x123450 + \\word\n"				\
	".endr"

/* Pop what PUSHA has pushed, the stack pointer as a distance, each word to another place. */
#define SHOW_PUSHED							\
	"sub %esp, 12(%esp)\n"						\
	"popl (%esi)\n"							\
	".irp reg, bx, dx, di, bp, si, ax, cx\n"			\
	"	pop %e\\reg\n"						\
	".endr"

/* Run the instruction with a null selector in a segment register, which BP keeps. */
#define NULL_ES		"mov %es, %ebp\n\tpush $0\n\tpop %es"
#define SHOW_ES		"mov %es, %edx\n\tmov %ebp, %es"
#define NULL_FS		"mov %fs, %ebp\n\tpush $0\n\tpop %fs"
#define SHOW_FS		"mov %fs, %edx\n\tmov %ebp, %fs"

/* The code at label 1, where a branch goes, and in front of it if it may not be taken. */
#define ONLY_1		"int3\n 1: mov $2, " MARK_OPERAND "\n" RETURN
#define ELSE_1		"mov $1, " MARK_OPERAND "\n" RETURN ONLY_1

/* Load the cell into ax, and subtract 5 from it. */
#define TAKE_5								\
	"mov " VARIABLE("kprobes_test_cell") ", " AX "\n"		\
	"subl $5, " VARIABLE("kprobes_test_cell")

/* Room for a jump, even at the last instruction. */
#define PADDING		"\n	.skip 5, 0xcc\n"

#define __FORM(name, before, insn, after, target)			\
	__SNIPPET("forms", "kprobes_test_", "form_" name, before, insn, after, target);

SNIPPET_TABLE_LABEL("forms", "forms");

/* The instruction is the first that a jump displaces. */
#define FORM(name, before, insn, after)					\
	__FORM(name, before, insn, after "\n" RETURN PADDING, "0")
#define BRANCH_FORM(name, before, insn, after)				\
	__FORM(name, before, insn, after PADDING, "882b - 880b")
#include "form_list.h"
#undef FORM
#undef BRANCH_FORM

/*
 * It is the second and last one: the probe is at an instruction of four bytes before it,
 * which changes a register, or memory, that the form does not use.
 */
#ifdef CONFIG_X86_64
#define IN_FRONT	"lea 17(%r9), %r9"
#else
#define IN_FRONT	"movb $17, 12(%esi)"
#endif

#define FORM(name, before, insn, after)					\
	__FORM(name "_second", before, IN_FRONT,			\
	       insn "\n" after "\n" RETURN PADDING, "0")
#define BRANCH_FORM(name, before, insn, after)				\
	__FORM(name "_second", before, IN_FRONT,			\
	       insn "\n" after PADDING, "0")
#include "form_list.h"
#undef FORM
#undef BRANCH_FORM

SNIPPET_TABLE_LABEL("forms", "forms_end");

#ifdef CONFIG_MITIGATION_RETPOLINE
ANNOTATE_NOCFI_SYM(kprobes_test_form_call_thunk);
ANNOTATE_NOCFI_SYM(kprobes_test_form_call_thunk_second);
ANNOTATE_NOCFI_SYM(kprobes_test_form_jmp_thunk);
ANNOTATE_NOCFI_SYM(kprobes_test_form_jmp_thunk_second);
#ifdef CONFIG_X86_64
ANNOTATE_NOCFI_SYM(kprobes_test_form_call_thunk_r11);
ANNOTATE_NOCFI_SYM(kprobes_test_form_call_thunk_r11_second);
#endif
#endif

#define STATUS_FLAGS							\
	(X86_EFLAGS_CF | X86_EFLAGS_PF | X86_EFLAGS_AF | X86_EFLAGS_ZF |	\
	 X86_EFLAGS_SF | X86_EFLAGS_OF)

/**
 * struct undefined - Flags that are undefined after a form, or depend on where the stack is
 * @name:	Name of the form, or the start of the names of some.
 * @flags:	The flags.
 */
struct undefined {
	const char *name;
	unsigned long flags;
};

static const struct undefined undefined[] = {
	{ "form_mul", X86_EFLAGS_SF | X86_EFLAGS_ZF | X86_EFLAGS_AF | X86_EFLAGS_PF },
	{ "form_imul", X86_EFLAGS_SF | X86_EFLAGS_ZF | X86_EFLAGS_AF | X86_EFLAGS_PF },
	{ "form_div", STATUS_FLAGS },
	{ "form_idiv", STATUS_FLAGS },
	{ "form_or", X86_EFLAGS_AF },
	{ "form_lock_or", X86_EFLAGS_AF },
	{ "form_gs_or", X86_EFLAGS_AF },
	{ "form_gs_test", X86_EFLAGS_AF },
	{ "form_and", X86_EFLAGS_AF },
	{ "form_xor", X86_EFLAGS_AF },
	{ "form_test", X86_EFLAGS_AF },
	{ "form_shl_", X86_EFLAGS_OF | X86_EFLAGS_AF },
	{ "form_sar", X86_EFLAGS_OF | X86_EFLAGS_AF },
	{ "form_rol_", X86_EFLAGS_OF },
	{ "form_shld", X86_EFLAGS_OF | X86_EFLAGS_AF },
	{ "form_shrd", X86_EFLAGS_OF | X86_EFLAGS_AF },
	{ "form_bt", STATUS_FLAGS & ~(X86_EFLAGS_CF | X86_EFLAGS_ZF) },
	{ "form_lock_bt", STATUS_FLAGS & ~(X86_EFLAGS_CF | X86_EFLAGS_ZF) },
	{ "form_bsf", STATUS_FLAGS & ~X86_EFLAGS_ZF },
	{ "form_sub_sp", STATUS_FLAGS },
	{ "form_dec_sp", STATUS_FLAGS },
	{ "form_daa", X86_EFLAGS_OF },
	{ "form_das", X86_EFLAGS_OF },
	{ "form_aaa", STATUS_FLAGS & ~(X86_EFLAGS_CF | X86_EFLAGS_AF) },
	{ "form_aas", STATUS_FLAGS & ~(X86_EFLAGS_CF | X86_EFLAGS_AF) },
	{ "form_aam", X86_EFLAGS_OF | X86_EFLAGS_AF | X86_EFLAGS_CF },
	{ "form_aad", X86_EFLAGS_OF | X86_EFLAGS_AF | X86_EFLAGS_CF },
};

/* Return a mask of the flags that are defined after @form. */
unsigned long kpt_defined_flags(const struct snippet *form)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(undefined); i++) {
		if (str_has_prefix(form->name, undefined[i].name))
			return ~undefined[i].flags;
	}
	return ~0UL;
}

/* Return whether @form needs kernel_fpu_begin(). */
bool kpt_uses_fpu(const struct snippet *form)
{
	return str_has_prefix(form->name, "form_x87_");
}
