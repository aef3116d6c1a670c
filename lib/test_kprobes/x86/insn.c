// SPDX-License-Identifier: GPL-2.0
/* Each kind of instruction does the same with a probe as without one. */
#include <linux/cleanup.h>
#include <linux/kprobes_site.h>
#include <linux/linkage.h>
#include <linux/objtool.h>
#include <linux/preempt.h>
#include <linux/stringify.h>

#include <asm/asm.h>
#include <asm/extable_fixup_types.h>
#include <asm/segment.h>
#include <asm/vsyscall.h>

#include "frames.h"
#include "snippets.h"

static void hit_snippet(const void *snippet)
{
	kpt_set_input(0);
	kpt_run_snippet(snippet);
}

/* Also if it gets a post handler while it is registered. */
static void insn_does_the_same(struct kunit *test)
{
	const struct snippet *snippet = test->param_value;
	const struct cpu_state *expected = kpt_unprobed_states(test, snippet);
	struct kprobe *a;

	for (int post = 0; post < 2; post++) {
		a = kpt_snippet_probe('a', snippet, post);
		ASSERT_REGISTERED(test, a);
		KUNIT_EXPECT_PTR_EQ(test, a->addr, (void *)kpt_insn_address(snippet));
		kpt_expect_same(test, snippet, expected, post);
		if (!post) {
			kpt_set_post_handler_late(a, kpt_record_post, hit_snippet, snippet);
			kpt_expect_same(test, snippet, expected, true);
		}
		KUNIT_EXPECT_EQ(test, a->nmissed, 0);
		unregister_kprobe(a);
	}
	kpt_expect_unprobed(test, snippet, expected);
}

static void skipped_insn_does_the_same(struct kunit *test)
{
	const struct snippet *snippet = test->param_value;
	const struct cpu_state *expected = kpt_unprobed_states(test, snippet);
	struct kprobe *a = kpt_post_probe('a', TRACED->symbol);
	struct kprobe *b = kpt_snippet_probe('b', snippet, true);

	kpt_register_skipping(test, a, snippet);
	ASSERT_REGISTERED(test, b);
	kpt_expect_skipped(test, a, b, expected, "aA");
}

/* The site keeps its post handler, which then does nothing. No hit asks a worker to prepare it. */
static void post_handler_leaves_no_work(struct kunit *test)
{
	const struct snippet *snippet = test->param_value;
	struct kprobe *a = kpt_snippet_probe('a', snippet, true);
	struct kprobe *b = kpt_snippet_probe('b', snippet, false);
	struct kprobe *c = kpt_snippet_probe('c', snippet, false);
	struct kprobe_site *site;
	bool stale;

	ASSERT_REGISTERED(test, a);
	ASSERT_REGISTERED(test, b);
	ASSERT_REGISTERED(test, c);
	site = container_of(get_kprobe(a->addr), struct kprobe_site, kp);
	unregister_kprobe(a);
	scoped_guard(preempt) {
		hit_snippet(snippet);
		stale = READ_ONCE(site->stale);
	}
	KUNIT_EXPECT_FALSE(test, stale);
}

static void inside_of_insn_is_not_probed(struct kunit *test)
{
	const struct snippet *snippet = test->param_value;
	struct kprobe *a = kpt_snippet_probe('a', snippet, false);

	for (int i = 1; i < snippet->length; i++) {
		a->addr = (kprobe_opcode_t *)kpt_insn_address(snippet) + i;
		EXPECT_REFUSED(test, a, -EILSEQ);
	}
}

/* The instruction after the return is an INT3. */
static void trap_is_not_probed(struct kunit *test)
{
	const struct snippet *ret = kpt_find_snippet("ret");
	struct kprobe *a = kpt_snippet_probe('a', ret, false);

	a->offset = ret->length;
	EXPECT_REFUSED(test, a, -EOPNOTSUPP);
}

/* The offsets of instructions that cannot be probed, in a function that is never called. */
extern const u8 kprobes_test_unprobeable_offsets[], kprobes_test_unprobeable_offsets_end[];
asmlinkage void kprobes_test_unprobeable(void);

#define UNPROBEABLE_TABLE(lines)					\
	".pushsection .rodata.kprobes_test_unprobeable, \"a\"\n" lines ".popsection\n"

