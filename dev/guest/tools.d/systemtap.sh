# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh disable=SC2154,SC2086 # sourced by tools; commands are words

tap() {	# PROGRAM
	timeout 1800 stap -B KCFLAGS=-Wno-error=stringop-overread -c "$call" -e "$1" >"$said" 2>&1
}

tap '
	probe kernel.function("'"$rmdir"'") {
		if (execname() == "rmdir")
			printf("entry %s %d %s\n", ppfunc(), $dfd, kernel_string($name->name))
	}
	probe kernel.function("vfs_rmdir") {
		if (execname() == "rmdir") {
			printf("dentry %s\n", d_name($dentry))
			print_backtrace()
		}
	}
	probe kernel.function("vfs_rmdir").return {
		if (execname() == "rmdir")
			printf("return %d, dentry at entry %s\n", $return, d_name(@entry($dentry)))
	}
	probe kernel.function("'"$rmdir"'").return.maxactive(100) {
		if (execname() == "rmdir")
			printf("outer return %d\n", $return)
	}'
check "systemtap: an entry and its arguments" said "^entry $rmdir -100 $full$"
check "systemtap: a dentry" said "^dentry ${full##*/}$"
check "systemtap: the stack" said "$rmdir\+0x"
check "systemtap: a return, and a value at the entry" said "^return -39, dentry at entry ${full##*/}$"
check "systemtap: a return with maxactive" said "^outer return -39$"

tap '
	global calls, returns
	probe kprobe.function("vfs_rmdir") { if (execname() == "rmdir") calls++ }
	probe kprobe.function("vfs_rmdir").return { if (execname() == "rmdir") returns++ }
	probe end { printf("calls %d, returns %d\n", calls, returns) }'
check "systemtap: probes without debug information" said "^calls 1, returns 1$"

# staprun switches jumps off and leaves it so.
[ ! -e $knob ] || echo 1 >$knob
