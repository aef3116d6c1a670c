# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh disable=SC2154 # sourced by tools

trace() {	# SECONDS PROGRAM [OPTION...]
	limit=$1
	program=$2
	shift 2
	timeout "$limit" bpftrace "$@" -e "$program" >"$said" 2>&1
}

fails() {	# FUNCTION: a probe there; a program that was traced would run into its limit
	[ "$1" ] || return
	trace 100 "kprobe:$1 { exit(); }"
	status=$?
	echo "status $status"
	[ $status != 0 ] && [ $status != 124 ] && said "^ERROR: Error attaching probe: kprobe:$1\$"
}

# Where ftrace, and so bpftrace, would allow a probe.
traced_and_blacklisted() {
	awk 'NR == FNR { traced[$1] = NF == 1; next }
		traced[$2] && $2 !~ /[.]/ { print $2; exit }' \
		$tracing/available_filter_functions $kprobes/blacklist
}

# How many calls the histogram has.
timed_calls() {
	sed -n 's/^\[[^)]*) *\([0-9]*\) |.*/\1/p' "$said" | awk '{ sum += $1 } END { print +sum }'
}

inside=$(place_inside vfs_rmdir)
trace 200 '
	kprobe:'"$rmdir"' /comm == "rmdir"/ {
		printf("entry %s, %s, %d\n", func, comm, (int32)arg0);
		printf("name %s\n", str(((struct filename *)arg1)->name));
	}
	kprobe:vfs_rmdir /comm == "rmdir"/ {
		printf("dentry %s\n", str(((struct dentry *)arg2)->d_name.name));
		printf("stack of entry%s\n", kstack(3));
	}
	kprobe:'"$inside"' /comm == "rmdir"/ {
		printf("inside %s\n", func);
		printf("stack of inside%s\n", kstack(3));
	}
	kretprobe:vfs_rmdir /comm == "rmdir"/ {
		printf("return %s, %d\n", func, (int32)retval);
		printf("stack of return%s\n", kstack(3));
	}
	kretprobe:'"$rmdir"' /comm == "rmdir"/ {
		printf("outer return %d\n", (int32)retval);
	}' -c "$call"
check "bpftrace: a program with five probes" said "Attaching 5 probes"
check "bpftrace: an entry, its function, its task, an argument" said "^entry $rmdir, rmdir, -100$"
check "bpftrace: a string that an argument leads to" said "^name $full$"
check "bpftrace: a field of a structure" said "^dentry ${full##*/}$"
check "bpftrace: the stack of an entry" said_stack "stack of entry" vfs_rmdir $rmdir __x64_sys_rmdir
check "bpftrace: a hit inside the function" said "^inside vfs_rmdir$"
check "bpftrace: its stack" said_stack "stack of inside" vfs_rmdir $rmdir __x64_sys_rmdir
check "bpftrace: a return, its function and value" said "^return vfs_rmdir, -39$"
check "bpftrace: the stack of a return" said_stack "stack of return" $rmdir __x64_sys_rmdir
check "bpftrace: another function's return" said "^outer return -39$"

trace 200 '
	kprobe:vfs_rmdir /comm == "rmdir"/ { @calls = count(); @start[tid] = nsecs; }
	kretprobe:vfs_rmdir /@start[tid]/ {
		@returns[(int32)retval] = count();
		@ns = hist(nsecs - @start[tid]);
		delete(@start[tid]);
	}' -c "$three_calls"
check "bpftrace: calls are counted" said "^@calls: 3$"
check "bpftrace: returns are counted, by value" said "^@returns\[-39\]: 3$"
check "bpftrace: the time of each call" is "$(timed_calls)" 3

trace 200 '
	kprobe:vfs_rmdir /comm == "rmdir"/ { @first = count(); }
	kprobe:vfs_rmdir /comm == "rmdir"/ { @second = count(); }
	kretprobe:vfs_rmdir /comm == "rmdir"/ { @third = count(); }' -c "$call"
check "bpftrace: three probes at a function" \
	is "$(grep -cE '^@(first|second|third): 1$' "$said")" 3

bpftrace -l 'kprobe:vfs_*' >"$said" 2>&1
check "bpftrace: functions are listed" said "^kprobe:vfs_rmdir$"
trace 200 'kprobe:vfs_* /comm == "rmdir"/ { @[func] = count(); }' -c "$call"
check "bpftrace: a wildcard" said "^@\[vfs_rmdir\]: 1$"
check "bpftrace: there is no such function" fails no_such_function
check "bpftrace: a blacklisted function is refused" fails "$(traced_and_blacklisted)"

# Functions that are probed one by one, through perf events.
attach() {	# NUMBER
	{
		echo 'config = { missing_probes = "error" }'
		awk -v n="$1" -v hot="$hot" '
			FILENAME ~ "blacklist" { symbols[$2] = 1; next }
			FILENAME ~ "kallsyms" { symbols[$3]++; next }
			NF == 1 && symbols[$1] == 1 && $1 !~ hot && $1 !~ /[.]/ && $1 != "vfs_rmdir" {
				printf "kprobe:%s,\n", $1
				if (++found == n) exit
			}' $kprobes/blacklist /proc/kallsyms $tracing/available_filter_functions
		echo 'kprobe:vfs_rmdir /comm == "rmdir"/ { @[func] = count(); }'
	} >"$output.bt"
	BPFTRACE_MAX_PROBES=10000 BPFTRACE_MAX_BPF_PROGS=10000 timeout 1500 bpftrace \
		--no-feature kprobe_multi -c "$call" "$output.bt" >"$said" 2>&1
}

are_attached() {	# NUMBER
	said "^Attaching $(($1 + 1)) probes" && said "^@\[vfs_rmdir\]: 1$" &&
		! grep -i warning "$said"
}

# Functions that this machine calls all the time, or that bpftrace itself needs.
hot='^(__?bpf|bpf_|rcu_|ct_|_raw|sched|perf_|__perf)'
for number in 50 500 5000; do
	attach $number
	check "bpftrace: $number probes, one by one" are_attached $number
done
