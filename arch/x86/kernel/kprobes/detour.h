/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Constants and labels that the templates of detours share with the code that copies them
 */
#ifndef _X86_KPROBES_DETOUR_H
#define _X86_KPROBES_DETOUR_H

/* Offsets in structures, for assembly. */
#define PCPU_HOT_PREEMPT_COUNT	8
#define KPROBE_CTLBLK_REGS	0

/*
 * Bytes below the stack of the probed code for what handlers push by hand, as many
 * as the entry of a breakpoint exception leaves.
 */
#define HANDLER_STACK_ROOM	48

/* In the bits above cs, which the CPU leaves 0: ip is that after a breakpoint. */
#define DETOUR_MARK		0x2000

/* Results of kprobe_detour_slow() */
#define DETOUR_HANDLED		0	/* the pre handlers were called */
#define DETOUR_CHANGED		1	/* a pre handler changed the path */
#define DETOUR_SKIPPED		2	/* no handler may run now */

#ifndef __ASSEMBLY__

#include <linux/types.h>

/* The template of detours. */
extern const u8 kprobe_detour[];

/* Offsets in kprobe_detour of the start and the end of a hit and of its frame. */
extern const u32 kprobe_detour_entry, kprobe_detour_framed, kprobe_detour_called;
extern const u32 kprobe_detour_restored, kprobe_detour_end;

/* Offsets in kprobe_detour of the operands to fill in. */
extern const u32 kprobe_detour_ip, kprobe_detour_site, kprobe_detour_direct;
extern const u32 kprobe_detour_number, kprobe_detour_probe, kprobe_detour_handler;
extern const u32 kprobe_detour_handled;

/* Offsets in kprobe_detour of displacements out of the template, up to a 0. */
extern const u32 kprobe_detour_branches[];

/* The template of second halves, which call post handlers, and offsets in it. */
extern const u8 kprobe_detour_post[];
extern const u32 kprobe_detour_post_run, kprobe_detour_post_run_nested;
extern const u32 kprobe_detour_post_run_restored;
extern const u32 kprobe_detour_post_entry, kprobe_detour_post_framed;
extern const u32 kprobe_detour_post_restored, kprobe_detour_post_end;
extern const u32 kprobe_detour_post_ip, kprobe_detour_post_site, kprobe_detour_post_direct;
extern const u32 kprobe_detour_post_number, kprobe_detour_post_probe;
extern const u32 kprobe_detour_post_handler, kprobe_detour_post_next;
extern const u32 kprobe_detour_post_first, kprobe_detour_post_rest;
extern const u32 kprobe_detour_post_branches[];

#endif

#endif /* _X86_KPROBES_DETOUR_H */
