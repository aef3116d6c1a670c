/* SPDX-License-Identifier: GPL-2.0 */
/* Snippets whose instruction a jump can replace, and snippets where it cannot. */
#ifndef _TEST_KPROBES_X86_JUMP_SNIPPETS_H
#define _TEST_KPROBES_X86_JUMP_SNIPPETS_H

#include <linux/jump_label.h>
#include <linux/stringify.h>

#include <asm/asm.h>
#include <asm/nops.h>

#include "snippets.h"

/* A jump label, 2: a NOP as long as kprobes_test_flipped_key is off, else a jump to @target. */
#define JUMP_LABEL(target)						\
	"2: .byte " __stringify(BYTES_NOP5) "\n"			\
	".pushsection __jump_table, \"aw\"\n"				\
	_ASM_ALIGN "\n"							\
	"	.long 2b - ., " target " - .\n"				\
	_ASM_PTR "kprobes_test_flipped_key - .\n"			\
	".popsection\n"

DECLARE_STATIC_KEY_FALSE(kprobes_test_flipped_key);

/* From kprobes_test_relayed on there is room for a jump of two bytes only, and padding. */
extern const struct snippet kprobes_test_fit[], kprobes_test_relayed[], kprobes_test_fit_end[];
extern const struct snippet kprobes_test_unfit[], kprobes_test_unfit_end[];

/* Its instructions add dx to ax, and then 1. */
#define PLAIN_SNIPPET	(&kprobes_test_fit[0])

const void *kpt_fit_gen_params(struct kunit *test, const void *prev, char *desc);
const void *kpt_unfit_gen_params(struct kunit *test, const void *prev, char *desc);
const u8 *kpt_detour_of(const struct kprobe *kp);

#endif /* _TEST_KPROBES_X86_JUMP_SNIPPETS_H */
