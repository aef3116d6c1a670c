#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# Why there is no jump: what is told of instructions of which it is known, those of
# test_kprobes. It probes them, too: see "unfit_insn_keeps_its_breakpoint" there.
. ./lib.sh

[ -e $knob ] || skip_all "no jumps"
[ "$(uname -m)" = x86_64 ] || skip_all "not x86-64"
modprobe test_kprobes 2>/dev/null && lsmod | grep -q '^test_kprobes ' ||
	skip_all "test_kprobes is no module"
modinfo kprobe_example >/dev/null 2>&1 || skip_all "no module kprobe_example"
on_exit 'modprobe -r kprobe_example 2>/dev/null'
offset=0
! has_config X86_KERNEL_IBT || offset=4

# Who opens the list waits for the optimiser.
cause_is() {	# SNIPPET CAUSE
	modprobe kprobe_example symbol="test_kprobes:kprobes_test_opt_$1" offset=$offset ||
		return 1
	cat $kprobes/list
	grep '^no_jump_' $kprobes/stats
	told=$(number "no_jump_$2")
	modprobe -r kprobe_example
	[ "$told" = 1 ]
}

plan 7
check "a branch" cause_is jcc_back branch_target
check "a fixup" cause_is extable_first extable
check "a fixup of what follows" cause_is extable_last extable
check "a trap" cause_is trap insn
check "a loop" cause_is loop insn
check "the next function" cause_is next_function range
check "a jump label" cause_is label_last patched_text
