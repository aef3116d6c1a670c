// SPDX-License-Identifier: GPL-2.0
/* What register_kprobe() accepts, and the errors with which it refuses the rest. */
#include <linux/jiffies.h>
#include <linux/kernel.h>

#include "probes.h"

static void probe_has_either_symbol_or_address(struct kunit *test)
{
	struct kprobe *a = kpt_probe('a', NULL);

	EXPECT_REFUSED(test, a, -EINVAL);
	a->symbol_name = TARGET->symbol;
	a->addr = (kprobe_opcode_t *)kprobes_test_target;
	EXPECT_REFUSED(test, a, -EINVAL);
	a->addr = NULL;
	ASSERT_REGISTERED(test, a);
}

static void symbol_must_exist(struct kunit *test)
{
	EXPECT_REFUSED(test, kpt_probe('a', "kprobes_test_no_such_function"), -ENOENT);
	EXPECT_REFUSED(test, kpt_probe('a', ""), -ENOENT);
	EXPECT_REFUSED(test, kpt_probe('a', "no_such_module:kprobes_test_target"), -ENOENT);
}

static void address_must_have_a_symbol(struct kunit *test)
{
	struct kprobe *a = kpt_probe('a', NULL);

	a->addr = (kprobe_opcode_t *)PAGE_SIZE;
	EXPECT_REFUSED(test, a, -ENOENT);
	a->addr = (kprobe_opcode_t *)BAD_ADDRESS;
	EXPECT_REFUSED(test, a, -ENOENT);
	a->addr = (kprobe_opcode_t *)&a;
	EXPECT_REFUSED(test, a, -ENOENT);

	/* The offset is added first. */
	a->addr = (kprobe_opcode_t *)1;
	a->offset = PAGE_SIZE;
	EXPECT_REFUSED(test, a, -ENOENT);
}

static void data_is_not_probed(struct kunit *test)
{
	int err = IS_ENABLED(CONFIG_KALLSYMS_ALL) ? -EINVAL : -ENOENT;
	struct kprobe *a = kpt_probe('a', "jiffies");

	EXPECT_REFUSED(test, a, err);
	a->symbol_name = NULL;
	a->addr = (kprobe_opcode_t *)&jiffies;
	EXPECT_REFUSED(test, a, err);
}

/* Modules find data by it. */
static void refused_probe_has_address_of_symbol(struct kunit *test)
{
	bool data = IS_ENABLED(CONFIG_KALLSYMS_ALL);
	struct kprobe *all[] = {
		kpt_probe('a', TARGET->symbol), kpt_probe('b', "kprobes_test_blacklisted"),
		kpt_probe('c', OTHER_TARGET->symbol), kpt_probe('d', "jiffies"),
	};

	KUNIT_EXPECT_EQ(test, register_kprobe(all[3]), data ? -EINVAL : -ENOENT);
	KUNIT_EXPECT_PTR_EQ(test, (void *)all[3]->addr, data ? (void *)&jiffies : NULL);
	KUNIT_EXPECT_EQ(test, register_kprobe(all[3]), data ? -EINVAL : -ENOENT);

	KUNIT_EXPECT_EQ(test, register_kprobes(all, 3), -EINVAL);
	KUNIT_EXPECT_EQ(test, (void *)all[0]->addr - kpt_text(TARGET) < TEXT_BYTES, true);
	KUNIT_EXPECT_TRUE(test, kpt_is_in((unsigned long)all[1]->addr, all[1]->symbol_name));
	KUNIT_EXPECT_NULL(test, all[2]->addr);
	EXPECT_REFUSED(test, all[0], -EINVAL);	/* it has a symbol and an address */
	all[0]->addr = NULL;
	ASSERT_REGISTERED(test, all[0]);
}

/**
 * struct forbidden_symbol - A function of the kernel that must not be probed
 * @name:	The function's symbol.
 * @exists:	Whether this kernel has the function.
 */
struct forbidden_symbol {
	const char *name;
	bool exists;
};

