// SPDX-License-Identifier: GPL-2.0
/* Fault handlers and break handlers: what they see, and what follows from their results. */
#include <linux/cpufeature.h>
#include <linux/objtool.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/stringify.h>
#include <linux/uaccess.h>

#include <asm/asm.h>
#include <asm/segment.h>
#include <asm/trapnr.h>

#include "../interrupt.h"
#include "../optimize.h"
#include "../return_probes.h"
#include "functions.h"

/* Return what is at @cell, and 2. A jump displaces the load and the next instruction. */
unsigned long kprobes_test_load_cell(unsigned long *cell);

KPT_ASM_FUNCTION(kprobes_test_load_cell,
		 "mov (%" _ASM_ARG1 "), %" _ASM_AX "\n"
		 "lea 1(%" _ASM_AX "), %" _ASM_AX "\n"
		 "lea 1(%" _ASM_AX "), %" _ASM_AX "\n"
		 RETURN);

/* The size of the load in these functions. */
#define LOAD_SIZE	(IS_ENABLED(CONFIG_X86_64) ? 3 : 2)

#define LOADED		40
#define FIXED_UP	99

static unsigned long cell = LOADED;
static unsigned long *good_address;

enum reaction { PASS, REPAIR, SKIP };

static enum reaction reaction;
static int trap_seen;
static unsigned long ip_seen;

static int on_fault(struct kprobe *kp, struct pt_regs *regs, int trapnr)
{
	u64 value;

	if (current != kpt_tester)
		return 0;
	kpt_note('f');
	/* A fault of the fault handler itself is fixed up, and no reason to call it. */
	if (copy_from_kernel_nofault(&value, BAD_ADDRESS, sizeof(value)) != -EFAULT)
		kpt_note('!');
	/* A fault that comes again and again, as it is not the instruction's. */
	if (strlen(kpt_journal) > 8)
		return 0;
	trap_seen = trapnr;
	ip_seen = regs->ip;
	switch (reaction) {
	case REPAIR:
		regs->ARG1_REG = (unsigned long)good_address;
		return 1;
	case SKIP:
		regs->ip += LOAD_SIZE;
		regs->ax = LOADED;
		return 1;
	default:
		return 0;
	}
}

/* Like kprobes_test_load_cell(), but a fault of the load is fixed up: return FIXED_UP. */
unsigned long kprobes_test_load_fixed_up(unsigned long *cell);

KPT_ASM_FUNCTION(kprobes_test_load_fixed_up,
		 "880:	mov (%" _ASM_ARG1 "), %" _ASM_AX "\n"
		 "lea 2(%" _ASM_AX "), %" _ASM_AX "\n"
		 RETURN
		 "881:	mov $" __stringify(FIXED_UP) ", %eax\n"
		 RETURN
		 _ASM_EXTABLE(880b, 881b));

/**
 * struct load_path - How the load is run
 * @desc:	For the test's name.
 * @symbol:	The function.
 * @call:	Calls it.
 * @post:	Whether the probe has a post handler.
 * @jump:	Whether there is a jump.
 */
struct load_path {
	const char *desc;
	const char *symbol;
	unsigned long (*call)(unsigned long *cell);
	bool post;
	bool jump;
};

static const struct load_path load_paths[] = {
	{ "boosted", "kprobes_test_load_cell", kprobes_test_load_cell },
	{ "boosted, post", "kprobes_test_load_cell", kprobes_test_load_cell, .post = true },
	{ "jump", "kprobes_test_load_cell", kprobes_test_load_cell, .jump = true },
	{ "jump, post", "kprobes_test_load_cell", kprobes_test_load_cell,
	  .post = true, .jump = true },
	{ "stepped", "kprobes_test_load_fixed_up", kprobes_test_load_fixed_up },
	{ "stepped, post", "kprobes_test_load_fixed_up", kprobes_test_load_fixed_up,
	  .post = true },
};

KUNIT_ARRAY_PARAM_DESC(load_path, load_paths, desc);

static struct kprobe *register_on_path(struct kunit *test, const struct load_path *path)
{
	struct kprobe *a = path->post ? kpt_post_probe('a', path->symbol) :
					kpt_probe('a', path->symbol);

