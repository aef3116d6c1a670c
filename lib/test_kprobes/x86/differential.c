// SPDX-License-Identifier: GPL-2.0
/*
 * The differential test: forms of instructions are run with and without probes, and must
 * do the same in whichever way the probed ones are run.
 */
#include <linux/kdebug.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>

#include <asm/debugreg.h>
#include <asm/processor-flags.h>

#include "operands.h"
#include "snippets.h"

/* What a pointer for operands relative to ip leads to. */
asm(".pushsection .data\n"
    ".balign 8\n"
    "kprobes_test_pointer:\n"
    "	.quad kprobes_test_callee\n"
    ".popsection\n");

/* A pair of words to exchange, and the same per CPU, and a number, which is always 7. */
asm(".pushsection .data\n"
    ".balign 16\n"
    "kprobes_test_two_cells:\n"
    "	.quad 1, 2\n"
    ".popsection\n");

DEFINE_PER_CPU(u64, kprobes_test_number) = 7;
DEFINE_PER_CPU_ALIGNED(struct pair, kprobes_test_pair);

#define TWO_CELLS		"kprobes_test_two_cells(%rip)"
#define LOAD_TWO_CELLS		"mov $1, %eax\n	mov $2, %edx"
#define LEA_NUMBER		"lea kprobes_test_number(%rip), %rbx"

/* Show what is there, and put back what was. */
#define SHOW_TWO_CELLS							\
	"mov " TWO_CELLS ", %rax\n"					\
	"mov 8 + " TWO_CELLS ", %rdx\n"					\
	"movq $1, " TWO_CELLS "\n"					\
	"movq $2, 8 + " TWO_CELLS
#define SHOW_NUMBER							\
	"mov " NUMBER_HERE ", %rbx\n"					\
	"movq $7, " NUMBER_HERE
#define SHOW_PAIR							\
	"mov " PAIR_HERE ", %rax\n"					\
	"mov " THIS_CPU("kprobes_test_pair + 8") ", %rdx\n"		\
	"movq $0, " PAIR_HERE "\n"					\
	"movq $0, " THIS_CPU("kprobes_test_pair + 8")

/* What is at label 1, and in front of it for what does not branch. */
#define ONLY_1		"int3\n 1: mov $2, %r14d\n" RETURN
#define ELSE_1		"mov $1, %r14d\n" RETURN ONLY_1

/* Show what is in the cell, and take 5 from it. */
#define TAKE_5								\
	"mov kprobes_test_cell(%rip), %rax\n"				\
	"subl $5, kprobes_test_cell(%rip)"

/* Room for a jump, whatever is probed. */
#define PADDING		"\n	.skip 5, 0xcc\n"

extern const struct snippet kprobes_test_forms[], kprobes_test_forms_end[];

asm(SNIPPET_TABLE("kprobes_test_forms:\n"));

#define FORM(name, before, insn, after)					\
	__SNIPPET("form_" name, before, insn, after "\n" RETURN PADDING, "0");
#define BRANCH_FORM(name, before, insn, after)				\
	__SNIPPET("form_" name, before, insn, after PADDING, "882b - 880b");
#include "forms.h"
#undef FORM
#undef BRANCH_FORM

#define IN_FRONT	"lea 17(%r9), %r9"

#define FORM(name, before, insn, after)					\
	__SNIPPET("form_" name "_behind", before, IN_FRONT,		\
		  insn "\n" after "\n" RETURN PADDING, "0");
#define BRANCH_FORM(name, before, insn, after)				\
	__SNIPPET("form_" name "_behind", before, IN_FRONT,		\
		  insn "\n" after PADDING, "0");
#include "forms.h"
#undef FORM
#undef BRANCH_FORM

asm(SNIPPET_TABLE("kprobes_test_forms_end:\n"));

#define STATUS_FLAGS							\
	(X86_EFLAGS_CF | X86_EFLAGS_PF | X86_EFLAGS_AF | X86_EFLAGS_ZF |	\
	 X86_EFLAGS_SF | X86_EFLAGS_OF)

