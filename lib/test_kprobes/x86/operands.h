/* SPDX-License-Identifier: GPL-2.0 */
/* Per-CPU operands of instructions. */
#ifndef _TEST_KPROBES_X86_OPERANDS_H
#define _TEST_KPROBES_X86_OPERANDS_H

#include <linux/percpu.h>
#include <linux/stddef.h>

#include <asm/asm.h>
#include <asm/current.h>

/* The operand of CMPXCHG16B, on i386 of CMPXCHG8B. */
struct pair {
	unsigned long word[2];
};

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

/* Offsets in struct pcpu_hot, for assembly. */
#ifdef CONFIG_X86_64
#define PREEMPT_COUNT_OFFSET	8
#else
#define PREEMPT_COUNT_OFFSET	4
#endif
static_assert(offsetof(struct pcpu_hot, preempt_count) == PREEMPT_COUNT_OFFSET);

/* The lowest byte of preempt_count. The highest bit is PREEMPT_NEED_RESCHED. */
#define COUNT_HERE		THIS_CPU("pcpu_hot + " __stringify(PREEMPT_COUNT_OFFSET))

#endif /* _TEST_KPROBES_X86_OPERANDS_H */
