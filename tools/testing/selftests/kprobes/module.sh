#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Probes in the text of a module that is loaded and unloaded.
. ./lib.sh
find_rmdir

use_events
use_sample
on_exit 'modprobe -r kprobe_example 2>/dev/null'

is_listed() {	# FUNCTION: with no flag but [FTRACE]
	grep " k  $1+0x.*$sample *\(\[FTRACE\]\)*\$" $kprobes/list
}

# Each load of the module starts a new thread.
is_hit_once() {	# EVENT
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		[ "$(hits "$1")" = 0 ] || break
		sleep 0.1
	done
	[ "$(hits "$1")" = 1 ]
}

# Events read the first byte of an instruction: without a probe, with one, and when functions
# are called that forget what is known of the text, as the module goes.
read_texts() {	# FUNCTION...: those that forget
	load_sample && add_event_inside inside "$sample:$(sample_thread_function)" || return
	address=$(cut -d ' ' -f 1 $kprobes/list)
	for function in $rmdir "$@"; do
		add_event "p:kprobes/$function $function text=@0x$address:x8" &&
			enable_event "$function" 1 || return
	done
	call_rmdir
	enable_event inside 1 || return
	count_optimized_at_rest
	call_rmdir
	unload_sample || return
	sed -n 's/.*: \([a-z_]*\): (.* text=/\1 /p' $tracing/trace >"$output.texts"
}

text_is_restored_before_it_is_forgotten() {
	set -- kprobe_site_set_gone
	[ ! -e $knob ] || set -- "$@" arch_forget_text
	# What a failure left would make the next tests fail, too.
	read_texts "$@" || { remove_events; unload_sample; return 1; }
	remove_events
	cat "$output.texts"
	# Each of the functions is called once.
	awk -v forgetters=$# -v rmdir="$rmdir" '
		NR == 1 { text = $2; next }
		($2 == text) == (NR == 2) { wrong = 1 }
		NR > 2 { wrong += seen[$1]++ || $1 == rmdir }
		END { exit wrong || NR != 2 + forgetters }' "$output.texts"
}

plan 33

# Events on a module that is not loaded are registered when it is loaded, in time for its
# init function.
check "an event on the module is added before it is loaded" \
	add_event "p:kprobes/thread $sample:simple_thread"
check "an event on its init text is added" add_event "p:kprobes/init $sample:trace_event_init"
check "the event on the module is enabled" enable_event thread 1
check "the event on its init text is enabled" enable_event init 1
check "no probe is registered yet" is_empty $kprobes/list
check "the module is loaded" load_sample
check "the event on its init function was hit" [ "$(hits init)" = 1 ]
check "the event on its thread is hit" is_hit_once thread
check "the list has the probe on its thread" is_listed simple_thread
check "the probe in its init text is [GONE]" [ "$(grep -c '\[GONE\]' $kprobes/list)" = 1 ]
check "the module is unloaded" unload_sample
check "both probes are [GONE]" all_gone 2
check_not "the list has no symbol for them" grep "$sample\|+0x" $kprobes/list

# The events are registered again with each load.
check "the module is loaded again" load_sample
check "the event on its init function was hit again" [ "$(hits init)" = 2 ]
check "the list has the probe on its thread again" is_listed simple_thread
remove_events
check "removed events leave no probe" is_empty $kprobes/list

# A module that is loaded, and its freed init text.
check_error "an event on freed init text is refused" "Invalid argument" \
	add_event "p:kprobes/init $sample:trace_event_init"
function=$(sample_thread_function)
check "an event on the loaded module is added" add_event "p:kprobes/func $sample:$function"
check "the event is enabled" enable_event func 1
check "the event is hit" event_gets_hits func

# The owner of a probe is not told that the text has been freed.
check "another module adds a probe" modprobe kprobe_example symbol="$sample:$function"
unload_sample
check "the probes of both are [GONE]" all_gone 2
sleep 2		# until what their text needed has been freed
check "the other module removes its probe" modprobe -r kprobe_example
remove_events
check "both probes are removed" is_empty $kprobes/list
if [ -e $kprobes/stats ]; then
	check "their sites are freed" all_sites_are_freed
else
	skip "no $kprobes/stats" "their sites are freed"
fi

set -- "its text is restored before what is known of it is forgotten"
if is_base; then
	skip "other functions do it" "$1"
else
	check "$1" text_is_restored_before_it_is_forgotten
fi

# Jump labels and static calls, which tracepoints have, must not be probed. While a module
# is loaded, only its own tables list them.

# All of its reserved instructions are near its entry.
function=simple_thread_fn

reserved_offsets() {
	for offset in $(seq 150); do
		! add_event "p:kprobes/at$offset $sample:$function+$offset" 2>&1 |
			grep -q "Invalid argument" || echo "$offset"
	done
}

load_sample
offsets=$(reserved_offsets)
remove_events
unload_sample
check "a function has reserved instructions" [ -n "$offsets" ]
for offset in 0 $offsets; do
	add_event "p:kprobes/at$offset $sample:$function+$offset"
done
check "the module is loaded with events on them" load_sample
check "the event on the function's entry has a probe" grep " k  $function+0x" $kprobes/list
check "the events on reserved instructions have none" [ "$(wc -l <$kprobes/list)" = 1 ]
remove_events
unload_sample

# test_kprobes registers a probe on itself in its exit function.
set -- "a module that probes itself while it is unloaded is unloaded" \
	"its probe was refused with -ENOENT"
if ! is_base && load_test_kprobes none 2>/dev/null && lsmod | grep -q '^test_kprobes '; then
	dmesg -c >/dev/null
	check "$1" modprobe -r test_kprobes
	check "$2" sh -c "dmesg | grep 'kprobes_test: probing a module that goes: -2'"
else
	skip "no module test_kprobes, or the one of the base" "$@"
fi