/* Flags that are undefined after a form, or depend on where the stack is. */
static const struct undefined {
	const char *name;	/* or what it begins with */
	unsigned long flags;
} undefined[] = {
	{ "form_mul", X86_EFLAGS_SF | X86_EFLAGS_ZF | X86_EFLAGS_AF | X86_EFLAGS_PF },
	{ "form_imul", X86_EFLAGS_SF | X86_EFLAGS_ZF | X86_EFLAGS_AF | X86_EFLAGS_PF },
	{ "form_div", STATUS_FLAGS },
	{ "form_idiv", STATUS_FLAGS },
	{ "form_or", X86_EFLAGS_AF },
	{ "form_lock_or", X86_EFLAGS_AF },
	{ "form_gs_or", X86_EFLAGS_AF },
	{ "form_gs_test", X86_EFLAGS_AF },
	{ "form_and", X86_EFLAGS_AF },
	{ "form_xor", X86_EFLAGS_AF },
	{ "form_test", X86_EFLAGS_AF },
	{ "form_shl_", X86_EFLAGS_OF | X86_EFLAGS_AF },
	{ "form_sar", X86_EFLAGS_OF | X86_EFLAGS_AF },
	{ "form_rol_", X86_EFLAGS_OF },
	{ "form_shld", X86_EFLAGS_OF | X86_EFLAGS_AF },
	{ "form_shrd", X86_EFLAGS_OF | X86_EFLAGS_AF },
	{ "form_bt", STATUS_FLAGS & ~(X86_EFLAGS_CF | X86_EFLAGS_ZF) },
	{ "form_lock_bt", STATUS_FLAGS & ~(X86_EFLAGS_CF | X86_EFLAGS_ZF) },
	{ "form_bsf", STATUS_FLAGS & ~X86_EFLAGS_ZF },
	{ "form_sub_sp", STATUS_FLAGS },
};

static unsigned long defined_flags(const struct snippet *form)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(undefined); i++) {
		if (str_has_prefix(form->name, undefined[i].name))
			return ~undefined[i].flags;
	}
	return ~0UL;
}

/**
 * struct outcome - What a run of a form, with one input, comes to
 * @left:	What it leaves.
 * @before:	The registers in front of the probed instruction. What points to the
 *		stack is relative to run_form()'s frame.
 * @after:	Those when it has been run.
 */
struct outcome {
	struct cpu_state left;
	struct pt_regs before;
	struct pt_regs after;
};

/* What is to come of each form, for each input, and what came of the last run. */
static struct outcome (*forms_due)[INPUTS];
static struct outcome *came;	/* not among data, which tells of targets of branches */

static unsigned long form_stack;
static unsigned int pre_hits, post_hits;

static noinline void run_form(const struct snippet *form)
{
	form_stack = (unsigned long)__builtin_frame_address(0);
	migrate_disable();	/* what a form changes per CPU it puts back there */
	kpt_run_snippet(form);
	migrate_enable();
	kpt_state.flags &= defined_flags(form);
	came->left = kpt_state;
}

static void keep_regs(struct pt_regs *kept, const struct pt_regs *regs)
{
	unsigned long *reg = (unsigned long *)kept;

	*kept = *regs;
	for (; reg < &kept->orig_ax; reg++) {
		if (*reg - form_stack + PAGE_SIZE < PAGE_SIZE)
			*reg -= form_stack;
	}
	kept->sp -= form_stack;
	kept->flags &= ~(X86_EFLAGS_RF | X86_EFLAGS_TF);
	kept->csx = kept->cs;
	kept->ssx = kept->ss;
}

/* The form that is being stepped through, and how far that is: 0, at, after. */
static const struct snippet *stepped_form;
static unsigned int step_stage;

static void see_step(struct pt_regs *regs)
{
	bool at_insn = regs->ip == kpt_insn_address(stepped_form);

	if (step_stage == 0 && at_insn) {
		keep_regs(&came->before, regs);
		came->before.ip += INT3_INSN_SIZE;
		step_stage = 1;
	} else if (step_stage == 1 && !at_insn) {
		keep_regs(&came->after, regs);
		step_stage = 2;
		regs->flags &= ~X86_EFLAGS_TF;
	}
}

static int on_step(struct notifier_block *nb, unsigned long event, void *data)
{
	struct die_args *args = data;
	unsigned long *dr6 = (unsigned long *)args->err;

	if (event != DIE_DEBUG || current != kpt_tester || !(*dr6 & DR_STEP))
		return NOTIFY_DONE;
	*dr6 &= ~DR_STEP;
	see_step(args->regs);
	return NOTIFY_STOP;
}

static struct notifier_block step_notifier = { .notifier_call = on_step };

/*
 * No trap is due, or comes in QEMU, right after STI and PAUSE. They do nothing
 * else to registers than is done here.
 */
static void learn_untrapped(const struct snippet *form)
{
	came->after = came->before;
	came->after.ip = kpt_insn_address(form) + form->length;
	if (*(u8 *)kpt_insn_address(form) == 0xfb)
		came->after.flags |= X86_EFLAGS_IF;
}

static bool is_untrapped(const struct snippet *form)
{
	return !strcmp(form->name, "form_sti") || !strcmp(form->name, "form_pause");
}

