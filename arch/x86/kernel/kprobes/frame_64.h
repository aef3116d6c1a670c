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
#define FRAME_SS		SS

/* No argument of the handlers that are called directly. */
#define SCRATCH			%ecx
#define SCRATCH_WORD		%rax

#define SITE			%r8

/* Opcodes of instructions whose operands are filled in later. */
#define OPCODE_MOV_TO_ARG1	.byte 0x48, 0xbf		/* movabsq $imm64, %rdi */
#define OPCODE_MOV_TO_SITE	.byte 0x49, 0xb8		/* movabsq $imm64, %r8 */
#define OPCODE_CMP_AT_ARG1	.byte 0x48, 0x81, 0xbf		/* cmpq $imm32, disp32(%rdi) */
#define OPCODE_CMP_AT_SP	.byte 0x48, 0x81, 0xbc, 0x24	/* cmpq $imm32, disp32(%rsp) */

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

/*
 * Before POP_REST, load the register, other than those that handlers preserve, from which
 * the unwinder may have to find the frame of the probed code.
 */
.macro LOAD_FRAME_BASE
	movq	R10(%rsp), %r10
.endm

/* Pop a struct pt_regs down to @flags, which with @sp is left to pop. */
.macro POP_REST
	POP_REGS
	addq	$(EFLAGS - ORIG_RAX), %rsp
.endm

/*
 * Load the registers of a struct pt_regs from @r15 to @di. Nothing is popped: an interrupt
 * would overwrite registers that the unwinder reads.
 */
.macro LOAD_REGS
	movq	R15(%rsp), %r15
	movq	R14(%rsp), %r14
	movq	R13(%rsp), %r13
	movq	R12(%rsp), %r12
	movq	RBP(%rsp), %rbp
	movq	RBX(%rsp), %rbx
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
.macro RETURN_BY_RET restored
	movq	RIP(%rsp), %rax
	movq	EFLAGS(%rsp), %rcx
	movq	RSP(%rsp), %rdx
	leaq	-16(%rdx), %rdx
	movq	%rax, 8(%rdx)
	movq	%rcx, (%rdx)
	movq	%rdx, ORIG_RAX(%rsp)
	LOAD_REGS
	movq	ORIG_RAX(%rsp), %rsp
	.ifnb	\restored
\restored:
	.endif
	/* signal=1: the word is the address of an instruction, not a return address. */
	UNWIND_HINT type=UNWIND_HINT_TYPE_CALL sp_reg=ORC_REG_SP sp_offset=16 signal=1
	popfq
	UNWIND_HINT type=UNWIND_HINT_TYPE_CALL sp_reg=ORC_REG_SP sp_offset=8 signal=1
	/*
	 * An interrupt here cannot trace a target whose frame is found from r10, unless
	 * kprobe_body_unwind() knows the place. A return thunk, if the CPU needs one, has no
	 * such hint: what it returns to is looked up as a return address. Call depth tracking
	 * would count in the thunk, and change the flags.
	 */
	ALTERNATIVE __stringify(RET), \
		    __stringify(ANNOTATE_UNRET_SAFE; ret; int3), \
		    X86_FEATURE_CALL_DEPTH
.endm

#endif /* _X86_KPROBES_FRAME_64_H */
