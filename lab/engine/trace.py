"""The partial order of a run's steps: which of them could have noticed each other's order.

Each step carries a vector clock: how many steps of every replica come before it for a reason (its
own earlier ones, and those it depends on). Two prefixes with the same clocks are the same run.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from lab.engine.footprint import Footprint, dependent

__all__ = ["Trace"]

Clock = tuple[int, ...]


class Trace:
    """The steps so far.

    Args:
        letters: the replicas, in order.
    """

    def __init__(self, letters: Iterable[str]) -> None:
        self.letters = list(letters)
        self._clocks: dict[str, tuple[Clock, ...]] = dict.fromkeys(self.letters, ())
        self._prints: dict[str, tuple[Footprint, ...]] = dict.fromkeys(self.letters, ())
        self._open: dict[str, Footprint] = dict.fromkeys(self.letters, Footprint())

    def copy(self) -> Trace:
        """A trace that can go on by itself."""
        twin = Trace(self.letters)
        twin._clocks, twin._prints = dict(self._clocks), dict(self._prints)
        twin._open = dict(self._open)
        return twin

    def add(self, letter: str, footprint: Footprint, in_transaction: bool) -> None:
        """A step of `letter`; outside a transaction it is one itself, begun and ended at once."""
        if footprint.ends or not in_transaction:
            # It shows what the transaction wrote and lets go of its locks; it reads nothing again.
            whole = replace(self._open[letter], reads=frozenset(), ends=True)
            footprint, self._open[letter] = footprint | whole, Footprint()
        else:
            self._open[letter] |= footprint
        self._append(letter, footprint)

    def _append(self, letter: str, footprint: Footprint) -> None:
        me = self.letters.index(letter)
        clock = list(self._last(letter))
        for index, other in enumerate(self.letters):
            prints = self._prints[other]
            if other != letter:
                for number in range(len(prints), 0, -1):
                    if number <= clock[index]:
                        break
                    if dependent(prints[number - 1], footprint):
                        clock = _join(clock, self._clocks[other][number - 1])
        clock[me] = len(self._prints[letter]) + 1
        self._clocks[letter] += (tuple(clock),)
        self._prints[letter] += (footprint,)

    def released(self, letter: str, by: str) -> None:
        """The waiting step of `letter` was set free by the last one of `by`: an event by itself."""
        self._append(letter, self._prints[letter][-1])
        *earlier, last = self._clocks[letter]
        self._clocks[letter] = (*earlier, tuple(_join(last, self._clocks[by][-1])))

    def past(self, letter: str) -> tuple:
        """All that can have an influence on what the replica does next: equal pasts, equal step."""
        seen = self._last(letter)
        return (letter, tuple(self._clocks[other][:number]
                              for other, number in zip(self.letters, seen, strict=True)))

    @property
    def key(self) -> tuple:
        """Equal for two prefixes that are the same run."""
        return tuple(self._clocks.values())

    def _last(self, letter: str) -> Clock:
        return self._clocks[letter][-1] if self._clocks[letter] else (0,) * len(self.letters)


def _join(a: Iterable[int], b: Iterable[int]) -> list[int]:
    return [max(pair) for pair in zip(a, b, strict=True)]
