#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Registration when memory is short: the KUnit tests once more, in a kernel that
# lets single allocations fail.
. ./lib.sh

failslab=/sys/kernel/debug/failslab
results=/sys/kernel/debug/kunit/kprobes-memory/results

[ -d $failslab ] || skip_all "no CONFIG_FAILSLAB, or not in debugfs"
modprobe -r test_kprobes 2>/dev/null
[ ! -e $results ] || skip_all "test_kprobes is no module"

wait=$(cat $failslab/ignore-gfp-wait)
verbose=$(cat $failslab/verbose)
restore() {
	echo "$wait" >$failslab/ignore-gfp-wait
	echo "$verbose" >$failslab/verbose
}
on_exit restore
echo N >$failslab/ignore-gfp-wait
echo 0 >$failslab/verbose

passed() {	# CASE
	grep -Eq "^ *ok [0-9]+ $1\$" $results
}

plan 6
check "the tests run" modprobe test_kprobes
check "registration" passed memory_runs_out_at_registration
check "enabling" passed memory_runs_out_when_enabling
check "unregistering" passed memory_runs_out_when_unregistering
check "disabling" passed memory_runs_out_when_disabling
check "nothing is left" [ -z "$(cat $kprobes/list)" ]
