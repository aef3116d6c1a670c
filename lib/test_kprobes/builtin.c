// SPDX-License-Identifier: GPL-2.0
/* Functions that are not exported to modules. */
#include <linux/atomic.h>
#include <linux/cleanup.h>
#include <linux/completion.h>
#include <linux/ftrace.h>
#include <linux/kprobes_site.h>
#include <linux/kthread.h>
#include <linux/preempt.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>

#include <asm/sections.h>

#include "interrupt.h"
#include "probes.h"

static struct kprobe_site *find_site(kprobe_opcode_t *addr)
{
	guard(preempt)();
	return site_of(get_kprobe(addr));
}

/* Between kprobe_busy_begin() and kprobe_busy_end(), a hit is missed as in a handler. */
static void busy_code_is_interrupted(struct kunit *test)
{
	struct kprobe_site *site;

	kpt_register_for_interrupt(test);
	kpt_clear_journal();
	kprobe_busy_begin();
	kpt_wait_for_interrupt();
	KUNIT_EXPECT_EQ(test, kpt_call(TARGET), TARGET->result);
	kprobe_busy_end();
	kpt_expect_interrupt(test);
	KUNIT_EXPECT_STREQ(test, kpt_journal, HITS_NEST ? "cC" : "");
	KUNIT_EXPECT_EQ(test, kpt_test_probe('b')->kp.nmissed, 2);
	KUNIT_EXPECT_EQ(test, kpt_test_probe('c')->kp.nmissed, HITS_NEST ? 1 : 2);
	KUNIT_EXPECT_EQ(test, kpt_test_probe('d')->kp.nmissed, 0);
	site = find_site(kpt_test_probe('b')->kp.addr);
	KUNIT_EXPECT_EQ(test, atomic_read(&site->missed_busy), HITS_NEST ? 1 : 2);
	KUNIT_EXPECT_EQ(test, site->kp.nmissed, HITS_NEST ? 1 : 0);
	EXPECT_CALL(test, TARGET, "cbCB");
}

