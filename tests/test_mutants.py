"""A fault put into the explorer, the engine or the verdict makes a named check fail.

Each check passes as things are, and fails for each of the faults listed with it.
"""

from __future__ import annotations
import __future__

import inspect
import textwrap
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest

from lab.engine import footprint, trace
from lab.engine.explore import _Explorer, explore
from lab.engine.footprint import Footprint, Footprints
from lab.engine.history import History
from lab.engine.link import Link
from lab.engine.rest import Rest
from lab.engine.schedule import Schedule, run
from lab.engine.sessions import Sessions
from lab.engine.stepper import Stepper
from lab.engine.trace import Trace
from lab.engine.waits import Waits
from lab.errors import LabError
from lab.judge import verdict
from lab.judge.verdict import Row
from tests.sampling import CASES, cast, left, sampler


@pytest.fixture(scope="module")
def stepper(server):
    with sampler(server, imports=("psycopg",)) as made:
        made.limit = 1.0
        yield made


# Checks


def everything(stepper: Stepper, name: str, **options):
    cast(stepper, **CASES[name])
    return explore(stepper, lambda history: (left(stepper, history), False), **options)


@cache
def truth(stepper: Stepper, name: str):
    """What every single schedule came to, as it was before any fault was put in."""
    return everything(stepper, name, reduce=False)


def no_outcome_is_lost(*names: str) -> Callable[[Stepper], None]:
    def check(stepper: Stepper) -> None:
        for name in names:
            found = everything(stepper, name)
            assert found.outcomes == truth(stepper, name).outcomes
    check.__name__ = f"no outcome is lost: {', '.join(names)}"
    return check


def the_reduction_holds(name: str) -> Callable[[Stepper], None]:
    """Two situations are never taken for one, which would turn the reduction off."""
    def check(stepper: Stepper) -> None:
        assert everything(stepper, name).reduced

    check.__name__ = f"the reduction holds: {name}"
    return check


def every_schedule_is_run(stepper: Stepper) -> None:
    assert everything(stepper, "rows that nobody looks at", reduce=False).total == 90


def failures_are_counted(stepper: Stepper) -> None:
    cast(stepper, **CASES["a lost update"])

    def lost(history):
        (balance,) = stepper.monitor.execute("SELECT balance FROM wallets WHERE id = 1").fetchone()
        return str(balance), balance != 120

    found = explore(stepper, lost)
    assert (found.breaking, found.total) == (12, 14)
    assert str(found.findings[0].schedule) == "A B.. A.."


def histories_are_right(stepper: Stepper) -> None:
    cast(stepper, A=("claim", "A"), B=("claim", "B"))
    history = run(stepper, Schedule.parse("A..commit B.. A.."))
    assert [(e.replica, e.label, e.outcome) for e in history if e.kind != "tick"] == [
        ("A", "INSERT claims", "ok"), ("A", "INSERT log", "ok"), ("B", "INSERT claims", "waiting"),
        ("A", "COMMIT", "ok"), ("B", "INSERT claims", "ok"), ("A", "end", "ok"),
        ("B", "COMMIT", "ok"), ("B", "end", "ok")]
    assert history.complete


def errors_are_told(stepper: Stepper) -> None:
    cast(stepper, A=("claim", "A", True), B=("look", "B", "SELECT 1 / 0"))
    history = run(stepper, Schedule.parse("A.. B.."))
    assert [e.outcome[:19] for e in history if e.failed] == [
        "error: RuntimeError", "error: 22012 divisi", "error: 22012 divisi"]


def what_never_ends_is_unknown(stepper: Stepper) -> None:
    cast(stepper, **CASES["locks that nobody releases"])
    found = explore(stepper, lambda h: ("1", False) if h.complete else ("unknown", True))
    assert found.unknown == found.total


def a_cut_answer_does_not_arrive(stepper: Stepper) -> None:
    cast(stepper, A=("claim", "A"), B=("claim", "B"))
    history = run(stepper, Schedule.parse("A..commit A.cut-after"))
    ends = [e.outcome.split()[0] for e in history if e.kind in ("commit", "end")]
    assert ends == ["cut", "error:"]


def runs_do_not_touch_each_other(stepper: Stepper) -> None:
    cast(stepper, **CASES["locks of sessions"])
    for first, second in ("AB", "BA"):
        history = run(stepper, Schedule.parse(f"{first}.. {second}.."))
        assert f"log=['{first}']" in left(stepper, history)


