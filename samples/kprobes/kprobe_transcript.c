// SPDX-License-Identifier: GPL-2.0
/*
 * What do callers of the probing API see?
 *
 *	insmod kprobe_transcript.ko
 *	echo CHAPTER >/sys/module/kprobe_transcript/parameters/run
 *
 * does things through the public API, good and bad ones, and tells the kernel log
 * a line each. There is nothing in it that changes from boot to boot, so what two
 * kernels say can be compared: see dev/check/transcript. The chapters:
 *
 *	errors		registrations that are refused, with the fields of the probe
 *	survey		a registration at each byte of a function
 *	arrays		several probes in one call, good and bad ones
 *	states		probes at one address: registered, enabled, disabled, hit
 *	nested		a handler that runs into other probes
 *	returns		return probes
 *	going, gone, back	probes in a module: before it goes, after, and when it is
 *			there again; @victim is a function of it
 *
 * See Documentation/trace/kprobes.rst.
 */
#define pr_fmt(fmt)	KBUILD_MODNAME ": " fmt

#include <linux/cleanup.h>
#include <linux/delay.h>
#include <linux/err.h>
#include <linux/jump_label.h>
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/objtool.h>
#include <linux/poison.h>
#include <linux/ptrace.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/utsname.h>
#include <linux/vmalloc.h>

#include <asm/nospec-branch.h>

static char *victim = "bench_nops0";
module_param(victim, charp, 0644);
MODULE_PARM_DESC(victim, "function of another module, for the chapters going, gone and back");

static unsigned int settle;
module_param(settle, uint, 0644);
MODULE_PARM_DESC(settle, "milliseconds from registration to the first hit, so that jumps are in place");

/* ------------------------------------------------------------ what is probed */

/* Its own symbol's first instruction, where the compiler puts one. */
#define ENTRY_BYTES	(IS_ENABLED(CONFIG_X86_KERNEL_IBT) ? 4 : 0)

/* 1: nop; 5: mov; 3: add; 2: jmp; 1: pushfq; 1: popfq */
static noinline notrace int transcript_body(void)
{
	int value;

	asm volatile(".byte 0x90\n\t"
		     ".byte 0xb8, 1, 0, 0, 0\n\t"
		     ".byte 0x83, 0xc0, 2\n\t"
		     ".byte 0xeb, 0\n\t"
		     "pushfq\n\t"
		     "popfq" : "=a" (value) : : "cc");
	return value;
}

static noinline int transcript_traced(int value)
{
	asm volatile("" : "+r" (value));
	return value + 1;
}

static noinline int transcript_inner(int value)
{
	asm volatile("" : "+r" (value));
	return value + 2;
}

static noinline int transcript_recurse(int depth)
{
	int below = depth ? transcript_recurse(depth - 1) : 0;

	asm volatile("" : "+r" (below));
	return below + 1;
}

static DEFINE_STATIC_KEY_FALSE(survey_key);
static int survey_data;

static noinline int transcript_survey(int value)
{
	if (static_branch_unlikely(&survey_key))
		value += transcript_inner(value);
	WARN_ON(value == 12345);
	switch (value) {
	case 1:
		return survey_data;
	case 2:
		survey_data = transcript_traced(value);
		break;
	default:
		survey_data = value / 3;
	}
	return survey_data << (value & 7);
}