static void function_entries_are_recognized(struct kunit *test)
{
	const struct place *place = test->param_value;
	kprobe_opcode_t *start = place->function;

	KUNIT_EXPECT_EQ(test, kprobe_on_func_entry(NULL, place->symbol, 0), 0);
	KUNIT_EXPECT_EQ(test, kprobe_on_func_entry(start, NULL, 0), 0);
	KUNIT_EXPECT_EQ(test, kprobe_on_func_entry(NULL, place->symbol, 9), -EINVAL);
	KUNIT_EXPECT_EQ(test, kprobe_on_func_entry(start, NULL, 9), -EINVAL);
	KUNIT_EXPECT_EQ(test, kprobe_on_func_entry(start + 9, NULL, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, kprobe_on_func_entry(start, place->symbol, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, kprobe_on_func_entry(NULL, NULL, 0), -EINVAL);
	KUNIT_EXPECT_EQ(test, kprobe_on_func_entry(NULL, "kprobes_test_no_such_function", 0),
			-ENOENT);
}

static void blacklisted_addresses_are_recognized(struct kunit *test)
{
	unsigned long start = (unsigned long)kprobes_test_blacklisted;

	KUNIT_EXPECT_TRUE(test, within_kprobe_blacklist(start));
	KUNIT_EXPECT_TRUE(test, within_kprobe_blacklist(start + 1));
	KUNIT_EXPECT_TRUE(test, within_kprobe_blacklist((unsigned long)kprobes_test_noinstr));
	KUNIT_EXPECT_FALSE(test, within_kprobe_blacklist((unsigned long)kprobes_test_target));
}

/* A tracer's callback may be probed. */
static void code_of_kprobes_is_not_traced(struct kunit *test)
{
	for (const char *pos = __kprobes_text_start; pos < __kprobes_text_end; pos++)
		KUNIT_EXPECT_EQ(test, ftrace_location((unsigned long)pos), 0);
}

static noinline void kprobes_test_partly_listed(void)
{
	asm volatile(".rept 16\n\tnop\n\t.endr");
}

/* An area that begins inside a function lists the rest of it, also if a part is listed. */
static void listed_part_grows(struct kunit *test)
{
	unsigned long start = (unsigned long)kprobes_test_partly_listed;

	OPTIMIZER_HIDE_VAR(start);
	KUNIT_ASSERT_EQ(test, kprobe_add_area_blacklist(start + 8, start + 9), 0);
	KUNIT_EXPECT_FALSE(test, within_kprobe_blacklist(start + 7));
	KUNIT_EXPECT_TRUE(test, within_kprobe_blacklist(start + 8));
	KUNIT_EXPECT_TRUE(test, within_kprobe_blacklist(start + 15));
	KUNIT_ASSERT_EQ(test, kprobe_add_area_blacklist(start + 4, start + 5), 0);
	KUNIT_EXPECT_FALSE(test, within_kprobe_blacklist(start + 3));
	KUNIT_EXPECT_TRUE(test, within_kprobe_blacklist(start + 4));
	KUNIT_EXPECT_TRUE(test, within_kprobe_blacklist(start + 15));
}

static int save_running(struct test_probe *p, struct pt_regs *regs)
{
	p->data = (unsigned long)kprobe_running();
	return 0;
}

static struct kprobe *site_at(const struct kprobe *a)
{
	guard(preempt)();
	return get_kprobe(a->addr);
}

/* An architecture may unregister the site: that disables its probes, and frees nothing. */
static void site_is_unregistered(struct kunit *test)
{
	const struct place *place = test->param_value;
	struct kprobe *a = kpt_post_probe('a', place->symbol), *site;

	kpt_test_probe('a')->act = save_running;
	ASSERT_REGISTERED(test, a);
	ASSERT_REGISTERED(test, kpt_probe('b', place->symbol));
	site = site_at(a);
	KUNIT_ASSERT_NOT_NULL(test, site);
	KUNIT_EXPECT_PTR_NE(test, site, a);
	KUNIT_EXPECT_PTR_EQ(test, site->addr, a->addr);
	EXPECT_CALL(test, place, "baA");
	KUNIT_EXPECT_PTR_EQ(test, (struct kprobe *)kpt_test_probe('a')->data, site);

	unregister_kprobe(site);
	EXPECT_CALL(test, place, "");
	KUNIT_EXPECT_TRUE(test, kpt_is_linked(a));
	KUNIT_EXPECT_TRUE(test, kprobe_disabled(a));
	KUNIT_EXPECT_PTR_EQ(test, site_at(a), site);

	KUNIT_EXPECT_EQ(test, enable_kprobe(a), 0);
	EXPECT_CALL(test, place, "aA");
	unregister_kprobe(a);
	EXPECT_CALL(test, place, "");
}

/* A back end that does not end a hit does not make all callers handlers. */
static void hit_that_is_left_set_is_no_handler(struct kunit *test)
{
	struct kprobe *a = kpt_probe('a', TARGET->symbol);
	struct kprobe *b = kpt_probe('b', TARGET->symbol);

	if (!IS_ENABLED(CONFIG_PREEMPT_COUNT))
		kunit_skip(test, "the kernel cannot tell");
	ASSERT_REGISTERED(test, a);
	migrate_disable();
	raw_cpu_write(current_kprobe, site_at(a));
	KUNIT_EXPECT_EQ(test, register_kprobe(b), 0);
	KUNIT_EXPECT_EQ(test, disable_kprobe(b), 0);
	KUNIT_EXPECT_EQ(test, enable_kprobe(b), 0);
	unregister_kprobe(a);
	KUNIT_EXPECT_FALSE(test, kpt_is_linked(a));
	EXPECT_CALL(test, TARGET, "");
	reset_current_kprobe();
	migrate_enable();
	KUNIT_EXPECT_EQ(test, b->nmissed, 1);
	EXPECT_CALL(test, TARGET, "b");
}

static DECLARE_COMPLETION(dying);

static int die_in_a_hit(void *site)
{
	complete(&dying);
	preempt_disable();
	raw_cpu_write(current_kprobe, site);
	get_kprobe_ctlblk()->kprobe_status = KPROBE_REENTER;
	make_task_dead(SIGKILL);
}

/* The CPU goes on to handle hits. */
static void oops_ends_its_hit(struct kunit *test)
{
	struct kprobe *a = kpt_probe('a', TARGET->symbol);
	struct task_struct *task;

	ASSERT_REGISTERED(test, a);
	migrate_disable();
	task = kthread_create(die_in_a_hit, site_at(a), "kprobes_test");
	if (!IS_ERR(task)) {
		kthread_bind(task, smp_processor_id());
		get_task_struct(task);
		wake_up_process(task);
		wait_for_completion(&dying);
		kthread_stop_put(task);
	}
	KUNIT_EXPECT_NULL(test, raw_cpu_read(current_kprobe));
	KUNIT_EXPECT_NE(test, raw_cpu_read(kprobe_ctlblk.kprobe_status), KPROBE_REENTER);
	EXPECT_CALL(test, TARGET, "a");
	reset_current_kprobe();
	migrate_enable();
	KUNIT_EXPECT_FALSE(test, IS_ERR(task));
}

static struct kunit_case kprobes_builtin_cases[] = {
	KUNIT_CASE(busy_code_is_interrupted),
	KUNIT_CASE_PARAM(function_entries_are_recognized, kpt_place_gen_params),
	KUNIT_CASE(blacklisted_addresses_are_recognized),
	KUNIT_CASE(code_of_kprobes_is_not_traced),
	KUNIT_CASE(listed_part_grows),
	KUNIT_CASE_PARAM(site_is_unregistered, kpt_place_gen_params),
	KUNIT_CASE(hit_that_is_left_set_is_no_handler),
	KUNIT_CASE(oops_ends_its_hit),
	{ }
};

static struct kunit_suite kprobes_builtin_suite = {
	.name = "kprobes-builtin",
	.suite_init = kpt_start_suite,
	.init = kpt_start_test,
	.exit = kpt_end_test,
	.test_cases = kprobes_builtin_cases,
};

kunit_test_suite(kprobes_builtin_suite);
