// SPDX-License-Identifier: GPL-2.0
/*
 * The order in which things happen, as probes on the functions that do them see it: memory is
 * freed when no reader can have it any more, and perf is told of each change of the text.
 */
#include "../../../kernel/kprobes/internal.h"

#include <linux/cleanup.h>
#include <linux/cpu.h>
#include <linux/cpumask.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/jiffies.h>
#include <linux/kprobes_site.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/mutex.h>
#include <linux/perf_event.h>
#include <linux/preempt.h>
#include <linux/ptrace.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/string.h>

#include "../arming.h"
#include "../load.h"
#include "../optimize.h"
#include "../return_probes.h"
#include "../sleepers.h"
#include "jump_load.h"
#include "jump_snippets.h"

/**
 * struct watch - Memory that is about to be freed, and what probes have seen of it
 * @object:	What readers of RCU may use, or NULL.
 * @page:	The page of slots that @object describes, or NULL.
 * @site:	The site whose slots are watched.
 * @hidden:	Readers no longer find @object and @page. Read this with acquire.
 * @readers:	When @hidden was set: the grace period that waits for earlier readers.
 * @freed:	@object has been freed,
 * @early:	and a reader may still have used it.
 * @page_freed:	@page has been freed,
 * @page_early:	and a reader could still find it.
 */
static struct watch {
	const void *object;
	const void *page;
	const struct kprobe *site;
	bool hidden;
	unsigned long readers[2];	/* the structure has no lasting name */
	bool freed;
	bool early;
	bool page_freed;
	bool page_early;
} watch;

static struct kprobe watchers[8];
static struct kretprobe return_watcher;

static unsigned long argument(struct pt_regs *regs, unsigned int n)
{
	return regs_get_kernel_argument(regs, n);
}

static void hide(void)
{
	if (watch.hidden)
		return;
	get_state_synchronize_rcu_full((void *)watch.readers);
	/* Pairs with see_free(). */
	smp_store_release(&watch.hidden, true);
}

/* To kmem_cache_free() it is the second argument. */
static bool is_argument(struct kprobe *kp, struct pt_regs *regs, const void *object)
{
	bool second = !strcmp(kp->symbol_name, "kmem_cache_free");

	return object && argument(regs, second) == (unsigned long)object;
}

static int see_free(struct kprobe *kp, struct pt_regs *regs)
{
	/* Pairs with hide(). */
	bool hidden = smp_load_acquire(&watch.hidden);

	if (is_argument(kp, regs, READ_ONCE(watch.page))) {
		watch.page_early |= !hidden;
		WRITE_ONCE(watch.page_freed, true);
	}
	if (is_argument(kp, regs, READ_ONCE(watch.object))) {
		watch.early |= !hidden || !poll_state_synchronize_rcu_full((void *)watch.readers);
		WRITE_ONCE(watch.freed, true);
	}
	return 0;
}

static void watch_function(struct kunit *test, const char *symbol, kprobe_pre_handler_t see)
{
	struct kprobe *kp = watchers;

	while (kp->pre_handler)
		kp++;
	KUNIT_ASSERT_LT(test, kp - watchers, ARRAY_SIZE(watchers));
	kp->symbol_name = symbol;
	kp->pre_handler = see;
	ASSERT_REGISTERED(test, kp);
}

static void watch_return(struct kunit *test, const char *symbol, kretprobe_handler_t see_entry,
			 kretprobe_handler_t see_return)
{
	return_watcher.kp.symbol_name = symbol;
	return_watcher.entry_handler = see_entry;
	return_watcher.handler = see_return;
	ASSERT_RETURN_PROBED(test, &return_watcher);
}

static void end_watching(void *unused)
{
	unregister_kretprobe(&return_watcher);
	for (unsigned int i = 0; i < ARRAY_SIZE(watchers); i++)
		unregister_kprobe(&watchers[i]);
}

