// SPDX-License-Identifier: GPL-2.0
/* Registrations of single probes, most of which fail */
#include "transcript.h"

#include <linux/cleanup.h>
#include <linux/kallsyms.h>
#include <linux/kstrtox.h>
#include <linux/slab.h>
#include <linux/sprintf.h>
#include <linux/string.h>
#include <linux/utsname.h>
#include <linux/vmalloc.h>

static const u8 odd_places[] = {
	0, 2, 4, 6, 8, 10, 11, 12, 13, 15, 17, 19, 22, 25, 27, 33, 35, 37, 40, 41,
};

/* Register, log and unregister a probe. */
static void transcript_try_probe(const char *what, struct probe *probe)
{
	int err = register_kprobe(&probe->kp);

	pr_info("%s: %s\n", what, transcript_error(err));
	transcript_log_probe("after it", &probe->kp);
	if (err)
		return;
	unregister_kprobe(&probe->kp);
	transcript_log_probe("unregistered", &probe->kp);
}

static void transcript_try_symbol(const char *symbol, unsigned int offset)
{
	char what[KSYM_NAME_LEN + 16];

	transcript_init_probes();
	probes[0].kp.symbol_name = symbol;
	probes[0].kp.offset = offset;
	snprintf(what, sizeof(what), "symbol %s+%#x", symbol, offset);
	transcript_try_probe(what, &probes[0]);
}

static void transcript_try_addr(const char *what, const void *addr, unsigned int offset)
{
	transcript_init_probes();
	probes[0].kp.addr = (kprobe_opcode_t *)addr;
	probes[0].kp.offset = offset;
	transcript_try_probe(what, &probes[0]);
}

static void transcript_try_flags(const char *what, u32 flags)
{
	transcript_init_probes();
	probes[0].kp.symbol_name = "transcript_body";
	probes[0].kp.flags = flags;
	transcript_try_probe(what, &probes[0]);
}

int transcript_errors(void)
{
	void *heap __free(kfree) = kzalloc(64, GFP_KERNEL);
	static const char * const symbols[] = {
		"transcript_body", "transcript_traced", "kernel_clone", "no_such_function", "",
		"kprobe_transcript:transcript_body", "no_such_module:transcript_body",
		"jiffies", "linux_banner", "survey_data", "start_kernel",
		"exc_int3", "asm_exc_int3",
		"entry_SYSCALL_64", "kprobe_int3_handler", "get_kprobe", "irqentry_nmi_enter",
		"transcript_pre_handler", "__SCT__might_resched",
	};
	static const unsigned int offsets[] = { 1, 2, 3, 4, 5, 7, 0x7fffffff, 0xffffffff };
	void *body = transcript_body, *page = vzalloc(PAGE_SIZE);
	int on_stack = 0;

	for (unsigned int i = 0; i < ARRAY_SIZE(symbols); i++)
		transcript_try_symbol(symbols[i], 0);
	for (unsigned int i = 0; i < ARRAY_SIZE(offsets); i++)
		transcript_try_symbol("transcript_body", offsets[i]);
	for (unsigned int i = 0; i < ARRAY_SIZE(offsets); i++)
		transcript_try_symbol("transcript_traced", offsets[i]);
	for (unsigned int i = 0; i < ARRAY_SIZE(odd_places); i++)
		transcript_try_symbol("transcript_odd", ENTRY_BYTES + odd_places[i]);

	transcript_try_addr("neither symbol nor address", NULL, 0);
	transcript_try_addr("a function's address", transcript_body, 0);
	transcript_try_addr("a function's address and an offset", transcript_body, ENTRY_BYTES + 1);
	transcript_try_addr("a traced function's address", transcript_traced, 0);
	transcript_try_addr("an address and an offset back", body + ENTRY_BYTES + 2, -1);
	transcript_try_addr("an address not on a boundary", body + ENTRY_BYTES + 2, 0);
	transcript_try_addr("address 1", (void *)1, 0);
	transcript_try_addr("an address of user space", (void *)0x400000, 0);
	transcript_try_addr("an address that is not canonical", (void *)(1UL << 62), 0);
	transcript_try_addr("the last address", (void *)-1L, 0);
	transcript_try_addr("the vsyscall page", (void *)0xffffffffff600000, 0);
	transcript_try_addr("data of the module", &survey_data, 0);
	transcript_try_addr("data of the kernel", &init_uts_ns, 0);
	transcript_try_addr("the heap", heap, 0);
	transcript_try_addr("vmalloc", page, 0);
	transcript_try_addr("the stack", &on_stack, 0);
	transcript_try_addr("freed init text of the module", init_text, 0);
	vfree(page);

	transcript_init_probes();
	probes[0].kp.symbol_name = "transcript_body";
	probes[0].kp.addr = (kprobe_opcode_t *)transcript_body;
	transcript_try_probe("both symbol and address", &probes[0]);
	transcript_try_flags("flag DISABLED", KPROBE_FLAG_DISABLED);
	transcript_try_flags("flag GONE", KPROBE_FLAG_GONE);
	transcript_try_flags("flag FTRACE", KPROBE_FLAG_FTRACE);
	transcript_try_flags("flags 0xf", 0xf);
	transcript_init_probes();
	probes[0].kp.symbol_name = "transcript_body";
	probes[0].kp.pre_handler = NULL;
	transcript_try_probe("no handler", &probes[0]);
	transcript_try_symbol("transcript_body", 0);
	probes[0].kp.addr = NULL;
	transcript_try_probe("registered again with the flags as they were left", &probes[0]);
	return 0;
}

int transcript_survey_all(void)
{
	void *function = transcript_survey;
	char name[KSYM_SYMBOL_LEN], *end;
	unsigned long size;

	/* "symbol+0x0/0x12 [module]" */
	snprintf(name, sizeof(name), "%pS", function);
	end = strchrnul(name, '/');
	end[strcspn(end, " ")] = '\0';
	if (kstrtoul(end + !!*end, 0, &size))
		return -EINVAL;
	for (unsigned long offset = 0; offset < size; offset++) {
		int err;

		transcript_init_probes();
		probes[0].kp.addr = function + offset;
		err = register_kprobe(&probes[0].kp);
		pr_info("survey +%#lx: %s, opcode %02x\n", offset, transcript_error(err),
			probes[0].kp.opcode);
		if (!err)
			unregister_kprobe(&probes[0].kp);
	}
	return 0;
}
