/* SPDX-License-Identifier: GPL-2.0 */
/* Snippets into which a jump fits, and such into which none does. */
#ifndef _TEST_KPROBES_X86_JUMP_SNIPPETS_H
#define _TEST_KPROBES_X86_JUMP_SNIPPETS_H

#include <linux/jump_label.h>

#include <asm/nops.h>

#include "snippets.h"

/* An entry of the jump table: as a NOP at label 2, or as a jump to @target. */
#define JUMP_LABEL(target)						\
	"2: .byte " __stringify(BYTES_NOP5) "\n"			\
	".pushsection __jump_table, \"aw\"\n"				\
	_ASM_ALIGN "\n"							\
	"	.long 2b - ., " target " - .\n"				\
	"	.quad kprobes_test_flipped_key - .\n"			\
	".popsection\n"

DECLARE_STATIC_KEY_FALSE(kprobes_test_flipped_key);

const void *kpt_fit_gen_params(const void *prev, char *desc);
const void *kpt_unfit_gen_params(const void *prev, char *desc);
const struct snippet *kpt_find_fit(const char *name);
int kpt_start_jump_suite(struct kunit_suite *suite);

#endif /* _TEST_KPROBES_X86_JUMP_SNIPPETS_H */