static void begin_watching(struct kunit *test)
{
	memset(&watch, 0, sizeof(watch));
	memset(watchers, 0, sizeof(watchers));
	memset(&return_watcher, 0, sizeof(return_watcher));
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, end_watching, NULL), 0);
}

static void begin_watching_frees(struct kunit *test)
{
	static const char * const functions[] = {
		"kfree", "kmem_cache_free", "vfree", "execmem_free"
	};

	begin_watching(test);
	for (unsigned int i = 0; i < ARRAY_SIZE(functions); i++)
		watch_function(test, functions[i], see_free);
}

/* Returns whether that has happened. */
static bool wait_for(const bool *event)
{
	unsigned long end = jiffies + PATIENCE;

	while (!READ_ONCE(*event) && time_before(jiffies, end))
		msleep(20);
	return READ_ONCE(*event);
}

/* Without a grace period, an object is freed right after it is hidden. */
static void expect_grace_period(struct kunit *test)
{
	KUNIT_ASSERT_TRUE(test, wait_for(&watch.hidden));
	msleep(50);
	KUNIT_EXPECT_FALSE(test, watch.early);
}

/* ------------------------------------------------------------- what is freed when */

static int see_slots_of_site_freed(struct kprobe *kp, struct pt_regs *regs)
{
	if (argument(regs, 0) == (unsigned long)READ_ONCE(watch.site))
		hide();
	return 0;
}

/* Register @a, and watch the slots of its site. */
static void watch_site(struct kunit *test, struct kprobe *a)
{
	watch_function(test, "arch_remove_kprobe", see_slots_of_site_freed);
	ASSERT_REGISTERED(test, a);
	WRITE_ONCE(watch.site, list_next_entry(a, list));
}

/* An unwinder may have found the site by its slot. */
static void site_is_kept_for_its_readers(struct kunit *test)
{
	struct kprobe *a = kpt_probe('a', TARGET->symbol);

	begin_watching_frees(test);
	watch_site(test, a);
	WRITE_ONCE(watch.object, container_of(watch.site, struct kprobe_site, kp));
	unregister_kprobe(a);
	expect_grace_period(test);
}

static int see_page_leave_tree(struct kprobe *kp, struct pt_regs *regs)
{
	const void *page = READ_ONCE(watch.page);

	if (page && argument(regs, 1) == (unsigned long)page)
		hide();
	return 0;
}

/* A slot is looked up when it is freed: the result describes its page. */
static int see_search(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	const void *page = READ_ONCE(watch.page);

	return !page || (argument(regs, 1) & PAGE_MASK) != (unsigned long)page;
}

static int see_description(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	if (!READ_ONCE(watch.hidden))
		WRITE_ONCE(watch.object, (const void *)regs_return_value(regs));
	return 0;
}

/* An unwinder may be looking for the owner of an address in a slot. */
static void page_of_slots_is_kept_for_its_readers(struct kunit *test)
{
	struct kprobe **all = kpt_many_probes(test), *site;

	begin_watching_frees(test);
	watch_function(test, "mtree_store_range", see_page_leave_tree);
	watch_return(test, "mtree_load", see_search, see_description);
	/* The last slots are in a page of their own. */
	KUNIT_ASSERT_EQ(test, register_kprobes(all, MANY / 4), 0);
	site = list_next_entry(all[MANY / 4 - 1], list);
	WRITE_ONCE(watch.page, (const void *)((unsigned long)site->ainsn.insn & PAGE_MASK));
	unregister_kprobes(all, MANY / 4);
	KUNIT_ASSERT_TRUE(test, wait_for(&watch.page_freed));
	KUNIT_EXPECT_FALSE(test, watch.page_early);
	KUNIT_EXPECT_NOT_NULL(test, watch.object);
	expect_grace_period(test);
}

/* The one that is allocated for many probes. */
static int see_hash(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	if (!READ_ONCE(watch.object) && current == kpt_tester)
		WRITE_ONCE(watch.object, (const void *)regs_return_value(regs));
	return 0;
}

