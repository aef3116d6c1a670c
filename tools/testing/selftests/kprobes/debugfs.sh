#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The files list, blacklist, enabled and stats in debugfs.
. ./lib.sh

[ -d $kprobes ] || skip_all "no debugfs"
digits=$(address_digits)
use_events
on_exit "echo 1 >$kprobes/enabled"

addresses_ascend() {	# FILE
	[ "$(wc -l <"$1")" -gt 1 ] && cut -d ' ' -f 1 "$1" | sort -c
}

check_order() {	# NAME FILE
	if is_base; then
		skip "not with the kprobes of the base" "$1"
	else
		check "$1" addresses_ascend "$2"
	fi
}

# list

lines_of() {	# SYMBOL
	grep " k  $1+0x" $kprobes/list
}

# The address, the letter k, the symbol and offset, the module or a space, and flags.
list_has_format() {	# FILE
	! grep -Ev "^[0-9a-f]{$digits}  k  [^ +]+\\+0x[0-9a-f]+  ( |[^ ]+) (\\[[A-Z]+\\])*\$" "$1"
}

addresses_match_symbols() {	# FILE
	while read -r address _ place _; do
		start=$(symbol_address "${place%+*}")
		[ $((0x$(low_half "$address"))) = \
			$((0x$(low_half "$start") + ${place#*+})) ] || return 1
	done <"$1"
}

after_250_bytes() {	# FILE
	dd if="$1" bs=50 skip=5 2>/dev/null
}

# A reader may begin anywhere.
can_seek() {	# FILE COPY
	after_250_bytes "$1" >"$output.rest" && [ -s "$output.rest" ] &&
		after_250_bytes "$2" | cmp "$output.rest" -
}

plan 32
check "without probes the list is empty" is_empty $kprobes/list
for symbol in vfs_read kernel_clone do_nanosleep vfs_write mktime64; do
	add_event "p:kprobes/$symbol $symbol"
done
add_event 'p:kprobes/again kernel_clone'
enable_event vfs_write 1
enable_event again 1
cat $kprobes/list >"$output.list"
check "the list has a line for each probe" [ "$(wc -l <"$output.list")" = 6 ]
check "the lines have their format" list_has_format "$output.list"
check_order "the addresses ascend" "$output.list"
check "a reader of the list can seek" can_seek $kprobes/list "$output.list"
check "the addresses match the symbols" addresses_match_symbols "$output.list"
check "a disabled probe is [DISABLED]" grep 'mktime64+.*\[DISABLED\]' "$output.list"
check_not "an enabled probe is not [DISABLED]" grep 'vfs_write+.*\[DISABLED\]' "$output.list"
check "one of two probes at an address is [DISABLED]" \
	[ "$(lines_of kernel_clone | grep -c DISABLED)/$(lines_of kernel_clone | wc -l)" = 1/2 ]
name="probes on functions' entries are [FTRACE]"
if has_config KPROBES_ON_FTRACE; then
	check "$name" [ "$(grep -c FTRACE "$output.list")" = 6 ]
else
	skip "no CONFIG_KPROBES_ON_FTRACE" "$name"
fi

# blacklist

blacklist_has_format() {	# FILE
	! grep -Ev "^0x[0-9a-f]{$digits}-0x[0-9a-f]{$digits}	[^ ]+( \\[[^]]+\\])?\$" "$1"
}

# The range starts at the symbol and is not empty.
is_blacklisted() {	# SYMBOL
	range=$(awk -v symbol="$1" '$2 == symbol { print $1 }' "$output.blacklist")
	start=$(symbol_address "$1")
	[ "${range%-*}" = "0x$start" ] &&
		[ $((0x$(low_half "${range#*-0x}") - 0x$(low_half "$start"))) -gt 0 ]
}

# A range in freed text, of a module or of init text, would have no symbol.
all_ranges_have_symbols() {	# FILE
	awk 'NR == FNR { symbol["0x" $1]; next }
		{ split($1, range, "-") }
		!(range[1] in symbol) { print; freed = 1 }
		END { exit freed }' /proc/kallsyms "$1"
}

cat $kprobes/blacklist >"$output.blacklist"
check "lines of the blacklist have their format" blacklist_has_format "$output.blacklist"
check_order "addresses of the blacklist ascend" "$output.blacklist"
check "a reader of the blacklist can seek" can_seek $kprobes/blacklist "$output.blacklist"
check "get_kprobe is blacklisted" is_blacklisted get_kprobe
check_not "kernel_clone is not blacklisted" is_blacklisted kernel_clone
check "the blacklist has no freed text" all_ranges_have_symbols "$output.blacklist"

# enabled

enabled_is() {	# VALUE
	[ "$(cat $kprobes/enabled)" = "$1" ]
}

check "all probes are switched on" enabled_is 1
check "all probes can be switched off" set_enabled 0
check "the file then reads 0" enabled_is 0
seen=$(hits again)
fork_three_times
check "an enabled probe is not hit" [ "$(hits again)" = "$seen" ]
check "a probe can be added" add_event 'p:kprobes/late kernel_clone'
check "the added probe can be enabled" enable_event late 1
fork_three_times
check "the added probe is not hit" [ "$(hits late)" = 0 ]
for bad in 2x x "" -1; do
	check_error "the value '$bad' is refused" "Invalid argument" set_enabled "$bad"
done
check "refused values change nothing" enabled_is 0
check "all probes can be switched on" set_enabled Y
fork_three_times
check "the enabled probe is hit again" [ "$(hits again)" -ge $((seen + 3)) ]
check "the added probe is hit" [ "$(hits late)" -ge 3 ]

# stats

sleep_twice() {	# at the same time
	sleep 2 &
	sleep 2 &
	wait
}

counts_missed_returns() {	# EVENT
	before=$(read_stat missed)
	enable_event "$1" 1
	sleep_twice
	after=$(read_stat missed)
	echo "missed: $before, then $after; $(missed "$1") of them by $1"
	[ "$(missed "$1")" -gt 0 ] && [ $((after - before)) -ge "$(missed "$1")" ] &&
		[ "$(read_stat missed_returns)" -ge "$(missed "$1")" ]
}

name="the stats have calls that a return event misses"
if [ -e $kprobes/stats ]; then
	add_event 'r1:kprobes/one_call do_nanosleep'
	check "$name" counts_missed_returns one_call
else
	skip "no file stats" "$name"
fi
