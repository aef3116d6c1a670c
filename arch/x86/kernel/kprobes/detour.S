/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The templates of detours
 */
#include <asm/asm-offsets.h>

#include "detour.h"
#include "frame.h"

	.text

/* An absolute address, so that an instruction with it can be copied. */
#ifdef CONFIG_SMP
#define COPYABLE_PER_CPU(var)	%__percpu_seg:var
#else
#define COPYABLE_PER_CPU(var)	var
#endif

#define PREEMPT_COUNT		COPYABLE_PER_CPU(pcpu_hot + X86_preempt_count)

/*
 * Begin the struct detour_template of @template. @own are its last fields, each of which
 * only one of the templates has: their names, or "none" for 0.
 */
.macro BEGIN_TEMPLATE template:req own:vararg
	.set	.L\template\()_none, \template
	.pushsection .rodata.\template, "a"
	.balign	8
SYM_DATA_START(\template\()_template)
	_ASM_PTR \template
	.irp	name, end, entry, framed, restored, ip, site, probe, expected, handler, \own
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

/* Build a struct pt_regs for handlers. Load the site, and the registers as argument 2. */
.macro ENTER_DETOUR template=kprobe_detour mark=DETOUR_MARK
	OFFSET	entry, \template
	UNWIND_HINT_UNDEFINED
	ANNOTATE_NOENDBR	/* jumped to */
	push	%_ASM_SP
	/* Room for pushes by handlers; its last word is the place of ss. */
	lea	-HANDLER_STACK_ROOM(%_ASM_SP), %_ASM_SP
	push	HANDLER_STACK_ROOM(%_ASM_SP)
	pushf
	push	$(__KERNEL_CS | \mark << 16)
	.byte	0x68		/* push $ip */
	OFFSET	ip, \template
	.long	0
	OFFSET	framed, \template
	UNWIND_HINT_IRET_REGS
	PUSH_REST
	_ASM_MOV $__KERNEL_DS, FRAME_SS(%_ASM_SP)
	mov	%_ASM_SP, %_ASM_ARG2
	OPCODE_MOV_TO_SITE
	OFFSET	site, \template
	_ASM_PTR 0
.endm

/*
 * Call the handler that the detour was made for: @field of the probe that the site calls.
 * Go to @slow in another hit, or if either has changed.
 */
.macro CALL_HANDLER regs:req field:req slow:req template=kprobe_detour
	__ASM_SIZE(cmp) $0, COPYABLE_PER_CPU(current_kprobe)
	jne	\slow
	OPCODE_MOV_TO_ARG1
	OFFSET	probe, \template
	_ASM_PTR 0
	cmp	%_ASM_ARG1, KPROBE_SITE_called(SITE)
	jne	\slow
	OPCODE_CMP_AT_ARG1	/* expected, field */
	.long	\field
	OFFSET	expected, \template
	.long	0
	jne	\slow
	mov	SITE, COPYABLE_PER_CPU(current_kprobe)
	mov	\regs, COPYABLE_PER_CPU(kprobe_ctlblk + KPROBE_CTLBLK_regs)
	movl	PREEMPT_COUNT, SCRATCH
	movl	SCRATCH, COPYABLE_PER_CPU(kprobe_context)
	.byte	0xe8		/* call handler */
	OFFSET	handler, \template
	.long	kprobe_detour_slow - . - 4
.endm

.macro LEAVE_DETOUR restored=restored template=kprobe_detour
	LOAD_FRAME_BASE
	OFFSET	\restored, \template
	UNWIND_HINT_UNDEFINED
	POP_REST
	popf
	pop	%_ASM_SP
.endm

/*
 * The template of what an optimised site jumps to, up to the copies of the displaced
 * instructions. optprobe.c copies it and fills in the operands. It handles a hit of
 * one probe with no other hit on this CPU, as hit.c does; kprobe_detour_slow()
 * handles all others.
 *
 * The copy contains the probe and its handler. It checks with preemption off that the site
 * still calls the probe, so unregistering waits for this hit; and that the probe still has
 * the handler, which its owner may change.
 */
	BEGIN_TEMPLATE kprobe_detour, called, handled, none, none, none, none, none, none
