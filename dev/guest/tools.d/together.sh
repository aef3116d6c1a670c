# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh disable=SC2154,SC2086 # sourced by tools; commands are words

# Several tools at one function at the same time.
add_call_events
enable_all_events 1
timeout 100 perf probe -q -a 'together=vfs_rmdir'
timeout 200 perf stat -x , -o "$output.stat" -e probe:together -a -- \
	bpftrace -c "$three_calls" \
	-e 'kprobe:vfs_rmdir { @enters = count(); } kretprobe:vfs_rmdir { @returns = count(); }' \
	>"$said" 2>&1
check "together: bpftrace counts the calls" said "^@enters: 3$"
check "together: and the returns" said "^@returns: 3$"
check "together: so does perf" grep "^3,.*probe:together" "$output.stat"
check "together: and events" is "$(hits enters)/$(hits returns)" 3/3
check "together: nobody has missed a hit" is "$(missed enters)/$(missed returns)" 0/0
check "together: the events show all" is "$(grep -c ret=-39 $tracing/trace)" 3
timeout 100 perf probe -q -d 'probe:*'
remove_events
