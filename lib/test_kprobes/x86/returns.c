// SPDX-License-Identifier: GPL-2.0
/* Returns through the trampoline, and what is saved of a call until then. */
#include <linux/build_bug.h>
#include <linux/cleanup.h>
#include <linux/cpufeature.h>
#include <linux/err.h>
#include <linux/ftrace.h>
#include <linux/hw_breakpoint.h>
#include <linux/irqflags.h>
#include <linux/kallsyms.h>
#include <linux/kmsg_dump.h>
#include <linux/kprobes_site.h>
#include <linux/perf_event.h>
#include <linux/preempt.h>
#include <linux/printk.h>
#include <linux/ptrace.h>
#include <linux/sched.h>
#include <linux/string.h>
#include <linux/stringify.h>

#include <asm/asm.h>
#include <asm/nospec-branch.h>
#include <asm/processor-flags.h>

#include "../hosts.h"
#include "../optimize.h"
#include "../return_probes.h"
#include "frames.h"
#include "registers.h"

/* See kprobes_test_popping(). */
u64 kprobes_test_pushing(u64 arg);

static void see_return(struct test_kretprobe *p, struct kretprobe_instance *ri,
		       struct pt_regs *regs)
{
	kpt_see(regs);
}

static struct kretprobe *snippet_return_probe(char name, const struct snippet *snippet)
{
	struct kretprobe *rp = kpt_return_probe(name, NULL);

	rp->kp.addr = (kprobe_opcode_t *)snippet->code;
	return rp;
}

/*
 * Inputs that leave DF set are left out: it is clear at every return. The word on the
 * stack is what the caller has pushed, the address that it calls.
 */
static void return_preserves_registers(struct kunit *test)
{
	static const char * const names[] = { "add", "cli", "sti", "popf_off" };

	kpt_test_kretprobe('r')->on_return = see_return;
	for (unsigned int n = 0; n < ARRAY_SIZE(names); n++) {
		const struct snippet *snippet = kpt_find_snippet(names[n]);
		const struct cpu_state *expected = kpt_unprobed_states(test, snippet);
		struct kretprobe *r = snippet_return_probe('r', snippet);

		ASSERT_RETURN_PROBED(test, r);
		for (unsigned int i = 0; i < INPUTS; i++) {
			if (expected[i].flags & X86_EFLAGS_DF)
				continue;
			kpt_set_input(i);
			kpt_clear_journal();
			kpt_run_snippet(snippet);
			KUNIT_ASSERT_STREQ(test, kpt_journal, "rR");
			kpt_expect_state(test, &expected[i], "with a return probe", i);
			kpt_expect_seen(test, &expected[i]);
			kpt_expect_seen_frame(test, kpt_snippet_return_address(), snippet->code);
		}
		unregister_kretprobe(r);
	}
}

static void change_result(struct test_kretprobe *p, struct kretprobe_instance *ri,
			  struct pt_regs *regs)
{
	regs->ax = 1066;
	regs->dx = ~regs->dx;
}

static void return_handler_changes_result(struct kunit *test)
{
	const struct snippet *snippet = kpt_find_snippet("nop");
	struct cpu_state *expected = kpt_unprobed_states(test, snippet);

	kpt_test_kretprobe('r')->on_return = change_result;
	ASSERT_RETURN_PROBED(test, snippet_return_probe('r', snippet));
	for (unsigned int i = 0; i < 2; i++) {
		expected[i].ax = 1066;
		expected[i].dx = ~expected[i].dx;
		kpt_set_input(i);
		kpt_run_snippet(snippet);
		kpt_expect_state(test, &expected[i], "with a return probe", i);
	}
}

/* Return kprobes_test_frame(@arg + 10): a function that ends in a jump to another one. */
u64 kprobes_test_tail(u64 arg);

KPT_ASM_FUNCTION(kprobes_test_tail,
		 "lea 10(%" _ASM_ARG1 "), %" _ASM_ARG1 "\n"
		 "jmp kprobes_test_frame\n");