static int see_hash_replaced(struct kprobe *kp, struct pt_regs *regs)
{
	const struct kprobe_table *table = READ_ONCE(watch.object);

	/* From then on it may be freed. */
	if (table && !READ_ONCE(watch.hidden) && !list_empty(&table->retired))
		hide();
	return 0;
}

/* Register many probes, and watch their hash. It is replaced after they have left. */
static struct kprobe **watch_hash(struct kunit *test)
{
	struct kprobe **all = kpt_many_probes(test);
	unsigned long end = jiffies + PATIENCE;

	begin_watching_frees(test);
	watch_return(test, "__vmalloc_noprof", NULL, see_hash);
	watch_function(test, "queue_work_on", see_hash_replaced);
	KUNIT_ASSERT_EQ(test, register_kprobes(all, MANY), 0);
	/* The hash may be large enough until sites of earlier tests have been freed. */
	while (!watch.object && time_before(jiffies, end)) {
		unregister_kprobes(all, MANY);
		msleep(20);
		KUNIT_ASSERT_EQ(test, register_kprobes(all, MANY), 0);
	}
	KUNIT_ASSERT_NOT_NULL(test, watch.object);
	return all;
}

/* A hit may be looking for its site in the hash that has been replaced. */
static void old_hash_is_kept_for_its_readers(struct kunit *test)
{
	unregister_kprobes(watch_hash(test), MANY);
	expect_grace_period(test);
}

#ifdef CONFIG_HOTPLUG_CPU
/**
 * struct bring_up - A CPU that came up while slots, or a hash, were to be freed
 * @begun:	The CPU is in bring-up.
 * @waited:	The grace period that was held off is over,
 * @done:	and the CPU was still in bring-up; or so, when the hash was replaced.
 * @freed:	The slots or the hash were freed meanwhile.
 */
static struct bring_up {
	bool begun;
	bool waited;
	bool done;
	bool freed;
} bring_up;

static int wait_for_tasks(void *unused)
{
	synchronize_rcu_tasks();	/* ends after the one that is held off */
	WRITE_ONCE(bring_up.waited, true);
	while (!kthread_should_stop())
		schedule_timeout_interruptible(1);
	return 0;
}

/* RCU-tasks does not watch the CPU yet: it may be in the slots, for all it knows. */
static int come_up(struct kprobe *kp, struct pt_regs *regs)
{
	WRITE_ONCE(kpt_load.stop, true);
	bring_up.done = kpt_spin_until(&bring_up.waited, 5000);
	mdelay(50);
	bring_up.freed = READ_ONCE(watch.hidden);
	return 0;
}

/* Take a CPU off line. When it comes up, the handler is called before RCU watches it. */
static void take_down(struct kunit *test, unsigned long cpu, kprobe_pre_handler_t handler)
{
	/* Later, it would hold the mutex while it waits for the hotplug lock. */
	wait_for_kprobe_optimizer();
	KUNIT_ASSERT_EQ(test, kunit_add_action_or_reset(test, kpt_put_online, (void *)cpu), 0);
	KUNIT_ASSERT_EQ(test, remove_cpu(cpu), 0);
	watch_function(test, "fpu__init_cpu", handler);
}

static void slots_are_kept_while_a_cpu_comes_up(struct kunit *test)
{
	unsigned long cpu = cpumask_last(cpu_online_mask);
	struct kprobe *a = kpt_probe('a', TARGET->symbol);
	struct task_struct *task;

	if (num_online_cpus() < 2)
		kunit_skip(test, "one CPU");
	bring_up = (struct bring_up){ };
	begin_watching(test);
	watch_site(test, a);
	take_down(test, cpu, come_up);
	kpt_hold_off_rcu_tasks(test);
	unregister_kprobe(a);
	msleep(50);	/* until the grace period has begun */
	KUNIT_EXPECT_FALSE(test, watch.hidden);
	task = kthread_run(wait_for_tasks, NULL, "kprobes_test");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	KUNIT_EXPECT_EQ(test, add_cpu(cpu), 0);
	kthread_stop(task);
	KUNIT_EXPECT_TRUE(test, bring_up.done);
	KUNIT_EXPECT_FALSE(test, bring_up.freed);
	KUNIT_EXPECT_TRUE(test, wait_for(&watch.hidden));
}

