# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh disable=SC2154,SC2086 # sourced by perf and tools; commands are words

probe() {	# ARGUMENT...
	timeout 100 perf probe -q "$@"
}

record() {	# OPTION...
	rm -f "$output.data"
	timeout 100 perf record -q -o "$output.data" "$@" -a -- $call
	timeout 100 perf script -i "$output.data" >"$said"
}

# The kernel's functions on an event's stack.
stack() {	# EVENT
	awk -v event="probe:$1:" '
		/^$/ { found = 0 }
		found { sub(/\+0x.*/, "", $2); printf "%s ", $2 }
		found && $2 ~ /^entry_/ { exit }
		index($0, event) { found = 1 }' "$said"
}

stack_is() {	# EVENT STACK
	echo "stack of $1: $(stack "$1"), should be $2"
	case $(stack "$1") in
	*trampoline*|*unknown*|*return_to_handler*) return 1 ;;
	"$2 "*" entry_"*) ;;
	*) return 1 ;;
	esac
}

count() {	# EVENT: the figure of perf stat
	awk -F, -v event="probe:$1" '$3 == event { print $1 }' "$output.stat"
}

inside=$(place_inside vfs_rmdir)
check "perf: a probe is added" probe -a 'enters=vfs_rmdir'
check "perf: one inside the function" probe -a "inside=$inside"
check "perf: one at its return" probe -a 'returns=vfs_rmdir%return ret=$retval'
perf probe -l >"$output.list" 2>&1
for event in enters inside returns__return; do
	check "perf: probe:$event is listed" grep -w "probe:$event" "$output.list"
done

check "perf: hits are recorded" record -e 'probe:*'
check "perf: the hit of the probe" said 'rmdir .*probe:enters: '
check "perf: the hit inside the function" said 'rmdir .*probe:inside: '
check "perf: the return, with its value" said 'rmdir .*probe:returns__return: .*ret=0xf*d9'
check "perf: each once" is "$(grep -c probe: "$said")" 3

check "perf: hits are recorded with their stacks" record -g -e 'probe:*'
check "perf: the stack of the probe" stack_is enters "vfs_rmdir $rmdir"
check "perf: the stack inside the function" stack_is inside "vfs_rmdir $rmdir"
check "perf: the stack of the return" stack_is returns__return "$rmdir"

timeout 100 perf stat -x , -o "$output.stat" -e 'probe:enters,probe:inside,probe:returns__return' -a -- \
	sh -c "$call; $call; $call" 2>/dev/null
for event in enters inside returns__return; do
	check "perf: probe:$event is counted" is "$(count $event)" 3
done

timeout 100 perf trace -e probe:returns__return $call >"$output.trace" 2>&1
check "perf: perf trace prints the return" grep 'probe:returns__return(' "$output.trace"

check "perf: all are removed" probe -d 'probe:*'
