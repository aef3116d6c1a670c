# SPDX-License-Identifier: GPL-2.0
# The front door: see `make help`.

# The base: one of the directories in hooks/, by default that of KERNEL_SRC. What is made of 6.12 is
# in build/ itself.
ifeq ($(origin BASE)$(if $(KERNEL_SRC),,none),undefined)
BASE := $(shell dev/tree/make --base "$(KERNEL_SRC)" --which 2>/dev/null)
endif
override BASE := $(filter-out 6.12,$(BASE))
BUILD = build$(BASE:%=/%)
# Where the kernel tree is made, and from what (empty: Debian's linux-source of the base).
DEST ?= $(BUILD)/tree
KERNEL_SRC ?=
# What the random input of tests follows from: the commit.
SEED ?= $(shell printf %d 0x$$(git rev-parse HEAD 2>/dev/null | cut -c -7) 2>/dev/null)
export BASE KERNEL_SRC ACCEL JOBS SEED

help:
	@echo 'make run           build the kernel, boot it, watch a probe at work'
	@echo 'make test          all that CI runs, on both kernels: 40 minutes; LIMIT=75: 7.3 only if there is time'
	@echo 'make shell         a shell in the booted guest (Ctrl-A x leaves)'
	@echo 'make build         the kernel, its modules and the initramfs, in build/obj/guest'
	@echo 'make reference     the base with its own kprobes, in build/obj/reference'
	@echo 'make test-i386     kprobes on i386: build, boot, compare (45 minutes the first time)'
	@echo 'make ftrace        the kernel'"'"'s own tests of tracing, on that and on ours'
	@echo 'make kselftest     our selftests as the kernel installs and runs them, on both: 15 minutes'
	@echo 'make kunit         our KUnit tests by kunit.py: 10 minutes, the first time'
	@echo 'make bench         both measured, side by side: 10 minutes'
	@echo 'make tree          the kernel tree only, in build/tree'
	@echo 'make torture       probes under load for MINUTES=60; DEBUG=1: with sanitizers'
	@echo 'make smp           CPUs that run at the same time: KUnit, clients, torture for MINUTES=5, on 2 and 4'
	@echo 'make sweep         all instructions of the kernel are probed (3 hours); SHARE=1/50: 5 minutes; ROUNDS=pre,suspend-jumps or kexec'
	@echo 'make copies        slot, emulation and detour of each instruction, compared with it (7 minutes)'
	@echo 'make mutants       do the tests notice one wrong line? 160 times: two hours; SEED=, NUMBER=; NAMED=1: those that must be noticed'
	@echo 'make ibt           KUnit on a CPU with indirect branch tracking, which Bochs emulates (an hour)'
	@echo 'make kcsan         data races: KUnit, selftests, torture for MINUTES=10 (50 minutes)'
	@echo 'make modes         jumps in kernels that are preempted or compiled in other ways'
	@echo 'make configs       compile our files in 30 other configurations: 15 minutes'
	@echo 'make hitpath       can anything on the path of a hit be probed? On both kernels, also i386, and with Xen and cpuidle: an hour'
	@echo 'make tools         bpftrace, bcc, perf, SystemTap of Debian 13, on its own kernel and on ours (90 minutes)'
	@echo 'make deb           packages with Debian'"'"'s configuration (hours); LSMOD=/proc/modules: of what this machine needs'
	@echo 'make coverage      which lines the tests reach: 30 minutes'
	@echo 'make evidence      are the reports in bench/ and test-reports/ of this code? RUN="torture kcsan": make them anew'
	@echo 'make transcript    what callers of the API see, compared with the reference'
	@echo 'make harness-test  does the harness see a guest that panics, hangs, fails?'
	@echo 'make lint          checkpatch, kernel-doc, sparse, compiler warnings'
	@echo 'make cross         kprobes on arm64 and riscv64: build, boot, KUnit (15 minutes)'
	@echo 'make series        the patch series, in build/series'
	@echo 'make series-check  build each step of it, with kprobes, and boot every fifth (1 to 2 hours)'
	@echo 'make clean         remove build/'
	@echo
	@echo 'DEST=dir           with tree: make it there'
	@echo 'BASE=7.3           the kernel, instead of 6.12; all that is made of it is in build/7.3'
	@echo 'KERNEL_SRC=base    a directory or tarball of it, instead of Debian'"'"'s linux-source'
	@echo 'JOBS=n ACCEL=kvm   compilers at once; what QEMU runs on'
	@echo 'SEED=n             what the random input of tests follows from, instead of the commit'

