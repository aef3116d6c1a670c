#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Hostile input through files and system calls: definitions of events, events of perf,
# and values of knobs. Each is refused with an error, and leaves nothing. What is random
# follows from SEED in the environment.
. ./lib.sh
find_rmdir

[ -d $kprobes ] || skip_all "no debugfs"
use_events
! is_base || skip_all "the kprobes of the base give other errors"
[ -x ./hostile_calls ] || skip_all "hostile_calls is not built"
tries=10000
seed=${SEED:-1}
old_knob=$(cat $knob 2>/dev/null)
restore_knobs() {
	echo 1 >$kprobes/enabled
	[ -z "$old_knob" ] || echo "$old_knob" >$knob
}
on_exit restore_knobs

nothing_is_left() {
	is_empty $kprobes/list && is_empty $tracing/kprobe_events &&
		[ "$(read_stat probes)/$(read_stat probes_disabled)" = 0/0 ]
}

# Definitions of events

# An address without a symbol is not among them: the event waits for a module there.
places() {
	cat <<-'END'
	0
	0x0
	-1
	0xffffffffffffffffffffffff
	99999999999999999999
	kprobes_test_no_such_function
	kernel_clone+
	kernel_clone-
	kernel_clone+-1
	kernel_clone-1
	kernel_clone+99999999999999999999
	kernel_clone+0x7fffffffffffffff
	kernel_clone+4294967295
	kernel_clone%return+1
	kernel_clone%s%s%n
	kernel_clone%px
	get_kprobe
	kprobe_int3_handler
	exc_int3
	asm_exc_int3
	jiffies
	init_task
	linux_banner
	__per_cpu_start
	start_kernel
	_etext
	_end
	__kretprobe_trampoline
	*
	+
	%
	$stack
	END
}

kinds="p r r0 r-1 r99999999 r4294967297 p5 q e"

# Print the definitions that were accepted.
accepted_definitions() {
	for kind in $kinds; do
		places | while IFS= read -r place; do
			for rest in "" " %" " @0x0:string"; do
				if printf '%s\n' "$kind:kprobes/hostile $place$rest" \
				    >>$tracing/kprobe_events; then
					echo "$kind $place$rest"
					echo >$tracing/kprobe_events
				fi 2>/dev/null
			done
		done
	done
}

definitions_are_refused() {
	accepted_definitions >"$output.accepted" 2>/dev/null
	cat "$output.accepted"
	[ ! -s "$output.accepted" ]
}

random_definitions_are_refused() {	# FILE
	./hostile_calls tracefs "$seed" $tries "$tracing/$1"
	status=$?
	echo >"$tracing/$1"
	[ $status = 0 ] && is_empty "$tracing/$1" && nothing_is_left
}

long_lines_are_refused() {
	for length in 1000 4095 4096 4097 20000; do
		{ printf 'p:kprobes/h '; head -c $length /dev/zero | tr '\0' a; echo; } \
			>"$output.event"
		! cat "$output.event" >>$tracing/kprobe_events 2>/dev/null || return
	done
	nothing_is_left
}

# In the list of symbols there are slots and detours while there are probes.
forbidden_addresses() {
	awk '$3 ~ /^(kprobe_insn_page|kprobe_optinsn_page|__kretprobe_trampoline)$/ ||
	     $3 ~ /^(get_kprobe|exc_int3|jiffies|init_task|_end)$/ { print $1 }' /proc/kallsyms
}

there_is_a_slot() {
	cat $kprobes/list	# waits for a jump
	grep -E ' kprobe_(opt)?insn_page\>' /proc/kallsyms
}

# Knobs

refuses_all_values() {	# FILE
	before=$(cat "$1")
	for value in "" " " x 2x -1 99 4294967296 99999999999999999999 7x1g %s%n; do
		! printf '%s\n' "$value" >"$1" || { echo "$value is accepted"; return 1; }
	done 2>/dev/null
	head -c 70000 /dev/zero >"$1" 2>/dev/null && return 1
	head -c 70000 /dev/zero | tr '\0' 7 >"$1" 2>/dev/null && return 1
	[ "$(cat "$1")" = "$before" ]
}

# Random bytes may be refused.
answers_anything() {
	for n in $(seq 100); do
		{ ! ./hostile_calls bytes $((seed + n)) "$n" >&3; cat <&3; } 3<>$kprobes/check ||
			return
	done 2>/dev/null
	[ "$(forbidden_addresses)" ] || return
	for address in $(forbidden_addresses); do
		ask_check "0x$address" | grep '^result: -' || return
	done
}

plan 15
echo "# seed $seed"
check "definitions of events are refused" definitions_are_refused
for file in kprobe_events dynamic_events; do
	check "random definitions in $file are refused" random_definitions_are_refused $file
done
check "lines of any length are refused" long_lines_are_refused
set -- "there is a slot" "perf events are refused, also at slots"
if [ -e /sys/bus/event_source/devices/kprobe/type ]; then
	add_event_inside slot $rmdir
	enable_event slot 1
	check "$1" there_is_a_slot
	# shellcheck disable=SC2046	# words
	check "$2" ./hostile_calls perf "$seed" $tries $(forbidden_addresses)
	remove_events
else
	skip "no perf events of kprobes" "$@"
fi
check "the file enabled refuses other values" refuses_all_values $kprobes/enabled
if [ -e $knob ]; then
	check "the sysctl refuses other values" refuses_all_values $knob
else
	skip "no jumps" "the sysctl refuses other values"
fi
if [ -e $kprobes/check ]; then
	check "the file check answers whatever is written" answers_anything
else
	skip "no file check" "the file check answers whatever is written"
fi
for file in list blacklist stats sites refusals; do
	check_not "$file cannot be written" write_line 1 $kprobes/$file
done
check "nothing is left" nothing_is_left
