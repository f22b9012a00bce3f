"""Every schedule of a run: which of all interleavings break it, counted against the real database.

Depth first over all choices. Two prefixes that differ only in the order of independent steps
(`lab.engine.trace`) lead to one node, and a node whose steps are all known from elsewhere is not
run again. Every *end* is reached by a real run. The nodes form a graph whose paths are the
schedules, so their number is known exactly and the headline still reads "x of all N".
`reduce=False` runs every single schedule instead; tests compare the two.

Of two replicas that wait for the same transaction's key, either may go first when it is rolled
back: Postgres wakes both. Such a schedule counts with the outcome that it had.
"""

from __future__ import annotations

import heapq
import time
from collections import Counter
from collections.abc import Callable
from itertools import count

from lab.engine.footprint import EVERYTHING, Footprints, Learned
from lab.engine.graph import Next, Node, Path, Paths
from lab.engine.history import History
from lab.engine.result import Finding, Result
from lab.engine.schedule import Move, Schedule
from lab.engine.stepper import Stepper
from lab.engine.trace import Trace
from lab.errors import LabError

__all__ = ["Finding", "Result", "explore"]

Judge = Callable[[History], tuple[str, bool]]


class _Unsound(Exception):
    """One node was found in two different situations."""


def explore(stepper: Stepper, judge: Judge, *, reduce: bool = True, seconds: float | None = None,
            isolation: str = "read committed",
            on_progress: Callable[[int, int, int], None] = lambda runs, left, breaking: None,
            ) -> Result:
    """Run every schedule of the stepper's replicas, from their first statement to their end.

    Args:
        stepper: the replicas; all of them take part.
        judge: called at each end with the history; answers the outcome's code and whether that
            breaks the stage. The code "unknown" is counted apart.
        reduce: let one schedule stand for all that differ in the order of independent steps.
        seconds: stop after this much real time, and say so.
        isolation: default isolation level of the replicas' transactions.
        on_progress: called after each run with runs done, branches left, breaking ends so far.
    """
    footprints, began = Footprints(stepper.monitor, isolation), time.monotonic()
    while True:
        try:
            explorer = _Explorer(stepper, judge, reduce, footprints, on_progress)
            return explorer.run(began, seconds)
        except Learned:
            continue
        except _Unsound:  # something escaped the footprints: run every single schedule
            if not reduce:
                raise LabError("The same schedule did not always come to the same statements.",
                               "Look for what differs from run to run: the time, random numbers, "
                               "threads.", code=1) from None
            reduce = False


