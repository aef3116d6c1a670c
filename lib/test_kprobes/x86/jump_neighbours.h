/* SPDX-License-Identifier: GPL-2.0 */
/* Probes in the instructions that a jump displaces. */
#ifndef _TEST_KPROBES_X86_JUMP_NEIGHBOURS_H
#define _TEST_KPROBES_X86_JUMP_NEIGHBOURS_H

#include "frames.h"

struct kprobe *kpt_plain_frame_probe(char name, unsigned int insn);
extern const struct place kpt_frame_place;

#endif /* _TEST_KPROBES_X86_JUMP_NEIGHBOURS_H */