def a_deadlock_has_one_loser(stepper: Stepper) -> None:
    for name, loser in (("A B A B.. A..", "B"), ("A B B A.. B..", "A")):
        cast(stepper, **CASES["two updates in opposite order"])
        history = run(stepper, Schedule.parse(name))
        assert [e.replica for e in history if e.kind == "end" and e.failed] == [loser]


def verdicts_are_strict(_: Stepper) -> None:
    history = History(complete=True)
    history.add(replica="A", kind="end", statement="end", started=0, ended=0, outcome="ok")
    once = {"coins": [Row("ana", 1, 1)], "thread": [Row("w", 1, 1)]}
    assert verdict.judge(once, history).code == "1"
    for rows, code in (({"coins": [Row("ana", 2, 1)]}, "D2"), ({"coins": [Row("ana", 0, 1)]}, "M"),
                       ({"thread": [Row("w", 0, 1)]}, "P"),
                       ({"coins": [Row("ana", 1, 0)]}, "phantom"),
                       ({"coins": [Row("ana", 1, 1), Row("eva", 3, 1)]}, "D3")):
        found = verdict.judge(once | rows, history)
        assert (found.code, found.ok) == (code, False)
    assert verdict.judge({}, history).unknown
    assert verdict.judge(once | {"thread": []}, history).unknown
    assert verdict.judge(once, History(history.events, complete=False)).unknown
    failed = History([replace(history[0], outcome="error: X")], complete=True)
    assert verdict.judge(once, failed).code == "E 1"


# Faults


Fault = Callable[[pytest.MonkeyPatch], None]


def put(owner, name: str, value) -> Fault:
    """Something else in its place."""
    return lambda patch: patch.setattr(owner, name, value)


def rewritten(owner, name: str, old: str, new: str) -> Fault:
    """A function of which one piece of source text is another."""
    function = getattr(owner, name)
    source = textwrap.dedent(inspect.getsource(function))
    assert source.count(old) == 1, f"{name} has changed: put this fault in anew"
    names = dict(function.__globals__)
    exec(compile(source.replace(old, new), f"<fault in {name}>", "exec",
                 __future__.annotations.compiler_flag), names)
    return put(owner, name, names[name])


def looked_up(**forgotten) -> Fault:
    """Footprints that forget something of every statement."""
    original = Footprints._look_up
    return put(Footprints, "_look_up",
               lambda self, *args: replace(original(self, *args), **forgotten))


LOOKED_AT = no_outcome_is_lost("a lost update", "rows of which somebody sees the first",
                               "a cascade that somebody sees")
LOCKED = no_outcome_is_lost("two claims on one key", "a try-lock", "two updates in opposite order")
WAITED = no_outcome_is_lost("a wait that holds up another race")
DEADLOCKED = the_reduction_holds("two updates in opposite order")
REFERRED = no_outcome_is_lost("a child that keeps its parent")
UNKNOWN = no_outcome_is_lost("numbers from a sequence", "locks of sessions")
ISOLATED = no_outcome_is_lost("two looks of one snapshot")

