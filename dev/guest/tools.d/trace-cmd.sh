# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh disable=SC2154,SC2086 # sourced by tools; commands are words

add_call_events
cd "$(dirname "$output")" || exit
trace-cmd list -e kprobes >"$said" 2>&1
check "trace-cmd: events are listed" said "^kprobes:enters$"
timeout 100 trace-cmd record -q -o "$output.dat" -e kprobes $three_calls >"$said" 2>&1
timeout 100 trace-cmd report -i "$output.dat" >"$said" 2>&1
check "trace-cmd: an entry" said "rmdir-[0-9]+ .* enters: +\(f*[0-9a-f]+\)"
check "trace-cmd: a return with its value" said "rmdir-[0-9]+ .* returns: .* ret=-39$"
check "trace-cmd: each call" is "$(grep -c ' enters: ' "$said")/$(grep -c ' returns: ' "$said")" 3/3

timeout 100 trace-cmd record -q -o "$output.dat" -e kprobes:enters -T $call >"$said" 2>&1
timeout 100 trace-cmd report -i "$output.dat" >"$said" 2>&1
check "trace-cmd: the stack of an entry" said "=> $rmdir"

timeout 100 trace-cmd record -q -o "$output.dat" -p function_graph -g $rmdir -e kprobes $call >"$said" 2>&1
timeout 100 trace-cmd report -i "$output.dat" >"$said" 2>&1
check "trace-cmd: probes and the graph of functions" said "vfs_rmdir\(\)? "
check "trace-cmd: the return in the graph" said "returns: .*ret=-39"
trace-cmd reset >/dev/null 2>&1
remove_events
cd - >/dev/null || exit