/* Never run. The place of each is that of the label in front of it. */
static noinline notrace void transcript_odd(void)
{
	asm volatile("iretq\n\t"		/* 0: 2 bytes */
		     ".byte 0x8e, 0xd0\n\t"	/* 2: mov %eax, %ss */
		     ".byte 0xff, 0x28\n\t"	/* 4: ljmp *(%rax) */
		     ANNOTATE_RETPOLINE_SAFE
		     ".byte 0xff, 0x18\n\t"	/* 6: lcall *(%rax) */
		     "lretq\n\t"		/* 8: 2 bytes */
		     "hlt\n\t"			/* 10 */
		     "cli\n\t"			/* 11 */
		     "sti\n\t"			/* 12 */
		     "int $0x80\n\t"		/* 13: 2 bytes */
		     "ud2\n\t"			/* 15: 2 bytes */
		     "wrmsr\n\t"		/* 17: 2 bytes */
		     "swapgs\n\t"		/* 19: 3 bytes */
		     "sysretq\n\t"		/* 22: 3 bytes */
		     "rep movsb\n\t"		/* 25: 2 bytes */
		     "xbegin .\n\t"		/* 27: 6 bytes */
		     ".byte 0xe3, 0\n\t"	/* 33: jrcxz */
		     "loop .\n\t"		/* 35 */
		     "lock incl (%rax)\n\t"	/* 37: 3 bytes */
		     "int3\n\t"			/* 40 */
		     "nop");			/* 41 */
}

STACK_FRAME_NON_STANDARD(transcript_odd);

static const u8 odd_places[] = {
	0, 2, 4, 6, 8, 10, 11, 12, 13, 15, 17, 19, 22, 25, 27, 33, 35, 37, 40, 41,
};

/* --------------------------------------------------------------- what is told */

static const char *name_of(int err)
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

/* The symbol and offset of an address, without what differs between builds. */
static const char *place_of(const void *addr, char *buf, size_t size)
{
	if (!addr)
		return "NULL";
	snprintf(buf, size, "%pS", addr);
	if (buf[0] == '0')
		return "no symbol";
	*strchrnul(buf, '/') = '\0';
	return buf;
}

/* Linux 6.12 leaves it poisoned when it is unregistered. */
static bool is_linked(const struct kprobe *p)
{
	return (!hlist_unhashed(&p->hlist) && p->hlist.pprev != LIST_POISON2) ||
	       (p->list.next && p->list.prev != LIST_POISON2 && !list_empty(&p->list));
}

/* All that a caller can look at. Whether there is a jump is a matter of time. */
static void tell_probe(const char *what, const struct kprobe *p)
{
	char place[KSYM_SYMBOL_LEN];

	pr_info("    %s: addr %s, offset %#x, symbol %s, opcode %02x, flags%s%s%s%s, nmissed %lu, %slinked\n",
		what, place_of(p->addr, place, sizeof(place)), p->offset, p->symbol_name ?: "NULL",
		p->opcode,
		p->flags & KPROBE_FLAG_GONE ? " GONE" : "",
		p->flags & KPROBE_FLAG_DISABLED ? " DISABLED" : "",
		p->flags & KPROBE_FLAG_FTRACE ? " FTRACE" : "",
		p->flags & KPROBE_FLAG_ON_FUNC_ENTRY ? " ON_FUNC_ENTRY" : "",
		p->nmissed, is_linked(p) ? "" : "not ");
}

/* What handlers have to say, in the order in which they are called. */
static char events[256];
static unsigned int event_bytes;

static notrace void add_event(char kind, int number)
{
	if (event_bytes + 4 > sizeof(events))
		return;
	events[event_bytes++] = ' ';
	events[event_bytes++] = kind;
	events[event_bytes++] = '0' + number;
}

static void tell_events(const char *what)
{
	pr_info("    %s:%.*s\n", what, event_bytes, events);
	event_bytes = 0;
}

/* ----------------------------------------------------------------- the probes */

#define PROBES	4

/**
 * struct probe - A probe, and what its handlers do
 * @kp:		The probe.
 * @number:	What it is called in what is told.
 * @skips:	How many bytes after the probe the pre handler lets execution continue;
 *		0: it does not change that.
 * @calls:	What the pre handler calls.
 * @disabled:	Whether it is registered as a disabled one.
 */
struct probe {
	struct kprobe kp;
	int number;
	unsigned int skips;
	int (*calls)(int value);
	bool disabled;
};

static struct probe probes[PROBES];