class _Explorer:
    def __init__(self, stepper: Stepper, judge: Judge, reduce: bool, footprints: Footprints,
                 on_progress: Callable[[int, int, int], None]) -> None:
        self.stepper, self.judge, self.reduce = stepper, judge, reduce
        self.footprints, self.on_progress = footprints, on_progress
        self.nodes: dict[tuple, Node] = {}
        self.known: dict[tuple, Next | None] = {}  # past of a replica -> what it does next
        self.frontier: list[tuple[int, int, tuple, Path]] = []
        self.order = count()
        self.root: tuple = ()
        self.runs = self.breaking = 0

    def run(self, began: float, seconds: float | None) -> Result:
        self._follow((), 0)
        while self.frontier and (seconds is None or time.monotonic() - began < seconds):
            preemptions, _, key, path = heapq.heappop(self.frontier)
            if not self._derive(key, path, preemptions):
                self._follow(path, preemptions)
        return self._result(time.monotonic() - began)

    def _follow(self, path: Path, preemptions: int) -> None:
        """Run a path for real, and on from it to the first node that is known, or to the end."""
        self.stepper.reset()
        self.stepper.start(*self.stepper.replicas)
        trace, done = Trace(self.stepper.replicas), ()
        key, node, new = self._visit(trace, done, list(self.stepper.replicas))
        self.root = self.root or key
        while node.held and (new or len(done) < len(path)):
            if len(done) < len(path):
                letter = path[len(done)]
                if letter not in node.held:  # the same schedule came to another place this time
                    raise _Unsound
            else:
                letter = done[-1] if done and done[-1] in node.held else next(iter(node.held))
            if new:
                self._branch(key, node, done, preemptions, leave_out=letter)
            trace = trace.copy()
            moved = self._step(letter, node.held[letter], trace)
            done += (letter,)
            key, child, new = self._visit(trace, done, moved)
            node.children[letter] = key
            node = child
        self.runs += 1
        self.on_progress(self.runs, len(self.frontier), self.breaking)

    def _step(self, letter: str, step: Next, trace: Trace) -> list[str]:
        """Take the step; returns the replicas that came to a new place by it."""
        seen = len(self.stepper.history)
        self.stepper.record.move += 1
        self.stepper.step(letter)
        trace.add(letter, step.footprint, step.in_transaction)
        moved = [letter]
        for event in self.stepper.history.events[seen:]:
            if event.resumes is not None and event.replica != letter:
                trace.released(event.replica, letter)
                moved.append(event.replica)
        return moved

    def _visit(self, trace: Trace, done: Path, moved: list[str]) -> tuple[tuple, Node, bool]:
        held = {letter: self._held(letter) for letter in self.stepper.possible()}
        waiting = {r.letter for r in self.stepper.replicas.values() if r.waits_for}
        for letter in moved:
            if letter not in waiting:
                self.known[trace.past(letter)] = held.get(letter)
        key = trace.key if self.reduce else ("path", *done)
        node = self.nodes.get(key)
        if node is not None:
            if {k: n.text for k, n in node.held.items()} != {k: n.text for k, n in held.items()}:
                raise _Unsound
            return key, node, False
        node = self.nodes[key] = Node(held, trace, not waiting)
        if not held:
            history = self.stepper.history
            history.complete = self.stepper.over
            node.code, node.breaks = self.judge(history)
            self.breaking += node.breaks
        return key, node, True

    def _held(self, letter: str) -> Next:
        step = self.stepper.held_step(letter)
        if self.reduce and self.stepper.beyond_read_committed:
            raise _Unsound
        return Next(step.text, self.footprints.of(step) if self.reduce else EVERYTHING,
                     step.in_transaction)

    def _branch(self, key: tuple, node: Node, done: Path, preemptions: int,
                leave_out: str = "") -> None:
        for letter in node.held:
            if letter != leave_out:
                switch = bool(done and done[-1] in node.held and done[-1] != letter)
                heapq.heappush(self.frontier, (preemptions + switch, next(self.order), key,
                                               (*done, letter)))

    def _derive(self, key: tuple, path: Path, preemptions: int) -> bool:
        """Find where a branch leads without running it; False when that is not certain."""
        node, letter = self.nodes[key], path[-1]
        step = node.held[letter]
        if not self.reduce or not node.nobody_waits:
            return False
        trace = node.trace.copy()
        trace.add(letter, step.footprint, step.in_transaction)
        if trace.key in self.nodes:
            node.children[letter] = trace.key
            return True
        past = trace.past(letter)
        # One that could have to wait has in its past who holds the lock: it is known if it did not.
        if past not in self.known:
            return False
        held = {k: n for k, n in node.held.items() if k != letter}
        if self.known[past]:
            held[letter] = self.known[past]
        if not held:
            return False
        held = {k: held[k] for k in self.stepper.replicas if k in held}
        self.nodes[trace.key] = Node(held, trace, True)
        node.children[letter] = trace.key
        self._branch(trace.key, self.nodes[trace.key], path, preemptions)
        return True

    def _result(self, seconds: float) -> Result:
        outcomes: Counter[str] = Counter()
        ends, paths = [], Paths(self.nodes, self.root)
        for key, (size, plainest) in paths.ends.items():
            node = self.nodes[key]
            outcomes[node.code] += size
            ends.append((not node.breaks, *plainest, node, size))
        ends.sort(key=lambda end: end[:4])
        findings = [Finding(_text(path), node.code, size, node.breaks)
                    for _, _, _, path, node, size in ends]
        complete = paths.untried is None
        return Result(
            total=outcomes.total(), breaking=sum(f.size for f in findings if f.breaks),
            unknown=outcomes["unknown"], runs=self.runs, complete=complete,
            preemptions=paths.untried - 1 if paths.untried else None, seconds=seconds,
            outcomes=+outcomes, findings=findings, reduced=self.reduce)


def _text(path: Path) -> Schedule:
    """A whole path as a schedule: the last turn of each replica runs to its end."""
    moves = list(Schedule.of(path))
    last = {move.letter: index for index, move in enumerate(moves)}
    return Schedule(Move("run", move.letter) if last[move.letter] == index else move
                    for index, move in enumerate(moves))