/* Both return probes are called at the one return. */
static void tail_call_returns_once(struct kunit *test)
{
	static const struct place tail = {
		"kprobes_test_tail", kprobes_test_tail, kprobes_test_tail, ARG + 11
	};
	static const char names[] = "rstu";
	struct kretprobe *r = kpt_return_probe('r', "kprobes_test_tail");
	struct kretprobe *s = kpt_return_probe('s', "kprobes_test_frame");
	struct kretprobe *t = kpt_return_probe('t', "kprobes_test_frame");
	struct kretprobe *u = kpt_return_probe('u', "kprobes_test_tail");

	ASSERT_RETURN_PROBED(test, r);
	EXPECT_CALL(test, &tail, "rR");
	ASSERT_RETURN_PROBED(test, s);
	EXPECT_CALL(test, &tail, "rsSR");
	ASSERT_RETURN_PROBED(test, t);
	ASSERT_RETURN_PROBED(test, u);
	EXPECT_CALL(test, &tail, "urtsSTRU");
	for (unsigned int i = 0; names[i]; i++) {
		KUNIT_EXPECT_EQ(test, kpt_test_kretprobe(names[i])->value, tail.result);
		KUNIT_EXPECT_EQ(test, kpt_test_kretprobe(names[i])->caller,
				kpt_test_kretprobe('r')->caller);
	}
	unregister_kretprobe(r);
	unregister_kretprobe(u);
	EXPECT_CALL(test, &tail, "tsST");
}

/*
 * Returns one more than its argument, and pops a word that kprobes_test_pushing() has
 * pushed, which adds to the result by how much the stack pointer is wrong after the call.
 */
u64 kprobes_test_popping(u64 arg);

KPT_ASM_FUNCTION(kprobes_test_popping,
		 "lea 1(%" _ASM_ARG1 "), %" _ASM_AX "\n"
		 ANNOTATE_RETPOLINE_SAFE "\n"
		 "ret $(" __stringify(BITS_PER_LONG) " / 8)\n"
		 "int3\n");

KPT_ASM_FUNCTION(kprobes_test_pushing,
		 "push %" _ASM_BP "\n"
		 "mov %" _ASM_SP ", %" _ASM_BP "\n"
		 "push $0\n"
		 "call kprobes_test_popping\n"
		 "add %" _ASM_SP ", %" _ASM_AX "\n"
		 "sub %" _ASM_BP ", %" _ASM_AX "\n"
		 "mov %" _ASM_BP ", %" _ASM_SP "\n"
		 "pop %" _ASM_BP "\n"
		 RETURN);

/* The trampoline is entered with the stack pointer above that of a return without operand. */
static void return_pops_arguments(struct kunit *test)
{
	static const struct place pushing = {
		"kprobes_test_pushing", kprobes_test_pushing, kprobes_test_pushing, ARG + 1
	};

	EXPECT_CALL(test, &pushing, "");
	ASSERT_RETURN_PROBED(test, kpt_return_probe('r', "kprobes_test_popping"));
	EXPECT_CALL(test, &pushing, "rR");
	ASSERT_RETURN_PROBED(test, kpt_return_probe('s', "kprobes_test_pushing"));
	ASSERT_RETURN_PROBED(test, kpt_return_probe('t', "kprobes_test_popping"));
	EXPECT_CALL(test, &pushing, "strRTS");
}

/*
 * Call kprobes_test_frame() with AC set, as between STAC and CLAC, and add AC after the call to
 * its result.
 */
u64 kprobes_test_with_ac(u64 arg);

KPT_ASM_FUNCTION(kprobes_test_with_ac,
		 "push %" _ASM_BP "\n"
		 "mov %" _ASM_SP ", %" _ASM_BP "\n"
		 "pushf\n"
		 "btsl $" __stringify(X86_EFLAGS_AC_BIT) ", (%" _ASM_SP ")\n"
		 "popf\n"
		 "call kprobes_test_frame\n"
		 "pushf\n"
		 "mov (%" _ASM_SP "), %" _ASM_CX "\n"
		 "btrl $" __stringify(X86_EFLAGS_AC_BIT) ", (%" _ASM_SP ")\n"
		 "popf\n"
		 "and $(1 << " __stringify(X86_EFLAGS_AC_BIT) "), %ecx\n"
		 "add %" _ASM_CX ", %" _ASM_AX "\n"
		 "pop %" _ASM_BP "\n"
		 RETURN);

