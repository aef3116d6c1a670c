# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh disable=SC2154,SC2086 # sourced by tools; commands are words

export PYTHONUNBUFFERED=1

is_probed() {	# FUNCTION
	grep -q " $1[+. ]" $kprobes/list
}

# Wait until the tool has added no probe for a second.
wait_for_probes() {	# FUNCTION
	within 200 is_probed "$1" || return
	before=
	while probes=$(wc -l <$kprobes/list) && [ "$probes" != "$before" ]; do
		before=$probes
		sleep 1
	done
}

# Three calls while a tool runs that probes a function, and then is interrupted.
observe() {	# FUNCTION TOOL [ARGUMENT...]
	function=$1
	shift
	within 30 is_empty $kprobes/list >/dev/null	# probes of the tool before
	timeout 600 env --default-signal=INT "$@" >"$said" 2>&1 &
	tool_pid=$!
	wait_for_probes "$function"
	$three_calls 2>/dev/null
	sleep 2
	kill -INT $tool_pid 2>/dev/null	# timeout passes it on
	wait $tool_pid
}

observe vfs_rmdir trace-bpfcc 'vfs_rmdir "dentry %llx", arg3' 'r::vfs_rmdir "returned %d", retval'
check "trace: the entries" [ "$(grep -c 'rmdir .* vfs_rmdir  *dentry ffff' "$said")" = 3 ]
check "trace: the returns with their value" [ "$(grep -c 'rmdir .* vfs_rmdir  *returned -39' "$said")" = 3 ]
observe do_rmdir trace-bpfcc -K 'do_rmdir "dfd %d", arg1'
check "trace: an argument" said "rmdir .* do_rmdir  *dfd -100"
check "trace: a kernel stack" said "__x64_sys_rmdir\+0x"
observe vfs_rmdir funccount-bpfcc 'vfs_rmd*'
check "funccount: calls are counted" said "vfs_rmdir +3$"
observe vfs_rmdir argdist-bpfcc -c -C 'r::vfs_rmdir():int:$retval'
check "argdist: values that were returned" said "^\s*3 +\\\$retval = -39$"
observe vfs_rmdir stackcount-bpfcc -K vfs_rmdir
check "stackcount: the stack" said_stack "Hit Ctrl-C" vfs_rmdir do_rmdir __x64_sys_rmdir
check "stackcount: how often" said "^ +3$"
observe vfs_rmdir funclatency-bpfcc vfs_rmdir
check "funclatency: the time of calls" said "count: 3$"
observe __x64_sys_execve execsnoop-bpfcc
check "execsnoop: what was executed" said "^rmdir +[0-9]+ .*/usr/bin/rmdir $full"

# A tool that says when it has begun.
timeout 600 env --default-signal=INT opensnoop-bpfcc >"$said" 2>&1 &
tool_pid=$!
within 200 grep -q '^PID ' "$said" >/dev/null
/usr/bin/dash -c ': </etc/debian_version; : </no_such_file'
sleep 2
kill -INT $tool_pid
wait $tool_pid
check "opensnoop: a file that was opened" said "dash +[0-9]+ +0 +/etc/debian_version$"
check "opensnoop: one that is not there" said "dash +-1 +2 +/no_such_file$"

sh -c 'while :; do /usr/bin/sleep 1; done' &
sleeper=$!
timeout 300 offcputime-bpfcc -K -f 5 >"$said" 2>&1
kill $sleeper
wait $sleeper 2>/dev/null
check "offcputime: the stack of a task that slept" said "^sleep;.*do_nanosleep;.*schedule;.* [0-9]+$"