static int bring_up_cpu(void *cpu)
{
	add_cpu((unsigned long)cpu);
	while (!kthread_should_stop())
		schedule_timeout_interruptible(1);
	return 0;
}

/* RCU does not watch the CPU yet: it may be searching the hash, for all it knows. */
static int come_up_with_hash(struct kprobe *kp, struct pt_regs *regs)
{
	WRITE_ONCE(bring_up.begun, true);
	bring_up.done = kpt_spin_until(&watch.hidden, 5000);
	mdelay(300);
	bring_up.freed = READ_ONCE(watch.freed);
	return 0;
}

/* The work that frees sites, and replaces the hash, has waited before the CPU begins. */
static void old_hash_is_kept_while_a_cpu_comes_up(struct kunit *test)
{
	unsigned long cpu = cpumask_last(cpu_online_mask);
	struct task_struct *task;
	struct kprobe **all;

	if (num_online_cpus() < 2)
		kunit_skip(test, "one CPU");
	bring_up = (struct bring_up){ };
	all = watch_hash(test);
	take_down(test, cpu, come_up_with_hash);
	/* Work that has begun for sites of earlier tests must end, or it would wait once more. */
	synchronize_rcu_tasks();
	synchronize_rcu_tasks();
	msleep(100);
	kpt_hold_off_rcu_tasks(test);
	unregister_kprobes(all, MANY);
	msleep(50);	/* until the grace period has begun */
	scoped_guard(mutex, &kprobe_mutex) {
		WRITE_ONCE(kpt_load.stop, true);
		synchronize_rcu_tasks();	/* ends after the one that was held off */
		msleep(500);	/* until the work waits for the mutex, also on a slow host */
		task = kthread_run(bring_up_cpu, (void *)cpu, "kprobes_test");
		if (!IS_ERR(task))
			wait_for(&bring_up.begun);
	}
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	kthread_stop(task);
	KUNIT_EXPECT_TRUE(test, bring_up.done);
	KUNIT_EXPECT_FALSE(test, bring_up.freed);
	KUNIT_EXPECT_TRUE(test, wait_for(&watch.freed));
	KUNIT_EXPECT_FALSE(test, watch.early);
}
#else
static void slots_are_kept_while_a_cpu_comes_up(struct kunit *test)
{
	kunit_skip(test, "no CPU hotplug");
}

static void old_hash_is_kept_while_a_cpu_comes_up(struct kunit *test)
{
	kunit_skip(test, "no CPU hotplug");
}
#endif

/**
 * struct late - A handler that begins when no later one will be called
 * @go:		The other task is to go on, to where the handler is called.
 * @begun:	The handler has begun.
 * @returned:	What should wait for it has returned.
 * @ended:	It is about to return.
 */
static struct late {
	bool go;
	bool begun;
	bool returned;
	bool ended;
} late;

static void let_task_go(void)
{
	WRITE_ONCE(late.go, true);
	kpt_spin_until(&late.begun, 5000);
}

static void handle_late(void)
{
	if (!READ_ONCE(late.go))
		return;
	WRITE_ONCE(late.begun, true);
	/* An emulator runs the other CPU at a PAUSE, which is not in each kernel's udelay(). */
	for (int i = 0; i < 200000 && !READ_ONCE(late.returned); i++) {
		udelay(1);
		cpu_relax();
	}
	WRITE_ONCE(late.ended, true);
}

