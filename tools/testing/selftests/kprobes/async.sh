#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# A module's text is freed while an async function runs a copied instruction of it: init
# text after the module was loaded, other text when it is unloaded. There are no other
# probes, so the page of the copy is freed with it, and the function oopses if the page is
# freed too early.
. ./lib.sh

has_module kprobe_async || skip_all "no module kprobe_async"
use_events
on_exit 'rmmod kprobe_async 2>/dev/null'

add_read_event() {
	add_event "p:kprobes/read \
		kprobe_async:kprobe_async_read+$(cat /sys/module/kprobe_async/parameters/offset)"
	enable_event read 1
}

module_logged() {	# TEXT
	dmesg | grep -q "kprobe_async: $1"
}

read_is_optimized() {
	count_optimized_at_rest >/dev/null
	grep 'kprobe_async_read.*\[OPTIMIZED\]' $kprobes/list
}

check_load_and_unload() {	# KIND: slots or detours
	dmesg -c >/dev/null
	check "$1: the module loads" load_module kprobe_async
	check "$1: the function in init text completes" \
		module_logged 'read in init text: complete'
	check "$1: the probe in init text was hit" module_logged '1 hits in init text'
	check "$1: the probe in init text is [GONE]" grep '\[GONE\]' $kprobes/list
	check "$1: an event is added to the text" add_read_event
	[ "$1" = slots ] || check "$1: the event is optimised" read_is_optimized
	check "$1: the module unloads" rmmod kprobe_async
	check "$1: the function in the text completes" module_logged 'read in text: complete'
	check "$1: the event was hit" [ "$(hits read)" = 1 ]
	remove_events
	check "$1: no probe is left" is_empty $kprobes/list
}

if [ -e $knob ]; then
	plan 19
	on_exit "echo $(cat $knob) >$knob"
	echo 0 >$knob
	check_load_and_unload slots
	echo 1 >$knob
	check_load_and_unload detours
else
	plan 9
	check_load_and_unload slots
fi
