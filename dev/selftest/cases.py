# SPDX-License-Identifier: GPL-2.0
"""What the selftests in Python share."""
import sys
from pathlib import Path

sys.dont_write_bytecode = True
DEV = Path(__file__).resolve().parents[1]
sys.path.append(str(DEV / "check"))
from report import Report, load


def report(cases):
    """Print KTAP for [(name, value, expected value)]; True if one is wrong."""
    results = Report(len(cases))
    for name, got, wanted in cases:
        results.result(got == wanted, name, [] if got == wanted else [f"got {got}, not {wanted}"])
    return results.end()
