// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of what a jump displaces, and of its copies in a detour
 *
 * Nothing is executed here: that the copies do the same is left to the tests of
 * probes. What kprobe_relocate_insn() makes is tested with the analysis.
 */

#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/rcupdate.h>
#include <linux/string.h>
#include <linux/unaligned.h>
#include <linux/vmalloc.h>

#include <asm/text-patching.h>

#include <kunit/test.h>

#include "insn.h"

/* Where the originals are, and the copies. */
#define FROM		((unsigned long)(s32)0x81000000)
#define TO		(FROM + 0x10000)

/* An address that x86-64 cannot make from 32 bits. */
#ifdef CONFIG_X86_64
#define FAR		0xffffc90000001000
#else
#define FAR		0
#endif

#define MAX_CODE	24

static_assert(MAX_CODE > MAX_OPTIMIZED_LENGTH);

/* Some bytes. */
struct bytes {
	u8 len;
	u8 bytes[MAX_OPTIMIZED_LENGTH];
};

#define BYTES(...)	((struct bytes){ sizeof((u8[]){ __VA_ARGS__ }), { __VA_ARGS__ } })

/* They are the first ones, the others are NOPs. */
struct code {
	u8 bytes[MAX_CODE];
};

static struct code fill_up(struct bytes bytes)
{
	struct code code;

	memset(code.bytes, 0x90, sizeof(code.bytes));
	memcpy(code.bytes, bytes.bytes, bytes.len);
	return code;
}

/* kprobe_relocate_displaced() takes the mode from the instruction: both modes are tested. */
static const int all_bits[] = { 32, 64 };

static int decode(struct insn *insn, const struct code *code, int bits)
{
	return insn_decode(insn, code->bytes, sizeof(code->bytes),
			   bits == 64 ? INSN_MODE_64 : INSN_MODE_32);
}

/* Whether a case is one for code of @bits. It is for both modes if @case_bits is 0. */
static bool case_has_bits(int case_bits, int bits)
{
	return !case_bits || case_bits == bits;
}

/* The size of a region. */

