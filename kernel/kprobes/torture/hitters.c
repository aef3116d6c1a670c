// SPDX-License-Identifier: GPL-2.0
/* Hitters: threads that call targets, in tasks and in the interrupts that they cause. */
#include <linux/cpufeature.h>
#include <linux/cpumask.h>
#include <linux/hash.h>
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/irq_work.h>
#include <linux/kernel.h>
#include <linux/percpu.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/timer.h>
#include <linux/torture.h>

#include "torture.h"

#ifdef CONFIG_X86_LOCAL_APIC
#include <asm/apic.h>
#include <asm/irq_vectors.h>
#include "asm/nmi.h"	/* <linux/nmi.h> does not always include it */
#endif

const char *const kt_context_names[CONTEXTS] = {
	"task", "softirq", "hrtimer", "irq_work", "NMI"
};

/**
 * struct hitter - A thread that calls targets
 * @timer:	Calls targets in a softirq.
 * @hrtimer:	Calls targets in a hard interrupt.
 * @irq_work:	Calls targets in an interrupt that follows at once.
 */
struct hitter {
	struct timer_list timer;
	struct hrtimer hrtimer;
	struct irq_work irq_work;
};

static struct hitter *hitters;
static atomic_long_t counts[CONTEXTS];

/* Call some targets. In an NMI no lock may be taken, so the choice is a hash. */
static void call_targets(enum kt_context context, unsigned int calls)
{
	unsigned long n = atomic_long_add_return(calls, &counts[context]);

	while (calls--) {
		u64 choice = ((u64)n-- * CONTEXTS + context) * GOLDEN_RATIO_64;

		kt_call(&kt_targets[(choice >> 56) % TARGETS], choice >> 16);
	}
}

static void hit_in_softirq(struct timer_list *timer)
{
	call_targets(SOFTIRQ, 8);
}

static enum hrtimer_restart hit_in_hrtimer(struct hrtimer *timer)
{
	call_targets(HRTIMER, 8);
	return HRTIMER_NORESTART;
}

static void hit_in_irq_work(struct irq_work *work)
{
	call_targets(IRQ_WORK, 8);
}

#ifdef CONFIG_X86_LOCAL_APIC
static DEFINE_PER_CPU(bool, nmi_sent);

static int hit_in_nmi(unsigned int reason, struct pt_regs *regs)
{
	if (!this_cpu_read(nmi_sent))
		return NMI_DONE;
	this_cpu_write(nmi_sent, false);
	call_targets(NMI, 4);
	return NMI_HANDLED;
}

static int start_nmis(void)
{
	return register_nmi_handler(NMI_LOCAL, hit_in_nmi, 0, "kprobes_torture");
}

static void end_nmis(void)
{
	unregister_nmi_handler(NMI_LOCAL, "kprobes_torture");
}

static void send_nmi(void)
{
	guard(preempt)();
	if (!boot_cpu_has(X86_FEATURE_APIC) || this_cpu_read(nmi_sent))
		return;
	this_cpu_write(nmi_sent, true);
	__apic_send_IPI_mask(cpumask_of(smp_processor_id()), NMI_VECTOR);
}
#else
static int start_nmis(void) { return 0; }
static void end_nmis(void) { }
static void send_nmi(void) { }
#endif

static void cause_interrupt(struct hitter *h, struct rnd_state *rnd)
{
	switch (kt_below(rnd, CONTEXTS)) {
	case SOFTIRQ:
		mod_timer(&h->timer, jiffies + 1);
		break;
	case HRTIMER:
		hrtimer_start(&h->hrtimer, ns_to_ktime(kt_below(rnd, 50 * NSEC_PER_USEC)),
			      HRTIMER_MODE_REL_HARD);
		break;
	case IRQ_WORK:
		irq_work_queue(&h->irq_work);
		break;
	case NMI:
		send_nmi();
		break;
	}
}

/* Thread: call targets, and cause interrupts while it does. */
int kt_hitter(void *index)
{
	struct hitter *h = &hitters[(unsigned long)index];
	struct rnd_state rnd;

	kt_seed(&rnd, (unsigned long)index);
	while (!kt_must_stop()) {
		cause_interrupt(h, &rnd);
		call_targets(TASK, 64);
		stutter_wait("kt_hitter");
		/* The others want to run, and stops of the tick to happen. */
		if (!kt_below(&rnd, 8))
			torture_hrtimeout_us(200, 1000, NULL);
		cond_resched();
	}
	timer_delete_sync(&h->timer);
	hrtimer_cancel(&h->hrtimer);
	irq_work_sync(&h->irq_work);
	torture_kthread_stopping("kt_hitter");
	return 0;
}

unsigned long kt_calls_in_context(enum kt_context context)
{
	return atomic_long_read(&counts[context]);
}

int kt_hitters_init(void)
{
	hitters = kcalloc(nr_cpu_ids, sizeof(*hitters), GFP_KERNEL);
	if (!hitters)
		return -ENOMEM;
	for (unsigned int i = 0; i < nr_cpu_ids; i++) {
		timer_setup(&hitters[i].timer, hit_in_softirq, 0);
		hrtimer_setup(&hitters[i].hrtimer, hit_in_hrtimer, CLOCK_MONOTONIC,
			      HRTIMER_MODE_REL_HARD);
		init_irq_work(&hitters[i].irq_work, hit_in_irq_work);
	}
	return start_nmis();
}

/* The threads have ended. */
void kt_hitters_exit(void)
{
	if (!hitters)
		return;
	end_nmis();
	kfree(hitters);
}
