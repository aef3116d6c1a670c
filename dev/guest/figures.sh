# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# For guests whose verdict has figures: lines "# bench: NAME VALUE".
. /guest/parts.sh
exec >&3
. ./lib.sh
. ./measure.sh

figure() {	# NAME VALUE
	echo "# bench: $1 $2"
}

show_figures() {	# [PREFIX [SUFFIX]]: of the last check
	sed -n "s/^\([a-z-]*\)\(-[0-9]*\)\{0,1\} \([0-9]*\)$/# bench: ${1-}\1${2-} \3/p" "$output"
}
