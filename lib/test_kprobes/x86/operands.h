/* SPDX-License-Identifier: GPL-2.0 */
/* Per-CPU operands of instructions. */
#ifndef _TEST_KPROBES_X86_OPERANDS_H
#define _TEST_KPROBES_X86_OPERANDS_H

#include <linux/percpu.h>

#include <asm/asm.h>

/* The operand of CMPXCHG16B, on i386 of CMPXCHG8B. */
struct pair {
	unsigned long word[2];
};

DECLARE_PER_CPU(int, kprobes_test_cpu);		/* the CPU's number */
DECLARE_PER_CPU(u64, kprobes_test_number);	/* 7 if no test is running */
DECLARE_PER_CPU_ALIGNED(struct pair, kprobes_test_pair);

/* Without SMP, per-CPU variables are plain ones. */
#ifdef CONFIG_SMP
#define PER_CPU			"%" __stringify(__percpu_seg) ":"
#else
#define PER_CPU			""
#endif

/* A variable: relative to ip if there are such operands, else by its address. */
#ifdef CONFIG_X86_64
#define VARIABLE(var)		var "(%rip)"
#else
#define VARIABLE(var)		var
#endif
#define THIS_CPU(var)		VARIABLE(PER_CPU var)

#define NUMBER_HERE		THIS_CPU("kprobes_test_number")
#define PAIR_HERE		THIS_CPU("kprobes_test_pair")

/* The lowest byte of preempt_count. The highest bit is PREEMPT_NEED_RESCHED. */
#define COUNT_HERE		THIS_CPU("__preempt_count")

#endif /* _TEST_KPROBES_X86_OPERANDS_H */
