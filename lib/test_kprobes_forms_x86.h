/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Forms of x86-64 instructions, for test_kprobes_differential_x86.h, which says
 * what these macros make of them:
 *
 *   FORM(name, before, instruction, after): does not branch
 *   BRANCH_FORM(name, before, instruction, after): may; returns for itself
 *
 * What comes before must not change flags, as they are part of the input. Of
 * registers, si points to the middle of eight words of memory, di one word below,
 * and cx is 0, 1 or 2.
 */

/* Arithmetic */
FORM("add", "", "add %rdx, %rax", "")
FORM("add_al", "", "add $0x7f, %al", "")
FORM("add_from_mem", "", "add (%rsi), %rax", "")
FORM("add_to_mem", "", "add %rax, 8(%rsi)", "")
FORM("add_imm_to_mem", "", "addl $0x12345678, 4(%rsi, %rcx, 4)", "")
FORM("or", "", "or %ebx, %edx", "")
FORM("adc_mem", "", "adc %rdx, (%rsi)", "")
FORM("sbb", "", "sbb %rax, %rax", "")
FORM("and_imm", "", "and $0x0f0f0f0f, %rax", "")
FORM("sub_high", "", "sub %dh, %bl", "")
FORM("xor", "", "xor %r8d, %r12d", "")
FORM("cmp_mem", "", "cmpb $4, -8(%rsi)", "")
FORM("cmp_rip", "", "cmpl $0x55667788, kprobes_test_cell(%rip)", "")
FORM("test", "", "test %rdx, %rdx", "")
FORM("test_mem", "", "testl $0x1000, (%rsi)", "")
FORM("inc", "", "inc %ecx", "")
FORM("dec_mem", "", "decl (%rdi)", "")
FORM("neg", "", "neg %r10", "")
FORM("not_mem", "", "notq (%rsi)", "")
FORM("lock_add", "", "lock addl $1, (%rsi)", "")
FORM("add_rip", "", "addl $5, kprobes_test_cell(%rip)", TAKE_5)
FORM("mul", "", "mul %rdx", "")
FORM("imul", "", "imul %rdx, %rax", "")
FORM("imul_imm", "", "imul $77, (%rsi), %rbx", "")
FORM("div", "mov $0, %edx\n	mov $7, %ebx", "div %rbx", "")
FORM("idiv", "mov $-1, %rdx\n	mov $-99, %rax\n	mov $7, %ebx", "idiv %ebx", "")
FORM("shl_cl", "", "shl %cl, %rdx", "")
FORM("sar", "", "sar $3, %rdx", "")
FORM("rol_mem_cl", "", "rolq %cl, (%rsi)", "")
FORM("rcr", "", "rcr $1, %rax", "")
FORM("shld", "", "shld $4, %rdx, %rax", "")
FORM("shrd_cl", "", "shrd %cl, %rdx, %rax", "")
FORM("bt", "", "bt %rcx, %rdx", "")
FORM("lock_btr", "", "lock btrq $3, (%rsi)", "")
FORM("bts_mem", "", "bts %rcx, (%rsi)", "")
FORM("bsf", "", "bsf %rdx, %rax", "")
FORM("bswap", "", "bswap %rdx", "")

/* Moves */
FORM("mov", "", "mov %rdx, %rax", "")
FORM("mov_imm", "", "mov $0x12345678, %eax", "")
FORM("movabs", "", "movabs $0x1122334455667788, %r11", "")
FORM("mov_load", "", "mov -8(%rsi), %rax", "")
FORM("mov_store_high", "", "mov %ah, (%rsi)", "")
FORM("mov_imm_store", "", "movl $0x12345678, 8(%rsi)", "")
FORM("mov_rip", "", "mov kprobes_test_cell(%rip), %rdx", "")
FORM("mov_moffs", "", "movabs kprobes_test_cell, %rax", "")
FORM("lea", "", "lea -3(%rdx, %rcx, 4), %rax", "")
FORM("lea_rip", "", "lea kprobes_test_cell(%rip), %rbx", "")
FORM("movzx", "", "movzbl %dl, %eax", "")
FORM("movsx_mem", "", "movswq (%rsi), %rdx", "")
FORM("movslq", "", "movslq %edx, %rax", "")
FORM("cltq", "", "cltq", "")
FORM("cqto", "", "cqto", "")
FORM("xlat", "lea (%rsi), %rbx\n	mov $1, %al", "xlat", "")
FORM("xchg", "", "xchg %rdx, %rax", "")
FORM("xchg_mem", "", "xchg %rdx, (%rsi)", "")
FORM("cmpxchg", "", "lock cmpxchg %rdx, (%rsi)", "")
FORM("cmpxchg_equal", "mov (%rsi), %rax", "lock cmpxchg %rdx, (%rsi)", "")
FORM("cmpxchg8b", "", "lock cmpxchg8b (%rsi)", "")
FORM("cmpxchg_unlocked", "", "cmpxchg %rdx, (%rsi)", "")
FORM("cmpxchg_byte", "", "lock cmpxchg %dl, (%rsi)", "")
FORM("cmpxchg_reg", "", "cmpxchg %rdx, %rbx", "")
FORM("cmpxchg16b", "", "lock cmpxchg16b kprobes_test_two_cells(%rip)", "")
FORM("cmpxchg16b_equal", "mov $1, %eax\n	mov $2, %edx",
     "lock cmpxchg16b kprobes_test_two_cells(%rip)", SHOW_TWO_CELLS)
