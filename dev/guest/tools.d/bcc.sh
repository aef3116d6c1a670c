# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh disable=SC2154,SC2086 # sourced by tools; commands are words

export PYTHONUNBUFFERED=1

# Three lines match.
said_thrice() {	# REGEX
	is "$(grep -cE -- "$1" "$said")" 3
}

has_ended() {
	! grep -q '^State:[[:space:]]*[^Z[:space:]]' /proc/$tool_pid/status 2>/dev/null
}

# Each tool prints a line when all of its probes are there, and then begins to listen.
has_begun() {
	grep -qE '^(P?COMM|PID|Tracing|[[])' "$said" || has_ended
}

start() {	# TOOL [ARGUMENT...]
	timeout --foreground -s KILL 600 env --default-signal=INT "$@" >"$said" 2>&1 &
	tool_pid=$!
	within 200 has_begun
	sleep 3
}

# Python ignores an interrupt in a callback, so it may take a second one; but one that comes while a
# tool handles the first ends it without its output. In the foreground, timeout passes each on to the
# tool alone, not to its group as well. With -k, it would kill the tool so long after the first one.
stop() {
	sleep 2
	until has_ended; do
		kill -INT $tool_pid
		within 60 has_ended
	done
	wait $tool_pid
}

# Three calls while a tool runs.
observe() {	# TOOL [ARGUMENT...]
	start "$@"
	$three_calls 2>/dev/null
	stop
}

observe trace-bpfcc 'vfs_rmdir "dentry %llx", arg3' 'r::vfs_rmdir "returned %d", retval'
check "trace: the entries" said_thrice 'rmdir .* vfs_rmdir +dentry ff[0-9a-f]{14}$'
check "trace: the returns with their value" said_thrice 'rmdir .* vfs_rmdir +returned -39'
observe trace-bpfcc -K "$rmdir "'"dfd %d", arg1'
check "trace: an argument" said "rmdir .* $rmdir  *dfd -100"
check "trace: a kernel stack" said "__x64_sys_rmdir\+0x"
observe funccount-bpfcc 'vfs_rmd*'
check "funccount: calls are counted" said "vfs_rmdir +3$"
observe argdist-bpfcc -c -C 'r::vfs_rmdir():int:$retval'
check "argdist: values that were returned" said "^\s*3 +\\\$retval = -39$"
observe stackcount-bpfcc -K vfs_rmdir
check "stackcount: the stack" said_stack "Hit Ctrl-C" vfs_rmdir $rmdir __x64_sys_rmdir
check "stackcount: how often" said "^ +3$"
observe funclatency-bpfcc vfs_rmdir
check "funclatency: the time of calls" said "count: 3$"
observe execsnoop-bpfcc
check "execsnoop: what was executed" said "^rmdir +[0-9]+ .*/usr/bin/rmdir $full"

start opensnoop-bpfcc
/usr/bin/dash -c ': </etc/debian_version; : </no_such_file'
stop
check "opensnoop: a file that was opened" said "dash +[0-9]+ +0 +/etc/debian_version$"
check "opensnoop: one that is not there" said "dash +-1 +2 +/no_such_file$"

sh -c 'while :; do /usr/bin/sleep 1; done' &
sleeper=$!
timeout 300 offcputime-bpfcc -K -f 5 >"$said" 2>&1
kill $sleeper
wait $sleeper 2>/dev/null
check "offcputime: the stack of a task that slept" said "^sleep;.*do_nanosleep;.*schedule;.* [0-9]+$"
