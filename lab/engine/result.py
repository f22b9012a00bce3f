"""What an exploration found: how many schedules break a run, and the plainest of each kind."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from lab.engine.schedule import Schedule

__all__ = ["Finding", "Result"]


@dataclass(frozen=True)
class Finding:
    """The schedules that share one end.

    Args:
        schedule: the plainest of them (fewest switches between replicas, then shortest).
        code: the outcome.
        size: how many they are.
        breaks: whether the outcome is a failure.
    """

    schedule: Schedule
    code: str
    size: int
    breaks: bool


@dataclass(frozen=True)
class Result:
    """What an exploration found.

    Args:
        total: schedules, counted exactly when `complete`, else at least so many.
        breaking: schedules that break the stage.
        unknown: schedules that could not be judged.
        runs: schedules that were really run.
        complete: whether every schedule is accounted for.
        preemptions: when not complete: all schedules with at most so many preemptions were tried;
            None when not even those without any were.
        seconds: real time taken.
        outcomes: code -> schedules.
        findings: every end, those that break it first, the plainest first.
        reduced: whether one run stood for all that differ in the order of independent steps.
    """

    total: int
    breaking: int
    unknown: int
    runs: int
    complete: bool
    preemptions: int | None
    seconds: float
    outcomes: Counter[str]
    findings: list[Finding]
    reduced: bool

    @property
    def headline(self) -> str:
        """"3 of 32", or "3 of at least 1,511" when the time ran out."""
        return f"{self.breaking:,} of {'' if self.complete else 'at least '}{self.total:,}"

    @property
    def shortfall(self) -> str:
        """What was tried before the time ran out; "" when everything was."""
        tried = "" if self.preemptions is None else (
            f" Every schedule with up to {self.preemptions} preemption(s) was tried.")
        return "" if self.complete else f"Time is up.{tried}"
