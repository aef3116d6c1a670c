// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of how functions are searched for what can be jumped to
 */

#include <linux/bitmap.h>
#include <linux/bits.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/string.h>

#include <asm/insn.h>
#include <asm/nops.h>

#include <kunit/test.h>

#include "scan.h"

/* The text: functions begin in its middle. Nothing is read or executed there. */
#define TEXT		((unsigned long)(s32)0x81000000)
#define TEXT_SIZE	256
#define CODE_AT		128
#define MAX_CODE	64

/* The thunk is after the text, 0x1000 bytes from its functions. */
#define THUNK		(TEXT + CODE_AT + 0x1000)

/* The low byte of how far it is from a jump that ends at an offset; then comes a 0x0f. */
#define TO_THUNK(end)	(0x100 - (end))

static bool is_thunk(unsigned long addr)
{
	return addr == THUNK;
}

/*
 * @targets are offsets from the function's start, which is noted always. They
 * end with a 0. If @bits is not 0, only a kernel of so many bits has such code.
 */
struct branch_case {
	const char *text;
	size_t len;
	u8 code[MAX_CODE];
	int targets[4];
	int bits;
};

#define CODE(...)	.len = sizeof((u8[]){ __VA_ARGS__ }), .code = { __VA_ARGS__ }
#define TARGETS(...)	.targets = { __VA_ARGS__ }

static void scan(unsigned long *bits, const u8 *code, size_t len)
{
	struct branch_map map = { .start = TEXT, .size = TEXT_SIZE, .bits = bits };

	bitmap_zero(bits, TEXT_SIZE);
	kprobe_scan_branches(&map, code, len, TEXT + CODE_AT, is_thunk);
}

static void expect_targets(struct kunit *test, const struct branch_case *c)
{
	DECLARE_BITMAP(expected, TEXT_SIZE);
	DECLARE_BITMAP(bits, TEXT_SIZE);
	size_t i;

	if (c->bits && c->bits != BITS_PER_LONG)
		return;
	bitmap_zero(expected, TEXT_SIZE);
	__set_bit(CODE_AT, expected);
	for (i = 0; i < ARRAY_SIZE(c->targets) && c->targets[i]; i++)
		__set_bit(CODE_AT + c->targets[i], expected);

	scan(bits, c->code, c->len);
	KUNIT_EXPECT_TRUE_MSG(test, bitmap_equal(bits, expected, TEXT_SIZE),
			      "%s: noted %*pbl, not %*pbl", c->text,
			      TEXT_SIZE, bits, TEXT_SIZE, expected);
}

/* All of the function is noted, and nothing else but what is in @targets. */
static void expect_opaque(struct kunit *test, const struct branch_case *c)
{
	DECLARE_BITMAP(expected, TEXT_SIZE);
	DECLARE_BITMAP(bits, TEXT_SIZE);
	size_t i;

	if (c->bits && c->bits != BITS_PER_LONG)
		return;
	bitmap_zero(expected, TEXT_SIZE);
	bitmap_set(expected, CODE_AT, c->len);
	for (i = 0; i < ARRAY_SIZE(c->targets) && c->targets[i]; i++)
		__set_bit(CODE_AT + c->targets[i], expected);

	scan(bits, c->code, c->len);
	KUNIT_EXPECT_TRUE_MSG(test, bitmap_equal(bits, expected, TEXT_SIZE),
			      "%s: noted %*pbl, not %*pbl", c->text,
			      TEXT_SIZE, bits, TEXT_SIZE, expected);
}

static void test_branches(struct kunit *test)
{
	static const struct branch_case cases[] = {
		{ "jmp rel8", CODE(0xeb, 0x10), TARGETS(0x12) },
		{ "jmp rel8, back", CODE(0xeb, 0xf0), TARGETS(-0x0e) },
		{ "jmp rel32", CODE(0xe9, 0x10, 0x00, 0x00, 0x00), TARGETS(0x15) },
		{ "jmp rel32, back", CODE(0xe9, 0xf0, 0xff, 0xff, 0xff), TARGETS(-0x0b) },
		{ "je rel8", CODE(0x74, 0x10), TARGETS(0x12) },
		{ "jg rel8", CODE(0x7f, 0x10), TARGETS(0x12) },
		{ "jo rel32", CODE(0x0f, 0x80, 0x10, 0x00, 0x00, 0x00), TARGETS(0x16) },
		{ "jne,pn rel32", CODE(0x2e, 0x0f, 0x85, 0x10, 0x00, 0x00, 0x00), TARGETS(0x17) },
		{ "loopne", CODE(0xe0, 0x10), TARGETS(0x12) },
		{ "loope", CODE(0xe1, 0x10), TARGETS(0x12) },
		{ "loop", CODE(0xe2, 0x10), TARGETS(0x12) },
		{ "jrcxz", CODE(0xe3, 0x10), TARGETS(0x12) },
		{ "jecxz", CODE(0x67, 0xe3, 0x10), TARGETS(0x13) },
		{ "xbegin", CODE(0xc7, 0xf8, 0x10, 0x00, 0x00, 0x00), TARGETS(0x16) },
		{ "in the middle", CODE(0x90, 0x74, 0x02, 0x31, 0xc0, 0xc3), TARGETS(0x05) },
		{ "two", CODE(0x74, 0x10, 0xeb, 0x10), TARGETS(0x12, 0x14) },
		{ "after a ret", CODE(0xc3, 0x74, 0x10), TARGETS(0x13) },
		{ "out of the text", CODE(0xe9, 0x00, 0x00, 0x10, 0x00), TARGETS(0) },
		{ "the last byte", CODE(0xeb, 0x7d), TARGETS(0x7f) },
		{ "one too far", CODE(0xeb, 0x7e), TARGETS(0) },
		{ "the first byte", CODE(0xe9, 0x7b, 0xff, 0xff, 0xff), TARGETS(-0x80) },
		{ "one too far, back", CODE(0xe9, 0x7a, 0xff, 0xff, 0xff), TARGETS(0) },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++)
		expect_targets(test, &cases[i]);
}

