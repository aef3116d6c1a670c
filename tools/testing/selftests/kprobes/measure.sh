# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# Functions to measure with the modules kprobe_bench, kprobe_nest and kprobe_scale, and to
# probe with kprobe_sweep. All but kprobe_nest log lines "NAME VALUE".

now() {		# in nanoseconds
	sed -n 's/^now at \([0-9]*\) nsecs/\1/p' /proc/timer_list
}

# The addresses of all symbols in the kernel's text.
all_functions() {
	awk '$3 == "_stext" { text = 1 }
		$3 == "_etext" { exit }
		text && $2 ~ /^[Tt]$/ && $3 !~ /^__pfx_/ { print "0x" $1 }' /proc/kallsyms | sort -u
}

# Addresses of functions with an ftrace site, in an order that follows from the names: other kernels
# of that version have nearly the same.
some_functions() {	# NUMBER
	awk 'BEGIN { for (i = 1; i < 128; i++) code[sprintf("%c", i)] = i }
		NF == 2 {
			hash = 0
			for (i = 1; i <= length($2); i++)
				hash = (hash * 131 + code[substr($2, i, 1)]) % 1000003
			print hash, "0x" $1
		}' $tracing/available_filter_functions_addrs |
		sort -n | head -n "$1" | cut -d ' ' -f 2
}

# Print and clear what a module has logged.
take_log() {	# MODULE
	dmesg -c | sed -n "s/.*$1: //p"
}

# Load kprobe_scale with a file of targets. Sets $targets to the number that can be probed.
load_targets() {	# FILE
	! [ -e /sys/module/kprobe_scale ] || rmmod kprobe_scale
	take_log >/dev/null
	load_module kprobe_scale targets="$(realpath "$1")"
	targets=$(take_log kprobe_scale | sed -n 's/^targets //p')
	echo "targets: $targets"
	[ -n "$targets" ]
}

# Write a command to the parameter "run" of a module, and print what the module logs.
measure() {	# MODULE COMMAND...
	module=$1
	shift
	take_log >/dev/null
	echo "$*" >"/sys/module/$module/parameters/run"
	run_status=$?
	take_log "$module"
	return $run_status
}

# The cost of a hit for all kinds of probes.
measure_hits() {
	echo 0 >$knob && measure kprobe_bench plain
	plain=$?
	echo 1 >$knob && measure kprobe_bench optimized && [ $plain = 0 ]
}

# Kilobytes in use for kernel objects and executable memory: all that kprobes allocate. Caches
# keep objects that have been freed, unless they are told to shrink. Pages of slots can be in
# larger blocks of executable memory, and are counted by their symbols; stacks are left out.
kernel_memory() {
	for cache in /sys/kernel/slab/*/shrink; do
		echo 1 >"$cache"
	done
	awk '/^(SUnreclaim|Percpu):/ { kb += $2 }
	     / kprobe_(opt)?insn_page/ { kb += 4 }
	     / pages=/ && !/insn_page|execmem|kernel_clone/ { sub(/.* pages=/, ""); kb += 4 * $1 }
	     END { print kb }' /proc/meminfo /proc/kallsyms /proc/vmallocinfo
}

# Memory that waits for a grace period is freed some seconds later, and five seconds after its
# last use what the optimiser knows of the text.
kernel_memory_at_rest() {
	sleep 8
	kernel_memory >/dev/null	# frees what waits for another grace period since then
	sleep 1
	kernel_memory
}
