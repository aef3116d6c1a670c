# SPDX-License-Identifier: GPL-2.0
"""What the tools that measure a guest share."""
import re
import subprocess
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "check"))
from report import BUILD, REPO, argument_parser, lines_of

TOOL = Path(sys.argv[0]).name


def start(directory, run, name, usual, *options):
    command = [REPO / "dev/kernel/boot", "--obj", directory, "--name", name, "--usual", str(usual),
               "--memory", "2G", *options, run]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def finish(boot, name):
    """{name: value} of a good boot; exits if it is not."""
    said = boot.communicate()[0]
    print("".join(f"   {line}\n" for line in said.splitlines()), end="", flush=True)
    if boot.returncode:
        sys.exit(f"{TOOL}: {name} failed: its kernel's log is build/log/{name}.console")
    found = (re.fullmatch(r"# bench: (\S+) (-?\d+)", line) for line in lines_of(BUILD / f"log/{name}.verdict"))
    return {match[1]: int(match[2]) for match in found if match}
