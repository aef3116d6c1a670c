// SPDX-License-Identifier: GPL-2.0
/* Return probes */
#include "transcript.h"

#include <linux/delay.h>
#include <linux/limits.h>
#include <linux/ptrace.h>
#include <linux/sprintf.h>
#include <linux/string.h>

struct return_probe return_probes[PROBES];

/* NULL if the return probe is being unregistered. */
static __always_inline struct return_probe *probe_of_call(struct kretprobe_instance *ri)
{
	struct kretprobe *rp = get_kretprobe(ri);

	return rp ? container_of(rp, struct return_probe, rp) : NULL;
}

static notrace int transcript_entry_handler(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct return_probe *probe = probe_of_call(ri);

	if (!probe)
		return 0;
	transcript_add_event('e', probe->number);
	if (probe->rp.data_size)
		memset(ri->data, probe->number, probe->rp.data_size);
	return probe->ignores;
}

NOKPROBE_SYMBOL(transcript_entry_handler);

static notrace int transcript_return_handler(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct return_probe *probe = probe_of_call(ri);
	size_t size;

	if (!probe)
		return 0;
	size = probe->rp.data_size;
	transcript_add_event('r', probe->number);
	transcript_add_event('=', regs_return_value(regs));
	if (size && probe->rp.entry_handler && ri->data[size - 1] != probe->number)
		transcript_add_event('?', probe->number);
	return 0;
}

NOKPROBE_SYMBOL(transcript_return_handler);

void transcript_init_return_probes(const char *symbol)
{
	memset(return_probes, 0, sizeof(return_probes));
	for (int i = 0; i < PROBES; i++) {
		struct return_probe *probe = &return_probes[i];

		probe->number = i;
		INIT_LIST_HEAD(&probe->rp.kp.list);
		probe->rp.kp.symbol_name = symbol;
		probe->rp.kp.nmissed = 77;
		probe->rp.kp.opcode = 0x5a;
		probe->rp.nmissed = 99;
		probe->rp.handler = transcript_return_handler;
		probe->rp.entry_handler = transcript_entry_handler;
	}
}

void transcript_log_return_probe(const char *what, const struct kretprobe *rp)
{
	transcript_log_probe(what, &rp->kp);
	pr_info("    %s, calls: maxactive %d, nmissed %d, data_size %zu, post handler %s\n",
		what, rp->maxactive, rp->nmissed, rp->data_size,
		rp->kp.post_handler ? "set" : "NULL");
}

static void transcript_call_returns(void)
{
	transcript_traced(1);
	transcript_body();
	transcript_recurse(4);
	transcript_log_events("hit");
}

/* Register return probe 0, call the functions, and unregister it. */
static void transcript_try_return_probe(const char *what)
{
	struct kretprobe *rp = &return_probes[0].rp;
	int err = register_kretprobe(rp);

	pr_info("return probe, %s: %s\n", what, transcript_error(err));
	transcript_log_return_probe("after it", rp);
	if (err)
		return;
	transcript_call_returns();
	transcript_log_return_probe("used", rp);
	unregister_kretprobe(rp);
	transcript_log_return_probe("unregistered", rp);
	transcript_call_returns();
}

static void transcript_return_places(void)
{
	static const struct {
		const char *symbol;
		unsigned int offset;
	} places[] = {
		{ "transcript_traced", 0 }, { "transcript_traced", 1 }, { "transcript_traced", 4 },
		{ "transcript_traced", 9 }, { "transcript_body", 0 },
		{ "transcript_body", ENTRY_BYTES }, { "transcript_body", ENTRY_BYTES + 1 },
		{ "transcript_body", ENTRY_BYTES + 2 }, { "no_such_function", 0 },
		{ "exc_int3", 0 }, { "survey_data", 0 }, { NULL, 0 }, { "transcript_recurse", 0 },
	};
	char what[64];

	for (unsigned int i = 0; i < ARRAY_SIZE(places); i++) {
		transcript_init_return_probes(places[i].symbol);
		return_probes[0].rp.kp.offset = places[i].offset;
		snprintf(what, sizeof(what), "%s+%#x", places[i].symbol ?: "NULL",
			 places[i].offset);
		transcript_try_return_probe(what);
	}
	transcript_init_return_probes(NULL);
	return_probes[0].rp.kp.addr = (kprobe_opcode_t *)transcript_traced;
	transcript_try_return_probe("an address");
	transcript_init_return_probes("transcript_traced");
	return_probes[0].rp.kp.addr = (kprobe_opcode_t *)transcript_traced;
	transcript_try_return_probe("an address and a symbol");
	transcript_init_return_probes("transcript_traced");
	return_probes[0].rp.kp.flags = KPROBE_FLAG_DISABLED;
	transcript_try_return_probe("flag DISABLED");
}

