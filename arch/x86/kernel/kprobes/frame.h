/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Macros that save and restore registers as a struct pt_regs, for assembly
 */
#ifndef _X86_KPROBES_FRAME_H
#define _X86_KPROBES_FRAME_H

#include <linux/linkage.h>
#include <linux/objtool.h>
#include <linux/stringify.h>
#include <asm/alternative.h>
#include <asm/asm.h>
#include <asm/bitsperlong.h>
#include <asm/cpufeatures.h>
#include <asm/frame.h>
#include <asm/nospec-branch.h>
#include <asm/percpu.h>
#include <asm/segment.h>
#include <asm/smap.h>
#include <asm/unwind_hints.h>

#define WORD			(BITS_PER_LONG / 8)

#ifdef CONFIG_X86_64

#include "../../entry/calling.h"

#define FRAME_BX		RBX
#define FRAME_ORIG_AX		ORIG_RAX
#define FRAME_IP		RIP
#define FRAME_CS		CS
#define FRAME_FLAGS		EFLAGS
#define FRAME_SP		RSP
#define FRAME_SS		SS

/* A register that handlers preserve */
#define NEXT_IP			%r12

/* Handlers run with any segments. */
.macro LOAD_SEGMENTS
.endm

.macro RESTORE_SEGMENTS
.endm

/* Pop a struct pt_regs down to @flags, which with @sp is left to pop. */
.macro POP_REST
	POP_REGS
	addq	$(EFLAGS - ORIG_RAX), %rsp
.endm

/*
 * Load the registers of a struct pt_regs from @r15 to @di but @bx. Nothing is popped: an
 * interrupt would overwrite registers that the unwinder reads.
 */
.macro LOAD_ALL_BUT_BX
	movq	R15(%rsp), %r15
	movq	R14(%rsp), %r14
	movq	R13(%rsp), %r13
	movq	R12(%rsp), %r12
	movq	RBP(%rsp), %rbp
	movq	R11(%rsp), %r11
	movq	R10(%rsp), %r10
	movq	R9(%rsp), %r9
	movq	R8(%rsp), %r8
	movq	RAX(%rsp), %rax
	movq	RCX(%rsp), %rcx
	movq	RDX(%rsp), %rdx
	movq	RSI(%rsp), %rsi
	movq	RDI(%rsp), %rdi
.endm

/*
 * A return thunk, if the CPU needs one, has no unwind hint that the word is the address of an
 * instruction and no return address (signal=1). Call depth tracking would count in the thunk,
 * and change the flags.
 */
.macro RETURN_UNCOUNTED
	UNWIND_HINT type=UNWIND_HINT_TYPE_CALL sp_reg=ORC_REG_SP sp_offset=8 signal=1
	ALTERNATIVE __stringify(RET), \
		    __stringify(ANNOTATE_UNRET_SAFE; ret; int3), \
		    X86_FEATURE_CALL_DEPTH
.endm

/* Return to what the struct pt_regs says. */
.macro RETURN_FROM_STUB
	LOAD_REGS
	leaq	RIP(%rsp), %rsp
	UNWIND_HINT_IRET_REGS
	iretq
.endm

#else /* !CONFIG_X86_64 */

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

/* Load the segments that handlers need; code that calls a BIOS has others. Overwrites eax. */
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

#endif /* !CONFIG_X86_64 */

/*
 * Push what is below @ip in a struct pt_regs for handlers. Probed code may run between STAC and
 * CLAC, and functions return there, too: handlers must not. At a return, but nowhere else, DF is
 * clear.
 */
.macro PUSH_REST clear_df=1 unwind_hint=1
	push	$-1
	ASM_CLAC
	.if	\clear_df
	cld
	.endif
	PUSH_REGS unwind_hint=\unwind_hint
	ENCODE_FRAME_POINTER
.endm

.macro LOAD_REGS
	LOAD_ALL_BUT_BX
	mov	FRAME_BX(%_ASM_SP), %_ASM_BX
.endm

/*
 * Return to what the struct pt_regs says, without IRET: push flags and ip below its stack pointer
 * and pop them. They may overwrite the last fields of it, which are read by then: no more, as
 * handlers push at most HANDLER_STACK_ROOM. If a handler has set TF, the instruction after which
 * the CPU traps is the RET, and not the first one at ip as after an IRET.
 */
.macro RETURN_BY_RET
	mov	FRAME_IP(%_ASM_SP), %_ASM_AX
	mov	FRAME_FLAGS(%_ASM_SP), %_ASM_CX
	mov	FRAME_SP(%_ASM_SP), %_ASM_DX
	lea	-2*WORD(%_ASM_DX), %_ASM_DX
	mov	%_ASM_AX, WORD(%_ASM_DX)
	mov	%_ASM_CX, (%_ASM_DX)
	mov	%_ASM_DX, FRAME_ORIG_AX(%_ASM_SP)
	RESTORE_SEGMENTS
	LOAD_REGS
	mov	FRAME_ORIG_AX(%_ASM_SP), %_ASM_SP
	/* An interrupt from here on cannot trace a target whose frame is found from r10. */
	UNWIND_HINT type=UNWIND_HINT_TYPE_CALL sp_reg=ORC_REG_SP sp_offset=16 signal=1
	popf
	RETURN_UNCOUNTED
.endm

#endif /* _X86_KPROBES_FRAME_H */
