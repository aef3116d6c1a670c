#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# What a hit costs, in instructions: only where one of them takes a nanosecond,
# which the command line has to say with kp.icount=1.
. ./lib.sh

grep -qw kp.icount=1 /proc/cmdline || skip_all "instructions are not counted here"

others=1000
entries=1000

# The names of $entries functions that can be probed at their entries, in an order
# that has nothing to do with their places: each name is that of one function only.
functions() {
	awk -v blacklist=/sys/kernel/debug/kprobes/blacklist '
		BEGIN {
			while ((getline line <blacklist) > 0) {
				split(line, field, "\t")
				bad[field[2]] = 1
			}
			srand(6)
		}
		FNR == NR { count[$3]++; next }
		NF == 1 && count[$1] == 1 && !($1 in bad) { print rand(), $1 }
	' /proc/kallsyms /sys/kernel/tracing/available_filter_functions |
	sort -n | awk -v n="$entries" 'NR <= n { print $2 }'
}

knob=/proc/sys/debug/kprobes-optimization
before=$(cat $knob)
on_exit 'echo $before >$knob'

dmesg -c >/dev/null
functions >"$output.functions"
plan 21
check "there are functions to probe" [ "$(wc -l <"$output.functions")" -eq "$entries" ]
echo 0 >$knob
check "the module loads" modprobe kprobe_bench others=$others functions="$output.functions"
echo 1 >$knob
check "it measures optimised probes" sh -c 'echo 1 >/sys/module/kprobe_bench/parameters/optimized'
rmmod kprobe_bench
dmesg | sed -n 's/.*kprobe_bench: //p' >"$output.costs"
sed 's/^/# cost: /' "$output.costs"

cost() {	# NAME: what it costs, a huge number if that is not known
	sed -n "s/^$1 //p" "$output.costs" | grep . || echo 999999
}

at_most() {	# NAME LIMIT
	check "$1: at most $2 instructions, it is $(cost "$1")" [ "$(cost "$1")" -le "$2" ]
}

at_most_ms() {	# NAME LIMIT
	ms=$(($(cost "$1") / 1000000))
	check "$1: at most $2 ms, it is $ms" [ "$ms" -le "$2" ]
}

no_growth() {	# NAME
	growth=$(($(cost "$1+$others") - $(cost "$1")))
	check "$1: no growth with $others other probes, it is $growth" \
		[ "${growth#-}" -le 3 ]
}

at_most breakpoint 240
at_most post 310
at_most return 360
at_most fentry 115
at_most fentry-return 230
at_most optimized 68
at_most optimized-post 140
at_most optimized-return 190
no_growth breakpoint
no_growth post
no_growth return
no_growth fentry
no_growth fentry-return
no_growth optimized
no_growth optimized-post
no_growth optimized-return
at_most_ms register-$entries 82
at_most_ms unregister-$entries 46
