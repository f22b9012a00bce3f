"""How many of all schedules a room has tried: the same schedules that the explorer counts."""

from __future__ import annotations

from collections.abc import Iterable

from lab.engine.explore import Result
from lab.engine.schedule import Move
from lab.engine.stepper import Stepper

__all__ = ["Tried", "order_of"]

STEPS = ("statement", "request", "commit", "rollback")
PLAIN = ("step", "run", "start")


class Tried:
    """The schedules that were played to their end by these replicas."""

    def __init__(self) -> None:
        self.orders: dict[str, bool] = {}  # the letters of its steps -> whether it held
        self.total: int | None = None
        self.breaking = 0
        self.complete = False

    def add(self, order: str, held: bool) -> None:
        """A schedule was played."""
        self.orders[order] = held

    def counted(self, result: Result) -> None:
        """All there are have been counted, or at least so many."""
        self.total, self.breaking, self.complete = result.total, result.breaking, result.complete


def order_of(stepper: Stepper, moves: Iterable[Move]) -> str | None:
    """The order of the steps of a run, as letters; None if it is not over, or is none of those
    that the explorer counts: somebody did not take part, a fault, another hour, another world."""
    replicas = stepper.replicas.values()
    if not all(r.started and r.finished for r in replicas) or not stepper.over:
        return None
    if any(move.kind not in PLAIN for move in moves):
        return None
    return "".join(e.replica for e in stepper.history if e.kind in STEPS and e.resumes is None)
