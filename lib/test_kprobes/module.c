// SPDX-License-Identifier: GPL-2.0
/* Probes in the text of a module that is being loaded or unloaded. */
#include <linux/bug.h>
#include <linux/init.h>
#include <linux/module.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "probes.h"
#include "reserved.h"

/**
 * struct early_probe - A probe that the module's init function registers
 * @kp:		The probe.
 * @error:	What register_kprobe() returned.
 * @hits:	The number of hits.
 */
struct early_probe {
	struct kprobe kp;
	int error;
	unsigned int hits;
};

static int count_early_hit(struct kprobe *kp, struct pt_regs *regs)
{
	container_of(kp, struct early_probe, kp)->hits++;
	return 0;
}

#define EARLY_PROBE(symbol)	{ .kp.symbol_name = (symbol), .kp.pre_handler = count_early_hit }

/* Init text of this module, which is freed before the tests run. */
static int __init kprobes_test_init_text(int arg)
{
	OPTIMIZER_HIDE_VAR(arg);
	return arg - 1;
}

/* Its blacklist entry must go when init text is freed: debugfs.sh checks the list. */
static int __init kprobes_test_init_blacklisted(int arg)
{
	OPTIMIZER_HIDE_VAR(arg);
	return arg + 1;
}

NOKPROBE_SYMBOL(kprobes_test_init_blacklisted);

static struct early_probe probe_of_init_text = EARLY_PROBE("kprobes_test_init_text");

/* That text, and what it was before it was probed. */
static const void *init_text_start;
static u8 original_init_text[16];

/* Text that stays. */
static noinline u64 kprobes_test_early(u64 arg)
{
	OPTIMIZER_HIDE_VAR(arg);
	return arg * 17 + 6;
}

static const struct place early_place = {
	"kprobes_test_early", kprobes_test_early, kprobes_test_early, ARG * 17 + 6
};

static int early_blacklisted_error;

static int probe_early(unsigned long addr)
{
	struct kprobe kp = { .addr = (kprobe_opcode_t *)addr };
	int err = register_kprobe(&kp);

	unregister_kprobe(&kp);
	return err;
}

static struct early_probe probe_of_early_place = EARLY_PROBE("kprobes_test_early");

/* Whether there was a jump before the module's init function returned. */
static bool early_place_had_jump;

static void unregister_early_probes(void)
{
	unregister_kprobe(&probe_of_init_text.kp);
	unregister_kprobe(&probe_of_early_place.kp);
}

static int __init kprobes_test_init(void)
{
	int (*init_text)(int arg) = kprobes_test_init_text;

	OPTIMIZER_HIDE_VAR(init_text);
	init_text_start = init_text;
	memcpy(original_init_text, init_text_start, sizeof(original_init_text));
	probe_of_init_text.error = register_kprobe(&probe_of_init_text.kp);
	init_text(1);
	init_text = kprobes_test_init_blacklisted;
	OPTIMIZER_HIDE_VAR(init_text);
	init_text(1);
	early_blacklisted_error = probe_early((unsigned long)init_text);
	probe_of_early_place.error = register_kprobe(&probe_of_early_place.kp);
	kpt_probe_reserved_early();
	wait_for_kprobe_optimizer();
	early_place_had_jump = kprobe_optimized(&probe_of_early_place.kp);
	return 0;
}
module_init(kprobes_test_init);

/* A module that is being unloaded gets no probes any more: they would outlive it. */
static void __exit kprobes_test_exit(void)
{
	struct kprobe late = { .symbol_name = "kprobes_test_target" };
	int err = register_kprobe(&late);

	pr_info("kprobes_test: probing a module that goes: %d\n", err);
	WARN_ON(err != -ENOENT);
	unregister_kprobe(&late);
	/* The tests that unregister these may not have run. */
	unregister_early_probes();
}
module_exit(kprobes_test_exit);

static void init_text_is_probed_until_it_is_freed(struct kunit *test)
{
	struct kprobe *early = &probe_of_init_text.kp;
	struct kprobe *a = kpt_probe('a', "kprobes_test_init_text");
	u8 text[sizeof(original_init_text)];
	u32 flags;

	KUNIT_EXPECT_EQ(test, early_blacklisted_error, -EINVAL);
	KUNIT_ASSERT_EQ(test, probe_of_init_text.error, 0);
	KUNIT_EXPECT_EQ(test, probe_of_init_text.hits, 1);
	if (!kpt_is_linked(early))
		SKIP_REST(test, "only when the module has just been loaded");

	KUNIT_EXPECT_TRUE(test, kprobe_gone(early));
	KUNIT_EXPECT_TRUE(test, kprobe_disabled(early));
	flags = early->flags;
	KUNIT_EXPECT_EQ(test, enable_kprobe(early), -EINVAL);
	KUNIT_EXPECT_EQ(test, early->flags, flags);

	/* Disabling it sets no flag, which would last when it is registered again. */
	KUNIT_EXPECT_EQ(test, disable_kprobe(early), 0);
	KUNIT_EXPECT_EQ(test, early->flags, flags);

	/* The memory may still be mapped, and is as it was, but is no longer text. */
	if (!copy_from_kernel_nofault(text, init_text_start, sizeof(text)))
		KUNIT_EXPECT_MEMEQ(test, text, original_init_text, sizeof(text));
	EXPECT_REFUSED(test, a, -ENOENT);
	a->symbol_name = NULL;
	a->addr = early->addr;
	EXPECT_REFUSED(test, a, -ENOENT);

	unregister_kprobe(early);
	KUNIT_EXPECT_FALSE(test, kpt_is_linked(early));
	KUNIT_EXPECT_EQ(test, enable_kprobe(early), -EINVAL);
}

static void probe_of_a_coming_module_is_optimized(struct kunit *test)
{
	struct kprobe *early = &probe_of_early_place.kp;

	KUNIT_ASSERT_EQ(test, probe_of_early_place.error, 0);
	if (!kpt_is_linked(early))
		SKIP_REST(test, "only when the module has just been loaded");
	KUNIT_EXPECT_EQ(test, early_place_had_jump,
			IS_ENABLED(CONFIG_OPTPROBES) && IS_ENABLED(CONFIG_X86));
	EXPECT_CALL(test, &early_place, "");
	KUNIT_EXPECT_EQ(test, probe_of_early_place.hits, 1);
	unregister_kprobe(early);
}

static void symbol_may_name_its_module(struct kunit *test)
{
	struct kprobe *a = kpt_probe('a', KBUILD_MODNAME ":kprobes_test_target");

	ASSERT_REGISTERED(test, a);
	EXPECT_CALL(test, TARGET, "a");
}

static struct kunit_case kprobes_module_cases[] = {
	KUNIT_CASE(symbol_may_name_its_module),
	KUNIT_CASE(init_text_is_probed_until_it_is_freed),
	KUNIT_CASE(probe_of_a_coming_module_is_optimized),
	{ }
};

/* The tests that unregister these may have been filtered out. */
static void end_suite(struct kunit_suite *suite)
{
	unregister_early_probes();
}

static struct kunit_suite kprobes_module_suite = {
	.name = "kprobes-module",
	.suite_init = kpt_start_suite,
	.suite_exit = end_suite,
	.init = kpt_start_test,
	.exit = kpt_end_test,
	.test_cases = kprobes_module_cases,
};

kunit_test_suite(kprobes_module_suite);
