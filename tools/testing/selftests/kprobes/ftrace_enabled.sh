#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The sysctl kernel.ftrace_enabled switches off the probes at ftrace sites, and no others.
# Switching ftrace on again arms the probes that are enabled by then.
. ./lib.sh
find_rmdir

sysctl=/proc/sys/kernel/ftrace_enabled
[ -e $sysctl ] || skip_all "no function tracer"
use_events
has_config KPROBES_ON_FTRACE || skip_all "no CONFIG_KPROBES_ON_FTRACE"
on_exit "echo 1 >$sysctl"
echo 0 2>/dev/null >$sysctl || skip_all "ftrace cannot be switched off"
echo 1 >$sysctl

switch_ftrace() {	# 0 or 1
	echo "$1" >$sysctl
}

hits_of_call_are() {	# EVENT=HITS...: a call of it adds these numbers of hits
	cat $tracing/kprobe_profile >"$output.before"
	call_rmdir
	bad=0
	for expected; do
		event=${expected%=*}
		before=$(awk -v event="$event" '$1 == event { print $2 }' "$output.before")
		now=$(hits "$event")
		[ $((now - before)) = "${expected#*=}" ] || bad=1
		echo "$event=$((now - before)), should be $expected"
	done
	return $bad
}

log_says_off() {
	log_has_line "kprobes: kernel.ftrace_enabled is 0: probes at functions' entries are not hit"
}

answer_has() {	# PLACE LINE: of the file check
	ask_check "$1" | grep -x "$2"
}

only_ftrace_is_off() {
	cat $kprobes/sites
	! grep -v " kind=ftrace " $kprobes/sites | grep no_hit &&
		! answer_has "$(sed -n 's/.*kprobes\/inside //p' $tracing/kprobe_events)" \
			"no_hit: .*"
}

if has_config KRETPROBES; then
	returns="r:kprobes/returns $rmdir"
else
	returns="p:kprobes/returns $rmdir"
fi

plan 30
dmesg -c >/dev/null
switch_ftrace 0
switch_ftrace 1
check_not "without probes the log does not mention it" log_says_off
check "an event is added at the entry" add_event "p:kprobes/entry $rmdir"
check "an event is added inside the function" add_event_inside inside $rmdir
check "an event is added at the return" add_event "$returns"
check "an event is added to another function" add_event "p:kprobes/other set_fs_pwd"
for event in entry inside returns other; do
	enable_event $event 1
done
check "all events are hit" hits_of_call_are entry=1 inside=1 returns=1

check "ftrace is switched off" switch_ftrace 0
set -- "the log says so" "sites says so" "check says so" "they do not say it of other probes"
if is_base; then
	skip "the kprobes of the base do not" "$@"
else
	check "$1" log_says_off
	check "$2" grep " $rmdir+.* kind=ftrace no_hit=ftrace_enabled " $kprobes/sites
	check "$3" answer_has $rmdir "no_hit: ftrace_enabled"
	check "$4" only_ftrace_is_off
fi
check "only the event inside is hit" hits_of_call_are entry=0 inside=1 returns=0
check "an event is added with ftrace off" add_event "p:kprobes/late $rmdir"
check "an event is enabled with ftrace off" enable_event late 1
check "an event is disabled with ftrace off" enable_event other 0
check "still only the event inside is hit" hits_of_call_are entry=0 inside=1 returns=0 late=0
seen=$(hits other)
check "ftrace is switched on" switch_ftrace 1
check "all enabled events are hit" hits_of_call_are entry=1 inside=1 returns=1 late=1
cd / || exit
check "the disabled event is not hit" [ "$(hits other)" = "$seen" ]
check "the disabled event is enabled" enable_event other 1
cd / || exit
check "the event is hit after it was enabled" [ "$(hits other)" -gt "$seen" ]

name="a call that was in flight while ftrace was off hits its return event"
if has_config KRETPROBES; then
	add_event 'r:kprobes/woken do_nanosleep'
	enable_event woken 1
	sleep 5 &
	sleep 1
	switch_ftrace 0
	wait
	check "$name" returned_once $! woken
	switch_ftrace 1
else
	skip "no CONFIG_KRETPROBES" "$name"
fi
remove_events
check_no_probe_is_left
check_not "ftrace calls no handler" \
	grep -w "$rmdir\|set_fs_pwd\|do_nanosleep" $tracing/enabled_functions

check "soon ftrace has no user" within 10 anchor_is_not_traced

# With a flag that is left at a function, ftrace shuts down when it has no user again.
set -- "ftrace is switched off again" "events are removed with ftrace off" \
	"ftrace has no user again" "an event is enabled after all had left" "and is hit"
if is_base; then
	skip "the kprobes of the base leave one" "$@"
	exit 0
fi
add_event 'p:kprobes/first set_fs_pwd'
add_event 'p:kprobes/second do_nanosleep'
enable_event second 1
enable_event first 1
enable_event first 0
check "$1" switch_ftrace 0
enable_event second 0
check "$2" remove_events
sleep 2	# their user leaves, too
switch_ftrace 1
add_event "p:kprobes/entry $rmdir"
enable_event entry 1
remove_events
check "$3" within 10 anchor_is_not_traced
add_event "p:kprobes/entry $rmdir"
check "$4" enable_event entry 1
check "$5" hits_of_call_are entry=1
