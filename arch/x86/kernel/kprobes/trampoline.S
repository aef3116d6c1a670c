/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Code that slots jump to, that return-probed functions return to, and of which
 * detours are made.
 */
#include <linux/linkage.h>
#include <linux/objtool.h>
#include <linux/stringify.h>
#include <asm/alternative.h>
#include <asm/asm.h>
#include <asm/cpufeatures.h>
#include <asm/frame.h>
#include <asm/nospec-branch.h>
#include <asm/segment.h>
#include <asm/smap.h>
#include <asm/unwind_hints.h>

#include "../../entry/calling.h"
#include "detour.h"

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
	leaq	-HANDLER_STACK_ROOM(%rsp), %rsp
	pushq	$__KERNEL_DS
	pushq	%rsp
	pushfq
	pushq	$__KERNEL_CS
	pushq	$0
	pushq	$-1
	ASM_CLAC
	cld
	PUSH_REGS
	ENCODE_FRAME_POINTER
	movq	%rsp, %rdi
	call	kprobe_copy_done
	POP_REGS
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
	PUSH_REGS unwind_hint=0
	ENCODE_FRAME_POINTER
	movq	%rsp, %rdi
	call	kretprobe_returned
	POP_REGS
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

/*
 * There are two templates, which are copied: make known how far from the start of
 * @template we are.
 */
.macro OFFSET name:req template=kprobe_detour
.L\template\()_\name:
	.pushsection .rodata
	.balign	4
SYM_DATA(\template\()_\name, .long .L\template\()_\name - \template)
	.popsection
.endm

/* The last four bytes are the displacement of a branch out of the template. */
.macro BRANCH_OUT template=kprobe_detour
.Lbranch_\@:
	.pushsection .rodata.\template, "a"
	.long	.Lbranch_\@ - 4 - \template
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

.macro RESCHED_AND_GO_TO label:req template=kprobe_detour
#ifdef CONFIG_PREEMPTION
	call	kprobe_detour_resched
	BRANCH_OUT \template
	jmp	\label
#endif
.endm

/* Make a struct pt_regs, for handlers of a site: %rdi and %rsi are set to both. */
.macro ENTER_DETOUR template=kprobe_detour mark=DETOUR_MARK
	OFFSET	entry, \template
	UNWIND_HINT_UNDEFINED
	ANNOTATE_NOENDBR	/* jumped to */
	pushq	%rsp
	/* Room for what handlers push; the last word of it is where ss belongs. */
	leaq	-HANDLER_STACK_ROOM(%rsp), %rsp
	pushq	HANDLER_STACK_ROOM(%rsp)
	pushfq
	pushq	$(__KERNEL_CS | \mark << 16)
	.byte	0x68		/* pushq $ip */
	OFFSET	ip, \template
	.long	0
	OFFSET	framed, \template
	UNWIND_HINT_IRET_REGS
	pushq	$-1
	ASM_CLAC
	cld
	PUSH_REGS
	ENCODE_FRAME_POINTER
	movq	$__KERNEL_DS, 20*8(%rsp)
	movq	%rsp, %rsi
	.byte	0x48, 0xbf	/* movabsq $site, %rdi */
	OFFSET	site, \template
	.quad	0
.endm

/* Call a handler of the one probe, if it is still that; for anything else go to @slow. */
.macro CALL_HANDLER regs:req slow:req template=kprobe_detour
	cmpq	$0, COPYABLE_PER_CPU(current_kprobe)
	jne	\slow
	.byte	0x81, 0xbf	/* cmpl $number, direct(%rdi) */
	OFFSET	direct, \template
	.long	0
	OFFSET	number, \template
	.long	0
	jne	\slow
	movq	%rdi, COPYABLE_PER_CPU(current_kprobe)
	movq	\regs, COPYABLE_PER_CPU(kprobe_ctlblk + KPROBE_CTLBLK_REGS)
	movl	PREEMPT_COUNT, %ecx
	movl	%ecx, COPYABLE_PER_CPU(kprobe_context)
	.byte	0x48, 0xbf	/* movabsq $probe, %rdi */
	OFFSET	probe, \template
	.quad	0
	.byte	0xe8		/* call handler */
	OFFSET	handler, \template
	.long	kprobe_detour_slow - . - 4
.endm

.macro LEAVE_DETOUR restored=restored template=kprobe_detour
	POP_REGS
	addq	$24, %rsp
	OFFSET	\restored, \template
	UNWIND_HINT_UNDEFINED
	popfq
	popq	%rsp
.endm

.macro BEGIN_BRANCHES template:req
	.pushsection .rodata.\template, "a"
	.balign	4
SYM_DATA_START(\template\()_branches)
	.popsection
.endm

.macro END_BRANCHES template:req
	.pushsection .rodata.\template, "a"
	.long	0
SYM_DATA_END(\template\()_branches)
	.popsection
.endm

/*
 * What an optimised site jumps to, up to the copies of the displaced instructions.
 * A template: optprobe.c copies it and fills it in. This is the way of a hit in
 * int3.c, for one probe, with no other hit on this CPU; for all others there is
 * kprobe_detour_slow().
 *
 * The probe and its handler are part of the copy. That it is still there is asked
 * with preemption off: then who unregisters it waits for us.
 */
	BEGIN_BRANCHES kprobe_detour
SYM_CODE_START(kprobe_detour)
	UNWIND_HINT_REGS
	ANNOTATE_NOENDBR
.Lslow:
	call	kprobe_detour_slow
	BRANCH_OUT
	decl	%eax
	.byte	0x0f, 0x88	/* js to where a hit is left */
	OFFSET	handled
	.long	.Lleave - . - 4
	jnz	.Lleave
	jmp	kprobe_detour_changed_nested
	BRANCH_OUT
