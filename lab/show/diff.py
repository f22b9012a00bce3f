"""What changed from one stage to the next: the code alone, which is the lesson."""

import argparse
import difflib
import tomllib
from pathlib import Path

from rich.text import Text

from lab import folders
from lab.errors import LabError
from lab.show.terminal import screen

STYLES = {"+": "green", "-": "red", "@": "cyan"}


def code_files(folder: Path) -> dict[str, list[str]]:
    """Return the lines of a stage's code by path: *.py and *.sql, but no tests and no exercise.

    What stage.toml puts `aside` is left out too: it is not what the next stage builds on.
    """
    data = folder / "stage.toml"
    aside = tomllib.loads(data.read_text("utf-8")).get("aside", []) if data.exists() else []
    paths = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*")}
    return {
        name: path.read_text("utf-8").splitlines()
        for name, path in sorted(paths.items())
        if path.suffix in {".py", ".sql"}
        and path.name not in ("test_stage.py", *aside)
        and not name.startswith("exercise/")
    }


def unified(before: Path, after: Path) -> list[str]:
    """Return the unified diff between the code of two stages, a line an entry.

    A file that the later stage no longer has is named, not shown line by line.
    """
    old, new = code_files(before), code_files(after)
    lines = []
    for name in sorted(old | new):
        if name not in new:
            lines.append(f"Only in {before.name}: {name}")
            continue
        lines += difflib.unified_diff(
            old.get(name, []),
            new[name],
            f"{before.name}/{name}" if name in old else "(no such file)",
            f"{after.name}/{name}",
            lineterm="",
        )
    return lines


def changed(lines: list[str]) -> tuple[int, int]:
    """Return how many lines a unified diff adds and how many it removes."""
    body = [line for line in lines if not line.startswith(("+++ ", "--- "))]
    return sum(line[0] == "+" for line in body), sum(line[0] == "-" for line in body)


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
    lines = unified(earlier[-1], after)
    console = screen()
    for line in lines:
        header = line.startswith(("+++ ", "--- "))
        style = "bold" if header else STYLES.get(line[:1], "")
        console.print(Text(line, style), soft_wrap=True)
    added, removed = changed(lines)
    console.print(f"{earlier[-1].name} -> {after.name}: +{added} -{removed} lines of code")
    return 0
