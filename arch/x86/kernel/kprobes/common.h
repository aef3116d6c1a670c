/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Declarations that the files of the x86 back end share
 */
#ifndef _X86_KPROBES_COMMON_H
#define _X86_KPROBES_COMMON_H

#include <linux/bitmap.h>
#include <linux/linkage.h>
#include <linux/minmax.h>
#include <linux/stringify.h>
#include <linux/types.h>

#include <asm/asm.h>
#include <asm/frame.h>
#include <asm/insn.h>

struct pt_regs;

/*
 * Push and pop the fields of a struct pt_regs below @flags, for the asm() bodies of
 * rethook.c. @flags must have been pushed last.
 */
#ifdef CONFIG_X86_64

/* ip, cs and orig_ax are skipped, not written. */
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

/* orig_ax, ip and cs are skipped, not written; the segments are saved, not restored. */
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

/* insn.c: analysis. Its functions are pure: no probe, no side effect, no memory read. */

/**
 * enum insn_run - How to run an instruction that a breakpoint displaced
 * @INSN_RUN_NEVER:	The instruction cannot be probed.
 * @INSN_RUN_SKIP:	Skip it: it does nothing.
 * @INSN_RUN_BOOST:	Run its copy, which jumps back without a second trap.
 * @INSN_RUN_STEP:	Run its copy with interrupts off, up to a trap after it.
 * @INSN_RUN_EMULATE:	Call emulate_insn() inside the breakpoint handler.
 */
enum insn_run {
	INSN_RUN_NEVER,
	INSN_RUN_SKIP,
	INSN_RUN_BOOST,
	INSN_RUN_STEP,
	INSN_RUN_EMULATE,
};

/**
 * struct insn_traits - Result of analyse_insn()
 * @run:	How to run the instruction.
 * @run_post:	How to run it for a post handler. A boosted copy then runs with
 *		interrupts off and jumps to the post stub; an instruction that
 *		must not run so is stepped.
 */
struct insn_traits {
	enum insn_run run;
	enum insn_run run_post;
};

struct insn_traits analyse_insn(const struct insn *insn);

size_t cfi_check_size(const u8 *code, size_t len);
bool is_static_call_tramp(const u8 *code, size_t len);

/* Marks opcodes of VEX and EVEX, which are not in the other opcode maps. */
#define OPCODE_VEX		0xc400

/* 0x0fxx is the two-byte map; 0x0f38 and 0x0f3a stand for all of their maps. */
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

/* The prefix that selects one of several instructions with the same opcode, or 0. */
static inline u8 mandatory_prefix(const struct insn *insn)
{
	return has_prefix(insn, PREFIX_REP) ? PREFIX_REP :
	       has_prefix(insn, PREFIX_REPNE) ? PREFIX_REPNE :
	       has_prefix(insn, PREFIX_OPSIZE) ? PREFIX_OPSIZE : 0;
}

/* insn_rip_relative() without the decoding, for an instruction that is decoded. */
static inline bool is_rip_relative(const struct insn *insn)
{
	return insn->x86_64 && insn->modrm.nbytes &&
	       (insn->modrm.bytes[0] & 0xc7) == 5;
}

/* relocate.c: copies of instructions */

bool is_relative_branch(const struct insn *insn);

int relocate_insn(u8 *buf, const struct insn *insn, unsigned long from,
		  unsigned long to);

/* A jump displaces at most one byte too few for it and one more instruction. */
#define DISPLACED_MAX		MAX_OPTIMIZED_LENGTH

/* The largest copy of one displaced instruction, and of all of them, in bytes. */
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

/* emulate.c: instructions emulated on the saved registers */

int prepare_emulation(struct insn_emulation *emul, const struct insn *insn);
bool emulates_nothing(const struct insn_emulation *emul);
bool emulation_can_fail(const struct insn_emulation *emul);
bool emulate_insn(const struct insn_emulation *emul, struct pt_regs *regs);

