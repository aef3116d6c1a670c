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

#ifdef CONFIG_X86_64
#include "frame_64.h"
#else
#include "frame_32.h"
#endif

#define WORD			(BITS_PER_LONG / 8)

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
