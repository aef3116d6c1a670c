/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Code that slots jump to.
 */
#include <linux/linkage.h>
#include <linux/objtool.h>
#include <asm/asm.h>
#include <asm/segment.h>
#include <asm/smap.h>
#include <asm/unwind_hints.h>

	.text

/*
 * The end of a slot for a site with post handlers: the displaced instruction
 * has run, with interrupts off, on the stack of the probed code. Make a struct
 * pt_regs of it, have the post handlers called, and return to the next
 * instruction. IRET, so that all that a handler changes takes effect.
 *
 * ip and flags are completed by kprobe_copy_done(), and sp, which is pushed
 * here as it is after ss.
 */
SYM_CODE_START(kprobe_post_stub)
	UNWIND_HINT_UNDEFINED
	ANNOTATE_NOENDBR	/* jumped to, from a slot */
	pushq	$__KERNEL_DS
	pushq	%rsp
	pushfq
	pushq	$__KERNEL_CS
	pushq	$0
	pushq	$-1
	ASM_CLAC
	cld
	pushq	%rdi
	pushq	%rsi
	pushq	%rdx
	pushq	%rcx
	pushq	%rax
	pushq	%r8
	pushq	%r9
	pushq	%r10
	pushq	%r11
	pushq	%rbx
	pushq	%rbp
	pushq	%r12
	pushq	%r13
	pushq	%r14
	pushq	%r15
	UNWIND_HINT_REGS
#ifdef CONFIG_FRAME_POINTER
	leaq	1(%rsp), %rbp
#endif
	movq	%rsp, %rdi
	call	kprobe_copy_done
	popq	%r15
	popq	%r14
	popq	%r13
	popq	%r12
	popq	%rbp
	popq	%rbx
	popq	%r11
	popq	%r10
	popq	%r9
	popq	%r8
	popq	%rax
	popq	%rcx
	popq	%rdx
	popq	%rsi
	popq	%rdi
	addq	$8, %rsp
	UNWIND_HINT_IRET_REGS
	iretq
SYM_CODE_END(kprobe_post_stub)
_ASM_NOKPROBE(kprobe_post_stub)
