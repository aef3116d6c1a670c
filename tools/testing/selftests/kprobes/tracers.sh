#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Probes while a tracer of the kernel is on, which traces all functions, or looks at each
# interrupt and each breakpoint; or an event that a breakpoint exception calls. A probe in what
# that calls there does not come back to itself.
#
# usage: tracers.sh [TRACER]...
# The default is all that the kernel has; rcu_watching stands for that event.
. ./lib.sh
. ./measure.sh
find_rmdir

use_events
tracers=$(tr ' ' '\n' <$tracing/available_tracers |
	grep -E '^(function|function_graph|hwlat|osnoise|timerlat|.*off)$')
on_exit "echo nop >$tracing/current_tracer"
event=$tracing/events/rcu/rcu_watching/enable
if [ -e $event ]; then
	tracers="$tracers rcu_watching"
	on_exit "echo 0 >$event"
fi
tracers=${*:-$tracers}
[ "$tracers" ] || skip_all "no tracers"
on_exit '! [ -e /sys/module/kprobe_scale ] || rmmod kprobe_scale'
[ ! -e $knob ] || on_exit "echo $(cat $knob) >$knob"
callees="trace_hwlat_callback trace_osnoise_callback osnoise_trace_irq_entry trace_hardirqs_off
	tracer_hardirqs_off trace_preempt_off tracer_preempt_off
	trace_event_buffer_reserve trace_event_buffer_commit trace_event_raw_event_rcu_watching
	ring_buffer_lock_reserve ring_buffer_unlock_commit trace_clock_local
	lockdep_hardirqs_on_prepare"

add_events() {
	add_event "p:kprobes/entry $rmdir" && add_event_inside inside $rmdir &&
		add_event "r:kprobes/returns $rmdir" || return
}

# The kernel does not have all of them, and does not let all of them be probed. Events may not
# be in functions that are not traced.
find_callees() {	# [BUT]: not this one
	echo "$callees" | tr -s ' \t' '\n' | grep -vx "${1-}" >"$output.callees"
	load_targets "$output.callees"
}

# With those that trace all functions it would take minutes.
probe_callees() {	# TRACER
	[ -e /sys/module/kprobe_scale ] || return 0
	case $1 in
	function*) return ;;
	# They read the clock again if a breakpoint came meanwhile: with one in it they never end.
	osnoise|timerlat) find_callees trace_clock_local ;;
	*) find_callees ;;
	esac && measure kprobe_scale attach "$targets"
}

turn_on() {	# TRACER
	case $1 in
	rcu_watching) set_to 1 $event ;;
	*) set_to "$1" $tracing/current_tracer ;;
	esac
}

turn_off() {	# TRACER
	case $1 in
	rcu_watching) set_to 0 $event ;;
	*) set_to nop $tracing/current_tracer ;;
	esac
}

profile() {
	grep -E '^ *(entry|inside|returns) ' $tracing/kprobe_profile
}

two_calls_are_seen() {
	profile >"$output.before"
	call_rmdir
	call_rmdir
	profile >"$output.after"
	cat "$output.before" "$output.after"
	awk 'NR == FNR { hits[$1] = $2; missed[$1] = $3; next }
		{ n += $2 == hits[$1] + 2 && $3 == missed[$1] }
		END { exit n != 3 }' "$output.before" "$output.after"
}

calls_are_seen() {	# TRACER
	enable_all_events 1
	echo "jumps: $(count_optimized_at_rest)"
	probe_callees "$1" && turn_on "$1" && sleep 1.2 && two_calls_are_seen &&
		turn_off "$1" && enable_all_events 0
	seen=$?
	! [ -e /sys/module/kprobe_scale ] || measure kprobe_scale detach
	return $seen
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
plan $((2 * $# + 3))
check "events are added" add_events
if has_module kprobe_scale; then
	check "functions that tracers call can be probed" find_callees
else
	skip "no module kprobe_scale" "functions that tracers call can be probed"
fi
for tracer; do
	check "$tracer: breakpoints are hit" breakpoints_are_hit "$tracer"
	if [ -e $knob ]; then
		check "$tracer: jumps are hit" jumps_are_hit "$tracer"
	else
		skip "no CONFIG_OPTPROBES" "$tracer: jumps are hit"
	fi
done
remove_events
! [ -e /sys/module/kprobe_scale ] || rmmod kprobe_scale
check_no_probe_is_left
