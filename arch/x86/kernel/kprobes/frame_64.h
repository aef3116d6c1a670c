/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What differs between x86-64 and i386 in the assembly that saves registers: x86-64
 */
#ifndef _X86_KPROBES_FRAME_64_H
#define _X86_KPROBES_FRAME_64_H

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

#endif /* _X86_KPROBES_FRAME_64_H */
