# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# For guests whose verdict consists of the results of several tests.
parts=0
[ ! -d /selftests/kprobes ] || cd /selftests/kprobes || exit

boot_parameter() {	# NAME: its value on the kernel's command line
	sed -n "s/.*$1=\([^ ]*\).*/\1/p" /proc/cmdline
}

part() {	# NAME COMMAND...: run it; its output becomes a nested test
	[ $parts != 0 ] || echo "KTAP version 1" >&3
	parts=$((parts + 1))
	name=$1
	shift
	echo "guest: $name" >/dev/kmsg
	rm -f /tmp/status	# of a part that kills its shell there is none
	{ "$@"; echo $? >/tmp/status; } | while IFS= read -r line; do
		echo "    $line"
	done >&3
	status=$(cat /tmp/status)
	case $status in
	0) echo "ok $parts $name" ;;
	4) echo "ok $parts $name # SKIP" ;;
	*) echo "# exit status $status"; echo "not ok $parts $name" ;;
	esac >&3
}

# Allocations of probes may sleep; the tests of running out of memory need them to fail.
let_allocations_fail() {
	for fail in /sys/kernel/debug/failslab /sys/kernel/debug/fail_page_alloc; do
		[ -e "$fail" ] || continue
		echo N >"$fail"/ignore-gfp-wait
		echo 0 >"$fail"/verbose
	done
	# Vmalloc asks for single pages, also of high memory.
	[ ! -e "$fail" ] || { echo 0 >"$fail"/min-order; echo N >"$fail"/ignore-gfp-highmem; }
}

# All suites of /guest/suites that must run here have run, or print the others.
suites_have_run() {	# KIND: the tests are "module" or "builtin"
	while read -r suite kind; do
		[ "${kind:-$1}" = "$1" ] || zcat /proc/config.gz | grep -q "^CONFIG_$kind=y" || continue
		[ -e "/sys/kernel/debug/kunit/$suite/results" ] || echo "# the suite $suite has not run"
	done </guest/suites >/tmp/missing
	cat /tmp/missing
	[ ! -s /tmp/missing ]
}

kunit_results() {	# of all suites that have run
	for suite in /sys/kernel/debug/kunit/*; do
		part "kunit ${suite##*/}" cat "$suite/results"
	done
}

# Suites in modules run when they are loaded, the built-in ones ran at boot.
load_kunit_modules() {
	for ko in $(find /lib/modules -name test_kprobes.ko -o -name ftrace_filter_test.ko -o -path '*/kernel/kprobes/*_test.ko'); do
		ko=${ko##*/}
		part "load ${ko%.ko}" modprobe "${ko%.ko}"
	done
}

kunit_modules() {
	let_allocations_fail
	load_kunit_modules
	part "all suites have run" suites_have_run module
	kunit_results
}

# Each with 20 minutes, more than any of them needs.
selftests() {	# NAME...
	for selftest; do
		part "$selftest" timeout 1200 "./$selftest"
	done
}

# kmemleak reports objects that are older than 5 seconds and have not changed since
# the last scan, so that it takes two scans.
no_leaks() {	# or print them
	sleep 6
	for _ in 1 2 3; do
		echo scan >/sys/kernel/debug/kmemleak || return
		sleep 1
	done
	sed 's/^/# /' /sys/kernel/debug/kmemleak >/tmp/leaks || return
	head -n 60 /tmp/leaks
	[ ! -s /tmp/leaks ]
}

end_of_parts() {
	echo "1..$parts" >&3
}
