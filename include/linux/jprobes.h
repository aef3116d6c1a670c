/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Jumper probes: call a function with the arguments of the probed one.
 */
#ifndef _LINUX_JPROBES_H
#define _LINUX_JPROBES_H

#include <linux/kprobes.h>

/**
 * struct jprobe - Jumper probe, owned by the caller
 * @kp:		The probe at the function's entry: see struct kprobe. The call that
 *		registers it sets @pre_handler.
 * @entry:	The handler: a function with the prototype of the probed one.
 *
 * The handler gets copies of the arguments: those in registers, and at most
 * JPROBE_STACK_WORDS words of those on the stack. It runs as a pre handler does, and ends
 * with jprobe_return() or by returning. The probed function then runs with its arguments as
 * its caller passed them; what the handler returns is ignored.
 */
struct jprobe {
	struct kprobe kp;
	void *entry;
};

#define JPROBE_ENTRY(handler)	(handler)

#define JPROBE_STACK_WORDS	64

#ifdef CONFIG_JPROBES

int register_jprobes(struct jprobe **jps, int num);
void jprobe_return(void);

#else /* !CONFIG_JPROBES */

static inline int register_jprobes(struct jprobe **jps, int num)
{
	return -EOPNOTSUPP;
}

static inline void jprobe_return(void) { }

#endif /* CONFIG_JPROBES */

/**
 * register_jprobe() - Register a jumper probe
 * @jp: The jumper probe. The caller sets @symbol_name or @addr of @kp, and @entry, and
 *	clears the rest.
 *
 * Context: Process context. May sleep. The handler may run before it returns.
 * Return: 0 on success. On failure nothing has changed: an error of register_kprobe(), or
 *	-EINVAL if the address is not a function's entry, or @entry is not in the text of
 *	the kernel or of a module.
 */
static inline int register_jprobe(struct jprobe *jp)
{
	return register_jprobes(&jp, 1);
}

/* An array of jumper probes is one of probes. */
static_assert(offsetof(struct jprobe, kp) == 0);

/* What these do is described at the functions that they call. */

static inline void unregister_jprobes(struct jprobe **jps, int num)
{
	unregister_kprobes((struct kprobe **)jps, num);
}

static inline void unregister_jprobe(struct jprobe *jp)
{
	unregister_jprobes(&jp, 1);
}

static inline int disable_jprobe(struct jprobe *jp)
{
	return disable_kprobe(&jp->kp);
}

static inline int enable_jprobe(struct jprobe *jp)
{
	return enable_kprobe(&jp->kp);
}

#endif /* _LINUX_JPROBES_H */