static const struct size_case {
	const char *text;
	struct bytes code;
	int size;
	int bits;	/* see case_has_bits() */
} size_cases[] = {
	{ "nop; nop; nop; nop; nop", BYTES(0x90), 5 },
	{ "lea 0x10(%rip),%rax", BYTES(0x48, 0x8d, 0x05, 0x10, 0x00, 0x00, 0x00), 7, 64 },
	{ "push %rbp; mov %rsp,%rbp; nop", BYTES(0x55, 0x48, 0x89, 0xe5), 5, 64 },
	{ "push; push; push; push; mov $imm32,%eax", BYTES(0x53, 0x53, 0x53, 0x53, 0xb8), 9 },
	{ "4 * nop; cs ... nopw 0(%rax,%rax,1)",
	  BYTES(0x90, 0x90, 0x90, 0x90, 0x66, 0x66, 0x66, 0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84,
		0x00, 0x00, 0x02, 0x00, 0x00), 18 },
	{ "4 * nop; 15 bytes",
	  BYTES(0x90, 0x90, 0x90, 0x90, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x2e, 0x0f, 0x1f,
		0x84, 0x00, 0x00, 0x02, 0x00, 0x00), 19 },
	{ "pushf; cli; popf; sti; nop", BYTES(0x9c, 0xfa, 0x9d, 0xfb), 5 },
	{ "sti; mov $imm32,%eax", BYTES(0xfb, 0xb8), 6 },
	{ "4 * nop; sti; mov", BYTES(0x90, 0x90, 0x90, 0x90, 0xfb, 0x48, 0x89, 0xf8), 5 },
	{ "mov %eax,%ds; nop", BYTES(0x8e, 0xd8), 5 },
	{ "mov %rdi,%cr3; nop", BYTES(0x0f, 0x22, 0xdf), 5 },
	{ "pause; nop", BYTES(0xf3, 0x90), 5 },
	{ "monitor; nop", BYTES(0x0f, 0x01, 0xc8), 5 },
	{ "clac; nop", BYTES(0x0f, 0x01, 0xca), 5 },
	{ "sfence; nop", BYTES(0x0f, 0xae, 0xf8), 5 },
	{ "clwb (%rdi); nop", BYTES(0x66, 0x0f, 0xae, 0x37), 5 },

	/* Branches that may not be taken */
	{ "je .+2; nop", BYTES(0x74, 0x00), 5 },
	{ "je; jne; nop", BYTES(0x74, 0x10, 0x75, 0x10), 5 },
	{ "je; jne; jg", BYTES(0x74, 0x10, 0x75, 0x10, 0x7f, 0x10), 6 },
	{ "jo near", BYTES(0x0f, 0x80, 0x00, 0x10, 0x00, 0x00), 6 },
	{ "bnd je", BYTES(0xf2, 0x74, 0x10), 5 },
	{ "je,pn", BYTES(0x2e, 0x74, 0x10), 5 },

	/* What does not come back, with anything after it */
	{ "jmp .+5; int3", BYTES(0xeb, 0x03, 0xcc), 5 },
	{ "jmp; ...", BYTES(0xeb, 0x10, 0x06, 0x0f, 0xff), 5 },
	{ "jmp near", BYTES(0xe9, 0x00, 0x10, 0x00, 0x00), 5 },
	{ "cs jmp near", BYTES(0x2e, 0xe9, 0x00, 0x10, 0x00, 0x00), 6 },
	{ "bnd jmp near", BYTES(0xf2, 0xe9, 0x00, 0x10, 0x00, 0x00), 6 },
	{ "push %rax; jmp near", BYTES(0x50, 0xe9, 0x00, 0x10, 0x00, 0x00), 6 },
	{ "push %rax; jmp; int3", BYTES(0x50, 0xeb, 0x00, 0xcc), 5 },
	{ "jmp *%rax; int3", BYTES(0xff, 0xe0, 0xcc), 5 },
	{ "notrack jmp *%rax; int3", BYTES(0x3e, 0xff, 0xe0, 0xcc), 5 },
	{ "jmp *8(%rsp); int3", BYTES(0xff, 0x64, 0x24, 0x08, 0xcc), 5 },
	{ "jmp *0x10(%rip)", BYTES(0xff, 0x25, 0x10, 0x00, 0x00, 0x00, 0xcc), 6 },
	{ "jmp *table(,%rax,8)", BYTES(0xff, 0x24, 0xc5, 0x00, 0x10, 0x00, 0x00), 7 },
	{ "ret; int3", BYTES(0xc3, 0xcc, 0xcc, 0xcc, 0xcc), 5 },
	{ "ret; ...", BYTES(0xc3, 0x0f, 0x0b, 0xe8, 0x00), 5 },
	{ "repz ret; int3", BYTES(0xf3, 0xc3, 0xcc), 5 },
	{ "ret $16; int3", BYTES(0xc2, 0x10, 0x00, 0xcc), 5 },
	{ "pop; pop; pop; pop; ret; int3", BYTES(0x5b, 0x5b, 0x5b, 0x5b, 0xc3, 0xcc), 5 },

	/* Calls */
	{ "call", BYTES(0xe8, 0x00, 0x10, 0x00, 0x00, 0xcc), 5 },
	{ "cs call", BYTES(0x2e, 0xe8, 0x00, 0x10, 0x00, 0x00, 0xcc), 6 },
	{ "rex.W call", BYTES(0x48, 0xe8, 0x00, 0x10, 0x00, 0x00), 6, 64 },
	{ "nop; nop; nop; nop; call", BYTES(0x90, 0x90, 0x90, 0x90, 0xe8, 0, 0, 0, 0), 9 },
	{ "mov %rdi,%rsi; call *%rax", BYTES(0x48, 0x89, 0xfe, 0xff, 0xd0, 0xcc), 5, 64 },
	{ "call *0x10(%rip)", BYTES(0xff, 0x15, 0x10, 0x00, 0x00, 0x00, 0xcc), 6 },
	{ "call *table(,%rax,8)", BYTES(0xff, 0x14, 0xc5, 0x00, 0x10, 0x00, 0x00), 7 },
	{ "push %rax; notrack call *8(%r12)", BYTES(0x50, 0x3e, 0x41, 0xff, 0x54, 0x24, 0x08), 7,
	  64 },
	{ "push %rax; push %rax; call *%r12", BYTES(0x50, 0x50, 0x41, 0xff, 0xd4), 5, 64 },
	{ "nop; call *table(,%r12,1)", BYTES(0x90, 0x42, 0xff, 0x14, 0x25, 0, 0, 0, 0), 9, 64 },

	/* Calls that are not at the end, or would find their operand elsewhere */
	{ "call *%rax; nop", BYTES(0xff, 0xd0), -EILSEQ },
	{ "call *(%rdi); nop", BYTES(0xff, 0x17), -EILSEQ },
	{ "nop; call *%r11; nop", BYTES(0x90, 0x41, 0xff, 0xd3), -EILSEQ, 64 },
	{ "nop; nop; nop; call *%rsp", BYTES(0x90, 0x90, 0x90, 0xff, 0xd4), -EILSEQ },
	{ "nop; call *8(%rsp)", BYTES(0x90, 0xff, 0x54, 0x24, 0x08), -EILSEQ },
	{ "nop; call *(%rsp,%rax,8)", BYTES(0x90, 0x90, 0xff, 0x14, 0xc4), -EILSEQ },
	{ "call *0x100(%rsp)", BYTES(0xff, 0x94, 0x24, 0x00, 0x01, 0x00, 0x00), -EILSEQ },

	/* Targets of indirect branches */
	{ "endbr64", BYTES(0xf3, 0x0f, 0x1e, 0xfa), -EILSEQ },
	{ "nop; endbr64", BYTES(0x90, 0xf3, 0x0f, 0x1e, 0xfa), -EILSEQ },

	/* Waits */
	{ "hlt", BYTES(0xf4), -EILSEQ },
	{ "4 * nop; hlt", BYTES(0x90, 0x90, 0x90, 0x90, 0xf4), -EILSEQ },
	{ "mwait", BYTES(0x0f, 0x01, 0xc9), -EILSEQ },
	{ "mwaitx", BYTES(0x0f, 0x01, 0xfb), -EILSEQ },
	{ "tpause %eax", BYTES(0x66, 0x0f, 0xae, 0xf0), -EILSEQ },
	{ "umwait %eax", BYTES(0xf2, 0x0f, 0xae, 0xf0), -EILSEQ },
	{ "sti; hlt", BYTES(0xfb, 0xf4), -EILSEQ },
	{ "4 * nop; sti; hlt", BYTES(0x90, 0x90, 0x90, 0x90, 0xfb, 0xf4), -EILSEQ },

	/* What has no copy, or cannot be probed */
	{ "loop", BYTES(0xe2, 0x10), -EILSEQ },
	{ "loopne", BYTES(0xe0, 0x10), -EILSEQ },
	{ "jrcxz", BYTES(0xe3, 0x10), -EILSEQ },
	{ "addr32 loop", BYTES(0x67, 0xe2, 0x10), -EILSEQ },
	{ "nop; nop; jecxz", BYTES(0x90, 0x90, 0x67, 0xe3, 0x10), -EILSEQ },
	{ "xbegin", BYTES(0xc7, 0xf8, 0x00, 0x10, 0x00, 0x00), -EILSEQ },
	{ "int3", BYTES(0xcc), -EILSEQ },
	{ "4 * nop; int3", BYTES(0x90, 0x90, 0x90, 0x90, 0xcc), -EILSEQ },
	{ "nop; nop; nop; ud2", BYTES(0x90, 0x90, 0x90, 0x0f, 0x0b), -EILSEQ },
	{ "lret", BYTES(0xcb), -EILSEQ },
	{ "iretq", BYTES(0x48, 0xcf), -EILSEQ, 64 },
	{ "lcall *(%rdi)", BYTES(0xff, 0x1f), -EILSEQ },
	{ "ljmp *(%rdi)", BYTES(0xff, 0x2f), -EILSEQ },
	{ "syscall", BYTES(0x0f, 0x05), -EILSEQ },
	{ "swapgs", BYTES(0x0f, 0x01, 0xf8), -EILSEQ },
	{ "mov 0(%eip),%eax", BYTES(0x67, 0x8b, 0x05, 0, 0, 0, 0), -EILSEQ, 64 },
	{ "data16 jmp", BYTES(0x66, 0xe9, 0, 0, 0, 0), -EILSEQ },
	{ "data16 call", BYTES(0x66, 0xe8, 0, 0, 0, 0), -EILSEQ },
	{ "data16 je", BYTES(0x66, 0x74, 0), -EILSEQ },
	{ "retw", BYTES(0x66, 0xc3), -EILSEQ },
	{ "jmpw *%ax", BYTES(0x66, 0xff, 0xe0), -EILSEQ },
	{ "lock jmp", BYTES(0xf0, 0xeb, 0), -EILSEQ },
	{ "nop; nop; call *%gs:(%rdi)", BYTES(0x90, 0x90, 0x65, 0xff, 0x17), -EILSEQ },
	{ "nop; jmp *%fs:8(%rdi)", BYTES(0x90, 0x64, 0xff, 0x67, 0x08), -EILSEQ },
	{ "push %es", BYTES(0x06), -EILSEQ, 64 },
	{ "0f 38 0c without VEX", BYTES(0x0f, 0x38, 0x0c, 0xc8), -EILSEQ },
	{ "{evex} in an undefined map", BYTES(0x62, 0xf0, 0x7c, 0x08, 0x90, 0xc0), -EILSEQ },
	{ "16 bytes", BYTES(0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x66,
			    0x66, 0x66, 0x66), -EILSEQ },
	{ "kCFI", BYTES(0x41, 0xba, 1, 2, 3, 4, 0x45, 0x03, 0x57, 0xfc, 0x74, 0x02, 0x0f, 0x0b),
	  -EILSEQ },
	{ "4 * nop; kCFI", BYTES(0x90, 0x90, 0x90, 0x90, 0x41, 0xba, 1, 2, 3, 4, 0x45, 0x03,
				 0x57, 0xfc, 0x74, 0x02, 0x0f, 0x0b), -EILSEQ },
	{ "4 * nop; mov $imm32,%r10d", BYTES(0x90, 0x90, 0x90, 0x90, 0x41, 0xba, 1, 2, 3, 4), 10,
	  64 },

	/* Only in 32-bit mode */
	{ "inc %eax; nop", BYTES(0x40), 5, 32 },
	{ "dec %edi; inc %ebx; pusha; popa; nop", BYTES(0x4f, 0x43, 0x60, 0x61), 5, 32 },
	{ "push %ds; push %es; pop %es; pop %ds; nop", BYTES(0x1e, 0x06, 0x07, 0x1f), 5, 32 },
	{ "mov moffs32,%al", BYTES(0xa0, 0x00, 0x10, 0x00, 0xc1), 5, 32 },
	{ "nop; mov %fs:moffs32,%eax", BYTES(0x90, 0x64, 0xa1, 0x00, 0x10, 0x00, 0xc1), 7, 32 },
	{ "mov moffs16,%eax; nop", BYTES(0x67, 0xa1, 0x00, 0x10), 5, 32 },
	{ "mov 0x1000,%ecx", BYTES(0x8b, 0x0d, 0x00, 0x10, 0x00, 0x00), 6, 32 },
	{ "mov (%bx,%si),%eax; nop", BYTES(0x67, 0x8b, 0x00), 5, 32 },
	{ "arpl %ax,%bx; nop", BYTES(0x63, 0xc3), 5, 32 },
	{ "bound %eax,(%ecx); nop", BYTES(0x62, 0x01), 5, 32 },
	{ "lds (%eax),%eax; nop", BYTES(0xc5, 0x00), 5, 32 },
	{ "push %ebp; mov %esp,%ebp; push; push", BYTES(0x55, 0x89, 0xe5, 0x57, 0x56), 5, 32 },
	{ "push %ebp; mov %esp,%ebp; sub $12,%esp", BYTES(0x55, 0x89, 0xe5, 0x83, 0xec, 0x0c), 6,
	  32 },
	{ "lea -12(%ebp),%esp; pop; pop", BYTES(0x8d, 0x65, 0xf4, 0x5b, 0x5e), 5, 32 },
	{ "pop; pop %ebp; ret", BYTES(0x5f, 0x5d, 0xc3), 5, 32 },
	{ "leave; ret; int3", BYTES(0xc9, 0xc3, 0xcc), 5, 32 },
	{ "leave; jmp near", BYTES(0xc9, 0xe9, 0x00, 0x10, 0x00, 0x00), 6, 32 },
	{ "jmp *table(,%eax,4)", BYTES(0xff, 0x24, 0x85, 0x00, 0x10, 0x00, 0x00), 7, 32 },
	{ "call *table(,%eax,4)", BYTES(0xff, 0x14, 0x85, 0x00, 0x10, 0x00, 0x00), 7, 32 },
	{ "nop; call *0x1000", BYTES(0x90, 0xff, 0x15, 0x00, 0x10, 0x00, 0x00), 7, 32 },
	{ "inc; inc; inc; call *%eax", BYTES(0x40, 0x41, 0x42, 0xff, 0xd0), 5, 32 },
	{ "inc; inc; call *%eax; nop", BYTES(0x40, 0x41, 0xff, 0xd0), -EILSEQ, 32 },
	{ "nop; nop; nop; call *%esp", BYTES(0x90, 0x90, 0x90, 0xff, 0xd4), -EILSEQ, 32 },
	{ "nop; nop; call *(%di)", BYTES(0x90, 0x90, 0x67, 0xff, 0x15), -EILSEQ, 32 },
	{ "jmp *(%bx,%si)", BYTES(0x67, 0xff, 0x20), -EILSEQ, 32 },
	{ "jcxz", BYTES(0x67, 0xe3, 0x10), -EILSEQ, 32 },
	{ "nop; callw", BYTES(0x90, 0x66, 0xe8, 0x00, 0x10), -EILSEQ, 32 },
	{ "pop %ss", BYTES(0x17), -EILSEQ, 32 },
	{ "mov %eax,%gs", BYTES(0x8e, 0xe8), -EILSEQ, 32 },
	{ "into", BYTES(0xce), -EILSEQ, 32 },
	{ "iret", BYTES(0xcf), -EILSEQ, 32 },
	{ "lcall $0x10,$0", BYTES(0x9a, 0, 0, 0, 0, 0x10, 0), -EILSEQ, 32 },
	{ "ljmp $0x10,$0", BYTES(0xea, 0, 0, 0, 0, 0x10, 0), -EILSEQ, 32 },
};

