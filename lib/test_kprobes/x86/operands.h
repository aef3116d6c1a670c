/* SPDX-License-Identifier: GPL-2.0 */
/* Per-CPU operands of instructions. */
#ifndef _TEST_KPROBES_X86_OPERANDS_H
#define _TEST_KPROBES_X86_OPERANDS_H

#include <linux/percpu.h>
#include <linux/stddef.h>

#include <asm/current.h>

struct pair {
	u64 word[2];
};

DECLARE_PER_CPU(u64, kprobes_test_number);	/* 7 if no test is running */
DECLARE_PER_CPU_ALIGNED(struct pair, kprobes_test_pair);

/* Without SMP, per-CPU variables are plain ones. */
#ifdef CONFIG_SMP
#define GS			"%gs:"
#else
#define GS			""
#endif
#define THIS_CPU(var)		GS var "(%rip)"

#define NUMBER_HERE		THIS_CPU("kprobes_test_number")
#define PAIR_HERE		THIS_CPU("kprobes_test_pair")

static_assert(offsetof(struct pcpu_hot, preempt_count) == 8);

/* The lowest byte of preempt_count. The highest bit is PREEMPT_NEED_RESCHED. */
#define COUNT_HERE		THIS_CPU("pcpu_hot + 8")

#endif /* _TEST_KPROBES_X86_OPERANDS_H */
