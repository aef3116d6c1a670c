# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# What the tests share. They run as root in the directory that they are in, with
# tracefs and debugfs mounted, and write KTAP.

# shellcheck disable=SC2034	# in the tests
kprobes=/sys/kernel/debug/kprobes
tracing=/sys/kernel/tracing
knob=/proc/sys/debug/kprobes-optimization
output=${TMPDIR:-/tmp}/kprobes-test.$$
test_number=0
failures=0
at_exit=

on_exit() {	# COMMAND: run at the end, however that comes; the last one first
	at_exit="$1; $at_exit"
}

leave() {
	status=$?
	eval "$at_exit"
	rm -f "$output" "$output".*
	[ "$failures" = 0 ] || status=1
	exit $status
}
trap leave EXIT

plan() {	# NUMBER
	echo "KTAP version 1"
	echo "1..$1"
}

skip_all() {	# WHY
	echo "1..0 # SKIP $1"
	exit 4
}

result() {	# STATUS NAME
	test_number=$((test_number + 1))
	if [ "$1" = 0 ]; then
		echo "ok $test_number $2"
	else
		failures=$((failures + 1))
		echo "not ok $test_number $2"
	fi
}

skip() {	# NAME WHY
	result 0 "$1 # SKIP $2"
}

check() {	# NAME COMMAND...: the command succeeds
	name=$1
	shift
	"$@" >"$output" 2>&1
	status=$?
	[ $status = 0 ] || sed 's/^/# /' "$output"
	result $status "$name"
}

check_not() {	# NAME COMMAND...: the command fails
	name=$1
	shift
	! "$@" >"$output" 2>&1
	result $? "$name"
}

refuse() {	# NAME ERROR COMMAND...: the command fails with this error, as users are told it
	name=$1
	error=$2
	shift 2
	! "$@" >"$output" 2>&1 && grep -q "$error" "$output"
	status=$?
	[ $status = 0 ] || sed "s/^/# not $error: /" "$output"
	result $status "$name"
}

# Not every shell's echo tells errors.
write() {	# TEXT FILE
	echo "$1" | cat >>"$2"
}

has_config() {	# OPTION: it is y or m
	zcat /proc/config.gz 2>/dev/null | grep -q "^CONFIG_$1=[ym]"
}

# The kprobes that 6.12 comes with: some tests are more than those can bear.
is_base() {
	! grep -q ' kprobe_resolve$' /proc/kallsyms
}

# Text

low() {	# ADDRESS: its lower half, which the shell can calculate with
	echo "${1#????????}"
}

address() {	# SYMBOL: its address as kallsyms has it
	awk -v symbol="$1" '$3 == symbol { print $1; exit }' /proc/kallsyms
}

# What debugfs says of all probes

number() {	# NAME
	sed -n "s/^$1: //p" $kprobes/stats
}

optimized() {	# how many are
	grep -cF '[OPTIMIZED]' $kprobes/list
}

# Events, in the group kprobes

need_no_events() {
	[ -z "$(cat $tracing/kprobe_events)" ] || skip_all "there are kprobe events already"
}

add_event() {	# DEFINITION
	write "$1" $tracing/kprobe_events
}

# At an instruction that is not the function's first, nor what ftrace changes.
add_event_inside() {	# EVENT FUNCTION
	for offset in $(seq 5 64); do
		! add_event "p:kprobes/$1 $2+$offset" 2>/dev/null || return 0
	done
	return 1
}

enable_event() {	# EVENT 0-OR-1
	echo "$2" >"$tracing/events/kprobes/$1/enable"
}

remove_events() {
	if [ -e $tracing/events/kprobes/enable ]; then
		echo 0 >$tracing/events/kprobes/enable
	fi
	echo >$tracing/kprobe_events
	echo >$tracing/trace
}

hits() {	# EVENT
	awk -v event="$1" '$1 == event { print $2 }' $tracing/kprobe_profile
}

missed() {	# EVENT
	awk -v event="$1" '$1 == event { print $3 }' $tracing/kprobe_profile
}

# For what comes by itself, once a second or so.
is_hit() {	# EVENT: more often than it was
	hits_before=$(hits "$1")
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		sleep 0.3
		[ "$(hits "$1")" -le "$hits_before" ] || return 0
	done
	return 1
}

returned() {	# PID EVENT: the process has hit the event of a return, once
	[ "$(grep -c -- "-$1 .*$2: " $tracing/trace)" = 1 ]
}

# Three forks at the least.
work() {
	/bin/true
	/bin/true
	/bin/true
}