FORM("xadd", "", "lock xadd %rdx, (%rsi)", "")
FORM("xadd_unlocked", "", "xadd %edx, (%rsi)", "")
FORM("xadd_byte", "", "lock xadd %dl, (%rsi)", "")
FORM("lock_xchg", "", "lock xchg %rdx, (%rsi)", "")
FORM("lock_inc", "", "lock incq (%rsi)", "")
FORM("lock_or", "", "lock orb $1, (%rsi)", "")
FORM("lock_sub_rip", "", "lock subl $5, kprobes_test_cell(%rip)",
     "addl $5, kprobes_test_cell(%rip)")
FORM("cmovb", "", "cmovb %rdx, %rax", "")
FORM("cmovg_mem", "", "cmovg (%rsi), %ebx", "")
FORM("sete", "", "sete %dl", "")
FORM("setl_mem", "", "setl (%rsi)", "")

/* Strings, in the direction that DF says */
FORM("movsl", "", "movsl", "")
FORM("lodsw", "", "lodsw", "")
FORM("stosb", "", "stosb", "")
FORM("scasb", "", "scasb", "")
FORM("cmpsq", "", "cmpsq", "")
FORM("rep_movsb", "", "rep movsb", "")
FORM("rep_movsq", "", "rep movsq", "")
FORM("rep_stosl", "", "rep stosl", "")
FORM("repe_cmpsb", "", "repe cmpsb", "")
FORM("repne_scasb", "", "repne scasb", "")

/* The stack */
FORM("push", "", "push %rdx", "pop %rax")
FORM("push_r11", "", "push %r11", "pop %rax")
FORM("push_imm8", "", "push $-3", "pop %rax")
FORM("push_imm32", "", "push $0x12345678", "pop %rax")
FORM("push_mem", "", "pushq 8(%rsi)", "pop %rax")
FORM("push_mem_sp", "push %rdx", "pushq (%rsp)", "pop %rax\n	pop %rbx")
FORM("push_rip", "", "pushq kprobes_test_cell(%rip)", "pop %rax")
FORM("push_sp", "", "push %rsp", "pop %rax\n	sub %rsp, %rax")
FORM("push_fs", "", "push %fs", "pop %rax")
FORM("pop", "push %rdx", "pop %rbx", "")
FORM("pop_r13", "push %rdx", "pop %r13", "")
FORM("pop_mem", "push %rdx", "popq 8(%rsi)", "")
FORM("mov_sp", "", "mov %rsp, %rax", "sub %rsp, %rax")
FORM("sub_sp", "", "sub $24, %rsp", "add $24, %rsp")
FORM("mov_below_sp", "", "mov %rdx, -8(%rsp)", "")
FORM("leave", "push %rbp\n	mov %rsp, %rbp", "leave", "")

/* Flags */
FORM("pushf", "", "pushfq", "pop %rax")
FORM("popf", "pushq $0xad7", "popfq", "")
FORM("popf_off", "pushq $0x046", "popfq", "")
FORM("cli", "", "cli", "")
FORM("sti", "", "sti", "nop")
FORM("cld", "std", "cld", "")
FORM("std", "", "std", "cld")
FORM("stc", "", "stc", "")
FORM("clc", "", "clc", "")
FORM("cmc", "", "cmc", "")
FORM("lahf", "", "lahf", "")
FORM("sahf", "mov $0x55, %ah", "sahf", "")

