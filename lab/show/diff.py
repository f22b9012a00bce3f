"""What changed from one stage to the next: the code alone, which is the lesson.

What goes comes first, then what is new: the files that stage.toml names in [diff] `first`, those
that lose lines, those that only gain. A file that moved is compared with what it was; a long new
file is named, not shown. Where a new story begins ([diff] `begins`), its own steps are compared.
"""

import argparse
import difflib
import tomllib
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from rich.text import Text

from lab import folders
from lab.errors import LabError
from lab.show.terminal import screen

STYLES = {"+": "green", "-": "red", "@": "cyan"}
LONG = 25  # lines of a new file: more are read in the file itself
ALIKE = 0.5  # of a file's lines are in another one: it has moved there

Lines = Mapping[str, list[str]]


def stage_data(folder: Path) -> dict[str, Any]:
    """Return a stage's stage.toml; an empty one if there is none."""
    data = folder / "stage.toml"
    return tomllib.loads(data.read_text("utf-8")) if data.exists() else {}


def code_files(folder: Path) -> dict[str, list[str]]:
    """Return the lines of a stage's code by path: *.py and *.sql, but no tests and no exercise.

    What stage.toml puts `aside` is left out too: it is not what the next stage builds on.
    """
    aside = stage_data(folder).get("aside", [])
    paths = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*")}
    return {
        name: path.read_text("utf-8").splitlines()
        for name, path in sorted(paths.items())
        if path.suffix in {".py", ".sql"}
        and path.name not in ("test_stage.py", *aside)
        and not name.startswith("exercise/")
    }


def moved(old: Lines, new: Lines) -> dict[str, str]:
    """Return where files of `old` went that `new` has under another name, {new name: old name}."""
    found = {}
    for name in sorted(old.keys() - new.keys()):
        alike = {other: difflib.SequenceMatcher(None, old[name], new[other], False).ratio()
                 for other in sorted(new.keys() - old.keys() - found.keys())}
        best = max(alike, key=alike.get, default=None)
        if best and alike[best] >= ALIKE:
            found[best] = name
    return found


def unified(before: Path, after: Path) -> list[str]:
    """Return the unified diff between the code of two stages, a line an entry.

    A file that the later stage no longer has, and a long one that it adds, is named only.
    """
    old, new = code_files(before), code_files(after)
    first = stage_data(after).get("diff", {}).get("first", [])
    origin = {name: name for name in old.keys() & new.keys()} | moved(old, new)
    parts = {}
    for name in new:
        was = origin.get(name)
        lines = list(difflib.unified_diff(
            old.get(was, []), new[name], f"{before.name}/{was}" if was else "(no such file)",
            f"{after.name}/{name}", lineterm=""))
        if not was and len(new[name]) > LONG and name not in first:
            lines = [f"New in {after.name}: {name}, {len(new[name])} lines"]
        elif was and was != name and not lines:
            lines = [f"Moved as it was: {was} -> {name}"]
        parts[name] = lines

    def rank(name: str) -> tuple[int, int, bool, str]:
        place = first.index(name) if name in first else len(first)
        return place, -changed(parts[name])[1], len(parts[name]) == 1, name

    lines = [line for name in sorted(parts, key=rank) for line in parts[name]]
    gone = sorted(old.keys() - new.keys() - set(origin.values()))
    return lines + [f"Only in {before.name}: {name}" for name in gone]


def steps(folder: Path) -> list[str]:
    """Return the diffs inside a stage that begins a story: each file of a row with the next one."""
    code, lines = code_files(folder), []
    for row in stage_data(folder)["diff"]["steps"]:
        for one, other in pairwise(row):
            lines += difflib.unified_diff(code[one], code[other], f"{folder.name}/{one}",
                                          f"{folder.name}/{other}", lineterm="")
    return lines


def changed(lines: list[str]) -> tuple[int, int]:
    """Return how many lines a unified diff adds and how many it removes."""
    body = [line for line in lines if not line.startswith(("+++ ", "--- "))]
    return sum(line[:1] == "+" for line in body), sum(line[:1] == "-" for line in body)


def run(args: argparse.Namespace) -> int:
    """Print the diff that leads to stage `args.stage`, in colour on a terminal.

    Raises:
        LabError: there is no such stage, or none before it.
    """
    after = folders.stage(args.stage)
    earlier = [path for path in folders.stages().values() if path.name < after.name]
    if not earlier:
        raise LabError(
            f"{after.name} is the first stage, so it changes nothing.",
            "The first difference is that of stage 1: make diff-1",
        )
    console = screen()
    begins = stage_data(after).get("diff", {}).get("begins")
    if begins:
        console.print(f"{begins} Not compared with {earlier[-1].name}, but step by step:",
                      soft_wrap=True)
    lines = steps(after) if begins else unified(earlier[-1], after)
    for line in lines:
        header = line.startswith(("+++ ", "--- "))
        style = "bold" if header else STYLES.get(line[:1], "")
        console.print(Text(line, style), soft_wrap=True)
    added, removed = changed(lines)
    what = f"inside {after.name}" if begins else f"{earlier[-1].name} -> {after.name}"
    console.print(f"{what}: +{added} -{removed} lines of code")
    return 0
