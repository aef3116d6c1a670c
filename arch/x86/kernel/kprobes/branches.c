// SPDX-License-Identifier: GPL-2.0
/*
 * What can be jumped to: bytes that a jump must not displace with those before
 *
 * Of the core kernel's text and of each module's there is an index, a bit a
 * byte. A bit is set where execution may arrive otherwise than from the
 * instruction in front, and where somebody else patches the text. Nothing takes
 * a bit back: what is unclear counts as jumped to.
 *
 * Set are, in the words of the functions below: what direct branches and
 * operands refer to, where calls return to, ENDBRs, starts of symbols, targets
 * of jump labels and of exception fixups, whatever looks in data like an address
 * of text, and all of a function which jumps to places that cannot be told.
 */

#include <linux/bitmap.h>
#include <linux/cleanup.h>
#include <linux/extable.h>
#include <linux/ftrace.h>
#include <linux/jump_label.h>
#include <linux/kallsyms.h>
#include <linux/list.h>
#include <linux/memory.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/sched.h>
#include <linux/sizes.h>
#include <linux/slab.h>
#include <linux/static_call.h>

#include <asm/alternative.h>
#include <asm/nops.h>
#include <asm/nospec-branch.h>
#include <asm/sections.h>
#include <asm/text-patching.h>

#include <kunit/visibility.h>

#include "common.h"

/* ------------------------------------------------- what a function jumps to */

static void branch_map_add(const struct branch_map *map, unsigned long addr)
{
	if (addr - map->start < map->size)
		__set_bit(addr - map->start, map->bits);
}

/* All of [@addr, @addr + @len), which begins in the text if it is not empty. */
static void branch_map_add_range(const struct branch_map *map, unsigned long addr,
				 size_t len)
{
	unsigned long offset = addr - map->start;

	if (offset < map->size)
		bitmap_set(map->bits, offset, min(len, map->size - offset));
}

/**
 * struct frame - What is known of the stack in a walk through a function
 * @depth:	Bytes on it, from those at the function's entry if @exact, else
 *		from those at the last way out, behind which the frame is of
 *		unknown size.
 * @exact:	Here the walk has come by execution alone.
 * @jumps:	The last jumps that were met with an exact frame: where they go
 *		to the frame is the same.
 * @nr_jumps:	How many there were.
 */
struct frame {
	long depth;
	bool exact;
	struct {
		unsigned long to;
		long depth;
	} jumps[16];
	unsigned int nr_jumps;
};

static void frame_set_unknown(struct frame *frame)
{
	frame->depth = 0;
	frame->exact = false;
}

/* LEAVE releases what there is. */
static void frame_release(struct frame *frame)
{
	frame->depth = -(long)sizeof(long);
	frame->exact = false;
}

static void frame_remember_jump(struct frame *frame, unsigned long to)
{
	unsigned int slot = frame->nr_jumps % ARRAY_SIZE(frame->jumps);

	if (!frame->exact)
		return;
	frame->jumps[slot].to = to;
	frame->jumps[slot].depth = frame->depth;
	frame->nr_jumps++;
}

/* The frame behind a way out, at @addr. */
static void frame_recall_jump(struct frame *frame, unsigned long addr)
{
	unsigned int nr = min_t(unsigned int, frame->nr_jumps, ARRAY_SIZE(frame->jumps));

	frame_set_unknown(frame);
	for (unsigned int i = 0; i < nr; i++) {
		if (frame->jumps[i].to != addr)
			continue;
		frame->depth = frame->jumps[i].depth;
		frame->exact = true;
	}
}

static bool insn_rm_is_sp(const struct insn *insn)
{
	return X86_MODRM_MOD(insn->modrm.bytes[0]) == 3 &&
	       X86_MODRM_RM(insn->modrm.bytes[0]) == 4 &&
	       !X86_REX_B(insn->rex_prefix.bytes[0]);
}

static bool insn_reg_is_sp(const struct insn *insn)
{
	return X86_MODRM_REG(insn->modrm.bytes[0]) == 4 &&
	       !X86_REX_R(insn->rex_prefix.bytes[0]);
}

