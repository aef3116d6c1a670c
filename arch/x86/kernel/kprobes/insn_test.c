// SPDX-License-Identifier: GPL-2.0
/*
 * KUnit tests of what the back end knows about instructions
 *
 * What can be executed here is: conditions, counts, flags and addresses are
 * compared with what the CPU makes of the same instruction.
 */

#include <linux/bits.h>
#include <linux/cleanup.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/ptrace.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/stddef.h>
#include <linux/string.h>
#include <linux/unaligned.h>
#include <linux/vmalloc.h>

#include <asm/text-patching.h>
#include <asm/vsyscall.h>

#include <kunit/test.h>

#include "insn.h"

#define FLAGS		(X86_EFLAGS_FIXED | X86_EFLAGS_IF)

/* The longest instruction there can be */
#define MAX_CODE	15

/* Somewhere in the kernel's half; nothing is read or executed there. */
#define CODE		((unsigned long)(s32)0xc1000000)

/* The size of a register that is pushed. */
#define WORD		sizeof(long)

/* The analysis is the same on i386 and x86-64: both test it for code of both modes. */
static const enum insn_mode modes[] = { INSN_MODE_32, INSN_MODE_64 };

static int mode_bits(enum insn_mode mode)
{
	return mode == INSN_MODE_64 ? 64 : 32;
}

static int decode(struct insn *insn, const u8 *code, enum insn_mode mode)
{
	return insn_decode(insn, code, MAX_CODE, mode);
}

/* How an instruction runs, and how with a post handler */
struct insn_runs {
	enum insn_run run;
	enum insn_run run_post;
};

static struct insn_runs analyse(const u8 *code, int len, enum insn_mode mode)
{
	struct insn_runs runs = { INSN_RUN_NEVER, INSN_RUN_NEVER };
	struct insn insn;

	if (insn_decode(&insn, code, len, mode))
		return runs;
	runs.run = kprobe_analyse_insn(&insn);
	runs.run_post = kprobe_insn_class(&insn) == INSN_SYSTEM ? INSN_RUN_STEP : runs.run;
	return runs;
}

/* One instruction a row, or STI and what follows it. */
struct insn_case {
	const char *text;
	u8 code[MAX_CODE];
};

#define INSN(text, ...)		((struct insn_case){ text, { __VA_ARGS__ } })

static const struct insn_case boosted[] = {
	{ "add %al,(%rax)", { 0x00, 0x00 } },
	{ "or %ebx,%ecx", { 0x09, 0xd9 } },
	{ "adc 8(%rsp),%rax", { 0x48, 0x13, 0x44, 0x24, 0x08 } },
	{ "sbb $1,%al", { 0x1c, 0x01 } },
	{ "and $0x12345678,%rax", { 0x48, 0x25, 0x78, 0x56, 0x34, 0x12 } },
	{ "sub %r15,(%r14,%r13,8)", { 0x4f, 0x29, 0x3c, 0xee } },
	{ "xor %eax,%eax", { 0x31, 0xc0 } },
	{ "cmp $0,0x10(%rip)", { 0x83, 0x3d, 0x10, 0x00, 0x00, 0x00, 0x00 } },
	{ "push %rax", { 0x50 } },
	{ "push %rsp", { 0x54 } },
	{ "push %r15", { 0x41, 0x57 } },
	{ "pop %rdi", { 0x5f } },
	{ "pop %rsp", { 0x5c } },
	{ "pop %r12", { 0x41, 0x5c } },
	{ "push $0x7f", { 0x6a, 0x7f } },
	{ "push $0x12345678", { 0x68, 0x78, 0x56, 0x34, 0x12 } },
	{ "pushw $0x1234", { 0x66, 0x68, 0x34, 0x12 } },
	{ "push 8(%rsp)", { 0xff, 0x74, 0x24, 0x08 } },
	{ "push 0x10(%rip)", { 0xff, 0x35, 0x10, 0x00, 0x00, 0x00 } },
	{ "pop 8(%rsp)", { 0x8f, 0x44, 0x24, 0x08 } },
	{ "push %fs", { 0x0f, 0xa0 } },
	{ "push %gs", { 0x0f, 0xa8 } },
	{ "movslq %esi,%rdi", { 0x48, 0x63, 0xfe } },
	{ "imul $100,%rdi,%rax", { 0x48, 0x6b, 0xc7, 0x64 } },
	{ "imul $100000,(%rdi),%rax", { 0x48, 0x69, 0x07, 0xa0, 0x86, 0x01, 0x00 } },
	{ "insb", { 0x6c } },
	{ "insl", { 0x6d } },
	{ "outsb", { 0x6e } },
	{ "outsw", { 0x66, 0x6f } },
	{ "test %rdi,%rdi", { 0x48, 0x85, 0xff } },
	{ "test %al,%al", { 0x84, 0xc0 } },
	{ "xchg %rax,%rbx", { 0x48, 0x93 } },
	{ "xchg %rax,(%rdi)", { 0x48, 0x87, 0x07 } },
	{ "xchg %r8,%rax", { 0x49, 0x90 } },
	{ "xchg %r8d,%eax", { 0x41, 0x90 } },
	{ "pause", { 0xf3, 0x90 } },
	{ "mov %rdi,%rsi", { 0x48, 0x89, 0xfe } },
	{ "mov %gs:0x28,%rax", { 0x65, 0x48, 0x8b, 0x04, 0x25, 0x28, 0x00, 0x00, 0x00 } },
	{ "mov %gs:0x10(%rip),%rax", { 0x65, 0x48, 0x8b, 0x05, 0x10, 0x00, 0x00, 0x00 } },
	{ "incl %gs:0x10(%rip)", { 0x65, 0xff, 0x05, 0x10, 0x00, 0x00, 0x00 } },
	{ "mov %eax,%fs:(%rdi)", { 0x64, 0x89, 0x07 } },
	{ "mov $0xffffffff81000000,%rax", { 0x48, 0xc7, 0xc0, 0x00, 0x00, 0x00, 0x81 } },
	{ "movabs $imm64,%r11", { 0x49, 0xbb, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11 } },
	{ "movabs moffs64,%al", { 0xa0, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11 } },
	{ "movabs %rax,moffs64", { 0x48, 0xa3, 0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11 } },
	{ "movl $1,0x10(%rip)", { 0xc7, 0x05, 0x10, 0x00, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00 } },
	{ "movb $1,(%rdi)", { 0xc6, 0x07, 0x01 } },
	{ "mov %ds,%eax", { 0x8c, 0xd8 } },
	{ "mov %gs,%eax", { 0x8c, 0xe8 } },
	{ "mov %ss,(%rdi)", { 0x8c, 0x17 } },
	{ "lea 0x10(%rip),%rax", { 0x48, 0x8d, 0x05, 0x10, 0x00, 0x00, 0x00 } },
	{ "lea -8(%rsp,%rdi,4),%rsp", { 0x48, 0x8d, 0x64, 0xbc, 0xf8 } },
	{ "cltq", { 0x48, 0x98 } },
	{ "cqto", { 0x48, 0x99 } },
	{ "fwait", { 0x9b } },
	{ "sahf", { 0x9e } },
	{ "lahf", { 0x9f } },
	{ "rep movsb", { 0xf3, 0xa4 } },
	{ "rep movsq", { 0xf3, 0x48, 0xa5 } },
	{ "movsl", { 0xa5 } },
	{ "repe cmpsb", { 0xf3, 0xa6 } },
	{ "repne scasb", { 0xf2, 0xae } },
	{ "rep stosq", { 0xf3, 0x48, 0xab } },
	{ "lodsb", { 0xac } },
	{ "enter $16,$0", { 0xc8, 0x10, 0x00, 0x00 } },
	{ "leave", { 0xc9 } },
	{ "rol $3,%eax", { 0xc1, 0xc0, 0x03 } },
	{ "shl %cl,%rdi", { 0x48, 0xd3, 0xe7 } },
	{ "sar $1,(%rdi)", { 0xd1, 0x3f } },
	{ "xlat", { 0xd7 } },
	{ "fld1", { 0xd9, 0xe8 } },
	{ "fninit", { 0xdb, 0xe3 } },
	{ "fnstcw (%rsp)", { 0xd9, 0x3c, 0x24 } },
	{ "fwait", { 0x9b } },
	{ "in $0x70,%al", { 0xe4, 0x70 } },
	{ "in (%dx),%eax", { 0xed } },
	{ "out %al,$0x80", { 0xe6, 0x80 } },
	{ "out %eax,(%dx)", { 0xef } },
	{ "cmc", { 0xf5 } },
	{ "clc", { 0xf8 } },
	{ "stc", { 0xf9 } },
	{ "cld", { 0xfc } },
	{ "std", { 0xfd } },
	{ "not %rax", { 0x48, 0xf7, 0xd0 } },
	{ "div %rcx", { 0x48, 0xf7, 0xf1 } },
	{ "testl $0x1000,(%rdi)", { 0xf7, 0x07, 0x00, 0x10, 0x00, 0x00 } },
	{ "inc %eax", { 0xff, 0xc0 } },
	{ "decl (%rdi)", { 0xff, 0x0f } },
	{ "lock incl (%rdi)", { 0xf0, 0xff, 0x07 } },
	{ "lock decq 0x10(%rip)", { 0xf0, 0x48, 0xff, 0x0d, 0x10, 0x00, 0x00, 0x00 } },
	{ "lock xadd %rax,(%rdi)", { 0xf0, 0x48, 0x0f, 0xc1, 0x07 } },
	{ "lock cmpxchg %rcx,(%rdi)", { 0xf0, 0x48, 0x0f, 0xb1, 0x0f } },
	{ "lock cmpxchg16b (%rdi)", { 0xf0, 0x48, 0x0f, 0xc7, 0x0f } },
	{ "lock btsq $3,(%rdi)", { 0xf0, 0x48, 0x0f, 0xba, 0x2f, 0x03 } },
	{ "cmpxchg8b %gs:(%rsi)", { 0x65, 0x0f, 0xc7, 0x0e } },
	{ "xabort $1", { 0xc6, 0xf8, 0x01 } },
	{ "sldt %eax", { 0x0f, 0x00, 0xc0 } },
	{ "str (%rdi)", { 0x0f, 0x00, 0x0f } },
	{ "verw 0x10(%rip)", { 0x0f, 0x00, 0x2d, 0x10, 0x00, 0x00, 0x00 } },
	{ "verr %ax", { 0x0f, 0x00, 0xe0 } },
	{ "sgdt (%rdi)", { 0x0f, 0x01, 0x07 } },
	{ "sidt (%rdi)", { 0x0f, 0x01, 0x0f } },
	{ "smsw %eax", { 0x0f, 0x01, 0xe0 } },
	{ "invlpg (%rdi)", { 0x0f, 0x01, 0x3f } },
	{ "vmcall", { 0x0f, 0x01, 0xc1 } },
	{ "vmmcall", { 0x0f, 0x01, 0xd9 } },
	{ "vmxoff", { 0x0f, 0x01, 0xc4 } },
	{ "vmptrld (%rdi)", { 0x0f, 0xc7, 0x37 } },
	{ "vmptrst (%rdi)", { 0x0f, 0xc7, 0x3f } },
	{ "vmclear (%rdi)", { 0x66, 0x0f, 0xc7, 0x37 } },
	{ "vmxon (%rdi)", { 0xf3, 0x0f, 0xc7, 0x37 } },
	{ "vmread %rax,%rbx", { 0x0f, 0x78, 0xc3 } },
	{ "vmwrite %rax,%rbx", { 0x0f, 0x79, 0xd8 } },
	{ "vmsave", { 0x0f, 0x01, 0xdb } },
	{ "invept (%rdi),%rax", { 0x66, 0x0f, 0x38, 0x80, 0x07 } },
	{ "invvpid (%rdi),%rax", { 0x66, 0x0f, 0x38, 0x81, 0x07 } },
	{ "invpcid (%rdi),%rax", { 0x66, 0x0f, 0x38, 0x82, 0x07 } },
	{ "invlpga", { 0x0f, 0x01, 0xdf } },
	{ "invlpgb", { 0x0f, 0x01, 0xfe } },
	{ "tlbsync", { 0x0f, 0x01, 0xff } },
	{ "monitor", { 0x0f, 0x01, 0xc8 } },
	{ "monitorx", { 0x0f, 0x01, 0xfa } },
	{ "clac", { 0x0f, 0x01, 0xca } },
	{ "stac", { 0x0f, 0x01, 0xcb } },
	{ "tdcall", { 0x66, 0x0f, 0x01, 0xcc } },
	{ "xgetbv", { 0x0f, 0x01, 0xd0 } },
	{ "xend", { 0x0f, 0x01, 0xd5 } },
	{ "xtest", { 0x0f, 0x01, 0xd6 } },
	{ "rdpkru", { 0x0f, 0x01, 0xee } },
	{ "wrpkru", { 0x0f, 0x01, 0xef } },
	{ "serialize", { 0x0f, 0x01, 0xe8 } },
	{ "rdtscp", { 0x0f, 0x01, 0xf9 } },
	{ "clzero", { 0x0f, 0x01, 0xfc } },
	{ "rdpru", { 0x0f, 0x01, 0xfd } },
	{ "lar %ax,%rax", { 0x48, 0x0f, 0x02, 0xc0 } },
	{ "lsl %ax,%rax", { 0x48, 0x0f, 0x03, 0xc0 } },
	{ "invd", { 0x0f, 0x08 } },
	{ "wbinvd", { 0x0f, 0x09 } },
	{ "wbnoinvd", { 0xf3, 0x0f, 0x09 } },
	{ "prefetchw (%rdi)", { 0x0f, 0x0d, 0x0f } },
	{ "prefetcht0 (%rdi)", { 0x0f, 0x18, 0x0f } },
	{ "cldemote (%rdi)", { 0x0f, 0x1c, 0x07 } },
	{ "movups (%rdi),%xmm0", { 0x0f, 0x10, 0x07 } },
	{ "movaps %xmm0,(%rdi)", { 0x0f, 0x29, 0x07 } },
	{ "cvtsi2sd %rax,%xmm0", { 0xf2, 0x48, 0x0f, 0x2a, 0xc0 } },
	{ "nop %eax (0f 1e)", { 0x0f, 0x1e, 0xc0 } },
	{ "rdsspq %rax", { 0xf3, 0x48, 0x0f, 0x1e, 0xc8 } },
	{ "mov %cr0,%rax", { 0x0f, 0x20, 0xc0 } },
	{ "mov %cr2,%rdi", { 0x0f, 0x20, 0xd7 } },
	{ "mov %cr3,%r15", { 0x41, 0x0f, 0x20, 0xdf } },
	{ "mov %cr4,%rax", { 0x0f, 0x20, 0xe0 } },
	{ "mov %cr8,%rax", { 0x44, 0x0f, 0x20, 0xc0 } },
	{ "mov %db0,%rax", { 0x0f, 0x21, 0xc0 } },
	{ "mov %db7,%rax", { 0x0f, 0x21, 0xf8 } },
	{ "rdtsc", { 0x0f, 0x31 } },
	{ "rdmsr", { 0x0f, 0x32 } },
	{ "rdpmc", { 0x0f, 0x33 } },
	{ "cmovne %rax,%rbx", { 0x48, 0x0f, 0x45, 0xd8 } },
	{ "paddb %mm0,%mm1", { 0x0f, 0xfc, 0xc8 } },
	{ "punpcklqdq %xmm0,%xmm1", { 0x66, 0x0f, 0x6c, 0xc8 } },
	{ "movdqa 0x10(%rip),%xmm0", { 0x66, 0x0f, 0x6f, 0x05, 0x10, 0x00, 0x00, 0x00 } },
	{ "pshufd $1,%xmm0,%xmm1", { 0x66, 0x0f, 0x70, 0xc8, 0x01 } },
	{ "haddps %xmm0,%xmm1", { 0xf2, 0x0f, 0x7c, 0xc8 } },
	{ "addsubpd %xmm0,%xmm1", { 0x66, 0x0f, 0xd0, 0xc8 } },
	{ "movq %xmm0,(%rdi)", { 0x66, 0x0f, 0xd6, 0x07 } },
	{ "lddqu (%rdi),%xmm0", { 0xf2, 0x0f, 0xf0, 0x07 } },
	{ "emms", { 0x0f, 0x77 } },
	{ "sete %al", { 0x0f, 0x94, 0xc0 } },
	{ "setg (%rdi)", { 0x0f, 0x9f, 0x07 } },
	{ "cpuid", { 0x0f, 0xa2 } },
	{ "bt %rax,(%rdi)", { 0x48, 0x0f, 0xa3, 0x07 } },
	{ "bts $3,%rax", { 0x48, 0x0f, 0xba, 0xe8, 0x03 } },
	{ "shld $3,%rax,%rbx", { 0x48, 0x0f, 0xa4, 0xc3, 0x03 } },
	{ "shrd %cl,%rax,%rbx", { 0x48, 0x0f, 0xad, 0xc3 } },
	{ "fxsave (%rdi)", { 0x0f, 0xae, 0x07 } },
	{ "fxrstor64 (%rdi)", { 0x48, 0x0f, 0xae, 0x0f } },
	{ "ldmxcsr (%rdi)", { 0x0f, 0xae, 0x17 } },
	{ "stmxcsr (%rdi)", { 0x0f, 0xae, 0x1f } },
	{ "xsave64 (%rdi)", { 0x48, 0x0f, 0xae, 0x27 } },
	{ "xrstor64 (%rdi)", { 0x48, 0x0f, 0xae, 0x2f } },
	{ "xsaveopt (%rdi)", { 0x0f, 0xae, 0x37 } },
	{ "xsavec (%rdi)", { 0x0f, 0xc7, 0x27 } },
	{ "xsaves64 (%rdi)", { 0x48, 0x0f, 0xc7, 0x2f } },
	{ "xrstors64 (%rdi)", { 0x48, 0x0f, 0xc7, 0x1f } },
	{ "clflush (%rdi)", { 0x0f, 0xae, 0x3f } },
	{ "clflushopt (%rdi)", { 0x66, 0x0f, 0xae, 0x3f } },
	{ "clwb (%rdi)", { 0x66, 0x0f, 0xae, 0x37 } },
	{ "lfence", { 0x0f, 0xae, 0xe8 } },
	{ "mfence", { 0x0f, 0xae, 0xf0 } },
	{ "sfence", { 0x0f, 0xae, 0xf8 } },
	{ "rdfsbase %rax", { 0xf3, 0x48, 0x0f, 0xae, 0xc0 } },
	{ "rdgsbase %rax", { 0xf3, 0x48, 0x0f, 0xae, 0xc8 } },
	{ "ptwrite %rax", { 0xf3, 0x48, 0x0f, 0xae, 0xe0 } },
	{ "incsspq %rax", { 0xf3, 0x48, 0x0f, 0xae, 0xe8 } },
	{ "umonitor %rax", { 0xf3, 0x0f, 0xae, 0xf0 } },
	{ "clrssbsy (%rdi)", { 0xf3, 0x0f, 0xae, 0x37 } },
	{ "rstorssp (%rdi)", { 0xf3, 0x0f, 0x01, 0x2f } },
	{ "imul %rax,%rbx", { 0x48, 0x0f, 0xaf, 0xd8 } },
	{ "movzbl %al,%eax", { 0x0f, 0xb6, 0xc0 } },
	{ "movswl (%rdi),%eax", { 0x0f, 0xbf, 0x07 } },
	{ "popcnt %rax,%rbx", { 0xf3, 0x48, 0x0f, 0xb8, 0xd8 } },
	{ "tzcnt %rax,%rbx", { 0xf3, 0x48, 0x0f, 0xbc, 0xd8 } },
	{ "lzcnt %rax,%rbx", { 0xf3, 0x48, 0x0f, 0xbd, 0xd8 } },
	{ "bsf %rax,%rbx", { 0x48, 0x0f, 0xbc, 0xd8 } },
	{ "bsr %rax,%rbx", { 0x48, 0x0f, 0xbd, 0xd8 } },
	{ "movnti %rax,(%rdi)", { 0x48, 0x0f, 0xc3, 0x07 } },
	{ "rdrand %rax", { 0x48, 0x0f, 0xc7, 0xf0 } },
	{ "rdseed %eax", { 0x0f, 0xc7, 0xf8 } },
	{ "rdpid %rax", { 0xf3, 0x0f, 0xc7, 0xf8 } },
	{ "bswap %r8", { 0x49, 0x0f, 0xc8 } },
	{ "pshufb %xmm0,%xmm1", { 0x66, 0x0f, 0x38, 0x00, 0xc8 } },
	{ "crc32q %rax,%rbx", { 0xf2, 0x48, 0x0f, 0x38, 0xf1, 0xd8 } },
	{ "movbe %rax,(%rdi)", { 0x48, 0x0f, 0x38, 0xf1, 0x07 } },
	{ "adcx %rax,%rbx", { 0x66, 0x48, 0x0f, 0x38, 0xf6, 0xd8 } },
	{ "wrssq %rax,(%rdi)", { 0x48, 0x0f, 0x38, 0xf6, 0x07 } },
	{ "wrussq %rax,(%rdi)", { 0x66, 0x48, 0x0f, 0x38, 0xf5, 0x07 } },
	{ "movdiri %rax,(%rdi)", { 0x48, 0x0f, 0x38, 0xf9, 0x07 } },
	{ "movdir64b (%rdi),%rax", { 0x66, 0x0f, 0x38, 0xf8, 0x07 } },
	{ "enqcmds (%rdi),%rax", { 0xf3, 0x0f, 0x38, 0xf8, 0x07 } },
	{ "aesenc %xmm0,%xmm1", { 0x66, 0x0f, 0x38, 0xdc, 0xc8 } },
	{ "sha256msg1 %xmm0,%xmm1", { 0x0f, 0x38, 0xcc, 0xc8 } },
	{ "pclmulqdq $1,%xmm0,%xmm1", { 0x66, 0x0f, 0x3a, 0x44, 0xc8, 0x01 } },
	{ "palignr $4,%xmm0,%xmm1", { 0x66, 0x0f, 0x3a, 0x0f, 0xc8, 0x04 } },
	{ "vzeroupper", { 0xc5, 0xf8, 0x77 } },
	{ "vmovdqa 0x10(%rip),%ymm0", { 0xc5, 0xfd, 0x6f, 0x05, 0x10, 0x00, 0x00, 0x00 } },
	{ "vpaddd %ymm0,%ymm1,%ymm2", { 0xc5, 0xf5, 0xfe, 0xd0 } },
	{ "vpcmpeqb %ymm0,%ymm1,%ymm2", { 0xc5, 0xf5, 0x74, 0xd0 } },
	{ "vldmxcsr (%rdi)", { 0xc5, 0xf8, 0xae, 0x17 } },
	{ "vmaskmovps (%rdi),%ymm1,%ymm2", { 0xc4, 0xe2, 0x75, 0x2c, 0x17 } },
	{ "andn %rax,%rbx,%rcx", { 0xc4, 0xe2, 0xe0, 0xf2, 0xc8 } },
	{ "rorx $3,%rax,%rbx", { 0xc4, 0xe3, 0xfb, 0xf0, 0xd8, 0x03 } },
	{ "kmovw %eax,%k1", { 0xc5, 0xf8, 0x92, 0xc8 } },
	{ "vmovdqa64 (%rdi),%zmm0", { 0x62, 0xf1, 0xfd, 0x48, 0x6f, 0x07 } },
	{ "vpternlogd $0,(%rip),...", { 0x62, 0xf3, 0x75, 0x48, 0x25, 0x15 } },
	{ "add %r16,%r24", { 0xd5, 0x19, 0x01, 0xc0 } },
	{ "pushp %rax", { 0xd5, 0x08, 0x50 } },
	{ "pop %r16", { 0xd5, 0x10, 0x58 } },
	{ "{evex} inc %eax", { 0x62, 0xf4, 0x7c, 0x08, 0xff, 0xc0 } },
	{ "push2 %rax,%rax", { 0x62, 0xf4, 0x7c, 0x18, 0xff, 0xf0 } },
	{ "pop2 %rax,%rax", { 0x62, 0xf4, 0x7c, 0x18, 0x8f, 0xc0 } },
};

