// SPDX-License-Identifier: GPL-2.0
/* Targets that are probed through ftrace, if the kernel has that. */
#define NAME(n)	kprobes_torture_traced_##n
#define BODY	noinline
#define TABLE	kt_traced

#include "targets.h"
