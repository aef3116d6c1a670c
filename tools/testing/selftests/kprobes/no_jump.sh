#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The reasons in debugfs why sites have no jump, for instructions of test_kprobes. See its
# test "unfit_insn_keeps_its_breakpoint".
. ./lib.sh

[ -e $knob ] || skip_all "no CONFIG_OPTPROBES"
! is_base || skip_all "the kprobes of the base have no stats"
[ "$(uname -m)" = x86_64 ] || skip_all "not x86-64"
load_test_kprobes none 2>/dev/null && lsmod | grep -q '^test_kprobes ' ||
	skip_all "test_kprobes is not a module"
has_module kprobe_example || skip_all "no module kprobe_example"
on_exit 'modprobe -r kprobe_example 2>/dev/null'
offset=0
! has_config X86_KERNEL_IBT || offset=4

reason_is() {	# INSTRUCTIONS REASON
	modprobe kprobe_example symbol="test_kprobes:kprobes_test_opt_$1" offset=$offset ||
		return 1
	count_optimized_at_rest >/dev/null
	cat $kprobes/list
	grep '^no_jump_' $kprobes/stats
	sites=$(read_stat "no_jump_$2")
	modprobe -r kprobe_example
	[ "$sites" = 1 ]
}

plan 7
check "the target of a branch" reason_is narrow_branch branch_target
check "an instruction with a fixup" reason_is extable_first extable
check "an instruction with a fixup after the first one" reason_is narrow_fixup extable
check "the target of an indirect branch" reason_is endbr insn
check "a loop instruction" reason_is narrow_loop insn
check "the end of a function" reason_is narrow_function range
check "a jump label" reason_is label_inside patched_text