/* Nothing, and what only the system sees */
FORM("nop", "", "nop", "")
FORM("nop2", "", "xchg %ax, %ax", "")
FORM("nopl", "", "nopl 8(%rax, %rax)", "")
FORM("nopw", "", "nopw 0x100(%rax, %rax)", "")
FORM("pause", "", "pause", "")
FORM("lfence", "", "lfence", "")
FORM("mfence", "", "mfence", "")
FORM("prefetch", "", "prefetcht0 (%rsi)", "")
FORM("clflush", "", "clflush (%rsi)", "")
FORM("invlpg", "", "invlpg (%rsi)", "")
FORM("cpuid", "mov $0, %eax\n	mov $0, %ecx", "cpuid", "")
FORM("str", "", "str %eax", "")
FORM("mov_from_ds", "", "mov %ds, %eax", "")
FORM("mov_from_fs_mem", "", "mov %fs, (%rsi)", "")
FORM("mov_to_es", "mov %es, %eax", "mov %eax, %es", "")
FORM("mov_from_cr0", "", "mov %cr0, %rax", "")
FORM("mov_to_cr0", "mov %cr0, %rbx", "mov %rbx, %cr0", "")
FORM("clts", "", "clts", "")

/* Per CPU: what is there is the same on each, before and after. */
FORM("gs_load", "", "mov " THIS_CPU("kprobes_test_number") ", %rax", "")
FORM("gs_load_base", "lea kprobes_test_number(%rip), %rbx", "mov " GS "(%rbx), %rax", "")
FORM("gs_load_index", "lea kprobes_test_number(%rip), %rbx\n	mov $0, %ecx",
     "mov " GS "(%rbx, %rcx, 8), %rax", "")
FORM("gs_store", "", "mov %rdx, " THIS_CPU("kprobes_test_number"), SHOW_NUMBER)
FORM("gs_store_imm", "", "movl $0x12345678, " THIS_CPU("kprobes_test_number"), SHOW_NUMBER)
FORM("gs_inc", "", "incl " THIS_CPU("kprobes_test_number"), SHOW_NUMBER)
FORM("gs_add", "", "add %rdx, " THIS_CPU("kprobes_test_number"), SHOW_NUMBER)
FORM("gs_add_imm", "", "addl $0x12345678, " THIS_CPU("kprobes_test_number"), SHOW_NUMBER)
FORM("gs_or", "", "or %rdx, " THIS_CPU("kprobes_test_number"), SHOW_NUMBER)
FORM("gs_cmp", "", "cmpl $7, " THIS_CPU("kprobes_test_number"), "")
FORM("gs_test", "", "testb $2, " THIS_CPU("kprobes_test_number"), "")
FORM("gs_xchg", "", "xchg %rdx, " THIS_CPU("kprobes_test_number"), SHOW_NUMBER)
FORM("gs_xadd", "", "xadd %rdx, " THIS_CPU("kprobes_test_number"), SHOW_NUMBER)
FORM("gs_cmpxchg", "", "cmpxchg %rdx, " THIS_CPU("kprobes_test_number"), SHOW_NUMBER)
FORM("gs_cmpxchg_equal", "mov $7, %eax", "cmpxchg %rdx, " THIS_CPU("kprobes_test_number"),
     SHOW_NUMBER)
FORM("gs_cmpxchg8b", "", "cmpxchg8b " THIS_CPU("kprobes_test_number"), SHOW_NUMBER)
FORM("gs_cmpxchg16b", "", "cmpxchg16b " THIS_CPU("kprobes_test_pair"), "")
FORM("gs_cmpxchg16b_equal", "mov $0, %eax\n	mov $0, %edx",
     "cmpxchg16b " THIS_CPU("kprobes_test_pair"), SHOW_PAIR)
FORM("gs_push", "", "pushq " THIS_CPU("kprobes_test_number"), "pop %rax")

/*
 * What tells whether there may be preemption. Only the lowest byte of it: in the
 * highest the scheduler says what it would like.
 */
FORM("count_load", "", "movzbl " THIS_CPU("pcpu_hot + 8") ", %eax", "")
FORM("count_raise", "", "incb " THIS_CPU("pcpu_hot + 8"), "decb " THIS_CPU("pcpu_hot + 8"))
FORM("count_add", "", "addb $1, " THIS_CPU("pcpu_hot + 8"), "decb " THIS_CPU("pcpu_hot + 8"))
FORM("count_lower", "pushfq\n	incb " THIS_CPU("pcpu_hot + 8") "\n	popfq",
     "decb " THIS_CPU("pcpu_hot + 8"), "")