/* A call is a branch, and where it returns to is another one's target. */
static void test_calls(struct kunit *test)
{
	static const struct branch_case cases[] = {
		{ "call rel32", CODE(0xe8, 0x10, 0x00, 0x00, 0x00), TARGETS(0x15, 0x05) },
		{ "call thunk", CODE(0xe8, TO_THUNK(5), 0x0f, 0x00, 0x00), TARGETS(0x05) },
		{ "call *%rax", CODE(0xff, 0xd0), TARGETS(0x02) },
		{ "call *%r11", CODE(0x41, 0xff, 0xd3, 0xc3), TARGETS(0x03), .bits = 64 },
		{ "call *8(%rax)", CODE(0xff, 0x50, 0x08, 0xc3), TARGETS(0x03) },
		{ "call *(%rip)", CODE(0xff, 0x15, 0x00, 0x01, 0x00, 0x00),
		  TARGETS(0x06), .bits = 64 },
		{ "call thunk, with a frame", CODE(0x53, 0xe8, TO_THUNK(6), 0x0f, 0x00, 0x00,
						  0x5b, 0xc3), TARGETS(0x06) },
		{ "call *disp32", CODE(0xff, 0x15, 0x90, 0x00, 0x00, 0x81, 0xc3),
		  TARGETS(0x06, 0x10), .bits = 32 },
		{ "call *disp32(,%eax,4)", CODE(0xff, 0x14, 0x85, 0x00, 0x10, 0x00, 0x00),
		  TARGETS(0x07), .bits = 32 },
		{ "call *%ecx after inc", CODE(0x41, 0xff, 0xd1, 0xc3), TARGETS(0x03), .bits = 32 },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++)
		expect_targets(test, &cases[i]);
}

static void test_endbr(struct kunit *test)
{
	static const struct branch_case cases[] = {
		{ "endbr64", CODE(0x90, 0xf3, 0x0f, 0x1e, 0xfa, 0xc3), TARGETS(0x01) },
		{ "twice", CODE(0xf3, 0x0f, 0x1e, 0xfa, 0x90, 0xf3, 0x0f, 0x1e, 0xfa),
		  TARGETS(0x05) },
		{ "rdsspq", CODE(0x90, 0xf3, 0x48, 0x0f, 0x1e, 0xc8, 0xc3),
		  TARGETS(0), .bits = 64 },
		{ "sealed", CODE(0x90, 0x0f, 0x1f, 0x40, 0xd6, 0xc3), TARGETS(0) },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++)
		expect_targets(test, &cases[i]);
}