static const struct forbidden_symbol forbidden_symbols[] = {
	{ "get_kprobe", true },
	{ "kprobe_pre_handlers", true },
	{ "kprobe_post_handlers", true },
	{ "kprobes_inc_nmissed_count", true },
	{ "kprobe_busy_begin", true },
	{ "kprobe_busy_end", true },
	{ "kprobe_ftrace_handler", IS_ENABLED(CONFIG_KPROBES_ON_FTRACE) },
	{ "kprobe_flush_task", OWN_RETURN_PROBES },
	{ "kretprobe_entered", IS_ENABLED(CONFIG_KRETPROBES) },
	{ "kretprobe_seek_call", OWN_RETURN_PROBES },
	{ "kretprobe_take_uncached", OWN_RETURN_PROBES },
	{ "kretprobe_put_uncached", OWN_RETURN_PROBES },
	{ "kretprobe_find_ret_addr", OWN_RETURN_PROBES },
	{ "__kretprobe_trampoline", OWN_RETURN_PROBES },
	{ "__cfi_kprobes_test_target", true },
	{ "__pfx_kprobes_test", true },
	{ "preempt_schedule_notrace", IS_ENABLED(CONFIG_X86) && IS_ENABLED(CONFIG_PREEMPTION) },
#ifdef CONFIG_X86
	{ "kprobe_int3_handler", true },
	{ "kprobe_fault_handler", true },
	{ "kprobe_fixup_fault", true },
	{ "kprobe_copy_done", true },
	{ "kprobe_post_stub", true },
	{ "kretprobe_returned", OWN_RETURN_PROBES },
	{ "kprobe_emulate_insn", true },
	{ "exc_int3", true },
	{ "asm_exc_int3", true },
	{ "asm_exc_page_fault", true },
	{ "entry_SYSCALL_64", IS_ENABLED(CONFIG_X86_64) },
	{ "error_entry", IS_ENABLED(CONFIG_X86_64) },
	{ "entry_INT80_32", IS_ENABLED(CONFIG_X86_32) },
	{ "ftrace_regs_caller", IS_ENABLED(CONFIG_DYNAMIC_FTRACE_WITH_REGS) },
	{ "ftrace_caller", IS_ENABLED(CONFIG_DYNAMIC_FTRACE) },
	{ "ftrace_stub", IS_ENABLED(CONFIG_FUNCTION_TRACER) },
	{ "return_to_handler", IS_ENABLED(CONFIG_FUNCTION_GRAPH_TRACER) },
	{ "__x86_return_thunk", IS_ENABLED(CONFIG_MITIGATION_RETHUNK) },
	{ "retbleed_return_thunk", IS_ENABLED(CONFIG_MITIGATION_UNRET_ENTRY) },
	{ "srso_return_thunk", IS_ENABLED(CONFIG_MITIGATION_SRSO) },
	{ "srso_alias_return_thunk", IS_ENABLED(CONFIG_MITIGATION_SRSO) },
	{ "srso_alias_safe_ret", IS_ENABLED(CONFIG_MITIGATION_SRSO) },
	{ "call_depth_return_thunk", IS_ENABLED(CONFIG_MITIGATION_CALL_DEPTH_TRACKING) },
	{ "xen_iret", IS_ENABLED(CONFIG_XEN_PV) },
	{ "secondary_startup_64", IS_ENABLED(CONFIG_X86_64) },
	{ "secondary_startup_64_no_verify", IS_ENABLED(CONFIG_X86_64) },
	{ "common_startup_64", IS_ENABLED(CONFIG_X86_64) },
	{ "early_setup_idt", IS_ENABLED(CONFIG_X86_64) },
	{ "startup_32_smp", IS_ENABLED(CONFIG_X86_32) && IS_ENABLED(CONFIG_SMP) },
	{ "start_secondary", IS_ENABLED(CONFIG_SMP) },
	{ "cr4_init", true },
	{ "native_write_cr4", true },
	{ "cpu_init_exception_handling", true },
	{ "load_current_idt", true },
	{ "do_trace_write_msr", IS_ENABLED(CONFIG_TRACEPOINTS) },
	{ "restore_processor_state", IS_ENABLED(CONFIG_PM_SLEEP) },
	{ "do_suspend_lowlevel", IS_ENABLED(CONFIG_ACPI_SLEEP) },
	{ "wakeup_long64", IS_ENABLED(CONFIG_ACPI_SLEEP) && IS_ENABLED(CONFIG_X86_64) },
	{ "ret_point", IS_ENABLED(CONFIG_ACPI_SLEEP) && IS_ENABLED(CONFIG_X86_32) },
	{ "restore_registers", IS_ENABLED(CONFIG_HIBERNATION) ||
	  (IS_ENABLED(CONFIG_ACPI_SLEEP) && IS_ENABLED(CONFIG_X86_32)) },
	{ "core_restore_code", IS_ENABLED(CONFIG_HIBERNATION) },
	{ "machine_kexec", IS_ENABLED(CONFIG_KEXEC_CORE) },
	{ "relocate_kernel", IS_ENABLED(CONFIG_KEXEC_CORE) },
	{ "swap_pages", IS_ENABLED(CONFIG_KEXEC_CORE) },
	{ "cpuhp_ap_report_dead", IS_ENABLED(CONFIG_HOTPLUG_CPU) },
	{ "native_play_dead", IS_ENABLED(CONFIG_SMP) },
	{ "hlt_play_dead", IS_ENABLED(CONFIG_HOTPLUG_CPU) },
	{ "stop_this_cpu", true },
	{ "__x86_indirect_thunk_rax",
	  IS_ENABLED(CONFIG_X86_64) && IS_ENABLED(CONFIG_MITIGATION_RETPOLINE) },
	{ "__x86_indirect_thunk_eax",
	  IS_ENABLED(CONFIG_X86_32) && IS_ENABLED(CONFIG_MITIGATION_RETPOLINE) },
#endif
};

