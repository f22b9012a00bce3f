"""`make stage-N`, the part that tells a crash sweep: every crash point of every placement."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from lab.judge import sweeps
from lab.judge.scenarios import Theatre
from lab.judge.sweeps import FINE, Swept
from lab.show import terminal
from lab.show.plots_sweep import LOOKS, crashes, strip

__all__ = ["drawn", "table", "tell_sweep"]

SPARES = 2  # warm processes beside those at work: a kill then costs no start-up on two cores
BAD = [name for name in LOOKS if name not in FINE]


def tell_sweep(told: Any, part: Mapping[str, Any]) -> bool:
    """Sweep every placement; its table, its picture, and whether all came out as promised."""
    from lab.show import picture

    with terminal.meter(told.console, "crashing", unit="points") as tell:
        done = swept(told.theatre, lambda number: tell(number))
    told.console.print(table(done))
    name = f"{told.stage.number:02d}-sweep"
    folder = Path("out")
    told.pictures.append(picture.save(drawn(told.theatre, done), name, folder)[0])
    return all(one.as_promised for one in done)


def swept(theatre: Theatre, on_number: Any = lambda number: None) -> list[Swept]:
    """Every sweep of a stage; `on_number` gets how many points are done."""
    theatre.spares = max(theatre.spares, SPARES)
    seen: list[None] = []

    def count(point: object) -> None:
        seen.append(None)
        on_number(len(seen))

    return sweeps.run(theatre, count)


def drawn(theatre: Theatre, done: Sequence[Swept]) -> Any:
    """The picture of the sweeps that could run."""
    return crashes({one.entry["name"]: one.result for one in done if one.result},
                   theatre.stage.data.get("steps", {}))


def table(done: Sequence[Swept]) -> RenderableType:
    """A line a placement: how many points, what came of them, with a sign for every point."""
    drawn = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    for name in ("placement", "points", *BAD):
        drawn.add_column(name, justify="left" if name == "placement" else "right", no_wrap=True)
    lines: list[Text] = []
    for one in done:
        name = one.entry["name"]
        if one.result is None:
            lines.append(Text(f"!! {name} was NOT swept: {one.entry['otherwise']}",
                              "bold reverse yellow"))
            continue
        found = one.result.outcomes
        drawn.add_row(name, str(len(one.result.points)),
                      *(str(found[bad] or "–") for bad in BAD))
        lines.append(Text(f"{name:<20}{strip(one.result.points)}"))
        lines.append(Text(f"{'  and tried again':<20}{strip(one.result.points, retried=True)}",
                          "dim"))
        if not one.as_promised:
            lines.append(Text(f"!! NOT as promised: {', '.join(sorted(one.bad)) or 'nothing bad'}"
                              f" instead of {', '.join(one.entry['outcomes']) or 'nothing bad'}",
                              "bold reverse red"))
    results = [one.result for one in done if one.result]
    total = sum(len(result.points) for result in results)
    seconds = sum(result.seconds for result in results)
    key = "  ".join(f"{sign.format(times=2)} {name}" for name, (_, _, sign, _) in LOOKS.items())
    return Group(*lines, Text(key, "dim"), drawn,
                 Text(f"{total} crash points, every one tried, two runs each ({seconds:.1f} s).",
                      "bold"))
