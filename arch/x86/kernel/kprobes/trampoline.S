/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Code that slots jump to, and that return-probed functions return to.
 */
#include <linux/linkage.h>
#include <linux/objtool.h>
#include <asm/asm.h>
#include <asm/segment.h>
#include <asm/smap.h>
#include <asm/unwind_hints.h>

	.text

/* The registers of a struct pt_regs from @di down, and back. */
.macro PUSH_GPRS
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
.endm

.macro POP_GPRS
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
.endm

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
	PUSH_GPRS
	UNWIND_HINT_REGS
#ifdef CONFIG_FRAME_POINTER
	leaq	1(%rsp), %rbp
#endif
	movq	%rsp, %rdi
	call	kprobe_copy_done
	POP_GPRS
	addq	$8, %rsp
	UNWIND_HINT_IRET_REGS
	iretq
SYM_CODE_END(kprobe_post_stub)
_ASM_NOKPROBE(kprobe_post_stub)

#ifdef CONFIG_KRETPROBES
/*
 * What a return-probed function returns to. The call makes room for the return
 * address again, and puts what stands for it in a stack trace there until
 * kretprobe_returned() knows better. And to the CPU it is the call that the
 * return below belongs to: the predictions of all returns after it stay right.
 */
SYM_CODE_START(__kretprobe_trampoline)
	UNWIND_HINT_UNDEFINED
	ANNOTATE_NOENDBR	/* returned to */
	ANNOTATE_INTRA_FUNCTION_CALL
	call	.Lreturned
	int3
.Lreturned:
	UNWIND_HINT_FUNC
	pushq	$__KERNEL_DS
	pushq	%rsp
	pushfq
	pushq	$__KERNEL_CS
	pushq	$__kretprobe_trampoline
	pushq	$-1
	PUSH_GPRS
#ifdef CONFIG_FRAME_POINTER
	leaq	1(%rsp), %rbp
#endif
	movq	%rsp, %rdi
	call	kretprobe_returned
	POP_GPRS
	addq	$24, %rsp
	popfq
	leaq	16(%rsp), %rsp
	RET
SYM_CODE_END(__kretprobe_trampoline)
_ASM_NOKPROBE(__kretprobe_trampoline)
#endif
