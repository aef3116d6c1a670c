# SPDX-License-Identifier: GPL-2.0
"""What the selftests in Python share."""
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path

sys.dont_write_bytecode = True
DEV = Path(__file__).resolve().parents[1]
sys.path.append(str(DEV / "check"))
from report import Report


def load(program):
    """A program of dev/, as a module."""
    loader = SourceFileLoader(Path(program).name, str(DEV / program))
    module = module_from_spec(spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def report(cases):
    """Print KTAP for [(name, value, expected value)]; True if one is wrong."""
    results = Report(len(cases))
    for name, got, wanted in cases:
        results.result(got == wanted, name, [] if got == wanted else [f"got {got}, not {wanted}"])
    return results.end()
