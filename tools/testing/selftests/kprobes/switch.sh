#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The file "enabled" in debugfs switches all probes off and on, with events of all kinds.
. ./lib.sh
find_rmdir

[ -d $kprobes ] || skip_all "no debugfs"
use_events
on_exit "echo 1 >$kprobes/enabled"

others=40

switch_all_probes() {	# 0 or 1
	echo "$1" >$kprobes/enabled
}

# The hits of all probes of an event.
total_hits() {	# EVENT
	awk -v event="$1" '$1 == event { n += $2 } END { print n + 0 }' $tracing/kprobe_profile
}

kinds="entry inside second several"
if has_config KRETPROBES; then
	kinds="$kinds returns bounded both"
fi

# Two calls of it add this number of hits to each event.
hits_of_two_calls_are() {	# NUMBER
	for event in $kinds; do
		total_hits "$event" >"$output.before.$event"
	done
	call_rmdir
	call_rmdir
	bad=0
	for event in $kinds; do
		more=$(($(total_hits "$event") - $(cat "$output.before.$event")))
		[ $more = "$1" ] || bad=1
		echo "$event: hit $more times, should be $1"
	done
	return $bad
}

add_events_of_all_kinds() {
	add_event "p:kprobes/entry $rmdir" &&
	add_event "p:kprobes/second $rmdir" &&
	add_event_inside inside $rmdir &&
	# One event with two probes, one of which is hit.
	add_event "p:kprobes/several $rmdir" &&
	add_event 'p:kprobes/several kernel_halt' || return
	has_config KRETPROBES || return 0
	add_event "r:kprobes/returns $rmdir ret=\$retval:s32" &&
	add_event "r10:kprobes/bounded $rmdir" &&
	add_event "r:kprobes/both $rmdir" &&
	add_event 'r:kprobes/both kernel_halt'
}

# Events on other functions, whose hits are not checked.
add_other_events() {
	n=0
	for function in $(awk '/^(vfs|sock|tcp|skb)_/ && !/\./ { print $1 }' \
			$tracing/available_filter_functions | sort -u | head -n $others); do
		n=$((n + 1))
		kind=p
		if [ $((n % 3)) = 0 ] && has_config KRETPROBES; then
			kind=r
		fi
		add_event "$kind:kprobes/other_$n $function" || return
	done
	[ $n = $others ]
}

count_disabled() {
	grep -c 'DISABLED' $kprobes/list
}

plan 24
check "events of all kinds are added" add_events_of_all_kinds
check "$others other events are added" add_other_events
check "all probes are disabled" [ "$(count_disabled)" = "$(wc -l <$kprobes/list)" ]
check "all events are enabled" enable_all_events 1
check "all probes are enabled" [ "$(count_disabled)" = 0 ]
check "all events are hit" hits_of_two_calls_are 2
for round in 1 2; do
	check "round $round: all probes are switched off" switch_all_probes 0
	check "round $round: no event is hit" hits_of_two_calls_are 0
	check "round $round: all probes are switched on" switch_all_probes 1
	check "round $round: all events are hit" hits_of_two_calls_are 2
done

switch_all_probes 0
check "events are disabled while probes are off" enable_all_events 0
check "events are enabled while probes are off" enable_all_events 1
check "no event is hit while probes are off" hits_of_two_calls_are 0
switch_all_probes 1
name="events that were enabled while probes were off are hit"
if is_base; then
	skip "the kprobes of the base forget them" "$name"
else
	check "$name" hits_of_two_calls_are 2
fi
switch_all_probes 0
check "events are disabled again while probes are off" enable_all_events 0
switch_all_probes 1
check "events that were disabled while probes were off are not hit" hits_of_two_calls_are 0
check "the list has all probes as disabled" [ "$(count_disabled)" = "$(wc -l <$kprobes/list)" ]
remove_events

# Calls in flight
set -- "a call that was in flight while probes were off hits its return event" \
	"a call that was in flight while its event was removed returns"
if has_config KRETPROBES; then
	add_event 'r:kprobes/returns do_nanosleep'
	enable_event returns 1
	sleep 0.6 &
	sleep 0.2
	switch_all_probes 0
	sleep 0.1
	wait
	switch_all_probes 1
	sleep 0.01 &
	wait
	check "$1" returned_once $! returns
	sleep 0.3 &
	sleep 0.1
	remove_events
	check "$2" wait $!
else
	skip "no CONFIG_KRETPROBES" "$@"
fi
check_no_probe_is_left