#define UNPROBEABLE(insn)						\
	"880:	" insn "\n"						\
	UNPROBEABLE_TABLE("	.byte 880b - kprobes_test_unprobeable\n")

asm(UNPROBEABLE_TABLE("kprobes_test_unprobeable_offsets:\n"));

/* One of 64-bit mode, and one of 32-bit mode. */
#ifdef CONFIG_X86_64
#define UNPROBEABLE_64(insn)	UNPROBEABLE(insn)
#define UNPROBEABLE_32(insn)	""
#else
#define UNPROBEABLE_64(insn)	""
#define UNPROBEABLE_32(insn)	UNPROBEABLE(insn)
#endif

KPT_ASM_FUNCTION(kprobes_test_unprobeable,
		 UNPROBEABLE_64("iretq")
		 UNPROBEABLE_64("lretq")
		 UNPROBEABLE_64("ljmp *(%rdi)")
		 UNPROBEABLE_64(INDIRECT "lcall *(%rdi)")
		 UNPROBEABLE_64("lss (%rdi), %eax")
		 UNPROBEABLE_64("sysretq")
		 UNPROBEABLE_64("swapgs")
		 UNPROBEABLE_64("mov 0(%eip), %eax")
		 UNPROBEABLE_32("iretl")
		 UNPROBEABLE_32("lretl")
		 UNPROBEABLE_32("ljmp *(%edi)")
		 UNPROBEABLE_32(INDIRECT "lcall *(%edi)")
		 UNPROBEABLE_32("ljmp $" __stringify(__KERNEL_CS) ", $0")
		 UNPROBEABLE_32("lcall $" __stringify(__KERNEL_CS) ", $0")
		 UNPROBEABLE_32("lss (%edi), %eax")
		 UNPROBEABLE_32("lgs (%edi), %eax")
		 UNPROBEABLE_32("mov %eax, %gs")
		 UNPROBEABLE_32("pop %ss")
		 UNPROBEABLE_32("pop %gs")
		 UNPROBEABLE_32("sysenter")
		 UNPROBEABLE_32("sysexit")
		 UNPROBEABLE_32("into")
		 UNPROBEABLE_32("addr16 loop .")
		 UNPROBEABLE_32("jcxz .")
		 UNPROBEABLE_32("pushfw")
		 UNPROBEABLE_32("popfw")
		 UNPROBEABLE_32(ANNOTATE_RETPOLINE_SAFE "\nretw")
		 UNPROBEABLE_32(INDIRECT "jmpw *%ax")
		 UNPROBEABLE_32(INDIRECT "addr16 call *(%bx)")
		 UNPROBEABLE_32(INDIRECT "call *%gs:(%ebx)")
		 UNPROBEABLE("mov %eax, %ss")
		 UNPROBEABLE("syscall")
		 UNPROBEABLE("int $0x80")
		 UNPROBEABLE("ud1 %eax, %eax")
		 UNPROBEABLE("xbegin .")
		 RETURN);
STACK_FRAME_NON_STANDARD(kprobes_test_unprobeable);

asm(UNPROBEABLE_TABLE("kprobes_test_unprobeable_offsets_end:\n"));

/* -EOPNOTSUPP, not -EILSEQ: an instruction begins there. */
static void unprobeable_insn_is_refused(struct kunit *test)
{
	unsigned long start = kpt_address(kprobes_test_unprobeable);
	struct kprobe *a = kpt_probe('a', NULL);
	const u8 *offset;

	for (offset = kprobes_test_unprobeable_offsets;
	     offset < kprobes_test_unprobeable_offsets_end; offset++) {
		a->addr = (kprobe_opcode_t *)(start + *offset);
		KUNIT_EXPECT_EQ_MSG(test, register_kprobe(a), -EOPNOTSUPP, "offset %u", *offset);
		unregister_kprobe(a);
	}
}