static const struct insn_case stepped[] = {
	{ "mov %eax,%ds", { 0x8e, 0xd8 } },
	{ "mov %eax,%es", { 0x8e, 0xc0 } },
	{ "mov (%rdi),%fs", { 0x8e, 0x27 } },
	{ "pop %fs", { 0x0f, 0xa1 } },
	{ "lfs (%rdi),%eax", { 0x0f, 0xb4, 0x07 } },
	{ "lldt %ax", { 0x0f, 0x00, 0xd0 } },
	{ "ltr (%rdi)", { 0x0f, 0x00, 0x1f } },
	{ "lkgs %ax", { 0xf2, 0x0f, 0x00, 0xf0 } },
	{ "lgdt (%rdi)", { 0x0f, 0x01, 0x17 } },
	{ "lidt 0x10(%rip)", { 0x0f, 0x01, 0x1d, 0x10, 0x00, 0x00, 0x00 } },
	{ "lmsw %ax", { 0x0f, 0x01, 0xf0 } },
	{ "xsetbv", { 0x0f, 0x01, 0xd1 } },
	{ "clts", { 0x0f, 0x06 } },
	{ "mov %rax,%cr0", { 0x0f, 0x22, 0xc0 } },
	{ "mov %rax,%cr2", { 0x0f, 0x22, 0xd0 } },
	{ "mov %rdi,%cr3", { 0x0f, 0x22, 0xdf } },
	{ "mov %r15,%cr4", { 0x41, 0x0f, 0x22, 0xe7 } },
	{ "mov %rax,%cr8", { 0x44, 0x0f, 0x22, 0xc0 } },
	{ "mov %rax,%db0", { 0x0f, 0x23, 0xc0 } },
	{ "mov %r15,%db7", { 0x41, 0x0f, 0x23, 0xff } },
	{ "wrmsr", { 0x0f, 0x30 } },
	{ "wrmsrns", { 0x0f, 0x01, 0xc6 } },
	{ "wrmsrlist", { 0xf3, 0x0f, 0x01, 0xc6 } },
	{ "wrfsbase %rax", { 0xf3, 0x48, 0x0f, 0xae, 0xd0 } },
};

static const struct insn_case skipped[] = {
	{ "hlt", { 0xf4 } },
	{ "mwait", { 0x0f, 0x01, 0xc9 } },
	{ "mwaitx", { 0x0f, 0x01, 0xfb } },
	{ "nop", { 0x90 } },
	{ "xchg %ax,%ax", { 0x66, 0x90 } },
	{ "rex.W nop", { 0x48, 0x90 } },
	{ "nopl (%rax)", { 0x0f, 0x1f, 0x00 } },
	{ "nopl 8(%rax,%rax,1)", { 0x0f, 0x1f, 0x44, 0x00, 0x08 } },
	{ "nopw 0x100(%rax,%rax,1)", { 0x66, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x01, 0x00, 0x00 } },
	{ "cs nopw 0x200(...)", { 0x2e, 0x66, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x02, 0x00, 0x00 } },
	{ "nop %eax", { 0x0f, 0x1f, 0xc0 } },
	{ "nopl 0x10(%rip)", { 0x0f, 0x1f, 0x05, 0x10, 0x00, 0x00, 0x00 } },
	{ "endbr64", { 0xf3, 0x0f, 0x1e, 0xfa } },
	{ "endbr32", { 0xf3, 0x0f, 0x1e, 0xfb } },
	{ "nopw (%rax)", { 0x66, 0x0f, 0x1f, 0x00 } },
};

static const struct insn_case emulated[] = {
	{ "jo .+2", { 0x70, 0x00 } },
	{ "jno .+2", { 0x71, 0x00 } },
	{ "je .+0x20", { 0x74, 0x1e } },
	{ "jne .-0x20", { 0x75, 0xde } },
	{ "jg .+2", { 0x7f, 0x00 } },
	{ "je,pn .+0x13", { 0x2e, 0x74, 0x10 } },
	{ "bnd je .+0x13", { 0xf2, 0x74, 0x10 } },
	{ "{disp32} jo .+0x1000", { 0x0f, 0x80, 0xfa, 0x0f, 0x00, 0x00 } },
	{ "{disp32} jle .-0x1000", { 0x0f, 0x8e, 0xfa, 0xef, 0xff, 0xff } },
	{ "cs je .+7", { 0x2e, 0x0f, 0x84, 0x00, 0x00, 0x00, 0x00 } },
	{ "loopne .", { 0xe0, 0xfe } },
	{ "loope .", { 0xe1, 0xfe } },
	{ "loop .", { 0xe2, 0xfe } },
	{ "jrcxz .", { 0xe3, 0xfe } },
	{ "addr32 loop .+0x13", { 0x67, 0xe2, 0x10 } },
	{ "jecxz .", { 0x67, 0xe3, 0xfd } },
	{ "call .+0x1000", { 0xe8, 0xfb, 0x0f, 0x00, 0x00 } },
	{ "cs call .+6", { 0x2e, 0xe8, 0x00, 0x00, 0x00, 0x00 } },
	{ "rex.W call .+6", { 0x48, 0xe8, 0x00, 0x00, 0x00, 0x00 } },
	{ "jmp .+0x1000", { 0xe9, 0xfb, 0x0f, 0x00, 0x00 } },
	{ "jmp .", { 0xeb, 0xfe } },
	{ "addr32 jmp .+0x13", { 0x67, 0xeb, 0x10 } },
	{ "ret", { 0xc3 } },
	{ "ret $16", { 0xc2, 0x10, 0x00 } },
	{ "repz ret", { 0xf3, 0xc3 } },
	{ "jmp *%rax", { 0xff, 0xe0 } },
	{ "jmp *%r11", { 0x41, 0xff, 0xe3 } },
	{ "notrack jmp *%rax", { 0x3e, 0xff, 0xe0 } },
	{ "addr32 jmp *%rax", { 0x67, 0xff, 0xe0 } },
	{ "jmp *(%rdi)", { 0xff, 0x27 } },
	{ "jmp *0x10(%rip)", { 0xff, 0x25, 0x10, 0x00, 0x00, 0x00 } },
	{ "jmp *8(%rsp)", { 0xff, 0x64, 0x24, 0x08 } },
	{ "jmp *table(,%rax,8)", { 0xff, 0x24, 0xc5, 0x00, 0x10, 0x00, 0x00 } },
	{ "notrack jmp *table(,%rax,8)", { 0x3e, 0xff, 0x24, 0xc5, 0x00, 0x10, 0x00, 0x00 } },
	{ "call *%rax", { 0xff, 0xd0 } },
	{ "call *%rsp", { 0xff, 0xd4 } },
	{ "call *%r11", { 0x41, 0xff, 0xd3 } },
	{ "call *(%rdi)", { 0xff, 0x17 } },
	{ "call *0x10(%rip)", { 0xff, 0x15, 0x10, 0x00, 0x00, 0x00 } },
	{ "call *8(%rsp)", { 0xff, 0x54, 0x24, 0x08 } },
	{ "call *0x18(%r12,%r13,2)", { 0x43, 0xff, 0x54, 0x6c, 0x18 } },
	{ "call *%cs:(%rdi)", { 0x2e, 0xff, 0x17 } },
	{ "pushf", { 0x9c } },
	{ "popf", { 0x9d } },
	{ "cli", { 0xfa } },
	{ "sti; nop", { 0xfb, 0x90 } },
	{ "sti; mov %rdi,%rax", { 0xfb, 0x48, 0x89, 0xf8 } },
	{ "sti; jmp .+0x12", { 0xfb, 0xeb, 0x10 } },
	{ "sti; pause", { 0xfb, 0xf3, 0x90 } },
	{ "tpause %eax", { 0x66, 0x0f, 0xae, 0xf0 } },
	{ "umwait %r8d", { 0xf2, 0x41, 0x0f, 0xae, 0xf0 } },
};

