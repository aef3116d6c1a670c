# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh disable=SC2034 # scripts that read this use what it sets
# What the shell scripts of dev/ share.

repo=$(cd "$(dirname "$0")" && until [ -e dev/lib.sh ]; do cd ..; done && pwd)
tool=${0##*/}
# What is made of 6.12 is in build itself.
[ "${BASE-}" != 6.12 ] || export BASE=
build=$repo/build${BASE:+/$BASE}
# Another python3 or make in front of Debian's may lack its modules.
export PATH="/usr/bin:$PATH"

die() { echo "$tool: $*" >&2; exit 1; }

# The help of a script that has no usage() before this: the comment at its head.
command -v usage >/dev/null || usage() {	# STATUS
	sed -n '3,${ /^#/!q; s/^# \{0,1\}//p; }' "$0"
	exit "$1"
}

# The first mirror of Debian itself in apt's sources.
mirror() {
	apt-get indextargets --format '$(REPO_URI) $(ORIGIN) $(SUITE)' 'Created-By: Packages' |
		awk '$2 == "Debian" && !/security/ { print $1; found = 1; exit } END { exit !found }' ||
		die "apt knows no mirror of Debian: run apt-get update"
}

# Read the options that the tools of dev/kernel have in common; sets $options to
# their number of words, for shift.
read_options() {	# ARGUMENT...
	arch=x86_64
	tree=$build/tree
	over=
	options=0
	while :; do
		case ${1-} in
		-h|--help) usage 0 ;;
		--arch) arch=${2-} ;;
		--tree) tree=$(realpath "${2-}") || exit ;;
		--over) over=${2-} ;;
		-*) usage 2 >&2 ;;
		*) break ;;
		esac
		[ $# -gt 1 ] || usage 2 >&2
		shift 2
		options=$((options + 2))
	done
	read_machine
}

# Read what dev/kernel/machines says of $arch.
read_machine() {
	machines=$repo/dev/kernel/machines
	row=$(grep "^$arch " "$machines") ||
		die "$arch: no such architecture; there are:" $(sed '/^#/d; s/ .*//' "$machines")
	read -r _ kernel_arch triplet image base package console verdict qemu <<-END
		$row
	END
	prefix=$triplet-
	[ "$triplet" != - ] || prefix=
}

# The kernel NAME of this architecture: $label is the name of its directory and log.
set_kernel() {	# NAME
	label=$1
	[ "$arch" = x86_64 ] || label=$1-$arch
	obj=$build/obj/$label
	case $tree$obj in
	*[[:space:]:]*) die "make cannot build a kernel where the path has a space or a colon: $repo, $tree" ;;
	esac
}

# Run make for $obj. LOCALVERSION: not the git revision of the repository around the tree.
# With ccache the debug information may name the directory of another kernel. It has no base directory:
# in relative paths, make would not find the headers that dev/check/mutants changes. Nor does it take the
# compiler's list of these, which lacks what .incbin includes: the compressed kernel.
kernel_make() {	# WORD...
	cc=${prefix}gcc
	[ -z "${LLVM-}" ] || cc=clang$LLVM
	! command -v ccache >/dev/null || cc="ccache $cc"
	CCACHE_BASEDIR='' CCACHE_NOHASHDIR=1 CCACHE_NODEPEND=1 LOCALVERSION='' make -C "$tree" O="$obj" \
		ARCH="$kernel_arch" CROSS_COMPILE="$prefix" CC="$cc" "$@"
}
