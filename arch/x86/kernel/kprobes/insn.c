// SPDX-License-Identifier: GPL-2.0
/*
 * Analysis of instructions: which can be probed, and how each is run then
 *
 * Nothing here knows of probes, and nothing is read but the bytes that were
 * decoded and those behind them in the same buffer.
 */

#include <linux/kernel.h>

#include <kunit/visibility.h>

#include "common.h"

/*
 * The opcode maps as the SDM prints them (volume 2, appendix A): 16 opcodes a
 * row, a class an opcode.
 *
 *   '.'  Ordinary: a copy does elsewhere what the original does here.
 *   'm'  Ordinary, with a ModRM byte. Where the decoder finds none, a prefix
 *	  made another instruction of it, or none.
 *   's'  Ordinary, but not under the stub which calls post handlers: loads a
 *	  control, debug, segment or model specific register, or the address of
 *	  a descriptor table.
 *   'e'  Emulated, or skipped if that amounts to nothing; refused in the forms
 *	  that cannot be emulated.
 *   'n'  The same, but ordinary in the forms that cannot be.
 *   'w'  The same as 'e': waits, which may end at any time, so it is emulated
 *	  as no wait at all. A copy would sleep over the wakeup that came with
 *	  the breakpoint.
 *   'g'  Depends on its ModRM byte.
 *   'o'  As '.', and 'O' as 's', but not an instruction of 64-bit mode.
 *   '-'  Refused.
 *
 * Refused is what leaves the kernel or the world it runs in, and what enters
 * one: the breakpoint's handler returns to where it came from. So is what traps
 * on purpose (INT3, INT1, UD2), as the address tells why; what changes the base
 * of GS or the stack segment, on which exceptions depend; and what is no
 * instruction.
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
	/* 7 */ "eeeeeeeeeeeeeeee"	/* Jcc */
	/* 8 */ "mmommmmmmmmmgggg"	/* c-f: MOV from segment, LEA, MOV to, POP */
	/* 9 */ "n.........-.ee.."	/* 0: NOP; a: CALL far; c-d: PUSHF, POPF */
	/* a */ "................"
	/* b */ "................"
	/* c */ "mmeeOOgg..------"	/* 2-3: RET; 4-5: LES, LDS; a-f: RET far, INT, IRET */
	/* d */ "mmmmoo-.mmmmmmmm"	/* 4-5: AAM, AAD; 8-f: x87 */
	/* e */ "eeee....ee-e...."	/* 0-3: LOOP, JCXZ; 8-b: CALL, JMP, JMP far, JMP */
	/* f */ "----w.mm..ee..gg";	/* 0, 2-3: prefixes; 1: INT1; 4: HLT; a-b: CLI, STI */

static const char two_byte_opcodes[] =
	/*       0123456789abcdef */
	/* 0 */ "ggmm--s-..---m.m"	/* 5-7: SYSCALL, CLTS, SYSRET; b: UD2 */
	/* 1 */ "mmmmmmmmm-mmm-ge"	/* f: NOP */
	/* 2 */ "gggg----mmmmmmmm"	/* 0-3: MOV from, to control and debug registers */
	/* 3 */ "s...----m-m-----"	/* 0: WRMSR; 4-7: SYSENTER ... GETSEC; 8, a: escapes */
	/* 4 */ "mmmmmmmmmmmmmmmm"
	/* 5 */ "mmmmmmmmmmmmmmmm"
	/* 6 */ "mmmmmmmmmmmmmmmm"
	/* 7 */ "mmmmmmm.mmmmmmmm"	/* 7: EMMS */
	/* 8 */ "eeeeeeeeeeeeeeee"	/* Jcc */
	/* 9 */ "mmmmmmmmmmmmmmmm"
	/* a */ ".s.mmmmm.--mmmgm"	/* 0-1, 8-9: PUSH, POP FS, GS; 2: CPUID; a: RSM */
	/* b */ "mm-ms-mmm-gmmmmm"	/* 2, 4-5: LSS, LFS, LGS; 9: UD1 */
	/* c */ "mmmmmmmg........"	/* 8-f: BSWAP */
	/* d */ "mmmmmmmmmmmmmmmm"
	/* e */ "mmmmmmmmmmmmmmmm"
	/* f */ "mmmmmmmmmmmmmmm-";	/* f: UD0 */

static_assert(sizeof(one_byte_opcodes) == 256 + 1);
static_assert(sizeof(two_byte_opcodes) == 256 + 1);

/* Not a prefix: with each of the mandatory ones it is the same, and without. */
#define ANY_PREFIX	0xff