static const struct insn_case refused[] = {
	{ "int3", { 0xcc } },
	{ "int1", { 0xf1 } },
	{ "int $0x80", { 0xcd, 0x80 } },
	{ "int $3", { 0xcc } },
	{ "ud0 %eax,%eax", { 0x0f, 0xff, 0xc0 } },
	{ "ud1 %eax,%eax", { 0x0f, 0xb9, 0xc0 } },
	{ "ud2", { 0x0f, 0x0b } },
	{ "iretq", { 0x48, 0xcf } },
	{ "iret", { 0xcf } },
	{ "lret", { 0xcb } },
	{ "lret $8", { 0xca, 0x08, 0x00 } },
	{ "syscall", { 0x0f, 0x05 } },
	{ "sysretq", { 0x48, 0x0f, 0x07 } },
	{ "sysenter", { 0x0f, 0x34 } },
	{ "sysexitq", { 0x48, 0x0f, 0x35 } },
	{ "lcall *(%rdi)", { 0xff, 0x1f } },
	{ "rex.W ljmp *(%rdi)", { 0x48, 0xff, 0x2f } },
	{ "swapgs", { 0x0f, 0x01, 0xf8 } },
	{ "wrgsbase %rax", { 0xf3, 0x48, 0x0f, 0xae, 0xd8 } },
	{ "repz cs wrgsbase %eax", { 0xf3, 0x2e, 0x0f, 0xae, 0xd8 } },
	{ "mov %eax,%gs", { 0x8e, 0xe8 } },
	{ "mov (%rdi),%gs", { 0x8e, 0x2f } },
	{ "mov %eax,%ss", { 0x8e, 0xd0 } },
	{ "mov %eax,%cs", { 0x8e, 0xc8 } },
	{ "mov %eax,%?6", { 0x8e, 0xf0 } },
	{ "mov %?6,%eax", { 0x8c, 0xf0 } },
	{ "pop %gs", { 0x0f, 0xa9 } },
	{ "lss (%rdi),%eax", { 0x0f, 0xb2, 0x07 } },
	{ "lgs (%rdi),%eax", { 0x0f, 0xb5, 0x07 } },
	{ "xbegin .+0x100", { 0xc7, 0xf8, 0xfa, 0x00, 0x00, 0x00 } },
	{ "vmlaunch", { 0x0f, 0x01, 0xc2 } },
	{ "vmresume", { 0x0f, 0x01, 0xc3 } },
	{ "vmfunc", { 0x0f, 0x01, 0xd4 } },
	{ "vmrun", { 0x0f, 0x01, 0xd8 } },
	{ "vmload", { 0x0f, 0x01, 0xda } },
	{ "stgi", { 0x0f, 0x01, 0xdc } },
	{ "clgi", { 0x0f, 0x01, 0xdd } },
	{ "skinit", { 0x0f, 0x01, 0xde } },
	{ "encls", { 0x0f, 0x01, 0xcf } },
	{ "enclu", { 0x0f, 0x01, 0xd7 } },
	{ "enclv", { 0x0f, 0x01, 0xc0 } },
	{ "seamcall", { 0x66, 0x0f, 0x01, 0xcf } },
	{ "seamret", { 0x66, 0x0f, 0x01, 0xcd } },
	{ "seamops", { 0x66, 0x0f, 0x01, 0xce } },
	{ "erets", { 0xf2, 0x0f, 0x01, 0xca } },
	{ "eretu", { 0xf3, 0x0f, 0x01, 0xca } },
	{ "uiret", { 0xf3, 0x0f, 0x01, 0xec } },
	{ "senduipi %rax", { 0xf3, 0x0f, 0xc7, 0xf0 } },
	{ "getsec", { 0x0f, 0x37 } },
	{ "rsm", { 0x0f, 0xaa } },
	{ "sti; hlt", { 0xfb, 0xf4 } },
	{ "sti; mwait", { 0xfb, 0x0f, 0x01, 0xc9 } },
	{ "sti; mwaitx", { 0xfb, 0x0f, 0x01, 0xfb } },
	{ "sti; tpause %eax", { 0xfb, 0x66, 0x0f, 0xae, 0xf0 } },
	{ "sti; sysexitq", { 0xfb, 0x48, 0x0f, 0x35 } },
	{ "sti; iretq", { 0xfb, 0x48, 0xcf } },
	{ "sti; vmresume", { 0xfb, 0x0f, 0x01, 0xc3 } },
	{ "mov 0x10(%eip),%eax", { 0x67, 0x8b, 0x05, 0x10, 0x00, 0x00, 0x00 } },
	{ "lea 0x10(%eip),%rax", { 0x67, 0x48, 0x8d, 0x05, 0x10, 0x00, 0x00, 0x00 } },
	{ "jmp *0x10(%eip)", { 0x67, 0xff, 0x25, 0x10, 0x00, 0x00, 0x00 } },
	{ "nopl 0(%eip)", { 0x67, 0x0f, 0x1f, 0x05, 0x00, 0x00, 0x00, 0x00 } },
	{ "data16 je .+0x13", { 0x66, 0x74, 0x10 } },
	{ "data16 je .+7", { 0x66, 0x0f, 0x84, 0x00, 0x00, 0x00, 0x00 } },
	{ "data16 loop .+0x13", { 0x66, 0xe2, 0x10 } },
	{ "data16 jrcxz .+0x13", { 0x66, 0xe3, 0x10 } },
	{ "data16 call .+6", { 0x66, 0xe8, 0x00, 0x00, 0x00, 0x00 } },
	{ "data16 rex.W call .+7", { 0x66, 0x48, 0xe8, 0x00, 0x00, 0x00, 0x00 } },
	{ "data16 jmp .+6", { 0x66, 0xe9, 0x00, 0x00, 0x00, 0x00 } },
	{ "data16 jmp .+0x13", { 0x66, 0xeb, 0x10 } },
	{ "retw", { 0x66, 0xc3 } },
	{ "retw $16", { 0x66, 0xc2, 0x10, 0x00 } },
	{ "call *%ax", { 0x66, 0xff, 0xd0 } },
	{ "jmpw *(%rdi)", { 0x66, 0xff, 0x27 } },
	{ "pushfw", { 0x66, 0x9c } },
	{ "popfw", { 0x66, 0x9d } },
	{ "call *%gs:(%rdi)", { 0x65, 0xff, 0x17 } },
	{ "jmp *%fs:0x10(%rip)", { 0x64, 0xff, 0x25, 0x10, 0x00, 0x00, 0x00 } },
	{ "call *(%edi)", { 0x67, 0xff, 0x17 } },
	{ "jmp *8(%esp)", { 0x67, 0xff, 0x64, 0x24, 0x08 } },
	{ "lock jmp .+0x13", { 0xf0, 0xeb, 0x10 } },
	{ "lock call *(%rdi)", { 0xf0, 0xff, 0x17 } },
	{ "lock nopl (%rax)", { 0xf0, 0x0f, 0x1f, 0x00 } },
	{ "lea %eax,%eax", { 0x8d, 0xc0 } },
	{ "c6 /1", { 0xc6, 0x08, 0x00 } },
	{ "fe /2", { 0xfe, 0x10 } },
	{ "ff /7", { 0xff, 0x38 } },
	{ "mov %cr1,%rax", { 0x0f, 0x20, 0xc8 } },
	{ "0f 22 with a memory operand", { 0x0f, 0x22, 0x00 } },
	{ "0f b8 without F3", { 0x0f, 0xb8, 0x00, 0x00 } },
	{ "0f 6c without 66", { 0x0f, 0x6c, 0xc8 } },
	{ "0f 3a 00 without VEX", { 0x0f, 0x3a, 0x00, 0xc0 } },
	{ "0f 38 0c without VEX", { 0x0f, 0x38, 0x0c, 0xc0 } },
	{ "push %es", { 0x06 } },
	{ "pop %ss", { 0x17 } },
	{ "aaa", { 0x37 } },
	{ "pusha", { 0x60 } },
	{ "lcall $0,$0", { 0x9a } },
	{ "salc", { 0xd6 } },
	{ "aam", { 0xd4, 0x0a } },
	{ "rex.W data16 nop", { 0x48, 0x66, 0x90 } },
	{ "rex.W vzeroupper", { 0x48, 0xc5, 0xf8, 0x77 } },
	{ "data16 vzeroupper", { 0x66, 0xc5, 0xf8, 0x77 } },
	{ "{rex2} call *%r16", { 0xd5, 0x10, 0xff, 0xd0 } },
	{ "{rex2} je .+7", { 0xd5, 0x80, 0x84, 0x00, 0x00, 0x00, 0x00 } },
	{ "jmp *(%rax,%r20,8)", { 0xd5, 0x20, 0xff, 0x24, 0xe0 } },
	{ "{rex2} ret", { 0xd5, 0x00, 0xc3 } },
	{ "{rex2} pushf", { 0xd5, 0x00, 0x9c } },
	{ "jmpabs $0", { 0xd5, 0x00, 0xa1 } },
	{ "{evex} call *%rax", { 0x62, 0xf4, 0x7c, 0x08, 0xff, 0xd0 } },
	{ "{evex} jmp *(%rax)", { 0x62, 0xf4, 0x7c, 0x08, 0xff, 0x20 } },
	{ "Xen cpuid", { 0x0f, 0x0b, 0x78, 0x65, 0x6e, 0x0f, 0xa2 } },
	{ "KVM cpuid", { 0x0f, 0x0b, 0x6b, 0x76, 0x6d, 0x0f, 0xa2 } },
};

/*
 * Tables of 32-bit mode: the instructions that 64-bit mode does not have or encodes
 * otherwise, and a few of those that both modes have.
 */
static const struct insn_case boosted_32[] = {
	{ "push %es", { 0x06 } },
	{ "push %cs", { 0x0e } },
	{ "push %ss", { 0x16 } },
	{ "push %ds", { 0x1e } },
	{ "push %fs", { 0x0f, 0xa0 } },
	{ "push %gs", { 0x0f, 0xa8 } },
	{ "daa", { 0x27 } },
	{ "das", { 0x2f } },
	{ "aaa", { 0x37 } },
	{ "aas", { 0x3f } },
	{ "aam", { 0xd4, 0x0a } },
	{ "aad", { 0xd5, 0x0a } },
	{ "inc %eax", { 0x40 } },
	{ "inc %esp", { 0x44 } },
	{ "incw %cx", { 0x66, 0x41 } },
	{ "dec %eax", { 0x48 } },
	{ "dec %edi", { 0x4f } },
	{ "push %ebp", { 0x55 } },
	{ "pop %esp", { 0x5c } },
	{ "pusha", { 0x60 } },
	{ "popa", { 0x61 } },
	{ "pushaw", { 0x66, 0x60 } },
	{ "bound %eax,(%ecx)", { 0x62, 0x01 } },
	{ "arpl %ax,%bx", { 0x63, 0xc3 } },
	{ "push 0x1000", { 0xff, 0x35, 0x00, 0x10, 0x00, 0x00 } },
	{ "pop 0x1000", { 0x8f, 0x05, 0x00, 0x10, 0x00, 0x00 } },
	{ "addb $1,%al (82)", { 0x82, 0xc0, 0x01 } },
	{ "cmpl $0,0x1000", { 0x83, 0x3d, 0x00, 0x10, 0x00, 0x00, 0x00 } },
	{ "lock incl 0x1000", { 0xf0, 0xff, 0x05, 0x00, 0x10, 0x00, 0x00 } },
	{ "mov %esp,%ebp", { 0x89, 0xe5 } },
	{ "mov 8(%ebp),%eax", { 0x8b, 0x45, 0x08 } },
	{ "mov 0x1000,%ecx", { 0x8b, 0x0d, 0x00, 0x10, 0x00, 0x00 } },
	{ "mov (%bx,%si),%eax", { 0x67, 0x8b, 0x00 } },
	{ "mov 0x10(%di),%eax", { 0x67, 0x8b, 0x45, 0x10 } },
	{ "mov 0x1000,%eax (16-bit address)", { 0x67, 0x8b, 0x06, 0x00, 0x10 } },
	{ "lea -12(%ebp),%esp", { 0x8d, 0x65, 0xf4 } },
	{ "mov moffs32,%al", { 0xa0, 0x00, 0x10, 0x00, 0xc1 } },
	{ "mov moffs32,%eax", { 0xa1, 0x00, 0x10, 0x00, 0xc1 } },
	{ "mov %eax,moffs32", { 0xa3, 0x00, 0x10, 0x00, 0xc1 } },
	{ "mov %fs:moffs32,%eax", { 0x64, 0xa1, 0x00, 0x10, 0x00, 0xc1 } },
	{ "mov moffs16,%eax", { 0x67, 0xa1, 0x00, 0x10 } },
	{ "incl %fs:0x1000", { 0x64, 0xff, 0x05, 0x00, 0x10, 0x00, 0x00 } },
	{ "mov $imm32,%eax", { 0xb8, 0x78, 0x56, 0x34, 0x12 } },
	{ "mov %ds,%eax", { 0x8c, 0xd8 } },
	{ "cwtl", { 0x98 } },
	{ "cltd", { 0x99 } },
	{ "rep movsl", { 0xf3, 0xa5 } },
	{ "enter $16,$0", { 0xc8, 0x10, 0x00, 0x00 } },
	{ "leave", { 0xc9 } },
	{ "pause", { 0xf3, 0x90 } },
	{ "mov %cr0,%eax", { 0x0f, 0x20, 0xc0 } },
	{ "cmpxchg8b (%esi)", { 0x0f, 0xc7, 0x0e } },
	{ "vzeroupper", { 0xc5, 0xf8, 0x77 } },
	{ "vmovdqa 0x1000,%ymm0", { 0xc5, 0xfd, 0x6f, 0x05, 0x00, 0x10, 0x00, 0x00 } },
	{ "vmaskmovps (%edi),%ymm1,%ymm2", { 0xc4, 0xe2, 0x75, 0x2c, 0x17 } },
	{ "vmovdqa32 (%edi),%zmm0", { 0x62, 0xf1, 0x7d, 0x48, 0x6f, 0x07 } },
};

