#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# A module that is loaded when there is no memory for its blacklist is not probed at all. One
# that is unloaded when there is no memory leaves nothing.
. ./lib.sh
. ./failslab.sh

notifier=kprobes_module_notify

reason=$(no_failslab $notifier)
[ -z "$reason" ] || skip_all "$reason"
has_module kprobe_sweep || skip_all "no module kprobe_sweep"
use_events
on_exit '! [ -e /sys/module/kprobe_sweep ] || rmmod kprobe_sweep'

# An event of a module that must not be probed now is added, but waits for another one.
add_both_events() {
	add_event 'p:kprobes/text kprobe_sweep:sweep_run'
	add_event 'p:kprobes/blacklisted kprobe_sweep:sweep_pre_handler'
}

list_has() {	# FUNCTION
	grep -F "$1+" $kprobes/list
}

blacklist_is_as_before() {
	diff "$output.blacklist" $kprobes/blacklist
}

plan 10
cat $kprobes/blacklist >"$output.blacklist"
fail_allocations_of $notifier 2	# the first one, without and with waiting
dmesg -c >/dev/null
check "the module is loaded" load_module kprobe_sweep
check "the log says that there was no memory" \
	log_has_line 'kprobes: no memory to probe all text of module kprobe_sweep'
fail_no_allocations
add_both_events >/dev/null 2>&1
check "nothing of it is probed" is_empty $kprobes/list
remove_events
check "it is unloaded" rmmod kprobe_sweep

check "it is loaded again" load_module kprobe_sweep
check_error "its blacklist is complete" "Invalid argument" add_both_events
check "its text is probed" list_has sweep_run
remove_events
check_no_probe_is_left
fail_allocations_of $notifier -1
check "it is unloaded without memory" rmmod kprobe_sweep
fail_no_allocations
check "its blacklist is removed" blacklist_is_as_before
