"""Where each event of a history goes on a timeline: one lane a replica, no drawing.

A stepped run is laid out by its order, one column a statement, so the axis is the move number. A
free run keeps the order too; its axis is the world's clock, stretched where statements are and cut
short where nothing happens: two milliseconds would not be seen beside a pause of a minute.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import zip_longest

from lab.engine.history import ENDS, Event, History

__all__ = ["WRITES", "Band", "Bar", "Lanes", "Mark", "lay_out", "no_row", "takes_lock"]

ACTS = ("statement", "request")
WORLD = ("clock", "condition", "expiry")
FAULTS = ("kill", "cut", "freeze", "thaw")
WRITES = ("INSERT", "UPDATE", "DELETE")
_LOCKS = re.compile(r"advisory|\bFOR\s+(?:UPDATE|NO KEY|SHARE|KEY)|\bON\s+CONFLICT\b|"
                    r"^\s*LOCK\b", re.I)
_FINISHED = 0.5  # of the releasing column: a wait ends in the middle of the commit that ends it


@dataclass(frozen=True)
class Bar:
    """A statement or a request. `look` is ran, undone, waiting, no-row, error or lost."""

    replica: str
    start: float
    end: float
    text: str
    look: str
    seq: int
    note: str = ""  # what to add to the text: whom it waits for, what it got
    stays: bool = False  # whatever becomes of a transaction: a request, or a transaction by itself


@dataclass(frozen=True)
class Mark:
    """A point: commit, rollback, kill, cut, freeze or thaw."""

    replica: str
    x: float
    kind: str
    seq: int


@dataclass(frozen=True)
class Band:
    """A stretch of a lane: a lock held, or (`what` = "alive") a run from its tick to its end."""

    replica: str
    start: float
    end: float
    what: str


@dataclass
class Lanes:
    """What a timeline draws. All positions are in columns, from 0 to `width`."""

    replicas: list[str]
    stepped: bool
    bars: list[Bar] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    bands: list[Band] = field(default_factory=list)
    clocks: list[tuple[float, str]] = field(default_factory=list)  # (x, ISO time or condition)
    ticks: list[tuple[float, str]] = field(default_factory=list)  # (x, text under the axis)
    width: float = 0.0
    sealed: dict[str, int] = field(default_factory=dict)  # bars that a replica's last COMMIT covers

    def undo(self, replica: str) -> None:
        """A replica's transaction came to nothing: so did its statements, but for what stays."""
        for index in range(self.sealed.get(replica, 0), len(self.bars)):
            bar = self.bars[index]
            if bar.replica == replica and bar.look == "ran" and not bar.stays:
                self.bars[index] = replace(bar, look="undone")

    def place(self, seq: int) -> tuple[str, float, float] | None:
        """Replica, start and end of the bar or mark of an event; None when it has none."""
        for bar in self.bars:
            if bar.seq == seq and bar.look != "waiting":
                return bar.replica, bar.start, bar.end
        for mark in self.marks:
            if mark.seq == seq:
                return mark.replica, mark.x - 0.3, mark.x + 0.3
        return None


def no_row(event: Event) -> bool:
    """Whether the statement succeeded and got nothing: a claim or a lock that went to another."""
    if event.kind == "request":
        return event.detail.get("tag") == "nil"  # Redis has nothing, or has it already
    return (event.outcome == "refused"
            or (event.label.startswith(WRITES) and event.detail.get("tag", "").endswith(" 0"))
            or (event.detail.get("value") is False and "advisory" in event.statement.lower()))


def takes_lock(event: Event) -> bool:
    """Whether the statement keeps others out until its transaction ends; plain new rows do not."""
    return (event.kind == "statement" and event.outcome == "ok" and not no_row(event)
            and not event.alone and (event.label.startswith(("UPDATE", "DELETE"))
                                     or _LOCKS.search(event.statement) is not None))


