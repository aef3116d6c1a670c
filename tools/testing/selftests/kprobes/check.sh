#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The file check in debugfs: would a probe be refused, and why; and how would it be hit?
. ./lib.sh
find_rmdir

[ -e $kprobes/check ] || skip_all "no $kprobes/check"
use_events
use_sample
[ ! -e $knob ] || set_until_exit 1 $knob

ask() {	# [TYPE ]PLACE
	ask_check "$1" >"$output.check"
}

field() {	# NAME: of the last answer
	sed -n "s/^$1: //p" "$output.check"
}

answers() {	# [TYPE ]PLACE [FIELD VALUE]...: an empty value for no such field
	ask "$1" || return
	cat "$output.check"
	shift
	while [ $# -gt 0 ]; do
		[ "$(field "$1")" = "$2" ] || { echo "$1 is not '$2'"; return 1; }
		shift 2
	done
}

is_refused() {	# [TYPE ]PLACE ERRNO REASON
	answers "$1" result "-$2" reason "$3" hit ""
}

# Each offset of the first bytes either has an instruction, or is inside of one. Others may
# use an instruction. With KASAN, each question takes a second.
find_insns() {
	last=64
	! has_config KASAN || last=32
	insns= others=
	for offset in $(seq 5 $last); do
		ask "$rmdir+$offset"
		case $(field result) in
		0) insns="$insns $offset" ;;
		-EILSEQ) others="$others $offset" ;;
		esac
	done
	insn=${insns##* }
	other=${others##* }
	echo "instructions:$insns, others:$others"
	[ "$insn" ] && [ "$other" ]
}

events_agree() {
	for offset in $insns; do
		add_event "p:kprobes/at $rmdir+$offset" || return
		remove_events
	done
	for offset in $others; do
		! add_event "p:kprobes/at $rmdir+$offset" 2>"$output.error" || return
		grep "Invalid or incomplete multibyte" "$output.error" || return
	done
}

neighbours_are_insns() {
	for offset in $others; do
		ask "$rmdir+$offset"
		neighbours=$(field insns)
		[ "$(echo "$neighbours" | wc -w)" = 2 ] || return
		for neighbour in $neighbours; do
			answers "$rmdir$neighbour" result 0 || return
		done
	done
}

first_insn_is_named() {
	is_refused $rmdir+1 EILSEQ "$(first_insn_reason)" || return
	neighbours=$(field insns)
	[ "${neighbours%% *}" = +0x0 ]
}

# The trampoline of a static call is a sequence, and an instruction after it.
trampoline_is_stepped_over() {
	trampoline=$(static_call_trampoline)
	is_refused "$trampoline+6" EILSEQ "not at the start of an instruction" &&
		[ "$(field insns)" = "+0x5 +0x8" ] &&
		is_refused "$trampoline+1" EINVAL \
			"part of code that others read or patch as a whole"
}

static_call_trampoline() {	# of any static call
	awk '$3 ~ /^__SCT__/ { print $3; exit }' /proc/kallsyms
}

# See also hitcost.sh.
padding_has_no_insns() {
	is_refused __entry_text_end+0x80000 EILSEQ "not at the start of an instruction" &&
		[ -z "$(field insns)" ]
}

# An enabled event has a jump if check said so before it was added, and before it was enabled;
# and then check says what it has.
jumps_are_as_told() {
	jumps=0
	all_sites_are_freed || return
	for offset in $(echo "$insns" | cut -d ' ' -f 2-9); do
		place=$rmdir+$offset
		ask $place
		told="$(field hit) $(field no_jump)"
		add_event "p:kprobes/at $place"
		ask $place
		[ "$(field hit) $(field no_jump)" = "$told" ] || return
		enable_event at 1
		ask $place	# which waits, as the list does
		optimized=$(count_optimized_at_rest)
		remove_events
		echo "+$offset: $told, $optimized jumps"
		[ "$(field hit) $(field no_jump)" = "$told" ] || return
		case $told/$optimized in
		"jump /1"|"breakpoint "?*/0) jumps=$((jumps + optimized)) ;;
		*) return 1 ;;
		esac
	done
	[ $jumps -gt 0 ]
}

# The first instruction after the one that ftrace may patch.
is_hit_inside() {	# FUNCTION
	for offset in $(seq 5 20); do
		ask "$1+$offset" || return
		[ "$(field result)" != 0 ] || break
	done
	cat "$output.check"
	case $(field hit) in
	jump|breakpoint) ;;
	*) return 1 ;;
	esac
}

# Others patch an instruction near the start of the function, or find it by its address.
user_is_named() {	# FUNCTION USER
	for offset in $(seq 5 300); do
		ask "$1+$offset" || return
		case $(field reason) in
		"$2"*) cat "$output.check"; return ;;
		esac
	done
	echo "$2: nowhere at the start of $1"
	return 1
}

users_are_named() {
	user_is_named security_file_open "a static branch: " || return
	user_is_named do_task_dead "the trap of a BUG" || return
	[ "$(uname -m)" != x86_64 ] || user_is_named security_file_open "a static call: " || return
	trampoline=$(static_call_trampoline)
	[ -z "$trampoline" ] || is_refused "$trampoline" EINVAL \
		"part of code that others read or patch as a whole"
}

bad_places_are_refused() {
	for place in "" + +5 $rmdir+ $rmdir+x $rmdir+0x100000000 "x $rmdir" "r +5"; do
		! ask "$place" 2>"$output.error" || { echo "'$place' is accepted"; return 1; }
		grep "Invalid argument" "$output.error" || return
	done
	! ask "$(printf '%5000s' a | tr ' ' a)" 2>"$output.error" &&
		grep "File too large" "$output.error" || return
	for place in 0x 1x "$(printf '%3000s' a | tr ' ' a)"; do
		is_refused "$place" ENOENT "no such symbol" || return
	done
}

