# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# Has the kernel lost memory?
kmemleak=/sys/kernel/debug/kmemleak

# kmemleak tells of what is older than 5 seconds and was found changed by no scan
# since the last one, so that it takes two.
no_leaks() {	# or show them
	sleep 6
	for _ in 1 2 3; do
		echo scan >$kmemleak || return
		sleep 1
	done
	sed 's/^/# /' $kmemleak >/tmp/leaks || return
	head -n 60 /tmp/leaks
	[ ! -s /tmp/leaks ]
}