/* The compiler adds calls of them to what a hit runs. Few kernels have any. */
static void sanitizers_are_not_probed(struct kunit *test)
{
	static const struct {
		const char *symbol;
		bool exists;
	} callbacks[] = {
		{ "__tsan_func_entry",		IS_ENABLED(CONFIG_KCSAN) },
		{ "__tsan_read8",		IS_ENABLED(CONFIG_KCSAN) },
		{ "__asan_load8",		IS_ENABLED(CONFIG_KASAN) },
		{ "__sanitizer_cov_trace_pc",	IS_ENABLED(CONFIG_KCOV) },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(callbacks); i++)
		EXPECT_REFUSED(test, kpt_probe('a', callbacks[i].symbol),
			       callbacks[i].exists ? -EINVAL : -ENOENT);
}

/* A load whose fixup decodes it: it would find the breakpoint. */
void kprobes_test_zeropad(void);

KPT_ASM_FUNCTION(kprobes_test_zeropad,
		 "880:	mov (%" _ASM_ARG1 "), %" _ASM_AX "\n"
		 "881:	mov %" _ASM_AX ", %" _ASM_DX "\n"
		 RETURN
		 _ASM_EXTABLE_TYPE(880b, 881b, EX_TYPE_ZEROPAD));

#define LOAD_SIZE	(IS_ENABLED(CONFIG_X86_64) ? 3 : 2)

static void load_with_zero_padding_is_not_probed(struct kunit *test)
{
	unsigned long start = kpt_address(kprobes_test_zeropad);
	struct kprobe *a = kpt_probe('a', NULL);

	a->addr = (kprobe_opcode_t *)(start + ENDBR_SIZE);
	EXPECT_REFUSED(test, a, -EOPNOTSUPP);
	a->addr = (kprobe_opcode_t *)(start + ENDBR_SIZE + LOAD_SIZE);
	ASSERT_REGISTERED(test, a);
}

/* It is executable, and a symbol covers it, but it is not kernel text. */
static void vsyscall_page_is_not_probed(struct kunit *test)
{
	struct kprobe *a = kpt_probe('a', NULL);

	a->addr = (kprobe_opcode_t *)VSYSCALL_ADDR;
	EXPECT_REFUSED(test, a, IS_ENABLED(CONFIG_X86_VSYSCALL_EMULATION) ? -EINVAL : -ENOENT);
}

/* A caller may look at the copy of the instruction. */
static void caller_finds_copy(struct kunit *test)
{
	struct kprobe *a = kpt_frame_probe('a', 0), *b = kpt_frame_probe('b', 0);
	const u8 *text = (const u8 *)kpt_address(kprobes_test_frame) + a->offset;
	u8 push = *text;

	ASSERT_REGISTERED(test, a);
	ASSERT_REGISTERED(test, b);
	KUNIT_ASSERT_NOT_NULL(test, a->ainsn.insn);
	KUNIT_EXPECT_EQ(test, *a->ainsn.insn, push);
	KUNIT_EXPECT_PTR_EQ(test, a->ainsn.insn, b->ainsn.insn);
	unregister_kprobe(a);
	KUNIT_EXPECT_NULL(test, a->ainsn.insn);
	KUNIT_EXPECT_EQ(test, *b->ainsn.insn, push);
}

static struct kunit_case kprobes_x86_insn_cases[] = {
	KUNIT_CASE_PARAM(insn_does_the_same, kpt_snippet_gen_params),
	KUNIT_CASE_PARAM(skipped_insn_does_the_same, kpt_snippet_gen_params),
	KUNIT_CASE_PARAM(post_handler_leaves_no_work, kpt_snippet_gen_params),
	KUNIT_CASE_PARAM(inside_of_insn_is_not_probed, kpt_snippet_gen_params),
	KUNIT_CASE(trap_is_not_probed),
	KUNIT_CASE(unprobeable_insn_is_refused),
	KUNIT_CASE(sanitizers_are_not_probed),
	KUNIT_CASE(load_with_zero_padding_is_not_probed),
	KUNIT_CASE(vsyscall_page_is_not_probed),
	KUNIT_CASE(caller_finds_copy),
	{ }
};

static struct kunit_suite kprobes_x86_insn_suite = {
	.name = "kprobes-x86-insn",
	.suite_init = kpt_start_suite,
	.init = kpt_start_test,
	.exit = kpt_end_test,
	.test_cases = kprobes_x86_insn_cases,
};

kunit_test_suite(kprobes_x86_insn_suite);
