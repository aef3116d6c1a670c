// SPDX-License-Identifier: GPL-2.0
/*
 * Attach BPF programs to probes
 *
 * Functions that open an event or a link return its file descriptor or -errno. Closing the
 * file descriptor detaches the program.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../kselftest.h"
#include "bpf.h"

static int open_event(struct perf_event_attr *attr)
{
	int fd;

	attr->size = sizeof(*attr);
	attr->sample_period = 1;
	/* The CPU has no effect: programs run on all CPUs. */
	fd = syscall(__NR_perf_event_open, attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* A probe of perf, at an offset in a function or, if @function is NULL, at an address. */
int open_pmu(const char *function, __u64 where, bool returns)
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

/* An error shows in later tests. */
void write_events(const char *text)
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

int set_program(int event, int program)
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

static int create_link(union bpf_attr *attr)
{
	int fd = sys_bpf(BPF_LINK_CREATE, attr);

	return fd < 0 ? -errno : fd;
}

/* The link keeps a reference to the event. */
static int link_program(int event, int program)
{
	union bpf_attr attr = {
		.link_create.prog_fd = program,
		.link_create.target_fd = event,
		.link_create.attach_type = BPF_PERF_EVENT,
		.link_create.perf_event.bpf_cookie = COOKIE,
	};
	int fd;

	if (event < 0)
		return event;
	fd = create_link(&attr);
	close(event);
	return fd;
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

	return create_link(&attr);
}

/* The offset of an instruction that is neither the first nor the ftrace site. */
int offset_inside(const char *function)
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

/* The program names the function. */
static int link_trampoline(int program, int attach_type)
{
	union bpf_attr attr = {
		.link_create.prog_fd = program,
		.link_create.attach_type = attach_type,
		.link_create.tracing.cookie = COOKIE,
	};

	return create_link(&attr);
}

static int link_trampolines(const char *function, int program, int attach_type)
{
	const __u32 ids[] = { btf_id_of(function) };
	const __u64 cookies[] = { COOKIE };
	/* In newer headers, this is a part of union bpf_attr. */
	struct {
		__u32 prog_fd, target_fd, attach_type, flags;
		__u64 ids, cookies;
		__u32 cnt;
	} link_create = {
		.prog_fd = program,
		.attach_type = attach_type,
		.ids = (uintptr_t)ids,
		.cookies = (uintptr_t)cookies,
		.cnt = 1,
	};
	union bpf_attr attr = { };

	memcpy(&attr, &link_create, sizeof(link_create));
	return create_link(&attr);
}

static int attach_type_of(const struct way *way)
{
	static const int types[][2] = {
		[MULTI] = { BPF_TRACE_KPROBE_MULTI, BPF_TRACE_KPROBE_MULTI },
		[SESSION] = { BPF_TRACE_KPROBE_SESSION },
		[TRAMPOLINE] = { BPF_TRACE_FENTRY, BPF_TRACE_FEXIT },
		[TRAMPOLINES] = { TRACE_FENTRY_MULTI, TRACE_FEXIT_MULTI },
	};

	return types[way->how][way->returns];
}

/* What this kernel lacks for a way, as far as that is known before an attempt, or NULL. */
const char *missing_for(const struct way *way, const char *function)
{
	if (is_traced(way) && !btf_id_of(function))
		return "no BTF";
	if (way->how == TRAMPOLINES && !address_of("bpf_tracing_multi_attach"))
		return "no tracing_multi links";
	return NULL;
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
	case TRAMPOLINE:
		return link_trampoline(program, attach_type_of(way));
	case TRAMPOLINES:
		return link_trampolines(function, program, attach_type_of(way));
	default:
		return link_multi(function, program, attach_type_of(way), way->returns);
	}
}

/* Attach a program that stores its findings in observations[@i]. */
struct attached attach_observer(const struct way *way, const char *function, int i)
{
	struct attached at = {
		.way = way,
		.program = -1,
		.event = -EOPNOTSUPP,
		.observation = &observations[i],
	};

	if (missing_for(way, function))
		return at;
	at.program = load_observer(i, way, attach_type_of(way),
				   way->how == TRAMPOLINE ? btf_id_of(function) : 0);
	at.event = at.program < 0 ? -EINVAL : attach_program(way, function, at.program);
	return at;
}

void detach(const struct attached *at)
{
	if (at->event >= 0)
		close(at->event);
	if (at->program >= 0)
		close(at->program);
}
