// SPDX-License-Identifier: GPL-2.0
/* Functions with many arguments that are compiled so that ftrace can trace them. */
#include <linux/compiler.h>

#include "jprobe.h"

noinline u64 kprobes_test_traced_arguments(ALL_ARGUMENTS)
{
	OPTIMIZER_HIDE_VAR(q);
	return SUM_OF_ARGUMENTS;
}

noinline u64 kprobes_test_traced_words(struct many_words block)
{
	return SUM_OF_WORDS(block);
}
