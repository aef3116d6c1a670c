#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Jumper probes of a module, by the sample jprobe_example.
. ./lib.sh

has_module jprobe_example || skip_all "no module jprobe_example"
on_exit 'modprobe -r jprobe_example 2>/dev/null'

log_has() {	# PATTERN
	log_has_line "jprobe_example: $1"
}

# The tracer waits for the return of the handler, which jprobe_return() skips.
calls_with_graph_tracer() {
	echo function_graph >"$tracing/current_tracer" || return
	for call in 1 2 3 4 5; do
		/bin/true || break
	done
	echo nop >"$tracing/current_tracer"
	[ "$call" = 5 ]
}

plan 7
dmesg -c >/dev/null
check "a jumper probe is added to kernel_clone()" modprobe jprobe_example
check "the list has the jumper probe" grep " j  kernel_clone+0x" $kprobes/list
/bin/true
check "the log has the arguments of a call" log_has ".*\[$$\] clones, flags 0x[0-9a-f]+, stack 0x"
check "functions return to their callers with the function graph tracer" calls_with_graph_tracer
check "the jumper probe is removed" modprobe -r jprobe_example
check "it has missed no call" log_has 'removed the probe, missed 0'
check "the list is empty" is_empty $kprobes/list