/* Addresses of the text: 0x81000080, sign-extended, is that of the function. */
static void test_operands(struct kunit *test)
{
	static const struct branch_case cases[] = {
		{ "lea 0x10(%rip),%rax", CODE(0x48, 0x8d, 0x05, 0x10, 0x00, 0x00, 0x00),
		  TARGETS(0x17), .bits = 64 },
		{ "lea -0x10(%rip),%rax", CODE(0x48, 0x8d, 0x05, 0xf0, 0xff, 0xff, 0xff),
		  TARGETS(-0x09), .bits = 64 },
		{ "mov 0x10(%rip),%rax", CODE(0x48, 0x8b, 0x05, 0x10, 0x00, 0x00, 0x00),
		  TARGETS(0x17), .bits = 64 },
		{ "movl $1,0x10(%rip)", CODE(0xc7, 0x05, 0x10, 0x00, 0x00, 0x00,
					     0x01, 0x00, 0x00, 0x00), TARGETS(0x1a), .bits = 64 },
		{ "mov $imm32,%rdi", CODE(0x48, 0xc7, 0xc7, 0x90, 0x00, 0x00, 0x81),
		  TARGETS(0x10), .bits = 64 },
		{ "movq $imm32,8(%rsp)", CODE(0x48, 0xc7, 0x44, 0x24, 0x08,
					      0x90, 0x00, 0x00, 0x81), TARGETS(0x10), .bits = 64 },
		{ "movq $imm32,0x10(%rip)", CODE(0x48, 0xc7, 0x05, 0x10, 0x00, 0x00, 0x00,
						 0x95, 0x00, 0x00, 0x81),
		  TARGETS(0x15, 0x1b), .bits = 64 },
		{ "push $imm32", CODE(0x68, 0x90, 0x00, 0x00, 0x81), TARGETS(0x10) },
		{ "cmp $imm32,%rax", CODE(0x48, 0x3d, 0x90, 0x00, 0x00, 0x81),
		  TARGETS(0x10), .bits = 64 },
		{ "movabs $imm64,%rax", CODE(0x48, 0xb8, 0x90, 0x00, 0x00, 0x81,
					     0xff, 0xff, 0xff, 0xff), TARGETS(0x10), .bits = 64 },
		{ "movabs $imm64,%rax, elsewhere", CODE(0x48, 0xb8, 0x90, 0x00, 0x00, 0x81,
							0xfe, 0xff, 0xff, 0xff),
		  TARGETS(0), .bits = 64 },
		{ "movabs moffs64,%rax", CODE(0x48, 0xa1, 0x90, 0x00, 0x00, 0x81,
					      0xff, 0xff, 0xff, 0xff), TARGETS(0x10), .bits = 64 },
		{ "mov disp32(,%rax,8),%rax", CODE(0x48, 0x8b, 0x04, 0xc5,
						   0x90, 0x00, 0x00, 0x81),
		  TARGETS(0x10), .bits = 64 },
		{ "mov disp32(%rdi),%rax", CODE(0x48, 0x8b, 0x87, 0x90, 0x00, 0x00, 0x81),
		  TARGETS(0x10), .bits = 64 },
		{ "mov $0x10,%eax", CODE(0xb8, 0x10, 0x00, 0x00, 0x00), TARGETS(0) },
		{ "mov $imm32,%edi", CODE(0xbf, 0x90, 0x00, 0x00, 0x81), TARGETS(0x10) },
		{ "mov $imm32,%edi, elsewhere", CODE(0xbf, 0x90, 0x00, 0x00, 0x82), TARGETS(0) },
		{ "movl $imm32,8(%esp)", CODE(0xc7, 0x44, 0x24, 0x08, 0x90, 0x00, 0x00, 0x81),
		  TARGETS(0x10) },
		{ "cmp $imm32,%eax", CODE(0x3d, 0x90, 0x00, 0x00, 0x81), TARGETS(0x10) },
		{ "mov disp32(%edi),%eax", CODE(0x8b, 0x87, 0x90, 0x00, 0x00, 0x81),
		  TARGETS(0x10) },
		{ "mov disp32(,%eax,4),%eax", CODE(0x8b, 0x04, 0x85, 0x90, 0x00, 0x00, 0x81),
		  TARGETS(0x10) },
		{ "lea disp32,%eax", CODE(0x8d, 0x05, 0x90, 0x00, 0x00, 0x81), TARGETS(0x10),
		  .bits = 32 },
		{ "lea disp32,%eax, elsewhere", CODE(0x8d, 0x05, 0x10, 0x00, 0x00, 0x00),
		  TARGETS(0), .bits = 32 },
		{ "movl $imm32,disp32", CODE(0xc7, 0x05, 0x90, 0x00, 0x00, 0x81,
					     0x95, 0x00, 0x00, 0x81), TARGETS(0x10, 0x15),
		  .bits = 32 },
		{ "mov moffs32,%al", CODE(0xa0, 0x90, 0x00, 0x00, 0x81), TARGETS(0x10),
		  .bits = 32 },
		{ "mov %eax,%fs:moffs32", CODE(0x64, 0xa3, 0x90, 0x00, 0x00, 0x81), TARGETS(0x10),
		  .bits = 32 },
		{ "mov moffs16,%eax", CODE(0x67, 0xa1, 0x90, 0x00, 0xc3), TARGETS(0),
		  .bits = 32 },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++)
		expect_targets(test, &cases[i]);
}

