#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Modules that use probes as the documentation of earlier releases described them, by the
# modules linux_*.
. ./lib.sh

has_module linux_2_6_11 || skip_all "no module linux_2_6_11"
on_exit 'rmmod linux_2_6_11; rmmod linux_2_6_30'
on_exit 'rmmod linux_4_14; rmmod linux_5_10'

load() {	# MODULE [PARAMETER]
	dmesg -c >/dev/null
	load_module "$@"
}

fork() {
	/bin/true
	/bin/true
}

plan 24
address=$(symbol_address kernel_clone)
check "2.6.11: the module loads" load linux_2_6_11 do_fork="0x$address"
fork
check "2.6.11: the pre handler is called" log_has_line "linux_2_6_11: pre_handler: p->addr=0x"
check "2.6.11: the post handler is called" log_has_line "linux_2_6_11: post_handler: p->addr=0x"
check "2.6.11: a fault of the pre handler calls the fault handler" \
	log_has_line "linux_2_6_11: fault_handler: p->addr=0x[0-9a-f]*, trap #14"
check "2.6.11: the jumper probe gets the argument" \
	log_has_line "linux_2_6_11: jprobe: clone_flags=0x[1-9a-f]"
check "2.6.11: the module unloads" rmmod linux_2_6_11

check "2.6.30: the module loads" load linux_2_6_30
fork
check "2.6.30: the enabled probe is hit" log_has_line "linux_2_6_30: do_exit is called"
check_not "2.6.30: the disabled probe is not hit" \
	log_has_line "linux_2_6_30: kernel_clone is called"
check "2.6.30: a jumper probe gets a field of its argument" \
	log_has_line "linux_2_6_30: jprobe: exit_signal = [0-9]"
check "2.6.30: an enabled jumper probe gets its argument" \
	log_has_line "linux_2_6_30: jprobe: code = 0"
check "2.6.30: the return probe knows its call" \
	log_has_line "linux_2_6_30: kernel_clone returns [0-9]* to .*, call known"
check "2.6.30: the module unloads" rmmod linux_2_6_30
check "2.6.30: no return was missed" log_has_line "linux_2_6_30: missed 0 of kernel_clone"

check "4.14: the module loads" load linux_4_14 symbol=kernel_clone
fork
check "4.14: pre and post handler are called" sh -c \
	"dmesg | grep -q 'clone> pre_handler: ip' && dmesg | grep -q 'clone> post_handler: flags = 0x0'"
check "4.14: the jumper probe gets the argument" \
	log_has_line "linux_4_14: jprobe: clone_flags = 0x[1-9a-f]"
check "4.14: the return probe measures calls" \
	log_has_line "linux_4_14: kernel_clone returned [0-9]* and took [0-9]* ns to execute"
check "4.14: the module unloads" rmmod linux_4_14

check "5.10: the module loads" load linux_5_10
fork
check "5.10: the first return probe has argument and result" \
	log_has_line "linux_5_10: kernel_clone\(0x[0-9a-f]*\) = [1-9]"
check "5.10: the second return probe has argument and result" \
	log_has_line "linux_5_10: do_wait\(0x[0-9a-f]*\) = [1-9]"
check "5.10: the module unloads" rmmod linux_5_10
check "the list is empty" [ -z "$(cat $kprobes/list)" ]
