// SPDX-License-Identifier: GPL-2.0
/*
 * The code of detours, and the instruction of the text that each address in it stands for
 */
#include <linux/errno.h>
#include <linux/export.h>
#include <linux/kprobes.h>
#include <linux/kprobes_site.h>
#include <linux/math.h>
#include <linux/string.h>
#include <linux/uaccess.h>
#include <linux/unaligned.h>

#include <kunit/visibility.h>

#include "detour.h"
#include "insn.h"
#include "opcode.h"
#include "text.h"

/* Both copies of the first instruction, which is no branch, if there is a second body. */
static_assert(DETOUR_HEAD + DETOUR_POST_HEAD + DISPLACED_COPY_MAX + MAX_INSN_SIZE +
	      2 * JMP32_INSN_SIZE <= MAX_OPTINSN_SIZE);

/* The code of a detour in the making */
struct detour_code {
	u8 bytes[MAX_OPTINSN_SIZE];
	const kprobe_opcode_t *at;	/* where it is to run */
	unsigned int len;		/* its length so far */
};

static void detour_add(struct detour_code *code, const void *bytes, unsigned int size)
{
	memcpy(code->bytes + code->len, bytes, size);
	code->len += size;
}

static void detour_add_branch(struct detour_code *code, u8 opcode, const void *target)
{
	__text_gen_insn(code->bytes + code->len, opcode, code->at + code->len, target,
			JMP32_INSN_SIZE);
	code->len += JMP32_INSN_SIZE;
}

/* Push an address: of the text, for the ip that handlers see, or any on i386. */
static void detour_add_push(struct detour_code *code, const void *addr)
{
	u8 push[1 + DISP32_SIZE] = { OPCODE_PUSH_IMM32 };

	put_unaligned_le32((long)addr, push + 1);
	detour_add(code, push, sizeof(push));
}

/* Push the address of the site. On x86-64 it is loaded from where the detour begins. */
static void detour_add_push_site(struct detour_code *code, const struct kprobe *kp)
{
	u8 push[2 + DISP32_SIZE] = { OPCODE_GROUP5, GROUP5_PUSH << 3 | 5 };

	if (IS_ENABLED(CONFIG_X86_32)) {
		detour_add_push(code, kp);
		return;
	}
	put_unaligned_le32(-(code->len + sizeof(push)), push + 2);
	detour_add(code, push, sizeof(push));
}

/* Call a body. It returns to where flags and the stack pointer are popped. */
static void detour_add_call(struct detour_code *code, void (*body)(void))
{
	static const u8 pop[] = { OPCODE_POPF, OPCODE_POP(4) };

	detour_add_branch(code, CALL_INSN_OPCODE, body);
	detour_add(code, pop, sizeof(pop));
}

/*
 * Copy the displaced instruction @pos bytes after the first one. It is decoded into @insn, which
 * refers to @op.
 */
static int detour_add_copy(struct detour_code *code, const struct arch_optimized_insn *op,
			   const kprobe_opcode_t *addr, unsigned int pos, struct insn *insn)
{
	int copied;

	if (insn_decode(insn, op->code + pos, op->size - pos, INSN_MODE_KERN))
		return -EILSEQ;
	copied = kprobe_relocate_displaced(code->bytes + code->len, insn,
					   (unsigned long)addr + pos,
					   (unsigned long)code->at + code->len);
	if (copied < 0)
		return copied;
	code->len += copied;
	return 0;
}

/*
 * Copy all displaced instructions, and record in @op where each copy is. After that of the first
 * one, post handlers are called if the site @has_post. An INT3 after a final jump keeps CPUs from
 * speculating straight on.
 */
static int detour_add_copies(struct detour_code *code, struct arch_optimized_insn *op,
			     const struct kprobe *kp, bool has_post)
{
	const kprobe_opcode_t *addr = kp->addr;
	bool falls_through = true;
	unsigned int start;
	struct insn insn;
	char class;
	int err;

	op->first = code->len;
	for (unsigned int pos = 0; pos < op->size && falls_through; pos += insn.length) {
		start = code->len;
		if (pos)
			op->copies[pos - 1] = start;
		err = detour_add_copy(code, op, addr, pos, &insn);
		if (err)
			return err;
		class = kprobe_insn_class(&insn);
		if (is_call_class(class))
			op->pushed = start + CALL_INSN_SIZE;
		falls_through = !is_jump_class(class);
		if (!pos && has_post) {
			if (class == INSN_SYSTEM || class == INSN_JCC ||
			    is_call_class(class) || !falls_through)
				return -EOPNOTSUPP;
			detour_add_push(code, addr + insn.length);
			detour_add_push_site(code, kp);
			detour_add_call(code, kprobe_detour_post);
		}
		if (!pos && falls_through)
			op->rest = code->len;
	}
	op->end = code->len;
	if (falls_through)
		detour_add_branch(code, JMP32_INSN_OPCODE, addr + op->size);
	else
		code->len += JMP32_INSN_SIZE;
	return 0;
}