.Lresched:
	RESCHED_AND_GO_TO .Lrestore

	ENTER_DETOUR
	BEGIN_NO_PREEMPTION
	CALL_HANDLER %rsi, .Lslow
	testl	%eax, %eax
	.byte	0x0f, 0x85	/* jnz kprobe_detour_changed */
	.long	kprobe_detour_changed - . - 4
	BRANCH_OUT
	OFFSET	called
	movq	$0, COPYABLE_PER_CPU(current_kprobe)
.Lleave:
	END_NO_PREEMPTION .Lresched
.Lrestore:
	LEAVE_DETOUR
	OFFSET	end
	int3
SYM_CODE_END(kprobe_detour)
	END_BRANCHES kprobe_detour
_ASM_NOKPROBE(kprobe_detour)

/*
 * The second half for when there are post handlers, another template. When the pre
 * handlers were called the first half goes on here. After the end are a copy of
 * the first displaced instruction, which must find preempt_count as it was, and a
 * jump to the entry. If the task is preempted there and its probe leaves, the number
 * that CALL_HANDLER compares is another one.
 */
	BEGIN_BRANCHES kprobe_detour_post
SYM_CODE_START(kprobe_detour_post)
	UNWIND_HINT_REGS
	ANNOTATE_NOENDBR
.Lpost_slow:
	call	kprobe_detour_post_slow
	BRANCH_OUT kprobe_detour_post
	jmp	.Lpost_leave
.Lpost_resched:
	RESCHED_AND_GO_TO .Lpost_restore, kprobe_detour_post
.Lpost_run_resched:
	RESCHED_AND_GO_TO .Lpost_run_restore, kprobe_detour_post

	OFFSET	run, kprobe_detour_post
	UNWIND_HINT_REGS
	movq	$0, COPYABLE_PER_CPU(current_kprobe)
	OFFSET	run_nested, kprobe_detour_post
	END_NO_PREEMPTION .Lpost_run_resched
.Lpost_run_restore:
	LEAVE_DETOUR run_restored, kprobe_detour_post
	.byte	0xe9		/* jmp to the first one of them */
	OFFSET	first, kprobe_detour_post
	.long	0

	ENTER_DETOUR kprobe_detour_post, mark=0
	BEGIN_NO_PREEMPTION
	xorl	%edx, %edx
	movq	$-1, %rax	/* POST_HANDLERS_REGS */
	CALL_HANDLER %rax, .Lpost_slow, kprobe_detour_post
	movq	$0, COPYABLE_PER_CPU(current_kprobe)
.Lpost_leave:
	.byte	0x48, 0x81, 0xbc, 0x24	/* cmpq $next, ip(%rsp) */
	.long	16*8
	OFFSET	next, kprobe_detour_post
	.long	0
	.byte	0x0f, 0x85		/* jne kprobe_detour_changed_nested */
	.long	kprobe_detour_changed_nested - . - 4
	BRANCH_OUT kprobe_detour_post
	END_NO_PREEMPTION .Lpost_resched
.Lpost_restore:
	LEAVE_DETOUR restored, kprobe_detour_post
	.byte	0xe9		/* jmp to the others */
	OFFSET	rest, kprobe_detour_post
	.long	0
	OFFSET	end, kprobe_detour_post
	int3
SYM_CODE_END(kprobe_detour_post)
	END_BRANCHES kprobe_detour_post
_ASM_NOKPROBE(kprobe_detour_post)

/*
 * A handler has changed where to go on, and perhaps the stack and the flags: return
 * there by way of two words below the new stack, flags and address. An IRET in an NMI
 * would let the next NMI in.
 */
SYM_CODE_START(kprobe_detour_changed)
	UNWIND_HINT_REGS
	ANNOTATE_NOENDBR
	movq	$0, COPYABLE_PER_CPU(current_kprobe)
SYM_INNER_LABEL(kprobe_detour_changed_nested, SYM_L_GLOBAL)
	ANNOTATE_NOENDBR
	movq	%rsp, %rdi
	call	kprobe_detour_redirect
	END_NO_PREEMPTION .Lchanged_resched
.Lchanged_restore:
	movq	16*8(%rsp), %rax	/* ip */
	movq	18*8(%rsp), %rcx	/* flags */
	movq	19*8(%rsp), %rdx	/* sp */
	leaq	-16(%rdx), %rdx
	movq	%rax, 8(%rdx)
	movq	%rcx, (%rdx)
	movq	%rdx, 15*8(%rsp)
	POP_REGS
	UNWIND_HINT_UNDEFINED
	popq	%rsp
	/* Not a return address, but where an instruction is: hence the signal. */
	UNWIND_HINT type=UNWIND_HINT_TYPE_FUNC sp_reg=ORC_REG_SP sp_offset=16 signal=1
	popfq
	UNWIND_HINT_FUNC
	/* Call depth tracking would count in the thunk, and change the flags. */
	ALTERNATIVE __stringify(RET), \
		    __stringify(ANNOTATE_UNRET_SAFE; ret; int3), \
		    X86_FEATURE_CALL_DEPTH
#ifdef CONFIG_PREEMPTION
.Lchanged_resched:
	UNWIND_HINT_REGS
	call	kprobe_detour_resched
	jmp	.Lchanged_restore
#endif
SYM_CODE_END(kprobe_detour_changed)
_ASM_NOKPROBE(kprobe_detour_changed)
_ASM_NOKPROBE(kprobe_detour_changed_nested)

#endif