static notrace int on_hit(struct kprobe *p, struct pt_regs *regs)
{
	struct probe *probe = container_of(p, struct probe, kp);

	add_event('a', probe->number);
	if (probe->calls)
		probe->calls(1);
	if (!probe->skips)
		return 0;
	instruction_pointer_set(regs, (unsigned long)p->addr + probe->skips);
	return 1;
}

NOKPROBE_SYMBOL(on_hit);

static notrace void on_done(struct kprobe *p, struct pt_regs *regs, unsigned long flags)
{
	add_event('z', container_of(p, struct probe, kp)->number);
}

NOKPROBE_SYMBOL(on_done);

/* What no registration leaves as it is by chance. */
static void clear_probe(struct probe *probe)
{
	memset(probe, 0, sizeof(*probe));
	INIT_LIST_HEAD(&probe->kp.list);
	probe->number = probe - probes;
	probe->kp.pre_handler = on_hit;
	probe->kp.nmissed = 77;
	probe->kp.opcode = 0x5a;
}

static void clear_probes(void)
{
	for (unsigned int i = 0; i < PROBES; i++)
		clear_probe(&probes[i]);
}

static void call_all(void)
{
	transcript_body();
	transcript_traced(1);
}

/* Register; tell what came of it; take it back. */
static void try_probe(const char *what, struct probe *probe)
{
	int err = register_kprobe(&probe->kp);

	pr_info("%s: %s\n", what, name_of(err));
	tell_probe("after it", &probe->kp);
	if (err)
		return;
	unregister_kprobe(&probe->kp);
	tell_probe("unregistered", &probe->kp);
}

/* --------------------------------------------------------------------- errors */

static void try_symbol(const char *symbol, unsigned int offset)
{
	char what[KSYM_NAME_LEN + 16];

	clear_probes();
	probes[0].kp.symbol_name = symbol;
	probes[0].kp.offset = offset;
	snprintf(what, sizeof(what), "symbol %s+%#x", symbol, offset);
	try_probe(what, &probes[0]);
}

static void try_address(const char *what, const void *addr, unsigned int offset)
{
	clear_probes();
	probes[0].kp.addr = (kprobe_opcode_t *)addr;
	probes[0].kp.offset = offset;
	try_probe(what, &probes[0]);
}

static void *init_text;

static void try_flags(const char *what, u32 flags)
{
	clear_probes();
	probes[0].kp.symbol_name = "transcript_body";
	probes[0].kp.flags = flags;
	try_probe(what, &probes[0]);
}

