/* SPDX-License-Identifier: GPL-2.0 */
/* Functions with many arguments, for jumper probes. */
#ifndef _TEST_KPROBES_JPROBE_H
#define _TEST_KPROBES_JPROBE_H

#include <linux/kprobes.h>
#include <linux/types.h>

/* Every kind of argument that the x86-64 ABI distinguishes: in registers and on the stack. */
struct on_stack {
	u64 words[4];
};

struct pair {
	u32 a, b;
};

struct all_arguments {
	char c;
	s16 s;
	u32 u;
	u64 q;
	void *pointer;
	struct pair pair;
	u8 on_stack_byte;
	struct on_stack block;
	u64 last;
};

#define ALL_ARGUMENTS								\
	char c, s16 s, u32 u, u64 q, void *pointer, struct pair pair,		\
	u8 on_stack_byte, struct on_stack block, u64 last

#define SUM_OF_ARGUMENTS							\
	(c + s + u + q + (unsigned long)pointer + pair.a + pair.b +		\
	 on_stack_byte + block.words[0] + block.words[3] + last)

/* An argument that is passed on the stack and has more words than a handler gets. */
struct many_words {
	unsigned long words[JPROBE_STACK_WORDS + 4];
};

#define SUM_OF_WORDS(block)							\
({										\
	u64 sum_ = 0;								\
										\
	for (int i_ = 0; i_ < JPROBE_STACK_WORDS + 4; i_++)			\
		sum_ = sum_ * 3 + (block).words[i_];				\
	sum_;									\
})

typedef u64 arguments_fn(ALL_ARGUMENTS);
typedef u64 words_fn(struct many_words block);

arguments_fn kprobes_test_arguments;
words_fn kprobes_test_words;
u64 kprobes_test_variadic(int count, ...);

/* Functions that are probed through ftrace, if the kernel has that. */
arguments_fn kprobes_test_traced_arguments;
words_fn kprobes_test_traced_words;

#endif /* _TEST_KPROBES_JPROBE_H */
