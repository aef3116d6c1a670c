// SPDX-License-Identifier: GPL-2.0
/*
 * Measure the time to open a perf event for each of many probes, and to close them.
 *
 * usage: perf-events FILE
 *
 * FILE has an address on each line. Prints lines "NAME NANOSECONDS".
 */
#include <err.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PMU	"/sys/bus/event_source/devices/kprobe/type"

#define MOST	10000

static unsigned long long addresses[MOST];
static int events[MOST];

static unsigned long long now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000ULL + time.tv_nsec;
}

static int kprobe_type(void)
{
	FILE *file = fopen(PMU, "r");
	int type;

	if (!file || fscanf(file, "%d", &type) != 1)
		err(1, "%s", PMU);
	fclose(file);
	return type;
}

/* For all tasks, on one CPU, as tracers do. */
static int open_event(int type, unsigned long long addr)
{
	struct perf_event_attr attr = {
		.size		= sizeof(attr),
		.type		= type,
		.kprobe_addr	= addr,
	};
	int event = syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);

	if (event < 0)
		err(1, "perf_event_open() at %llx", addr);
	return event;
}

int main(int argc, char **argv)
{
	struct rlimit limit = { MOST + 100, MOST + 100 };
	unsigned long long start;
	int type, count = 0;
	FILE *file;

	if (argc != 2)
		errx(1, "usage: perf-events FILE");
	type = kprobe_type();
	file = fopen(argv[1], "r");
	if (!file)
		err(1, "%s", argv[1]);
	if (setrlimit(RLIMIT_NOFILE, &limit))
		err(1, "setrlimit()");
	while (count < MOST && fscanf(file, "%llx", &addresses[count]) == 1)
		count++;

	start = now();
	for (int i = 0; i < count; i++)
		events[i] = open_event(type, addresses[i]);
	printf("open %llu\n", now() - start);
	sleep(3);
	start = now();
	for (int i = 0; i < count; i++)
		close(events[i]);
	printf("close %llu\n", now() - start);
	return !count;
}
