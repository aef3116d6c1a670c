// SPDX-License-Identifier: GPL-2.0
/*
 * BPF programs at probes, at return probes and at fprobes: do they run, and what
 * do they learn there? All ways to attach them are tried, alone and together.
 *
 * The programs are assembled here. What one has seen it keeps in a struct seen of
 * its own, in an array map that is mapped here, too. Programs look at the calls of
 * this process only.
 */
#include <asm/ptrace.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../../include/linux/filter.h"
#include "../kselftest.h"

#ifdef __x86_64__
#define ARGUMENT_2	offsetof(struct pt_regs, rsi)
#define ARGUMENT_3	offsetof(struct pt_regs, rdx)
#define RETURN_VALUE	offsetof(struct pt_regs, rax)
#define INJECTED	"__x64_sys_getpgid"
#else
/* Nobody has tried the others yet. */
#define ARGUMENT_2	0
#define ARGUMENT_3	0
#define RETURN_VALUE	0
#define INJECTED	"sys_getpgid"
#endif

#define TRACING	"/sys/kernel/tracing/"
#define EVENTS	TRACING "kprobe_events"
#define PMU	"/sys/bus/event_source/devices/kprobe/"

#define ENTRY_EVENT	"bpf_entry"
#define RETURN_EVENT	"bpf_return"

#define CALLS	5	/* as often the probed function is called */
#define BYTES	42	/* and with this as its third argument, which it returns */
#define COOKIE	0xc00c1e

#define MAX_DEPTH	48
#define MAX_SEEN	16

/* What a program has seen. */
struct seen {
	__u64 hits;
	__u64 argument_2;
	__u64 argument_3;
	__u64 value;			/* where a function has returned */
	__u64 func_ip;		/* bpf_get_func_ip() */
	__u64 cookie;		/* bpf_get_attach_cookie() */
	__s64 stack_id;		/* bpf_get_stackid() */
	__s64 stack_size;		/* bpf_get_stack(), in bytes */
	__u64 stack[MAX_DEPTH];
};

static struct seen *seen;
static int seen_map, stack_map;
static int zero;			/* what is read */
static char buffer[BYTES];

/* Symbols */

struct symbol {
	__u64 address;
	char name[64];
};

static struct symbol *symbols;
static size_t symbols_num;

static int compare_symbols(const void *a, const void *b)
{
	const struct symbol *s = a, *t = b;

	return s->address < t->address ? -1 : s->address > t->address;
}

static void read_symbols(void)
{
	FILE *file = fopen("/proc/kallsyms", "r");
	struct symbol symbol;
	char type;

	if (!file)
		ksft_exit_fail_perror("kallsyms");
	while (fscanf(file, "%llx %c %63s%*[^\n]", &symbol.address, &type, symbol.name) == 3) {
		if (!strchr("tTwW", type))
			continue;
		if (!(symbols_num & (symbols_num - 1)))
			symbols = realloc(symbols, 2 * (symbols_num + 1) * sizeof(*symbols));
		if (!symbols)
			ksft_exit_fail_perror("symbols");
		symbols[symbols_num++] = symbol;
	}
	fclose(file);
	qsort(symbols, symbols_num, sizeof(*symbols), compare_symbols);
}

static __u64 address_of(const char *name)
{
	for (size_t i = 0; i < symbols_num; i++)
		if (!strcmp(symbols[i].name, name))
			return symbols[i].address;
	return 0;
}