static int tell_errors(void)
{
	void *heap __free(kfree) = kzalloc(64, GFP_KERNEL);
	static const char * const symbols[] = {
		"transcript_body", "transcript_traced", "kernel_clone", "no_such_function", "",
		"kprobe_transcript:transcript_body", "no_such_module:transcript_body",
		"jiffies", "linux_banner", "survey_data", "start_kernel",
		"exc_int3", "asm_exc_int3",
		"entry_SYSCALL_64", "kprobe_int3_handler", "get_kprobe", "irqentry_nmi_enter",
		"on_hit", "__SCT__might_resched",
	};
	static const unsigned int offsets[] = { 1, 2, 3, 4, 5, 7, 0x7fffffff, 0xffffffff };
	void *page = vzalloc(PAGE_SIZE);
	int on_stack = 0;

	for (unsigned int i = 0; i < ARRAY_SIZE(symbols); i++)
		try_symbol(symbols[i], 0);
	for (unsigned int i = 0; i < ARRAY_SIZE(offsets); i++)
		try_symbol("transcript_body", offsets[i]);
	for (unsigned int i = 0; i < ARRAY_SIZE(offsets); i++)
		try_symbol("transcript_traced", offsets[i]);
	for (unsigned int i = 0; i < ARRAY_SIZE(odd_places); i++)
		try_symbol("transcript_odd", ENTRY_BYTES + odd_places[i]);

	try_address("no place at all", NULL, 0);
	try_address("a function's address", transcript_body, 0);
	try_address("a function's address and an offset", transcript_body, ENTRY_BYTES + 1);
	try_address("a traced function's address", transcript_traced, 0);
	try_address("an address and an offset back", (void *)transcript_body + ENTRY_BYTES + 2, -1);
	try_address("an address not on a boundary", (void *)transcript_body + ENTRY_BYTES + 2, 0);
	try_address("address 1", (void *)1, 0);
	try_address("an address of user space", (void *)0x400000, 0);
	try_address("an address that is not canonical", (void *)(1UL << 62), 0);
	try_address("the last address", (void *)-1L, 0);
	try_address("the vsyscall page", (void *)0xffffffffff600000, 0);
	try_address("data of the module", &survey_data, 0);
	try_address("data of the kernel", &init_uts_ns, 0);
	try_address("the heap", heap, 0);
	try_address("vmalloc", page, 0);
	try_address("the stack", &on_stack, 0);
	try_address("freed init text of the module", init_text, 0);
	vfree(page);

	clear_probes();
	probes[0].kp.symbol_name = "transcript_body";
	probes[0].kp.addr = (kprobe_opcode_t *)transcript_body;
	try_probe("both symbol and address", &probes[0]);
	try_flags("it is disabled", KPROBE_FLAG_DISABLED);
	try_flags("it says that it is gone", KPROBE_FLAG_GONE);
	try_flags("it says that it is by ftrace", KPROBE_FLAG_FTRACE);
	try_flags("it has all flags but one", 0xf);
	clear_probes();
	probes[0].kp.symbol_name = "transcript_body";
	probes[0].kp.pre_handler = NULL;
	try_probe("it has no handler", &probes[0]);
	try_symbol("transcript_body", 0);
	probes[0].kp.addr = NULL;
	try_probe("the same again, its flags as they were left", &probes[0]);
	return 0;
}

/* --------------------------------------------------------------------- survey */

static int tell_survey(void)
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

		clear_probes();
		probes[0].kp.addr = function + offset;
		err = register_kprobe(&probes[0].kp);
		pr_info("survey +%#lx: %s, opcode %02x\n", offset, name_of(err),
			probes[0].kp.opcode);
		if (!err)
			unregister_kprobe(&probes[0].kp);
	}
	return 0;
}

/* --------------------------------------------------------------------- arrays */

/* What is at each letter of an array's description. */
static void set_up_letter(struct probe *probe, char letter)
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
	case 'B':	/* -EINVAL, too */
		p->addr = (kprobe_opcode_t *)transcript_body;
		break;
	}
}

static void tell_array(const char *letters)
{
	struct kprobe *array[PROBES];
	int n = strlen(letters), err;
	char what[8];

	clear_probes();
	for (int i = 0; i < n; i++) {
		array[i] = &probes[i].kp;
		/* The same as the one before. */
		if (letters[i] == '=')
			array[i] = array[i - 1];
		else
			set_up_letter(&probes[i], letters[i]);
	}
	err = register_kprobes(array, n);
	pr_info("array %s: %s\n", letters, name_of(err));
	for (int i = 0; i < n; i++) {
		snprintf(what, sizeof(what), "%d", i);
		tell_probe(what, array[i]);
	}
	call_all();
	tell_events("hit");
	if (err)
		return;
	unregister_kprobes(array, n);
	for (int i = 0; i < n; i++) {
		snprintf(what, sizeof(what), "%d", i);
		tell_probe(what, array[i]);
	}
	call_all();
	tell_events("hit");
}

static int tell_arrays(void)
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
		tell_array(arrays[i]);
	clear_probes();
	pr_info("array of 0: %s\n", name_of(register_kprobes(&one, 0)));
	pr_info("array of -1: %s\n", name_of(register_kprobes(&one, -1)));
	unregister_kprobes(&one, 0);
	unregister_kprobes(&one, -1);
	tell_probe("none of it unregistered", one);
	return 0;
}

/* --------------------------------------------------------------------- states */

