// SPDX-License-Identifier: GPL-2.0
/*
 * Analysis of instructions: which can be probed, and how to run each of them
 */
#include <linux/cache.h>
#include <linux/export.h>
#include <linux/kernel.h>
#include <linux/minmax.h>
#include <linux/sched.h>
#include <linux/stddef.h>
#include <linux/string.h>

#include <asm/text-patching.h>

#include <kunit/visibility.h>

#include "insn.h"
#include "opcode.h"

/*
 * The opcode maps in the layout of the SDM (volume 2, appendix A): 16 opcodes a row, one
 * enum insn_class an opcode. Besides, only here:
 *
 *   'm'  Ordinary, with a ModRM byte. If the decoder finds none, a prefix has
 *	  made it another instruction, or none.
 *   'o'  Ordinary, and 'O' as 's', but not an instruction of 64-bit mode.
 *   'g'  Depends on the ModRM byte.
 *
 * These are refused: instructions that leave or enter the kernel or a virtual
 * machine, since the breakpoint's handler returns to where it came from;
 * deliberate traps (INT3, INT1, UD2), whose address is their meaning; those that
 * change the base of GS or the stack segment, on which exceptions depend; and
 * bytes that are no instruction.
 */
static const char one_byte_opcodes[] =
	/*       0123456789abcdef */
	/* 0 */ "mmmm..oOmmmm..o-"	/* 6-7, e: PUSH, POP ES, PUSH CS; f: escape */
	/* 1 */ "mmmm..o-mmmm..oO"	/* 6-7, e-f: PUSH, POP SS, DS */
	/* 2 */ "mmmm..-ommmm..-o"	/* 6, e: prefixes; 7, f: DAA, DAS */
	/* 3 */ "mmmm..-ommmm..-o"	/* 6, e: prefixes; 7, f: AAA, AAS */
	/* 4 */ "oooooooooooooooo"	/* INC, DEC; or REX */
	/* 5 */ "................"
	/* 6 */ "ooom----.m.m...."	/* 0-2: PUSHA, POPA, BOUND; 4-7: prefixes */
	/* 7 */ "cccccccccccccccc"	/* Jcc */
	/* 8 */ "mmommmmmmmmmgggg"	/* c-f: MOV from segment, LEA, MOV to, POP */
	/* 9 */ "n.........-.pq.."	/* 0: NOP; a: CALL far; c-d: PUSHF, POPF */
	/* a */ "................"
	/* b */ "................"
	/* c */ "mmrrOOgg..!!!--!"	/* 2-3: RET; 4-5: LES, LDS; a-f: RET far, INT, IRET */
	/* d */ "mmmmoo-.mmmmmmmm"	/* 4-5: AAM, AAD; 8-f: x87 */
	/* e */ "lllz....aj-j...."	/* 0-3: LOOP, JCXZ; 8-b: CALL, JMP, JMP far, JMP */
	/* f */ "----w.mm..xy..gg";	/* 0, 2-3: prefixes; 1: INT1; 4: HLT; a-b: CLI, STI */

static const char two_byte_opcodes[] =
	/*       0123456789abcdef */
	/* 0 */ "ggmm--s-..-!-m.m"	/* 5-7: SYSCALL, CLTS, SYSRET; b: UD2 */
	/* 1 */ "mmmmmmmmm-mmm-gn"	/* f: NOP */
	/* 2 */ "gggg----mmmmmmmm"	/* 0-3: MOV from, to control and debug registers */
	/* 3 */ "s...----m-m-----"	/* 0: WRMSR; 4-7: SYSENTER ... GETSEC; 8, a: escapes */
	/* 4 */ "mmmmmmmmmmmmmmmm"
	/* 5 */ "mmmmmmmmmmmmmmmm"
	/* 6 */ "mmmmmmmmmmmmmmmm"
	/* 7 */ "mmmmmmm.mmmmmmmm"	/* 7: EMMS */
	/* 8 */ "cccccccccccccccc"	/* Jcc */
	/* 9 */ "mmmmmmmmmmmmmmmm"
	/* a */ ".s.mmmmm.--mmmgm"	/* 0-1, 8-9: PUSH, POP FS, GS; 2: CPUID; a: RSM */
	/* b */ "mm-ms-mmm-gmmmmm"	/* 2, 4-5: LSS, LFS, LGS; 9: UD1 */
	/* c */ "mmmmmmmg........"	/* 8-f: BSWAP */
	/* d */ "mmmmmmmmmmmmmmmm"
	/* e */ "mmmmmmmmmmmmmmmm"
	/* f */ "mmmmmmmmmmmmmmm-";	/* f: UD0 */

