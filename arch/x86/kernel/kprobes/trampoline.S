/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Code that slots jump to, that return-probed functions return to, and of which
 * detours are made.
 */
#include <linux/linkage.h>
#include <linux/objtool.h>
#include <asm/asm.h>
#include <asm/segment.h>
#include <asm/smap.h>
#include <asm/unwind_hints.h>

#include "detour.h"

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

#ifdef CONFIG_OPTPROBES

/* By its absolute address: what refers to it can be copied. */
#ifdef CONFIG_SMP
#define COPYABLE_PER_CPU(var)	%gs:var
#else
#define COPYABLE_PER_CPU(var)	var
#endif

#define PREEMPT_COUNT		COPYABLE_PER_CPU(pcpu_hot + PCPU_HOT_PREEMPT_COUNT)

/* Make known how far from the start of the template we are. */
.macro DETOUR_OFFSET name:req
.L\name:
	.pushsection .rodata
	.balign	4
SYM_DATA(kprobe_detour_\name, .long .L\name - kprobe_detour)
	.popsection
.endm

/* The last four bytes are the displacement of a branch out of the template. */
.macro BRANCH_OUT
.Lbranch_\@:
	.pushsection .rodata.kprobe_detour, "a"
	.long	.Lbranch_\@ - 4 - kprobe_detour
	.popsection
.endm

.macro BEGIN_NO_PREEMPTION
#ifdef CONFIG_PREEMPT_COUNT
	incl	PREEMPT_COUNT
#endif
.endm

.macro END_NO_PREEMPTION resched:req
#ifdef CONFIG_PREEMPT_COUNT
	decl	PREEMPT_COUNT
#ifdef CONFIG_PREEMPTION
	jz	\resched
#endif
#endif
.endm

	.pushsection .rodata.kprobe_detour, "a"
	.balign	4
SYM_DATA_START(kprobe_detour_branches)
	.popsection

/*
 * What an optimised site jumps to, up to the copies of the displaced instructions.
 * A template: optprobe.c copies it and fills it in. This is the way of a hit in
 * core.c, for one probe, with no other hit on this CPU; for all others there is
 * kprobe_detour_slow().
 *
 * The probe and its handler are part of the copy. That it is still there is asked
 * with preemption off: then who unregisters it waits for us.
 */
SYM_CODE_START(kprobe_detour)
	UNWIND_HINT_REGS
	ANNOTATE_NOENDBR
.Lslow:
	call	kprobe_detour_slow
	BRANCH_OUT
	decl	%eax
	js	.Lleave
	.byte	0x0f, 0x84	/* jz kprobe_detour_changed_nested */
	.long	kprobe_detour_changed_nested - . - 4
	BRANCH_OUT
	.byte	0xe9		/* jmp to where a hit that was skipped is left */
	DETOUR_OFFSET skip
	.long	.Lleave - . - 4
#ifdef CONFIG_PREEMPTION
.Lresched:
	call	kprobe_detour_resched
	BRANCH_OUT
	jmp	.Lrestore
#endif

	DETOUR_OFFSET entry
	UNWIND_HINT_UNDEFINED
	ANNOTATE_NOENDBR	/* jumped to */
	pushq	%rsp		/* where ss belongs */
	pushq	(%rsp)
	pushfq
	pushq	$__KERNEL_CS
	.byte	0x68		/* pushq $ip */
	DETOUR_OFFSET ip
	.long	0
	DETOUR_OFFSET framed
	UNWIND_HINT_IRET_REGS
	pushq	$-1
	ASM_CLAC
	cld
	PUSH_GPRS
	UNWIND_HINT_REGS
#ifdef CONFIG_FRAME_POINTER
	leaq	1(%rsp), %rbp
#endif
	movq	$__KERNEL_DS, 20*8(%rsp)
	movq	%rsp, %rsi
	.byte	0x48, 0xbf	/* movabsq $site, %rdi */
	DETOUR_OFFSET site
	.quad	0
	BEGIN_NO_PREEMPTION
	cmpq	$0, COPYABLE_PER_CPU(current_kprobe)
	jne	.Lslow
	.byte	0x81, 0xbf	/* cmpl $number, direct(%rdi) */
	DETOUR_OFFSET direct
	.long	0
	DETOUR_OFFSET number
	.long	0
	jne	.Lslow
	movq	%rdi, COPYABLE_PER_CPU(current_kprobe)
	movq	%rsi, COPYABLE_PER_CPU(kprobe_ctlblk + KPROBE_CTLBLK_REGS)
	movl	PREEMPT_COUNT, %ecx
	movl	%ecx, COPYABLE_PER_CPU(kprobe_context)
	.byte	0x48, 0xbf	/* movabsq $probe, %rdi */
	DETOUR_OFFSET probe
	.quad	0
	.byte	0xe8		/* call handler */
	DETOUR_OFFSET handler
	.long	kprobe_detour_slow - . - 4
	testl	%eax, %eax
	.byte	0x0f, 0x85	/* jnz kprobe_detour_changed */
	.long	kprobe_detour_changed - . - 4
	BRANCH_OUT
	movq	$0, COPYABLE_PER_CPU(current_kprobe)
	DETOUR_OFFSET leave
	END_NO_PREEMPTION .Lresched
.Lrestore:
	POP_GPRS
	addq	$24, %rsp
	DETOUR_OFFSET restored
	UNWIND_HINT_UNDEFINED
	popfq
	popq	%rsp
	DETOUR_OFFSET end
	int3
SYM_CODE_END(kprobe_detour)
_ASM_NOKPROBE(kprobe_detour)
	.pushsection .rodata.kprobe_detour, "a"
	.long	0
SYM_DATA_END(kprobe_detour_branches)
	.popsection

/*
 * A handler has changed where to go on, and perhaps the stack and the flags. IRET,
 * so that all of it takes effect.
 */
SYM_CODE_START(kprobe_detour_changed)
	UNWIND_HINT_REGS
	ANNOTATE_NOENDBR
	movq	$0, COPYABLE_PER_CPU(current_kprobe)
SYM_INNER_LABEL(kprobe_detour_changed_nested, SYM_L_GLOBAL)
	ANNOTATE_NOENDBR
	END_NO_PREEMPTION .Lchanged_resched
.Lchanged_restore:
	POP_GPRS
	addq	$8, %rsp
	UNWIND_HINT_IRET_REGS
	iretq
#ifdef CONFIG_PREEMPTION
.Lchanged_resched:
	UNWIND_HINT_REGS
	call	kprobe_detour_resched
	jmp	.Lchanged_restore
#endif
SYM_CODE_END(kprobe_detour_changed)
_ASM_NOKPROBE(kprobe_detour_changed)

#endif
