/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _KPROBES_BPF_H
#define _KPROBES_BPF_H

#include <asm/ptrace.h>
#include <linux/bpf.h>
#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>

#ifdef __x86_64__
#define ARGUMENT_2	offsetof(struct pt_regs, rsi)
#define ARGUMENT_3	offsetof(struct pt_regs, rdx)
#define RETURN_VALUE	offsetof(struct pt_regs, rax)
#define INJECTED	"__x64_sys_getpgid"
#else
/* Other architectures have not been tested. */
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

#define COOKIE	0xc00c1e	/* of all attachments that can have one */

#define MAX_DEPTH	48
#define MAX_OBSERVATIONS	24

/* The findings of one program. */
struct observation {
	__u64 hits;
	__u64 argument_2;
	__u64 argument_3;
	__u64 value;		/* the return value, at a return */
	__u64 func_ip;		/* bpf_get_func_ip() */
	__u64 cookie;		/* bpf_get_attach_cookie() */
	__s64 stack_id;		/* bpf_get_stackid() */
	__s64 stack_size;	/* bpf_get_stack(), in bytes */
	__u64 stack[MAX_DEPTH];
};

enum how {
	PMU_NAME,	/* a probe of perf by symbol and offset */
	PMU_ADDRESS,	/* a probe of perf by address */
	PMU_LINK,	/* a probe of perf, and a BPF link */
	TRACEFS,	/* ENTRY_EVENT or RETURN_EVENT of tracefs */
	MULTI,		/* a BPF link to an fprobe */
	SESSION,	/* a BPF link to an fprobe, with one program for entry and return */
	TRAMPOLINE,	/* a trampoline of BPF, which ftrace calls directly */
	TRAMPOLINES,	/* the same, by a link that can have many functions */
};

/* These attach types are not in older headers. */
#define TRACE_FENTRY_MULTI	(BPF_TRACE_KPROBE_SESSION + 3)
#define TRACE_FEXIT_MULTI	(BPF_TRACE_KPROBE_SESSION + 4)

/* A way to attach a program. */
struct way {
	const char *name;	/* in the results */
	enum how how;
	bool returns;		/* at the return */
	bool inside;		/* neither at the entry nor at the return */
};

static inline bool is_traced(const struct way *way)
{
	return way->how == TRAMPOLINE || way->how == TRAMPOLINES;
}

/* A program and the probe that it is attached to. */
struct attached {
	const struct way *way;
	int program;	/* file descriptor, or negative */
	int event;	/* file descriptor of the event or link, or -errno */
	struct observation *observation;
};

/* bpf_program.c */
extern struct observation *observations;
/* The file descriptor of the map of stacks. */
extern int stack_map;
void create_maps(void);
void reset_observations(void);
int load_observer(int i, const struct way *way, int attach_type, __u32 function);
int load_injector(int error);
int sys_bpf(int command, union bpf_attr *attr);

/* bpf_attach.c */
int open_pmu(const char *function, __u64 where, bool returns);
int offset_inside(const char *function);
void write_events(const char *text);
int set_program(int event, int program);
const char *missing_for(const struct way *way, const char *function);
struct attached attach_observer(const struct way *way, const char *function, int i);
void detach(const struct attached *at);

/* bpf_btf.c */
__u32 btf_id_of(const char *function);

/* bpf_stack.c */
extern bool trampolines_jump;
void read_symbols(void);
__u64 address_of(const char *name);
bool is_true_stack(const struct observation *s, const struct way *way, bool exits);
bool is_true_stack_id(__u32 id, const struct observation *observation);

#endif
