#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Return probes of a module, by the sample kretprobe_example.
. ./lib.sh

modinfo kretprobe_example 2>/dev/null | grep -q "Probe the returns of a function" ||
	skip_all "no module kretprobe_example, or the one of the base"
on_exit 'modprobe -r kretprobe_example trace-events-sample 2>/dev/null'

load_example() {	# SYMBOL
	dmesg -c >/dev/null
	modprobe kretprobe_example func="$1"
}

unload_example() {
	modprobe -r kretprobe_example
}

log_has() {	# PATTERN
	log_has_line "kretprobe_example: $1"
}

# The only clock of some machines ticks every few milliseconds.
call_has_duration() {
	for _ in $(seq 100); do
		log_has ".* returned $child .* after [1-9][0-9]* ns" && return
		/bin/true &
		child=$!
		wait
	done
	return 1
}

# The messages of modprobe for -ENOENT.
not_found='No such file\|unknown symbol in module'

plan 21
check "a return probe is added to kernel_clone()" load_example kernel_clone
check "the list has the return probe" grep " r  kernel_clone+0x" $kprobes/list
check "the log has its address" log_has 'probing the return of kernel_clone at kernel_clone\+0x'
/bin/true &
child=$!
wait
check "the return value is the child's pid" log_has ".*\[$$\]: kernel_clone returned $child to "
check "the caller is a system call" log_has ".* returned $child to [a-z0-9_]*(clone|fork)"
check "the call has a duration" call_has_duration
check "the return probe is removed" unload_example
check "it has missed no call" log_has 'removed the return probe of kernel_clone, missed 0'
check "the list is empty" is_empty $kprobes/list
/bin/true
check_error "an unknown function is refused" "$not_found" load_example no_such_function
check "the log has the reason" \
	log_has 'cannot probe the return of no_such_function: (-ENOENT|-2)$'
check_error "a blacklisted function is refused" "Invalid argument" load_example get_kprobe
check_error "an offset in the symbol is refused" "$not_found" load_example kernel_clone+0x20

# Two calls in flight when the probe is removed, of which one is tracked.
sleep 0.5 &
untracked=$!
check "a return probe is added to do_nanosleep()" load_example do_nanosleep
sleep 0.1
sleep 0.4 &
tracked=$!
sleep 0.1
check "the return probe is removed while calls are in flight" unload_example
check "a call from before the return probe returns" wait $untracked
check "a tracked call returns" wait $tracked

# trace-events-sample calls foo_bar_reg() when this event is enabled.
event=$tracing/events/sample-trace/foo_bar_with_fn/enable
set -- "a return probe is added to a function of a module" "the call is logged" \
	"the return probe is [GONE] after the module was unloaded" \
	"the [GONE] return probe is removed"
if modprobe trace-events-sample 2>/dev/null && [ -e "$event" ]; then
	check "$1" load_example trace_events_sample:foo_bar_reg
	echo 1 >"$event"
	echo 0 >"$event"
	check "$2" log_has '.*:foo_bar_reg returned 0 to '
	modprobe -r trace-events-sample
	check "$3" grep '\[GONE\]' $kprobes/list
	check "$4" unload_example
else
	skip "no trace-events-sample" "$@"
fi
