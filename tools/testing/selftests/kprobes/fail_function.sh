#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# fail_function puts a kprobe on a function, whose handler makes the function return an
# error without being executed.
. ./lib.sh

fail=/sys/kernel/debug/fail_function

[ -e $fail/inject ] || skip_all "no CONFIG_FAIL_FUNCTION, or not in debugfs"
[ -z "$(cat $fail/inject)" ] || skip_all "errors are injected already"

first_injectable() {	# PATTERN
	awk -v pattern="^$1\$" '$1 ~ pattern { print $1; exit }' $fail/injectable
}

mkdir=$(first_injectable '__[a-z0-9]*_sys_mkdir')
rmdir=$(first_injectable '__[a-z0-9]*_sys_rmdir')
inner=$(first_symbol do_mkdirat filename_mkdirat)
[ -n "$mkdir$rmdir" ] || skip_all "no errors can be injected into mkdir()"

inject() {	# FUNCTION, !FUNCTION to stop, or nothing to stop all
	write_line "$1" $fail/inject
}

set_attribute() {	# NAME VALUE
	echo "$2" >"$fail/$1"
}

set_error() {	# FUNCTION NUMBER
	write_line "$(printf '%#x' "$2")" "$fail/$1/retval"
}

error_is() {	# FUNCTION NUMBER
	[ "$(low_half "$(cat "$fail/$1/retval")")" = "$(low_half "$(printf '%x' "$2")")" ]
}

restore_attributes() {
	inject ""
	while read -r name value; do
		set_attribute "$name" "$value"
	done <"$output.attributes"
	rm -rf "$place"
}
for name in probability interval times verbose task-filter require-start require-end; do
	[ ! -e "$fail/$name" ] || echo "$name $(cat "$fail/$name")"
done >"$output.attributes"
place=$output.place
mkdir "$place"
on_exit restore_attributes
on_exit "echo 1 >$kprobes/enabled"
set_attribute verbose 0

fails_with() {	# ERROR COMMAND...
	error=$1
	shift
	! "$@" >"$output.error" 2>&1 && grep -q "$error" "$output.error" && return
	cat "$output.error"
	return 1
}

