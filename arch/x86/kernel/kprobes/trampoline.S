/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The stub after copies for post handlers, the trampoline of return probes, and the
 * templates of detours
 */
#include <linux/linkage.h>
#include <linux/objtool.h>
#include <linux/stringify.h>
#include <asm/alternative.h>
#include <asm/asm.h>
#include <asm/cpufeatures.h>
#include <asm/frame.h>
#include <asm/nospec-branch.h>
#include <asm/ptrace-abi.h>
#include <asm/segment.h>
#include <asm/smap.h>
#include <asm/unwind_hints.h>

#include "../../entry/calling.h"
#include "detour.h"

/* Push a struct pt_regs for handlers, down to @ip. */
.macro PUSH_FRAME ip:req
	pushq	$__KERNEL_DS
	pushq	%rsp
	pushfq
	pushq	$__KERNEL_CS
	pushq	\ip
.endm

/* Push the rest of it. At a return, but nowhere else, the flags suit C code already. */
.macro PUSH_REST clear_flags=1 unwind_hint=1
	pushq	$-1
	.if	\clear_flags
	ASM_CLAC
	cld
	.endif
	PUSH_REGS unwind_hint=\unwind_hint
	ENCODE_FRAME_POINTER
.endm

/* Pop a struct pt_regs down to @flags, which with @sp is left to pop. */
.macro POP_REST
	POP_REGS
	addq	$(EFLAGS - ORIG_RAX), %rsp
.endm

	.text

/*
 * The slot of a site with post handlers jumps here after the displaced instruction
 * has run, with interrupts off, on the stack of the probed code. Build a struct
 * pt_regs, call the post handlers and return to the next instruction. IRET makes
 * every change by a handler take effect.
 *
 * kprobe_copy_done() completes ip, flags and sp; sp is pushed here as it is after ss.
 */
SYM_CODE_START(kprobe_post_stub)
	UNWIND_HINT_UNDEFINED
	ANNOTATE_NOENDBR	/* jumped to, from a slot */
	leaq	-HANDLER_STACK_ROOM(%rsp), %rsp
	PUSH_FRAME ip=$0
	PUSH_REST
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
 * A return-probed function returns here. The call makes room for the return address
 * again and leaves there what a stack trace shows in its place until
 * kretprobe_returned() restores the real one. It also pairs with the RET below in
 * the CPU's return stack, so all later returns stay predicted correctly.
 */
SYM_CODE_START(__kretprobe_trampoline)
	UNWIND_HINT_UNDEFINED
	ANNOTATE_NOENDBR	/* returned to */
	ANNOTATE_INTRA_FUNCTION_CALL
	call	.Lreturned
	int3
.Lreturned:
	UNWIND_HINT_FUNC
	PUSH_FRAME ip=$__kretprobe_trampoline
	PUSH_REST clear_flags=0 unwind_hint=0
	movq	%rsp, %rdi
	call	kretprobe_returned
	POP_REST
	popfq
	leaq	16(%rsp), %rsp
	RET
SYM_CODE_END(__kretprobe_trampoline)
_ASM_NOKPROBE(__kretprobe_trampoline)
#endif

#ifdef CONFIG_OPTPROBES

/* An absolute address, so that an instruction with it can be copied. */
#ifdef CONFIG_SMP
#define COPYABLE_PER_CPU(var)	%gs:var
#else
#define COPYABLE_PER_CPU(var)	var
#endif

#define PREEMPT_COUNT		COPYABLE_PER_CPU(pcpu_hot + PCPU_HOT_PREEMPT_COUNT)

/*
 * Begin the struct detour_template of @template. @own are its last fields, each of which
 * only one of the templates has: their names, or "none" for 0.
 */
.macro BEGIN_TEMPLATE template:req own:vararg
	.set	.L\template\()_none, \template
	.pushsection .rodata.\template, "a"
	.balign	8
SYM_DATA_START(\template\()_template)
	.quad	\template
	.irp	name, end, entry, framed, restored, ip, site, direct, number, probe, handler, \own
	.short	.L\template\()_\name - \template
	.endr
	.popsection
.endm

.macro END_TEMPLATE template:req
	.pushsection .rodata.\template, "a"
	.short	0
SYM_DATA_END(\template\()_template)
	.popsection
.endm

/* The field @name of the struct detour_template is the offset of this place. */
.macro OFFSET name:req template=kprobe_detour
.L\template\()_\name:
.endm

/* Add the last four bytes, the displacement of a branch out of the template, to @branches. */
.macro BRANCH_OUT template=kprobe_detour
.Lbranch_\@:
	.pushsection .rodata.\template, "a"
	.short	.Lbranch_\@ - 4 - \template
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

/* Build a struct pt_regs for handlers. Set %rdi to the site, %rsi to the registers. */
.macro ENTER_DETOUR template=kprobe_detour mark=DETOUR_MARK
	OFFSET	entry, \template
	UNWIND_HINT_UNDEFINED
	ANNOTATE_NOENDBR	/* jumped to */
	pushq	%rsp
	/* Room for pushes by handlers; its last word is the place of ss. */
	leaq	-HANDLER_STACK_ROOM(%rsp), %rsp
	pushq	HANDLER_STACK_ROOM(%rsp)
	pushfq
	pushq	$(__KERNEL_CS | \mark << 16)
	.byte	0x68		/* pushq $ip */
	OFFSET	ip, \template
	.long	0
	OFFSET	framed, \template
	UNWIND_HINT_IRET_REGS
	PUSH_REST
	movq	$__KERNEL_DS, SS(%rsp)
	movq	%rsp, %rsi
	.byte	0x48, 0xbf	/* movabsq $site, %rdi */
	OFFSET	site, \template
	.quad	0