/* Called right after what should have waited for the handler. */
static void expect_late_end(struct kunit *test)
{
	bool ended = READ_ONCE(late.ended);

	WRITE_ONCE(late.returned, true);
	KUNIT_EXPECT_TRUE(test, ended);
}

/* The CPU's cache of instances gets that of the inner call. */
static int leave_late(void *sleeper)
{
	unsigned long end = jiffies + PATIENCE;

	set_cpus_allowed_ptr(current, cpumask_of(cpumask_last(cpu_online_mask)));
	kprobes_test_visit(HOST, kpt_do_nothing_inside, NULL);
	complete(&((struct sleeper *)sleeper)->arrived);
	while (!READ_ONCE(late.go) && time_before(jiffies, end))
		usleep_range(50, 100);
	return VISITED;
}

/* No handler is called any more from now on: let the call return, until its handler has begun. */
static int let_call_return(struct kprobe *kp, struct pt_regs *regs)
{
	if (argument(regs, 0) == (unsigned long)&kpt_test_kretprobe('r')->rp)
		let_task_go();
	return 0;
}

static int see_late_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	handle_late();
	return 0;
}

/* Unregistering waits for the handler of the late return. Nothing is left of the return probe. */
static void unregistering_waits_for_late_return(struct kunit *test)
{
	struct kretprobe *r = kpt_return_probe('r', HOST->symbol);

	if (num_online_cpus() < 2)
		kunit_skip(test, "needs two CPUs");
	kpt_pin_tester(test);
	begin_watching_frees(test);
	watch_function(test, "kretprobe_pool_drop", let_call_return);
	r->entry_handler = NULL;
	r->handler = see_late_return;
	ASSERT_RETURN_PROBED(test, r);
	late = (struct late){ };
	kpt_start_task(test, HOST, leave_late);
	WRITE_ONCE(watch.object, r->pool);
	unregister_kretprobe(r);
	expect_late_end(test);
	KUNIT_EXPECT_TRUE(test, wait_for(&watch.freed));
	EXPECT_SLEEPERS_RETURN(test);
}

static int see_pool_looked_at(struct kprobe *kp, struct pt_regs *regs)
{
	const struct kretprobe_pool *pool = watch.object;

	if (!watch.hidden && !atomic_read(&pool->taken))
		hide();
	return 0;
}

/* An unwinder may still be at the instance of the last call, which has returned. */
static void instances_are_kept_for_their_readers(struct kunit *test)
{
	struct kretprobe *r = kpt_return_probe('r', HOST->symbol);

	begin_watching_frees(test);
	ASSERT_RETURN_PROBED(test, r);
	kpt_start_sleepers(test, HOST, 1);
	WRITE_ONCE(watch.object, r->pool);
	unregister_kretprobe(r);
	watch_function(test, "kretprobe_pool_work", see_pool_looked_at);
	EXPECT_SLEEPERS_RETURN(test);
	KUNIT_EXPECT_TRUE(test, wait_for(&watch.freed));
	expect_grace_period(test);
}

#ifdef CONFIG_KPROBES_ON_FTRACE
static int call_target_late(void *unused)
{
	while (!READ_ONCE(late.go) && !kthread_should_stop())
		usleep_range(50, 100);
	kpt_call(TARGET);
	while (!kthread_should_stop())
		usleep_range(50, 100);
	return 0;
}

static int see_late_hit(struct kprobe *kp, struct pt_regs *regs)
{
	handle_late();
	return 0;
}

/* The new probes are linked now, and that of an armed site can be hit. */
static int let_target_be_hit(struct kprobe *kp, struct pt_regs *regs)
{
	let_task_go();
	return 0;
}