packages:
	@dev/packages $(BASE:%=--base %) $(PACKAGES)

tree: packages
	@dev/tree/make --base "$(KERNEL_SRC)" "$(DEST)"

# Everything but `make tree DEST=` works on $(BUILD)/tree.
build: packages
	@dev/tree/make
	@dev/kernel/build guest
	@dev/kernel/initramfs guest

run: build
	@dev/kernel/boot --show run
	@echo 'run: the probe worked, nothing else broke. Next: make shell, make test'

reference: build
	@dev/kernel/reference

ftrace: reference
	@dev/check/compare ftrace

kselftest: reference
	@dev/kernel/boot --usual 400 kselftest
	@dev/kernel/boot --usual 400 --obj reference --name kselftest-reference kselftest

comma := ,

# With what only x86 has, over the configuration that is beside the tests.
kunit: tree
	@$(BUILD)/tree/tools/testing/kunit/kunit.py run --arch x86_64 --build_dir $(CURDIR)/$(BUILD)/obj/kunit \
		--kunitconfig lib/test_kprobes --kconfig_add CONFIG_X86_KPROBES_KUNIT_TEST=y --kconfig_add CONFIG_JPROBES=y \
		--make_options 'CC=ccache gcc' --jobs $(or $(JOBS),$(shell nproc)) --timeout 1200 --kernel_args no_timer_check \
		--qemu_args '-smp 2 -cpu max -accel $(or $(ACCEL),tcg$(comma)thread=single)'

bench: PACKAGES = --plots
bench: reference
	@dev/measure/bench

# Only the modules of LSMOD=, if it is given; without debug information.
deb: PACKAGES = --debian
deb: tree
	@LSMOD='$(LSMOD)' DEB_BUILD_PROFILES=pkg.linux-upstream.nokerneldbg dev/kernel/deb debian
	@echo "deb: install them by: apt install $(CURDIR)/$(BUILD)/deb/debian/*.deb"

# Debian 13 with its own kernel, and with ours installed as a package.
disks: PACKAGES = --debian
disks: tree
	@[ "$$(id -u)" = 0 ] || { echo 'disks: must run as root, to install packages in a disk' >&2; exit 1; }
	@LSMOD=dev/kernel/config/disk.modules dev/kernel/deb debian-disk
	@dev/kernel/initramfs debian-disk
	@dev/kernel/disk debian-disk
	@dev/kernel/disk stock debian-disk

tools: disks
	@dev/check/compare --reference stock --ours debian-disk tools \
		--disk --memory 8G --usual 1800 --silence 1200

shell: build
	@dev/kernel/boot shell

test: packages
	@dev/test $(LIMIT:%=--limit %)

test-i386: PACKAGES = --i386
test-i386: packages
	@dev/test --suite i386

harness-test: build
	@dev/selftest/harness

lint: build
	@dev/check/lint

# Each line "? ..." of hitpath.list is needed in one of these kernels, the others in each.
hitpath: PACKAGES = --i386
hitpath: override BASE =
hitpath: build
	@dev/kernel/build paths vmlinux
	@dev/kernel/build --arch i386 guest vmlinux
	@KERNEL_SRC= dev/packages --base 7.3
	@BASE=7.3 KERNEL_SRC= dev/tree/make
	@BASE=7.3 dev/kernel/build guest
	@BASE=7.3 dev/kernel/build paths vmlinux
	@BASE=7.3 dev/kernel/build --arch i386 guest vmlinux
	@dev/check/hitpath guest paths guest-i386 7.3/guest 7.3/paths 7.3/guest-i386

