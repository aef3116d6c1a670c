/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What the files of the torture test of kprobes share
 *
 * Hitters call targets, in all contexts. Probers claim a target, so that no other one has
 * probes in it, and probe it. They can close it: then nobody is in it or enters it.
 */
#ifndef _KPROBES_TORTURE_H
#define _KPROBES_TORTURE_H

#include <linux/jump_label.h>
#include <linux/mutex.h>
#include <linux/prandom.h>
#include <linux/rwsem.h>
#include <linux/static_call.h>
#include <linux/types.h>

struct kprobe;

/* The bodies of targets.h, of which there is a traced and a plain copy. */
#define BODIES		8
#define TARGETS		(2 * BODIES)
#define FIRST_PLAIN	BODIES

/**
 * struct target_counts - What one CPU has counted for a target
 * @entered:	Hitters that came while it was open.
 * @left:	Hitters that went again.
 * @calls:	Calls of the target.
 */
struct target_counts {
	unsigned long entered;
	unsigned long left;
	unsigned long calls;
};

/**
 * struct target - A function that is called and probed
 * @symbol:	Its symbol.
 * @function:	The function.
 * @twin:	A copy of it that is never probed, and so returns the right result.
 * @size:	Its size in bytes.
 * @claim:	Held by the prober that has probes in it.
 * @closed:	Whether hitters keep out of it. Changed by the prober.
 * @counts:	The counts of each CPU.
 */
struct target {
	const char *symbol;
	u64 (*function)(u64 arg);
	u64 (*twin)(u64 arg);
	unsigned long size;
	struct mutex claim;	/* taken before all other locks */
	bool closed;
	struct target_counts __percpu *counts;
};

/* The targets have a static branch, and a static call of either of these. */
DECLARE_STATIC_KEY_FALSE(kt_key);
u64 kt_double(u64 arg);
u64 kt_add_itself(u64 arg);
DECLARE_STATIC_CALL(kt_double, kt_double);

extern struct target kt_targets[TARGETS];
extern u64 (*const kt_traced[BODIES])(u64 arg);
extern u64 (*const kt_plain[BODIES])(u64 arg);
extern u64 (*const kt_twins[BODIES])(u64 arg);

int kt_targets_init(void);
void kt_targets_exit(void);
int kt_flip_branches(void *unused);
bool kt_call(struct target *t, u64 arg);
struct target *kt_claim(struct rnd_state *rnd, unsigned int first);
void kt_release(struct target *t);
unsigned long kt_close(struct target *t);
void kt_open(struct target *t);
unsigned long kt_calls(const struct target *t);

/**
 * struct kt_stats - How often something was done, for the statistics
 * @windows:	The handlers of a probe were called in a window.
 * @churns:	Probers have registered probes elsewhere, or that are refused.
 * @arrays:	An array of probes was registered.
 * @refusals:	A registration that must fail has failed.
 * @deaths:	A task has exited with the instance of a return probe.
 * @switches:	All probes were disarmed and armed.
 * @flips:	Static branches and calls in the targets were changed.
 * @shortages:	An allocation of a prober has failed.
 * @enomems:	A prober's call has failed for that.
 */
struct kt_stats {
	atomic_long_t windows;
	atomic_long_t churns;
	atomic_long_t arrays;
	atomic_long_t refusals;
	atomic_long_t deaths;
	atomic_long_t switches;
	atomic_long_t flips;
	atomic_long_t shortages;
	atomic_long_t enomems;
};

extern struct kt_stats kt_stats;
extern struct rw_semaphore kt_armed;

bool kt_must_stop(void);
void kt_seed(struct rnd_state *rnd, unsigned int thread);
u32 kt_below(struct rnd_state *rnd, u32 limit);
unsigned int kt_choose(struct rnd_state *rnd, const unsigned int *weights, unsigned int n);
bool kt_mix_is_valid(const char *name, const unsigned int *weights, unsigned int given,
		     unsigned int n);
void kt_sleep(struct rnd_state *rnd);
void kt_expect_armed(const void *addr);
__printf(1, 2) void kt_fail(const char *format, ...);

#define KT_EXPECT(condition, format, ...)				\
({									\
	bool met_ = (condition);					\
									\
	if (!met_)							\
		kt_fail("%s: " format, #condition, ##__VA_ARGS__);	\
	met_;								\
})

/* Where hitters call targets. */
enum kt_context { TASK, SOFTIRQ, HRTIMER, IRQ_WORK, NMI, CONTEXTS };

extern const char *const kt_context_names[CONTEXTS];

int kt_hitters_init(void);
void kt_hitters_exit(void);
int kt_hitter(void *index);
unsigned long kt_calls_in_context(enum kt_context context);

/* Their trampolines are assembly code. */
#if defined(CONFIG_X86_64) && defined(CONFIG_DYNAMIC_FTRACE_WITH_DIRECT_CALLS)
#define HAVE_DIRECT_CALLS
void kt_direct_0(void);
void kt_direct_1(void);
int kt_call_directly(void *index);
unsigned long kt_direct_calls(void);
#else
static inline unsigned long kt_direct_calls(void) { return 0; }
#endif

void kt_shortages_init(void);
void kt_begin_shortage(struct rnd_state *rnd);
int kt_end_shortage(int err);
bool kt_may_fail_with(int err);
void kt_expect_unlinked(const struct kprobe *kp);

/* Threads: probers and what disturbs them. The argument is the number of the thread. */
int kt_windows(void *index);
bool kt_windows_are_valid(void);
void kt_print_kinds(void);
void kt_expect_kinds(void);
int kt_churn(void *index);
bool kt_churn_is_valid(void);
int kt_deaths(void *index);
int kt_switches(void *index);
void kt_switches_init(void);
bool kt_jumps_are_permitted(void);

#endif /* _KPROBES_TORTURE_H */
