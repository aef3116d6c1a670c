/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What a hit does on every path: begin and end; and functions in assembly
 */
#ifndef _X86_KPROBES_HIT_H
#define _X86_KPROBES_HIT_H

#include <linux/compiler.h>
#include <linux/kprobes.h>
#include <linux/kprobes_site.h>
#include <linux/percpu.h>
#include <linux/preempt.h>

kprobe_opcode_t *kprobe_boost_ip(const struct kprobe *p);

/* In post_stub.S and trampoline.S, and called by them */
extern const u8 kprobe_post_stub[], kprobe_post_stub_framed[];
void kprobe_copy_done(struct pt_regs *regs);
void kretprobe_returned(struct pt_regs *regs);

/* In jprobe_call.S. It returns when @entry does, or calls jprobe_leave() with jprobe_frame. */
DECLARE_PER_CPU(unsigned long, jprobe_frame);
void jprobe_call(void *entry, const struct pt_regs *regs, const unsigned long *args,
		 unsigned long words);
void jprobe_leave(unsigned long frame);

noinstr void kprobe_save_hit(void);
noinstr void kprobe_restore_hit(void);
noinstr bool kprobe_run_post_handlers(struct kprobe *kp, struct pt_regs *regs);

/*
 * Make @kp the running kprobe of this CPU; its handlers see @regs. The hit is @nested if
 * another one is under way. Until kprobe_context is written, it has the level of an earlier
 * hit: a hit from above may be counted as missed, but none that is not from above runs.
 */
static __always_inline void kprobe_begin_hit(struct kprobe *kp, struct pt_regs *regs,
					     bool nested)
{
	if (nested)
		kprobe_save_hit();
	raw_cpu_write(current_kprobe, kp);
	barrier();	/* an NMI that sees this puts the rest back as it was */
	raw_cpu_write(kprobe_ctlblk.regs, regs);
	raw_cpu_write(kprobe_context, raw_cpu_read(__preempt_count));
}

/* Stands for the registers from the end of the instruction on: their ip is the real one. */
#define POST_HANDLERS_REGS	((struct pt_regs *)-1L)

static __always_inline void kprobe_end_hit(bool nested)
{
	if (nested)
		kprobe_restore_hit();
	else
		reset_current_kprobe();
}

/* True if this context is above that of the running handler. */
static __always_inline bool kprobe_hit_from_above(void)
{
	return kprobe_is_above(raw_cpu_read(kprobe_context));
}

#endif /* _X86_KPROBES_HIT_H */