def lay_out(history: History) -> Lanes:
    """Give every event its place.

    Args:
        history: of a stepped run, whose events belong to moves, or of a free one.
    """
    stepped = any(event.move >= 0 for event in history)
    spans, width = (_by_order if stepped else _by_clock)(history)
    lanes = Lanes(history.replicas(), stepped, width=width)
    alive: dict[str, float] = {}
    locked: dict[str, float] = {}
    waits: dict[str, tuple[Event, float]] = {}

    def close(since: dict[str, float], replica: str, x: float, what: str) -> None:
        if (start := since.pop(replica, None)) is not None:
            lanes.bands.append(Band(replica, start, x, what))

    def stop_waiting(replica: str, x: float) -> None:
        if wait := waits.pop(replica, None):
            event, start = wait
            note = f"waits for {', '.join(event.waits_for)}" if event.waits_for else "waits"
            lanes.bars.append(Bar(replica, start, x, event.label, "waiting", event.seq, note))

    for event in history:
        start, end = spans[event.seq]
        replica = event.replica
        middle = (start + end) / 2
        if event.kind in WORLD:
            lanes.clocks.append((middle, event.clock if event.kind == "clock" else event.statement))
        elif event.kind == "tick":
            alive.setdefault(replica, start)
            if not stepped:
                lanes.clocks.append((start, event.clock))
        elif event.outcome == "waiting":
            waits[replica] = (event, start)
        elif event.kind in ACTS:
            if event.resumes is not None:
                stop_waiting(replica, start)
            lanes.bars.append(Bar(replica, start, end, event.label, _look(event), event.seq,
                                  _note(event), event.kind == "request" or event.alone))
            if takes_lock(event):
                locked.setdefault(replica, start)
        elif event.kind in (*ENDS, *FAULTS):
            lanes.marks.append(Mark(replica, middle, event.kind, event.seq))
        if event.kind in ("rollback", "kill") or (
                event.kind == "cut" and event.statement != "after COMMIT"):
            lanes.undo(replica)
        elif event.kind == "commit":
            lanes.sealed[replica] = len(lanes.bars)
        if event.kind in (*ENDS, "kill", "cut", "end"):
            close(locked, replica, middle, "lock")
            stop_waiting(replica, middle)
        if event.kind in ("kill", "end"):
            close(alive, replica, middle, "alive")
    for replica in lanes.replicas:
        stop_waiting(replica, width)
        close(locked, replica, width, "lock")
        close(alive, replica, width, "alive")
    if stepped:
        lanes.ticks = _move_numbers(history, spans)
    return lanes


def _look(event: Event) -> str:
    if event.failed:
        return "error"
    if event.outcome in ("cut", "killed"):
        return "lost"
    return "no-row" if no_row(event) else "ran"


def _note(event: Event) -> str:
    if event.failed:
        return event.outcome.split()[1]
    if isinstance(event.detail.get("value"), bool) and "advisory" in event.statement.lower():
        return "true" if event.detail["value"] else "false"
    nothing = "nil" if event.kind == "request" else "no row"
    return nothing if no_row(event) else event.values


def _by_order(history: History) -> tuple[dict[int, tuple[float, float]], float]:
    """One column a step; what a step released completes in that step's own column."""
    spans: dict[int, tuple[float, float]] = {}
    x = 0.0
    for event in history:
        if event.kind in WORLD:
            x += 1.5 if event.kind == "expiry" else 0.6  # the clock's label stands before it
            spans[event.seq] = (x - 0.6, x)
        elif event.resumes is not None:
            spans[event.seq] = (max(0.0, x - 1 + _FINISHED), x)
        elif event.kind in (*ACTS, *ENDS, *FAULTS):
            spans[event.seq] = (x, x + 1)
            x += 1
        else:
            spans[event.seq] = (x, x)
    return spans, x


def _by_clock(history: History) -> tuple[dict[int, tuple[float, float]], float]:
    """Starts and ends in their real order, each with room to be seen; pauses take a little."""
    points: list[tuple[float, int, int]] = []  # real time, seq, 0 for a start and 1 for an end
    first: dict[str, float] = {}
    for event in reversed(history.events):
        # A tick is heard of from what the process prints, maybe after its first statement began.
        started = min(event.started, first.get(event.replica, event.started))
        first[event.replica] = event.started
        points.append((started, event.seq, 0))
        points.append((event.ended if event.ended and event.kind != "tick" else started,
                       event.seq, 1))
    # Where times are equal, what is without width comes first: a tick, then its first statement.
    points.sort(key=lambda point: (point[0], history[point[1]].kind != "tick", *point[1:]))
    places: dict[tuple[int, int], float] = {}
    x = 0.0
    for point, after in zip_longest(points, points[1:]):
        event = history[point[1]]
        places[point[1], point[2]] = x
        wide = point[2] == 0 and event.kind in (*ACTS, *ENDS, *FAULTS)
        pause = _minutes(event, history[after[1]]) if after and point[2] == 1 else 0.0
        x += (0.9 if wide else 0.1) + (min(3.0, 1.5 * pause) if pause > 0.25 else 0.0)
    spans = {event.seq: (places[event.seq, 0], places[event.seq, 1]) for event in history}
    for event in history:
        if event.resumes is not None:
            spans[event.seq] = (spans[event.seq][1] - 0.4, spans[event.seq][1])
    return spans, x


def _minutes(event: Event, after: Event) -> float:
    """World time from one event to another."""
    if not (event.clock and after.clock):
        return 0.0
    passed = datetime.fromisoformat(after.clock) - datetime.fromisoformat(event.clock)
    return passed.total_seconds() / 60


def _move_numbers(history: History, spans: dict) -> list[tuple[float, str]]:
    """Each move's number, counted from 1, under the middle of the columns it took."""
    columns: dict[int, list[float]] = {}
    for event in history:
        if event.kind in (*ACTS, *ENDS, *FAULTS) and event.resumes is None:
            columns.setdefault(event.move, []).extend(spans[event.seq])
    return [((min(xs) + max(xs)) / 2, str(move + 1)) for move, xs in columns.items() if move >= 0]
