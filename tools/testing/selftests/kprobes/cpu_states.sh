#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# A CPU that is stopped on its way up, not online, runs no handler: nobody waits for it.
. ./lib.sh

states=/sys/devices/system/cpu/hotplug/states
cpu=$(find /sys/devices/system/cpu/cpu[0-9]*/online 2>/dev/null | tail -n 1)
cpu=${cpu%/online}

has_config CPU_HOTPLUG_STATE_CONTROL || skip_all "no CONFIG_CPU_HOTPLUG_STATE_CONTROL"
[ "$cpu" ] || skip_all "no CPU that can go off line"
use_events

state() {	# NAME: print its number
	sed -n "s/^ *\([0-9]*\): $1\$/\1/p" $states
}

online=$(state online)
on_exit "echo $online >$cpu/hotplug/target"

reaches() {	# STATE
	set_to "$1" "$cpu/hotplug/target" && [ "$(cat "$cpu/hotplug/state")" = "$1" ]
}

# Another process removes it, as nobody could end that if it waits.
an_event_comes_and_goes() {
	add_event "p:kprobes/event do_rmdir" && enable_event event 1 || return
	remove_events &
	within 20 is_over $! && is_empty $kprobes/list
}

is_over() {	# PROCESS
	! kill -0 "$1" 2>/dev/null
}

plan 6

for state in kprobes:running cpu:kick_ap; do
	stopped=$(state $state)
	set -- "$state: the CPU is stopped on its way up" "an event is removed meanwhile" \
		"the CPU comes on line"
	if [ -z "$stopped" ]; then
		skip "no such state" "$@"
		continue
	fi
	reaches "$(state offline)"
	check "$1" reaches "$stopped"
	check "$2" an_event_comes_and_goes
	check "$3" reaches "$online"
done
