# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=sh
# A workload that executes many parts of the kernel, for tests with many probes.

# Run all parts. Each command of a part must succeed.
workload() {
	dir=$(mktemp -d)
	for part in processes files pipes sockets modules mounts keys reads; do
		# A shell of its own: callers use this in conditions, where set -e has no effect.
		tracing=$tracing sh -exc '. ./workload.sh; cd "$1"; "run_$2"' \
			sh "$dir" "$part" >"$output.log" 2>&1
		part_status=$?
		[ $part_status = 0 ] || { tail -n 8 "$output.log"; break; }
	done
	rm -r "$dir"
	return "$part_status"
}

run_processes() {
	for i in 1 2 3 4 5 6 7 8; do
		/bin/true
		[ "$(/bin/sh -c "exec /bin/echo $i")" = "$i" ]
	done
	sleep 1000 &
	kill -STOP $!
	kill -CONT $!
	kill $!
	wait $! && exit 1
	taskset 1 /bin/sh -c ulimit
	timeout 5 /bin/sh -c 'sleep 0.05 & wait'
}

run_files() {
	seq 1 3000 >a
	cp a b
	mv b c
	ln c d
	ln -s c e
	cat a >>d
	[ "$(sort -n e | wc -l)" = 6000 ]
	truncate -s 100 c
	dd if=/dev/zero of=f bs=4k count=64 conv=fsync
	gzip -c a | gunzip -c | cmp - a
	tar cf g a c d e
	mkdir h
	tar xf g -C h
	cmp h/a a
	chmod 600 a
	touch a
	find . -newer b || true
	sync
}

run_pipes() {
	mkfifo p
	seq 1 5000 >p &
	[ "$(sort -rn p | head -n 1)" = 5000 ]
	wait
	[ "$(dd if=/dev/zero bs=1k count=200 | cat | wc -c)" = 204800 ]
	yes | head -n 1000 | cat >/dev/null
}

run_sockets() {
	[ -e /proc/net ] || return 0	# a kernel without a network
	for tool in ifconfig nc httpd wget ping; do
		command -v $tool || return 0
	done
	ifconfig lo 127.0.0.1 up
	seq 1 3000 >file
	timeout 60 nc -l -p 4711 <file >got &
	for i in 1 2 3 4 5 6 7 8 9 10; do
		! nc -w 5 127.0.0.1 4711 <file >seen || break
		sleep 0.1
	done
	wait
	cmp seen file
	httpd -f -p 127.0.0.1:4712 -h . &
	server=$!
	for i in 1 2 3 4 5 6 7 8 9 10; do
		! wget -q -O web http://127.0.0.1:4712/file || break
		sleep 0.1
	done
	kill $server
	cmp web file
	ping -c 2 -i 0.1 127.0.0.1 || ping -c 1 127.0.0.1
}

run_modules() {
	modprobe trace-events-sample
	grep trace_events_sample /proc/modules
	rmmod trace-events-sample
}

run_mounts() {
	mkdir m
	mount -t tmpfs none m
	seq 1 100 >m/file
	mount -o remount,size=1m m
	dd if=/dev/zero of=m/full bs=64k count=32 && exit 1
	umount m
	[ ! -e m/file ]
}

# Each tracepoint has a jump label, whose text is patched next to probed instructions.
run_keys() {
	for system in sched timer irq syscalls skb sock kmem; do
		! [ -e $tracing/events/$system/enable ] || echo 1 >$tracing/events/$system/enable
	done
	/bin/true
	for system in sched timer irq syscalls skb sock kmem; do
		! [ -e $tracing/events/$system/enable ] || echo 0 >$tracing/events/$system/enable
	done
}

# Some of these files cannot be read.
run_reads() {
	for file in /proc/[a-z]* /proc/self/* /proc/sys/kernel/*; do
		[ "$file" != /proc/kmsg ] && [ -f "$file" ] || continue
		timeout 10 head -c 100000 "$file" >/dev/null || true
	done
	find /sys/module /sys/devices/system /sys/kernel/mm -type f -perm -400 | head -n 150 |
		while read -r file; do head -c 4096 "$file" >/dev/null || true; done
	grep -q ' T vfs_read$' /proc/kallsyms
	ps
	dmesg | tail -n 5
}
