"""An exercise as data, and the check of a student's answer: real processes, schedules, every interleaving.

A stage may have several exercises, each a folder below `exercise/` with exercise.toml, task.md,
hints.md, the starter, the solution and mutants/. The student's file takes the place of the stage's in a
copy of the folder; nothing else of the stage changes.
"""

from __future__ import annotations

import ast
import shutil
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg

from lab.engine import schedule as schedules
from lab.engine.explore import explore
from lab.engine.history import History
from lab.engine.postgres import Server
from lab.engine.schedule import Schedule
from lab.engine.stepper import Impossible
from lab.errors import LabError
from lab.judge.scenarios import READ_COMMITTED, Theatre, scenarios, theatre
from lab.judge.stage import Stage
from lab.judge.verdict import Verdict

__all__ = ["Case", "Check", "Exercise", "check", "exercises"]

NOT_PART = shutil.ignore_patterns("exercise", "__pycache__", "test_stage.py", "*.md", "infra")


@dataclass(frozen=True)
class Exercise:
    """An exercise.

    Args:
        stage: the stage that it belongs to.
        folder: its folder.
        data: its exercise.toml: title, kind ("repair" or "schedule"), file, minutes, needs, cases,
            mutants.
    """

    stage: Stage
    folder: Path
    data: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The folder's name below my/: the stage's, and its own where the stage has several."""
        return f"{self.stage.name}/{self.folder.name}"

    @property
    def file(self) -> str:
        """The file that the student writes."""
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
        return {path.stem: path for path in sorted((self.folder / "mutants").glob("*.*"))}

    @property
    def hints(self) -> list[str]:
        """Three hints, each more candid than the one before."""
        text = (self.folder / "hints.md").read_text(encoding="utf-8")
        return [part.strip() for part in text.split("\n---\n")]


@dataclass(frozen=True)
class Case:
    """One thing that was tried.

    Args:
        name: of the case in exercise.toml, or "file" for what was found before anything ran.
        passed: whether it came out as it must.
        tried: how many schedules were run for it.
        said: what happened, in a sentence or two, when it failed.
        schedule: the failing schedule.
        history: of the failing run.
        verdict: on the failing run.
    """

    name: str
    passed: bool
    tried: int = 0
    said: str = ""
    schedule: Schedule | None = None
    history: History | None = None
    verdict: Verdict | None = None


@dataclass(frozen=True)
class Check:
    """The answer to a student: the cases in order, up to the first that failed."""

    exercise: Exercise
    cases: tuple[Case, ...]
    scenarios: int
    interleavings: int

    @property
    def passed(self) -> bool:
        """Whether every case came out as it must."""
        return all(case.passed for case in self.cases)

    @property
    def failure(self) -> Case | None:
        """The case that failed."""
        return next((case for case in self.cases if not case.passed), None)


def exercises(stage: Stage) -> list[Exercise]:
    """The exercises of a stage, in order."""
    found = sorted((stage.folder / "exercise").glob("*/exercise.toml"))
    return [Exercise(stage, path.parent, tomllib.loads(path.read_text(encoding="utf-8")))
            for path in found]


def check(exercise: Exercise, answer: Path, server: Server,
          on_case: Callable[[str], None] = lambda name: None) -> Check:
    """Try a student's answer.

    Args:
        exercise: what was asked.
        answer: the student's file.
        server: where its databases are made.
        on_case: called with the name of each case before it is tried.

    Raises:
        LabError: there is no such file, or the lab itself cannot run.
    """
    try:
        text = answer.read_text(encoding="utf-8")
    except OSError as error:
        raise LabError(f"{answer} cannot be read: {error.strerror}.",
                       f"Begin with: make exercise-{exercise.stage.number}") from error
    except UnicodeDecodeError as error:
        raise LabError(f"{answer} is not UTF-8 text.", "Save it as UTF-8.") from error
    trouble = _read_first(exercise, text)
    if trouble:
        return Check(exercise, (Case("file", False, said=trouble),), 0, 0)
    cases: list[Case] = []
    with _stage_with(exercise, answer) as stage, theatre(stage, server) as scene:
        for wanted in exercise.data["cases"]:
            on_case(wanted["name"])
            cases.append(_try(scene, wanted, text))
            if not cases[-1].passed:
                break
    counted = [(case, wanted) for case, wanted in zip(cases, exercise.data["cases"], strict=False)]
    return Check(exercise, tuple(cases),
                 sum(case.tried for case, wanted in counted if "explore" not in wanted),
                 sum(case.tried for case, wanted in counted if "explore" in wanted))


def _read_first(exercise: Exercise, text: str) -> str:
    """What is wrong with a file before it is run; "" when nothing is."""
    if exercise.data["kind"] == "schedule":
        try:
            planned = Schedule.parse(_only_moves(text))
        except LabError as error:
            return str(error)
        return "" if planned else "There is no move in the file yet. Write a schedule on a line."
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        return (f"Line {error.lineno} is not Python: {error.msg}. "
                f"Python stopped reading at: {(error.text or '').strip()}")
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    coroutines = {node.name for node in tree.body if isinstance(node, ast.AsyncFunctionDef)}
    for name in exercise.data.get("needs", ()):
        if name in coroutines:
            return f"{name} is async here, and the stage calls it without await. Make it a plain def."
        if name not in functions:
            return f"The stage calls {name}, and the file has no function of that name."
    return ""


def _only_moves(text: str) -> str:
    return " ".join(line.split("#")[0] for line in text.splitlines())


@contextmanager
def _stage_with(exercise: Exercise, answer: Path) -> Iterator[Stage]:
    """The stage's folder, copied, with the student's file in its place."""
    stage = exercise.stage
    with TemporaryDirectory(prefix="lab-", ignore_cleanup_errors=True) as temporary:
        folder = Path(temporary) / stage.name
        shutil.copytree(stage.folder, folder, ignore=NOT_PART)
        if exercise.data["kind"] == "repair":
            shutil.copyfile(answer, folder / exercise.file)
        yield replace(stage, folder=folder, data={**stage.data, **exercise.data.get("stage", {})})


def _try(scene: Theatre, wanted: Mapping[str, Any], text: str) -> Case:
    name, schedule = wanted["name"], None
    try:
        if "explore" in wanted:
            return _explore(scene, wanted)
        if "scenario" in wanted:
            scenario = scenarios(scene.stage)[wanted["scenario"]]
            schedule = scenario.schedule
            outcome = scene.play(scenario)
            history, verdict, code = outcome.history, outcome.verdict, outcome.code
        else:
            schedule = Schedule.parse(wanted.get("schedule") or _only_moves(text))
            stepper = scene.stepper(schedule.letters or ["A"], wanted.get("everyone", ""),
                                    wanted.get("roles"), wanted.get("isolation", READ_COMMITTED))
            history = schedules.run(stepper, schedule)
            verdict = scene.judge(history)
            code = verdict.code
    except Impossible as error:
        return Case(name, False, 1, str(error), schedule)
    except (LabError, psycopg.Error) as error:
        return Case(name, False, 1, _in_words(error), schedule)
    if code in wanted["wants"] and _own_commits(history) <= wanted.get("commits", 99):
        return Case(name, True, 1)
    said = (_told(wanted, code) if code not in wanted["wants"] else
            f"One run committed {_own_commits(history)} times. Whoever calls the job owns the "
            "transaction, so that the claim and the work are kept or undone together.")
    return Case(name, False, 1, said, schedule, history, verdict)


def _explore(scene: Theatre, wanted: Mapping[str, Any]) -> Case:
    standing = wanted.get("standing", ())
    stepper = scene.stepper("ABCDEFGH"[:wanted["explore"]], wanted.get("everyone", ""),
                            wanted.get("roles"), standing=standing)

    def judged(history: History) -> tuple[str, bool]:
        code = scene.judge(history).code
        return code, code not in wanted["wants"]

    found = explore(stepper, judged, seconds=wanted.get("seconds", 20))
    bad = next((finding for finding in found.findings if finding.breaks), None)
    if bad is None:
        return Case(wanted["name"], True, found.total)
    moves = Schedule.parse(" ".join([*(f"+{name}" for name in standing), str(bad.schedule)]))
    history = schedules.run(stepper, bad.schedule)
    verdict = scene.judge(history)
    return Case(wanted["name"], False, found.total,
                f"{found.breaking:,} of {found.total:,} schedules break it. {_told(wanted, bad.code)}",
                moves, history, verdict)


def _told(wanted: Mapping[str, Any], code: str) -> str:
    told = wanted.get("says", {})
    return told.get(code) or told.get("else") or f"It came out as {code}."


def _own_commits(history: History) -> int:
    """The most transactions that wrote something and that one run committed."""
    most, commits, wrote = 0, {}, {}
    for event in history:
        if event.kind == "tick":
            commits[event.replica] = wrote[event.replica] = 0
        elif event.kind == "statement" and event.label.split()[0] in ("INSERT", "UPDATE", "DELETE"):
            wrote[event.replica] = 1
        elif event.kind == "commit" and event.outcome == "ok" and wrote.get(event.replica):
            commits[event.replica] += 1
            wrote[event.replica] = 0
            most = max(most, commits[event.replica])
    return most


def _in_words(error: LabError | psycopg.Error) -> str:
    if isinstance(error, psycopg.errors.UndefinedTable):
        return f"A table of the stage is gone: {error.diag.message_primary}. Leave the tables as they are."
    if isinstance(error, psycopg.Error):
        return f"The database could not be looked at afterwards: {str(error).splitlines()[0]}."
    return str(error)

