#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Thousands of probes at once: on random instructions, and on every function of the kernel, or
# every tenth where locks are checked.
#
# usage: scale.sh [FILE]
# FILE has random instructions of the kernel, a SYMBOL+OFFSET on each line. The default is
# the file "instructions".
. ./lib.sh
. ./workload.sh
. ./measure.sh

instructions=${1-instructions}
crowd=20000
share=90	# per cent of the probes that must be optimised
[ "$(uname -m)" = x86_64 ] || share=85
rounds=6
round_crowd=3000

# Where each access or each lock is checked, on a slow host, a tick of the timer takes longer than
# its period with 20,000 probes on instructions, or one on each function: nothing else runs then.
checked=
every=1	# one function of so many is probed
if has_config KASAN || has_config PROVE_LOCKING; then
	checked=1
	crowd=2000
	every=10
	! has_config KASAN || round_crowd=1000
fi

has_module kprobe_scale || skip_all "no module kprobe_scale"
! is_base || skip_all "the kprobes of the base take hours for so many"
[ -r "$instructions" ] || skip_all "no list of instructions"
on_exit '! [ -e /sys/module/kprobe_scale ] || rmmod kprobe_scale'

# Run a command of kprobe_scale, and keep its duration.
run_scale() {	# COMMAND...
	measure kprobe_scale "$@" >"$output.time" && cat "$output.time" >>"$output.times"
}

# Pages of slots and detours, and areas of executable memory that hold no other code.
count_pages() {
	cat /proc/kallsyms /proc/vmallocinfo |
		grep -cE ' kprobe_(opt)?insn_page\>| alloc_insn_page\+'
}

# Reading the list waits for the optimiser.
register_and_unregister() {
	run_scale attach $round_crowd && cat $kprobes/list >/dev/null && peak=$(kernel_memory) &&
		run_scale detach && all_sites_are_freed
}

# Lost memory would not show after a larger allocation, in whose pages it could lie.
memory_is_freed() {
	for round in $(seq $rounds); do
		register_and_unregister || return 1
		[ "$round" != 2 ] || second=$(kernel_memory_at_rest)
	done
	last=$(kernel_memory_at_rest)
	cost=$((peak - last))
	echo "$second kB after 2 rounds, $last after $rounds, $peak with probes"
	echo "bytes for a probe: $((cost * 1024 / round_crowd))"
	[ "$cost" -gt 1000 ] && [ $(((last - second) * 8)) -lt $cost ]
}

# Print how many bytes are in use more than there were kilobytes before.
memory_since() {	# KILOBYTES
	echo $((($(kernel_memory_at_rest) - $1) * 1024))
}

# Slabs and pages that are partly used blur it.
one_probe_takes_at_most() {	# BYTES
	without=$(kernel_memory_at_rest)
	run_scale attach 1 || return
	count_optimized_at_rest >/dev/null
	bytes=$(memory_since "$without")
	echo "$bytes bytes for a probe"
	run_scale detach && all_sites_are_freed && [ "$bytes" -le "$1" ]
}

plan 23

before=$(count_pages)
head -n $((round_crowd + round_crowd / 20)) "$instructions" >"$output.instructions"
check "random instructions can be probed" load_targets "$output.instructions"
if has_config KASAN; then
	skip "KASAN keeps freed memory in quarantine" "memory is freed"
else
	check "memory is freed, $rounds times" memory_is_freed
	sed 's/^/# /' "$output"
fi
is_measured=
! [ -e $knob ] || [ "$checked" ] || is_measured=1
one="one probe takes at most 64 KiB"
each="$crowd probes take 200 to 500 bytes each"
if [ "$is_measured" ]; then
	check "$one" one_probe_takes_at_most 65536
	sed 's/^/# /' "$output"
else
	skip "no jumps, or a kernel that checks accesses or locks" "$one" "$each"
fi
check "all pages are freed" [ "$(count_pages)" = "$before" ]

check "more random instructions can be probed" load_targets "$instructions"
check "at least $crowd of them can be probed" [ "$targets" -ge $crowd ]
[ ! "$is_measured" ] || without=$(kernel_memory_at_rest)
check "$crowd probes are registered" run_scale attach $crowd
check "the stats count $crowd probes" [ "$(read_stat probes)" = $crowd ]
check "a workload runs while the probes are optimised" workload
check "the list has all probes" [ "$(wc -l <$kprobes/list)" = $crowd ]
count=$(count_optimized_at_rest)
sed 's/^/# /' $kprobes/stats
if [ -e $knob ]; then
	check "at least $((crowd * share / 100)) probes are optimised: $count" \
		[ "$count" -ge $((crowd * share / 100)) ]
else
	skip "no CONFIG_OPTPROBES" "at least $((crowd * share / 100)) probes are optimised"
fi
if [ "$is_measured" ]; then
	bytes=$(($(memory_since "$without") / crowd))
	check "$each: $bytes" [ "$bytes" -ge 200 -a "$bytes" -le 500 ]
fi
check "the workload runs with the probes" workload
check "the probes are unregistered" run_scale detach
check "all sites are freed" all_sites_are_freed

set -- "functions can be probed" "nearly all functions can be probed" \
	"probes on all of these are registered at once" "the stats count all probes" \
	"the workload runs with probes on functions" "the probes on functions are unregistered" \
	"all sites of functions are freed"
if has_config KASAN; then
	skip "too slow with KASAN" "$@"
else
	all_functions | awk "NR % $every == 0" >"$output.functions"
	functions=$(wc -l <"$output.functions")
	check "$1" load_targets "$output.functions"
	echo "# $targets of $functions"
	check "$2" [ $((targets * 20)) -gt $((functions * 17)) ]
	check "$3" run_scale attach "$targets"
	check "$4" [ "$(read_stat probes)" = "$targets" ]
	check "$5" workload
	check "$6" run_scale detach
	check "$7" all_sites_are_freed
fi

sed 's/^/# ns: /' "$output.times"
check "the module unloads" rmmod kprobe_scale