/* Indirect jumps which leave the function: the caller's address is on top. */
static void test_tail_calls(struct kunit *test)
{
	static const struct branch_case cases[] = {
		{ "no frame", CODE(0xff, 0xe0) },
		{ "no frame, memory", CODE(0xff, 0x60, 0x08) },
		{ "no frame, rip", CODE(0xff, 0x25, 0x00, 0x01, 0x00, 0x00), .bits = 64 },
		{ "no frame, thunk", CODE(0xe9, TO_THUNK(5), 0x0f, 0x00, 0x00) },
		{ "no frame, cs thunk", CODE(0x2e, 0xe9, TO_THUNK(6), 0x0f, 0x00, 0x00) },
		{ "no frame, jne thunk", CODE(0x0f, 0x85, TO_THUNK(6), 0x0f, 0x00, 0x00, 0xc3) },
		{ "push, pop", CODE(0x53, 0x41, 0x54, 0x41, 0x5c, 0x5b, 0xff, 0xe0), .bits = 64 },
		{ "sub, add", CODE(0x48, 0x83, 0xec, 0x18, 0x48, 0x83, 0xc4, 0x18, 0xff, 0xe0),
		  .bits = 64 },
		{ "sub, add, long", CODE(0x48, 0x81, 0xec, 0x00, 0x02, 0x00, 0x00,
					 0x48, 0x81, 0xc4, 0x00, 0x02, 0x00, 0x00,
					 0xff, 0xe0), .bits = 64 },
		{ "pushf, pop", CODE(0x9c, 0x58, 0xff, 0xe0) },
		{ "leave", CODE(0x55, 0x48, 0x89, 0xe5, 0x50, 0xc9, 0xff, 0xe0), .bits = 64 },
		{ "pop after a ret", CODE(0x53, 0xc3, 0x5b, 0xff, 0xe0) },
		{ "pop after a jmp", CODE(0x53, 0xeb, 0x10, 0x5b,
					  0xe9, TO_THUNK(9), 0x0f, 0x00, 0x00), TARGETS(0x13) },
		{ "add after a ud2", CODE(0x53, 0x0f, 0x0b, 0x48, 0x83, 0xc4, 0x08, 0xff, 0xe0),
		  .bits = 64 },
		{ "je to it, no frame", CODE(0x74, 0x01, 0xc3, 0xff, 0xe0), TARGETS(0x03) },
		{ "je to it, frame released", CODE(0x53, 0x5b, 0x74, 0x01, 0xc3, 0xff, 0xe0),
		  TARGETS(0x05) },
		{ "je to it, frame elsewhere", CODE(0x74, 0x03, 0x53, 0x5b, 0xc3, 0xff, 0xe0),
		  TARGETS(0x05) },
		/* What jumps to a thunk have been patched to, and after them another one. */
		{ "je after a patched thunk's jump", CODE(0x74, 0x05, 0xff, 0xe0, 0xcc, BYTES_NOP2,
							   0xff, 0xe0), TARGETS(0x07) },
		{ "the same, r11", CODE(0x74, 0x05, 0x41, 0xff, 0xe3, 0xcc, 0x90, 0xff, 0xe0),
		  TARGETS(0x07) },
		{ "patched jne thunk", CODE(0x74, 0x04, 0xff, 0xe0, 0xcc, 0x90, 0xff, 0xe0),
		  TARGETS(0x06) },
		{ "push, pop of segments", CODE(0x0f, 0xa0, 0x0f, 0xa8, 0x0f, 0xa9, 0x0f, 0xa1,
						0xff, 0xe0), .bits = 64 },
		{ "push, pop of segments", CODE(0x0f, 0xa0, 0x0f, 0xa8, 0x0f, 0xa9,
						0x83, 0xc4, 0x04, 0xff, 0xe0), .bits = 32 },
		{ "store to the stack, r12 written", CODE(0x48, 0x89, 0x04, 0x24, 0x49, 0x89, 0xc4,
							  0x4c, 0x8d, 0x64, 0x24, 0x08,
							  0x41, 0xff, 0xe4), .bits = 64 },
		{ "stack pointer read", CODE(0x48, 0x8d, 0x44, 0x24, 0x08, 0x48, 0x89, 0xe1,
					     0xff, 0xe0), .bits = 64 },
		{ "no frame, disp32", CODE(0xff, 0x25, 0x00, 0x10, 0x00, 0x00), .bits = 32 },
		{ "inc, dec", CODE(0x40, 0x48, 0xff, 0xe0), .bits = 32 },
		{ "sub, add", CODE(0x83, 0xec, 0x18, 0x83, 0xc4, 0x18, 0xff, 0xe0), .bits = 32 },
		{ "sub, add, long", CODE(0x81, 0xec, 0x00, 0x02, 0x00, 0x00,
					 0x81, 0xc4, 0x00, 0x02, 0x00, 0x00, 0xff, 0xe0),
		  .bits = 32 },
		{ "push, add", CODE(0x53, 0x83, 0xc4, 0x04, 0xff, 0xe0), .bits = 32 },
		{ "frame pointer, pop", CODE(0x55, 0x89, 0xe5, 0x5d, 0xff, 0xe0), .bits = 32 },
		{ "frame pointer, pop, thunk", CODE(0x55, 0x89, 0xe5, 0x53, 0x5b, 0x5d,
						   0xe9, TO_THUNK(11), 0x0f, 0x00, 0x00),
		  .bits = 32 },
		{ "frame pointer, lea", CODE(0x55, 0x89, 0xe5, 0x57, 0x56, 0x53, 0x83, 0xec, 0x0c,
					     0x8d, 0x65, 0xf4, 0x5b, 0x5e, 0x5f, 0x5d,
					     0xff, 0xe0), .bits = 32 },
		{ "frame pointer, lea, thunk", CODE(0x55, 0x89, 0xe5, 0x53, 0x8d, 0x65, 0xfc,
						   0x5b, 0x5d,
						   0xe9, TO_THUNK(14), 0x0f, 0x00, 0x00),
		  .bits = 32 },
		{ "frame pointer, mov", CODE(0x55, 0x89, 0xe5, 0x50, 0x89, 0xec, 0x5d, 0xff, 0xe0),
		  .bits = 32 },
		{ "leave", CODE(0x55, 0x89, 0xe5, 0x50, 0xc9, 0xff, 0xe0), .bits = 32 },
		{ "leave, thunk", CODE(0x55, 0x89, 0xe5, 0x50, 0xc9,
				       0xe9, TO_THUNK(10), 0x0f, 0x00, 0x00), .bits = 32 },
		{ "leave, jne thunk", CODE(0x55, 0x89, 0xe5, 0x50, 0xc9,
					   0x0f, 0x85, TO_THUNK(11), 0x0f, 0x00, 0x00, 0xc3),
		  .bits = 32 },
		{ "add after a ud2", CODE(0x53, 0x0f, 0x0b, 0x83, 0xc4, 0x04, 0xff, 0xe0),
		  .bits = 32 },
		/* No tail call, but the addresses in the table are found in data. */
		{ "jmp *disp32(,%rax,8)", CODE(0x53, 0xff, 0x24, 0xc5, 0x00, 0x00, 0x00, 0x01),
		  .bits = 64 },
		{ "jmp *disp32(,%eax,4)", CODE(0x53, 0xff, 0x24, 0x85, 0x00, 0x00, 0x00, 0x01),
		  .bits = 32 },
		{ "frame pointer, jmp *disp32(,%eax,4)", CODE(0x55, 0x89, 0xe5,
							     0xff, 0x24, 0x85, 0x90, 0x10, 0x00,
							     0x81), .bits = 32 },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++)
		expect_targets(test, &cases[i]);
}