static int see_ac_on_entry(struct test_kretprobe *p, struct kretprobe_instance *ri,
			   struct pt_regs *regs)
{
	p->data |= native_save_fl() | ~regs->flags;
	return 0;
}

static void see_ac_on_return(struct test_kretprobe *p, struct kretprobe_instance *ri,
			     struct pt_regs *regs)
{
	p->data |= native_save_fl() | ~regs->flags;
}

/* SMAP is on in handlers, wherever the probed function is called. */
static void return_handler_runs_without_ac(struct kunit *test)
{
	static const struct place with_ac = {
		"kprobes_test_with_ac", kprobes_test_with_ac, kprobes_test_with_ac,
		ARG + 1 + X86_EFLAGS_AC
	};
	struct kretprobe *r = kpt_return_probe('r', "kprobes_test_frame");
	struct kretprobe *s = kpt_return_probe('s', "kprobes_test_frame");
	struct test_kretprobe *p = kpt_test_kretprobe('r');

	p->on_entry = see_ac_on_entry;
	p->on_return = see_ac_on_return;
	EXPECT_CALL(test, &with_ac, "");
	ASSERT_RETURN_PROBED(test, r);
	EXPECT_CALL(test, &with_ac, "rR");
	ASSERT_OPTIMIZED(test, &r->kp);
	EXPECT_CALL(test, &with_ac, "rR");
	ASSERT_RETURN_PROBED(test, s);
	EXPECT_CALL(test, &with_ac, "srRS");
	if (!boot_cpu_has(X86_FEATURE_SMAP))
		SKIP_REST(test, "without SMAP, AC does not matter");
	KUNIT_EXPECT_EQ(test, p->data & X86_EFLAGS_AC, 0);
}

/* As if another CPU unregistered the return probe while its handler runs. */
static void find_return_probe(struct test_kretprobe *p, struct kretprobe_instance *ri,
			      struct pt_regs *regs)
{
	static struct kretprobe none;

	WRITE_ONCE(ri->pool->rp, &none);
	p->data = (unsigned long)get_kretprobe(ri);
	WRITE_ONCE(ri->pool->rp, &p->rp);
}

static void handler_finds_its_return_probe(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kretprobe *r = kpt_return_probe('r', place->symbol);

	kpt_test_kretprobe('r')->on_return = find_return_probe;
	ASSERT_RETURN_PROBED(test, r);
	EXPECT_CALL(test, place, "rR");
	KUNIT_EXPECT_EQ(test, kpt_test_kretprobe('r')->data, (unsigned long)r);
}

/* If there is none, a number is chosen, which does not keep the pool from growing. */
static void maxactive_is_seen(struct kunit *test)
{
	int initial = kpt_initial_instances(), given[] = { initial, 0, 3, -1 };
	struct kretprobe *r = kpt_return_probe('r', TARGET->symbol);

	for (int i = 0; i < 2 * ARRAY_SIZE(given); i++) {
		r->kp.addr = NULL;
		if (i % 2 == 0)
			r->maxactive = given[i / 2];
		ASSERT_RETURN_PROBED(test, r);
		KUNIT_EXPECT_EQ(test, r->maxactive, given[i / 2] > 0 ? given[i / 2] : initial);
		KUNIT_EXPECT_EQ(test, r->pool->max > r->pool->total, given[i / 2] <= 0);
		EXPECT_CALL(test, TARGET, "rR");
		unregister_kretprobe(r);
	}
}

static void return_probe_is_unregistered_twice(struct kunit *test)
{
	struct kretprobe *r = kpt_return_probe('r', TARGET->symbol), *all[] = { r, r };

	for (int i = 0; i < 2; i++) {
		ASSERT_RETURN_PROBED(test, r);
		EXPECT_CALL(test, TARGET, "rR");
		unregister_kretprobes(all, ARRAY_SIZE(all));
		KUNIT_EXPECT_NULL(test, r->kp.addr);
		KUNIT_EXPECT_NULL(test, r->pool);
		EXPECT_CALL(test, TARGET, "");
	}
}

