// SPDX-License-Identifier: GPL-2.0
/* Stack traces from inside hosts, and whether they show the real callers. */
#include <linux/compiler.h>
#include <linux/kallsyms.h>
#include <linux/ptrace.h>
#include <linux/stacktrace.h>
#include <linux/string.h>

#include "traces.h"

/* What traces are compared with, and one while the host is probed. */
struct trace kpt_unprobed_trace, kpt_probed_trace;

#ifdef CONFIG_STACKTRACE
void kpt_trace_stack(struct trace *trace)
{
	trace->length = stack_trace_save(trace->entries, TRACE_LENGTH, 0);
}
#else
void kpt_trace_stack(struct trace *trace)
{
	trace->length = 0;
}
#endif

int kpt_trace_inside(void *trace)
{
	kpt_trace_stack(trace);
	return VISITED;
}

/*
 * Visit a host. In traces that are compared, the test calls this itself: they show the
 * same functions then, whichever handler or task saved them.
 */
noinline __noclone int kprobes_test_walk(const struct host *host,
					 int (*inside)(void *data), void *data)
{
	int result = kprobes_test_visit(host, inside, data);

	OPTIMIZER_HIDE_VAR(result);	/* no tail call */
	return result;
}

static int trace_at_entry(struct test_kretprobe *p, struct kretprobe_instance *ri,
			  struct pt_regs *regs)
{
	kpt_trace_stack(&p->entry_trace);
	return 0;
}

static void trace_at_return(struct test_kretprobe *p, struct kretprobe_instance *ri,
			    struct pt_regs *regs)
{
	kpt_trace_stack(&p->return_trace);
}

/* Prepare return probe @name, whose handlers save stack traces. */
struct kretprobe *kpt_tracing_probe(char name, const char *symbol)
{
	kpt_test_kretprobe(name)->on_entry = trace_at_entry;
	kpt_test_kretprobe(name)->on_return = trace_at_return;
	return kpt_return_probe(name, symbol);
}

/* Let HOST run in place of the probed one, and return for it, as after a tail call. */
int kpt_act_go_to_host(struct test_probe *p, struct pt_regs *regs)
{
	instruction_pointer_set(regs, (unsigned long)kprobes_test_host);
	return 1;
}

/* The index of the host's caller in a trace. */
static unsigned int find_visitor(struct kunit *test, const struct trace *trace,
				 const char *what)
{
	unsigned int i = 0;

	while (i < trace->length && !kpt_is_in(trace->entries[i], "kprobes_test_visit"))
		i++;
	if (i < trace->length)
		return i;
	for (i = 0; i < trace->length; i++)
		kunit_info(test, "%pS\n", (void *)trace->entries[i]);
	KUNIT_FAIL_AND_ABORT(test, "%s: the host's caller is not in the trace", what);
	return 0;
}

static bool in_same_function(unsigned long a, unsigned long b)
{
	char name[KSYM_SYMBOL_LEN];

	sprint_symbol_no_offset(name, b);
	return kpt_is_in(a, strim(strreplace(name, '[', '\0')));
}

static void expect_same_function(struct kunit *test, unsigned long entry,
				 unsigned long unprobed, const char *what)
{
	KUNIT_EXPECT_TRUE_MSG(test, in_same_function(entry, unprobed), "%s: %pS instead of %pS",
			      what, (void *)entry, (void *)unprobed);
}

/* A trace shows the same callers of the host as kpt_unprobed_trace. */
void kpt_expect_callers(struct kunit *test, const struct trace *trace, const char *what)
{
	const struct trace *unprobed = &kpt_unprobed_trace;
	unsigned int i = find_visitor(test, trace, what);
	unsigned int j = find_visitor(test, unprobed, "unprobed");

	KUNIT_EXPECT_EQ_MSG(test, trace->entries[i], unprobed->entries[j], "%s", what);
	KUNIT_EXPECT_EQ_MSG(test, trace->length - i, unprobed->length - j, "%s", what);
	while (++i < trace->length && ++j < unprobed->length)
		expect_same_function(test, trace->entries[i], unprobed->entries[j], what);
}

/* A trace shows the same functions as kpt_unprobed_trace, inside the host too. */
void kpt_expect_same_trace(struct kunit *test, const struct trace *trace, const char *what)
{
	const struct trace *unprobed = &kpt_unprobed_trace;
	unsigned int callers = find_visitor(test, unprobed, "unprobed");

	kpt_expect_callers(test, trace, what);
	KUNIT_ASSERT_EQ_MSG(test, trace->length, unprobed->length, "%s", what);
	for (unsigned int i = 0; i < callers; i++)
		expect_same_function(test, trace->entries[i], unprobed->entries[i], what);
}

/* The traces of kpt_tracing_probe(@name) show the same callers as kpt_unprobed_trace. */
void kpt_expect_real_callers(struct kunit *test, char name)
{
	const struct test_kretprobe *p = kpt_test_kretprobe(name);

	if (!CAN_TRACE)
		return;
	/* On other architectures the caller may be in a register, which is not looked at. */
	if (IS_ENABLED(CONFIG_X86))
		kpt_expect_callers(test, &p->entry_trace, "at the entry");
	kpt_expect_callers(test, &p->return_trace, "at the return");
}
