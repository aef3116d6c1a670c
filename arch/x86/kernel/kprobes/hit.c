// SPDX-License-Identifier: GPL-2.0
/*
 * The hit that a CPU handles, and the hits that it has interrupted
 */
#include <linux/array_size.h>
#include <linux/instrumentation.h>
#include <linux/panic.h>
#include <linux/percpu.h>

#include "hit.h"

DEFINE_PER_CPU(struct kprobe *, current_kprobe);
DEFINE_PER_CPU(struct kprobe_ctlblk, kprobe_ctlblk);

/* Save the hit that this CPU handles. There is room for as many as can nest. */
noinstr void kprobe_save_hit(void)
{
	struct kprobe_ctlblk *kcb = get_kprobe_ctlblk();
	struct kprobe_outer_hit *outer = &kcb->outer[kcb->depth];

	if (kcb->depth == ARRAY_SIZE(kcb->outer)) {
		instrumentation_begin();
		dump_kprobe(kprobe_running());
		panic("kprobes: a probe is hit in its own hit without end\n");
		instrumentation_end();
	}
	outer->kp = kprobe_running();
	outer->regs = kcb->regs;
	outer->status = kcb->kprobe_status;
	outer->saved_flags = kcb->saved_flags;
	outer->context = raw_cpu_read(kprobe_context);
	barrier();	/* an NMI keeps a complete entry and overwrites any other */
	kcb->depth++;
	kcb->kprobe_status = KPROBE_HIT_ACTIVE;
}

noinstr void kprobe_restore_hit(void)
{
	struct kprobe_ctlblk *kcb = get_kprobe_ctlblk();
	struct kprobe_outer_hit *outer = &kcb->outer[kcb->depth - 1];

	kcb->regs = outer->regs;
	kcb->kprobe_status = outer->status;
	kcb->saved_flags = outer->saved_flags;
	raw_cpu_write(kprobe_context, outer->context);
	raw_cpu_write(current_kprobe, outer->kp);
	barrier();
	kcb->depth--;
}