/* The entry is at offset 0, or after ENDBR. */
static void entry_is_return_probed(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kretprobe *r = kpt_return_probe('r', place->symbol);

	for (unsigned int offset = 0; offset < TEXT_BYTES; offset++) {
		r->kp.addr = NULL;
		r->kp.offset = offset;
		if (offset && offset != ENDBR_SIZE) {
			EXPECT_RETURN_REFUSED(test, r, -EINVAL);
			continue;
		}
		ASSERT_RETURN_PROBED(test, r);
		EXPECT_CALL(test, place, "rR");
		unregister_kretprobe(r);
	}
}

/* The newest instance of the tester, when the task's list has changed. */
static struct linked {
	unsigned int changes;
	void *fp;
	kprobe_opcode_t *ret_addr;
} linked;

static void see_newest_instance(struct perf_event *watchpoint, struct perf_sample_data *data,
				struct pt_regs *regs)
{
	struct llist_node *node = current->kretprobe_instances.first;
	struct kretprobe_instance *ri = container_of_const(node, struct kretprobe_instance, llist);

	linked.changes++;
	if (node) {
		linked.fp = ri->fp;
		linked.ret_addr = ri->ret_addr;
	}
}

static void unregister_watchpoint(void *watchpoint)
{
	unregister_hw_breakpoint(watchpoint);
}

static void watch_instances(struct kunit *test)
{
	struct perf_event *watchpoint;
	struct perf_event_attr attr;
	int err;

	hw_breakpoint_init(&attr);
	attr.bp_addr = (unsigned long)&current->kretprobe_instances.first;
	attr.bp_len = sizeof(current->kretprobe_instances.first);
	attr.bp_type = HW_BREAKPOINT_W;
	watchpoint = register_user_hw_breakpoint(&attr, see_newest_instance, NULL, current);
	if (IS_ERR(watchpoint))
		kunit_skip(test, "no debug register");
	err = kunit_add_action_or_reset(test, unregister_watchpoint, watchpoint);
	KUNIT_ASSERT_EQ(test, err, 0);
}

static void see_instance(struct test_kretprobe *p, struct kretprobe_instance *ri,
			 struct pt_regs *regs)
{
	p->data = (unsigned long)(regs + 1);
}

/* An NMI may look at the list then. In the second call the instance has old values at first. */
static void linked_instance_is_complete(struct kunit *test)
{
	static const struct place inner = {
		"kprobes_test_frame", kprobes_test_frame, kprobes_test_middle, ARG + 2
	};
	const struct place *places[] = { &kpt_frame_place, &inner };
	struct test_kretprobe *p = kpt_test_kretprobe('r');
	struct kretprobe *r = kpt_return_probe('r', "kprobes_test_frame");

	r->maxactive = 1;
	p->on_return = see_instance;
	ASSERT_RETURN_PROBED(test, r);
	watch_instances(test);
	for (unsigned int i = 0; i < ARRAY_SIZE(places); i++) {
		linked = (struct linked){ };
		EXPECT_CALL(test, places[i], "rR");
		KUNIT_EXPECT_EQ(test, linked.changes, 2);
		KUNIT_EXPECT_EQ(test, (unsigned long)linked.fp, p->data);
		KUNIT_EXPECT_EQ(test, (unsigned long)linked.ret_addr, p->caller);
	}
}

/* A return address is printed as that of the call before it: find the function of that. */
static int dump_inside(void *name)
{
	const struct kretprobe_instance *ri = container_of(current->kretprobe_instances.first,
							   struct kretprobe_instance, llist);

	sprint_symbol_no_offset(name, *(unsigned long *)ri->fp - 1);
	dump_stack_lvl(KERN_DEBUG);
	return VISITED;
}

/* The caller is printed as what the unwinder has found, and no function that did not call. */
static void printed_trace_shows_the_caller(struct kunit *test)
{
	const struct host *host = test->param_value;
	char name[KSYM_SYMBOL_LEN];
	unsigned int callers = 0;
	struct kmsg_dump_iter log;
	char line[128] = "";
	size_t len;

	if (!STACK_IS_WALKED)
		kunit_skip(test, "needs the ORC unwinder, or frame pointers");
	ASSERT_RETURN_PROBED(test, kpt_return_probe('r', host->symbol));
	ASSERT_RETURN_PROBED(test, kpt_return_probe('s', host->symbol));
	kmsg_dump_rewind(&log);
	while (kmsg_dump_get_line(&log, false, NULL, 0, NULL))
		;
	KUNIT_EXPECT_EQ(test, kprobes_test_visit(host, dump_inside, name), VISITED);
	while (kmsg_dump_get_line(&log, false, line, sizeof(line) - 1, &len)) {
		callers += strstr(line, " kprobes_test_visit+") && !strchr(line, '?');
		memset(line, 0, sizeof(line));
	}
	KUNIT_EXPECT_EQ(test, callers, 1);
	KUNIT_EXPECT_STREQ(test, name, "kretprobe_trampoline");
}

