"""The graph of an exploration: nodes are situations, edges steps, and paths the schedules."""

from __future__ import annotations

from dataclasses import dataclass, field

from lab.engine.footprint import Footprint
from lab.engine.trace import Trace

__all__ = ["Next", "Node", "Path", "Paths"]

Path = tuple[str, ...]


@dataclass(frozen=True)
class Next:
    """The statement a replica is held at."""

    text: str
    footprint: Footprint
    in_transaction: bool


@dataclass
class Node:
    """A situation, in which the replicas in `held` can move; one that nobody can is an end.

    Args:
        held: replica -> its next statement.
        trace: how it was come to.
        nobody_waits: no replica waits for a lock.
        children: replica -> key of the node that its step leads to; only for steps that were tried.
        code: at an end: the outcome.
        breaks: at an end: whether the outcome is a failure.
    """

    held: dict[str, Next]
    trace: Trace
    nobody_waits: bool
    children: dict[str, tuple] = field(default_factory=dict)
    code: str | None = None
    breaks: bool = False


class Paths:
    """All paths through the graph of nodes: each is a schedule.

    Args:
        nodes: key -> node; those that were reached.
        root: key of the first.

    `ends` has, for each end, how many schedules lead to it and the plainest of them. `untried` is
    the fewest preemptions that a schedule which was not tried has; None when all were.
    """

    def __init__(self, nodes: dict[tuple, Node], root: tuple) -> None:
        self.ends: dict[tuple, tuple[int, tuple[int, int, Path]]] = {}
        self.untried: int | None = None
        # node -> last letter of the way there -> schedules, fewest preemptions, plainest
        layer: dict[tuple, dict[str, tuple[int, int, tuple[int, int, Path]]]] = {
            root: {"": (1, 0, (0, 0, ()))}}
        while layer:
            following: dict = {}
            for key, arrivals in layer.items():
                node = nodes[key]
                if node.code is not None:
                    self.ends[key] = (sum(size for size, _, _ in arrivals.values()),
                                      min(plainest for _, _, plainest in arrivals.values()))
                for letter in node.held:
                    here = following.setdefault(node.children.get(letter), {})
                    for last, (size, forced, (switches, length, path)) in arrivals.items():
                        forced += last != letter and last in node.held
                        longer = (switches + (last != letter), length + 1, (*path, letter))
                        old = here.get(letter, (0, forced, longer))
                        here[letter] = (old[0] + size, min(old[1], forced), min(old[2], longer))
            for _, forced, _ in following.pop(None, {}).values():
                self.untried = forced if self.untried is None else min(self.untried, forced)
            layer = following