/* The symbol that an address belongs to, or follows. */
static const char *name_of(__u64 address)
{
	size_t low = 0, high = symbols_num;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (symbols[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? symbols[low - 1].name : "nothing";
}

/* Programs */

struct program {
	int num;
	struct bpf_insn insns[48];
};

static void emit(struct program *p, const struct bpf_insn *insns, int num)
{
	if (p->num + num > (int)ARRAY_SIZE(p->insns))
		ksft_exit_fail_msg("a program is too long\n");
	memcpy(p->insns + p->num, insns, num * sizeof(*insns));
	p->num += num;
}

#define EMIT(p, ...) do {						\
	const struct bpf_insn insns[] = { __VA_ARGS__ };		\
									\
	emit(p, insns, ARRAY_SIZE(insns));				\
} while (0)

/* Other processes are of no interest. The context is in register 6 from now on. */
static void emit_filter(struct program *p)
{
	EMIT(p, BPF_MOV64_REG(BPF_REG_6, BPF_REG_1),
	     BPF_EMIT_CALL(BPF_FUNC_get_current_pid_tgid),
	     BPF_ALU64_IMM(BPF_RSH, BPF_REG_0, 32),
	     BPF_JMP_IMM(BPF_JEQ, BPF_REG_0, getpid(), 2),
	     BPF_MOV64_IMM(BPF_REG_0, 0),
	     BPF_EXIT_INSN());
}

static void emit_return(struct program *p, int value)
{
	EMIT(p, BPF_MOV64_IMM(BPF_REG_0, value), BPF_EXIT_INSN());
}

/* Keep what is in register 0: register 7 holds the struct seen. */
static void emit_keep(struct program *p, size_t where)
{
	EMIT(p, BPF_STX_MEM(BPF_DW, BPF_REG_7, BPF_REG_0, where));
}

static void emit_keep_register(struct program *p, size_t where, size_t offset)
{
	EMIT(p, BPF_LDX_MEM(BPF_DW, BPF_REG_0, BPF_REG_6, offset));
	emit_keep(p, where);
}

/* Keep what a function returns of the context. */
static void emit_keep_result(struct program *p, size_t where, int function)
{
	EMIT(p, BPF_MOV64_REG(BPF_REG_1, BPF_REG_6), BPF_EMIT_CALL(function));
	emit_keep(p, where);
}

static int sys_bpf(int command, union bpf_attr *attr)
{
	return syscall(__NR_bpf, command, attr, sizeof(*attr));
}

static int load(const struct program *p, int attach_type)
{
	static char log[64 << 10];
	union bpf_attr attr = {
		.prog_type = BPF_PROG_TYPE_KPROBE,
		.expected_attach_type = attach_type,
		.insns = (uintptr_t)p->insns,
		.insn_cnt = p->num,
		.license = (uintptr_t)"GPL",
		.log_buf = (uintptr_t)log,
		.log_size = sizeof(log),
		.log_level = 1,
	};
	int fd = sys_bpf(BPF_PROG_LOAD, &attr);

	if (fd < 0)
		ksft_print_msg("program of type %d: %s\n%s\n", attach_type, strerror(errno), log);
	return fd;
}

/* A program that keeps what it sees in seen[@i], and ends with @value. */
static int load_observer(int i, int value, int attach_type)
{
	struct program p = { };

	emit_filter(&p);
	EMIT(&p, BPF_LD_MAP_VALUE(BPF_REG_7, seen_map, i * sizeof(struct seen)),
	     BPF_MOV64_IMM(BPF_REG_0, 1),
	     BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_7, BPF_REG_0, offsetof(struct seen, hits)));
	emit_keep_register(&p, offsetof(struct seen, argument_2), ARGUMENT_2);
	emit_keep_register(&p, offsetof(struct seen, argument_3), ARGUMENT_3);
	emit_keep_register(&p, offsetof(struct seen, value), RETURN_VALUE);
	emit_keep_result(&p, offsetof(struct seen, func_ip), BPF_FUNC_get_func_ip);
	emit_keep_result(&p, offsetof(struct seen, cookie), BPF_FUNC_get_attach_cookie);
	EMIT(&p, BPF_LD_MAP_FD(BPF_REG_2, stack_map), BPF_MOV64_IMM(BPF_REG_3, 0));
	emit_keep_result(&p, offsetof(struct seen, stack_id), BPF_FUNC_get_stackid);
	EMIT(&p, BPF_MOV64_REG(BPF_REG_2, BPF_REG_7),
	     BPF_ALU64_IMM(BPF_ADD, BPF_REG_2, offsetof(struct seen, stack)),
	     BPF_MOV64_IMM(BPF_REG_3, sizeof(seen->stack)),
	     BPF_MOV64_IMM(BPF_REG_4, 0));
	emit_keep_result(&p, offsetof(struct seen, stack_size), BPF_FUNC_get_stack);
	emit_return(&p, value);
	return load(&p, attach_type);
}

