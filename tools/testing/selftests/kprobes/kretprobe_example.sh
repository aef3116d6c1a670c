#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The sample module of return probes, by which a module's return probe is tested.
. ./lib.sh

modinfo kretprobe_example 2>/dev/null | grep -q "Probe the returns of a function" ||
	skip_all "no module kretprobe_example, or another one"
on_exit 'modprobe -r kretprobe_example trace-events-sample 2>/dev/null'

load() {	# SYMBOL
	dmesg -c >/dev/null
	modprobe kretprobe_example symbol="$1"
}

unload() {
	modprobe -r kretprobe_example
}

says() {	# PATTERN
	dmesg >"$output.log"
	grep -E "kretprobe_example: $1" "$output.log" || { cat "$output.log"; return 1; }
}

# What modprobe makes of -ENOENT.
not_found='No such file\|unknown symbol in module'

plan 21
check "a return probe on kernel_clone()" load kernel_clone
check "it is listed" grep " r  kernel_clone+0x" $kprobes/list
check "it says where it is" says 'probing the return of kernel_clone at kernel_clone\+0x'
/bin/true &
child=$!
wait
check "the return value is the child's pid" says ".*\[$$\]: kernel_clone returned $child to "
check "the caller is a system call" says ".* returned $child to [a-z0-9_]*(clone|fork)"
check "it took a while" says ".* returned $child .* after [1-9][0-9]* ns"
check "it is removed" unload
check "nothing was missed" says 'removed the return probe of kernel_clone, missed 0'
check "it is not listed" [ -z "$(cat $kprobes/list)" ]
/bin/true
refuse "a function is not found" "$not_found" load no_such_function
check "this is said" says 'cannot probe the return of no_such_function: (-ENOENT|-2)$'
refuse "a function must not be probed" "Invalid argument" load get_kprobe
refuse "an offset is no part of a name" "$not_found" load kernel_clone+0x20

# Calls return when the probe has gone: that came before it, and under it.
sleep 0.5 &
before=$!
check "a return probe on do_nanosleep()" load do_nanosleep
sleep 0.1
sleep 0.4 &
under=$!
sleep 0.1
check "it is removed while calls are in flight" unload
check "a call returns that was not probed" wait $before
check "a call returns that was" wait $under

# A module's function, that is called when an event of the module is enabled.
event=$tracing/events/sample-trace/foo_bar_with_fn/enable
if modprobe trace-events-sample 2>/dev/null && [ -e "$event" ]; then
	check "a return probe on a function of a module" load trace_events_sample:foo_bar_reg
	echo 1 >"$event"
	echo 0 >"$event"
	check "it has returned" says '.*:foo_bar_reg returned 0 to '
	modprobe -r trace-events-sample
	check "the module goes" grep '\[GONE\]' $kprobes/list
	check "the probe goes" unload
else
	for name in 1 2 3 4; do
		skip "a return probe on a function of a module, $name" "no trace-events-sample"
	done
fi
