# SPDX-License-Identifier: GPL-2.0
"""Count KTAP results: what failed and why, then "N passed, N failed, N skipped".

Only leaves count: the result line that closes a nested test counts only when it
is "not ok" and none of its parts is, or when it has no parts. A plan (1..N) with
another number of results, a second plan, one of no tests without a reason, and a
"Bail out!" count as failures. With the expectations of a boot, so
does each skip and each expected failure (SKIP, XFAIL, TODO) that dev/guest/expected does not list
for it, and each that it lists and that is missing.
"""
# Why not tools/testing/kunit/kunit_parser.py: in 6.12 it does not return when a plan stands after the
# results, as in selftests, counts an XFAIL as failed, and discards the reason of a SKIP.
import re
from collections import Counter

RESULT = re.compile(r"( *)(not )?ok\b *(\d+)? *(?:- )?(.*?)(?: *(?<!\\)# *(SKIP|TODO|XFAIL)\b(.*))?$", re.I)
PLAN = re.compile(r"( *)1\.\.(\d+)(?: *# *SKIP\b *(.*))?", re.I)
VERSION = re.compile(r"( *)K?TAP version \d+")


class Level:
    """The results at one indentation, up to the line that closes them."""

    def __init__(self, indent):
        self.indent = indent
        self.plan = self.why_skipped = None
        self.seen = 0
        self.results = []       # of leaves: (kind, name, reason)


class Count:
    def __init__(self):
        self.failures = []      # (name, the lines that say why)
        self.results = []       # (kind, name after the names of the enclosing tests, reason)

    def read(self, lines, where):
        """Add the results of one KTAP stream."""
        levels, notes = [Level(0)], []
        for line in lines:
            line = line.rstrip()
            if match := RESULT.match(line):
                self.result(levels, match, notes)
                notes = []
            elif match := PLAN.match(line):
                level = self.level(levels, len(match[1]), "")
                if level.plan is not None:
                    self.fail(levels, f"{where}: a second plan: {line.strip()}", notes)
                level.plan, level.why_skipped = int(match[2]), match[3]
            elif match := VERSION.match(line):
                earlier = self.close(levels, len(match[1]), where)
                levels.append(Level(len(match[1])))
                levels[-1].results += earlier
            elif line.lstrip().startswith("Bail out!"):
                self.fail(levels, line.strip(), notes)
            elif line.lstrip(" ").startswith("#"):
                notes.append(line.strip())
        self.results += self.close(levels, 0, where)

    def result(self, levels, match, notes):
        indent, bad, number, name, directive, reason = match.groups()
        name = name or number or "(no name)"
        why_skipped = levels[-1].why_skipped if levels[-1].indent > len(indent) else None
        parts = self.close(levels, len(indent) + 1, name)
        level = self.level(levels, len(indent), name)
        level.seen += 1
        if bad and not directive and not any(kind == "fail" for kind, *_ in parts):
            self.fail(levels, name, notes)
        elif not parts:
            kind = {"": "pass", "SKIP": "skip"}.get((directive or "").upper(), "xfail")
            level.results.append((kind, name, directive and (reason.strip() or why_skipped)))
        level.results += [(kind, below(name, part), why) for kind, part, why in parts]

    def fail(self, levels, name, notes):
        levels[-1].results.append(("fail", name, ""))
        self.failures.append((name, notes[-12:]))

    def level(self, levels, indent, name):
        """The open level at this indentation, opened if need be."""
        if levels[-1].indent > indent:
            self.close(levels, indent + 1, name)
        if levels[-1].indent < indent:
            levels.append(Level(indent))
        return levels[-1]

    def close(self, levels, indent, name):
        """Close the levels indented this far or further; return their results."""
        results = []
        while levels and levels[-1].indent >= indent:
            level = levels[-1]
            if level.plan == 0 and level.why_skipped is None:
                self.fail(levels, f"{name}: no test was planned", [])
            if level.plan is not None and level.seen != level.plan:
                self.fail(levels, f"{name}: {level.seen} results of {level.plan} that were planned", [])
            results = levels.pop().results + results
        return results

    def named(self, kind):
        """The names of such results, without the boot that dev/kernel/boot puts before them."""
        return {re.sub("^boot [^/]*/", "", name) for seen, name, _ in self.results if seen == kind}

    def compare(self, expectations):
        """Count what is passed over unexpectedly, or not passed over as expected, as failures."""
        passed_over = [result for result in self.results if result[0] in ("skip", "xfail")]
        self.failures += [(line, []) for line in expectations.unmet(passed_over)]

    def never_ran(self, expectations):
        """Count what may be skipped, and was skipped in each boot, as failures."""
        never = self.named("skip") - self.named("pass")
        self.failures += [(f"skipped in each boot: {name}", []) for name in sorted(never & expectations.may_skip)]

    def add(self, other):
        self.failures += other.failures
        self.results += other.results

    def is_bad(self):
        """False if at least one test passed and none failed."""
        return bool(self.failures) or not self.named("pass")

    def lines(self):
        """The failures, and the count."""
        found = []
        for name, notes in self.failures:
            found += [f"not ok: {name}", *(f"    {note}" for note in notes)]
        return [*found, str(self)]

    def __str__(self):
        kinds = Counter(kind for kind, *_ in self.results)
        return f"{kinds['pass']} passed, {len(self.failures)} failed, {kinds['skip'] + kinds['xfail']} skipped"


def below(name, nested):
    """A suite's name is not repeated: "kunit kprobes", "kprobes/test" is "kunit kprobes/test"."""
    first, slash, rest = nested.partition("/")
    return f"{name}/{rest if slash and name.split()[-1] == first else nested}"