/* A probe whose registration has failed may be freed. */
static void failed_registration_waits_for_handlers(struct kunit *test)
{
	struct kprobe *a = kpt_probe('a', TARGET->symbol), *b = kpt_probe('b', TARGET->symbol);
	struct kprobe *c = kpt_post_probe('c', OTHER_TRACED->symbol);
	struct kprobe *d = kpt_post_probe('d', TRACED->symbol);
	struct kprobe *both[] = { b, c };
	struct task_struct *task;
	int err;

	if (num_online_cpus() < 2)
		kunit_skip(test, "needs two CPUs");
	kpt_pin_tester(test);
	late = (struct late){ };
	ASSERT_REGISTERED(test, a);
	ASSERT_REGISTERED(test, d);	/* or ftrace would wait for the CPU to change its memory */
	kpt_block_arming(test, OTHER_TRACED);
	begin_watching(test);
	watch_function(test, "kprobe_ftrace_arm_sites", let_target_be_hit);
	b->pre_handler = see_late_hit;
	task = kthread_create(call_target_late, NULL, "kprobes_test");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	kthread_bind(task, cpumask_last(cpu_online_mask));
	wake_up_process(task);
	err = register_kprobes(both, ARRAY_SIZE(both));
	expect_late_end(test);
	KUNIT_EXPECT_EQ(test, err, -EBUSY);
	kthread_stop(task);
	kpt_unblock_arming(test);
}
#else
static void failed_registration_waits_for_handlers(struct kunit *test)
{
	kunit_skip(test, "arming does not fail");
}
#endif

/* ---------------------------------------------------------------- records of perf */

/**
 * struct replay - The text at TARGET by perf's records of text pokes
 * @text:	The text.
 * @records:	The number of records.
 * @wrong:	The number of records that do not have @text as the old text.
 */
static struct replay {
	u8 text[TEXT_BYTES];
	unsigned int records;
	unsigned int wrong;
} replay;

/* perf_event_text_poke(addr, old, old_len, new, new_len) */
static int replay_poke(struct kprobe *kp, struct pt_regs *regs)
{
	size_t pos = argument(regs, 0) - (unsigned long)kpt_text(TARGET), len = argument(regs, 4);
	const void *old = (const void *)argument(regs, 1), *new = (const void *)argument(regs, 3);

	if (pos >= TEXT_BYTES)
		return 0;
	len = min(len, TEXT_BYTES - pos);
	replay.records++;
	replay.wrong += !!memcmp(replay.text + pos, old, len);
	memcpy(replay.text + pos, new, len);
	return 0;
}

static void expect_replayed(struct kunit *test, unsigned int records)
{
	KUNIT_EXPECT_GE(test, replay.records, records);
	KUNIT_EXPECT_EQ(test, replay.wrong, 0);
	KUNIT_EXPECT_MEMEQ(test, replay.text, kpt_text(TARGET), TEXT_BYTES);
}

/* Tools decode what a CPU has executed by the text that it had then. */
static void perf_can_replay_the_text(struct kunit *test)
{
	struct kprobe *a = kpt_probe('a', TARGET->symbol);

	replay = (struct replay){ };
	memcpy(replay.text, kpt_text(TARGET), TEXT_BYTES);
	begin_watching(test);
	watch_function(test, "perf_event_text_poke", replay_poke);
	ASSERT_REGISTERED(test, a);
	KUNIT_EXPECT_EQ(test, disable_kprobe(a), 0);
	expect_replayed(test, 2);
	KUNIT_EXPECT_EQ(test, enable_kprobe(a), 0);
	ASSERT_OPTIMIZED(test, a);
	expect_replayed(test, 4);
	unregister_kprobe(a);
	expect_replayed(test, 5);
}

/**
 * struct slot_texts - What is in slots by perf's records of text pokes
 * @addr:	The slots in use, with NULL between them.
 * @len:	The length of the text in each.
 * @wrong:	The number of records that do not tell what was in a slot, or is in it now.
 * @freed:	The last slot in use was freed.
 */
static struct slot_texts {
	const void *addr[16];
	size_t len[16];
	unsigned int wrong;
	bool freed;
} slot_texts;

