// SPDX-License-Identifier: GPL-2.0
/* Registrations of several probes in one call */
#include "transcript.h"

#include <linux/errno.h>
#include <linux/sprintf.h>
#include <linux/string.h>

/* Place a probe according to a letter of an array's description. */
static void transcript_place_letter(struct probe *probe, char letter)
{
	struct kprobe *p = &probe->kp;

	p->symbol_name = "transcript_body";
	switch (letter) {
	case 'm':	/* mov */
		p->offset = ENTRY_BYTES + 1;
		break;
	case 'a':	/* add */
		p->offset = ENTRY_BYTES + 6;
		break;
	case 'f':	/* ftrace */
		p->symbol_name = "transcript_traced";
		break;
	case 'D':	/* disabled */
		p->offset = ENTRY_BYTES + 1;
		p->flags = KPROBE_FLAG_DISABLED;
		break;
	case 'x':	/* -ENOENT */
		p->symbol_name = "no_such_function";
		break;
	case 'b':	/* -EILSEQ */
		p->offset = ENTRY_BYTES + 2;
		break;
	case 'o':	/* -EOPNOTSUPP */
		p->symbol_name = "transcript_odd";
		p->offset = ENTRY_BYTES + 2;
		break;
	case 'n':	/* -EINVAL */
		p->symbol_name = "exc_int3";
		break;
	case 'B':	/* -EINVAL: symbol and address */
		p->addr = (kprobe_opcode_t *)transcript_body;
		break;
	}
}

static void transcript_array(const char *letters)
{
	struct kprobe *array[PROBES];
	int n = strlen(letters), err;
	char what[8];

	transcript_init_probes();
	for (int i = 0; i < n; i++) {
		array[i] = &probes[i].kp;
		/* Twice the same probe. */
		if (letters[i] == '=')
			array[i] = array[i - 1];
		else
			transcript_place_letter(&probes[i], letters[i]);
	}
	err = register_kprobes(array, n);
	pr_info("array %s: %s\n", letters, transcript_error(err));
	for (int i = 0; i < n; i++) {
		snprintf(what, sizeof(what), "%d", i);
		transcript_log_probe(what, array[i]);
	}
	transcript_call_probed();
	transcript_log_events("hit");
	if (err)
		return;
	unregister_kprobes(array, n);
	for (int i = 0; i < n; i++) {
		snprintf(what, sizeof(what), "%d", i);
		transcript_log_probe(what, array[i]);
	}
	transcript_call_probed();
	transcript_log_events("hit");
}

int transcript_arrays(void)
{
	static const char * const arrays[] = {
		"m", "ma", "am", "mm", "mmm", "maf", "ff", "fmfa", "D", "Dm", "mD", "Df",
		"x", "b", "o", "n", "B",
		"mx", "xm", "mb", "bm", "mo", "om", "mn", "nm", "mB", "Bm", "fx",
		"fo",
		"xb", "bx", "xo", "ox", "bo", "ob",
		"xn", "nx", "bn", "nb", "on", "no", "mxb", "mbx",
		"mobx", "mxob", "m=", "f=", "ma=",
	};
	struct kprobe *one = &probes[0].kp;

	for (unsigned int i = 0; i < ARRAY_SIZE(arrays); i++)
		transcript_array(arrays[i]);
	transcript_init_probes();
	pr_info("array of 0: %s\n", transcript_error(register_kprobes(&one, 0)));
	pr_info("array of -1: %s\n", transcript_error(register_kprobes(&one, -1)));
	unregister_kprobes(&one, 0);
	unregister_kprobes(&one, -1);
	transcript_log_probe("after unregistering 0 and -1 probes", one);
	return 0;
}