static const struct insn_case stepped_32[] = {
	{ "pop %es", { 0x07 } },
	{ "pop %ds", { 0x1f } },
	{ "les (%eax),%eax", { 0xc4, 0x00 } },
	{ "lds (%eax),%eax", { 0xc5, 0x00 } },
	{ "mov %eax,%ds", { 0x8e, 0xd8 } },
	{ "mov %eax,%fs", { 0x8e, 0xe0 } },
	{ "pop %fs", { 0x0f, 0xa1 } },
	{ "lfs (%edi),%eax", { 0x0f, 0xb4, 0x07 } },
	{ "ltr %ax", { 0x0f, 0x00, 0xd8 } },
	{ "lgdt 0x1000", { 0x0f, 0x01, 0x15, 0x00, 0x10, 0x00, 0x00 } },
	{ "clts", { 0x0f, 0x06 } },
	{ "mov %eax,%cr3", { 0x0f, 0x22, 0xd8 } },
	{ "mov %eax,%db7", { 0x0f, 0x23, 0xf8 } },
	{ "wrmsr", { 0x0f, 0x30 } },
};

static const struct insn_case skipped_32[] = {
	{ "nop", { 0x90 } },
	{ "xchg %ax,%ax", { 0x66, 0x90 } },
	{ "nopl (%eax)", { 0x0f, 0x1f, 0x00 } },
	{ "nopl 0x1000", { 0x0f, 0x1f, 0x05, 0x00, 0x10, 0x00, 0x00 } },
	{ "nopl (%di)", { 0x67, 0x0f, 0x1f, 0x05 } },
	{ "nopw 0x200(%eax,%eax,1)", { 0x66, 0x0f, 0x1f, 0x84, 0x00, 0x00, 0x02, 0x00, 0x00 } },
	{ "endbr32", { 0xf3, 0x0f, 0x1e, 0xfb } },
	{ "hlt", { 0xf4 } },
	{ "mwait", { 0x0f, 0x01, 0xc9 } },
};

static const struct insn_case emulated_32[] = {
	{ "je .+0x20", { 0x74, 0x1e } },
	{ "{disp32} jo .+0x1000", { 0x0f, 0x80, 0xfa, 0x0f, 0x00, 0x00 } },
	{ "loopne .", { 0xe0, 0xfe } },
	{ "loope .", { 0xe1, 0xfe } },
	{ "loop .", { 0xe2, 0xfe } },
	{ "jecxz .", { 0xe3, 0xfe } },
	{ "call .+0x1000", { 0xe8, 0xfb, 0x0f, 0x00, 0x00 } },
	{ "jmp .+0x1000", { 0xe9, 0xfb, 0x0f, 0x00, 0x00 } },
	{ "jmp .", { 0xeb, 0xfe } },
	{ "addr16 jmp .+0x13", { 0x67, 0xeb, 0x10 } },
	{ "ret", { 0xc3 } },
	{ "ret $16", { 0xc2, 0x10, 0x00 } },
	{ "jmp *%eax", { 0xff, 0xe0 } },
	{ "addr16 jmp *%eax", { 0x67, 0xff, 0xe0 } },
	{ "jmp *(%edi)", { 0xff, 0x27 } },
	{ "jmp *0x1000", { 0xff, 0x25, 0x00, 0x10, 0x00, 0x00 } },
	{ "jmp *8(%esp)", { 0xff, 0x64, 0x24, 0x08 } },
	{ "jmp *table(,%eax,4)", { 0xff, 0x24, 0x85, 0x00, 0x10, 0x00, 0x00 } },
	{ "notrack jmp *table(,%eax,4)", { 0x3e, 0xff, 0x24, 0x85, 0x00, 0x10, 0x00, 0x00 } },
	{ "call *%eax", { 0xff, 0xd0 } },
	{ "call *%esp", { 0xff, 0xd4 } },
	{ "call *0x1000", { 0xff, 0x15, 0x00, 0x10, 0x00, 0x00 } },
	{ "call *8(%esp)", { 0xff, 0x54, 0x24, 0x08 } },
	{ "call *0x10(%eax,%ecx,2)", { 0xff, 0x54, 0x48, 0x10 } },
	{ "call *%cs:(%edi)", { 0x2e, 0xff, 0x17 } },
	{ "pushf", { 0x9c } },
	{ "popf", { 0x9d } },
	{ "cli", { 0xfa } },
	{ "sti; nop", { 0xfb, 0x90 } },
	{ "sti; inc %eax", { 0xfb, 0x40 } },
	{ "sti; pusha", { 0xfb, 0x60 } },
	{ "tpause %eax", { 0x66, 0x0f, 0xae, 0xf0 } },
	{ "umwait %edi", { 0xf2, 0x0f, 0xae, 0xf7 } },
};

static const struct insn_case refused_32[] = {
	{ "int3", { 0xcc } },
	{ "int $0x80", { 0xcd, 0x80 } },
	{ "into", { 0xce } },
	{ "int1", { 0xf1 } },
	{ "ud2", { 0x0f, 0x0b } },
	{ "iret", { 0xcf } },
	{ "lret", { 0xcb } },
	{ "lcall $0,$0", { 0x9a } },
	{ "ljmp $0,$0", { 0xea } },
	{ "lcall *(%edi)", { 0xff, 0x1f } },
	{ "ljmp *0x1000", { 0xff, 0x2d, 0x00, 0x10, 0x00, 0x00 } },
	{ "sysenter", { 0x0f, 0x34 } },
	{ "sysexit", { 0x0f, 0x35 } },
	{ "pop %ss", { 0x17 } },
	{ "mov %eax,%ss", { 0x8e, 0xd0 } },
	{ "mov %eax,%gs", { 0x8e, 0xe8 } },
	{ "pop %gs", { 0x0f, 0xa9 } },
	{ "lss (%edi),%esp", { 0x0f, 0xb2, 0x27 } },
	{ "lgs (%edi),%eax", { 0x0f, 0xb5, 0x07 } },
	{ "bound %eax,%eax", { 0x62, 0xc0 } },
	{ "salc", { 0xd6 } },
	{ "loopw", { 0x67, 0xe2 } },
	{ "loopnew", { 0x67, 0xe0 } },
	{ "jcxz", { 0x67, 0xe3 } },
	{ "jmp *(%bx,%si)", { 0x67, 0xff, 0x20 } },
	{ "call *0x1000 (16-bit address)", { 0x67, 0xff, 0x16, 0x00, 0x10 } },
	{ "data16 je .+0x13", { 0x66, 0x74, 0x10 } },
	{ "data16 loop .+0x13", { 0x66, 0xe2, 0x10 } },
	{ "callw .+5", { 0x66, 0xe8, 0x00, 0x00 } },
	{ "jmpw .+5", { 0x66, 0xe9, 0x00, 0x00 } },
	{ "retw", { 0x66, 0xc3 } },
	{ "call *%ax", { 0x66, 0xff, 0xd0 } },
	{ "jmpw *(%edi)", { 0x66, 0xff, 0x27 } },
	{ "pushfw", { 0x66, 0x9c } },
	{ "popfw", { 0x66, 0x9d } },
	{ "call *%fs:(%edi)", { 0x64, 0xff, 0x17 } },
	{ "jmp *%gs:0x1000", { 0x65, 0xff, 0x25, 0x00, 0x10, 0x00, 0x00 } },
	{ "lock jmp .+0x13", { 0xf0, 0xeb, 0x10 } },
	{ "data16 vzeroupper", { 0x66, 0xc5, 0xf8, 0x77 } },
	{ "sti; hlt", { 0xfb, 0xf4 } },
	{ "sti; mwait", { 0xfb, 0x0f, 0x01, 0xc9 } },
	{ "sti; iret", { 0xfb, 0xcf } },
	{ "sti; sysexit", { 0xfb, 0x0f, 0x35 } },
	{ "Xen cpuid", { 0x0f, 0x0b, 0x78, 0x65, 0x6e, 0x0f, 0xa2 } },
};

static void check_cases(struct kunit *test, const struct insn_case *cases, size_t n,
			enum insn_mode mode, enum insn_run run, enum insn_run run_post)
{
	for (; n; n--, cases++) {
		struct insn_runs runs = analyse(cases->code, MAX_CODE, mode);

		KUNIT_EXPECT_EQ_MSG(test, runs.run, run, "%s, %d bits", cases->text,
				    mode_bits(mode));
		KUNIT_EXPECT_EQ_MSG(test, runs.run_post, run_post, "%s, %d bits", cases->text,
				    mode_bits(mode));
	}
}

static void test_boosted(struct kunit *test)
{
	check_cases(test, boosted, ARRAY_SIZE(boosted), INSN_MODE_64,
		    INSN_RUN_BOOST, INSN_RUN_BOOST);
	check_cases(test, boosted_32, ARRAY_SIZE(boosted_32), INSN_MODE_32,
		    INSN_RUN_BOOST, INSN_RUN_BOOST);
}

static void test_stepped(struct kunit *test)
{
	check_cases(test, stepped, ARRAY_SIZE(stepped), INSN_MODE_64,
		    INSN_RUN_BOOST, INSN_RUN_STEP);
	check_cases(test, stepped_32, ARRAY_SIZE(stepped_32), INSN_MODE_32,
		    INSN_RUN_BOOST, INSN_RUN_STEP);
}

#ifdef CONFIG_TASKS_RCU
/* After this store, RCU-tasks does not wait for the task. */
static void test_store_to_rcu_tasks_holdout(struct kunit *test)
{
	const u32 offset = offsetof(struct task_struct, rcu_tasks_holdout);
	const struct {
		u8 opcode;
		u32 disp;
		enum insn_run run;
	} cases[] = {
		{ 0xc6, offset, INSN_RUN_STEP },		/* movb $0,disp(%rbx) */
		{ 0x88, offset, INSN_RUN_STEP },		/* mov %al,disp(%rbx) */
		{ 0x8a, offset, INSN_RUN_BOOST },		/* mov disp(%rbx),%al */
		{ 0xc6, offset + 1, INSN_RUN_BOOST },
		{ 0xc6, offset - 1, INSN_RUN_BOOST },
	};

	for (int i = 0; i < ARRAY_SIZE(cases); i++) {
		u8 code[MAX_CODE] = { 0x90, cases[i].opcode, 0x83 };
		int size, step = cases[i].run == INSN_RUN_STEP;
		enum insn_run run;

		put_unaligned_le32(cases[i].disp, code + 3);
		for (int m = 0; m < ARRAY_SIZE(modes); m++) {
			run = analyse(code + 1, MAX_CODE - 1, modes[m]).run;
			KUNIT_EXPECT_EQ_MSG(test, run, cases[i].run, "case %d, %d bits", i,
					    mode_bits(modes[m]));
		}
		size = kprobe_displaced_size(code, MAX_CODE, JMP8_INSN_SIZE, false, false);
		KUNIT_EXPECT_EQ_MSG(test, size == -EILSEQ, step, "case %d: %d", i, size);
	}
}

static noinline void tell_rcu_tasks(void)
{
	cond_resched_tasks_rcu_qs();
}

static void test_store_to_rcu_tasks_holdout_is_found(struct kunit *test)
{
	const u8 *code = (const u8 *)tell_rcu_tasks, *end;
	bool found = false;
	struct insn insn;

	/* To objtool, a constant address in the next function would be one of a branch. */
	OPTIMIZER_HIDE_VAR(code);
	end = code + 256;
	if (IS_ENABLED(CONFIG_CC_IS_CLANG) &&
	    (IS_ENABLED(CONFIG_KASAN) || IS_ENABLED(CONFIG_KCSAN)))
		kunit_skip(test, "the store has another form");
	for (; !found && code < end; code += insn.length) {
		KUNIT_ASSERT_EQ(test, decode(&insn, code, INSN_MODE_KERN), 0);
		found = kprobe_analyse_insn(&insn) == INSN_RUN_STEP;
	}
	KUNIT_EXPECT_TRUE(test, found);
}
#endif

static void test_skipped(struct kunit *test)
{
	check_cases(test, skipped, ARRAY_SIZE(skipped), INSN_MODE_64,
		    INSN_RUN_SKIP, INSN_RUN_SKIP);
	check_cases(test, skipped_32, ARRAY_SIZE(skipped_32), INSN_MODE_32,
		    INSN_RUN_SKIP, INSN_RUN_SKIP);
}

static void test_emulated(struct kunit *test)
{
	check_cases(test, emulated, ARRAY_SIZE(emulated), INSN_MODE_64,
		    INSN_RUN_EMULATE, INSN_RUN_EMULATE);
	check_cases(test, emulated_32, ARRAY_SIZE(emulated_32), INSN_MODE_32,
		    INSN_RUN_EMULATE, INSN_RUN_EMULATE);
}

static void test_refused(struct kunit *test)
{
	check_cases(test, refused, ARRAY_SIZE(refused), INSN_MODE_64,
		    INSN_RUN_NEVER, INSN_RUN_NEVER);
	check_cases(test, refused_32, ARRAY_SIZE(refused_32), INSN_MODE_32,
		    INSN_RUN_NEVER, INSN_RUN_NEVER);
}

/*
 * The results as characters: B boosted, S boosted but stepped for a post handler,
 * K skipped, E emulated, - refused; in the tables below also G: see the groups,
 * and P: a prefix or an escape.
 */
static char result(const u8 *code, int len, enum insn_mode mode)
{
	struct insn_runs runs = analyse(code, len, mode);

	switch (runs.run) {
	case INSN_RUN_BOOST:
		return runs.run_post == INSN_RUN_STEP ? 'S' :
		       runs.run_post == INSN_RUN_BOOST ? 'B' : '?';
	case INSN_RUN_SKIP:
		return runs.run_post == INSN_RUN_SKIP ? 'K' : '?';
	case INSN_RUN_EMULATE:
		return runs.run_post == INSN_RUN_EMULATE ? 'E' : '?';
	case INSN_RUN_NEVER:
		return runs.run_post == INSN_RUN_NEVER ? '-' : '?';
	default:
		return '?';
	}
}

