#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The files sites and refusals in debugfs: what is probed, how and by whom; and what is not.
. ./lib.sh
find_rmdir

[ -e $kprobes/sites ] || skip_all "no $kprobes/sites"
digits=$(address_digits)
use_events
[ ! -e $knob ] || set_until_exit 1 $knob
on_exit 'modprobe -r kprobe_example kprobe_manual 2>/dev/null'

# The address; the symbol and offset, or "-" if the text is gone; the module or a space; and names
# with values.
sites_have_format() {
	cat $kprobes/sites
	place="[0-9a-f]{$digits}  (-|[^ +]+\\+0x[0-9a-f]+)  ( |[^ ]+)"
	kind="kind=[a-z]+( no_jump=[a-z_]+)?( no_hit=[a-z_]+)?"
	missed="missed_nested=[0-9]+ missed_busy=[0-9]+ missed_returns=[0-9]+"
	! grep -Ev "^$place  $kind $missed handlers=.+\$" $kprobes/sites
}

site_is() {	# SYMBOL TEXT: of the line after the module
	cat $kprobes/sites
	[ "$(sed -n "s/^[0-9a-f]*  $1+[^ ]*  \( \|[^ ]*\)  //p" $kprobes/sites)" = "$2" ]
}

last_refusal_is() {	# TASK TEXT
	tail -n 1 $kprobes/refusals
	[ "$(tail -n 1 $kprobes/refusals |
		sed 's/^\[ *[0-9]*\.[0-9]\{6\}\] \(.*\)\[[0-9]*\] /\1 /')" = "$1 $2" ]
}

# The function's first instruction is at its ftrace site, or before that.
refuse_event() {
	add_event "p:kprobes/refused vfs_write+2"
}

# The handler of the outer event calls the function.
misses_nested_hits() {
	add_event "p:kprobes/outer $rmdir word=+0(\$stack)" &&
		add_event 'p:kprobes/nested copy_from_kernel_nofault' || return
	enable_all_events 1
	before=$(read_stat missed_nested)
	call_rmdir
	call_rmdir
	enable_all_events 0
	cat $kprobes/sites
	[ "$(missed nested)" -ge 2 ] &&
		[ $(($(read_stat missed_nested) - before)) = "$(missed nested)" ] &&
		grep -F " copy_from_kernel_nofault+" $kprobes/sites |
			grep " missed_nested=$(missed nested) missed_busy=0 missed_returns=0 "
}

# Another module may be loaded at the address.
gone_site_has_no_symbol() {
	add_event "p:kprobes/gone $sample:$(sample_thread_function)" && unload_sample &&
		sites_have_format && grep "^[0-9a-f]*  -     kind=gone " $kprobes/sites
}

none="missed_nested=0 missed_busy=0 missed_returns=0"
entry_kind=$(kind_at_entry)

plan 20
check "without probes there is no site" all_sites_are_freed
check "nor a line" is_empty $kprobes/sites
add_event "p:kprobes/one $rmdir"
add_event "p:kprobes/two $rmdir"
add_event_inside inside kernel_clone
check "the lines have their format" sites_have_format
check "there is one for each site" [ "$(wc -l <$kprobes/sites)" = "$(read_stat sites)" ]
both="kprobe_dispatcher(disabled),kprobe_dispatcher(disabled)"
check "a site without enabled probes is disarmed" \
	site_is $rmdir "kind=disarmed $none handlers=$both"
enable_all_events 1
check "it is armed" site_is $rmdir \
	"kind=$entry_kind $none handlers=kprobe_dispatcher,kprobe_dispatcher"
set -- "a probe is a jump" "the same without jumps"
if [ -e $knob ]; then
	count_optimized_at_rest >/dev/null
	check "$1" site_is kernel_clone "kind=jump $none handlers=kprobe_dispatcher"
	echo 0 >$knob
	check "$2" site_is kernel_clone \
		"kind=breakpoint no_jump=disabled $none handlers=kprobe_dispatcher"
	echo 1 >$knob
else
	skip "no CONFIG_OPTPROBES" "$@"
fi
enable_event one 0
check "one of two probes is disabled" site_is $rmdir \
	"kind=$entry_kind $none handlers=kprobe_dispatcher,kprobe_dispatcher(disabled)"
remove_events
check "hits in a handler are counted" misses_nested_hits
remove_events

set -- "the probe of a module names it" "a module's refused probe is kept"
if has_module kprobe_example; then
	modprobe kprobe_example symbol=$rmdir
	check "$1" site_is $rmdir \
		"kind=$entry_kind $none handlers=example_pre_handler [kprobe_example]"
	modprobe -r kprobe_example
	! modprobe kprobe_example symbol=no_such_symbol 2>/dev/null
	check "$2" last_refusal_is modprobe "no_such_symbol+0x0: -ENOENT: no such symbol"
else
	skip "no module kprobe_example" "$@"
fi

name="a site whose text is gone has no symbol"
if has_module trace-events-sample; then
	load_sample
	check "$name" gone_site_has_no_symbol
	remove_events
else
	skip "no module trace-events-sample" "$name"
fi

name="each kind of probe has its handler"
if has_module kprobe_manual && has_config JPROBES; then
	all_sites_are_freed	# also the one inside of kernel_clone()
	modprobe kprobe_manual
	all="my_kernel_clone [kprobe_manual],on_return [kprobe_manual],on_call [kprobe_manual]"
	check "$name" site_is kernel_clone "kind=$entry_kind $none handlers=$all"
	modprobe -r kprobe_manual
else
	skip "no module kprobe_manual, or no jumper probes" "$name"
fi

check_error "an event is refused" "Invalid or incomplete multibyte" refuse_event
check "it is kept, with the reason" last_refusal_is cat \
	"vfs_write+0x2: -EILSEQ: $(first_insn_reason)"
for _ in $(seq 70); do
	! refuse_event 2>/dev/null
done
check "64 are kept" [ "$(wc -l <$kprobes/refusals)" = 64 ]
check "in their order" sort -c -t '[' -k 2 $kprobes/refusals
! add_event "p:kprobes/refused vfs_read+2" 2>/dev/null
check "the last one is among them" last_refusal_is cat \
	"vfs_read+0x2: -EILSEQ: $(first_insn_reason)"
check_no_probe_is_left
