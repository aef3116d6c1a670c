#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Jumps in the text of modules that are loaded and unloaded.
. ./lib.sh

[ -e $knob ] || skip_all "no CONFIG_OPTPROBES"
is_base && skip_all "the kprobes of the base lose the probes of a module"
use_events
use_sample
on_exit "echo 1 >$knob"
on_exit 'modprobe -r kretprobe_example 2>/dev/null'
on_exit '! [ -e /sys/module/kprobe_coming ] || rmmod kprobe_coming'

count_jumps() {
	count_optimized_at_rest >/dev/null
	grep -c "$sample.*\[OPTIMIZED\]" $kprobes/list
}

are_listed() {	# NUMBER: the probes in the list, of which none is [GONE]
	[ "$(grep -c "$sample" $kprobes/list)/$(wc -l <$kprobes/list)" = "$1/$1" ] &&
		! grep '\[GONE\]' $kprobes/list
}

all_gone_without_jumps() {	# NUMBER
	all_gone "$1" && ! grep 'OPTIMIZED\|+0x' $kprobes/list
}

# Add an event to each instruction of the function that is called each second.
add_events_to_thread() {
	function=$(sample_thread_function)
	events=0
	for offset in $(seq 0 64); do
		add_event "p:kprobes/at$offset $sample:$function+$offset" 2>/dev/null || continue
		events=$((events + 1))
		last=at$offset
	done
	[ $events -ge 10 ]
}

# Functions that can be probed after the module was loaded.
first_functions() {	# MODULE
	grep "\[$1\]" /proc/kallsyms | sort | awk '
		$2 ~ /[tT]/ && $3 !~ /^__(SCT|pfx)|_init|_exit|_module$/ { print $3 }' | head -n 4
}

# Add an event to each instruction of these functions.
add_events_to_first_functions() {	# MODULE
	events=0
	for function in $(first_functions "$1"); do
		for offset in $(seq 0 80); do
			place=$1:$function+$offset
			add_event "p:kprobes/all$events $place" 2>/dev/null || continue
			events=$((events + 1))
		done
	done
	echo "$events events"
	[ $events -ge 20 ]
}

load_example() {	# MODULE
	case $1 in
	kretprobe_example) modprobe "$1" func=mktime64 ;;
	*) modprobe "$1" ;;
	esac
}

# Load a module, after another one if that is given, probe it, and unload both. It has the
# same jumps each time.
has_same_jumps() {	# MODULE [OTHER]
	[ $# = 1 ] || load_example "$2" || return 1
	load_example "$1" && add_events_to_first_functions "$1" || return 1
	enable_all_events 1
	count_optimized_at_rest >/dev/null
	grep "$1.*\[OPTIMIZED\]" $kprobes/list >"$output.jumps"
	head -n 1 "$output.jumps"
	cut -d ' ' -f 2- "$output.jumps" | sort -u >"$output.$1.now"
	remove_events
	modprobe -r "$@"
	[ -e "$output.$1" ] || cp "$output.$1.now" "$output.$1"
	[ -s "$output.$1.now" ] && diff "$output.$1" "$output.$1.now"
}

load_sample_with_events() {
	load_sample && add_events_to_thread && enable_all_events 1
}

# The probes of events are registered before others have patched the text of the module.
has_jumps_only_when_it_is_patched() {
	load_module kprobe_coming name=$sample || return
	count_optimized_at_rest >/dev/null
	load_sample &
	within 10 are_listed $events && early=$(count_optimized)
	wait
	rmmod kprobe_coming
	late=$(count_jumps)
	echo "$early jumps, then $late"
	[ "$early" = 0 ] && [ "$late" -ge 1 ]
}

plan 34

check "the module is loaded" load_sample
check "each instruction of a function is probed" add_events_to_thread
enable_all_events 1
check "all probes are listed" are_listed $events
check "some probes are optimised" [ "$(count_jumps)" -ge 1 ]
check "the probes are hit" event_gets_hits "$last"
check "the sysctl is set to 0" sh -c "echo 0 >$knob"
check "no probe is optimised" [ "$(count_jumps)" = 0 ]
check "the probes are hit as breakpoints" event_gets_hits "$last"
check "the sysctl is set to 1" sh -c "echo 1 >$knob"
check "some probes are optimised again" [ "$(count_jumps)" -ge 1 ]
check "the module is unloaded" unload_sample
check "all probes are [GONE]" all_gone_without_jumps $events
remove_events
check "removed events leave no probe" is_empty $kprobes/list

# Unload the module before, while and after its probes are optimised.
for delay in 0 0.06 0.5; do
	remove_events
	check "delay $delay: the module is loaded" load_sample
	check "delay $delay: it is probed" add_events_to_thread
	enable_all_events 1
	sleep $delay
	check "delay $delay: it is unloaded" unload_sample
	check "delay $delay: all probes are [GONE]" all_gone_without_jumps $events
done
remove_events

set -- "the module is loaded with events in its text" "it is unloaded" \
	"when it is loaded again, jumps come after all have patched it" "it is unloaded again"
if has_module kprobe_coming; then
	check "$1" load_sample_with_events
	check "$2" unload_sample
	check "$3" has_jumps_only_when_it_is_patched
	check "$4" unload_sample
else
	skip "no module kprobe_coming" "$@"
fi
remove_events

# The index of branch targets is dropped with a module's text, since the text of another
# module may take its place.
other=kretprobe_example
set -- "a module has jumps" "a second module has jumps" \
	"the first module has the same jumps at other addresses" \
	"the second module has the same jumps at other addresses"
if has_module $other; then
	check "$1" has_same_jumps $sample
	check "$2" has_same_jumps $other
	check "$3" has_same_jumps $sample $other
	check "$4" has_same_jumps $other $sample
else
	skip "no module $other" "$@"
fi
check_no_probe_is_left