	good_address = &cell;
	a->fault_handler = on_fault;
	ASSERT_REGISTERED(test, a);
	if (path->jump)
		ASSERT_OPTIMIZED(test, a);
	return a;
}

/* On i386 the argument and the result are the lower halves. */
static unsigned long call_load(unsigned long (*load)(unsigned long *cell), void *address)
{
	return kpt_call_untyped((void *)load, (unsigned long)address);
}

static void expect_load(struct kunit *test, const struct load_path *path, void *address,
			unsigned long result, const char *events)
{
	kpt_clear_journal();
	KUNIT_EXPECT_EQ_MSG(test, call_load(path->call, address), result, "reaction %d", reaction);
	KUNIT_EXPECT_STREQ_MSG(test, kpt_journal, events, "reaction %d", reaction);
}

/*
 * Where a load faults, and how. On i386, each address is in the segments of the kernel. A CPU with
 * LASS does not even look for the page of an address of user space.
 */
static const struct {
	void *address;
	int trapnr, lass_trapnr;
} bad_addresses[] = {
	{ BAD_ADDRESS, X86_TRAP_PF, X86_TRAP_PF },
	{ NULL, X86_TRAP_PF, X86_TRAP_GP },
#ifdef CONFIG_X86_64
	{ (void *)BIT(63), X86_TRAP_GP, X86_TRAP_GP },
#endif
};

/* Once the fault is repaired, the instruction is executed, and hit, again. */
static void fault_handler_handles_faults_of_the_instruction(struct kunit *test)
{
	const struct load_path *path = test->param_value;
	struct kprobe *a = register_on_path(test, path);

	expect_load(test, path, &cell, LOADED + 2, path->post ? "aA" : "a");
	reaction = REPAIR;
	for (unsigned int i = 0; i < ARRAY_SIZE(bad_addresses); i++) {
		expect_load(test, path, bad_addresses[i].address, LOADED + 2,
			    path->post ? "afaA" : "afa");
		KUNIT_EXPECT_TRUE(test, trap_seen == bad_addresses[i].trapnr ||
				  trap_seen == bad_addresses[i].lass_trapnr);
		KUNIT_EXPECT_EQ(test, ip_seen, (unsigned long)a->addr);
	}

	/* The instruction has not run, so no post handler is called. */
	reaction = SKIP;
	expect_load(test, path, BAD_ADDRESS, LOADED + 2, "af");
	expect_load(test, path, &cell, LOADED + 2, path->post ? "aA" : "a");
	KUNIT_EXPECT_EQ(test, a->nmissed, 0);
}

/* Load ES with the selector at @cell, and return LOADED + 2. */
unsigned long kprobes_test_load_selector(unsigned long *cell);

KPT_ASM_FUNCTION(kprobes_test_load_selector,
		 "mov (%" _ASM_ARG1 "), %es\n"
		 "mov $" __stringify(LOADED) " + 2, %eax\n"
		 RETURN);

static const struct load_path selector_paths[] = {
	{ "boosted", "kprobes_test_load_selector", kprobes_test_load_selector },
	{ "stepped, post", "kprobes_test_load_selector", kprobes_test_load_selector,
	  .post = true },
#ifdef CONFIG_X86_64	/* on i386, no jump displaces a load of ES */
	{ "jump", "kprobes_test_load_selector", kprobes_test_load_selector, .jump = true },
#endif
};

KUNIT_ARRAY_PARAM_DESC(selector_path, selector_paths, desc);

/* General protection faults: the one selector is that of ES, the other beyond the GDT. */
static void fault_handler_handles_bad_selectors(struct kunit *test)
{
	const struct load_path *path = test->param_value;
	struct kprobe *a = register_on_path(test, path);
	unsigned long selector, bad_selector = 0xfff8;

	savesegment(es, selector);
	expect_load(test, path, &selector, LOADED + 2, path->post ? "aA" : "a");
	good_address = &selector;
	reaction = REPAIR;
	expect_load(test, path, &bad_selector, LOADED + 2, path->post ? "afaA" : "afa");
	KUNIT_EXPECT_EQ(test, trap_seen, X86_TRAP_GP);
	KUNIT_EXPECT_EQ(test, ip_seen, (unsigned long)a->addr);
}

