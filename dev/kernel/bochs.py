# SPDX-License-Identifier: GPL-2.0
"""Bochs as an emulator of dev/kernel/boot. It has a CPU with indirect branch tracking (IBT).

It boots a disc: there is no other way to hand it a kernel.
"""
import os
import shutil
import subprocess
import sys
from pathlib import Path

# The latter is a link into another package.
BIOS = ("/usr/share/bochs/BIOS-bochs-latest", "/usr/share/bochs/VGABIOS-lgpl-latest")

# Instructions that a CPU executes in a second of the guest, whatever the host does. As many as
# the host executes, or some timeouts of the guest would be long or short. CPUID does not say
# that the time stamp counter counts them.
MHZ = 50
MODEL = "tigerlake"
PARAMETERS = (
    # The default is 9600 bits a second, and the kernel waits for each letter.
    "console=ttyS0,115200",
    f"tsc_early_khz={MHZ * 1000}",
    # A CPU that waits for a write with MWAIT may miss that of another CPU.
    "idle=halt",
    # Retpolines are no indirect branches.
    "spectre_v2=off",
    # A missing landing pad is only a warning, for the test that leaves one out.
    "ibt=warn", "test_kprobes.ibt_warns=1",
    # CPUID and XSAVE do not agree on the size of the state: Linux 7.3 cannot execute init then.
    "noxsave",
    # Takes ten seconds, to verify the key of modules.
    "initcall_blacklist=load_system_certificate_list",
    # A triple fault ends Bochs.
    "reboot=t")
# When the guest switches off or has a triple fault, Bochs "panics".
STATUS = 1


def configuration(disc, smp, megabytes, console, verdict):
    """The configuration file of a machine."""
    return "".join(f"{line}\n" for line in (
        "config_interface: textconfig",
        'display_library: rfb, options="timeout=0"',
        # Debian's speaker needs a sound card.
        "plugin_ctrl: speaker=0",
        f"romimage: file={BIOS[0]}",
        f"vgaromimage: file={BIOS[1]}",
        f"cpu: model={MODEL}, count={smp}, ips={MHZ * 1000000}, reset_on_triple_fault=0, ignore_bad_msrs=1",
        f"memory: guest={megabytes}, host={megabytes}",
        f"ata0-master: type=cdrom, path={disc}, status=inserted",
        "ata1: enabled=0",
        "boot: cdrom",
        "clock: sync=none, time0=local",
        f"com1: enabled=1, mode=file, dev={console}",
        f"com2: enabled=1, mode=file, dev={verdict}",
        f"log: {Path(console).with_suffix('.bochs')}",
        "panic: action=fatal",
        # The kernel reads unknown registers 500 times a second.
        "error: action=ignore",
        "info: action=ignore"))


def command(directory, args, parameters, console, verdict):
    """Make the files of a machine in @directory; return the command that runs it."""
    if missing := [file for file in ("grub-mkrescue", "xorriso", "mformat", *BIOS) if not shutil.which(file, mode=os.F_OK)]:
        sys.exit(f"boot: no {missing[0]}: run dev/packages")
    files, disc = directory / "disc", directory / "disc.iso"
    (files / "boot/grub").mkdir(parents=True)
    shutil.copy(args.kernel, files / "kernel")
    shutil.copy(args.initrd, files / "initrd")
    (files / "boot/grub/grub.cfg").write_text(f"linux /kernel {parameters}\ninitrd /initrd\nboot\n")
    done = subprocess.run(["grub-mkrescue", "-o", disc, files], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"boot: grub-mkrescue failed: {done.stderr}")
    megabytes = int(args.memory[:-1]) * {"M": 1, "G": 1024}[args.memory[-1]]
    (directory / "machine").write_text(configuration(disc, args.smp, megabytes, console, verdict))
    # Debian's Bochs starts in its debugger.
    (directory / "debugger").write_text("continue\n")
    return ["bochs-bin", "-q", "-f", directory / "machine", "-rc", directory / "debugger"]
