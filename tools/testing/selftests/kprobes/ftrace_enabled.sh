#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Who switches ftrace off switches off the probes that it serves, and no others.
# With it they come back: those that there are by then.
. ./lib.sh

switch=/proc/sys/kernel/ftrace_enabled
[ -e $switch ] || skip_all "no function tracer"
[ -e $tracing/kprobe_events ] || skip_all "no kprobe events, or not in tracefs"
has_config KPROBES_ON_FTRACE || skip_all "no CONFIG_KPROBES_ON_FTRACE"
need_no_events
on_exit remove_events
on_exit "echo 1 >$switch"

switch_ftrace() {	# 0 or 1
	echo "$1" >$switch
}

call() {	# do_rmdir()
	! rmdir /no-such-directory 2>/dev/null
}

# A call hits these events, and not those.
hits_are() {	# EVENT=HITS...
	cat $tracing/kprobe_profile >"$output.before"
	call
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

if has_config KRETPROBES; then
	returns="r:kprobes/returns do_rmdir"
else	# no return probes: another one at the entry
	returns="p:kprobes/returns do_rmdir"
fi

plan 19
check "an event at the entry" add_event 'p:kprobes/entry do_rmdir'
check "one inside" add_event_inside inside do_rmdir
check "one at the return" add_event "$returns"
check "one elsewhere" add_event "p:kprobes/leaves set_fs_pwd"
for event in entry inside returns leaves; do
	enable_event $event 1
done
check "they are hit" hits_are entry=1 inside=1 returns=1

check "ftrace is switched off" switch_ftrace 0
check "the event inside alone is hit" hits_are entry=0 inside=1 returns=0
check "an event is added" add_event 'p:kprobes/late do_rmdir'
check "it is enabled" enable_event late 1
check "one is disabled" enable_event leaves 0
check "still the event inside alone is hit" hits_are entry=0 inside=1 returns=0 late=0
seen=$(hits leaves)
check "ftrace is switched on" switch_ftrace 1
check "all are hit" hits_are entry=1 inside=1 returns=1 late=1
cd / || exit
check "but for the one that was disabled" [ "$(hits leaves)" = "$seen" ]
# ftrace gives up if a function that left while it was off never comes back.
check "that is enabled" enable_event leaves 1
cd / || exit
check "and is hit" [ "$(hits leaves)" -gt "$seen" ]

# A return probe that waits for its return.
if has_config KRETPROBES; then
	add_event 'r:kprobes/woken do_nanosleep'
	enable_event woken 1
	sleep 2 &
	sleep 0.2
	switch_ftrace 0
	wait
	check "a call that was in flight returns by its probe" returned $! woken
	switch_ftrace 1
else
	skip "a call that was in flight returns by its probe" "no CONFIG_KRETPROBES"
fi
remove_events
check "no probe is left" [ -z "$(cat $kprobes/list)" ]
check_not "ftrace calls for no probe" \
	grep -w 'do_rmdir\|set_fs_pwd\|do_nanosleep' $tracing/enabled_functions