struct opcode_range {
	u8 first, last;
	char result;
};

static const struct opcode_range one_byte_ranges[] = {
	{ 0x00, 0x05, 'B' }, { 0x06, 0x07, '-' }, { 0x08, 0x0d, 'B' }, { 0x0e, 0x0e, '-' },
	{ 0x0f, 0x0f, 'P' }, { 0x10, 0x15, 'B' }, { 0x16, 0x17, '-' }, { 0x18, 0x1d, 'B' },
	{ 0x1e, 0x1f, '-' }, { 0x20, 0x25, 'B' }, { 0x26, 0x26, 'P' }, { 0x27, 0x27, '-' },
	{ 0x28, 0x2d, 'B' }, { 0x2e, 0x2e, 'P' }, { 0x2f, 0x2f, '-' }, { 0x30, 0x35, 'B' },
	{ 0x36, 0x36, 'P' }, { 0x37, 0x37, '-' }, { 0x38, 0x3d, 'B' }, { 0x3e, 0x3e, 'P' },
	{ 0x3f, 0x3f, '-' }, { 0x40, 0x4f, 'P' }, { 0x50, 0x5f, 'B' }, { 0x60, 0x61, '-' },
	{ 0x62, 0x62, 'P' }, { 0x63, 0x63, 'B' }, { 0x64, 0x67, 'P' }, { 0x68, 0x6f, 'B' },
	{ 0x70, 0x7f, 'E' }, { 0x80, 0x81, 'B' }, { 0x82, 0x82, '-' }, { 0x83, 0x8b, 'B' },
	{ 0x8c, 0x8f, 'G' }, { 0x90, 0x90, 'K' }, { 0x91, 0x99, 'B' }, { 0x9a, 0x9a, '-' },
	{ 0x9b, 0x9b, 'B' }, { 0x9c, 0x9d, 'E' }, { 0x9e, 0xc1, 'B' }, { 0xc2, 0xc3, 'E' },
	{ 0xc4, 0xc5, 'P' }, { 0xc6, 0xc7, 'G' }, { 0xc8, 0xc9, 'B' }, { 0xca, 0xcf, '-' },
	{ 0xd0, 0xd3, 'B' }, { 0xd4, 0xd4, '-' }, { 0xd5, 0xd5, 'P' }, { 0xd6, 0xd6, '-' },
	{ 0xd7, 0xdf, 'B' }, { 0xe0, 0xe3, 'E' }, { 0xe4, 0xe7, 'B' }, { 0xe8, 0xe9, 'E' },
	{ 0xea, 0xea, '-' }, { 0xeb, 0xeb, 'E' }, { 0xec, 0xef, 'B' }, { 0xf0, 0xf0, 'P' },
	{ 0xf1, 0xf1, '-' }, { 0xf2, 0xf3, 'P' }, { 0xf4, 0xf4, 'K' }, { 0xf5, 0xf9, 'B' },
	{ 0xfa, 0xfa, 'E' }, { 0xfb, 0xfb, 'G' }, { 0xfc, 0xfd, 'B' }, { 0xfe, 0xff, 'G' },
};

/* LES, LDS and BOUND, or VEX and EVEX, depend on the next byte. */
static const struct opcode_range one_byte_ranges_32[] = {
	{ 0x00, 0x06, 'B' }, { 0x07, 0x07, 'S' }, { 0x08, 0x0e, 'B' }, { 0x0f, 0x0f, 'P' },
	{ 0x10, 0x16, 'B' }, { 0x17, 0x17, '-' }, { 0x18, 0x1e, 'B' }, { 0x1f, 0x1f, 'S' },
	{ 0x20, 0x25, 'B' }, { 0x26, 0x26, 'P' }, { 0x27, 0x2d, 'B' }, { 0x2e, 0x2e, 'P' },
	{ 0x2f, 0x35, 'B' }, { 0x36, 0x36, 'P' }, { 0x37, 0x3d, 'B' }, { 0x3e, 0x3e, 'P' },
	{ 0x3f, 0x61, 'B' }, { 0x62, 0x62, 'P' }, { 0x63, 0x63, 'B' }, { 0x64, 0x67, 'P' },
	{ 0x68, 0x6f, 'B' }, { 0x70, 0x7f, 'E' }, { 0x80, 0x8b, 'B' }, { 0x8c, 0x8f, 'G' },
	{ 0x90, 0x90, 'K' }, { 0x91, 0x99, 'B' }, { 0x9a, 0x9a, '-' }, { 0x9b, 0x9b, 'B' },
	{ 0x9c, 0x9d, 'E' }, { 0x9e, 0xc1, 'B' }, { 0xc2, 0xc3, 'E' }, { 0xc4, 0xc5, 'P' },
	{ 0xc6, 0xc7, 'G' }, { 0xc8, 0xc9, 'B' }, { 0xca, 0xcf, '-' }, { 0xd0, 0xd5, 'B' },
	{ 0xd6, 0xd6, '-' }, { 0xd7, 0xdf, 'B' }, { 0xe0, 0xe3, 'E' }, { 0xe4, 0xe7, 'B' },
	{ 0xe8, 0xe9, 'E' }, { 0xea, 0xea, '-' }, { 0xeb, 0xeb, 'E' }, { 0xec, 0xef, 'B' },
	{ 0xf0, 0xf0, 'P' }, { 0xf1, 0xf1, '-' }, { 0xf2, 0xf3, 'P' }, { 0xf4, 0xf4, 'K' },
	{ 0xf5, 0xf9, 'B' }, { 0xfa, 0xfa, 'E' }, { 0xfb, 0xfb, 'G' }, { 0xfc, 0xfd, 'B' },
	{ 0xfe, 0xff, 'G' },
};

/*
 * Opcodes that take a mandatory prefix, or VEX, are refused without it. Both modes have
 * the same two-byte opcodes.
 */
static const struct opcode_range two_byte_ranges[] = {
	{ 0x00, 0x01, 'G' }, { 0x02, 0x03, 'B' }, { 0x04, 0x05, '-' }, { 0x06, 0x06, 'S' },
	{ 0x07, 0x07, '-' }, { 0x08, 0x09, 'B' }, { 0x0a, 0x0c, '-' }, { 0x0d, 0x18, 'B' },
	{ 0x19, 0x19, '-' }, { 0x1a, 0x1c, 'B' }, { 0x1d, 0x1d, '-' }, { 0x1e, 0x1e, 'G' },
	{ 0x1f, 0x1f, 'K' }, { 0x20, 0x23, 'G' }, { 0x24, 0x27, '-' }, { 0x28, 0x2f, 'B' },
	{ 0x30, 0x30, 'S' }, { 0x31, 0x33, 'B' }, { 0x34, 0x37, '-' }, { 0x38, 0x38, 'P' },
	{ 0x39, 0x39, '-' }, { 0x3a, 0x3a, 'P' }, { 0x3b, 0x3f, '-' }, { 0x40, 0x6b, 'B' },
	{ 0x6c, 0x6d, '-' }, { 0x6e, 0x79, 'B' }, { 0x7a, 0x7d, '-' }, { 0x7e, 0x7f, 'B' },
	{ 0x80, 0x8f, 'E' }, { 0x90, 0xa0, 'B' }, { 0xa1, 0xa1, 'S' }, { 0xa2, 0xa8, 'B' },
	{ 0xa9, 0xaa, '-' }, { 0xab, 0xad, 'B' }, { 0xae, 0xae, 'G' }, { 0xaf, 0xb1, 'B' },
	{ 0xb2, 0xb2, '-' }, { 0xb3, 0xb3, 'B' }, { 0xb4, 0xb4, 'S' }, { 0xb5, 0xb5, '-' },
	{ 0xb6, 0xb7, 'B' }, { 0xb8, 0xb9, '-' }, { 0xba, 0xba, 'G' }, { 0xbb, 0xc6, 'B' },
	{ 0xc7, 0xc7, 'G' }, { 0xc8, 0xcf, 'B' }, { 0xd0, 0xd0, '-' }, { 0xd1, 0xd5, 'B' },
	{ 0xd6, 0xd6, '-' }, { 0xd7, 0xe5, 'B' }, { 0xe6, 0xe6, '-' }, { 0xe7, 0xef, 'B' },
	{ 0xf0, 0xf0, '-' }, { 0xf1, 0xfe, 'B' }, { 0xff, 0xff, '-' },
};

static void check_ranges(struct kunit *test, const struct opcode_range *range, bool two_byte,
			 enum insn_mode mode)
{
	u8 code[MAX_CODE] = { 0x0f };
	int op, next;

	for (op = 0; op < 256; op++) {
		if (op > range->last)
			range++;
		KUNIT_ASSERT_TRUE(test, range->first <= op && op <= range->last);
		if (range->result == 'G' || range->result == 'P')
			continue;

		code[two_byte] = op;
		for (next = 0; next < 256; next++) {
			code[two_byte + 1] = next;
			KUNIT_EXPECT_EQ_MSG(test, result(code, MAX_CODE, mode), range->result,
					    "%*ph, %d bits", two_byte + 2, code,
					    mode_bits(mode));
		}
	}
}

/* An instruction of AMD that only newer kernels decode. Others take it for an invalid POP. */
static void test_xop(struct kunit *test)
{
	static const u8 vprotb[MAX_CODE] = { 0x8f, 0xe8, 0x78, 0xc0, 0xc1, 0x01 };
	struct insn insn;

	KUNIT_ASSERT_EQ(test, decode(&insn, vprotb, INSN_MODE_64), 0);
	KUNIT_EXPECT_EQ(test, kprobe_analyse_insn(&insn),
			insn.vex_prefix.nbytes ? INSN_RUN_BOOST : INSN_RUN_NEVER);
	KUNIT_EXPECT_EQ(test, insn.length, insn.vex_prefix.nbytes ? 6 : 2);
}

static void test_every_opcode(struct kunit *test)
{
	check_ranges(test, one_byte_ranges, false, INSN_MODE_64);
	check_ranges(test, one_byte_ranges_32, false, INSN_MODE_32);
	check_ranges(test, two_byte_ranges, true, INSN_MODE_64);
	check_ranges(test, two_byte_ranges, true, INSN_MODE_32);
}

/* In 32-bit mode BOUND, LES and LDS with a register operand are prefixes, EVEX and VEX. */
static void test_vex_or_not(struct kunit *test)
{
	int modrm;

	for (modrm = 0; modrm < 0xc0; modrm++) {
		u8 bound[MAX_CODE] = { 0x62, modrm };
		u8 les[MAX_CODE] = { 0xc4, modrm }, lds[MAX_CODE] = { 0xc5, modrm };

		KUNIT_EXPECT_EQ_MSG(test, result(bound, MAX_CODE, INSN_MODE_32), 'B', "%x", modrm);
		KUNIT_EXPECT_EQ_MSG(test, result(les, MAX_CODE, INSN_MODE_32), 'S', "%x", modrm);
		KUNIT_EXPECT_EQ_MSG(test, result(lds, MAX_CODE, INSN_MODE_32), 'S', "%x", modrm);
	}
}

/* By ModRM.reg, eight results for operands in memory and eight for registers. */
static const struct group_case {
	u16 opcode;
	u8 prefix;
	char memory[8 + 1];
	char reg[8 + 1];
} group_cases[] = {
	{ 0x8c, 0, "BBBBBB--", "BBBBBB--" },
	{ 0x8d, 0, "BBBBBBBB", "--------" },
	{ 0x8e, 0, "S--SS---", "S--SS---" },
	{ 0x8f, 0, "B-------", "B-------" },
	{ 0xc6, 0, "B-------", "B------B" },
	{ 0xc7, 0, "B-------", "B-------" },
	{ 0xfe, 0, "BB------", "BB------" },
	{ 0xff, 0, "BBE-E-B-", "BBE-E-B-" },
	{ 0xff, 0x66, "BB----B-", "BB----B-" },
	{ 0x0f00, 0, "BBSSBB--", "BBSSBB--" },
	{ 0x0f00, 0xf2, "------S-", "------S-" },
	{ 0x0f1e, 0, "BBBBBBBB", "BBBBBBBB" },
	{ 0x0f20, 0, "--------", "B-BBB---" },
	{ 0x0f21, 0, "--------", "BBBBBBBB" },
	{ 0x0f22, 0, "--------", "S-SSS---" },
	{ 0x0f23, 0, "--------", "SSSSSSSS" },
	{ 0x0fae, 0, "BBBBBBBB", "-----BBB" },
	{ 0x0fae, 0x66, "------BB", "------E-" },
	{ 0x0fae, 0xf2, "--------", "------E-" },
	{ 0x0fae, 0xf3, "----B-B-", "BBS-BBB-" },
	{ 0x0fba, 0, "----BBBB", "----BBBB" },
	{ 0x0fc7, 0, "-B-BBBBB", "------BB" },
	{ 0x0fc7, 0x66, "-B-BBBBB", "------BB" },
	{ 0x0fc7, 0xf3, "-B----B-", "-------B" },
};

static void check_groups(struct kunit *test, enum insn_mode mode)
{
	const struct group_case *g;
	int modrm;

	for (g = group_cases; g < group_cases + ARRAY_SIZE(group_cases); g++) {
		for (modrm = 0; modrm < 256; modrm++) {
			u8 code[MAX_CODE] = {}, *p = code;
			const char *want = modrm < 0xc0 ? g->memory : g->reg;

			if (g->prefix)
				*p++ = g->prefix;
			if (g->opcode >= 0x100)
				*p++ = 0x0f;
			*p++ = g->opcode;
			*p = modrm;
			KUNIT_EXPECT_EQ_MSG(test, result(code, MAX_CODE, mode),
					    want[X86_MODRM_REG(modrm)], "%*ph, %d bits", 5, code,
					    mode_bits(mode));
		}
	}
}

static void test_every_group(struct kunit *test)
{
	check_groups(test, INSN_MODE_32);
	check_groups(test, INSN_MODE_64);
}

/* 0f 01: by ModRM.reg with a memory operand, by the whole ModRM without. */
static void check_group_7(struct kunit *test, u8 prefix, const char *memory, const char (*reg)[9])
{
	u8 code[MAX_CODE] = { prefix, 0x0f, 0x01 };
	int modrm, i;

	for (modrm = 0; modrm < 256; modrm++) {
		char want = modrm < 0xc0 ? memory[X86_MODRM_REG(modrm)] :
			    reg[X86_MODRM_REG(modrm)][X86_MODRM_RM(modrm)];

		code[3] = modrm;
		for (i = 0; i < ARRAY_SIZE(modes); i++)
			KUNIT_EXPECT_EQ_MSG(test, result(code, MAX_CODE, modes[i]), want,
					    "%*ph, %d bits", 4, code, mode_bits(modes[i]));
	}
}