static_assert(sizeof(one_byte_opcodes) == 256 + 1);
static_assert(sizeof(two_byte_opcodes) == 256 + 1);

/* Stands for every mandatory prefix and for none. */
#define ANY_PREFIX	0xff

/*
 * The classes of instructions that share an opcode, by ModRM.reg. The first entry
 * that matches the mandatory prefix applies.
 */
static const struct opcode_group {
	u16 opcode;
	u8 prefix;
	char memory[8 + 1];	/* with an operand in memory */
	char reg[8 + 1];	/* with one in a register, or none */
} opcode_groups[] = {
	/* MOV from segment; LEA; MOV to ES, CS, SS, DS, FS, GS; POP, or XOP */
	{ 0x8c,   ANY_PREFIX,	 "......--", "......--" },
	{ 0x8d,   ANY_PREFIX,	 "........", "--------" },
	{ 0x8e,   ANY_PREFIX,	 "s--ss---", "s--ss---" },
	{ 0x8f,   ANY_PREFIX,	 ".-------", ".-------" },
	/* MOV and XABORT, outside of a transaction a NOP; MOV and XBEGIN, a branch */
	{ 0xc6,   ANY_PREFIX,	 ".-------", ".------." },
	{ 0xc7,   ANY_PREFIX,	 ".-------", ".------#" },
	/* INC, DEC; INC, DEC, CALL, CALL far, JMP, JMP far, PUSH */
	{ 0xfe,   ANY_PREFIX,	 "..------", "..------" },
	{ 0xff,   ANY_PREFIX,	 "..A+J*.-", "..A+J*.-" },
	/* LKGS; SLDT, STR, LLDT, LTR, VERR, VERW */
	{ 0x0f00, PREFIX_REPNE,	 "------s-", "------s-" },
	{ 0x0f00, ANY_PREFIX,	 "..ss..--", "..ss..--" },
	/* RSTORSSP, ERETU; ERETS; SGDT, SIDT, LGDT, LIDT, SMSW, LMSW, INVLPG */
	{ 0x0f01, PREFIX_REP,	 "-----.--", "g-gggggg" },
	{ 0x0f01, PREFIX_REPNE,	 "--------", "g-gggggg" },
	{ 0x0f01, ANY_PREFIX,	 "..ss.-s.", "gggggggg" },
	/* RDSSP, ENDBR; NOP */
	{ 0x0f1e, PREFIX_REP,	 "........", ".......e" },
	{ 0x0f1e, ANY_PREFIX,	 "........", "........" },
	/* MOV from CR, DR; MOV to CR, DR */
	{ 0x0f20, ANY_PREFIX,	 "--------", ".-...---" },
	{ 0x0f21, ANY_PREFIX,	 "--------", "........" },
	{ 0x0f22, ANY_PREFIX,	 "--------", "s-sss---" },
	{ 0x0f23, ANY_PREFIX,	 "--------", "ssssssss" },
	/* PTWRITE, CLRSSBSY, RDFSBASE, RDGSBASE, WRFSBASE, WRGSBASE, INCSSP, UMONITOR */
	{ 0x0fae, PREFIX_REP,	 "----.-.-", "..s-...-" },
	/* UMWAIT; CLWB, CLFLUSHOPT, TPAUSE; FXSAVE to CLFLUSH, LFENCE, MFENCE, SFENCE */
	{ 0x0fae, PREFIX_REPNE,	 "--------", "------t-" },
	{ 0x0fae, PREFIX_OPSIZE, "------..", "------t-" },
	{ 0x0fae, ANY_PREFIX,	 "........", "-----..." },
	/* BT, BTS, BTR, BTC */
	{ 0x0fba, ANY_PREFIX,	 "----....", "----...." },
	/* CMPXCHG8B, VMXON, SENDUIPI, RDPID */
	{ 0x0fc7, PREFIX_REP,	 "-.----.-", "-------." },
	/* CMPXCHG8B, XRSTORS, XSAVEC, XSAVES, VMPTRLD, VMPTRST, RDRAND, RDSEED */
	{ 0x0fc7, ANY_PREFIX,	 "-.-.....", "------.." },
};

