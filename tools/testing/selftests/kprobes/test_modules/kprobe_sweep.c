// SPDX-License-Identifier: GPL-2.0
/*
 * Probe a large part of the kernel at a time, and in the end all of it
 *
 *	insmod kprobe_sweep.ko base=0xffffffff81000000 instructions=FILE functions=FILE \
 *		exceptions=0xffffffff82a00000,0xffffffff82a01000
 *
 * reads hexadecimal addresses, one on each line: of instructions, from @base on and in
 * ascending order; and of functions. @exceptions are the addresses of
 * __start___ex_table and __stop___ex_table. Then
 *
 *	echo COMMAND >/sys/module/kprobe_sweep/parameters/run
 *
 * runs one of these commands, and logs the results, a line "NAME VALUE" for each:
 *
 *	pre FIRST STEP		probes with a pre handler at the instructions FIRST,
 *				FIRST + STEP, FIRST + 2 * STEP ..., 90,000 at most;
 *				those that are refused are counted by their errors
 *	post FIRST STEP		the same with pre and post handlers
 *	three FIRST STEP	three probes at each of 30,000 instructions
 *	return FIRST STEP	return probes, at the functions
 *	remove			unregister all, and log what their handlers have seen
 *	save			keep a copy of the text from @base to the last instruction
 *	compare			count the bytes of the text that differ from the copy
 *
 * A probe that has been hit 5,000 times is disabled: nearly all further hits would be of a few.
 *
 * See Documentation/trace/kprobes.rst.
 */
#define pr_fmt(fmt)	KBUILD_MODNAME ": " fmt

#include <linux/atomic.h>
#include <linux/cleanup.h>
#include <linux/context_tracking.h>
#include <linux/err.h>
#include <linux/extable.h>
#include <linux/kprobes.h>
#include <linux/kstrtox.h>
#include <linux/ktime.h>
#include <linux/minmax.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/rcupdate.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/workqueue.h>

#include "read_text.h"

#define CROWD		90000U	/* probes at a time */
#define PER_PLACE	3	/* at a place, at most */
#define HOT		5000	/* hits after which a probe is disabled */
#define NAMED		20	/* faults that are logged with their addresses */

static unsigned long base;
module_param(base, ulong, 0444);
MODULE_PARM_DESC(base, "Added to the addresses of instructions");

static char *instructions_file;
module_param_named(instructions, instructions_file, charp, 0444);
MODULE_PARM_DESC(instructions, "File with a hexadecimal address on each line");

static char *functions_file;
module_param_named(functions, functions_file, charp, 0444);
MODULE_PARM_DESC(functions, "File with a hexadecimal address on each line");

static unsigned long exceptions[2];
module_param_array(exceptions, ulong, NULL, 0444);
MODULE_PARM_DESC(exceptions, "Where the kernel's exception table starts and stops");

struct places {
	unsigned long *addrs;
	unsigned int count;
};

static struct places instructions, functions;

/**
 * struct sweep_kind - A command that adds probes
 * @name:	Its name.
 * @each:	Probes at each place.
 * @post:	Probes have post handlers.
 * @on_return:	They are return probes.
 */
struct sweep_kind {
	const char *name;
	unsigned int each;
	bool post, on_return;
};

static const struct sweep_kind kinds[] = {
	{ .name = "pre",	.each = 1 },
	{ .name = "post",	.each = 1,	.post = true },
	{ .name = "three",	.each = PER_PLACE },
	{ .name = "return",	.each = 1,	.on_return = true },
};

/**
 * struct seen - What the handlers of a probe have seen
 * @pre:	Calls of the pre handler, or of the entry handler.
 * @late:	Those of them that came while probes were being unregistered.
 * @post:	Calls of the post handler, or of the return handler.
 * @unwatched:	A pre or entry handler was called while RCU was not watching.
 * @cooled:	The probe was disabled, as it was hit too often.
 */
struct seen {
	atomic_t pre, late, post;
	bool unwatched, cooled;
};

/* A return probe, or a probe, which has no use for the rest of it. */
struct sweep_probe {
	struct kretprobe rp;
	struct seen seen;
};

static struct sweep_probe *probes;
static struct kprobe *kprobes[CROWD];
static struct kretprobe *kretprobes[CROWD];
static unsigned int probes_count;	/* registered now */
static unsigned int cooling_failed;	/* how often a probe could not be disabled */

/* The addresses of a command that can be probed, and the other ones by error. */
static unsigned long *chosen;
static unsigned int chosen_count;
static unsigned int refused[MAX_ERRNO + 1];

/* The text from @base on. */
static u8 *saved;
static size_t saved_size;

static const struct sweep_kind *added;	/* what is registered now, or NULL */

static bool removing;

/* Serialises commands. */
static DEFINE_MUTEX(lock);

/* --------------------------------------------------------------- handlers */

