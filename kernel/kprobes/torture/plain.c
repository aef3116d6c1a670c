// SPDX-License-Identifier: GPL-2.0
/* Targets that are probed with breakpoints and jumps. */
#define NAME(n)	kprobes_torture_plain_##n
#define BODY	noinline

#include "targets.h"

u64 (*const kt_plain[BODIES])(u64 arg) = { COPIES(kprobes_torture_plain) };