/* Make the code of a detour that is to run at @at. Its length is the same everywhere. */
static int detour_generate(struct detour_code *code, struct arch_optimized_insn *op,
			   const struct kprobe_site *site, const kprobe_opcode_t *at)
{
	const struct kprobe *kp = &site->kp;
	struct insn insn;
	int err;

	*code = (struct detour_code){ .at = at };
	memset(code->bytes, INT3_INSN_OPCODE, sizeof(code->bytes));
	detour_add(code, &kp, sizeof(kp));
	detour_add_push(code, kp->addr + INT3_INSN_SIZE);
	detour_add_call(code, kprobe_detour);
	err = detour_add_copies(code, op, kp, site->has_post);
	if (err || !site->has_post)
		return err;
	/* The first copy once more, for hits after which no handlers are called. */
	op->first = code->len;
	err = detour_add_copy(code, op, kp->addr, 0, &insn);
	detour_add_branch(code, JMP32_INSN_OPCODE, at + op->rest);
	return err;
}

/*
 * kprobe_detour_make() - Write a site's detour, and the relay if the jump needs one
 *
 * @op has the choice of the jump and the displaced bytes. It receives the detour, perhaps not a
 * complete one if that fails. kprobe_mutex and text_mutex are held. Returns 0, or an error of
 * arch_prepare_optimized_kprobe().
 */
int kprobe_detour_make(struct arch_optimized_insn *op, struct kprobe_site *site)
{
	struct detour_code code;
	int err = detour_generate(&code, op, site, site->kp.addr);	/* to know its length */

	if (err)
		return err;
	op->insn = kprobe_get_optinsn_slot(&site->kp, code.len);
	if (!op->insn)
		return -ENOMEM;
	err = detour_generate(&code, op, site, op->insn);
	if (err)
		return err;
	kprobe_write_text(op->insn, code.bytes, code.len, 0);
	if (op->relay)
		kprobe_relay_make(op, &site->kp);
	return 0;
}

/* ------------------------------------------------------------- addresses */

/*
 * kprobe_detour_origin() - The offset of the displaced instruction that a copy stems from
 *
 * @offset in the detour is that of a copied instruction, or of what calls post handlers. After
 * the copies, the number of displaced bytes is returned. @pushed is set to the number of bytes on
 * the stack in addition to those at the displaced instruction: a copied call has pushed its return
 * address. Any context, including NMI.
 */
unsigned int __kprobes kprobe_detour_origin(const struct arch_optimized_insn *op,
					    unsigned int offset, unsigned int *pushed)
{
	unsigned int origin = 0;

	*pushed = 0;
	if (offset >= op->end)
		return op->size;
	if (op->pushed && offset >= op->pushed)
		*pushed = sizeof(long);
	for (unsigned int i = 0; i < ARRAY_SIZE(op->copies); i++)
		if (op->copies[i] && offset >= op->copies[i])
			origin = i + 1;
	return origin;
}
EXPORT_SYMBOL_IF_KUNIT(kprobe_detour_origin);

/*
 * Set @sp to that of the probed code, at @offset of the code that calls a body: one or two pushes
 * of five or six bytes each, the call, and two pops, which end at @end.
 */
static void __kprobes detour_unwind_call(unsigned int offset, unsigned int end,
					 unsigned long *sp)
{
	const unsigned long *popped = (unsigned long *)*sp + (offset != end - 1);

	if (offset <= end - 2 - CALL_INSN_SIZE)
		*sp += DIV_ROUND_UP(offset, 6) * sizeof(long);
	else if (copy_from_kernel_nofault(sp, popped, sizeof(*sp)))
		*sp = 0;
}

/*
 * kprobe_detour_unwind() - Find the instruction of the text that an address in a detour stands for
 *
 * Returns the site, with @ip and @sp set to those at the instruction, or NULL if @ip is not in a
 * detour. Any context in which RCU is watching, with preemption off.
 */
struct kprobe *__kprobes kprobe_detour_unwind(unsigned long *ip, unsigned long *sp)
{
	struct kprobe *kp = kprobe_optinsn_slot_owner(*ip);
	const struct arch_optimized_insn *op;
	unsigned int offset, post, pushed;

	if (!kp)
		return NULL;
	/* If it is in the making, @ip is a stale word of the stack: any result will do. */
	op = detour_of(kp);
	offset = *ip - (unsigned long)READ_ONCE(op->insn);
	*ip = (unsigned long)kp->addr;
	if (offset < DETOUR_HEAD) {
		detour_unwind_call(offset - DETOUR_ENTRY, DETOUR_HEAD - DETOUR_ENTRY, sp);
		return kp;
	}
	/* The second copy of the first instruction, and a jump, at which nothing is pushed */
	if (detour_has_post(op) && offset >= op->first)
		offset -= op->first - DETOUR_HEAD;
	post = offset + DETOUR_POST_HEAD - op->rest;
	if (detour_has_post(op) && post < DETOUR_POST_HEAD) {
		*ip += kp->ainsn.size;
		detour_unwind_call(post, DETOUR_POST_HEAD, sp);
	} else {
		*ip += kprobe_detour_origin(op, offset, &pushed);
		*sp += pushed;
	}
	return kp;
}
