# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh disable=SC2034 # scripts that read this use what it sets
# What the selftests in shell share. The third line of a selftest is its help.
case ${1-} in
-h|--help) sed -n '3s/^# //p' "$0"; exit 0 ;;
esac
# Those of a make that runs this.
unset BASE KERNEL_SRC MAKEFLAGS GNUMAKEFLAGS MAKEFILES MFLAGS MAKEOVERRIDES
dev=$(cd "$(dirname "$0")/.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
n=0
wrong=0

# One test; $tmp/out says why it failed.
result() {	# NAME STATUS
	n=$((n + 1))
	if [ "$2" = 0 ]; then
		echo "ok $n $1"
	else
		wrong=1
		[ ! -e "$tmp/out" ] || sed 's/^/# /' "$tmp/out"
		echo "not ok $n $1"
	fi
}

# One test: a command succeeds.
check() {	# NAME COMMAND...
	name=$1
	shift
	"$@"
	result "$name" $?
}

# One test: a text is the expected one.
is() {	# NAME TEXT EXPECTED
	if [ "$2" = "$3" ]; then
		result "$1" 0
	else
		printf '# got:      %s\n# expected: %s\n' "$2" "$3"
		result "$1" 1
	fi
}

end() {
	echo "1..$n"
	exit $wrong
}