/* 0f 01 without an operand in memory, by ModRM.reg and ModRM.rm */
static const char group_7[] =
	/*       01234567 */
	/* 0 */ "-.--..s."	/* ENCLV, VMCALL, VMLAUNCH, VMRESUME, VMXOFF, PCONFIG, WRMSRNS */
	/* 1 */ ".w...---"	/* MONITOR, MWAIT, CLAC, STAC, TDCALL, SEAMRET, SEAMOPS, ENCLS */
	/* 2 */ ".s---..-"	/* XGETBV, XSETBV, -, -, VMFUNC, XEND, XTEST, ENCLU */
	/* 3 */ "-.-.---."	/* VMRUN, VMMCALL, VMLOAD, VMSAVE, STGI, CLGI, SKINIT, INVLPGA */
	/* 4 */ "........"	/* SMSW */
	/* 5 */ "...--..."	/* SERIALIZE, XRESLDTRK, SAVEPREVSSP, -, UIRET, TESTUI, RDPKRU */
	/* 6 */ "ssssssss"	/* LMSW */
	/* 7 */ "-..w....";	/* SWAPGS, RDTSCP, MONITORX, MWAITX, CLZERO, RDPRU, INVLPGB */

static_assert(sizeof(group_7) == 8 * 8 + 1);

static const struct opcode_group *find_opcode_group(u16 opcode, u8 prefix)
{
	const struct opcode_group *g;

	for (g = opcode_groups; g < opcode_groups + ARRAY_SIZE(opcode_groups); g++)
		if (g->opcode == opcode &&
		    (g->prefix == prefix || g->prefix == ANY_PREFIX))
			return g;
	return NULL;
}

static char opcode_group_class(const struct insn *insn)
{
	u8 prefix = mandatory_prefix(insn), modrm = insn->modrm.bytes[0];
	const struct opcode_group *g = find_opcode_group(insn_opcode(insn), prefix);
	char class;

	if (!g || !insn->modrm.nbytes)
		return INSN_REFUSED;
	if (X86_MODRM_MOD(modrm) != 3)
		return g->memory[X86_MODRM_REG(modrm)];

	class = g->reg[X86_MODRM_REG(modrm)];
	if (class == INSN_ENDBR && modrm != MODRM_ENDBR64 && modrm != MODRM_ENDBR32)
		return INSN_REFUSED;
	if (class == 'g')
		class = group_7[modrm & 0x3f];
	/* Prefixes change an instruction of group 7 but not its class, except that of MWAIT. */
	return class == INSN_WAIT && prefix ? INSN_REFUSED : class;
}

static char vex_insn_class(const struct insn *insn)
{
	u8 reg = X86_MODRM_REG(insn->modrm.bytes[0]);

	/* These prefixes make it undefined, which the decoder ignores. */
	if (insn->rex_prefix.nbytes || mandatory_prefix(insn) ||
	    has_prefix(insn, PREFIX_LOCK))
		return INSN_REFUSED;

	/* The decoder accepts all of EVEX ff; only INC, DEC and PUSH2 exist. */
	if (is_apx_insn(insn) && insn->opcode.bytes[0] == OPCODE_GROUP5 && reg > 1 &&
	    reg != GROUP5_PUSH)
		return INSN_REFUSED;

	return INSN_ORDINARY;
}

