#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# What a hit costs, and what registration does, in instructions: only where one of
# them takes a nanosecond, which the command line has to say with kp.icount=1.
. ./lib.sh
. ./measure.sh

grep -qw kp.icount=1 /proc/cmdline || skip_all "instructions are not counted here"
[ -r instructions ] || skip_all "no list of instructions"

others=1000
before=$(cat $knob)
on_exit 'echo $before >$knob'
on_exit '! [ -e /sys/module/kprobe_scale ] || rmmod kprobe_scale'
on_exit 'rmmod kprobe_bench'

add() {	# SUFFIX: what is said goes to the costs, each name with the suffix
	sed "s/-$others / /; s/ /$1 /" "$output" >>"$output.costs"
}

plan 48
: >"$output.costs"
check "the module loads" modprobe kprobe_bench
check "hits are measured" measure_hits
add ""
head -n $((others * 2)) instructions >"$output.instructions"
check "there are instructions to probe" load "$output.instructions"
check "probes are attached" measure kprobe_scale attach $others
add -instructions
check "hits are measured with $others other probes" measure_hits
add +$others
check "they are detached" measure kprobe_scale detach
check "they are attached one by one" measure kprobe_scale attach-single $others
add -instructions
check "and detached" measure kprobe_scale detach-single
add -instructions
some_functions $((others * 2)) >"$output.functions"
check "there are functions to probe" load "$output.functions"
check "probes are attached to them" measure kprobe_scale attach $others
add -functions
check "they are detached, too" measure kprobe_scale detach
add -functions
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

growth() {	# NAME: what a hit costs more beside others
	echo $(($(cost "$1+$others") - $(cost "$1")))
}

no_growth() {	# NAME [AS]: none, or as much as that of AS
	more=$(growth "$1")
	[ $# = 1 ] || more=$((more - $(growth "$2")))
	check "$1: no growth with $others other probes${2:+ but that of $2}, it is $more" \
		[ "${more#-}" -le 3 ]
}

# A probe may have to be looked for after others: how far, is a matter of luck, of
# where the functions are. That makes 3 instructions on average, more than 12 in one
# layout of 1,000; in a table of 64 lists, which does not grow, it would be 60.
little_growth() {	# NAME...
	sum=0
	for name; do
		sum=$((sum + $(growth "$name")))
	done
	check "$*: mean growth with $others other probes at most 20, it is $((sum / $#))" \
		[ $sum -le $((20 * $#)) ]
}

at_most breakpoint 240
at_most emulated 250
at_most post 310
for form in mov push lea add; do
	at_most $form 240
	at_most $form-post 310
	at_most $form-optimized 68
	at_most $form-optimized-post 140
done
at_most return 360
at_most fentry 115
at_most fentry-return 230
at_most optimized 68
at_most optimized-post 140
at_most optimized-return 190
little_growth breakpoint emulated fentry
no_growth post breakpoint
no_growth return breakpoint
no_growth fentry-return fentry
no_growth optimized
no_growth optimized-post
no_growth optimized-return
at_most_ms attach-functions 82
at_most_ms detach-functions 46
at_most_ms attach-instructions 200
at_most_ms attach-single-instructions 1200
at_most_ms detach-single-instructions 400