static int displaced_size(const u8 *code, size_t len, unsigned int jump_size)
{
	return kprobe_displaced_size(code, len, jump_size, false, false);
}

static void expect_sizes(struct kunit *test, const struct size_case *cases, size_t n,
			 unsigned int jump_size)
{
	for (const struct size_case *c = cases; c < cases + n; c++) {
		struct code code = fill_up(c->code);

		if (!case_has_bits(c->bits, BITS_PER_LONG))
			continue;
		KUNIT_EXPECT_EQ_MSG(test, c->size,
				    displaced_size(code.bytes, sizeof(code.bytes), jump_size),
				    "%s", c->text);
		KUNIT_EXPECT_EQ_MSG(test, displaced_size(code.bytes, 1, jump_size), -ERANGE,
				    "%s", c->text);
	}
}

static void test_sizes(struct kunit *test)
{
	expect_sizes(test, size_cases, ARRAY_SIZE(size_cases), 5);
}

/* A jump of two bytes displaces less. */
static const struct size_case short_size_cases[] = {
	{ "push %rbx; push %rbx; endbr64", BYTES(0x53, 0x53, 0xf3, 0x0f, 0x1e, 0xfa), 2 },
	{ "push %rbx; mov $1,%eax; hlt", BYTES(0x53, 0xb8, 0x01, 0x00, 0x00, 0x00, 0xf4), 6 },
	{ "mov (%rdx),%eax; hlt", BYTES(0x8b, 0x02, 0xf4), 2 },
	{ "mov %rdi,%rsi; call; nop", BYTES(0x48, 0x89, 0xfe, 0xe8, 0x00, 0x10), 3, 64 },
	{ "mov $1,%eax; hlt", BYTES(0xb8, 0x01, 0x00, 0x00, 0x00, 0xf4), 5 },
	{ "je; hlt", BYTES(0x74, 0x10, 0xf4), 2 },
	{ "jmp; hlt", BYTES(0xeb, 0x10, 0xf4), 2 },
	{ "ret; hlt", BYTES(0xc3, 0xf4), 2 },
	{ "call *%rax; hlt", BYTES(0xff, 0xd0, 0xf4), 2 },
	{ "push %rbx; call *%rax; hlt", BYTES(0x53, 0xff, 0xd0, 0xf4), 3 },
	{ "call; hlt", BYTES(0xe8, 0x00, 0x10, 0x00, 0x00, 0xf4), 5 },
	{ "push %rbx; hlt", BYTES(0x53, 0xf4), -EILSEQ },
	{ "push %rbx; endbr64", BYTES(0x53, 0xf3, 0x0f, 0x1e, 0xfa), -EILSEQ },
	{ "loop", BYTES(0xe2, 0x10), -EILSEQ },
	{ "hlt", BYTES(0xf4), -EILSEQ },
};

static void test_sizes_of_short_jumps(struct kunit *test)
{
	expect_sizes(test, short_size_cases, ARRAY_SIZE(short_size_cases), 2);
}

