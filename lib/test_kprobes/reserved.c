// SPDX-License-Identifier: GPL-2.0
/*
 * Instructions that the kernel patches, or finds by their address, must not be probed,
 * neither while their module is being loaded nor later. The tests find them in the tables
 * of their own module, as modules have no access to those of the kernel.
 */
#include <linux/bug.h>
#include <linux/jump_label.h>
#include <linux/module.h>
#include <linux/static_call.h>

#include "probes.h"
#include "reserved.h"

#ifdef CONFIG_JUMP_LABEL
static DEFINE_STATIC_KEY_FALSE(kprobes_test_key);

static noinline u64 kprobes_test_branch(u64 arg)
{
	if (static_branch_unlikely(&kprobes_test_key))
		return kprobes_test_target(arg);
	return arg;
}

static unsigned long find_jump_label(void)
{
	const struct jump_entry *table = THIS_MODULE->jump_entries;

	for (unsigned int i = 0; i < THIS_MODULE->num_jump_entries; i++)
		if (jump_entry_key(&table[i]) == &kprobes_test_key.key)
			return jump_entry_code(&table[i]);
	return 0;
}

static unsigned long find_inside_of_jump_label(void)
{
	return find_jump_label() + 1;
}
#endif

#ifdef CONFIG_HAVE_STATIC_CALL_INLINE
DEFINE_STATIC_CALL(kprobes_test_call, kprobes_test_target);

static noinline u64 kprobes_test_caller(u64 arg)
{
	return static_call(kprobes_test_call)(arg) + 1;
}

static unsigned long find_static_call(void)
{
	const unsigned long key = (unsigned long)&STATIC_CALL_KEY(kprobes_test_call);
	const struct static_call_site *site = THIS_MODULE->static_call_sites;

	for (int i = 0; i < THIS_MODULE->num_static_call_sites; i++, site++)
		if ((unsigned long)&site->key + site->key - key <= STATIC_CALL_SITE_FLAGS)
			return (unsigned long)&site->addr + site->addr;
	return 0;
}

static unsigned long find_static_call_trampoline(void)
{
	return (unsigned long)STATIC_CALL_TRAMP_ADDR(kprobes_test_call);
}
#endif

#ifdef CONFIG_GENERIC_BUG
static noinline u64 kprobes_test_warning(u64 arg)
{
	WARN_ON(arg != ARG);
	return arg;
}

#ifdef CONFIG_GENERIC_BUG_RELATIVE_POINTERS
static unsigned long bug_address(const struct bug_entry *bug)
{
	return (unsigned long)&bug->bug_addr_disp + bug->bug_addr_disp;
}
#else
static unsigned long bug_address(const struct bug_entry *bug)
{
	return bug->bug_addr;
}
#endif

static unsigned long find_warning(void)
{
	const struct bug_entry *bug = THIS_MODULE->bug_table;

	for (unsigned int i = 0; i < THIS_MODULE->num_bugs; i++, bug++)
		if (kpt_is_in(bug_address(bug), "kprobes_test_warning"))
			return bug_address(bug);
	return 0;
}
#endif

/**
 * struct reserved_insn - An instruction that must not be probed
 * @desc:	The kind of instruction.
 * @find:	Returns the instruction's address, or 0 if no table of the module has it.
 * @function:	A function that executes the instruction.
 * @result:	What @function returns for ARG.
 * @early_error: What register_kprobe() returned in the module's init function.
 */
struct reserved_insn {
	const char *desc;
	unsigned long (*find)(void);
	u64 (*function)(u64 arg);
	u64 result;
	int early_error;
};

static struct reserved_insn reserved_insns[] = {
#ifdef CONFIG_JUMP_LABEL
	{ "jump label", find_jump_label, kprobes_test_branch, ARG },
	{ "inside of a jump label", find_inside_of_jump_label, kprobes_test_branch, ARG },
#endif
#ifdef CONFIG_HAVE_STATIC_CALL_INLINE
	{ "static call", find_static_call, kprobes_test_caller, ARG * 3 + 2 },
	{ "static call trampoline", find_static_call_trampoline, kprobes_test_caller,
	  ARG * 3 + 2 },
#endif
#ifdef CONFIG_GENERIC_BUG
	{ "warning", find_warning, kprobes_test_warning, ARG },
#endif
};

KUNIT_ARRAY_PARAM_DESC(reserved_insn, reserved_insns, desc);

/* For the module's init function, when other subsystems may not know its tables yet. */
void kpt_probe_reserved_early(void)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(reserved_insns); i++) {
		struct kprobe kp = { .addr = (kprobe_opcode_t *)reserved_insns[i].find() };

		reserved_insns[i].early_error = register_kprobe(&kp);
		unregister_kprobe(&kp);
	}
}

static void reserved_insn_is_not_probed(struct kunit *test)
{
	const struct reserved_insn *insn = test->param_value;
	struct kprobe *a = kpt_probe('a', NULL);

	a->addr = (kprobe_opcode_t *)insn->find();
	KUNIT_ASSERT_NOT_NULL(test, a->addr);
	KUNIT_EXPECT_EQ(test, insn->early_error, -EINVAL);
	EXPECT_REFUSED(test, a, -EINVAL);
	KUNIT_EXPECT_EQ(test, insn->function(ARG), insn->result);
}

static struct kunit_case kprobes_reserved_cases[] = {
	KUNIT_CASE_PARAM(reserved_insn_is_not_probed, reserved_insn_gen_params),
	{ }
};

static struct kunit_suite kprobes_reserved_suite = {
	.name = "kprobes-reserved",
	.suite_init = kpt_start_suite,
	.init = kpt_start_test,
	.exit = kpt_end_test,
	.test_cases = kprobes_reserved_cases,
};

kunit_test_suite(kprobes_reserved_suite);
