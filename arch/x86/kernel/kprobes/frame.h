/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Macros that save and restore registers as a struct pt_regs, for assembly
 */
#ifndef _X86_KPROBES_FRAME_H
#define _X86_KPROBES_FRAME_H

#include <linux/linkage.h>
#include <linux/objtool.h>
#include <linux/stringify.h>
#include <asm/alternative.h>
#include <asm/asm.h>
#include <asm/cpufeatures.h>
#include <asm/frame.h>
#include <asm/nospec-branch.h>
#include <asm/percpu.h>
#include <asm/segment.h>
#include <asm/smap.h>

#ifdef CONFIG_X86_64
#include "frame_64.h"
#else
#include "frame_32.h"
#endif

/* Push a struct pt_regs for handlers, down to @ip. PUSH_REST pushes the rest. */
.macro PUSH_FRAME ip:req
	push	$__KERNEL_DS
	push	%_ASM_SP
	pushf
	push	$__KERNEL_CS
	push	\ip
.endm

#endif /* _X86_KPROBES_FRAME_H */