/* Arithmetic with a constant. */
static void frame_apply_constant(struct frame *frame, const struct insn *insn)
{
	if (!insn_rm_is_sp(insn))
		return;

	switch (X86_MODRM_REG(insn->modrm.bytes[0])) {
	case 0:			/* ADD */
		frame->depth -= insn->immediate.value;
		break;
	case 5:			/* SUB */
		frame->depth += insn->immediate.value;
		break;
	case 7:			/* CMP */
		break;
	default:
		frame_set_unknown(frame);
	}
}

static void frame_apply_insn(struct frame *frame, const struct insn *insn)
{
	u8 reg = X86_MODRM_REG(insn->modrm.bytes[0]);

	switch (insn_opcode(insn)) {
	case 0xff:
		if (reg != 6)
			break;
		fallthrough;
	case 0x50 ... 0x57:	/* PUSH */
	case 0x68:
	case 0x6a:
	case 0x9c:
	case 0x0fa0:
	case 0x0fa8:
		frame->depth += sizeof(long);
		break;
	case 0x58 ... 0x5f:	/* POP */
	case 0x8f:
	case 0x9d:
	case 0x0fa1:
	case 0x0fa9:
		frame->depth -= sizeof(long);
		break;
	case 0xc9:		/* LEAVE */
		frame_release(frame);
		break;
	case 0x81:
	case 0x83:
		frame_apply_constant(frame, insn);
		break;
	case 0x01:		/* ADD, SUB, MOV */
	case 0x29:
	case 0x89:
		if (insn_rm_is_sp(insn))
			frame_set_unknown(frame);
		break;
	case 0x03:		/* ADD, SUB, MOV, LEA */
	case 0x2b:
	case 0x8b:
	case 0x8d:
		if (insn_reg_is_sp(insn))
			frame_set_unknown(frame);
		break;
	case 0xc8:		/* ENTER */
		frame_set_unknown(frame);
		break;
	}
}

#define PREFIX_NOTRACK		0x3e

/* Jumps with an index, or to what is not an ENDBR, are those of a table. */
static bool is_table_jump(const struct insn *insn)
{
	return has_prefix(insn, PREFIX_NOTRACK) ||
	       (insn->sib.nbytes && (X86_SIB_INDEX(insn->sib.bytes[0]) != 4 ||
				     X86_REX_X(insn->rex_prefix.bytes[0])));
}

/*
 * jmp *table(,%reg,8): the addresses in the table are found with all others that
 * are in data.
 */
static bool is_absolute_table_jump(const struct insn *insn)
{
	const u8 sib = insn->sib.bytes[0];

	return insn_opcode(insn) == 0xff && insn->sib.nbytes &&
	       X86_MODRM_MOD(insn->modrm.bytes[0]) == 0 && X86_SIB_BASE(sib) == 5 &&
	       X86_SIB_SCALE(sib) == 3 && is_table_jump(insn);
}

/*
 * Does this indirect jump leave the function, for another one that returns to
 * the caller? Where the frame is released, or there has not been one.
 */
static bool is_tail_call(const struct frame *frame, const struct insn *insn)
{
	if (insn_opcode(insn) == 0xff && is_table_jump(insn))
		return false;
	return frame->exact ? !frame->depth : frame->depth < 0;
}

/* Does what comes next have to be reached from elsewhere? */
static bool insn_never_falls_through(const struct insn *insn)
{
	switch (insn_opcode(insn)) {
	case 0xc2 ... 0xc3:	/* RET */
	case 0xca ... 0xcb:
	case 0xcf:		/* IRET */
	case 0xe9:		/* JMP */
	case 0xeb:
	case 0x0f0b:		/* UD2 */
	case 0xcc:		/* INT3, as padding */
		return true;
	case 0xff:		/* JMP among INC, DEC, CALL and PUSH */
		return X86_MODRM_REG(insn->modrm.bytes[0]) == 4 ||
		       X86_MODRM_REG(insn->modrm.bytes[0]) == 5;
	default:
		return false;
	}
}

static bool is_call_insn(const struct insn *insn)
{
	u8 reg = X86_MODRM_REG(insn->modrm.bytes[0]);

	return insn_opcode(insn) == 0xe8 ||
	       (insn_opcode(insn) == 0xff && (reg == 2 || reg == 3));
}

static bool is_endbr_insn(const struct insn *insn)
{
	return insn_opcode(insn) == 0x0f1e && has_prefix(insn, PREFIX_REP) &&
	       insn->modrm.bytes[0] == 0xfa;
}