/*
 * The classes of instructions that share an opcode, by ModRM.reg. The first
 * entry that fits the mandatory prefix counts.
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
	{ 0xc7,   ANY_PREFIX,	 ".-------", ".-------" },
	/* INC, DEC; INC, DEC, CALL, CALL far, JMP, JMP far, PUSH */
	{ 0xfe,   ANY_PREFIX,	 "..------", "..------" },
	{ 0xff,   ANY_PREFIX,	 "..e-e-.-", "..e-e-.-" },
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
	{ 0x0fae, PREFIX_REPNE,	 "--------", "------w-" },
	{ 0x0fae, PREFIX_OPSIZE, "------..", "------w-" },
	{ 0x0fae, ANY_PREFIX,	 "........", "-----..." },
	/* BT, BTS, BTR, BTC */
	{ 0x0fba, ANY_PREFIX,	 "----....", "----...." },
	/* CMPXCHG8B, VMXON, SENDUIPI, RDPID */
	{ 0x0fc7, PREFIX_REP,	 "-.----.-", "-------." },
	/* CMPXCHG8B, XRSTORS, XSAVEC, XSAVES, VMPTRLD, VMPTRST, RDRAND, RDSEED */
	{ 0x0fc7, ANY_PREFIX,	 "-.-.....", "------.." },
};

/*
 * 0f 01 without an operand in memory, by ModRM.reg and ModRM.rm. What prefixes
 * make of one of them belongs to the same class, except in row 1.
 */
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

	for (g = opcode_groups; g < opcode_groups + ARRAY_SIZE(opcode_groups); g++) {
		if (g->opcode == opcode &&
		    (g->prefix == prefix || g->prefix == ANY_PREFIX))
			return g;
	}
	return NULL;
}

static char opcode_group_class(const struct insn *insn)
{
	const struct opcode_group *g = find_opcode_group(insn_opcode(insn),
							 mandatory_prefix(insn));
	u8 modrm = insn->modrm.bytes[0];
	char class;

	if (!g || !insn->modrm.nbytes)
		return '-';
	if (X86_MODRM_MOD(modrm) != 3)
		return g->memory[X86_MODRM_REG(modrm)];

	class = g->reg[X86_MODRM_REG(modrm)];
	return class == 'g' ? group_7[modrm & 0x3f] : class;
}

static char vex_insn_class(const struct insn *insn)
{
	u8 reg = X86_MODRM_REG(insn->modrm.bytes[0]);
	bool evex = insn->vex_prefix.nbytes == 4;

	/* These prefixes make it undefined, which the decoder does not mind. */
	if (insn->rex_prefix.nbytes || mandatory_prefix(insn) ||
	    has_prefix(insn, PREFIX_LOCK))
		return '-';

	/* It decodes all of ff promoted by EVEX; there are INC, DEC and PUSH2. */
	if (evex && X86_EVEX_M(insn->vex_prefix.bytes[1]) == 4 &&
	    insn->opcode.bytes[0] == 0xff && reg > 1 && reg != 6)
		return '-';

	return '.';
}

static char insn_class(const struct insn *insn)
{
	u16 opcode = insn_opcode(insn);
	char class;

	if (opcode >= OPCODE_VEX)
		return vex_insn_class(insn);

	class = opcode < 0x100 ? one_byte_opcodes[opcode] :
				 two_byte_opcodes[opcode & 0xff];
	return class == 'g' ? opcode_group_class(insn) : class;
}

/*
 * STI holds interrupts back until the next instruction has ended. Emulated or
 * not, it cannot when a breakpoint is between them; that must not hurt a wait,
 * which would miss its wakeup, nor a way out of the kernel.
 */
static bool is_sti_shadow_needed(const struct insn *sti)
{
	const insn_byte_t *addr = sti->kaddr + sti->length;
	struct insn next;
	char class;

	insn_init(&next, addr, sti->end_kaddr - addr, sti->x86_64);
	if (insn_get_modrm(&next))
		return true;

	class = insn_class(&next);
	return class == 'w' || class == '-';
}

static enum insn_run insn_emulated_run(const struct insn *insn)
{
	struct insn_emulation emul;

	if (insn_opcode(insn) == 0xfb && is_sti_shadow_needed(insn))
		return INSN_RUN_NEVER;
	if (prepare_emulation(&emul, insn))
		return INSN_RUN_NEVER;

	return emulates_nothing(&emul) ? INSN_RUN_SKIP : INSN_RUN_EMULATE;
}

/* What the class of an opcode does not tell: whole forms that are refused. */
static bool is_refused_form(const struct insn *insn)
{
	/* UD2 in fact, and a marker that tells a hypervisor to emulate the rest. */
	if (insn->emulate_prefix_size)
		return true;

	/* Relative to EIP: somewhere in the low 4 GiB, from a slot elsewhere there. */
	if (is_rip_relative(insn) && insn->addr_bytes != 8)
		return true;

	/* Undefined, or JMPABS. */
	return insn->rex_prefix.nbytes == 2 && (insn->attr & INAT_NO_REX2);
}

static const struct insn_traits boosted_or_stepped = {
	.run = INSN_RUN_BOOST,
	.run_post = INSN_RUN_STEP,
};

