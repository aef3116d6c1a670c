// SPDX-License-Identifier: GPL-2.0
/*
 * The differential test: an instruction leaves the same with and without probes, however
 * it is run, and handlers see the registers that the CPU has when it is single-stepped.
 */
#include <linux/cpufeature.h>
#include <linux/kdebug.h>
#include <linux/mm.h>
#include <linux/notifier.h>
#include <linux/preempt.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>

#include <asm/fpu/api.h>
#include <asm/processor-flags.h>
#include <asm/text-patching.h>

#include "forms.h"
#include "segments.h"
#include "single_step.h"

/**
 * struct outcome - The result of a run of a form with one input
 * @left:	Registers, flags and memory that it leaves.
 * @before:	The registers in front of the probed instruction. Pointers to the stack are
 *		relative to run_form()'s frame.
 * @after:	The registers after it.
 */
struct outcome {
	struct cpu_state left;
	struct pt_regs before;
	struct pt_regs after;
};

/* The outcome that is due of each form and each input. */
static struct outcome (*forms_due)[INPUTS];

/* The outcome of the last run. In .data its addresses would count as branch targets. */
static struct outcome *came;

static unsigned long form_stack;
static unsigned int pre_hits, post_hits;

static noinline void run_form(const struct snippet *form)
{
	bool uses_fpu = kpt_uses_fpu(form);

	form_stack = (unsigned long)__builtin_frame_address(0);
	migrate_disable();	/* a form changes per-CPU variables, and restores them */
	if (uses_fpu)
		kernel_fpu_begin_mask(KFPU_387);
	kpt_run_snippet(form);
	if (uses_fpu)
		kernel_fpu_end();
	migrate_enable();
	kpt_state.flags &= kpt_defined_flags(form);
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
	kpt_keep_selectors(kept);
}

/* The form that is stepped through; whether its instruction is reached, and has run. */
static const struct snippet *stepped_form;
static bool at_insn_seen, after_insn_seen;

static void see_step(struct pt_regs *regs)
{
	bool at_insn = regs->ip == kpt_insn_address(stepped_form);

	if (!at_insn_seen && at_insn) {
		keep_regs(&came->before, regs);
		came->before.ip += INT3_INSN_SIZE;
		at_insn_seen = true;
	} else if (at_insn_seen && !at_insn && !after_insn_seen) {
		keep_regs(&came->after, regs);
		after_insn_seen = true;
		regs->flags &= ~X86_EFLAGS_TF;
	}
}

static int on_step(struct notifier_block *nb, unsigned long event, void *data)
{
	struct die_args *args = data;

	if (!kpt_take_step(event, args))
		return NOTIFY_DONE;
	see_step(args->regs);
	return NOTIFY_STOP;
}

static struct notifier_block step_notifier = { .notifier_call = on_step };

/*
 * After STI the CPU does not trap, and after PAUSE QEMU does not. This is all that they do
 * to registers.
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

/* Store what @form does without a probe in @due. Return whether it could be stepped through. */
static bool learn_form(const struct snippet *form, struct outcome *due)
{
	for (unsigned int i = 0; i < INPUTS; i++) {
		stepped_form = form;
		at_insn_seen = false;
		after_insn_seen = false;
		kpt_set_input(i);
		kpt_state.flags |= X86_EFLAGS_TF;
		run_form(form);
		if (is_untrapped(form))
			learn_untrapped(form);
		else if (!after_insn_seen)
			return false;

		kpt_set_input(i);
		run_form(form);
		came->after.flags &= kpt_defined_flags(form);
		due[i] = *came;
	}
	return true;
}

static unsigned int count_forms(void)
{
	return kprobes_test_forms_end - kprobes_test_forms;
}

/* Two probes for each form. */
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
		cond_resched_tasks_rcu_qs();
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
 * @desc:	Description.
 * @probes:	Number of probes at each form.
 * @post:	Whether the probes have post handlers.
 * @jump:	Whether to wait until there are jumps.
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

/* So few forms are probed at a time that they are run before the optimiser begins. */
#define FORMS_AT_A_TIME		16