/* scan.c: branch targets of a function */

/**
 * struct branch_map - Bytes of a text that a jump must not displace
 * @start:	First address of the text.
 * @size:	Size of the text in bytes.
 * @bits:	A bit a byte, set if execution may arrive there other than from the
 *		preceding instruction, or if another user of the text patches it.
 */
struct branch_map {
	unsigned long start;
	unsigned long size;
	unsigned long *bits;
};

static inline void branch_map_add(const struct branch_map *map, unsigned long addr)
{
	if (addr - map->start < map->size)
		__set_bit(addr - map->start, map->bits);
}

/* Add [@addr, @addr + @len), or the part of it in the text if @addr is in the text. */
static inline void branch_map_add_range(const struct branch_map *map, unsigned long addr,
					size_t len)
{
	unsigned long offset = addr - map->start;

	if (offset < map->size)
		bitmap_set(map->bits, offset, min(len, map->size - offset));
}

void branches_scan_function(const struct branch_map *map, const u8 *code, size_t len,
			    unsigned long addr, bool (*is_thunk)(unsigned long addr));

/* branches.c: the index of branch targets */

extern struct exception_table_entry __start___ex_table[], __stop___ex_table[];
extern struct static_call_site __start_static_call_sites[], __stop_static_call_sites[];

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

/* text.c: the text without probes */

/* An instruction, and after STI the bytes that is_sti_shadow_needed() decodes. */
#define ORIGINAL_CODE_SIZE	(MAX_INSN_SIZE + 3)

int decode_original_insn(struct insn *insn, u8 *code, unsigned long addr);
void read_original_text(u8 *buf, unsigned long addr, unsigned int len);

/* int3.c: hits */

noinstr void kprobe_enter_nested_hit(struct kprobe *kp, struct pt_regs *regs);
noinstr void kprobe_resume_outer_hit(void);

/* kretprobe.c: returns */

void kretprobe_returned(struct pt_regs *regs);

/* Make @kp the running kprobe of this CPU; its handlers see @regs. */
static __always_inline void kprobe_enter_hit(struct kprobe *kp, struct pt_regs *regs)
{
	raw_cpu_write(current_kprobe, kp);
	barrier();	/* an NMI that sees this puts the rest back as it was */
	raw_cpu_write(kprobe_ctlblk.regs, regs);
	raw_cpu_write(kprobe_context, raw_cpu_read(pcpu_hot.preempt_count));
}

/*
 * Begin a hit, @nested if another hit is under way, and call the pre handlers.
 * Returns their result.
 */
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

/* Stands for the registers while post handlers run: they see the real ip. */
#define POST_HANDLERS_REGS	((struct pt_regs *)-1L)

/* Call the post handlers of the probes whose pre handlers were called. */
static __always_inline void kprobe_run_post_handlers(struct kprobe *kp,
						     struct pt_regs *regs)
{
	raw_cpu_write(kprobe_ctlblk.regs, POST_HANDLERS_REGS);
	if (unlikely(raw_cpu_read(kprobe_ctlblk.depth)))
		kprobe_post_handlers_nested(kp, regs);
	else
		kprobe_call_post_handlers(kp, regs);
}

/* End a hit at whose start kprobe_running() was NULL. */
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

/* End a hit of kprobe_begin_hit(), for callers that know if it is @nested. */
static __always_inline void kprobe_end_hit(bool nested)
{
	if (nested)
		kprobe_resume_outer_hit();
	else
		kprobe_leave_outermost_hit();
}

/* True if this context without @own is above that of the running handler. */
static __always_inline bool kprobe_hit_from_above(unsigned int own)
{
	return kprobe_context_level(preempt_count() - own) >
	       kprobe_context_level(raw_cpu_read(kprobe_context));
}

#endif /* CONFIG_KPROBES */
#endif /* _X86_KPROBES_COMMON_H */