KUNIT_ARRAY_PARAM_DESC(forbidden_symbol, forbidden_symbols, name);

static void forbidden_symbol_is_not_probed(struct kunit *test)
{
	const struct forbidden_symbol *symbol = test->param_value;
	struct kprobe *a = kpt_probe('a', symbol->name);

	if (!symbol->exists && !IS_ENABLED(CONFIG_X86))
		kunit_skip(test, "not in this kernel");
	/* Without some mitigations an inline function has the name. */
	if (!symbol->exists && register_kprobe(a) == -EINVAL)
		return;
	EXPECT_REFUSED(test, a, symbol->exists ? -EINVAL : -ENOENT);
}

/**
 * struct blacklisted - A function of the tests that must not be probed
 * @symbol:	The function's symbol.
 * @function:	The function.
 */
struct blacklisted {
	const char *symbol;
	u64 (*function)(u64 arg);
};

static const struct blacklisted blacklisted[] = {
	{ "kprobes_test_blacklisted", kprobes_test_blacklisted },
	{ "kprobes_test_noinstr", kprobes_test_noinstr },
	{ "kprobes_test_idle", kprobes_test_idle },	/* RCU may not be watching there */
};

KUNIT_ARRAY_PARAM_DESC(blacklisted, blacklisted, symbol);

static void blacklisted_function_is_not_probed(struct kunit *test)
{
	const struct blacklisted *b = test->param_value;
	struct kprobe *a = kpt_probe('a', b->symbol);

	EXPECT_REFUSED(test, a, -EINVAL);
	a->symbol_name = NULL;
	a->addr = (kprobe_opcode_t *)b->function;
	for (a->offset = 0; a->offset < 8; a->offset++)
		EXPECT_REFUSED(test, a, -EINVAL);
}

static void kernel_init_text_is_not_probed(struct kunit *test)
{
	struct kprobe *a = kpt_probe('a', "start_kernel");

	if (system_state < SYSTEM_RUNNING)
		kunit_skip(test, "init text is not freed yet");
	EXPECT_REFUSED(test, a, -EINVAL);
}

/* The kernel warns of a probe that is registered twice, but only the first time. */
static void probe_is_registered_once(struct kunit *test)
{
	struct kprobe *a = kpt_probe('a', TARGET->symbol);
	struct kprobe *b = kpt_probe('b', TARGET->symbol);
	struct kprobe *c = kpt_probe('c', TRACED->symbol);
	struct kprobe *with_registered[] = { b, a }, *with_double[] = { b, c, b };
	struct kprobe before, given = *b, other = *c;

	ASSERT_REGISTERED(test, a);
	before = *a;
	KUNIT_EXPECT_EQ(test, register_kprobe(a), -EINVAL);
	KUNIT_EXPECT_EQ(test, register_kprobes(with_registered, 2), -EINVAL);
	KUNIT_EXPECT_MEMEQ(test, a, &before, sizeof(before));
	EXPECT_UNTOUCHED(test, b, &given);
	EXPECT_CALL(test, TARGET, "a");

	KUNIT_EXPECT_EQ(test, register_kprobes(with_double, 3), -EINVAL);
	EXPECT_UNTOUCHED(test, b, &given);
	EXPECT_UNTOUCHED(test, c, &other);
	EXPECT_CALL(test, TARGET, "a");
	EXPECT_CALL(test, TRACED, "");

	/* Unregistered, it is refused for another reason: it has a symbol and an address. */
	unregister_kprobe(a);
	EXPECT_REFUSED(test, a, -EINVAL);
	EXPECT_CALL(test, TARGET, "");
}

