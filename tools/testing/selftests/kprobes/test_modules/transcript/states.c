// SPDX-License-Identifier: GPL-2.0
/* Probes at one address that change their states, and hits in handlers */
#include "transcript.h"

#include <linux/delay.h>
#include <linux/errno.h>
#include <linux/string.h>

/**
 * struct site - An address to be probed
 * @name:	Its name in the log.
 * @symbol:	The function.
 * @offset:	Offset in the function.
 * @size:	Size of the instruction in bytes.
 * @jump:	True if the probe can be optimised. Others are left out if @hit_delay_ms is
 *		set.
 */
struct site {
	const char *name;
	const char *symbol;
	unsigned int offset;
	unsigned int size;
	bool jump;
};

static const struct site sites[] = {
	{ "nop", "transcript_body", ENTRY_BYTES, 1, true },
	{ "mov", "transcript_body", ENTRY_BYTES + 1, 5, true },
	{ "add", "transcript_body", ENTRY_BYTES + 6, 3 },
	{ "jmp", "transcript_body", ENTRY_BYTES + 9, 2 },
	{ "popfq", "transcript_body", ENTRY_BYTES + 12, 1 },
	{ "fentry", "transcript_traced", 0, 5 },
};

/*
 * Scripts are sequences of words: a letter and, unless it is c, the number of a probe.
 *
 *	r u e d		register, unregister, enable, disable the probe
 *	c		call the probed functions
 *	D P S N		set up the probe before registration: disabled, with a post handler,
 *			with a pre handler that skips the instruction, without a pre handler
 *	A R		register, unregister the probe and all before it in one call
 *
 * Scripts with a ! are not for ftrace sites: the kprobes of the base warn and hang when a
 * probe with a post handler is added to or removed from an ftrace site with other probes.
 */
static const char * const scripts[] = {
	"r0 c u0 c", "r0 r0 c u0 u0", "u0", "e0", "d0", "r0 e0 c u0", "r0 d0 c d0 e0 c u0",
	"D0 r0 c e0 c u0", "r0 d0 u0 c r0 c u0", "r0 u0 e0 d0", "r0 u0 D0 r0 c u0 r0 c u0",
	"P0 r0 c d0 c e0 c u0", "N0 r0 c u0", "N0 P0 r0 c u0",
	"r0 r1 r2 c u1 c r1 c d0 c d2 c e0 c u2 c d1 c u0 c e1 c u1 c",
	"P0 P1 P2 r0 r1 r2 c d1 c u0 c e1 c u2 c u1 c",
	"!r0 P1 r1 r2 c u1 c P1 r1 c d1 c e1 c u0 u1 u2 c",
	"!N0 P0 r0 r1 c u0 c u1", "D0 r0 r1 c e0 c d1 c u1 c e0 c u0",
	"r0 D1 r1 c e1 c d0 c u0 u1 c", "D0 D1 r0 r1 c e1 e0 c u1 u0",
	"A2 c R2 c", "!P1 A2 c d0 d1 d2 c e2 e1 e0 c R1 c u2 c", "r3 A2 c u3 c R2 c",
	"A3 d3 c R3 c", "r0 r1 d0 d1 c r2 c u2 c e1 c u0 u1",
	"S0 r0 c u0", "S0 P0 r0 c u0",
	"!r0 S1 P1 r1 r2 c u1 c u0 u2", "!S0 r0 r1 P2 r2 c d0 c R2 c",
};

static int transcript_do_word(char word, struct probe *probe, const struct site *site)
{
	struct kprobe *p = &probe->kp, *array[PROBES];
	int n = probe->number + 1;

	for (int i = 0; i < n; i++)
		array[i] = &probes[i].kp;
	switch (word) {
	case 'r':
		return register_kprobe(p);
	case 'u':
		unregister_kprobe(p);
		return 0;
	case 'e':
		return enable_kprobe(p);
	case 'd':
		return disable_kprobe(p);
	case 'D':
		probe->disabled = true;
		return 0;
	case 'P':
		p->post_handler = transcript_post_handler;
		return 0;
	case 'S':
		probe->skips = site->size;
		return 0;
	case 'N':
		p->pre_handler = NULL;
		return 0;
	case 'A':
		return register_kprobes(array, n);
	case 'R':
		unregister_kprobes(array, n);
		return 0;
	default:
		return -ERANGE;
	}
}

