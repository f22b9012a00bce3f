"""`make stage-N`, the part that tells a rush: many buyers, few connections, a slow push."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import median
from typing import Any

from rich import box
from rich.table import Table

from lab.engine.postgres import Server
from lab.engine.rush import Rush, rush
from lab.judge.stage import Stage
from lab.show.picture import INK, Picture, banner, picture, save
from lab.world.ntfy import PushServer

__all__ = ["plot", "rushes", "tell_rush"]

# Fill and hatch of what the buyers are waiting for: told apart without colour.
LOOKS = {"wait for a connection of the pool": ("#F3C9A0", "..."),
         "hold a connection, wait for the row": ("#CFE3F5", "///"),
         "idle in transaction": (INK, "")}


def tell_rush(told: Any, part: Mapping[str, Any]) -> bool:
    """Run the rush for each placement; numbers are observations, nothing is promised of them."""
    seen = rushes(told.server, told.stage, part)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1))
    for name in ("placement", "per s", "median", "last", "pool", "row", "idle in tx"):
        table.add_column(name, justify="left" if name == "placement" else "right", no_wrap=True)
    for name, one in seen.items():
        table.add_row(name, f"{one.rate:.0f}", f"{median(one.done):.2f} s",
                      f"{one.seconds:.2f} s",
                      str(max((one.queued(s.at) for s in one.samples), default=0)),
                      str(max((s.waiting for s in one.samples), default=0)),
                      f"{one.idle_seconds:.2f} s")
    told.console.print(table)
    told.console.print(
        "per s       purchases a second\n"
        "median      until half of the buyers had theirs; last: until all had\n"
        "pool        buyers without a connection, at most\n"
        "row         sessions that wait for the product's row, at most\n"
        "idle in tx  idle in a transaction, all sessions together", highlight=False)
    told.pictures.append(save(plot(seen, part), f"{told.stage.number:02d}-rush")[0])
    return True


def rushes(server: Server, stage: Stage, part: Mapping[str, Any]) -> dict[str, Rush]:
    """A rush for each of the part's placements: `buyers`, `pool`, and `push` in real seconds."""
    seen = {}
    for placement in part["placements"]:
        with stage.database(server) as database, PushServer() as push:
            push.slow = part["push"]
            seen[placement] = rush(database, stage.folder / "rush.py",
                                   [placement, str(part["buyers"]), str(part["pool"])], push.url)
    return seen


def plot(seen: Mapping[str, Rush], part: Mapping[str, Any]) -> Picture:
    """What the buyers wait for, over time: a panel a placement, on one scale."""
    longest = max(one.seconds for one in seen.values())
    with picture() as figure:
        panels = figure.subplots(len(seen), sharex=True)
        figure.subplots_adjust(left=0.075, right=0.98, top=0.80, bottom=0.09, hspace=0.42)
        for axes, (name, one) in zip(panels, seen.items(), strict=True):
            at = [0.0, *(s.at for s in one.samples), one.seconds]
            layers = [[one.queued(0), *(one.queued(s.at) for s in one.samples), 0],
                      [0, *(s.waiting for s in one.samples), 0],
                      [0, *(s.idle for s in one.samples), 0]]
            drawn = axes.stackplot(at, *reversed(layers), step="post", edgecolor=INK, lw=0.8)
            for area, (fill, hatch) in zip(drawn, reversed(LOOKS.values()), strict=True):
                area.set(facecolor=fill, hatch=hatch)
            axes.set_ylim(0, part["buyers"] * 1.05)
            axes.set_ylabel("buyers")
            axes.set_title(f"{name}: {one.rate:.0f} purchases/s, the last buyer waits "
                           f"{one.seconds:.1f} s", size=20, pad=8)
        panels[-1].set_xlim(0, longest * 1.02)
        panels[-1].set_xlabel("seconds since all of them clicked")
        figure.legend(list(reversed(drawn)), list(LOOKS), loc="upper left", ncols=3,
                      bbox_to_anchor=(0.01, 0.925), fontsize=17, columnspacing=1.2)
        banner(figure, f"{part['buyers']} buyers of one product, a pool of {part['pool']}, "
                       f"a push that takes {part['push']} s")
    return figure
