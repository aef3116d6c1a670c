/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The functions that the matrix of test_kprobes_matrix_x86.h probes: each shape of
 * code once for each way in which its first instruction is run. A probed function has
 * a twin, the same code without a probe, which tells what comes of it.
 */
#ifndef _TEST_KPROBES_MATRIX_CODE_X86_H
#define _TEST_KPROBES_MATRIX_CODE_X86_H

/**
 * struct matrix_code - A function to probe, at its first instruction
 * @code:	The function, or 0: there is none of this kind and shape.
 * @twin:	The same code, never probed.
 * @first:	Only the first instruction of the twin.
 * @at:		Where instructions are in it: the first one, the second and third of those
 *		that a jump displaces, one that it does not.
 */
struct matrix_code {
	unsigned long code;
	unsigned long twin;
	unsigned long first;
	s32 at[4];
};

/* How the first instruction is run if it is probed. */
enum matrix_kind {
	KIND_FTRACE,
	KIND_BOOST,
	KIND_EMULATE,
	KIND_STEP,
	KIND_JUMP,		/* as KIND_BOOST, and there can be a jump */
	KIND_JUMP_EMULATE,	/* as KIND_EMULATE, and there can be a jump */
	KINDS
};

/* What the function does. */
enum matrix_shape {
	SHAPE_WORK,		/* increments a register in each instruction */
	SHAPE_LOOK,		/* calls kprobes_test_look(), second */
	SHAPE_LOOK_FIRST,	/* the same first */
	SHAPE_COUNT,		/* reads preempt_count */
	SHAPE_COUNT_SECOND,	/* the same second */
	SHAPE_RAISE,		/* increments preempt_count */
	SHAPE_LOWER,		/* decrements preempt_count */
	SHAPE_CPU,		/* reads the CPU's number */
	SHAPE_XADD,		/* adds to a per-CPU variable, and reads it */
	SHAPE_CMPXCHG,		/* exchanges a pair of per-CPU variables */
	SHAPE_OUTER,		/* as SHAPE_WORK, for probes whose handlers are interrupted */
	SHAPE_OUTER_POST,	/* the same for post handlers */
	SHAPES
};

/* Only the lowest byte: another bit tells of the scheduler's wishes. */
#define PREEMPT_COUNT_BYTE	THIS_CPU("pcpu_hot + 8")
#define READ_PREEMPT_COUNT(reg)	"movzbl " PREEMPT_COUNT_BYTE ", " reg

static_assert(offsetof(struct pcpu_hot, cpu_number) == 12);

extern const struct matrix_code kprobes_test_matrix[KINDS][SHAPES];

#define MATRIX_TABLE(lines)						\
	".pushsection .rodata.kprobes_test_matrix, \"a\"\n" lines ".popsection\n"

asm(MATRIX_TABLE("	.balign 8\n"
		 "kprobes_test_matrix:\n"));

#define MATRIX_FUNCTION(name, body)					\
	"	.balign 16\n"						\
	"	.type " name ", @function\n"				\
	name ":\n"							\
	"880:\n"							\
	ASM_ENDBR							\
	body								\
	RETURN								\
	"	int3\n"							\
	"	.size " name ", . - 880b\n"

/* The labels: 880 the function, 881 to 884 what is in matrix_code.at. */
#define MATRIX_CODE(name, probed, first, second, third, beyond, tail)	\
	asm(".pushsection .text\n"					\
	    MATRIX_FUNCTION("kprobes_test_matrix_" name "_twin",	\
			    "881: " first "\n882: " second "\n883: " third "\n884: " beyond "\n" tail) \
	    MATRIX_FUNCTION("kprobes_test_matrix_" name "_only",	\
			    "881: " first "\n882: 883: 884:\n")		\
	    MATRIX_FUNCTION("kprobes_test_matrix_" name,		\
			    "881: " probed "\n882: " second "\n883: " third "\n884: " beyond "\n" tail) \
	    ".popsection\n"						\
	    MATRIX_TABLE("	.quad kprobes_test_matrix_" name "\n"	\
			 "	.quad kprobes_test_matrix_" name "_twin\n" \
			 "	.quad kprobes_test_matrix_" name "_only\n" \
			 "	.long 881b - 880b, 882b - 880b, 883b - 880b, 884b - 880b\n"))

#define NO_MATRIX_CODE()						\
	asm(MATRIX_TABLE("	.quad 0, 0, 0\n"			\
			 "	.long 0, 0, 0, 0\n"))

/* As cx is never 0 it is not taken, but there must be no jump in front of its target. */
#define KEEPS_JUMPS_AWAY	"jrcxz 882b\n"

#define FIXED_UP		_ASM_EXTABLE(881b, 882f)