/* Whether the bytes are too few is told from what they are, and no other one is read. */
static void test_end_of_bytes(struct kunit *test)
{
	u8 *page = vmalloc(PAGE_SIZE), *end = page + PAGE_SIZE;

	KUNIT_ASSERT_NOT_NULL(test, page);
	for (size_t i = 0; i < ARRAY_SIZE(size_cases); i++) {
		const struct size_case *c = &size_cases[i];
		struct code code = fill_up(c->code);

		if (!case_has_bits(c->bits, BITS_PER_LONG))
			continue;
		if (c->size < 0) {
			int size = displaced_size(code.bytes, max(c->code.len, 5), 5);

			KUNIT_EXPECT_EQ_MSG(test, size, c->size, "%s", c->text);
			continue;
		}
		for (int len = 0; len <= c->size; len++) {
			bool sti = len == c->size && code.bytes[len - 1] == 0xfb;
			int want = len < c->size ? -ERANGE : sti ? -EILSEQ : c->size;

			memcpy(end - len, code.bytes, len);
			KUNIT_EXPECT_EQ_MSG(test, displaced_size(end - len, len, 5), want,
					    "%s, %d bytes", c->text, len);
		}
	}
	vfree(page);
}

/* Copies. */

/**
 * struct copy_case - An instruction and its copy
 * @text:	The instruction.
 * @code:	Its bytes.
 * @copy:	Those of the copy, but for what a call has in front of that, with
 *		0 for a displacement.
 * @disp:	The offset of this displacement in @copy, or 0.
 * @target:	Where it leads to, from FROM.
 * @calls:	It calls.
 * @bits:	The mode of the code, see case_has_bits().
 */
struct copy_case {
	const char *text;
	struct bytes code;
	struct bytes copy;
	int disp;
	long target;
	bool calls;
	int bits;
};

static const struct copy_case copy_cases[] = {
	{ "jmp .+0x12", BYTES(0xeb, 0x10), BYTES(0xe9, 0, 0, 0, 0), 1, 0x12 },
	{ "jmp .-0x7e", BYTES(0xeb, 0x80), BYTES(0xe9, 0, 0, 0, 0), 1, -0x7e },
	{ "jmp .", BYTES(0xeb, 0xfe), BYTES(0xe9, 0, 0, 0, 0), 1, 0 },
	{ "jmp .+0x1005", BYTES(0xe9, 0, 0x10, 0, 0), BYTES(0xe9, 0, 0, 0, 0), 1, 0x1005 },
	{ "jmp .-0xffb", BYTES(0xe9, 0, 0xf0, 0xff, 0xff), BYTES(0xe9, 0, 0, 0, 0), 1, -0xffb },
	{ "cs jmp .+0x106", BYTES(0x2e, 0xe9, 0, 1, 0, 0), BYTES(0xe9, 0, 0, 0, 0), 1, 0x106 },
	{ "bnd jmp .+0x106", BYTES(0xf2, 0xe9, 0, 1, 0, 0), BYTES(0xe9, 0, 0, 0, 0), 1, 0x106 },
	{ "addr32 jmp .+0x13", BYTES(0x67, 0xeb, 0x10), BYTES(0xe9, 0, 0, 0, 0), 1, 0x13 },

	{ "je .+0x20", BYTES(0x74, 0x1e), BYTES(0x0f, 0x84, 0, 0, 0, 0), 2, 0x20 },
	{ "jne .-0x20", BYTES(0x75, 0xde), BYTES(0x0f, 0x85, 0, 0, 0, 0), 2, -0x20 },
	{ "je,pn .+0x13", BYTES(0x2e, 0x74, 0x10), BYTES(0x0f, 0x84, 0, 0, 0, 0), 2, 0x13 },
	{ "bnd je .+0x13", BYTES(0xf2, 0x74, 0x10), BYTES(0x0f, 0x84, 0, 0, 0, 0), 2, 0x13 },
	{ "jo .+0x1006", BYTES(0x0f, 0x80, 0, 0x10, 0, 0), BYTES(0x0f, 0x80, 0, 0, 0, 0), 2,
	  0x1006 },
	{ "jg .-0xffa", BYTES(0x0f, 0x8f, 0, 0xf0, 0xff, 0xff), BYTES(0x0f, 0x8f, 0, 0, 0, 0), 2,
	  -0xffa },
	{ "cs je .+7", BYTES(0x2e, 0x0f, 0x84, 0, 0, 0, 0), BYTES(0x0f, 0x84, 0, 0, 0, 0), 2, 7 },

	{ "call .+0x1005", BYTES(0xe8, 0, 0x10, 0, 0), BYTES(0xe9, 0, 0, 0, 0), 1, 0x1005, true },
	{ "call .-0xffb", BYTES(0xe8, 0, 0xf0, 0xff, 0xff), BYTES(0xe9, 0, 0, 0, 0), 1, -0xffb,
	  true },
	{ "cs call .+0x1006", BYTES(0x2e, 0xe8, 0, 0x10, 0, 0), BYTES(0xe9, 0, 0, 0, 0), 1, 0x1006,
	  true },
	{ "rex.W call .+6", BYTES(0x48, 0xe8, 0, 0, 0, 0), BYTES(0xe9, 0, 0, 0, 0), 1, 6, true,
	  64 },
	{ "call *%rax", BYTES(0xff, 0xd0), BYTES(0xff, 0xe0), .calls = true },
	{ "call *%rdi", BYTES(0xff, 0xd7), BYTES(0xff, 0xe7), .calls = true },
	{ "call *%r11", BYTES(0x41, 0xff, 0xd3), BYTES(0x41, 0xff, 0xe3), .calls = true,
	  .bits = 64 },
	{ "call *%r12", BYTES(0x41, 0xff, 0xd4), BYTES(0x41, 0xff, 0xe4), .calls = true,
	  .bits = 64 },
	{ "notrack call *%rax", BYTES(0x3e, 0xff, 0xd0), BYTES(0x3e, 0xff, 0xe0), .calls = true },
	{ "call *(%rdi)", BYTES(0xff, 0x17), BYTES(0xff, 0x27), .calls = true },
	{ "call *8(%rbp)", BYTES(0xff, 0x55, 0x08), BYTES(0xff, 0x65, 0x08), .calls = true },
	{ "call *(%r12)", BYTES(0x41, 0xff, 0x14, 0x24), BYTES(0x41, 0xff, 0x24, 0x24),
	  .calls = true, .bits = 64 },
	{ "call *0x18(%r12,%r13,2)", BYTES(0x43, 0xff, 0x54, 0x6c, 0x18),
	  BYTES(0x43, 0xff, 0x64, 0x6c, 0x18), .calls = true, .bits = 64 },
	{ "cs call *0x100(%rsi)", BYTES(0x2e, 0xff, 0x96, 0, 1, 0, 0),
	  BYTES(0x2e, 0xff, 0xa6, 0, 1, 0, 0), .calls = true },
	{ "call *0x1000(,%rax,8)", BYTES(0xff, 0x14, 0xc5, 0, 0x10, 0, 0),
	  BYTES(0xff, 0x24, 0xc5, 0, 0x10, 0, 0), .calls = true },
	{ "call *0x16(.)", BYTES(0xff, 0x15, 0x10, 0, 0, 0), BYTES(0xff, 0x25, 0, 0, 0, 0),
	  2, 0x16, true, 64 },

	{ "ret", BYTES(0xc3), BYTES(0xc3) },
	{ "ret $16", BYTES(0xc2, 0x10, 0), BYTES(0xc2, 0x10, 0) },
	{ "repz ret", BYTES(0xf3, 0xc3), BYTES(0xf3, 0xc3) },
	{ "jmp *%rax", BYTES(0xff, 0xe0), BYTES(0xff, 0xe0) },
	{ "notrack jmp *%rax", BYTES(0x3e, 0xff, 0xe0), BYTES(0x3e, 0xff, 0xe0) },
	{ "jmp *8(%rsp)", BYTES(0xff, 0x64, 0x24, 0x08), BYTES(0xff, 0x64, 0x24, 0x08) },
	{ "jmp *0x16(.)", BYTES(0xff, 0x25, 0x10, 0, 0, 0), BYTES(0xff, 0x25, 0, 0, 0, 0),
	  2, 0x16, .bits = 64 },

	{ "push %rbp", BYTES(0x55), BYTES(0x55) },
	{ "push (%rdi)", BYTES(0xff, 0x37), BYTES(0xff, 0x37) },
	{ "incl (%rsp)", BYTES(0xff, 0x04, 0x24), BYTES(0xff, 0x04, 0x24) },
	{ "lock incl (%rdi)", BYTES(0xf0, 0xff, 0x07), BYTES(0xf0, 0xff, 0x07) },
	{ "mov %ax,(%rdi)", BYTES(0x66, 0x89, 0x07), BYTES(0x66, 0x89, 0x07) },
	{ "pushf", BYTES(0x9c), BYTES(0x9c) },
	{ "cli", BYTES(0xfa), BYTES(0xfa) },
	{ "sti", BYTES(0xfb), BYTES(0xfb) },
	{ "lea 0x17(.),%rax", BYTES(0x48, 0x8d, 0x05, 0x10, 0, 0, 0),
	  BYTES(0x48, 0x8d, 0x05, 0, 0, 0, 0), 3, 0x17, .bits = 64 },
	{ "cmpl $1,0x17(.)", BYTES(0x83, 0x3d, 0x10, 0, 0, 0, 1), BYTES(0x83, 0x3d, 0, 0, 0, 0, 1),
	  2, 0x17, .bits = 64 },

	/* Only in 32-bit mode */
	{ "call *0x1000", BYTES(0xff, 0x15, 0, 0x10, 0, 0), BYTES(0xff, 0x25, 0, 0x10, 0, 0),
	  .calls = true, .bits = 32 },
	{ "call *0x1000(,%eax,4)", BYTES(0xff, 0x14, 0x85, 0, 0x10, 0, 0),
	  BYTES(0xff, 0x24, 0x85, 0, 0x10, 0, 0), .calls = true, .bits = 32 },
	{ "jmp *0x1000", BYTES(0xff, 0x25, 0, 0x10, 0, 0), BYTES(0xff, 0x25, 0, 0x10, 0, 0),
	  .bits = 32 },
	{ "jmp *0x1000(,%eax,4)", BYTES(0xff, 0x24, 0x85, 0, 0x10, 0, 0),
	  BYTES(0xff, 0x24, 0x85, 0, 0x10, 0, 0), .bits = 32 },
	{ "lea 0x1000,%eax", BYTES(0x8d, 0x05, 0, 0x10, 0, 0), BYTES(0x8d, 0x05, 0, 0x10, 0, 0),
	  .bits = 32 },
	{ "cmpl $1,0x1000", BYTES(0x83, 0x3d, 0, 0x10, 0, 0, 1),
	  BYTES(0x83, 0x3d, 0, 0x10, 0, 0, 1), .bits = 32 },
	{ "mov %fs:moffs32,%eax", BYTES(0x64, 0xa1, 0, 0x10, 0, 0xc1),
	  BYTES(0x64, 0xa1, 0, 0x10, 0, 0xc1), .bits = 32 },
	{ "mov %al,moffs32", BYTES(0xa2, 0, 0x10, 0, 0xc1), BYTES(0xa2, 0, 0x10, 0, 0xc1),
	  .bits = 32 },
	{ "lea -12(%ebp),%esp", BYTES(0x8d, 0x65, 0xf4), BYTES(0x8d, 0x65, 0xf4), .bits = 32 },
	{ "inc %eax", BYTES(0x40), BYTES(0x40), .bits = 32 },
	{ "dec %edi", BYTES(0x4f), BYTES(0x4f), .bits = 32 },
	{ "pusha", BYTES(0x60), BYTES(0x60), .bits = 32 },
	{ "popa", BYTES(0x61), BYTES(0x61), .bits = 32 },
	{ "push %ds", BYTES(0x1e), BYTES(0x1e), .bits = 32 },
	{ "leave", BYTES(0xc9), BYTES(0xc9), .bits = 32 },
};

