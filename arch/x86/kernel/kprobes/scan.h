/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Branch targets: those of a function, and the index of them
 */
#ifndef _X86_KPROBES_SCAN_H
#define _X86_KPROBES_SCAN_H

#include <linux/bitmap.h>
#include <linux/minmax.h>
#include <linux/types.h>

struct insn;

/* The bytes of a text that a jump must not displace */
struct branch_map {
	unsigned long start;
	unsigned long size;
	/*
	 * A bit a byte, set if execution may arrive there other than from the preceding
	 * instruction, or if a jump label or a static call patches it.
	 */
	unsigned long *bits;
};

static inline void branch_map_add(const struct branch_map *map, unsigned long addr)
{
	if (addr - map->start < map->size)
		__set_bit(addr - map->start, map->bits);
}

/* Add [@addr, @addr + @len), or the part of it in the text if @addr is in the text. */
static inline void branch_map_add_range(const struct branch_map *map, unsigned long addr,
					size_t len)
{
	unsigned long offset = addr - map->start;

	if (offset < map->size)
		bitmap_set(map->bits, offset, min(len, map->size - offset));
}

bool kprobe_insn_is_padding(const struct insn *insn, bool *after_jump);
void kprobe_scan_branches(const struct branch_map *map, const u8 *code, size_t len,
			  unsigned long addr, bool (*is_thunk)(unsigned long addr));

/* branches.c */
int kprobe_branches_check(unsigned long addr, unsigned int size);
bool kprobe_branches_reach(unsigned long addr, unsigned int size, unsigned long text);

#endif /* _X86_KPROBES_SCAN_H */
