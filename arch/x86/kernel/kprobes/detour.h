/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the template of detours and the code that copies it both know.
 */
#ifndef _X86_KPROBES_DETOUR_H
#define _X86_KPROBES_DETOUR_H

/* Offsets in structures, for assembler. */
#define PCPU_HOT_PREEMPT_COUNT	8
#define KPROBE_CTLBLK_REGS	0

/*
 * Bytes below the stack of the probed code that handlers may push to by hand: as
 * many as the entry of a breakpoint exception leaves.
 */
#define HANDLER_STACK_ROOM	48

/* Above cs, where the CPU has 0: what handlers see as ip is behind a breakpoint. */
#define DETOUR_MARK		0x2000

/* kprobe_detour_slow() says of the pre handlers */
#define DETOUR_HANDLED		0	/* they were called */
#define DETOUR_CHANGED		1	/* one of them changed the path */
#define DETOUR_SKIPPED		2	/* none may run now */

#ifndef __ASSEMBLY__

#include <linux/types.h>

/* The template. */
extern const u8 kprobe_detour[];

/* Where things are in it: the beginning and the end of a hit, and of its frame, ... */
extern const u32 kprobe_detour_entry, kprobe_detour_framed, kprobe_detour_called;
extern const u32 kprobe_detour_restored, kprobe_detour_end;

/* ... the operands that are filled in, ... */
extern const u32 kprobe_detour_ip, kprobe_detour_site, kprobe_detour_direct;
extern const u32 kprobe_detour_number, kprobe_detour_probe, kprobe_detour_handler;
extern const u32 kprobe_detour_handled;

/* ... and those of branches to what is not copied, up to a 0. */
extern const u32 kprobe_detour_branches[];

/* The same for its second half. */
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
