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

bool trampolines_jump;

static int compare_symbols(const void *a, const void *b)
{
	const struct symbol *s = a, *t = b;

	return s->address < t->address ? -1 : s->address > t->address;
}

/* Forget those of before, as programs and trampolines come and go. */
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

/*
 * True for a stack from vfs_read(), unless it has returned, to the kernel's entry. That of a
 * program in a trampoline begins with the trampoline. With programs at the exit (@exits), that
 * calls the rest of the function. Only the names of trampolines go on, with a number.
 */
bool is_true_stack(const struct observation *s, const struct way *way, bool exits)
{
	static const char * const frames[] = { "vfs_read", "bpf_trampoline_", "vfs_read" };
	int depth = s->stack_size / 8, num = way->returns ? 0 : 1, first = is_traced(way);
	const __u64 *stack = s->stack;
	bool good;

	if (is_traced(way) || (way->inside && exits))
		num = (exits && trampolines_jump ? 2 : 3) - first;
	good = depth > num + 1;
	for (int i = 0; i < num && good; i++)
		good = !strncmp(name_of(stack[i]), frames[first + i], strlen(frames[1]));
	if (good)
		good = strstr(name_of(stack[num]), "sys_read") &&
		       !strncmp(name_of(stack[depth - 1]), "entry_", 6);
	for (int i = num; i < depth; i++)
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
