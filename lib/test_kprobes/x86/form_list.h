/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Forms of x86 instructions, for forms.c, which defines these macros:
 *
 *   FORM(name, before, instruction, after): does not branch
 *   BRANCH_FORM(name, before, instruction, after): may branch, and returns itself
 *
 * The code in front of the instruction must not change flags, as they are part of the
 * input. Of the registers, si points to the middle of eight words of memory, di to the
 * word below, and cx is 0, 1 or 2.
 */

#ifdef CONFIG_X86_64
#include "form_list_64.h"
#else
#include "form_list_32.h"
#endif

/* Arithmetic */
FORM("add", "", "add " DX ", " AX, "")
FORM("add_al", "", "add $0x7f, %al", "")
FORM("add_from_mem", "", "add (" SI "), " AX, "")
FORM("add_to_mem", "", "add " AX ", 8(" SI ")", "")
FORM("add_imm_to_mem", "", "addl $0x12345678, 4(" SI ", " CX ", 4)", "")
FORM("or", "", "or %ebx, %edx", "")
FORM("adc_mem", "", "adc " DX ", (" SI ")", "")
FORM("sbb", "", "sbb " AX ", " AX, "")
FORM("and_imm", "", "and $0x0f0f0f0f, " AX, "")
FORM("sub_high", "", "sub %dh, %bl", "")
FORM("cmp_mem", "", "cmpb $4, -8(" SI ")", "")
FORM("cmp_rip", "", "cmpl $0x55667788, " VARIABLE("kprobes_test_cell"), "")
FORM("test", "", "test " DX ", " DX, "")
FORM("test_mem", "", "testl $0x1000, (" SI ")", "")
FORM("inc", "", "inc %ecx", "")
FORM("dec_mem", "", "decl (" DI ")", "")
FORM("not_mem", "", __ASM_SIZE(not) "(" SI ")", "")
FORM("lock_add", "", "lock addl $1, (" SI ")", "")
FORM("add_rip", "", "addl $5, " VARIABLE("kprobes_test_cell"), TAKE_5)
FORM("mul", "", "mul " DX, "")
FORM("imul", "", "imul " DX ", " AX, "")
FORM("imul_imm", "", "imul $77, (" SI "), " BX, "")
FORM("div", "mov $0, %edx\n	mov $7, %ebx", "div " BX, "")
FORM("idiv", "mov $-1, " DX "\n	mov $-99, " AX "\n	mov $7, %ebx", "idiv %ebx", "")
FORM("shl_cl", "", "shl %cl, " DX, "")
FORM("sar", "", "sar $3, " DX, "")
FORM("rol_mem_cl", "", __ASM_SIZE(rol) "%cl, (" SI ")", "")
FORM("rcr", "", "rcr $1, " AX, "")
FORM("shld", "", "shld $4, " DX ", " AX, "")
FORM("shrd_cl", "", "shrd %cl, " DX ", " AX, "")
FORM("bt", "", "bt " CX ", " DX, "")
FORM("lock_btr", "", "lock" __ASM_SIZE(btr) "$3, (" SI ")", "")
FORM("bts_mem", "", "bts " CX ", (" SI ")", "")
FORM("bsf", "", "bsf " DX ", " AX, "")
FORM("bswap", "", "bswap " DX, "")

