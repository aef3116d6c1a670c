#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# A module that is loaded when there is no memory for its blacklist is not probed at all.
. ./lib.sh

failslab=/sys/kernel/debug/failslab
notifier=kprobes_module_notify

[ -e $failslab/require-start ] ||
	skip_all "no CONFIG_FAULT_INJECTION_STACKTRACE_FILTER, or failslab is not in debugfs"
modinfo kprobe_sweep >/dev/null 2>&1 || skip_all "no module kprobe_sweep"
[ -n "$(symbol_address $notifier)" ] || skip_all "no $notifier"
use_events
for file in ignore-gfp-wait verbose times require-start require-end probability; do
	on_exit "echo $(cat $failslab/$file) >$failslab/$file"
done
on_exit '! [ -e /sys/module/kprobe_sweep ] || rmmod kprobe_sweep'

next_symbol_address() {	# SYMBOL
	awk -v symbol="$1" 'found && $1 != found { print $1; exit } $3 == symbol { found = $1 }' \
		/proc/kallsyms
}

# Only allocations of the notifier: the first one, without and with waiting.
let_first_insertion_fail() {
	echo N >$failslab/ignore-gfp-wait
	echo 0 >$failslab/verbose
	echo 2 >$failslab/times
	echo "0x$(symbol_address $notifier)" >$failslab/require-start
	echo "0x$(next_symbol_address $notifier)" >$failslab/require-end
	echo 100 >$failslab/probability
}

let_no_allocation_fail() {
	echo 0 >$failslab/probability
}

# An event of a module that must not be probed now is added, but waits for another one.
add_both_events() {
	add_event 'p:kprobes/text kprobe_sweep:sweep_run'
	add_event 'p:kprobes/blacklisted kprobe_sweep:sweep_pre_handler'
}

list_has() {	# FUNCTION
	grep -F "$1+" $kprobes/list
}

plan 9
let_first_insertion_fail
dmesg -c >/dev/null
check "the module is loaded" modprobe kprobe_sweep
check "the log says that there was no memory" \
	log_has_line 'kprobes: no memory to probe all text of module kprobe_sweep'
let_no_allocation_fail
add_both_events >/dev/null 2>&1
check "nothing of it is probed" is_empty $kprobes/list
remove_events
check "it is unloaded" rmmod kprobe_sweep

check "it is loaded again" modprobe kprobe_sweep
check_error "its blacklist is complete" "Invalid argument" add_both_events
check "its text is probed" list_has sweep_run
remove_events
check_no_probe_is_left
check "it is unloaded again" rmmod kprobe_sweep
