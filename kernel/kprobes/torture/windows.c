// SPDX-License-Identifier: GPL-2.0
/*
 * Windows: probes at the entry of a target are registered and unregistered while it is
 * called. In between it is closed twice; from the one time to the other, each call is a
 * hit or counted as missed by each probe.
 */
#define pr_fmt(fmt) "kprobes-torture: " fmt

#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/percpu.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/torture.h>

#include "torture.h"

/* The kinds of probes in a window. */
enum kind { PROBE, POST, RETURN, VETO, JUMPER, KINDS };

static const char *const kind_names[KINDS] = {
	"pre handler", "post handler", "return", "veto", "jumper"
};

/**
 * struct kind_counts - What was counted for the probes of a kind in all windows
 * @hits:	Calls of the first handler.
 * @misses:	Calls of the target that were missed.
 * @jumps:	Windows in which the probe had a jump from the beginning to the end.
 */
static struct kind_counts {
	atomic_long_t hits;
	atomic_long_t misses;
	atomic_long_t jumps;
} kind_counts[KINDS];

static atomic_long_t waits;

/* Windows of a probe in which its target was called. */
static atomic_long_t judged;

/* A window is hurried, or waits until a jump is in place if there can be one. */
enum window_kind { HURRIED, UNTIL_JUMP, WINDOW_KINDS };

static unsigned int probe_mix[KINDS] = { 1, 1, 1, 1, 1 };
static unsigned int probe_weights = KINDS;
module_param_array(probe_mix, uint, &probe_weights, 0444);
MODULE_PARM_DESC(probe_mix, "Weights of probes in windows: pre, post, return, veto, jumper");

static unsigned int window_mix[WINDOW_KINDS] = { 1, 1 };
static unsigned int window_weights = WINDOW_KINDS;
module_param_array(window_mix, uint, &window_weights, 0444);
MODULE_PARM_DESC(window_mix, "Weights of windows: hurried, waiting for a jump");

bool kt_windows_are_valid(void)
{
	return kt_mix_is_valid("probe_mix", probe_mix, probe_weights, KINDS) &&
	       kt_mix_is_valid("window_mix", window_mix, window_weights, WINDOW_KINDS);
}

/* There can be no probe of this kind now. No function of the kernel returns it. */
#define NOT_NOW		1

/*
 * What is expected of a kind of probe that was chosen so often: hits, after a minute or so;
 * a jump, after some more. Of all kinds, one jump in WAITS_FOR_A_JUMP waits.
 */
#define ENOUGH_WINDOWS		40
#define ENOUGH_WAITS		60
#define WAITS_FOR_A_JUMP	16

/* What handlers do besides counting. */
enum action { NOTHING, NEST, REDIRECT, ACTIONS };

#define PROBES		4

/**
 * struct window_counts - What one CPU has counted for a probe
 * @hits:	Calls of the pre handler, entry handler or jumper probe's handler.
 * @ends:	Calls of the post handler or return handler.
 * @vetoes:	Calls of the entry handler that returned 1.
 */
struct window_counts {
	unsigned long hits;
	unsigned long ends;
	unsigned long vetoes;
};

/**
 * struct window_probe - A probe in a window
 * @kind:	Which member of the union it is, and what handlers it has.
 * @action:	What its handler does.
 * @target:	The target.
 * @counts:	The counts of each CPU.
 * @last:	What hits_and_ends() was when the probe was gone, and so must be for good.
 * @kp:		The probe. A jumper probe begins with one.
 * @rp:		The return probe.
 * @jp:		The jumper probe.
 */
struct window_probe {
	enum kind kind;
	enum action action;
	struct target *target;
	struct window_counts __percpu *counts;
	unsigned long last;
	union {
		struct kprobe kp;
		struct kretprobe rp;
#ifdef CONFIG_JPROBES
		struct jprobe jp;
#endif
	};
};

/**
 * struct window - Probes at the entry of a target
 * @target:	The target.
 * @probes:	The probes.
 * @n:		How many of them are registered.
 * @disabled:	The one that is disabled, or NULL.
 * @waits:	Whether to wait for a jump before calls are counted.
 */
