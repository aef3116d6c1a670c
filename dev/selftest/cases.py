# SPDX-License-Identifier: GPL-2.0
"""What the selftests in Python share. Importing it answers --help, with the selftest's docstring."""
import io
import os
import re
import sys
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

DEV = Path(__file__).resolve().parents[1]
sys.path += [str(DEV / directory) for directory in ("check", "measure", "tree")]
from report import Report, load
from overlay import Refusal

if sys.argv[1:] in (["-h"], ["--help"]):
    sys.exit(print(sys.modules["__main__"].__doc__))

scratch = tempfile.TemporaryDirectory()
tmp = Path(scratch.name)


def write(name, text):
    """A file in tmp."""
    file = tmp / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def said(function, *arguments):
    """(what it returns, its exit status, or why it refuses; what it says). What its commands print is lost: it may
    look like KTAP."""
    ours = os.dup(1)
    with open(os.devnull, "w") as nowhere, redirect_stdout(io.StringIO()) as output, redirect_stderr(output):
        os.dup2(nowhere.fileno(), 1)
        try:
            result = function(*arguments)
        except (SystemExit, Refusal) as end:
            result = getattr(end, "code", str(end))
        finally:
            os.dup2(ours, 1)
            os.close(ours)
    return result, output.getvalue()


def report(cases):
    """Print KTAP for [(name, value, expected value)], and exit: with an error if one is wrong."""
    results = Report(len(cases))
    for name, got, wanted in cases:
        results.result(got == wanted, name, [] if got == wanted else [f"got {got}, not {wanted}"])
    sys.exit(results.end())


def report_said(cases):
    """The same for [(name, what said() returns, expected result, what is to be said)]."""
    report([(name, (result, bool(re.search(regex, text, re.M)) or text), (wanted, True))
            for name, (result, text), wanted, regex in cases])
