/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Calls of the handlers of a hit
 *
 * These functions call no function that could be probed, except handlers.
 */
#ifndef _LINUX_KPROBES_HIT_H
#define _LINUX_KPROBES_HIT_H

#include <linux/instrumentation.h>
#include <linux/kprobes_site.h>

/*
 * kprobe_call_pre_handler() - Returns non-zero if the handler has changed the path
 *
 * Owners change the handlers of a registered probe, also to NULL: each hit reads them, once.
 */
static __always_inline int kprobe_call_pre_handler(struct kprobe *p, struct pt_regs *regs)
{
	kprobe_pre_handler_t handler = READ_ONCE(p->pre_handler);
	int changed;

	if (unlikely(!handler))
		return 0;
	instrumentation_begin();
	changed = handler(p, regs);
	instrumentation_end();
	return changed;
}

/* kprobe_call_post_handler() - Call a post handler, if there is one */
static __always_inline void kprobe_call_post_handler(struct kprobe *p, struct pt_regs *regs)
{
	kprobe_post_handler_t handler = READ_ONCE(p->post_handler);

	if (unlikely(!handler))
		return;
	instrumentation_begin();
	handler(p, regs, 0);
	instrumentation_end();
}

/* True if the hit that this CPU handles has interrupted another one, and may be missed. */
#ifndef kprobe_hit_is_nested
#define kprobe_hit_is_nested()	false
#endif

/*
 * kprobe_called() - The probe whose handlers a hit calls
 *
 * A hit that is @nested calls those of the site, which ask each probe if it takes part.
 */
static __always_inline struct kprobe *kprobe_called(struct kprobe *site, bool nested)
{
	return unlikely(nested) ? site : READ_ONCE(site_of(site)->called);
}

/*
 * kprobe_has_post() - True if a hit that runs the instruction has a post handler to call
 *
 * Its owner may have set it after registration. The access is plain: the compiler compares the
 * word in memory, and a marked access would cost an instruction.
 */
static __always_inline bool kprobe_has_post(struct kprobe *site, bool nested)
{
	return kprobe_called(site, nested)->post_handler;
}

void kprobe_prepare_post_later(struct kprobe *site);

/* kprobe_call_pre_handlers() - kprobe_pre_handlers(), inline for one probe */
static __always_inline int kprobe_call_pre_handlers(struct kprobe *site, struct pt_regs *regs,
						    bool nested)
{
	return kprobe_call_pre_handler(kprobe_called(site, nested), regs);
}

/* kprobe_call_post_handlers() - kprobe_post_handlers(), inline for one probe */
static __always_inline void kprobe_call_post_handlers(struct kprobe *site, struct pt_regs *regs,
						      bool nested)
{
	kprobe_call_post_handler(kprobe_called(site, nested), regs);
}

#endif /* _LINUX_KPROBES_HIT_H */
