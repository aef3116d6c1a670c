#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# A jump in place of one breakpoint, its neighbour, the sysctl debug.kprobes-optimization
# and stack traces through the detour.
. ./lib.sh
find_rmdir

! is_base || skip_all "the kprobes of the base have no stats"
[ -e $knob ] || skip_all "no CONFIG_OPTPROBES"
use_events

on_exit "echo $(cat $knob) >$knob"
on_exit "echo 1 >$kprobes/enabled"
echo 1 >$knob

set_knob() {	# VALUE
	write_line "$1" $knob
}

line_of() {	# EVENT: in the list
	place=$(sed -n "s,^p:kprobes/$1 ,,p" $tracing/kprobe_events)
	grep " k  ${place%+*}+0x$(printf %x "${place#*+}") " $kprobes/list
}

is_optimized() {	# EVENT
	count_optimized_at_rest >/dev/null
	line_of "$1" | grep -F '[OPTIMIZED]'
}

# Each line has a name and a number, and no name occurs twice.
stats_have_format() {	# FILE
	! grep -Ev '^[a-z][a-z_]*: [0-9]+$' "$1" && [ -z "$(cut -d : -f 1 "$1" | sort | uniq -d)" ]
}

# Add an event at the first instruction from an offset on where it is optimised.
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

# Add an optimised event, and a disabled one at an instruction that its jump displaces.
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

is_hit_by_forks() {	# EVENT
	seen=$(hits "$1")
	fork_three_times
	echo "$1: $seen hits, then $(hits "$1"), $(missed "$1") missed"
	[ "$(hits "$1")" -ge $((seen + 3)) ]
}

enable_stacktrace() {	# EVENT
	echo stacktrace >"$tracing/events/kprobes/$1/trigger"
}

# In each stack of the trace, kprobe_dispatcher() is followed by what detours share, or by an
# address without a symbol, and by the probed function and its callers.
stacks_have() {	# FUNCTION...
	sed -n 's/^ => //p; s/.*<stack trace>$/-/p' $tracing/trace >"$output.stacks"
	cat "$output.stacks"
	awk -v wanted="$*" '
		function judge() {
			if (seen && index(stack, " kprobe_dispatcher - " wanted " ") == 0)
				wrong++
		}
		$1 == "-" { judge(); seen++; stack = " "; next }
		!/^(0x|kprobe_detour)/ { stack = stack $1 " "; next }
		stack !~ / - $/ { stack = stack "- " }
		END { judge(); exit !seen || wrong }' "$output.stacks"
}

plan 45
check "without probes there is no jump" \
	[ "$(read_stat probes)/$(read_stat sites_jump)" = 0/0 ]
check "without probes the stats add up" stats_add_up
check "the stats have their format" stats_have_format $kprobes/stats
check_error "others cannot read the stats" "Permission denied" \
	su -s /bin/sh nobody -c "cat $kprobes/stats"

# A probe and its neighbour

check "an optimised event and a disabled neighbour are added" \
	add_neighbours jump near kernel_clone
check "the event is hit" is_hit_by_forks jump
check "the event misses no hit" [ "$(missed jump)" = 0 ]
check "/proc/kallsyms has the page of the detour" \
	grep -E '^[0-9a-f]+ t kprobe_optinsn_page' /proc/kallsyms
check "the event's site counts as a jump" \
	[ "$(read_stat sites_jump)/$(read_stat sites_breakpoint)" = 1/0 ]
check "the neighbour's site counts as disarmed" \
	[ "$(read_stat sites_disarmed)/$(read_stat probes_disabled)" = 1/1 ]
check "the stats add up" stats_add_up

enable_event jump 0
check_not "a disabled event is not optimised" is_optimized jump
seen=$(hits jump)
fork_three_times
check "a disabled event is not hit" [ "$(hits jump)" = "$seen" ]
enable_event jump 1
check "the event is optimised after it was enabled" is_optimized jump
check "the event is hit after it was enabled" is_hit_by_forks jump

enable_event near 1
check_not "an enabled neighbour prevents the jump" is_optimized jump
check "the stats have the neighbour as the reason" [ "$(read_stat no_jump_other_probe)" = 1 ]
check "the event is hit as a breakpoint" is_hit_by_forks jump
check "the neighbour is hit" is_hit_by_forks near
check "the stats add up with both enabled" stats_add_up
enable_event near 0
check "the event is optimised after the neighbour was disabled" is_optimized jump
enable_event near 1
check_not "the neighbour prevents the jump after it was enabled again" is_optimized jump
enable_event near 0
add_event '-:kprobes/near'
check "the event is optimised after the neighbour was removed" is_optimized jump
check "the event is hit as a jump" is_hit_by_forks jump

echo 0 >$kprobes/enabled
check_not "with all probes switched off there is no jump" is_optimized jump
echo 1 >$kprobes/enabled
check "with all probes switched on there is a jump" is_optimized jump

# debug.kprobes-optimization

check "the sysctl is 1" [ "$(cat $knob)" = 1 ]
check "the sysctl can be set to 0" set_knob 0
check "the sysctl is 0" [ "$(cat $knob)" = 0 ]
check "no probe is optimised" [ "$(count_optimized)/$(read_stat sites_jump)" = 0/0 ]
check "the stats have the sysctl as the reason" [ "$(read_stat no_jump_disabled)" = 1 ]
check "the event is hit with the sysctl at 0" is_hit_by_forks jump
for bad in 2 -1 x ""; do
	check_error "the value '$bad' is refused" "Invalid argument" set_knob "$bad"
done
check "refused values change nothing" [ "$(cat $knob)/$(count_optimized)" = 0/0 ]
check "the sysctl can be set to 1" set_knob 1
check "the event is optimised with the sysctl at 1" is_optimized jump
enable_event jump 0
enable_event jump 1
check "the sysctl can be set to 0 before the optimiser begins" set_knob 0
check_not "the optimiser passes over the event" is_optimized jump
set_knob 1
check "the optimiser takes up the event" is_optimized jump
remove_events

# Stack traces

check "an optimised event is added" add_optimized stack vfs_rmdir 5
check "the event takes stack traces" enable_stacktrace stack
mkdir -p "$output.d/x"
on_exit "rm -r $output.d"
rmdir "$output.d" 2>/dev/null
syscall=__x64_sys_rmdir
[ "$(uname -m)" = x86_64 ] || syscall=__ia32_sys_rmdir
check "the stack traces have the callers" \
	stacks_have vfs_rmdir $(caller_at_entry $rmdir) "$syscall"
enable_event stack 0
echo '!stacktrace' >$tracing/events/kprobes/stack/trigger
