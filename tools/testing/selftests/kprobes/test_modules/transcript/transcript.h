/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _KPROBE_TRANSCRIPT_H
#define _KPROBE_TRANSCRIPT_H

#define pr_fmt(fmt)	KBUILD_MODNAME ": " fmt

#include <linux/kprobes.h>
#include <linux/printk.h>
#include <linux/types.h>

/* The size of the ENDBR instruction on entry to a function. */
#define ENTRY_BYTES	(IS_ENABLED(CONFIG_X86_KERNEL_IBT) ? 4 : 0)

#define PROBES	4

/**
 * struct probe - A probe, and the actions of its pre handler
 * @kp:		The probe.
 * @number:	Its index in probes[], which names it in the log.
 * @skips:	Number of bytes to skip; or 0 to execute the probed instruction.
 * @calls:	A function to call; or NULL.
 * @disabled:	True to register the probe disabled.
 */
struct probe {
	struct kprobe kp;
	int number;
	unsigned int skips;
	int (*calls)(int value);
	bool disabled;
};

/**
 * struct return_probe - A return probe
 * @rp:		The return probe.
 * @number:	Its index in return_probes[], which names it in the log.
 * @ignores:	True if the entry handler asks for the call to be ignored.
 */
struct return_probe {
	struct kretprobe rp;
	int number;
	bool ignores;
};

/* main.c */
extern char *victim;
extern unsigned int hit_delay_ms;
/* The address of the module's init text, which has been freed. */
extern void *init_text;

/* probed.c */
extern int survey_data;
int transcript_body(void);
int transcript_traced(int value);
int transcript_recurse(int depth);
int transcript_survey(int value);

/* log.c */
const char *transcript_error(int err);
bool transcript_is_linked(const struct kprobe *p);
void transcript_log_probe(const char *what, const struct kprobe *p);
void transcript_add_event(char kind, int number);
void transcript_log_events(const char *what);

/* probe.c */
extern struct probe probes[PROBES];
int transcript_pre_handler(struct kprobe *p, struct pt_regs *regs);
void transcript_post_handler(struct kprobe *p, struct pt_regs *regs, unsigned long flags);
void transcript_init_probes(void);
void transcript_call_probed(void);

/* returns.c */
extern struct return_probe return_probes[PROBES];
void transcript_init_return_probes(const char *symbol);
void transcript_log_return_probe(const char *what, const struct kretprobe *rp);

/* The chapters. Each returns 0 or an error. */
int transcript_errors(void);
int transcript_survey_all(void);
int transcript_arrays(void);
int transcript_states(void);
int transcript_nested(void);
int transcript_returns(void);
int transcript_going(void);
int transcript_gone(void);
int transcript_back(void);

#endif
