"""`deliver N`, and a stage's tale of it: a slot of the schedule, delivered in this or that way."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from rich import box
from rich.table import Table
from rich.text import Text

from lab.engine.postgres import Server, server
from lab.engine.tasks import Task
from lab.errors import LabError
from lab.judge.deliveries import Plan, Played, play
from lab.judge.stage import Stage, stage
from lab.show import terminal
from lab.show.picture import BAD, GOOD, INK, Picture, banner, picture, save

__all__ = ["TELLERS", "matrix", "planned", "plot", "run", "shown"]

UNITS = {"m": "minutes", "h": "hours", "d": "days"}
TIME = "%a %d %b %H:%M"
SIMPLER = ("Simpler than AWS: calls on the second, 1, 2, 4 … min apart; a container starts\n"
           "at once; roles, network and capacity are not looked at.")


def run(args: argparse.Namespace) -> int:
    """`deliver N`: deliver a slot as the options say, and show what was paid."""
    console, found = terminal.screen(), stage(args.stage)
    names = ("job", "slot", "twice", "late", "again", "fail", "never_placed", "read_only",
             "by_hand", "following", "template")
    fields = {name: getattr(args, name) for name in names}
    with server() as used:
        played = play(found, used, planned({**fields, "claim": not args.without_claim,
                                            "planned": not args.without_now}))
    console.print(shown(played), soft_wrap=True)
    console.print(SIMPLER, style="dim")
    return 0


def planned(fields: Mapping[str, Any]) -> Plan:
    """A plan from the options or from stage.toml: durations are text such as "3h".

    Raises:
        LabError: a duration or a number makes no sense.
    """
    known = {name: value for name, value in fields.items() if name in Plan.__annotations__}
    if "late" in known:
        known["late"] = _duration(known["late"])
    known["again"] = tuple(_duration(text) for text in known.get("again", ()))
    if known.get("fail", 0) < 0:
        raise LabError(f"{known['fail']} calls cannot fail.", "Give 0 or more.")
    return Plan(**known)


def _duration(text: str) -> timedelta:
    found = re.fullmatch(r"(\d{1,4})([mhd])", text)
    if not found:
        raise LabError(f"“{text}” is no duration.", "Write 30m, 3h or 2d.")
    return timedelta(**{UNITS[found[2]]: int(found[1])})


def shown(played: Played) -> Text:
    """What happened, in order, and how often each slot was paid."""
    schedule = played.schedule
    text = Text()
    text.append(f"{schedule.name}: {schedule.cron.text} {schedule.cron.zone.key}, tried for "
                f"{schedule.age.total_seconds() / 60:.0f} min\n", "dim")
    text.append(f"due  {played.firing:{TIME}}\n", "dim")
    for entry in played.entries:
        what, *notes = entry.what.splitlines()
        text.append(f"{entry.at:{TIME}}  ", "dim").append(f"{what}\n", "bold")
        for note in notes:
            text.append(f"    {note}\n")
        for command in dict.fromkeys(task.command for task in entry.tasks):
            text.append(f"    $ {' '.join(command)}\n")
        for task in entry.tasks:
            for line in _said(task):
                text.append(f"    {line}\n", "bold red" if task.code else "green")
    text.append_text(_paid(played))
    return text


def _said(task: Task) -> list[str]:
    """A task's exit code and what it printed; of a traceback the error that began it."""
    first = task.said[0] if task.said else "it printed nothing"
    if not task.code:
        return [f"exit 0  {line}" for line in task.said or (first,)]
    error = next((line for line in task.said if re.match(r"[\w.]+\.\w+: ", line)), "")
    said = [f"exit {task.code}  {first.removeprefix('ERROR:root:')}", f"        {error}"]
    return said if error else said[:1]


def _paid(played: Played) -> Text:
    lines = Text()
    for effect in played.verdict.effects:
        right = effect.outcome == "once"
        early = (f", before it was due ({played.schedule.firing(effect.subject):{TIME}})"
                 if effect.outcome == "early" else "")
        lines.append(f"{'✓' if right else '✗'} {effect.subject} paid {effect.times}×{early}\n",
                     "bold green" if right else "bold red")
    lines.rstrip()
    return lines


def tell_deliver(told: Any, part: Mapping[str, Any]) -> bool:
    """Deliver a slot as the part's fields say."""
    played = play(told.stage, told.server, planned(part))
    told.console.print(shown(played), soft_wrap=True)
    told.console.print(terminal.result(played.verdict.code, part["expect"]))
    return played.verdict.code == part["expect"]


def tell_matrix(told: Any, part: Mapping[str, Any]) -> bool:
    """Each kind of delivery with the claim and without it: a table and a picture."""
    seen = matrix(told.stage, told.server, part["kinds"])
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    for name in ("delivery", "with the claim", "without it"):
        table.add_column(name, justify="left" if name == "delivery" else "right", no_wrap=True)
    kept = True
    for kind, (name, times) in zip(part["kinds"], seen.items(), strict=True):
        table.add_row(name, *(Text(f"{paid}×", "green" if paid == 1 else "bold red")
                              for paid in times))
        if list(times) != kind["expect"]:
            kept = False
            table.add_row(Text(f"!! NOT as promised: {kind['expect']}", "bold reverse red"))
    told.console.print(table)
    told.console.print(SIMPLER, style="dim")
    told.pictures.append(save(plot(seen), f"{told.stage.number:02d}-deliveries")[0])
    return kept


TELLERS = {"deliver": tell_deliver, "deliveries": tell_matrix}


def matrix(stage: Stage, used: Server,
           kinds: Sequence[Mapping[str, Any]]) -> dict[str, tuple[int, int]]:
    """Name of a kind of delivery -> how often its slot was paid with the claim, and without it."""
    seen = {}
    for kind in kinds:
        plans = [planned({**kind, "claim": claim}) for claim in (True, False)]
        with_it, without = (play(stage, used, plan).paid[plan.slot] for plan in plans)
        seen[kind["name"]] = with_it, without
    return seen


def plot(seen: Mapping[str, tuple[int, int]]) -> Picture:
    """How often a slot was paid for each kind of delivery, with the claim and without it."""
    most = max(max(times) for times in seen.values())
    with picture() as figure:
        axes = figure.add_axes((0.27, 0.12, 0.70, 0.70))
        for y, times in enumerate(seen.values()):
            for place, (paid, hatch) in enumerate(zip(times, ("", "//"), strict=True)):
                at, right = y + 0.38 * (place - 0.5), paid == 1
                axes.barh(at, paid, height=0.34, color="#DDF0E4" if right else "#F6B8A8",
                          ec=GOOD if right else BAD, lw=2, hatch=hatch)
                axes.text(paid + most * 0.012, at, f"{paid}×" + (" no claim" if place else ""),
                          va="center", size=18, weight="bold", color=GOOD if right else BAD)
        axes.axvline(1, color=INK, lw=3, ls=(0, (4, 3)))
        axes.set_yticks(range(len(seen)), list(seen), size=19)
        axes.invert_yaxis()
        axes.tick_params(axis="y", length=0, pad=10)
        axes.set_xticks(range(most + 1))
        axes.set_xlim(0, most * 1.25)
        axes.set_xlabel("payments for the slot; 1 is due")
        banner(figure, "One slot, delivered in many ways: how often it was paid")
        figure.text(0.02, 0.875, "upper bar: the job claims its slot · lower bar, hatched: "
                                 "the same without the claim", size=18)
    return figure