# Of two who ask, each is answered what that one asked. An open file answers once.
each_is_answered() {
	exec 3<>$kprobes/check 4<>$kprobes/check
	echo $rmdir >&3
	echo no_such_symbol >&4
	! echo kernel_clone | cat 2>"$output.error" >&3 &&
		grep "Device or resource busy" "$output.error" &&
		grep "^symbol: $rmdir+" <&3 && grep -x "result: -ENOENT" <&4
}

# Other types of probes are only at entries.
types_are_known() {	# LETTER TYPE
	answers "$1 $rmdir" result 0 hit $entry_kind &&
		is_refused "$1 $rmdir+$insn" EINVAL "$2 probes are at functions' entries" &&
		is_refused "$1 no_such_symbol" ENOENT "no such symbol"
}

# Even root may not see them.
addresses_are_hidden() {
	restrict=/proc/sys/kernel/kptr_restrict
	set_until_exit 2 $restrict || return
	ask $rmdir
	! ask_check "0x$rmdir_address" 2>"$output.error" || return
	cat "$output.error" "$output.check"
	grep "not permitted" "$output.error" && [ $(($(field address))) = 0 ] || return
	echo 1 >$restrict
	ask "0x$rmdir_address" && grep "^address: 0x0*[1-9a-f]" "$output.check"
}

rmdir_address=$(symbol_address $rmdir)
entry_kind=$(kind_at_entry)
plan 37
check "nothing was asked" is_empty $kprobes/check
check "a function's entry is hit by ftrace" answers $rmdir result 0 hit $entry_kind entry yes \
	reason "" insns ""
check "an address is a place" answers "0x$rmdir_address" result 0 hit $entry_kind entry yes
ask $rmdir
check "and so is one that was shown" answers "$(field address)" result 0 entry yes
check "the instructions of a function are found" find_insns
check "an instruction inside is not an entry" answers "$rmdir+$insn" result 0 entry no
check "an address inside of one is refused" is_refused "$rmdir+$other" EILSEQ \
	"not at the start of an instruction"
check "its neighbours are named" neighbours_are_insns
check "also those of one inside the function's first instruction" first_insn_is_named
check "kprobe events agree" events_agree
check "a plain probe is the default" answers "k $rmdir+$insn" result 0 entry no
if has_config KRETPROBES; then
	check "it can be asked about return probes" types_are_known r return
else
	check "there are no return probes" is_refused "r $rmdir" EOPNOTSUPP \
		"the kernel has no probes of this type"
fi
if has_config JPROBES; then
	check "and about jumper probes" types_are_known j jumper
else
	check "there are no jumper probes" is_refused "j $rmdir" EOPNOTSUPP \
		"the kernel has no probes of this type"
fi
check "each open file has its own answer" each_is_answered
echo 0 >$kprobes/enabled
check "if all probes are switched off, it says so" \
	answers $rmdir result 0 hit $entry_kind no_hit enabled
echo 1 >$kprobes/enabled
if [ -e $knob ]; then
	check "there are jumps as told" jumps_are_as_told
	echo 0 >$knob
	check "if they are switched off, it says so" \
		answers "$rmdir+$insn" hit breakpoint no_jump disabled
	echo 1 >$knob
else
	skip "no CONFIG_OPTPROBES" "there are jumps as told" "if they are switched off, it says so"
fi
check_no_probe_is_left
check "nor a site" all_sites_are_freed

check "there is no such symbol" is_refused no_such_symbol ENOENT "no such symbol"
check "there is nothing at an address" is_refused 0x10 ENOENT "no symbol covers the address"
check "data is no text" is_refused init_task EINVAL \
	"no text of the kernel or of a module"
case $(uname -m) in
x86_64|i?86)
	check "entry code is refused" is_refused asm_exc_page_fault EINVAL \
		"blacklisted: entry code of the architecture"
	check "a function that must not be return-probed" is_refused "r __switch_to" EINVAL \
		"the function must not be return-probed"
	check "noinstr code is refused" is_refused exc_page_fault EINVAL "blacklisted: noinstr"
	check "a function with NOKPROBE_SYMBOL() is refused" is_refused notify_die EINVAL \
		"blacklisted: by the architecture, NOKPROBE_SYMBOL() or a module"
	check "an instruction after the jump of a static call" trampoline_is_stepped_over
	if [ "$(uname -m)" = x86_64 ]; then
		check "padding is refused" padding_has_no_insns
	else
		skip "there is no large padding" "padding is refused"
	fi
	;;
*)
	skip "these functions are of x86" "entry code is refused" \
		"a function that must not be return-probed" "noinstr code is refused" \
		"a function with NOKPROBE_SYMBOL() is refused" \
		"an instruction after the jump of a static call" \
		"padding is refused"
	;;
esac
check "one with __kprobes is refused" is_refused kprobe_busy_begin EINVAL \
	"blacklisted: __kprobes"
name="an instruction that others use is refused, and they are named"
if has_config KASAN; then
	skip "too slow with KASAN" "$name"
else
	check "$name" users_are_named
fi
load_sample
place=$sample:$(sample_thread_function)
check "a function of a module" answers "$place" result 0 hit $entry_kind
check "its name is shown with the module" grep "^symbol: .* \[$sample\]" "$output.check"
check "an instruction inside of it, whose text nobody has analysed" is_hit_inside "$place"
unload_sample
check "it is unloaded" is_refused "$place" ENOENT "no such symbol"
check "a module whose name begins with a digit" is_refused "8021q:none" ENOENT "no such symbol"
check "bad places are refused" bad_places_are_refused
check "addresses are hidden" addresses_are_hidden