static struct seen *sweep_seen(struct kprobe *p)
{
	return &container_of(p, struct sweep_probe, rp.kp)->seen;
}

/* rcu_is_watching() is probed itself: each hit would be two. */
#ifdef CONFIG_CONTEXT_TRACKING_IDLE
static __always_inline bool sweep_rcu_is_watching(void)
{
	return rcu_is_watching_curr_cpu();
}
#else
static __always_inline bool sweep_rcu_is_watching(void)
{
	return true;
}
#endif

static int sweep_pre_handler(struct kprobe *p, struct pt_regs *regs)
{
	struct seen *seen = sweep_seen(p);

	atomic_inc(&seen->pre);
	if (READ_ONCE(removing))
		atomic_inc(&seen->late);
	if (!sweep_rcu_is_watching())
		WRITE_ONCE(seen->unwatched, true);
	return 0;
}

static void sweep_post_handler(struct kprobe *p, struct pt_regs *regs, unsigned long flags)
{
	atomic_inc(&sweep_seen(p)->post);
}

static struct seen *sweep_seen_return(struct kretprobe_instance *ri)
{
	return &container_of(get_kretprobe(ri), struct sweep_probe, rp)->seen;
}

static int sweep_entry_handler(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct seen *seen = sweep_seen_return(ri);

	atomic_inc(&seen->pre);
	if (!sweep_rcu_is_watching())
		WRITE_ONCE(seen->unwatched, true);
	return 0;
}

static int sweep_return_handler(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	atomic_inc(&sweep_seen_return(ri)->post);
	return 0;
}

NOKPROBE_SYMBOL(sweep_seen);
NOKPROBE_SYMBOL(sweep_pre_handler);
NOKPROBE_SYMBOL(sweep_post_handler);
NOKPROBE_SYMBOL(sweep_seen_return);
NOKPROBE_SYMBOL(sweep_entry_handler);
NOKPROBE_SYMBOL(sweep_return_handler);

/* ------------------------------------------------------------ registration */

static int sweep_register(const struct sweep_kind *kind, unsigned int first, unsigned int n)
{
	return kind->on_return ? register_kretprobes(kretprobes + first, n) :
			       register_kprobes(kprobes + first, n);
}

static void sweep_unregister(const struct sweep_kind *kind, unsigned int n)
{
	if (kind->on_return)
		unregister_kretprobes(kretprobes, n);
	else
		unregister_kprobes(kprobes, n);
}

static void sweep_init_probe(unsigned int i, unsigned long addr, const struct sweep_kind *kind,
			     u32 flags)
{
	struct kretprobe *rp = &probes[i].rp;

	probes[i] = (struct sweep_probe){
		.rp.kp.addr	= (kprobe_opcode_t *)addr,
		.rp.kp.flags	= flags,
	};
	if (kind->on_return) {
		rp->entry_handler = sweep_entry_handler;
		rp->handler = sweep_return_handler;
	} else {
		rp->kp.pre_handler = sweep_pre_handler;
	}
	if (kind->post)
		rp->kp.post_handler = sweep_post_handler;
	kprobes[i] = &rp->kp;
	kretprobes[i] = rp;
}

/*
 * An array is registered as a whole or not at all: leave out what is refused alone. A
 * disabled probe is not armed, which is fast.
 */
static void sweep_choose(const struct sweep_kind *kind, unsigned int first, unsigned int step)
{
	const struct places *places = kind->on_return ? &functions : &instructions;
	unsigned int end = min_t(u64, places->count, first + (u64)step * (CROWD / kind->each));

	chosen_count = 0;
	memset(refused, 0, sizeof(refused));
	for (u64 i = first; i < end; i += step) {
		unsigned long addr = places->addrs[i];
		int err;

		sweep_init_probe(chosen_count, addr, kind, KPROBE_FLAG_DISABLED);
		err = sweep_register(kind, chosen_count, 1);
		if (err)
			refused[-err]++;
		else
			chosen[chosen_count++] = addr;
		cond_resched();
	}
	sweep_unregister(kind, chosen_count);
}

static void sweep_cool(struct work_struct *work)
{
	for (unsigned int i = 0; i < probes_count; i++) {
		struct sweep_probe *probe = &probes[i];
		int err;

		if (probe->seen.cooled || atomic_read(&probe->seen.pre) < HOT)
			continue;
		probe->seen.cooled = true;
		err = added->on_return ? disable_kretprobe(&probe->rp) :
					 disable_kprobe(&probe->rp.kp);
		cooling_failed += !!err;
	}
	schedule_delayed_work(to_delayed_work(work), HZ / 10);
}

static DECLARE_DELAYED_WORK(cool_work, sweep_cool);

