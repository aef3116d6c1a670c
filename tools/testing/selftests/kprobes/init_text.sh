#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# A probe in the kernel's own init text, which is freed before the first program runs.
. ./lib.sh

boot_event='kprobe_event=p:kprobes/init_text,start_kernel'
grep -q " $boot_event\( \|\$\)" /proc/cmdline || skip_all "boot with $boot_event"
on_exit remove_events

plan 4
check "the event is there" grep 'p:kprobes/init_text' $tracing/kprobe_events
check "its probe is gone" [ "$(grep -c '\[GONE\]' $kprobes/list)" = 1 ]
check_not "and not said to be somewhere" grep '+0x' $kprobes/list
remove_events
check "it is removed" [ -z "$(cat $kprobes/list)" ]