/* call 1f; 1: movq or movl $imm32, at the stack pointer */
static int push_size(int bits)
{
	return bits == 64 ? 13 : 12;
}

/* Write the copy that is wanted; return its length. */
static int want_copy(u8 *want, const struct copy_case *c, int bits)
{
	u8 push[] = { 0xe8, 0, 0, 0, 0, 0xc7, 0x04, 0x24, 0, 0, 0, 0 };
	u8 rex_push[] = { 0xe8, 0, 0, 0, 0, 0x48, 0xc7, 0x04, 0x24, 0, 0, 0, 0 };
	int len = c->calls ? push_size(bits) : 0;

	memcpy(want, bits == 64 ? rex_push : push, len);
	if (c->calls)
		put_unaligned_le32(FROM + c->code.len, want + len - 4);
	memcpy(want + len, c->copy.bytes, c->copy.len);
	if (c->disp)
		put_unaligned_le32(FROM + c->target - (TO + len + c->copy.len),
				   want + len + c->disp);
	return len + c->copy.len;
}

static void check_copy(struct kunit *test, const struct copy_case *c, int bits)
{
	struct code code = fill_up(c->code);
	u8 want[DISPLACED_INSN_COPY_MAX + 1], buf[sizeof(want)];
	struct insn insn;

	KUNIT_ASSERT_EQ(test, decode(&insn, &code, bits), 0);
	KUNIT_EXPECT_EQ_MSG(test, insn.length, c->code.len, "%s, %d bits", c->text, bits);
	memset(want, 0xcc, sizeof(want));
	memset(buf, 0xcc, sizeof(buf));
	KUNIT_EXPECT_EQ_MSG(test, kprobe_relocate_displaced(buf, &insn, FROM, TO),
			    want_copy(want, c, bits), "%s, %d bits", c->text, bits);
	KUNIT_EXPECT_MEMEQ_MSG(test, buf, want, sizeof(buf), "%s, %d bits", c->text, bits);
}

static void test_copies(struct kunit *test)
{
	for (size_t i = 0; i < ARRAY_SIZE(copy_cases); i++)
		for (size_t j = 0; j < ARRAY_SIZE(all_bits); j++)
			if (case_has_bits(copy_cases[i].bits, all_bits[j]))
				check_copy(test, &copy_cases[i], all_bits[j]);
}

