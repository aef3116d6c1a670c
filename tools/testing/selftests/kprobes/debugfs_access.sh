#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# A reader of debugfs without the permission to see addresses reads zeros. The opener's
# credentials decide. As the files are made, others can neither read nor write them.
. ./lib.sh

[ -e $kprobes/sites ] || skip_all "no $kprobes/sites"
digits=$(address_digits)
use_events

addresses_are_hidden() {	# COMMAND...: its output has zeros for all addresses
	"$@" >"$output.seen" && grep -Eq "(^|x)0{$digits}" "$output.seen" &&
		! grep -E "(^|x)[0-9a-f]{$digits}" "$output.seen" | grep -Ev "(^|x)0{$digits}"
}

addresses_are_shown() {	# COMMAND...: its output has addresses and no zeros
	"$@" >"$output.seen" && grep -Eq "(^|x)[89a-f][0-9a-f]{$((digits - 1))}" "$output.seen" &&
		! grep -E "(^|x)0{$digits}" "$output.seen"
}

cat_as_nobody() {	# FILE
	su -s /bin/sh nobody -c "cat $1"
}

write_as_nobody() {	# FILE
	su -s /bin/sh nobody -c "echo 0 >$1"
}

cat_list_of_root_as_nobody() {
	cat_as_nobody - <$kprobes/list
}

allow_others() {
	mount -o remount,mode=755 /sys/kernel/debug
	mount -o remount,mode=755 $tracing
}

inside_first_insn() {	# FUNCTION: an address
	entry=$(symbol_address "$1")
	printf "%s%08x" "${entry%????????}" $((0x$(low_half "$entry") + 2))
}

paranoid=/proc/sys/kernel/perf_event_paranoid
restrict=/proc/sys/kernel/kptr_restrict
old_paranoid=$(cat $paranoid)
old_restrict=$(cat $restrict)
restore_access() {
	chmod 400 $kprobes/list $kprobes/blacklist $kprobes/sites $kprobes/refusals
	mount -o remount,mode=700 /sys/kernel/debug
	mount -o remount,mode=700 $tracing
	echo "$old_paranoid" >$paranoid
	echo "$old_restrict" >$restrict
}

id nobody >/dev/null 2>&1 || skip_all "no user nobody"
add_event 'p:kprobes/clone kernel_clone'
on_exit restore_access
allow_others
! add_event "p:kprobes/refused 0x$(inside_first_insn vfs_write)" 2>/dev/null
plan 35
for file in list blacklist stats sites refusals enabled check; do
	check_error "others cannot read $file" "Permission denied" cat_as_nobody $kprobes/$file
done
for file in $kprobes/enabled $kprobes/check $tracing/kprobe_events $tracing/dynamic_events $knob; do
	check_error "others cannot write ${file##*/}" "Permission denied" write_as_nobody "$file"
done
check "what others have written has no effect" [ "$(cat $kprobes/enabled)" = 1 ]
check_not "stats has no address" grep -E "[0-9a-f]{$digits}" $kprobes/stats
chmod 444 $kprobes/list $kprobes/blacklist $kprobes/sites $kprobes/refusals
for file in list blacklist sites refusals; do
	echo 2 >$restrict
	check "kptr_restrict=2: $file hides addresses from root" \
		addresses_are_hidden cat $kprobes/$file
	echo 1 >$restrict
	check "kptr_restrict=1: $file shows addresses to root" \
		addresses_are_shown cat $kprobes/$file
	check "kptr_restrict=1: $file hides addresses from others" \
		addresses_are_hidden cat_as_nobody $kprobes/$file
	echo 0 >$restrict
	echo 2 >$paranoid
	check "perf_event_paranoid=2: $file hides addresses from others" \
		addresses_are_hidden cat_as_nobody $kprobes/$file
	echo 1 >$paranoid
	check "perf_event_paranoid=1: $file shows addresses to others" \
		addresses_are_shown cat_as_nobody $kprobes/$file
done
echo 1 >$restrict
check "others see addresses in a file that root has opened" \
	addresses_are_shown cat_list_of_root_as_nobody