/*
 * Call the function whose address is at @cell, and return 2 more than it returns. A jump
 * displaces the call alone.
 */
unsigned long kprobes_test_call_cell(unsigned long *cell);

KPT_ASM_FUNCTION(kprobes_test_call_cell,
		 INDIRECT "{disp32} call *(%" _ASM_ARG1 ")\n"
		 "lea 2(%" _ASM_AX "), %" _ASM_AX "\n"
		 RETURN);

STACK_FRAME_NON_STANDARD_FP(kprobes_test_call_cell);

static unsigned long return_loaded(void)
{
	return LOADED;
}

static const struct load_path call_paths[] = {
	{ "breakpoint", "kprobes_test_call_cell", kprobes_test_call_cell },
	{ "breakpoint, post", "kprobes_test_call_cell", kprobes_test_call_cell, .post = true },
	{ "jump", "kprobes_test_call_cell", kprobes_test_call_cell, .jump = true },
};

KUNIT_ARRAY_PARAM_DESC(call_path, call_paths, desc);

/* The copy of a call in a detour pushes the return address before it loads its operand. */
static void fault_handler_handles_faults_of_calls(struct kunit *test)
{
	const struct load_path *path = test->param_value;
	unsigned long callee = (unsigned long)return_loaded;
	struct kprobe *a;

	if (path->jump && boot_cpu_has(X86_FEATURE_RETPOLINE_LFENCE))
		kunit_skip(test, "LFENCE retpolines keep their places");
	a = register_on_path(test, path);
	expect_load(test, path, &callee, LOADED + 2, path->post ? "aA" : "a");
	good_address = &callee;
	reaction = REPAIR;
	expect_load(test, path, BAD_ADDRESS, LOADED + 2, path->post ? "afaA" : "afa");
	KUNIT_EXPECT_EQ(test, trap_seen, X86_TRAP_PF);
	KUNIT_EXPECT_EQ(test, ip_seen, (unsigned long)a->addr);
}

/* Where there is a fixup: otherwise the kernel would not survive the fault. */
static void unhandled_fault_is_fixed_up(struct kunit *test)
{
	reaction = PASS;
	for (unsigned int i = 0; i < ARRAY_SIZE(load_paths); i++) {
		const struct load_path *path = &load_paths[i];
		struct kprobe *a;

		if (path->call != kprobes_test_load_fixed_up)
			continue;
		a = register_on_path(test, path);
		for (unsigned int j = 0; j < ARRAY_SIZE(bad_addresses); j++) {
			/* SMAP violations are not fixed up. */
			if (bad_addresses[j].address)
				expect_load(test, path, bad_addresses[j].address, FIXED_UP, "af");
		}
		unregister_kprobe(a);
		a->addr = NULL;
	}
}

/* No handler of a disabled probe is called, and none while the probe is not armed. */
static void fault_handler_of_a_disabled_probe_is_not_called(struct kunit *test)
{
	const struct load_path *path = &load_paths[4];
	struct kprobe *a = register_on_path(test, path);

	reaction = SKIP;
	KUNIT_EXPECT_EQ(test, disable_kprobe(a), 0);
	expect_load(test, path, BAD_ADDRESS, FIXED_UP, "");
}

/* All probes of the site are asked, newest first, until one handles the fault. */
static void first_fault_handler_that_handles_is_the_last(struct kunit *test)
{
	const struct load_path *path = &load_paths[0];
	struct kprobe *b = kpt_probe('b', path->symbol), *c = kpt_probe('c', path->symbol);

	register_on_path(test, path);
	b->fault_handler = on_fault;
	ASSERT_REGISTERED(test, b);
	ASSERT_REGISTERED(test, c);
	reaction = SKIP;
	expect_load(test, path, BAD_ADDRESS, LOADED + 2, "cbaf");
	KUNIT_EXPECT_EQ(test, disable_kprobe(b), 0);
	expect_load(test, path, BAD_ADDRESS, LOADED + 2, "caf");
}

