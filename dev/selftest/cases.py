# SPDX-License-Identifier: GPL-2.0
"""What the selftests in Python share. Importing it answers --help, with the selftest's docstring."""
import sys
from pathlib import Path

DEV = Path(__file__).resolve().parents[1]
sys.path += [str(DEV / directory) for directory in ("check", "measure", "tree")]
from report import Report, load

if sys.argv[1:] in (["-h"], ["--help"]):
    sys.exit(print(sys.modules["__main__"].__doc__))


def report(cases):
    """Print KTAP for [(name, value, expected value)]; True if one is wrong."""
    results = Report(len(cases))
    for name, got, wanted in cases:
        results.result(got == wanted, name, [] if got == wanted else [f"got {got}, not {wanted}"])
    return results.end()
