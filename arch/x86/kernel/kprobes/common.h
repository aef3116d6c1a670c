/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Registers saved and restored by the trampoline of rethook
 */
#ifndef _X86_KPROBES_COMMON_H
#define _X86_KPROBES_COMMON_H

#include <asm/asm.h>
#include <asm/frame.h>

/*
 * Push and pop the fields of a struct pt_regs below @flags, for the asm() bodies of
 * rethook.c. @flags must have been pushed last.
 */
#ifdef CONFIG_X86_64

/* ip, cs and orig_ax are skipped, not written. */
#define SAVE_REGS_STRING						\
	"	sub $24, %rsp\n"					\
	"	push %rdi; push %rsi; push %rdx; push %rcx\n"		\
	"	push %rax; push %r8; push %r9; push %r10\n"		\
	"	push %r11; push %rbx; push %rbp; push %r12\n"		\
	"	push %r13; push %r14; push %r15\n"			\
	ENCODE_FRAME_POINTER

#define RESTORE_REGS_STRING						\
	"	pop %r15; pop %r14; pop %r13; pop %r12\n"		\
	"	pop %rbp; pop %rbx; pop %r11; pop %r10\n"		\
	"	pop %r9; pop %r8; pop %rax; pop %rcx\n"			\
	"	pop %rdx; pop %rsi; pop %rdi\n"				\
	"	add $24, %rsp\n"

#else

/* orig_ax, ip and cs are skipped, not written; the segments are saved, not restored. */
#define SAVE_REGS_STRING						\
	"	sub $12, %esp\n"					\
	"	push %gs; push %fs; push %es; push %ds\n"		\
	"	push %eax; push %ebp; push %edi; push %esi\n"		\
	"	push %edx; push %ecx; push %ebx\n"			\
	ENCODE_FRAME_POINTER

#define RESTORE_REGS_STRING						\
	"	pop %ebx; pop %ecx; pop %edx; pop %esi\n"		\
	"	pop %edi; pop %ebp; pop %eax\n"				\
	"	add $28, %esp\n"

#endif

#endif /* _X86_KPROBES_COMMON_H */
