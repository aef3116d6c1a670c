#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Each memory allocation fails once while files of debugfs, tracefs and sysctl are read or
# written: that works, or changes nothing, and works the next time.
. ./lib.sh
find_rmdir

failslab=/sys/kernel/debug/failslab

! is_base || skip_all "the kprobes of the base have no stats"
[ -e /proc/self/fail-nth ] || skip_all "no CONFIG_FAULT_INJECTION"
[ -e $failslab/ignore-gfp-wait ] || skip_all "no CONFIG_FAILSLAB, or not in debugfs"
use_events
let_sleepers_fail $failslab
on_exit "echo 1 >$kprobes/enabled"
# Without memory the kernel fails to register a probe of its own for this option, ignores
# that, and warns when it unregisters the probe.
set_until_exit 0 $tracing/options/record-cmd
[ ! -e $knob ] || on_exit "echo $(cat $knob) >$knob"

# Run a function of this shell, in whose task the NTH allocation fails. Sets $left to 0 if
# one has failed, and $worked to the exit status of the function.
attempt() {	# NTH COMMAND...
	nth=$1
	shift
	(
		exec 5>/proc/self/fail-nth 6</proc/self/fail-nth
		echo "$nth" >&5
		"$@"
		worked=$?
		read -r left <&6
		echo 0 >&5
		echo "$left $worked" >"$output.left"
	) >/dev/null 2>&1
	read -r left worked <"$output.left"
}

all_hits() {
	for event in enters inside returns; do
		hits $event
	done
}

# What a failed command must not change. One call hits all probes that are armed.
state() {
	before=$(all_hits)
	call_rmdir
	echo "hits $before, then $(all_hits)" | tr '\n' ' ' |
		awk '{ sub(",", ""); printf "hit %d %d %d", $6 - $2, $7 - $3, $8 - $4 }'
	[ ! -e $knob ] || printf ', knob %s, jumps %s' "$(cat $knob)" "$(count_optimized_at_rest)"
	echo ", enabled $(cat $kprobes/enabled), probes $(read_stat probes)," \
		"disabled $(grep -cF '[DISABLED]' $kprobes/list)," \
		"events $(wc -l <$tracing/kprobe_events)"
}

# The command fails for lack of memory until none of its allocations fails.
fails_cleanly() {	# UNDO COMMAND...
	undo=$1
	shift
	old=$(state)
	"$@"
	new=$(state)
	$undo
	echo "$old; then $new"
	for n in $(seq 500); do
		attempt "$n" "$@"
		now=$(state)
		if [ "$worked $now" = "0 $new" ]; then
			$undo
			[ "$left" = 0 ] || break
		elif [ "$worked" = 0 ] || [ "$left $now" != "0 $old" ]; then
			echo "allocation $n, $left left: exit status $worked, $now"
			$undo
			return 1
		fi
	done
	echo "$n allocations"
	[ "$left" != 0 ] && [ "$n" -gt 1 ] && [ "$(state)" = "$old" ]
}

check_each() {	# NAME UNDO COMMAND...
	name=$1
	shift
	check "$name" fails_cleanly "$@"
	[ "$status" != 0 ] || sed 's/^/# /' "$output"
}

# In the commands: only redirections and builtin commands are executed by the task whose
# allocations fail.
write_to() {	# FILE TEXT
	echo "$2" >>"$1"
}

read_from() {	# FILE
	while read -r _; do :; done <"$1"
}

ask_in_this_task() {	# [TYPE ]PLACE
	{ echo "$1" >&3 && while read -r _ <&3; do :; done; } 3<>$kprobes/check
}

switch_on() { write_to $kprobes/enabled 1; }
switch_off() { write_to $kprobes/enabled 0; }
jumps_on() { write_to $knob 1; }
jumps_off() { write_to $knob 0; }
remove_one() { write_to $tracing/kprobe_events '-:kprobes/one'; }

plan 20
check "an event at the function's entry" add_event "p:kprobes/enters $rmdir"
check "one inside the function" add_event_inside inside $rmdir
if has_config KRETPROBES; then
	returns=returns
	check "one at its return" add_event "r:kprobes/returns $rmdir"
else
	returns=
	skip "no CONFIG_KRETPROBES" "one at its return" "the event returns is enabled"
fi
for event in enters inside $returns; do
	check_each "the event $event is enabled" "enable_event $event 0" enable_event "$event" 1
	enable_event "$event" 1
done
check_each "an event is disabled" "enable_event inside 1" enable_event inside 0
check_each "an event is added" remove_one write_to $tracing/kprobe_events \
	"p:kprobes/one $(first_symbol do_mkdirat filename_mkdirat)"
check_each "all probes are switched off" switch_on switch_off
switch_off
check_each "all probes are switched on" switch_off switch_on
switch_on
if [ -e $knob ]; then
	check_each "jumps become breakpoints" jumps_on jumps_off
else
	skip "no CONFIG_OPTPROBES" "jumps become breakpoints"
fi
check_each "check is asked" : ask_in_this_task "k $rmdir"
for file in list blacklist stats sites refusals check; do
	check_each "$file is read" : read_from $kprobes/$file
done
remove_events
check "the events are removed" [ "$(wc -l <$tracing/kprobe_events)" = 0 ]
check_no_probe_is_left
