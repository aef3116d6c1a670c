/* SPDX-License-Identifier: GPL-2.0 */
/* What runs snippets, and the snippets that i386 alone has. For snippets.c. */

KPT_ASM_FUNCTION(kprobes_test_run,
		 "push %ebp\n"
		 "push %ebx\n"
		 "push %esi\n"
		 "push %edi\n"
		 "pushfl\n"
		 "push %eax\n"
		 "push %edx\n"
		 "pushl 28(%eax)\n"
		 "popfl\n"
		 "mov 4(%eax), %ebx\n"
		 "mov 8(%eax), %ecx\n"
		 "mov 12(%eax), %edx\n"
		 "mov 16(%eax), %esi\n"
		 "mov 20(%eax), %edi\n"
		 "mov 24(%eax), %ebp\n"
		 "mov (%eax), %eax\n"
		 ANNOTATE_RETPOLINE_SAFE "\n"
		 "call *(%esp)\n"
		 ".Lkprobes_test_returned:\n"
		 "xchg %edi, 4(%esp)\n"
		 "mov %eax, (%edi)\n"
		 "mov %ebx, 4(%edi)\n"
		 "mov %ecx, 8(%edi)\n"
		 "mov %edx, 12(%edi)\n"
		 "mov %esi, 16(%edi)\n"
		 "mov %ebp, 24(%edi)\n"
		 "pushfl\n"
		 "popl 28(%edi)\n"
		 "pop %eax\n"
		 "pop %eax\n"
		 "mov %eax, 20(%edi)\n"
		 "popfl\n"
		 "pop %edi\n"
		 "pop %esi\n"
		 "pop %ebx\n"
		 "pop %ebp\n"
		 ASM_RET);

KPT_ASM_FUNCTION(kprobes_test_callee,
		 "mov (%esp), %edx\n"
		 "lea 1(%eax), %eax\n"
		 RETURN);

/* The address of kprobes_test_callee(), three times. */
asm(".pushsection .data\n"
	".balign 4\n"
	"kprobes_test_callees:\n"
	"	.long kprobes_test_callee, kprobes_test_callee, kprobes_test_callee\n"
	".popsection\n");

/* Run as a copy. */
SNIPPET("add", "", "add %edx, %eax", "");
SNIPPET("adc", "", "adc $0x12345678, %eax", "");
SNIPPET("imul", "", "imul $77, %ebx, %eax", "");
SNIPPET("push", "", "push %edx", "pop %eax");
SNIPPET("push_mem", "", "pushl (%esi)", "pop %eax");
SNIPPET("pop", "push %edx", "pop %eax", "");
SNIPPET("leave", "push %ebp\n mov %esp, %ebp", "leave", "");
SNIPPET("xchg", "", "xchg %edx, %eax", "");
SNIPPET("inc_mem", "", "lock incl (%esi)", "");
SNIPPET("store", "", "mov %edx, 4(%esi)", "");
SNIPPET("load", "", "mov (%esi, %ecx, 4), %eax", "");
SNIPPET("cmov", "", "cmovz %edx, %eax", "");
SNIPPET("rep_stos", "lea (%esi), %edi", "rep stosb", "");
SNIPPET("push_sp", "", "push %esp", "pop %eax\n sub %esp, %eax");
SNIPPET("pop_mem", "push %edx", "popl 4(%esi)", "");
SNIPPET("add_sp", "push %edx", "lea 4(%esp), %esp", "");

/* Operands by their address. A load to eax and a store from it have an opcode of their own. */
SNIPPET("lea_address", "", "lea kprobes_test_cell + 0x40, %eax", "");
SNIPPET("load_address", "", "mov kprobes_test_cell, %ebx", "");
SNIPPET("load_moffs", "", "mov kprobes_test_cell, %eax", "");
SNIPPET("store_moffs", "mov kprobes_test_cell, %ebx", "mov %eax, kprobes_test_cell",
	"xchg kprobes_test_cell, %ebx");
SNIPPET("compare_address", "", "cmpl $0x55667788, kprobes_test_cell", "");
SNIPPET("lea_addr16", "", "addr16 lea 5(%bx, %si), %eax", "");
SNIPPET("xlat", "mov %esi, %ebx", "xlat", "");

/* In 64-bit mode, their opcodes are invalid or something else. */
SNIPPET("inc", "", "inc %eax", "");
SNIPPET("dec", "", "dec %ecx", "");
SNIPPET("pusha", "", "pusha",
	"mov 12(%esp), %edx\n sub %esp, %edx\n mov 20(%esp), %ebx\n xor 28(%esp), %ebx\n"
	"lea 32(%esp), %esp");
