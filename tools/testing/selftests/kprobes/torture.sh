#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The module kprobes_torture for some seconds (the first argument, or 100), while the
# tracers, events and modules that live on probes come and go in the functions it probes.
# SEED in the environment is the module's parameter seed.
. ./lib.sh

seconds=${1:-100}
has_module kprobes_torture || skip_all "no module kprobes_torture"
use_events
running=$output.running
instance=$tracing/instances/kprobes_torture
restore() {
	rm -f "$running"
	wait
	rmmod kprobes_torture
	echo nop >$tracing/current_tracer
	echo >$tracing/set_ftrace_filter
	echo 0 >$tracing/events/enable
	[ ! -d "$instance" ] || rmdir "$instance"
	echo >$tracing/dynamic_events
	modprobe -r kprobe_example
}
on_exit 'restore 2>/dev/null'

# Disturbances, each in a process of its own, which counts the rounds and the errors.
disturb() {	# NAME
	while [ -e "$running" ]; do
		"$1" >>"$output.$1" 2>&1 || echo error >>"$output.$1"
		echo round >>"$output.$1"
		sleep 0.1
	done
}

tracers() {
	for tracer in function function_graph nop; do
		set_to $tracer $tracing/current_tracer || return
		sleep 0.5
	done
}

set_events() {	# 0-OR-1 EVENT...
	value=$1
	shift
	for event; do
		set_to "$value" "$tracing/events/$event/enable" || return
	done
}

# The definition of an event is in the list while the event exists.
create_event() {	# TYPE EVENT REST
	write_line "$1:$2 $3" $tracing/dynamic_events &&
		grep -q "^$1[0-9]*:$2 " $tracing/dynamic_events
}

remove_event() {	# EVENT
	write_line "-:$1" $tracing/dynamic_events && ! grep -q ":$1 " $tracing/dynamic_events
}

