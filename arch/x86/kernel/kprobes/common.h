/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the rooms of the x86 back end share.
 */
#ifndef _X86_KPROBES_COMMON_H
#define _X86_KPROBES_COMMON_H

#include <linux/linkage.h>
#include <linux/stringify.h>
#include <linux/types.h>

#include <asm/asm.h>
#include <asm/frame.h>
#include <asm/insn.h>

struct pt_regs;

/*
 * The registers of a struct pt_regs below @flags, pushed and popped in the
 * order of its fields, for asm() bodies. On entry the stack pointer stands at
 * the field above the first one saved: @flags has just been pushed.
 */
#ifdef CONFIG_X86_64

/* ip, cs and orig_ax are not known here: their places are left as they are. */
#define SAVE_REGS_STRING						\
	"	sub $24, %rsp\n"					\
	"	push %rdi; push %rsi; push %rdx; push %rcx\n"		\
	"	push %rax; push %r8; push %r9; push %r10\n"		\
	"	push %r11; push %rbx; push %rbp; push %r12\n"		\
	"	push %r13; push %r14; push %r15\n"			\
	ENCODE_FRAME_POINTER

#define RESTORE_REGS_STRING						\
	"	pop %r15; pop %r14; pop %r13; pop %r12\n"		\
	"	pop %rbp; pop %rbx; pop %r11; pop %r10\n"		\
	"	pop %r9; pop %r8; pop %rax; pop %rcx\n"			\
	"	pop %rdx; pop %rsi; pop %rdi\n"				\
	"	add $24, %rsp\n"

#else

/* Nor are orig_ax, ip and cs here; the segments are saved, not restored. */
#define SAVE_REGS_STRING						\
	"	sub $12, %esp\n"					\
	"	push %gs; push %fs; push %es; push %ds\n"		\
	"	push %eax; push %ebp; push %edi; push %esi\n"		\
	"	push %edx; push %ecx; push %ebx\n"			\
	ENCODE_FRAME_POINTER

#define RESTORE_REGS_STRING						\
	"	pop %ebx; pop %ecx; pop %edx; pop %esi\n"		\
	"	pop %edi; pop %ebp; pop %eax\n"				\
	"	add $28, %esp\n"

#endif

#ifdef CONFIG_KPROBES

#include <linux/kprobes_hit.h>

struct exception_table_entry;
struct module;
struct static_call_site;

/* insn.c: analysis. Pure: no probe, no side effect, no address is read. */

/**
 * enum insn_run - How an instruction that a breakpoint displaced is run
 * @INSN_RUN_NEVER:	Not at all: the instruction cannot be probed.
 * @INSN_RUN_SKIP:	Not at all: it does nothing.
 * @INSN_RUN_BOOST:	From its copy, which jumps back: no second trap.
 * @INSN_RUN_STEP:	From its copy with interrupts off, up to a trap after it.
 * @INSN_RUN_EMULATE:	By emulate_insn(), inside the breakpoint handler.
 */
enum insn_run {
	INSN_RUN_NEVER,
	INSN_RUN_SKIP,
	INSN_RUN_BOOST,
	INSN_RUN_STEP,
	INSN_RUN_EMULATE,
};

/**
 * struct insn_traits - What analyse_insn() found out
 * @run:	How to run the instruction.
 * @run_post:	How to run it for a post handler: a boosted instruction then
 *		goes through the stub behind its copy with interrupts off, and
 *		those which must not are stepped.
 */
struct insn_traits {
	enum insn_run run;
	enum insn_run run_post;
};

struct insn_traits analyse_insn(const struct insn *insn);

size_t cfi_check_size(const u8 *code, size_t len);
bool is_static_call_tramp(const u8 *code, size_t len);

/* The opcodes of VEX and EVEX, which the maps of the others do not describe. */
#define OPCODE_VEX		0xc400

