// SPDX-License-Identifier: GPL-2.0
/*
 * Measure the time to open a perf event of the PMU TYPE, that of kprobes, at each address of standard
 * input, and to close them: perf-events TYPE <FILE. Prints lines "NAME NANOSECONDS".
 */
#include <err.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MOST	10000

static unsigned long long addresses[MOST];
static int events[MOST];

static unsigned long long now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000ULL + time.tv_nsec;
}

int main(int argc, char **argv)
{
	struct perf_event_attr attr = { .size = sizeof(attr) };
	struct rlimit limit = { MOST + 100, MOST + 100 };
	unsigned long long start;
	int count = 0;

	if (argc != 2)
		errx(1, "usage: perf-events TYPE <FILE");
	attr.type = atoi(argv[1]);
	if (setrlimit(RLIMIT_NOFILE, &limit))
		err(1, "setrlimit()");
	while (count < MOST && scanf("%llx", &addresses[count]) == 1)
		count++;

	start = now();
	for (int i = 0; i < count; i++) {
		attr.kprobe_addr = addresses[i];
		/* For all tasks, on one CPU, as tracers do. */
		events[i] = syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
		if (events[i] < 0)
			err(1, "perf_event_open() at %llx", addresses[i]);
	}
	printf("open %llu\n", now() - start);
	sleep(3);
	start = now();
	for (int i = 0; i < count; i++)
		close(events[i]);
	printf("close %llu\n", now() - start);
	return !count;
}