static void check_condition(struct kunit *test, struct bytes bytes, int cond, long target)
{
	struct code code = fill_up(bytes);
	u8 want[] = { 0x0f, 0x80 | cond, 0, 0, 0, 0 }, buf[sizeof(want)];
	struct insn insn;

	put_unaligned_le32(FROM + target - (TO + sizeof(want)), want + 2);
	for (size_t i = 0; i < ARRAY_SIZE(all_bits); i++) {
		KUNIT_ASSERT_EQ(test, decode(&insn, &code, all_bits[i]), 0);
		KUNIT_EXPECT_EQ(test, kprobe_relocate_displaced(buf, &insn, FROM, TO),
				sizeof(want));
		KUNIT_EXPECT_MEMEQ(test, buf, want, sizeof(want));
	}
}

static void test_conditions(struct kunit *test)
{
	for (int cond = 0; cond < 16; cond++) {
		check_condition(test, BYTES(0x70 | cond, 0x80), cond, -0x7e);
		check_condition(test, BYTES(0x0f, 0x80 | cond, 0x34, 0x12, 0, 0), cond, 0x123a);
	}
}

static void expect_error(struct kunit *test, struct bytes bytes, int bits, unsigned long from,
			 unsigned long to, int error)
{
	u8 untouched[DISPLACED_INSN_COPY_MAX], buf[DISPLACED_INSN_COPY_MAX];
	struct code code = fill_up(bytes);
	struct insn insn;

	KUNIT_ASSERT_EQ(test, decode(&insn, &code, bits), 0);
	memset(untouched, 0xcc, sizeof(untouched));
	memset(buf, 0xcc, sizeof(buf));
	KUNIT_EXPECT_EQ_MSG(test, kprobe_relocate_displaced(buf, &insn, from, to), error,
			    "%*ph, %d bits, from %lx to %lx", bytes.len, bytes.bytes, bits,
			    from, to);
	KUNIT_EXPECT_MEMEQ_MSG(test, buf, untouched, sizeof(buf), "%*ph", bytes.len, bytes.bytes);
}

static void expect_refusal(struct kunit *test, struct bytes bytes)
{
	struct code code = fill_up(bytes);

	KUNIT_EXPECT_EQ_MSG(test, displaced_size(code.bytes, sizeof(code.bytes), 2), -EILSEQ,
			    "%*ph", bytes.len, bytes.bytes);
}

static const struct bytes no_copies[] = {
	BYTES(0xe0, 0x10), BYTES(0xe1, 0x10), BYTES(0xe2, 0x10),
	BYTES(0xe3, 0x10), BYTES(0x67, 0xe2, 0x10),
	BYTES(0xc7, 0xf8, 0, 0, 0, 0),		/* xbegin */
	BYTES(0xff, 0xd4),			/* call *%rsp */
	BYTES(0xff, 0x14, 0x24),		/* call *(%rsp) */
	BYTES(0xff, 0x54, 0x24, 0x08),
	BYTES(0xff, 0x14, 0x44),		/* call *(%rsp,%rax,2) */
	BYTES(0xff, 0x1f), BYTES(0xff, 0x2f),
	BYTES(0x66, 0xe9, 0, 0, 0, 0), BYTES(0x66, 0xeb, 0x00),
	BYTES(0x66, 0xe8, 0, 0, 0, 0), BYTES(0x66, 0xc3),
	BYTES(0x66, 0x74, 0x00), BYTES(0x66, 0x0f, 0x84, 0, 0, 0, 0),
	BYTES(0x66, 0xff, 0xd0), BYTES(0x66, 0xff, 0xe0),
	BYTES(0xf0, 0xe9, 0, 0, 0, 0), BYTES(0xf0, 0xff, 0xd0),
	BYTES(0x0f, 0x0b, 0x78, 0x65, 0x6e, 0x0f, 0xa2),	/* Xen cpuid */
};

/* Code of 64-bit mode */
static const struct bytes no_copies_64[] = {
	BYTES(0x67, 0x8b, 0x05, 0, 0, 0, 0),	/* mov 0(%eip),%eax */
	BYTES(0x67, 0xff, 0x15, 0, 0, 0, 0),	/* call *0(%eip) */
	BYTES(0x67, 0xff, 0x25, 0, 0, 0, 0),	/* jmp *0(%eip) */
	BYTES(0x42, 0xff, 0x14, 0x24),		/* call *(%rsp,%r12,1) */
	BYTES(0x67, 0xff, 0x54, 0x24, 0x08),	/* call *8(%esp) */
	BYTES(0xd5, 0x80, 0x84, 0, 0, 0, 0),	/* {rex2} je */
	BYTES(0xd5, 0x10, 0xff, 0xd0),		/* call *%r16 */
};

static void test_no_copies(struct kunit *test)
{
	for (size_t i = 0; i < ARRAY_SIZE(no_copies); i++)
		expect_refusal(test, no_copies[i]);
	for (size_t i = 0; BITS_PER_LONG == 64 && i < ARRAY_SIZE(no_copies_64); i++)
		expect_refusal(test, no_copies_64[i]);
}

/*
 * An operand or a target 2 GiB below the copy's end, 2 GiB less a byte above it. On i386
 * every distance is in range: the CPU computes addresses modulo 4 GiB.
 */
static void check_range(struct kunit *test, struct bytes bytes, int bits, int len)
{
	unsigned long end = FROM + bytes.len, to = end - len;
	struct code code = fill_up(bytes);
	u8 buf[DISPLACED_INSN_COPY_MAX];
	struct insn insn;

	KUNIT_ASSERT_EQ(test, decode(&insn, &code, bits), 0);
	KUNIT_EXPECT_EQ(test, len, kprobe_relocate_displaced(buf, &insn, FROM, to + 0x80000000));
	KUNIT_EXPECT_EQ(test, S32_MIN, (s32)get_unaligned_le32(buf + len - 4));
	KUNIT_EXPECT_EQ(test, len, kprobe_relocate_displaced(buf, &insn, FROM, to - 0x7fffffff));
	KUNIT_EXPECT_EQ(test, S32_MAX, (s32)get_unaligned_le32(buf + len - 4));

	if (IS_ENABLED(CONFIG_X86_32))
		return;
	expect_error(test, bytes, bits, FROM, to + 0x80000001, -ERANGE);
	expect_error(test, bytes, bits, FROM, to - 0x80000000, -ERANGE);
	expect_error(test, bytes, bits, FROM, to + 0x100000000, -ERANGE);
}

static void test_ranges(struct kunit *test)
{
	for (size_t i = 0; i < ARRAY_SIZE(all_bits); i++) {
		int bits = all_bits[i];

		check_range(test, BYTES(0xeb, 0), bits, 5);
		check_range(test, BYTES(0xe9, 0, 0, 0, 0), bits, 5);
		check_range(test, BYTES(0x2e, 0xe9, 0, 0, 0, 0), bits, 5);
		check_range(test, BYTES(0x74, 0), bits, 6);
		check_range(test, BYTES(0x0f, 0x84, 0, 0, 0, 0), bits, 6);
		check_range(test, BYTES(0xe8, 0, 0, 0, 0), bits, push_size(bits) + 5);
	}
	check_range(test, BYTES(0xff, 0x15, 0, 0, 0, 0), 64, push_size(64) + 6);
	check_range(test, BYTES(0xff, 0x25, 0, 0, 0, 0), 64, 6);
	check_range(test, BYTES(0x48, 0x8d, 0x05, 0, 0, 0, 0), 64, 7);
}

