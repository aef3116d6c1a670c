// SPDX-License-Identifier: GPL-2.0
/*
 * Churn: probes anywhere in a target, one by one and in arrays, that come, go and are
 * disabled and enabled while it is called; and registrations that must fail.
 */
#include <linux/kernel.h>
#include <linux/kprobes.h>
#include <linux/limits.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/torture.h>

#include "torture.h"

#define PROBES		24

/**
 * struct churn - The probes of a thread in a target
 * @kps:	The probes.
 * @registered:	Pointers to those that are registered.
 * @n:		How many of @registered there are.
 */
struct churn {
	struct kprobe kps[PROBES];
	struct kprobe *registered[PROBES];
	unsigned int n;
};

/* What a thread does next. */
enum churn_kind { CHURN_INSIDE, CHURN_ENTRIES, CHURN_REFUSALS, CHURN_KINDS };

static unsigned int churn_mix[CHURN_KINDS] = { 4, 1, 4 };
static unsigned int churn_weights = CHURN_KINDS;
module_param_array(churn_mix, uint, &churn_weights, 0444);
MODULE_PARM_DESC(churn_mix, "Weights of probes: inside a target, at all entries, refused");

bool kt_churn_is_valid(void)
{
	return kt_mix_is_valid("churn_mix", churn_mix, churn_weights, CHURN_KINDS);
}

static int churn_pre(struct kprobe *kp, struct pt_regs *regs)
{
	kt_expect_armed(kp->addr);
	return 0;
}

static void churn_post(struct kprobe *kp, struct pt_regs *regs, unsigned long flags)
{
	kt_expect_armed(kp->addr);
}

static void set_probe(struct kprobe *kp, struct target *t, struct rnd_state *rnd)
{
	memset(kp, 0, sizeof(*kp));
	kp->addr = (void *)t->function + kt_below(rnd, t->size);
	kp->pre_handler = churn_pre;
	if (kt_below(rnd, 4) == 0)
		kp->post_handler = churn_post;
	if (kt_below(rnd, 8) == 0)
		kp->flags = KPROBE_FLAG_DISABLED;
}

/* Register probes at random offsets. Some are in the middle of an instruction. */
static void register_probes(struct churn *c, struct target *t, struct rnd_state *rnd)
{
	c->n = 0;
	for (unsigned int i = 0; i < PROBES; i++) {
		struct kprobe *kp = &c->kps[i];
		int err;

		set_probe(kp, t, rnd);
		kt_begin_shortage(rnd);
		err = kt_end_shortage(register_kprobe(kp));
		KT_EXPECT(!err || err == -EILSEQ || err == -EINVAL || err == -EOPNOTSUPP ||
			  kt_may_fail_with(err), "%s: %d", t->symbol, err);
		if (err)
			kt_expect_unlinked(kp);
		else
			c->registered[c->n++] = kp;
	}
}

static void shuffle_probes(struct churn *c, struct rnd_state *rnd)
{
	for (unsigned int i = 1; i < c->n; i++) {
		unsigned int j = kt_below(rnd, i + 1);

		swap(c->registered[i], c->registered[j]);
	}
}

static void flip_probes(struct churn *c, struct rnd_state *rnd)
{
	for (unsigned int i = 0; i < c->n; i++) {
		struct kprobe *kp = c->registered[i];
		bool enable = kt_below(rnd, 2), was_disabled = kprobe_disabled(kp);
		int err;

		kt_begin_shortage(rnd);
		err = kt_end_shortage(enable ? enable_kprobe(kp) : disable_kprobe(kp));
		KT_EXPECT(!err || (enable && kt_may_fail_with(err)), "%pS: %d", kp->addr, err);
		KT_EXPECT(kprobe_disabled(kp) == (err ? was_disabled : !enable),
			  "%pS: %d", kp->addr, err);
		if (!kt_below(rnd, 8))
			kt_sleep(rnd);
	}
}

/* Register all probes of the array, or none if memory runs out. */
static bool register_array(struct churn *c, struct rnd_state *rnd)
{
	int err;

	kt_begin_shortage(rnd);
	err = kt_end_shortage(register_kprobes(c->registered, c->n));
	KT_EXPECT(!err || kt_may_fail_with(err), "%u probes: %d", c->n, err);
	for (unsigned int i = 0; err && i < c->n; i++)
		kt_expect_unlinked(c->registered[i]);
	atomic_long_add(!err, &kt_stats.arrays);
	return !err;
}

static void unregister_array(struct churn *c, struct rnd_state *rnd)
{
	kt_begin_shortage(rnd);
	unregister_kprobes(c->registered, c->n);
	kt_end_shortage(0);
}

