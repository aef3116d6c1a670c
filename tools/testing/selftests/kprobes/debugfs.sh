#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# What debugfs tells of probes, to whom, and the switch for all of them.
. ./lib.sh

[ -d $kprobes ] || skip_all "no debugfs"
[ -e $tracing/kprobe_events ] || skip_all "no kprobe events, or not in tracefs"
need_no_events
on_exit remove_events
on_exit "echo 1 >$kprobes/enabled"

# list

listed() {	# SYMBOL: its lines
	grep " k  $1+0x" $kprobes/list
}

# The address, the letter k, the place, the module or a space, and flags.
is_a_list() {
	! grep -Ev '^[0-9a-f]{16}  k  [^ +]+\+0x[0-9a-f]+  ( |[^ ]+) (\[[A-Z]+\])*$' "$1"
}

ascends() {
	[ "$(wc -l <"$1")" -gt 1 ] && cut -d ' ' -f 1 "$1" | sort -c
}

# The address is that of the symbol and its offset, in all lines of the list.
addresses_fit() {
	while read -r address _ place _; do
		start=$(address "${place%+*}")
		[ $((0x$(low "$address"))) = $((0x$(low "$start") + ${place#*+})) ] || return 1
	done <"$1"
}

plan 40
check "no probe, no line" [ -z "$(cat $kprobes/list)" ]
for symbol in vfs_read kernel_clone do_nanosleep vfs_write mktime64; do
	add_event "p:kprobes/$symbol $symbol"
done
add_event 'p:kprobes/again kernel_clone'
enable_event vfs_write 1
enable_event again 1
cat $kprobes/list >"$output.list"
check "a line for each probe" [ "$(wc -l <"$output.list")" = 6 ]
check "lines have their format" is_a_list "$output.list"
check "addresses ascend" ascends "$output.list"
check "addresses fit to symbols" addresses_fit "$output.list"
check "a disabled probe is [DISABLED]" grep 'mktime64+.*\[DISABLED\]' "$output.list"
check_not "an enabled one is not" grep 'vfs_write+.*\[DISABLED\]' "$output.list"
check "of two at an address, one is" \
	[ "$(listed kernel_clone | grep -c DISABLED)/$(listed kernel_clone | wc -l)" = 1/2 ]
if has_config KPROBES_ON_FTRACE; then
	check "at functions' entries all are [FTRACE]" [ "$(grep -c FTRACE "$output.list")" = 6 ]
else
	skip "at functions' entries all are [FTRACE]" "no CONFIG_KPROBES_ON_FTRACE"
fi

# Who may not know addresses sees zeros. What he may is what the opener might.

hidden() {	# COMMAND...: it prints something, but no address
	"$@" >"$output.seen" && grep -q '0\{16\}' "$output.seen" &&
		! grep -E '[0-9a-f]{16}' "$output.seen" | grep -v '0\{16\}'
}

shown() {	# COMMAND...: it prints addresses, and nothing else for them
	"$@" >"$output.seen" && grep -Eq 'f{8}[0-9a-f]{8}' "$output.seen" &&
		! grep '0\{16\}' "$output.seen"
}

cat_as_nobody() {	# FILE
	su -s /bin/sh nobody -c "cat $1"
}

check_as_nobody() {	# NAME COMMAND...
	if id nobody >/dev/null 2>&1; then
		check "$@"
	else
		skip "$1" "there is no user nobody"
	fi
}

given_to_nobody() {
	cat_as_nobody - <$kprobes/list
}

let_nobody_in() {
	mount -o remount,mode=755 /sys/kernel/debug
	chmod 444 $kprobes/list $kprobes/blacklist
}

lock_nobody_out() {
	chmod 400 $kprobes/list $kprobes/blacklist
	mount -o remount,mode=700 /sys/kernel/debug
}

paranoid=/proc/sys/kernel/perf_event_paranoid
restrict=/proc/sys/kernel/kptr_restrict
restore_rights() {
	lock_nobody_out
	echo "$old_paranoid" >$paranoid
	echo "$old_restrict" >$restrict
}
old_paranoid=$(cat $paranoid)
old_restrict=$(cat $restrict)
on_exit restore_rights

let_nobody_in
for file in list blacklist; do
	echo 2 >$restrict
	check "kptr_restrict=2: no addresses in $file" hidden cat $kprobes/$file
	echo 1 >$restrict
	check "kptr_restrict=1: addresses in $file for root" shown cat $kprobes/$file
	check_as_nobody "kptr_restrict=1: none for others" hidden cat_as_nobody $kprobes/$file
	echo 0 >$restrict
	echo 2 >$paranoid
	check_as_nobody "perf_event_paranoid=2: no addresses in $file for others" \
		hidden cat_as_nobody $kprobes/$file
	echo 1 >$paranoid
	check_as_nobody "perf_event_paranoid=1: addresses in $file for all" \
		shown cat_as_nobody $kprobes/$file
done
echo 1 >$restrict
check_as_nobody "addresses for others if root has opened the file" shown given_to_nobody
restore_rights

# blacklist

is_a_blacklist() {
	! grep -Ev '^0x[0-9a-f]{16}-0x[0-9a-f]{16}	[^ ]+( \[[^]]+\])?$' "$1"
}

blacklisted() {	# SYMBOL: the address is the symbol's, and the end comes after it
	range=$(awk -v symbol="$1" '$2 == symbol { print $1 }' "$output.blacklist")
	[ "${range%-*}" = "0x$(address "$1")" ] &&
		[ $((0x$(low "${range#*-0x}") - 0x$(low "$(address "$1")"))) -gt 0 ]
}

# What is left of text that was freed, a module's init text or all of it, has no symbol.
symbols_are_there() {
	awk 'NR == FNR { symbol["0x" $1]; next }
		{ split($1, range, "-") }
		!(range[1] in symbol) { print; freed = 1 }
		END { exit freed }' /proc/kallsyms "$1"
}

cat $kprobes/blacklist >"$output.blacklist"
check "lines of the blacklist have their format" is_a_blacklist "$output.blacklist"
check "its addresses ascend" ascends "$output.blacklist"
check "get_kprobe is in it" blacklisted get_kprobe
check_not "kernel_clone is not" blacklisted kernel_clone
check "nothing is that was freed" symbols_are_there "$output.blacklist"

# enabled

value() {
	cat $kprobes/enabled
}

set_value() {
	write "$1" $kprobes/enabled
}

enable_event again 1
check "probes are enabled" [ "$(value)" = 1 ]
check "they can be switched off" set_value 0
check "this can be read" [ "$(value)" = 0 ]
seen=$(hits again)
work
check "no probe is hit" [ "$(hits again)" = "$seen" ]
check "probes can be added" add_event 'p:kprobes/late kernel_clone'
check "and enabled" enable_event late 1
work
check "they are not hit, either" [ "$(hits late)" = 0 ]
for bad in 2x x "" -1; do
	refuse "\"$bad\" is refused" "Invalid argument" set_value "$bad"
done
check "that has changed nothing" [ "$(value)" = 0 ]
check "probes can be switched on" set_value Y
work
check "they are hit" [ "$(hits again)" -ge $((seen + 3)) ]
check "those that came meanwhile, too" [ "$(hits late)" -ge 3 ]
