# SPDX-License-Identifier: GPL-2.0
"""The files that this repository adds to a kernel tree, changes and removes.

repo is the root of the repository; paths are relative to that of the kernel.
"""
import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

REPO = Path(__file__).resolve().parents[2]
DEFAULT = "6.12"
BASE = os.environ.get("BASE") or DEFAULT
BUILD = REPO / "build" / ("" if BASE == DEFAULT else BASE)
DIRECTORIES = "arch include kernel lib samples tools Documentation".split()
JUNK = re.compile(r"^\.(?!(gitignore|kunitconfig)$)|(~|\.orig|\.rej|\.pyc)$")


class Refusal(Exception):
    """A request that cannot be met; the text has the reason and the remedy."""


def argument_parser():
    """A parser of the program's arguments; its help is the docstring."""
    return argparse.ArgumentParser(description=sys.modules["__main__"].__doc__,
                                   formatter_class=argparse.RawDescriptionHelpFormatter)


def entries(file):
    """(place, line) of each line of a list that is neither empty nor a comment."""
    lines = Path(file).read_text().splitlines()
    return [(f"{file}:{number}", line) for number, line in enumerate(lines, 1) if line.strip() and line[0] != "#"]


def files(repo):
    """Paths of our files."""
    return sorted(os.path.relpath(Path(root, name), repo)
                  for top in DIRECTORIES
                  for root, _, names in os.walk(repo / top)
                  for name in names if not JUNK.search(name))


def removed(repo):
    """(files, directories) of the implementation that we replace."""
    lines = [line for _, line in entries(repo / "dev/tree/removed.list")]
    return [line for line in lines if line[-1] != "/"], [line[:-1] for line in lines if line[-1] == "/"]


def from_base(base, paths):
    """{path: content} of these files, as far as the base, a directory or a tarball, has them."""
    with tempfile.TemporaryDirectory(prefix="kprobes-base.") as scratch:
        root = base
        if not base.is_dir():
            root = Path(scratch)
            listing = subprocess.Popen(["tar", "-tf", base], stdout=subprocess.PIPE, text=True)
            top = listing.stdout.readline().split("/")[0]
            listing.kill()
            subprocess.run(["tar", "-C", scratch, "--strip-components=1", "-xf", base,
                            *(f"{top}/{path}" for path in paths)], stderr=subprocess.DEVNULL)
        return {path: (root / path).read_bytes() for path in paths if (root / path).is_file()}


def version(tree):
    """The kernel version of a source tree, e.g. 6.12.117."""
    try:
        text = (tree / "Makefile").read_text()
    except OSError:
        raise Refusal(f"{tree}: not a kernel source tree (no Makefile)") from None
    part = dict(re.findall(r"^(VERSION|PATCHLEVEL|SUBLEVEL|EXTRAVERSION) *= *(.*)$", text, re.M))
    return ".".join(part.get(k, "?") for k in ("VERSION", "PATCHLEVEL", "SUBLEVEL")) + part.get("EXTRAVERSION", "")


def record(tree):
    """(version, path) of the base that dev/tree/make made a tree of."""
    file = tree / ".kprobes/base"
    if not file.exists():
        raise Refusal(f"{tree}: was not made by dev/tree/make: run make tree")
    version, identity = file.read_text().splitlines()
    return version, Path(identity.rsplit(" ", 2)[0])


def pristine(tree):
    """{path: content}: the base's version of each file that dev/tree/make has changed."""
    top = tree / ".kprobes/pristine"
    return {str(file.relative_to(top)): file.read_bytes() for file in top.rglob("*") if file.is_file()}


def hooks(repo, tree, directory="hooks"):
    """{hook: the files it patches} for the base of a tree, in the order in which they apply."""
    found = {}
    top, base = repo / directory, re.match(r"[^.]*\.[^.]*", version(tree))[0]
    if directory == "hooks" and not (top / base).is_dir():
        known = ", ".join(sorted(file.name for file in top.iterdir() if file.is_dir()))
        raise Refusal(f"{tree}/Makefile: the base is {version(tree)}, but hooks/ is for {known}: give KERNEL_SRC= such a tree")
    for file in sorted([*top.glob("*.patch"), *(top / base).glob("*.patch")], key=lambda file: file.name):
        hook = str(file.relative_to(repo))
        sides = re.findall(r"^--- (\S+).*\n\+\+\+ (\S+)", file.read_text(), re.M)
        if not sides:
            raise Refusal(f"{hook}: no patch in it")
        for old, new in sides:
            if "/dev/null" in (old, new) or old.split("/", 1)[1:] != new.split("/", 1)[1:]:
                raise Refusal(f"{hook}: a hook changes files of the base; "
                              f"it cannot make, remove or rename one ({old} {new})")
        found[hook] = [new.split("/", 1)[1] for _, new in sides]
    return found


def apply_hooks(repo, todo, pristine):
    """Apply hooks (part of what hooks() returns) to {path: content}; return the same."""
    with tempfile.TemporaryDirectory(prefix="kprobes-hooks.") as scratch:
        for path, content in pristine.items():
            file = Path(scratch, path)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        for hook, paths in todo.items():
            run = subprocess.run(["patch", "-p1", "-f", "-F0", "-r-", "--no-backup-if-mismatch",
                                  "-d", scratch, "-i", repo / hook], capture_output=True, text=True)
            if run.returncode:
                raise Refusal(f"{hook} does not apply to {', '.join(paths)}:\n{run.stdout}{run.stderr}"
                              "rework the hook for this base, or give KERNEL_SRC= another release of it")
        return {path: Path(scratch, path).read_bytes() for path in pristine}


def merge_maintainers(repo, theirs):
    """The kernel's MAINTAINERS with our files in place of those of its entry of the same title."""
    title, ours = (repo / "MAINTAINERS").read_text().rstrip("\n").split("\n", 1)
    merged, n = re.subn(rf"^({re.escape(title)}\n(?:[^F\n].*\n)*)(?:F:.+\n)+", lambda found: f"{found[1]}{ours}\n",
                        theirs.decode(), count=1, flags=re.M)
    if n != 1:
        raise Refusal(f"MAINTAINERS: the base has no entry {title} with files to replace")
    return merged.encode()
