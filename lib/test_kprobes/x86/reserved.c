// SPDX-License-Identifier: GPL-2.0
/* Instructions of the kernel that x86 patches must not be probed. */
#include <linux/bug.h>
#include <linux/string.h>

#include <asm/alternative.h>
#include <asm/text-patching.h>

#include "snippets.h"

/*
 * The kernel's own tables of what is reserved are not for modules to see. But there
 * are functions that have such instructions for sure, of which something is known.
 */
static const struct reserved_insn {
	const char *desc;
	const char *symbol;
	u8 code[4];
	unsigned int size;
	bool is_there;
} reserved_insns[] = {
	{ "warning", "refcount_warn_saturate", { 0x0f, 0x0b }, 2, IS_ENABLED(CONFIG_BUG) },
	{ "jump label", "kfree", { 0x0f, 0x1f, 0x44, 0x00 }, 4,
	  IS_ENABLED(CONFIG_JUMP_LABEL) && IS_ENABLED(CONFIG_TRACEPOINTS) },
	/* Of might_sleep(), and whatever that is at present: here nothing else is reserved. */
	{ "static call", "mutex_lock", { }, 0,
	  IS_ENABLED(CONFIG_HAVE_STATIC_CALL_INLINE) && IS_ENABLED(CONFIG_PREEMPT_DYNAMIC) &&
	  !IS_ENABLED(CONFIG_DEBUG_LOCK_ALLOC) },
};

KUNIT_ARRAY_PARAM_DESC(reserved_insn, reserved_insns, desc);

static void kernels_reserved_insn_is_not_probed(struct kunit *test)
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
	for (unsigned int i = CALL_INSN_SIZE; i < (insn->size ? 300 : 40); i++) {
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

/* An instruction with a prefix that is another one while there is only one CPU. */
u64 kprobes_test_lock(u64 *cell);

asm(".pushsection .text\n"
    ".balign 16\n"
    ".globl kprobes_test_lock\n"
    ".type kprobes_test_lock, @function\n"
    "kprobes_test_lock:\n"
    ASM_ENDBR
    "	nop\n"
    LOCK_PREFIX "incq (%rdi)\n"
    "	mov (%rdi), %rax\n"
    RETURN
    "	int3\n"
    ".size kprobes_test_lock, . - kprobes_test_lock\n"
    ".popsection\n");

/* A probe would keep the prefix from coming back with the second CPU, and so would a jump. */
static void patched_lock_prefix_is_not_probed(struct kunit *test)
{
	const u8 *nop = (const u8 *)kprobes_test_lock, *lock;
	u64 (*function)(u64 *cell) = kprobes_test_lock;
	struct kprobe *a = kpt_probe('a', NULL);
	u64 cell = ARG;

	OPTIMIZER_HIDE_VAR(nop);
	OPTIMIZER_HIDE_VAR(function);
	nop += ENDBR_SIZE;
	lock = nop + 1;
	if (*lock == 0xf0)
		kunit_skip(test, "only when booted with maxcpus=1");
	KUNIT_ASSERT_EQ(test, *lock, 0x3e);
	a->addr = (kprobe_opcode_t *)lock;
	EXPECT_REFUSED(test, a, -EINVAL);

	a->addr = (kprobe_opcode_t *)nop;
	ASSERT_REGISTERED(test, a);
	wait_for_kprobe_optimizer();
	KUNIT_EXPECT_FALSE(test, kprobe_optimized(a));
	KUNIT_EXPECT_EQ(test, function(&cell), ARG + 1);
	unregister_kprobe(a);

	a->addr = (kprobe_opcode_t *)lock + 4;
	ASSERT_REGISTERED(test, a);
	KUNIT_EXPECT_EQ(test, function(&cell), ARG + 2);
}

static struct kunit_case kprobes_x86_reserved_cases[] = {
	KUNIT_CASE_PARAM(kernels_reserved_insn_is_not_probed, reserved_insn_gen_params),
	KUNIT_CASE(patched_lock_prefix_is_not_probed),
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
