// SPDX-License-Identifier: GPL-2.0
/*
 * The init of guests of other architectures than x86_64. It reports the results of
 * the KUnit tests, checks what the clients of kprobes in user space see, and switches
 * the guest off. Linked with nolibc: there need not be a C library for the architecture.
 *
 * The verdict is KTAP, written to the first virtio port: a kernel message on the
 * console can cut a line of it in two.
 */
#include <linux/reboot.h>

#define PORT	"/dev/vport0p1"

static char buffer[1 << 20];
static int checks;

static void check(int good, const char *what)
{
	printf("%s %d %s\n", good ? "ok" : "not ok", ++checks, what);
}

static const char *read_file(const char *path)
{
	int fd = open(path, O_RDONLY);
	ssize_t n, length = 0;

	while (fd >= 0 && (n = read(fd, buffer + length, sizeof(buffer) - 1 - length)) > 0)
		length += n;
	close(fd);
	buffer[length] = '\0';
	return buffer;
}

static int write_file(const char *path, int flags, const char *text)
{
	int fd = open(path, O_WRONLY | flags);
	ssize_t length = strlen(text);
	int good = fd >= 0 && write(fd, text, length) == length;

	close(fd);
	return good;
}

/* The first @word of @text, or its end. */
static const char *find(const char *text, const char *word)
{
	size_t length = strlen(word);

	while (*text && strncmp(text, word, length))
		text++;
	return text;
}

static int count(const char *text, const char *word)
{
	int n = 0;

	for (text = find(text, word); *text; text = find(text + 1, word))
		n++;
	return n;
}

/* Yields: a task that does not schedule keeps a grace period of RCU-tasks waiting. */
static void print_nested(const char *text)
{
	while (*text) {
		const char *end = strchr(text, '\n');
		int length = end ? end - text : (int)strlen(text);

		printf("    ");
		fwrite(text, length, 1, stdout);
		printf("\n");
		text += length + !!end;
		sched_yield();
	}
}

#define KUNIT	"/sys/kernel/debug/kunit/"

static void kunit_suite(const char *suite)
{
	char path[sizeof(KUNIT) + 256 + sizeof("/results")] = KUNIT;
	const char *results;

	strlcat(path, suite, sizeof(path));
	strlcat(path, "/results", sizeof(path));
	results = read_file(path);
	print_nested(results);
	check(*results && !count(results, "not ok"), suite);
}

/* Report the suites that have run, each of which has a directory. */
static void kunit_suites(void)
{
	static char entries[1 << 16];
	int fd = open(KUNIT, O_RDONLY | O_DIRECTORY);
	int probes = 0, return_probes = 0;
	int length;

	while (fd >= 0 && (length = getdents64(fd, (void *)entries, sizeof(entries))) > 0) {
		for (int i = 0; i < length;) {
			struct linux_dirent64 *entry = (void *)(entries + i);

			i += entry->d_reclen;
			if (entry->d_name[0] == '.')
				continue;
			kunit_suite(entry->d_name);
			probes += !strcmp(entry->d_name, "kprobes-handlers");
			return_probes += !strcmp(entry->d_name, "kretprobes-handlers");
		}
	}
	close(fd);
	check(probes == 1, "the tests of probes have run");
	/* All the architectures have return probes: kprobe_events() demands one. */
	check(return_probes == 1, "the tests of return probes have run");
}

/* Each open() is one call of this function. */
#define FUNCTION "do_sys_openat2"

static int trace_opens(const char *event)
{
	write_file("/sys/kernel/tracing/trace", O_TRUNC, "");
	write_file("/sys/kernel/tracing/events/kprobes/enable", 0, "1");
	for (int i = 0; i < 10; i++)
		close(open("/no such file", O_RDONLY));
	write_file("/sys/kernel/tracing/events/kprobes/enable", 0, "0");
	return count(read_file("/sys/kernel/tracing/trace"), event);
}

static int hits(const char *event)
{
	const char *text = find(read_file("/sys/kernel/tracing/kprobe_profile"), event);

	for (text += *text ? strlen(event) : 0; *text == ' '; text++)
		;
	return atoi(text);
}

