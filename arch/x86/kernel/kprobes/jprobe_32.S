/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Calls of the handlers of jumper probes, on i386
 */
#include <linux/linkage.h>
#include <asm/asm.h>
#include <asm/asm-offsets.h>
#include <asm/nospec-branch.h>
#include <asm/percpu.h>

/* Restore what jprobe_call() has pushed at its frame, and return from it. */
.macro LEAVE_JPROBE_CALL
	popl	PER_CPU_VAR(jprobe_frame)
	popl	%edi
	popl	%esi
	popl	%ebx
	popl	%ebp
	RET
.endm

/*
 * Call a jumper probe's handler. %eax is the handler, %edx the registers at the entry of
 * the probed function, %ecx its arguments on the stack; the argument on the stack is their
 * number of words. jprobe_leave() finds the frame by jprobe_frame, which nests with
 * handlers.
 */
SYM_FUNC_START(jprobe_call)
	pushl	%ebp
	movl	%esp, %ebp
	pushl	%ebx
	pushl	%esi
	pushl	%edi
	pushl	PER_CPU_VAR(jprobe_frame)
	movl	%ebp, PER_CPU_VAR(jprobe_frame)

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
	leal	-4 * 4(%ebp), %esp
	LEAVE_JPROBE_CALL
SYM_FUNC_END(jprobe_call)
_ASM_NOKPROBE(jprobe_call)

/* Return from the jprobe_call() whose frame is %eax. */
SYM_FUNC_START(jprobe_leave)
	leal	-4 * 4(%eax), %esp
	LEAVE_JPROBE_CALL
SYM_FUNC_END(jprobe_leave)
_ASM_NOKPROBE(jprobe_leave)
