# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# Functions to let the allocations of one function of the kernel fail.

failslab=/sys/kernel/debug/failslab

# Prints why allocations of a function cannot fail alone, or nothing.
no_failslab() {	# FUNCTION
	if [ ! -e $failslab/require-start ]; then
		echo "no CONFIG_FAULT_INJECTION_STACKTRACE_FILTER, or failslab is not in debugfs"
	elif [ -z "$(symbol_address "$1")" ]; then
		echo "no $1"
	fi
}

# Allocations of the function, and of what it calls, also those that may sleep.
fail_allocations_of() {	# FUNCTION TIMES: -1 for all
	let_sleepers_fail $failslab
	set_until_exit "$2" $failslab/times
	set_until_exit "0x$(symbol_address "$1")" $failslab/require-start
	set_until_exit "0x$(symbol_end "$1")" $failslab/require-end
	set_until_exit 100 $failslab/probability
}

fail_no_allocations() {
	set_to 0 $failslab/probability
}