/* Find out what comes of a form with no probe there; returns whether that worked. */
static bool learn_form(const struct snippet *form, struct outcome *due)
{
	for (unsigned int i = 0; i < INPUTS; i++) {
		stepped_form = form;
		step_stage = 0;
		kpt_set_input(i);
		kpt_state.flags |= X86_EFLAGS_TF;
		run_form(form);
		if (is_untrapped(form))
			learn_untrapped(form);
		else if (step_stage != 2)
			return false;

		kpt_set_input(i);
		run_form(form);
		came->after.flags &= defined_flags(form);
		due[i] = *came;
	}
	return true;
}

static unsigned int count_forms(void)
{
	return kprobes_test_forms_end - kprobes_test_forms;
}

/* For two probes a form. */
static struct kprobe *form_probes, **form_probe_list;

static int learn_forms(void)
{
	const struct snippet *form;
	int err = register_die_notifier(&step_notifier);

	if (err)
		return err;
	for (form = kprobes_test_forms; form < kprobes_test_forms_end && !err; form++) {
		if (!learn_form(form, forms_due[form - kprobes_test_forms])) {
			pr_err("%s: the CPU cannot be stepped through it\n", form->name);
			err = -EIO;
		}
	}
	unregister_die_notifier(&step_notifier);
	return err;
}

static void end_forms(struct kunit_suite *suite)
{
	kfree(came);
	kvfree(forms_due);
	kvfree(form_probes);
	kvfree(form_probe_list);
}

static int start_forms(struct kunit_suite *suite)
{
	int err = -ENOMEM;

	kpt_tester = current;
	came = kzalloc(sizeof(*came), GFP_KERNEL);
	forms_due = kvcalloc(count_forms(), sizeof(*forms_due), GFP_KERNEL);
	form_probes = kvcalloc(count_forms(), 2 * sizeof(*form_probes), GFP_KERNEL);
	form_probe_list = kvcalloc(count_forms(), 2 * sizeof(*form_probe_list), GFP_KERNEL);
	if (came && forms_due && form_probes && form_probe_list)
		err = learn_forms();
	if (err)
		end_forms(suite);
	return err;
}

/**
 * struct mode - How forms are probed
 * @desc:	For people.
 * @probes:	How many probes each of them has.
 * @post:	Whether they have post handlers.
 * @jump:	Whether to wait for jumps, or else to be faster than they are.
 */
struct mode {
	const char *desc;
	unsigned int probes;
	bool post;
	bool jump;
};

static const struct mode modes[] = {
	{ "breakpoint", 1, false, false },
	{ "breakpoint, post handler", 1, true, false },
	{ "breakpoint, two probes", 2, false, false },
	{ "breakpoint, two post handlers", 2, true, false },
	{ "jump", 1, false, true },
	{ "jump, post handler", 1, true, true },
	{ "jump, two probes", 2, false, true },
	{ "jump, two post handlers", 2, true, true },
};

KUNIT_ARRAY_PARAM_DESC(mode, modes, desc);

/* Forms to be probed at the same time, if they are not to become jumps meanwhile. */
#define FORMS_AT_A_TIME		16

/*
 * A jump would be jumped into, here or when a call returns; or what it displaces
 * cannot be copied. Calls and jumps of thunks become others when they are patched.
 */
static const char * const jumpless[] = {
	"form_call_mem", "form_call_mem_index", "form_call_mem_sp", "form_call_mem_sp_behind",
	"form_call_r11", "form_call_reg", "form_call_thunk", "form_call_thunk_r11",
	"form_je_next", "form_jmp", "form_jmp_next", "form_jmp_thunk", "form_jmp_thunk_behind",
	"form_jrcxz", "form_jrcxz_behind", "form_loop", "form_loop_behind", "form_loope",
	"form_loope_behind", "form_loopne", "form_loopne_behind",
};

/* Post handlers are not called by a jump if a branch is the first that it displaces. */
static bool may_be_jumpless(const struct mode *mode, const struct snippet *form)
{
	return (mode->post && form->target) ||
	       match_string(jumpless, ARRAY_SIZE(jumpless), form->name) >= 0;
}

static int form_pre(struct kprobe *kp, struct pt_regs *regs)
{
	if (current != kpt_tester)
		return 0;
	pre_hits++;
	keep_regs(&came->before, regs);
	return 0;
}

static void form_post(struct kprobe *kp, struct pt_regs *regs, unsigned long flags)
{
	if (current != kpt_tester)
		return;
	post_hits++;
	keep_regs(&came->after, regs);
}