/*
 * Where a breakpoint is like an NMI, and a compare-and-exchange is not safe in one,
 * the ring buffer takes nothing of what a handler writes; but hits are counted.
 */
#ifdef __riscv
#define TRACED_AT_BREAKPOINTS	0
#else
#define TRACED_AT_BREAKPOINTS	1
#endif

static void kprobe_events(void)
{
	const char *list;
	int traced;

	check(write_file("/sys/kernel/tracing/kprobe_events", O_APPEND, "p:entered " FUNCTION "\n") &&
	      write_file("/sys/kernel/tracing/kprobe_events", O_APPEND,
			 "r:returned " FUNCTION " ret=$retval:s32\n"), "kprobe events are made");
	traced = trace_opens("entered: (" FUNCTION);
	check(traced >= 10 || !TRACED_AT_BREAKPOINTS, "entries are traced");
	check(hits("entered") >= 10, "and counted");
	check(trace_opens("ret=-2") == 10, "return values are traced");
	write_file("/sys/kernel/tracing/events/kprobes/enable", 0, "1");
	list = read_file("/sys/kernel/debug/kprobes/list");
	check(count(list, FUNCTION) == 2, "probes are listed");
	print_nested(list);
	write_file("/sys/kernel/debug/kprobes/enabled", 0, "0");
	check(trace_opens("ret=-2") == 0, "all probes are switched off");
	write_file("/sys/kernel/debug/kprobes/enabled", 0, "1");
	check(trace_opens("ret=-2") == 10, "and on");
	check(write_file("/sys/kernel/tracing/kprobe_events", O_APPEND, "-:entered\n") &&
	      write_file("/sys/kernel/tracing/kprobe_events", O_APPEND, "-:returned\n"), "events are removed");
	check(!count(read_file("/sys/kernel/debug/kprobes/list"), FUNCTION), "and not listed");
}

static void load_module(const char *path, const char *options)
{
	int fd = open(path, O_RDONLY), err;

	if (fd < 0)
		return;
	err = my_syscall3(__NR_finit_module, fd, options, 0);
	close(fd);
	close(open("/no such file", O_RDONLY));
	check(!err, path);
}

static void unload_module(const char *name)
{
	check(!my_syscall2(__NR_delete_module, name, O_NONBLOCK), name);
}

/* Make the port the standard output. The driver adds it some time after the boot. */
static int open_port(void)
{
	for (int i = 0; i < 100; i++) {
		int fd = open(PORT, O_WRONLY);

		if (fd >= 0)
			return dup2(fd, 1) == 1;
		msleep(100);
	}
	return 0;
}

int main(void)
{
	mkdir("/proc", 0755);
	mkdir("/sys", 0755);
	mkdir("/dev", 0755);
	mount("proc", "/proc", "proc", 0, NULL);
	mount("sysfs", "/sys", "sysfs", 0, NULL);
	mount("debugfs", "/sys/kernel/debug", "debugfs", 0, NULL);
	mount("tracefs", "/sys/kernel/tracing", "tracefs", 0, NULL);
	mount("devtmpfs", "/dev", "devtmpfs", 0, NULL);
	if (!open_port())
		return 1;
	printf("KTAP version 1\n");
	kprobe_events();
	load_module("/kprobe_example.ko", "symbol=" FUNCTION);
	load_module("/kretprobe_example.ko", "symbol=" FUNCTION);
	unload_module("kprobe_example");
	unload_module("kretprobe_example");

	/* If the tests are in a module, they run now, when allocations can fail. */
	write_file("/sys/kernel/debug/failslab/ignore-gfp-wait", 0, "N");
	write_file("/sys/kernel/debug/failslab/verbose", 0, "0");
	load_module("/test_kprobes.ko", "");
	kunit_suites();
	printf("1..%d\n# done 0\n", checks);
	reboot(LINUX_REBOOT_CMD_POWER_OFF);
	return 1;
}
