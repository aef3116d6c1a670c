#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Kprobe events of tracefs.
. ./lib.sh

use_events

list_has() {	# PATTERN
	grep -Eq "$1" $kprobes/list
}

plan 20
check "an event on a function's entry is added" add_event 'p:kprobes/clone kernel_clone'
check "the list has it as disabled" list_has ' k  kernel_clone\+0x[0-9a-f]+ .*\[DISABLED\]'
fork_three_times
check "a disabled event is not hit" [ "$(hits clone)" = 0 ]
check "the event is enabled" enable_event clone 1
check_not "the list does not have it as disabled" list_has '\[DISABLED\]'
fork_three_times
check "the event is hit" [ "$(hits clone)" -ge 3 ]
check "the event has missed no hit" [ "$(missed clone)" = 0 ]
check "the trace has its hits" grep -q 'clone: (kernel_clone+0x' $tracing/trace
check "the event is disabled again" enable_event clone 0
seen=$(hits clone)
fork_three_times
check "after that, the event is not hit" [ "$(hits clone)" = "$seen" ]

check "an event on an address is added" \
	add_event "p:kprobes/address 0x$(symbol_address kernel_clone)"
check "an event with arguments is added" add_event 'p:kprobes/sleep do_nanosleep mode=%si:u32'
enable_event address 1
enable_event sleep 1
fork_three_times
sleep 0.1
check "the event on an address is hit" [ "$(hits address)" -ge 3 ]
check "the trace has the arguments" grep -Eq 'sleep: .* mode=[0-9]+$' $tracing/trace

check_error "an event on an unknown function is refused" "Invalid argument" \
	add_event 'p:kprobes/bad no_such_function'
check_error "an event inside a function has no \$arg1" "Invalid argument" \
	add_event 'p:kprobes/bad kernel_clone+9 first=$arg1'
check "an event on a function's entry has it" \
	add_event 'p:kprobes/good kernel_clone first=$arg1'
check_error "an event on a blacklisted function is refused" "Invalid argument" \
	add_event 'p:kprobes/bad get_kprobe'
remove_events
check "all events are removed" is_empty $tracing/kprobe_events
check_no_probe_is_left
