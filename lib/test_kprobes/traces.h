/* SPDX-License-Identifier: GPL-2.0 */
/* Stack traces from inside hosts, and whether they show the real callers. */
#ifndef _TEST_KPROBES_TRACES_H
#define _TEST_KPROBES_TRACES_H

#include <linux/kconfig.h>

#include <kunit/test.h>

#include "hosts.h"
#include "return_probes.h"

/* By frame pointers, x86 misses the caller at a function's entry. */
#define CAN_TRACE								\
	(IS_ENABLED(CONFIG_STACKTRACE) &&					\
	 IS_ENABLED(CONFIG_ARCH_CORRECT_STACKTRACE_ON_KRETPROBE) &&		\
	 (!IS_ENABLED(CONFIG_X86) || IS_ENABLED(CONFIG_UNWINDER_ORC)))

extern struct trace kpt_unprobed_trace;
extern struct trace kpt_probed_trace;

void kpt_trace_stack(struct trace *trace);
int kpt_trace_inside(void *trace);
int kprobes_test_walk(const struct host *host, int (*inside)(void *data), void *data);
struct kretprobe *kpt_tracing_probe(char name, const char *symbol);
int kpt_act_go_to_host(struct test_probe *p, struct pt_regs *regs);

void kpt_expect_callers(struct kunit *test, const struct trace *trace, const char *what);
void kpt_expect_same_trace(struct kunit *test, const struct trace *trace, const char *what);
void kpt_expect_real_callers(struct kunit *test, char name);

#endif /* _TEST_KPROBES_TRACES_H */
