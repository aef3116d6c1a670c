// SPDX-License-Identifier: GPL-2.0
/* The functions that the matrix probes. */
#include <linux/build_bug.h>

#include <asm/asm.h>
#include <asm/current.h>
#include <asm/ibt.h>

#include "matrix_code.h"
#include "operands.h"
#include "snippets.h"

#define READ_COUNT(reg)		"movzbl " COUNT_HERE ", " reg
#define CPU_HERE		THIS_CPU("pcpu_hot + 12")

static_assert(offsetof(struct pcpu_hot, cpu_number) == 12);

#define MATRIX_TABLE(lines)						\
	".pushsection .rodata.kprobes_test_matrix, \"a\"\n" lines ".popsection\n"

asm(MATRIX_TABLE("	.balign 8\n"
		 ".globl kprobes_test_matrix\n"
		 "kprobes_test_matrix:\n"));

/*
 * The function to probe, its twin, and the first instruction alone: nearly the same. The
 * labels: 880 the function, 881 to 884 what is in matrix_code.at.
 */
#define MATRIX_CODE(name, first, second, third, beyond, tail)		\
	asm(".irp name, " name "\n"					\
	    ".irp suffix, _twin, _only, _probed\n"			\
	    ".pushsection .text\n"					\
	    ".balign 16\n"						\
	    ".type kprobes_test_\\name\\suffix, @function\n"	\
	    "kprobes_test_\\name\\suffix:\n"				\
	    "880:\n"							\
	    ASM_ENDBR							\
	    "881:	" first "\n"					\
	    ".ifc \\suffix,_only\n"					\
	    "882:\n"							\
	    "883:\n"							\
	    "884:\n"							\
	    ".else\n"							\
	    "882:	" second "\n"					\
	    "883:	" third "\n"					\
	    "884:	" beyond "\n"					\
	    tail							\
	    ".endif\n"							\
	    RETURN							\
	    "	int3\n"							\
	    ".size kprobes_test_\\name\\suffix, . - 880b\n"		\
	    ".popsection\n"						\
	    ".endr\n"							\
	    MATRIX_TABLE("	.quad kprobes_test_\\name\\()_probed\n"	\
			 "	.quad kprobes_test_\\name\\()_twin\n"	\
			 "	.quad kprobes_test_\\name\\()_only\n"	\
			 "	.long 881b - 880b, 882b - 880b\n"	\
			 "	.long 883b - 880b, 884b - 880b\n")	\
	    ".endr\n")

/* There is none of this kind and shape. */
#define NO_MATRIX_CODE							\
	asm(MATRIX_TABLE("	.quad 0, 0, 0\n"			\
			 "	.long 0, 0, 0, 0\n"))

/* Only in the function that is probed. */
#define PROBED_ONLY(lines)						\
	".ifc \\suffix,_probed\n" lines ".endif\n"

/* What looks like a pointer to what a jump would displace, if only a byte of it. */
#define KEEPS_JUMPS_AWAY						\
	".pushsection .rodata\n"					\
	"	.balign 8\n"						\
	"	.quad 881b + 1\n"					\
	".popsection\n"

/* In front of a shape, which begins with the second instruction then. CF is 0. */
#define NOT_TAKEN		"jc 884f"

#define FIXED_UP		PROBED_ONLY(_ASM_EXTABLE(881b, 882f))

/* Of ftrace where the function is probed, and elsewhere what it is to others. */
#define FENTRY								\
	".ifnc \\suffix,_probed\n"					\
	"	nopl 8(%rax, %rax)\n"					\
	".else\n"							\
	"	call __fentry__\n"					\
	".pushsection __mcount_loc, \"a\"\n"				\
	"	.balign 8\n"						\
	"	.quad 881b\n"						\
	".popsection\n"						\
	".endif\n"

/* What follows is in the order of enum matrix_kind, and of enum matrix_shape in each. */

