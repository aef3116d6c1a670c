#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Jumps at a thousand random instructions.
#
# usage: optimize_crowd.sh [FILE]
# FILE has random instructions of the kernel, a SYMBOL+OFFSET on each line. The default is
# the file "instructions".
. ./lib.sh
. ./workload.sh

instructions=${1-instructions}
cpu=/sys/devices/system/cpu/cpu1/online
crowd=1000
share=90	# per cent of the probes that must be optimised

! is_base || skip_all "the kprobes of the base have no stats"
[ -e $knob ] || skip_all "no CONFIG_OPTPROBES"
[ -r "$instructions" ] || skip_all "no list of instructions"
use_events
on_exit "echo $(cat $knob) >$knob"
[ ! -e $cpu ] || on_exit "echo 1 >$cpu"
echo 1 >$knob

# Add events at the first instructions that can be probed.
add_crowd() {
	added=0
	while [ $added -lt $crowd ] && read -r place; do
		! add_event "p:kprobes/crowd$added $place" 2>>"$output.refused" ||
			added=$((added + 1))
	done <"$instructions"
	echo "$added added"
	[ $added = $crowd ]
}

events_are_hit() {	# NUMBER: of events, or more
	[ "$(awk '$2 > 0' $tracing/kprobe_profile | wc -l)" -ge "$1" ]
}

count_rounds() {
	wc -l <"$output.rounds"
}

# Run a command while all jumps are removed and written again at least three times.
# Reading the list waits for the optimiser.
run_while_switching() {	# COMMAND
	: >"$output.rounds"
	while echo 0 >$knob && sleep 0.05 && echo 1 >$knob &&
		head -n 1 $kprobes/list >/dev/null && sleep 0.1; do
		echo >>"$output.rounds"
	done &
	switcher=$!
	# A round takes long if the optimiser itself is probed.
	for _ in $(seq 20); do
		"$1"
		run_status=$?
		[ $run_status = 0 ] && [ "$(count_rounds)" -lt 3 ] || break
	done
	kill $switcher
	wait $switcher
	echo 1 >$knob
	echo "$(count_rounds) rounds"
	[ "$run_status" = 0 ] && [ "$(count_rounds)" -ge 3 ]
}

replug_cpu() {
	for _ in 1 2 3 4 5; do
		{ echo 0 >$cpu && fork_three_times && echo 1 >$cpu && fork_three_times; } ||
			return 1
	done
}

plan 14
check "a workload runs without probes" workload
check "$crowd random instructions are probed" add_crowd
check "all events are enabled" enable_all_events 1
count=$(count_optimized_at_rest)
sed 's/^/# /' $kprobes/stats
check "at least $((crowd * share / 100)) probes are optimised: $count" \
	[ "$count" -ge $((crowd * share / 100)) ]
check "the workload runs with jumps" workload
check "many events are hit" events_are_hit $((crowd / 20))
awk '{ hit += $2 > 0; hits += $2 } END { print "# " hit " are hit, " hits " times" }' \
	$tracing/kprobe_profile
check "the stats add up" stats_add_up
echo 0 >$knob
check "with the sysctl at 0 no probe is optimised" [ "$(count_optimized)" = 0 ]
echo 1 >$knob
check "with the sysctl at 1 as many are optimised as before" \
	[ "$(count_optimized_at_rest)" = "$count" ]
check "the workload runs while jumps are removed and written" run_while_switching workload
echo "# $(count_rounds) times"
check "after that as many are optimised as before" [ "$(count_optimized_at_rest)" = "$count" ]
set -- "a CPU goes offline and online while jumps are removed and written" \
	"after CPU hotplug as many are optimised as before"
if [ -e $cpu ]; then
	check "$1" run_while_switching replug_cpu
	echo "# $(count_rounds) times"
	check "$2" [ "$(count_optimized_at_rest)" = "$count" ]
else
	skip "no CPU that can go offline" "$@"
fi
remove_events
check "no probe and no jump is left" [ "$(read_stat probes)/$(read_stat sites_jump)" = 0/0 ]