/*
 * kprobe_insn_class() - The enum insn_class of an instruction that is decoded up to its ModRM byte
 *
 * Prefixes that forbid to probe it are not considered, see kprobe_analyse_insn().
 */
char kprobe_insn_class(const struct insn *insn)
{
	u16 opcode = insn_opcode(insn);
	char class;

	if (opcode >= OPCODE_VEX)
		return vex_insn_class(insn);

	class = opcode < 0x100 ? one_byte_opcodes[opcode] : two_byte_opcodes[opcode & 0xff];
	switch (class) {
	case 'g':
		return opcode_group_class(insn);
	case 'm':
		return insn->modrm.nbytes ? INSN_ORDINARY : INSN_REFUSED;
	case 'o':
		return insn->x86_64 ? INSN_REFUSED : INSN_ORDINARY;
	case 'O':
		return insn->x86_64 ? INSN_REFUSED : INSN_SYSTEM;
	case INSN_NOP:	/* these prefixes make it XCHG or PAUSE */
		if (opcode == OPCODE_NOP &&
		    (X86_REX_B(insn->rex_prefix.bytes[0]) || is_rex2_insn(insn) ||
		     has_prefix(insn, PREFIX_REP)))
			return INSN_ORDINARY;
		return INSN_NOP;
	default:
		return class;
	}
}
EXPORT_SYMBOL_IF_KUNIT(kprobe_insn_class);

/*
 * STI delays interrupts until the next instruction has ended, but not if a breakpoint
 * comes between them, emulated or not. Without that shadow a wait would miss its wakeup,
 * and an exit from the kernel could be interrupted.
 */
static bool is_sti_shadow_needed(const struct insn *sti)
{
	const insn_byte_t *addr = sti->kaddr + sti->length;
	struct insn next;
	char class;

	insn_init(&next, addr, sti->end_kaddr - addr, sti->x86_64);
	if (insn_get_modrm(&next))
		return true;

	class = kprobe_insn_class(&next);
	return class == INSN_WAIT || class == INSN_TIMED_WAIT || class <= INSN_REFUSED;
}

/* Refused forms that the class of the opcode does not cover. */
static bool is_refused_form(const struct insn *insn)
{
	/* A UD2, and a marker that asks a hypervisor to emulate the rest. */
	if (insn->emulate_prefix_size)
		return true;

	/* Relative to EIP, so in the low 4 GiB: kprobe_relocate_insn() cannot copy it. */
	if (is_rip_relative(insn) && insn->addr_bytes != 8)
		return true;

	/* Undefined, or JMPABS. */
	return is_rex2_insn(insn) && (insn->attr & INAT_NO_REX2);
}

/*
 * The store of cond_resched_tasks_rcu_qs(), by which a task tells RCU-tasks that it is in no slot.
 * So it must not be preempted in the slot of this store. Other structures have fields there, too.
 */
static bool is_store_to_rcu_tasks_holdout(const struct insn *insn)
{
#ifdef CONFIG_TASKS_RCU
	u16 opcode = insn_opcode(insn);

	return (opcode == OPCODE_MOV_R8 || opcode == OPCODE_MOV_IMM8) &&
	       insn->displacement.value == offsetof(struct task_struct, rcu_tasks_holdout);
#else
	return false;
#endif
}

/*
 * kprobe_analyse_insn() - Determine how to run an instruction without post handlers
 *
 * STI is refused unless the buffer also has the bytes of the next instruction up to its ModRM byte,
 * or three. The result depends only on the bytes in the buffer.
 */
enum insn_run kprobe_analyse_insn(const struct insn *insn)
{
	char class = kprobe_insn_class(insn);
	struct insn_emulation emul;

