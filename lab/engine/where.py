"""Where in the stage's code each replica is: the processes are asked, the code knows nothing."""

from __future__ import annotations

import time
from dataclasses import dataclass

from lab.engine.stepper import Stepper

__all__ = ["Frame", "where"]

LIMIT = 2.0  # seconds for an answer; a process that is blocked in its driver needs less than one ms


@dataclass(frozen=True)
class Frame:
    """A line of the stage that a replica is on.

    Args:
        file: its path inside the stage's folder.
        line: from 1.
        function: the name of the function that the line belongs to.
    """

    file: str
    line: int
    function: str


def where(stepper: Stepper) -> dict[str, list[Frame]]:
    """The frames of every run under way that are in the stage's folder, innermost first.

    A frozen process answers nothing, so it is left out, as is one that is slow to answer.
    """
    asked = {replica.letter: replica.process for replica in stepper.replicas.values()
             if replica.under_way and not replica.frozen and replica.process.ready}
    for process in asked.values():
        process.frames = None
        process.order(where=True)
    deadline = time.monotonic() + LIMIT
    while any(p.frames is None and p.alive for p in asked.values()):
        if time.monotonic() > deadline:
            break
        stepper.gate.pump(0.05)
    return {letter: [Frame(**frame) for frame in process.frames or ()]
            for letter, process in asked.items()}
