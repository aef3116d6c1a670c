# SPDX-License-Identifier: GPL-2.0
"""Find the kernel's error reports in a console log.

Each warning that dev/guest/expected lists for the boot must be there once: a block from
"cut here" to "end trace" whose head, the lines up to and including the one with "WARNING:",
matches. A line or warning that it allows in that boot (may-warn) is passed over.
No other report can be expected.

A data race that KCSAN reports counts only if another report is inside it, or if it is in our
files: if in one of its stacks the innermost function is in an object of ours, not counting
functions of the library (in an object of lib/ or of KCSAN) and of kprobe events, whose handlers
we call: when they may run is ours to say. A line "kcsan:" has the number of these and of the
others, which are races of the base, and names the latter.
"""
# Why not rcutorture's parse-console.sh and console-badness.sh: they cannot expect a warning, match
# what programs print too, and miss reports whose first line has no BUG or WARNING.
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

SPLAT = re.compile("|".join((
    r"\bBUG\b", r"WARNING:", r"\bOops\b", r"Kernel panic", r"Call [Tt]race:", r"cut here",
    r"KASAN:", r"KCSAN:", r"UBSAN:", r"KFENCE:", r"ODEBUG:", r"refcount_t:", r"list_(add|del) corruption",
    r"unable to handle", r"general protection fault", r"invalid opcode", r"double fault", r"stack guard page",
    r"possible (circular|recursive) locking", r"inconsistent .*(lock state|usage)", r"suspicious RCU usage",
    r"DEBUG_LOCKS_WARN_ON", r"INFO: trying to register non-static key", r"bad unlock balance",
    r"sleeping function called", r"scheduling while atomic", r"Bad page",
    r"stalls? on (CPU|tasks)", r"detected .*stall", r"rcu.*starved", r"rcu_tasks.*jiffies old",
    r"soft lockup", r"hard LOCKUP", r"blocked .*for more than", r"kmemleak: [1-9]\d* new suspected",
    r"Freezing .* failed", r"Error taking CPU", r"huh, entered softirq", r"NOHZ tick-stop error", r"kprobes: cannot complete",
    r"printk messages dropped",
    # In a program: a probe of ours may have changed its registers, or left it a breakpoint.
    r": segfault at ", r" trap \S.* ip:", r": unhandled signal ")))
# The kernel prefixes its lines with the time (PRINTK_TIME), but for the line about those that are lost;
# programs do not.
KERNEL = re.compile(r"(?:\[ *\d+\.\d{6}\](?:\[ *[TC]\d+\])? |(?=\*\* \d+ printk messages dropped))(.*)")
FIRST, LAST = "[ cut here ]", "[ end trace "
CONTEXT = 40        # lines of a splat that has no end mark

RACE = "BUG: KCSAN: "
RACE_LAST = 60 * "="
# A function; or an address without a name, in a slot or a detour.
FRAME = re.compile(r"\s+(?:\? )?(?:([\w.]+)\+0x[0-9a-f]+/)?0x[0-9a-f]+")
# Below a kernel's build directory. The library works on the data of its callers, and handlers
# race with the rest of their file if we call them too early or too late. KCSAN watches
# kernel/trace only in a kernel without the function tracer.
OURS = ("kernel/kprobes.o", "kernel/kprobes/**/*.o", "arch/x86/kernel/kprobes/*.o", "lib/test_kprobes/*.o",
        "samples/kprobes/*.o", "out-of-tree/**/*.o")
LIBRARY = ("lib/*.o", "kernel/kcsan/*.o", "kernel/trace/trace_kprobe.o", "kernel/trace/trace_probe.o")


def functions(directory, patterns):
    """The names of the functions in these objects."""
    objects = [file for pattern in patterns for file in Path(directory).glob(pattern)]
    if not objects:
        sys.exit(f"no objects in {directory}")
    symbols = subprocess.run(["nm", *objects], capture_output=True, text=True).stdout
    return {line.split()[2] for line in symbols.split("\n") if re.search(r" [tTwW] ", line)}


def racing_functions(race, library):
    """Of each of the report's stacks, the innermost function that is not the library's."""
    found, searching = set(), False
    for line in race:
        if not (match := FRAME.match(line)):
            searching = True
        elif searching and match[1] and match[1] not in library:
            found.add(match[1])
            searching = False
    return found


def splats(lines):
    """Split off the reports: a list of blocks of lines."""
    found, i = [], 0
    while i < len(lines):
        if not SPLAT.search(lines[i]):
            i += 1
            continue
        last = RACE_LAST if lines[i].startswith(RACE) else LAST
        end = next((j + 1 for j in range(i, min(i + 4 * CONTEXT, len(lines))) if last in lines[j]), None)
        if end is None:
            end = min(i + CONTEXT, len(lines))
        elif last is LAST and FIRST not in lines[i] and not (i and FIRST in lines[i - 1]):
            # The end mark is that of a later block.
            end = next((j for j in range(i + 1, end) if FIRST in lines[j]), end)
        found.append(lines[i:end])
        i = end
    return found


def has_report(lines):
    """True if these lines of a report are of another one, too."""
    return any(SPLAT.search(line) and not re.search("Call [Tt]race:", line) for line in lines)


def is_expected(block, wanted, repeated):
    """True if the block is an expected warning, which it removes from wanted."""
    if FIRST not in block[0] or LAST not in block[-1]:
        return False
    warning = next((i for i, line in enumerate(block) if line.startswith("WARNING:")), 0)
    # Another CPU may have reported in its midst.
    if has_report(block[1:warning] + block[warning + 1:]):
        return False
    head = "\n".join(block[:warning + 1])
    for regex in wanted:
        if regex.search(head):
            wanted.remove(regex)
            return True
    return any(regex.search(head) for regex in repeated)


def judge(console, expectations, objects, whole=True):
    """The lines of the reports in a console that nobody expects, and those about data races.
    objects is the build directory of the kernel; whole: all that is expected must be there."""
    wanted, notes = expectations.warnings, []
    lines = [match[1] for line in console if (match := KERNEL.search(line.rstrip()))]
    blocks = splats(expectations.without_allowed(lines))
    # One that is cut short counts.
    races = [block for block in blocks if block[0].startswith(RACE) and RACE_LAST in block[-1]]
    if races:
        ours = functions(objects, OURS)
        library = functions(objects, LIBRARY) - ours
        others = [race for race in races if not racing_functions(race, library) & ours and not has_report(race[1:])]
        blocks = [block for block in blocks if block not in others]
        notes.append(f"kcsan: {len(races) - len(others)} data races in our files, {len(others)} in others")
        titles = Counter(race[0][len(RACE):] for race in others)
        notes += [f"kcsan: not ours, {count} times: {title}" for title, count in titles.most_common()]
    bad = [block for block in blocks if not is_expected(block, wanted, expectations.repeated + expectations.lines)]
    bad += [[f"expected, but missing: warning {regex.pattern}"] for regex in wanted if whole]
    return [line for block in bad for line in block], notes