/* Addresses in operands other than of branches: the instruction ends at @end. */
static void branch_map_add_operands(const struct branch_map *map, const struct insn *insn,
				    unsigned long end)
{
	if (is_rip_relative(insn))
		branch_map_add(map, end + insn->displacement.value);
	else if (insn->displacement.nbytes == 4)
		branch_map_add(map, (long)insn->displacement.value);

	if (insn->immediate2.nbytes == 4)
		branch_map_add(map, (u64)insn->immediate2.value << 32 |
				(u32)insn->immediate1.value);
	else if (insn->immediate.nbytes == 4)
		branch_map_add(map, (long)insn->immediate.value);
}

/* Returns true unless it is known where the instruction can jump to. */
static bool branch_map_add_insn(const struct branch_map *map, struct frame *frame,
				const struct insn *insn, unsigned long addr,
				bool (*is_thunk)(unsigned long addr))
{
	unsigned long end = addr + insn->length;
	unsigned long target = end + insn->immediate.value;
	bool indirect = insn_opcode(insn) == 0xff && insn_never_falls_through(insn);

	if (is_endbr_insn(insn))
		branch_map_add(map, addr);
	if (is_call_insn(insn))
		branch_map_add(map, end);

	if (is_relative_branch(insn)) {
		branch_map_add(map, target);
		indirect = !is_call_insn(insn) && is_thunk(target);
		if (!is_call_insn(insn))
			frame_remember_jump(frame, target);
	} else {
		branch_map_add_operands(map, insn, end);
	}
	return indirect && !is_absolute_table_jump(insn) && !is_tail_call(frame, insn);
}

static size_t cfi_data_size(const u8 *code, size_t len)
{
	return IS_ENABLED(CONFIG_CFI_CLANG) ? cfi_check_size(code, len) : 0;
}

/*
 * A breakpoint that execution may come to is a debugger's, and hides an
 * instruction of unknown length. Behind a way out it is padding.
 */
static bool is_debugger_breakpoint(const u8 *code, bool behind_way_out)
{
	return code[0] == INT3_INSN_OPCODE && !behind_way_out;
}

/*
 * A jump to a thunk that was patched to go to where the register says is shorter:
 * INT3 and a NOP, one or two bytes long, fill it up.
 */
static size_t thunk_filler_size(const struct insn *insn, const u8 *code, size_t len)
{
	static const u8 nop1[] = { INT3_INSN_OPCODE, BYTES_NOP1 };
	static const u8 nop2[] = { INT3_INSN_OPCODE, BYTES_NOP2 };

	if (insn_opcode(insn) != 0xff || X86_MODRM_MOD(insn->modrm.bytes[0]) != 3)
		return 0;
	if (len >= sizeof(nop1) && !memcmp(code, nop1, sizeof(nop1)))
		return sizeof(nop1);
	if (len >= sizeof(nop2) && !memcmp(code, nop2, sizeof(nop2)))
		return sizeof(nop2);
	return 0;
}

static bool is_int3_padding(const u8 *code, size_t len)
{
	return code[0] == INT3_INSN_OPCODE && !memchr_inv(code, INT3_INSN_OPCODE, len);
}

/**
 * branches_scan_function() - Note where the code of a function can go to
 * @map: what to note it in
 * @code: a copy of the function's bytes, from its symbol to the next one
 * @len: how many
 * @addr: the address they are executed at; it is noted too
 * @is_thunk: tells if a jump to an address is a jump to what a register holds
 *
 * All of the function is noted if it has an indirect jump that cannot be taken
 * for a tail call, or a byte that no instruction begins with. From there on it
 * is decoded as well as it goes, for the sake of other functions.
 *
 * Context: any. Pure: nothing is read but @code, nothing written but @map.
 */
