// SPDX-License-Identifier: GPL-2.0
/* Probes and their handlers */
#include "transcript.h"

#include <linux/ptrace.h>
#include <linux/string.h>

struct probe probes[PROBES];

notrace int transcript_pre_handler(struct kprobe *p, struct pt_regs *regs)
{
	struct probe *probe = container_of(p, struct probe, kp);

	transcript_add_event('a', probe->number);
	if (probe->calls)
		probe->calls(1);
	if (!probe->skips)
		return 0;
	instruction_pointer_set(regs, (unsigned long)p->addr + probe->skips);
	return 1;
}

NOKPROBE_SYMBOL(transcript_pre_handler);

notrace void transcript_post_handler(struct kprobe *p, struct pt_regs *regs, unsigned long flags)
{
	transcript_add_event('z', container_of(p, struct probe, kp)->number);
}

NOKPROBE_SYMBOL(transcript_post_handler);

/* Initialise a probe with values that no registration sets, so that changes show. */
static void transcript_init_probe(struct probe *probe)
{
	memset(probe, 0, sizeof(*probe));
	INIT_LIST_HEAD(&probe->kp.list);
	probe->number = probe - probes;
	probe->kp.pre_handler = transcript_pre_handler;
	probe->kp.nmissed = 77;
	probe->kp.opcode = 0x5a;
}

void transcript_init_probes(void)
{
	for (unsigned int i = 0; i < PROBES; i++)
		transcript_init_probe(&probes[i]);
}

void transcript_call_probed(void)
{
	transcript_body();
	transcript_traced(1);
}