struct window {
	struct target *target;
	struct window_probe probes[PROBES];
	unsigned int n;
	const struct window_probe *disabled;
	bool waits;
};

static int window_pre(struct kprobe *kp, struct pt_regs *regs)
{
	struct window_probe *w = container_of(kp, struct window_probe, kp);

	this_cpu_inc(w->counts->hits);
	kt_expect_armed(w->target->function);
	switch (w->action) {
	case NEST:
		kt_call(&kt_targets[(w->target - kt_targets + 1) % TARGETS], 5);
		return 0;
	case REDIRECT:
		instruction_pointer_set(regs, (unsigned long)w->target->twin);
		return 1;
	default:
		return 0;
	}
}

static void window_post(struct kprobe *kp, struct pt_regs *regs, unsigned long flags)
{
	struct window_probe *w = container_of(kp, struct window_probe, kp);

	this_cpu_inc(w->counts->ends);
	kt_expect_armed(w->target->function);
}

#ifdef CONFIG_KRETPROBES
static int window_entry(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct window_probe *w = container_of(get_kretprobe(ri), struct window_probe, rp);

	*(struct window_probe **)ri->data = w;
	this_cpu_inc(w->counts->hits);
	kt_expect_armed(w->target->function);
	if (w->kind != VETO || this_cpu_read(w->counts->hits) % 4)
		return 0;
	this_cpu_inc(w->counts->vetoes);
	return 1;
}

static int window_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct window_probe *w = *(struct window_probe **)ri->data;

	this_cpu_inc(w->counts->ends);
	KT_EXPECT(get_kretprobe(ri) == &w->rp, "%s", w->target->symbol);
	return 0;
}

static int register_return(struct window_probe *w, struct rnd_state *rnd)
{
	w->rp.kp.symbol_name = w->target->symbol;
	w->rp.entry_handler = window_entry;
	w->rp.handler = window_return;
	w->rp.data_size = sizeof(w);
	w->rp.maxactive = kt_below(rnd, 4);
	return register_kretprobe(&w->rp);
}
#else
static int register_return(struct window_probe *w, struct rnd_state *rnd) { return NOT_NOW; }
#endif

#ifdef CONFIG_JPROBES
/* The handler of a jumper probe is not told the probe: one window at a time has it. */
static DEFINE_MUTEX(jumper_mutex);
static struct window_probe *jumper;

static u64 window_jumper(u64 arg)
{
	this_cpu_inc(jumper->counts->hits);
	kt_expect_armed(jumper->target->function);
	if (arg & 1)
		jprobe_return();
	return 0;
}

static int register_jumper(struct window_probe *w)
{
	int err;

	if (!mutex_trylock(&jumper_mutex))
		return NOT_NOW;
	jumper = w;
	w->jp.kp.symbol_name = w->target->symbol;
	w->jp.entry = window_jumper;
	err = register_jprobe(&w->jp);
	if (err)
		mutex_unlock(&jumper_mutex);
	return err;
}

static void unregister_jumper(struct window_probe *w)
{
	unregister_jprobe(&w->jp);
	mutex_unlock(&jumper_mutex);
}
#else
static int register_jumper(struct window_probe *w) { return NOT_NOW; }
static void unregister_jumper(struct window_probe *w) { }
#endif

/* Returns NOT_NOW if there can be no probe of this kind now. */
static int register_window_probe(struct window_probe *w, struct rnd_state *rnd)
{
	switch (w->kind) {
	case RETURN:
	case VETO:
		return register_return(w, rnd);
	case JUMPER:
		return register_jumper(w);
	default:
		w->kp.symbol_name = w->target->symbol;
		w->kp.pre_handler = window_pre;
		w->kp.post_handler = w->kind == POST ? window_post : NULL;
		return register_kprobe(&w->kp);
	}
}

static void unregister_window_probe(struct window_probe *w)
{
	switch (w->kind) {
	case RETURN:
	case VETO:
		unregister_kretprobe(&w->rp);
		return;
	case JUMPER:
		unregister_jumper(w);
		return;
	default:
		unregister_kprobe(&w->kp);
	}
}