static int sweep_add_chosen(const struct sweep_kind *kind)
{
	unsigned int n = chosen_count * kind->each;
	int err;

	for (unsigned int i = 0; i < n; i++)
		sweep_init_probe(i, chosen[i / kind->each], kind, 0);
	err = sweep_register(kind, 0, n);
	if (err)
		return err;
	probes_count = n;
	added = kind;
	cooling_failed = 0;
	schedule_delayed_work(&cool_work, HZ / 10);
	return 0;
}

static int sweep_add(const struct sweep_kind *kind, unsigned int first, unsigned int step)
{
	ktime_t start = ktime_get();
	int err;

	sweep_choose(kind, first, step);
	for (unsigned int i = 0; i < ARRAY_SIZE(refused); i++) {
		if (refused[i])
			pr_info("refused%pe %u\n", ERR_PTR(-(long)i), refused[i]);
	}
	pr_info("places %u\n", chosen_count);
	pr_info("choose-ms %lld\n", ktime_ms_delta(ktime_get(), start));
	if (!chosen_count)
		return 0;
	start = ktime_get();
	err = sweep_add_chosen(kind);
	pr_info("add-ms %lld\n", ktime_ms_delta(ktime_get(), start));
	return err;
}

/* ----------------------------------------------------------------- removal */

/**
 * struct sums - What all handlers have seen
 * @pre:	Calls of pre or entry handlers.
 * @post:	Calls of post or return handlers.
 * @hit:	Probes that were hit.
 * @cooled:	Those of them that were disabled.
 * @missed:	Hits, or calls, without handlers.
 * @wrong:	Probes whose numbers do not agree.
 */
struct sums {
	u64 pre, post, missed;
	unsigned int hit, cooled, wrong;
};

static void sweep_sum(struct sums *sums, const struct seen *seen, unsigned long missed)
{
	unsigned int pre = atomic_read(&seen->pre);

	sums->pre += pre;
	sums->post += atomic_read(&seen->post);
	sums->missed += missed;
	sums->hit += !!pre;
	sums->cooled += seen->cooled;
}

/* Count, and log, a probe whose numbers do not agree with those of the first at its place. */
static void sweep_expect(struct sums *sums, bool agrees, unsigned long addr,
			 const struct seen *seen, const struct seen *first)
{
	if (!agrees && sums->wrong++ < NAMED)
		pr_info("wrong-%pS %d/%d, the first %d\n", (void *)addr, atomic_read(&seen->pre),
			atomic_read(&seen->post), atomic_read(&first->pre));
}

static unsigned long insn_of(const struct exception_table_entry *entry)
{
#ifdef ARCH_HAS_RELATIVE_EXTABLE
	return (unsigned long)&entry->insn + entry->insn;
#else
	return entry->insn;
#endif
}

/* True if the instruction may fault, for example because it accesses user memory. */
static bool sweep_may_fault(unsigned long addr)
{
	const struct exception_table_entry *entry = (const void *)exceptions[0];

	while (entry != (const void *)exceptions[1] && insn_of(entry) != addr)
		entry++;
	return entry != (const void *)exceptions[1];
}

/*
 * A fault ends a hit without a post handler; afterwards the instruction may be hit again. So does
 * disabling the probe, also of tasks that are preempted in its detour.
 */
static bool sweep_post_agrees(const struct seen *seen, unsigned long addr)
{
	int without = atomic_read(&seen->pre) - atomic_read(&seen->post);
	int late = atomic_read(&seen->late) + (seen->cooled ? HOT / 50 : 0);

	return without >= 0 && (without <= late || sweep_may_fault(addr));
}

/* All probes at a place are hit equally often, until the first of them is unregistered. */
static bool sweep_pre_agrees(const struct seen *seen, const struct seen *first)
{
	int more = atomic_read(&seen->pre) - atomic_read(&first->pre);

	return more >= 0 && more <= atomic_read(&seen->late);
}

static bool sweep_agrees(const struct seen *seen, const struct seen *first, unsigned long addr)
{
	if (seen->unwatched)
		return false;
	/* Calls in flight have not returned. */
	if (added->on_return)
		return atomic_read(&seen->post) <= atomic_read(&seen->pre);
	/* Those that were disabled were so one after the other. */
	if (!seen->cooled && !first->cooled && !sweep_pre_agrees(seen, first))
		return false;
	return !added->post || sweep_post_agrees(seen, addr);
}

/* No handler runs any more. */
static void sweep_check(struct sums *sums)
{
	for (unsigned int i = 0; i < probes_count; i++) {
		const struct kretprobe *rp = &probes[i].rp;
		const struct seen *seen = &probes[i].seen;
		const struct seen *first = &probes[i - i % added->each].seen;
		unsigned long addr = chosen[i / added->each];

		sweep_sum(sums, seen, rp->nmissed + rp->kp.nmissed);
		sweep_expect(sums, sweep_agrees(seen, first, addr), addr, seen, first);
	}
}

