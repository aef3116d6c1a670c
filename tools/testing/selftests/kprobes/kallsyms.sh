#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# /proc/kallsyms has the pages of slots while they exist, and can be read to its end even
# after all other tests.
. ./lib.sh
. ./failslab.sh

use_events

has_page() {
	grep ' t kprobe_insn_page' /proc/kallsyms
}

# Pages are freed in the background.
page_is_freed() {
	for _ in $(seq 50); do
		has_page || return 0
		sleep 0.2
	done
	return 1
}

a_page_is_freed() {
	add_event_inside slot kernel_clone
	enable_event slot 1
	has_page || return
	remove_events
	page_is_freed
}

plan 6
check "/proc/kallsyms can be read" timeout 60 sh -c 'cat /proc/kallsyms >/dev/null'
check "without probes there is no page of slots" page_is_freed
check "an event is added" add_event_inside slot kernel_clone
enable_event slot 1
check "with a probe there is a page of slots" has_page
remove_events
check "the page is freed after the event was removed" page_is_freed

set -- "a page is freed without memory"
reason=$(no_failslab slot_free)
if [ -z "$reason" ]; then
	let_allocations_fail slot_free -1
	check "$1" a_page_is_freed
	let_no_allocation_fail
else
	skip "$reason" "$1"
fi