static void test_group_7(struct kunit *test)
{
	static const char without[8][9] = {
		"-B--BBSB", "BKBBB---", "BS---BB-", "-B-B---B",
		"BBBBBBBB", "BBB--BBB", "SSSSSSSS", "-BBKBBBB",
	};
	static const char opsize[8][9] = {
		"-B--BBSB", "B-BBB---", "BS---BB-", "-B-B---B",
		"BBBBBBBB", "BBB--BBB", "SSSSSSSS", "-BB-BBBB",
	};
	static const char rep[8][9] = {
		"-B--BBSB", "--------", "BS---BB-", "-B-B---B",
		"BBBBBBBB", "BBB--BBB", "SSSSSSSS", "-BB-BBBB",
	};

	check_group_7(test, 0x2e, "BBSSB-SB", without);
	check_group_7(test, 0x66, "BBSSB-SB", opsize);
	check_group_7(test, 0xf2, "--------", rep);
	check_group_7(test, 0xf3, "-----B--", rep);
}

/* NOPs with a hint, among which F3 makes ENDBR and RDSSP. */
static void test_hints(struct kunit *test)
{
	u8 code[MAX_CODE] = { 0xf3, 0x0f, 0x1e };
	int modrm, i;

	for (modrm = 0; modrm < 256; modrm++) {
		char want = modrm < 0xf8 ? 'B' : modrm == 0xfa || modrm == 0xfb ? 'K' : '-';

		code[3] = modrm;
		for (i = 0; i < ARRAY_SIZE(modes); i++)
			KUNIT_EXPECT_EQ_MSG(test, result(code, MAX_CODE, modes[i]), want,
					    "%*ph, %d bits", 4, code, mode_bits(modes[i]));
	}
}

static bool is_ordinary(const u8 *code)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(modes); i++) {
		char r = result(code, MAX_CODE, modes[i]);

		if (r != 'B' && r != '-')
			return false;
	}
	return true;
}

/* In the other maps an opcode may look like that of a branch, and be none. */
static void test_other_maps(struct kunit *test)
{
	static const u8 prefixes[] = { 0x2e, 0x66, 0xf2, 0xf3 };
	int op, map, i;

	for (op = 0; op < 256; op++) {
		for (i = 0; i < 4; i++) {
			u8 code_38[MAX_CODE] = { prefixes[i], 0x0f, 0x38, op, 0xc8 };
			u8 code_3a[MAX_CODE] = { prefixes[i], 0x0f, 0x3a, op, 0xc8 };

			KUNIT_EXPECT_TRUE_MSG(test, is_ordinary(code_38), "%*ph", 5, code_38);
			KUNIT_EXPECT_TRUE_MSG(test, is_ordinary(code_3a), "%*ph", 5, code_3a);

			for (map = 1; map < 8; map++) {
				u8 vex[MAX_CODE] = { 0xc4, 0xe0 | map, 0x78 | i, op, 0xc8 };
				u8 evex[MAX_CODE] = { 0x62, 0xf0 | map, 0x7c | i, 8, op, 0xc8 };

				KUNIT_EXPECT_TRUE_MSG(test, is_ordinary(vex), "%*ph", 5, vex);
				KUNIT_EXPECT_TRUE_MSG(test, is_ordinary(evex), "%*ph", 6, evex);
			}
		}
	}
}

/* STI is refused where it cannot be seen what follows, and that is all that is read. */
static void test_sti_at_the_end(struct kunit *test)
{
	static const u8 code[] = { 0xfb, 0x66, 0x0f, 0x1f, 0x44 };
	u8 *page = vmalloc(PAGE_SIZE), *end = page + PAGE_SIZE;
	int len, i;

	KUNIT_ASSERT_NOT_NULL(test, page);
	for (len = 1; len <= sizeof(code); len++) {
		memcpy(end - len, code, len);
		for (i = 0; i < ARRAY_SIZE(modes); i++)
			KUNIT_EXPECT_EQ_MSG(test, result(end - len, len, modes[i]),
					    len < 5 ? '-' : 'E', "%d bytes", len);
	}
	vfree(page);
}

/* Emulation. kprobe_emulate_insn() runs code of the kernel's own mode. */

/* Offsets of the registers, by their numbers in instructions: not the table of emulate.c. */
static const size_t gprs[] = {
	offsetof(struct pt_regs, ax), offsetof(struct pt_regs, cx),
	offsetof(struct pt_regs, dx), offsetof(struct pt_regs, bx),
	offsetof(struct pt_regs, sp), offsetof(struct pt_regs, bp),
	offsetof(struct pt_regs, si), offsetof(struct pt_regs, di),
#ifdef CONFIG_X86_64
	offsetof(struct pt_regs, r8), offsetof(struct pt_regs, r9),
	offsetof(struct pt_regs, r10), offsetof(struct pt_regs, r11),
	offsetof(struct pt_regs, r12), offsetof(struct pt_regs, r13),
	offsetof(struct pt_regs, r14), offsetof(struct pt_regs, r15),
#endif
};

static unsigned long *gpr(struct pt_regs *regs, int num)
{
	return (void *)regs + gprs[num];
}

/* Write a REX prefix in 64-bit mode only. Returns where the next byte belongs. */
static u8 *put_rex(u8 *p, u8 rex)
{
	if (IS_ENABLED(CONFIG_X86_64))
		*p++ = rex;
	return p;
}

static unsigned long stack[192] __aligned(8);

/* A word of the stack after memset(stack, 0x42, sizeof(stack)). */
#define UNTOUCHED	(-1UL / 0xff * 0x42)

/* What is not set by the test is an address that is not canonical, or is a user's. */
static void init_regs(struct pt_regs *regs)
{
	memset(regs, 0x42, sizeof(*regs));
	regs->ip = CODE;
	regs->sp = (unsigned long)&stack[64];
	regs->flags = FLAGS;
}

static bool emulate(struct kunit *test, struct pt_regs *regs, const u8 *code)
{
	struct insn_emulation emul;
	struct insn insn;
	bool done;

	KUNIT_ASSERT_EQ(test, decode(&insn, code, INSN_MODE_KERN), 0);
	KUNIT_ASSERT_EQ(test, kprobe_prepare_emulation(&emul, &insn), 0);
	scoped_guard(preempt)
		done = kprobe_emulate_insn(&emul, regs);
	if (!done)
		KUNIT_EXPECT_TRUE(test, emulation_can_fail(&emul));
	return done;
}

/* Emulation of @insn turns @regs into @want. */
static void expect_emulated(struct kunit *test, struct pt_regs *regs, const struct pt_regs *want,
			    struct insn_case insn)
{
	KUNIT_EXPECT_TRUE_MSG(test, emulate(test, regs, insn.code), "%s", insn.text);
	KUNIT_EXPECT_MEMEQ_MSG(test, regs, want, sizeof(*regs), "%s", insn.text);
}

#define NATIVE_CONDITION(cc)								\
static bool native_##cc(unsigned long flags)						\
{											\
	bool taken;									\
											\
	asm volatile("push %[flags]\n\tpopf\n\tset" #cc " %[taken]"			\
		     : [taken] "=q" (taken) : [flags] "r" (flags) : "cc", "memory");	\
	return taken;									\
}

NATIVE_CONDITION(o)
NATIVE_CONDITION(no)
NATIVE_CONDITION(b)
NATIVE_CONDITION(ae)
NATIVE_CONDITION(e)
NATIVE_CONDITION(ne)
NATIVE_CONDITION(be)
NATIVE_CONDITION(a)
NATIVE_CONDITION(s)
NATIVE_CONDITION(ns)
NATIVE_CONDITION(p)
NATIVE_CONDITION(np)
NATIVE_CONDITION(l)
NATIVE_CONDITION(ge)
NATIVE_CONDITION(le)
NATIVE_CONDITION(g)

static bool (*const native_conditions[])(unsigned long flags) = {
	native_o, native_no, native_b, native_ae, native_e, native_ne, native_be, native_a,
	native_s, native_ns, native_p, native_np, native_l, native_ge, native_le, native_g,
};

/* The status flags, one by one bit of @n. */
static unsigned long nth_flags(int n)
{
	return FLAGS |
	       (n & 1 ? X86_EFLAGS_CF : 0) | (n & 2 ? X86_EFLAGS_PF : 0) |
	       (n & 4 ? X86_EFLAGS_AF : 0) | (n & 8 ? X86_EFLAGS_ZF : 0) |
	       (n & 16 ? X86_EFLAGS_SF : 0) | (n & 32 ? X86_EFLAGS_OF : 0);
}

static void test_conditions(struct kunit *test)
{
	int cond, n;

	for (cond = 0; cond < 16; cond++) {
		u8 jcc8[MAX_CODE] = { 0x70 | cond, 0xfe - 0x10 };
		u8 jcc32[MAX_CODE] = { 0x0f, 0x80 | cond, 0x00, 0x10, 0x00, 0x00 };

		for (n = 0; n < 64; n++) {
			bool taken = native_conditions[cond](nth_flags(n));
			struct pt_regs regs, want;

			init_regs(&regs);
			regs.flags = nth_flags(n);
			want = regs;
			want.ip += taken ? -0x10 : 2;
			KUNIT_EXPECT_TRUE(test, emulate(test, &regs, jcc8));
			KUNIT_EXPECT_MEMEQ_MSG(test, &regs, &want, sizeof(regs),
					       "j%x, flags %lx", cond, regs.flags);

			regs.ip = CODE;
			want.ip = CODE + 6 + (taken ? 0x1000 : 0);
			KUNIT_EXPECT_TRUE(test, emulate(test, &regs, jcc32));
			KUNIT_EXPECT_MEMEQ_MSG(test, &regs, &want, sizeof(regs),
					       "near j%x, flags %lx", cond, regs.flags);
		}
	}
}

#define NATIVE_COUNT(name, insn)							\
static bool native_##name(unsigned long *count, unsigned long flags)			\
{											\
	bool taken = true;								\
											\
	asm volatile("push %[flags]\n\tpopf\n\t" insn " 1f\n\t"				\
		     "movb $0, %[taken]\n1:"						\
		     : [taken] "+q" (taken), "+c" (*count)				\
		     : [flags] "r" (flags) : "cc", "memory");				\
	return taken;									\
}

NATIVE_COUNT(loopne, "loopne")
NATIVE_COUNT(loope, "loope")
NATIVE_COUNT(loop, "loop")
NATIVE_COUNT(jecxz, "jecxz")
#ifdef CONFIG_X86_64
NATIVE_COUNT(jrcxz, "jrcxz")
NATIVE_COUNT(loopnel, "addr32 loopne")
NATIVE_COUNT(loopel, "addr32 loope")
NATIVE_COUNT(loopl, "addr32 loop")
#endif

static const struct count_case {
	const char *text;
	u8 code[MAX_CODE];
	int size;
	bool (*native)(unsigned long *count, unsigned long flags);
} count_cases[] = {
	{ "loopne .+0x12", { 0xe0, 0x10 }, 2, native_loopne },
	{ "loope .-0x7e", { 0xe1, 0x80 }, 2, native_loope },
	{ "loop .+0x12", { 0xe2, 0x10 }, 2, native_loop },
#ifdef CONFIG_X86_64
	{ "jrcxz .+0x81", { 0xe3, 0x7f }, 2, native_jrcxz },
	{ "addr32 loopne .+0x13", { 0x67, 0xe0, 0x10 }, 3, native_loopnel },
	{ "addr32 loope .-0x7d", { 0x67, 0xe1, 0x80 }, 3, native_loopel },
	{ "addr32 loop .+0x13", { 0x67, 0xe2, 0x10 }, 3, native_loopl },
	{ "jecxz .+0x82", { 0x67, 0xe3, 0x7f }, 3, native_jecxz },
#else
	{ "jecxz .+0x81", { 0xe3, 0x7f }, 2, native_jecxz },
	{ "jecxz .-0x7e", { 0xe3, 0x80 }, 2, native_jecxz },
#endif
};

static void check_count(struct kunit *test, const struct count_case *c, unsigned long count,
			unsigned long flags)
{
	struct pt_regs regs, want;

	init_regs(&regs);
	regs.cx = count;
	regs.flags = flags;

	want = regs;
	want.ip += c->size;
	if (c->native(&want.cx, flags))
		want.ip += (s8)c->code[c->size - 1];

	KUNIT_EXPECT_TRUE(test, emulate(test, &regs, c->code));
	KUNIT_EXPECT_MEMEQ_MSG(test, &regs, &want, sizeof(regs), "%s, count %lx, flags %lx",
			       c->text, count, flags);
}

static void test_counts(struct kunit *test)
{
	static const u64 counts[] = {
		0, 1, 2, 0x10000, 0x10001, 0x80000000, 0xffffffff,
		0x100000000, 0x100000001, 0x100000002,
		0x7fffffff00000000, 0xffffffff00000001, -1ULL,
	};
	size_t i, j;
	int n;

	for (i = 0; i < ARRAY_SIZE(count_cases); i++)
		for (j = 0; j < ARRAY_SIZE(counts); j++)
			for (n = 0; n < 64; n++)
				check_count(test, &count_cases[i], counts[j], nth_flags(n));
}

static void test_jumps_and_calls(struct kunit *test)
{
	struct pt_regs regs, want;

	init_regs(&regs);
	want = regs;

	want.ip += 2 + 0x7f;
	expect_emulated(test, &regs, &want, INSN("jmp .+0x81", 0xeb, 0x7f));
	want.ip += 2 - 0x80;
	expect_emulated(test, &regs, &want, INSN("jmp .-0x7e", 0xeb, 0x80));
	want.ip += 5 + 0x12345678;
	expect_emulated(test, &regs, &want,
			INSN("jmp .+0x1234567d", 0xe9, 0x78, 0x56, 0x34, 0x12));
	want.ip += 6 - 0x1000;
	expect_emulated(test, &regs, &want,
			INSN("cs jmp .-0xffa", 0x2e, 0xe9, 0x00, 0xf0, 0xff, 0xff));

	memset(stack, 0x42, sizeof(stack));
	want.sp -= WORD;
	want.ip += 5 - 0x12345678;
	expect_emulated(test, &regs, &want,
			INSN("call .-0x12345673", 0xe8, 0x88, 0xa9, 0xcb, 0xed));
	KUNIT_EXPECT_EQ(test, stack[63], want.ip + 0x12345678);
	KUNIT_EXPECT_EQ(test, stack[62], UNTOUCHED);
	KUNIT_EXPECT_EQ(test, stack[64], UNTOUCHED);
}

static void test_returns(struct kunit *test)
{
	struct pt_regs regs, want;

	init_regs(&regs);
	want = regs;
	stack[64] = CODE + 0x100;
	stack[65] = CODE + 0x200;
	stack[66 + 0x180 / WORD] = CODE + 0x300;

	want.ip = CODE + 0x100;
	want.sp += WORD;
	expect_emulated(test, &regs, &want, INSN("ret", 0xc3));
	want.ip = CODE + 0x200;
	want.sp += WORD + 0x180;
	expect_emulated(test, &regs, &want, INSN("ret $0x180", 0xc2, 0x80, 0x01));
	want.ip = CODE + 0x300;
	want.sp += WORD + 0xfff0;
	expect_emulated(test, &regs, &want, INSN("ret $0xfff0", 0xc2, 0xf0, 0xff));
}

