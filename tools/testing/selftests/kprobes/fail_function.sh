#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Errors that a handler makes functions return, instead of running them: what
# fail_function does, by a kprobe.
. ./lib.sh

fail=/sys/kernel/debug/fail_function

[ -e $fail/inject ] || skip_all "no CONFIG_FAIL_FUNCTION, or not in debugfs"
[ -z "$(cat $fail/inject)" ] || skip_all "errors are injected already"

injectable() {	# PATTERN: the first function that is meant
	awk -v pattern="^$1\$" '$1 ~ pattern { print $1; exit }' $fail/injectable
}

mkdir=$(injectable '__[a-z0-9]*_sys_mkdir')
rmdir=$(injectable '__[a-z0-9]*_sys_rmdir')
[ -n "$mkdir$rmdir" ] || skip_all "no errors can be injected into mkdir()"

inject() {	# FUNCTION, !FUNCTION or nothing
	write "$1" $fail/inject
}

set_knob() {	# NAME VALUE
	echo "$2" >"$fail/$1"
}

set_error() {	# FUNCTION NUMBER
	write "$(printf '%#x' "$2")" "$fail/$1/retval"
}

error_is() {	# FUNCTION NUMBER
	[ "$(cat "$fail/$1/retval")" = "$(printf '%x' "$2")" ]
}

restore() {
	inject ""
	while read -r knob value; do
		set_knob "$knob" "$value"
	done <"$output.knobs"
	rm -rf "$place"
}
for knob in probability interval times verbose task-filter require-start require-end; do
	[ ! -e "$fail/$knob" ] || echo "$knob $(cat "$fail/$knob")"
done >"$output.knobs"
place=$output.place
mkdir "$place"
on_exit restore
on_exit "echo 1 >$kprobes/enabled"
set_knob verbose 0

fails() {	# ERROR COMMAND...: with that text in its message
	error=$1
	shift
	! "$@" >"$output.said" 2>&1 && grep -q "$error" "$output.said" && return
	cat "$output.said"
	return 1
}