/* Moves */
FORM("mov", "", "mov " DX ", " AX, "")
FORM("mov_imm", "", "mov $0x12345678, %eax", "")
FORM("mov_load", "", "mov -8(" SI "), " AX, "")
FORM("mov_store_high", "", "mov %ah, (" SI ")", "")
FORM("mov_imm_store", "", "movl $0x12345678, 8(" SI ")", "")
FORM("mov_rip", "", "mov " VARIABLE("kprobes_test_cell") ", " DX, "")
FORM("lea", "", "lea -3(" DX ", " CX ", 4), " AX, "")
FORM("lea_rip", "", "lea " VARIABLE("kprobes_test_cell") ", " BX, "")
FORM("movzx", "", "movzbl %dl, %eax", "")
FORM("xlat", "lea (" SI "), " BX "\n	mov $1, %al", "xlat", "")
FORM("xchg", "", "xchg " DX ", " AX, "")
FORM("xchg_mem", "", "xchg " DX ", (" SI ")", "")
FORM("cmpxchg", "", "lock cmpxchg " DX ", (" SI ")", "")
FORM("cmpxchg_equal", "mov (" SI "), " AX, "lock cmpxchg " DX ", (" SI ")", "")
FORM("cmpxchg8b", "", "lock cmpxchg8b (" SI ")", "")
FORM("cmpxchg_unlocked", "", "cmpxchg " DX ", (" SI ")", "")
FORM("cmpxchg_byte", "", "lock cmpxchg %dl, (" SI ")", "")
FORM("cmpxchg_reg", "", "cmpxchg " DX ", " BX, "")
FORM("xadd", "", "lock xadd " DX ", (" SI ")", "")
FORM("xadd_unlocked", "", "xadd %edx, (" SI ")", "")
FORM("xadd_byte", "", "lock xadd %dl, (" SI ")", "")
FORM("lock_xchg", "", "lock xchg " DX ", (" SI ")", "")
FORM("lock_inc", "", "lock" __ASM_SIZE(inc) "(" SI ")", "")
FORM("lock_or", "", "lock orb $1, (" SI ")", "")
FORM("lock_add_rip", "", "lock addl $5, " VARIABLE("kprobes_test_cell"), TAKE_5)
FORM("cmovb", "", "cmovb " DX ", " AX, "")
FORM("cmovg_mem", "", "cmovg (" SI "), %ebx", "")
FORM("sete", "", "sete %dl", "")
FORM("setl_mem", "", "setl (" SI ")", "")

/* Strings, in the direction that DF says */
FORM("movsl", "", "movsl", "")
FORM("lodsw", "", "lodsw", "")
FORM("stosb", "", "stosb", "")
FORM("scasb", "", "scasb", "")
FORM("rep_movsb", "", "rep movsb", "")
FORM("rep_stosl", "", "rep stosl", "")
FORM("repe_cmpsb", "", "repe cmpsb", "")
FORM("repne_scasb", "", "repne scasb", "")

/* The stack */
FORM("push", "", "push " DX, "pop " AX)
FORM("push_imm8", "", "push $-3", "pop " AX)
FORM("push_imm32", "", "push $0x12345678", "pop " AX)
FORM("pushw", "", "pushw $0x1234", "popw %ax")
FORM("push_mem", "", __ASM_SIZE(push) "8(" SI ")", "pop " AX)
FORM("push_mem_sp", "push " DX, __ASM_SIZE(push) "(" SP ")", "pop " AX "\n	pop " BX)
FORM("push_rip", "", __ASM_SIZE(push) VARIABLE("kprobes_test_cell"), "pop " AX)
FORM("push_sp", "", "push " SP, "pop " AX "\n	sub " SP ", " AX)
FORM("pop", "push " DX, "pop " BX, "")
FORM("pop_mem", "push " DX, __ASM_SIZE(pop) "8(" SI ")", "")
FORM("pop_mem_sp", "push " DX "\n	push " AX, __ASM_SIZE(pop) "(" SP ")", "pop " BX)
FORM("mov_sp", "", "mov " SP ", " AX, "sub " SP ", " AX)
FORM("sub_sp", "", "sub $24, " SP, "add $24, " SP)
FORM("mov_below_sp", "", "mov " DX ", -8(" SP ")", "")
FORM("leave", "push " BP "\n	mov " SP ", " BP, "leave", "")

/* Flags */
FORM("pushf", "", "pushf", "pop " AX)
FORM("popf", "push $0xad7", "popf", "")
FORM("popf_off", "push $0x046", "popf", "")
FORM("cli", "", "cli", "")
FORM("sti", "", "sti", "nop")
FORM("cld", "std", "cld", "")
FORM("std", "", "std", "cld")
FORM("stc", "", "stc", "")
FORM("clc", "", "clc", "")
FORM("cmc", "", "cmc", "")
FORM("lahf", "", "lahf", "")
FORM("sahf", "mov $0x55, %ah", "sahf", "")