/* A program that lets the function return @error instead of being run. */
static int load_injector(int error)
{
	struct program p = { };

	emit_filter(&p);
	EMIT(&p, BPF_MOV64_REG(BPF_REG_1, BPF_REG_6),
	     BPF_MOV64_IMM(BPF_REG_2, error),
	     BPF_EMIT_CALL(BPF_FUNC_override_return));
	emit_return(&p, 0);
	return load(&p, 0);
}

static int create_map(int type, int key_size, int value_size, int entries, int flags)
{
	union bpf_attr attr = {
		.map_type = type,
		.key_size = key_size,
		.value_size = value_size,
		.max_entries = entries,
		.map_flags = flags,
	};
	int fd = sys_bpf(BPF_MAP_CREATE, &attr);

	if (fd < 0)
		ksft_exit_fail_perror("map");
	return fd;
}

static void create_maps(void)
{
	size_t size = MAX_SEEN * sizeof(struct seen);

	stack_map = create_map(BPF_MAP_TYPE_STACK_TRACE, 4, sizeof(seen->stack), 1024, 0);
	seen_map = create_map(BPF_MAP_TYPE_ARRAY, 4, size, 1, BPF_F_MMAPABLE);
	seen = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, seen_map, 0);
	if (seen == MAP_FAILED)
		ksft_exit_fail_perror("mmap");
}

static void forget(void)
{
	memset(seen, 0, MAX_SEEN * sizeof(*seen));
}

/* Attaching: all give a file descriptor, closing which detaches, or -errno. */

static int open_event(struct perf_event_attr *attr)
{
	int fd;

	attr->size = sizeof(*attr);
	attr->sample_period = 1;
	/* Programs run on all CPUs, whatever is said here. */
	fd = syscall(__NR_perf_event_open, attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* A probe of perf's own, by name or, without one, by address. */
static int open_pmu(const char *function, __u64 where, bool returns)
{
	struct perf_event_attr attr = {
		.config = returns,
		.kprobe_func = (uintptr_t)function,
		.probe_offset = where,
	};
	FILE *file = fopen(PMU "type", "r");

	if (!file || fscanf(file, "%u", &attr.type) != 1)
		ksft_exit_fail_perror("type of the PMU");
	fclose(file);
	return open_event(&attr);
}

/* A line of its own is a definition. What goes wrong shows later. */
static void write_events(const char *text)
{
	int fd = open(EVENTS, O_WRONLY | O_APPEND);

	if (write(fd, text, strlen(text)) < 0)
		ksft_print_msg("%s: %s\n", text, strerror(errno));
	close(fd);
}

/* An event of tracefs. */
static int open_tracefs(const char *event)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_TRACEPOINT };
	char path[128];
	FILE *file;
	int num;

	snprintf(path, sizeof(path), TRACING "events/kprobes/%s/id", event);
	file = fopen(path, "r");
	if (!file)
		return -EOPNOTSUPP;
	num = fscanf(file, "%llu", &attr.config);
	fclose(file);
	return num == 1 ? open_event(&attr) : -EINVAL;
}

static int set_program(int event, int program)
{
	int err;

	if (event < 0)
		return event;
	if (ioctl(event, PERF_EVENT_IOC_SET_BPF, program) ||
	    ioctl(event, PERF_EVENT_IOC_ENABLE, 0)) {
		err = -errno;
		close(event);
		return err;
	}
	return event;
}

/* The link keeps the event. */
static int link_program(int event, int program)
{
	union bpf_attr attr = {
		.link_create.prog_fd = program,
		.link_create.target_fd = event,
		.link_create.attach_type = BPF_PERF_EVENT,
		.link_create.perf_event.bpf_cookie = COOKIE,
	};
	int fd, err;

	if (event < 0)
		return event;
	fd = sys_bpf(BPF_LINK_CREATE, &attr);
	err = errno;
	close(event);
	return fd < 0 ? -err : fd;
}

