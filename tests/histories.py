"""Histories made by hand, in the shape that the engines write, and compared with each other."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

from lab.engine.history import Event, History

LOCK = "SELECT pg_try_advisory_xact_lock($1)"
CLAIM = ("INSERT INTO worker_runs (name, key) VALUES ($1, $2) "
         "ON CONFLICT (name, key) DO NOTHING RETURNING 1")
WORK = (("SELECT members.id FROM members", "SELECT 3"),
        ("INSERT INTO token_transactions (member_id) VALUES ($1)", "INSERT 0 3"),
        ("INSERT INTO notifications (member_id) VALUES ($1)", "INSERT 0 3"),
        ("SELECT sections.id FROM sections WHERE slug = $1", "SELECT 1"),
        ("INSERT INTO threads (title) VALUES ($1)", "INSERT 0 1"))
PAID = {"coins": 1, "notifications": 2, "thread": 4}  # effect -> its statement in WORK


def normal(history: History) -> tuple[Event, ...]:
    """The events without real times and message texts: equal for two runs of one schedule."""
    return tuple(
        replace(e, started=0.0, ended=None if e.ended is None else 0.0,
                outcome=" ".join(e.outcome.split()[:2]),
                detail={k: v for k, v in e.detail.items() if k in ("tag", "value")})
        for e in history.events)


class Run:
    """Adds events to `history` one move at a time; a free run has no moves."""

    def __init__(self, free: bool = False) -> None:
        self.history = History()
        self.free = free
        self.move, self.now, self.clock = -1, 0.0, "2026-05-29T18:00:00-06:00"

    def add(self, replica: str, kind: str, statement: str, outcome: str = "ok",
            tag: str | None = None, value: object = None, **more) -> Event:
        if replica and kind != "tick" and replica not in self.history.replicas():
            self.add(replica, "tick", "tick")
        detail = {"tag": tag} if tag else {}
        if value is not None:
            detail["value"] = value
        event = self.history.add(
            replica=replica, kind=kind, statement=statement, started=self.now, outcome=outcome,
            ended=None if outcome == "waiting" else self.now + 0.002, clock=self.clock,
            move=-1 if self.free else self.move, detail=detail, **more)
        self.now += 0.003
        return event

    def step(self, replica: str, statement: str, tag: str | None = "INSERT 0 1",
             kind: str = "statement", **more) -> Event:
        self.move += 1
        tag = tag if more.get("outcome", "ok") == "ok" else None
        return self.add(replica, kind, statement, tag=tag, **more)

    def commit(self, replica: str) -> Event:
        return self.step(replica, "COMMIT", "COMMIT", "commit")

    def rollback(self, replica: str) -> Event:
        return self.step(replica, "ROLLBACK", "ROLLBACK", "rollback")

    def fault(self, replica: str, kind: str) -> Event:
        return self.step(replica, kind, None, kind, outcome="killed" if kind == "kill" else "cut")

    def at(self, time: str) -> None:
        self.clock = f"2026-05-29T{time}:00-06:00"
        if self.free:
            self.now += 0.5
        else:
            self.step("", f"@{time}", None, "clock")

    def work(self, replica: str) -> list[Event]:
        return [self.step(replica, statement, tag) for statement, tag in WORK]


def effect(name: str, subject: str, outcome: str, times: int, expected: int = 1,
           witnesses: tuple[int, ...] = ()) -> SimpleNamespace:
    """One effect of a verdict."""
    return SimpleNamespace(name=name, subject=subject, outcome=outcome, times=times,
                           expected=expected, witnesses=witnesses)


def held() -> SimpleNamespace:
    """A verdict in which everything came once."""
    return SimpleNamespace(effects=(effect("coins", "Ximena Torres", "once", 1),
                                    effect("thread", "2026-W22", "once", 1)),
                           ok=True, worst="once", code="1", unknown=False)


def broken(verdict: SimpleNamespace, keep: str) -> SimpleNamespace:
    """The same verdict with one effect only."""
    return SimpleNamespace(**{**vars(verdict),
                              "effects": tuple(e for e in verdict.effects if e.name == keep)})


def incident(free: bool = False, lock: bool = False) -> tuple[History, SimpleNamespace]:
    """Three replicas, a minute apart, each done before the next: everything three times."""
    run, works = Run(free), []
    for minute, replica in enumerate("ABC"):
        run.at(f"18:0{minute}")
        if lock:
            run.step(replica, LOCK, "SELECT 1", value=True)
            run.step(replica, "SELECT threads.id FROM threads WHERE title = $1", "SELECT 0")
        works.append(run.work(replica))
        run.commit(replica)
        run.add(replica, "end", "tick")
    effects = [effect(name, subject, "duplicated", 3,
                      witnesses=tuple(work[index].seq for work in works))
               for name, index in PAID.items()
               for subject in (["2026-W22"] if name == "thread" else
                               ["Ximena Torres", "Diego Ramírez", "Lucía Hernández"])]
    return run.history, SimpleNamespace(effects=tuple(effects), ok=False, worst="coins", code="D3",
                                        unknown=False)


def inherits() -> tuple[History, SimpleNamespace]:
    """B waits for A's claim, A rolls back, B takes over."""
    run = Run()
    run.at("18:00")
    run.step("A", CLAIM)
    waiting = run.step("B", CLAIM, outcome="waiting", waits_for=("A",))
    run.work("A")
    run.rollback("A")
    run.add("B", "statement", CLAIM, tag="INSERT 0 1", resumes=waiting.seq)
    run.work("B")
    run.commit("B")
    return run.history, held()


def refused_later() -> tuple[History, SimpleNamespace]:
    """The three layers of the post: A works, B and C get the lock but not the claim."""
    run = Run()
    for minute, replica in enumerate("ABC"):
        run.at(f"18:0{minute}")
        run.step(replica, LOCK, "SELECT 1", value=True)
        run.step(replica, CLAIM, "INSERT 0 0" if minute else "INSERT 0 1")
        if not minute:
            run.work(replica)
            run.commit(replica)
        else:
            run.rollback(replica)
    return run.history, held()
