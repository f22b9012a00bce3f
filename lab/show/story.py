"""`make stage-N`: the tale of a stage, told by running it.

A tale is data (`[[tale]]` in stage.toml): what is said, what is run, and what must come out. The
ways to run are in TELLERS; anything else names a scenario.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from lab.engine.free import FreeRun
from lab.engine.history import History
from lab.engine.postgres import Server, server
from lab.engine.schedule import Schedule
from lab.judge.scenarios import Scenario, Theatre, scenarios, theatre
from lab.judge.stage import Stage, stage, stages
from lab.judge.verdict import Verdict, judge, read
from lab.show import (
    counting,
    distribution,
    load,
    peers,
    phone,
    rush,
    scheduler,
    sweep,
    tables,
    terminal,
)

__all__ = ["Told", "run"]

OUT = Path("out")


class Told:
    """A tale under way: the screen, the stage, and the means to run it.

    The replicas of the stepped engine are started when the first part of the tale wants them.
    """

    def __init__(self, console: Console, stage: Stage, server: Server, theatre: Theatre) -> None:
        self.console, self.stage, self.server, self.theatre = console, stage, server, theatre
        self.pictures: list[Path] = []

    def keep(self, name: str, title: str, history: History, verdict: Verdict,
             since: str | None = None) -> None:
        """Save the history and its timeline under out/; the clock counts from `since` (ISO)."""
        from lab.show import picture, timeline  # drawing is slow to import, and comes last

        history.save(OUT / f"{name}.jsonl")
        drawn = timeline.timeline(history, title, verdict, since)
        self.pictures.append(picture.save(drawn, name)[0])


def run(args: argparse.Namespace) -> int:
    """Tell a stage's tale; the exit code is 0 when all came out as promised, 1 when it did not."""
    console = terminal.screen()
    told_stage = stage(args.stage)
    kept = True
    with server() as used, theatre(told_stage, used) as scene:
        console.rule(f"{told_stage.name}: {told_stage.title}", align="left")
        console.print(told_stage.data["story"], highlight=False)
        told = Told(console, told_stage, used, scene)
        for part in told_stage.data["tale"]:
            console.print(terminal.heading(part["say"]))
            kept &= TELLERS.get(part["run"], tell_scenario)(told, part)
    for path in told.pictures:
        console.print(f"Picture: {path}", highlight=False, soft_wrap=True)
    console.print(f"\nStops: {told_stage.data['stops']}.\n"
                  f"Lets through: {told_stage.data['lets_through']}.\n\n"
                  f"{_next(told_stage)}", highlight=False)
    return 0 if kept else 1


def tell_scenario(told: Told, part: Mapping[str, Any]) -> bool:
    """Run a scenario: its transcript, and what came out against the promise."""
    scenario = scenarios(told.stage)[part["run"]]
    return _show(told, part, scenario, told.stage.data["expect"][scenario.name])


def tell_schedule(told: Told, part: Mapping[str, Any]) -> bool:
    """Run a schedule of the tale's own; `part` has the fields of a scenario, and `expect`."""
    number = 1 + [p for p in told.stage.data["tale"] if p["run"] == "schedule"].index(part)
    fields = {key: part[key] for key in ("everyone", "roles", "isolation", "error") if key in part}
    moves = Schedule.parse(part["schedule"])
    scenario = Scenario(f"schedule-{number}", part["say"], moves, **fields)
    return _show(told, part, scenario, part["expect"])


def _show(told: Told, part: Mapping[str, Any], scenario: Scenario, promised: str) -> bool:
    if lack := told.theatre.lack([scenario.everyone, *(scenario.roles or {}).values()]):
        told.console.print(f"NOT RUN: {lack}", highlight=False)
        return True
    outcome = told.theatre.play(scenario)
    told.console.print(terminal.transcript(outcome.history))
    told.console.print(terminal.result(outcome.code, promised))
    if not outcome.verdict.ok or told.stage.data.get("shown"):  # whose figures are the lesson
        told.console.print(tables.verdict(outcome.verdict, outcome.history))
    name = f"{told.stage.number:02d}-{scenario.name}"
    title = scenario.title if part["run"] == "schedule" else f"{scenario.name}: {scenario.title}"
    told.keep(name, f"{told.stage.name}: {title}", outcome.history, outcome.verdict,
              part.get("since"))
    return outcome.code == promised


def tell_free(told: Told, part: Mapping[str, Any]) -> bool:
    """Let three real replicas live through it, and look at a member's phone afterwards."""
    console, found = told.console, told.stage
    with found.database(told.server) as database, database.connect() as conn:
        with FreeRun(database, found.folder,
                     on_event=lambda event: console.print(terminal.event_line(event))) as free:
            history = free.run()
            later = free.now
        verdict = judge(read(conn, found.effects), history, found.effects)
        console.print(phone.phone_of(conn, phone.third(conn), later))
        paid = phone.paid(conn)
    console.print(terminal.result(verdict.code, part["expect"]))
    console.print(tables.verdict(verdict, history))
    told.keep(f"{found.number:02d}-timeline", f"{found.name}: {found.title}", history, verdict)
    from lab.show import picture, plots

    told.pictures.append(picture.save(plots.duplicates(paid), f"{found.number:02d}-paid")[0])
    return verdict.code == part["expect"]


def tell_explore(told: Told, part: Mapping[str, Any]) -> bool:
    """Count every interleaving of two replicas."""
    wanted = [entry for entry in told.stage.data["explore"] if entry["replicas"] == 2]
    kept = [counting.count(told.console, told.theatre, entry) for entry in wanted]
    return all(kept)


TELLERS: dict[str, Callable[[Told, Mapping[str, Any]], bool]] = {
    "free": tell_free,
    "explore": tell_explore,
    "schedule": tell_schedule,
    "sweep": sweep.tell_sweep,
    "rush": rush.tell_rush,
    "load": load.tell_load,
    "peers": peers.tell_peers,
    "distribution": distribution.tell_distribution,
    **scheduler.TELLERS,
}


def _next(found: Stage) -> str:
    after = found.number + 1
    there = any(other.number == after for other in stages())
    then = [f"make explore-{found.number}"] if found.data.get("explore") else []
    then += [f"make diff-{after}", f"make stage-{after}"] if there else ["make ladder"]
    return f"Read {found.name}/README.md. Then: {' · '.join(then)}"
