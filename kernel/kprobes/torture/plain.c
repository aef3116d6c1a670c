// SPDX-License-Identifier: GPL-2.0
/* Targets that are probed with breakpoints and jumps. */
#define NAME(n)	kprobes_torture_plain_##n
#define BODY	noinline
#define TABLE	kt_plain

#include "targets.h"
