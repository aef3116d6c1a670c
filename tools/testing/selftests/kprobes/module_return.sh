#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Return probes in text that comes and goes.
. ./lib.sh

module=trace_events_sample
[ -e $tracing/kprobe_events ] || skip_all "no kprobe events, or not in tracefs"
has_config KRETPROBES || skip_all "no CONFIG_KRETPROBES"
modinfo trace-events-sample >/dev/null 2>&1 || skip_all "no module trace-events-sample"
need_no_events
on_exit remove_events
on_exit 'modprobe -r trace-events-sample 2>/dev/null'

load() {
	modprobe trace-events-sample
}

unload() {
	modprobe -r trace-events-sample
}

listed() {	# FUNCTION
	grep " r  $1+0x.*$module" $kprobes/list
}

# A thread of the module runs simple_thread(), and returns when the module goes.
is_running() {
	cat /proc/[0-9]*/comm 2>/dev/null | grep -qx event-sample
}

thread_runs() {
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		! is_running || return 0
		sleep 0.1
	done
	return 1
}

plan 25
check "a return event waits for the module" \
	add_event "r:kprobes/thread $module:simple_thread ret=\$retval:s32"
check "one waits for its init text" add_event "r:kprobes/init $module:trace_event_init"
enable_event thread 1
enable_event init 1
check "nothing is probed yet" [ -z "$(cat $kprobes/list)" ]
for round in 1 2; do
	check "the module is loaded, $round" load
	check "its init function has returned, $round" [ "$(hits init)" = $round ]
	check "a return probe is in its text, $round" listed simple_thread
	check "its thread runs, $round" thread_runs
	check "the thread has not returned, $round" [ "$(hits thread)" = $((round - 1)) ]
	check "the module is unloaded, $round" unload
	check "the thread has returned, $round" [ "$(hits thread)" = $round ]
	check_not "no probe is said to be somewhere, $round" grep "$module\|+0x" $kprobes/list
done
check "the thread has returned 0" grep -q 'thread: .*ret=0' $tracing/trace

# The event goes before the call returns.
load
thread_runs
check "the event is disabled while the thread runs" enable_event thread 0
remove_events
check "it is removed" [ -z "$(cat $kprobes/list)" ]
check "the module is unloaded without it" unload
check_not "the thread has returned without it" is_running
check "nothing is left" [ -z "$(cat $kprobes/list)" ]