#if defined(CONFIG_X86_64) && defined(CONFIG_KPROBES_ON_FTRACE) && defined(CONFIG_UNWINDER_ORC)
/*
 * Call @func as ftrace_caller does, for @ops at @ip, and return as from the function. The result
 * is the word above the return address. The registers have no cs, and no flags are above them.
 */
u64 kprobes_test_ftrace_caller(unsigned long ip, struct ftrace_ops *ops, ftrace_func_t func);

static_assert(sizeof(struct pt_regs) == 168 && offsetof(struct pt_regs, cs) == 136);

KPT_ASM_FUNCTION(kprobes_test_ftrace_frame,
		 "push $0\n"
		 "sub $168, %rsp\n"
		 "movq $0, 136(%rsp)\n"
		 "mov %rdx, %rax\n"
		 "mov %rsi, %rdx\n"
		 "xor %esi, %esi\n"
		 "mov %rsp, %rcx\n"
		 ANNOTATE_RETPOLINE_SAFE "\n"
		 "call *%rax\n"
		 "add $176, %rsp\n"
		 RETURN);

KPT_ASM_FUNCTION(kprobes_test_ftrace_caller,
		 "push $" __stringify(ARG) "\n"
		 "call kprobes_test_ftrace_frame\n"
		 "pop %rax\n"
		 RETURN);

/* It calls an ftrace_ops that has become the only one while a task was preempted there. */
static void call_by_ftrace_caller_is_seen(struct kunit *test)
{
	struct kretprobe *r = kpt_return_probe('r', TRACED->symbol);
	struct ftrace_ops *ops;
	u64 above;

	ASSERT_RETURN_PROBED(test, r);
	if (!kprobe_ftrace(&r->kp))
		kunit_skip(test, "the function has no ftrace site");
	scoped_guard(preempt)
		ops = READ_ONCE(container_of(get_kprobe(r->kp.addr), struct kprobe_site, kp)->ops);
	kpt_clear_journal();
	if (kpt_has_type(ops->func))
		kunit_skip(test, "the handler checks the type of the call");
	above = kprobes_test_ftrace_caller((unsigned long)r->kp.addr, ops, ops->func);
	KUNIT_EXPECT_EQ(test, above, ARG);
	KUNIT_EXPECT_STREQ(test, kpt_journal, "rR");
}
#endif

static struct kunit_case kretprobes_x86_cases[] = {
	KUNIT_CASE(return_preserves_registers),
	KUNIT_CASE(return_handler_changes_result),
	KUNIT_CASE(tail_call_returns_once),
	KUNIT_CASE(return_pops_arguments),
	KUNIT_CASE(return_handler_runs_without_ac),
	KUNIT_CASE_PARAM(handler_finds_its_return_probe, kpt_place_gen_params),
	KUNIT_CASE(maxactive_is_seen),
	KUNIT_CASE(return_probe_is_unregistered_twice),
	KUNIT_CASE(linked_instance_is_complete),
	KUNIT_CASE_PARAM(entry_is_return_probed, kpt_place_gen_params),
	KUNIT_CASE_PARAM(printed_trace_shows_the_caller, kpt_host_gen_params),
#if defined(CONFIG_X86_64) && defined(CONFIG_KPROBES_ON_FTRACE) && defined(CONFIG_UNWINDER_ORC)
	KUNIT_CASE(call_by_ftrace_caller_is_seen),
#endif
	{ }
};

static struct kunit_suite kretprobes_x86_suite = {
	.name = "kretprobes-x86",
	.suite_init = kpt_start_return_suite,
	.init = kpt_start_return_test,
	.exit = kpt_end_return_test,
	.test_cases = kretprobes_x86_cases,
};

kunit_test_suite(kretprobes_x86_suite);
