// SPDX-License-Identifier: GPL-2.0
/* The functions that the module probes */
#include "transcript.h"

#include <linux/bug.h>
#include <linux/jump_label.h>
#include <linux/objtool.h>
#include <asm/nospec-branch.h>

/* Sizes: nop 1, mov 5, add 3, jmp 2, pushfq 1, popfq 1. */
noinline notrace int transcript_body(void)
{
	int value;

	asm volatile(".byte 0x90\n\t"
		     ".byte 0xb8, 1, 0, 0, 0\n\t"
		     ".byte 0x83, 0xc0, 2\n\t"
		     ".byte 0xeb, 0\n\t"
		     "pushfq\n\t"
		     "popfq" : "=a" (value) : : "cc");
	return value;
}

noinline int transcript_traced(int value)
{
	asm volatile("" : "+r" (value));
	return value + 1;
}

static noinline int transcript_inner(int value)
{
	asm volatile("" : "+r" (value));
	return value + 2;
}

noinline int transcript_recurse(int depth)
{
	int below = depth ? transcript_recurse(depth - 1) : 0;

	asm volatile("" : "+r" (below));
	return below + 1;
}

static DEFINE_STATIC_KEY_FALSE(survey_key);
int survey_data;

noinline int transcript_survey(int value)
{
	if (static_branch_unlikely(&survey_key))
		value += transcript_inner(value);
	WARN_ON(value == 12345);
	switch (value) {
	case 1:
		return survey_data;
	case 2:
		survey_data = transcript_traced(value);
		break;
	default:
		survey_data = value / 3;
	}
	return survey_data << (value & 7);
}

/* Instructions that are never executed. Comments have their offsets and sizes. */
static noinline notrace void transcript_odd(void)
{
	asm volatile("iretq\n\t"		/* 0: 2 bytes */
		     ".byte 0x8e, 0xd0\n\t"	/* 2: mov %eax, %ss */
		     ".byte 0xff, 0x28\n\t"	/* 4: ljmp *(%rax) */
		     ANNOTATE_RETPOLINE_SAFE "\n\t"
		     ".byte 0xff, 0x18\n\t"	/* 6: lcall *(%rax) */
		     "lretq\n\t"		/* 8: 2 bytes */
		     "hlt\n\t"			/* 10 */
		     "cli\n\t"			/* 11 */
		     "sti\n\t"			/* 12 */
		     "int $0x80\n\t"		/* 13: 2 bytes */
		     "ud2\n\t"			/* 15: 2 bytes */
		     "wrmsr\n\t"		/* 17: 2 bytes */
		     "swapgs\n\t"		/* 19: 3 bytes */
		     "sysretq\n\t"		/* 22: 3 bytes */
		     "rep movsb\n\t"		/* 25: 2 bytes */
		     "xbegin .\n\t"		/* 27: 6 bytes */
		     ".byte 0xe3, 0\n\t"	/* 33: jrcxz */
		     "loop .\n\t"		/* 35 */
		     "lock incl (%rax)\n\t"	/* 37: 3 bytes */
		     "int3\n\t"			/* 40 */
		     "nop");			/* 41 */
}

STACK_FRAME_NON_STANDARD(transcript_odd);
