// SPDX-License-Identifier: GPL-2.0
/*
 * Stack traces from detours: the ORC data of their templates applies
 */
#include <linux/kprobes.h>
#include <linux/ptrace.h>
#include <linux/uaccess.h>

#include <asm/insn.h>
#include <asm/text-patching.h>

#include "detour.h"
#include "opcode.h"
#include "relocate.h"
#include "unwind.h"

static const struct detour_template *const first_half = &kprobe_detour_template;
static const struct detour_template *const second_half = &kprobe_detour_post_template;

/* The size of the instruction before the return at the end of RETURN_BY_RET. */
#define POPF_SIZE	1

/* Words of room for handlers between the stack of the probed code and the registers. */
#define ROOM_WORDS	(HANDLER_STACK_ROOM / sizeof(long))

/*
 * The number of words that the instructions from the entry to @offset have pushed. The
 * second instruction makes the room for handlers, one word of which the first has used.
 */
static unsigned int detour_words_pushed(const struct detour_template *template, u32 offset)
{
	unsigned int count = 0;
	struct insn insn;

	for (u32 pos = template->entry; pos < offset; pos += insn.length, count++)
		if (insn_decode(&insn, template->code + pos, MAX_INSN_SIZE, INSN_MODE_KERN))
			break;
	return count < 2 ? count : count - 1 + ROOM_WORDS;
}

/*
 * The number of words left to pop at @offset, from @restored on: each instruction takes one,
 * or as many bytes as its operand says. The registers that a frame is found from are those
 * of the probed code also before they are popped: handlers preserve rbp, and r10 is loaded
 * before.
 */
static unsigned int detour_words_left(const struct detour_template *template, u32 restored,
				      u32 offset)
{
	unsigned int count = sizeof(struct pt_regs) / sizeof(long) + ROOM_WORDS;
	struct insn insn;

	for (u32 pos = restored; pos < offset; pos += insn.length) {
		if (insn_decode(&insn, template->code + pos, MAX_INSN_SIZE, INSN_MODE_KERN) ||
		    template->code[pos] == OPCODE_POP(4))	/* rsp */
			return 0;
		count -= insn.immediate.nbytes ? insn.immediate.value / sizeof(long) : 1;
	}
	return count;
}

/*
 * Returns true if all registers are saved at @offset of a copy of a template. Else
 * @words is the number of words that are pushed there.
 */
static bool is_detour_framed(const struct detour_template *template, u32 offset,
			     unsigned int *words)
{
	*words = 0;
	if (template->run_restored && offset < template->entry) {
		*words = detour_words_left(template, template->run_restored, offset);
		return offset < template->run_restored;
	}
	if (offset < template->entry ||
	    (offset >= template->framed && offset < template->restored))
		return true;
	*words = offset < template->framed ?
		 detour_words_pushed(template, offset) :
		 detour_words_left(template, template->restored, offset);
	return false;
}

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

/**
 * kprobe_body_unwind() - Find where the shared body with the probed code's registers returns
 * @ip: An address. There, it is set to that of the copies in the small detour.
 * @sp: The stack pointer. Then it is set to that of the probed code.
 *
 * The unwinder finds the same by the return address, but forgets the registers.
 *
 * Context: Any in which RCU is watching.
 */
void kprobe_body_unwind(unsigned long *ip, unsigned long *sp)
{
	const struct detour_body *body = &kprobe_shared_body;
	unsigned long offset = *ip - (unsigned long)body->code, target;
	unsigned int words;

	if (offset < body->framed)
		words = kprobe_words_pushed(body->code, offset);
	else if (offset >= body->restored && offset <= body->restored + POPF_SIZE)
		words = offset == body->restored;
	else
		return;
	if (copy_from_kernel_nofault(&target, (unsigned long *)*sp + words, sizeof(target)))
		return;
	*ip = target;
	*sp += (words + 1) * sizeof(long);
}

/* The address in the text for @offset in a second half: the instruction, or the next. */
static unsigned long detour_post_original_ip(const struct kprobe *kp, u32 offset)
{
	bool before = offset < second_half->entry || offset == second_half->end;

	return (unsigned long)kp->addr + (before ? 0 : kp->ainsn.size);
}

/**
 * kprobe_detour_unwind() - Find the address whose unwind data describes a detour's stack
 * @ip: An address. In a detour it is set to one in the template while registers are
 *	saved, elsewhere in the detour to that of the probed code.
 * @sp: The stack pointer. In the latter case it is set to that of the probed code.
 *
 * Context: Any in which RCU is watching. Preemption is off.
 * Return: true if @ip was in a detour.
 */
bool kprobe_detour_unwind(unsigned long *ip, unsigned long *sp)
{
	struct kprobe *kp = kprobe_optinsn_slot_owner(*ip);
	const struct detour_template *template = first_half;
	const struct arch_optimized_insn *detour;
	unsigned int words, pushed, head = 0;
	unsigned long offset;

	if (!kp)
		return false;
	/* If it is in the making, @ip is a stale word of the stack: any result will do. */
	detour = &container_of(kp, struct optimized_kprobe, kp)->optinsn;
	offset = *ip - (unsigned long)READ_ONCE(detour->post);
	if (offset < MAX_POST_OPTINSN_SIZE) {
		template = second_half;
	} else {
		offset = *ip - (unsigned long)READ_ONCE(detour->insn);
		head = detour_head_size(detour);
	}
	if (template == first_half && offset >= head) {
		offset = displaced_origin(detour->code, READ_ONCE(detour->size), offset - head,
					  &pushed);
		*ip = (unsigned long)kp->addr + offset;
		*sp += pushed;
	} else if (template == first_half && is_small_detour(detour)) {
		*ip = (unsigned long)kp->addr;
	} else if (offset < template->end && is_detour_framed(template, offset, &words)) {
		*ip = (unsigned long)template->code + offset;
	} else {
		*ip = template == first_half ? (unsigned long)kp->addr :
					       detour_post_original_ip(kp, offset);
		if (offset < template->end)
			*sp += words * sizeof(long);
	}
	return true;
}
