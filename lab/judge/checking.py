"""The check of a student's answer: schedules, crash points, every interleaving.

A case of exercise.toml has a name, a title, what is tried, and `wants`, the codes that are right
(["1"] when it says nothing). What is tried is one of

    scenario  one of the stage's scenarios, by name
    schedule  one schedule
    kills     what comes after the death of A, or of the `victim`, which is killed before each of
              its statements and after the last; `before` are the moves that come before its run
    explore   so many replicas in every order; with `answer = true` the student states the counts
    (none)    the schedule that the student wrote: `most` and `least` replicas, and no move of a
              kind in `without`

with `everyone`, `roles`, `isolation` and `error` as in scenarios.toml, and `standing`, conditions
of the world; `commits` is how many transactions a run may commit; `says` has a sentence for an
outcome that the history cannot explain.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psycopg

from lab.engine.explore import Result, explore
from lab.engine.history import History
from lab.engine.schedule import Schedule
from lab.errors import LabError
from lab.judge.bench import PATIENCE, Bench, crowd
from lab.judge.exercise import Exercise, moves_of, stated, trouble_in
from lab.judge.explain import explain, in_words
from lab.judge.runs import writing_commits
from lab.judge.scenarios import READ_COMMITTED, scenarios
from lab.judge.stage import Stage
from lab.judge.verdict import Verdict

__all__ = ["Case", "Check", "check_answer", "parts_of", "try_case"]

AHEAD = 2  # processes that start while another is at work; more only take its processor away


@dataclass(frozen=True)
class Case:
    """One thing that was tried.

    Args:
        name: of the case in exercise.toml, or "file" for what was found before anything ran.
        title: what people read.
        passed: whether it came out as it must.
        tried: how many schedules were run for it, or counted by exploring.
        said: what happened, in words about this run, when it failed.
        code: the outcome, "" when there was none.
        schedule: the failing schedule.
        history: of the failing run.
        verdict: on the failing run.
        breaking: how many of the schedules break the stage, where the student had to count.
    """

    name: str
    title: str
    passed: bool
    tried: int = 0
    said: str = ""
    code: str = ""
    schedule: Schedule | None = None
    history: History | None = None
    verdict: Verdict | None = None
    breaking: int = 0


@dataclass(frozen=True)
class Check:
    """The answer to a student: the cases in order, up to the first that failed."""

    exercise: Exercise
    cases: tuple[Case, ...]
    seconds: float

    @property
    def passed(self) -> bool:
        """Whether every case came out as it must."""
        return all(case.passed for case in self.cases)

    @property
    def failure(self) -> Case | None:
        """The case that failed."""
        return next((case for case in self.cases if not case.passed), None)

    @property
    def counts(self) -> str:
        """What was tried: "0 of 72 schedules break it, 10 scenarios"; or counted, a case each."""
        if self.exercise.data["kind"] == "count":
            return ", ".join(f"{c.name}: {c.breaking:,} of {c.tried:,}" for c in self.cases)
        kinds = {case["name"]: case for case in self.exercise.data["cases"]}
        orders = sum(c.tried for c in self.cases if "explore" in kinds.get(c.name, ()))
        others = sum(c.tried for c in self.cases if "explore" not in kinds.get(c.name, ()))
        said = [f"0 of {orders:,} schedules break it"] if orders else []
        return ", ".join(said + ([f"{others} scenario" + "s" * (others != 1)] if others else []))


def check_answer(bench: Bench, answer: Path,
          on_case: Callable[[str], None] = lambda title: None) -> Check:
    """Try an answer.

    Args:
        bench: of the exercise.
        answer: the student's file.
        on_case: called with the title of each case before it is tried.

    Raises:
        LabError: there is no such file, or the lab itself cannot run.
    """
    began, exercise = time.monotonic(), bench.exercise
    text = bench.put(answer)
    cases = []
    if trouble := trouble_in(exercise, text):
        cases.append(Case("file", "the file", False, said=trouble))
    while len(cases) < len(exercise.data["cases"]) and all(case.passed for case in cases):
        wanted = exercise.data["cases"][len(cases)]
        on_case(wanted["title"])
        cases.append(try_case(bench, wanted, text))
    return Check(exercise, tuple(cases), time.monotonic() - began)


def try_case(bench: Bench, wanted: Mapping[str, Any], text: str) -> Case:
    """Try one case on the answer that the bench has taken; `text` is what stands in it."""
    try:
        if "answer" in wanted:
            return _count(bench, wanted, text)
        if "explore" in wanted:
            return _explore(bench, wanted)
        if "kills" in wanted:
            return _kill(bench, wanted)
        if "scenario" in wanted:
            scenario = scenarios(bench.stage)[wanted["scenario"]]
            return _one(bench, parts_of(wanted, bench.stage), scenario.schedule)
        if "schedule" in wanted:
            return _one(bench, wanted, Schedule.parse(wanted["schedule"]))
        planned = moves_of(text)
        if said := _against_rules(planned, wanted):
            return Case(wanted["name"], wanted["title"], False, said=said)
        return _one(bench, wanted, planned)
    except (LabError, psycopg.Error) as error:
        bench.close()  # the database or the processes may be damaged; the next answer gets others
        return Case(wanted["name"], wanted["title"], False, 1, in_words(error))


def parts_of(case: Mapping[str, Any], stage: Stage) -> dict[str, Any]:
    """A case with the parts of the scenario that it names."""
    if "scenario" not in case:
        return dict(case)
    scenario = scenarios(stage)[case["scenario"]]
    return {**{key: getattr(scenario, key) for key in ("everyone", "roles", "isolation", "error")},
            **case}


def _one(bench: Bench, wanted: Mapping[str, Any], schedule: Schedule, tried: int = 1) -> Case:
    history, verdict = bench.play(wanted, schedule)
    code, said = verdict.code, ""
    if wanted.get("error") == "injected":
        code = code.removeprefix("E ")
    if code not in wanted.get("wants", ["1"]):
        said = explain(history, verdict, bench.stage.effects, wanted, code)
    elif writing_commits(history) > wanted.get("commits", 99):
        said = (f"One run committed {writing_commits(history)} times. Whoever calls the job owns "
                "the transaction, so that all of its work is kept or undone together.")
    return Case(wanted["name"], wanted["title"], not said, tried, said, code, schedule, history,
                verdict)


def _kill(bench: Bench, wanted: Mapping[str, Any]) -> Case:
    who, before = wanted.get("victim", "A"), wanted.get("before", "")
    history, _ = bench.play(wanted, Schedule.parse(f"{before} {who}.."))
    steps = [e for e in history if e.replica == who and e.kind not in ("tick", "end")]
    for number in range(len(steps) + 1):
        bench.scene.spares = min(AHEAD, len(steps) - number)  # those who come after this death
        until = f"{who}*{number}" if number else f"{who}.start"
        moves = Schedule.parse(f"{before} {until} {who}.kill {wanted['kills']}")
        case = _one(bench, wanted, moves, number + 1)
        if not case.passed:
            break
    return case


def _explore(bench: Bench, wanted: Mapping[str, Any]) -> Case:
    found = _explored(bench, wanted)
    bad = next((finding for finding in found.findings if finding.breaks), None)
    if bad is None:
        said = "" if found.complete else (
            f"Only {found.total:,} schedules could be run in the time given, so nothing is proved. "
            "Check again when the machine is less busy.")
        return Case(wanted["name"], wanted["title"], found.complete, found.total, said)
    case = _one(bench, wanted, bad.schedule, found.total)
    standing = [f"+{name}" for name in wanted.get("standing", ())]
    return replace(case, passed=False, said=f"{found.headline} schedules break it. {case.said}",
                   schedule=Schedule.parse(" ".join([*standing, str(bad.schedule)])))


def _explored(bench: Bench, wanted: Mapping[str, Any]) -> Result:
    def judged(history: History) -> tuple[str, bool]:
        code = bench.scene.judge(history).code
        return code, code not in wanted.get("wants", ["1"])

    with bench.stepper(wanted, "ABCDEFGH"[:wanted["explore"]]) as stepper:
        return explore(stepper, judged, isolation=wanted.get("isolation", READ_COMMITTED),
                       seconds=(PATIENCE["explore"] - 1) * crowd())


def _count(bench: Bench, wanted: Mapping[str, Any], text: str) -> Case:
    found, said = _explored(bench, wanted), ""
    few, whole = stated(text)[wanted["name"]]
    if not found.complete:
        said = "Not all schedules could be run in the time given. Try again."
    elif whole != found.total:
        said = (f"You wrote that there are {whole:,} schedules. The explorer ran them all, and it "
                "found another number.")
    elif few != found.breaking:
        said = f"You wrote that {few:,} of them break it. The explorer, which ran all, disagrees."
    return Case(wanted["name"], wanted["title"], not said, found.total, said,
                breaking=found.breaking)


def _against_rules(planned: Schedule, wanted: Mapping[str, Any]) -> str:
    """What a student's schedule may not do in this exercise; "" when it keeps the rules."""
    if len(planned.letters) > wanted.get("most", 26):
        return (f"Your schedule has {len(planned.letters)} replicas, {', '.join(planned.letters)}. "
                f"Do it with {wanted['most']}.")
    if len(planned.letters) < wanted.get("least", 1):
        return f"Your schedule has {len(planned.letters)} replicas. It takes {wanted['least']}."
    for move in planned:
        if move.kind in wanted.get("without", ()):
            return f"“{move}” makes it too easy here: do it without {move.kind}."
    return ""