static void transcript_return_sizes(void)
{
	static const int maxactives[] = { 1, 2, 3, 5, 100, 0, -1, INT_MIN, INT_MAX, 1 << 30 };
	static const size_t data_sizes[] = { 0, 1, 8, 4096, 4097, 1 << 20, SIZE_MAX };
	char what[64];

	for (unsigned int i = 0; i < ARRAY_SIZE(maxactives); i++) {
		transcript_init_return_probes("transcript_recurse");
		return_probes[0].rp.maxactive = maxactives[i];
		snprintf(what, sizeof(what), "maxactive %d", maxactives[i]);
		transcript_try_return_probe(what);
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(data_sizes); i++) {
		transcript_init_return_probes("transcript_traced");
		return_probes[0].rp.data_size = data_sizes[i];
		snprintf(what, sizeof(what), "data_size %zu", data_sizes[i]);
		transcript_try_return_probe(what);
	}
	transcript_init_return_probes("transcript_recurse");
	return_probes[0].ignores = true;
	return_probes[0].rp.maxactive = 1;
	transcript_try_return_probe("ignored calls");
	transcript_init_return_probes("transcript_traced");
	return_probes[0].rp.entry_handler = NULL;
	transcript_try_return_probe("no entry handler");
	transcript_init_return_probes("transcript_traced");
	return_probes[0].rp.handler = NULL;
	transcript_try_return_probe("no handler");
	transcript_init_return_probes("transcript_traced");
	return_probes[0].rp.kp.pre_handler = transcript_pre_handler;
	return_probes[0].rp.kp.post_handler = transcript_post_handler;
	transcript_try_return_probe("pre and post handler");
}

/* Several return probes at one function, and with @plain a probe. */
static void transcript_return_order(const char *symbol, bool plain)
{
	struct kretprobe *array[PROBES];
	int err;

	transcript_init_return_probes(symbol);
	transcript_init_probes();
	pr_info("return probes of %s%s\n", symbol, plain ? ", and a probe" : "");
	for (int i = 0; i < 3; i++) {
		err = register_kretprobe(&return_probes[i].rp);
		pr_info("  %d: %s\n", i, transcript_error(err));
		if (i || !plain)
			continue;
		probes[0].kp.symbol_name = symbol;
		/* Not at ftrace sites, see scripts[]. */
		if (!strcmp(symbol, "transcript_body"))
			probes[0].kp.post_handler = transcript_post_handler;
		pr_info("  probe: %s\n", transcript_error(register_kprobe(&probes[0].kp)));
	}
	if (hit_delay_ms)
		msleep(hit_delay_ms);
	transcript_call_returns();
	pr_info("  disable 1: %s\n", transcript_error(disable_kretprobe(&return_probes[1].rp)));
	transcript_call_returns();
	pr_info("  enable 1: %s\n", transcript_error(enable_kretprobe(&return_probes[1].rp)));
	return_probes[1].ignores = true;
	transcript_call_returns();
	unregister_kretprobe(&return_probes[0].rp);
	transcript_call_returns();
	for (int i = 0; i < 3; i++) {
		array[i] = &return_probes[i].rp;
		transcript_log_return_probe("used", array[i]);
	}
	unregister_kretprobes(array + 1, 2);
	transcript_call_returns();
	if (plain)
		unregister_kprobe(&probes[0].kp);

	transcript_init_return_probes(symbol);
	err = register_kretprobes(array, 3);
	pr_info("  array: %s\n", transcript_error(err));
	transcript_call_returns();
	if (!err)
		unregister_kretprobes(array, 3);
	transcript_init_return_probes(symbol);
	return_probes[1].rp.kp.symbol_name = "no_such_function";
	return_probes[2].rp.data_size = 5000;
	err = register_kretprobes(array, 3);
	pr_info("  array with two bad return probes: %s\n", transcript_error(err));
	for (int i = 0; i < 3; i++)
		transcript_log_return_probe("after it", array[i]);
	transcript_call_returns();
	pr_info("  array of 0: %s\n", transcript_error(register_kretprobes(array, 0)));
	pr_info("  array of -1: %s\n", transcript_error(register_kretprobes(array, -1)));
}

int transcript_returns(void)
{
	transcript_return_places();
	transcript_return_sizes();
	for (int plain = 0; plain < 2; plain++) {
		transcript_return_order("transcript_traced", plain);
		transcript_return_order("transcript_body", plain);
		transcript_return_order("transcript_recurse", plain);
	}
	return 0;
}
