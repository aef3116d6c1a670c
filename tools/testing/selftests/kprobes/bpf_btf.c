// SPDX-License-Identifier: GPL-2.0
/* Functions in the kernel's type information */
#include <linux/btf.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../kselftest.h"
#include "bpf.h"

#define BTF	"/sys/kernel/btf/vmlinux"

/* The bytes after a type of each kind: how many always, and how many for each of its parts. */
static const struct {
	__u8 fixed, part;
} rest[NR_BTF_KINDS] = {
	[BTF_KIND_INT]		= { sizeof(__u32) },
	[BTF_KIND_ARRAY]	= { sizeof(struct btf_array) },
	[BTF_KIND_STRUCT]	= { 0, sizeof(struct btf_member) },
	[BTF_KIND_UNION]	= { 0, sizeof(struct btf_member) },
	[BTF_KIND_ENUM]		= { 0, sizeof(struct btf_enum) },
	[BTF_KIND_FUNC_PROTO]	= { 0, sizeof(struct btf_param) },
	[BTF_KIND_VAR]		= { sizeof(struct btf_var) },
	[BTF_KIND_DATASEC]	= { 0, sizeof(struct btf_var_secinfo) },
	[BTF_KIND_DECL_TAG]	= { sizeof(struct btf_decl_tag) },
	[BTF_KIND_ENUM64]	= { 0, sizeof(struct btf_enum64) },
};

/* The BTF ID of a function, or 0 if the kernel has no BTF. */
__u32 btf_id_of(const char *function)
{
	static union {
		struct btf_header header;
		char bytes[64 << 20];
	} btf;
	const char *strings, *types, *end;
	FILE *file;

	if (access(BTF, F_OK))
		return 0;
	file = fopen(BTF, "r");
	if (!file || (!btf.header.magic && !fread(btf.bytes, 1, sizeof(btf), file)))
		ksft_exit_fail_perror(BTF);
	fclose(file);
	strings = btf.bytes + btf.header.hdr_len + btf.header.str_off;
	types = btf.bytes + btf.header.hdr_len + btf.header.type_off;
	end = types + btf.header.type_len;
	for (__u32 id = 1; types < end; id++) {
		const struct btf_type *type = (const void *)types;
		unsigned int kind = BTF_INFO_KIND(type->info);

		if (kind >= NR_BTF_KINDS)
			break;
		if (kind == BTF_KIND_FUNC && !strcmp(strings + type->name_off, function))
			return id;
		types += sizeof(*type) + rest[kind].fixed +
			 BTF_INFO_VLEN(type->info) * rest[kind].part;
	}
	ksft_exit_fail_msg("%s is not in BTF, or has not been found\n", function);
}
