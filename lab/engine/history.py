"""The record of a run, one event a line: read by terminal, plots, page and checks alike."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

__all__ = ["Event", "History", "label"]

ENDS = ("commit", "rollback")


@dataclass(frozen=True)
class Event:
    """One thing that happened.

    Args:
        seq: position in the history, from 0.
        replica: letter of the replica that acted; "" for the world (clock, condition, expiry).
        kind: tick, end, statement, commit, rollback, request, kill, cut, freeze, thaw, clock,
            condition or expiry (of a key in Redis, which the clock brought about).
        statement: the SQL text, the HTTP request line, or what the move did.
        started: seconds since the run began.
        ended: seconds since the run began; None while it waits.
        outcome: "ok", "waiting", "killed", "cut", "refused", or "error: <SQLSTATE or name>
            <message>".
        move: number of the schedule's move that caused it, from 0; -1 before the first.
        clock: the world's time, ISO 8601 with zone.
        resumes: seq of the "waiting" event that this one completes.
        waits_for: letters of the replicas that it waits for.
        detail: what else was seen: "tag" (command tag), "value" (a lone boolean or integer),
            "values" (of one row, those that the stage shows), "alone" (a transaction by itself:
            what it did stays).
    """

    seq: int
    replica: str
    kind: str
    statement: str
    started: float
    ended: float | None
    outcome: str
    move: int = -1
    clock: str = ""
    resumes: int | None = None
    waits_for: tuple[str, ...] = ()
    detail: dict = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The short name shown everywhere, such as "INSERT worker_runs"."""
        return label(self.statement) if self.kind in ("statement", *ENDS) else self.statement

    @property
    def failed(self) -> bool:
        """Whether it ended in an error."""
        return self.outcome.startswith("error")

    @property
    def alone(self) -> bool:
        """Whether it was a transaction by itself: what it did stays, and it locks nothing."""
        return bool(self.detail.get("alone")) and "advisory" not in self.statement.lower()

    @property
    def values(self) -> str:
        """What it read or wrote of the columns that the stage shows, such as "use_count 1"."""
        return ", ".join(f"{name} {value}" for name, value in self.detail.get("values", {}).items())


class History:
    """Events in the order in which they were seen; `complete` says that every replica has ended.

    A history that is not complete cannot be judged: its verdict is `unknown`.
    """

    def __init__(self, events: Iterable[Event] = (), complete: bool = False) -> None:
        self.events = list(events)
        self.complete = complete

    def __iter__(self) -> Iterator[Event]:
        return iter(self.events)

    def __len__(self) -> int:
        return len(self.events)

    def __getitem__(self, index: int) -> Event:
        return self.events[index]

    def add(self, **fields) -> Event:
        """Append an event, numbering it; returns it."""
        event = Event(seq=len(self.events), **fields)
        self.events.append(event)
        return event

    def replicas(self) -> list[str]:
        """The letters of the replicas that took part, in order."""
        return sorted({event.replica for event in self.events if event.replica})

    def save(self, path: Path) -> Path:
        """Write one JSON object a line; the last line says whether the history is complete."""
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = [json.dumps(asdict(event), ensure_ascii=False) for event in self.events]
        lines.append(json.dumps({"complete": self.complete}))
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    @classmethod
    def load(cls, path: Path) -> History:
        """Read what `save` wrote. A file that is cut off is a history that is not complete."""
        history = cls()
        for line in path.read_text(encoding="utf-8").splitlines():
            try:
                fields = json.loads(line)
            except json.JSONDecodeError:
                break
            if "complete" in fields:
                history.complete = fields["complete"]
            else:
                fields["waits_for"] = tuple(fields["waits_for"])
                history.events.append(Event(**fields))
        return history


_COMMENT = re.compile(r"--[^\n]*|/\*.*?\*/", re.S)
_NAME = r'(?:"?\w+"?\.)?"?(\w+)"?'
_INTO = re.compile(rf"\b(INSERT\s+INTO|UPDATE(?:\s+ONLY)?|DELETE\s+FROM)\s+{_NAME}", re.I)
_FROM = re.compile(rf"\bFROM\s+(?:ONLY\s+)?{_NAME}", re.I)
_CALL = re.compile(rf"^SELECT\s+{_NAME}\s*\(", re.I)
_LOCKING = re.compile(r"\bFOR\s+(UPDATE|NO KEY UPDATE|SHARE|KEY SHARE)\b", re.I)


def label(statement: str) -> str:
    """The short name of a statement: its verb and the table, function or channel it acts on.

    >>> label("INSERT INTO worker_runs (name) VALUES ($1) ON CONFLICT DO NOTHING")
    'INSERT worker_runs'
    >>> label("SELECT pg_try_advisory_xact_lock(1)")
    'SELECT pg_try_advisory_xact_lock'
    """
    text = " ".join(_COMMENT.sub(" ", statement).split()).rstrip("; ")
    verb = text.split(" ", 1)[0].upper()
    if verb in ("INSERT", "UPDATE", "DELETE", "WITH") and (found := _INTO.search(text)):
        return f"{found[1].split()[0].upper()} {found[2]}"
    if verb in ("SELECT", "WITH"):
        if verb == "SELECT" and (found := _CALL.match(text)) and (
                found[1].startswith("pg_") or not _FROM.search(text)):
            return f"SELECT {found[1]}"
        if found := _FROM.search(text):
            locking = _LOCKING.search(text)
            return f"SELECT {found[1]}" + (f" FOR {locking[1].upper()}" if locking else "")
    if verb in ("NOTIFY", "LISTEN", "SAVEPOINT", "RELEASE", "COPY", "LOCK", "ROLLBACK"):
        return " ".join(text.split()[:3 if verb in ("LOCK", "ROLLBACK", "RELEASE") else 2])
    return text if len(text) <= 40 else text[:39] + "…"
