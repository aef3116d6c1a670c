/* SPDX-License-Identifier: GPL-2.0 */
/* Operands of instructions that are per CPU. */
#ifndef _TEST_KPROBES_X86_OPERANDS_H
#define _TEST_KPROBES_X86_OPERANDS_H

#include <linux/percpu.h>
#include <linux/stddef.h>

#include <asm/current.h>

struct pair {
	u64 word[2];
};

DECLARE_PER_CPU(u64, kprobes_test_number);	/* 7 whenever no instruction is tested */
DECLARE_PER_CPU_ALIGNED(struct pair, kprobes_test_pair);

/* Operands per CPU, which are for one CPU only where there is but one. */
#ifdef CONFIG_SMP
#define GS			"%gs:"
#else
#define GS			""
#endif
#define THIS_CPU(var)		GS var "(%rip)"

#define NUMBER_HERE		THIS_CPU("kprobes_test_number")
#define PAIR_HERE		THIS_CPU("kprobes_test_pair")

static_assert(offsetof(struct pcpu_hot, preempt_count) == 8);

/* The lowest byte of preempt_count: the scheduler sets a flag in the highest one. */
#define COUNT_HERE		THIS_CPU("pcpu_hot + 8")

#endif /* _TEST_KPROBES_X86_OPERANDS_H */
