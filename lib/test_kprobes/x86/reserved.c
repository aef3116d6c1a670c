// SPDX-License-Identifier: GPL-2.0
/* Instructions that the kernel patches must not be probed. */
#include <linux/bug.h>
#include <linux/cache.h>
#include <linux/string.h>

#include <asm/alternative.h>
#include <asm/asm.h>
#include <asm/nops.h>
#include <asm/text-patching.h>

#include "../probes.h"
#include "functions.h"

/**
 * struct reserved_insn - A reserved instruction of the kernel
 * @desc:	What it is.
 * @symbol:	A function that has one. A module cannot look at the kernel's tables of them.
 * @code:	The first bytes of the instruction.
 * @size:	How many bytes @code has, or 0 if they are not known.
 * @is_there:	Whether this kernel has it.
 */
struct reserved_insn {
	const char *desc;
	const char *symbol;
	u8 code[5];
	unsigned int size;
	bool is_there;
};

static const struct reserved_insn reserved_insns[] = {
	{ "warning", "__put_task_struct", { 0x0f, 0x0b }, 2, IS_ENABLED(CONFIG_BUG) },
	{ "jump label", "kfree", { BYTES_NOP5 }, 5,
	  IS_ENABLED(CONFIG_JUMP_LABEL) && IS_ENABLED(CONFIG_TRACEPOINTS) },
	/* Of might_sleep(). It may be any instruction, but nothing else there is reserved. */
	{ "static call", "mutex_lock", { }, 0,
	  IS_ENABLED(CONFIG_HAVE_STATIC_CALL_INLINE) && IS_ENABLED(CONFIG_PREEMPT_DYNAMIC) &&
	  !IS_ENABLED(CONFIG_DEBUG_LOCK_ALLOC) },
};

KUNIT_ARRAY_PARAM_DESC(reserved_insn, reserved_insns, desc);

static void reserved_kernel_insn_is_not_probed(struct kunit *test)
{
	const struct reserved_insn *insn = test->param_value;
	struct kprobe *a = kpt_probe('a', insn->symbol);
	unsigned int refused = 0;
	const u8 *code;

	if (!insn->is_there)
		kunit_skip(test, "not in this kernel");
	ASSERT_REGISTERED(test, a);
	code = (const u8 *)a->addr;
	unregister_kprobe(a);
	for (unsigned int i = CALL_INSN_SIZE; i < (insn->size ? 1500 : 40); i++) {
		if (memcmp(code + i, insn->code, insn->size))
			continue;
		a->symbol_name = NULL;
		a->addr = (kprobe_opcode_t *)code + i;
		switch (register_kprobe(a)) {
		case 0:
			unregister_kprobe(a);
			break;
		case -EINVAL:
			refused++;
			break;
		}
	}
	KUNIT_EXPECT_GT(test, refused, 0);
}

/* The trampoline of might_sleep(). On i386, callers call it and are not patched. */
static void static_call_trampoline_is_not_probed(struct kunit *test)
{
	struct kprobe *a = kpt_probe('a', "__SCT__might_resched");

	if (!IS_ENABLED(CONFIG_HAVE_STATIC_CALL) || !IS_ENABLED(CONFIG_PREEMPT_DYNAMIC))
		kunit_skip(test, "not in this kernel");
	EXPECT_REFUSED(test, a, -EINVAL);
}

unsigned long kprobes_test_lock(unsigned long *cell);

KPT_ASM_FUNCTION(kprobes_test_lock, LOCK_PREFIX _ASM_INC "(%" _ASM_ARG1 ")\n" RETURN);

/* With a probe or a jump there, a kernel with one CPU could not put it back for a second CPU. */
static void lock_prefix_is_not_patched(struct kunit *test)
{
	const u8 *lock = (const u8 *)kpt_address(kprobes_test_lock) + ENDBR_SIZE;

	if (!IS_ENABLED(CONFIG_SMP))
		kunit_skip(test, "needs CONFIG_SMP");
	KUNIT_EXPECT_EQ(test, *lock, 0xf0);
}

static struct kunit_case kprobes_x86_reserved_cases[] = {
	KUNIT_CASE_PARAM(reserved_kernel_insn_is_not_probed, reserved_insn_gen_params),
	KUNIT_CASE(static_call_trampoline_is_not_probed),
	KUNIT_CASE(lock_prefix_is_not_patched),
	{ }
};

static struct kunit_suite kprobes_x86_reserved_suite = {
	.name = "kprobes-x86-reserved",
	.suite_init = kpt_start_suite,
	.init = kpt_start_test,
	.exit = kpt_end_test,
	.test_cases = kprobes_x86_reserved_cases,
};

kunit_test_suite(kprobes_x86_reserved_suite);
