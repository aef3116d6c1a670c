/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Forms of instructions that only 32-bit mode has, or whose operands are as long as words
 * there. form_list.h explains them. objtool does not understand ENTER.
 */

/* Arithmetic: INC and DEC have the opcodes of REX prefixes */
FORM("xor", "", "xor %ebp, %edi", "")
FORM("neg", "", "neg %ebp", "")
FORM("inc_ax", "", "inc %eax", "")
FORM("inc_di", "", "inc %edi", "")
FORM("inc_cx16", "", "inc %cx", "")
FORM("dec_dx", "", "dec %edx", "")
FORM("dec_bp16", "", "dec %bp", "")
FORM("dec_sp", "", "dec %esp", "inc %esp")
FORM("add_alias", "", ".byte 0x82, 0xc2, 0x7f", "")	/* add $0x7f, %dl */
FORM("daa", "mov $0x9b, %al", "daa", "")
FORM("das", "mov $0x9b, %al", "das", "")
FORM("aaa", "mov $0x3a, %al", "aaa", "")
FORM("aas", "mov $0x3a, %al", "aas", "")
FORM("aam", "mov $0x5d, %al", "aam", "")
FORM("aam_imm", "mov $0x5d, %al", "aam $7", "")
FORM("aad", "mov $0x0509, %ax", "aad", "")
FORM("arpl", "", "arpl %cx, %dx", "")
FORM("bound", "mov (%esi), %eax", "bound %eax, (%esi)", "")

/* Moves */
FORM("mov_moffs", "", "mov kprobes_test_cell, %eax", "")
FORM("mov_moffs_byte", "", "mov kprobes_test_cell, %al", "")
FORM("mov_to_moffs", "", "mov %eax, kprobes_test_cell", SHOW_CELL)
FORM("mov_to_moffs_word", "", "mov %ax, kprobes_test_cell", SHOW_CELL)
FORM("mov_to_disp32", "", "mov %edx, kprobes_test_cell", SHOW_CELL)
FORM("mov_disp32_index", "mov $0, %ecx", "mov kprobes_test_cell(, %ecx, 4), %edx", "")
FORM("movsx_mem", "", "movswl (%esi), %edx", "")
FORM("cwtl", "", "cwtl", "")
FORM("cltd", "", "cltd", "")
FORM("lea_addr16", "", "lea -3(%bx, %si), %eax", "")
FORM("lea_addr16_disp16", "", "lea 0x1234(%bp, %di), %eax", "")
FORM("lea_addr16_only_disp16", "", "addr16 lea 0x1234, %eax", "")

/* Segments */
FORM("les", "mov %es, 4(%esi)", "les (%esi), %ebx", "")
FORM("lds", "mov %ds, 4(%esi)", "lds (%esi), %ebx", "")
FORM("lfs", "mov %fs, 4(%esi)", "lfs (%esi), %ebx", "")
FORM("mov_to_ds", "mov %ds, %eax", "mov %eax, %ds", "")
FORM("mov_to_fs", "mov %fs, %eax", "mov %eax, %fs", "")
FORM("null_es", NULL_ES, "lea 5(%eax), %eax", SHOW_ES)
FORM("null_fs", NULL_FS, "lea 5(%eax), %eax", SHOW_FS)
FORM("cs_load", "", "mov %cs:(%esi), %eax", "")
FORM("ss_store", "", "mov %eax, %ss:(%esi)", "")

/* Strings, in the direction that DF says */
FORM("cmpsl", "", "cmpsl", "")
FORM("rep_movsl", "", "rep movsl", "")

/* The stack. A push of a segment register need not write the upper half. */
FORM("push_bp", "", "push %ebp", "pop %eax")
FORM("pop_bp", "push %edx", "pop %ebp", "")
FORM("enter", "", "enter $8, $0", "leave")
FORM("pusha", "", "pusha", SHOW_PUSHED)
FORM("pushaw", "", "pushaw", "mov 8(%esp), %dx\n	mov (%esp), %bx\n	lea 16(%esp), %esp")
FORM("popa", PUSH_EIGHT, "popa", "")
FORM("popaw", "pushw %si\npushw %di\npush $1\npush $2\npush $3", "popaw", "")
FORM("push_es", "", "push %es", "pop %eax\n	movzwl %ax, %eax")
FORM("push_cs", "", "push %cs", "pop %eax\n	movzwl %ax, %eax")
FORM("push_ss", "", "push %ss", "pop %eax\n	movzwl %ax, %eax")
FORM("push_ds", "", "push %ds", "pop %eax\n	movzwl %ax, %eax")
FORM("push_fs", "", "push %fs", "pop %eax\n	movzwl %ax, %eax")
FORM("pop_es", "push %es", "pop %es", "")
FORM("pop_ds", "push %ds", "pop %ds", "")
FORM("pop_fs", "push %fs", "pop %fs", "")

/* Branches */
BRANCH_FORM("jmp_reg", "mov $kprobes_test_callee, %ecx", INDIRECT "jmp *%ecx", "")
BRANCH_FORM("jmp_table", "", INDIRECT "jmp *kprobes_test_pointer(, %ecx, 4)", "")
BRANCH_FORM("jecxz", "", "jecxz 1f", ELSE_1)
BRANCH_FORM("call_bp", "mov $kprobes_test_callee, %ebp", INDIRECT "call *%ebp", RETURN)
BRANCH_FORM("call_mem_index", STORE_CALLEE, INDIRECT "call *(%esi, %ecx, 4)", RETURN)
BRANCH_FORM("call_table", "", INDIRECT "call *kprobes_test_pointer(, %ecx, 4)", RETURN)
