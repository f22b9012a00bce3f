"""`make stage-N`, the part that tells a distribution: what each of many customers lost."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from statistics import median, quantiles
from typing import Any

from lab.engine.postgres import Server
from lab.errors import LabError
from lab.folders import ROOT
from lab.judge.stage import Stage
from lab.show.picture import BAD, GOOD, INK, Picture, banner, picture, save

__all__ = ["losses", "plot", "summary", "tell_distribution"]

BIN = 100  # cents a bar


def tell_distribution(told: Any, part: Mapping[str, Any]) -> bool:
    """Renew all customers with each variant; kept when the first loses and the others do not."""
    seen = losses(told.server, told.stage)
    for variant, lost in seen.items():
        told.console.print(f"{variant:<12}{summary(lost)}", highlight=False)
    declared = told.stage.data["distribution"]
    told.console.print(f"The post measured: median {declared['median']}, 90th percentile "
                       f"{declared['p90']}, of a plan of {declared['plan']}.", highlight=False)
    name = f"{told.stage.number:02d}-renewal"
    told.pictures.append(save(plot(seen, declared), name)[0])
    broken, *repaired = seen.values()
    return sum(broken) > 0 and not any(map(sum, repaired))


def losses(server: Server, stage: Stage) -> dict[str, list[int]]:
    """Variant -> cents that each customer lost, by running the stage's script on a new database.

    Raises:
        LabError: the script failed.
    """
    declared = stage.data["distribution"]
    seen = {}
    for variant in declared["variants"]:
        with stage.database(server) as database:
            done = subprocess.run(
                [sys.executable, stage.folder / declared["script"], variant], cwd=stage.folder,
                env=os.environ | {"DATABASE_URL": database.url, "PYTHONPATH": str(ROOT)},
                capture_output=True, text=True, encoding="utf-8", check=False)
        if done.returncode:
            raise LabError(f"{declared['script']} failed: {done.stderr.strip()[-200:]}",
                           "Run it by hand to see why.", code=1)
        seen[variant] = [json.loads(line)["lost"] for line in done.stdout.splitlines()]
    return seen


def summary(lost: list[int]) -> str:
    """A line: how many customers lost something, and how the losses are spread."""
    return (f"{sum(cents > 0 for cents in lost)} of {len(lost)} customers lost something: median "
            f"{median(lost):.0f}, 90th percentile {_p90(lost):.0f}, {sum(lost):,} cents together")


def _p90(lost: list[int]) -> float:
    return quantiles(lost, n=10, method="inclusive")[-1]


def plot(seen: Mapping[str, list[int]], declared: Mapping[str, Any]) -> Picture:
    """A histogram a variant, with its own median and 90th percentile and those of the post."""
    most = max(map(max, seen.values()))
    edges = range(0, most + BIN, BIN)
    with picture() as figure:
        panels = figure.subplots(len(seen), sharex=True)
        figure.subplots_adjust(left=0.08, right=0.97, top=0.80, bottom=0.10, hspace=0.55)
        for axes, (name, lost) in zip(panels, seen.items(), strict=True):
            broke = sum(lost) > 0
            axes.set_title(f"{name}: {sum(lost):,} cents lost, by {sum(c > 0 for c in lost)} of "
                           f"{len(lost)} customers", size=20, pad=12)
            if broke:
                axes.hist(lost, bins=edges, color="#F6B8A8", hatch="//", ec=BAD, lw=2)
                axes.set_ylabel("customers")
                axes.yaxis.get_major_locator().set_params(integer=True)
                axes.tick_params(labelbottom=True)
            else:
                axes.text(0.5, 0.5, "nobody lost a cent", size=26, weight="bold", color=GOOD,
                          ha="center", va="center", transform=axes.transAxes)
                axes.set_yticks([])
        top, first = panels[0], next(iter(seen.values()))
        high = top.get_ylim()[1] * 1.35
        top.set_ylim(0, high)
        for cents, here, what in ((declared["median"], median(first), "median"),
                                  (declared["p90"], _p90(first), "90th percentile")):
            top.axvline(cents, color=INK, lw=3, ls=(0, (4, 3)))
            top.text(cents + most * 0.008, high * 0.97,
                     f"the post's {what}: {cents}\n(here: {here:.0f})", size=18, va="top")
        panels[-1].set_xlabel("cents that a customer lost on the day of the renewal")
        panels[-1].set_xlim(0, most + BIN / 2)
        banner(figure, f"What {len(seen[next(iter(seen))])} customers of a plan of "
                       f"{declared['plan']} cents lose when they renew")
    return figure