/* Word by word, so that the difference is seen. */
static void expect_words(struct kunit *test, const void *got, const void *want, size_t size,
			 const char *what, const struct snippet *form, unsigned int input)
{
	const unsigned long *g = got, *w = want;

	for (size_t i = 0; i < size / sizeof(*g); i++)
		KUNIT_EXPECT_EQ_MSG(test, g[i], w[i], "%s, input %u: word %zu %s", form->name,
				    input, i, what);
}

/* Returns whether all was as it should be: if not, other inputs would say no more. */
static bool check_form(struct kunit *test, const struct mode *mode, const struct snippet *form,
		       unsigned int input)
{
	struct outcome *due = &forms_due[form - kprobes_test_forms][input];
	bool good;

	pre_hits = 0;
	post_hits = 0;
	kpt_set_input(input);
	run_form(form);
	came->after.flags &= defined_flags(form);

	good = pre_hits == mode->probes && post_hits == (mode->post ? mode->probes : 0) &&
	       !memcmp(&came->left, &due->left, sizeof(due->left)) &&
	       !memcmp(&came->before, &due->before, sizeof(due->before)) &&
	       (!mode->post || !memcmp(&came->after, &due->after, sizeof(due->after)));
	if (good)
		return true;

	KUNIT_EXPECT_EQ_MSG(test, pre_hits, mode->probes, "%s, input %u", form->name, input);
	KUNIT_EXPECT_EQ_MSG(test, post_hits, mode->post ? mode->probes : 0, "%s, input %u",
			    form->name, input);
	expect_words(test, &came->left, &due->left, sizeof(due->left), "left", form, input);
	expect_words(test, &came->before, &due->before, sizeof(due->before), "before", form, input);
	if (mode->post)
		expect_words(test, &came->after, &due->after, sizeof(due->after), "after", form,
			     input);
	return false;
}

/* Returns whether the form has had a jump. */
static bool check_jump(struct kunit *test, const struct mode *mode, const struct snippet *form,
		       const struct kprobe *kp)
{
	if (kprobe_optimized(kp))
		return true;
	if (mode->jump) {
		kunit_info(test, "no jump at %s: %16ph", form->name, kp->addr);
		KUNIT_EXPECT_TRUE_MSG(test, may_be_jumpless(mode, form), "%s", form->name);
	}
	return false;
}

/* Probe @n forms from @first on; returns how many of them have had jumps. */
static unsigned int check_forms(struct kunit *test, const struct mode *mode, unsigned int first,
				unsigned int n)
{
	unsigned int probes = n * mode->probes, jumps = 0, i, input;
	const struct snippet *form = kprobes_test_forms + first;

	memset(form_probes, 0, probes * sizeof(*form_probes));
	for (i = 0; i < probes; i++) {
		form_probes[i].addr = (kprobe_opcode_t *)kpt_insn_address(form + i / mode->probes);
		form_probes[i].pre_handler = form_pre;
		form_probes[i].post_handler = mode->post ? form_post : NULL;
		form_probe_list[i] = &form_probes[i];
	}
	KUNIT_ASSERT_EQ_MSG(test, register_kprobes(form_probe_list, probes), 0, "from %s on",
			    form->name);
	if (mode->jump)
		wait_for_kprobe_optimizer();

	for (i = 0; i < n; i++, form++) {
		struct kprobe *kp = &form_probes[i * mode->probes];

		for (input = 0; input < INPUTS; input++) {
			if (!check_form(test, mode, form, input))
				break;
		}
		KUNIT_EXPECT_EQ_MSG(test, kp->nmissed, 0, "%s", form->name);
		jumps += check_jump(test, mode, form, kp);
	}
	unregister_kprobes(form_probe_list, probes);
	return jumps;
}

static void form_does_the_same(struct kunit *test)
{
	const struct mode *mode = test->param_value;
	unsigned int all = count_forms(), jumps = 0, first, n;

	if (mode->jump && !IS_ENABLED(CONFIG_OPTPROBES))
		kunit_skip(test, "needs jump optimisation");
	kpt_tester = current;
	for (first = 0; first < all; first += n) {
		n = mode->jump ? all : min(all - first, FORMS_AT_A_TIME);
		jumps += check_forms(test, mode, first, n);
	}
	kunit_info(test, "%u of %u forms had jumps", jumps, all);
}

static struct kunit_case kprobes_x86_differential_cases[] = {
	KUNIT_CASE_PARAM_ATTR(form_does_the_same, mode_gen_params,
			      { .speed = KUNIT_SPEED_SLOW }),
	{ }
};

static struct kunit_suite kprobes_x86_differential_suite = {
	.name = "kprobes-x86-differential",
	.suite_init = start_forms,
	.suite_exit = end_forms,
	.test_cases = kprobes_x86_differential_cases,
};

kunit_test_suite(kprobes_x86_differential_suite);