/**
 * struct site - An address
 * @name:	What it is called in what is told.
 * @symbol:	The function.
 * @offset:	In it.
 * @size:	How many bytes the instruction has.
 * @jump:	Whether there can be a jump: if @settle is set, others are left out.
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
 * Words of scripts: what is done, with the number of the probe.
 *
 *	r u e d		register, unregister, enable, disable
 *	c		call the functions: it may be hit
 *	D P S N		before registration: it is disabled, has a post handler, skips
 *			the instruction, has no pre handler
 *	A R		register, unregister it and all before it in one call
 *
 * Those that begin with ! are not for ftrace's sites: Linux 6.12 warns, and hangs,
 * when a probe with a post handler comes or goes there while another one stays.
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

static int do_word(char word, struct probe *probe, const struct site *site)
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
		p->post_handler = on_done;
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

/* As a caller does who registers it again. */
static void place_probe(struct probe *probe, const struct site *site)
{
	if (is_linked(&probe->kp))
		return;
	probe->kp.addr = NULL;
	probe->kp.symbol_name = site->symbol;
	probe->kp.offset = site->offset;
	probe->kp.flags = probe->disabled ? KPROBE_FLAG_DISABLED : 0;
}

static void call_settled(bool changed)
{
	if (changed && settle)
		msleep(settle);
	call_all();
	tell_events("hit");
}

static void tell_script(const struct site *site, const char *script)
{
	bool changed = false;

	if (*script == '!' && !strcmp(site->name, "fentry"))
		return;
	script += *script == '!';
	/* Not what was pushed; and Linux 6.12 goes on in the midst of a jump. */
	if (strchr(script, 'S') && (settle || !strcmp(site->name, "popfq")))
		return;
	pr_info("script at %s: %s\n", site->name, script);
	clear_probes();
	for (; *script; script += strcspn(script, " "), script += strspn(script, " ")) {
		char what[4] = { script[0], script[1] };
		struct probe *probe;
		int err;

		if (*script == 'c') {
			call_settled(changed);
			changed = false;
			continue;
		}
		probe = &probes[script[1] - '0'];
		if (*script == 'A')
			for (struct probe *p = probes; p < probe; p++)
				place_probe(p, site);
		if (strchr("rA", *script))
			place_probe(probe, site);
		changed = changed || strchr("rAeR", *script);
		err = do_word(*script, probe, site);
		pr_info("  %s: %s\n", what, name_of(err));
		tell_probe(what, &probe->kp);
	}
	for (int i = 0; i < PROBES; i++)
		if (is_linked(&probes[i].kp))
			pr_info("  %d is still registered\n", i);
}

static int tell_states(void)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(sites); i++) {
		if (settle && !sites[i].jump)
			continue;
		for (unsigned int j = 0; j < ARRAY_SIZE(scripts); j++)
			tell_script(&sites[i], scripts[j]);
	}
	return 0;
}

/* --------------------------------------------------------------------- nested */

static int call_body(int value)
{
	return transcript_body() + value;
}

/* A handler at @outer runs into probe 1, and 2 if it @shared, at @inner. */
static void tell_nesting(const struct site *outer, const struct site *inner, bool shared,
			 bool disabled)
{
	int n = shared ? 3 : 2;

	pr_info("nested: %s in %s,%s%s\n", inner->name, outer->name, shared ? " shared" : "",
		disabled ? " one disabled" : "");
	clear_probes();
	for (int i = 0; i < n; i++) {
		place_probe(&probes[i], i ? inner : outer);
		probes[i].kp.nmissed = 0;
	}
	probes[0].calls = strcmp(inner->symbol, "transcript_body") ? transcript_traced : call_body;
	for (int i = 0; i < n; i++)
		pr_info("  %d: %s\n", i, name_of(register_kprobe(&probes[i].kp)));
	if (disabled)
		pr_info("  disable 1: %s\n", name_of(disable_kprobe(&probes[1].kp)));
	call_settled(true);
	for (int i = 0; i < n; i++)
		tell_probe("hit", &probes[i].kp);
	for (int i = 0; i < n; i++)
		unregister_kprobe(&probes[i].kp);
}

