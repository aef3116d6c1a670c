// SPDX-License-Identifier: GPL-2.0
/* Symbols of the kernel, and checks of stack traces */
#include <errno.h>
#include <linux/bpf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../kselftest.h"
#include "bpf.h"

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

/* Anew, as those of BPF come and go. */
void read_symbols(void)
{
	FILE *file = fopen("/proc/kallsyms", "r");
	struct symbol symbol;
	char type;

	if (!file)
		ksft_exit_fail_perror("kallsyms");
	symbols_num = 0;
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

__u64 address_of(const char *name)
{
	for (size_t i = 0; i < symbols_num; i++)
		if (!strcmp(symbols[i].name, name))
			return symbols[i].address;
	return 0;
}

/* The last symbol that is not after the address. */
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
	return low ? symbols[low - 1].name : "no symbol";
}

static bool is_trampoline(__u64 address)
{
	const char *name = name_of(address);

	return strstr(name, "trampoline") || strstr(name, "return_to_handler") ||
	       strstr(name, "rethook") || strstr(name, "kprobe") || strstr(name, "bpf_prog");
}

static bool is_probed(__u64 address)
{
	return !strcmp(name_of(address), "vfs_read");
}

/*
 * The number of frames before the caller's: of the probed function, and of a trampoline that has
 * called it. The function's entry calls a trampoline or, in newer kernels, jumps to it.
 */
static int frames_of_function(const __u64 *stack, int depth, const struct way *way)
{
	if (is_traced(way))
		return is_probed(stack[0]);
	if (way->inside && depth > 2 && !strncmp(name_of(stack[1]), "bpf_trampoline_", 15))
		return 2 + is_probed(stack[2]);
	return way->returns ? 0 : 1;
}

/*
 * True for a stack without trampolines, from the probed function, unless it has returned, and
 * its caller to the kernel's entry.
 */
bool is_true_stack(const __u64 *stack, int depth, const struct way *way)
{
	int caller = frames_of_function(stack, depth, way);
	bool good = depth > caller + 1;

	if (good && caller)
		good = is_probed(stack[0]);
	if (good)
		good = strstr(name_of(stack[caller]), "sys_read") &&
		       !strncmp(name_of(stack[depth - 1]), "entry_", 6);
	for (int i = caller; i < depth; i++)
		good = good && !is_trampoline(stack[i]);
	for (int i = 0; i < depth && !good; i++)
		ksft_print_msg("stack: %#llx %s\n", stack[i], name_of(stack[i]));
	return good;
}

bool is_true_stack_id(__u32 id, const struct observation *s)
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
