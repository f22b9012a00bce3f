"""Labels on poles over the bars of a lane: where each goes so that none lies on another."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from lab.show.lanes import Bar

__all__ = ["Flag", "flags_of", "levels_of", "pack", "raise_over"]

AIR = 12  # pixels between two labels on one level


@dataclass
class Flag:
    """The name of one bar, or of several alike in a row. Positions in columns, width in pixels."""

    start: float
    last: float
    text: str
    bad: bool
    count: int = 1
    width: float = 0.0
    level: int | None = 0  # None: there is no room for it

    def end(self, column: float) -> float:
        """Where the label ends, in pixels."""
        return self.start * column + self.width + AIR


def flags_of(bars: Iterable[Bar], ends: Collection[float], bad: Collection[int],
             measure: Callable[[str, bool], float]) -> list[Flag]:
    """The labels of one lane, left to right.

    Args:
        bars: of one replica, in their order. A wait and the statement it ends in get one label.
        ends: where transactions end; bars on two sides of one are not drawn together.
        bad: seqs of the bars whose label is bold.
        measure: the width in pixels of a text, bold or not.
    """
    flags: list[Flag] = []
    waiting: Bar | None = None
    bars = list(bars)
    for bar, after in zip(bars, [*bars, None][1:], strict=True):
        if bar.look == "waiting" and after is not None and after.text == bar.text:
            waiting = bar
            continue
        text = bar.text + (f" → {bar.note}" if bar.note and bar.look != "waiting" else "")
        start = waiting.start if waiting else bar.start
        waiting = None
        if (flags and (flags[-1].text, flags[-1].bad) == (text, bar.seq in bad)
                and not any(flags[-1].last <= end <= start for end in ends)):
            flags[-1].count += 1
            flags[-1].last = bar.end
        else:
            flags.append(Flag(start, bar.end, text, bar.seq in bad))
    for flag in flags:
        flag.text += f" ×{flag.count}" if flag.count > 1 else ""
        flag.width = measure(flag.text, flag.bad)
    return flags


def levels_of(flags: Iterable[Flag]) -> int:
    """How many lines of labels there are."""
    return 1 + max((flag.level or 0 for flag in flags), default=0)


def raise_over(flags: list[Flag], column: float) -> None:
    """Lift each label over the poles of all that start under it: no pole crosses a label."""
    for index in reversed(range(len(flags))):
        flag = flags[index]
        under = [other.level or 0 for other in flags[index + 1:]
                 if other.start * column < flag.end(column)]
        flag.level = 1 + max(under) if under else 0


def pack(flags: list[Flag], column: float, levels: int) -> None:
    """Fit the labels into at most so many lines; poles may pass behind labels.

    Where there is no room for all, those that tell most are placed first: the bold ones, then those
    that say what a statement got.
    """
    for height in range(1, levels + 1):
        taken: list[list[tuple[float, float]]] = [[] for _ in range(height)]
        for flag in sorted(flags, key=lambda f: (not f.bad, "→" not in f.text, f.start)):
            start, end = flag.start * column, flag.end(column)
            flag.level = next((level for level in reversed(range(height)) if all(
                end <= left or right <= start for left, right in taken[level])), None)
            if flag.level is not None:
                taken[flag.level].append((start, end))
        if all(flag.level is not None for flag in flags):
            return
