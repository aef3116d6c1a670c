#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Hits while a handler runs: reentrant probes get them, for other probes they are
# counted.
. ./lib.sh
. ./measure.sh

modinfo kprobe_nest >/dev/null 2>&1 || skip_all "no module kprobe_nest"
[ -e $tracing/kprobe_events ] || skip_all "no kprobe events, or not in tracefs"
need_no_events
interrupts=2000

on_exit 'rmmod kprobe_nest'
on_exit remove_events

run() {
	measure kprobe_nest $interrupts >"$output.counts" && sed 's/^/# /' "$output.counts"
}

count() {	# task-OR-interrupt calls-OR-hits-OR-missed
	sed -n "s/^$1:.* $2 \([0-9]*\).*/\1/p" "$output.counts"
}

all_counted() {	# task-OR-interrupt
	[ "$(count "$1" calls)" -ge $interrupts ] &&
		[ $(($(count "$1" hits) + $(count "$1" missed))) = "$(count "$1" calls)" ]
}

plan 10
check "the module loads" modprobe kprobe_nest
check "an event where the interrupt comes" add_event 'p:kprobes/nest kprobe_nest_in_interrupt'
check "one on its return" add_event 'r:kprobes/nest_return kprobe_nest_in_interrupt'
enable_event nest 1
enable_event nest_return 1
check "it runs" run
cat "$output"
for event in nest nest_return; do
	echo "# $event: $(hits $event) hits, $(missed $event) missed"
done
check "in the task there is nothing to miss" [ "$(count task hits)" = "$(count task calls)" ]
check "in the interrupt a probe misses hits" [ "$(count interrupt missed)" -gt 100 ]
check "all of which are counted" all_counted interrupt
check "the event has all hits" [ "$(hits nest)" = "$(count interrupt calls)" ]
check "it has missed nothing" [ "$(missed nest)" = 0 ]
check "on return, too" \
	[ "$(hits nest_return)/$(missed nest_return)" = "$(count interrupt calls)/0" ]
