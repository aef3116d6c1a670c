/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The functions that the torture test probes. NAME(n) is the name of the n-th one, BODY
 * the attribute of all, and TABLE that of their addresses. Each includer has a copy.
 */
#include <linux/bitops.h>
#include <linux/compiler.h>
#include <linux/kernel.h>

#include "torture.h"

u64 NAME(0)(u64 arg);
u64 NAME(1)(u64 arg);
u64 NAME(2)(u64 arg);
u64 NAME(3)(u64 arg);
u64 NAME(4)(u64 arg);
u64 NAME(5)(u64 arg);
u64 NAME(6)(u64 arg);
u64 NAME(7)(u64 arg);

/* A leaf, with a branch. */
BODY u64 NAME(0)(u64 arg)
{
	return arg & 1 ? arg * 3 + 1 : arg / 2;
}

/* A loop. */
BODY u64 NAME(1)(u64 arg)
{
	u64 sum = 0;

	for (unsigned int i = 0; i < 1 + (arg & 7); i++) {
		OPTIMIZER_HIDE_VAR(sum);
		sum = sum * 5 + i;
	}
	return sum;
}

/* A table in memory, and an indirect branch if the compiler makes one. */
BODY u64 NAME(2)(u64 arg)
{
	static const u16 table[] = { 1, 22, 333, 4444, 5, 66, 777, 8888 };

	switch (arg & 7) {
	case 0: return table[(arg >> 3) & 7];
	case 1: return table[(arg >> 4) & 7] + arg;
	case 2: return arg ^ 0x5a5a;
	case 3: return arg - 17;
	case 4: return ~arg;
	case 5: return arg << 5;
	case 6: return arg >> 7;
	default: return 9;
	}
}

/* A static branch, whose two sides have the same result. */
BODY u64 NAME(3)(u64 arg)
{
	arg = rol64(arg, 3);
	asm volatile("" : "+r" (arg));	/* the branch is not the first instruction */
	if (static_branch_unlikely(&kt_key)) {
		OPTIMIZER_HIDE_VAR(arg);
		return arg + 8;
	}
	return arg + 1 + 7;
}

/* A static call, which is not the first instruction. */
BODY u64 NAME(4)(u64 arg)
{
	return static_call(kt_double)(arg ^ 1) + 1;
}

/* A direct call and one through a pointer. */
BODY u64 NAME(5)(u64 arg)
{
	u64 (*function)(u64 arg) = kt_double;

	OPTIMIZER_HIDE_VAR(function);
	return kt_add_itself(arg) ^ function(arg >> 1);
}

/* A tail call. */
BODY u64 NAME(6)(u64 arg)
{
	return kt_double(arg ^ 0x1234);
}

/* A frame on the stack. */
BODY u64 NAME(7)(u64 arg)
{
	u64 words[8];
	u64 sum = 0;

	for (unsigned int i = 0; i < ARRAY_SIZE(words); i++)
		words[i] = arg * (i + 1);
	barrier_data(words);
	for (unsigned int i = 0; i < ARRAY_SIZE(words); i++)
		sum ^= words[i] >> i;
	return sum;
}

u64 (*const TABLE[BODIES])(u64 arg) = {
	NAME(0), NAME(1), NAME(2), NAME(3), NAME(4), NAME(5), NAME(6), NAME(7),
};
