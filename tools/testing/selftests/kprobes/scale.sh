#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Thousands of probes at once: every function of the kernel, random instructions.
#
# usage: scale.sh [FILE]
# FILE has random instructions of the kernel, one SYMBOL+OFFSET a line; it is
# `instructions` if that is there.
. ./lib.sh
. ./workload.sh
. ./measure.sh

instructions=${1-instructions}
crowd=20000
share=90	# per cent of them that have to be optimised
rounds=10
round_crowd=5000

# With the sanitizer, each access to memory is a call of a function or more.
if has_config KASAN; then
	crowd=2000
	round_crowd=1000
fi

modinfo kprobe_scale >/dev/null 2>&1 || skip_all "no module kprobe_scale"
[ -r "$instructions" ] || skip_all "no list of instructions"
on_exit '! [ -e /sys/module/kprobe_scale ] || rmmod kprobe_scale'

# Measure, and remember.
command() {	# WORD...
	measure kprobe_scale "$@" >"$output.time" && cat "$output.time" >>"$output.times"
}

# Of all probes and what they need nothing is left but what is being freed.
is_empty() {
	for i in $(seq 100); do
		[ "$(number probes)/$(number sites)" != 0/0 ] || return 0
		sleep 0.1
	done
	grep -v ': 0$' $kprobes/stats
	return 1
}

pages() {	# of slots and detours
	grep -cE ' kprobe_(opt)?insn_page\>' /proc/kallsyms
}

one_round() {
	command attach $round_crowd && cat $kprobes/list >/dev/null && peak=$(taken) &&
		command detach && is_empty
}

# What is left shows only where nothing larger has been before, whose pages it
# could hide in.
all_rounds() {
	for round in $(seq $rounds); do
		one_round || return 1
		[ "$round" != 2 ] || second=$(taken_at_rest)
	done
	last=$(taken_at_rest)
	cost=$((peak - last))
	echo "$second kB after 2 rounds, $last after $rounds, $peak with probes"
	echo "bytes for a probe: $((cost * 1024 / round_crowd))"
	[ "$cost" -gt 1000 ] && [ $(((last - second) * 8)) -lt $cost ]
}

plan 21

before=$(pages)
head -n $((round_crowd + round_crowd / 20)) "$instructions" >"$output.instructions"
check "random instructions can be probed" load "$output.instructions"
if has_config KASAN; then
	skip "memory is given back" "KASAN keeps what is freed for a while"
else
	check "memory is given back, $rounds times" all_rounds
	sed 's/^/# /' "$output"
fi
check "all pages are given back" [ "$(pages)" = "$before" ]

check "more of them can be probed" load "$instructions"
check "which are $crowd at the least" [ "$targets" -ge $crowd ]
check "probes are attached to $crowd of them" command attach $crowd
check "they are there" [ "$(number probes)" = $crowd ]
check "a workload runs while they are optimised" workload
check "the list has all" [ "$(wc -l <$kprobes/list)" = $crowd ]
sed 's/^/# /' $kprobes/stats
count=$(number sites_jump)
if [ -e $knob ]; then
	check "at least $((crowd * share / 100)) are optimised, it is $count" \
		[ "$count" -ge $((crowd * share / 100)) ]
else
	skip "nine of ten are optimised" "no CONFIG_OPTPROBES"
fi
check "a workload runs with them" workload
check "they are detached" command detach
check "none of them is left" is_empty

if has_config KASAN; then
	for n in 14 15 16 17 18 19 20; do
		skip "every function" "too slow with KASAN"
	done
	check "the module unloads" rmmod kprobe_scale
	exit
fi
all_functions >"$output.functions"
check "functions can be probed" load "$output.functions"
echo "# $targets of $(wc -l <"$output.functions")"
check "nearly all" [ $((targets * 20)) -gt $(($(wc -l <"$output.functions") * 17)) ]
check "probes are attached to all of these at once" command attach "$targets"
check "they are there, too" [ "$(number probes)" = "$targets" ]
check "a workload runs with them, too" workload
check "they are detached, too" command detach
check "none is left" is_empty

sed 's/^/# ns: /' "$output.times"
check "the module unloads" rmmod kprobe_scale
