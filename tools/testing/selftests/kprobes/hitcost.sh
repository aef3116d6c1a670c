#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Upper limits of the cost of hits and registrations. They are in instructions, and measured
# only if an instruction takes a nanosecond, as kp.icount=1 on the command line says.
. ./lib.sh
. ./measure.sh
find_rmdir

grep -qw kp.icount=1 /proc/cmdline || skip_all "no kp.icount=1 on the command line"
[ -r instructions ] || skip_all "no list of instructions"

others=1000
on_exit "echo $(cat $knob) >$knob"
on_exit '! [ -e /sys/module/kprobe_scale ] || rmmod kprobe_scale'
on_exit 'rmmod kprobe_bench'

# Sites that are freed leave room in the hash: all kinds of probes must find the same there.
no_site_is_dying() {
	[ "$(read_stat sites_dying)" = 0 ]
}

measure_hits_at_rest() {
	within 10 no_site_is_dying && measure_hits
}

# Add the output of the last check to the costs, with a suffix at each name.
add_costs() {	# SUFFIX
	sed "s/-$others / /; s/ /$1 /" "$output" >>"$output.costs"
}

cost_of_asking() {	# PLACE inside of an instruction
	start=$(now)
	ask_check "$1" | grep -q "not at the start of an instruction" &&
		echo $(($(now) - start))
}

# After entry code, the text of x86-64 alone has up to two million breakpoints, at least a
# quarter of them before the next symbol.
padded=0
[ "$(uname -m)" != x86_64 ] || padded=1
compare_padding() {
	function=$(cost_of_asking $rmdir+1) &&
		after_entry=$(cost_of_asking __entry_text_end+0x80000) &&
		echo "padding $((after_entry - function))"
}

# 1.15 times what it is, or less. Which instructions are probed follows from the kernel, and what
# text_poke() costs is a part of registrations. Exceptions and jumps cost more on i386. Since 7.3,
# an exception costs 13 instructions more on i386 than in 6.12.
known=1
jump=76 jump_post=153 jump_return=192
trap=213 trap_post=310 trap_post_nop=295 trap_return=340
[ "$(uname -m)" = x86_64 ] || jump=94 jump_post=190 jump_return=235
case $(uname -m)/$(uname -r) in
x86_64/6.12.*)
	attach=82900000 attach_single=115000000 attach_functions=15800000
	detach=1480000 detach_single=7580000 detach_functions=6310000
	padding=3310000 ;;
x86_64/7.3.*)
	attach=96000000 attach_single=136000000 attach_functions=16100000
	detach=1650000 detach_single=9500000 detach_functions=6500000
	padding=3400000 ;;
i?86/6.12.*)
	trap=259 trap_post=376 trap_post_nop=361 trap_return=380
	attach=78200000 attach_single=109000000 attach_functions=17300000
	detach=1570000 detach_single=9390000 detach_functions=6830000 ;;
i?86/7.3.*)
	trap=272 trap_post=389 trap_post_nop=374 trap_return=393
	attach=86700000 attach_single=119000000 attach_functions=17400000
	detach=1730000 detach_single=14600000 detach_functions=6940000 ;;
*)
	known= ;;
esac

plan $((49 + padded))
: >"$output.costs"
check "the module loads" load_module kprobe_bench
check "the cost of hits is measured" measure_hits_at_rest
add_costs ""
# Not of functions that registering calls: the probes would be hit, and by chance often.
grep -E '^(acpi|bpf|btf|fib|inet|ip|pci|tcp)_' instructions |
	head -n $((others * 2)) >"$output.instructions"
check "random instructions can be probed" load_targets "$output.instructions"
# The optimiser would take its turns at times that depend on much.
echo 0 >$knob
check "$others probes are registered" measure kprobe_scale attach $others
add_costs -instructions
check "the cost of hits is measured with $others other probes" measure_hits_at_rest
add_costs +$others
echo 0 >$knob
check "the probes are unregistered" measure kprobe_scale detach
add_costs -instructions
check "$others probes are registered one by one" measure kprobe_scale attach-single $others
add_costs -instructions
check "the probes are unregistered one by one" measure kprobe_scale detach-single
add_costs -instructions
some_functions $((others * 2)) >"$output.functions"
check "functions can be probed" load_targets "$output.functions"
check "$others probes on functions are registered" measure kprobe_scale attach $others
add_costs -functions
check "the probes on functions are unregistered" measure kprobe_scale detach
add_costs -functions
compare_padding >"$output"
add_costs ""
sed 's/^/# cost: /' "$output.costs"

cost() {	# NAME: its value, or a huge number if it was not measured
	sed -n "s/^$1 //p" "$output.costs" | grep . || echo 999999999999
}

check_at_most() {	# NAME LIMIT
	if [ ! "$known" ]; then
		skip "no limits for this kernel" "$1: $(cost "$1") instructions"
		return
	fi
	check "$1: at most $2 instructions: $(cost "$1")" [ "$(cost "$1")" -le "$2" ]
}

growth() {	# NAME: added cost of a hit with other probes
	echo $(($(cost "$1+$others") - $(cost "$1")))
}

# No growth, or no more than that of a second kind of probe, whose lookup is a part of it.
check_no_growth() {	# NAME [OTHER]
	more=$(growth "$1")
	[ $# = 1 ] || more=$((more - $(growth "$2")))
	check "$1: no growth with $others other probes${2:+ except that of $2}: $more" \
		[ "${more#-}" -le 3 ]
}

# The lookup of a probe may pass others, depending on the hash of their addresses. That is 3
# instructions on average, and more than 12 in one of 1,000 layouts. With a table of a
# constant 64 lists it would be 60.
check_little_growth() {	# NAME...
	sum=0
	for name; do
		sum=$((sum + $(growth "$name")))
	done
	check "$*: mean growth with $others other probes at most 12: $((sum / $#))" \
		[ $sum -le $((12 * $#)) ]
}

check_at_most breakpoint $trap
check_at_most emulated $trap
check_at_most post $trap_post_nop
for form in mov push lea add; do
	check_at_most $form $trap
	check_at_most $form-post $trap_post
	check_at_most $form-optimized $jump
	check_at_most $form-optimized-post $jump_post
done
check_at_most return $trap_return
check_at_most fentry 116
check_at_most fentry-return 232
check_at_most optimized $jump
check_at_most optimized-post $jump_post
check_at_most optimized-return $jump_return
check_little_growth breakpoint emulated fentry
check_no_growth post breakpoint
check_no_growth return breakpoint
check_no_growth fentry-return fentry
check_no_growth optimized
check_no_growth optimized-post
check_no_growth optimized-return
check_at_most attach-functions $attach_functions
check_at_most detach-functions $detach_functions
check_at_most attach-instructions $attach
check_at_most detach-instructions $detach
check_at_most attach-single-instructions $attach_single
check_at_most detach-single-instructions $detach_single
# A search would add 300 for each of half a million breakpoints.
[ $padded = 0 ] || check_at_most padding "$padding"
