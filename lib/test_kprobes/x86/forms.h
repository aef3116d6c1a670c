/* SPDX-License-Identifier: GPL-2.0 */
/* Snippets of many forms of instructions. */
#ifndef _TEST_KPROBES_X86_FORMS_H
#define _TEST_KPROBES_X86_FORMS_H

#include "snippets.h"

extern const struct snippet kprobes_test_forms[], kprobes_test_forms_end[];

unsigned long kpt_defined_flags(const struct snippet *form);
bool kpt_uses_fpu(const struct snippet *form);

#endif /* _TEST_KPROBES_X86_FORMS_H */