/* Unregister all and register them again, as an array; then one by one. */
static void replace_probes(struct churn *c, struct rnd_state *rnd)
{
	if (!c->n)
		return;
	unregister_array(c, rnd);
	for (unsigned int i = 0; i < c->n; i++)
		c->registered[i]->flags = 0;
	if (!register_array(c, rnd))
		return;
	kt_sleep(rnd);
	shuffle_probes(c, rnd);
	for (unsigned int i = 0; i < c->n; i++) {
		kt_begin_shortage(rnd);
		unregister_kprobe(c->registered[i]);
		kt_end_shortage(0);
	}
}

/* The entries of all targets at once, claimed by others or not. */
static void probe_all_entries(struct churn *c, struct rnd_state *rnd)
{
	c->n = min(PROBES, TARGETS);
	for (unsigned int i = 0; i < c->n; i++) {
		c->kps[i] = (struct kprobe){
			.symbol_name = kt_targets[i].symbol, .pre_handler = churn_pre,
		};
		c->registered[i] = &c->kps[i];
	}
	if (!register_array(c, rnd))
		return;
	kt_sleep(rnd);
	unregister_array(c, rnd);
}

/* The registration of the array has to fail with @error. */
static void expect_array_refused(struct kprobe **kps, int n, int error, struct rnd_state *rnd)
{
	const struct kprobe *bad = kps[n - 1];
	int err;

	kt_begin_shortage(rnd);
	err = kt_end_shortage(register_kprobes(kps, n));
	KT_EXPECT(err == error || kt_may_fail_with(err), "%s %pS: %d instead of %d",
		  bad->symbol_name ?: "", bad->addr, err, error);
	if (!err)
		unregister_kprobes(kps, n);
	atomic_long_inc(&kt_stats.refusals);
}

static void expect_refused(struct kprobe *kp, int error, struct rnd_state *rnd)
{
	kp->pre_handler = churn_pre;
	expect_array_refused(&kp, 1, error, rnd);
}

static void register_bad_probes(struct rnd_state *rnd)
{
	struct target *t = &kt_targets[kt_below(rnd, TARGETS)];
	struct kprobe array[2] = {
		{ .symbol_name = t->symbol, .pre_handler = churn_pre },
		{ .symbol_name = "kprobes_torture_nothing" },
	};
	struct kprobe *pointers[] = { &array[0], &array[1] };
	int on_the_stack = 0;

	expect_refused(&(struct kprobe){ }, -EINVAL, rnd);
	expect_refused(&(struct kprobe){ .symbol_name = "kprobes_torture_nothing" }, -ENOENT, rnd);
	expect_refused(&(struct kprobe){ .symbol_name = t->symbol, .addr = (void *)t->function },
		       -EINVAL, rnd);
	expect_refused(&(struct kprobe){ .addr = (void *)t->twin }, -EINVAL, rnd);
	expect_refused(&(struct kprobe){ .addr = (void *)&on_the_stack }, -ENOENT, rnd);
	expect_refused(&(struct kprobe){ .addr = (void *)PAGE_SIZE }, -ENOENT, rnd);
	expect_array_refused(pointers, 2, -ENOENT, rnd);
	KT_EXPECT(!array[1].addr, "%s", t->symbol);
}

static void churn_target(struct churn *c, struct rnd_state *rnd)
{
	struct target *t = kt_claim(rnd, 0);

	register_probes(c, t, rnd);
	kt_sleep(rnd);
	flip_probes(c, rnd);
	replace_probes(c, rnd);
	kt_release(t);
}

static void churn_probes(struct churn *c, struct rnd_state *rnd)
{
	switch (kt_choose(rnd, churn_mix, CHURN_KINDS)) {
	case CHURN_INSIDE:
		churn_target(c, rnd);
		break;
	case CHURN_ENTRIES:
		probe_all_entries(c, rnd);
		break;
	case CHURN_REFUSALS:
		register_bad_probes(rnd);
		break;
	}
	atomic_long_inc(&kt_stats.churns);
}

/* Thread: churn in one target after the other. */
int kt_churn(void *index)
{
	struct churn *c = kzalloc(sizeof(*c), GFP_KERNEL);
	struct rnd_state rnd;

	KT_EXPECT(c, "no memory");
	kt_seed(&rnd, (unsigned long)index);
	while (c && !kt_must_stop()) {
		churn_probes(c, &rnd);
		stutter_wait("kt_churn");
	}
	kfree(c);
	torture_kthread_stopping("kt_churn");
	return 0;
}
