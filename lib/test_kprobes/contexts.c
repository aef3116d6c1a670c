// SPDX-License-Identifier: GPL-2.0
/*
 * Code that must not sleep must not change probes: the calls fail, and change nothing. Those
 * that unregister a probe succeed.
 */
#include <linux/bottom_half.h>
#include <linux/irqflags.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/string.h>

#include "actions.h"
#include "drop.h"
#include "interrupt.h"
#include "probes.h"

static struct kretprobe return_probe;
static struct jprobe jumper_probe;

/* What register_kretprobe() and register_jprobe() return to a caller that must not sleep. */
#define JPROBE_REFUSED		(IS_ENABLED(CONFIG_JPROBES) ? -EDEADLK : -EOPNOTSUPP)
#define KRETPROBE_REFUSED	(IS_ENABLED(CONFIG_KRETPROBES) ? -EDEADLK : -EOPNOTSUPP)

/*
 * Try to register, enable, disable and unregister probes. Each call that is refused as it
 * should writes '-' to the journal, six in all. Those that return nothing warn.
 */
static void try_to_change_all_probes(void)
{
	struct kprobe *c = &kpt_test_probe('c')->kp;
	struct jprobe jp = { .kp.symbol_name = OTHER_TARGET->symbol };
	struct kretprobe rp = { .kp.symbol_name = OTHER_TARGET->symbol };

	kpt_try_to_change_probes();
	kpt_note(register_jprobe(&jp) == JPROBE_REFUSED ? '-' : '!');
	kpt_note(register_kretprobe(&rp) == KRETPROBE_REFUSED ? '-' : '!');
	unregister_kprobe(c);
	unregister_kprobes(&c, 1);
	unregister_kretprobe(&return_probe);
	unregister_jprobe(&jumper_probe);
}

static __maybe_unused void with_preemption_off(void)
{
	guard(preempt)();
	try_to_change_all_probes();
}

static void with_interrupts_off(void)
{
	guard(irq)();
	try_to_change_all_probes();
}

static void with_softirqs_off(void)
{
	local_bh_disable();
	try_to_change_all_probes();
	local_bh_enable();
}

static __maybe_unused void as_reader_of_rcu(void)
{
	guard(rcu)();
	try_to_change_all_probes();
}

static enum hrtimer_restart try_in_interrupt(struct hrtimer *timer)
{
	try_to_change_all_probes();
	return kpt_interrupt(timer);
}

static void in_hard_interrupt(void)
{
	kpt_prepare_interrupt(try_in_interrupt);
	guard(preempt)();
	kpt_wait_for_interrupt();
}

#ifdef CONFIG_X86_LOCAL_APIC
static void in_nmi_of_this_cpu(void)
{
	kpt_call_in_nmi(try_to_change_all_probes);
}
#endif

/**
 * struct context - A context in which code must not sleep
 * @desc:	Its name.
 * @try:	Calls try_to_change_all_probes() there, once.
 * @exists:	Returns whether the machine has it, or NULL if all have.
 */
struct context {
	const char *desc;
	void (*try)(void);
	bool (*exists)(void);
};

static const struct context contexts[] = {
#ifdef CONFIG_PREEMPT_COUNT
	{ "preemption off", with_preemption_off },
#endif
	{ "interrupts off", with_interrupts_off },
#ifndef CONFIG_PREEMPT_RT
	{ "softirqs off", with_softirqs_off },
#endif
#ifdef CONFIG_PREEMPT_RCU
	{ "reader of RCU", as_reader_of_rcu },
#endif
	{ "hard interrupt", in_hard_interrupt },
#ifdef CONFIG_X86_LOCAL_APIC
	{ "NMI", in_nmi_of_this_cpu, kpt_can_send_nmi },
#endif
};

KUNIT_ARRAY_PARAM_DESC(context, contexts, desc);

static void leave_jumper_probe(void)
{
	kpt_note('j');
	jprobe_return();
}

static void atomic_code_cannot_change_probes(struct kunit *test)
{
	const struct context *context = test->param_value;
	struct kprobe *b = kpt_probe('b', OTHER_TARGET->symbol);
	struct kprobe *c = kpt_probe('c', OTHER_TARGET->symbol);
	struct kprobe *d = kpt_probe('d', OTHER_TARGET->symbol);
	struct kprobe given;

	if (context->exists && !context->exists())
		kunit_skip(test, "not on this machine");
	return_probe = (struct kretprobe){ .kp.symbol_name = OTHER_TARGET->symbol };
	jumper_probe = (struct jprobe){
		.kp.symbol_name = OTHER_TARGET->symbol,
		.entry = leave_jumper_probe,
	};
	d->flags = KPROBE_FLAG_DISABLED;
	ASSERT_REGISTERED(test, c);
	ASSERT_REGISTERED(test, d);
	if (IS_ENABLED(CONFIG_KRETPROBES))
		KUNIT_ASSERT_EQ(test, register_kretprobe(&return_probe), 0);
	if (IS_ENABLED(CONFIG_JPROBES))
		KUNIT_ASSERT_EQ(test, register_jprobe(&jumper_probe), 0);
	kpt_set_stale_results(b);
	memcpy(&given, b, sizeof(given));

	kpt_clear_journal();
	context->try();
	KUNIT_EXPECT_STREQ(test, kpt_journal, "------");
	EXPECT_UNTOUCHED(test, b, &given);
	KUNIT_EXPECT_FALSE(test, kprobe_disabled(c));
	KUNIT_EXPECT_TRUE(test, kprobe_disabled(d));
	memset(c, 0, sizeof(*c));
	memset(&return_probe, 0, sizeof(return_probe));
	memset(&jumper_probe, 0, sizeof(jumper_probe));
	EXPECT_CALL(test, OTHER_TARGET, "");
	unregister_kprobe(d);
	kpt_expect_restored_text(test);
	EXPECT_CALL(test, OTHER_TARGET, "");
}

static unsigned int returns;

static int count_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	returns++;
	return 0;
}

/* As an NMI that has interrupted a change of the links. */
static void probes_stay_where_links_are_being_changed(struct kunit *test)
{
	struct kprobe *c = kpt_probe('c', OTHER_TARGET->symbol);
	unsigned long flags;

	returns = 0;
	return_probe = (struct kretprobe){
		.kp.symbol_name = OTHER_TARGET->symbol,
		.handler = count_return,
	};
	ASSERT_REGISTERED(test, c);
	if (IS_ENABLED(CONFIG_KRETPROBES))
		KUNIT_ASSERT_EQ(test, register_kretprobe(&return_probe), 0);
	flags = kprobe_links_lock();
	unregister_kprobe(c);
	unregister_kretprobe(&return_probe);
	kprobe_links_unlock(flags);
	EXPECT_CALL(test, OTHER_TARGET, "c");
	KUNIT_EXPECT_EQ(test, returns, IS_ENABLED(CONFIG_KRETPROBES));
	unregister_kretprobe(&return_probe);
	unregister_kprobe(c);
	kpt_expect_restored_text(test);
	EXPECT_CALL(test, OTHER_TARGET, "");
}

static struct kunit_case kprobes_contexts_cases[] = {
	KUNIT_CASE_PARAM(atomic_code_cannot_change_probes, context_gen_params),
	KUNIT_CASE(probes_stay_where_links_are_being_changed),
	{ }
};

static struct kunit_suite kprobes_contexts_suite = {
	.name = "kprobes-contexts",
	.suite_init = kpt_start_suite,
	.init = kpt_start_test,
	.exit = kpt_end_test,
	.test_cases = kprobes_contexts_cases,
};

kunit_test_suite(kprobes_contexts_suite);
