#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The switch for all probes, and events of all kinds, many at once.
. ./lib.sh

[ -d $kprobes ] || skip_all "no debugfs"
[ -e $tracing/kprobe_events ] || skip_all "no kprobe events, or not in tracefs"
need_no_events
on_exit remove_events
on_exit "echo 1 >$kprobes/enabled"

others=40

switch() {	# 0 or 1
	echo "$1" >$kprobes/enabled
}

call() {	# do_rmdir()
	! rmdir /no-such-directory 2>/dev/null
}

# How often events were hit: of all probes of those that have several.
total() {	# EVENT
	awk -v event="$1" '$1 == event { n += $2 } END { print n + 0 }' $tracing/kprobe_profile
}

kinds="entry inside second several"
if has_config KRETPROBES; then
	kinds="$kinds returns bounded both"
fi

all_hit() {	# NUMBER: so often, by as many calls or by none
	for event in $kinds; do
		total "$event" >"$output.before.$event"
	done
	call
	call
	bad=0
	for event in $kinds; do
		more=$(($(total "$event") - $(cat "$output.before.$event")))
		[ $more = "$1" ] || bad=1
		echo "$event: hit $more times, should be $1"
	done
	return $bad
}

add_all() {
	add_event 'p:kprobes/entry do_rmdir' &&
	add_event 'p:kprobes/second do_rmdir' &&
	add_event_inside inside do_rmdir &&
	# One event, two probes, one of which is hit.
	add_event 'p:kprobes/several do_rmdir' &&
	add_event 'p:kprobes/several kernel_halt' || return
	has_config KRETPROBES || return 0
	add_event 'r:kprobes/returns do_rmdir ret=$retval:s32' &&
	add_event 'r10:kprobes/bounded do_rmdir' &&
	add_event 'r:kprobes/both do_rmdir' &&
	add_event 'r:kprobes/both kernel_halt'
}

# Functions that nobody calls meanwhile, or that may be called.
add_others() {
	n=0
	for function in $(awk '/^(vfs|sock|tcp|skb)_/ && !/\./ { print $1 }' \
			$tracing/available_filter_functions | sort -u | head -n $others); do
		n=$((n + 1))
		kind=p
		if [ $((n % 3)) = 0 ] && has_config KRETPROBES; then
			kind=r
		fi
		add_event "$kind:kprobes/other_$n $function" || return
	done
	[ $n = $others ]
}

enable_all() {	# 0 or 1
	echo "$1" >$tracing/events/kprobes/enable
}

disabled() {	# how many are
	grep -c 'DISABLED' $kprobes/list
}

plan 24
check "events of all kinds are added" add_all
check "$others others" add_others
check "all probes are disabled" [ "$(disabled)" = "$(wc -l <$kprobes/list)" ]
check "all are enabled" enable_all 1
check "all probes are enabled" [ "$(disabled)" = 0 ]
check "they are hit" all_hit 2
for round in 1 2; do
	check "they are switched off, $round" switch 0
	check "no probe is hit, $round" all_hit 0
	check "they are switched on, $round" switch 1
	check "all probes are hit, $round" all_hit 2
done

switch 0
check "all are disabled while they are off" enable_all 0
check "they are enabled" enable_all 1
check "no probe is hit" all_hit 0
switch 1
check "all are hit when they are on" all_hit 2
switch 0
check "all are disabled again" enable_all 0
switch 1
check "no probe is hit that is disabled" all_hit 0
check "all probes say so" [ "$(disabled)" = "$(wc -l <$kprobes/list)" ]
remove_events

# Calls that are in flight
if has_config KRETPROBES; then
	add_event 'r:kprobes/returns do_nanosleep'
	enable_event returns 1
	sleep 0.6 &
	sleep 0.2
	switch 0
	sleep 0.1
	wait
	switch 1
	sleep 0.01 &
	wait
	check "returns are seen after the switch was off in between" returned $! returns
	sleep 0.3 &
	sleep 0.1
	remove_events
	check "an event is removed, and calls return" wait $!
else
	skip "returns are seen after the switch was off in between" "no CONFIG_KRETPROBES"
	skip "an event is removed, and calls return" "no CONFIG_KRETPROBES"
fi
check "nothing is left" [ -z "$(cat $kprobes/list)" ]
