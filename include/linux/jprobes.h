/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Jumper probes: call a function with the arguments of the probed one.
 *
 * Included by <linux/kprobes.h>.
 */
#ifndef _LINUX_JPROBES_H
#define _LINUX_JPROBES_H

#ifndef _LINUX_KPROBES_H
#error "include <linux/kprobes.h>"
#endif

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

int register_jprobe(struct jprobe *jp);
int register_jprobes(struct jprobe **jps, int num);
void unregister_jprobe(struct jprobe *jp);
void unregister_jprobes(struct jprobe **jps, int num);
void jprobe_return(void);

#else /* !CONFIG_JPROBES */

static inline int register_jprobe(struct jprobe *jp)
{
	return -EOPNOTSUPP;
}

static inline int register_jprobes(struct jprobe **jps, int num)
{
	return -EOPNOTSUPP;
}

static inline void unregister_jprobe(struct jprobe *jp) { }
static inline void unregister_jprobes(struct jprobe **jps, int num) { }
static inline void jprobe_return(void) { }

#endif /* CONFIG_JPROBES */

/* disable_jprobe() - See disable_kprobe() */
static inline int disable_jprobe(struct jprobe *jp)
{
	return disable_kprobe(&jp->kp);
}

/* enable_jprobe() - See enable_kprobe() */
static inline int enable_jprobe(struct jprobe *jp)
{
	return enable_kprobe(&jp->kp);
}

#endif /* _LINUX_JPROBES_H */
