/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Calls of the handlers of jumper probes, on x86-64
 */
#include <linux/linkage.h>
#include <asm/asm.h>
#include <asm/nospec-branch.h>
#include <asm/percpu.h>
#include <asm/ptrace-abi.h>
#include <asm/unwind_hints.h>

/* Restore what jprobe_call() has pushed at its frame, and return from it. */
.macro LEAVE_JPROBE_CALL
	popq	PER_CPU_VAR(jprobe_frame)
	popq	%r15
	popq	%r14
	popq	%r13
	popq	%r12
	popq	%rbx
	popq	%rbp
	RET
.endm

/*
 * Call a jumper probe's handler. %rdi is the handler, %rsi the registers at the entry
 * of the probed function, %rdx its arguments on the stack, %rcx their number of words.
 * jprobe_leave() finds the frame by jprobe_frame, which nests with handlers.
 */
SYM_FUNC_START(jprobe_call)
	pushq	%rbp
	movq	%rsp, %rbp
	pushq	%rbx
	pushq	%r12
	pushq	%r13
	pushq	%r14
	pushq	%r15
	pushq	PER_CPU_VAR(jprobe_frame)
	movq	%rbp, PER_CPU_VAR(jprobe_frame)

	/* The first argument on the stack may have to be aligned to 16 bytes. */
	leaq	(, %rcx, 8), %rax
	subq	%rax, %rsp
	andq	$~15, %rsp
	movq	%rdi, %r11
	movq	%rsi, %rax
	movq	%rdx, %rsi
	movq	%rsp, %rdi
	rep movsq

	movq	RDI(%rax), %rdi
	movq	RSI(%rax), %rsi
	movq	RDX(%rax), %rdx
	movq	RCX(%rax), %rcx
	movq	R8(%rax), %r8
	movq	R9(%rax), %r9
	movq	RAX(%rax), %rax
	CALL_NOSPEC r11
	leaq	-6 * 8(%rbp), %rsp
	LEAVE_JPROBE_CALL
SYM_FUNC_END(jprobe_call)
_ASM_NOKPROBE(jprobe_call)

/* Return from the jprobe_call() whose frame is %rdi. */
SYM_CODE_START(jprobe_leave)
	UNWIND_HINT_FUNC
	ANNOTATE_NOENDBR	/* called directly */
	leaq	-6 * 8(%rdi), %rsp
	UNWIND_HINT type=UNWIND_HINT_TYPE_CALL sp_reg=ORC_REG_SP sp_offset=64
	LEAVE_JPROBE_CALL
SYM_CODE_END(jprobe_leave)
_ASM_NOKPROBE(jprobe_leave)