/* Those that may go to anywhere in the function. */
static void test_jump_tables(struct kunit *test)
{
	static const struct branch_case cases[] = {
		{ "with a frame", CODE(0x53, 0xff, 0xe0, 0x5b, 0xc3) },
		{ "with a frame, thunk", CODE(0x53, 0xe9, TO_THUNK(6), 0x0f, 0x00, 0x00,
					     0x5b, 0xc3) },
		{ "with a frame, jne thunk", CODE(0x53, 0x0f, 0x85, TO_THUNK(7), 0x0f, 0x00, 0x00,
						 0x5b, 0xc3) },
		{ "sub", CODE(0x48, 0x83, 0xec, 0x18, 0xff, 0xe0, 0x90), .bits = 64 },
		{ "half released", CODE(0x53, 0x55, 0x5d, 0xff, 0xe0, 0x5b, 0xc3) },
		{ "and", CODE(0x48, 0x83, 0xe4, 0xf0, 0xff, 0xe0, 0x90), .bits = 64 },
		{ "of unknown size", CODE(0x48, 0x29, 0xc4, 0xff, 0xe0, 0x90), .bits = 64 },
		{ "of unknown size, other form", CODE(0x48, 0x2b, 0xe0, 0xff, 0xe0, 0x90),
		  .bits = 64 },
		{ "after a ret", CODE(0xc3, 0xff, 0xe0, 0x90) },
		{ "after a ret, call's arguments", CODE(0xc3, 0x50, 0x58, 0xff, 0xe0, 0x90) },
		{ "je to it, with a frame", CODE(0x53, 0x74, 0x02, 0x5b, 0xc3, 0xff, 0xe0, 0x90) },
		{ "jmp *disp32(,%rax,4)", CODE(0xff, 0x24, 0x85, 0x00, 0x00, 0x80, 0x81, 0x90),
		  .bits = 64 },
		{ "jmp *disp8(%rbp,%rax,8)", CODE(0xff, 0x64, 0xc5, 0x10, 0x90) },
		{ "jmp *(%rax,%r12,8)", CODE(0x42, 0xff, 0x24, 0xe0, 0x90), .bits = 64 },
		{ "notrack jmp *%rax", CODE(0x3e, 0xff, 0xe0, 0x90) },
		{ "a target of its own", CODE(0x53, 0x74, 0x10, 0xff, 0xe0), TARGETS(0x13) },
		{ "far", CODE(0x53, 0xff, 0x2f, 0x90) },
		{ "enter", CODE(0xc8, 0x08, 0x00, 0x00, 0xff, 0xe0, 0x90) },
		{ "sub", CODE(0x83, 0xec, 0x18, 0xff, 0xe0, 0x90), .bits = 32 },
		{ "push, add of less", CODE(0x53, 0x53, 0x83, 0xc4, 0x04, 0xff, 0xe0, 0x90),
		  .bits = 32 },
		{ "and", CODE(0x83, 0xe4, 0xf0, 0xff, 0xe0, 0x90), .bits = 32 },
		{ "of unknown size", CODE(0x29, 0xc4, 0xff, 0xe0, 0x90), .bits = 32 },
		{ "pusha, popa", CODE(0x60, 0x61, 0xff, 0xe0, 0x90), .bits = 32 },
		{ "push, pop %ds", CODE(0x1e, 0x1f, 0xff, 0xe0, 0x90), .bits = 32 },
		{ "frame pointer", CODE(0x55, 0x89, 0xe5, 0xff, 0xe0, 0x90), .bits = 32 },
		{ "frame pointer, thunk", CODE(0x55, 0x89, 0xe5,
					       0xe9, TO_THUNK(8), 0x0f, 0x00, 0x00, 0x90),
		  .bits = 32 },
		{ "frame pointer, lea", CODE(0x55, 0x89, 0xe5, 0x53, 0x8d, 0x65, 0xfc,
					     0xff, 0xe0, 0x90), .bits = 32 },
		{ "jmp *disp32(,%eax,8)", CODE(0xff, 0x24, 0xc5, 0x00, 0x00, 0x80, 0x81, 0x90),
		  .bits = 32 },
		{ "jmp *(%eax,%ecx,4)", CODE(0xff, 0x24, 0x88, 0x90), .bits = 32 },
		{ "notrack jmp *disp32", CODE(0x3e, 0xff, 0x25, 0x00, 0x10, 0x00, 0x00, 0x90),
		  .bits = 32 },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++)
		expect_opaque(test, &cases[i]);
}

