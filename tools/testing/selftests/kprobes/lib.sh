# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# Functions that the tests share. A test runs as root in its own directory, with tracefs
# and debugfs mounted, and writes KTAP.
. ../kselftest/ktap_helpers.sh

# shellcheck disable=SC2034	# used in the tests
kprobes=/sys/kernel/debug/kprobes
tracing=/sys/kernel/tracing
knob=/proc/sys/debug/kprobes-optimization
sample=trace_events_sample
output=${TMPDIR:-/tmp}/kprobes-test.$$
at_exit=

# Results

on_exit() {	# COMMAND: run it at exit, before the commands of earlier calls
	at_exit="$1; $at_exit"
}

# A test ends here however it ends: too few results are a failure, too.
finish() {
	status=$?
	eval "$at_exit"
	rm -f "$output" "$output".*
	[ "$status" = 0 ] || exit "$status"
	ktap_finished
}
trap finish EXIT
trap "exit 1" HUP INT TERM

plan() {	# NUMBER
	ktap_print_header
	ktap_set_plan "$1"
}

skip_all() {	# REASON
	ktap_skip_all "$1"
	exit "$KSFT_SKIP"
}

skip() {	# REASON NAME...: skip each of these tests
	reason=$1
	shift
	for name; do
		ktap_print_msg "$reason"
		ktap_test_skip "$name"
	done
}

report() {	# STATUS NAME: pass if the status is 0
	if [ "$1" = 0 ]; then
		ktap_test_pass "$2"
	else
		ktap_test_fail "$2"
	fi
}

# ktap_test_result() splits the arguments of its command at spaces, and lets its output
# into the KTAP. The command must not be a part of a condition: set -e in it would have
# no effect.
check() {	# NAME COMMAND...: the command succeeds
	name=$1
	shift
	"$@" >"$output" 2>&1
	status=$?
	[ $status = 0 ] || sed 's/^/# /' "$output"
	report $status "$name"
}

check_not() {	# NAME COMMAND...: the command fails
	name=$1
	shift
	! "$@" >"$output" 2>&1
	report $? "$name"
}

check_error() {	# NAME ERROR COMMAND...: the command fails with this error message
	name=$1
	error=$2
	shift 2
	! "$@" >"$output" 2>&1 && grep -q "$error" "$output"
	status=$?
	[ $status = 0 ] || sed "s/^/# not $error: /" "$output"
	report $status "$name"
}

is_empty() {	# FILE...: they can be read, and nothing is in them
	content=$(cat "$@") || return
	echo "$content"
	[ -z "$content" ]
}

check_no_probe_is_left() {
	check "no probe is left" is_empty $kprobes/list
}

# Try a command ten times a second, until it succeeds or so many seconds have passed.
within() {	# SECONDS COMMAND...
	tries=$(($1 * 10))
	shift
	while [ $tries -gt 0 ]; do
		! "$@" || return 0
		sleep 0.1
		tries=$((tries - 1))
	done
	return 1
}

# The kernel under test

# The echo of some shells does not report errors of write().
write_line() {	# TEXT FILE
	echo "$1" | cat >>"$2"
}

# Write to a file of the kernel that can be read back.
set_to() {	# TEXT FILE
	echo "$1" | cat >"$2" && [ "$(cat "$2")" = "$1" ]
}

# The knob of all probes, which takes other words than it gives.
set_enabled() {	# VALUE
	write_line "$1" $kprobes/enabled
}

set_until_exit() {	# TEXT FILE
	on_exit "echo $(cat "$2") >$2"
	set_to "$1" "$2"
}

# Also allocations that may sleep, and without a line in the log for each.
let_sleepers_fail() {	# DIRECTORY: of failslab or fail_page_alloc
	set_until_exit N "$1/ignore-gfp-wait" && set_until_exit 0 "$1/verbose"
}

has_config() {	# OPTION: it is y or m
	{ zcat /proc/config.gz || cat "/boot/config-$(uname -r)"; } 2>/dev/null |
		grep -q "^CONFIG_$1=[ym]"
}

