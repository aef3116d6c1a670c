#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Run a script of dev/guest on the reference kernel and on ours.

The reference's verdict of a RUN of KEPT is kept in test-reports/reference, or the directory $BASE of
that, below a hash of base, configuration, compiler, emulator, the test's sources and options. While
that is the same, the reference is not booted. As a program: succeed if all these RUNs are kept.
"""
import os
import subprocess
import sys
from hashlib import sha256

from report import BUILD, REPO, argument_parser, lines_of, replace, run as output
import overlay

TREE = BUILD / "tree"
MODULES = REPO / "tools/testing/selftests/kprobes/test_modules"
REPORTS = REPO / "test-reports/reference" / BUILD.relative_to(REPO / "build")
# {RUN: (options of dev/kernel/boot, sources of the test)}
KEPT = {
    "ftrace": (["--startup-tests", "--usual", "300"], (TREE / "tools/testing/selftests/ftrace", TREE / ".kprobes/test_kprobes.c")),
    "transcript": (["--usual", "120", "--append", "log_buf_len=8M"],
                   (MODULES / "transcript", MODULES / "kprobe_bench.c")),
}
HEAD = "# of "


def suffix(arch):
    return "" if arch == "x86_64" else f"-{arch}"


def depends_on(run, arch):
    """What the reference's verdict depends on: a hash, the configuration, and files; no hash if it cannot be known."""
    if run not in KEPT or not (TREE / ".kprobes/base").exists() or not (base := overlay.record(TREE)[1]).is_file():
        return None, b"", []
    options, sources = KEPT[run]
    files = [base, REPO / "dev/guest/init", REPO / "dev/guest" / run, REPO / "dev/kernel/machines"]
    for source in sources:
        files += sorted(file for file in source.rglob("*") if file.is_file()) if source.is_dir() else [source]
    digest = sha256(" ".join(options).encode())
    digest.update(os.environ.get("ACCEL", "").encode())
    for program in "gcc" if arch == "x86_64" else "i686-linux-gnu-gcc", f"qemu-system-{arch}":
        digest.update(output(program, "--version"))
    digest.update(configuration := output(REPO / "dev/kernel/configure", "--show", "--arch", arch, "reference"))
    for file in files:
        digest.update(f"{file.name}\n".encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16], configuration, files


class Kept:
    """The reference's verdict, which may be there already."""

    def __init__(self, run, arch):
        self.verdict = REPORTS / f"{run}{suffix(arch)}"
        self.initrd = BUILD / f"obj/reference{suffix(arch)}/initramfs.cpio"
        self.hash, self.configuration, self.files = depends_on(run, arch)

    def is_there(self):
        return self.hash and lines_of(self.verdict)[:1] == [HEAD + self.hash]

    def keep(self, verdict):
        """Keep this verdict for the next time, if the guest was built of this base and of today's sources."""
        built = self.initrd.stat().st_mtime
        if self.hash and all(file.stat().st_mtime < built for file in self.files) and \
                self.initrd.with_name(".made_of").read_bytes() == (TREE / ".kprobes/base").read_bytes() + self.configuration:
            REPORTS.mkdir(parents=True, exist_ok=True)
            lines = [line for line in lines_of(verdict) if not line.startswith("# uptime ")]
            replace(self.verdict, f"{HEAD}{self.hash}\n" + "\n".join(lines))
            print(f"# test-reports/reference/{self.verdict.name} is new")


class Guest:
    """A verdict, and the guest that is to write it, if it is not there already."""

    def __init__(self, verdict, *command):
        self.verdict = verdict
        self.process = command and subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def end(self):
        """Wait for the end: (is the boot good, the lines about it)."""
        said = self.process.communicate()[0] if self.process else ""
        return not self.process or self.process.returncode == 0, list(filter(None, said.split("\n")))


def boot_both(run, arch, reference, ours, options):
    """The guest on the reference, or its kept verdict, and on ours; the directories can be None."""
    def boot(name, obj):
        name = run.replace("/", "-") + name + suffix(arch)
        return Guest(BUILD / f"log/{name}.verdict", REPO / "dev/kernel/boot", "--unjudged", "--obj", obj, "--name", name,
                     "--arch", arch, *KEPT.get(run, ([],))[0], *options, run)

    kept = None if reference or options else Kept(run, arch)
    first = Guest(kept.verdict) if kept and kept.is_there() else boot("-reference", reference or f"reference{suffix(arch)}")
    return first, boot("", ours or f"guest{suffix(arch)}"), kept


def verdicts(report, read, first, second, kept=None):
    """What read() makes of the verdicts of the reference and of ours, and report whether they are complete."""
    found = []
    for who, guest in ("reference", first), ("ours", second):
        good, said = guest.end()
        found.append(read(guest.verdict))
        report.result(good and found[-1].complete, f"{who}: it ran to its end", said)
    if kept and first.process and not report.bad:
        kept.keep(first.verdict)
    return found


def main():
    parser = argument_parser()
    parser.add_argument("--arch", default="x86_64", help="a row of dev/kernel/machines (default: x86_64)")
    parser.add_argument("run", nargs="+", choices=KEPT)
    args = parser.parse_args()
    return not all(Kept(run, args.arch).is_there() for run in args.run)


if __name__ == "__main__":
    sys.exit(main())
