// SPDX-License-Identifier: GPL-2.0
/* Probes in the text of a module that is unloaded and loaded again */
#include "transcript.h"

static int transcript_log_module_probes(const char *what)
{
	pr_info("%s\n", what);
	for (int i = 0; i < PROBES; i++)
		transcript_log_probe(what, &probes[i].kp);
	transcript_log_return_probe(what, &return_probes[0].rp);
	return 0;
}

/* Four probes on a function's entry, 2 disabled, 3 with a post handler; a return probe. */
int transcript_going(void)
{
	transcript_init_probes();
	transcript_init_return_probes(victim);
	for (int i = 0; i < PROBES; i++) {
		probes[i].kp.symbol_name = victim;
		if (i == 3)
			probes[i].kp.post_handler = transcript_post_handler;
		pr_info("%d: %s\n", i, transcript_error(register_kprobe(&probes[i].kp)));
	}
	pr_info("disable 2: %s\n", transcript_error(disable_kprobe(&probes[2].kp)));
	pr_info("return probe: %s\n", transcript_error(register_kretprobe(&return_probes[0].rp)));
	return transcript_log_module_probes("going");
}

int transcript_gone(void)
{
	transcript_log_module_probes("gone");
	for (int i = 0; i < PROBES; i++)
		pr_info("enable %d: %s\n", i, transcript_error(enable_kprobe(&probes[i].kp)));
	pr_info("disable 0: %s\n", transcript_error(disable_kprobe(&probes[0].kp)));
	pr_info("disable 2: %s\n", transcript_error(disable_kprobe(&probes[2].kp)));
	pr_info("disable the return probe: %s\n",
		transcript_error(disable_kretprobe(&return_probes[0].rp)));
	transcript_log_module_probes("changed");
	for (int i = 0; i < PROBES; i += 2)
		unregister_kprobe(&probes[i].kp);
	return transcript_log_module_probes("two unregistered");
}

/* The module has been loaded again. */
int transcript_back(void)
{
	transcript_log_module_probes("back");
	pr_info("enable 1: %s\n", transcript_error(enable_kprobe(&probes[1].kp)));
	for (int i = 0; i < PROBES; i += 2) {
		probes[i].kp.addr = NULL;
		probes[i].kp.symbol_name = victim;
		probes[i].kp.offset = 0;
		pr_info("%d: %s\n", i, transcript_error(register_kprobe(&probes[i].kp)));
	}
	transcript_log_module_probes("registered again");
	for (int i = 0; i < PROBES; i++)
		unregister_kprobe(&probes[i].kp);
	unregister_kretprobe(&return_probes[0].rp);
	return transcript_log_module_probes("unregistered");
}