static void load_bad_address(void)
{
	kpt_note(call_load(kprobes_test_load_cell, BAD_ADDRESS) == LOADED + 2 ? '+' : '!');
}

static int act_load_bad_address(struct test_probe *p, struct pt_regs *regs)
{
	load_bad_address();
	return 0;
}

static void fault_handler_handles_faults_of_handlers(struct kunit *test)
{
	const struct place *place = test->param_value;
	unsigned long load = kpt_address(kprobes_test_load_cell);
	struct kprobe *a = kpt_probe('a', place->symbol);

	kpt_test_probe('a')->act = act_load_bad_address;
	a->fault_handler = on_fault;
	reaction = SKIP;
	ASSERT_REGISTERED(test, a);
	EXPECT_CALL(test, place, "af+");
	KUNIT_EXPECT_EQ(test, ip_seen, load + ENDBR_SIZE);
	wait_for_kprobe_optimizer();
	EXPECT_CALL(test, place, "af+");
}

static int act_copy_from_bad_address(struct test_probe *p, struct pt_regs *regs)
{
	u64 value;

	p->data = copy_from_kernel_nofault(&value, BAD_ADDRESS, sizeof(value));
	return 0;
}

static void fault_of_a_handler_is_fixed_up(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = kpt_probe('a', place->symbol);

	if (IS_ENABLED(CONFIG_TRACE_IRQFLAGS) && !IS_ENABLED(CONFIG_TRACE_IRQFLAGS_NMI))
		kunit_skip(test, "lockdep thinks that interrupts are on in a breakpoint's handler");
	kpt_test_probe('a')->act = act_copy_from_bad_address;
	a->fault_handler = on_fault;
	reaction = PASS;
	ASSERT_REGISTERED(test, a);
	EXPECT_CALL(test, place, "af");
	KUNIT_EXPECT_EQ(test, (long)kpt_test_probe('a')->data, -EFAULT);
}

static enum hrtimer_restart load_in_interrupt(struct hrtimer *timer)
{
	kpt_note(call_load(kprobes_test_load_fixed_up, BAD_ADDRESS) == FIXED_UP ? '+' : '!');
	return kpt_interrupt(timer);
}

/* What interrupts a handler is not the handler, nor is its fault one of the probe. */
static void fault_in_an_interrupt_of_a_handler_is_fixed_up(struct kunit *test)
{
	struct kprobe *a = kpt_probe('a', TRACED->symbol);

	kpt_prepare_interrupt(load_in_interrupt);
	kpt_test_probe('a')->act = kpt_act_wait_for_interrupt;
	a->fault_handler = on_fault;
	reaction = SKIP;
	ASSERT_REGISTERED(test, a);
	kpt_expect_interrupted_call(test, TRACED, "a+");
}

static int call_probed_on_fault(struct kprobe *kp, struct pt_regs *regs, int trapnr)
{
	kpt_note('f');
	kpt_call(OTHER_TARGET);
	return 0;
}

/* A fault handler runs as a hit, also if it interrupts another one: hits in it are skipped. */
static void hit_in_a_fault_handler_of_an_interrupt_is_skipped(struct kunit *test)
{
	struct kprobe *a = kpt_probe('a', TRACED->symbol);
	struct kprobe *b = kpt_probe('b', "kprobes_test_load_fixed_up");
	struct kprobe *c = kpt_probe('c', OTHER_TARGET->symbol);

	kpt_prepare_interrupt(load_in_interrupt);
	kpt_test_probe('a')->act = kpt_act_wait_for_interrupt;
	b->fault_handler = call_probed_on_fault;
	b->flags = KPROBE_FLAG_REENTRANT;
	c->flags = KPROBE_FLAG_REENTRANT;
	ASSERT_REGISTERED(test, a);
	ASSERT_REGISTERED(test, b);
	ASSERT_REGISTERED(test, c);
	kpt_expect_interrupted_call(test, TRACED, "abf+");
	KUNIT_EXPECT_EQ(test, c->nmissed, 1);
}

static int load_at_entry(struct test_kretprobe *p, struct kretprobe_instance *ri,
			 struct pt_regs *regs)
{
	load_bad_address();
	return 0;
}