#ifdef CONFIG_FTRACE_MCOUNT_USE_CC
#define SHAPE(shape, first, second, third, beyond)			\
	MATRIX_CODE("ftrace_" shape, FENTRY, first, second "\n" third, beyond, "");
#define CALL_SHAPE(shape, first, second, third)				\
	MATRIX_CODE("ftrace_" shape, FENTRY, first, second, third, "");
#else
#define SHAPE(shape, first, second, third, beyond)	NO_MATRIX_CODE;
#define CALL_SHAPE(shape, first, second, third)		NO_MATRIX_CODE;
#endif
#include "matrix_shapes.h"
#undef SHAPE
#undef CALL_SHAPE

#define SHAPE(shape, first, second, third, beyond)			\
	MATRIX_CODE("boost_" shape, first, second, third, beyond, KEEPS_JUMPS_AWAY);
#define CALL_SHAPE(shape, first, second, third)		NO_MATRIX_CODE;
#include "matrix_shapes.h"
#undef SHAPE
#undef CALL_SHAPE

#define SHAPE(shape, first, second, third, beyond)			\
	MATRIX_CODE("emulate_" shape, NOT_TAKEN, first, second "\n" third, beyond, \
		    KEEPS_JUMPS_AWAY);
#define CALL_SHAPE(shape, first, second, third)				\
	MATRIX_CODE("emulate_" shape, first, second, third, "", KEEPS_JUMPS_AWAY);
#include "matrix_shapes.h"
#undef SHAPE
#undef CALL_SHAPE

#define SHAPE(shape, first, second, third, beyond)			\
	MATRIX_CODE("step_" shape, first "\n" FIXED_UP, second, third, beyond, "");
#define CALL_SHAPE(shape, first, second, third)		NO_MATRIX_CODE;
#include "matrix_shapes.h"
#undef SHAPE
#undef CALL_SHAPE

#define SHAPE(shape, first, second, third, beyond)			\
	MATRIX_CODE("jump_" shape, first, second, third, beyond, "");
#define CALL_SHAPE(shape, first, second, third)		NO_MATRIX_CODE;
#include "matrix_shapes.h"
#undef SHAPE
#undef CALL_SHAPE

#define SHAPE(shape, first, second, third, beyond)			\
	MATRIX_CODE("jump_emulate_" shape, NOT_TAKEN, first, second "\n" third, beyond, "");
#define CALL_SHAPE(shape, first, second, third)				\
	MATRIX_CODE("jump_emulate_" shape, first, second, third, "", "");
#include "matrix_shapes.h"
#undef SHAPE
#undef CALL_SHAPE

asm(".pushsection .text\n"
    ".balign 16\n"
    ".globl kprobes_test_landing\n"
    ".type kprobes_test_landing, @function\n"
    "kprobes_test_landing:\n"
    ASM_ENDBR
    "	lea 1(%r12), %r12\n"
    RETURN
    "	int3\n"
    ".size kprobes_test_landing, . - kprobes_test_landing\n"
    ".popsection\n");

/* Called by probed code: look around, and change no register. */
asm(".pushsection .text\n"
    ".balign 16\n"
    ".type kprobes_test_look, @function\n"
    "kprobes_test_look:\n"
    ASM_ENDBR
    "	pushfq\n"
    "	push %rax\n"
    "	push %rcx\n"
    "	push %rdx\n"
    "	push %rsi\n"
    "	push %rdi\n"
    "	push %r8\n"
    "	push %r9\n"
    "	push %r10\n"
    "	push %r11\n"
    "	lea 80(%rsp), %rdi\n"
    "	call kprobes_test_look_around\n"
    "	pop %r11\n"
    "	pop %r10\n"
    "	pop %r9\n"
    "	pop %r8\n"
    "	pop %rdi\n"
    "	pop %rsi\n"
    "	pop %rdx\n"
    "	pop %rcx\n"
    "	pop %rax\n"
    "	popfq\n"
    RETURN
    "	int3\n"
    ".size kprobes_test_look, . - kprobes_test_look\n"
    ".popsection\n");