static int tell_nested(void)
{
	for (unsigned int i = 0; i < ARRAY_SIZE(sites); i++) {
		if (settle && !sites[i].jump)
			continue;
		for (unsigned int j = 0; j < ARRAY_SIZE(sites); j++) {
			tell_nesting(&sites[i], &sites[j], false, false);
			tell_nesting(&sites[i], &sites[j], true, false);
			tell_nesting(&sites[i], &sites[j], true, true);
		}
	}
	return 0;
}

/* -------------------------------------------------------------------- returns */

/**
 * struct return_probe - A return probe
 * @rp:		The return probe.
 * @number:	What it is called in what is told.
 * @ignores:	Whether its entry handler says that the call is not of interest.
 */
struct return_probe {
	struct kretprobe rp;
	int number;
	bool ignores;
};

static struct return_probe return_probes[PROBES];

static notrace int on_entry(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct return_probe *probe = container_of(get_kretprobe(ri), struct return_probe, rp);

	add_event('e', probe->number);
	if (probe->rp.data_size)
		memset(ri->data, probe->number, probe->rp.data_size);
	return probe->ignores;
}

NOKPROBE_SYMBOL(on_entry);

static notrace int on_return(struct kretprobe_instance *ri, struct pt_regs *regs)
{
	struct return_probe *probe = container_of(get_kretprobe(ri), struct return_probe, rp);
	size_t size = probe->rp.data_size;

	add_event('r', probe->number);
	add_event('=', regs_return_value(regs));
	if (size && probe->rp.entry_handler && ri->data[size - 1] != probe->number)
		add_event('?', probe->number);
	return 0;
}

NOKPROBE_SYMBOL(on_return);

static void clear_return_probes(const char *symbol)
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
		probe->rp.handler = on_return;
		probe->rp.entry_handler = on_entry;
	}
}

static void tell_return_probe(const char *what, const struct kretprobe *rp)
{
	tell_probe(what, &rp->kp);
	pr_info("    %s, calls: maxactive %d, nmissed %d, data_size %zu, post handler %s\n",
		what, rp->maxactive, rp->nmissed, rp->data_size,
		rp->kp.post_handler ? "set" : "NULL");
}

static void call_returns(void)
{
	transcript_traced(1);
	transcript_body();
	transcript_recurse(4);
	tell_events("hit");
}

/* Register return probe 0, use it, take it back. */
static void try_return_probe(const char *what)
{
	struct kretprobe *rp = &return_probes[0].rp;
	int err = register_kretprobe(rp);

	pr_info("return probe, %s: %s\n", what, name_of(err));
	tell_return_probe("after it", rp);
	if (err)
		return;
	call_returns();
	tell_return_probe("used", rp);
	unregister_kretprobe(rp);
	tell_return_probe("unregistered", rp);
	call_returns();
}

static void tell_return_places(void)
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
		clear_return_probes(places[i].symbol);
		return_probes[0].rp.kp.offset = places[i].offset;
		snprintf(what, sizeof(what), "%s+%#x", places[i].symbol ?: "NULL",
			 places[i].offset);
		try_return_probe(what);
	}
	clear_return_probes(NULL);
	return_probes[0].rp.kp.addr = (kprobe_opcode_t *)transcript_traced;
	try_return_probe("an address");
	clear_return_probes("transcript_traced");
	return_probes[0].rp.kp.addr = (kprobe_opcode_t *)transcript_traced;
	try_return_probe("an address and a symbol");
	clear_return_probes("transcript_traced");
	return_probes[0].rp.kp.flags = KPROBE_FLAG_DISABLED;
	try_return_probe("it is disabled");
}

