/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What differs between x86-64 and i386 in the assembly that saves registers: i386
 */
#ifndef _X86_KPROBES_FRAME_32_H
#define _X86_KPROBES_FRAME_32_H

#include <asm/asm-offsets.h>
#include <asm/unwind_hints.h>

#define FRAME_IP		PT_EIP
#define FRAME_CS		PT_CS
#define FRAME_SP		PT_OLDESP
#define FRAME_SS		PT_OLDSS

/* A register that handlers preserve */
#define NEXT_IP			%esi

/* The unwinders of i386 take no hints, and this one knows the registers of x86-64 only. */
.purgem UNWIND_HINT_REGS
.macro UNWIND_HINT_REGS base offset indirect extra partial signal
.endm

/*
 * Push what PUSH_FRAME leaves of a struct pt_regs. Probed code may run between STAC and CLAC,
 * and functions return there, too: handlers must not. At a return, but nowhere else, DF is
 * clear.
 */
.macro PUSH_REST clear_df=1 unwind_hint=1
	pushl	$-1
	ASM_CLAC
	.if	\clear_df
	cld
	.endif
	pushl	$0		/* the place of gs, which is the user's */
	pushl	%fs
	pushl	%es
	pushl	%ds
	pushl	%eax
	pushl	%ebp
	pushl	%edi
	pushl	%esi
	pushl	%edx
	pushl	%ecx
	pushl	%ebx
	ENCODE_FRAME_POINTER
.endm

/*
 * Load the segments that handlers need. Code that calls a BIOS has others. This overwrites
 * eax.
 */
.macro LOAD_SEGMENTS
	movl	$__USER_DS, %eax
	movl	%eax, %ds
	movl	%eax, %es
	movl	$__KERNEL_PERCPU, %eax
	movl	%eax, %fs
.endm

/* Pop a struct pt_regs up to @bp. */
.macro POP_ALL_BUT_EAX
	popl	%ebx
	popl	%ecx
	popl	%edx
	popl	%esi
	popl	%edi
	popl	%ebp
.endm

/* Pop a struct pt_regs down to @flags, which with @sp is left to pop; no segments. */
.macro POP_REST
	POP_ALL_BUT_EAX
	popl	%eax
	leal	(PT_EFLAGS - PT_DS)(%esp), %esp
.endm

/*
 * Return by IRET to what the struct pt_regs says, but for gs. IRET does not load the
 * stack pointer: put its frame, and eax, below the one in the struct pt_regs. They may
 * overwrite fields of it, each of which is read by then, or is not among the last six
 * words, which is as far as HANDLER_STACK_ROOM lets them reach.
 */
.macro RETURN_BY_IRET
	movl	PT_OLDESP(%esp), %eax
	movl	PT_EFLAGS(%esp), %ecx
	movl	%ecx, -4(%eax)
	movzwl	PT_CS(%esp), %ecx
	movl	%ecx, -8(%eax)
	movl	PT_EIP(%esp), %ecx
	movl	%ecx, -12(%eax)
	movl	PT_EAX(%esp), %ecx
	movl	%ecx, -16(%eax)
	POP_ALL_BUT_EAX
	mov	(PT_DS - PT_EAX)(%esp), %ds
	mov	(PT_ES - PT_EAX)(%esp), %es
	mov	(PT_FS - PT_EAX)(%esp), %fs
	leal	-16(%eax), %esp
	popl	%eax
	iretl
.endm

/* The same without IRET, and but for all segments: pop flags, and ip by a return. */
.macro RETURN_BY_RET
	movl	PT_OLDESP(%esp), %eax
	movl	PT_EIP(%esp), %ecx
	movl	PT_EFLAGS(%esp), %edx
	movl	%ecx, -4(%eax)
	movl	%edx, -8(%eax)
	movl	PT_EAX(%esp), %ecx
	movl	%ecx, -12(%eax)
	POP_ALL_BUT_EAX
	leal	-12(%eax), %esp
	popl	%eax
	popfl
	RET
.endm

/* Load a struct pt_regs but for segments, and return to ebx, where flags and sp are popped. */
.macro RETURN_TO_DETOUR left:req ret:req
	movl	PT_ECX(%esp), %ecx
	movl	PT_EDX(%esp), %edx
	movl	PT_ESI(%esp), %esi
	movl	PT_EDI(%esp), %edi
	movl	PT_EBP(%esp), %ebp
	movl	PT_EAX(%esp), %eax
	movl	%ebx, PT_CS(%esp)
\left:
	movl	PT_EBX(%esp), %ebx
	leal	PT_CS(%esp), %esp
\ret:
	RET
.endm

#endif /* _X86_KPROBES_FRAME_32_H */