static struct kprobe *kprobe_of(struct window_probe *w)
{
	return w->kind == RETURN || w->kind == VETO ? &w->rp.kp : &w->kp;
}

static struct window_counts sum_of_counts(struct window_probe *w)
{
	struct window_counts sum = { };
	int cpu;

	for_each_possible_cpu(cpu) {
		const struct window_counts *c = per_cpu_ptr(w->counts, cpu);

		sum.hits += c->hits;
		sum.ends += c->ends;
		sum.vetoes += c->vetoes;
	}
	return sum;
}

static unsigned long misses_of(struct window_probe *w)
{
	unsigned long misses = kprobe_of(w)->nmissed;

	if (w->kind == RETURN || w->kind == VETO)
		misses += w->rp.nmissed;
	return misses;
}

/* Each hit in the window has ended in the window. */
static void expect_ends(const struct window_probe *w, struct window_counts sum)
{
	const char *symbol = w->target->symbol;

	switch (w->kind) {
	case POST:
		KT_EXPECT(sum.ends == (w->action == REDIRECT ? 0 : sum.hits),
			  "%s: %lu pre, %lu post", symbol, sum.hits, sum.ends);
		break;
	case RETURN:
	case VETO:
		KT_EXPECT(sum.hits == sum.ends + sum.vetoes,
			  "%s: %lu entries, %lu returns, %lu vetoes",
			  symbol, sum.hits, sum.ends, sum.vetoes);
		break;
	default:
		break;
	}
}

static void expect_calls(struct window_probe *w, struct window_counts sum,
			 unsigned long missed, unsigned long calls, bool jump)
{
	struct kind_counts *kind = &kind_counts[w->kind];

	KT_EXPECT(sum.hits + missed == calls,
		  "%s: %lu calls, kind %u, action %u: %lu hits, %lu missed",
		  w->target->symbol, calls, w->kind, w->action, sum.hits, missed);
	expect_ends(w, sum);
	atomic_long_add(!!calls, &judged);
	atomic_long_add(sum.hits, &kind->hits);
	atomic_long_add(missed, &kind->misses);
	if (sum.hits) {
		atomic_long_inc(&kt_stats.windows);
		atomic_long_add(jump, &kind->jumps);
	}
}

/* An enabled probe of the window, or NULL. All have the same site. */
static struct window_probe *enabled_probe(struct window *window)
{
	for (unsigned int i = 0; i < window->n; i++)
		if (&window->probes[i] != window->disabled)
			return &window->probes[i];
	return NULL;
}

static bool has_jump(struct window *window)
{
	struct window_probe *w = enabled_probe(window);

	return w && READ_ONCE(kprobe_of(w)->flags) & KPROBE_FLAG_OPTIMIZED;
}

/*
 * Let the optimiser put a jump in place. Nothing is in its way but the target's code: no
 * other prober has probes in the target. One that gets no jump is not waited for again.
 */
static void wait_for_jump(struct window *window)
{
	unsigned long timeout = jiffies + 2 * HZ;
	struct window_probe *w = enabled_probe(window);

	if (!w || !window->waits || !kt_jumps_are_permitted())
		return;
	while (!has_jump(window) && kt_jumps_are_permitted() && time_before(jiffies, timeout))
		schedule_timeout_uninterruptible(1);
	window->waits = has_jump(window);
	atomic_long_add(window->waits || kt_jumps_are_permitted(), &waits);
}

/*
 * Each of the registered probes sees each call, except for the disabled one, which sees
 * none. What was counted before the window does not add up: a probe may be linked to its
 * site between the pre and the post handlers.
 */
