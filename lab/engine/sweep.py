"""Every crash point of a program: its process may die, or its connection break, at any step.

The program is run once, step by step, to know its steps. Then once for each step and fault. What
comes after it in the background (a relay) is swept in the same way, and runs again an hour
later, as it would. Nobody runs the program itself again, and then somebody does: both outcomes are
kept.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lab.engine.history import label
from lab.engine.schedule import Schedule, make
from lab.engine.stepper import Stepper

__all__ = ["FAULTS", "Outcome", "Point", "Sweep", "sweep"]

# Of a step. To be killed after a step is to be killed before the next one; after its last step a
# program is killed once more. A COMMIT can also be refused (fail).
FAULTS = ("kill", "cut-before", "cut-after", "fail")
LATER, LATEST = "@19:00", "@20:00"  # when the background runs again: no lease is that long


@dataclass(frozen=True)
class Outcome:
    """What a run came to: the outcome's name, and how often the effect happened."""

    name: str
    times: int = 1

    def __str__(self) -> str:
        return self.name + (f" ×{self.times}" if self.times > 1 else "")


@dataclass(frozen=True)
class Point:
    """One crash point and what came of it.

    Args:
        letter: whose it is.
        step: number of the step, from 0; the number of steps for a kill after the last one.
        label: the step's name; "the end" after the last one.
        fault: one of FAULTS.
        alone: the outcome when nobody runs the program again.
        retried: the outcome when the front end does.
        schedule: the moves up to there, to be replayed.
    """

    letter: str
    step: int
    label: str
    fault: str
    alone: Outcome
    retried: Outcome
    schedule: str


@dataclass(frozen=True)
class Sweep:
    """A program, swept.

    Args:
        steps: letter -> the names of its steps, without any fault.
        clean: the outcome without any fault.
        points: every crash point, in order.
        seconds: real time that it took.
    """

    steps: dict[str, list[str]]
    clean: Outcome
    points: list[Point]
    seconds: float

    @property
    def outcomes(self) -> Counter[str]:
        """How many runs (two a point) came to each outcome."""
        return Counter(o.name for p in self.points for o in (p.alone, p.retried))


def sweep(stepper: Stepper, judge: Callable[[], Outcome], fail: str = "",
          on_point: Callable[[Point], None] = lambda point: None) -> Sweep:
    """Try every crash point.

    Args:
        stepper: its first replica is the program; the others run after it, in the background.
        judge: says what the run that has just ended came to.
        fail: condition that makes the program's COMMIT fail; without it no COMMIT is refused.
        on_point: gets each point when it is done.

    Returns:
        All of them; a replica's steps are those of the run without faults.
    """
    began = time.monotonic()
    letters = list(stepper.replicas)
    stepper.reset()
    _play(stepper, [f"{letter}.." for letter in letters])
    clean = judge()
    steps = {letter: [label(e.statement) for e in stepper.history
                      if e.replica == letter and e.kind not in ("tick", "end")]
             for letter in letters}
    points = []
    for letter in letters:
        for number in range(len(steps[letter]) + 1):
            for fault in _faults(letter, steps[letter][number:number + 1], fail):
                points.append(_point(stepper, judge, letter, number, steps, fault, fail))
                on_point(points[-1])
    return Sweep(steps, clean, points, time.monotonic() - began)


def _faults(letter: str, step: Sequence[str], fail: str) -> Sequence[str]:
    if not step:
        return FAULTS[:1]
    return FAULTS if fail and step[0] == "COMMIT" else FAULTS[:3]


def _point(stepper: Stepper, judge: Callable[[], Outcome], letter: str, number: int,
           steps: dict[str, list[str]], fault: str, fail: str) -> Point:
    letters = list(steps)
    at = letters.index(letter)
    words = [f"{before}.." for before in letters[:at]]
    words += [f"{letter}*{number}"] if number else []
    words += [f"+{fail}"] if fault == "fail" else [f"{letter}.{fault}"]
    words += [f"{letter}.."] if fault != "kill" else []
    words += [f"{after}.." for after in letters[at + 1:]]
    stepper.reset()
    if not number:
        stepper.start(*letter if not at else ())
    _play(stepper, words)
    words += _again(stepper, letters[1:], LATER)
    alone = judge()
    _again(stepper, letters[:1] + letters[1:], LATEST)
    name = steps[letter][number] if number < len(steps[letter]) else "the end"
    return Point(letter, number, name, fault, alone, judge(), " ".join(words))


def _again(stepper: Stepper, letters: Sequence[str], when: str) -> list[str]:
    """Run these again, one after another, at that time; returns the moves."""
    words = [when] if letters else []
    for letter in letters:
        words += [f"{letter}.{'restart' if stepper.replicas[letter].dead else 'again'}",
                  f"{letter}.."]
    _play(stepper, words)
    return words


def _play(stepper: Stepper, words: Sequence[str]) -> None:
    for move in Schedule.parse(" ".join(words)):
        stepper.record.move += 1
        make(stepper, move)
    stepper.history.complete = stepper.over
