// SPDX-License-Identifier: GPL-2.0
/*
 * Branch targets: bytes that a jump must not displace together with those before
 *
 * The core kernel's text and each module's has an index, a bit a byte. A bit is set if
 * execution may arrive there other than from the preceding instruction, or if another
 * user of the text patches it. No bit is ever cleared: in doubt a byte is a target.
 *
 * Targets are: addresses in direct branches and in operands, return addresses of calls,
 * ENDBRs, starts of symbols, targets of jump labels and of exception fixups, words of
 * data that may be addresses in the text, and all bytes of a function with an indirect
 * jump to unknown targets.
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

/* ------------------------------------------------ branch targets of a function */

static void branch_map_add(const struct branch_map *map, unsigned long addr)
{
	if (addr - map->start < map->size)
		__set_bit(addr - map->start, map->bits);
}

/* Add [@addr, @addr + @len), or the part of it in the text if @addr is in the text. */
static void branch_map_add_range(const struct branch_map *map, unsigned long addr,
				 size_t len)
{
	unsigned long offset = addr - map->start;

	if (offset < map->size)
		bitmap_set(map->bits, offset, min(len, map->size - offset));
}

/**
 * struct scan_frame - Size of the stack frame while a function is scanned
 * @depth:	Bytes on the stack, relative to the function's entry if @exact, else
 *		to the point after the last unconditional jump or return, where the
 *		size of the frame is unknown.
 * @exact:	The scan has followed the path of execution to this point.
 * @jumps:	The last jumps found with an exact frame: their targets have the same
 *		frame.
 * @nr_jumps:	The number of such jumps found so far.
 */
struct scan_frame {
	long depth;
	bool exact;
	struct {
		unsigned long to;
		long depth;
	} jumps[16];
	unsigned int nr_jumps;
};

static void scan_frame_set_unknown(struct scan_frame *frame)
{
	frame->depth = 0;
	frame->exact = false;
}

/* LEAVE releases the frame, whatever its size, and pops the frame pointer. */
static void scan_frame_release(struct scan_frame *frame)
{
	frame->depth = -(long)sizeof(long);
	frame->exact = false;
}

static void scan_frame_remember_jump(struct scan_frame *frame, unsigned long to)
{
	unsigned int slot = frame->nr_jumps % ARRAY_SIZE(frame->jumps);

	if (!frame->exact)
		return;
	frame->jumps[slot].to = to;
	frame->jumps[slot].depth = frame->depth;
	frame->nr_jumps++;
}

/* Set the frame at @addr, after an unconditional jump or return. */
static void scan_frame_recall_jump(struct scan_frame *frame, unsigned long addr)
{
	unsigned int nr = min_t(unsigned int, frame->nr_jumps, ARRAY_SIZE(frame->jumps));

	scan_frame_set_unknown(frame);
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

/* Apply arithmetic with a constant. */
static void scan_frame_apply_constant(struct scan_frame *frame, const struct insn *insn)
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
		scan_frame_set_unknown(frame);
	}
}

static void scan_frame_apply_insn(struct scan_frame *frame, const struct insn *insn)
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
		scan_frame_release(frame);
		break;
	case 0x81:
	case 0x83:
		scan_frame_apply_constant(frame, insn);
		break;
	case 0x01:		/* ADD, SUB, MOV */
	case 0x29:
	case 0x89:
		if (insn_rm_is_sp(insn))
			scan_frame_set_unknown(frame);
		break;
	case 0x03:		/* ADD, SUB, MOV, LEA */
	case 0x2b:
	case 0x8b:
	case 0x8d:
		if (insn_reg_is_sp(insn))
			scan_frame_set_unknown(frame);
		break;
	case 0xc8:		/* ENTER */
		scan_frame_set_unknown(frame);
		break;
	}
}

#define PREFIX_NOTRACK		0x3e

/* A jump with an index, or to a target without ENDBR, is that of a jump table. */
static bool is_table_jump(const struct insn *insn)
{
	return has_prefix(insn, PREFIX_NOTRACK) ||
	       (insn->sib.nbytes && (X86_SIB_INDEX(insn->sib.bytes[0]) != 4 ||
				     X86_REX_X(insn->rex_prefix.bytes[0])));
}

/*
 * True for jmp *table(,%reg,8): text_index_learn_data() finds the addresses in the
 * table.
 */
static bool is_absolute_table_jump(const struct insn *insn)
{
	const u8 sib = insn->sib.bytes[0];

	return insn_opcode(insn) == 0xff && insn->sib.nbytes &&
	       X86_MODRM_MOD(insn->modrm.bytes[0]) == 0 && X86_SIB_BASE(sib) == 5 &&
	       X86_SIB_SCALE(sib) == 3 && is_table_jump(insn);
}

/*
 * True if this indirect jump leaves the function for another one, which returns to the
 * caller: the frame is released there, or there was none.
 */
static bool is_tail_call(const struct scan_frame *frame, const struct insn *insn)
{
	if (insn_opcode(insn) == 0xff && is_table_jump(insn))
		return false;
	return frame->exact ? !frame->depth : frame->depth < 0;
}