/* The index of a slot, or of none with NULL; 16 if there is no such index. */
static unsigned int find_slot_text(const void *addr)
{
	unsigned int i = 0;

	while (i < ARRAY_SIZE(slot_texts.addr) && READ_ONCE(slot_texts.addr[i]) != addr)
		i++;
	return i;
}

static bool slot_is_told(const kprobe_opcode_t *slot)
{
	return slot && find_slot_text(slot) < ARRAY_SIZE(slot_texts.addr);
}

/* All changes of slots are made under kprobe_mutex. Those of earlier tests may be freed late. */
static int see_slot_poke(struct kprobe *kp, struct pt_regs *regs)
{
	const void *addr = (const void *)argument(regs, 0);
	size_t old_len = argument(regs, 2), len = argument(regs, 4);
	unsigned int i = find_slot_text(addr);

	if (old_len && len)	/* of the text */
		return 0;
	if (old_len && i < ARRAY_SIZE(slot_texts.addr)) {
		slot_texts.wrong += old_len < slot_texts.len[i];
		WRITE_ONCE(slot_texts.addr[i], NULL);
		WRITE_ONCE(slot_texts.freed,
			   !memchr_inv(slot_texts.addr, 0, sizeof(slot_texts.addr)));
	} else if (len) {
		slot_texts.wrong += i < ARRAY_SIZE(slot_texts.addr) ||
			!!memcmp(addr, (const void *)argument(regs, 3), len);
		i = find_slot_text(NULL);
		if (i == ARRAY_SIZE(slot_texts.addr))
			return 0;
		slot_texts.len[i] = len;
		WRITE_ONCE(slot_texts.addr[i], addr);
	}
	return 0;
}

static bool has_site(const struct kprobe *kp)
{
	guard(preempt)();
	return get_kprobe(kp->addr);
}

/* Begin when the site at TARGET that earlier tests have left is freed, with its slots. */
static void begin_watching_slots(struct kunit *test)
{
	struct kprobe *c = kpt_probe('c', TARGET->symbol);
	unsigned long end = jiffies + PATIENCE;

	ASSERT_REGISTERED(test, c);
	unregister_kprobe(c);
	while (has_site(c) && time_before(jiffies, end))
		msleep(20);
	slot_texts = (struct slot_texts){ };
	begin_watching(test);
	watch_function(test, "perf_event_text_poke", see_slot_poke);
}

static void perf_can_decode_slots(struct kunit *test)
{
	struct kprobe *a = kpt_probe('a', TARGET->symbol);
	struct kprobe *b = kpt_post_probe('b', TARGET->symbol);
	const struct arch_optimized_insn *detour;
	const struct kprobe *site;

	begin_watching_slots(test);
	ASSERT_REGISTERED(test, a);
	site = list_next_entry(a, list);
	KUNIT_EXPECT_TRUE(test, slot_is_told(site->ainsn.insn));
	ASSERT_REGISTERED(test, b);
	KUNIT_EXPECT_TRUE(test, slot_is_told(site->ainsn.post_insn));
	ASSERT_OPTIMIZED(test, a);
	detour = &container_of(site, struct optimized_kprobe, kp)->optinsn;
	KUNIT_EXPECT_TRUE(test, slot_is_told(detour->insn));
	unregister_kprobe(a);
	unregister_kprobe(b);
	KUNIT_EXPECT_TRUE(test, wait_for(&slot_texts.freed));
	KUNIT_EXPECT_EQ(test, slot_texts.wrong, 0);
}

/* A page of slots that perf was told of, and whether it was told that it is gone. */
static unsigned long slot_page_told;
static bool slot_page_gone;

/* perf_event_ksymbol(type, addr, len, unregister, sym), with an address of 64 bits */
static int see_slot_page(struct kprobe *kp, struct pt_regs *regs)
{
	bool gone = argument(regs, IS_ENABLED(CONFIG_X86_64) ? 3 : 4);

	if ((u16)argument(regs, 0) != PERF_RECORD_KSYMBOL_TYPE_OOL)
		return 0;
	if (!gone)
		slot_page_told = argument(regs, 1);
	else if (argument(regs, 1) == slot_page_told)
		WRITE_ONCE(slot_page_gone, true);
	return 0;
}