/*
 * Forms that have no jump: something would branch into it, or return there from a call, or
 * the instruction cannot run in a detour. Patching changes calls of and jumps to thunks.
 */
static const char * const jumpless[] = {
	"form_call_bp", "form_call_mem", "form_call_mem_index", "form_call_mem_sp",
	"form_call_mem_sp_second", "form_call_r11", "form_call_reg", "form_call_thunk",
	"form_call_thunk_r11", "form_je_next", "form_jecxz", "form_jecxz_second",
	"form_jmp", "form_jmp_next", "form_jmp_thunk", "form_jmp_thunk_second",
	"form_jrcxz", "form_jrcxz_second", "form_loop", "form_loop_second", "form_loope",
	"form_loope_second", "form_loopne", "form_loopne_second",
};

/* Those that load a system register, after which a detour calls no post handlers. */
static const char * const system[] = {
	"form_clts", "form_mov_to_cr0", "form_mov_to_es",
#ifdef CONFIG_X86_32
	"form_lds", "form_les", "form_lfs", "form_mov_to_ds", "form_mov_to_fs", "form_pop_ds",
	"form_pop_es", "form_pop_fs",
#endif
};

/* LFENCE retpolines are an LFENCE and an indirect branch, which a jump must not move. */
static bool is_lfence_retpoline(const char *name)
{
	return boot_cpu_has(X86_FEATURE_RETPOLINE_LFENCE) &&
	       (strstarts(name, "form_call_") || strstarts(name, "form_jmp_") ||
		strstarts(name, "form_lfence"));
}

/* A branch that is the first displaced instruction has no jump with post handlers. */
static bool may_be_jumpless(const struct mode *mode, const struct snippet *form)
{
	return (mode->post && form->target) || is_lfence_retpoline(form->name) ||
	       (mode->post && match_string(system, ARRAY_SIZE(system), form->name) >= 0) ||
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

/* Compare each word, so that a failure shows which one differs. */
static void expect_words(struct kunit *test, const void *got, const void *want, size_t size,
			 const char *what, const struct snippet *form, unsigned int input)
{
	const unsigned long *g = got, *w = want;

	for (size_t i = 0; i < size / sizeof(*g); i++)
		KUNIT_EXPECT_EQ_MSG(test, g[i], w[i], "%s, input %u: word %zu %s", form->name,
				    input, i, what);
}

/* Return whether the outcome is right. If it is not, other inputs would tell no more. */
static bool check_form(struct kunit *test, const struct mode *mode, const struct snippet *form,
		       unsigned int input)
{
	struct outcome *due = &forms_due[form - kprobes_test_forms][input];
	bool good;

	pre_hits = 0;
	post_hits = 0;
	kpt_set_input(input);
	run_form(form);
	came->after.flags &= kpt_defined_flags(form);

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

/* Return whether @form has a jump. */
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

/* Register @probes probes, from those at @form on; wait for jumps if the mode has them. */
static void register_form_probes(struct kunit *test, const struct mode *mode,
				 const struct snippet *form, unsigned int probes)
{
	memset(form_probes, 0, probes * sizeof(*form_probes));
	for (unsigned int i = 0; i < probes; i++) {
		form_probes[i].addr = (kprobe_opcode_t *)kpt_insn_address(form + i / mode->probes);
		form_probes[i].pre_handler = form_pre;
		form_probes[i].post_handler = mode->post ? form_post : NULL;
		form_probe_list[i] = &form_probes[i];
	}
	KUNIT_ASSERT_EQ_MSG(test, register_kprobes(form_probe_list, probes), 0, "from %s on",
			    form->name);
	if (mode->jump)
		wait_for_kprobe_optimizer();
}

/* Probe @n forms from @first on, and check them. Return how many had jumps. */
static unsigned int check_forms(struct kunit *test, const struct mode *mode, unsigned int first,
				unsigned int n)
{
	unsigned int probes = n * mode->probes, jumps = 0, i, input;
	const struct snippet *form = kprobes_test_forms + first;

	register_form_probes(test, mode, form, probes);
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
