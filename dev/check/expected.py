# SPDX-License-Identifier: GPL-2.0
"""The expected skips, failures and kernel warnings of each boot.

The file has sections "[BOOT...]" for the boots of these names, with the wildcards of fnmatch, or
"[BASE/BOOT...]" for those of one kernel, each with one expectation a line:

    skip NAME # REASON      the test is skipped
    skip * # REASON         tests are skipped, with exactly this reason
    may-skip NAME # REASON  the test is skipped in some runs
    xfail NAME # REASON     the test fails (a result with XFAIL or TODO)
    warning REGEX           the kernel prints, once, a warning whose head matches
    warnings REGEX          the kernel prints that more than once
    may-warn REGEX # REASON the kernel prints, in some runs, this one line, or a warning whose head
                            matches

NAME is the test's name after the names of the enclosing tests, separated by slashes.
A result that no expectation covers is an error, and so is an expectation, other than
may-skip and may-warn, without its result.
"""
import re
from fnmatch import fnmatchcase
from pathlib import Path

from report import BASE, entries

FILE = Path(__file__).resolve().parents[1] / "guest/expected"
SECTION = re.compile(r"\[(.+)\]")
EXPECTATION = re.compile(r"(?:(skip|may-skip|xfail) (.+?)|may-warn (\S.*?)) # (\S.*)|(warnings?) (\S.*)")


class Expected:
    """The expectations for one boot, or, without a name, for all."""

    def __init__(self, file, boot=None):
        self.tests = {}         # {name: (kind, reason)}
        self.reasons = set()    # for which any test is skipped
        self.may_skip = set()   # names
        self.warnings = []
        self.repeated = []      # may come again
        self.lines = []         # of may-warn
        here = False
        for where, line in entries(file):
            if match := SECTION.fullmatch(line):
                here = boot is None or any(fnmatchcase(name, pattern) for pattern in match[1].split()
                                           for name in (boot, f"{BASE}/{boot}"))
                continue
            if not (match := EXPECTATION.fullmatch(line)):
                raise SystemExit(f"{where}: not an expectation: {line}")
            if not here:
                continue
            kind, name, allowed, reason, warns, regex = match.groups()
            if kind == "skip" and name == "*":
                self.reasons.add(reason)
            elif kind:
                self.tests[name] = kind, reason
                self.may_skip.update([name] if kind == "may-skip" else [])
            elif allowed:
                self.lines.append(re.compile(allowed))
            else:
                self.warnings += [re.compile(regex)] * (1 + (warns == "warnings"))
                self.repeated += [re.compile(regex)] if warns == "warnings" else []

    def without_allowed(self, lines):
        """The lines that are not those of may-warn; one in the head of a warning stays."""
        return [line for before, line in zip(["", *lines], lines)
                if "[ cut here ]" in before or not any(regex.fullmatch(line) for regex in self.lines)]

    def unmet(self, seen):
        """Compare with seen, [(kind, name, reason)]; return one line for each difference."""
        wrong = []
        for kind, name, reason in seen:
            if kind == "skip" and reason in self.reasons:
                continue
            if self.tests.get(name, ("",))[0] not in (kind, f"may-{kind}"):
                wrong.append(f"unexpected: {kind} {name} # {reason or 'no reason given'}")
        there = {(kind, name) for kind, name, _ in seen}
        for name, (kind, reason) in self.tests.items():
            if not kind.startswith("may-") and (kind, name) not in there:
                wrong.append(f"expected, but missing: {kind} {name} # {reason}")
        for reason in sorted(self.reasons - {reason for kind, _, reason in seen if kind == "skip"}):
            wrong.append(f"expected, but missing: skip * # {reason}")
        return wrong
