#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Errors of allocations: the KUnit tests, with failslab allowed to fail allocations that
# may sleep.
. ./lib.sh

failslab=/sys/kernel/debug/failslab
results=/sys/kernel/debug/kunit/kprobes-memory/results

! is_base || skip_all "these are other KUnit tests"
[ -d $failslab ] || skip_all "no CONFIG_FAILSLAB, or not in debugfs"
modprobe -r test_kprobes 2>/dev/null
[ ! -e $results ] || skip_all "test_kprobes is not a module"

let_sleepers_fail $failslab

test_passed() {	# CASE
	grep -Eq "^ *ok [0-9]+ $1\$" $results
}

plan 7
check "the KUnit tests run" load_test_kprobes kprobes-memory
check "registering" test_passed memory_runs_out_at_registration
check "enabling" test_passed memory_runs_out_when_enabling
check "unregistering" test_passed memory_runs_out_when_unregistering
check "disabling" test_passed memory_runs_out_when_disabling
check "the tests are unloaded" modprobe -r test_kprobes
check_no_probe_is_left
