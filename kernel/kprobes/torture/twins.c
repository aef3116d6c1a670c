// SPDX-License-Identifier: GPL-2.0
/* Copies of the targets that are not probed, and what all copies call. */
#include <linux/kprobes.h>

#define NAME(n)	kt_twin_##n
#define BODY	__kprobes
#define TABLE	kt_twins

#include "targets.h"

DEFINE_STATIC_KEY_FALSE(kt_key);
DEFINE_STATIC_CALL(kt_double, kt_double);

noinline __kprobes u64 kt_double(u64 arg)
{
	return arg << 1;
}

noinline __kprobes u64 kt_add_itself(u64 arg)
{
	OPTIMIZER_HIDE_VAR(arg);
	return arg + arg;
}
