#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# What Documentation/trace/kprobes.rst says: each of its examples for a shell is run, and
# prints what is written there but for some numbers. kprobe_manual has its examples in C.
. ./lib.sh
find_rmdir

manual=../../../../Documentation/trace/kprobes.rst
[ -e "$manual" ] || skip_all "no $manual"
is_base && skip_all "these are not the kprobes of the manual"
use_events
on_exit 'modprobe -r kprobe_manual 2>/dev/null'
export LC_ALL=C PERF_PAGER=cat

# An example is a paragraph, indented by two spaces, whose first line is a command: a line
# after "# ". Write each to a file of its own, with the name that a function has in this kernel.
sed "s/\<do_rmdir\>/$rmdir/" "$manual" | awk -v output="$output.block" '
	/^  # / && !inside { n++; inside = 1 }
	!/^  / { inside = 0 }
	inside { print substr($0, 3) >(output sprintf("%02d", n)) }'

# Addresses, times and tasks differ; small numbers are counts and results.
without_numbers() {
	sed "s/failed to remove //
		s/0x[0-9a-f]\+/N/g; s/\<[0-9a-f]\{8,\}\>/N/g; s/[0-9]\+[.][0-9]\+/N/g
		s/\<rmdir\([- ] *\)[0-9]\+/rmdir\1N/; s/[0-9]\{3,\}/N/g
		s/\[N\] [^ ]*/[N]/; s/[[:space:]]\+/ /g; s/^ //; s/ $//; /^$/d"
}

# Run the commands of an example in one shell, which prints them, too.
example_holds() {	# FILE
	sed "s/^# //; s/not at the start of an instruction/$(first_insn_reason)/" "$1" |
		without_numbers >"$output.expected"
	sed -n 's/^# //p' "$1" >"$output.commands"
	sh -v "$output.commands" 2>&1 | without_numbers | diff "$output.expected" -
}

# What an example needs and the guest or the kernel does not have.
missing_need() {	# FILE
	for program in perf bpftrace; do
		! grep -q "^# $program " "$1" || command -v $program >/dev/null || echo $program
	done
	! grep -q "^# bpftrace " "$1" || has_config BPF_EVENTS || echo CONFIG_BPF_EVENTS
}

log_has_examples() {
	log_has_line "kprobe_manual: kernel_clone: 0x[0-9a-f]+" &&
		log_has_line "kprobe_manual: kernel_clone\(\) = $child"
}

plan $(($(ls "$output".block* | wc -l) + 3))
for block in "$output".block*; do
	name=$(sed 's/^# //; q' "$block")
	missing=$(missing_need "$block" | head -n 1)
	if [ "$missing" ]; then
		skip "no $missing" "$name"
	else
		check "$name" example_holds "$block"
	fi
done

if has_module kprobe_manual; then
	dmesg -c >/dev/null
	check "the examples in C are registered" modprobe kprobe_manual
	/bin/true &
	child=$!
	wait
	check "their handlers are called" log_has_examples
	modprobe -r kprobe_manual
else
	skip "no module kprobe_manual" "the examples in C are registered" \
		"their handlers are called"
fi
check_no_probe_is_left
