"""What came out of a run: each effect by itself, with the events that prove it.

An effect is data: SQL that lists, once a run is over, how often something happened to a subject and
how often it should have. `judge` is pure: it gets those rows and the history, and asks nobody.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import psycopg

from lab.engine.history import Event, History
from lab.errors import LabError

__all__ = ["Effect", "EffectSpec", "Row", "Verdict", "judge", "load_effects", "read"]

SHARED = Path(__file__).parent / "effects"

# From harmless to worst. An outcome that an effect names by itself and that is not here is worst.
SEVERITY = ("once", "late", "early", "missed", "lost", "duplicated", "phantom", "negative")


@dataclass(frozen=True)
class EffectSpec:
    """How an effect is looked at.

    Args:
        name: its key in stage.toml.
        title: what people read.
        sql: gives rows (subject, times, expected) or (subject, times, expected, outcome).
        witness: label of the statement or request that brings the effect about.
        es: the title in Spanish.
    """

    name: str
    title: str
    sql: str
    witness: str
    es: str = ""


class Row(NamedTuple):
    """How often an effect happened to a subject; `outcome`, if given, overrules what that says."""

    subject: str
    times: int
    expected: int
    outcome: str | None = None


@dataclass(frozen=True)
class Effect:
    """What became of one effect for one subject; `witnesses` are seqs of the history."""

    name: str
    subject: str
    outcome: str
    times: int
    expected: int
    witnesses: tuple[int, ...] = ()


@dataclass(frozen=True)
class Verdict:
    """What a run comes to.

    Args:
        effects: an entry for each effect and subject.
        ok: everything that was due happened once, and nothing else did.
        worst: the worst outcome among the effects, or "unknown".
        code: the short form of the scenario table. "D3": the first effect happened three times;
            "M": it is missing; "P": it happened once but another one is missing; "1": all once;
            any other outcome by its name. "E " before it: a run ended in an error of its own.
        unknown: the run could not be judged, which is not a pass.
    """

    effects: tuple[Effect, ...]
    ok: bool
    worst: str
    code: str
    unknown: bool = False


def load_effects(declared: str | Mapping[str, Mapping[str, str]]) -> dict[str, EffectSpec]:
    """The effects that a stage declares: the name of a shared set, or its own tables.

    Raises:
        LabError: there is no such set, or an effect lacks its title, sql or witness.
    """
    if isinstance(declared, str):
        path = SHARED / f"{declared}.toml"
        if not path.exists():
            known = ", ".join(sorted(other.stem for other in SHARED.glob("*.toml")))
            raise LabError(f"There is no set of effects called {declared!r}.",
                           f"Use one of: {known}.")
        declared = tomllib.loads(path.read_text(encoding="utf-8"))["effects"]
    try:
        return {name: EffectSpec(name, **fields) for name, fields in declared.items()}
    except TypeError as error:
        raise LabError(f"An effect is not declared as it should be: {error}.",
                       "Give each effect a title, sql and witness, and nothing else.") from error


def read(conn: psycopg.Connection, effects: Mapping[str, EffectSpec]) -> dict[str, list[Row]]:
    """What the database says of each effect, now that the run is over."""
    return {name: [Row(*row) for row in conn.execute(effect.sql)]
            for name, effect in effects.items()}


def judge(effect_rows: Mapping[str, Sequence[Row]], history: History,
          effects: Mapping[str, EffectSpec] | None = None) -> Verdict:
    """The verdict on a run.

    Args:
        effect_rows: effect name -> rows, as `read` gives them; the first effect leads the code.
        history: the record of the run.
        effects: says which statements witness an effect; without it no witness is named.

    A history that is not complete, or an effect without a row, makes the verdict unknown.
    """
    if not history.complete or not effect_rows or not all(effect_rows.values()):
        return Verdict((), ok=False, worst="unknown", code="unknown", unknown=True)
    judged = []
    for name, rows in effect_rows.items():
        writes = _Writes(history, effects[name].witness) if effects else None
        for row in (Row(*row) for row in rows):
            if outcome := _outcome(row):
                seqs = writes.witnesses(outcome, row.times) if writes else ()
                judged.append(Effect(name, row.subject, outcome, row.times, row.expected, seqs))
    worst = _worst(judged)
    prefix = "E " if _own_errors(history) else ""
    code = prefix + _code(judged, lead=next(iter(effect_rows)))
    return Verdict(tuple(judged), ok=worst == "once", worst=worst, code=code)


def _outcome(row: Row) -> str | None:
    """None for a subject to which nothing was due and nothing happened."""
    if row.outcome:
        return row.outcome
    if row.times == row.expected:
        return "once" if row.expected else None
    if row.times < row.expected:
        return "missed"
    return "duplicated" if row.expected else "phantom"


def _worst(effects: Iterable[Effect]) -> str:
    return max((effect.outcome for effect in effects), default="once",
               key=lambda o: SEVERITY.index(o) if o in SEVERITY else len(SEVERITY))


def _code(effects: Iterable[Effect], lead: str) -> str:
    effects = list(effects)
    leading = [effect for effect in effects if effect.name == lead]
    worst = _worst(leading)
    if worst == "once":
        worst, leading = _worst(effects), effects
        if worst == "missed":
            return "P"
    if worst == "duplicated":
        times = max(-(-e.times // e.expected) for e in leading if e.outcome == "duplicated")
        return f"D{times}"
    return {"once": "1", "missed": "M"}.get(worst, worst)


def _own_errors(history: History) -> list[Event]:
    """The ends of runs that failed although the schedule neither killed nor cut their replica."""
    hit: set[str] = set()
    errors = []
    for event in history:
        if event.kind == "tick":
            hit.discard(event.replica)
        elif event.kind in ("kill", "cut") or event.outcome in ("killed", "cut"):
            hit.add(event.replica)
        elif event.kind == "end" and event.failed and event.replica not in hit:
            errors.append(event)
    return errors


class _Writes:
    """The statements of a run that bring an effect about, and what became of them.

    `sure` were committed. `unsure` ran, but no commit of them was answered: they were rolled back,
    or the answer was lost, or each is its own transaction. `vain` changed no row or failed.
    """

    def __init__(self, history: History, label: str) -> None:
        self.sure: list[int] = []
        self.unsure: list[int] = []
        self.vain: list[int] = []
        self.ends = tuple(e.seq for e in history if e.kind in ("end", "kill"))
        open_writes: dict[str, list[int]] = {}
        for event in history:
            mine = open_writes.setdefault(event.replica, [])
            if event.kind == "commit" and event.outcome == "ok":
                self.sure += mine
                mine.clear()
            elif event.kind in ("commit", "rollback", "cut", "tick"):
                self.unsure += mine
                mine.clear()
            elif event.kind in ("statement", "request") and event.label == label:
                if event.outcome == "ok" and not event.detail.get("tag", "").endswith(" 0"):
                    (self.sure if event.alone else mine).append(event.seq)
                elif event.outcome != "waiting":
                    self.vain.append(event.seq)
        for mine in open_writes.values():
            self.unsure += mine

    def witnesses(self, outcome: str, times: int) -> tuple[int, ...]:
        """The events that prove an outcome: the writes; for what is missing, the vain attempts."""
        if outcome in ("missed", "lost") and not times:
            return tuple(sorted(self.vain + self.unsure)) or self.ends
        seqs = self.sure if len(self.sure) >= times else self.sure + self.unsure
        return tuple(sorted(seqs))
