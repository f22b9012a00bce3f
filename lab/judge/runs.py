"""A history taken apart into runs, and what can be read off one."""

from __future__ import annotations

from dataclasses import dataclass

from lab.engine.history import Event, History

__all__ = ["Run", "answer", "nothing", "runs_of", "writing_commits", "wrote"]

WRITES = ("INSERT", "UPDATE", "DELETE")


@dataclass(frozen=True)
class Run:
    """One run of a replica: its events, from its tick to its end or its death."""

    letter: str
    events: tuple[Event, ...]

    @property
    def statements(self) -> list[Event]:
        """What it executed, in order; a statement that waited is here once, as it completed."""
        return [e for e in self.events
                if e.kind in ("statement", "request") and e.outcome != "waiting"]

    @property
    def commit(self) -> Event | None:
        """The COMMIT of its last writes; None when they were not kept."""
        return next((e for e in reversed(self.events) if e.kind == "commit" and e.outcome == "ok"),
                    None)

    @property
    def undone(self) -> Event | None:
        """What undid writes of it that were not committed."""
        open_writes = False
        for event in self.events:
            if event.kind == "statement" and wrote(event):
                open_writes = True
            elif event.kind == "commit" and event.outcome == "ok":
                open_writes = False
            elif open_writes and (event.kind in ("rollback", "kill", "cut") or event.failed):
                return event
        return None


def runs_of(history: History) -> list[Run]:
    """The runs of a history, in the order in which they began."""
    runs: list[list[Event]] = []
    now: dict[str, list[Event]] = {}
    for event in history:
        if event.kind == "tick":
            runs.append(now.setdefault(event.replica, []))
            now[event.replica] = runs[-1] = []
        if event.replica in now:
            now[event.replica].append(event)
    return [Run(events[0].replica, tuple(events)) for events in runs]


def writing_commits(history: History) -> int:
    """The most transactions that wrote something and that one run committed."""
    most = 0
    for run in runs_of(history):
        commits, writes = 0, False
        for event in run.events:
            writes |= event.kind == "statement" and wrote(event)
            if event.kind == "commit" and event.outcome == "ok":
                commits, writes = commits + writes, False
        most = max(most, commits)
    return most


def answer(event: Event) -> str:
    """What a statement answered, to be put after its label."""
    value = event.detail.get("value")
    if isinstance(value, bool):
        return f": {str(value).lower()}"
    if nothing(event):
        return ": nil" if event.kind == "request" else ": no row"
    return ""


def nothing(event: Event) -> bool:
    """Whether a statement answered false or gave no row, or Redis answered nil."""
    tag = event.detail.get("tag", "")
    return event.detail.get("value") is False or tag.endswith(" 0") or tag == "nil"


def wrote(event: Event) -> bool:
    """Whether a statement changed at least one row."""
    return (event.label.startswith(WRITES) and event.outcome == "ok"
            and not event.detail.get("tag", "").endswith(" 0"))