SNIPPET("popa", "pusha\n notl (%esp)\n notl 16(%esp)\n notl 28(%esp)", "popa", "");
SNIPPET("push_es", "", "push %es", "pop %eax\n movzwl %ax, %eax");
SNIPPET("push_cs", "", "push %cs", "pop %eax\n movzwl %ax, %eax");
SNIPPET("push_ss", "", "push %ss", "pop %eax\n movzwl %ax, %eax");
SNIPPET("push_ds", "", "push %ds", "pop %eax\n movzwl %ax, %eax");
SNIPPET("daa", "", "daa", "");
SNIPPET("das", "", "das", "");
SNIPPET("aaa", "", "aaa", "");
SNIPPET("aas", "", "aas", "");
SNIPPET("aam", "", "aam", "");
SNIPPET("aad", "", "aad", "");
SNIPPET("arpl", "", "arpl %dx, %ax", "");
SNIPPET("add_82", "", ".byte 0x82, 0xc0, 0x05", "");
SNIPPET("bound", "movl $0, (%esi)\n movl $2, 4(%esi)", "bound %ecx, (%esi)", "");

/* Emulated. */
JUMP_SNIPPET("jmp_reg", "mov $kprobes_test_callee, %ebx", INDIRECT "jmp *%ebx");
JUMP_SNIPPET("jmp_mem", STORE_CALLEE, INDIRECT "jmp *4(%esi)");
JUMP_SNIPPET("jmp_mem_index", STORE_CALLEE, INDIRECT "jmp *(%esi, %ecx, 4)");
JUMP_SNIPPET("jmp_address", "", INDIRECT "jmp *kprobes_test_callees");
JUMP_SNIPPET("jmp_address_index", "", INDIRECT "jmp *kprobes_test_callees(, %ecx, 4)");
CALL_SNIPPET("call_reg", "mov $kprobes_test_callee, %ebx", INDIRECT "call *%ebx");
CALL_SNIPPET("call_mem", STORE_CALLEE, INDIRECT "call *(%esi)");
CALL_SNIPPET("call_mem_index", STORE_CALLEE, INDIRECT "call *(%esi, %ecx, 4)");
CALL_SNIPPET("call_address", "", INDIRECT "call *kprobes_test_callees");
CALL_SNIPPET("call_address_index", "", INDIRECT "call *kprobes_test_callees(, %ecx, 4)");
SNIPPET_WITH_TARGET("call_stack", "push $kprobes_test_callee", INDIRECT "call *(%esp)",
		    "pop %ebx\n" RETURN, "kprobes_test_callee - 880b");
SNIPPET("nopl", "", "nopl 8(%eax, %eax)", "");
SNIPPET("pushf", "", "pushfl", "pop %eax");
SNIPPET("popf", "push $0xad7", "popfl", "");
SNIPPET("popf_off", "push $0x046", "popfl", "");

/* As the instructions above that set a segment or CR0. */
SNIPPET("mov_cr0", "mov %cr0, %ebx", "mov %ebx, %cr0", "");
SNIPPET("mov_fs", "mov %fs, %eax", "mov %eax, %fs", "");
SNIPPET("pop_es", "push %es", "pop %es", "");
SNIPPET("pop_ds", "push %ds", "pop %ds", "");
SNIPPET("pop_fs", "push %fs", "pop %fs", "");
SNIPPET("les", "mov %es, 4(%esi)", "les (%esi), %eax", "");
SNIPPET("lds", "mov %ds, 4(%esi)", "lds (%esi), %eax", "");
SNIPPET("lfs", "mov %fs, 4(%esi)", "lfs (%esi), %eax", "");

/* Stepped, as there are fixups for their faults. di is a good address, or a bad one. */
SNIPPET("fault_load", "", "mov (%edi), %eax",
	RETURN "int3\n 1: mov $-1, %ebx\n" _ASM_EXTABLE(881b, 1b));
SNIPPET("fault_store", "", "mov %edx, (%edi)",
	RETURN "int3\n 1: mov $-1, %ebx\n" _ASM_EXTABLE(881b, 1b));
SNIPPET("fault_selector", "mov %es, -4(%esi)", "mov (%edi), %es",
	RETURN "int3\n 1: mov $-1, %ebx\n" _ASM_EXTABLE(881b, 1b));
SNIPPET("fault_pop", "mov %es, %eax\n test %edi, %edi\n cmovns %edi, %eax\n push %eax", "pop %es",
	RETURN "int3\n 1: mov $-1, %ebx\n" RETURN
	_ASM_EXTABLE_TYPE(881b, 1b, EX_TYPE_POP_ZERO | EX_DATA_REG(1)));
SNIPPET("fault_user", ASM_STAC, "mov (%edi), %eax",
	ASM_CLAC RETURN "int3\n 1:\n" ASM_CLAC "mov $-1, %ebx\n" _ASM_EXTABLE_UA(881b, 1b));
SNIPPET("fault_user_error", ASM_STAC, "mov (%edi), %eax",
	ASM_CLAC RETURN "int3\n 1:\n" ASM_CLAC "mov $-1, %ebx\n"
	_ASM_EXTABLE_TYPE(881b, 1b, EX_TYPE_EFAULT_REG | EX_DATA_REG(2)));
