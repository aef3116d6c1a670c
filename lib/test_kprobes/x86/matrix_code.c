// SPDX-License-Identifier: GPL-2.0
/* The functions that the matrix probes. */
#include <linux/build_bug.h>
#include <linux/objtool.h>

#include <asm/asm.h>

#include "functions.h"
#include "matrix_code.h"
#include "operands.h"
#include "words.h"

#define READ_COUNT(reg)		"movzbl " COUNT_HERE ", " reg
#define CPU_HERE		THIS_CPU("kprobes_test_cpu")

DEFINE_PER_CPU(int, kprobes_test_cpu);

#define MATRIX_TABLE(lines)						\
	".pushsection .rodata.kprobes_test_matrix, \"a\"\n" lines ".popsection\n"

asm(MATRIX_TABLE(_ASM_ALIGN "\n"
		 ".globl kprobes_test_matrix\n"
		 "kprobes_test_matrix:\n"));

/*
 * Define the function to probe, its twin, and the first instruction alone, with an entry of
 * the table. The labels: 880 the function, 881 to 884 the offsets in matrix_code.at.
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
	    MATRIX_TABLE(_ASM_PTR "kprobes_test_\\name\\()_probed\n"	\
			 _ASM_PTR "kprobes_test_\\name\\()_twin\n"	\
			 _ASM_PTR "kprobes_test_\\name\\()_only\n"	\
			 "	.long 881b - 880b, 882b - 880b\n"	\
			 "	.long 883b - 880b, 884b - 880b\n")	\
	    ".endr\n")

/* An empty entry of the table. */
#define NO_MATRIX_CODE							\
	asm(MATRIX_TABLE(_ASM_PTR "0, 0, 0\n"				\
			 "	.long 0, 0, 0, 0\n"))

/* Lines for the probed function only. */
#define PROBED_ONLY(lines)						\
	".ifc \\suffix,_probed\n" lines ".endif\n"

/* A pointer to the second byte of the instruction: a jump would overwrite its target. */
#define KEEPS_JUMPS_AWAY						\
	".pushsection .rodata\n"					\
	_ASM_ALIGN "\n"							\
	_ASM_PTR "881b + 1\n"						\
	".popsection\n"

/* A first instruction in front of a shape: a branch that is not taken, as CF is 0. */
#define NOT_TAKEN		"jc 884f"

/* The probed instruction has an exception table entry. */
#define FIXED_UP		PROBED_ONLY(_ASM_EXTABLE(881b, 882f))

/* A call of ftrace in the probed function, else a NOP as ftrace makes it. */
#define FENTRY								\
	".ifnc \\suffix,_probed\n"					\
	"	nopl 8(" AX ", " AX ")\n"				\
	".else\n"							\
	"	call __fentry__\n"					\
	".pushsection __mcount_loc, \"a\"\n"				\
	_ASM_ALIGN "\n"							\
	_ASM_PTR "881b\n"						\
	".popsection\n"						\
	".endif\n"

/* The table: in the order of enum matrix_kind, and of enum matrix_shape within a kind. */

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

KPT_ASM_FUNCTION(kprobes_test_landing,
		 "lea 1(" LANDING_OPERAND "), " LANDING_OPERAND "\n"
		 RETURN);

unsigned long kpt_inside;

KPT_ASM_FUNCTION(kprobes_test_go_inside,
		 "push " VARIABLE("kpt_inside") "\n"
		 RETURN);
STACK_FRAME_NON_STANDARD(kprobes_test_go_inside);

/* Called by probed code: calls kprobes_test_look_around(), and changes no register. */
KPT_ASM_FUNCTION(kprobes_test_look,
		 PUSH_CLOBBERED
		 "lea " CLOBBERED_SIZE "(" SP "), %" _ASM_ARG1 "\n"
		 "call kprobes_test_look_around\n"
		 POP_CLOBBERED
		 RETURN);
