"""`make explore-N` and `make replay-N`: every interleaving counted, and one of them shown."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rich.console import Console
from rich.text import Text

from lab.engine.explore import Result
from lab.engine.postgres import server
from lab.engine.schedule import Schedule
from lab.errors import LabError
from lab.judge.scenarios import READ_COMMITTED, Scenario, Theatre, scenarios, theatre
from lab.judge.stage import Stage, stage
from lab.show import own, practice, tables, terminal

__all__ = ["count", "explore", "replay"]

LETTERS = "ABCDEFGH"
SHOWN = 3  # failing schedules printed; the plainest ones


def count(console: Console, scene: Theatre, entry: Mapping[str, Any], *, full: bool = False,
          seconds: float | None = None, shown: int = 1) -> bool:
    """Explore as an `[[explore]]` entry says, print the count, and compare with its promise.

    Args:
        entry: replicas, and optionally standing, everyone, roles, isolation, breaks ("all",
            "some" or "none" of the schedules), and a name to print in place of their number.
        full: run every single schedule.
        seconds: stop after this much real time.
        shown: how many failing schedules to print.
    """
    if lack := scene.lack([entry.get("everyone", ""), *entry.get("roles", {}).values()]):
        console.print(f"{entry.get('name', 'This')} is NOT RUN: {lack}", highlight=False)
        return True
    result = explored(console, scene, entry, full=full, seconds=seconds)
    number, standing = scene.stage.number, entry.get("standing", ())
    world = f", {' '.join('+' + name for name in standing)}" if standing else ""
    console.print(Text.assemble(
        f"{entry.get('name') or str(entry['replicas']) + ' replicas'}{world}: ",
        (result.headline, "bold"),
        f" interleavings break it ({_outcomes(result)}; {result.runs:,} runs, "
        f"{result.seconds:.1f} s)"))
    if not result.complete:
        console.print(f"  {result.shortfall}", highlight=False)
    for finding in [f for f in result.findings if f.breaks][:shown]:
        text = " ".join([*(f"+{name}" for name in standing), str(finding.schedule)])
        console.print(f"  {finding.code}: make replay-{number} {_parts(entry)}SCHEDULE=\"{text}\"",
                      highlight=False, soft_wrap=True)
    return not result.unknown and _kept(result, entry.get("breaks"))


def explored(console: Console, scene: Theatre, entry: Mapping[str, Any], *, full: bool = False,
             seconds: float | None = None) -> Result:
    """Explore as an `[[explore]]` entry says, with a progress display."""
    with terminal.meter(console, "exploring", unit="runs") as tell:
        return scene.explore(
            LETTERS[:entry["replicas"]], everyone=entry.get("everyone", ""),
            roles=entry.get("roles"), isolation=entry.get("isolation", READ_COMMITTED),
            standing=entry.get("standing", ()), reduce=not full,
            seconds=seconds or entry.get("seconds"),
            on_progress=lambda runs, left, breaking: tell(
                runs, f"{left:,} branches left, {breaking:,} ends break it"))


def explore(args: argparse.Namespace) -> int:
    """`explore N`: every interleaving of a stage; exit code 1 when the count is not as promised."""
    if args.worker:
        return own.run(args)
    if args.stage is None:
        raise LabError("explore needs a stage, or code of your own.",
                       "Write: explore 1, or: explore --worker FILE.py --schema FILE.sql "
                       "--invariant FILE.py.")
    console, found = terminal.screen(), stage(args.stage)
    entries: Sequence[Mapping[str, Any]] = found.data.get("explore", ())
    if args.roles:
        entries = [{"replicas": args.replicas or 2, "roles": roles(args.roles)}]
    elif args.replicas:
        entries = [e for e in entries if e["replicas"] == args.replicas] or [
            {"replicas": args.replicas}]
    if not entries:
        raise LabError(f"Stage {found.number} has no interleavings to count.",
                       f"See what it shows: make stage-{found.number}")
    with server() as used, theatre(found, used) as scene:
        kept = [count(console, scene, entry, full=args.all, seconds=args.seconds, shown=SHOWN)
                for entry in entries]
    return 0 if all(kept) else 1


def roles(text: str) -> dict[str, str]:
    """Who runs what: "B=admin C=strict" as {"B": "admin", "C": "strict"}."""
    parts = [word.partition("=") for word in text.split()]
    if not all(letter and equals and program for letter, equals, program in parts):
        raise LabError(f"“{text}” does not say who runs what.", "Write it as B=admin.")
    return {letter: program for letter, _, program in parts}


def replay(args: argparse.Namespace) -> int:
    """`replay N "A.. B.."`: run one schedule, show it move by move, and judge it."""
    if args.my:
        return practice.replay(args)
    from lab.show import picture, timeline

    console, found = terminal.screen(), stage(args.stage)
    scenario = _scenario(found, args)
    with server() as used, theatre(found, used) as scene:
        outcome = scene.play(scenario)
    title = f"{scenario.name}: {scenario.title}" if scenario.title else str(scenario.schedule)
    if scenario.title:
        console.print(terminal.heading(title))
    console.print(terminal.transcript(outcome.history))
    console.print(tables.verdict(outcome.verdict, outcome.history))
    drawn = timeline.timeline(outcome.history, f"{found.name}: {title}", outcome.verdict)
    path, _ = picture.save(drawn, f"{found.number:02d}-replay")
    console.print(f"Picture: {path}", highlight=False, soft_wrap=True)
    return 0


def _scenario(found: Stage, args: argparse.Namespace) -> Scenario:
    """The schedule that `replay` was given, or the named one; what else was given goes before."""
    planned = Schedule.parse(" ".join(args.schedule))
    if args.case:
        known = scenarios(found)
        if args.case not in known:
            raise LabError(f"{found.name} has no scenario {args.case}.",
                           f"It has: {', '.join(known)}.")
        base = known[args.case]
    elif planned:
        base = Scenario("replay", "", planned)
    else:
        raise LabError("There is no schedule to run.",
                       f'Write: make replay-{args.stage} SCHEDULE="A.. B..".')
    given = {"schedule": planned, "everyone": args.everyone, "roles": roles(args.roles),
             "isolation": args.isolation}
    given = {name: value for name, value in given.items() if value}
    return replace(base, **given, title="") if given else base


def _parts(entry: Mapping[str, Any]) -> str:
    """The parts of an entry as `make replay-N` takes them."""
    everyone = f"EVERYONE={entry['everyone']} " if "everyone" in entry else ""
    cast = " ".join(f"{letter}={name}" for letter, name in entry.get("roles", {}).items())
    return everyone + (f'ROLES="{cast}" ' if cast else "")


def _outcomes(result: Result) -> str:
    return ", ".join(f"{code} ×{size:,}" for code, size in result.outcomes.most_common())


def _kept(result: Result, promise: str | None) -> bool:
    return {"all": result.breaking == result.total, "none": result.breaking == 0,
            "some": result.breaking > 0, None: True}[promise]