static struct insn_traits traits_alike(enum insn_run run)
{
	return (struct insn_traits){ .run = run, .run_post = run };
}

/**
 * analyse_insn() - Find out how an instruction can be run
 * @insn: the instruction, decoded completely. Of STI what follows it in the
 *	  buffer is looked at, three bytes or as many as an instruction needs up
 *	  to its ModRM byte, and the STI is refused if they are not there.
 *
 * Context: any. Pure: the result depends on nothing but the bytes in the buffer.
 * Return: how to run it; both members are INSN_RUN_NEVER if it cannot be probed
 */
struct insn_traits analyse_insn(const struct insn *insn)
{
	switch (is_refused_form(insn) ? '-' : insn_class(insn)) {
	case '.':
		return traits_alike(INSN_RUN_BOOST);
	case 'm':
		return traits_alike(insn->modrm.nbytes ? INSN_RUN_BOOST : INSN_RUN_NEVER);
	case 's':
		return boosted_or_stepped;
	case 'e':
	case 'w':
		return traits_alike(insn_emulated_run(insn));
	case 'n':
		return traits_alike(insn_emulated_run(insn) ?: INSN_RUN_BOOST);
	case 'o':
		return traits_alike(insn->x86_64 ? INSN_RUN_NEVER : INSN_RUN_BOOST);
	case 'O':
		return insn->x86_64 ? traits_alike(INSN_RUN_NEVER) : boosted_or_stepped;
	default:
		return traits_alike(INSN_RUN_NEVER);
	}
}
EXPORT_SYMBOL_IF_KUNIT(analyse_insn);

/* The tests decode what they let it analyse. */
EXPORT_SYMBOL_IF_KUNIT(insn_decode);

#define ANY	(-1)

static const struct cfi_check {
	size_t size;
	s16 code[14];
} cfi_checks[] = {
	/* movl $-hash, %r10d; addl -n(%target), %r10d; je 1f; ud2; 1: */
	{ 14, { 0x41, 0xba, ANY, ANY, ANY, ANY, ANY, 0x03, ANY, ANY, 0x74, 0x02, 0x0f, 0x0b } },
	/* The same with cfi=off: the movl has become a jmp over the rest. */
	{ 14, { 0xeb, 0x0c, ANY, ANY, ANY, ANY, ANY, 0x03, ANY, ANY, 0x74, 0x02, 0x0f, 0x0b } },
	/* FineIBT, caller: movl $hash, %r10d; subq $16, %r11; nopl 0(%rax) */
	{ 14, { 0x41, 0xba, ANY, ANY, ANY, ANY, 0x49, 0x83, 0xeb, 0x10, 0x0f, 0x1f, 0x40, 0x00 } },
	/* FineIBT, in front of the callee: subl $hash, %r10d; je 1f; ud2; nop; 1: */
	{ 12, { 0x41, 0x81, 0xea, ANY, ANY, ANY, ANY, 0x74, 0x03, 0x0f, 0x0b, 0x90 } },
};

static bool is_cfi_check(const struct cfi_check *check, const u8 *code)
{
	size_t i;

	for (i = 0; i < check->size; i++) {
		if (check->code[i] != ANY && check->code[i] != code[i])
			return false;
	}
	return true;
}

/**
 * cfi_check_size() - Does a check of an indirect call's target begin here?
 * @code: the address of an instruction, or of a copy of the text from there on
 * @len: how many bytes can be read at @code
 *
 * The handler of a failed check decodes its instructions, and one that is
 * switched off has data between them. So they cannot be probed. Who walks
 * through the instructions of a function asks at each and, where the answer is
 * not 0, goes on behind that many bytes: no instruction in them can be probed.
 * The hash in front of a function, behind the symbol __cfi_*, is not seen here.
 *
 * Return: the size of the check in bytes, 0 if there is none
 */
size_t cfi_check_size(const u8 *code, size_t len)
{
	const struct cfi_check *check;

	for (check = cfi_checks; check < cfi_checks + ARRAY_SIZE(cfi_checks); check++) {
		if (check->size <= len && is_cfi_check(check, code))
			return check->size;
	}
	return 0;
}
EXPORT_SYMBOL_IF_KUNIT(cfi_check_size);

/**
 * is_static_call_tramp() - Is this the trampoline of a static call?
 * @code: the address of an instruction, or of a copy of the text from there on
 * @len: how many bytes can be read at @code
 *
 * Its first instruction, a jump or a return, is patched, and nothing else may be
 * found there. What is behind that is a signature.
 *
 * Return: whether it is
 */
bool is_static_call_tramp(const u8 *code, size_t len)
{
	static const u8 signature[] = { 0x0f, 0xb9, 0xcc };

	return len >= JMP32_INSN_SIZE + sizeof(signature) &&
	       !memcmp(code + JMP32_INSN_SIZE, signature, sizeof(signature));
}
EXPORT_SYMBOL_IF_KUNIT(is_static_call_tramp);