/* The copy of a call pushes 32 bits, which x86-64 extends. */
static void check_return_address(struct kunit *test, struct bytes bytes, int bits, int len)
{
	unsigned long from = (unsigned long)S32_MIN - bytes.len;
	struct code code = fill_up(bytes);
	u8 buf[DISPLACED_INSN_COPY_MAX];
	struct insn insn;

	KUNIT_ASSERT_EQ(test, decode(&insn, &code, bits), 0);
	KUNIT_EXPECT_EQ(test, kprobe_relocate_displaced(buf, &insn, from, from), len);
	KUNIT_EXPECT_EQ(test, (s32)get_unaligned_le32(buf + push_size(bits) - 4), S32_MIN);
	if (IS_ENABLED(CONFIG_X86_32)) {
		KUNIT_EXPECT_EQ(test, kprobe_relocate_displaced(buf, &insn, from - 1, from), len);
		KUNIT_EXPECT_EQ(test, (s32)get_unaligned_le32(buf + push_size(bits) - 4), S32_MAX);
		return;
	}
	expect_error(test, bytes, bits, from - 1, from, -ERANGE);
	expect_error(test, bytes, bits, FAR, FAR + 0x1000, -ERANGE);
}

static void test_return_addresses(struct kunit *test)
{
	for (size_t i = 0; i < ARRAY_SIZE(all_bits); i++) {
		int bits = all_bits[i];

		check_return_address(test, BYTES(0xe8, 0, 0, 0, 0), bits, push_size(bits) + 5);
		check_return_address(test, BYTES(0xff, 0xd0), bits, push_size(bits) + 2);
	}
}

/* The copies of all that a jump displaces. */

/**
 * struct region - Displaced instructions and their copies
 * @text:	The instructions.
 * @code:	Their bytes.
 * @copy_len:	The length of the copies, without the push in front of a call's.
 * @calls:	The last instruction calls.
 * @bits:	The mode of the code, see case_has_bits().
 */
struct region {
	const char *text;
	struct bytes code;
	int copy_len;
	bool calls;
	int bits;
};

static const struct region regions[] = {
	{ "push; mov; nop", BYTES(0x55, 0x48, 0x89, 0xe5, 0x90), 5, .bits = 64 },
	{ "15 bytes", BYTES(0x66, 0x66, 0x66, 0x66, 0x66, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 2,
			    0, 0), 15 },
	{ "je; jne; sti", BYTES(0x74, 0x10, 0x75, 0x10, 0xfb), 13 },
	{ "je near", BYTES(0x0f, 0x84, 0, 0x10, 0, 0), 6 },
	{ "cs je near", BYTES(0x2e, 0x0f, 0x84, 0, 0x10, 0, 0), 6 },
	{ "push; jmp; rubbish", BYTES(0x50, 0xeb, 0x10, 0x06, 0x90), 6 },
	{ "jmp; int3", BYTES(0xeb, 0x10, 0xcc, 0xcc, 0xcc), 5 },
	{ "je; ret; nop; nop", BYTES(0x74, 0x10, 0xc3, 0x90, 0x90), 7 },
	{ "nop; jmp *%rax; int3", BYTES(0x90, 0xff, 0xe0, 0xcc, 0xcc), 3 },
	{ "call", BYTES(0xe8, 0, 0x10, 0, 0), 5, true },
	{ "cs call", BYTES(0x2e, 0xe8, 0, 0x10, 0, 0), 5, true },
	{ "je; pop; call *%rax", BYTES(0x74, 0x10, 0x58, 0xff, 0xd0), 6 + 1 + 2, true },
	{ "push; call *0x10(%rip)", BYTES(0x50, 0xff, 0x15, 0x10, 0, 0, 0), 1 + 6, true },
	{ "je; jne; call *table(,%rax,8) of 15 bytes",
	  BYTES(0x74, 0x10, 0x75, 0x10, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0x2e, 0xff,
		0x14, 0xc5, 0, 0x10, 0, 0), DISPLACED_COPY_MAX - 13, true },
	{ "push; mov; push; push", BYTES(0x55, 0x89, 0xe5, 0x57, 0x56), 5, .bits = 32 },
	{ "inc; je; pusha; leave", BYTES(0x40, 0x74, 0x10, 0x60, 0xc9), 9, .bits = 32 },
	{ "lea -12(%ebp),%esp; pop; ret", BYTES(0x8d, 0x65, 0xf4, 0x5d, 0xc3), 5, .bits = 32 },
	{ "pop; jmp near", BYTES(0x5d, 0xe9, 0, 0x10, 0, 0), 6, .bits = 32 },
	{ "dec; jmp *table(,%eax,4)", BYTES(0x48, 0xff, 0x24, 0x85, 0, 0x10, 0, 0), 8,
	  .bits = 32 },
	{ "dec; mov moffs32,%eax", BYTES(0x48, 0xa1, 0, 0x10, 0, 0xc1), 6, .bits = 32 },
	{ "inc; call *table(,%eax,4)", BYTES(0x40, 0xff, 0x14, 0x85, 0, 0x10, 0, 0), 1 + 7, true,
	  32 },
	{ "je; inc; dec; call *0x1000", BYTES(0x74, 0x10, 0x40, 0x48, 0xff, 0x15, 0, 0x10, 0, 0),
	  6 + 2 + 6, true, 32 },
};

static int region_copies_size(const struct region *region)
{
	return region->copy_len + (region->calls ? push_size(BITS_PER_LONG) : 0);
}

static void check_region(struct kunit *test, const struct region *region)
{
	struct code code = fill_up(region->code);
	int origin, copied = 0, len, copy_len = region_copies_size(region);
	u8 buf[DISPLACED_INSN_COPY_MAX];
	struct insn insn;

	KUNIT_EXPECT_EQ_MSG(test, displaced_size(code.bytes, sizeof(code.bytes), 5),
			    region->code.len, "%s", region->text);
	for (origin = 0; copied < copy_len; origin += insn.length, copied += len) {
		KUNIT_ASSERT_EQ(test, insn_decode(&insn, region->code.bytes + origin,
						  region->code.len - origin, INSN_MODE_KERN), 0);
		len = kprobe_relocate_displaced(buf, &insn, FROM + origin, TO + copied);
		KUNIT_ASSERT_GT_MSG(test, len, 0, "%s", region->text);
	}
	KUNIT_EXPECT_EQ_MSG(test, copied, copy_len, "%s", region->text);
}

static void test_regions(struct kunit *test)
{
	for (size_t i = 0; i < ARRAY_SIZE(regions); i++)
		if (case_has_bits(regions[i].bits, BITS_PER_LONG))
			check_region(test, &regions[i]);
}

/* ----------------------------------------------- where an instruction must stand */

/**
 * struct place_case - An instruction that CPUs may speculate about
 * @name:	What it is.
 * @bytes:	The instruction.
 * @its:	Whether it needs its place with ITS,
 * @lfence:	and with LFENCE retpolines.
 * @bits:	The mode of the code, see case_has_bits().
 */
