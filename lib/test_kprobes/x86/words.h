/* SPDX-License-Identifier: GPL-2.0 */
/* Names of the registers that have the size of a word, for assembly. */
#ifndef _TEST_KPROBES_X86_WORDS_H
#define _TEST_KPROBES_X86_WORDS_H

#include <asm/asm.h>

#define AX	"%" _ASM_AX
#define BX	"%" _ASM_BX
#define CX	"%" _ASM_CX
#define DX	"%" _ASM_DX
#define SI	"%" _ASM_SI
#define DI	"%" _ASM_DI
#define BP	"%" _ASM_BP
#define SP	"%" _ASM_SP

#endif /* _TEST_KPROBES_X86_WORDS_H */
