#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# /proc/kallsyms has the pages of slots while they exist, and can be read to its end even
# after all other tests.
. ./lib.sh
. ./failslab.sh

! is_base || skip_all "the kprobes of the base keep a page of slots"
use_events

has_page() {
	grep ' t kprobe_insn_page' /proc/kallsyms
}

has_no_page() {
	! has_page
}

# Pages are freed in the background.
page_is_freed() {
	within 10 has_no_page
}

a_page_is_freed() {
	add_event_inside slot kernel_clone
	enable_event slot 1
	has_page || return
	remove_events
	page_is_freed
}

plan 10
# Modules look it up for what it once was.
check_not "no symbol has the name of the old hash table" grep -w kprobe_table /proc/kallsyms
# Tests of live patching do.
name="the ftrace_ops of probes have the name that others look for"
if has_config KPROBES_ON_FTRACE; then
	check "$name" grep -w kprobe_ftrace_ops /proc/kallsyms
else
	skip "no CONFIG_KPROBES_ON_FTRACE" "$name"
fi
check "/proc/kallsyms can be read" timeout 60 sh -c 'cat /proc/kallsyms >/dev/null'
check "without probes there is no page of slots" page_is_freed
check "an event is added" add_event_inside slot kernel_clone
enable_event slot 1
check "with a probe there is a page of slots" has_page
place=$(sed 's/.* //' $tracing/kprobe_events)
remove_events
check "the page is freed after the event was removed" page_is_freed

set -- "without memory for a page there is no event" "nor a probe"
reason=$(no_failslab alloc_insn_page)
! has_config ARCH_HAS_EXECMEM_ROX || reason="the kernel has a cache of executable pages"
if [ -z "$reason" ]; then
	fail_allocations_of alloc_insn_page -1
	check_error "$1" "Cannot allocate memory" add_event "p:kprobes/slot $place"
	check "$2" is_empty $kprobes/list
	fail_no_allocations
else
	skip "$reason" "$@"
fi

set -- "a page is freed without memory"
reason=$(no_failslab free_insn_slot)
if [ -z "$reason" ]; then
	fail_allocations_of free_insn_slot -1
	check "$1" a_page_is_freed
	fail_no_allocations
else
	skip "$reason" "$1"
fi