/* True if only a branch from elsewhere can reach the next instruction. */
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

/* Add the addresses in operands of an instruction that ends at @end and is no branch. */
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

/* Add the targets of an instruction. Returns true if some of them are unknown. */
static bool branch_map_add_insn(const struct branch_map *map, struct scan_frame *frame,
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
			scan_frame_remember_jump(frame, target);
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
 * A breakpoint that execution may reach is a debugger's and hides an instruction of
 * unknown length. After an unconditional jump or return it is padding.
 */
static bool is_debugger_breakpoint(const u8 *code, bool after_jump)
{
	return code[0] == INT3_INSN_OPCODE && !after_jump;
}

/*
 * A jump to a thunk that was patched into an indirect jump has become shorter. INT3 and
 * a NOP of one or two bytes fill the rest.
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
 * branches_scan_function() - Add the branch targets of a function to a map
 * @map: The map to add to.
 * @code: A copy of the function's bytes, from its symbol to the next one.
 * @len: The number of bytes.
 * @addr: The address at which the bytes are executed; it is added, too.
 * @is_thunk: Returns true if a jump to an address is a jump to a register's content.
 *
 * All of the function is added if it has an indirect jump that may not be a tail call,
 * or a byte at which no instruction starts. After such a byte decoding continues at
 * the next one, to find targets in other functions.
 *
 * Context: Any. Pure: reads only @code, writes only @map.
 */
void branches_scan_function(const struct branch_map *map, const u8 *code, size_t len,
			    unsigned long addr, bool (*is_thunk)(unsigned long addr))
{
	bool opaque = is_static_call_tramp(code, len), after_jump = false;
	struct scan_frame frame = { .exact = true };
	struct insn insn;
	size_t pos, data;

	branch_map_add(map, addr);
	for (pos = 0; pos < len && !is_int3_padding(code + pos, len - pos);
	     pos += insn.length) {
		data = cfi_data_size(code + pos, len - pos);
		if (data) {
			branch_map_add_range(map, addr + pos, data + 1);
			insn.length = data;
			continue;
		}
		if (is_debugger_breakpoint(code + pos, after_jump) ||
		    insn_decode(&insn, code + pos, len - pos, INSN_MODE_64)) {
			opaque = true;
			insn.length = 1;
			continue;
		}
		if (branch_map_add_insn(map, &frame, &insn, addr + pos, is_thunk))
			opaque = true;
		scan_frame_apply_insn(&frame, &insn);
		after_jump = insn_never_falls_through(&insn);
		if (!after_jump)
			continue;
		insn.length += thunk_filler_size(&insn, code + pos + insn.length,
						 len - pos - insn.length);
		scan_frame_recall_jump(&frame, addr + pos + insn.length);
	}
	if (opaque)
		branch_map_add_range(map, addr, len);
}
EXPORT_SYMBOL_IF_KUNIT(branches_scan_function);

/* ------------------------------------------------------- the index of a text */

/**
 * enum learn_step - Next step in building an index
 * @LEARN_TABLES:	Read the tables with addresses in the text.
 * @LEARN_RODATA:	Search read-only data for addresses.
 * @LEARN_RO_AFTER_INIT: Search a module's data that is read-only after init.
 * @LEARN_DATA:		Search writable data.
 * @LEARN_CODE:		Scan the functions from &text_index.next on.
 * @LEARNED:		Nothing is left: the index is complete.
 */
enum learn_step {
	LEARN_TABLES,
	LEARN_RODATA,
	LEARN_RO_AFTER_INIT,
	LEARN_DATA,
	LEARN_CODE,
	LEARNED,
};

/* An area of data to search for addresses. */
struct data_area {
	const void *start;
	unsigned long size;
};

/**
 * struct text_index - Branch targets in the text of the core kernel or a module
 * @list:	In text_indices.
 * @mod:	The module, or NULL for the core kernel.
 * @map:	The text and its branch targets found so far.
 * @step:	The next step; at LEARNED the index can be used.
 * @next:	Start of the symbol at which LEARN_CODE continues.
 * @starts:	A bit for each byte of a module's text, set if a symbol starts there,
 *		until the code is scanned: kallsyms would walk all symbols for each
 *		look-up. NULL for the core kernel.
 * @extable:	The exception table, of @nr_extable entries.
 * @nr_extable:	Number of entries of @extable.
 *
 * kprobe_mutex guards all fields.
 */
struct text_index {
	struct list_head list;
	const struct module *mod;
	struct branch_map map;
	enum learn_step step;
	unsigned long next;
	unsigned long *starts;
	const struct exception_table_entry *extable;
	unsigned int nr_extable;
};

/* All indices. kprobe_mutex guards the list. */
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

/* Allocate the bitmaps of an index whose module and text are set. */
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

/* Add inlined static calls. As a tail call, one may be a Jcc, one byte longer. */
static void branch_map_add_static_calls(const struct branch_map *map,
					const struct static_call_site *site,
					const struct static_call_site *stop)
{
	for (; site < stop; site++)
		branch_map_add_range(map, (unsigned long)&site->addr + site->addr,
				     CALL_INSN_SIZE + 1);
}

#ifdef CONFIG_JUMP_LABEL
/* The size of a jump label, a jump or a NOP of the same size. */
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

		/* Entries of init text are outside; that text may be freed. */
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
 * Return the live module whose text @addr is in, or NULL. Livepatch modules do not
 * count: they are relocated again when the module that they patch is loaded.
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
 * module_mutex is held, so that the entries for init text are not being trimmed from
 * the exception table. The table stays in memory after that.
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

static struct data_area module_data_area(const struct module *mod, enum learn_step what)
{
	enum mod_mem_type type = what == LEARN_RODATA ? MOD_RODATA :
				 what == LEARN_RO_AFTER_INIT ? MOD_RO_AFTER_INIT : MOD_DATA;

	return (struct data_area){ mod->mem[type].base, mod->mem[type].size };
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

static struct data_area module_data_area(const struct module *mod, enum learn_step what)
{
	return (struct data_area){};
}
#endif

/* ------------------------------------------------------- building the indices */

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

/* Create the index, still empty, of the text that an address is in. */
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

static struct data_area core_data_area(enum learn_step what)
{
	switch (what) {
	case LEARN_RODATA:	/* includes data that is read-only after init */
		return (struct data_area){ __start_rodata, __end_rodata - __start_rodata };
	case LEARN_DATA:
		return (struct data_area){ _sdata, _edata - _sdata };
	default:
		return (struct data_area){};
	}
}

/* Add all words of data that are addresses in the text. They may change meanwhile. */
static void text_index_learn_data(const struct text_index *index)
{
	struct data_area area = index->mod ? module_data_area(index->mod, index->step) :
					core_data_area(index->step);
	const unsigned long *word = area.start;

	for (; area.size >= sizeof(*word); area.size -= sizeof(*word), word++)
		branch_map_add(&index->map, READ_ONCE_NOCHECK(*word));
}

static bool is_in_array(unsigned long addr, const void *array, size_t size)
{
	return addr - (unsigned long)array < size;
}

/*
 * Thunks are of several kinds, some on pages of their own. No other jump leaves the
 * text.
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

/* The end of the symbol that starts at @addr, or of the text. */
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

/* Bytes of text read at a time, unless a function is longer. */
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
				       next - index->next, index->next,
				       is_indirect_thunk);
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
	index->step = LEARNED;
}