/* No effect, or one on the system only */
FORM("nop", "", "nop", "")
FORM("nop2", "", "xchg %ax, %ax", "")
FORM("nopl", "", "nopl 8(" AX ", " AX ")", "")
FORM("nopw", "", "nopw 0x100(" AX ", " AX ")", "")
FORM("pause", "", "pause", "")
FORM("lfence", "", "lfence", "")
FORM("mfence", "", "mfence", "")
FORM("prefetch", "", "prefetcht0 (" SI ")", "")
FORM("clflush", "", "clflush (" SI ")", "")
FORM("invlpg", "", "invlpg (" SI ")", "")
FORM("cpuid", "mov $0, %eax\n	mov $0, %ecx", "cpuid", "")
FORM("str", "", "str %eax", "")
FORM("mov_from_ds", "", "mov %ds, %eax", "")
FORM("mov_from_fs_mem", "", "mov %fs, (" SI ")", "")
FORM("mov_to_es", "mov %es, %eax", "mov %eax, %es", "")
FORM("mov_from_cr0", "", "mov %cr0, " AX, "")
FORM("mov_to_cr0", "mov %cr0, " BX, "mov " BX ", %cr0", "")
FORM("clts", "", "clts", "")

/* Per-CPU variables: each has the same value on all CPUs, and is put back */
FORM("gs_load", "", "mov " NUMBER_HERE ", " AX, "")
FORM("gs_load_base", LEA_NUMBER, "mov " PER_CPU "(" BX "), " AX, "")
FORM("gs_load_index", LEA_NUMBER "\nmov $0, %ecx", "mov " PER_CPU "(" BX ", " CX ", 8), " AX, "")
FORM("gs_store", "", "mov " DX ", " NUMBER_HERE, SHOW_NUMBER)
FORM("gs_store_imm", "", "movl $0x12345678, " NUMBER_HERE, SHOW_NUMBER)
FORM("gs_inc", "", "incl " NUMBER_HERE, SHOW_NUMBER)
FORM("gs_add", "", "add " DX ", " NUMBER_HERE, SHOW_NUMBER)
FORM("gs_add_imm", "", "addl $0x12345678, " NUMBER_HERE, SHOW_NUMBER)
FORM("gs_or", "", "or " DX ", " NUMBER_HERE, SHOW_NUMBER)
FORM("gs_cmp", "", "cmpl $7, " NUMBER_HERE, "")
FORM("gs_test", "", "testb $2, " NUMBER_HERE, "")
FORM("gs_xchg", "", "xchg " DX ", " NUMBER_HERE, SHOW_NUMBER)
FORM("gs_xadd", "", "xadd " DX ", " NUMBER_HERE, SHOW_NUMBER)
FORM("gs_cmpxchg", "", "cmpxchg " DX ", " NUMBER_HERE, SHOW_NUMBER)
FORM("gs_cmpxchg_equal", "mov $7, %eax", "cmpxchg " DX ", " NUMBER_HERE, SHOW_NUMBER)
FORM("gs_cmpxchg8b", "", "cmpxchg8b " NUMBER_HERE, SHOW_NUMBER)
FORM("gs_push", "", __ASM_SIZE(push) NUMBER_HERE, "pop " AX)

/* preempt_count */
FORM("count_load", "", "movzbl " COUNT_HERE ", %eax", "")
FORM("count_raise", "", "incb " COUNT_HERE, "decb " COUNT_HERE)
FORM("count_add", "", "addb $1, " COUNT_HERE, "decb " COUNT_HERE)
FORM("count_lower", "pushf\n	incb " COUNT_HERE "\n	popf", "decb " COUNT_HERE, "")
FORM("count_cmp", "", "cmpb $0, " COUNT_HERE, "")
FORM("count_xadd", "mov $1, %edx", "xadd %dl, " COUNT_HERE, "decb " COUNT_HERE)