static int link_multi(const char *function, int program, int attach_type, bool returns)
{
	const __u64 names[] = { (uintptr_t)function };
	const __u64 cookies[] = { COOKIE };
	union bpf_attr attr = {
		.link_create.prog_fd = program,
		.link_create.attach_type = attach_type,
		.link_create.kprobe_multi = {
			.flags = returns ? BPF_F_KPROBE_MULTI_RETURN : 0,
			.cnt = 1,
			.syms = (uintptr_t)names,
			.cookies = (uintptr_t)cookies,
		},
	};
	int fd = sys_bpf(BPF_LINK_CREATE, &attr);

	return fd < 0 ? -errno : fd;
}

/* An instruction of the function that is not its first, and not what ftrace uses. */
static int offset_inside(const char *function)
{
	int fd, offset;

	for (offset = 5; offset < 64; offset++) {
		fd = open_pmu(function, offset, false);
		if (fd >= 0) {
			close(fd);
			break;
		}
	}
	return offset;
}

/* The ways to get a program run */

enum how {
	PMU_NAME,
	PMU_ADDRESS,
	PMU_LINK,
	TRACEFS,
	MULTI,
	SESSION,
};

struct way {
	const char *name;
	enum how how;
	bool returns;
	bool inside;
};

static const struct way ways[] = {
	{ "perf's probe by name", PMU_NAME },
	{ "perf's probe by address", PMU_ADDRESS },
	{ "perf's probe with a cookie", PMU_LINK },
	{ "perf's probe inside", PMU_NAME, .inside = true },	/* Arguments may be gone there. */
	{ "event", TRACEFS },
	{ "fprobe", MULTI },
	{ "perf's return probe", PMU_NAME, .returns = true },
	{ "perf's return probe by address", PMU_ADDRESS, .returns = true },
	{ "perf's return probe with a cookie", PMU_LINK, .returns = true },
	{ "return event", TRACEFS, .returns = true },
	{ "fprobe at the return", MULTI, .returns = true },
};

/* A program that is attached. */
struct attached {
	const struct way *way;
	int program;
	int event;
	struct seen *seen;
};

static int attach_type_of(const struct way *way)
{
	return way->how == MULTI ? BPF_TRACE_KPROBE_MULTI :
	       way->how == SESSION ? BPF_TRACE_KPROBE_SESSION : 0;
}

static int attach_program(const struct way *way, const char *function, int program)
{
	int offset = way->inside ? offset_inside(function) : 0;

	switch (way->how) {
	case PMU_NAME:
		return set_program(open_pmu(function, offset, way->returns), program);
	case PMU_ADDRESS:
		return set_program(open_pmu(NULL, address_of(function), way->returns), program);
	case PMU_LINK:
		return link_program(open_pmu(function, offset, way->returns), program);
	case TRACEFS:
		return set_program(open_tracefs(way->returns ? RETURN_EVENT : ENTRY_EVENT),
				   program);
	default:
		return link_multi(function, program, attach_type_of(way), way->returns);
	}
}

/* Let seen[@i] tell what @function does. That the program ends with is for sessions. */
static struct attached attach(const struct way *way, const char *function, int i)
{
	struct attached at = {
		.way = way,
		.program = load_observer(i, i & 1, attach_type_of(way)),
		.event = -EINVAL,
		.seen = &seen[i],
	};

	if (at.program >= 0)
		at.event = attach_program(way, function, at.program);
	return at;
}

static void detach(const struct attached *at)
{
	if (at->event >= 0)
		close(at->event);
	if (at->program >= 0)
		close(at->program);
}

/* Checks */

static void call(void)
{
	for (int i = 0; i < CALLS; i++)
		if (read(zero, buffer, BYTES) != BYTES)
			ksft_print_msg("read: %s\n", strerror(errno));
}

static bool equal(const char *what, __u64 is, __u64 should_be)
{
	if (is != should_be)
		ksft_print_msg("%s: %#llx, should be %#llx\n", what, is, should_be);
	return is == should_be;
}

static bool is_trampoline(__u64 address)
{
	const char *name = name_of(address);

	return strstr(name, "trampoline") || strstr(name, "return_to_handler") ||
	       strstr(name, "rethook") || strstr(name, "kprobe") || strstr(name, "bpf_prog");
}

/*
 * From the probed function, if it has not returned yet, over its caller, a system
 * call, to the kernel's entry.
 */