void branches_scan_function(const struct branch_map *map, const u8 *code, size_t len,
			    unsigned long addr, bool (*is_thunk)(unsigned long addr))
{
	bool opaque = is_static_call_tramp(code, len), behind_way_out = false;
	struct frame frame = { .exact = true };
	struct insn insn;
	size_t pos, data;

	branch_map_add(map, addr);
	for (pos = 0; pos < len && !is_int3_padding(code + pos, len - pos); pos += insn.length) {
		data = cfi_data_size(code + pos, len - pos);
		if (data) {
			branch_map_add_range(map, addr + pos, data + 1);
			insn.length = data;
			continue;
		}
		if (is_debugger_breakpoint(code + pos, behind_way_out) ||
		    insn_decode(&insn, code + pos, len - pos, INSN_MODE_64)) {
			opaque = true;
			insn.length = 1;
			continue;
		}
		if (branch_map_add_insn(map, &frame, &insn, addr + pos, is_thunk))
			opaque = true;
		frame_apply_insn(&frame, &insn);
		behind_way_out = insn_never_falls_through(&insn);
		if (!behind_way_out)
			continue;
		insn.length += thunk_filler_size(&insn, code + pos + insn.length,
						 len - pos - insn.length);
		frame_recall_jump(&frame, addr + pos + insn.length);
	}
	if (opaque)
		branch_map_add_range(map, addr, len);
}
EXPORT_SYMBOL_IF_KUNIT(branches_scan_function);

/* ------------------------------------------------------- the index of a text */

/**
 * enum learning - What to do next for an index
 * @LEARN_TABLES:	Read the tables that tell of places in the text.
 * @LEARN_RODATA:	Look for addresses in data that never changes,
 * @LEARN_RO_AFTER_INIT: in that of a module which does not change any more,
 * @LEARN_DATA:		and in that which does.
 * @LEARN_CODE:		Read the functions from &text_index.next on.
 * @LEARNED:		Nothing.
 */
enum learning {
	LEARN_TABLES,
	LEARN_RODATA,
	LEARN_RO_AFTER_INIT,
	LEARN_DATA,
	LEARN_CODE,
	LEARNED,
};

/* An area of data to look for addresses in. */
struct area {
	const void *start;
	unsigned long size;
};

/**
 * struct text_index - What can be jumped to in a text
 * @list:	In @text_indices.
 * @mod:	Whose text it is, NULL for the core kernel's.
 * @map:	The text, and what is known of it.
 * @learning:	What is to be done; the index can be used if nothing is.
 * @next:	The symbol to go on with.
 * @starts:	The symbols of a module while its code is being read: to ask
 *		kallsyms for each would go through all of them every time. Of the
 *		core kernel's text, NULL.
 * @extable:	The exception table, of @nr_extable entries.
 * @nr_extable:	See @extable.
 *
 * All of it is guarded by kprobe_mutex.
 */
struct text_index {
	struct list_head list;
	const struct module *mod;
	struct branch_map map;
	enum learning learning;
	unsigned long next;
	unsigned long *starts;
	const struct exception_table_entry *extable;
	unsigned int nr_extable;
};

/* Guarded by kprobe_mutex. */
static LIST_HEAD(text_indices);

static struct text_index *text_index_find(unsigned long addr)
{
	struct text_index *index;

	list_for_each_entry(index, &text_indices, list) {
		if (addr - index->map.start < index->map.size)
			return index;
	}
	return NULL;
}

static void text_index_free(struct text_index *index)
{
	if (!index)
		return;
	kvfree(index->starts);
	kvfree(index->map.bits);
	kfree(index);
}

DEFINE_FREE(text_index_free, struct text_index *, text_index_free(_T))

static unsigned long *text_bitmap_alloc(unsigned long size)
{
	return kvcalloc(BITS_TO_LONGS(size), sizeof(long), GFP_KERNEL);
}

/* Fill in the rest of an index that knows whose it is and where. */
static bool text_index_alloc_bitmaps(struct text_index *index)
{
	index->next = index->map.start;
	index->map.bits = text_bitmap_alloc(index->map.size);
	if (index->mod)
		index->starts = text_bitmap_alloc(index->map.size);
	return index->map.bits && (index->starts || !index->mod);
}

static void text_index_add_fixups(const struct text_index *index)
{
	const struct exception_table_entry *e = index->extable;

	for (; e < index->extable + index->nr_extable; e++)
		branch_map_add(&index->map, (unsigned long)&e->fixup + e->fixup);
}

