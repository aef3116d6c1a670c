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

next_symbol_address() {	# SYMBOL
	awk -v symbol="$1" 'found && $1 != found { print $1; exit } $3 == symbol { found = $1 }' \
		/proc/kallsyms
}

# Allocations of the function, and of what it calls, also those that may sleep.
let_allocations_fail() {	# FUNCTION TIMES: -1 for all
	for file in ignore-gfp-wait verbose times require-start require-end probability; do
		on_exit "echo $(cat $failslab/$file) >$failslab/$file"
	done
	echo N >$failslab/ignore-gfp-wait
	echo 0 >$failslab/verbose
	echo "$2" >$failslab/times
	echo "0x$(symbol_address "$1")" >$failslab/require-start
	echo "0x$(next_symbol_address "$1")" >$failslab/require-end
	echo 100 >$failslab/probability
}

let_no_allocation_fail() {
	echo 0 >$failslab/probability
}
