// SPDX-License-Identifier: GPL-2.0
/*
 * Jumper probes: probes at a function's entry that call a function with its arguments
 *
 * They are kept for modules that use them. New code reads arguments in a pre handler, by
 * regs_get_kernel_argument(), or uses ftrace or BPF.
 */
#include "internal.h"

#include <linux/export.h>
#include <linux/kernel.h>

/* jprobe_entered() - Pre handler of a jumper probe */
int __kprobes jprobe_entered(struct kprobe *p, struct pt_regs *regs)
{
	arch_call_jprobe(container_of(p, struct jprobe, kp), regs);
	return 0;
}

/* jprobe_check() - Check that a jumper probe may be at a place */
int jprobe_check(struct kprobe *p, struct kprobe_address *where)
{
	if (!(where->flags & KPROBE_FLAG_ON_FUNC_ENTRY))
		return kprobe_refuse(where, -EINVAL, "jumper probes are at functions' entries");
	return 0;
}

static int jprobe_prepare(struct kprobe *p, struct kprobe_address *where)
{
	const struct jprobe *jp = container_of(p, struct jprobe, kp);
	void *entry = dereference_symbol_descriptor(jp->entry);
	int err = jprobe_check(p, where);

	if (err)
		return err;
	if (!kernel_text_address((unsigned long)entry))
		return kprobe_refuse(where, -EINVAL, "the jumper probe's handler is not in text");
	p->pre_handler = jprobe_entered;
	return 0;
}

static const struct kprobe_kind jprobe_kind = {
	.prepare	= jprobe_prepare,
};

/**
 * register_jprobes() - Register several jumper probes, all or none
 * @jps: The jumper probes, see register_jprobe().
 * @num: The number of jumper probes, at least 1.
 *
 * Context: Process context. May sleep.
 * Return: See register_jprobe(), for the first jumper probe that is refused.
 *	-EINVAL also if @num is not positive, or a pointer in the array is NULL.
 */
int register_jprobes(struct jprobe **jps, int num)
{
	return kprobes_register((struct kprobe **)jps, num, &jprobe_kind);
}
EXPORT_SYMBOL_GPL(register_jprobes);
