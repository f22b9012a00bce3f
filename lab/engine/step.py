"""A statement on its way through the gate."""

from __future__ import annotations

from dataclasses import dataclass, field

from lab.engine.protocol import Segment

__all__ = ["Step"]


@dataclass
class Step:
    """A statement (or several in one turn) on its way, and what came back.

    Args:
        segment: what the client sent.
        in_transaction: whether its connection was inside a transaction when it was sent.
        released: real time (`time.monotonic`) of its release; None while it is held.
        done: real time of the last answer; None while it is outstanding.
        value: the lone boolean or integer that it answered.
        values: shown columns -> what it wrote into them, or read in its first row.
    """

    segment: Segment
    in_transaction: bool = False
    released: float | None = None
    done: float | None = None
    tags: list[str] = field(default_factory=list)
    error: tuple[str, str] | None = None
    value: bool | int | None = None
    values: dict[str, bool | int | str] = field(default_factory=dict)
    cut: bool = False
    left: int = 0

    @property
    def text(self) -> str:
        """The statement's text."""
        return self.segment.text

    @property
    def outcome(self) -> str:
        """In the words of the history."""
        if self.cut:
            return "cut"
        return f"error: {self.error[0]} {self.error[1]}" if self.error else "ok"
