/* SPDX-License-Identifier: GPL-2.0 */
/* Functions in assembler, and the addresses of their instructions. */
#ifndef _TEST_KPROBES_X86_FUNCTIONS_H
#define _TEST_KPROBES_X86_FUNCTIONS_H

#include <linux/compiler.h>
#include <linux/kconfig.h>

#include <asm/ibt.h>
#include <asm/nospec-branch.h>

/* FineIBT takes an ENDBR in these bytes for a part of the function, and writes there. */
#ifdef CONFIG_FINEIBT
#define BEFORE_FUNCTION	".skip 16, 0xcc\n"
#else
#define BEFORE_FUNCTION	""
#endif

/*
 * Define a global function that begins without ENDBR. It has no hash of its type: who calls
 * it through a pointer uses kpt_call_untyped().
 */
#define __KPT_ASM_FUNCTION(name, body)					\
	asm(".pushsection .text\n"					\
	    ".balign 16\n"						\
	    BEFORE_FUNCTION						\
	    ".globl " #name "\n"					\
	    ".type " #name ", @function\n"				\
	    #name ":\n"							\
	    body "\n"							\
	    "	int3\n"							\
	    ".size " #name ", . - " #name "\n"				\
	    ".popsection\n")

#define KPT_ASM_FUNCTION(name, body)	__KPT_ASM_FUNCTION(name, ASM_ENDBR body)

#define ENDBR_SIZE	(IS_ENABLED(CONFIG_X86_KERNEL_IBT) ? ENDBR_INSN_SIZE : 0)

/* The first argument of a function, as a member of struct pt_regs. */
#ifdef CONFIG_X86_64
#define ARG1_REG	di
#else
#define ARG1_REG	ax
#endif

/* A return that is one instruction, not a jump to a thunk. */
#define RETURN		ANNOTATE_RETPOLINE_SAFE "\nret\n"

/* In front of an indirect branch that does not use a thunk. */
#define INDIRECT	ANNOTATE_RETPOLINE_SAFE "\n"

/*
 * Return the address of @function, to add an offset to. If the compiler added that, the
 * sum would be in the text: the optimiser would take it for a branch target, and objtool
 * would want an ENDBR there.
 */
static inline unsigned long kpt_address(const void *function)
{
	unsigned long address = (unsigned long)function;

	OPTIMIZER_HIDE_VAR(address);
	return address;
}

#endif /* _TEST_KPROBES_X86_FUNCTIONS_H */
