#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Hits that arrive while a handler runs: probes with KPROBE_FLAG_REENTRANT, such as those
# of events, are called, and other probes miss and count the hit.
. ./lib.sh
. ./measure.sh

has_module kprobe_nest || skip_all "no module kprobe_nest"
! is_base || skip_all "the kprobes of the base miss hits in handlers"
on_exit 'rmmod kprobe_nest'
use_events
interrupts=2000

run_nest() {
	measure kprobe_nest $interrupts >"$output.counts" && sed 's/^/# /' "$output.counts"
}

count() {	# task-OR-interrupt calls-OR-hits-OR-missed
	sed -n "s/^$1:.* $2 \([0-9]*\).*/\1/p" "$output.counts"
}

every_call_is_counted() {	# task-OR-interrupt
	[ "$(count "$1" calls)" -ge $interrupts ] &&
		[ $(($(count "$1" hits) + $(count "$1" missed))) = "$(count "$1" calls)" ]
}

plan 10
check "the module loads" load_module kprobe_nest
check "an event is added to the function called in interrupts" \
	add_event 'p:kprobes/nest kprobe_nest_in_interrupt'
check "a return event is added to it" \
	add_event 'r:kprobes/nest_return kprobe_nest_in_interrupt'
enable_event nest 1
enable_event nest_return 1
check "the functions are called" run_nest
cat "$output"
for event in nest nest_return; do
	echo "# $event: $(hits $event) hits, $(missed $event) missed"
done
check "the probe in the task misses no hit" [ "$(count task hits)" = "$(count task calls)" ]
check "the probe in interrupts misses hits" [ "$(count interrupt missed)" -gt 100 ]
check "its hits and missed hits are all calls" every_call_is_counted interrupt
check "the event has all hits" [ "$(hits nest)" = "$(count interrupt calls)" ]
check "the event misses no hit" [ "$(missed nest)" = 0 ]
check "the return event has all hits and misses none" \
	[ "$(hits nest_return)/$(missed nest_return)" = "$(count interrupt calls)/0" ]