/* With another DS, ES or FS, a detour could not call handlers on i386. */
static void test_segment_loads(struct kunit *test)
{
	static const struct branch_case loads[] = {
		{ "mov %ax,%es", CODE(0x90, 0x8e, 0xc0, 0xc3), .bits = 32 },
		{ "mov %ax,%ds", CODE(0x90, 0x8e, 0xd8, 0xc3), .bits = 32 },
		{ "mov %ax,%fs", CODE(0x90, 0x8e, 0xe0, 0xc3), .bits = 32 },
		{ "mov (%eax),%ds", CODE(0x90, 0x8e, 0x18, 0xc3), .bits = 32 },
		{ "pop %es", CODE(0x90, 0x07, 0xc3), .bits = 32 },
		{ "pop %ds", CODE(0x90, 0x1f, 0xc3), .bits = 32 },
		{ "pop %fs", CODE(0x90, 0x0f, 0xa1, 0xc3), .bits = 32 },
		{ "les (%eax),%eax", CODE(0x90, 0xc4, 0x00, 0xc3), .bits = 32 },
		{ "lds (%eax),%eax", CODE(0x90, 0xc5, 0x00, 0xc3), .bits = 32 },
		{ "lfs (%eax),%eax", CODE(0x90, 0x0f, 0xb4, 0x00, 0xc3), .bits = 32 },
	};
	static const struct branch_case others[] = {
		{ "mov %ds,%eax", CODE(0x8c, 0xd8, 0xc3) },
		{ "mov %ax,%gs", CODE(0x8e, 0xe8, 0xc3) },
		{ "push %ds", CODE(0x1e, 0x58, 0xc3), .bits = 32 },
		{ "pop %gs", CODE(0x0f, 0xa8, 0x0f, 0xa9, 0xc3) },
		{ "vmovaps %xmm1,%xmm0", CODE(0xc5, 0xf8, 0x28, 0xc1, 0xc3) },
		{ "mov %ax,%ds", CODE(0x8e, 0xd8, 0xc3), .bits = 64 },
		{ "pop %fs", CODE(0x0f, 0xa1, 0xc3), .bits = 64 },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(loads); i++)
		expect_opaque(test, &loads[i]);
	for (i = 0; i < ARRAY_SIZE(others); i++)
		expect_targets(test, &others[i]);
}

/* The last jumps are remembered, and only those. */
static void test_many_jumps(struct kunit *test)
{
	DECLARE_BITMAP(bits, TEXT_SIZE);
	u8 code[MAX_CODE];
	int n, pos;

	for (n = 1; n < 20; n++) {
		/* je to the end; others to elsewhere; ret; jmp *%rax */
		pos = 0;
		code[pos++] = 0x74;
		code[pos++] = (n - 1) * 2 + 1;
		while (pos < n * 2) {
			code[pos++] = 0x75;
			code[pos++] = 0x80;
		}
		code[pos++] = 0xc3;
		code[pos++] = 0xff;
		code[pos++] = 0xe0;

		scan(bits, code, pos);
		KUNIT_EXPECT_TRUE(test, test_bit(CODE_AT + pos - 2, bits));
		KUNIT_EXPECT_EQ_MSG(test, test_bit(CODE_AT + pos - 1, bits), n > 16,
				    "%d jumps", n);
	}
}