.endm

/* Call the only probe's handler. Go to @slow in another hit, or if the probe changed. */
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
	POP_REST
	OFFSET	\restored, \template
	UNWIND_HINT_UNDEFINED
	popfq
	popq	%rsp
.endm

/*
 * The template of what an optimised site jumps to, up to the copies of the displaced
 * instructions. optprobe.c copies it and fills in the operands. It handles a hit of
 * one probe with no other hit on this CPU, as int3.c does; kprobe_detour_slow()
 * handles all others.
 *
 * The copy contains the probe and its handler. It checks with preemption off that
 * the probe is still registered: unregistering then waits for this hit.
 */
	BEGIN_TEMPLATE kprobe_detour, called, handled, none, none, none, none, none, none
SYM_CODE_START(kprobe_detour)
	UNWIND_HINT_REGS
	ANNOTATE_NOENDBR
.Lslow:
	call	kprobe_detour_slow
	BRANCH_OUT
	decl	%eax
	.byte	0x0f, 0x88	/* js to the end of the hit */
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
	END_TEMPLATE kprobe_detour
_ASM_NOKPROBE(kprobe_detour)

/*
 * The template of the second half, for sites with post handlers. The first half
 * continues here once it has called the pre handlers. The end is followed by a copy
 * of the first displaced instruction, which must find preempt_count as it was, and a
 * jump to the entry. If the task is preempted there and the probe is unregistered,
 * the number that CALL_HANDLER compares has changed.
 */
	BEGIN_TEMPLATE kprobe_detour_post, none, none, run, run_nested, run_restored, \
			next, first, rest
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
	.byte	0xe9		/* jmp to the first displaced instruction */
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
	.long	RIP
	OFFSET	next, kprobe_detour_post
	.long	0
	.byte	0x0f, 0x85		/* jne kprobe_detour_changed_nested */
	.long	kprobe_detour_changed_nested - . - 4
	BRANCH_OUT kprobe_detour_post
	END_NO_PREEMPTION .Lpost_resched
.Lpost_restore:
	LEAVE_DETOUR restored, kprobe_detour_post
	.byte	0xe9		/* jmp to the other displaced instructions */
	OFFSET	rest, kprobe_detour_post
	.long	0
	OFFSET	end, kprobe_detour_post
	int3
SYM_CODE_END(kprobe_detour_post)
	END_TEMPLATE kprobe_detour_post
_ASM_NOKPROBE(kprobe_detour_post)

/*
 * A handler has set ip, and perhaps sp and flags. Push flags and ip below the new
 * stack pointer and pop them: an IRET in an NMI would let the next NMI in.
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
	movq	RIP(%rsp), %rax
	movq	EFLAGS(%rsp), %rcx
	movq	RSP(%rsp), %rdx
	leaq	-16(%rdx), %rdx
	movq	%rax, 8(%rdx)
	movq	%rcx, (%rdx)
	movq	%rdx, ORIG_RAX(%rsp)
	POP_REGS
	UNWIND_HINT_UNDEFINED
	popq	%rsp
	/* signal=1: the word is the address of an instruction, not a return address. */
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

#ifdef CONFIG_JPROBES
/* Restore what jprobe_call() has pushed at its frame, and return from it. */
.macro LEAVE_JPROBE_CALL
	popq	PER_CPU_VAR(jprobe_frame)
	popq	%r15
	popq	%r14
	popq	%r13
	popq	%r12
	popq	%rbx
	popq	%rbp
	RET
.endm

/*
 * Call a jumper probe's handler. %rdi is the handler, %rsi the registers at the entry
 * of the probed function, %rdx its arguments on the stack, %rcx their number of words.
 * jprobe_leave() finds the frame by jprobe_frame, which nests with handlers.
 */
SYM_FUNC_START(jprobe_call)
	pushq	%rbp
	movq	%rsp, %rbp
	pushq	%rbx
	pushq	%r12
	pushq	%r13
	pushq	%r14
	pushq	%r15
	pushq	PER_CPU_VAR(jprobe_frame)
	movq	%rbp, PER_CPU_VAR(jprobe_frame)

	/* The first argument on the stack may have to be aligned to 16 bytes. */
	leaq	(, %rcx, 8), %rax
	subq	%rax, %rsp
	andq	$~15, %rsp
	movq	%rdi, %r11
	movq	%rsi, %rax
	movq	%rdx, %rsi
	movq	%rsp, %rdi
	rep movsq

	movq	RDI(%rax), %rdi
	movq	RSI(%rax), %rsi
	movq	RDX(%rax), %rdx
	movq	RCX(%rax), %rcx
	movq	R8(%rax), %r8
	movq	R9(%rax), %r9
	movq	RAX(%rax), %rax
	CALL_NOSPEC r11
	leaq	-6 * 8(%rbp), %rsp
	LEAVE_JPROBE_CALL
SYM_FUNC_END(jprobe_call)
_ASM_NOKPROBE(jprobe_call)

/* Return from the jprobe_call() whose frame is %rdi. */
SYM_CODE_START(jprobe_leave)
	UNWIND_HINT_FUNC
	ANNOTATE_NOENDBR	/* called directly */
	leaq	-6 * 8(%rdi), %rsp
	UNWIND_HINT type=UNWIND_HINT_TYPE_CALL sp_reg=ORC_REG_SP sp_offset=64
	LEAVE_JPROBE_CALL
SYM_CODE_END(jprobe_leave)
_ASM_NOKPROBE(jprobe_leave)
#endif
