#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# What a hit costs, in instructions: only where one of them takes a nanosecond,
# which the command line has to say with kp.icount=1.
. ./lib.sh

grep -qw kp.icount=1 /proc/cmdline || skip_all "instructions are not counted here"

others=1000
dmesg -c >/dev/null
plan 7
check "the module loads" modprobe kprobe_bench others=$others
dmesg | sed -n 's/.*kprobe_bench: //p' >"$output.costs"
rmmod kprobe_bench
sed 's/^/# cost: /' "$output.costs"

cost() {	# NAME: what it costs, a huge number if that is not known
	sed -n "s/^$1 //p" "$output.costs" | grep . || echo 999999
}

at_most() {	# NAME LIMIT
	check "$1: at most $2 instructions, it is $(cost "$1")" [ "$(cost "$1")" -le "$2" ]
}

no_growth() {	# NAME
	growth=$(($(cost "$1+$others") - $(cost "$1")))
	check "$1: no growth with $others other probes, it is $growth" \
		[ "${growth#-}" -le 3 ]
}

at_most breakpoint 240
at_most post 310
at_most fentry 160
no_growth breakpoint
no_growth post
no_growth fentry
