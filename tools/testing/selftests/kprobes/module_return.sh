#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Return probes in the text of a module that is loaded and unloaded.
. ./lib.sh

has_config KRETPROBES || skip_all "no CONFIG_KRETPROBES"
use_events
use_sample

is_listed() {	# FUNCTION
	grep " r  $1+0x.*$sample" $kprobes/list
}

# A thread of the module executes simple_thread() until the module is unloaded.
is_running() {
	cat /proc/[0-9]*/comm 2>/dev/null | grep -qx event-sample
}

plan 25
check "a return event on the module is added before it is loaded" \
	add_event "r:kprobes/thread $sample:simple_thread ret=\$retval:s32"
check "a return event on its init text is added" \
	add_event "r:kprobes/init $sample:trace_event_init"
enable_event thread 1
enable_event init 1
check "no probe is registered yet" is_empty $kprobes/list
for load in 1 2; do
	check "load $load: the module is loaded" load_sample
	check "load $load: its init function hit its event" [ "$(hits init)" = $load ]
	check "load $load: the list has the probe on its thread" is_listed simple_thread
	check "load $load: its thread starts" within 1 is_running
	check "load $load: the thread has not hit its event yet" \
		[ "$(hits thread)" = $((load - 1)) ]
	check "load $load: the module is unloaded" unload_sample
	check "load $load: the thread has hit its event" [ "$(hits thread)" = $load ]
	check_not "load $load: the list has no symbol for the probes" \
		grep "$sample\|+0x" $kprobes/list
done
check "the thread has returned 0" grep -q 'thread: .*ret=0' $tracing/trace

# The event is removed while the call is in flight.
load_sample
within 1 is_running
check "the event is disabled while the thread runs" enable_event thread 0
remove_events
check "the removed event leaves no probe" is_empty $kprobes/list
check "the module is unloaded after that" unload_sample
check_not "the thread has returned" is_running
check_no_probe_is_left
