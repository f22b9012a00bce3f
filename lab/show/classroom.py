"""The instructor's side: a folder of students' work, and the table of wrong answers."""

from __future__ import annotations

import argparse
import csv
import json
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lab.engine.launch import die_with_parent
from lab.engine.postgres import Server, server
from lab.errors import LabError
from lab.folders import ROOT
from lab.judge.bench import bench
from lab.judge.checking import Check, check_answer
from lab.judge.exercise import Exercise, exercises
from lab.judge.stage import stages
from lab.show import terminal

__all__ = ["check_all", "mutants", "table"]

TABLE = ROOT / "docs" / "exercises.md"
FIELDS = ("student", "exercise", "passed", "case", "outcome", "seconds", "said")
HEAD = """# Exercises, and the wrong answers that they catch

Written by `python -m lab mutants`, which tries every wrong answer in real processes; the tests
do it again and compare. “Caught by” is the case of the check at which the answer fails, “outcome”
what came out there: `D3` paid three times, `M` missed, `E` a run ended in an error, `1` all as if
nothing were wrong, empty where nothing had to run.
"""


def every_exercise() -> list[Exercise]:
    """The exercises of the whole course, in order."""
    return [one for each in stages() for one in exercises(each)]


# A folder of students' work


def check_all(args: argparse.Namespace) -> int:
    """Check each student's answers; a JSON a student and one CSV are left beside them."""
    console = terminal.screen()
    if not args.folder.is_dir():
        raise LabError(f"{args.folder} is no folder.",
                       "Name one that has a folder of each student: make check-all DIR=…")
    students = [path for path in sorted(args.folder.iterdir())
                if path.is_dir() and any(_answers(path))]
    if not students:
        raise LabError(f"No answer was found below {args.folder}.",
                       "A student's folder holds what my/ held: NAME/03-claim-row/claim/claims.py.")
    began, rows = time.monotonic(), []
    with server(), _pool(args.at_once) as pool:
        for student, found in zip(students, _given(pool, students), strict=True):
            (args.folder / f"{student.name}.json").write_text(
                json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
            rows += [{"student": student.name, **result} for result in found]
            passed = sum(result["passed"] for result in found)
            console.print(f"{student.name:<24} {passed} of {len(found)} passed", highlight=False)
    with (args.folder / "results.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        writer.writerows(rows)
    console.print(f"{len(rows)} answers of {len(students)} students in "
                  f"{time.monotonic() - began:.0f} s: {args.folder / 'results.csv'}",
                  highlight=False, soft_wrap=True)
    return 0


@contextmanager
def _pool(processes: int) -> Iterator[ProcessPoolExecutor]:
    """So many processes; an interrupt ends what they do, and each cleans up behind itself."""
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"),
                             die_with_parent, (os.getpid(),)) as pool:
        try:
            yield pool
        except BaseException:
            workers = multiprocessing.active_children()
            pool.shutdown(wait=False, cancel_futures=True)
            for worker in workers:
                worker.terminate()
            raise


def _given(pool: ProcessPoolExecutor, students: list[Path]) -> Iterator[list[dict[str, Any]]]:
    """Start the processes with Ctrl-C blocked, which they inherit: it comes here, and only here."""
    if sys.platform == "win32":
        return pool.map(check_student, students)
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return pool.map(check_student, students)
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def check_student(folder: Path) -> list[dict[str, Any]]:
    """Check all answers of one student, each on a database of its own."""

    def end(*_: object) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once: a second one comes while it cleans up
        raise SystemExit(130)

    before = signal.signal(signal.SIGTERM, end)
    with server() as used:
        found = [_result(found, answer, used) for found, answer in _answers(folder)]
    signal.signal(signal.SIGTERM, before)
    return found


def _answers(folder: Path) -> Iterator[tuple[Exercise, Path]]:
    for found in every_exercise():
        answer = folder / found.place / found.file
        if answer.is_file():
            yield found, answer


def _result(found: Exercise, answer: Path, used: Server) -> dict[str, Any]:
    try:
        with bench(found, used) as place:
            checked = check_answer(place, answer)
    except LabError as error:
        return dict(zip(FIELDS[1:], (found.place, False, "not checked", "", 0, str(error)),
                        strict=True))
    failed = checked.failure
    said = failed.said if failed else f"Passed: {checked.counts}."
    return dict(zip(FIELDS[1:], (found.place, checked.passed, failed.name if failed else "",
                                 failed.code if failed else "", round(checked.seconds, 1), said),
                    strict=True))


# Wrong answers


def mutants(args: argparse.Namespace) -> int:
    """Try every wrong answer and write docs/exercises.md; exit code 1 if one is not caught."""
    console, caught, found = terminal.screen(), True, {}
    with server() as used:
        for one in every_exercise():
            with bench(one, used) as place:
                found[one.place] = {name: check_answer(place, path)
                                    for name, path in one.mutants.items()}
            for name, checked in found[one.place].items():
                case = checked.failure.name if checked.failure else "nobody"
                right = case == one.data["mutants"].get(name)
                caught &= right
                console.print(f"{'✓' if right else '✗'} {one.place}: {name} caught by {case}",
                              highlight=False)
    TABLE.write_text(HEAD + "".join(table(one, found[one.place]) for one in every_exercise()),
                     encoding="utf-8")
    return 0 if caught else 1


def table(found: Exercise, checked: dict[str, Check]) -> str:
    """The part of docs/exercises.md about one exercise."""
    lines = [f"\n## {found.place}\n", f"{found.data['title']}. {len(found.data['cases'])} case"
             f"{'s' * (len(found.data['cases']) > 1)}, about {found.data['minutes']} minutes.\n",
             "| wrong answer | caught by | outcome |", "|---|---|---|"]
    for name, result in sorted(checked.items()):
        lines.append(f"| {name} | {result.failure.title if result.failure else 'nobody'} "
                     f"| {result.failure.code if result.failure else ''} |")
    return "\n".join(lines) + "\n"