/* The opcode: 0x0fxx if it is of the two-byte map, 0x0f38 and 0x0f3a are all of theirs. */
static inline u16 insn_opcode(const struct insn *insn)
{
	const u8 *opcode = insn->opcode.bytes;
	const u8 *rex = insn->rex_prefix.bytes;

	if (insn->vex_prefix.nbytes)
		return OPCODE_VEX | opcode[0];
	if (insn->rex_prefix.nbytes == 2 && X86_REX2_M(rex[1]))
		return 0x0f00 | opcode[0];
	if (insn->opcode.nbytes > 1)
		return 0x0f00 | opcode[1];
	return opcode[0];
}

#define PREFIX_FS		0x64
#define PREFIX_GS		0x65
#define PREFIX_OPSIZE		0x66
#define PREFIX_LOCK		0xf0
#define PREFIX_REPNE		0xf2
#define PREFIX_REP		0xf3

static inline bool has_prefix(const struct insn *insn, u8 prefix)
{
	insn_byte_t p;
	int i;

	for_each_insn_prefix(insn, i, p) {
		if (p == prefix)
			return true;
	}
	return false;
}

/* The prefix that selects one of the instructions which share an opcode, or 0. */
static inline u8 mandatory_prefix(const struct insn *insn)
{
	return has_prefix(insn, PREFIX_REP) ? PREFIX_REP :
	       has_prefix(insn, PREFIX_REPNE) ? PREFIX_REPNE :
	       has_prefix(insn, PREFIX_OPSIZE) ? PREFIX_OPSIZE : 0;
}

/* insn_rip_relative() of a decoded instruction, which it need not complete. */
static inline bool is_rip_relative(const struct insn *insn)
{
	return insn->x86_64 && insn->modrm.nbytes &&
	       (insn->modrm.bytes[0] & 0xc7) == 5;
}

/* relocate.c: copies of instructions */

bool is_relative_branch(const struct insn *insn);

int relocate_insn(u8 *buf, const struct insn *insn, unsigned long from,
		  unsigned long to);

/* The most bytes that a jump displaces: too few for it, and one instruction more. */
#define DISPLACED_MAX		MAX_OPTIMIZED_LENGTH

/* The most bytes that the copy of one displaced instruction takes, and of all of them. */
#define DISPLACED_INSN_COPY_MAX	28
#define DISPLACED_COPY_MAX	40

int displaced_size(const u8 *code, size_t len);
bool displaced_is_jump(const struct insn *insn);
bool displaced_is_branch(const struct insn *insn);
bool displaced_needs_place(const struct insn *insn, bool its, bool lfence);
int relocate_displaced(u8 *buf, const struct insn *insn, unsigned long from,
		       unsigned long to);
unsigned int displaced_origin(const u8 *code, unsigned int size,
			      unsigned int offset, unsigned int *pushed);

/* emulate.c: instructions run without executing them */

int prepare_emulation(struct insn_emulation *emul, const struct insn *insn);
bool emulates_nothing(const struct insn_emulation *emul);
bool emulation_can_fail(const struct insn_emulation *emul);
bool emulate_insn(const struct insn_emulation *emul, struct pt_regs *regs);

/* branches.c: what can be jumped to */

extern struct exception_table_entry __start___ex_table[], __stop___ex_table[];
extern struct static_call_site __start_static_call_sites[], __stop_static_call_sites[];

/**
 * struct branch_map - What can be jumped to in a text
 * @start:	Its first address.
 * @size:	How many bytes it has.
 * @bits:	A bit a byte: set if execution may arrive there otherwise than
 *		from the instruction in front, or if somebody else patches it.
 */
struct branch_map {
	unsigned long start;
	unsigned long size;
	unsigned long *bits;
};

void branches_scan_function(const struct branch_map *map, const u8 *code, size_t len,
			    unsigned long addr, bool (*is_thunk)(unsigned long addr));

int branches_learn(unsigned long addr);
int branches_check(unsigned long addr, unsigned int size);
void branches_forget(const struct module *mod);

/* optprobe.c: jumps and detours */

