# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# Has the kernel leaked memory?
kmemleak=/sys/kernel/debug/kmemleak

# kmemleak reports objects that are older than 5 seconds and have not changed since
# the last scan, so that it takes two scans.
no_leaks() {	# or print them
	sleep 6
	for _ in 1 2 3; do
		echo scan >$kmemleak || return
		sleep 1
	done
	sed 's/^/# /' $kmemleak >/tmp/leaks || return
	head -n 60 /tmp/leaks
	[ ! -s /tmp/leaks ]
}