SYM_CODE_START(kprobe_detour)
	UNWIND_HINT_REGS
	ANNOTATE_NOENDBR
.Lslow:
	mov	SITE, %_ASM_ARG1
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
	CALL_HANDLER %_ASM_ARG2, KPROBE_pre_handler, .Lslow
	testl	%eax, %eax
	.byte	0x0f, 0x85	/* jnz kprobe_detour_changed */
	.long	kprobe_detour_changed - . - 4
	BRANCH_OUT
	OFFSET	called
	_ASM_MOV $0, COPYABLE_PER_CPU(current_kprobe)
.Lleave:
	END_NO_PREEMPTION .Lresched
.Lrestore:
	LEAVE_DETOUR
	OFFSET	end
	.org	kprobe_detour + DETOUR_TEMPLATE_SIZE, 0xcc	/* error: larger */
SYM_CODE_END(kprobe_detour)
	END_TEMPLATE kprobe_detour
_ASM_NOKPROBE(kprobe_detour)

/*
 * The template of the second half, for sites with post handlers. The first half
 * continues here once it has called the pre handlers. The end is followed by a copy
 * of the first displaced instruction, which must find preempt_count as it was, and a
 * jump to the entry. If the task is preempted there and the probe is unregistered, the site
 * does not call it any more.
 */
	BEGIN_TEMPLATE kprobe_detour_post, none, none, run, run_nested, run_restored, \
			next, first, rest
SYM_CODE_START(kprobe_detour_post)
	UNWIND_HINT_REGS
	ANNOTATE_NOENDBR
.Lpost_slow:
	mov	SITE, %_ASM_ARG1
	call	kprobe_detour_post_slow
	BRANCH_OUT kprobe_detour_post
	jmp	.Lpost_leave
.Lpost_resched:
	RESCHED_AND_GO_TO .Lpost_restore, kprobe_detour_post
.Lpost_run_resched:
	RESCHED_AND_GO_TO .Lpost_run_restore, kprobe_detour_post

	OFFSET	run, kprobe_detour_post
	UNWIND_HINT_REGS
	_ASM_MOV $0, COPYABLE_PER_CPU(current_kprobe)
	OFFSET	run_nested, kprobe_detour_post
	END_NO_PREEMPTION .Lpost_run_resched
.Lpost_run_restore:
	LEAVE_DETOUR run_restored, kprobe_detour_post
	.byte	0xe9		/* jmp to the first displaced instruction */
	OFFSET	first, kprobe_detour_post
	.long	0

	ENTER_DETOUR kprobe_detour_post, mark=0
	BEGIN_NO_PREEMPTION
	xorl	%_ASM_ARG3L, %_ASM_ARG3L
	mov	$-1, SCRATCH_WORD	/* POST_HANDLERS_REGS */
	CALL_HANDLER SCRATCH_WORD, KPROBE_post_handler, .Lpost_slow, kprobe_detour_post
	_ASM_MOV $0, COPYABLE_PER_CPU(current_kprobe)
.Lpost_leave:
	OPCODE_CMP_AT_SP	/* next, ip */
	.long	FRAME_IP
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
	.org	kprobe_detour_post + DETOUR_POST_TEMPLATE_SIZE, 0xcc	/* error: larger */
SYM_CODE_END(kprobe_detour_post)
	END_TEMPLATE kprobe_detour_post
_ASM_NOKPROBE(kprobe_detour_post)

#ifdef CONFIG_X86_64
/*
 * The body that small detours share. It is called with the stack of the probed code; before
 * the return address is the site, and after it are the copies of the displaced
 * instructions. It does what the template above does, except that C code calls the handler:
 * the compiler knows what an indirect call needs.
 *
 * The return address, which is in the handlers' stack room, is kept in a register that
 * handlers preserve. Before registers are saved, kprobe_body_unwind() must understand each
 * instruction that changes the stack pointer.
 */