/**
 * branches_learn() - Do one step in building the index of a text
 * @addr: An address in the text.
 *
 * A step takes a few milliseconds at most. A module may be unloaded between two steps.
 *
 * Context: Process, may sleep; kprobe_mutex is held. Takes text_mutex and
 *	    module_mutex.
 * Return: 1 if another step is needed; 0 if branches_check() can be called for this
 *	   text; -ENOMEM; -EINVAL if the text is neither the core kernel's nor a live
 *	   module's, or is init text: callers must try again once a module that is
 *	   being loaded is live.
 */
int branches_learn(unsigned long addr)
{
	struct text_index *index = text_index_find(addr);
	int ret;

	if (!index)
		return text_index_create(addr) ?: 1;

	switch (index->step) {
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
	index->step++;
	return 1;
}

/* -------------------------------------------------------------------- checking */

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
 * branches_check() - Check if a jump may displace instructions
 * @addr: The address of the first instruction.
 * @size: The size of the instructions in bytes, not 0.
 *
 * The first byte may be a branch target, the others must not be.
 *
 * Context: Process; kprobe_mutex, jump_label_lock() and text_mutex are held.
 * Return: 0 if it may; -EAGAIN if branches_learn() must be called for the text first;
 *	   -EBUSY if another user of the text patches them; -ERANGE if they are not in
 *	   the same function; -EADDRINUSE if there may be a branch into them.
 */
int branches_check(unsigned long addr, unsigned int size)
{
	const struct text_index *index = text_index_find(addr);
	const struct branch_map *map;
	unsigned long offset;

	if (!index || index->step != LEARNED)
		return -EAGAIN;
	map = &index->map;
	offset = addr - map->start;
	if (size > map->size - offset)
		return -ERANGE;

	if (alternatives_text_reserved((void *)addr, (void *)(addr + size)) ||
	    ftrace_text_reserved((void *)addr, (void *)(addr + size - 1)))
		return -EBUSY;

	/* Reserved text has more than one byte, so a bit is set after the first. */
	if (find_next_bit(map->bits, offset + size, offset + 1) >= offset + size)
		return 0;
	if (is_text_reserved(addr, size))
		return -EBUSY;
	return is_crossing_symbols(addr, size) ? -ERANGE : -EADDRINUSE;
}

/**
 * branches_forget() - Free the index of a module that is being unloaded
 * @mod: The module.
 *
 * Context: Process, may sleep; kprobe_mutex is held.
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