count_made() {	# NUMBER: of calls of mkdir() by one process; print how many succeed
	rm -rf "${place:?}"/*
	(cd "$place" && seq "$1" | xargs mkdir 2>/dev/null)
	find "$place" -mindepth 1 | wc -l
}

some_are_made() {	# NUMBER: more than none and less than all
	made=$(count_made "$1")
	echo "$made of $1"
	[ "$made" -gt 0 ] && [ "$made" -lt "$1" ]
}

has_probe() {	# FUNCTION
	grep -q " k  $1+0x" $kprobes/list
}

plan 48
check "an error is injected into mkdir()" inject "$mkdir"
check "the file has the function" [ "$(cat $fail/inject)" = "$mkdir" ]
check "the function has a probe" has_probe "$mkdir"
check "with probability 0 no call fails" [ "$(count_made 3)" = 3 ]
set_attribute probability 100
set_attribute times -1
check "the default error is -EINVAL" error_is "$mkdir" -22
check "mkdir() returns the default error" fails_with "Invalid argument" mkdir "$place/x"
check "the error can be changed" set_error "$mkdir" -122
check "mkdir() returns the changed error" fails_with "Disk quota exceeded" mkdir "$place/x"
check "no directory was made" [ ! -e "$place/x" ]
check_error "a positive error is refused" "Invalid argument" set_error "$mkdir" 1
check "a refused error changes nothing" error_is "$mkdir" -122

# Number of failures

check "all calls fail" [ "$(count_made 20)" = 0 ]
set_attribute times 3
check "times=3: three calls fail" [ "$(count_made 20)" = 17 ]
check "times=3: later calls succeed" [ "$(count_made 20)" = 20 ]
set_attribute times -1
set_attribute interval 2
check "interval=2: every second call fails" [ "$(count_made 20)" = 10 ]
set_attribute interval 1
set_attribute probability 50
check "probability=50: some calls fail" some_are_made 100
set_attribute probability 100

# Tasks

set -- "task-filter: another task does not fail" "task-filter: a selected task fails"
if [ -e /proc/self/make-it-fail ]; then
	set_attribute task-filter 1
	check "$1" [ "$(count_made 3)" = 3 ]
	check "$2" fails_with "Disk quota" \
		sh -c "echo 1 >/proc/self/make-it-fail; mkdir $place/x"
	set_attribute task-filter 0
else
	skip "no CONFIG_FAULT_INJECTION" "$@"
fi

# Callers, in the stack trace that the handler takes

set -- "require-start: an allocation in mkdir() fails" "require-start: other allocations succeed"
if [ -e $fail/require-start ] && [ "$(first_injectable should_failslab)" ]; then
	inject "!$mkdir"
	set_attribute require-start "0x$(symbol_address $inner)"
	set_attribute require-end "0x$(symbol_end $inner)"
	inject should_failslab
	set_error should_failslab -12
	check "$1" fails_with "Cannot allocate memory" mkdir "$place/y"
	check "$2" mkfifo "$place/z"
	inject "!should_failslab"
	set_attribute require-start 0
	set_attribute require-end 0xffffffffffffffff
	inject "$mkdir"
	set_error "$mkdir" -122
else
	skip "no attribute require-start, or no should_failslab()" "$@"
fi

# Other probes

check "with all probes switched off, no call fails" \
	sh -c "echo 0 >$kprobes/enabled && mkdir $place/off"
check "with all probes switched on, calls fail" \
	sh -c "echo 1 >$kprobes/enabled && ! mkdir $place/on"

set -- "an event is added after the injection" "an event is added to a function that it calls" \
	"the error is still returned" "the function does not call" "the event stays" \
	"without the injection, the function is executed" "the event is hit"
if [ -e $tracing/kprobe_events ] && [ -z "$(cat $tracing/kprobe_events)" ]; then
	on_exit remove_events
	check "$1" add_event "p:kprobes/mkdir $mkdir"
	check "$2" add_event "p:kprobes/inside $inner"
	enable_event mkdir 1
	enable_event inside 1
	check "$3" fails_with "Disk quota" mkdir "$place/x"
	check "$4" [ "$(hits inside)" = 0 ]
	inject "!$mkdir"
	check "$5" has_probe "$mkdir"
	seen=$(hits mkdir)
	check "$6" mkdir "$place/works"
	check "$7" [ "$(hits mkdir)" = $((seen + 1)) ]
else
	skip "no kprobe events, or not in tracefs" "$@"
fi

set -- "an error is injected into a function with a return event" \
	"an event that was added before is not hit" \
	"a return event that was added before is not hit" \
	"without the injection, the function with a return event is executed" \
	"the return event is hit"
if is_base; then
	# "Failed to disarm kprobe-ftrace": the error stays until the kernel crashes.
	skip "the kprobes of the base crash" "$@"
elif [ -e $tracing/kprobe_events ] && has_config KRETPROBES; then
	add_event "r:kprobes/returns $mkdir error=\$retval:s32"
	enable_event returns 1
	seen=$(hits mkdir)
	inject "$mkdir"
	set_error "$mkdir" -122
	check "$1" fails_with "Disk quota" mkdir "$place/x"
	check "$2" [ "$(hits mkdir)" = "$seen" ]
	check_not "$3" grep 'returns: .*error=-122' $tracing/trace
	inject "!$mkdir"
	check "$4" mkdir "$place/probed"
	check "$5" grep 'returns: .*error=0' $tracing/trace
else
	skip "no return events" "$@"
fi
[ ! -e $tracing/kprobe_events ] || remove_events
inject "$mkdir"
set_error "$mkdir" -122

# Several functions

check_error "a second injection is refused" "Device or resource busy" inject "$mkdir"
check "an error is injected into rmdir()" inject "$rmdir"
check "rmdir() returns its error" fails_with "Invalid argument" rmdir "$place/works"
check "mkdir() returns its error" fails_with "Disk quota" mkdir "$place/x"
check "the injection into mkdir() is removed" inject "!$mkdir"
check "mkdir() succeeds" mkdir "$place/x"
check "rmdir() still fails" fails_with "Invalid argument" rmdir "$place/x"
check_error "a removed injection cannot be removed again" "No such file" inject "!$mkdir"
check "all injections are removed" inject ""
check "rmdir() succeeds" rmdir "$place/x"
check_error "an unknown function is refused" "Invalid argument" inject no_such_function
check_error "a function that is not marked for injection is refused" \
	"Numerical result out of range" inject kernel_clone
check_error "a blacklisted function is refused" "Numerical result out of range" \
	inject get_kprobe
check "no injection and no probe is left" is_empty $fail/inject $kprobes/list
