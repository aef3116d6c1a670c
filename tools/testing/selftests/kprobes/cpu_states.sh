#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# A CPU that is stopped on its way up, before it is started, runs no handler: nobody waits for it.
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

plan 4

# Where it has been started, but is not online, it may run handlers, and cannot be stopped.
stopped=$(state kprobes:running)
reaches "$(state offline)"
check "the CPU is stopped on its way up" reaches "$stopped"
check "an event is removed meanwhile" an_event_comes_and_goes
if [ "$(state cpu:kick_ap)" ]; then
	check_not "it cannot be stopped where it has been kicked" reaches "$(state cpu:kick_ap)"
else
	skip "no such state" "it cannot be stopped where it has been kicked"
fi
check "it comes on line" reaches "$online"
