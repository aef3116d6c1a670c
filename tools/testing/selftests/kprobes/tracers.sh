#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Probes while a tracer of the kernel is on, which traces all functions, or looks at each
# interrupt and each breakpoint. A probe in what it calls there does not come back to itself.
. ./lib.sh

use_events
tracers=$(tr ' ' '\n' <$tracing/available_tracers |
	grep -E '^(function|function_graph|hwlat|osnoise|timerlat|.*off)$')
[ "$tracers" ] || skip_all "no tracers"
on_exit "echo nop >$tracing/current_tracer"
[ ! -e $knob ] || on_exit "echo $(cat $knob) >$knob"
callees="trace_hwlat_callback trace_osnoise_callback osnoise_trace_irq_entry trace_hardirqs_off
	tracer_hardirqs_off trace_preempt_off tracer_preempt_off"

add_events() {
	add_event 'p:kprobes/entry do_rmdir' && add_event_inside inside do_rmdir &&
		add_event 'r:kprobes/returns do_rmdir' || return
	# The kernel does not have all of them, and does not let all of them be probed.
	for callee in $callees; do
		! add_event "p:kprobes/$callee $callee" 2>/dev/null || echo "# probed: $callee"
	done
}

profile() {
	grep -E '^ *(entry|inside|returns) ' $tracing/kprobe_profile
}

two_calls_are_seen() {
	profile >"$output.before"
	call_do_rmdir
	call_do_rmdir
	profile >"$output.after"
	cat "$output.before" "$output.after"
	awk 'NR == FNR { hits[$1] = $2; missed[$1] = $3; next }
		{ n += $2 == hits[$1] + 2 && $3 == missed[$1] }
		END { exit n != 3 }' "$output.before" "$output.after"
}

calls_are_seen() {	# TRACER
	enable_all_events 1
	echo "jumps: $(count_optimized_at_rest)"
	set_to "$1" $tracing/current_tracer && sleep 1.2 && two_calls_are_seen &&
		set_to nop $tracing/current_tracer && enable_all_events 0
}

inside_has_jump() {
	place=$(sed -n 's,^p:kprobes/inside ,,p' $tracing/kprobe_events)
	grep " k  ${place%+*}+0x$(printf %x "${place#*+}") .*\[OPTIMIZED\]" $kprobes/list
}

breakpoints_are_hit() {	# TRACER
	{ [ ! -e $knob ] || set_to 0 $knob; } && calls_are_seen "$1"
}

# The first and the last event are at the entry, which may have no jump.
jumps_are_hit() {	# TRACER
	set_to 1 $knob && enable_all_events 1 || return
	within 10 inside_has_jump || { cat $kprobes/list; return 1; }
	calls_are_seen "$1"
}

# shellcheck disable=SC2086	# words
set -- $tracers
plan $((2 * $# + 2))
add_events >"$output.events"
report $? "events are added"
cat "$output.events"
for tracer; do
	check "$tracer: breakpoints are hit" breakpoints_are_hit "$tracer"
	if [ -e $knob ]; then
		check "$tracer: jumps are hit" jumps_are_hit "$tracer"
	else
		skip "no CONFIG_OPTPROBES" "$tracer: jumps are hit"
	fi
done
remove_events
check_no_probe_is_left
