#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""Run a script of dev/guest on the reference kernel and on ours.

The reference's verdict of a RUN of SOURCES is kept in test-reports/reference, below a hash of all
that it depends on: base, configuration, compiler, the test's sources. While that is the same,
the reference is not booted. As a program: succeed if the verdicts of all these RUNs are kept.
"""
import argparse
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
TREE = REPO / "build/tree"
CONFIG = REPO / "dev/kernel/config"
KEPT = REPO / "test-reports/reference"
SOURCES = {
    "ftrace": (TREE / "tools/testing/selftests/ftrace",),
    "transcript": (REPO / "samples/kprobes/transcript", REPO / "samples/kprobes/kprobe_bench.c"),
}
HEAD = "# of "


def suffix(arch):
    return "" if arch == "x86_64" else f"-{arch}"


def depends_on(run, arch):
    """A hash of what the reference's verdict depends on; None if that cannot be known."""
    if run not in SOURCES or not (TREE / ".kprobes/base").exists():
        return None
    base = Path((TREE / ".kprobes/base").read_text().splitlines()[1].rsplit(None, 2)[0])
    if not base.is_file():
        return None
    files = [base, CONFIG / "guest.config", CONFIG / "reference.config", CONFIG / f"cross/{arch}.config",
             REPO / "dev/guest/init", REPO / "dev/guest" / run]
    for source in SOURCES[run]:
        files += sorted(file for file in source.rglob("*") if file.is_file()) if source.is_dir() else [source]
    digest = sha256(subprocess.run(["gcc", "-dumpfullversion"], capture_output=True).stdout)
    for file in files:
        if file.exists():
            digest.update(f"{file.name}\n".encode())
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


class Kept:
    """The reference's verdict, which is there already."""

    def __init__(self, run, arch):
        self.verdict = KEPT / f"{run}{suffix(arch)}"
        self.hash = depends_on(run, arch)

    def is_there(self):
        if not self.hash or not self.verdict.exists():
            return False
        with open(self.verdict) as file:
            return file.readline().strip() == HEAD + self.hash

    def keep(self):
        """It is kept."""

    def end(self):
        return self.verdict, True, []


class Boot:
    """A guest that is running."""

    def __init__(self, run, name, obj, options, kept=None):
        self.kept = kept
        log = REPO / "build/log"
        self.verdict, self.console = log / f"{name}.verdict", log / f"{name}.console"
        self.verdict.unlink(missing_ok=True)
        self.process = subprocess.Popen([REPO / "dev/kernel/boot", "--unjudged", "--obj", obj, "--name", name,
                                         *options, run],
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def end(self):
        """Wait for the end: (the verdict's file, is the boot good, the lines about it)."""
        said = self.process.communicate()[0].split("\n")
        return self.verdict, self.process.returncode == 0, [line for line in said if line]

    def keep(self):
        """Keep the verdict for the next time, if it is the reference's."""
        if self.kept and self.kept.hash:
            KEPT.mkdir(parents=True, exist_ok=True)
            self.kept.verdict.write_text(f"{HEAD}{self.kept.hash}\n"
                                         + self.verdict.read_text(errors="replace").replace("\r", ""))
            print(f"# test-reports/reference/{self.kept.verdict.name} is new")


def boot_both(run, arch, reference, ours, options):
    """The guest on the reference, or its kept verdict, and on ours; the directories can be None."""
    name, options = run.replace("/", "-"), ["--arch", arch, *options]
    kept = None if reference else Kept(run, arch)
    first = kept if kept and kept.is_there() else Boot(
        run, f"{name}-reference{suffix(arch)}", reference or REPO / f"build/obj/reference{suffix(arch)}", options, kept)
    return first, Boot(run, name + suffix(arch), ours or REPO / f"build/obj/guest{suffix(arch)}", options)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--arch", default="x86_64", help="a row of dev/kernel/machines (default: x86_64)")
    parser.add_argument("run", nargs="+", choices=SOURCES)
    args = parser.parse_args()
    return not all(Kept(run, args.arch).is_there() for run in args.run)


if __name__ == "__main__":
    sys.exit(main())