/* Set the fields that a caller sets before it registers a probe again. */
static void transcript_place_probe(struct probe *probe, const struct site *site)
{
	if (transcript_is_linked(&probe->kp))
		return;
	probe->kp.addr = NULL;
	probe->kp.symbol_name = site->symbol;
	probe->kp.offset = site->offset;
	probe->kp.flags = probe->disabled ? KPROBE_FLAG_DISABLED : 0;
}

static void transcript_call_delayed(bool changed)
{
	if (changed && hit_delay_ms)
		msleep(hit_delay_ms);
	transcript_call_probed();
	transcript_log_events("hit");
}

static void transcript_script(const struct site *site, const char *script)
{
	bool changed = false;

	if (*script == '!' && !strcmp(site->name, "fentry"))
		return;
	script += *script == '!';
	/*
	 * Skipping popfq would leave its operand on the stack. And the kprobes of the base
	 * continue in the bytes of a jump.
	 */
	if (strchr(script, 'S') && (hit_delay_ms || !strcmp(site->name, "popfq")))
		return;
	pr_info("script at %s: %s\n", site->name, script);
	transcript_init_probes();
	for (; *script; script += strcspn(script, " "), script += strspn(script, " ")) {
		char what[4] = { script[0], script[1] };
		struct probe *probe;
		int err;

		if (*script == 'c') {
			transcript_call_delayed(changed);
			changed = false;
			continue;
		}
		probe = &probes[script[1] - '0'];
		if (*script == 'A')
			for (struct probe *p = probes; p < probe; p++)
				transcript_place_probe(p, site);
		if (strchr("rA", *script))
			transcript_place_probe(probe, site);
		changed = changed || strchr("rAeR", *script);
		err = transcript_do_word(*script, probe, site);
		pr_info("  %s: %s\n", what, transcript_error(err));
		transcript_log_probe(what, &probe->kp);
	}
	for (int i = 0; i < PROBES; i++)
		if (transcript_is_linked(&probes[i].kp))
			pr_info("  %d is still registered\n", i);
}

int transcript_states(void)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(sites); i++) {
		if (hit_delay_ms && !sites[i].jump)
			continue;
		for (unsigned int j = 0; j < ARRAY_SIZE(scripts); j++)
			transcript_script(&sites[i], scripts[j]);
	}
	return 0;
}

static int transcript_call_body(int value)
{
	return transcript_body() + value;
}

/* Let the handler of probe 0 at @outer hit probe 1, and probe 2 if @shared, at @inner. */
static void transcript_nest(const struct site *outer, const struct site *inner, bool shared,
			    bool disabled)
{
	int n = shared ? 3 : 2;

	pr_info("nested: %s in %s,%s%s\n", inner->name, outer->name, shared ? " shared" : "",
		disabled ? " one disabled" : "");
	transcript_init_probes();
	for (int i = 0; i < n; i++) {
		transcript_place_probe(&probes[i], i ? inner : outer);
		probes[i].kp.nmissed = 0;
	}
	probes[0].calls = strcmp(inner->symbol, "transcript_body") ? transcript_traced
								   : transcript_call_body;
	for (int i = 0; i < n; i++)
		pr_info("  %d: %s\n", i, transcript_error(register_kprobe(&probes[i].kp)));
	if (disabled)
		pr_info("  disable 1: %s\n", transcript_error(disable_kprobe(&probes[1].kp)));
	transcript_call_delayed(true);
	for (int i = 0; i < n; i++)
		transcript_log_probe("hit", &probes[i].kp);
	for (int i = 0; i < n; i++)
		unregister_kprobe(&probes[i].kp);
}

int transcript_nested(void)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(sites); i++) {
		if (hit_delay_ms && !sites[i].jump)
			continue;
		for (unsigned int j = 0; j < ARRAY_SIZE(sites); j++) {
			transcript_nest(&sites[i], &sites[j], false, false);
			transcript_nest(&sites[i], &sites[j], true, false);
			transcript_nest(&sites[i], &sites[j], true, true);
		}
	}
	return 0;
}
