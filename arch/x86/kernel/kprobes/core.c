// SPDX-License-Identifier: GPL-2.0
/*
 * Architecture hooks: preparing a probe, patching the text, executable memory, blacklist
 */
#include <linux/array_size.h>
#include <linux/bitfield.h>
#include <linux/cc_platform.h>
#include <linux/cpufeature.h>
#include <linux/errno.h>
#include <linux/execmem.h>
#include <linux/export.h>
#include <linux/extable.h>
#include <linux/init.h>
#include <linux/kallsyms.h>
#include <linux/kprobes.h>
#include <linux/memory.h>
#include <linux/set_memory.h>
#include <linux/string.h>

#include <asm/extable_fixup_types.h>
#include <asm/sections.h>
#include <asm/text-patching.h>

#include <kunit/visibility.h>

#include "hit.h"
#include "insn.h"
#include "text.h"

/*
 * An instruction with an exception-table entry may sleep in its fault, which the grace
 * period that protects slots takes for a quiescent state. Stepping it makes the fault
 * leave the slot first. A fixup that decodes the text would decode the breakpoint.
 */
static int kprobe_restrict_for_extable(enum insn_run *run, unsigned long addr)
{
	const struct exception_table_entry *e = search_exception_tables(addr);

	if (!e)
		return 0;
	if (*run == INSN_RUN_EMULATE || *run == INSN_RUN_SKIP ||
	    FIELD_GET(EX_DATA_TYPE_MASK, e->data) == EX_TYPE_ZEROPAD)
		return -EOPNOTSUPP;
	*run = INSN_RUN_STEP;
	return 0;
}

/* Make a slot with a copy of the instruction, and a jump to @next or, if NULL, a trap. */
static int kprobe_make_slot(struct kprobe *p, struct insn *insn, const void *next,
			    kprobe_opcode_t **result)
{
	kprobe_opcode_t *slot = kprobe_get_insn_slot(p);
	u8 code[KPROBE_SLOT_SIZE];
	int len;

	BUILD_BUG_ON(MAX_INSN_SIZE + JMP32_INSN_SIZE > KPROBE_SLOT_SIZE);
	if (!slot)
		return -ENOMEM;
	memset(code, INT3_INSN_OPCODE, sizeof(code));
	len = kprobe_relocate_insn(code, insn, (unsigned long)p->addr, (unsigned long)slot);
	if (len < 0) {
		free_insn_slot(slot, 0);
		return -EOPNOTSUPP;
	}
	if (next)
		__text_gen_insn(code + len, JMP32_INSN_OPCODE, slot + len, next,
				JMP32_INSN_SIZE);
	kprobe_write_text(slot, code, sizeof(code), 0);
	/* The site may be armed already. Pairs with each READ_ONCE() of @post_insn. */
	WRITE_ONCE(*result, slot);
	return 0;
}

/* Whether the kernel uses FRED, see arch_populate_kprobe_blacklist(). A test changes it. */
bool kprobe_has_fred __read_mostly;
EXPORT_SYMBOL_IF_KUNIT(kprobe_has_fred);

/*
 * FRED saves in an exception's frame that the CPU expects an ENDBR. The return from a
 * breakpoint on an ENDBR would make the CPU expect another one after it.
 */
static bool is_fred_landing_pad(const struct insn *insn)
{
	return kprobe_has_fred && kprobe_insn_class(insn) == INSN_ENDBR;
}

/*
 * kprobe_boost_ip() - Find where a hit continues that needs neither a trap nor emulation
 *
 * That is the copy of the instruction, which is not in a detour, or where it leads to if it does
 * nothing or always jumps to the same address; NULL if it must be stepped or emulated.
 */
kprobe_opcode_t *kprobe_boost_ip(const struct kprobe *p)
{
	const struct arch_specific_insn *ainsn = &p->ainsn;

	switch (ainsn->run) {
	case INSN_RUN_BOOST:
		return ainsn->insn;
	case INSN_RUN_SKIP:
		return (kprobe_opcode_t *)p->addr + ainsn->size;
	case INSN_RUN_EMULATE:
		return ainsn->emul.op == INSN_JMP ?
			(kprobe_opcode_t *)p->addr + ainsn->size + ainsn->emul.disp : NULL;
	default:
		return NULL;
	}
}

