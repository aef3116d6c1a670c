/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Calls of the handlers of jumper probes
 */
#include <linux/linkage.h>
#include <asm/asm.h>
#include <asm/asm-offsets.h>
#include <asm/nospec-branch.h>
#include <asm/percpu.h>
#include <asm/ptrace-abi.h>
#include <asm/unwind_hints.h>

/* The bytes of registers and jprobe_frame that jprobe_call() pushes at its frame. */
#ifdef CONFIG_X86_64
#define PUSHED	(6 * 8)
#else
#define PUSHED	(4 * 4)
#endif

/* Restore these, and return from jprobe_call(). */
.macro LEAVE_JPROBE_CALL
	pop	PER_CPU_VAR(jprobe_frame)
#ifdef CONFIG_X86_64
	popq	%r15
	popq	%r14
	popq	%r13
	popq	%r12
#else
	popl	%edi
	popl	%esi
#endif
	pop	%_ASM_BX
	pop	%_ASM_BP
	UNWIND_HINT_FUNC
	RET
.endm

/*
 * Call a jumper probe's handler. The arguments are the handler, the registers at the entry of
 * the probed function, its arguments on the stack, and their number of words, which i386 has
 * on the stack itself. jprobe_leave() finds the frame by jprobe_frame, which nests with
 * handlers.
 */
SYM_FUNC_START(jprobe_call)
	push	%_ASM_BP
	mov	%_ASM_SP, %_ASM_BP
	push	%_ASM_BX
#ifdef CONFIG_X86_64
	pushq	%r12
	pushq	%r13
	pushq	%r14
	pushq	%r15
#else
	pushl	%esi
	pushl	%edi
#endif
	push	PER_CPU_VAR(jprobe_frame)
	mov	%_ASM_BP, PER_CPU_VAR(jprobe_frame)

#ifdef CONFIG_X86_64
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
#else
	movl	%eax, %ebx
	movl	%ecx, %esi
	movl	8(%ebp), %ecx
	leal	(, %ecx, 4), %eax
	subl	%eax, %esp
	movl	%esp, %edi
	rep movsl

	movl	PT_EAX(%edx), %eax
	movl	PT_ECX(%edx), %ecx
	movl	PT_EDX(%edx), %edx
	CALL_NOSPEC ebx
#endif
	lea	-PUSHED(%_ASM_BP), %_ASM_SP
	LEAVE_JPROBE_CALL
SYM_FUNC_END(jprobe_call)
_ASM_NOKPROBE(jprobe_call)

/* Return from the jprobe_call() whose frame is the argument. */
SYM_CODE_START(jprobe_leave)
	UNWIND_HINT_FUNC
	ANNOTATE_NOENDBR	/* called directly */
	lea	-PUSHED(%_ASM_ARG1), %_ASM_SP
	UNWIND_HINT type=UNWIND_HINT_TYPE_CALL sp_reg=ORC_REG_SP sp_offset=64
	LEAVE_JPROBE_CALL
SYM_CODE_END(jprobe_leave)
_ASM_NOKPROBE(jprobe_leave)