static bool is_true_stack(const __u64 *stack, int depth, bool returns)
{
	int caller = returns ? 0 : 1;
	bool good = depth > caller + 1;

	if (good && !returns)
		good = !strcmp(name_of(stack[0]), "vfs_read");
	if (good)
		good = strstr(name_of(stack[caller]), "sys_read") &&
		       !strncmp(name_of(stack[depth - 1]), "entry_", 6);
	for (int i = 0; i < depth; i++)
		good = good && !is_trampoline(stack[i]);
	for (int i = 0; i < depth && !good; i++)
		ksft_print_msg("stack: %#llx %s\n", stack[i], name_of(stack[i]));
	return good;
}

static bool is_true_stack_id(__u32 id, const struct seen *s)
{
	__u64 stack[MAX_DEPTH];
	union bpf_attr attr = {
		.map_fd = stack_map,
		.key = (uintptr_t)&id,
		.value = (uintptr_t)stack,
	};

	if (sys_bpf(BPF_MAP_LOOKUP_ELEM, &attr)) {
		ksft_print_msg("no stack %d: %s\n", (int)id, strerror(errno));
		return false;
	}
	return !memcmp(stack, s->stack, s->stack_size);
}

#define RESULTS	8	/* of check_way(); one less inside a function */

static void skip_way(const struct way *way)
{
	for (int i = 0; i < RESULTS; i++)
		ksft_test_result_skip("%s: there is no such thing\n", way->name);
}

static void check_values(const struct attached *at)
{
	const struct way *way = at->way;
	const struct seen *s = at->seen;
	bool cookie = way->how == PMU_LINK || way->how == MULTI;

	ksft_test_result(equal("hits", s->hits, CALLS), "%s: runs at each call\n", way->name);
	if (way->returns)
		ksft_test_result(equal("value", s->value, BYTES),
				 "%s: the return value is known\n", way->name);
	else if (!way->inside)
		ksft_test_result(equal("buffer", s->argument_2, (uintptr_t)buffer) &&
				 equal("count", s->argument_3, BYTES),
				 "%s: arguments are known\n", way->name);
	ksft_test_result(equal("func_ip", s->func_ip, way->inside ? 0 : address_of("vfs_read")),
			 "%s: the function is known%s\n", way->name,
			 way->inside ? " as 0, not at its entry" : "");
	ksft_test_result(equal("cookie", s->cookie, cookie ? COOKIE : 0),
			 "%s: the cookie is known\n", way->name);
	ksft_test_result(is_true_stack(s->stack, s->stack_size / 8, way->returns),
			 "%s: the stack is true\n", way->name);
	ksft_test_result(is_true_stack_id(s->stack_id, s),
			 "%s: the stack that was stored is the same\n", way->name);
}

static void check_way(const struct way *way)
{
	struct attached at = attach(way, "vfs_read", 0);

	if (at.event == -EOPNOTSUPP) {
		detach(&at);
		skip_way(way);
		return;
	}
	if (at.event < 0)
		ksft_print_msg("%s\n", strerror(-at.event));
	ksft_test_result(at.event >= 0, "%s: the program is attached\n", way->name);
	forget();
	call();
	check_values(&at);
	detach(&at);
	forget();
	call();
	ksft_test_result(equal("hits", seen->hits, 0), "%s: it runs no more\n", way->name);
}

/* All ways on the same function, attached in the order of the table, or the other. */
static void check_together(bool backwards)
{
	int num = ARRAY_SIZE(ways);
	struct attached at[ARRAY_SIZE(ways)];
	bool hits = true, stacks = true, later = true;

	for (int i = 0; i < num; i++) {
		int j = backwards ? num - 1 - i : i;

		at[i] = attach(&ways[j], "vfs_read", i);
	}
	forget();
	call();
	for (int i = 0; i < num; i++) {
		if (at[i].event == -EOPNOTSUPP)
			continue;
		hits &= equal(at[i].way->name, seen[i].hits, CALLS);
		if (at[i].way->returns)
			hits &= equal(at[i].way->name, seen[i].value, BYTES);
		else
			stacks &= is_true_stack(seen[i].stack, seen[i].stack_size / 8, false);
	}
	for (int i = 0; i < num; i += 2)
		detach(&at[i]);
	forget();
	call();
	for (int i = 0; i < num; i++)
		if (at[i].event >= 0)
			later &= equal(at[i].way->name, seen[i].hits, i & 1 ? CALLS : 0);
	for (int i = 1; i < num; i += 2)
		detach(&at[i]);
	ksft_test_result(hits, "all together%s: all run\n", backwards ? " backwards" : "");
	ksft_test_result(stacks, "all together%s: all stacks are true\n",
			 backwards ? " backwards" : "");
	ksft_test_result(later, "all together%s: some are detached, the others run\n",
			 backwards ? " backwards" : "");
}