static void test_no_code(struct kunit *test)
{
	static const struct branch_case opaque[] = {
		/* ANDN without the VEX prefix it has to have; clc, if it is not decoded */
		{ "in the middle", CODE(0x90, 0x0f, 0x38, 0xf2, 0xf8, 0x90, 0xc3) },
		{ "at the start", CODE(0x0f, 0x38, 0xf2, 0xf8, 0x90) },
		{ "at the end", CODE(0x90, 0xc3, 0x0f, 0x38, 0xf2, 0xf8) },
		{ "cut off", CODE(0x90, 0x90, 0xe9, 0x00, 0x00) },
		{ "branch in front", CODE(0xeb, 0x10, 0x0f, 0x38, 0xf2, 0xf8), TARGETS(0x12) },
		{ "branch after it", CODE(0x0f, 0x38, 0xf2, 0xf8, 0xeb, 0x10), TARGETS(0x16) },
		{ "hidden by a breakpoint", CODE(0x90, 0xcc, 0xc0, 0xc3) },
		{ "nothing but breakpoint", CODE(0xcc, 0x90) },
		{ "hidden, after a nop after a ret", CODE(0xc3, 0x90, 0xcc, BYTES_NOP2) },
		{ "hidden, after a nop after padding", CODE(0xc3, 0xcc, 0x90, 0xcc, 0x90) },
		{ "hidden, after a nop after a jump", CODE(0xff, 0xe0, 0x90, 0xcc, 0x90) },
		{ "static call's trampoline", CODE(0xe9, 0x10, 0x00, 0x00, 0x00,
						   0x0f, 0xb9, 0xcc), TARGETS(0x15) },
		{ "the same without call", CODE(0xc3, 0xcc, 0x90, 0x90, 0x90, 0x0f, 0xb9, 0xcc) },
	};
	static const struct branch_case clear[] = {
		{ "empty", .len = 0 },
		{ "padding", CODE(0xc3, 0xcc, 0xcc, 0xcc) },
		{ "padding after a call", CODE(0xff, 0xd0, 0xcc, 0xcc), TARGETS(0x02) },
		{ "nothing else", CODE(0xcc, 0xcc, 0xcc) },
		{ "between", CODE(0xc3, 0xcc, 0xcc, 0x31, 0xc0, 0xc3) },
		{ "after an indirect jump", CODE(0xff, 0xe0, 0xcc, 0xcc, 0xcc, 0xc3) },
		{ "after a patched thunk's jump", CODE(0xff, 0xe0, 0xcc, BYTES_NOP2, 0xcc, 0xc3) },
		{ "the same, r11", CODE(0x41, 0xff, 0xe3, 0xcc, 0x90, 0xcc, 0xc3) },
		{ "and nothing else", CODE(0xff, 0xe0, 0xcc, BYTES_NOP2) },
		{ "ud1", CODE(0x90, 0x67, 0x0f, 0xb9, 0x40, 0x12) },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(opaque); i++)
		expect_opaque(test, &opaque[i]);
	for (i = 0; i < ARRAY_SIZE(clear); i++)
		expect_targets(test, &clear[i]);
}

/* A check of an indirect call's target; what looks like code in it is data. */
static void test_cfi_check(struct kunit *test)
{
	static const struct branch_case off = {
		"cfi=off", CODE(0x90, 0xeb, 0x0c, 0x06, 0x06, 0x06, 0x06, 0x06, 0x03, 0x43, 0xf1,
				0x74, 0x02, 0x0f, 0x0b, 0xff, 0xd0, 0xc3),
		TARGETS(0x11)
	};
	DECLARE_BITMAP(bits, TEXT_SIZE);
	int i;

	if (!IS_ENABLED(CONFIG_CFI))
		kunit_skip(test, "needs CONFIG_CFI");

	scan(bits, off.code, off.len);
	for (i = 1; i < off.len; i++)
		KUNIT_EXPECT_EQ_MSG(test, test_bit(CODE_AT + i, bits), i != 16, "byte %d", i);
}

/* Text that is not all of it: what is beyond the map is left alone. */
static void test_map_ends(struct kunit *test)
{
	static const u8 code[] = { 0x53, 0xff, 0xe0, 0xeb, 0x10, 0x90, 0x90, 0x90 };
	DECLARE_BITMAP(bits, TEXT_SIZE);
	struct branch_map map = { .start = TEXT, .size = CODE_AT + 4, .bits = bits };

	bitmap_zero(bits, TEXT_SIZE);
	kprobe_scan_branches(&map, code, sizeof(code), TEXT + CODE_AT, is_thunk);
	KUNIT_EXPECT_EQ(test, find_first_bit(bits, TEXT_SIZE), CODE_AT);
	KUNIT_EXPECT_EQ(test, find_last_bit(bits, TEXT_SIZE), CODE_AT + 3);
	KUNIT_EXPECT_EQ(test, bitmap_weight(bits, TEXT_SIZE), 4);

	bitmap_zero(bits, TEXT_SIZE);
	kprobe_scan_branches(&map, code, sizeof(code), TEXT - CODE_AT, is_thunk);
	KUNIT_EXPECT_TRUE(test, bitmap_empty(bits, TEXT_SIZE));
}

