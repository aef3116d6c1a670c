/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The stub after copies for post handlers
 */
#include "detour.h"
#include "frame.h"

	.text

/*
 * The slot of a site with post handlers jumps here after the displaced instruction
 * has run, with interrupts off, on the stack of the probed code. Build a struct
 * pt_regs, call the post handlers and return to the next instruction.
 *
 * kprobe_copy_done() completes ip and flags. Until then ip is the address of the stub, and
 * until all registers are pushed kprobe_post_stub_unwind() must understand each instruction
 * that changes the stack pointer.
 */
SYM_CODE_START(kprobe_post_stub)
	UNWIND_HINT_UNDEFINED
	ANNOTATE_NOENDBR	/* jumped to, from a slot */
	push	%_ASM_SP
	/* Room for pushes by handlers; its last word is the place of ss. */
	lea	-HANDLER_STACK_ROOM(%_ASM_SP), %_ASM_SP
	push	HANDLER_STACK_ROOM(%_ASM_SP)
	pushf
	push	$__KERNEL_CS
	push	$kprobe_post_stub
	PUSH_REST
SYM_INNER_LABEL(kprobe_post_stub_framed, SYM_L_GLOBAL)
	ANNOTATE_NOENDBR
	_ASM_MOV $__KERNEL_DS, FRAME_SS(%_ASM_SP)
	LOAD_SEGMENTS
	mov	%_ASM_SP, %_ASM_ARG1
	call	kprobe_copy_done
	RETURN_FROM_STUB
SYM_CODE_END(kprobe_post_stub)
_ASM_NOKPROBE(kprobe_post_stub)
_ASM_NOKPROBE(kprobe_post_stub_framed)