/* The FPU */
FORM("x87_fld1", "", "fld1", "fstpl (" SI ")")
FORM("x87_fstpl", "fldpi", "fstpl -8(" SI ")", "")
FORM("x87_fild", "", "fildl (" SI ")", "fistpll -8(" SI ")")
FORM("x87_fnstcw", "", "fnstcw (" SI ")", "")
FORM("x87_fnstsw", "", "fnstsw %ax", "")

/* Branches */
BRANCH_FORM("je", "", "je 1f", ELSE_1)
BRANCH_FORM("jne", "", "jne 1f", ELSE_1)
BRANCH_FORM("ja", "", "ja 1f", ELSE_1)
BRANCH_FORM("js", "", "js 1f", ELSE_1)
BRANCH_FORM("jge", "", "jge 1f", ELSE_1)
BRANCH_FORM("jp_near", "", "{disp32} jp 1f", ELSE_1)
BRANCH_FORM("jb_near", "", "{disp32} jb 1f", ELSE_1)
BRANCH_FORM("jle_near", "", "{disp32} jle 1f", ELSE_1)
BRANCH_FORM("jo_back", "jmp 2f\n	1: mov $2, " MARK_OPERAND "\n" RETURN "	int3\n	2:",
	    "jo 1b", RETURN)
BRANCH_FORM("je_jne", "", "je 1f\n	jne 1f", ELSE_1)
BRANCH_FORM("je_next", "", "je 1f\n	1:", "mov $1, " MARK_OPERAND "\n" RETURN)
BRANCH_FORM("jmp", "", "jmp 1f", ONLY_1)
BRANCH_FORM("jmp_near", "", "{disp32} jmp 1f", ONLY_1)
BRANCH_FORM("jmp_next", "", "jmp 1f\n	1:", "mov $1, " MARK_OPERAND "\n" RETURN)
BRANCH_FORM("jmp_away", "", "jmp kprobes_test_callee", "")
BRANCH_FORM("jmp_mem", STORE_CALLEE, INDIRECT "jmp *8(" SI ")", "")
BRANCH_FORM("jmp_rip", "", INDIRECT "jmp *" VARIABLE("kprobes_test_pointer"), "")
BRANCH_FORM("loop", "", "loop 1f", ELSE_1)
BRANCH_FORM("loope", "", "loope 1f", ELSE_1)
BRANCH_FORM("loopne", "", "loopne 1f", ELSE_1)
BRANCH_FORM("call", "", "call kprobes_test_callee", RETURN)
BRANCH_FORM("call_reg", LEA_CALLEE(BX), INDIRECT "call *" BX, RETURN)
BRANCH_FORM("call_mem", STORE_CALLEE, INDIRECT "call *(" SI ")", RETURN)
BRANCH_FORM("call_rip", "", INDIRECT "call *" VARIABLE("kprobes_test_pointer"), RETURN)
BRANCH_FORM("call_mem_sp", LEA_CALLEE(AX) "\n	push " AX,
	    INDIRECT "call *(" SP ")", "pop " BX "\n" RETURN)
BRANCH_FORM("ret", "", ANNOTATE_RETPOLINE_SAFE "\nret", "")
BRANCH_FORM("ret_imm", "", ANNOTATE_RETPOLINE_SAFE "\nret $0", "")
#ifdef CONFIG_MITIGATION_RETPOLINE
BRANCH_FORM("call_thunk", LEA_CALLEE(BX), "call __x86_indirect_thunk_" _ASM_BX,
	    RETURN)
BRANCH_FORM("jmp_thunk", LEA_CALLEE(BX), "jmp __x86_indirect_thunk_" _ASM_BX, "")
#endif
#ifdef CONFIG_MITIGATION_RETHUNK
BRANCH_FORM("ret_thunk", "", "jmp __x86_return_thunk", "")
#endif
