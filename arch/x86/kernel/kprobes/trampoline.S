/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The trampoline of return probes
 */
#include "frame.h"

	.text

/*
 * A return-probed function returns here. The call makes room for the return address
 * again and leaves there what a stack trace shows in its place until
 * kretprobe_returned() restores the real one. It also pairs with the RET below in
 * the CPU's return stack, so all later returns stay predicted correctly.
 *
 * A return address is looked up as that of the call before it: the byte there has a name.
 */
SYM_CODE_START(kretprobe_trampoline)
	UNWIND_HINT_UNDEFINED
	int3
SYM_INNER_LABEL(__kretprobe_trampoline, SYM_L_GLOBAL)
	UNWIND_HINT_UNDEFINED
	ANNOTATE_NOENDBR	/* returned to */
	ANNOTATE_INTRA_FUNCTION_CALL
	call	.Lreturned
	int3
.Lreturned:
	UNWIND_HINT_FUNC
	ANNOTATE_NOENDBR	/* pushed */
	push	$__KERNEL_DS
	push	%_ASM_SP
	pushf
	push	$__KERNEL_CS
	push	$.Lreturned
	PUSH_REST clear_df=0 unwind_hint=0
	mov	%_ASM_SP, %_ASM_ARG1
	call	kretprobe_returned
	POP_REST
	popf
	lea	__ASM_SEL_RAW(8, 16)(%_ASM_SP), %_ASM_SP
	RET
SYM_CODE_END(kretprobe_trampoline)
_ASM_NOKPROBE(__kretprobe_trampoline)
