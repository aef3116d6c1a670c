/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The bodies of detours
 */
#include <asm/asm-offsets.h>

#include "detour.h"
#include "frame.h"

	.text

#define CURRENT_KPROBE		PER_CPU_VAR(current_kprobe)
#define HANDLED_REGS		PER_CPU_VAR(kprobe_ctlblk)	/* its first member, regs */
#define PREEMPT_COUNT		PER_CPU_VAR(__preempt_count)

.macro END_NO_PREEMPTION
#ifdef CONFIG_PREEMPT_COUNT
#ifdef CONFIG_HAS_SEPARATE_PREEMPT_RESCHED_BITS
	decq	PREEMPT_COUNT
#else
	decl	PREEMPT_COUNT
#endif
#ifdef CONFIG_PREEMPTION
	jnz	.Lno_resched\@
	call	kprobe_detour_resched
.Lno_resched\@:
#endif
#endif
.endm

/* Where the word is that @words pushes below the stack of the probed code have stored. */
#define PUSHED(words)		(FRAME_SS + WORD + HANDLER_STACK_ROOM - (words) * WORD)(%_ASM_SP)

/*
 * Build a struct pt_regs for handlers. A detour has pushed the ip that they see, if the body is
 * @post the site, and the address to return to, which is kept in a register that handlers
 * preserve. Load the site and the registers as arguments 1 and 2. Begin the hit as
 * kprobe_begin_hit() does, or go to @slow if another one is under way.
 *
 * Before registers are saved, body_unwind() must understand each instruction that
 * changes the stack pointer.
 */
.macro ENTER_BODY name:req slow:req post=0
	UNWIND_HINT_FUNC
	ANNOTATE_NOENDBR	/* called from a detour */
	/* Room for pushes by handlers */
	lea	-(HANDLER_STACK_ROOM - (2 + \post) * WORD)(%_ASM_SP), %_ASM_SP
	push	$__KERNEL_DS
	push	%_ASM_SP
	pushf
	push	$(__KERNEL_CS | (DETOUR_MARK * (1 - \post)) << 16)
	push	(HANDLER_STACK_ROOM + 3 * WORD)(%_ASM_SP)
	PUSH_REST unwind_hint=0
	__ASM_SIZE(add) $(HANDLER_STACK_ROOM + WORD), FRAME_SP(%_ASM_SP)
.L\name\()_framed:
	UNWIND_HINT_REGS
	LOAD_SEGMENTS
	mov	PUSHED(2 + \post), %_ASM_BX
	.if	\post
	mov	PUSHED(2), %_ASM_ARG1
	.else
	mov	-DETOUR_RETURN(%_ASM_BX), %_ASM_ARG1
	.endif
	mov	%_ASM_SP, %_ASM_ARG2
#ifdef CONFIG_PREEMPT_COUNT
	incl	PREEMPT_COUNT
#endif
	__ASM_SIZE(cmp) $0, CURRENT_KPROBE
	jne	\slow
	mov	%_ASM_ARG1, CURRENT_KPROBE
	.if	\post
	__ASM_SIZE(mov) $-1, HANDLED_REGS
	.else
	mov	%_ASM_ARG2, HANDLED_REGS
	.endif
	movl	PREEMPT_COUNT, %ecx
	movl	%ecx, PER_CPU_VAR(kprobe_context)
.endm

/*
 * Load the registers of the struct pt_regs but for flags and sp, and return to bx, where they are
 * popped. Flags, sp and the address cannot be in registers, so the latter takes the place of cs:
 * the struct is none for the unwinder from there on, see body_unwind().
 */
.macro LEAVE_BODY name:req
	RESTORE_SEGMENTS
	LOAD_ALL_BUT_BX
	mov	%_ASM_BX, FRAME_CS(%_ASM_SP)
.L\name\()_left:
	mov	FRAME_BX(%_ASM_SP), %_ASM_BX
	lea	FRAME_CS(%_ASM_SP), %_ASM_SP
.L\name\()_ret:
	RETURN_UNCOUNTED
	.pushsection .rodata.\name, "a"
	.balign	WORD
SYM_DATA_START(\name\()_body)
	_ASM_PTR \name
	.short	.L\name\()_framed - \name
	.short	.L\name\()_left - \name
	.short	.L\name\()_ret - \name
	.balign	WORD
SYM_DATA_END(\name\()_body)
	.popsection
.endm

/*
 * The body of what an optimised site jumps to. A detour calls it with the stack of the probed
 * code. It handles a hit with no other hit on this CPU, as hit.c does; kprobe_detour_slow()
 * handles all others. It returns to the detour, in which follow the copies of the displaced
 * instructions.
 */
SYM_CODE_START(kprobe_detour)
	ENTER_BODY kprobe_detour, .Lslow
	call	kprobe_detour_call
	testl	%eax, %eax
	jnz	kprobe_detour_changed
	__ASM_SIZE(mov) $0, CURRENT_KPROBE
.Lleave:
	END_NO_PREEMPTION
	LEAVE_BODY kprobe_detour
.Lslow:
	UNWIND_HINT_REGS
	call	kprobe_detour_slow
	testl	%eax, %eax
	jz	.Lleave
	jmp	kprobe_detour_changed_nested
SYM_CODE_END(kprobe_detour)
_ASM_NOKPROBE(kprobe_detour)

/*
 * The body of the second half, for sites with post handlers. A detour calls it after a copy of
 * the first displaced instruction, which must find preempt_count as it was. If the task is
 * preempted there and the probe is unregistered, the site does not call it any more.
 */
SYM_CODE_START(kprobe_detour_post)
	ENTER_BODY kprobe_detour_post, .Lpost_slow, post=1
	mov	FRAME_IP(%_ASM_SP), NEXT_IP
	call	kprobe_detour_call_post
	__ASM_SIZE(mov) $0, CURRENT_KPROBE
.Lpost_leave:
	cmp	NEXT_IP, FRAME_IP(%_ASM_SP)
	jne	kprobe_detour_changed_nested	/* the hit has ended here, too */
	END_NO_PREEMPTION
	LEAVE_BODY kprobe_detour_post
.Lpost_slow:
	UNWIND_HINT_REGS
	mov	FRAME_IP(%_ASM_SP), NEXT_IP
	call	kprobe_detour_post_slow
	jmp	.Lpost_leave
SYM_CODE_END(kprobe_detour_post)
_ASM_NOKPROBE(kprobe_detour_post)

/*
 * A handler has set ip, and perhaps sp and flags. Not by IRET: in an NMI it would let
 * the next NMI in.
 */
SYM_CODE_START(kprobe_detour_changed)
	UNWIND_HINT_REGS
	ANNOTATE_NOENDBR
	movw	$0, FRAME_CS+2(%_ASM_SP)	/* the mark, which must not outlive the hit */
	__ASM_SIZE(mov) $0, CURRENT_KPROBE
SYM_INNER_LABEL(kprobe_detour_changed_nested, SYM_L_GLOBAL)
	ANNOTATE_NOENDBR
	mov	%_ASM_SP, %_ASM_ARG1
	call	kprobe_detour_redirect
	END_NO_PREEMPTION
	RETURN_BY_RET
SYM_CODE_END(kprobe_detour_changed)
_ASM_NOKPROBE(kprobe_detour_changed)
_ASM_NOKPROBE(kprobe_detour_changed_nested)