static void tell_return_sizes(void)
{
	static const int maxactives[] = { 1, 2, 3, 5, 100, 0, -1, INT_MIN, INT_MAX, 1 << 30 };
	static const size_t data_sizes[] = { 0, 1, 8, 4096, 4097, 1 << 20, SIZE_MAX };
	char what[64];

	for (unsigned int i = 0; i < ARRAY_SIZE(maxactives); i++) {
		clear_return_probes("transcript_recurse");
		return_probes[0].rp.maxactive = maxactives[i];
		snprintf(what, sizeof(what), "maxactive %d", maxactives[i]);
		try_return_probe(what);
	}
	for (unsigned int i = 0; i < ARRAY_SIZE(data_sizes); i++) {
		clear_return_probes("transcript_traced");
		return_probes[0].rp.data_size = data_sizes[i];
		snprintf(what, sizeof(what), "data_size %zu", data_sizes[i]);
		try_return_probe(what);
	}
	clear_return_probes("transcript_recurse");
	return_probes[0].ignores = true;
	return_probes[0].rp.maxactive = 1;
	try_return_probe("calls are not of interest");
	clear_return_probes("transcript_traced");
	return_probes[0].rp.entry_handler = NULL;
	try_return_probe("no entry handler");
	clear_return_probes("transcript_traced");
	return_probes[0].rp.handler = NULL;
	try_return_probe("no handler");
	clear_return_probes("transcript_traced");
	return_probes[0].rp.kp.pre_handler = on_hit;
	return_probes[0].rp.kp.post_handler = on_done;
	try_return_probe("handlers of a probe");
}

/* Several at one function, beside a plain probe. */
static void tell_return_order(const char *symbol, bool plain)
{
	struct kretprobe *array[PROBES];
	int err;

	clear_return_probes(symbol);
	clear_probes();
	pr_info("return probes of %s%s\n", symbol, plain ? ", and a probe" : "");
	for (int i = 0; i < 3; i++) {
		pr_info("  %d: %s\n", i, name_of(register_kretprobe(&return_probes[i].rp)));
		if (i || !plain)
			continue;
		probes[0].kp.symbol_name = symbol;
		/* See scripts[]. */
		if (!strcmp(symbol, "transcript_body"))
			probes[0].kp.post_handler = on_done;
		pr_info("  probe: %s\n", name_of(register_kprobe(&probes[0].kp)));
	}
	if (settle)
		msleep(settle);
	call_returns();
	pr_info("  disable 1: %s\n", name_of(disable_kretprobe(&return_probes[1].rp)));
	call_returns();
	pr_info("  enable 1: %s\n", name_of(enable_kretprobe(&return_probes[1].rp)));
	return_probes[1].ignores = true;
	call_returns();
	unregister_kretprobe(&return_probes[0].rp);
	call_returns();
	for (int i = 0; i < 3; i++) {
		array[i] = &return_probes[i].rp;
		tell_return_probe("used", array[i]);
	}
	unregister_kretprobes(array + 1, 2);
	call_returns();
	if (plain)
		unregister_kprobe(&probes[0].kp);

	clear_return_probes(symbol);
	err = register_kretprobes(array, 3);
	pr_info("  array: %s\n", name_of(err));
	call_returns();
	if (!err)
		unregister_kretprobes(array, 3);
	clear_return_probes(symbol);
	return_probes[1].rp.kp.symbol_name = "no_such_function";
	return_probes[2].rp.data_size = 5000;
	err = register_kretprobes(array, 3);
	pr_info("  array with bad ones: %s\n", name_of(err));
	for (int i = 0; i < 3; i++)
		tell_return_probe("after it", array[i]);
	call_returns();
	pr_info("  array of 0: %s\n", name_of(register_kretprobes(array, 0)));
	pr_info("  array of -1: %s\n", name_of(register_kretprobes(array, -1)));
}

static int tell_returns(void)
{
	tell_return_places();
	tell_return_sizes();
	for (int plain = 0; plain < 2; plain++) {
		tell_return_order("transcript_traced", plain);
		tell_return_order("transcript_body", plain);
		tell_return_order("transcript_recurse", plain);
	}
	return 0;
}

