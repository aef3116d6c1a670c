#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# A return probe whose number of instances adapts, of a function in which ten thousand
# callers block at the same time.
. ./lib.sh

callers=10000
[ -x ./blocked_callers ] || skip_all "blocked_callers is not built"
grep -qw unix_accept /proc/kallsyms || skip_all "no sockets of the family AF_UNIX"
! is_base || skip_all "the kprobes of the base have a fixed number of instances"
use_events
set_until_exit $((3 * callers)) /proc/sys/kernel/threads-max

have_called() {	# NUMBER
	[ "$(hits called)" -ge "$1" ]
}

block() {
	before=$(hits called)
	mkfifo "$output.input"
	# accept() begins with a file descriptor for each caller.
	(ulimit -n $((2 * callers)) && exec ./blocked_callers $callers) \
		<"$output.input" >"$output.callers" 2>&1 &
	child=$!
	exec 9>"$output.input"
	rm "$output.input"
	within 120 have_called $((before + callers)) || { cat "$output.callers"; return 1; }
}

release() {
	exec 9>&-
	wait $child
	grep -x "$callers returned" "$output.callers" || { cat "$output.callers"; return 1; }
}

each_call_is_counted() {	# NUMBER: of all calls, at least
	echo "$(hits accepted) hits and $(missed accepted) misses of $(hits called) calls"
	[ $(($(hits accepted) + $(missed accepted))) = "$(hits called)" ] && have_called "$1"
}

# The number of instances doubles when most are taken: after some rounds it is enough.
grow() {
	rounds=0
	missed=-1
	while [ "$(missed accepted)" != "$missed" ]; do
		missed=$(missed accepted)
		[ $rounds -lt 5 ] && block && release || return
		rounds=$((rounds + 1))
	done
}

# All tasks are frozen: their calls return, and are made again when they are thawed.
suspend_to_idle() {
	set_until_exit 1 /sys/module/suspend/parameters/pm_test_delay &&
		echo platform >/sys/power/pm_test && echo freeze >/sys/power/state
	suspended=$?
	echo none >/sys/power/pm_test
	return $suspended
}

plan 8
check "a return probe" add_event 'r:kprobes/accepted unix_accept'
add_event 'p:kprobes/called unix_accept'
enable_all_events 1
check "$callers callers block and return, until no call is missed" grow
ktap_print_msg "$missed calls were missed in $rounds rounds, while the number of instances grew"
check "as many block again" block
calls=$(((rounds + 1) * callers))
suspends="the machine is suspended to idle, and resumes"
if grep -qw platform /sys/power/pm_test 2>/dev/null; then
	check "$suspends" suspend_to_idle
	calls=$((calls + callers))
else
	skip "no test mode of suspend" "$suspends"
fi
check "they return" release
check "none of these is missed" [ "$(missed accepted)" = "$missed" ]
check "each call is a hit or a miss" each_call_is_counted $calls
remove_events
check_no_probe_is_left