made() {	# NUMBER: how many of so many mkdir() succeed, called by one process
	rm -rf "${place:?}"/*
	(cd "$place" && seq "$1" | xargs mkdir 2>/dev/null)
	find "$place" -mindepth 1 | wc -l
}

some_of() {	# ALL NUMBER: that are some of all, but not all
	echo "$2 of $1"
	[ "$2" -gt 0 ] && [ "$2" -lt "$1" ]
}

listed() {	# FUNCTION: there is a probe on it
	grep -q " k  $1+0x" $kprobes/list
}

plan 48
check "an error is injected into mkdir()" inject "$mkdir"
check "that can be read" [ "$(cat $fail/inject)" = "$mkdir" ]
check "a probe is there" listed "$mkdir"
check "nothing fails as long as that is not probable" [ "$(made 3)" = 3 ]
set_knob probability 100
set_knob times -1
check "the error is -EINVAL" error_is "$mkdir" -22
check "mkdir() returns it" fails "Invalid argument" mkdir "$place/x"
check "the error can be another one" set_error "$mkdir" -122
check "mkdir() returns that" fails "Disk quota exceeded" mkdir "$place/x"
check "nothing was made" [ ! -e "$place/x" ]
refuse "what is no error is refused" "Invalid argument" set_error "$mkdir" 1
check "that has changed nothing" error_is "$mkdir" -122

# How often

check "all calls fail" [ "$(made 20)" = 0 ]
set_knob times 3
check "so many calls fail: times" [ "$(made 20)" = 17 ]
check "and no more" [ "$(made 20)" = 20 ]
set_knob times -1
set_knob interval 2
check "every second call fails: interval" [ "$(made 20)" = 10 ]
set_knob interval 1
set_knob probability 50
check "some calls fail, some do not: probability" some_of 100 "$(made 100)"
set_knob probability 100

# For whom

if [ -e /proc/self/make-it-fail ]; then
	set_knob task-filter 1
	check "tasks that are not to fail do not" [ "$(made 3)" = 3 ]
	check "one that is to fail does" fails "Disk quota" \
		sh -c "echo 1 >/proc/self/make-it-fail; mkdir $place/x"
	set_knob task-filter 0
else
	skip "tasks that are not to fail do not" "no CONFIG_FAULT_INJECTION"
	skip "one that is to fail does" "no CONFIG_FAULT_INJECTION"
fi

# Called by whom: what the stack trace in a handler says

end_of() {	# SYMBOL: where the next one begins
	awk -v symbol="$1" 'start && $1 != start { print $1; exit }
		$3 == symbol { start = $1 }' /proc/kallsyms
}

if [ -e $fail/require-start ] && [ "$(injectable should_failslab)" ] &&
		[ "$(address do_mkdirat)" ]; then
	inject "!$mkdir"
	set_knob require-start "0x$(address do_mkdirat)"
	set_knob require-end "0x$(end_of do_mkdirat)"
	inject should_failslab
	set_error should_failslab -12
	check "an allocation fails in mkdir()" fails "Cannot allocate memory" mkdir "$place/y"
	check "allocations elsewhere do not" mkfifo "$place/z"
	inject "!should_failslab"
	set_knob require-start 0
	set_knob require-end 0xffffffffffffffff
	inject "$mkdir"
	set_error "$mkdir" -122
else
	skip "an allocation fails in mkdir()" "no way to tell it"
	skip "allocations elsewhere do not" "no way to tell it"
fi

# Other probes

check "without probes nothing fails" sh -c "echo 0 >$kprobes/enabled && mkdir $place/off"
check "with them again, it does" sh -c "echo 1 >$kprobes/enabled && ! mkdir $place/on"

if [ -e $tracing/kprobe_events ] && [ -z "$(cat $tracing/kprobe_events)" ]; then
	on_exit remove_events
	check "the function gets another probe" add_event "p:kprobes/mkdir $mkdir"
	check "one in what it would call" add_event 'p:kprobes/inside do_mkdirat'
	enable_event mkdir 1
	enable_event inside 1
	check "the error is returned still" fails "Disk quota" mkdir "$place/x"
	check "what it would call is not called" [ "$(hits inside)" = 0 ]
	inject "!$mkdir"
	check "the other probe stays" listed "$mkdir"
	seen=$(hits mkdir)
	check "the function works" mkdir "$place/works"
	check "with its probe" [ "$(hits mkdir)" = $((seen + 1)) ]
else
	for name in 1 2 3 4 5 6 7; do
		skip "other probes, $name" "no kprobe events, or not in tracefs"
	done
fi

if is_base; then
	# "Failed to disarm kprobe-ftrace": the error stays until the kernel crashes.
	for name in 1 2 3 4 5; do
		skip "other probes that came first, $name" "the kernel would not survive it"
	done
elif [ -e $tracing/kprobe_events ] && has_config KRETPROBES; then
	add_event "r:kprobes/returns $mkdir error=\$retval:s32"
	enable_event returns 1
	seen=$(hits mkdir)
	inject "$mkdir"
	set_error "$mkdir" -122
	check "an error is injected into a probed function" fails "Disk quota" mkdir "$place/x"
	check "the probe that came first is not asked any more" [ "$(hits mkdir)" = "$seen" ]
	check_not "nor a return probe that came first" \
		grep 'returns: .*error=-122' $tracing/trace
	inject "!$mkdir"
	check "the probed function works" mkdir "$place/probed"
	check "with its return probe" grep 'returns: .*error=0' $tracing/trace
else
	for name in 1 2 3 4 5; do
		skip "other probes that came first, $name" "no return events"
	done
fi
[ ! -e $tracing/kprobe_events ] || remove_events
inject "$mkdir"
set_error "$mkdir" -122

# Several functions, and no longer

refuse "the same function is refused" "Device or resource busy" inject "$mkdir"
check "an error is injected into rmdir()" inject "$rmdir"
check "rmdir() returns it" fails "Invalid argument" rmdir "$place/works"
check "mkdir() returns its own" fails "Disk quota" mkdir "$place/x"
check "mkdir() is let go" inject "!$mkdir"
check "it works" mkdir "$place/x"
check "rmdir() does not" fails "Invalid argument" rmdir "$place/x"
refuse "what is let go cannot be let go" "No such file" inject "!$mkdir"
check "all are let go" inject ""
check "rmdir() works" rmdir "$place/x"
refuse "an unknown function is refused" "Invalid argument" inject no_such_function
refuse "a function that was not meant is refused" "Numerical result out of range" \
	inject kernel_clone
refuse "a function that must not be probed is refused" "Numerical result out of range" \
	inject get_kprobe
check "nothing is left" [ -z "$(cat $fail/inject $kprobes/list)" ]
