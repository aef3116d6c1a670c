// SPDX-License-Identifier: GPL-2.0
/*
 * Assemble BPF programs, and map their findings
 *
 * Each program stores what it finds in a struct observation of its own, in an array map that
 * this process maps into its memory. Programs ignore the calls of other processes.
 */
#include <errno.h>
#include <linux/bpf.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../../../include/linux/filter.h"
#include "../kselftest.h"
#include "bpf.h"

struct observation *observations;

int stack_map;

/* The file descriptor of the map that observations[] is in. */
static int observation_map;

struct program {
	int num;
	struct bpf_insn insns[64];
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

/* Return at once in other processes. Sets register 6 to the context. */
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

/* Store register 0 in the observation, which register 7 points to. */
static void emit_store(struct program *p, size_t where)
{
	EMIT(p, BPF_STX_MEM(BPF_DW, BPF_REG_7, BPF_REG_0, where));
}

static void emit_store_register(struct program *p, size_t where, size_t offset)
{
	EMIT(p, BPF_LDX_MEM(BPF_DW, BPF_REG_0, BPF_REG_6, offset));
	emit_store(p, where);
}

/* Call a helper with the context as its first argument, and store the result. */
static void emit_store_result(struct program *p, size_t where, int function)
{
	EMIT(p, BPF_MOV64_REG(BPF_REG_1, BPF_REG_6), BPF_EMIT_CALL(function));
	emit_store(p, where);
}

int sys_bpf(int command, union bpf_attr *attr)
{
	return syscall(__NR_bpf, command, attr, sizeof(*attr));
}

/* @function is the BTF ID of the one function that the program is for, or 0. */
static int load_program(const struct program *p, int type, int attach_type, __u32 function)
{
	static char log[64 << 10];
	union bpf_attr attr = {
		.prog_type = type,
		.expected_attach_type = attach_type,
		.attach_btf_id = function,
		.insns = (uintptr_t)p->insns,
		.insn_cnt = p->num,
		.license = (uintptr_t)"GPL",
		.log_buf = (uintptr_t)log,
		.log_size = sizeof(log),
		.log_level = 1,
	};
	int fd = sys_bpf(BPF_PROG_LOAD, &attr);

	if (fd < 0)
		ksft_print_msg("attach type %d: %s\n%s\n", attach_type, strerror(errno), log);
	return fd;
}

/* Let a register point into the observation. */
static void emit_pointer(struct program *p, int pointer, size_t where)
{
	EMIT(p, BPF_MOV64_REG(pointer, BPF_REG_7), BPF_ALU64_IMM(BPF_ADD, pointer, where));
}

static void emit_fetch_argument(struct program *p, size_t where, int argument)
{
	emit_pointer(p, BPF_REG_3, where);
	EMIT(p, BPF_MOV64_REG(BPF_REG_1, BPF_REG_6), BPF_MOV64_IMM(BPF_REG_2, argument),
	     BPF_EMIT_CALL(BPF_FUNC_get_func_arg));
}

static void emit_values(struct program *p, const struct way *way)
{
	if (!is_traced(way)) {
		emit_store_register(p, offsetof(struct observation, argument_2), ARGUMENT_2);
		emit_store_register(p, offsetof(struct observation, argument_3), ARGUMENT_3);
		emit_store_register(p, offsetof(struct observation, value), RETURN_VALUE);
		return;
	}
	emit_fetch_argument(p, offsetof(struct observation, argument_2), 1);
	emit_fetch_argument(p, offsetof(struct observation, argument_3), 2);
	if (!way->returns)
		return;
	emit_pointer(p, BPF_REG_2, offsetof(struct observation, value));
	EMIT(p, BPF_MOV64_REG(BPF_REG_1, BPF_REG_6), BPF_EMIT_CALL(BPF_FUNC_get_func_ret));
}

/* Load a program that fills observations[@i]. It returns @i & 1 if it is no trampoline's. */
int load_observer(int i, const struct way *way, int attach_type, __u32 function)
{
	int skip = is_traced(way);	/* the program itself */
	int type = is_traced(way) ? BPF_PROG_TYPE_TRACING : BPF_PROG_TYPE_KPROBE;
	struct program p = { };

	emit_filter(&p);
	EMIT(&p, BPF_LD_MAP_VALUE(BPF_REG_7, observation_map, i * sizeof(struct observation)),
	     BPF_MOV64_IMM(BPF_REG_0, 1),
	     BPF_ATOMIC_OP(BPF_DW, BPF_ADD, BPF_REG_7, BPF_REG_0,
			   offsetof(struct observation, hits)));
	emit_values(&p, way);
	emit_store_result(&p, offsetof(struct observation, func_ip), BPF_FUNC_get_func_ip);
	emit_store_result(&p, offsetof(struct observation, cookie), BPF_FUNC_get_attach_cookie);
	EMIT(&p, BPF_LD_MAP_FD(BPF_REG_2, stack_map),
	     BPF_MOV64_IMM(BPF_REG_3, skip | BPF_F_REUSE_STACKID));
	emit_store_result(&p, offsetof(struct observation, stack_id), BPF_FUNC_get_stackid);
	emit_pointer(&p, BPF_REG_2, offsetof(struct observation, stack));
	EMIT(&p, BPF_MOV64_IMM(BPF_REG_3, sizeof(observations->stack)),
	     BPF_MOV64_IMM(BPF_REG_4, skip));
	emit_store_result(&p, offsetof(struct observation, stack_size), BPF_FUNC_get_stack);
	emit_return(&p, is_traced(way) ? 0 : i & 1);
	return load_program(&p, type, attach_type, function);
}

/* Load a program that makes the probed function return @error without being executed. */
int load_injector(int error)
{
	struct program p = { };

	emit_filter(&p);
	EMIT(&p, BPF_MOV64_REG(BPF_REG_1, BPF_REG_6),
	     BPF_MOV64_IMM(BPF_REG_2, error),
	     BPF_EMIT_CALL(BPF_FUNC_override_return));
	emit_return(&p, 0);
	return load_program(&p, BPF_PROG_TYPE_KPROBE, 0, 0);
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

void create_maps(void)
{
	size_t size = MAX_OBSERVATIONS * sizeof(struct observation);

	stack_map = create_map(BPF_MAP_TYPE_STACK_TRACE, 4, sizeof(observations->stack), 1024, 0);
	observation_map = create_map(BPF_MAP_TYPE_ARRAY, 4, size, 1, BPF_F_MMAPABLE);
	observations = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, observation_map, 0);
	if (observations == MAP_FAILED)
		ksft_exit_fail_perror("mmap");
}

void reset_observations(void)
{
	memset(observations, 0, MAX_OBSERVATIONS * sizeof(*observations));
}