FORM("count_cmp", "", "cmpb $0, " THIS_CPU("pcpu_hot + 8"), "")
FORM("count_xadd", "mov $1, %edx", "xadd %dl, " THIS_CPU("pcpu_hot + 8"),
     "decb " THIS_CPU("pcpu_hot + 8"))

/* Branches */
BRANCH_FORM("je", "", "je 1f", ELSE_1)
BRANCH_FORM("jne", "", "jne 1f", ELSE_1)
BRANCH_FORM("ja", "", "ja 1f", ELSE_1)
BRANCH_FORM("js", "", "js 1f", ELSE_1)
BRANCH_FORM("jge", "", "jge 1f", ELSE_1)
BRANCH_FORM("jp_near", "", "{disp32} jp 1f", ELSE_1)
BRANCH_FORM("jb_near", "", "{disp32} jb 1f", ELSE_1)
BRANCH_FORM("jle_near", "", "{disp32} jle 1f", ELSE_1)
BRANCH_FORM("jo_back", "jmp 2f\n	1: mov $2, %r14d\n" RETURN "	int3\n	2:", "jo 1b",
	    RETURN)
BRANCH_FORM("je_jne", "", "je 1f\n	jne 1f", ELSE_1)
BRANCH_FORM("je_next", "", "je 1f\n	1:", "mov $1, %r14d\n" RETURN)
BRANCH_FORM("jmp", "", "jmp 1f", ONLY_1)
BRANCH_FORM("jmp_near", "", "{disp32} jmp 1f", ONLY_1)
BRANCH_FORM("jmp_next", "", "jmp 1f\n	1:", "mov $1, %r14d\n" RETURN)
BRANCH_FORM("jmp_away", "", "jmp kprobes_test_callee", "")
BRANCH_FORM("jmp_reg", "lea kprobes_test_callee(%rip), %r11", INDIRECT "jmp *%r11", "")
BRANCH_FORM("jmp_mem", STORE_CALLEE, INDIRECT "jmp *8(%rsi)", "")
BRANCH_FORM("jmp_rip", "", INDIRECT "jmp *kprobes_test_pointer(%rip)", "")
BRANCH_FORM("loop", "", "loop 1f", ELSE_1)
BRANCH_FORM("loope", "", "loope 1f", ELSE_1)
BRANCH_FORM("loopne", "", "loopne 1f", ELSE_1)
BRANCH_FORM("jrcxz", "", "jrcxz 1f", ELSE_1)
BRANCH_FORM("call", "", "call kprobes_test_callee", RETURN)
BRANCH_FORM("call_reg", "lea kprobes_test_callee(%rip), %rbx", INDIRECT "call *%rbx", RETURN)
BRANCH_FORM("call_r11", "lea kprobes_test_callee(%rip), %r11", INDIRECT "call *%r11", RETURN)
BRANCH_FORM("call_mem", STORE_CALLEE, INDIRECT "call *(%rsi)", RETURN)
BRANCH_FORM("call_mem_index", STORE_CALLEE, INDIRECT "call *(%rsi, %rcx, 8)", RETURN)
BRANCH_FORM("call_rip", "", INDIRECT "call *kprobes_test_pointer(%rip)", RETURN)
BRANCH_FORM("call_mem_sp", "lea kprobes_test_callee(%rip), %rax\n	push %rax",
	    INDIRECT "call *(%rsp)", "pop %rbx\n" RETURN)
BRANCH_FORM("ret", "", ANNOTATE_RETPOLINE_SAFE "ret", "")
BRANCH_FORM("ret_imm", "", ANNOTATE_RETPOLINE_SAFE "ret $0", "")
#ifdef CONFIG_MITIGATION_RETPOLINE
BRANCH_FORM("call_thunk", "lea kprobes_test_callee(%rip), %rbx", "call __x86_indirect_thunk_rbx",
	    RETURN)
BRANCH_FORM("call_thunk_r11", "lea kprobes_test_callee(%rip), %r11",
	    ".byte 0x2e\n	call __x86_indirect_thunk_r11", RETURN)
BRANCH_FORM("jmp_thunk", "lea kprobes_test_callee(%rip), %rbx", "jmp __x86_indirect_thunk_rbx", "")
#endif
#ifdef CONFIG_MITIGATION_RETHUNK
BRANCH_FORM("ret_thunk", "", "jmp __x86_return_thunk", "")
#endif