static void check_session(int result)
{
	static const struct way session = { "session", SESSION };
	struct attached at = attach(&session, "vfs_read", result);

	forget();
	call();
	if (at.event < 0)
		ksft_test_result_skip("session: there is no such thing\n");
	else
		ksft_test_result(equal("hits", at.seen->hits, result ? CALLS : 2 * CALLS),
				 "session: runs at entries %s\n",
				 result ? "and, as it wants, not at returns" : "and returns");
	detach(&at);
}

/* Three programs at an event: each is run, whatever the others end with. */
static void check_sharing(const char *name)
{
	struct attached at[3];
	const struct way *way = ways;
	bool all = true;

	while (strcmp(way->name, name))
		way++;
	for (int i = 0; i < 3; i++)
		at[i] = attach(way, "vfs_read", i);
	if (at[0].event == -EOPNOTSUPP) {
		ksft_test_result_skip("several programs at an %s\n", name);
		ksft_test_result_skip("one of several programs at an %s goes\n", name);
	} else {
		forget();
		call();
		for (int i = 0; i < 3; i++)
			all &= equal("hits", seen[i].hits, CALLS);
		ksft_test_result(all, "several programs at an %s\n", name);
		detach(&at[1]);
		forget();
		call();
		ksft_test_result(equal("first", seen[0].hits, CALLS) &&
				 equal("second", seen[1].hits, 0) &&
				 equal("third", seen[2].hits, CALLS),
				 "one of several programs at an %s goes\n", name);
		at[1].event = -1;
		at[1].program = -1;
	}
	for (int i = 0; i < 3; i++)
		detach(&at[i]);
}

/* Injected errors */

#define ERROR	ENOTBLK

static bool fails(void)
{
	return getpgid(0) < 0 && errno == ERROR;
}

/* For another process the program does nothing. */
static bool child_fails(void)
{
	pid_t pid = fork();
	int status = 0;

	if (!pid)
		_exit(fails());
	return pid < 0 || waitpid(pid, &status, 0) != pid || status;
}

static int refused(int event, int program)
{
	int fd = set_program(event, program);

	if (fd >= 0)
		close(fd);
	return fd == -EINVAL;
}

/*
 * The return probe is @first, or second. A probe that is asked after the injector
 * does not see the call. What one sees is the error.
 */
static bool is_injected_return_seen(int injector, bool first, bool *good)
{
	static const struct way way = { "return probe", PMU_NAME, .returns = true };
	struct attached at = { };
	int fd = -1;

	if (first)
		at = attach(&way, INJECTED, 0);
	fd = set_program(open_pmu(INJECTED, 0, false), injector);
	if (!first)
		at = attach(&way, INJECTED, 0);
	forget();
	*good &= fails();
	if (seen->hits)
		*good &= equal("hits", seen->hits, 1) && equal("value", seen->value, -ERROR);
	detach(&at);
	close(fd);
	return seen->hits;
}

static void check_injected_return(int injector)
{
	bool good = true;
	int orders = is_injected_return_seen(injector, true, &good) +
		     is_injected_return_seen(injector, false, &good);

	if (access(TRACING "events/kprobes/" RETURN_EVENT, F_OK))
		ksft_test_result_skip("no return probes\n");
	else
		ksft_test_result(good && equal("orders", orders, 1),
				 "a return probe sees the error, or does not see the call\n");
}