/* In front of a shape, which begins with the second instruction then. CF is 0. */
#define NOT_TAKEN		"jc 884f"

#define FENTRY								\
	"call __fentry__\n"						\
	".pushsection __mcount_loc, \"a\"\n"				\
	"	.balign 8\n"						\
	"	.quad 881b\n"						\
	".popsection\n"

#ifdef CONFIG_FTRACE_MCOUNT_USE_CC
#define FTRACE_CODE(shape, first, second, third, beyond)		\
	MATRIX_CODE("ftrace_" shape, FENTRY, "nopl 8(%rax, %rax)", first, \
		    second "\n" third, beyond, "")
#else
#define FTRACE_CODE(shape, first, second, third, beyond)	NO_MATRIX_CODE()
#endif
#define BOOST_CODE(shape, first, second, third, beyond)			\
	MATRIX_CODE("boost_" shape, first, first, second, third, beyond, KEEPS_JUMPS_AWAY)
#define EMULATE_CODE(shape, first, second, third, beyond)		\
	MATRIX_CODE("emulate_" shape, NOT_TAKEN, NOT_TAKEN, first, second "\n" third, beyond, \
		    KEEPS_JUMPS_AWAY)
#define STEP_CODE(shape, first, second, third, beyond)			\
	MATRIX_CODE("step_" shape, first "\n" FIXED_UP, first, second, third, beyond, "")
#define JUMP_CODE(shape, first, second, third, beyond)			\
	MATRIX_CODE("jump_" shape, first, first, second, third, beyond, "")
#define JUMP_EMULATE_CODE(shape, first, second, third, beyond)		\
	MATRIX_CODE("jump_emulate_" shape, NOT_TAKEN, NOT_TAKEN, first, second "\n" third, \
		    beyond, "")

/* Those that begin with a call: it is emulated, or displaced by a jump. */
#define CALL_CODE(kind, tail)						\
	MATRIX_CODE(kind "_look_first", "call kprobes_test_look", "call kprobes_test_look", \
		    "inc %eax", "inc %ebx", "", tail)

/* All shapes of one kind, in the order of enum matrix_shape. */
#define MATRIX_KIND(kind, look_first)					\
	kind("work", "inc %eax", "inc %ebx", "inc %edx", "inc %r8d\n inc %r9d"); \
	kind("look", "inc %eax", "call kprobes_test_look", "inc %ebx", ""); \
	look_first;							\
	kind("count", READ_PREEMPT_COUNT("%eax"), READ_PREEMPT_COUNT("%ebx"), "", ""); \
	kind("count_second", "inc %eax", READ_PREEMPT_COUNT("%ebx"), "", ""); \
	kind("raise", "incb " PREEMPT_COUNT_BYTE, READ_PREEMPT_COUNT("%ebx"), \
	     "decb " PREEMPT_COUNT_BYTE, READ_PREEMPT_COUNT("%edx"));	\
	kind("lower", "decb " PREEMPT_COUNT_BYTE, READ_PREEMPT_COUNT("%ebx"), \
	     "incb " PREEMPT_COUNT_BYTE, READ_PREEMPT_COUNT("%edx"));	\
	kind("cpu", "mov " THIS_CPU("pcpu_hot + 12") ", %eax", "", "", ""); \
	kind("xadd", "xadd %rdx, " THIS_CPU("kprobes_test_number"), \
	     "mov " THIS_CPU("kprobes_test_number") ", %rbx", "", ""); \
	kind("cmpxchg", "cmpxchg16b " THIS_CPU("kprobes_test_pair"), \
	     "mov " THIS_CPU("kprobes_test_pair") ", %r8", "", ""); \
	kind("outer", "inc %eax", "inc %ebx", "inc %edx", "inc %r8d");	\
	kind("outer_post", "inc %eax", "inc %ebx", "inc %edx", "inc %r8d")

/* In the order of enum matrix_kind. */
MATRIX_KIND(FTRACE_CODE, FTRACE_CODE("look_first", "call kprobes_test_look", "inc %eax",
				     "inc %ebx", ""));
MATRIX_KIND(BOOST_CODE, NO_MATRIX_CODE());
MATRIX_KIND(EMULATE_CODE, CALL_CODE("emulate", KEEPS_JUMPS_AWAY));
MATRIX_KIND(STEP_CODE, NO_MATRIX_CODE());
MATRIX_KIND(JUMP_CODE, NO_MATRIX_CODE());
MATRIX_KIND(JUMP_EMULATE_CODE, CALL_CODE("jump_emulate", ""));

/*
 * Where a handler may go otherwise: kprobes_test_callee(), and what is returned to if
 * it is pushed. It counts in r12 how often, and leaves the flags alone.
 */
void kprobes_test_landing(void);

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

#endif /* _TEST_KPROBES_MATRIX_CODE_X86_H */