# The other targets cannot be traced, and so cannot have events.
kprobe_events() {
	events=
	for i in 0 3 5; do
		create_event p kprobes/torture_$i kprobes_torture_traced_$i &&
			create_event r kprobes/torture_r$i kprobes_torture_traced_$i || return
		events="$events kprobes/torture_$i kprobes/torture_r$i"
	done
	# shellcheck disable=SC2086	# words
	set_events 1 $events && sleep 1 && set_events 0 $events || return
	for event in $events; do
		echo "$event $(hits "${event#*/}")" >>"$output.hits"
		remove_event "$event" || return
	done
}

# The hits of an event that is no kprobe event are only in the trace, here one of its own.
fprobe_events() {
	[ -d "$instance" ] ||
		{ mkdir "$instance" && echo 64 >"$instance/buffer_size_kb"; } || return
	enable=$instance/events/fprobes/torture/enable
	# shellcheck disable=SC2016	# the kernel expands it
	create_event f fprobes/torture 'kprobes_torture_traced_1%return ret=$retval' &&
		set_to 1 "$enable" && sleep 1 && set_to 0 "$enable" || return
	echo "fprobes/torture $(grep -c ' torture: .* ret=' "$instance/trace")" >>"$output.hits"
	echo >"$instance/trace"
	remove_event fprobes/torture
}

# Each event was hit, though not in each round: all probes are disarmed now and then.
events_were_hit() {	# NUMBER: of the events
	awk -v events="$1" '{ hits[$1] += $2 }
		END {
			for (event in hits) {
				print event, hits[event]
				events -= hits[event] > 0
			}
			exit events != 0
		}' "$output.hits"
}

# A module whose init text is probed when it is there comes and goes. It logs each hit of
# its own probe, so that is in a function that is seldom called.
modules() {
	modprobe kprobe_example symbol="$seldom_called" && sleep 0.3 &&
		modprobe -r kprobe_example && sleep 1
}

# All probes are disarmed now and then, so some calls of the init function are no hits.
init_text_was_hit() {
	rounds=$(grep -c round "$output.modules")
	init_hits=$(hits torture_init)
	echo "$rounds rounds, $init_hits hits"
	[ "$init_hits" -gt 0 ] && [ "$init_hits" -le "$rounds" ]
}

start_disturbances() {
	echo >"$running"
	for disturbance; do
		: >"$output.$disturbance"
		disturb "$disturbance" &
	done
}

# Allocations may sleep when probes change. Vmalloc asks for single pages, also of high memory.
let_allocations_fail() {
	for fail in /sys/kernel/debug/failslab /sys/kernel/debug/fail_page_alloc; do
		[ -e "$fail" ] || continue
		let_sleepers_fail "$fail" || return
	done
	[ ! -e "$fail" ] || { set_until_exit 0 "$fail/min-order" &&
		set_until_exit N "$fail/ignore-gfp-highmem"; }
}

stop_disturbances() {
	rm "$running"
	wait
}

disturbed() {	# NAME: there were rounds, and no errors
	cat "$output.$1"
	grep -q round "$output.$1" && ! grep -qv round "$output.$1"
}

torture_log() {
	dmesg | grep 'kprobes-torture:'
}

# The last number in the statistics, which have it as "NAME NUMBER".
number_of() {	# NAME
	torture_log | sed -n "s/.*[:,] $1 \([0-9]*\).*/\1/p" | tail -n 1
}

was_done() {	# NAME...: sets $missing to one that was not
	for kind; do
		number=$(number_of "$kind")
		echo "$kind ${number:-not counted}"
		[ "${number:-0}" -gt 0 ] || missing=$kind
	done
}

has_apic() {
	has_config X86_LOCAL_APIC && grep -qw apic /proc/cpuinfo
}

# The local APIC sends the NMIs.
everything_was_done() {
	missing=
	was_done windows churns arrays refusals switches flips
	was_done "calls in task" "calls in softirq" "calls in hrtimer" "calls in irq_work"
	! has_config KRETPROBES || was_done deaths
	! has_apic || was_done "calls in NMI"
	! { has_config X86_64 && has_config DYNAMIC_FTRACE_WITH_DIRECT_CALLS; } ||
		was_done "direct calls"
	! has_config FAILSLAB || was_done shortages enomems
	[ -z "$missing" ]
}

disturbances=modules
! grep -q function_graph $tracing/available_tracers || disturbances="$disturbances tracers"
disturbances="$disturbances kprobe_events"
events=6
# On function-graph, fprobe_return() may warn that it has no data, also without probes:
# function_graph_enter_regs() lets the fgraph_ops with index 0 see the returns of all functions.
if has_config FPROBE_EVENTS; then
	disturbances="$disturbances fprobe_events"
	events=7
fi
# shellcheck disable=SC2086	# words
set -- $disturbances

# The statistics that the module logs when it is unloaded are its last 15 lines with numbers.
last_figures() {
	torture_log | sed -n '/!!!/d; s/.*kprobes-torture: \(.*[0-9].*\)/# \1/p' | tail -n 15
}

refuses() {	# PARAMETER MESSAGE
	! modprobe kprobes_torture "$1" && log_has_line "kprobes-torture: $2"
}

trace_targets() {
	write_line 'kprobes_torture_*' $tracing/set_ftrace_filter &&
		grep -q '^kprobes_torture_traced_0 ' $tracing/set_ftrace_filter
}

seldom_called=kernel_clone
! has_config KRETPROBES || seldom_called=kprobes_torture_sleeper

plan $((14 + $#))
check "allocations can fail" let_allocations_fail
check "an event waits for a module" create_event p kprobes/torture_init kprobe_example:example_init
check "the event is enabled" set_events 1 kprobes/torture_init
dmesg -c >/dev/null
check "a mix that is too short is refused" refuses probe_mix=1,2 'probe_mix has 2 weights: .* 5'
check "a mix without weights is refused" refuses churn_mix=0,0,0 'churn_mix has 3 weights: .* 0$'
check "the torture begins" modprobe kprobes_torture seconds="$seconds" seed="${SEED:-1}"
echo "# seed $(cat /sys/module/kprobes_torture/parameters/seed)"
check "the targets are traced" trace_targets
start_disturbances "$@"
sleep "$seconds"
stop_disturbances
for disturbance; do
	check "disturbance by $disturbance" disturbed "$disturbance"
done
check "events were hit" events_were_hit $events
check "init text was hit" init_text_was_hit
check "the torture ends" rmmod kprobes_torture
check "its result is SUCCESS" log_has_line 'kprobes-torture: --- End of test: SUCCESS'
check "everything was done" everything_was_done
last_figures
check "the events are removed" remove_events
check_no_probe_is_left
