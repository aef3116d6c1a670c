#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# What a locked down kernel allows: it keeps integrity without write access to debugfs, and
# confidentiality without new events. The probes of a module that is there are hit at each
# level, and root reads the files that cannot be written. Checks the level that the kernel is at.
. ./lib.sh

lockdown=/sys/kernel/security/lockdown
[ -e $lockdown ] || skip_all "no $lockdown"
[ -e $kprobes/check ] || skip_all "no $kprobes/check"
has_module kprobe_example || skip_all "no module kprobe_example"
if ! [ -e /sys/module/kprobe_example ]; then
	modprobe kprobe_example || skip_all "the kernel allows no unsigned module"
	on_exit 'modprobe -r kprobe_example'
fi
level=$(sed 's/.*\[\(.*\)\].*/\1/' $lockdown)

check_at() {	# LEVELS NAME COMMAND...: it succeeds at these levels, and no other one
	levels=$1
	shift
	case " $levels " in
	*" $level "*) check "$@" ;;
	*)
		refused=$1
		shift
		check_error "not: $refused" "Operation not permitted" "$@" ;;
	esac
}

define_and_remove_event() {
	add_event 'p:kprobes/lockdown kernel_clone' && add_event '-:kprobes/lockdown'
}

write_same() {	# FILE
	write_line "$(cat "$1")" "$1"
}

example_is_hit() {
	dmesg -c >/dev/null
	fork_three_times && log_has_line 'kprobe_example: .* calls '
}

plan 11
echo "# level: $level"
for file in list blacklist stats sites refusals; do
	check "root reads $file" cat $kprobes/$file
done
check_at none "root reads enabled" cat $kprobes/enabled
check_at none "root writes enabled" write_line 1 $kprobes/enabled
check_at none "root asks check" ask_check kernel_clone
check "root writes the sysctl" write_same $knob
check_at "none integrity" "root defines an event" define_and_remove_event
check "a module's probe is hit" example_is_hit