/* Inlined static calls; as a tail call it may be a Jcc of one byte more. */
static void branch_map_add_static_calls(const struct branch_map *map,
					const struct static_call_site *site,
					const struct static_call_site *stop)
{
	for (; site < stop; site++)
		branch_map_add_range(map, (unsigned long)&site->addr + site->addr,
				     CALL_INSN_SIZE + 1);
}

#ifdef CONFIG_JUMP_LABEL
/* As a jump, or as a NOP of the same size. */
static size_t jump_label_size(unsigned long addr)
{
	u8 opcode;

	read_original_text(&opcode, addr, sizeof(opcode));
	return opcode == JMP8_INSN_OPCODE || opcode == PREFIX_OPSIZE ?
		JMP8_INSN_SIZE : JMP32_INSN_SIZE;
}

static void branch_map_add_jump_labels(const struct branch_map *map,
				       const struct jump_entry *entry,
				       const struct jump_entry *stop)
{
	guard(mutex)(&text_mutex);
	for (; entry < stop; entry++) {
		unsigned long addr = jump_entry_code(entry);

		/* The others are of init text, which may be gone. */
		if (addr - map->start >= map->size)
			continue;
		branch_map_add_range(map, addr, jump_label_size(addr));
		branch_map_add(map, jump_entry_target(entry));
	}
}

static void branch_map_add_core_jump_labels(const struct branch_map *map)
{
	branch_map_add_jump_labels(map, __start___jump_table, __stop___jump_table);
}
#else
static void branch_map_add_core_jump_labels(const struct branch_map *map)
{
}
#endif

/* ------------------------------------------------------------------- modules */

#ifdef CONFIG_MODULES
#ifdef CONFIG_JUMP_LABEL
static void branch_map_add_module_jump_labels(const struct branch_map *map,
					      const struct module *mod)
{
	branch_map_add_jump_labels(map, mod->jump_entries,
				   mod->jump_entries + mod->num_jump_entries);
}
#else
static void branch_map_add_module_jump_labels(const struct branch_map *map,
					      const struct module *mod)
{
}
#endif

static void text_index_add_module_tables(const struct text_index *index)
{
	const struct module *mod = index->mod;

	branch_map_add_module_jump_labels(&index->map, mod);
	branch_map_add_static_calls(&index->map, mod->static_call_sites,
				    mod->static_call_sites + mod->num_static_call_sites);
}

/*
 * The module whose text it is, if that is there to stay and complete. That of a
 * live patch is not: it is relocated when what it patches is loaded.
 */
static const struct module *find_live_module(unsigned long addr)
{
	struct module *mod;

	guard(preempt)();
	mod = __module_text_address(addr);
	return mod && mod->state == MODULE_STATE_LIVE && !is_livepatch_module(mod) &&
	       within_module_mem_type(addr, mod, MOD_TEXT) ? mod : NULL;
}

/*
 * Called with module_mutex held, which tells when the entries for init text are
 * taken from both ends of the exception table. They stay in memory.
 */
static int text_index_add_symbol(void *data, const char *name, unsigned long addr)
{
	struct text_index *index = data;

	index->extable = index->mod->extable;
	index->nr_extable = index->mod->num_exentries;
	if (addr - index->map.start < index->map.size)
		__set_bit(addr - index->map.start, index->starts);
	return 0;
}

static struct text_index *text_index_alloc_module(const struct module *mod)
{
	struct text_index *index __free(text_index_free) = kzalloc(sizeof(*index), GFP_KERNEL);

	if (!index)
		return NULL;
	index->mod = mod;
	index->map.start = (unsigned long)mod->mem[MOD_TEXT].base;
	index->map.size = mod->mem[MOD_TEXT].size;
	if (!text_index_alloc_bitmaps(index))
		return NULL;
	module_kallsyms_on_each_symbol(mod->name, text_index_add_symbol, index);
	return_ptr(index);
}

static struct area module_data_area(const struct module *mod, enum learning what)
{
	enum mod_mem_type type = what == LEARN_RODATA ? MOD_RODATA :
				 what == LEARN_RO_AFTER_INIT ? MOD_RO_AFTER_INIT : MOD_DATA;

	return (struct area){ mod->mem[type].base, mod->mem[type].size };
}
#else
static void text_index_add_module_tables(const struct text_index *index)
{
}

static const struct module *find_live_module(unsigned long addr)
{
	return NULL;
}

static struct text_index *text_index_alloc_module(const struct module *mod)
{
	return NULL;
}