/* Emulation of @code fails and changes nothing. */
static void expect_failure(struct kunit *test, struct pt_regs *regs, const u8 *code)
{
	struct pt_regs want = *regs;

	memset(stack, 0x42, sizeof(stack));
	KUNIT_EXPECT_FALSE_MSG(test, emulate(test, regs, code), "%*ph", 5, code);
	KUNIT_EXPECT_MEMEQ_MSG(test, regs, &want, sizeof(*regs), "%*ph", 5, code);
	KUNIT_EXPECT_NULL(test, memchr_inv(stack, 0x42, sizeof(stack)));
}

static const unsigned long unusable[] = {
	0,			/* the user's half */
	0x8048000,
	UNTOUCHED,
#ifdef CONFIG_X86_64
	0x0000555555554000,
	0x0000800000000000,	/* with four levels of page tables, and without */
	0x0100000000000000,
	0xfeffffffffffffff,
#else
	TASK_SIZE_MAX - 1,
#endif
};

static void test_unusable_targets(struct kunit *test)
{
	static const u8 jmp_reg[MAX_CODE] = { 0xff, 0xe0 }, call_reg[MAX_CODE] = { 0xff, 0xd0 };
	static const u8 jmp_mem[MAX_CODE] = { 0xff, 0x20 }, call_mem[MAX_CODE] = { 0xff, 0x10 };
	static const u8 ret[MAX_CODE] = { 0xc3 }, ret_imm[MAX_CODE] = { 0xc2, 0x08, 0x00 };
	static unsigned long target;
	struct pt_regs regs;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(unusable); i++) {
		init_regs(&regs);
		regs.ax = unusable[i];
		expect_failure(test, &regs, jmp_reg);
		expect_failure(test, &regs, call_reg);

		target = unusable[i];
		regs.ax = (unsigned long)&target;
		expect_failure(test, &regs, jmp_mem);
		expect_failure(test, &regs, call_mem);

		regs.sp = (unsigned long)&target;
		expect_failure(test, &regs, ret);
		expect_failure(test, &regs, ret_imm);
	}
}

static void test_unreadable_memory(struct kunit *test)
{
	static const u8 jmp[MAX_CODE] = { 0xff, 0x20 }, call[MAX_CODE] = { 0xff, 0x10 };
	/* i386 has no vsyscall page. */
	unsigned long vsyscall = IS_ENABLED(CONFIG_X86_64) ? VSYSCALL_ADDR : -PAGE_SIZE;
	unsigned long unmapped[] = { -PAGE_SIZE, -WORD + 1, 0, vsyscall, vsyscall - WORD + 1 };
	void *page = vmalloc(PAGE_SIZE);
	struct pt_regs regs;
	size_t i;

	KUNIT_ASSERT_NOT_NULL(test, page);
	unmapped[2] = (unsigned long)page + PAGE_SIZE;

	init_regs(&regs);
	for (i = 0; i < ARRAY_SIZE(unusable); i++) {
		regs.ax = unusable[i];
		expect_failure(test, &regs, jmp);
		expect_failure(test, &regs, call);
	}
	for (i = 0; i < ARRAY_SIZE(unmapped); i++) {
		regs.ax = unmapped[i];
		expect_failure(test, &regs, jmp);
		expect_failure(test, &regs, call);
	}
	vfree(page);
}

static void test_register_targets(struct kunit *test)
{
	struct pt_regs regs, want;
	int num;

	for (num = 0; num < ARRAY_SIZE(gprs); num++) {
		u8 jmp[MAX_CODE] = { }, *jmp_op = put_rex(jmp, 0x40 | num >> 3);
		u8 call[MAX_CODE] = { }, *call_op = put_rex(call, 0x48 | num >> 3);

		jmp_op[0] = 0xff;
		jmp_op[1] = 0xe0 | (num & 7);
		call_op[0] = 0xff;
		call_op[1] = 0xd0 | (num & 7);

		init_regs(&regs);
		*gpr(&regs, num) = (unsigned long)&stack[32];
		want = regs;
		want.ip = (unsigned long)&stack[32];
		KUNIT_EXPECT_TRUE(test, emulate(test, &regs, jmp));
		KUNIT_EXPECT_MEMEQ_MSG(test, &regs, &want, sizeof(regs), "jmp *%%%d", num);

		/* Of the stack pointer it is the value before the push. */
		regs.ip = CODE;
		want.sp -= WORD;
		KUNIT_EXPECT_TRUE(test, emulate(test, &regs, call));
		KUNIT_EXPECT_MEMEQ_MSG(test, &regs, &want, sizeof(regs), "call *%%%d", num);
		KUNIT_EXPECT_EQ_MSG(test, *(unsigned long *)regs.sp,
				    CODE + (call_op + 2 - call), "call *%%%d", num);
	}
}

/*
 * A memory operand, read from its encoding as tables 2-2 and 2-3 of the SDM say. A
 * displacement alone is relative to ip in 64-bit mode.
 */
struct operand {
	int base, index;	/* the number of a register or -1 */
	int scale;
	int disp_size;
	bool rip;
};

static struct operand read_operand(u8 rex, u8 modrm, u8 sib)
{
	int mod = modrm >> 6, rm = modrm & 7, rex_b = rex & 1 ? 8 : 0, rex_x = rex & 2 ? 8 : 0;
	struct operand op = {
		.base = rm | rex_b,
		.index = -1,
		.disp_size = mod == 1 ? 1 : mod == 2 ? 4 : 0,
	};

	if (rm == 4) {
		op.base = (sib & 7) | rex_b;
		op.index = ((sib >> 3) & 7) | rex_x;
		op.scale = 1 << (sib >> 6);
		if (op.index == 4)
			op.index = -1;
	}
	if (mod == 0 && (rm == 5 || (rm == 4 && (sib & 7) == 5))) {
		op.rip = rm == 5 && IS_ENABLED(CONFIG_X86_64);
		op.base = -1;
		op.disp_size = 4;
	}
	return op;
}

/* Load the registers of @op so that it refers to @addr; return the displacement for that. */
static s32 aim(struct pt_regs *regs, const struct operand *op, unsigned long addr)
{
	s32 disp = op->disp_size == 4 ? -0x88 : op->disp_size == 1 ? 0x28 : 0;

	if (op->rip) {
		regs->ip = addr + 0x1000;
		return -0x1007;	/* from after the instruction, which has 7 bytes */
	}

	if (op->base >= 0 && op->base == op->index) {
		*gpr(regs, op->base) = addr / (1 + op->scale);
		return addr % (1 + op->scale);
	}

	if (op->index >= 0)
		*gpr(regs, op->index) = op->base < 0 ? (addr - disp) / op->scale : 3;

	if (op->base >= 0)
		*gpr(regs, op->base) = addr - disp - (op->index < 0 ? 0 : 3 * op->scale);
	else if (op->index < 0)
		disp = addr;
	return disp;
}

/* JMP or CALL, /@reg, to what the operand of @rex, if any, @modrm and @sib contains. */
static void check_operand(struct kunit *test, u8 rex, u8 modrm, u8 sib, int reg)
{
	struct operand op = read_operand(rex, modrm, sib);
	unsigned long *slot = &stack[64];
	u8 code[MAX_CODE] = { }, *p = put_rex(code, rex);
	struct pt_regs regs, want;
	s32 disp;

	init_regs(&regs);
	regs.sp = (unsigned long)&stack[32];
	disp = aim(&regs, &op, (unsigned long)slot);
	if (!op.disp_size && disp)
		return;	/* cannot hit it, when base and index are the same register */

	*p++ = 0xff;
	*p++ = modrm | reg << 3;
	if ((modrm & 7) == 4)
		*p++ = sib;
	memcpy(p, &disp, op.disp_size);
	p += op.disp_size;

	memset(stack, 0, sizeof(stack));
	*slot = CODE + 0x100;
	want = regs;
	want.ip = CODE + 0x100;
	want.sp -= reg == 2 ? WORD : 0;
	KUNIT_EXPECT_TRUE_MSG(test, emulate(test, &regs, code), "%*ph", 9, code);
	KUNIT_EXPECT_MEMEQ_MSG(test, &regs, &want, sizeof(regs), "%*ph", 9, code);
	if (reg == 2)
		KUNIT_EXPECT_EQ_MSG(test, *(unsigned long *)regs.sp,
				    (op.rip ? (unsigned long)slot + 0x1000 : CODE) + (p - code),
				    "%*ph", 9, code);
}

static void check_operands(struct kunit *test, u8 rex)
{
	int mod, rm, sib;

	for (mod = 0; mod < 3; mod++)
		for (rm = 0; rm < 8; rm++)
			for (sib = 0; sib < (rm == 4 ? 256 : 1); sib++) {
				check_operand(test, rex, mod << 6 | rm, sib, 4);
				check_operand(test, rex, mod << 6 | rm, sib, 2);
			}
}

static void test_every_operand(struct kunit *test)
{
	int rex;

	if (IS_ENABLED(CONFIG_X86_32))
		return check_operands(test, 0);
	for (rex = 0x40; rex < 0x50; rex++)
		check_operands(test, rex);
}

static unsigned long native_popf(unsigned long value)
{
	unsigned long result;

	asm volatile("pushf\n\tpush %[value]\n\tpopf\n\tpushf\n\tpop %[result]\n\tpopf"
		     : [result] "=&r" (result) : [value] "r" (value) : "cc", "memory");
	return result;
}

static void test_popf(struct kunit *test)
{
	static const u8 popf[MAX_CODE] = { 0x9d };
	struct pt_regs regs, want;
	int bit;

	/* Bit by bit, but not TF; then none, then all. */
	for (bit = 0; bit < BITS_PER_LONG + 2; bit++) {
		unsigned long value = bit < BITS_PER_LONG ? BIT(bit) :
				      bit == BITS_PER_LONG ? 0 : -1UL;

		value &= ~X86_EFLAGS_TF;
		init_regs(&regs);
		regs.flags = native_popf(FLAGS);
		stack[64] = value;
		want = regs;
		want.ip += 1;
		want.sp += WORD;
		want.flags = native_popf(value);
		KUNIT_EXPECT_TRUE(test, emulate(test, &regs, popf));
		KUNIT_EXPECT_MEMEQ_MSG(test, &regs, &want, sizeof(regs), "%lx becomes %lx, not %lx",
				       value, regs.flags, want.flags);
	}

	/* RF is cleared, VM, VIF and VIP stay. */
	init_regs(&regs);
	regs.flags |= X86_EFLAGS_RF | X86_EFLAGS_VIF;
	stack[64] = X86_EFLAGS_RF | X86_EFLAGS_VM | X86_EFLAGS_VIP | X86_EFLAGS_TF;
	want = regs;
	want.ip += 1;
	want.sp += WORD;
	want.flags = X86_EFLAGS_FIXED | X86_EFLAGS_VIF | X86_EFLAGS_TF;
	expect_emulated(test, &regs, &want, INSN("popf", 0x9d));
}

static void test_pushf(struct kunit *test)
{
	struct pt_regs regs, want;

	init_regs(&regs);
	regs.flags = native_popf(FLAGS | X86_EFLAGS_CF | X86_EFLAGS_DF);
	want = regs;
	want.ip += 1;
	want.sp -= WORD;
	expect_emulated(test, &regs, &want, INSN("pushf", 0x9c));
	KUNIT_EXPECT_EQ(test, stack[63], regs.flags);

	regs.flags = -1UL & ~X86_EFLAGS_FIXED;
	want = regs;
	want.ip += 1;
	want.sp -= WORD;
	expect_emulated(test, &regs, &want, INSN("pushf", 0x9c));
	KUNIT_EXPECT_EQ(test, stack[62], ~(X86_EFLAGS_RF | X86_EFLAGS_VM));
}

static void test_interrupt_flag(struct kunit *test)
{
	struct pt_regs regs, want;

	init_regs(&regs);
	regs.flags |= X86_EFLAGS_CF | X86_EFLAGS_AC;
	want = regs;

	want.ip += 1;
	want.flags &= ~X86_EFLAGS_IF;
	expect_emulated(test, &regs, &want, INSN("cli", 0xfa));
	want.ip += 1;
	expect_emulated(test, &regs, &want, INSN("cli", 0xfa));
	want.ip += 1;
	want.flags |= X86_EFLAGS_IF;
	expect_emulated(test, &regs, &want, INSN("sti", 0xfb, 0x90));
}

static void test_nops_and_waits(struct kunit *test)
{
	struct pt_regs regs, want;

	init_regs(&regs);
	regs.flags = nth_flags(63) | X86_EFLAGS_DF;
	want = regs;

	want.ip += 1;
	expect_emulated(test, &regs, &want, INSN("nop", 0x90));
	want.ip += 2;
	expect_emulated(test, &regs, &want, INSN("xchg %ax,%ax", 0x66, 0x90));
	want.ip += 9;
	expect_emulated(test, &regs, &want, INSN("nopw 0(%rax,%rax,1)", 0x66, 0x0f, 0x1f, 0x84));
	want.ip += 4;
	expect_emulated(test, &regs, &want, INSN("endbr64", 0xf3, 0x0f, 0x1e, 0xfa));
	want.ip += 1;
	expect_emulated(test, &regs, &want, INSN("hlt", 0xf4));
	want.ip += 3;
	expect_emulated(test, &regs, &want, INSN("mwait", 0x0f, 0x01, 0xc9));
	want.ip += 3;
	expect_emulated(test, &regs, &want, INSN("mwaitx", 0x0f, 0x01, 0xfb));

	/* The time limit did not end it: CF and the other status flags are cleared. */
	want.ip += 4;
	want.flags = FLAGS | X86_EFLAGS_DF;
	expect_emulated(test, &regs, &want, INSN("tpause %eax", 0x66, 0x0f, 0xae, 0xf0));
	regs.flags = nth_flags(63);
	want.ip += 4;
	want.flags = FLAGS;
	expect_emulated(test, &regs, &want, INSN("umwait %eax", 0xf2, 0x0f, 0xae, 0xf0));
}

/* kprobe_prepare_emulation() and kprobe_analyse_insn() agree on what is emulated. */
static void check_no_emulation(struct kunit *test, const struct insn_case *cases, size_t n,
			       enum insn_mode mode)
{
	struct insn_emulation emul;
	struct insn insn;

	for (; n; n--, cases++) {
		KUNIT_ASSERT_EQ(test, decode(&insn, cases->code, mode), 0);
		KUNIT_EXPECT_EQ_MSG(test, kprobe_prepare_emulation(&emul, &insn), -EILSEQ,
				    "%s, %d bits", cases->text, mode_bits(mode));
	}
}

static void test_no_emulation(struct kunit *test)
{
	check_no_emulation(test, boosted, ARRAY_SIZE(boosted), INSN_MODE_64);
	check_no_emulation(test, boosted_32, ARRAY_SIZE(boosted_32), INSN_MODE_32);
}

/* Relocation. */

static unsigned long reloc_target;

