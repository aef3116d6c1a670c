/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What differs between x86-64 and i386 in the assembly that saves registers: i386
 */
#ifndef _X86_KPROBES_FRAME_32_H
#define _X86_KPROBES_FRAME_32_H

#include <asm/asm-offsets.h>

#define FRAME_BX		PT_EBX
#define FRAME_ORIG_AX		PT_ORIG_EAX
#define FRAME_IP		PT_EIP
#define FRAME_CS		PT_CS
#define FRAME_FLAGS		PT_EFLAGS
#define FRAME_SP		PT_OLDESP
#define FRAME_SS		PT_OLDSS

/* A register that handlers preserve */
#define NEXT_IP			%esi

#define RETURN_UNCOUNTED	RET

/* The unwinders of i386 take no hints, and this one knows the registers of x86-64 only. */
.purgem UNWIND_HINT_REGS
.macro UNWIND_HINT_REGS base offset indirect extra partial signal
.endm

.macro PUSH_REGS unwind_hint
	pushl	$0		/* the place of gs, which is the user's */
	.irp	reg, fs, es, ds, eax, ebp, edi, esi, edx, ecx, ebx
	pushl	%\reg
	.endr
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

/* Pop a struct pt_regs down to @flags, which with @sp is left to pop; no segments. */
.macro POP_REST
	.irp	reg, ebx, ecx, edx, esi, edi, ebp, eax
	popl	%\reg
	.endr
	leal	(PT_EFLAGS - PT_DS)(%esp), %esp
.endm

/* Load the registers of a struct pt_regs but bx, and no segments. */
.macro LOAD_ALL_BUT_BX
	movl	PT_ECX(%esp), %ecx
	movl	PT_EDX(%esp), %edx
	movl	PT_ESI(%esp), %esi
	movl	PT_EDI(%esp), %edi
	movl	PT_EBP(%esp), %ebp
	movl	PT_EAX(%esp), %eax
.endm

.macro RESTORE_SEGMENTS
	mov	PT_DS(%esp), %ds
	mov	PT_ES(%esp), %es
	mov	PT_FS(%esp), %fs
.endm

/* IRET would not load the stack pointer. */
#define RETURN_FROM_STUB	RETURN_BY_RET

#endif /* _X86_KPROBES_FRAME_32_H */