/* Make what it takes to run the instruction without post handlers. */
static int kprobe_prepare_insn(struct kprobe *p, struct insn *insn)
{
	struct arch_specific_insn *ainsn = &p->ainsn;
	int err;

	if (ainsn->run == INSN_RUN_SKIP)
		return 0;
	if (ainsn->run == INSN_RUN_EMULATE) {
		err = kprobe_prepare_emulation(&ainsn->emul, insn);
		if (err || !emulation_can_fail(&ainsn->emul))
			return err;
	}
	return kprobe_make_slot(p, insn, ainsn->run == INSN_RUN_STEP ? NULL : ainsn->next,
				&ainsn->insn);
}

int arch_prepare_kprobe(struct kprobe *p)
{
	u8 code[ORIGINAL_CODE_SIZE];
	enum insn_run run;
	struct insn insn;
	int err;

	lockdep_assert_held(&text_mutex);
	if (kprobe_decode_insn(&insn, code, (unsigned long)p->addr))
		return -EILSEQ;
	run = kprobe_analyse_insn(&insn);
	if (run == INSN_RUN_NEVER || is_fred_landing_pad(&insn))
		return -EOPNOTSUPP;
	err = kprobe_restrict_for_extable(&run, (unsigned long)p->addr);
	if (err)
		return err;

	p->opcode = code[0];
	p->ainsn.size = insn.length;
	p->ainsn.run = run;
	p->ainsn.next = p->addr + insn.length;
	err = kprobe_prepare_insn(p, &insn);
	p->ainsn.boost = kprobe_boost_ip(p);
	return err;
}
EXPORT_SYMBOL_IF_KUNIT(arch_prepare_kprobe);

/*
 * Where the copy for post handlers jumps to, or NULL if a trap follows it. On x86-64 the stub
 * ends with an IRET. On Xen PV that is a hypercall and as slow as a trap. In an NMI it lets the
 * next NMI in, which FRED is not prepared for.
 */
static const void *post_copy_continuation(const struct insn *insn)
{
	return kprobe_insn_class(insn) == INSN_SYSTEM || cpu_feature_enabled(X86_FEATURE_XENPV) ||
	       kprobe_has_fred ? NULL : kprobe_post_stub;
}

int arch_prepare_post_handler(struct kprobe *p)
{
	u8 code[ORIGINAL_CODE_SIZE];
	struct insn insn;

	lockdep_assert_held(&text_mutex);
	if (p->ainsn.run != INSN_RUN_BOOST || p->ainsn.post_insn)
		return 0;
	if (kprobe_decode_insn(&insn, code, (unsigned long)p->addr))
		return -EILSEQ;
	return kprobe_make_slot(p, &insn, post_copy_continuation(&insn), &p->ainsn.post_insn);
}
EXPORT_SYMBOL_IF_KUNIT(arch_prepare_post_handler);

void arch_remove_kprobe(struct kprobe *p)
{
	free_insn_slot(p->ainsn.insn, 0);
	free_insn_slot(p->ainsn.post_insn, 0);
	p->ainsn.insn = NULL;
	p->ainsn.post_insn = NULL;
}
EXPORT_SYMBOL_IF_KUNIT(arch_remove_kprobe);

void arch_arm_kprobe(struct kprobe *p)
{
	const u8 breakpoint = INT3_INSN_OPCODE;

	kprobe_write_text(p->addr, &breakpoint, INT3_INSN_SIZE, INT3_INSN_SIZE);
}

void arch_disarm_kprobe(struct kprobe *p)
{
	kprobe_write_text(p->addr, &p->opcode, INT3_INSN_SIZE, INT3_INSN_SIZE);
}

void arch_sync_kprobes(void)
{
	smp_text_poke_sync_each_cpu();
}

/* The page may be a part of a large one that is never mapped writable: poke it. */
void *alloc_insn_page(void)
{
	void *page = execmem_alloc(EXECMEM_KPROBES, PAGE_SIZE);
	u8 traps[PAGE_SIZE / 16];

	if (!page)
		return NULL;
	memset(traps, INT3_INSN_OPCODE, sizeof(traps));
	for (unsigned int i = 0; i < PAGE_SIZE; i += sizeof(traps))
		text_poke(page + i, traps, sizeof(traps));
	if (set_memory_rox((unsigned long)page, 1)) {
		execmem_free(page);
		return NULL;
	}
	return page;
}