FAULTS: dict[str, tuple[Callable[[Stepper], None], Fault]] = {
    # The explorer
    "a branch is skipped": (every_schedule_is_run, rewritten(
        _Explorer, "_branch", "for letter in node.held:", "for letter in list(node.held)[:2]:")),
    "no branch is taken": (every_schedule_is_run, rewritten(
        _Explorer, "_branch", "if letter != leave_out:", "if False:")),
    "an end stands for one schedule only": (failures_are_counted, rewritten(
        _Explorer, "_result", "f.size for f in findings", "1 for f in findings")),
    "what breaks is not told from what does not": (failures_are_counted, rewritten(
        _Explorer, "_visit", "node.code, node.breaks =", "node.code, _ =")),
    "a dependency is dropped: all of them": (LOCKED, put(trace, "dependent", lambda a, b: False)),
    "a dependency is dropped: what a commit shows": (
        LOOKED_AT, put(footprint, "_shows", lambda a, b: False)),
    "a dependency is dropped: locks": (LOCKED, put(Footprint, "may_wait_for", lambda *args: False)),
    "a dependency is dropped: a wait and its end": (
        WAITED, put(Trace, "released", lambda *args: None)),
    "a dependency is dropped: a wait's end is no event": (DEADLOCKED, rewritten(
        Trace, "released", "self._append(letter, self._prints[letter][-1])", "pass")),
    "an end of a transaction shows only its own statement": (LOOKED_AT, rewritten(
        Trace, "add", "footprint | whole, Footprint()", "footprint, Footprint()")),
    # What a statement touches
    "a footprint forgets reads": (LOOKED_AT, looked_up(reads=frozenset())),
    "a footprint forgets writes": (LOCKED, looked_up(writes=frozenset())),
    "a footprint forgets foreign keys": (REFERRED, looked_up(keys=frozenset())),
    "a footprint forgets cascades": (LOOKED_AT, rewritten(
        Footprints, "_look_up", "if _CHANGES.search(text):", "if False:")),
    "what is not known is taken for nothing": (UNKNOWN, looked_up(everything=False)),
    "rows that are looked at may be added in any order": (LOOKED_AT, rewritten(
        Footprints, "of", "if self._appended & self._touched:", "if False:")),
    "isolation levels are not noticed": (
        ISOLATED, put(Stepper, "beyond_read_committed", False)),
    # The engine
    "a wait is taken for an end": (what_never_ends_is_unknown, put(Rest, "over", True)),
    "a statement on its way is taken for a wait": (histories_are_right, rewritten(
        Rest, "_ask_who_waits", "if pids and pids <= blocked.keys():",
        "blocked = dict.fromkeys(pids, ())\n        if True:")),
    "nobody is ever found to wait": (histories_are_right, put(Waits, "blocked", lambda *args: {})),
    "a circle is taken for a wait": (a_deadlock_has_one_loser, rewritten(
        Waits, "blocked", "if not _in_circle(pid, blockers)", "")),
    "errors of statements are swallowed": (errors_are_told, rewritten(
        Link, "_note", "step.error = reply.error", "pass")),
    "errors of runs are swallowed": (errors_are_told, rewritten(
        Rest, "_end", 'if answer["end"] == "error":', "if False:")),
    "a cut answer goes through": (a_cut_answer_does_not_arrive, rewritten(
        Stepper, "cut", "replica.moved.cut = True", "pass")),
    "sessions keep their locks": (
        runs_do_not_touch_each_other, put(Sessions, "let_go", lambda self: None)),
    "nobody is patient in a deadlock": (
        a_deadlock_has_one_loser, put(Sessions, "about_to_move", lambda *args: None)),
    # The verdict
    "an incomplete history passes": (verdicts_are_strict, rewritten(
        verdict, "judge", "not history.complete or ", "")),
    "no rows pass": (verdicts_are_strict, rewritten(
        verdict, "judge", " or not effect_rows or not all(effect_rows.values())", "")),
    "only the first effect is judged": (verdicts_are_strict, rewritten(
        verdict, "judge", "in effect_rows.items():", "in list(effect_rows.items())[:1]:")),
    "only the first subject is judged": (verdicts_are_strict, rewritten(
        verdict, "judge", "for row in rows):", "for row in rows[:1]):")),
    "what is missing passes": (verdicts_are_strict, rewritten(
        verdict, "_outcome", 'return "missed"', 'return "once"')),
    "duplicates pass": (verdicts_are_strict, rewritten(
        verdict, "_outcome", '"duplicated" if row.expected', '"once" if row.expected')),
    "phantoms pass": (verdicts_are_strict, rewritten(
        verdict, "_outcome", 'else "phantom"', "else None")),
    "errors of its own are forgiven": (
        verdicts_are_strict, put(verdict, "_own_errors", lambda history: [])),
}


@pytest.mark.parametrize("check", list(dict.fromkeys(check for check, _ in FAULTS.values())),
                         ids=lambda check: check.__name__)
def test_the_check_passes_as_things_are(stepper, check):
    check(stepper)


@pytest.mark.parametrize("fault", FAULTS)
def test_the_check_fails_for_the_fault(stepper, fault):
    check, put_in = FAULTS[fault]
    with pytest.MonkeyPatch.context() as patch:
        put_in(patch)
        with pytest.raises((AssertionError, LabError, StopIteration)):
            check(stepper)
    stepper.drain()