static void count_calls(struct window *window, struct rnd_state *rnd)
{
	struct window_probe *probes = window->probes;
	struct target *t = window->target;
	struct window_counts before[PROBES];
	unsigned long calls, missed[PROBES];
	bool jump;

	/* Nobody disarms all probes meanwhile. */
	guard(rwsem_read)(&kt_armed);
	wait_for_jump(window);
	calls = kt_close(t);
	jump = has_jump(window);
	for (unsigned int i = 0; i < window->n; i++) {
		before[i] = sum_of_counts(&probes[i]);
		missed[i] = misses_of(&probes[i]);
	}
	kt_open(t);
	kt_sleep(rnd);
	calls = kt_close(t) - calls;
	jump = jump && has_jump(window);
	for (unsigned int i = 0; i < window->n; i++) {
		struct window_counts sum = sum_of_counts(&probes[i]);

		sum.hits -= before[i].hits;
		sum.ends -= before[i].ends;
		sum.vetoes -= before[i].vetoes;
		missed[i] = misses_of(&probes[i]) - missed[i];
		if (&probes[i] == window->disabled)
			KT_EXPECT(!sum.hits && !sum.ends,
				  "%s, kind %u is disabled: %lu hits, %lu ends",
				  t->symbol, probes[i].kind, sum.hits, sum.ends);
		else
			expect_calls(&probes[i], sum, missed[i], calls, jump);
	}
	kt_open(t);
}

/* A disabled probe sees no call, an enabled one each call again; the others see all. */
static void disable_and_enable(struct window *window, struct rnd_state *rnd)
{
	struct window_probe *w = &window->probes[kt_below(rnd, window->n)];
	int err;

	kt_begin_shortage(rnd);
	err = kt_end_shortage(disable_kprobe(kprobe_of(w)));
	KT_EXPECT(!err, "%s: %d", w->target->symbol, err);
	window->disabled = w;
	count_calls(window, rnd);
	kt_begin_shortage(rnd);
	err = kt_end_shortage(enable_kprobe(kprobe_of(w)));
	KT_EXPECT(!err || kt_may_fail_with(err), "%s: %d", w->target->symbol, err);
	if (!err)
		window->disabled = NULL;
	count_calls(window, rnd);
}

void kt_print_kinds(void)
{
	pr_alert("waits for jumps %ld\n", atomic_long_read(&waits));
	for (unsigned int i = 0; i < KINDS; i++)
		pr_alert("kind %s: %ld hits, %ld misses, %ld jumps\n", kind_names[i],
			 atomic_long_read(&kind_counts[i].hits),
			 atomic_long_read(&kind_counts[i].misses),
			 atomic_long_read(&kind_counts[i].jumps));
}

static bool kind_is_possible(enum kind kind)
{
	switch (kind) {
	case RETURN:
	case VETO:
		return IS_ENABLED(CONFIG_KRETPROBES);
	case JUMPER:
		return IS_ENABLED(CONFIG_JPROBES);
	default:
		return true;
	}
}

/* How many of @n windows or waits were for a kind of probe. */
static long share_of_kind(enum kind kind, long n)
{
	long sum = 0;

	for (unsigned int i = 0; i < KINDS; i++)
		sum += probe_mix[i];
	return kind_is_possible(kind) ? n * probe_mix[kind] / sum : 0;
}

/* At the end of a long run, there were jumps with each kind of probe, and many hits. */
void kt_expect_kinds(void)
{
	long waited = atomic_long_read(&waits), jumps = 0;

	for (unsigned int i = 0; i < KINDS; i++) {
		long hits = atomic_long_read(&kind_counts[i].hits);
		long misses = atomic_long_read(&kind_counts[i].misses);
		long jumps_of_kind = atomic_long_read(&kind_counts[i].jumps);

		jumps += jumps_of_kind;
		KT_EXPECT(share_of_kind(i, atomic_long_read(&judged)) < ENOUGH_WINDOWS ||
			  (hits && hits >= misses / 4), "%s: %ld hits, %ld misses",
			  kind_names[i], hits, misses);
		KT_EXPECT(share_of_kind(i, waited) < ENOUGH_WAITS || jumps_of_kind,
			  "%s: %ld waits", kind_names[i], waited);
	}
	KT_EXPECT(waited < KINDS * ENOUGH_WAITS || jumps >= waited / WAITS_FOR_A_JUMP,
		  "%ld jumps in %ld waits", jumps, waited);
	KT_EXPECT(waited < ENOUGH_WAITS || jumps, "%ld waits", waited);
}

