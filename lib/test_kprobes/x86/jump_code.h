/* SPDX-License-Identifier: GPL-2.0 */
/* Registers and instructions in the code that tests of jumps probe, on x86-64 and i386. */
#ifndef _TEST_KPROBES_X86_JUMP_CODE_H
#define _TEST_KPROBES_X86_JUMP_CODE_H

#include <linux/stringify.h>

#include "words.h"

#define ARG1	"%" _ASM_ARG1
#define ARG2_32	"%" __stringify(_ASM_ARG2L)

#ifdef CONFIG_X86_64

/* The size in bytes of the prefix that an instruction with registers of 64 bits has. */
#define REX_SIZE	1

/*
 * Set ax to the argument of a function, which returns ax. i386 passes and returns 64 bits
 * in ax and dx: there the argument is in ax already, and dx stays as it is.
 */
#define TAKE_ARG	"mov %rdi, %rax\n"

/* An operand in memory, at a symbol. */
#define AT(symbol)	symbol "(%rip)"

#else

#define REX_SIZE	0
#define TAKE_ARG	"{disp8} lea (%eax), %eax\n"
#define AT(symbol)	symbol

#endif

/* The size in bytes of TAKE_ARG. */
#define TAKE_ARG_SIZE	3

#endif /* _TEST_KPROBES_X86_JUMP_CODE_H */
