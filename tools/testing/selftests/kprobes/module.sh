#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Probes in text that comes and goes.
. ./lib.sh

module=trace_events_sample
[ -e $tracing/kprobe_events ] || skip_all "no kprobe events, or not in tracefs"
modinfo trace-events-sample >/dev/null 2>&1 || skip_all "no module trace-events-sample"
need_no_events
on_exit remove_events
on_exit 'modprobe -r kprobe_example trace-events-sample 2>/dev/null'

load() {
	modprobe trace-events-sample
}

unload() {
	modprobe -r trace-events-sample
}

listed() {	# FUNCTION [FLAGS]: it is in the list, with these flags or without
	grep " k  $1+0x.*$module *\(\[FTRACE\]\)*$2\$" $kprobes/list
}

gone() {	# NUMBER: that many probes are gone, and no others are there
	[ "$(grep -c '\[GONE\]' $kprobes/list)/$(wc -l <$kprobes/list)" = "$1/$1" ]
}

# The thread of the module is new with each load.
hit_once() {	# EVENT
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		[ "$(hits "$1")" = 0 ] || break
		sleep 0.1
	done
	[ "$(hits "$1")" = 1 ]
}

plan 31

# Events that wait for the module are registered while it comes: in its init text, too.
check "an event waits for the module" add_event "p:kprobes/thread $module:simple_thread"
check "one waits for its init text" add_event "p:kprobes/init $module:trace_event_init"
check "the first is enabled" enable_event thread 1
check "the second is enabled" enable_event init 1
check "nothing is probed yet" [ -z "$(cat $kprobes/list)" ]
check "the module is loaded" load
check "its init function was hit" [ "$(hits init)" = 1 ]
check "its thread was hit" hit_once thread
check "a probe is in its text" listed simple_thread
check "the one in its init text is [GONE]" [ "$(grep -c '\[GONE\]' $kprobes/list)" = 1 ]
check "the module is unloaded" unload
check "both are [GONE]" gone 2
check_not "and not said to be somewhere" grep "$module\|+0x" $kprobes/list

# The same once more: the events are registered anew.
check "the module is loaded again" load
check "its init function was hit again" [ "$(hits init)" = 2 ]
check "a probe is in its text again" listed simple_thread
remove_events
check "the events are removed" [ -z "$(cat $kprobes/list)" ]

# A module that is there, but for its init text.
refuse "init text that was freed is not probed" "Invalid argument" \
	add_event "p:kprobes/init $module:trace_event_init"
function=$(awk -v module="[$module]" '/ do_simple_thread_func/ && $4 == module { print $3 }' \
	/proc/kallsyms)
check "a function of the module is probed" add_event "p:kprobes/func $module:$function"
check "that is enabled" enable_event func 1
check "it is hit" is_hit func

# A probe whose owner does not know that its text is gone.
check "a module probes the module" modprobe kprobe_example symbol="$module:$function"
unload
check "their probes are [GONE]" gone 2
check "the module unregisters its probe" modprobe -r kprobe_example
remove_events
check "nothing is left" [ -z "$(cat $kprobes/list)" ]

# What others patch, here jump labels and static calls of tracepoints. When events probe
# a module that comes, only its own tables tell of it.

# In a function that has them at its beginning: to try a byte takes long.
function=simple_thread_fn

reserved() {	# at these offsets
	for offset in $(seq 150); do
		! add_event "p:kprobes/at$offset $module:$function+$offset" 2>&1 |
			grep -q "Invalid argument" || echo "$offset"
	done
}

load
offsets=$(reserved)
remove_events
unload
check "a function has what others patch" [ -n "$offsets" ]
for offset in 0 $offsets; do
	add_event "p:kprobes/at$offset $module:$function+$offset"
done
check "a module comes that events wait for" load
check "its function is probed" grep " k  $function+0x" $kprobes/list
check "not what others patch" [ "$(wc -l <$kprobes/list)" = 1 ]
remove_events
unload

# test_kprobes probes itself when it goes.
if modprobe test_kprobes 2>/dev/null && lsmod | grep -q '^test_kprobes '; then
	dmesg -c >/dev/null
	check "a module is unloaded that probes itself" modprobe -r test_kprobes
	check "that was refused with -ENOENT" \
		sh -c "dmesg | grep 'kprobes_test: probing a module that goes: -2'"
else
	skip "a module is unloaded that probes itself" "no test_kprobes"
	skip "that was refused with -ENOENT" "no test_kprobes"
fi
