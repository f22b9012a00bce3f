"""An exercise as data: what its folder says, and what a student's answer looks like before it runs.

A stage may have several exercises, each a folder below `exercise/`: exercise.toml, task.md,
hints.md, the starter, the solution and mutants/. exercise.toml says:

    title, minutes
    kind      "repair": the student's file takes the place of the stage's file of that name;
              "schedule": the student writes a schedule; "count": the student states counts
    file      the name of the student's file
    needs     functions that the stage calls in it
    starter   name of the case at which the starter fails, and the outcome there
    mutants   name -> the case that is meant for it
    cases     what is tried, in this order; see lab/judge/checking.py
    stage     entries that take the place of stage.toml's, such as conditions
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.engine.schedule import Schedule
from lab.errors import LabError
from lab.judge.stage import Stage

__all__ = ["Exercise", "exercise", "exercises", "moves_of", "stated", "trouble_in"]

COUNT = re.compile(r"^(?P<what>[\w-]+)\s*:\s*(?P<few>\d[\d,]*)\s+of\s+(?P<all>\d[\d,]*)\s*$")


@dataclass(frozen=True)
class Exercise:
    """An exercise.

    Args:
        stage: the stage that it belongs to.
        folder: its folder.
        data: its exercise.toml.
    """

    stage: Stage
    folder: Path
    data: Mapping[str, Any]

    @property
    def name(self) -> str:
        """What it is called among those of its stage."""
        return self.folder.name

    @property
    def place(self) -> str:
        """Its folder below my/: the stage's name and its own."""
        return f"{self.stage.name}/{self.name}"

    @property
    def file(self) -> str:
        """The name of the file that the student writes."""
        return self.data["file"]

    @property
    def starter(self) -> Path:
        """What the student begins with."""
        return self.folder / f"starter{Path(self.file).suffix}"

    @property
    def solution(self) -> Path:
        """One right answer."""
        return self.folder / f"solution{Path(self.file).suffix}"

    @property
    def mutants(self) -> dict[str, Path]:
        """Wrong answers, by name; exercise.toml says which case is meant to catch each."""
        suffix = Path(self.file).suffix
        return {path.stem: path for path in sorted((self.folder / "mutants").glob(f"*{suffix}"))}

    def text(self, name: str, spanish: bool = False) -> str:
        """The task or the hints; in Spanish where that is wanted."""
        path = self.folder / (f"{name}.es.md" if spanish else f"{name}.md")
        return path.read_text(encoding="utf-8").strip()

    def hints(self, spanish: bool = False) -> list[str]:
        """Three hints, each more candid than the one before; the last is still not the answer."""
        return [part.strip() for part in self.text("hints", spanish).split("\n---\n")]

    def case(self, name: str) -> Mapping[str, Any]:
        """A case by its name.

        Raises:
            LabError: there is none; the remedy lists those there are.
        """
        for found in self.data["cases"]:
            if found["name"] == name:
                return found
        raise LabError(f"{self.place} has no case {name}.",
                       "Its cases are: " + ", ".join(c["name"] for c in self.data["cases"]) + ".")


def exercises(stage: Stage) -> list[Exercise]:
    """The exercises of a stage, in the order in which they should be done."""
    found = [Exercise(stage, path.parent, tomllib.loads(path.read_text(encoding="utf-8")))
             for path in (stage.folder / "exercise").glob("*/exercise.toml")]
    return sorted(found, key=lambda e: (e.data.get("order", 1), e.name))


def exercise(stage: Stage, name: str) -> Exercise:
    """An exercise by its name.

    Raises:
        LabError: the stage has none of that name; the remedy lists those it has.
    """
    known = exercises(stage)
    for found in known:
        if found.name == name:
            return found
    raise LabError(f"Stage {stage.number} has no exercise {name!r}.",
                   f"It has: {', '.join(e.name for e in known) or 'none'}.")


def moves_of(text: str) -> Schedule:
    """The schedule in a student's file: `#` begins a comment, lines may be broken anywhere.

    Raises:
        LabError: a word is no move; the message names it.
    """
    return Schedule.parse(" ".join(line.split("#")[0] for line in text.splitlines()))


def stated(text: str) -> dict[str, tuple[int, int]]:
    """The counts in a student's file: name -> (schedules that break it, all schedules)."""
    found = [COUNT.match(line.split("#")[0].strip()) for line in text.splitlines()]
    return {f["what"]: (int(f["few"].replace(",", "")), int(f["all"].replace(",", "")))
            for f in found if f}


def trouble_in(exercise: Exercise, text: str) -> str:
    """What is wrong with an answer before it is run; "" when nothing is."""
    match exercise.data["kind"]:
        case "schedule":
            return _trouble_in_moves(text)
        case "count":
            asked = [case["name"] for case in exercise.data["cases"]]
            missing = [name for name in asked if name not in stated(text)]
            return "" if not missing else (f"There is no count yet for: {', '.join(missing)}. "
                                           "Write it as “name: 3 of 32”, a line each.")
    return _trouble_in_python(text, exercise.data.get("needs", ()))


def _trouble_in_moves(text: str) -> str:
    try:
        planned = moves_of(text)
    except LabError as error:
        return str(error)
    return "" if planned else "There is no move in the file yet. Write a schedule on a line."


def _trouble_in_python(text: str, needs: list[str]) -> str:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        where = f"Line {line} is not Python" if line else "The file is not Python"
        read = (getattr(error, "text", None) or "").strip()
        return f"{where}: {getattr(error, 'msg', error)}." + (f" It reads: {read}" if read else "")
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    coroutines = {node.name for node in tree.body if isinstance(node, ast.AsyncFunctionDef)}
    for name in needs:
        if name in coroutines:
            return f"{name} is async, and the stage calls it without await. Make it a plain def."
        if name not in functions:
            return f"The stage calls {name}, and the file has no function of that name."
    return ""