static void perf_is_told_of_pages(struct kunit *test)
{
	struct kprobe **all = kpt_many_probes(test), *site;

	begin_watching(test);
	slot_page_told = 0;
	slot_page_gone = false;
	watch_function(test, "perf_event_ksymbol", see_slot_page);
	/* The last slots are in a page of their own. */
	KUNIT_ASSERT_EQ(test, register_kprobes(all, MANY / 4), 0);
	site = list_next_entry(all[MANY / 4 - 1], list);
	KUNIT_EXPECT_EQ(test, slot_page_told, (unsigned long)site->ainsn.insn & PAGE_MASK);
	unregister_kprobes(all, MANY / 4);
	KUNIT_EXPECT_TRUE(test, wait_for(&slot_page_gone));
}

static unsigned int attempts;

static noinline int no_memory(struct kprobe *kp)
{
	WRITE_ONCE(attempts, attempts + 1);
	return -ENOMEM;
}

static int call_no_memory(struct kprobe *kp, struct pt_regs *regs)
{
	regs->ip = (unsigned long)no_memory;
	return 1;
}

/* Hits ask for the copy for a post handler again and again, if there is no memory for it. */
static void missing_copy_is_not_tried_all_the_time(struct kunit *test)
{
	const struct snippet *snippet = kpt_find_snippet("push_mem");
	struct kprobe *a = kpt_snippet_probe('a', snippet, false);
	struct kprobe *b = kpt_probe('b', "arch_prepare_post_handler");
	unsigned long end;

	attempts = 0;
	b->pre_handler = call_no_memory;
	ASSERT_REGISTERED(test, b);
	/* The site of an earlier test has the copy. */
	ASSERT_REGISTERED(test, a);
	unregister_kprobe(a);
	kpt_wait_until_site_is_freed(test, a);
	a = kpt_snippet_probe('a', snippet, false);
	ASSERT_REGISTERED(test, a);
	/* There is no jump yet. */
	WRITE_ONCE(a->post_handler, kpt_record_post);
	kpt_set_input(0);
	for (end = jiffies + HZ / 2; time_before(jiffies, end); usleep_range(50, 100))
		kpt_run_snippet(snippet);
	KUNIT_EXPECT_GE(test, READ_ONCE(attempts), 1);
	KUNIT_EXPECT_LE(test, READ_ONCE(attempts), 2);
}

static struct kunit_case kprobes_x86_order_cases[] = {
	KUNIT_CASE(site_is_kept_for_its_readers),
	KUNIT_CASE_SLOW(page_of_slots_is_kept_for_its_readers),
	KUNIT_CASE(old_hash_is_kept_for_its_readers),
	KUNIT_CASE_SLOW(slots_are_kept_while_a_cpu_comes_up),
	KUNIT_CASE_SLOW(old_hash_is_kept_while_a_cpu_comes_up),
	KUNIT_CASE(unregistering_waits_for_late_return),
	KUNIT_CASE(instances_are_kept_for_their_readers),
	KUNIT_CASE(failed_registration_waits_for_handlers),
	KUNIT_CASE(missing_copy_is_not_tried_all_the_time),
	KUNIT_CASE(perf_can_replay_the_text),
	KUNIT_CASE_SLOW(perf_can_decode_slots),
	KUNIT_CASE_SLOW(perf_is_told_of_pages),
	{ }
};

static struct kunit_suite kprobes_x86_order_suite = {
	.name = "kprobes-x86-order",
	.suite_init = kpt_start_return_suite,
	.init = kpt_start_return_test,
	.exit = kpt_end_return_test,
	.test_cases = kprobes_x86_order_cases,
};

kunit_test_suite(kprobes_x86_order_suite);
