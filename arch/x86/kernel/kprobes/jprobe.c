// SPDX-License-Identifier: GPL-2.0
/*
 * Calls of a jumper probe's handler with the arguments of the probed function
 */
#include <linux/align.h>
#include <linux/bug.h>
#include <linux/export.h>
#include <linux/ftrace.h>
#include <linux/kasan.h>
#include <linux/kprobes.h>
#include <linux/minmax.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/thread_info.h>

#include <asm/asm.h>
#include <asm/stacktrace.h>

#include "hit.h"

/* Frame of the running jprobe_call() on this CPU, or 0. */
DEFINE_PER_CPU(unsigned long, jprobe_frame);

/* The end of the stack that @args is on, or of the page if the stack is none that is known. */
static unsigned long * __kprobes jprobe_stack_end(unsigned long *args)
{
	struct stack_info info;

	/* There the stacks of tasks and interrupts are aligned and of the same size. */
	if (IS_ENABLED(CONFIG_X86_32))
		return PTR_ALIGN(args, THREAD_SIZE);
	return get_stack_info_noinstr(args, current, &info) ? info.end :
							      PTR_ALIGN(args, PAGE_SIZE);
}

void __kprobes arch_call_jprobe(struct jprobe *jp, const struct pt_regs *regs)
{
	/* Above the return address. */
	unsigned long *args = (unsigned long *)kprobe_entry_sp(&jp->kp, regs) + 1;
	unsigned long words = min(jprobe_stack_end(args) - args, JPROBE_STACK_WORDS);

	/* jprobe_return() skips returns that the function graph tracer would wait for. */
	pause_graph_tracing();
	jprobe_call(jp->entry, regs, args, words);
	unpause_graph_tracing();
}

/**
 * jprobe_return() - End the handler of a jumper probe
 *
 * It does not return to the handler, which may as well return by itself.
 *
 * Context: The handler of a jumper probe.
 */
void __kprobes jprobe_return(void)
{
	unsigned long frame = this_cpu_read(jprobe_frame), sp = current_stack_pointer;

	if (WARN_ONCE(!frame, "kprobes: %s() outside a jprobe's handler\n", __func__))
		return;
	/* The functions that are left do not clear the shadow of their variables. */
	kasan_unpoison_range((void *)sp, frame - sp);
	jprobe_leave(frame);
}
EXPORT_SYMBOL_GPL(jprobe_return);
