/* SPDX-License-Identifier: GPL-2.0 */
/* What runs snippets, and the snippets that x86-64 alone has. For snippets.c. */

KPT_ASM_FUNCTION(kprobes_test_run,
		 "push %rbp\n"
		 "push %rbx\n"
		 "push %r12\n"
		 "push %r13\n"
		 "push %r14\n"
		 "push %r15\n"
		 "pushfq\n"
		 "push %rdi\n"
		 "push %rsi\n"
		 "pushq 120(%rdi)\n"
		 "popfq\n"
		 "mov (%rdi), %rax\n"
		 "mov 8(%rdi), %rbx\n"
		 "mov 16(%rdi), %rcx\n"
		 "mov 24(%rdi), %rdx\n"
		 "mov 32(%rdi), %rsi\n"
		 "mov 48(%rdi), %rbp\n"
		 "mov 56(%rdi), %r8\n"
		 "mov 64(%rdi), %r9\n"
		 "mov 72(%rdi), %r10\n"
		 "mov 80(%rdi), %r11\n"
		 "mov 88(%rdi), %r12\n"
		 "mov 96(%rdi), %r13\n"
		 "mov 104(%rdi), %r14\n"
		 "mov 112(%rdi), %r15\n"
		 "mov 40(%rdi), %rdi\n"
		 ANNOTATE_RETPOLINE_SAFE "\n"
		 "call *(%rsp)\n"
		 ".Lkprobes_test_returned:\n"
		 "xchg %rdi, 8(%rsp)\n"
		 "mov %rax, (%rdi)\n"
		 "mov %rbx, 8(%rdi)\n"
		 "mov %rcx, 16(%rdi)\n"
		 "mov %rdx, 24(%rdi)\n"
		 "mov %rsi, 32(%rdi)\n"
		 "mov %rbp, 48(%rdi)\n"
		 "mov %r8, 56(%rdi)\n"
		 "mov %r9, 64(%rdi)\n"
		 "mov %r10, 72(%rdi)\n"
		 "mov %r11, 80(%rdi)\n"
		 "mov %r12, 88(%rdi)\n"
		 "mov %r13, 96(%rdi)\n"
		 "mov %r14, 104(%rdi)\n"
		 "mov %r15, 112(%rdi)\n"
		 "pushfq\n"
		 "popq 120(%rdi)\n"
		 "pop %rax\n"
		 "pop %rax\n"
		 "mov %rax, 40(%rdi)\n"
		 "popfq\n"
		 "pop %r15\n"
		 "pop %r14\n"
		 "pop %r13\n"
		 "pop %r12\n"
		 "pop %rbx\n"
		 "pop %rbp\n"
		 ASM_RET);

KPT_ASM_FUNCTION(kprobes_test_callee,
		 "mov (%rsp), %r13\n"
		 "lea 1(%rax), %rax\n"
		 RETURN);

/* Run as a copy. */
SNIPPET("add", "", "add %rdx, %rax", "");
SNIPPET("adc", "", "adc $0x12345678, %rax", "");
SNIPPET("imul", "", "imul $77, %rbx, %rax", "");
SNIPPET("push", "", "push %rdx", "pop %rax");
SNIPPET("push_mem", "", "push (%rsi)", "pop %rax");
SNIPPET("pop", "push %rdx", "pop %rax", "");
SNIPPET("leave", "push %rbp\n mov %rsp, %rbp", "leave", "");
SNIPPET("xchg", "", "xchg %rdx, %rax", "");
SNIPPET("inc_mem", "", "lock incq (%rsi)", "");
SNIPPET("store", "", "mov %rdx, 8(%rsi)", "");
SNIPPET("load", "", "mov (%rsi, %rcx, 8), %rax", "");
SNIPPET("cmov", "", "cmovz %rdx, %rax", "");
SNIPPET("rep_stos", "lea (%rsi), %rdi", "rep stosb", "");
SNIPPET("lea_rip", "", "lea 880b(%rip), %rax", "");
SNIPPET("load_rip", "", "mov kprobes_test_cell(%rip), %rax", "");
SNIPPET("compare_rip", "", "cmpl $0x55667788, kprobes_test_cell(%rip)", "");
SNIPPET("push_sp", "", "push %rsp", "pop %rax\n sub %rsp, %rax");
SNIPPET("pop_mem", "push %rdx", "popq 8(%rsi)", "");
SNIPPET("add_sp", "push %rdx", "lea 8(%rsp), %rsp", "");

/* Emulated. */
BRANCH_SNIPPET("loop_ecx", "addr32 loop 1f");
BRANCH_SNIPPET("jrcxz", "jrcxz 1f");
JUMP_SNIPPET("jmp_reg", "lea kprobes_test_callee(%rip), %r11", INDIRECT "jmp *%r11");
JUMP_SNIPPET("jmp_mem", STORE_CALLEE, INDIRECT "jmp *8(%rsi)");
JUMP_SNIPPET("jmp_mem_index", STORE_CALLEE, INDIRECT "jmp *(%rsi, %rcx, 8)");
CALL_SNIPPET("call_reg", "lea kprobes_test_callee(%rip), %rbx", INDIRECT "call *%rbx");
CALL_SNIPPET("call_mem", STORE_CALLEE, INDIRECT "call *(%rsi)");
CALL_SNIPPET("call_mem_index", STORE_CALLEE, INDIRECT "call *(%rsi, %rcx, 8)");
SNIPPET("nopl", "", "nopl 8(%rax, %rax)", "");
SNIPPET("pushf", "", "pushfq", "pop %rax");
SNIPPET("popf", "pushq $0xad7", "popfq", "");
SNIPPET("popf_off", "pushq $0x046", "popfq", "");

/* As the instructions above that set a segment. */
SNIPPET("mov_cr0", "mov %cr0, %rbx", "mov %rbx, %cr0", "");

/* Stepped, as there are fixups for their faults. di is a good address, or a bad one. */
SNIPPET("fault_load", "", "mov (%rdi), %rax",
	RETURN "int3\n 1: mov $-1, %rbx\n" _ASM_EXTABLE(881b, 1b));
SNIPPET("fault_store", "", "mov %rdx, (%rdi)",
	RETURN "int3\n 1: mov $-1, %rbx\n" _ASM_EXTABLE(881b, 1b));
SNIPPET("fault_selector", "mov %es, -8(%rsi)", "mov (%rdi), %es",
	RETURN "int3\n 1: mov $-1, %rbx\n" _ASM_EXTABLE(881b, 1b));
SNIPPET("fault_user", ASM_STAC, "mov (%rdi), %rax",
	ASM_CLAC RETURN "int3\n 1:\n" ASM_CLAC "mov $-1, %rbx\n" _ASM_EXTABLE_UA(881b, 1b));
SNIPPET("fault_user_error", ASM_STAC, "mov (%rdi), %rax",
	ASM_CLAC RETURN "int3\n 1:\n" ASM_CLAC "mov $-1, %rbx\n"
	_ASM_EXTABLE_TYPE(881b, 1b, EX_TYPE_EFAULT_REG | EX_DATA_REG(2)));