static unsigned long hits_and_ends(struct window_probe *w)
{
	struct window_counts sum = sum_of_counts(w);

	return sum.hits + sum.ends;
}

/* No handler runs after unregistration, or after a registration that failed. */
static void expect_no_hits(struct window_probe *probes, unsigned int n, struct rnd_state *rnd)
{
	kt_sleep(rnd);
	for (unsigned int i = 0; i < n; i++)
		KT_EXPECT(hits_and_ends(&probes[i]) == probes[i].last, "%s: kind %u",
			  probes[i].target->symbol, probes[i].kind);
}

/* A handler that redirects keeps the others from being called, so it is alone. */
static unsigned int choose_probes(struct window_probe *probes, struct target *t,
				  struct rnd_state *rnd)
{
	unsigned int n = 1 + kt_below(rnd, PROBES);

	for (unsigned int i = 0; i < n; i++) {
		struct window_counts __percpu *counts = probes[i].counts;
		int cpu;

		memset(&probes[i], 0, sizeof(probes[i]));
		probes[i].counts = counts;
		for_each_possible_cpu(cpu)
			memset(per_cpu_ptr(counts, cpu), 0, sizeof(*counts));
		probes[i].target = t;
		probes[i].kind = kt_choose(rnd, probe_mix, KINDS);
		probes[i].action = kt_below(rnd, n > 1 ? REDIRECT : ACTIONS);
	}
	return n;
}

/* Register probes until one cannot be. */
static void register_window_probes(struct window *window, unsigned int wanted,
				   struct rnd_state *rnd)
{
	for (window->n = 0; window->n < wanted; window->n++) {
		struct window_probe *w = &window->probes[window->n];
		int err;

		kt_begin_shortage(rnd);
		err = kt_end_shortage(register_window_probe(w, rnd));
		KT_EXPECT(!err || err == NOT_NOW || kt_may_fail_with(err), "%s, kind %u: %d",
			  w->target->symbol, w->kind, err);
		if (err) {
			kt_expect_unlinked(kprobe_of(w));
			w->last = hits_and_ends(w);
			return;
		}
	}
}

static void unregister_window_probes(struct window *window, struct rnd_state *rnd)
{
	for (unsigned int i = 0; i < window->n; i++) {
		kt_begin_shortage(rnd);
		unregister_window_probe(&window->probes[i]);
		kt_end_shortage(0);
		window->probes[i].last = hits_and_ends(&window->probes[i]);
	}
}

static void run_window(struct window *window, struct rnd_state *rnd)
{
	bool until_jump = kt_choose(rnd, window_mix, WINDOW_KINDS) == UNTIL_JUMP;
	struct target *t = kt_claim(rnd, until_jump ? FIRST_PLAIN : 0);
	unsigned int wanted = choose_probes(window->probes, t, rnd);

	window->target = t;
	window->disabled = NULL;
	window->waits = until_jump;
	register_window_probes(window, wanted, rnd);
	if (window->n) {
		kt_sleep(rnd);
		count_calls(window, rnd);
		if (kt_below(rnd, 2))
			disable_and_enable(window, rnd);
	}
	unregister_window_probes(window, rnd);
	expect_no_hits(window->probes, wanted, rnd);
	kt_release(t);
}

/* Thread: window after window. */
int kt_windows(void *index)
{
	struct window *window = kzalloc(sizeof(*window), GFP_KERNEL);
	struct rnd_state rnd;
	bool ready = window;

	for (unsigned int i = 0; i < PROBES && ready; i++) {
		window->probes[i].counts = alloc_percpu(struct window_counts);
		ready = window->probes[i].counts;
	}
	KT_EXPECT(ready, "no memory");
	kt_seed(&rnd, (unsigned long)index);
	while (ready && !kt_must_stop()) {
		run_window(window, &rnd);
		stutter_wait("kt_windows");
	}
	for (unsigned int i = 0; i < PROBES && window; i++)
		free_percpu(window->probes[i].counts);
	kfree(window);
	torture_kthread_stopping("kt_windows");
	return 0;
}