static struct area module_data_area(const struct module *mod, enum learning what)
{
	return (struct area){};
}
#endif

/* ------------------------------------------------------------------ learning */

static struct text_index *text_index_alloc_core(void)
{
	struct text_index *index __free(text_index_free) = kzalloc(sizeof(*index), GFP_KERNEL);

	if (!index)
		return NULL;
	index->map.start = (unsigned long)_stext;
	index->map.size = _etext - _stext;
	index->extable = __start___ex_table;
	index->nr_extable = __stop___ex_table - __start___ex_table;
	return text_index_alloc_bitmaps(index) ? no_free_ptr(index) : NULL;
}

/* Begin the index of the text that an address is in. */
static int text_index_create(unsigned long addr)
{
	const struct module *mod = NULL;
	struct text_index *index;

	if (!__is_kernel_text(addr)) {
		mod = find_live_module(addr);
		if (!mod)
			return -EINVAL;
	}
	index = mod ? text_index_alloc_module(mod) : text_index_alloc_core();
	if (!index)
		return -ENOMEM;
	list_add_tail(&index->list, &text_indices);
	return 0;
}

static void text_index_learn_tables(const struct text_index *index)
{
	text_index_add_fixups(index);
	if (index->mod) {
		text_index_add_module_tables(index);
		return;
	}
	branch_map_add_core_jump_labels(&index->map);
	branch_map_add_static_calls(&index->map, __start_static_call_sites,
				    __stop_static_call_sites);
}

static struct area core_data_area(enum learning what)
{
	switch (what) {
	case LEARN_RODATA:	/* with what does not change after init */
		return (struct area){ __start_rodata, __end_rodata - __start_rodata };
	case LEARN_DATA:
		return (struct area){ _sdata, _edata - _sdata };
	default:
		return (struct area){};
	}
}

/* Words that may change as they are read, and hold anything. */
static void text_index_learn_data(const struct text_index *index)
{
	struct area area = index->mod ? module_data_area(index->mod, index->learning) :
					core_data_area(index->learning);
	const unsigned long *word = area.start;

	for (; area.size >= sizeof(*word); area.size -= sizeof(*word), word++)
		branch_map_add(&index->map, READ_ONCE_NOCHECK(*word));
}

static bool is_in_array(unsigned long addr, const void *array, size_t size)
{
	return addr - (unsigned long)array < size;
}

/*
 * There are thunks of several kinds, and some are on pages of their own. No other
 * jump of the text leads out of it.
 */
static bool is_indirect_thunk(unsigned long addr)
{
	const size_t size = 16 * RETPOLINE_THUNK_SIZE;

	if (IS_ENABLED(CONFIG_MITIGATION_RETPOLINE) &&
	    is_in_array(addr, __x86_indirect_thunk_array, size))
		return true;
	if (IS_ENABLED(CONFIG_MITIGATION_CALL_DEPTH_TRACKING) &&
	    is_in_array(addr, __x86_indirect_jump_thunk_array, size))
		return true;
	if (IS_ENABLED(CONFIG_MITIGATION_ITS) &&
	    is_in_array(addr, __x86_indirect_its_thunk_array, 16 * ITS_THUNK_SIZE))
		return true;
	return !__is_kernel_text(addr) && !is_kernel_inittext(addr) &&
	       !is_module_text_address(addr);
}

/* Where the symbol ends that begins at an address, or the text. */
static unsigned long text_symbol_end(const struct text_index *index, unsigned long addr)
{
	const struct branch_map *map = &index->map;
	unsigned long end = map->start + map->size;
	unsigned long size, offset;

	if (index->starts)
		return map->start + find_next_bit(index->starts, map->size,
						  addr - map->start + 1);
	if (!kallsyms_lookup_size_offset(addr, &size, &offset))
		return end;
	return min(end, addr - offset + size);
}

/* How much text is read at a time, unless a function is longer. */
#define LEARN_SIZE	SZ_64K

