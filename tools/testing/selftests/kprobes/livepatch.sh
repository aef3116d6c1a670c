#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Probes and a livepatch of the same function: the sample, of cmdline_proc_show().
. ./lib.sh

function=cmdline_proc_show
patch=/sys/kernel/livepatch/livepatch_sample

has_module livepatch-sample || skip_all "no module livepatch-sample"
has_module kprobe_example || skip_all "no module kprobe_example"
! is_base || skip_all "the kprobes of the base lose probes beside a livepatch"
use_events
on_exit 'modprobe -r kprobe_example 2>/dev/null'
on_exit 'disable_patch 2>/dev/null'
on_exit "echo 1 >$kprobes/enabled"

# All tasks use the new function: each was seen outside of the old one.
is_complete() {
	[ "$(cat $patch/transition)" = 0 ]
}

enable_patch() {
	modprobe livepatch-sample && within 10 is_complete
}

disable_patch() {
	[ ! -e $patch/enabled ] || echo 0 >$patch/enabled
	within 10 [ ! -e $patch ] && modprobe -r livepatch-sample
}

is_patched() {
	grep -qx "this has been live patched" /proc/cmdline
}

# Read /proc/cmdline, and compare how often each event has been hit since the last time.
hits_of_a_read() {
	before="$(hits entered) $(hits returned) $(hits inside)"
	cat /proc/cmdline >/dev/null
	echo "$before $(hits entered) $(hits returned) $(hits inside)" |
		awk '{ print $4 - $1, $5 - $2, $6 - $3 }'
}

are_hit() {	# ENTERED RETURNED INSIDE
	found=$(hits_of_a_read)
	echo "hit at the entry, the return and inside: $found, should be $*"
	[ "$found" = "$*" ]
}

plan 25
check "an event at the entry" add_event "p:kprobes/entered $function"
check "one at the return" add_event "r:kprobes/returned $function"
check "one inside" add_event_inside inside $function
enable_all_events 1
check "each is hit" are_hit 1 1 1

check "the function is patched while it is probed" enable_patch
check "the new function runs" is_patched
check "entry and return are hit, the old function is not" are_hit 1 1 0
check_error "a probe with a post handler is refused" "busy" \
	modprobe kprobe_example symbol=$function
check "the reason is another user" \
	grep "$function.*-EBUSY: .*another user" $kprobes/refusals
check "the patch is disabled while the function is probed" disable_patch
check_not "the old function runs" is_patched
check "each is hit again" are_hit 1 1 1

check "a probe with a post handler" modprobe kprobe_example symbol=$function
check_error "the function is not patched beside it" "busy" enable_patch
check "all are hit as before" are_hit 1 1 1

# The sites at which a post handler and a patch exclude each other, when both came meanwhile.
check "all probes are switched off" set_enabled 0
check "the function is patched meanwhile" enable_patch
check_error "not all probes are switched on again" "busy" set_enabled 1
check "the log has the one that is not" log_has_line "kprobes: $function.* is not armed: -EBUSY"
check "and says that no other is missing" log_has_line "kprobes: armed .* but those at 1 address"
check "the patch is disabled" disable_patch
check "the probe inside is hit, that of the entry is not" are_hit 0 0 1
check "all probes are switched on" set_enabled 1
check "all are hit" are_hit 1 1 1
modprobe -r kprobe_example
remove_events
check_no_probe_is_left
