# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh disable=SC2154 # sourced by perf and tools, after lib.sh
# A call whose arguments, result and stack are known: rmdir() of the directory $full, which
# is not empty. $rmdir() calls vfs_rmdir(), which returns -39.
find_rmdir
full=$output.full
said=$output.said
mkdir -p "$full/x"
on_exit 'rm -r "$full"'

# What a tool has said of it matches.
said() {	# REGEX
	grep -E -- "$1" "$said" || { cat "$said"; return 1; }
}

is() {		# GOT WANTED
	[ "$1" = "$2" ] || { echo "$1, should be $2"; cat "$said"; return 1; }
}

export PAGER=cat PERF_PAGER=cat