static int text_index_learn_code(struct text_index *index)
{
	u8 *code __free(kvfree) = NULL;
	unsigned long end = index->map.start + index->map.size;
	unsigned long start = index->next, next, len;

	next = text_symbol_end(index, start);
	len = min(end - start, max(next - start, LEARN_SIZE));
	code = kvmalloc(len, GFP_KERNEL);
	if (!code)
		return -ENOMEM;
	scoped_guard(mutex, &text_mutex)
		read_original_text(code, start, len);

	while (index->next < end && next <= start + len) {
		branches_scan_function(&index->map, code + (index->next - start),
				       next - index->next, index->next, is_indirect_thunk);
		cond_resched();
		index->next = next;
		next = next < end ? text_symbol_end(index, next) : next;
	}
	return index->next < end;
}

static void text_index_complete(struct text_index *index)
{
	kvfree(index->starts);
	index->starts = NULL;
	index->learning = LEARNED;
}

/**
 * branches_learn() - Get to know what can be jumped to, a bit more
 * @addr: an address in the text to be known
 *
 * One step takes a few milliseconds at most; a module may go between two.
 *
 * Context: process, may sleep; kprobe_mutex is held. Takes text_mutex and
 *	    module_mutex.
 * Return: 1 if there is more to be done, 0 if branches_check() can be asked for
 *	   this text, -ENOMEM, or -EINVAL if the text is neither the core kernel's
 *	   nor a live module's, or only there for initialisation: a module that is
 *	   being loaded has to be tried again when it is live
 */
int branches_learn(unsigned long addr)
{
	struct text_index *index = text_index_find(addr);
	int ret;

	if (!index)
		return text_index_create(addr) ?: 1;

	switch (index->learning) {
	case LEARN_TABLES:
		text_index_learn_tables(index);
		break;
	case LEARN_RODATA:
	case LEARN_RO_AFTER_INIT:
	case LEARN_DATA:
		text_index_learn_data(index);
		break;
	case LEARN_CODE:
		ret = text_index_learn_code(index);
		if (!ret)
			text_index_complete(index);
		return ret;
	case LEARNED:
		return 0;
	}
	index->learning++;
	return 1;
}

/* ---------------------------------------------------------------------- asking */

static bool is_text_reserved(unsigned long addr, unsigned int size)
{
	void *first = (void *)addr, *last = (void *)(addr + size - 1);

	return jump_label_text_reserved(first, last) ||
	       static_call_text_reserved(first, last);
}

static bool is_crossing_symbols(unsigned long addr, unsigned int size)
{
	unsigned long symbol_size, offset;

	return !kallsyms_lookup_size_offset(addr, &symbol_size, &offset) ||
	       size > symbol_size - offset;
}

/**
 * branches_check() - Can instructions be displaced by a jump?
 * @addr: the address of the first one
 * @size: how many bytes they have, not 0
 *
 * The first byte can be jumped to: the others must not be.
 *
 * Context: process; kprobe_mutex, jump_label_lock() and text_mutex are held.
 * Return: 0 if they can, -EAGAIN if branches_learn() has to be called for the
 *	   text, -EBUSY if somebody else patches them, -ERANGE if they do not
 *	   belong to the same function, or -EADDRINUSE if there may be a jump to one
 *	   of them
 */
int branches_check(unsigned long addr, unsigned int size)
{
	const struct text_index *index = text_index_find(addr);
	const struct branch_map *map;
	unsigned long offset;

	if (!index || index->learning != LEARNED)
		return -EAGAIN;
	map = &index->map;
	offset = addr - map->start;
	if (size > map->size - offset)
		return -ERANGE;

	if (alternatives_text_reserved((void *)addr, (void *)(addr + size)) ||
	    ftrace_text_reserved((void *)addr, (void *)(addr + size - 1)))
		return -EBUSY;

	/* What is reserved by others has more than one byte. */
	if (find_next_bit(map->bits, offset + size, offset + 1) >= offset + size)
		return 0;
	if (is_text_reserved(addr, size))
		return -EBUSY;
	return is_crossing_symbols(addr, size) ? -ERANGE : -EADDRINUSE;
}

/**
 * branches_forget() - A module is going: drop what is known of its text
 * @mod: the module
 *
 * Context: process, may sleep; kprobe_mutex is held.
 */
void branches_forget(const struct module *mod)
{
	struct text_index *index, *next;

	list_for_each_entry_safe(index, next, &text_indices, list) {
		if (index->mod != mod)
			continue;
		list_del(&index->list);
		text_index_free(index);
	}
}
