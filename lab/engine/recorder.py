"""Writes down what the stepped engine sees, in the words of `lab.engine.history`."""

from __future__ import annotations

import time
from datetime import datetime
from typing import Any

from lab.engine.history import Event, History
from lab.engine.link import GONE, Step

__all__ = ["Recorder"]

_ENDS = {"COMMIT": "commit", "END": "commit", "ROLLBACK": "rollback", "ABORT": "rollback"}


class Recorder:
    """A history that knows the run's beginning, the move under way and the world's time."""

    def __init__(self, now: datetime) -> None:
        self.history = History()
        self.move = -1
        self.now = now
        self._zero = time.monotonic()

    def note(self, letter: str, kind: str, statement: str, outcome: str = "ok",
             **more: Any) -> Event:
        """Something that happened in an instant: a tick, an end, a fault, a clock move."""
        at = time.monotonic() - self._zero
        return self.history.add(replica=letter, kind=kind, statement=statement, outcome=outcome,
                                started=at, ended=at, move=self.move, clock=self.now.isoformat(),
                                **more)

    def step(self, letter: str, step: Step, outcome: str, **more: Any) -> Event:
        """A statement or request that was released: done, or waiting."""
        detail: dict[str, Any] = {"tag": step.tags[-1]} if step.tags else {}
        if step.value is not None:
            detail["value"] = step.value
        if step.values and step.tags and step.tags[-1].endswith(" 1"):
            detail["values"] = step.values
        if _kind(step) == "statement" and not step.in_transaction:
            detail["alone"] = True
        return self.history.add(
            replica=letter, kind=_kind(step), statement=step.text, outcome=outcome, move=self.move,
            started=step.released - self._zero, ended=step.done and step.done - self._zero,
            clock=self.now.isoformat(), detail=detail, **more)


def _kind(step: Step) -> str:
    if step.segment.kind == "request":
        return "request"
    words = step.text.upper().rstrip("; ").split()
    kind = _ENDS.get(words[0].rstrip(";") if words else "", "statement")
    if words[1:2] == ["TO"]:  # ROLLBACK TO SAVEPOINT ends nothing
        return "statement"
    undone = step.tags[-1:] == ["ROLLBACK"] or (step.error and step.error != GONE)
    if kind == "commit" and undone:  # COMMIT of a failed transaction, or one that was refused
        return "rollback"
    return kind
