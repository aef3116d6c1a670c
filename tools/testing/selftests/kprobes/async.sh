#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Text goes while a task is in a copy of an instruction of it: the module's init text
# when the module is live, the rest when it is unloaded. There are no other probes, with
# which copies could share a page: should one be freed too early, the task finds none.
. ./lib.sh

modinfo kprobe_async >/dev/null 2>&1 || skip_all "no module kprobe_async"
[ -e $tracing/kprobe_events ] || skip_all "no kprobe events, or not in tracefs"
need_no_events
on_exit 'rmmod kprobe_async 2>/dev/null'
on_exit remove_events

add_read() {
	add_event "p:kprobes/read \
		kprobe_async:kprobe_async_read+$(cat /sys/module/kprobe_async/parameters/offset)"
	enable_event read 1
}

said() {	# WHAT
	dmesg | grep -q "kprobe_async: $1"
}

init_probe_is_gone() {
	grep -c '\[GONE\]' $kprobes/list
}

is_optimized() {
	grep 'kprobe_async_read.*\[OPTIMIZED\]' $kprobes/list
}

come_and_go() {	# HOW
	dmesg -c >/dev/null
	check "$1: the module is loaded" modprobe kprobe_async
	check "$1: the task in its init text has gone on" said "read in init text: complete"
	check "$1: it has hit the probe" said '1 hits in init text'
	check "$1: that is gone" init_probe_is_gone
	check "$1: its text is probed" add_read
	[ "$1" = slots ] || check "$1: the probe is optimised" is_optimized
	check "$1: the module is unloaded" rmmod kprobe_async
	check "$1: the task in its text has gone on" said "read in text: complete"
	check "$1: it has hit the probe there" [ "$(hits read)" = 1 ]
	remove_events
	check "$1: nothing is left" [ -z "$(cat $kprobes/list)" ]
}

if [ -e $knob ]; then
	plan 19
	on_exit "echo $(cat $knob) >$knob"
	echo 0 >$knob
	come_and_go slots
	echo 1 >$knob
	come_and_go detours
else
	plan 9
	come_and_go slots
fi
