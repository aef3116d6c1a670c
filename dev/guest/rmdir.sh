# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh disable=SC2154 # sourced by perf and tools, after lib.sh
# A call whose arguments, result and stack are known: rmdir() of the directory $full, which
# is not empty. do_rmdir() calls vfs_rmdir(), which returns -39.
full=$output.full
mkdir -p "$full/x"
on_exit 'rm -r "$full"'

export PAGER=cat PERF_PAGER=cat