	if (is_refused_form(insn))
		return INSN_RUN_NEVER;
	if (class == INSN_ORDINARY || class == INSN_SYSTEM)
		return is_store_to_rcu_tasks_holdout(insn) ? INSN_RUN_STEP : INSN_RUN_BOOST;
	if (kprobe_prepare_emulation(&emul, insn) ||
	    (class == INSN_STI && is_sti_shadow_needed(insn)))
		return INSN_RUN_NEVER;
	return class == INSN_NOP || class == INSN_ENDBR || class == INSN_WAIT ?
		INSN_RUN_SKIP : INSN_RUN_EMULATE;
}
EXPORT_SYMBOL_IF_KUNIT(kprobe_analyse_insn);

/* The tests decode the instructions that they pass to kprobe_analyse_insn(). */
EXPORT_SYMBOL_IF_KUNIT(insn_decode);

#define ANY	(-1)

static const struct cfi_check {
	size_t size;
	s16 code[14];
} cfi_checks[] = {
	/* movl $-hash, %r10d; addl -n(%target), %r10d; je 1f; ud2; 1: */
	{ 14, { 0x41, 0xba, ANY, ANY, ANY, ANY, ANY, 0x03, ANY, ANY, 0x74, 0x02, 0x0f, 0x0b } },
	/* The same, but jne to the constant of testb $0xd6, %al, where it is a UDB. */
	{ 14, { 0x41, 0xba, ANY, ANY, ANY, ANY, ANY, 0x03, ANY, ANY, 0x75, 0x01, 0xa8, 0xd6 } },
	/* With cfi=off the movl of the first check has become a jmp over the rest. */
	{ 14, { 0xeb, 0x0c, ANY, ANY, ANY, ANY, ANY, 0x03, ANY, ANY, 0x74, 0x02, 0x0f, 0x0b } },
	/*
	 * A check by callers of FineIBT: cmpl -11(%r11), %eax; cs leaq -16(%r11), %r11; jne to
	 * the last byte of the leaq, with which the jne is an invalid LOCK JNE.
	 */
	{ 11, { 0x41, 0x3b, 0x43, 0xf5, 0x2e, 0x4d, 0x8d, 0x5b, 0xf0, 0x75, 0xfd } },
};

/* arch_seek_insn() has as many bytes of each instruction. */
static_assert(ARRAY_SIZE(cfi_checks[0].code) <= MAX_INSN_SIZE);

/*
 * kprobe_cfi_check_size() - The size of a check of an indirect call's target at @code, or 0
 *
 * No instruction of a check can be probed: the handler of a failed check decodes
 * them, and a disabled check has data between them. Callers that walk through the
 * instructions of a function call this at each and skip as many bytes as it returns.
 * It does not recognise what precedes a function, after the symbol __cfi_*. With
 * FineIBT the check is there, and most callers have none.
 */
size_t kprobe_cfi_check_size(const u8 *code, size_t len)
{
	const struct cfi_check *check;
	size_t i;

	for (check = cfi_checks; check < cfi_checks + ARRAY_SIZE(cfi_checks); check++) {
		for (i = 0; i < min(len, check->size); i++)
			if (check->code[i] != ANY && check->code[i] != code[i])
				break;
		if (i == check->size)
			return check->size;
	}
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(kprobe_cfi_check_size);

/*
 * kprobe_is_static_call_tramp() - True if the trampoline of a static call is at @code
 *
 * The static call code patches the first instruction, a jump or a return, and
 * accepts no other one there. A signature follows it.
 */
bool kprobe_is_static_call_tramp(const u8 *code, size_t len)
{
	static const u8 signature[] = { 0x0f, 0xb9, 0xcc };

	return len >= JMP32_INSN_SIZE + sizeof(signature) &&
	       !memcmp(code + JMP32_INSN_SIZE, signature, sizeof(signature));
}
