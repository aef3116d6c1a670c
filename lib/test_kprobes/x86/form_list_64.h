/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Forms of instructions that only 64-bit mode has, or whose operands are as long as words
 * there. form_list.h explains them.
 */

/* Arithmetic */
FORM("xor", "", "xor %r8d, %r12d", "")
FORM("neg", "", "neg %r10", "")

/* Moves */
FORM("movabs", "", "movabs $0x1122334455667788, %r11", "")
FORM("mov_moffs", "", "movabs kprobes_test_cell, %rax", "")
FORM("movsx_mem", "", "movswq (%rsi), %rdx", "")
FORM("movslq", "", "movslq %edx, %rax", "")
FORM("cltq", "", "cltq", "")
FORM("cqto", "", "cqto", "")
FORM("cmpxchg16b", "", "lock cmpxchg16b " TWO_CELLS, "")
FORM("cmpxchg16b_equal", LOAD_TWO_CELLS, "lock cmpxchg16b " TWO_CELLS, SHOW_TWO_CELLS)

/* Strings */
FORM("cmpsq", "", "cmpsq", "")
FORM("rep_movsq", "", "rep movsq", "")

/* The stack */
FORM("push_r11", "", "push %r11", "pop %rax")
FORM("push_fs", "", "push %fs", "pop %rax")
FORM("pop_r13", "push %rdx", "pop %r13", "")

/* Per-CPU variables */
FORM("gs_cmpxchg16b", "", "cmpxchg16b " PAIR_HERE, "")
FORM("gs_cmpxchg16b_equal", "mov $0, %eax\n	mov $0, %edx", "cmpxchg16b " PAIR_HERE, SHOW_PAIR)

/* Branches */
BRANCH_FORM("jmp_reg", "lea kprobes_test_callee(%rip), %r11", INDIRECT "jmp *%r11", "")
BRANCH_FORM("jrcxz", "", "jrcxz 1f", ELSE_1)
BRANCH_FORM("call_r11", "lea kprobes_test_callee(%rip), %r11", INDIRECT "call *%r11", RETURN)
BRANCH_FORM("call_mem_index", STORE_CALLEE, INDIRECT "call *(%rsi, %rcx, 8)", RETURN)
#ifdef CONFIG_MITIGATION_RETPOLINE
BRANCH_FORM("call_thunk_r11", "lea kprobes_test_callee(%rip), %r11",
	    ".byte 0x2e\n	call __x86_indirect_thunk_r11", RETURN)
#endif