coverage: build
	@dev/check/coverage

evidence:
	@dev/check/evidence $(RUN)

transcript: reference
	@dev/check/transcript

torture: minutes = $(or $(MINUTES),60)
TORTURE = dev/kernel/boot --parallel --show --usual $$(($(minutes) * 60 + 120)) --append kp.minutes=$(minutes)

# Leave the host alone meanwhile. If it stops a CPU of QEMU in the midst of a store, another one may
# translate the text as it was, and execute for ever a breakpoint that memory no longer has: the
# guest stands still then, with interrupts off.
torture smp: PACKAGES = --qemu
torture: build
ifdef DEBUG
	@dev/kernel/build debug
	@dev/kernel/initramfs debug
	@$(TORTURE) --obj debug --memory 3G --name torture-debug torture
else
	@$(TORTURE) torture
endif

smp: minutes = $(or $(MINUTES),5)
smp: build
	@$(TORTURE) --smp 2 --name smp-2 smp
	@$(TORTURE) --smp 4 --name smp-4 smp

SWEEP = dev/kernel/boot --initrd initramfs-share.cpio --usual 6000 --memory 2G --show

sweep: PACKAGES = --kexec
sweep: build
	@SHARE=$(or $(SHARE),1) dev/kernel/initramfs guest
ifneq ($(ROUNDS),kexec)
	@$(SWEEP) --silence 2400 --name sweep$(ROUNDS:%=-%) $(ROUNDS:%=--append kp.rounds=%) sweep
endif
ifeq ($(ROUNDS:kexec=),)
	@$(SWEEP) kexec
endif

copies: build
	@dev/kernel/boot --usual 600 --show --name copies \
		--append "kunit.filter_glob=kprobes_x86_copies copies_test.share=1" one-suite

# All that a mutant needs is in a kernel of its own.
mutants: tree
	@dev/kernel/build mutants
	@dev/kernel/initramfs mutants
	@dev/check/mutants $(NAMED:%=--named)

# More watches than by default. Two CPUs of QEMU take turns, and change at the PAUSE of a delay,
# which there is only with a TSC.
kcsan: minutes = $(or $(MINUTES),10)
kcsan: build
	@dev/kernel/build kcsan
	@dev/kernel/initramfs kcsan
	@dev/kernel/boot --obj kcsan --memory 2G --usual $$(($(minutes) * 60 + 900)) \
		--append "kp.minutes=$(minutes) tsc_early_khz=1000000 tsc=reliable kcsan.skip_watch=1000 kcsan.udelay_interrupt=80" kcsan

# A suite of jumps is only in the kernel with built-in tests.
ibt: build
	@dev/kernel/build builtin
	@dev/kernel/initramfs builtin
	@dev/kernel/boot --emulator bochs --obj builtin --usual 600 --silence 900 --name ibt-kgdb \
		--append "kunit.filter_glob=optprobes-x86-kgdb kp.suites=booted" ibt
	@dev/kernel/boot --emulator bochs --usual 3600 --silence 1800 --name ibt-all --append kp.suites=all ibt

modes: PACKAGES = --clang
modes: packages
	@dev/test --suite modes

configs: PACKAGES = --clang
configs: build
	@dev/check/configs $(CONFIGS)

cross: tree
	@dev/kernel/cross

series: tree
	@dev/tree/series

series-check: series
	@dev/tree/series --build

clean:
	rm -rf build

.PHONY: help packages tree build run reference ftrace kselftest kunit bench deb disks tools
.PHONY: shell test test-i386 harness-test lint hitpath coverage evidence transcript
.PHONY: torture smp sweep copies mutants kcsan ibt modes configs cross series series-check clean
