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
#define FRAME_SS		PT_OLDSS

/* No argument of the handlers that are called directly. */
#define SCRATCH			%ebx
#define SCRATCH_WORD		%ebx

#define SITE			%esi

/* Opcodes of instructions whose operands are filled in later. */
#define OPCODE_MOV_TO_ARG1	.byte 0xb8			/* movl $imm32, %eax */
#define OPCODE_MOV_TO_SITE	.byte 0xbe			/* movl $imm32, %esi */
#define OPCODE_CMP_AT_ARG1	.byte 0x81, 0xb8		/* cmpl $imm32, disp32(%eax) */
#define OPCODE_CMP_AT_SP	.byte 0x81, 0xbc, 0x24		/* cmpl $imm32, disp32(%esp) */

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

/* The unwinder follows frame pointers, which handlers preserve. */
.macro LOAD_FRAME_BASE
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
.macro RETURN_BY_RET restored
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

#endif /* _X86_KPROBES_FRAME_32_H */
