/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What differs between x86-64 and i386 in the assembly that saves registers: x86-64
 */
#ifndef _X86_KPROBES_FRAME_64_H
#define _X86_KPROBES_FRAME_64_H

#include <asm/unwind_hints.h>

#include "../../entry/calling.h"

#define FRAME_IP		RIP
#define FRAME_CS		CS
#define FRAME_SP		RSP
#define FRAME_SS		SS

/* A register that handlers preserve */
#define NEXT_IP			%r12

/*
 * Push what PUSH_FRAME leaves of a struct pt_regs. Probed code may run between STAC and CLAC,
 * and functions return there, too: handlers must not. At a return, but nowhere else, DF is
 * clear.
 */
.macro PUSH_REST clear_df=1 unwind_hint=1
	pushq	$-1
	ASM_CLAC
	.if	\clear_df
	cld
	.endif
	PUSH_REGS unwind_hint=\unwind_hint
	ENCODE_FRAME_POINTER
.endm

/* Handlers run with any segments. */
.macro LOAD_SEGMENTS
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
.macro LOAD_ALL_BUT_RBX
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

.macro LOAD_REGS
	LOAD_ALL_BUT_RBX
	movq	RBX(%rsp), %rbx
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

/* Return by IRET to what the struct pt_regs says. */
.macro RETURN_BY_IRET
	LOAD_REGS
	leaq	RIP(%rsp), %rsp
	UNWIND_HINT_IRET_REGS
	iretq
.endm

/*
 * The same without IRET: push flags and ip below the stack pointer of the struct pt_regs
 * and pop them.
 */
.macro RETURN_BY_RET
	movq	RIP(%rsp), %rax
	movq	EFLAGS(%rsp), %rcx
	movq	RSP(%rsp), %rdx
	leaq	-16(%rdx), %rdx
	movq	%rax, 8(%rdx)
	movq	%rcx, (%rdx)
	movq	%rdx, ORIG_RAX(%rsp)
	LOAD_REGS
	movq	ORIG_RAX(%rsp), %rsp
	/* An interrupt from here on cannot trace a target whose frame is found from r10. */
	UNWIND_HINT type=UNWIND_HINT_TYPE_CALL sp_reg=ORC_REG_SP sp_offset=16 signal=1
	popfq
	RETURN_UNCOUNTED
.endm

/*
 * Load the registers of a struct pt_regs but for flags and sp, and return to rbx, where they
 * are popped. Flags, sp and the address cannot be in registers, so the latter takes the place of
 * cs: the struct is none for the unwinder from @left on, see kprobe_body_unwind().
 */
.macro RETURN_TO_DETOUR left:req ret:req
	LOAD_ALL_BUT_RBX
	movq	%rbx, CS(%rsp)
\left:
	movq	RBX(%rsp), %rbx
	leaq	CS(%rsp), %rsp
\ret:
	RETURN_UNCOUNTED
.endm

#endif /* _X86_KPROBES_FRAME_64_H */
