#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Probe every instruction of the kernel, and every function, with 90,000 probes at a time: with
# pre handlers; with pre and post handlers; with return probes; with three probes at each.
# What the kernel does meanwhile has the same results as without probes. And in the rounds
# hotplug-* CPUs go off and on line, in suspend-* the machine is suspended to RAM and wakes;
# with these, writes of MSRs are traced all the time.
#
# usage: sweep.sh [ROUND]...
# A ROUND is pre, post, return, three, hotplug-jumps, hotplug-breakpoints, suspend-jumps or
# suspend-breakpoints; the default is all that the machine is capable of. The file "share" has
# the distance of each instruction from _text, in hexadecimal digits: of a part of all
# instructions, which follows from the number in the file "seed".
. ./lib.sh
. ./workload.sh
. ./measure.sh

file=share
always="pre post return three"
others="hotplug-jumps hotplug-breakpoints suspend-jumps suspend-breakpoints"
crowd=90000	# probes of kprobe_sweep
clock=/sys/class/rtc/rtc0
mem_sleep=/sys/power/mem_sleep
msr_event=$tracing/events/msr/write_msr/enable
cpus=

for round; do
	case " $always $others " in
	*" $round "*) ;;
	*) echo "no round has the name $round" >&2; exit 1 ;;
	esac
done

has_module kprobe_sweep || skip_all "no module kprobe_sweep"
[ -r "$file" ] || skip_all "no list of instructions"
[ "$(symbol_address __stop___ex_table)" ] || skip_all "no CONFIG_KALLSYMS_ALL"
! has_config KASAN || skip_all "too slow with KASAN"

# CPUs that can go off line: none if there is only one.
! grep -q '[-,]' /sys/devices/system/cpu/online ||
	cpus=$(grep -lx 1 /sys/devices/system/cpu/cpu[0-9]*/online 2>/dev/null)
for cpu in $cpus; do
	on_exit "echo 1 >$cpu"
done

on_exit '! [ -e /sys/module/kprobe_sweep ] || rmmod kprobe_sweep'
[ ! -e $knob ] || on_exit "echo $(cat $knob) >$knob"

# Without "deep", the machine would only be idle. Not each machine has it.
if [ -w $mem_sleep ] && ! grep -qF '[deep]' $mem_sleep; then
	on_exit "echo $(sed 's/.*\[\(.*\)\].*/\1/' $mem_sleep) >$mem_sleep"
	write_line deep $mem_sleep 2>/dev/null
fi

# Print why the machine is not capable of a round, if so. Without an alarm it would not wake.
obstacle() {	# ROUND
	case $1 in
	hotplug-*)
		[ "$cpus" ] || echo "no CPU that can go off line"
		;;
	suspend-*)
		if ! [ -w $clock/wakealarm ]; then
			echo "no alarm in $clock"
		elif ! grep -qsw mem /sys/power/state || ! grep -qsF '[deep]' $mem_sleep; then
			echo "no suspend to RAM"
		fi
		;;
	esac
}

# Those that are not configured are left out. Results without times.
all_library_tests="string_kunit string_helpers_kunit list-test hashtable_test test_hash
	siphash_kunit checksum_kunit cmdline_kunit overflow_kunit usercopy_kunit
	test_sort test_list_sort test_hexdump test_printf printf_kunit test_scanf
	scanf_kunit test_bitmap test_uuid uuid_kunit test_xarray test_static_keys
	test_bpf crc32test crc_kunit"

library_tests=$(for test in $all_library_tests; do
	has_module "$test" && echo "$test"
done)

run_library_tests() {
	for test in $library_tests; do
		dmesg -c >/dev/null
		modprobe "$test" "$([ "$test" != test_bpf ] || echo test_range=0,60)" &&
			echo "$test" && rmmod "$test"
		dmesg | grep -E ' ok |tests passed|Summary|WARNING|BUG' |
			sed 's/^\[[^]]*\] //; s/ in [0-9]* nsec//'
	done
}

run_all() {	# RESULTS
	workload && run_library_tests >"$1"
}

runs_as_before() {
	run_all "$output.results" && diff "$output.before" "$output.results"
}

run_sweep() {	# COMMAND...: add what it logs to the results of the round
	measure kprobe_sweep "$@" >"$output.log" && cat "$output.log" >>"$output.round" &&
		! grep -E '^(wrong|changed)-' "$output.log"
}

# Jumps after the optimiser has finished, or after a minute. When all instructions of the
# decoder have breakpoints, reading the list takes longer: it needs the mutex for each page.
jumps_at_rest() {
	within 60 optimizer_is_at_rest
	read_stat sites_jump
}

cpus_go_and_come() {
	for cpu in $cpus; do
		set_to 0 "$cpu" && set_to 1 "$cpu" || return
	done
}

# An alarm that rings before the machine sleeps keeps it from that: then try again. Without
# the alarm it must not sleep.
machine_sleeps() {
	write_line 0 $clock/wakealarm && events=$(cat /sys/power/wakeup_count) &&
		write_line +5 $clock/wakealarm &&
		write_line "$events" /sys/power/wakeup_count && write_line mem /sys/power/state
}

machine_sleeps_and_wakes() {
	within 1 machine_sleeps 2>/dev/null && { [ -z "$cpus" ] || ! grep -Lx 1 $cpus | grep .; }
}

