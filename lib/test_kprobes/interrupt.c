// SPDX-License-Identifier: GPL-2.0
/* A timer interrupt that hits probes, at a moment that the test chooses; an NMI. */
#include <linux/delay.h>
#include <linux/irqflags.h>
#include <linux/preempt.h>
#include <linux/sched.h>

#include "interrupt.h"
#include "probes.h"

#ifdef CONFIG_X86_LOCAL_APIC
#include <asm/apic.h>
#include <asm/irq_vectors.h>
#include "asm/nmi.h"	/* <linux/nmi.h> does not always include it */
#endif

/**
 * struct interruption - A timer interrupt that calls TARGET
 * @timer:	The timer.
 * @hardirq:	Whether its function ran in hard interrupt context.
 * @done:	Whether its function ran.
 * @wrong:	Whether TARGET returned a wrong result.
 */
static struct interruption {
	struct hrtimer timer;
	bool hardirq;
	bool done;
	bool wrong;
} interruption;

/* A timer's function, for kpt_prepare_interrupt(). */
enum hrtimer_restart kpt_interrupt(struct hrtimer *timer)
{
	interruption.hardirq = in_hardirq();
	interruption.wrong = kpt_call(TARGET) != TARGET->result;
	WRITE_ONCE(interruption.done, true);
	return HRTIMER_NORESTART;
}

/* Take the interrupt on this CPU. Preemption is off, interrupts are on. */
void kpt_wait_for_interrupt(void)
{
	interruption.done = false;
	hrtimer_start(&interruption.timer, ns_to_ktime(100 * NSEC_PER_USEC),
		      HRTIMER_MODE_REL_PINNED_HARD);
	kpt_spin_until(&interruption.done, MSEC_PER_SEC);
}

/* Check the interrupt of kpt_wait_for_interrupt(). */
void kpt_expect_interrupt(struct kunit *test)
{
	hrtimer_cancel(&interruption.timer);
	KUNIT_ASSERT_TRUE(test, interruption.done);
	KUNIT_EXPECT_TRUE(test, interruption.hardirq);
	KUNIT_EXPECT_FALSE(test, interruption.wrong);
}

void kpt_prepare_interrupt(enum hrtimer_restart (*function)(struct hrtimer *timer))
{
	hrtimer_setup(&interruption.timer, function, CLOCK_MONOTONIC,
		      HRTIMER_MODE_REL_PINNED_HARD);
}

/* Register the probes that the interrupt hits: 'c' has opted in, 'd' is disabled. */
void kpt_register_for_interrupt(struct kunit *test)
{
	struct kprobe *b = kpt_post_probe('b', TARGET->symbol);
	struct kprobe *c = kpt_post_probe('c', TARGET->symbol);
	struct kprobe *d = kpt_probe('d', TARGET->symbol);

	kpt_prepare_interrupt(kpt_interrupt);
	c->flags = KPROBE_FLAG_REENTRANT;
	d->flags = KPROBE_FLAG_REENTRANT | KPROBE_FLAG_DISABLED;
	ASSERT_REGISTERED(test, b);
	ASSERT_REGISTERED(test, c);
	ASSERT_REGISTERED(test, d);
}

/* Take the interrupt, unless interrupts are off. Returns true if they are off. */
bool kpt_wait_unless_irqs_off(void)
{
	bool off = irqs_disabled();

	if (!off)
		kpt_wait_for_interrupt();
	return off;
}

/* For @act. Sets @p->data if interrupts are off. */
int kpt_act_wait_for_interrupt(struct test_probe *p, struct pt_regs *regs)
{
	p->data = kpt_wait_unless_irqs_off();
	return 0;
}

/* Call @place, whose probe 'a' takes the interrupt like this, and check the journal. */
void kpt_expect_interrupted_call(struct kunit *test, const struct place *place,
				 const char *events)
{
	kpt_clear_journal();
	KUNIT_EXPECT_EQ(test, kpt_call(place), place->result);
	if (kpt_test_probe('a')->data)
		SKIP_REST(test, "handlers run with interrupts off");
	kpt_expect_interrupt(test);
	KUNIT_EXPECT_STREQ(test, kpt_journal, events);
}

#ifdef CONFIG_X86_LOCAL_APIC
static void (*nmi_function)(void);

static int run_nmi_function(unsigned int reason, struct pt_regs *regs)
{
	typeof(nmi_function) function = READ_ONCE(nmi_function);

	if (!function || current != kpt_tester)
		return NMI_DONE;
	function();
	WRITE_ONCE(nmi_function, NULL);
	return NMI_HANDLED;
}

bool kpt_can_send_nmi(void)
{
	return boot_cpu_has(X86_FEATURE_APIC);
}

/* Call @function in an NMI of this CPU. */
void kpt_call_in_nmi(void (*function)(void))
{
	if (register_nmi_handler(NMI_LOCAL, run_nmi_function, 0, "kprobes_test"))
		return;
	scoped_guard(preempt) {
		WRITE_ONCE(nmi_function, function);
		__apic_send_IPI_mask(cpumask_of(smp_processor_id()), NMI_VECTOR);
		for (unsigned int us = 0; READ_ONCE(nmi_function) && us < USEC_PER_SEC; us++)
			udelay(1);
	}
	unregister_nmi_handler(NMI_LOCAL, "kprobes_test");
}
#endif
