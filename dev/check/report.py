# SPDX-License-Identifier: GPL-2.0
"""What the checks share: where all is, load a program of dev/, run others, print results as KTAP."""
import fcntl
import os
import re
import subprocess
import sys
from collections import namedtuple
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "tree"))
from overlay import BASE, BUILD, DEFAULT, REPO, argument_parser, entries

CPUS = len(os.sched_getaffinity(0))     # that this program may use

# A line of a list; optional: it need not match anything.
Rule = namedtuple("Rule", "where optional regex reason")


def load(program):
    """A program of dev/, as a module."""
    loader = SourceFileLoader(Path(program).name, str(Path(__file__).parents[1] / program))
    module = module_from_spec(spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def read_rules(file):
    """The lines "REGEX # REASON" of a list, or "? REGEX # REASON"."""
    found = []
    for where, line in entries(file):
        optional, regex, reason = re.fullmatch(r"(\? )?(.*?)(?: # (.*))?", line).groups()
        if not reason:
            fail(f"{where}: no reason: REGEX # REASON")
        try:
            found.append(Rule(where, bool(optional), re.compile(regex), reason))
        except re.error as error:
            fail(f"{where}: {error}")
    return found


def lines_of(file):
    """The lines that a guest has written to a file; the last one is what stands after the last line feed."""
    return file.read_text(errors="replace").replace("\r", "").replace("\0", "").split("\n") if file.exists() else []


def replace(file, text):
    """Write a file, which others see as a whole or as it was."""
    new = file.with_suffix(".new")
    new.write_text(text)
    new.rename(file)


def claim(file, refusal):
    """Open the file and lock it; end with the refusal if another program has done so."""
    claimed = open(file, "a")
    try:
        fcntl.flock(claimed, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit(refusal)
    return claimed


def fail(text):
    """The check is not possible."""
    print(f"{Path(sys.argv[0]).name}: {text}", file=sys.stderr)
    sys.exit(2)


def run(*command, **options):
    """The output of a command that must succeed."""
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, **options)
    except FileNotFoundError:
        fail(f"no {command[0]}: run dev/packages")
    if done.returncode:
        fail(f"{' '.join(map(str, command))} failed")
    return done.stdout


def attempt(*command, cwd=REPO, env=None):
    """(the exit status of a command that may fail, the lines of its output)"""
    done = subprocess.run(command, cwd=cwd, env=env, text=True, errors="replace",
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return done.returncode, done.stdout.splitlines()


class Report:
    def __init__(self, planned=None, width=0):
        """planned: the number of results, if it is known; width: of "ok NUMBER"."""
        self.count = self.bad = 0
        self.planned, self.width = planned, width
        print("KTAP version 1" + (f"\n1..{planned}" if planned is not None else ""), flush=True)

    def result(self, good, name, notes=()):
        self.count += 1
        self.bad += not good
        print("".join(note + "\n" if note.startswith("# ") else f"# {note}\n" for note in notes), end="")
        print(f"{'ok' if good else 'not ok'} {self.count}".ljust(self.width), name, flush=True)

    def end(self):
        """True if a result is bad."""
        if self.planned is None:
            print(f"1..{self.count}")
        return bool(self.bad)
