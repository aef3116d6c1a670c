#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# A probe in the kernel's own init text, which was freed before the first process ran.
. ./lib.sh

boot_event='kprobe_event=p:kprobes/init_text,start_kernel'
grep -q " $boot_event\( \|\$\)" /proc/cmdline || skip_all "boot with $boot_event"
on_exit remove_events

plan 4
check "the event of the command line exists" grep 'p:kprobes/init_text' $tracing/kprobe_events
check "its probe is [GONE]" [ "$(grep -c '\[GONE\]' $kprobes/list)" = 1 ]
check_not "the list has no symbol for it" grep '+0x' $kprobes/list
# Linux can lose the directory of an event that is added while it makes those of all events:
# eventdir_initialized is set after event_mutex has been given up.
write_line '!kprobes:init_text' $tracing/set_event
remove_events
check_no_probe_is_left
