// SPDX-License-Identifier: GPL-2.0
/* Lines of the log that are the same on each boot */
#include "transcript.h"

#include <linux/errno.h>
#include <linux/kallsyms.h>
#include <linux/poison.h>
#include <linux/sprintf.h>
#include <linux/string.h>

const char *transcript_error(int err)
{
	static const struct {
		int err;
		const char *name;
	} names[] = {
		{ 0, "0" }, { -EINVAL, "-EINVAL" }, { -ENOENT, "-ENOENT" }, { -EILSEQ, "-EILSEQ" },
		{ -EOPNOTSUPP, "-EOPNOTSUPP" }, { -ENOMEM, "-ENOMEM" }, { -E2BIG, "-E2BIG" },
		{ -EBUSY, "-EBUSY" }, { -EEXIST, "-EEXIST" }, { -ERANGE, "-ERANGE" },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(names); i++)
		if (names[i].err == err)
			return names[i].name;
	return "another error";
}

/* Symbol and offset of an address, without the parts that differ between builds. */
static const char *transcript_symbol(const void *addr, char *buf, size_t size)
{
	if (!addr)
		return "NULL";
	snprintf(buf, size, "%pS", addr);
	if (buf[0] == '0')
		return "no symbol";
	*strchrnul(buf, '/') = '\0';
	return buf;
}

/* The kprobes of the base poison the links of an unregistered probe. */
bool transcript_is_linked(const struct kprobe *p)
{
	return (!hlist_unhashed(&p->hlist) && p->hlist.pprev != LIST_POISON2) ||
	       (p->list.next && p->list.prev != LIST_POISON2 && !list_empty(&p->list));
}

/* Log all fields that a caller can read, but not KPROBE_FLAG_OPTIMIZED, which takes time. */
void transcript_log_probe(const char *what, const struct kprobe *p)
{
	char place[KSYM_SYMBOL_LEN];

	/* Where a module was, another one may be, or the same one again. */
	pr_info("    %s: addr %s, offset %#x, symbol %s, opcode %02x, flags%s%s%s%s, nmissed %lu, %slinked\n",
		what, p->flags & KPROBE_FLAG_GONE ? "gone" :
		transcript_symbol(p->addr, place, sizeof(place)), p->offset,
		p->symbol_name ?: "NULL", p->opcode,
		p->flags & KPROBE_FLAG_GONE ? " GONE" : "",
		p->flags & KPROBE_FLAG_DISABLED ? " DISABLED" : "",
		p->flags & KPROBE_FLAG_FTRACE ? " FTRACE" : "",
		p->flags & KPROBE_FLAG_ON_FUNC_ENTRY ? " ON_FUNC_ENTRY" : "",
		p->nmissed, transcript_is_linked(p) ? "" : "not ");
}

/* A log of handler calls in their order. */
static char events[256];
static unsigned int event_bytes;

notrace void transcript_add_event(char kind, int number)
{
	if (event_bytes + 4 > sizeof(events))
		return;
	events[event_bytes++] = ' ';
	events[event_bytes++] = kind;
	events[event_bytes++] = '0' + number;
}

void transcript_log_events(const char *what)
{
	pr_info("    %s:%.*s\n", what, event_bytes, events);
	event_bytes = 0;
}
