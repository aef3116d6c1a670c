#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Probes as kprobe events of tracefs, the way that most people use them.
. ./lib.sh

[ -e $tracing/kprobe_events ] || skip_all "no kprobe events, or not in tracefs"
need_no_events
on_exit remove_events

list_has() {	# PATTERN
	grep -Eq "$1" $kprobes/list
}

plan 18
check "an event on a function's entry is added" add_event 'p:kprobes/clone kernel_clone'
check "it is listed, disabled" list_has ' k  kernel_clone\+0x[0-9a-f]+ .*\[DISABLED\]'
work
check "it is not hit while it is disabled" [ "$(hits clone)" = 0 ]
check "it is enabled" enable_event clone 1
check_not "it is not listed as disabled" list_has '\[DISABLED\]'
work
check "it is hit" [ "$(hits clone)" -ge 3 ]
check "it has missed nothing" [ "$(missed clone)" = 0 ]
check "its hits are in the trace" grep -q 'clone: (kernel_clone+0x' $tracing/trace
check "it is disabled again" enable_event clone 0
seen=$(hits clone)
work
check "it is hit no more" [ "$(hits clone)" = "$seen" ]

check "an event on an address is added" add_event "p:kprobes/address 0x$(address kernel_clone)"
check "an event with arguments is added" add_event 'p:kprobes/sleep do_nanosleep mode=%si:u32'
enable_event address 1
enable_event sleep 1
work
sleep 0.1
check "the event on an address is hit" [ "$(hits address)" -ge 3 ]
check "the event with arguments has them" grep -Eq 'sleep: .* mode=[0-9]+$' $tracing/trace

refuse "an event on an unknown function is refused" "Invalid argument" \
	add_event 'p:kprobes/bad no_such_function'
refuse "an event on a blacklisted function is refused" "Invalid argument" \
	add_event 'p:kprobes/bad get_kprobe'
remove_events
check "all events are removed" [ -z "$(cat $tracing/kprobe_events)" ]
check "nothing is left" [ -z "$(cat $kprobes/list)" ]