/* -------------------------------------------------------------- blacklist */

/* __switch_to() returns by another task's return address. */
struct kretprobe_blackpoint kretprobe_blacklist[] = {
	{ .name = "__switch_to" },
	{ },
};

bool arch_within_kprobe_blacklist(unsigned long addr)
{
	void *place = (void *)addr;

	return memory_contains(__entry_text_start, __entry_text_end, place, 1) ||
	       memory_contains(__kprobes_text_start, __kprobes_text_end, place, 1) ||
	       memory_contains(__noinstr_text_start, __noinstr_text_end, place, 1);
}

/*
 * Functions that a hit enters or returns through. The definitions of the indirect thunks
 * and of most return thunks mark them already.
 */
static const char * const hit_path[] __initconst = {
	"__x86_return_thunk", "retbleed_return_thunk", "srso_return_thunk",
	"srso_alias_return_thunk", "srso_alias_safe_ret", "srso_untrain_ret",
	"call_depth_return_thunk", "its_return_thunk", "retbleed_untrain_ret",
	"srso_alias_untrain_ret", "srso_safe_ret", "ftrace_stub", "return_to_handler",
	"preempt_schedule_notrace", "preempt_schedule_notrace_thunk", "atomic64_read_cx8",
	"atomic64_read_386", "cmpxchg8b_emu",
	/* each likely() of an exception's entry, with PROFILE_ANNOTATED_BRANCHES */
	"ftrace_likely_update",
	/* every return from an exception on Xen PV */
	"xen_iret", "xenpv_restore_regs_and_return_to_usermode",
};

/*
 * Functions that run while the CPU cannot take an exception, or without the segment of
 * per-CPU data: until the descriptors are loaded, or after they have gone.
 */
static const char * const no_exceptions[] __initconst = {
	/* a CPU comes on line */
	"secondary_startup_64", "secondary_startup_64_no_verify", "common_startup_64", "verify_cpu",
	"soft_restart_cpu", "early_setup_idt", "setup_ghcb", "startup_64_load_idt",
	"__pi_startup_64_load_idt", "start_secondary", "cr4_init",
	"cr4_set_bits", "cr4_set_bits_irqsoff", "cr4_update_irqsoff", "native_write_cr4",
	"cpu_init_exception_handling", "cpu_init_fred_exceptions", "cpu_init_fred_rsps",
	"load_current_idt", "native_write_msr", "do_trace_write_msr", "native_write_gdt_entry",
	"native_load_tr_desc", "hv_vtl_ap_entry",
	/* a TDX guest must not cause another #VE before it has read about this one */
	"tdx_get_ve_info",
	/* EFI in mixed mode: the stack is one page */
	"__efi64_thunk",
	/* the machine wakes up */
	"wakeup_long64", "bogus_magic", "do_suspend_lowlevel", "kasan_unpoison_task_stack_below",
	"kasan_unpoison", "kasan_poison", "native_write_cr0", "restore_processor_state",
	"__restore_processor_state", "fix_processor_context",
	/* the image of a hibernated kernel is restored */
	"restore_registers", "swsusp_arch_suspend", "create_image",
	"hibernation_snapshot",		/* create_image() may be inlined */
	/* another kernel is started */
	"machine_kexec", "hv_crash_c_entry",
	/* several of them call it with DEBUG_VIRTUAL, also where the CPU is dead */
	"__phys_addr",
};

/* More of i386: x86-64 reaches none of them before it has descriptors. */
static const char * const no_exceptions_32[] __initconst = {
	"startup_32_smp", "__flush_tlb_all", "flush_tlb_local", "native_flush_tlb_global",
	"native_flush_tlb_local", "wakeup_pmode_return", "ret_point", "wakeup_start",
};

/*
 * How the names of functions begin that emulate instructions of an SEV-ES guest, in an
 * exception that a CPU takes before it can take others. The compiler may split them.
 */
