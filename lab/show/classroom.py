"""The instructor's side: a folder of students' work, the table of mutants, a room made ready."""

from __future__ import annotations

import argparse
import csv
import importlib.util
import json
import multiprocessing
import shutil
import signal
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.text import Text

from lab.engine.postgres import Server, server
from lab.errors import LabError
from lab.folders import ROOT
from lab.judge.bench import bench
from lab.judge.checking import Check, check_answer
from lab.judge.exercise import Exercise, exercise, exercises
from lab.judge.scenarios import scenarios, theatre
from lab.judge.stage import stage, stages
from lab.show import terminal

__all__ = ["check_all", "mutants", "preflight", "table"]

TABLE = ROOT / "docs" / "exercises.md"
CONNECTIONS = 12  # that a check holds at most: its own, and those of its replicas
FIELDS = ("student", "exercise", "passed", "case", "outcome", "seconds", "said")
PACKAGES = {"notebooks": "jupyterlab nbclient ipykernel", "stage 07": "fastapi httpx psycopg_pool",
            "the page": "starlette uvicorn", "tests": "pytest hypothesis"}
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
    with ProcessPoolExecutor(processes, multiprocessing.get_context("spawn")) as pool:
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


# A room


def preflight(args: argparse.Namespace) -> int:
    """Try what a room needs, a line each; exit code 1 when something is missing."""
    console, ready = terminal.screen(), True
    asked: set[str] = set()
    sys.addaudithook(lambda event, values: asked.update(_beyond(event, values)))
    with server() as used:
        for what, attempt in _attempts(used):
            began = time.monotonic()
            try:
                sign, said = "✓", attempt()
            except (LabError, ImportError, OSError) as error:
                sign, said, ready = "✗", str(error), False
            console.print(Text.assemble((f"{sign} ", "bold"), f"{what:<28} {said} ",
                                        (f"({time.monotonic() - began:.1f} s)", "dim")))
    sign, said = ("✗", f"asked for {', '.join(sorted(asked))}") if asked else (
        "✓", "nothing of this asked for another machine")
    console.print(f"{sign} {'without a network':<28} {said}", highlight=False)
    return 0 if ready and not asked else 1


def _attempts(used: Server) -> Iterator[tuple[str, Callable[[], str]]]:
    yield "Python and room on the disk", _machine
    yield "Postgres", lambda: f"{used.described}, version {used.version}"
    yield "checks at the same time", lambda: _room(used)
    for package, names in PACKAGES.items():
        yield f"packages for {package}", lambda names=names: _packages(names)
    for found in stages():
        yield f"stage {found.number:02d}", lambda found=found: _stage(found.number, used)
    yield "a check", lambda: _check(used)
    yield "a picture", _picture


def _machine() -> str:
    free = shutil.disk_usage(ROOT).free / 1024 ** 3
    if free < 1:
        raise LabError(f"{free:.1f} GB are free.", "A room needs 1 GB.")
    return f"{sys.version.split()[0]}, {free:.0f} GB free"


def _room(used: Server) -> str:
    with used.database([ROOT / "lab/world/schema.sql"]) as database, database.connect() as conn:
        free, = conn.execute("SELECT current_setting('max_connections')::int"
                             " - (SELECT count(*) FROM pg_stat_activity)").fetchone()
    return f"about {free // CONNECTIONS}, by the server's max_connections"


def _packages(names: str) -> str:
    missing = [name for name in names.split() if not importlib.util.find_spec(name)]
    if missing:
        raise LabError(f"{', '.join(missing)} not installed.", "Run `make preflight` online once.")
    return names


def _stage(number: int, used: Server) -> str:
    found = stage(number)
    if not scenarios(found):
        return "has no scenario"
    first = next(iter(scenarios(found).values()))
    with theatre(found, used) as scene:
        outcome = scene.play(first)
    if not outcome.as_promised:
        raise LabError(f"{first.name} came out as {outcome.code}, not {outcome.expected}.",
                       "Run `make doctor`.")
    return f"{first.name} came out as promised: {outcome.code}"


def _check(used: Server) -> str:
    found = exercise(stage(1), "twice")
    with bench(found, used) as place:
        checked = check_answer(place, found.solution)
    if checked.failure:
        raise LabError(f"The solution of {found.place} does not pass.", checked.failure.said)
    return f"the solution of {found.place} passes"


def _picture() -> str:
    from lab.show import plots

    plots.duplicates({"Lupita": 30})
    return "drawn"


def _beyond(event: str, values: tuple) -> list[str]:
    """The addresses beyond this machine that an audited event asks for."""
    if event not in ("socket.connect", "socket.getaddrinfo"):
        return []
    host = values[0] if event == "socket.getaddrinfo" else values[1][0]
    local = not isinstance(host, str) or host in ("localhost", "127.0.0.1", "::1", "")
    return [] if local or host.startswith("/") else [host]
