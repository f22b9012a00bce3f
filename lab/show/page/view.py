"""What the page shows of a run, as data: one JSON object, made anew after every order."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from lab.engine.history import ENDS, Event, History, label
from lab.engine.replica import Replica
from lab.engine.where import where
from lab.judge.scenarios import READ_COMMITTED, scenarios
from lab.judge.stage import Stage, stages
from lab.judge.verdict import Verdict
from lab.show import phone
from lab.show.lanes import lay_out, no_row
from lab.show.page.code import entry, excerpt
from lab.show.page.desk import Desk
from lab.show.words import WRITES, ordinals, outcome_of
from lab.world.conditions import conditions

__all__ = ["menu", "view"]

LEVELS = [READ_COMMITTED, "repeatable read", "serializable"]


def menu() -> list[dict[str, Any]]:
    """The stages that can be played: those with a program to step."""
    return [_stage(found) for found in stages() if "programs" in found.data]


def view(desk: Desk) -> dict[str, Any]:
    """All that the page shows of the run on the desk, which has to be open."""
    stepper, history = desk.stepper, desk.stepper.history
    verdict, certain = judged(desk)
    problem = desk.problem
    return {
        "stage": _stage(desk.stage),
        "programs": list(desk.stage.programs),
        "scenarios": [{"name": s.name, "title": s.title, "es": {"title": s.es}}
                      for s in scenarios(desk.stage).values()],
        "conditions": [*({} if desk.stage.data.get("world") == "own" else conditions()),
                       *stepper.named],
        "letters": desk.letters, "everyone": desk.everyone or next(iter(desk.stage.programs)),
        "roles": desk.roles, "isolation": desk.isolation, "usual": READ_COMMITTED,
        "isolations": _isolations(desk),
        "schedule": plain(desk.moves), "moves": len(desk.moves),
        "clock": stepper.now.isoformat(),
        "replicas": _replicas(desk),
        "tables": desk.tables.look(stepper.monitor),
        "phone": _phone(desk),
        "verdict": _verdict(desk.stage, verdict, certain),
        "timeline": _timeline(history, verdict if certain else None),
        "said": [_said(event) for event in history.events[desk.seen:]],
        "tried": _tried(desk),
        "note": desk.note,
        "problem": problem and {"what": problem.what, "remedy": problem.remedy},
    }


def judged(desk: Desk) -> tuple[Verdict | None, bool]:
    """The verdict on what is committed so far, and whether it is certain.

    It is when every run is over; and before that once something happened too often, because no
    later commit takes a payment back. (Where a run's own answer is part of what is judged, the
    answer may still be on its way.)
    """
    stepper = desk.stepper
    if not any(r.started for r in stepper.replicas.values()):
        return None, False
    verdict = desk.theatre.judge(History(stepper.history.events, complete=True))
    over = stepper.over and all(r.started or r.dead for r in stepper.replicas.values())
    twice = any(e.outcome == "duplicated" for e in verdict.effects)
    return verdict, over or (twice and not desk.stage.data.get("answers"))


def plain(moves: list) -> str:
    """The moves as text.

    A start that is followed by a step of the same replica, at the same hour and in the same world,
    says nothing that the step would not say: it is left out.
    """
    kept = []
    for at, move in enumerate(moves):
        if move.kind == "start":
            after = next((m for m in moves[at + 1:] if m.letter in ("", move.letter)), None)
            if after and after.kind in ("step", "run"):
                continue
        kept.append(str(move))
    return " ".join(kept)


def _isolations(desk: Desk) -> list[str]:
    """The levels to choose from, where the stage is about them."""
    used = {s.isolation for s in scenarios(desk.stage).values()} | {desk.isolation}
    return LEVELS if used != {READ_COMMITTED} else [READ_COMMITTED]


def _stage(found: Stage) -> dict[str, Any]:
    keys = ("title", "story", "stops", "lets_through")
    return {"number": found.number, "name": found.name, "es": found.data.get("es", {}),
            **{key: found.data.get(key, "") for key in keys}}


def _replicas(desk: Desk) -> list[dict[str, Any]]:
    frames = where(desk.stepper)
    return [_replica(desk, letter, replica, frames.get(letter, []))
            for letter, replica in desk.stepper.replicas.items()]


def _replica(desk: Desk, letter: str, replica: Replica, frames: list) -> dict[str, Any]:
    stepper, folder = desk.stepper, desk.stage.folder
    held = stepper.held_step(letter)
    state = ("dead" if replica.dead else "frozen" if replica.frozen else
             "finished" if replica.finished else "idle" if not replica.started else
             "waiting" if replica.waits_for else "held")
    events = [e for e in stepper.history if e.replica == letter]
    last = next((e for e in reversed(events) if e.kind not in ("tick", "freeze", "thaw")
                 and (e.kind != "end" or e.failed)), None)
    code = excerpt(folder, frames[0]) if frames else entry(folder, replica.program.call)
    program = next(n for n, p in desk.stage.programs.items() if p == replica.program)
    return {
        "letter": letter, "state": state, "program": program, "code": code,
        "trail": [f"{f.file}:{f.line} {f.function}" for f in reversed(frames)],
        "next": _next(held), "waits_for": list(replica.waits_for),
        "blocks": [r.letter for r in stepper.replicas.values() if letter in r.waits_for],
        "last": last and _said(last), "open": _open(desk, letter, events),
    }


def _next(held: Any) -> dict[str, str] | None:
    if held is None:
        return None
    request = held.segment.kind == "request"
    return {"label": held.text if request else label(held.text), "sql": held.text}


def _open(desk: Desk, letter: str, events: list[Event]) -> list[dict[str, str]]:
    """What the replica has written in the transaction that is still open, from the history."""
    if not any(getattr(link, "status", "I") != "I" for link in desk.stepper.gate.of(letter)):
        return []
    written: list[Event] = []
    for event in events:
        if event.kind in (*ENDS, "tick", "kill", "cut"):
            written.clear()
        elif event.kind == "statement" and event.outcome == "ok" and not no_row(event) and (
                event.label.startswith(WRITES)):
            written.append(event)
    return [{"label": e.label, "table": e.label.split()[-1], "tag": e.detail.get("tag", "")}
            for e in written]


def _phone(desk: Desk) -> dict[str, Any] | None:
    monitor, now = desk.stepper.monitor, desk.stepper.now
    if desk.theatre.pushes:
        told = [m["message"] for m in reversed(desk.theatre.pushes.server.messages)]
        return {"name": "", "told": [[text, None] for text in told], "wallet": None, "due": None}
    if desk.stage.data.get("world") == "own":
        return None
    name = phone.third(monitor)
    told, wallet = phone.seen(monitor, name)
    ages = [[body, int((now - at).total_seconds() // 60)] for body, at in told]
    return {"name": name, "told": ages, "wallet": wallet, "due": phone.PRIZE}


def _verdict(stage: Stage, verdict: Verdict | None, certain: bool) -> dict[str, Any] | None:
    if verdict is None:
        return None
    alike: dict[tuple, list[str]] = {}
    for e in verdict.effects:
        alike.setdefault((e.name, e.outcome, e.times, e.expected), []).append(e.subject)
    return {"certain": certain, "ok": verdict.ok, "unknown": verdict.unknown, "code": verdict.code,
            "effects": [{"name": name, "title": stage.effects[name].title,
                         "es": {"title": stage.effects[name].es}, "outcome": outcome,
                         "times": times, "expected": expected, "subjects": subjects}
                        for (name, outcome, times, expected), subjects in alike.items()]}


def _timeline(history: History, verdict: Verdict | None) -> dict[str, Any]:
    lanes = asdict(lay_out(history))
    lanes["bad"] = ordinals(verdict, history)
    return lanes


def _said(event: Event) -> dict[str, Any]:
    return {"letter": event.replica, "kind": event.kind, "label": event.label,
            "outcome": outcome_of(event), "waits_for": list(event.waits_for),
            "move": event.move, "failed": event.failed}


def _tried(desk: Desk) -> dict[str, Any]:
    tally = desk.tally()
    return {"count": len(tally.orders), "broke": sum(not held for held in tally.orders.values()),
            "total": tally.total, "breaking": tally.breaking, "complete": tally.complete}
