# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# Measuring with the modules kprobe_bench, kprobe_nest and kprobe_scale. What the first
# and the last say are lines "NAME VALUE".

# The addresses of the kernel's functions, as far as it says that they are any.
all_functions() {
	awk '$2 ~ /^[Tt]$/ && NF == 3 && $3 !~ /^__pfx_/ { print "0x" $1 }' /proc/kallsyms | sort -u
}

# Those of functions that ftrace knows, in an order that has nothing to do with them.
some_functions() {	# NUMBER
	awk 'BEGIN { srand(6) } NF == 2 { print rand(), "0x" $1 }' \
		$tracing/available_filter_functions_addrs | sort -n | head -n "$1" | cut -d ' ' -f 2
}

# What has been said since the last time.
said() {	# MODULE
	dmesg -c | sed -n "s/.*$1: //p"
}

# Have kprobe_scale read what to probe. Sets $targets to how many of them can be.
load() {	# FILE
	! [ -e /sys/module/kprobe_scale ] || rmmod kprobe_scale
	said >/dev/null
	modprobe kprobe_scale targets="$(realpath "$1")"
	targets=$(said kprobe_scale | sed -n 's/^targets //p')
	echo "targets: $targets"
	[ -n "$targets" ]
}

measure() {	# MODULE COMMAND...
	module=$1
	shift
	said >/dev/null
	echo "$*" >"/sys/module/$module/parameters/run"
	done=$?
	said "$module"
	return $done
}

# What a hit costs, for all kinds of probes.
measure_hits() {
	echo 0 >$knob && measure kprobe_bench plain
	plain=$?
	echo 1 >$knob && measure kprobe_bench optimized && [ $plain = 0 ]
}

# Kilobytes that the kernel has taken for its objects, and for executable code. What
# is freed after a grace period comes back some seconds later.
taken() {
	awk '/^(SUnreclaim|VmallocUsed):/ { sum += $2 } END { print sum }' /proc/meminfo
}

taken_at_rest() {
	sleep 6
	taken
}
