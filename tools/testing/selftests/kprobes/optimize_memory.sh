#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Without memory for what must be known of a module's text, its probes stay breakpoints. They
# become jumps when there is memory.
. ./lib.sh
. ./failslab.sh

learn=arch_learn_text

! is_base || skip_all "the kprobes of the base have no stats"
[ -e $knob ] || skip_all "no CONFIG_OPTPROBES"
reason=$(no_failslab $learn)
[ -z "$reason" ] || skip_all "$reason"
use_events
use_sample
set_until_exit 1 $knob

# An event in the module whose probe becomes a jump.
add_event_with_jump() {
	function=$(sample_thread_function)
	for offset in $(seq 5 64); do
		place=$sample:$function+$offset
		add_event "p:kprobes/jump $place" 2>/dev/null || continue
		enable_event jump 1
		[ "$(count_optimized_at_rest)" = 0 ] || return 0
		remove_events
	done
	return 1
}

# Nothing is known of the module's text then.
load_and_add_event() {
	remove_events
	unload_sample
	load_sample && add_event "p:kprobes/jump $place" && enable_event jump 1
}

try_again() {
	echo 0 >$knob
	echo 1 >$knob
	echo "$(count_optimized_at_rest) jumps, $(read_stat no_jump_memory) without memory"
}

# Each NTH allocation fails, counted from the last one that has failed. So the second try and
# the third one end at their NTH allocation.
allocation_fails_always() {	# NTH
	echo "$1" >$failslab/interval
	for _ in 1 2 3; do
		try_again
		[ "$(count_optimized)/$(read_stat no_jump_memory)" = 0/1 ] || return
	done
}

plan 11
check "the module is loaded" load_sample
check "an event is a jump" add_event_with_jump
set_until_exit 1 $failslab/interval
fail_allocations_of $learn -1
check "the module is loaded again, and the event added" load_and_add_event
for nth in 1 2 3; do
	check "allocation $nth fails: there is no jump" allocation_fails_always $nth
done
check "the breakpoint is hit" event_gets_hits jump
fail_no_allocations
echo 1 >$failslab/interval

# The last allocation is a copy of the text, of pages if it is too large for slabs. All others
# together have fewer bytes than those after which allocations fail here.
slabs=$failslab
pages=/sys/kernel/debug/fail_page_alloc
set -- "the module is loaded again" "allocation 4 fails: there is no jump" \
	"there is a jump when there is memory"
if [ -e $pages/require-start ]; then
	set_until_exit 4096 $slabs/space
	fail_allocations_of $learn -1
	failslab=$pages
	set_until_exit 0 $pages/min-order
	set_until_exit N $pages/ignore-gfp-highmem
	fail_allocations_of $learn -1
	check "$1" load_and_add_event
	check "$2" allocation_fails_always 1
	fail_no_allocations
	failslab=$slabs
	fail_no_allocations
	try_again >/dev/null
	check "$3" [ "$(count_optimized)" = 1 ]
else
	skip "no CONFIG_FAIL_PAGE_ALLOC, or not in debugfs" "$@"
fi
remove_events
check_no_probe_is_left