/* --------------------------------------------------------------- other's text */

static int tell_all_probes(const char *what)
{
	pr_info("%s\n", what);
	for (int i = 0; i < PROBES; i++)
		tell_probe(what, &probes[i].kp);
	tell_return_probe(what, &return_probes[0].rp);
	return 0;
}

/* 0 and 1 at the entry, 2 disabled, 3 at the same with a post handler; a return probe. */
static int tell_going(void)
{
	clear_probes();
	clear_return_probes(victim);
	for (int i = 0; i < PROBES; i++) {
		probes[i].kp.symbol_name = victim;
		if (i == 3)
			probes[i].kp.post_handler = on_done;
		pr_info("%d: %s\n", i, name_of(register_kprobe(&probes[i].kp)));
	}
	pr_info("disable 2: %s\n", name_of(disable_kprobe(&probes[2].kp)));
	pr_info("return probe: %s\n", name_of(register_kretprobe(&return_probes[0].rp)));
	return tell_all_probes("going");
}

static int tell_gone(void)
{
	tell_all_probes("gone");
	for (int i = 0; i < PROBES; i++)
		pr_info("enable %d: %s\n", i, name_of(enable_kprobe(&probes[i].kp)));
	pr_info("disable 0: %s\n", name_of(disable_kprobe(&probes[0].kp)));
	pr_info("disable 2: %s\n", name_of(disable_kprobe(&probes[2].kp)));
	pr_info("disable the return probe: %s\n",
		name_of(disable_kretprobe(&return_probes[0].rp)));
	tell_all_probes("changed");
	for (int i = 0; i < PROBES; i += 2)
		unregister_kprobe(&probes[i].kp);
	return tell_all_probes("two unregistered");
}

/* The module is there again: its functions are new ones. */
static int tell_back(void)
{
	tell_all_probes("back");
	pr_info("enable 1: %s\n", name_of(enable_kprobe(&probes[1].kp)));
	for (int i = 0; i < PROBES; i += 2) {
		probes[i].kp.addr = NULL;
		probes[i].kp.symbol_name = victim;
		probes[i].kp.offset = 0;
		pr_info("%d: %s\n", i, name_of(register_kprobe(&probes[i].kp)));
	}
	tell_all_probes("registered again");
	for (int i = 0; i < PROBES; i++)
		unregister_kprobe(&probes[i].kp);
	unregister_kretprobe(&return_probes[0].rp);
	return tell_all_probes("unregistered");
}

/* --------------------------------------------------------------------- module */

static int run(const char *name, const struct kernel_param *param)
{
	static const struct {
		const char *name;
		int (*tell)(void);
	} chapters[] = {
		{ "errors", tell_errors }, { "survey", tell_survey }, { "arrays", tell_arrays },
		{ "states", tell_states }, { "nested", tell_nested }, { "returns", tell_returns },
		{ "going", tell_going }, { "gone", tell_gone }, { "back", tell_back },
	};
	static DEFINE_MUTEX(lock);

	if (THIS_MODULE->state != MODULE_STATE_LIVE)
		return -EAGAIN;
	guard(mutex)(&lock);
	for (unsigned int i = 0; i < ARRAY_SIZE(chapters); i++) {
		if (!sysfs_streq(name, chapters[i].name))
			continue;
		pr_info("chapter %s\n", chapters[i].name);
		return chapters[i].tell();
	}
	return -EINVAL;
}

static const struct kernel_param_ops run_ops = { .set = run };
module_param_cb(run, &run_ops, NULL, 0200);
MODULE_PARM_DESC(run, "write the name of a chapter");

static int __init transcript_init(void)
{
	init_text = transcript_init;
	return 0;
}
module_init(transcript_init);

static void __exit transcript_exit(void)
{
}
module_exit(transcript_exit);

MODULE_DESCRIPTION("Tell what callers of the probing API see");
MODULE_LICENSE("GPL");
