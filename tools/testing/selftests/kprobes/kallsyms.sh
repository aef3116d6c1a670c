#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# /proc/kallsyms comes to an end, also after all other tests, and has the pages of
# copied instructions for as long as there are any.
. ./lib.sh

[ -e $tracing/kprobe_events ] || skip_all "no kprobe events, or not in tracefs"
need_no_events
on_exit remove_events

has_page() {
	grep ' t kprobe_insn_page' /proc/kallsyms
}

# They are freed a while after the probe has gone.
page_goes() {
	for _ in $(seq 50); do
		has_page || return 0
		sleep 0.2
	done
	return 1
}

plan 5
check "it can be read" timeout 60 sh -c 'cat /proc/kallsyms >/dev/null'
check "without a probe there is no page of slots" page_goes
check "an event is added" add_event_inside slot kernel_clone
enable_event slot 1
check "with it there is one" has_page
remove_events
check "that goes" page_goes