static void load_at_return(struct test_kretprobe *p, struct kretprobe_instance *ri,
			   struct pt_regs *regs)
{
	load_bad_address();
}

static void fault_handler_of_a_return_probe_is_called(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kretprobe *r = kpt_return_probe('r', place->symbol);

	kpt_test_kretprobe('r')->on_entry = load_at_entry;
	kpt_test_kretprobe('r')->on_return = load_at_return;
	r->kp.fault_handler = on_fault;
	reaction = SKIP;
	ASSERT_RETURN_PROBED(test, r);
	EXPECT_CALL(test, place, "rf+Rf+");
}

static int act_breakpoint(struct test_probe *p, struct pt_regs *regs)
{
	asm volatile("int3");
	kpt_note('+');
	return 0;
}

static int on_break(struct kprobe *kp, struct pt_regs *regs)
{
	kpt_note('i');
	return 1;
}

static int decline_break(struct kprobe *kp, struct pt_regs *regs)
{
	kpt_note('n');
	return 0;
}

static void break_handler_handles_breakpoints_of_handlers(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = kpt_probe('a', place->symbol);

	kpt_test_probe('a')->act = act_breakpoint;
	a->break_handler = on_break;
	ASSERT_REGISTERED(test, a);
	EXPECT_CALL(test, place, "ai+");
	wait_for_kprobe_optimizer();
	EXPECT_CALL(test, place, "ai+");
}

/* The newest one is asked first, also about the breakpoint of another one's handler. */
static void break_handlers_are_asked_up_to_one_that_handles(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = kpt_probe('a', place->symbol);
	struct kprobe *b = kpt_probe('b', place->symbol);
	struct kprobe *c = kpt_probe('c', place->symbol);

	kpt_test_probe('a')->act = act_breakpoint;
	a->break_handler = on_break;
	c->break_handler = decline_break;
	ASSERT_REGISTERED(test, a);
	ASSERT_REGISTERED(test, b);
	ASSERT_REGISTERED(test, c);
	EXPECT_CALL(test, place, "cbani+");
	wait_for_kprobe_optimizer();
	EXPECT_CALL(test, place, "cbani+");
	KUNIT_EXPECT_EQ(test, disable_kprobe(c), 0);
	EXPECT_CALL(test, place, "bai+");
}

static struct kunit_case kprobes_x86_fault_handlers_cases[] = {
	KUNIT_CASE_PARAM(fault_handler_handles_faults_of_the_instruction, load_path_gen_params),
	KUNIT_CASE_PARAM(fault_handler_handles_bad_selectors, selector_path_gen_params),
	KUNIT_CASE_PARAM(fault_handler_handles_faults_of_calls, call_path_gen_params),
	KUNIT_CASE(unhandled_fault_is_fixed_up),
	KUNIT_CASE(fault_handler_of_a_disabled_probe_is_not_called),
	KUNIT_CASE(first_fault_handler_that_handles_is_the_last),
	KUNIT_CASE_PARAM(fault_handler_handles_faults_of_handlers, kpt_place_gen_params),
	KUNIT_CASE_PARAM(fault_of_a_handler_is_fixed_up, kpt_place_gen_params),
	KUNIT_CASE(fault_in_an_interrupt_of_a_handler_is_fixed_up),
	KUNIT_CASE(hit_in_a_fault_handler_of_an_interrupt_is_skipped),
	KUNIT_CASE_PARAM(fault_handler_of_a_return_probe_is_called, kpt_place_gen_params),
	KUNIT_CASE_PARAM(break_handler_handles_breakpoints_of_handlers, kpt_place_gen_params),
	KUNIT_CASE_PARAM(break_handlers_are_asked_up_to_one_that_handles, kpt_place_gen_params),
	{ }
};

static struct kunit_suite kprobes_x86_fault_handlers_suite = {
	.name = "kprobes-x86-fault-handlers",
	.suite_init = kpt_start_return_suite,
	.init = kpt_start_return_test,
	.exit = kpt_end_return_test,
	.test_cases = kprobes_x86_fault_handlers_cases,
};

kunit_test_suite(kprobes_x86_fault_handlers_suite);