SYM_CODE_START(kprobe_shared_detour)
	UNWIND_HINT_FUNC
	ANNOTATE_NOENDBR	/* called from a detour */
	pushq	%rsp
	leaq	-(HANDLER_STACK_ROOM - 8)(%rsp), %rsp
	pushq	(HANDLER_STACK_ROOM - 8)(%rsp)
	pushfq
	pushq	$(__KERNEL_CS | DETOUR_MARK << 16)
	pushq	(HANDLER_STACK_ROOM + 24)(%rsp)		/* the return address */
	PUSH_REST unwind_hint=0
	addq	$8, RSP(%rsp)
	movq	RIP(%rsp), %rbx
	movq	-SMALL_DETOUR_HEAD(%rbx), %rdi
	movq	KPROBE_addr(%rdi), %rax
	addq	$1, %rax
	movq	%rax, RIP(%rsp)
	movq	$__KERNEL_DS, SS(%rsp)
.Lshared_framed:
	UNWIND_HINT_REGS
	movq	%rsp, %rsi
	BEGIN_NO_PREEMPTION
	cmpq	$0, COPYABLE_PER_CPU(current_kprobe)
	jne	.Lshared_slow
	movq	KPROBE_SITE_called(%rdi), %r12
	movq	%rdi, COPYABLE_PER_CPU(current_kprobe)
	movq	%rsi, COPYABLE_PER_CPU(kprobe_ctlblk + KPROBE_CTLBLK_regs)
	movl	PREEMPT_COUNT, %ecx
	movl	%ecx, COPYABLE_PER_CPU(kprobe_context)
	decw	KPROBE_hits_left(%rdi)
	jz	.Lshared_counted
.Lshared_call:
	movq	%r12, %rdi
	call	kprobe_detour_call
	testl	%eax, %eax
	jnz	kprobe_detour_changed
	movq	$0, COPYABLE_PER_CPU(current_kprobe)
.Lshared_leave:
	END_NO_PREEMPTION .Lshared_resched
.Lshared_restore:
	movq	%rbx, RIP(%rsp)
	RETURN_BY_RET restored=.Lshared_restored

.Lshared_counted:
	UNWIND_HINT_REGS
	call	kprobe_detour_counted
	movq	%rsp, %rsi
	jmp	.Lshared_call
.Lshared_slow:
	call	kprobe_detour_slow
	decl	%eax
	jnz	.Lshared_leave
	jmp	kprobe_detour_changed_nested
#ifdef CONFIG_PREEMPTION
.Lshared_resched:
	call	kprobe_detour_resched
	jmp	.Lshared_restore
#endif
SYM_CODE_END(kprobe_shared_detour)
_ASM_NOKPROBE(kprobe_shared_detour)

	.pushsection .rodata.kprobe_shared_body, "a"
	.balign	8
SYM_DATA_START(kprobe_shared_body)
	.quad	kprobe_shared_detour
	.short	.Lshared_framed - kprobe_shared_detour
	.short	.Lshared_restored - kprobe_shared_detour
	.balign	8
SYM_DATA_END(kprobe_shared_body)
	.popsection
#endif

/*
 * A handler has set ip, and perhaps sp and flags. Not by IRET: in an NMI it would let
 * the next NMI in.
 */
SYM_CODE_START(kprobe_detour_changed)
	UNWIND_HINT_REGS
	ANNOTATE_NOENDBR
	movw	$0, FRAME_CS+2(%_ASM_SP)	/* the mark, which must not outlive the hit */
	_ASM_MOV $0, COPYABLE_PER_CPU(current_kprobe)
SYM_INNER_LABEL(kprobe_detour_changed_nested, SYM_L_GLOBAL)
	ANNOTATE_NOENDBR
	mov	%_ASM_SP, %_ASM_ARG1
	call	kprobe_detour_redirect
	END_NO_PREEMPTION .Lchanged_resched
.Lchanged_restore:
	RETURN_BY_RET
#ifdef CONFIG_PREEMPTION
.Lchanged_resched:
	UNWIND_HINT_REGS
	call	kprobe_detour_resched
	jmp	.Lchanged_restore
#endif
SYM_CODE_END(kprobe_detour_changed)
_ASM_NOKPROBE(kprobe_detour_changed)
_ASM_NOKPROBE(kprobe_detour_changed_nested)
