#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Jumps in place of breakpoints: one, and a thousand at random instructions.
#
# usage: optimize.sh [FILE]
# FILE has random instructions of the kernel, one SYMBOL+OFFSET a line; it is
# `instructions` if that is there. Without it there are no crowds of jumps.
. ./lib.sh
. ./workload.sh

[ -e $knob ] || skip_all "no CONFIG_OPTPROBES"
[ -e $tracing/kprobe_events ] || skip_all "no kprobe events, or not in tracefs"
need_no_events

instructions=${1-instructions}
cpu=/sys/devices/system/cpu/cpu1/online
crowd=1000
share=90	# per cent of them that have to be optimised

before=$(cat $knob)
on_exit "echo $before >$knob"
on_exit "echo 1 >$kprobes/enabled"
on_exit remove_events
[ ! -e $cpu ] || on_exit "echo 1 >$cpu"
echo 1 >$knob

set_knob() {
	write "$1" $knob
}

# Where an event is, as the list has it.
line_of() {	# EVENT
	place=$(sed -n "s,^p:kprobes/$1 ,,p" $tracing/kprobe_events)
	grep " k  ${place%+*}+0x$(printf %x "${place#*+}") " $kprobes/list
}

is_optimized() {	# EVENT
	line_of "$1" | grep -F '[OPTIMIZED]'
}

# All of them, when the optimiser has done its work. Reading the list waits for ten
# seconds, which is not enough where a probe is hit all the time.
all_optimized() {
	for i in 1 2 3 4 5 6; do
		count=$(optimized)
		[ "$(number sites_optimizing)/$(number no_jump_pending)" != 0/0 ] || break
	done
	echo "$count"
}

# A number for each line, and no line twice.
are_stats() {
	! grep -Ev '^[a-z][a-z_]*: [0-9]+$' "$1" && [ -z "$(cut -d : -f 1 "$1" | sort | uniq -d)" ]
}

# Kinds of sites add up to the sites, reasons to the breakpoints; the list says the same.
adds_up() {
	cat $kprobes/list >"$output.list"
	cat $kprobes/stats >"$output.stats"
	cat "$output.stats"
	awk -F ': ' -v probes="$(wc -l <"$output.list")" \
	    -v jumps="$(grep -cF '[OPTIMIZED]' "$output.list")" \
	    -v disabled="$(grep -cF '[DISABLED]' "$output.list")" '
		{ stat[$1] = $2 }
		/^no_jump_/ { breakpoints += $2 }
		/^sites_/ { sites += $2 }
		END {
			exit stat["sites"] != sites || stat["sites_breakpoint"] != breakpoints ||
			     stat["probes"] != probes || stat["sites_jump"] != jumps ||
			     stat["probes_disabled"] != disabled
		}' "$output.stats"
}

# An optimised event, at the first instruction from an offset on that can have one.
add_optimized() {	# EVENT FUNCTION OFFSET
	for offset in $(seq "$3" 200); do
		add_event "p:kprobes/$1 $2+$offset" 2>/dev/null || continue
		enable_event "$1" 1
		! is_optimized "$1" >/dev/null || return 0
		enable_event "$1" 0
		add_event "-:kprobes/$1"
	done
	return 1
}

# The same, and another one, disabled, at an instruction that the jump displaces.
add_neighbours() {	# EVENT NEIGHBOUR FUNCTION
	offset=4
	while add_optimized "$1" "$3" $((offset + 1)); do
		for next in 1 2 3 4; do
			! add_event "p:kprobes/$2 $3+$((offset + next))" 2>/dev/null || return 0
		done
		enable_event "$1" 0
		add_event "-:kprobes/$1"
	done
	return 1
}

hit_by_work() {	# EVENT
	seen=$(hits "$1")
	work
	echo "$1: $seen hits, then $(hits "$1"), $(missed "$1") missed"
	[ "$(hits "$1")" -ge $((seen + 3)) ]
}

add_stacktrace() {	# EVENT
	echo stacktrace >"$tracing/events/kprobes/$1/trigger"
}

# In all stacks of the trace the probed function and its callers follow the handlers,
# with nothing but the detour between them.
stacks_end() {	# FUNCTION...
	sed -n 's/^ => //p; s/.*<stack trace>$/-/p' $tracing/trace >"$output.stacks"
	cat "$output.stacks"
	awk -v wanted="$*" '
		function judge() {
			if (seen && index(stack, " kprobe_dispatcher - " wanted " ") == 0)
				wrong++
		}
		$1 == "-" { judge(); seen++; stack = " "; next }
		{ stack = stack ($1 ~ /^0x/ ? "-" : $1) " " }
		END { judge(); exit !seen || wrong }' "$output.stacks"
}

# Events at the first instructions that do not refuse them, at most 1000.
add_crowd() {
	added=0
	while [ $added -lt $crowd ] && read -r place; do
		! add_event "p:kprobes/crowd$added $place" 2>>"$output.refused" ||
			added=$((added + 1))
	done <"$instructions"
	echo "$added added"
	[ $added = $crowd ]
}

enable_crowd() {
	echo 1 >$tracing/events/kprobes/enable
}

are_hit() {	# HOW-MANY
	[ "$(awk '$2 > 0' $tracing/kprobe_profile | wc -l)" -ge "$1" ]
}

rounds() {
	wc -l <"$output.rounds"
}

# Who opens the list waits until jumps are in place.
beside_switching() {	# COMMAND
	: >"$output.rounds"
	while echo 0 >$knob && sleep 0.05 && echo 1 >$knob && : <$kprobes/list && sleep 0.1; do
		echo >>"$output.rounds"
	done &
	switcher=$!
	"$1"
	worked=$?
	kill $switcher
	wait $switcher
	echo 1 >$knob
	echo "$(rounds) rounds"
	[ "$worked" = 0 ] && [ "$(rounds)" -ge 3 ]
}

# A CPU comes and goes, five times, and until that has met three rounds of switching.
replug() {
	for i in $(seq 50); do
		{ echo 0 >$cpu && work && echo 1 >$cpu && work; } || return 1
		[ "$i" -lt 5 ] || [ "$(rounds)" -lt 3 ] || break
	done
	echo "$i times"
}

if [ -r "$instructions" ]; then
	plan 56
else
	plan 42
fi

check "without probes there are no jumps" [ "$(number probes)/$(number sites_jump)" = 0/0 ]
check "without probes numbers add up" adds_up
check "they have their format" are_stats $kprobes/stats
refuse "others cannot read them" "Permission denied" su -s /bin/sh nobody -c "cat $kprobes/stats"

# One

check "there are an optimised event and a neighbour" add_neighbours jump near kernel_clone
check "the event is hit" hit_by_work jump
check "it has missed nothing" [ "$(missed jump)" = 0 ]
check "its detour is known to kallsyms" grep -E '^[0-9a-f]+ t kprobe_optinsn_page' /proc/kallsyms
check "it is counted as a jump" [ "$(number sites_jump)/$(number sites_breakpoint)" = 1/0 ]
check "the neighbour is counted as disarmed" \
	[ "$(number sites_disarmed)/$(number probes_disabled)" = 1/1 ]
check "numbers add up" adds_up

enable_event jump 0
check_not "disabled, it is not optimised" is_optimized jump
seen=$(hits jump)
work
check "it is not hit" [ "$(hits jump)" = "$seen" ]
enable_event jump 1
check "enabled, it is optimised again" is_optimized jump
check "it is hit again" hit_by_work jump

enable_event near 1
check_not "with an enabled neighbour it is not optimised" is_optimized jump
check "that is said to be the reason" \
	[ "$(number no_jump_other_probe)" = 1 ]
check "it is hit" hit_by_work jump
check "the neighbour is hit" hit_by_work near
check "numbers add up with both" adds_up
enable_event near 0
check "with the neighbour disabled it is optimised" is_optimized jump
enable_event near 1
check_not "with the neighbour enabled again it is not" is_optimized jump
enable_event near 0
add_event '-:kprobes/near'
check "with the neighbour removed it is" is_optimized jump
check "it is hit as a jump" hit_by_work jump

echo 0 >$kprobes/enabled
check_not "with all probes switched off it is not optimised" is_optimized jump
echo 1 >$kprobes/enabled
check "with all switched on it is" is_optimized jump

# The switch

check "the switch is on" [ "$(cat $knob)" = 1 ]
check "it can be switched off" set_knob 0
check "it is off" [ "$(cat $knob)" = 0 ]
check "then nothing is optimised" [ "$(optimized)/$(number sites_jump)" = 0/0 ]
check "that is said to be the reason, too" [ "$(number no_jump_disabled)" = 1 ]
check "there are hits" hit_by_work jump
for bad in 2 -1 x ""; do
	refuse "\"$bad\" is refused" "Invalid argument" set_knob "$bad"
done
check "that has changed nothing" [ "$(cat $knob)/$(optimized)" = 0/0 ]
check "it can be switched on" set_knob 1
check "then it is optimised again" is_optimized jump
remove_events

# Stacks

check "there is an optimised event" add_optimized stack vfs_rmdir 5
check "it takes stacks" add_stacktrace stack
mkdir -p "$output.d/x"
on_exit "rm -r $output.d"
rmdir "$output.d" 2>/dev/null
check "they have the callers" stacks_end vfs_rmdir do_rmdir __x64_sys_rmdir
enable_event stack 0
echo '!stacktrace' >$tracing/events/kprobes/stack/trigger
remove_events
[ -r "$instructions" ] || exit 0

# A thousand

check "the workload runs" workload
check "$crowd random instructions are probed" add_crowd
check "they are enabled" enable_crowd
count=$(all_optimized)
sed 's/^/# /' $kprobes/stats
check "at least $((crowd * share / 100)) are optimised, it is $count" \
	[ "$count" -ge $((crowd * share / 100)) ]
check "the workload runs with them" workload
check "many of them are hit" are_hit $((crowd / 20))
awk '{ hit += $2 > 0; hits += $2 } END { print "# " hit " are hit, " hits " times" }' \
	$tracing/kprobe_profile
check "numbers add up with them" adds_up
echo 0 >$knob
check "switched off, none is optimised" [ "$(optimized)" = 0 ]
echo 1 >$knob
check "switched on, as many are optimised as before" [ "$(all_optimized)" = "$count" ]
check "the workload runs while they come and go" beside_switching workload
echo "# $(rounds) times"
check "they are still as many" [ "$(all_optimized)" = "$count" ]
if [ -e $cpu ]; then
	check "a CPU comes and goes while they do" beside_switching replug
	echo "# $(rounds) times"
	check "they are as many after that" [ "$(all_optimized)" = "$count" ]
else
	skip "a CPU comes and goes while they do" "no CPU to do without"
	skip "they are as many after that" "no CPU to do without"
fi
remove_events
check "none is left" [ "$(number probes)/$(number sites_jump)" = 0/0 ]