#ifdef CONFIG_OPTPROBES
int kprobe_detour_slow(struct kprobe *kp, struct pt_regs *regs);
void kprobe_detour_post_slow(struct kprobe *kp, struct pt_regs *regs);
void kprobe_detour_redirect(struct pt_regs *regs);
void kprobe_detour_resched(void);
unsigned long kprobe_detoured_ip(unsigned long ip);
bool kprobe_detour_unwind(unsigned long *ip, unsigned long *sp);
#else
static __always_inline unsigned long kprobe_detoured_ip(unsigned long ip)
{
	return ip;
}

static inline bool kprobe_detour_unwind(unsigned long *ip, unsigned long *sp)
{
	return false;
}
#endif

/* text.c: the text as it is without probes */

/* An instruction, and what tells whether STI in it shadows the next one. */
#define ORIGINAL_CODE_SIZE	(MAX_INSN_SIZE + 3)

int decode_original_insn(struct insn *insn, u8 *code, unsigned long addr);
void read_original_text(u8 *buf, unsigned long addr, unsigned int len);

/* int3.c: hits */

noinstr void kprobe_enter_nested_hit(struct kprobe *kp, struct pt_regs *regs);
noinstr void kprobe_resume_outer_hit(void);

/* kretprobe.c: returns */

void kretprobe_returned(struct pt_regs *regs);

/* This CPU works for @kp, whose handlers see @regs. */
static __always_inline void kprobe_enter_hit(struct kprobe *kp, struct pt_regs *regs)
{
	raw_cpu_write(current_kprobe, kp);
	barrier();	/* an NMI that sees this puts the rest back as it was */
	raw_cpu_write(kprobe_ctlblk.regs, regs);
	raw_cpu_write(kprobe_context, raw_cpu_read(pcpu_hot.preempt_count));
}

/* Begin a hit, @nested if another one is under way. Returns what the pre handlers return. */
static __always_inline int kprobe_begin_hit(struct kprobe *kp, struct pt_regs *regs,
					    bool nested)
{
	if (nested) {
		kprobe_enter_nested_hit(kp, regs);
		return kprobe_pre_handlers_nested(kp, regs);
	}
	kprobe_enter_hit(kp, regs);
	return kprobe_call_pre_handlers(kp, regs);
}

/* In place of the registers when it is the post handlers' turn, who see the plain truth. */
#define POST_HANDLERS_REGS	((struct pt_regs *)-1L)

/* Call those post handlers that belong to the pre handlers which were called. */
static __always_inline void kprobe_run_post_handlers(struct kprobe *kp,
						     struct pt_regs *regs)
{
	raw_cpu_write(kprobe_ctlblk.regs, POST_HANDLERS_REGS);
	if (unlikely(raw_cpu_read(kprobe_ctlblk.depth)))
		kprobe_post_handlers_nested(kp, regs);
	else
		kprobe_call_post_handlers(kp, regs);
}

/* The end of a hit that found kprobe_running() to be NULL. */
static __always_inline void kprobe_leave_outermost_hit(void)
{
	raw_cpu_write(current_kprobe, NULL);
}

static __always_inline void kprobe_leave_hit(void)
{
	if (unlikely(raw_cpu_read(kprobe_ctlblk.depth)))
		kprobe_resume_outer_hit();
	else
		kprobe_leave_outermost_hit();
}

/* End a hit that kprobe_begin_hit() began, for one who knows whether it is @nested. */
static __always_inline void kprobe_end_hit(bool nested)
{
	if (nested)
		kprobe_resume_outer_hit();
	else
		kprobe_leave_outermost_hit();
}

/* Is the present context, less @own, above that of the handler which runs? */
static __always_inline bool kprobe_hit_from_above(unsigned int own)
{
	return kprobe_context_level(preempt_count() - own) >
	       kprobe_context_level(raw_cpu_read(kprobe_context));
}

#endif /* CONFIG_KPROBES */
#endif /* _X86_KPROBES_COMMON_H */
