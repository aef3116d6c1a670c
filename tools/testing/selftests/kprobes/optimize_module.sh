#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Jumps in the text of a module that comes and goes.
. ./lib.sh

module=trace_events_sample
[ -e $tracing/kprobe_events ] || skip_all "no kprobe events, or not in tracefs"
modinfo trace-events-sample >/dev/null 2>&1 || skip_all "no module trace-events-sample"
[ -e $knob ] || skip_all "no jumps here"
is_base && skip_all "the kprobes that 6.12 comes with lose sight of a module's probes"
need_no_events
on_exit remove_events
on_exit "echo 1 >$knob"
on_exit 'modprobe -r trace-events-sample kretprobe_example 2>/dev/null'

load() {
	modprobe trace-events-sample
}

unload() {
	modprobe -r trace-events-sample
}

# Reading the list waits for the optimiser.
jumps() {	# how many probes in the module have one
	sleep 0.2
	grep -c "$module.*\[OPTIMIZED\]" $kprobes/list
}

listed() {	# NUMBER: so many probes are in the list, none of them without a place
	[ "$(grep -c "$module" $kprobes/list)/$(wc -l <$kprobes/list)" = "$1/$1" ] &&
		! grep '\[GONE\]' $kprobes/list
}

gone() {	# NUMBER: that many probes are gone, and no others are there, nor is a jump
	[ "$(grep -c '\[GONE\]' $kprobes/list)/$(wc -l <$kprobes/list)" = "$1/$1" ] &&
		! grep 'OPTIMIZED\|+0x' $kprobes/list
}

# Wherever an instruction begins in the function that is called each second.
add_events() {
	function=$(awk -v module="[$module]" '
		/ do_simple_thread_func/ && $4 == module { print $3 }' /proc/kallsyms)
	events=0
	for offset in $(seq 0 64); do
		add_event "p:kprobes/at$offset $module:$function+$offset" 2>/dev/null || continue
		events=$((events + 1))
		last=at$offset
	done
	[ $events -ge 10 ]
}

# But for those that cannot be probed when the module is there.
first_functions() {	# MODULE
	grep "\[$1\]" /proc/kallsyms | sort | awk '
		$2 ~ /[tT]/ && $3 !~ /^__(SCT|pfx)|_init|_exit|_module$/ { print $3 }' | head -n 4
}

# Wherever an instruction begins in them.
add_events_at_start() {	# MODULE
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

load_visitor() {	# MODULE
	case $1 in
	kretprobe_example) modprobe "$1" symbol=mktime64 ;;
	*) modprobe "$1" ;;
	esac
}

# A module comes, perhaps after another one, is probed, and goes: it has jumps where it
# had them the first time.
visit() {	# MODULE [OTHER]
	[ $# = 1 ] || load_visitor "$2" || return 1
	load_visitor "$1" && add_events_at_start "$1" || return 1
	echo 1 >$tracing/events/kprobes/enable
	sleep 0.2
	grep "$1.*\[OPTIMIZED\]" $kprobes/list >"$output.jumps"
	head -n 1 "$output.jumps"
	cut -d ' ' -f 2- "$output.jumps" | sort -u >"$output.$1.now"
	remove_events
	modprobe -r "$@"
	[ -e "$output.$1" ] || cp "$output.$1.now" "$output.$1"
	[ -s "$output.$1.now" ] && diff "$output.$1" "$output.$1.now"
}

plan 30

check "the module is loaded" load
check "it is probed everywhere in a function" add_events
echo 1 >$tracing/events/kprobes/enable
check "all probes are listed" listed $events
check "some have a jump" [ "$(jumps)" -ge 1 ]
check "they are hit" is_hit "$last"
check "jumps are switched off" sh -c "echo 0 >$knob"
check "none is left" [ "$(jumps)" = 0 ]
check "they are hit still" is_hit "$last"
check "jumps are switched on" sh -c "echo 1 >$knob"
check "they are back" [ "$(jumps)" -ge 1 ]
check "the module is unloaded" unload
check "all probes are [GONE]" gone $events
remove_events
check "the events are removed" [ -z "$(cat $kprobes/list)" ]

# Before, while, and after the optimiser gets at them.
for wait in 0 0.06 0.5; do
	remove_events
	check "the module is loaded" load
	check "it is probed" add_events
	echo 1 >$tracing/events/kprobes/enable
	sleep $wait
	check "it is unloaded while jumps are on their way" unload
	check "all probes are [GONE]" gone $events
done
remove_events

# What is known of a module's text is forgotten with it: the next one may be there.
other=kretprobe_example
if modinfo $other >/dev/null 2>&1; then
	check "a module has jumps" visit $module
	check "so has another one" visit $other
	check "the first has them in the same places, elsewhere" visit $module $other
	check "so has the other" visit $other $module
else
	for name in "a module has jumps" "so has another one" \
	    "the first has them in the same places, elsewhere" "so has the other"; do
		skip "$name" "no $other"
	done
fi
check "nothing is left" [ -z "$(cat $kprobes/list)" ]
