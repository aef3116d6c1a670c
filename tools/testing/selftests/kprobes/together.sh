#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Function graph tracing, a return probe and an fprobe on the same function, enabled in all
# orders. Each replaces the return address, and a stack trace must have the original one.
. ./lib.sh
find_rmdir

[ -e $tracing/dynamic_events ] || skip_all "no dynamic events"
grep -q function_graph $tracing/available_tracers || skip_all "no function graph tracing"
has_config FPROBE_EVENTS || skip_all "no CONFIG_FPROBE_EVENTS"
has_config KRETPROBES || skip_all "no CONFIG_KRETPROBES"
[ -z "$(cat $tracing/dynamic_events)" ] || skip_all "there are dynamic events already"
use_events

# It calls vfs_rmdir(), and that shmem_rmdir(), which fails in a tmpfs if the
# directory is not empty.
place=$output.place
restore_tracing() {
	echo nop >$tracing/current_tracer
	echo >$tracing/set_ftrace_filter
	echo 0 >$tracing/options/stacktrace
	echo 0 >$tracing/options/funcgraph-tail
	for event in inside inner_return kretprobe; do
		echo '!stacktrace' >$tracing/events/kprobes/$event/trigger
	done
	echo 0 >$tracing/events/kprobes/enable
	echo >$tracing/dynamic_events
	umount "$place"
	rmdir "$place"
}
mkdir "$place"
mount -t tmpfs none "$place" || skip_all "no tmpfs"
on_exit 'restore_tracing 2>/dev/null'
mkdir "$place/full"
echo >"$place/full/file"

fail_rmdir() {	# returns -ENOTEMPTY
	! rmdir "$place/full" 2>/dev/null
}

# Ways to trace a return: each of these functions enables or disables one

graph() {	# on or off
	if [ "$1" = on ]; then
		echo vfs_rmdir >$tracing/set_ftrace_filter
		echo function_graph >$tracing/current_tracer
	else
		echo nop >$tracing/current_tracer
		echo >$tracing/set_ftrace_filter
	fi
}

kretprobe() {	# on or off
	case $1 in
	on) enable_event kretprobe 1 ;;
	off) enable_event kretprobe 0 ;;
	esac
}

fprobe() {	# on or off
	case $1 in
	on) enable_event fprobe 1 ;;
	off) enable_event fprobe 0 ;;
	esac
}

# The trace

stack_of() {	# EVENT: the functions in one line
	awk -v event=" $1: " '
		index($0, event) { found = 1; next }
		!found { next }
		/stack trace>/ { next }
		/^ *=> / { printf "%s ", $2; n++; next }
		n { exit }' $tracing/trace
}

# The stack has these functions next to each other, and after them no trampoline up to the
# kernel's entry.
stack_is_true() {	# EVENT FUNCTION...
	event=$1
	shift
	echo "stack of $event: $(stack_of "$event")"
	case " $(stack_of "$event")" in
	*" $* "*) ;;
	*) return 1 ;;
	esac
	rest=$(stack_of "$event" | sed "s/.* $* //")
	case $rest in
	*trampoline*|*return_to_handler*|*unknown*|*rethook*|*probe*|*0x*) return 1 ;;
	*entry_*) ;;
	*) return 1 ;;
	esac
}

trace_has() {	# PATTERN
	grep -q "$1" $tracing/trace || { cat $tracing/trace; return 1; }
}

check_order() {	# WAY...: enable these ways in this order
	order="$*"
	for way; do
		$way on
	done
	echo >$tracing/trace
	fail_rmdir
	check "$order: the graph has the return" trace_has '} \/\* vfs_rmdir'
	check "$order: the return probe has the return value" trace_has 'kretprobe: .*ret=-39'
	check "$order: the fprobe has the return value" trace_has 'fprobe: .*ret=-39'
	set -- "$order: the stack of a called function is true" \
		"$order: the stack at its return is true"
	if is_base; then
		skip "the base takes a trampoline for a caller" "$@"
	else
		check "$1" stack_is_true inside shmem_rmdir $(caller_at_entry vfs_rmdir) $rmdir
		check "$2" stack_is_true inner_return vfs_rmdir $rmdir
	fi
	for way in $order; do
		$way off
		fail_rmdir
	done
}

plan 40
check "an event is added to a called function" add_event 'p:kprobes/inside shmem_rmdir'
check "a return event is added to it" \
	add_event 'r:kprobes/inner_return shmem_rmdir ret=$retval:s32'
check "a return event is added" add_event 'r:kprobes/kretprobe vfs_rmdir ret=$retval:s32'
check "an fprobe event is added" sh -c \
	"echo 'f:kprobes/fprobe vfs_rmdir%return ret=\$retval:s32' >>$tracing/dynamic_events"
echo 1 >$tracing/options/stacktrace
echo 1 >$tracing/options/funcgraph-tail
enable_event inside 1
enable_event inner_return 1
check_order graph kretprobe fprobe
check_order graph fprobe kretprobe
check_order kretprobe graph fprobe
check_order kretprobe fprobe graph
check_order fprobe graph kretprobe
check_order fprobe kretprobe graph

# The stack trace of a trigger, which its handler takes.
echo 0 >$tracing/options/stacktrace
kretprobe on
for event in inside inner_return kretprobe; do
	check "$event gets a trigger" \
		sh -c "echo stacktrace >$tracing/events/kprobes/$event/trigger"
done
echo >$tracing/trace
fail_rmdir
check "the trigger's stack in a called function is true" \
	stack_is_true inside shmem_rmdir $(caller_at_entry vfs_rmdir) $rmdir
check "the trigger's stack at its return is true" stack_is_true inner_return vfs_rmdir $rmdir
check "the trigger's stack at the return is true" stack_is_true kretprobe $rmdir
