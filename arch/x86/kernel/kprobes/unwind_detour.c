// SPDX-License-Identifier: GPL-2.0
/*
 * Stack traces from detours: the ORC data of the probed code apply
 */
#include <linux/kprobes.h>
#include <linux/math.h>
#include <linux/ptrace.h>
#include <linux/uaccess.h>

#include <asm/insn.h>
#include <asm/text-patching.h>

#include "detour.h"
#include "opcode.h"
#include "relocate.h"

/**
 * kprobe_words_pushed() - Count the words that saving of registers has pushed
 * @code: The code, which begins with that.
 * @offset: The offset of an instruction in it.
 *
 * Context: Any.
 * Return: The number of words that are pushed before that instruction.
 */
unsigned int kprobe_words_pushed(const u8 *code, unsigned int offset)
{
	unsigned int count = 0;
	struct insn insn;

	for (unsigned int pos = 0; pos < offset; pos += insn.length) {
		if (insn_decode(&insn, code + pos, MAX_INSN_SIZE, INSN_MODE_KERN))
			break;
		switch (insn_opcode(&insn)) {
		case OPCODE_PUSH(0) ... OPCODE_PUSH(7):
		case OPCODE_PUSH_IMM32:
		case OPCODE_PUSH_IMM8:
		case OPCODE_PUSHF:
		case OPCODE_GROUP5:	/* of which there is only PUSH */
			count++;
			break;
		case OPCODE_LEA:
			count -= insn.displacement.value / (int)sizeof(long);
			break;
		default:
			break;
		}
	}
	return count;
}

static bool body_unwind(const struct detour_body *body, unsigned long *ip, unsigned long *sp)
{
	unsigned long offset = *ip - (unsigned long)body->code, target;
	unsigned int words = 0;

	if (offset < body->framed)
		words = kprobe_words_pushed(body->code, offset);
	else if (offset < body->left || offset > body->ret)
		return false;
	else if (offset < body->ret)
		words = offsetof(struct pt_regs, cs) / sizeof(long);
	if (copy_from_kernel_nofault(&target, (unsigned long *)*sp + words, sizeof(target)))
		return false;
	*ip = offset < body->framed ? target - CALL_INSN_SIZE : target;
	*sp += (words + 1) * sizeof(long);
	return true;
}

/**
 * kprobe_body_unwind() - Find where a body with the probed code's registers was called or returns
 * @ip: An address. There, it is set to that in the detour.
 * @sp: The stack pointer. Then it is set to that in the detour.
 *
 * The unwinder finds the same by the return address, but forgets the registers.
 *
 * Context: Any in which RCU is watching.
 */
void kprobe_body_unwind(unsigned long *ip, unsigned long *sp)
{
	if (!body_unwind(&kprobe_detour_body, ip, sp))
		body_unwind(&kprobe_detour_post_body, ip, sp);
}

/*
 * Set @sp to that of the probed code, at @offset of the code that calls a body: one or two pushes
 * of five or six bytes each, the call, and two pops, which end at @end.
 */
static void detour_unwind_call(unsigned int offset, unsigned int end, unsigned long *sp)
{
	const unsigned long *popped = (unsigned long *)*sp + (offset != end - 1);

	if (offset <= end - 2 - CALL_INSN_SIZE)
		*sp += DIV_ROUND_UP(offset, 6) * sizeof(long);
	else if (copy_from_kernel_nofault(sp, popped, sizeof(*sp)))
		*sp = 0;
}

/**
 * kprobe_detour_unwind() - Find the address whose unwind data describes a detour's stack
 * @ip: An address. In a detour it is set to that of the probed code.
 * @sp: The stack pointer. Then it is set to that of the probed code.
 *
 * Context: Any in which RCU is watching. Preemption is off.
 * Return: true if @ip was in a detour.
 */
bool kprobe_detour_unwind(unsigned long *ip, unsigned long *sp)
{
	struct kprobe *kp = kprobe_optinsn_slot_owner(*ip);
	const struct arch_optimized_insn *detour;
	unsigned int offset, pushed;
	int copy;

	if (!kp)
		return false;
	/* If it is in the making, @ip is a stale word of the stack: any result will do. */
	detour = &container_of(kp, struct optimized_kprobe, kp)->optinsn;
	offset = *ip - (unsigned long)READ_ONCE(detour->insn);
	*ip = (unsigned long)kp->addr;
	copy = detour_copies_offset(detour, offset);
	if (offset < DETOUR_HEAD) {
		detour_unwind_call(offset - DETOUR_ENTRY, DETOUR_HEAD - DETOUR_ENTRY, sp);
	} else if (copy >= 0) {
		*ip += kprobe_displaced_origin(detour->code, READ_ONCE(detour->size), copy,
					       &pushed);
		*sp += pushed;
	} else {
		*ip += kp->ainsn.size;
		detour_unwind_call(offset + DETOUR_POST_HEAD - READ_ONCE(detour->rest),
				   DETOUR_POST_HEAD, sp);
	}
	return true;
}
