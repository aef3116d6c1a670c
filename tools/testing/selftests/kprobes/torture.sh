#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The module kprobes_torture for some seconds (the first argument, or 100), while the
# tracers, events and modules that live on probes come and go in the functions it probes.
. ./lib.sh

seconds=${1:-100}
modinfo kprobes_torture >/dev/null 2>&1 || skip_all "no module kprobes_torture"
use_events
running=$output.running
restore() {
	rm -f "$running"
	wait
	rmmod kprobes_torture
	echo nop >$tracing/current_tracer
	echo >$tracing/set_ftrace_filter
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
		echo $tracer >$tracing/current_tracer || return
		sleep 0.5
	done
}

# The other targets cannot be traced, and so cannot have events.
kprobe_events() {
	for i in 0 3 5; do
		add_event "p:kprobes/torture_$i kprobes_torture_traced_$i" &&
			add_event "r:kprobes/torture_r$i kprobes_torture_traced_$i" || return
	done
	enable_all_events 1 && sleep 1 && enable_all_events 0 || return
	for i in 0 3 5; do
		add_event "-:kprobes/torture_$i" && add_event "-:kprobes/torture_r$i" || return
	done
}

fprobe_events() {
	event=$tracing/events/fprobes/torture
	write_line 'f:fprobes/torture kprobes_torture_traced_1%return ret=$retval' \
		$tracing/dynamic_events && write_line 1 $event/enable && sleep 1 &&
		write_line 0 $event/enable && write_line '-:fprobes/torture' $tracing/dynamic_events
}

# The init text of a module is probed, when it is there, and the module has a probe.
modules() {
	modprobe kprobe_example symbol=kprobes_torture_plain_2 && sleep 0.3 &&
		modprobe -r kprobe_example
}

# Write to a file of the kernel that can be read back.
set_to() {	# TEXT FILE
	echo "$1" | cat >"$2" && [ "$(cat "$2")" = "$1" ]
}

set_until_exit() {	# TEXT FILE
	on_exit "echo $(cat "$2") >$2"
	set_to "$1" "$2"
}

# Allocations may sleep when probes change. Vmalloc asks for single pages, also of high memory.
let_allocations_fail() {
	for fail in /sys/kernel/debug/failslab /sys/kernel/debug/fail_page_alloc; do
		[ -e $fail ] || continue
		set_until_exit N $fail/ignore-gfp-wait && set_until_exit 0 $fail/verbose || return
	done
	[ ! -e $fail ] || { set_until_exit 0 $fail/min-order &&
		set_until_exit N $fail/ignore-gfp-highmem; }
}

start_disturbances() {
	echo >"$running"
	for disturbance; do
		: >"$output.$disturbance"
		disturb "$disturbance" &
	done
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
	was_done windows churns refusals switches flips
	was_done "calls in task" "calls in softirq" "calls in hrtimer" "calls in irq_work"
	! has_config KRETPROBES || was_done deaths
	! has_apic || was_done "calls in NMI"
	! has_config DYNAMIC_FTRACE_WITH_DIRECT_CALLS || was_done "direct calls"
	! has_config FAILSLAB || was_done shortages enomems
	[ -z "$missing" ]
}

disturbances=modules
! grep -q function_graph $tracing/available_tracers || disturbances="$disturbances tracers"
disturbances="$disturbances kprobe_events"
! has_config FPROBE_EVENTS || disturbances="$disturbances fprobe_events"
# shellcheck disable=SC2086	# words
set -- $disturbances

plan $((7 + $#))
check "allocations can fail" let_allocations_fail
add_event 'p:kprobes/torture_init kprobe_example:example_init'
enable_event torture_init 1
dmesg -c >/dev/null
check "the torture begins" modprobe kprobes_torture seconds="$seconds"
echo 'kprobes_torture_*' >$tracing/set_ftrace_filter
start_disturbances "$@"
sleep "$seconds"
stop_disturbances
for disturbance; do
	check "disturbance by $disturbance" disturbed "$disturbance"
done
check "the torture ends" rmmod kprobes_torture
check "its result is SUCCESS" log_has_line 'kprobes-torture: --- End of test: SUCCESS'
check "everything was done" everything_was_done
check "the events are removed" remove_events
check_no_probe_is_left
