#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# BPF programs that are attached to probes: see bpf.c.
. ./lib.sh

[ -x ./bpf ] || skip_all "bpf is not built"
use_events
./bpf $(! has_config DYNAMIC_FTRACE_WITH_JMP || echo jumps)
status=$?
# The results are those of bpf.
trap - EXIT
remove_events
exit $status