static int sweep_remove(void)
{
	ktime_t start = ktime_get();
	struct sums sums = { };

	cancel_delayed_work_sync(&cool_work);
	WRITE_ONCE(removing, true);
	/* No handler has seen it false, and is not done; no task is between two handlers. */
	synchronize_rcu_tasks();
	synchronize_rcu();
	if (added)
		sweep_unregister(added, probes_count);
	WRITE_ONCE(removing, false);
	pr_info("remove-ms %lld\n", ktime_ms_delta(ktime_get(), start));
	sweep_check(&sums);
	probes_count = 0;
	added = NULL;
	pr_info("hits %llu\n", sums.pre);
	pr_info("hits-after %llu\n", sums.post);
	pr_info("missed %llu\n", sums.missed);
	pr_info("hit-probes %u\n", sums.hit);
	pr_info("cooled %u\n", sums.cooled);
	pr_info("wrong %u\n", sums.wrong + cooling_failed);
	return 0;
}

/* -------------------------------------------------------------------- text */

static int sweep_save(void)
{
	saved_size = instructions.count ? instructions.addrs[instructions.count - 1] + 1 - base : 0;
	kvfree(saved);
	saved = kvmalloc(saved_size, GFP_KERNEL);
	if (!saved)
		return -ENOMEM;
	memcpy(saved, (void *)base, saved_size);
	return 0;
}

static int sweep_compare(void)
{
	const u8 *text = (const u8 *)base;
	unsigned int changed = 0;

	if (!saved)
		return -EINVAL;
	for (size_t i = 0; i < saved_size; i++) {
		if (text[i] != saved[i] && changed++ < NAMED)
			pr_info("changed-%pS %#x\n", &text[i], text[i]);
	}
	pr_info("changed %u\n", changed);
	return 0;
}

/* ---------------------------------------------------------------- commands */

static int sweep_run(const char *value, const struct kernel_param *param)
{
	unsigned int first, step;
	char name[8];
	int found;

	guard(mutex)(&lock);
	found = sscanf(value, "%7s %u %u", name, &first, &step);
	if (found == 1 && !strcmp(name, "remove"))
		return sweep_remove();
	if (found == 1 && !strcmp(name, "save"))
		return sweep_save();
	if (found == 1 && !strcmp(name, "compare"))
		return sweep_compare();
	if (found != 3 || !step || added)
		return -EINVAL;
	for (unsigned int i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (!strcmp(name, kinds[i].name))
			return sweep_add(&kinds[i], first, step);
	}
	return -EINVAL;
}

static const struct kernel_param_ops run_ops = { .set = sweep_run };
module_param_cb(run, &run_ops, NULL, 0200);
MODULE_PARM_DESC(run, "Write a command: pre, post, three or return FIRST STEP; remove, save, compare");

/* ------------------------------------------------------------------ module */

static int sweep_parse(char *text, unsigned long from, struct places *places)
{
	unsigned int lines = count_lines(text);
	int err;

	places->addrs = kvcalloc(lines, sizeof(*places->addrs), GFP_KERNEL);
	if (!places->addrs)
		return -ENOMEM;
	for (unsigned int i = 0; i < lines; i++) {
		err = kstrtoul(strsep(&text, "\n"), 16, &places->addrs[i]);
		if (err)
			return err;
		places->addrs[i] += from;
	}
	places->count = lines;
	return 0;
}

static int sweep_read(const char *file, unsigned long from, struct places *places)
{
	char *text;
	int err;

	if (!file)
		return 0;
	text = read_text(file);
	if (IS_ERR(text))
		return PTR_ERR(text);
	err = sweep_parse(text, from, places);
	kvfree(text);
	return err;
}

static void sweep_free(void)
{
	kvfree(instructions.addrs);
	kvfree(functions.addrs);
	kvfree(probes);
	kvfree(chosen);
	kvfree(saved);
}

static int __init sweep_init(void)
{
	int err = sweep_read(instructions_file, base, &instructions) ?:
		  sweep_read(functions_file, 0, &functions);

	probes = kvcalloc(CROWD, sizeof(*probes), GFP_KERNEL);
	chosen = kvcalloc(CROWD, sizeof(*chosen), GFP_KERNEL);
	if (!err && !(probes && chosen))
		err = -ENOMEM;
	if (err) {
		pr_err("no addresses, or no memory: %pe\n", ERR_PTR(err));
		sweep_free();
		return err;
	}
	pr_info("instructions %u\n", instructions.count);
	pr_info("functions %u\n", functions.count);
	return 0;
}
module_init(sweep_init);

static void __exit sweep_exit(void)
{
	sweep_remove();
	sweep_free();
}
module_exit(sweep_exit);

MODULE_DESCRIPTION("Probe a large part of the kernel at a time");
MODULE_LICENSE("GPL");