struct place_case {
	const char *name;
	struct bytes bytes;
	bool its;
	bool lfence;
	int bits;
};

static const struct place_case place_cases[] = {
	{ "ret", BYTES(0xc3), .its = true },
	{ "ret $16", BYTES(0xc2, 0x10, 0x00), .its = true },
	{ "jmp *%rax", BYTES(0xff, 0xe0), .its = true, .lfence = true },
	{ "jmp *8(%rdi)", BYTES(0xff, 0x67, 0x08), .its = true, .lfence = true },
	{ "call *%r11", BYTES(0x41, 0xff, 0xd3), .its = true, .lfence = true, .bits = 64 },
	{ "call *%ebx", BYTES(0xff, 0xd3), .its = true, .lfence = true },
	{ "jmp *table(,%eax,4)", BYTES(0xff, 0x24, 0x85, 0, 0x10, 0, 0), .its = true,
	  .lfence = true, .bits = 32 },
	{ "call *0x1000", BYTES(0xff, 0x15, 0, 0x10, 0, 0), .its = true, .lfence = true,
	  .bits = 32 },
	{ "lfence", BYTES(0x0f, 0xae, 0xe8), .lfence = true },
	{ "mfence", BYTES(0x0f, 0xae, 0xf0) },
	{ "xrstor (%rdi)", BYTES(0x0f, 0xae, 0x2f) },
	{ "incsspq %rax", BYTES(0xf3, 0x48, 0x0f, 0xae, 0xe8), .bits = 64 },
	{ "incsspd %eax", BYTES(0xf3, 0x0f, 0xae, 0xe8) },
	{ "jmp", BYTES(0xeb, 0x10) },
	{ "call", BYTES(0xe8, 0x00, 0x10, 0x00, 0x00) },
	{ "jz", BYTES(0x74, 0x10) },
	{ "inc %rax", BYTES(0x48, 0xff, 0xc0), .bits = 64 },
	{ "inc %eax", BYTES(0xff, 0xc0) },
	{ "push (%rax)", BYTES(0xff, 0x30) },
	{ "mov %rdi,%rax", BYTES(0x48, 0x89, 0xf8), .bits = 64 },
	{ "mov %edi,%eax", BYTES(0x89, 0xf8) },
};

static void check_place(struct kunit *test, const struct place_case *c, int bits)
{
	struct code code = fill_up(c->bytes);
	struct insn insn;

	KUNIT_ASSERT_EQ(test, 0, decode(&insn, &code, bits));
	KUNIT_EXPECT_FALSE_MSG(test, kprobe_displaced_needs_place(&insn, false, false), "%s",
			       c->name);
	KUNIT_EXPECT_EQ_MSG(test, kprobe_displaced_needs_place(&insn, true, false), c->its, "%s",
			    c->name);
	KUNIT_EXPECT_EQ_MSG(test, kprobe_displaced_needs_place(&insn, false, true), c->lfence, "%s",
			    c->name);
	if (bits != BITS_PER_LONG)
		return;
	KUNIT_EXPECT_EQ_MSG(test, c->its,
			    kprobe_displaced_size(code.bytes, sizeof(code.bytes), 2, true, false) ==
			    -EPERM, "%s", c->name);
	KUNIT_EXPECT_EQ_MSG(test, c->lfence,
			    kprobe_displaced_size(code.bytes, sizeof(code.bytes), 2, false, true) ==
			    -EPERM, "%s", c->name);
}

static void test_places(struct kunit *test)
{
	for (size_t i = 0; i < ARRAY_SIZE(place_cases); i++)
		for (size_t j = 0; j < ARRAY_SIZE(all_bits); j++)
			if (case_has_bits(place_cases[i].bits, all_bits[j]))
				check_place(test, &place_cases[i], all_bits[j]);
}

/* What is accepted can be copied, and the copy is as long as is thought. */
static void check_agreement(struct kunit *test, struct bytes bytes)
{
	struct code code = { };
	u8 buf[DISPLACED_INSN_COPY_MAX];
	struct insn insn;
	int size, len;

	/* With a displacement of 0, which is always in range. */
	memcpy(code.bytes, bytes.bytes, bytes.len);
	if (decode(&insn, &code, BITS_PER_LONG))
		return;
	memset(code.bytes + insn.length, 0x90, sizeof(code.bytes) - insn.length);

	size = displaced_size(code.bytes, sizeof(code.bytes), 5);
	if (size == -EILSEQ)
		return;
	KUNIT_ASSERT_GE_MSG(test, size, max_t(int, 5, insn.length), "%4ph", bytes.bytes);
	KUNIT_ASSERT_LE_MSG(test, size, MAX_OPTIMIZED_LENGTH, "%4ph", bytes.bytes);
	len = kprobe_relocate_displaced(buf, &insn, FROM, TO);
	KUNIT_ASSERT_GT_MSG(test, len, 0, "%4ph", bytes.bytes);
	KUNIT_ASSERT_LE_MSG(test, len, sizeof(buf), "%4ph", bytes.bytes);
}

/* By opcode, the two-byte ones from 0x100 on, and prefix, which is none if it is 0. */
static void check_opcode(struct kunit *test, u8 prefix, int op)
{
	struct bytes code = { };

	if (prefix)
		code.bytes[code.len++] = prefix;
	if (op >= 0x100)
		code.bytes[code.len++] = 0x0f;
	code.bytes[code.len++] = op;
	code.len++;
	for (int modrm = 0; modrm < 0x100; modrm++) {
		/* Of memory operands, those with a SIB byte or relative to ip will do. */
		if (modrm < 0xc0 && (modrm & 7) != 4 && (modrm & 7) != 5)
			continue;
		code.bytes[code.len - 1] = modrm;
		check_agreement(test, code);
	}
}

static void test_every_opcode(struct kunit *test)
{
	static const u8 prefixes[] = { 0, 0x48, 0x65, 0x66, 0x67, 0xf0, 0xf2, 0xf3 };

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
		for (int op = 0; op < 0x200; op++)
			check_opcode(test, prefixes[i], op);
		cond_resched_tasks_rcu_qs();
	}
}

static struct kunit_case kprobes_relocate_cases[] = {
	KUNIT_CASE(test_sizes),
	KUNIT_CASE(test_sizes_of_short_jumps),
	KUNIT_CASE(test_end_of_bytes),
	KUNIT_CASE(test_copies),
	KUNIT_CASE(test_conditions),
	KUNIT_CASE(test_no_copies),
	KUNIT_CASE(test_ranges),
	KUNIT_CASE(test_return_addresses),
	KUNIT_CASE(test_regions),
	KUNIT_CASE(test_places),
	KUNIT_CASE_SLOW(test_every_opcode),
	{}
};

static struct kunit_suite kprobes_relocate_suite = {
	.name = "kprobes_x86_relocate",
	.test_cases = kprobes_relocate_cases,
};

kunit_test_suite(kprobes_relocate_suite);

MODULE_DESCRIPTION("KUnit tests of the copies of instructions that x86 kprobes make");
MODULE_LICENSE("GPL");
MODULE_INFO(import_ns, "EXPORTED_FOR_KUNIT_TESTING");
