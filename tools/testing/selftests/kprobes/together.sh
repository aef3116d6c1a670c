#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The return of one function, seen by function graph tracing, by a return probe and
# by an fprobe, in any order: each replaces the return address that it finds.
. ./lib.sh

[ -e $tracing/kprobe_events ] || skip_all "no kprobe events, or not in tracefs"
[ -e $tracing/dynamic_events ] || skip_all "no dynamic events"
grep -q function_graph $tracing/available_tracers || skip_all "no function graph tracing"
has_config FPROBE_EVENTS || skip_all "no CONFIG_FPROBE_EVENTS"
has_config KRETPROBES || skip_all "no CONFIG_KRETPROBES"
need_no_events
[ -z "$(cat $tracing/dynamic_events)" ] || skip_all "there are dynamic events already"

# do_rmdir() calls vfs_rmdir() calls shmem_rmdir(), which finds a file.
place=$output.place
restore() {
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
on_exit 'restore 2>/dev/null'
mkdir "$place/full"
echo >"$place/full/file"

fail_rmdir() {	# with -ENOTEMPTY
	! rmdir "$place/full" 2>/dev/null
}

# Who sees the return, and how he is switched on

graph() {	# on or off
	if [ "$1" = on ]; then
		echo vfs_rmdir >$tracing/set_ftrace_filter
		echo function_graph >$tracing/current_tracer
	else
		echo nop >$tracing/current_tracer
		echo >$tracing/set_ftrace_filter
	fi
}

kretprobe() {
	case $1 in
	on) enable_event kretprobe 1 ;;
	off) enable_event kretprobe 0 ;;
	esac
}

fprobe() {
	case $1 in
	on) enable_event fprobe 1 ;;
	off) enable_event fprobe 0 ;;
	esac
}

# What they have seen

stack() {	# EVENT: its stack, the functions in one line
	awk -v event=" $1: " '
		index($0, event) { found = 1; next }
		!found { next }
		/stack trace>/ { next }
		/^ *=> / { printf "%s ", $2; n++; next }
		n { exit }' $tracing/trace
}

true_stack() {	# EVENT FUNCTION...: these are next to each other, then the truth only
	event=$1
	shift
	echo "stack of $event: $(stack "$event")"
	case " $(stack "$event")" in
	*" $* "*) ;;
	*) return 1 ;;
	esac
	rest=$(stack "$event" | sed "s/.* $* //")
	case $rest in
	*trampoline*|*return_to_handler*|*unknown*|*rethook*|*probe*|*0x*) return 1 ;;
	*entry_*) ;;
	*) return 1 ;;
	esac
}

saw() {	# PATTERN
	grep -q "$1" $tracing/trace || { cat $tracing/trace; return 1; }
}

all_see() {	# WHO...: in this order they are switched on
	order="$*"
	for who; do
		$who on
	done
	echo >$tracing/trace
	fail_rmdir
	check "$order: the graph has the return" saw '} \/\* vfs_rmdir'
	check "$order: the return probe has it" saw 'kretprobe: .*ret=-39'
	check "$order: the fprobe has it" saw 'fprobe: .*ret=-39'
	check "$order: the stack inside is true" true_stack inside shmem_rmdir vfs_rmdir do_rmdir
	check "$order: at a return inside, too" true_stack inner_return vfs_rmdir do_rmdir
	for who; do
		$who off
		fail_rmdir
	done
}

plan 40
check "an event inside" add_event 'p:kprobes/inside shmem_rmdir'
check "a return event inside" add_event 'r:kprobes/inner_return shmem_rmdir ret=$retval:s32'
check "a return event" add_event 'r:kprobes/kretprobe vfs_rmdir ret=$retval:s32'
check "an fprobe event" sh -c \
	"echo 'f:kprobes/fprobe vfs_rmdir%return ret=\$retval:s32' >>$tracing/dynamic_events"
echo 1 >$tracing/options/stacktrace
echo 1 >$tracing/options/funcgraph-tail
enable_event inside 1
enable_event inner_return 1
all_see graph kretprobe fprobe
all_see graph fprobe kretprobe
all_see kretprobe graph fprobe
all_see kretprobe fprobe graph
all_see fprobe graph kretprobe
all_see fprobe kretprobe graph

# One event's stack trace: that of the handler.
echo 0 >$tracing/options/stacktrace
kretprobe on
for event in inside inner_return kretprobe; do
	check "a stack trace is wanted at $event" \
		sh -c "echo stacktrace >$tracing/events/kprobes/$event/trigger"
done
echo >$tracing/trace
fail_rmdir
check "that of the event inside" true_stack inside shmem_rmdir vfs_rmdir do_rmdir
check "that at the return inside" true_stack inner_return vfs_rmdir do_rmdir
check "that at the return" true_stack kretprobe do_rmdir