# A batch of probes from the first to the last moment.
run_batch() {	# KIND FIRST STEP
	echo "$*"
	run_sweep "$@" && jumps_at_rest | sed 's/^/optimized /' >>"$output.round" &&
		$meanwhile && run_sweep remove && text_is_at_rest && run_sweep compare
}

# Places that lie far apart, so that most can have jumps.
far_apart() {	# KIND NUMBER
	batches=$((($2 + crowd - 1) / crowd))
	for batch in $(seq 0 $((batches - 1))); do
		run_batch "$1" "$batch" $batches || return
	done
}

side_by_side() {	# KIND NUMBER
	for first in $(seq 0 $((crowd / 3)) $(($2 - 1))); do
		run_batch "$1" "$first" 1 || return
	done
}

sum() {	# NAME: of the results of a round
	awk -v name="$1" '$1 == name { sum += $2 } END { printf "%.0f\n", sum }' "$output.round"
}

refusals() {	# by error
	awk '/^refused/ { sum[$1] += $2 } END { for (i in sum) printf "%s %.0f, ", i, sum[i] }' \
		"$output.round"
}

# All places were chosen or refused, all but a few of them chosen, and many were hit, with few hits
# missed. Places far apart have jumps, but none in the rounds *-breakpoints, and calls return.
sweep_adds_up() {	# ROUND KIND NUMBER: of places
	awk -v round="$1" -v kind="$2" -v number="$3" '
		$1 == "places" || /^refused/ { all += $2 }
		{ sum[$1] += $2 }
		END {
			print all, "places of", number
			busy = round == kind ? 1 : 0.4
			exit all != number || sum["places"] < number * 0.93 ||
			     sum["hits"] < number * busy || sum["missed"] > sum["hits"] / 100 ||
			     sum["hit-probes"] < number * busy * 0.08 ||
			     kind ~ /pre|post/ && round !~ /breakpoints/ &&
			     sum["optimized"] < sum["places"] * (kind == "pre" ? 0.85 : 0.65) ||
			     round ~ /breakpoints/ && sum["optimized"] ||
			     kind == "return" && sum["hits-after"] < sum["hits"] * 0.99 ||
			     sum["wrong"] + sum["changed"]
		}' "$output.round"
}

run_round() {	# ORDER KIND NUMBER
	{ [ ! -e $knob ] || set_to "$jumps" $knob; } && "$@"
}

round() {	# NAME ROUND ORDER KIND NUMBER
	began=$(date +%s)
	: >"$output.round"
	check "$1: the kernel works as before" run_round "$3" "$4" "$5"
	check "$1: the numbers agree" sweep_adds_up "$2" "$4" "$5"
	echo "# $1: $(($(date +%s) - began)) s, places $(sum places)," \
		"$(refusals) optimized $(sum optimized), hit $(sum hit-probes)," \
		"disabled $(sum cooled), hits $(sum hits)," \
		"post or return handlers $(sum hits-after), missed $(sum missed);" \
		"ms to choose $(sum choose-ms), to add $(sum add-ms), to remove $(sum remove-ms)"
}

logged() {	# NAME
	sed -n "s/^$1 //p" "$output.loaded"
}

if [ $# = 0 ]; then
	# shellcheck disable=SC2086	# words
	set -- $always
	for round in $others; do
		[ "$(obstacle "$round")" ] || set -- "$@" "$round"
	done
fi
plan $((4 + 2 * $#))
[ ! -e seed ] || echo "# seed $(cat seed)"
all_functions | sed 's/^0x//' >"$output.functions"
base=$(symbol_address _text)
take_log >/dev/null
check "the module loads" load_module kprobe_sweep base="0x$base" \
	instructions="$(realpath "$file")" functions="$output.functions" \
	exceptions="0x$(symbol_address __start___ex_table),0x$(symbol_address __stop___ex_table)"
take_log kprobe_sweep >"$output.loaded"
instructions=$(logged instructions)
functions=$(logged functions)
check "all runs without probes" run_all "$output.before"
if [ -n "$library_tests" ]; then
	check "tests of the library have results" test -s "$output.before"
else
	skip "none of them is a module" "tests of the library have results"
fi
echo "# $(wc -l <"$output.before") results of $(grep -c '^[a-z0-9_-]*$' "$output.before") modules"
save_text() {
	text_is_at_rest && run_sweep save
}

case " $* " in
*" hotplug-"*|*" suspend-"*) [ ! -w "$msr_event" ] || set_until_exit 1 "$msr_event" ;;
esac

check "the text is saved" save_text
for round; do
	reason=$(obstacle "$round")
	if [ "$reason" ]; then
		skip "$reason" "$round: the kernel works as before" "$round: the numbers agree"
		continue
	fi
	case $round in
	hotplug-*) meanwhile=cpus_go_and_come ;;
	suspend-*) meanwhile=machine_sleeps_and_wakes ;;
	*) meanwhile=runs_as_before ;;
	esac
	case $round in
	*-breakpoints) jumps=0 ;;
	*) jumps=1 ;;
	esac
	case $round in
	pre) round "pre handlers" pre far_apart pre "$instructions" ;;
	post) round "post handlers" post far_apart post "$instructions" ;;
	return) round "return probes" return far_apart return "$functions" ;;
	three) round "three probes" three side_by_side three "$instructions" ;;
	*) round "$round" "$round" far_apart pre "$instructions" ;;
	esac
done