static const char * const vc_exception[] __initconst = {
	"vc_boot_ghcb", "vc_raw_handle_exception", "vc_init_em_ctxt", "vc_decod",
	"__vc_decode_kern_insn", "vc_fetch_insn_kernel", "vc_check_opcode_bytes", "vc_handle_",
	"__vc_handle_", "vc_finish_insn", "snp_cpuid", "__pi_snp_cpuid", "snp_register_",
	"sev_cpuid_hv", "__sev_cpuid_hv", "sev_es_ghcb_hv_call", "verify_exception_info",
	"copy_from_kernel_nofault", "insn_init", "insn_decode", "insn_get_", "inat_get_",
	"__get_immv", "__get_moffset", NULL
};

/* The same of what compilers call in the functions that a hit runs. */
static const char * const sanitizers[] __initconst = {
	"__tsan_", "kcsan_", "__asan_", "kasan_check_range", "__kasan_check_", "__msan_",
	"kmsan_", "virt_to_page_or_null", "__sanitizer_cov_", "write_comp_data", "check_kcov_mode",
	"canonicalize_ip", NULL
};

/* Text that is copied, and runs where no breakpoint is known. */
static const char * const copied_text[] __initconst = {
	"relocate_kernel", "identity_mapped", "virtual_mapped", "swap_pages", "core_restore_code",
	"copy_loop", "done", "hv_crash_asm32", "hv_crash_asm64",
};

/*
 * What a CPU runs after it has reported itself dead or stopped: nobody waits for a hit
 * there, and kexec overwrites the memory that the hit would need.
 */
static const char * const dead_cpu[] __initconst = {
	"cpuhp_ap_report_dead", "cpuhp_ap_update_sync_state", "play_dead_common",
	"native_play_dead", "mwait_play_dead", "hlt_play_dead", "resume_play_dead",
	"tboot_shutdown", "cpuidle_play_dead", "cpuidle_get_cpu_driver", "intel_idle_enter_dead",
	"acpi_processor_ffh_play_dead", "acpi_mp_play_dead", "acpi_mp_stop_this_cpu",
	"asm_acpi_mp_play_dead", "sev_es_play_dead", "xen_pv_play_dead", "arch_cpu_idle_dead",
	"stop_this_cpu",
};

static int __init kprobe_blacklist_symbol(void *unused, unsigned long addr)
{
	kprobe_add_ksym_blacklist(addr);
	return 0;
}

static int __init kprobe_blacklist_beginnings(void *list, const char *name, unsigned long addr)
{
	for (const char * const *beginning = list; *beginning; beginning++)
		if (str_has_prefix(name, *beginning))
			kprobe_add_ksym_blacklist(addr);
	return 0;
}

/* Not each kernel has all of them, and it may have several functions of one name. */
static void __init kprobe_blacklist_names(const char * const *name, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		kallsyms_on_each_match_symbol(kprobe_blacklist_symbol, name[i], NULL);
}

int __init arch_populate_kprobe_blacklist(void)
{
	kprobe_has_fred = cpu_feature_enabled(X86_FEATURE_FRED);
	kprobe_blacklist_names(hit_path, ARRAY_SIZE(hit_path));
	kprobe_blacklist_names(no_exceptions, ARRAY_SIZE(no_exceptions));
	if (IS_ENABLED(CONFIG_X86_32))
		kprobe_blacklist_names(no_exceptions_32, ARRAY_SIZE(no_exceptions_32));
	if (cc_platform_has(CC_ATTR_GUEST_STATE_ENCRYPT))
		kallsyms_on_each_symbol(kprobe_blacklist_beginnings, (void *)vc_exception);
	if (IS_ENABLED(CONFIG_KASAN) || IS_ENABLED(CONFIG_KCSAN) || IS_ENABLED(CONFIG_KMSAN) ||
	    IS_ENABLED(CONFIG_KCOV))
		kallsyms_on_each_symbol(kprobe_blacklist_beginnings, (void *)sanitizers);
	kprobe_blacklist_names(copied_text, ARRAY_SIZE(copied_text));
	kprobe_blacklist_names(dead_cpu, ARRAY_SIZE(dead_cpu));
	/* Labels split ftrace_caller and its siblings into several symbols. */
	kprobe_add_area_blacklist(kallsyms_lookup_name("ftrace_caller"),
				  kallsyms_lookup_name("ftrace_stub_direct_tramp"));
	return kprobe_add_area_blacklist((unsigned long)__entry_text_start,
					 (unsigned long)__entry_text_end);
}
