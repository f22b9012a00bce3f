"""The crash sweeps that a stage declares in stage.toml: run, and held to what it promises."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from lab.engine.sweep import Outcome, Point, Sweep, sweep
from lab.judge.scenarios import Theatre

__all__ = ["FINE", "Swept", "run"]

FINE = ("nothing", "once")  # nothing bought and nobody told; bought, and told once
LETTERS = "ABCD"


@dataclass(frozen=True)
class Swept:
    """A `[[sweep]]` entry and what came of it.

    Args:
        entry: name, programs (the first is the front end's, the others run in the background),
            outcomes (the bad ones that must come up, and no others), standing (conditions), fail
            (the condition that makes COMMIT fail), needs (SQL that must say true), otherwise (what
            to say when it does not).
        result: None when the server does not have what it needs.
    """

    entry: Mapping[str, Any]
    result: Sweep | None

    @property
    def bad(self) -> set[str]:
        """The outcomes that should not be."""
        return set(self.result.outcomes) - set(FINE) if self.result else set()

    @property
    def as_promised(self) -> bool:
        """Whether exactly the promised outcomes came up; what cannot run breaks no promise."""
        return self.result is None or self.bad == set(self.entry["outcomes"])


def run(theatre: Theatre, on_point: Callable[[Point], None] = lambda point: None) -> list[Swept]:
    """Every sweep of the stage, in the order of stage.toml."""
    with theatre.database.connect() as conn:
        able = [not entry.get("needs") or conn.execute(entry["needs"]).fetchone()[0]
                for entry in theatre.stage.data["sweep"]]
    return [Swept(entry, _sweep(theatre, entry, on_point) if can else None)
            for entry, can in zip(theatre.stage.data["sweep"], able, strict=True)]


def _sweep(theatre: Theatre, entry: Mapping[str, Any], on_point: Callable[[Point], None]) -> Sweep:
    letters = LETTERS[:len(entry["programs"])]
    stepper = theatre.stepper(letters, roles=dict(zip(letters, entry["programs"], strict=True)),
                              standing=entry.get("standing", ()))

    def judge() -> Outcome:
        verdict = theatre.judge(stepper.history)
        lead = [e for e in verdict.effects if e.name == next(iter(theatre.stage.effects))]
        if verdict.unknown or not lead:
            return Outcome("unknown" if verdict.unknown else "nothing", 0)
        worst = next((e for e in lead if e.outcome == verdict.worst), lead[0])
        return Outcome(worst.outcome, worst.times)

    return sweep(stepper, judge, entry.get("fail", ""), on_point)