# Print why the inside of a function's first instruction is refused: without IBT it is ftrace's.
first_insn_reason() {
	if has_config X86_KERNEL_IBT; then
		echo "not at the start of an instruction"
	else
		echo "ftrace patches it with what precedes it"
	fi
}

# The modinfo of busybox succeeds in any case, and does not know names with a dash.
has_module() {	# NAME
	[ -e "test_modules/$1.ko" ] || modprobe -D "$1" 2>/dev/null | grep -q .
}

# Modules of the tests need not be installed.
load_module() {	# NAME [PARAMETER...]
	if [ -e "test_modules/$1.ko" ]; then
		module=test_modules/$1.ko
		shift
		insmod "$module" "$@"
	else
		modprobe "$@"
	fi
}

# Load test_kprobes until the test ends; it runs only the KUnit suites that the glob matches.
# Probes that it has put on itself stay until it is unloaded.
load_test_kprobes() {	# GLOB
	filter=/sys/module/kunit/parameters/filter_glob
	on_exit "[ ! -e $filter ] || printf '*' >$filter; modprobe -r test_kprobes 2>/dev/null"
	modprobe -r test_kprobes 2>/dev/null
	# The filter is there only with kunit, which may be a module and may just have gone, too.
	modprobe kunit 2>/dev/null
	printf %s "$1" | cat >$filter || return
	modprobe test_kprobes
}

# The kprobes of the base are those of Linux itself, which some tests would crash.
is_base() {
	! grep -q ' kprobe_resolve$' /proc/kallsyms
}

symbol_address() {	# SYMBOL
	awk -v symbol="$1" '$3 == symbol { print $1; exit }' /proc/kallsyms
}

first_symbol() {	# SYMBOL...: the first one that the kernel has
	for symbol; do
		[ -z "$(symbol_address "$symbol")" ] || { echo "$symbol"; return; }
	done
}

symbol_end() {	# SYMBOL: the address of the next symbol
	awk -v symbol="$1" 'start && $1 != start { print $1; exit }
		$3 == symbol { start = $1 }' /proc/kallsyms
}

low_half() {	# ADDRESS: the lower 32 bits, since shells calculate with signed numbers
	echo "$1" | grep -o '.\{8\}$'
}

address_digits() {	# how many hexadecimal digits an address has in a file of the kernel
	awk '{ print length($1); exit }' /proc/kallsyms
}

kind_at_entry() {	# of a site at the entry of a function
	if has_config KPROBES_ON_FTRACE; then
		echo ftrace
	else
		echo breakpoint
	fi
}

# Frame pointers do not lead to the caller of a function that has not saved its own yet.
caller_at_entry() {	# FUNCTION: print it if a stack trace at the entry has it
	has_config UNWINDER_FRAME_POINTER || echo "$1"
}

read_stat() {	# NAME: its number in debugfs
	sed -n "s/^$1: //p" $kprobes/stats
}

count_optimized() {
	grep -cF '[OPTIMIZED]' $kprobes/list
}

optimizer_is_at_rest() {
	[ "$(read_stat sites_optimizing)/$(read_stat no_jump_pending)" = 0/0 ]
}

# The number of jumps after the optimiser has finished. Reading the list waits for ten
# seconds, which is too short on one CPU or a slow host, or if a probe is hit all the time.
count_optimized_at_rest() {
	for _ in $(seq 30); do
		! optimizer_is_at_rest || break
		head -n 1 $kprobes/list >/dev/null
	done
	count_optimized
}

# Kinds of sites add up to all sites, and reasons to the sites with a breakpoint. The
# list has as many probes.
stats_add_up() {
	cat $kprobes/list >"$output.list"
	cat $kprobes/stats >"$output.stats"
	cat "$output.stats"
	awk -F ': ' -v probes="$(wc -l <"$output.list")" \
	    -v jumps="$(grep -cF '[OPTIMIZED]' "$output.list")" \
	    -v disabled="$(grep -cF '[DISABLED]' "$output.list")" '
		{ stat[$1] = $2 }
		/^no_jump_/ { breakpoints += $2 }
		/^sites_/ { sites += $2 }
		END {
			exit stat["sites"] != sites || stat["sites_breakpoint"] != breakpoints ||
			     stat["probes"] != probes || stat["sites_jump"] != jumps ||
			     stat["probes_disabled"] != disabled
		}' "$output.stats"
}