static void check_injection(void)
{
	int injector = load_injector(-ERROR);
	int event;

	if (injector < 0) {
		for (int i = 0; i < 6; i++)
			ksft_test_result_skip("no errors can be injected\n");
		return;
	}
	event = set_program(open_pmu(INJECTED, 0, false), injector);
	ksft_test_result(event >= 0, "a program that injects errors is attached\n");
	ksft_test_result(fails() && fails(), "an injected error is returned\n");
	ksft_test_result(!child_fails(), "for those only that the program wants it for\n");
	close(event);
	ksft_test_result(!fails(), "no longer when it is detached\n");
	ksft_test_result(refused(open_pmu("vfs_read", 0, false), injector) &&
			 refused(open_pmu(INJECTED, offset_inside(INJECTED), false), injector),
			 "where errors must not be injected it is refused\n");
	check_injected_return(injector);
	close(injector);
}

/* Programs that come and go while functions are running */

#define THREADS		4
#define ROUNDS		10
#define SHORT		1000000		/* ns */
#define LONG		200000000

static atomic_bool stop;

static void nap(long ns)
{
	const struct timespec time = { .tv_nsec = ns };

	nanosleep(&time, NULL);
}

static void *sleep_once(void *unused)
{
	nap(LONG);
	return NULL;
}

static void *sleep_often(void *unused)
{
	while (!stop)
		nap(SHORT);
	return NULL;
}

static void start(pthread_t *threads, void *(*body)(void *))
{
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, body, NULL))
			ksft_exit_fail_perror("thread");
}

static void join(pthread_t *threads)
{
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
}

static void check_running(void)
{
	static const struct way entry = { "probe", PMU_NAME };
	static const struct way way = { "return probe", PMU_NAME, .returns = true };
	pthread_t threads[THREADS];
	struct attached at[2];
	bool all = true;

	forget();
	at[0] = attach(&way, "do_nanosleep", 0);
	if (at[0].event < 0) {
		for (int i = 0; i < 4; i++)
			ksft_test_result_skip("no return probes\n");
		detach(&at[0]);
		return;
	}
	start(threads, sleep_once);
	join(threads);
	ksft_test_result(equal("hits", seen->hits, THREADS), "sleepers return\n");

	start(threads, sleep_once);
	nap(LONG / 4);
	detach(&at[0]);
	forget();
	join(threads);
	ksft_test_result(equal("hits", seen->hits, 0),
			 "sleepers return after the program was detached\n");

	start(threads, sleep_once);
	nap(LONG / 4);
	at[0] = attach(&way, "do_nanosleep", 0);
	forget();
	join(threads);
	ksft_test_result(equal("hits", seen->hits, 0),
			 "sleepers return that slept when it was attached\n");
	detach(&at[0]);

	start(threads, sleep_often);
	for (int i = 0; i < ROUNDS; i++) {
		at[0] = attach(&way, "do_nanosleep", 0);
		at[1] = attach(&entry, "do_nanosleep", 1);
		forget();
		nap(10 * SHORT);
		all &= at[0].event >= 0 && at[1].event >= 0 && seen[0].hits && seen[1].hits;
		detach(&at[i & 1]);
		nap(SHORT);
		detach(&at[!(i & 1)]);
	}
	stop = true;
	join(threads);
	ksft_test_result(all, "programs come and go while threads sleep\n");
}

int main(void)
{
	ksft_print_header();
	if (!ARGUMENT_2)
		ksft_exit_skip("not for this architecture\n");
	if (access(PMU "type", R_OK) || access(EVENTS, W_OK))
		ksft_exit_skip("no kprobe events, or not in tracefs\n");
	zero = open("/dev/zero", O_RDONLY);
	if (zero < 0)
		ksft_exit_fail_perror("/dev/zero");
	read_symbols();
	create_maps();
	ksft_set_plan(ARRAY_SIZE(ways) * RESULTS - 1 + 2 * 3 + 2 + 2 * 2 + 6 + 4);

	write_events("p:kprobes/" ENTRY_EVENT " vfs_read\n");
	write_events("r:kprobes/" RETURN_EVENT " vfs_read\n");
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++)
		check_way(&ways[i]);
	check_together(false);
	check_together(true);
	check_session(0);
	check_session(1);
	check_sharing("event");
	check_sharing("return event");
	check_injection();
	check_running();
	write_events("-:kprobes/" ENTRY_EVENT "\n");
	write_events("-:kprobes/" RETURN_EVENT "\n");
	ksft_finished();
}
