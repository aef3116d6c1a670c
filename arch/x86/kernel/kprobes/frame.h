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

#endif /* _X86_KPROBES_FRAME_H */