has_no_site() {
	[ "$(read_stat probes)/$(read_stat sites)" = 0/0 ]
}

# Each open file has an answer of its own.
ask_check() {	# [TYPE ]PLACE: print what the file check answers
	{ echo "$1" | cat >&3 && cat <&3; } 3<>$kprobes/check
}

# Sites are freed in the background.
all_sites_are_freed() {
	within 10 has_no_site || { grep -v ': 0$' $kprobes/stats; return 1; }
}

# Ftrace keeps its user for a second after the last probe, in case that a tool adds the next.
anchor_is_not_traced() {
	! grep -s kprobe_ftrace_anchor $tracing/enabled_functions
}

text_is_at_rest() {
	all_sites_are_freed && within 10 anchor_is_not_traced
}

all_gone() {	# NUMBER: the probes in the list, all of which are [GONE]
	[ "$(grep -c '\[GONE\]' $kprobes/list)/$(wc -l <$kprobes/list)" = "$1/$1" ]
}

# Kprobe events, in the group kprobes

use_events() {
	[ -e $tracing/kprobe_events ] || skip_all "no kprobe events, or not in tracefs"
	[ -z "$(cat $tracing/kprobe_events)" ] || skip_all "there are kprobe events already"
	on_exit remove_events
}

add_event() {	# DEFINITION
	write_line "$1" $tracing/kprobe_events
}

# The event is neither at the first instruction nor at the function's ftrace site.
add_event_inside() {	# EVENT FUNCTION
	for offset in $(seq 5 64); do
		! add_event "p:kprobes/$1 $2+$offset" 2>/dev/null || return 0
	done
	return 1
}

# Print SYMBOL+OFFSET of such an instruction.
place_inside() {	# FUNCTION
	add_event_inside place "$1"
	sed -n 's/.*kprobes\/place //p' $tracing/kprobe_events
	remove_events
}

enable_event() {	# EVENT 0-OR-1
	echo "$2" >"$tracing/events/kprobes/$1/enable"
}

enable_all_events() {	# 0-OR-1
	echo "$1" >$tracing/events/kprobes/enable
}

remove_events() {
	[ ! -e $tracing/events/kprobes/enable ] || enable_all_events 0
	echo >$tracing/kprobe_events
	echo >$tracing/trace
}

hits() {	# EVENT
	awk -v event="$1" '$1 == event { print $2 }' $tracing/kprobe_profile
}

missed() {	# EVENT
	awk -v event="$1" '$1 == event { print $3 }' $tracing/kprobe_profile
}

# For a function that the kernel calls about once a second.
event_gets_hits() {	# EVENT
	hits_before=$(hits "$1")
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		sleep 0.3
		[ "$(hits "$1")" -le "$hits_before" ] || return 0
	done
	return 1
}

returned_once() {	# PID EVENT: the process has hit this return event once
	[ "$(grep -c -- "-$1 .*$2: " $tracing/trace)" = 1 ]
}

# Calls of probed functions

fork_three_times() {	# or more often
	/bin/true
	/bin/true
	/bin/true
}

find_rmdir() {	# sets $rmdir to what rmdir() calls, whose name depends on the kernel
	rmdir=$(first_symbol do_rmdir filename_rmdir)
}

call_rmdir() {
	! rmdir /no-such-directory 2>/dev/null
}

# True if a line of the kernel log matches; otherwise print the log.
log_has_line() {	# PATTERN
	dmesg >"$output.log"
	grep -E "$1" "$output.log" || { cat "$output.log"; return 1; }
}

# The module trace-events-sample. A thread of it calls do_simple_thread_func() each second.

use_sample() {
	has_module trace-events-sample || skip_all "no module trace-events-sample"
	on_exit 'modprobe -r trace-events-sample 2>/dev/null'
}

load_sample() {
	modprobe trace-events-sample
}

unload_sample() {
	modprobe -r trace-events-sample
}

# The compiler may have made a part of the function a function of its own.
sample_thread_function() {
	awk -v module="[$sample]" '/ do_simple_thread_func/ && $4 == module { print $3 }' \
		/proc/kallsyms
}