/* What a caller may set the address of a registered probe to. */
enum rewriting { CLEARED, SAME_FUNCTION, OTHER_FUNCTION, REWRITINGS };

static void rewrite_address(struct kprobe *kp, const struct place *place, enum rewriting how)
{
	kp->symbol_name = how == CLEARED ? place->symbol : NULL;
	kp->addr = how == CLEARED ? NULL :
		   (kprobe_opcode_t *)kpt_text(how == SAME_FUNCTION ? place : OTHER_TARGET);
}

/* A registered probe is recognized even if its address has been changed. */
static void rewritten_probe_is_registered_once(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = kpt_probe('a', place->symbol);
	struct kprobe *b = kpt_probe('b', OTHER_TRACED->symbol);
	struct kprobe *both[] = { b, a };
	kprobe_opcode_t *rewritten;

	for (enum rewriting how = CLEARED; how < REWRITINGS; how++) {
		a->symbol_name = place->symbol;
		a->addr = NULL;
		ASSERT_REGISTERED(test, a);
		rewrite_address(a, place, how);
		rewritten = a->addr;
		KUNIT_EXPECT_EQ(test, register_kprobe(a), -EINVAL);
		KUNIT_EXPECT_EQ(test, register_kprobes(both, 2), -EINVAL);
		KUNIT_EXPECT_PTR_EQ(test, a->addr, rewritten);
		KUNIT_EXPECT_TRUE(test, kpt_is_linked(a));
		KUNIT_EXPECT_FALSE(test, kpt_is_linked(b));
		EXPECT_CALL(test, place, "a");
		EXPECT_CALL(test, OTHER_TARGET, "");
		EXPECT_CALL(test, OTHER_TRACED, "");
		unregister_kprobe(a);
		EXPECT_CALL(test, place, "");
	}
}

static void rewritten_probe_is_unregistered(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = kpt_probe('a', place->symbol);
	struct kprobe *b = kpt_probe('b', place->symbol);

	ASSERT_REGISTERED(test, b);
	for (enum rewriting how = CLEARED; how < REWRITINGS; how++) {
		a->symbol_name = place->symbol;
		a->addr = NULL;
		ASSERT_REGISTERED(test, a);
		EXPECT_CALL(test, place, "ab");
		rewrite_address(a, place, how);
		unregister_kprobe(a);
		EXPECT_CALL(test, place, "b");
		KUNIT_EXPECT_FALSE(test, kpt_is_linked(a));
	}
}

static struct kunit_case kprobes_register_cases[] = {
	KUNIT_CASE(probe_has_either_symbol_or_address),
	KUNIT_CASE(symbol_must_exist),
	KUNIT_CASE(address_must_have_a_symbol),
	KUNIT_CASE(data_is_not_probed),
	KUNIT_CASE(refused_probe_has_address_of_symbol),
	KUNIT_CASE_PARAM(forbidden_symbol_is_not_probed, forbidden_symbol_gen_params),
	KUNIT_CASE_PARAM(blacklisted_function_is_not_probed, blacklisted_gen_params),
	KUNIT_CASE(kernel_init_text_is_not_probed),
	KUNIT_CASE(probe_is_registered_once),
	KUNIT_CASE_PARAM(rewritten_probe_is_registered_once, kpt_place_gen_params),
	KUNIT_CASE_PARAM(rewritten_probe_is_unregistered, kpt_place_gen_params),
	{ }
};

static struct kunit_suite kprobes_register_suite = {
	.name = "kprobes-register",
	.suite_init = kpt_start_suite,
	.init = kpt_start_test,
	.exit = kpt_end_test,
	.test_cases = kprobes_register_cases,
};

kunit_test_suite(kprobes_register_suite);