/**
 * struct padding_case - Instructions, some of which are padding
 * @text:	The instructions.
 * @len:	How many bytes they have.
 * @code:	Their bytes.
 * @padding:	A bit for each byte that is padding.
 */
struct padding_case {
	const char *text;
	size_t len;
	u8 code[16];
	u16 padding;
};

static void test_padding(struct kunit *test)
{
	static const struct padding_case cases[] = {
		{ "ret; int3", CODE(0xc3, 0xcc, 0xcc), 0b110 },
		{ "ret $8; nop", CODE(0xc2, 0x08, 0x00, 0x90), 0b1000 },
		{ "jmp rel8; nopl", CODE(0xeb, 0x10, 0x0f, 0x1f, 0x00), 0b11100 },
		{ "jmp rel32; nop", CODE(0xe9, 0x00, 0x01, 0x00, 0x00, 0x66, 0x90), 0b1100000 },
		{ "jmp *%eax; int3; nop", CODE(0xff, 0xe0, 0xcc, 0x90), 0b1100 },
		{ "int3; nop; nopl; int3 after ret",
		  CODE(0xc3, 0xcc, 0x90, 0x0f, 0x1f, 0x00, 0xcc), 0b1111110 },
		{ "nopw %cs:0(%eax,%eax) after ret",
		  CODE(0xc3, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x00, 0x00, 0x00),
		  0b11111111110 },
		{ "ret; push; int3", CODE(0xc3, 0x50, 0xcc), 0 },
		{ "ret; nop; pop; nop; ret; nop",
		  CODE(0xc3, 0x90, 0x58, 0x90, 0xc3, 0x90), 0b100010 },
		{ "nop; int3", CODE(0x90, 0xcc), 0 },
		{ "ud2; int3", CODE(0x0f, 0x0b, 0xcc), 0 },
		{ "ret; ud2; nop", CODE(0xc3, 0x0f, 0x0b, 0x90), 0 },
		{ "je; nop", CODE(0x74, 0x10, 0x90), 0 },
		{ "call; nop", CODE(0xe8, 0x10, 0x00, 0x00, 0x00, 0x90), 0 },
		{ "call *%eax; int3", CODE(0xff, 0xd0, 0xcc), 0 },
		{ "ret; endbr64", CODE(0xc3, 0xf3, 0x0f, 0x1e, 0xfa), 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct padding_case *c = &cases[i];
		bool after_jump = false;
		unsigned int found = 0;
		struct insn insn;

		for (size_t pos = 0; pos < c->len; pos += insn.length) {
			KUNIT_ASSERT_EQ_MSG(test, insn_decode(&insn, c->code + pos, c->len - pos,
							      INSN_MODE_KERN), 0, "%s", c->text);
			if (kprobe_insn_is_padding(&insn, &after_jump))
				found |= GENMASK(pos + insn.length - 1, pos);
		}
		KUNIT_EXPECT_EQ_MSG(test, found, c->padding, "%s", c->text);
	}
}

/* A NOP to which a branch leads is none, and the one after it neither. */
static void test_padding_after_target(struct kunit *test)
{
	static const u8 nop[] = { 0x90 };
	bool after_jump = true;
	struct insn insn;

	KUNIT_ASSERT_EQ(test, insn_decode(&insn, nop, sizeof(nop), INSN_MODE_KERN), 0);
	KUNIT_EXPECT_TRUE(test, kprobe_insn_is_padding(&insn, &after_jump));
	KUNIT_EXPECT_TRUE(test, after_jump);
	after_jump = false;
	KUNIT_EXPECT_FALSE(test, kprobe_insn_is_padding(&insn, &after_jump));
	KUNIT_EXPECT_FALSE(test, after_jump);
}

static struct kunit_case kprobes_branches_cases[] = {
	KUNIT_CASE(test_branches),
	KUNIT_CASE(test_calls),
	KUNIT_CASE(test_endbr),
	KUNIT_CASE(test_operands),
	KUNIT_CASE(test_tail_calls),
	KUNIT_CASE(test_jump_tables),
	KUNIT_CASE(test_segment_loads),
	KUNIT_CASE(test_many_jumps),
	KUNIT_CASE(test_no_code),
	KUNIT_CASE(test_cfi_check),
	KUNIT_CASE(test_map_ends),
	KUNIT_CASE(test_padding),
	KUNIT_CASE(test_padding_after_target),
	{}
};

static struct kunit_suite kprobes_branches_suite = {
	.name = "kprobes_x86_branches",
	.test_cases = kprobes_branches_cases,
};

kunit_test_suite(kprobes_branches_suite);

MODULE_DESCRIPTION("KUnit tests of what x86 kprobes know of branches");
MODULE_LICENSE("GPL");
MODULE_INFO(import_ns, "EXPORTED_FOR_KUNIT_TESTING");
