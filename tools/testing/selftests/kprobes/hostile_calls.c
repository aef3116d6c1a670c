// SPDX-License-Identifier: GPL-2.0
/*
 * Define events of tracefs and open perf events of kprobes, with what no tool would pass.
 *
 * usage: hostile_calls tracefs SEED TRIES FILE
 *        hostile_calls perf SEED TRIES [ADDRESS...]
 *        hostile_calls bytes SEED LENGTH
 *
 * Prints how often each errno was seen, and fails if one is not documented. The addresses,
 * in hexadecimal, must all be refused. "bytes" prints that many. All follows from the seed.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PMU	"/sys/bus/event_source/devices/kprobe/type"

/* The latter ones are those of the parser of events. */
static const int expected[] = {
	EINVAL, ENOENT, EILSEQ, EOPNOTSUPP, EADDRNOTAVAIL, EFAULT, E2BIG, ENAMETOOLONG,
	EEXIST, ENOSPC, ERANGE, ENODEV, EBUSY, 0
};

static unsigned int seen[256];
static uint64_t state;

/* xorshift64 */
static uint64_t any(void)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return state;
}

static int kprobe_type(void)
{
	FILE *file = fopen(PMU, "r");
	int type;

	if (!file || fscanf(file, "%d", &type) != 1)
		exit(4);
	fclose(file);
	return type;
}

/* Returns 0, or the errno. A probe that was opened is closed again. */
static int try_to_open(int type, const char *function, uint64_t where, uint64_t config)
{
	struct perf_event_attr attr = {
		.size		= sizeof(attr),
		.type		= type,
		.config		= config,
		.kprobe_func	= (uintptr_t)function,
		.probe_offset	= where,
		.disabled	= 1,
	};
	int event = syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);

	if (event >= 0) {
		close(event);
		return 0;
	}
	return errno;
}

static int is_expected(int error)
{
	const int *known = expected;

	while (*known && *known != error)
		known++;
	return *known;
}

static uint64_t choose_address(void)
{
	switch (any() % 4) {
	case 0:
		return any();
	case 1:
		return any() >> (17 + any() % 40);		/* user */
	case 2:
		return -(any() % 65536);			/* error pointers */
	default:
		return 0xffff888000000000 + any() % (1 << 30);	/* memory */
	}
}

static char name[8192];

static const char *choose_function(void)
{
	static const char bytes[] = "%s:\n+.k\xff";
	unsigned int length = any() % 16 ? any() % 64 : any() % sizeof(name);

	if (any() % 64 == 0)
		return (const char *)(any() >> 17);		/* no memory of ours */
	for (unsigned int i = 0; i < length; i++)
		name[i] = any() % 4 ? bytes[any() % 8] : (char)(any() % 255 + 1);
	name[length] = '\0';
	return length ? name : "%n";
}

static int is_bad(int error, const char *what)
{
	seen[error & 255]++;
	if (is_expected(error))
		return 0;
	printf("# %s: %s\n", what, strerror(error));
	return 1;
}

static int try_perf(unsigned long tries, char **addresses)
{
	int type = kprobe_type(), bad = 0;

	while (tries--) {
		const char *function = any() % 2 ? choose_function() : NULL;
		uint64_t where = function ? any() >> any() % 64 : choose_address();

		int error = try_to_open(type, function, where, any() % 16 ? any() % 2 : any());

		/* Of 32 bits, an address may be that of an instruction. */
		if (error || sizeof(long) == 8)
			bad |= is_bad(error, "random event");
	}
	for (; *addresses; addresses++)
		bad |= is_bad(try_to_open(type, NULL, strtoull(*addresses, NULL, 16), 0),
			      *addresses);
	return bad;
}

/* A definition of what an event could look like, or random bytes. Returns its length. */
static unsigned int choose_definition(char *text)
{
	static const char bytes[] = "pr0x1f+-@$%,()=/ \t\n";
	unsigned int length = any() % 64 ? any() % 128 : any() % 7000;
	unsigned int at = 0;

	if (any() % 4)
		at = sprintf(text, "%c:kprobes/h ", "prprpq"[any() % 6]);
	while (length--)
		text[at++] = any() % 8 ? bytes[any() % (sizeof(bytes) - 1)] : (char)any();
	text[at++] = '\n';
	return at;
}

/* Empty lines and comments are accepted. */
static int try_tracefs(unsigned long tries, const char *path)
{
	static char text[8192];
	int file = open(path, O_WRONLY | O_APPEND), bad = 0;

	if (file < 0)
		err(1, "%s", path);
	while (tries--) {
		unsigned int length = choose_definition(text);

		if (write(file, text, length) < 0)
			bad |= is_bad(errno, "definition");
		else
			seen[0]++;
	}
	close(file);
	return bad;
}

int main(int argc, char **argv)
{
	unsigned long tries;
	int bad;

	if (argc < 4)
		errx(1, "usage: hostile_calls tracefs|perf|bytes SEED TRIES [ARGUMENT...]");
	/* xorshift64 stays at 0, and begins slowly with few bits. */
	state = 0x9e3779b97f4a7c15 + strtoul(argv[2], NULL, 0);
	tries = strtoul(argv[3], NULL, 0);
	if (!strcmp(argv[1], "bytes")) {
		while (tries--)
			putchar(any());
		return 0;
	}
	if (!strcmp(argv[1], "perf"))
		bad = try_perf(tries, argv + 4);
	else
		bad = try_tracefs(tries, argv[4]);
	for (int i = 0; i < 256; i++)
		if (seen[i])
			printf("# %s: %u\n", strerror(i), seen[i]);
	return bad;
}
