#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# BPF programs as clients: bpf.c.
. ./lib.sh

[ -x ./bpf ] || skip_all "bpf is not built"
[ -e $tracing/kprobe_events ] || skip_all "no kprobe events, or not in tracefs"
need_no_events
on_exit remove_events
./bpf