static void check_relocated(struct kunit *test, const u8 *here, const u8 *there)
{
	struct insn insn;
	u8 buf[16];
	int len;

	KUNIT_ASSERT_EQ(test, decode(&insn, here, INSN_MODE_KERN), 0);
	memset(buf, 0xcc, sizeof(buf));
	len = kprobe_relocate_insn(buf, &insn, (unsigned long)here, (unsigned long)there);
	KUNIT_EXPECT_EQ_MSG(test, len, insn.length, "%*ph", 12, here);
	KUNIT_EXPECT_MEMEQ_MSG(test, buf, there, insn.length, "%*ph", 12, here);
	KUNIT_EXPECT_EQ_MSG(test, buf[insn.length], 0xcc, "%*ph", 12, here);
}

/* A memory operand in assembler. Only in 64-bit mode can it be relative to ip. */
#ifdef CONFIG_X86_64
#define MEMORY(label)	label "(%%rip)"
#else
#define MEMORY(label)	label
#endif

/*
 * The assembler knows what an instruction looks like at two places. It writes
 * them among the data: they are not executed.
 */
#define CHECK_RELOCATED(test, insn)							\
do {											\
	const u8 *here, *there;								\
											\
	asm(".pushsection .rodata\n"							\
	    ".macro twice insn:vararg\n"						\
	    "1: \\insn\n.skip 0x1234, 0xcc\n2: \\insn\n.skip 15, 0xcc\n"		\
	    ".endm\n"									\
	    "twice " insn "\n"								\
	    ".purgem twice\n"								\
	    ".popsection\n\t"								\
	    "lea " MEMORY("1b") ", %[here]\n\t"						\
	    "lea " MEMORY("2b") ", %[there]"						\
	    : [here] "=r" (here), [there] "=r" (there)					\
	    : [target] "i" (&reloc_target));						\
	check_relocated_both_ways(test, here, there);					\
} while (0)

static void check_relocated_both_ways(struct kunit *test, const u8 *here, const u8 *there)
{
	check_relocated(test, here, there);
	check_relocated(test, there, here);
}

#ifdef CONFIG_X86_64
static void test_relocated_operands(struct kunit *test)
{
	CHECK_RELOCATED(test, "lea %c[target](%%rip), %%rax");
	CHECK_RELOCATED(test, "movl $0x12345678, %c[target](%%rip)");
	CHECK_RELOCATED(test, "cmpb $1, %%gs:%c[target](%%rip)");
	CHECK_RELOCATED(test, "imul $1000000, %c[target](%%rip), %%r15");
	CHECK_RELOCATED(test, "lock cmpxchg %%r15, %c[target](%%rip)");
	CHECK_RELOCATED(test, "call *%c[target](%%rip)");
	CHECK_RELOCATED(test, "jmp *%c[target](%%rip)");
	CHECK_RELOCATED(test, "pshufd $1, %c[target](%%rip), %%xmm15");
	CHECK_RELOCATED(test, "vpalignr $1, %c[target](%%rip), %%ymm1, %%ymm9");
	CHECK_RELOCATED(test, "crc32q %c[target](%%rip), %%rax");
}
#else
static void test_relocated_operands(struct kunit *test)
{
	CHECK_RELOCATED(test, "lea %c[target], %%eax");
	CHECK_RELOCATED(test, "mov %c[target], %%eax");
	CHECK_RELOCATED(test, "mov %%al, %c[target]");
	CHECK_RELOCATED(test, "movl $%c[target], %c[target]");
	CHECK_RELOCATED(test, "pushl $%c[target]");
	CHECK_RELOCATED(test, "cmpb $1, %%fs:%c[target]");
	CHECK_RELOCATED(test, "imul $1000000, %c[target](, %%ecx, 4), %%edi");
	CHECK_RELOCATED(test, "lock cmpxchg %%edi, %c[target]");
	CHECK_RELOCATED(test, "call *%c[target]");
	CHECK_RELOCATED(test, "jmp *%c[target](, %%eax, 4)");
	CHECK_RELOCATED(test, "vpalignr $1, %c[target], %%ymm1, %%ymm2");
}
#endif

/* Execute a LEA, and tell where that was. */
#define EXECUTE_LEA(where)								\
({											\
	unsigned long result_;								\
											\
	asm volatile("1:\n\t"								\
		     "lea " MEMORY("%c[target]") ", %[result]\n\t"			\
		     "lea " MEMORY("1b") ", %[site]"					\
		     : [result] "=a" (result_), [site] "=r" (where)			\
		     : [target] "i" (&reloc_target));					\
	result_;									\
})

static void test_relocated_code(struct kunit *test)
{
	const u8 *here, *there;

	KUNIT_EXPECT_EQ(test, EXECUTE_LEA(here), (unsigned long)&reloc_target);
	KUNIT_EXPECT_EQ(test, EXECUTE_LEA(there), (unsigned long)&reloc_target);
	KUNIT_EXPECT_PTR_NE(test, here, there);
	check_relocated_both_ways(test, here, there);
}

#ifdef CONFIG_X86_64
static void test_relocation_range(struct kunit *test)
{
	/* lea 0(%rip), %rax or %r16: 2 GiB down from there, and 2 GiB less a byte up. */
	static const u8 leas[][MAX_CODE] = { { 0x48, 0x8d, 0x05 }, { 0xd5, 0x48, 0x8d, 0x05 } };
	u8 untouched[16], buf[16];
	struct insn insn;
	s32 disp;

	memset(untouched, 0xcc, sizeof(untouched));
	for (int i = 0; i < ARRAY_SIZE(leas); i++) {
		memset(buf, 0xcc, sizeof(buf));
		KUNIT_ASSERT_EQ(test, decode(&insn, leas[i], INSN_MODE_64), 0);

		KUNIT_EXPECT_EQ(test, -ERANGE,
				kprobe_relocate_insn(buf, &insn, CODE, CODE + 0x80000001));
		KUNIT_EXPECT_EQ(test, -ERANGE,
				kprobe_relocate_insn(buf, &insn, CODE, CODE - 0x80000000));
		KUNIT_EXPECT_EQ(test, -ERANGE,
				kprobe_relocate_insn(buf, &insn, CODE, CODE + 0x100000000));
		KUNIT_EXPECT_MEMEQ(test, buf, untouched, sizeof(buf));

		KUNIT_EXPECT_EQ(test, 7 + i,
				kprobe_relocate_insn(buf, &insn, CODE, CODE + 0x80000000));
		memcpy(&disp, buf + 3 + i, sizeof(disp));
		KUNIT_EXPECT_EQ(test, disp, S32_MIN);
		KUNIT_EXPECT_EQ(test, 7 + i,
				kprobe_relocate_insn(buf, &insn, CODE, CODE - 0x7fffffff));
		memcpy(&disp, buf + 3 + i, sizeof(disp));
		KUNIT_EXPECT_EQ(test, disp, S32_MAX);
	}
}
#endif

/* Copies of @cases at @to have the same bytes. */
static void check_copies(struct kunit *test, const struct insn_case *cases, size_t n,
			 enum insn_mode mode, unsigned long to)
{
	struct insn insn;
	u8 buf[16];

	for (; n; n--, cases++) {
		KUNIT_ASSERT_EQ(test, decode(&insn, cases->code, mode), 0);
		memset(buf, 0xcc, sizeof(buf));
		KUNIT_EXPECT_EQ_MSG(test, kprobe_relocate_insn(buf, &insn, CODE, to), insn.length,
				    "%s", cases->text);
		KUNIT_EXPECT_MEMEQ_MSG(test, buf, cases->code, insn.length,
				       "%s", cases->text);
		KUNIT_EXPECT_EQ_MSG(test, buf[insn.length], 0xcc, "%s", cases->text);
	}
}

/* 32-bit mode has no operands relative to ip. */
static void test_copies(struct kunit *test)
{
	check_copies(test, boosted, ARRAY_SIZE(boosted), INSN_MODE_64, CODE);
	check_copies(test, boosted_32, ARRAY_SIZE(boosted_32), INSN_MODE_32, CODE + 0x1000);
	check_copies(test, stepped_32, ARRAY_SIZE(stepped_32), INSN_MODE_32, CODE + 0x1000);
}

static const struct insn_case not_relocatable[] = {
	{ "je", { 0x74, 0x10 } },
	{ "jne", { 0x0f, 0x85, 0x10 } },
	{ "loopne", { 0xe0, 0x10 } },
	{ "jrcxz", { 0xe3, 0x10 } },
	{ "call", { 0xe8, 0x10 } },
	{ "jmp", { 0xe9, 0x10 } },
	{ "jmp", { 0xeb, 0x10 } },
	{ "xbegin", { 0xc7, 0xf8, 0x10 } },
	{ "{rex2} je", { 0xd5, 0x80, 0x84, 0x10 } },
	{ "lea (%eip),%rax", { 0x67, 0x48, 0x8d, 0x05 } },
	{ "Xen cpuid", { 0x0f, 0x0b, 0x78, 0x65, 0x6e, 0x0f, 0xa2 } },
};

static const struct insn_case not_relocatable_32[] = {
	{ "je", { 0x74, 0x10 } },
	{ "jne", { 0x0f, 0x85, 0x10 } },
	{ "loopne", { 0xe0, 0x10 } },
	{ "jecxz", { 0xe3, 0x10 } },
	{ "jcxz", { 0x67, 0xe3, 0x10 } },
	{ "call", { 0xe8, 0x10 } },
	{ "callw", { 0x66, 0xe8, 0x10 } },
	{ "jmp", { 0xe9, 0x10 } },
	{ "jmp", { 0xeb, 0x10 } },
	{ "xbegin", { 0xc7, 0xf8, 0x10 } },
	{ "Xen cpuid", { 0x0f, 0x0b, 0x78, 0x65, 0x6e, 0x0f, 0xa2 } },
};

static void check_not_relocatable(struct kunit *test, const struct insn_case *cases, size_t n,
				  enum insn_mode mode)
{
	u8 untouched[16], buf[16];
	struct insn insn;

	memset(buf, 0xcc, sizeof(buf));
	memset(untouched, 0xcc, sizeof(untouched));
	for (; n; n--, cases++) {
		KUNIT_ASSERT_EQ(test, decode(&insn, cases->code, mode), 0);
		KUNIT_EXPECT_EQ_MSG(test, -EILSEQ,
				    kprobe_relocate_insn(buf, &insn, CODE, CODE + 16),
				    "%s, %d bits", cases->text, mode_bits(mode));
	}
	KUNIT_EXPECT_MEMEQ(test, buf, untouched, sizeof(buf));
}

static void test_not_relocatable(struct kunit *test)
{
	check_not_relocatable(test, not_relocatable, ARRAY_SIZE(not_relocatable), INSN_MODE_64);
	check_not_relocatable(test, not_relocatable_32, ARRAY_SIZE(not_relocatable_32),
			      INSN_MODE_32);
}

/* Checks of indirect calls' targets; 0xaa is any byte. */
static void test_cfi_checks(struct kunit *test)
{
	static const struct {
		const char *text;
		size_t size;
		u8 code[16];
	} checks[] = {
		{ "kCFI", 14, { 0x41, 0xba, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0x03, 0xaa, 0xaa,
				0x74, 0x02, 0x0f, 0x0b } },
		{ "kCFI, off", 14, { 0xeb, 0x0c, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0x03, 0xaa, 0xaa,
				     0x74, 0x02, 0x0f, 0x0b } },
		{ "kCFI, UDB", 14, { 0x41, 0xba, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0x03, 0xaa, 0xaa,
				     0x75, 0x01, 0xa8, 0xd6 } },
		{ "paranoid FineIBT", 11, { 0x41, 0x3b, 0x43, 0xf5, 0x2e, 0x4d, 0x8d, 0x5b, 0xf0,
					    0x75, 0xfd } },
	};
	size_t i, n;

	for (i = 0; i < ARRAY_SIZE(checks); i++) {
		size_t size = checks[i].size;
		u8 code[16];

		memcpy(code, checks[i].code, sizeof(code));
		KUNIT_EXPECT_EQ_MSG(test, kprobe_cfi_check_size(code, 16), size, "%s",
				    checks[i].text);
		KUNIT_EXPECT_EQ_MSG(test, kprobe_cfi_check_size(code, size), size, "%s",
				    checks[i].text);
		KUNIT_EXPECT_EQ_MSG(test, kprobe_cfi_check_size(code, size - 1), 0, "%s",
				    checks[i].text);
		KUNIT_EXPECT_EQ_MSG(test, kprobe_cfi_check_size(code, 0), 0, "%s", checks[i].text);

		for (n = 0; n < size; n++) {
			bool any = code[n] == 0xaa;

			code[n] ^= 0x80;
			KUNIT_EXPECT_EQ_MSG(test, kprobe_cfi_check_size(code, 16), any ? size : 0,
					    "%s, byte %zu", checks[i].text, n);
			code[n] ^= 0x80;
		}
	}
}

static struct kunit_case kprobes_insn_cases[] = {
	KUNIT_CASE(test_boosted),
	KUNIT_CASE(test_stepped),
#ifdef CONFIG_TASKS_RCU
	KUNIT_CASE(test_store_to_rcu_tasks_holdout),
	KUNIT_CASE(test_store_to_rcu_tasks_holdout_is_found),
#endif
	KUNIT_CASE(test_skipped),
	KUNIT_CASE(test_emulated),
	KUNIT_CASE(test_refused),
	KUNIT_CASE(test_xop),
	KUNIT_CASE(test_every_opcode),
	KUNIT_CASE(test_vex_or_not),
	KUNIT_CASE(test_every_group),
	KUNIT_CASE(test_group_7),
	KUNIT_CASE(test_hints),
	KUNIT_CASE(test_other_maps),
	KUNIT_CASE(test_sti_at_the_end),
	KUNIT_CASE(test_conditions),
	KUNIT_CASE(test_counts),
	KUNIT_CASE(test_jumps_and_calls),
	KUNIT_CASE(test_returns),
	KUNIT_CASE(test_unusable_targets),
	KUNIT_CASE(test_unreadable_memory),
	KUNIT_CASE(test_register_targets),
	KUNIT_CASE(test_every_operand),
	KUNIT_CASE(test_popf),
	KUNIT_CASE(test_pushf),
	KUNIT_CASE(test_interrupt_flag),
	KUNIT_CASE(test_nops_and_waits),
	KUNIT_CASE(test_no_emulation),
	KUNIT_CASE(test_relocated_operands),
	KUNIT_CASE(test_relocated_code),
#ifdef CONFIG_X86_64
	KUNIT_CASE(test_relocation_range),
#endif
	KUNIT_CASE(test_copies),
	KUNIT_CASE(test_not_relocatable),
	KUNIT_CASE(test_cfi_checks),
	{}
};

static struct kunit_suite kprobes_insn_suite = {
	.name = "kprobes_x86_insn",
	.test_cases = kprobes_insn_cases,
};

kunit_test_suite(kprobes_insn_suite);

MODULE_DESCRIPTION("KUnit tests of the instruction analysis of x86 kprobes");
MODULE_LICENSE("GPL");
MODULE_INFO(import_ns, "EXPORTED_FOR_KUNIT_TESTING");
